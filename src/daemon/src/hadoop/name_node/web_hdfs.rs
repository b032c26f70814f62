//! WebHDFS (`/webhdfs/v1`), read; no I/O.
//!
//! Fields that are not needed are not looked at: block tokens, which let their bearer read a block, reach no value of
//! ours. Errors say where an answer stops making sense and never what stands there, for it may be a token.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeMap;

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// It is no JSON, half of it, or JSON of another shape.
    #[error("the answer is not as a NameNode's: {kind} at line {line}, column {column}")]
    Json {
        /// What kind of mistake.
        kind: &'static str,
        /// Where.
        line: usize,
        /// Where.
        column: usize,
    },
    /// It is JSON, and contradicts itself.
    #[error("the answer makes no sense: {0}")]
    Sense(&'static str),
}

/// What a NameNode refuses with, as far as it makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It does not lead: another one is to be asked.
    Standby,
    /// In safe mode it does not know where blocks lie, or it has too much to do: later.
    Later,
    /// There is no such path.
    Missing,
    /// Whoever asks may not read the path.
    Unreadable,
    /// It knows no such question.
    Unsupported,
    /// Anything else, of the server and not of the path.
    Other,
}

/// One row of a directory's listing; of a file's, the only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the directory; empty: it is what was asked for.
    pub name: String,
    /// Whether it is a directory.
    pub directory: bool,
    /// Bytes.
    pub length: u64,
    /// Bytes of a block; 0: unknown.
    pub block_size: u64,
}

/// A block and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSeen {
    /// HDFS's block id; `None`: the answer has none.
    pub id: Option<u64>,
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Its readable replicas.
    pub replicas: Vec<ReplicaSeen>,
}

/// One replica, by all that HDFS calls its DataNode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSeen {
    /// As the DataNode calls itself.
    pub host: String,
    /// Its address; empty: not said.
    pub address: String,
    /// Its rack in HDFS's spelling; empty: not said.
    pub rack: String,
}

/// The question for what is at a path.
#[must_use]
pub fn list_status(path: &str, user: &str) -> String {
    question(path, "LISTSTATUS", "", user)
}

/// The question for a path's own row: whether somebody answers.
#[must_use]
pub fn status(path: &str, user: &str) -> String {
    question(path, "GETFILESTATUS", "", user)
}

/// The question for blocks of a file that begin within `length` bytes from `offset`.
#[must_use]
pub fn block_locations(path: &str, offset: u64, length: u64, user: &str) -> String {
    question(path, "GET_BLOCK_LOCATIONS", &format!("&offset={offset}&length={length}"), user)
}

/// The same, as HttpFS and other servers of the public interface know it.
#[must_use]
pub fn file_block_locations(path: &str, offset: u64, length: u64, user: &str) -> String {
    question(path, "GETFILEBLOCKLOCATIONS", &format!("&offset={offset}&length={length}"), user)
}

fn question(path: &str, operation: &str, more: &str, user: &str) -> String {
    let user = if user.is_empty() { String::new() } else { format!("&user.name={user}") };
    format!("/webhdfs/v1{}?op={operation}{more}{user}", encoded(path))
}

/// A path as it stands in an URL.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            text.push('%');
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    text
}

/// What a refusal means; `body` is the beginning of what was said.
#[must_use]
pub fn refused(body: &str) -> Refused {
    let exception = body.split_once("\"exception\"").and_then(|(_, rest)| rest.split('"').nth(1)).unwrap_or_default();
    match exception {
        "StandbyException" | "ObserverRetryOnActiveException" => Refused::Standby,
        "SafeModeException" | "RetriableException" | "ServerTooBusyException" => Refused::Later,
        "FileNotFoundException" | "ParentNotDirectoryException" | "InvalidPathException" => Refused::Missing,
        // Somebody asked for what would lie below a file.
        "AccessControlException" if body.contains("is not a directory") => Refused::Missing,
        "AccessControlException" | "SecurityException" | "AuthorizationException" => Refused::Unreadable,
        "IllegalArgumentException" | "UnsupportedOperationException" => Refused::Unsupported,
        // A page of another server's is no word on the path, whatever its status.
        _ => Refused::Other,
    }
}

/// The answer to [`status`]: that it is one.
///
/// # Errors
/// [`BadAnswer`].
pub fn is_status(body: &[u8]) -> Result<(), BadAnswer> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "FileStatus")]
        _status: BTreeMap<String, IgnoredAny>,
    }
    json::<Answer>(body).map(drop)
}

