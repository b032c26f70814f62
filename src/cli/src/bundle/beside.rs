//! What stands beside the daemon's answers: its metrics, and the last lines of its log, as far as the journal of systemd has them.

use super::PATIENCE;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Output;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

/// The largest page of metrics.
const METRICS_BYTES: u64 = 16 << 20;
/// Lines of the log.
const LINES: &str = "2000";
/// systemd's name of the daemon.
const UNIT: &str = "hintd.service";

/// Where the shipped configuration has them.
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9470);

/// Where the daemon's metrics are, by its configuration; of one that is refused by the line that names it, else the usual place.
///
/// # Errors
/// In words, where they are off.
pub(super) fn metrics_address(config: &Path) -> Result<SocketAddr, String> {
    let off = || "[listen] metrics is off".to_owned();
    match hintd::config::Config::load(config) {
        Ok(config) => config.metrics.ok_or_else(off),
        Err(_) => {
            let text = std::fs::read_to_string(config).unwrap_or_default(); // what can't be read names no place
            named(&text)
                .map_or(Ok(USUAL), |at| if at.is_empty() { Err(off()) } else { Ok(at.parse().unwrap_or(USUAL)) })
        }
    }
}

/// The value of `metrics` in `[listen]`, without its quotes.
fn named(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[listen]").skip(1);
    let of_section = lines.by_ref().take_while(|line| !line.starts_with('['));
    let value = of_section.filter_map(|line| line.strip_prefix("metrics")?.trim_start().strip_prefix('=')).next()?;
    value.trim().strip_prefix('"')?.split('"').next()
}

/// `/metrics` of the daemon that listens there, as Prometheus reads it.
///
/// # Errors
/// In words.
pub(super) async fn metrics(at: SocketAddr) -> Result<String, String> {
    match tokio::time::timeout(PATIENCE, get(at)).await {
        Ok(page) => page,
        Err(_) => Err(format!("{at}: no answer within {} s", PATIENCE.as_secs())),
    }
}

async fn get(at: SocketAddr) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{at}: {error}");
    let mut stream = TcpStream::connect(at).await.map_err(failed)?;
    let request = format!("GET /metrics HTTP/1.0\r\nhost: {at}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut answer = Vec::new();
    stream.take(METRICS_BYTES + 1).read_to_end(&mut answer).await.map_err(failed)?;
    if answer.len() as u64 > METRICS_BYTES {
        return Err(format!("{at}: its page has more than {} MiB", METRICS_BYTES >> 20));
    }
    let answer = String::from_utf8_lossy(&answer);
    let (head, page) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    match head.split_whitespace().nth(1) {
        Some("200") if page.contains("hintd_") => Ok(page.to_owned()),
        Some("200") => Err(format!("{at}: what answers there is not hintd")),
        _ => Err(format!("{at}: it answers {:?}", head.lines().next().unwrap_or_default())),
    }
}

/// The last lines of the daemon's log. A journal that hangs is not waited for.
///
/// # Errors
/// In words.
pub(super) async fn log() -> Result<String, String> {
    let journal = ["--unit", UNIT, "--lines", LINES, "--no-pager", "--quiet", "--output", "short-iso"];
    let asked = Command::new("journalctl").args(journal).kill_on_drop(true).output();
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(output)) => lines_of(&output),
        Ok(Err(error)) => Err(format!("journalctl can't be run: {error}")),
        Err(_) => Err(format!("journalctl: no answer within {} s", PATIENCE.as_secs())),
    }
}

fn lines_of(output: &Output) -> Result<String, String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match (output.status.success(), text.trim().is_empty()) {
        (true, false) => Ok(text),
        (true, true) => Err(format!("the journal has no lines of {UNIT} that this user may read")),
        (false, _) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let why = if said.is_empty() { output.status.to_string() } else { said };
            Err(format!("journalctl: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn a_refused_configuration_still_names_the_place_of_the_metrics() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hintd.toml");
        let found = |text: &str| {
            std::fs::write(&file, text).unwrap();
            metrics_address(&file)
        };
        let refused = "[worker]\nthreads = \"many\"\n";
        let at = |text: &str| Ok(text.parse::<SocketAddr>().unwrap());
        assert_eq!(found(&format!("[listen]\nmetrics = \"127.0.0.1:9999\" # here\n{refused}")), at("127.0.0.1:9999"));
        assert_eq!(found("[listen\n"), at("127.0.0.1:9470"), "no TOML: the usual place");
        assert_eq!(found(&format!("{refused}[listen]\n[other]\nmetrics = \"127.0.0.1:1\"\n")), at("127.0.0.1:9470"));
        assert!(found(&format!("[listen]\nmetrics = \"\"\n{refused}")).unwrap_err().contains("off"));
    }

    #[tokio::test]
    async fn metrics_are_what_the_page_says_and_all_else_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let answering = async |answer: &'static str| {
            let (said, _) = tokio::join!(metrics(at), async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 64];
                let read = stream.read(&mut request).await.unwrap();
                assert!(request[..read].starts_with(b"GET /metrics "));
                stream.write_all(answer.as_bytes()).await.unwrap();
            });
            said
        };
        assert_eq!(answering("HTTP/1.0 200 OK\r\n\r\nhintd_up 1\n").await.unwrap(), "hintd_up 1\n");
        assert!(answering("HTTP/1.0 200 OK\r\n\r\nother 1\n").await.unwrap_err().contains("is not hintd"));
        let refused = answering("HTTP/1.0 404 Not Found\r\n\r\nno\n").await.unwrap_err();
        assert!(refused.contains("404 Not Found"), "{refused}");
        drop(listener);
        assert!(metrics(at).await.unwrap_err().contains(&at.to_string()));
    }
}