/// The answer to [`list_status`].
///
/// # Errors
/// [`BadAnswer`].
pub fn listing(body: &[u8]) -> Result<Vec<Entry>, BadAnswer> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "FileStatuses")]
        statuses: Statuses,
    }
    #[derive(Deserialize)]
    struct Statuses {
        #[serde(rename = "FileStatus", default)]
        rows: Option<Vec<Row>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        path_suffix: String,
        r#type: String,
        length: u64,
        #[serde(default)]
        block_size: u64,
    }
    let answer: Answer = json(body)?;
    let entry = |row: Row| Entry {
        name: row.path_suffix,
        directory: row.r#type == "DIRECTORY",
        length: row.length,
        block_size: row.block_size,
    };
    // A link leads to another path, which whoever means it can name.
    Ok(answer.statuses.rows.unwrap_or_default().into_iter().filter(|row| row.r#type != "SYMLINK").map(entry).collect())
}

/// The answer to [`block_locations`], in file order, and the file's length.
///
/// # Errors
/// [`BadAnswer`].
pub fn located_blocks(body: &[u8]) -> Result<Vec<BlockSeen>, BadAnswer> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "LocatedBlocks")]
        found: Option<Located>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Located {
        #[serde(default)]
        located_blocks: Option<Vec<Row>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        block: Block,
        start_offset: u64,
        #[serde(default)]
        is_corrupt: bool,
        #[serde(default)]
        locations: Option<Vec<DataNode>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Block {
        /// Negative where it is a group of erasure-coded blocks.
        block_id: i64,
        num_bytes: u64,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct DataNode {
        host_name: String,
        #[serde(default)]
        ip_addr: String,
        #[serde(default)]
        network_location: String,
        #[serde(default)]
        admin_state: String,
    }
    let answer: Answer = json(body)?;
    let found = answer.found.ok_or(BadAnswer::Sense("no LocatedBlocks"))?;
    let block = |row: Row| {
        let readable = |node: &DataNode| !row.is_corrupt && node.admin_state != "DECOMMISSIONED";
        let replicas = row.locations.unwrap_or_default().into_iter().filter(readable).map(|node| ReplicaSeen {
            host: node.host_name,
            address: node.ip_addr,
            rack: node.network_location,
        });
        BlockSeen {
            id: Some(row.block.block_id.cast_unsigned()),
            offset: row.start_offset,
            length: row.block.num_bytes,
            replicas: replicas.collect(),
        }
    };
    Ok(found.located_blocks.unwrap_or_default().into_iter().map(block).collect())
}

/// The answer to [`file_block_locations`], in file order.
///
/// # Errors
/// [`BadAnswer`].
pub fn file_blocks(body: &[u8]) -> Result<Vec<BlockSeen>, BadAnswer> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "BlockLocations")]
        found: Locations,
    }
    #[derive(Deserialize)]
    struct Locations {
        #[serde(rename = "BlockLocation", default)]
        rows: Option<Vec<Row>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        offset: u64,
        length: u64,
        #[serde(default)]
        corrupt: bool,
        #[serde(default)]
        hosts: Option<Vec<String>>,
        #[serde(default)]
        names: Option<Vec<String>>,
        #[serde(default)]
        topology_paths: Option<Vec<String>>,
    }
    let answer: Answer = json(body)?;
    let block = |row: Row| {
        let part = |all: &Option<Vec<String>>, at: usize| {
            all.as_ref().and_then(|all| all.get(at)).cloned().unwrap_or_default()
        };
        let hosts = row.hosts.unwrap_or_default();
        let replicas = hosts.iter().enumerate().filter(|_| !row.corrupt).map(|(at, host)| {
            // "10.0.0.1:9866", and "/rack1/10.0.0.1:9866".
            let (name, place) = (part(&row.names, at), part(&row.topology_paths, at));
            ReplicaSeen {
                host: host.clone(),
                address: name.rsplit_once(':').map_or("", |(address, _)| address).to_owned(),
                rack: place.rsplit_once('/').map_or("", |(rack, _)| rack).to_owned(),
            }
        });
        BlockSeen { id: None, offset: row.offset, length: row.length, replicas: replicas.collect() }
    };
    Ok(answer.found.rows.unwrap_or_default().into_iter().map(block).collect())
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, BadAnswer> {
    serde_json::from_slice(body).map_err(|error| BadAnswer::Json {
        kind: match error.classify() {
            serde_json::error::Category::Eof => "it ends too soon",
            serde_json::error::Category::Data => "another shape",
            _ => "no JSON",
        },
        line: error.line(),
        column: error.column(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Hadoop 3.4 answers, shortened by most numbers of the DataNodes.
    const LOCATED: &str = r#"{"LocatedBlocks":{"fileLength":200,"isLastBlockComplete":true,"isUnderConstruction":false,
        "lastLocatedBlock":{"block":{"blockId":1073741826,"blockPoolId":"BP-1","generationStamp":1002,"numBytes":72},
          "blockToken":{"urlString":"SECRET2"},"cachedLocations":[],"isCorrupt":false,"locations":[],"startOffset":128},
        "locatedBlocks":[
         {"block":{"blockId":1073741825,"blockPoolId":"BP-1","generationStamp":1001,"numBytes":128},
          "blockToken":{"urlString":"SECRET1"},"cachedLocations":[],"isCorrupt":false,"startOffset":0,
          "locations":[
           {"adminState":"NORMAL","hostName":"w1","ipAddr":"127.0.1.1","name":"127.0.1.1:9866","networkLocation":"/rack1"},
           {"adminState":"DECOMMISSIONED","hostName":"w2","ipAddr":"127.0.1.2","networkLocation":"/rack1"}],
          "storageTypes":["DISK","DISK"]},
         {"block":{"blockId":-9223372036854775792,"numBytes":72},"blockToken":{"urlString":"SECRET2"},"isCorrupt":true,
          "startOffset":128,"locations":[{"hostName":"w3"}]}]}}"#;

    fn replica(host: &str, address: &str, rack: &str) -> ReplicaSeen {
        ReplicaSeen { host: host.into(), address: address.into(), rack: rack.into() }
    }

    #[test]
    fn blocks_come_with_their_readable_replicas() {
        let found = located_blocks(LOCATED.as_bytes()).unwrap();
        let first = BlockSeen {
            id: Some(1_073_741_825),
            offset: 0,
            length: 128,
            replicas: vec![replica("w1", "127.0.1.1", "/rack1")],
        };
        let group = BlockSeen { id: Some((1 << 63) + 16), offset: 128, length: 72, replicas: vec![] };
        assert_eq!(found, [first, group], "neither a decommissioned node nor a corrupt block can be read");
    }

    #[test]
    fn the_public_question_is_answered_without_ids() {
        let text = r#"{"BlockLocations":{"BlockLocation":[{"cachedHosts":[],"corrupt":false,"hosts":["w1","w2"],"length":128,
            "names":["127.0.1.1:9866","127.0.1.2:9866"],"offset":0,"storageTypes":["DISK","DISK"],
            "topologyPaths":["/dc/rack1/127.0.1.1:9866"]}]}}"#;
        let replicas = vec![replica("w1", "127.0.1.1", "/dc/rack1"), replica("w2", "127.0.1.2", "")];
        assert_eq!(file_blocks(text.as_bytes()).unwrap(), [BlockSeen { id: None, offset: 0, length: 128, replicas }]);
    }

    #[test]
    fn a_file_is_its_own_listing_and_an_empty_directory_has_none() {
        let text = r#"{"FileStatuses":{"FileStatus":[{"accessTime":1,"blockSize":128,"length":7,"pathSuffix":"","type":"FILE"}]}}"#;
        let file = Entry { name: String::new(), directory: false, length: 7, block_size: 128 };
        assert_eq!(listing(text.as_bytes()).unwrap(), [file]);
        assert_eq!(listing(br#"{"FileStatuses":{"FileStatus":[]}}"#).unwrap(), []);
        assert_eq!(listing(br#"{"FileStatuses":{"FileStatus":null}}"#).unwrap(), []);
    }

    #[test]
    fn no_error_repeats_what_may_be_a_token() {
        let shifted = LOCATED.replace("\"numBytes\":128", "\"numBytes\":\"SECRET3\"");
        let half = &LOCATED[..LOCATED.len() - 200];
        for text in [shifted.as_str(), half, "<html>SECRET</html>", "{\"SECRET\":1}", "\"SECRET\""] {
            let error = located_blocks(text.as_bytes()).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{error}");
        }
        let found = located_blocks(LOCATED.as_bytes()).unwrap();
        assert!(!format!("{found:?}").contains("SECRET"));
    }

    #[test]
    fn refusals_are_told_apart_by_their_exception() {
        let body = |exception: &str| format!("{{\"RemoteException\":{{\"exception\":\"{exception}\",\"javaClassNa");
        for (exception, meant) in [
            ("StandbyException", Refused::Standby),
            ("RetriableException", Refused::Later),
            ("SafeModeException", Refused::Later),
            ("FileNotFoundException", Refused::Missing),
            ("AccessControlException", Refused::Unreadable),
            ("IllegalArgumentException", Refused::Unsupported),
            ("IOException", Refused::Other),
        ] {
            assert_eq!(refused(&body(exception)), meant, "{exception}");
        }
        assert_eq!(refused("<html>404 Not Found</html>"), Refused::Other);
    }

    #[test]
    fn a_path_is_asked_for_whatever_its_letters() {
        let question = block_locations("/in/a b%?#&é", 5, 7, "hdfs");
        let path = "/webhdfs/v1/in/a%20b%25%3F%23%26%C3%A9";
        assert_eq!(question, format!("{path}?op=GET_BLOCK_LOCATIONS&offset=5&length=7&user.name=hdfs"));
        assert_eq!(list_status("/", ""), "/webhdfs/v1/?op=LISTSTATUS");
    }
}
