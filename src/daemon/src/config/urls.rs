//! URLs in messages: what is wrong with one, and never the user, the password or the values that it names.

use crate::rest_client::Address;
pub use hintd_client::{LEFT_OUT, shown_address as shown};
use hintd_client::{without_unclear, without_values};

/// A text whose URLs name no user, and no value in a query or a fragment: `http://ann:secret@host/?token=abc` as
/// `http://(left out)@host/?token=(left out)`. Names of parameters stay. `found` is told what was left out, after the name of
/// its parameter (empty: a user, or a value without a name).
pub fn without_secrets(text: &str, found: &mut impl FnMut(&str, &str)) -> String {
    let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("://") {
        clean += before;
        clean += "://";
        let authority = authority(after);
        if let (Some(at), Some(shown)) = (authority.rfind('@'), without_unclear(authority)) {
            // Either may be what it is: a user that ends with its first `@`, or with its last.
            let end = at + url_end(&after[at..]);
            let first = authority.find('@').unwrap_or(at);
            [first, at].into_iter().for_each(|user| found("", &authority[..user]));
            drop(without_values(&after[..end], found));
            clean += &shown;
            rest = &after[end..];
            continue;
        }
        let after = match authority.rfind('@') {
            Some(at) => {
                found("", &authority[..at]);
                clean += LEFT_OUT;
                &after[at..]
            }
            None => after,
        };
        let end = url_end(after);
        match after[..end].find(['?', '#']) {
            Some(_) => {
                clean += &without_values(&after[..end], found);
                rest = &after[end..];
            }
            None => rest = after,
        }
    }
    clean + rest
}

/// Where a URL ends that stands in a text: before white space, and before a quote that closes what it stands in, which a value
/// may have in it as well. Punctuation that follows it is the text's.
fn url_end(url: &str) -> usize {
    let closes = |after: &str| {
        after.is_empty() || after.starts_with(|next: char| next.is_whitespace() || CLOSING.contains(next))
    };
    let ends = |(at, letter): &(usize, char)| {
        let quote = "\"'`".contains(*letter);
        letter.is_whitespace() || quote && closes(&url[at + letter.len_utf8()..])
    };
    let end = url.char_indices().find(ends).map_or(url.len(), |(at, _)| at);
    url[..end].trim_end_matches(|letter: char| CLOSING.contains(letter)).len()
}

/// What may follow a URL, or the quote after it, without being a part of it; a backslash is a quote's.
const CLOSING: &str = ",.:;)]}>\\";

/// Of what follows `://`, as far as it may name a user. Letters that no user may have end it, unless what stands before them
/// is no host and port: then they are of a password, which may be written as it should not.
fn authority(after: &str) -> &str {
    let until = |ends: &str| {
        let end = after.find(|letter: char| letter.is_whitespace() || ends.contains(letter));
        &after[..end.unwrap_or(after.len())]
    };
    let short = until("/\"'\\<>");
    let port = if short.ends_with(']') { None } else { short.rsplit_once(':').map(|(_, port)| port) };
    match port {
        Some(port) if !port.is_empty() && !port.contains('@') && port.parse::<u16>().is_err() => until(""),
        _ => short,
    }
}

/// Why nobody can be asked at an address, though it is written as one should be; `None`: somebody can.
pub(super) fn asks_nobody(address: &Address) -> Option<&'static str> {
    let host = address.authority.rsplit_once(':').map_or(address.authority.as_str(), |(host, _)| host);
    if host.contains(['$', '{', '}', '%', '<', '>']) {
        return Some("its host is a placeholder that was not filled in: hintd fills in none");
    }
    let number = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    match number {
        Ok(number) if number.is_unspecified() => {
            Some("a server listens at it and nobody is asked there: name the server's host")
        }
        _ => None,
    }
}

/// The message for a URL that is wrong: the URL, what is wrong with it, and what one looks like.
pub(super) fn wrong_url(url: &str, example: &str) -> String {
    let schemes: &[&str] = if example.starts_with("http://127.") { &["http"] } else { &["http", "https"] };
    format!("\"{}\" is not a valid URL, for example \"{example}\": {}", shown(url), trouble(url, schemes))
}

fn trouble(url: &str, schemes: &[&str]) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return format!("it does not begin with {}://", schemes.join(":// or "));
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (user, rest) = rest.rsplit_once('@').map_or((false, rest), |(_, rest)| (true, rest));
    let end = rest.find(['/', '?', '#']);
    let authority = &rest[..end.unwrap_or(rest.len())];
    let port = authority.rsplit_once(':').map(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    let troubles = [
        (!schemes.contains(&scheme)).then(|| format!("its scheme is not {}", schemes.join(" or "))),
        user.then(|| "it names a user".to_owned()),
        end.is_some().then(|| "it has a path or more after the port".to_owned()),
        (port != Some(true)).then(|| "it names no port from 1 to 65535".to_owned()),
    ];
    let troubles: Vec<String> = troubles.into_iter().flatten().collect();
    if troubles.is_empty() { "its host is not valid".to_owned() } else { troubles.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_no_users_wherever_they_stand() {
        let text = "f:3: \"http://ann:p@ss@ctl:8080\" is wrong; see http://docs/a@b and x://y@z";
        let clean = "f:3: \"http://(left out)@ctl:8080\" is wrong; see http://docs/a@b and x://(left out)@z";
        assert_eq!(without_secrets(text, &mut |_, _| {}), clean);
        for (text, clean) in [
            ("no daemon at http://ann:hunter/2@h:1 (refused)", "no daemon at http://(left out)@h:1 (refused)"),
            ("\"http://ann:hun\"ter'2@h:1\" is wrong", "\"http://(left out)@h:1\" is wrong"),
            (r#"{"a":"http://rm:8088","by":"ann@x"}"#, r#"{"a":"http://rm:8088","by":"ann@x"}"#),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
        ] {
            assert_eq!(without_secrets(text, &mut |_, _| {}), clean);
        }
    }

    #[test]
    fn urls_name_no_values_of_queries_and_fragments_wherever_they_stand() {
        for (text, clean) in [
            ("http://nn:9870/webhdfs?delegation=hunter", "http://nn:9870/webhdfs?delegation=(left out)"),
            ("http://h?token=hunter&user.name=ann: refused", "http://h?token=(left out)&user.name=(left out): refused"),
            ("\"https://h:1/p?a=hunter\\\"x&b=\", \"n\"", "\"https://h:1/p?a=(left out)&b=\", \"n\""),
            ("'http://h/?t=it's hunter'", "'http://h/?t=(left out) hunter'"),
            ("say \\\"http://h/?t=hunter\\\", please", "say \\\"http://h/?t=(left out)\\\", please"),
            (r#"{"a":"http://h/?t=hunter","b":"c?d=e"}"#, r#"{"a":"http://h/?t=(left out)","b":"c?d=e"}"#),
            ("(see http://h/#access_token=hunter&x=1).", "(see http://h/#access_token=(left out)&x=(left out))."),
            ("<http://h/p#hunter> http://h/p?hunter", "<http://h/p#(left out)> http://h/p?(left out)"),
            ("http://ann:pw@h/?to=http://bob:hunter@x/?t=1", "http://(left out)@h/?to=(left out)"),
            ("http://a/?t=hunter http://ann:hunter@b/x#", "http://a/?t=(left out) http://(left out)@b/x#"),
            ("http://ann:hun?ter@h:1/?", "http://(left out)"),
            ("no daemon at http://h?token=abc@hunter, which", "no daemon at http://h?(left out), which"),
            ("\"http://h:1#abc@hunter\" is wrong", "\"http://h:1#(left out)\" is wrong"),
            ("http://c:4317/v1?token=abc@hunter", "http://c:4317/v1?token=(left out)"),
            ("http://ann:pw@h?to=abc@hunter", "http://(left out)@h?(left out)"),
            ("http://h/?aHVudGVyMmh1bnRlcjI= x", "http://h/?(left out) x"),
            ("http://h/p?x=1,2;token=hunter", "http://h/p?x=(left out)"),
            ("is it http://h/p? Yes.", "is it http://h/p? Yes."),
            ("/ws/v1/apps?states=RUNNING", "/ws/v1/apps?states=RUNNING"),
        ] {
            assert_eq!(without_secrets(text, &mut |_, _| {}), clean);
        }
        let mut found = Vec::new();
        without_secrets("http://ann:pw@h/?token=abc&d=#frag", &mut |name, value| found.push(format!("{name}={value}")));
        assert_eq!(found, ["=ann:pw", "token=abc", "=frag"]);
        found.clear();
        without_secrets("http://ann:hun?t=er@h", &mut |name, value| found.push(format!("{name}={value}")));
        assert_eq!(found, ["=ann:hun?t=er", "=ann:hun?t=er", "t=er@h"], "a password, or a query");
    }

    #[test]
    fn an_address_that_asks_nobody_is_known() {
        let why = |url: &str| asks_nobody(&Address::parse(url).unwrap()).unwrap_or_default();
        for wild in ["http://0.0.0.0:9870", "http://[::]:9870", "https://[0:0::0]:1"] {
            assert!(why(wild).contains("name the server's host"), "{wild}");
        }
        for unfilled in ["http://${RM}:8088", "http://%RM%:8088", "http://<host>:8088"] {
            assert!(why(unfilled).contains("placeholder"), "{unfilled}");
        }
        for good in ["http://rm1:8088", "http://127.0.0.1:1", "http://[::1]:1", "http://rm_1.example:80"] {
            assert_eq!(why(good), "", "{good}");
        }
    }

    #[test]
    fn a_wrong_url_says_what_is_wrong_and_never_its_password() {
        let said = |url: &str| {
            let said = wrong_url(url, "http://rm1:8088");
            assert!(!said.contains("hunter"), "{said}");
            said.split_once("8088\": ").unwrap().1.to_owned()
        };
        assert_eq!(said("http://ann:hunter2@rm:1/x"), "it names a user, it has a path or more after the port");
        assert_eq!(said("http://ann:hunter/2@rm:1"), "it names a user");
        assert_eq!(said("ann:hunter2@rm:1"), "it does not begin with http:// or https://");
        assert_eq!(said("ftp://rm"), "its scheme is not http or https, it names no port from 1 to 65535");
        assert_eq!(said("http://:1"), "its host is not valid");
        assert_eq!(said("http://rm:abc:8088"), "its host is not valid");
        assert!(wrong_url("https://c:1", "http://127.0.0.1:8080").ends_with("its scheme is not http"));
        assert_eq!(said("http://rm:1/?token=hunter2"), "it has a path or more after the port");
        assert_eq!(said("rm:1/?token=hunter2"), "it does not begin with http:// or https://");
        assert!(wrong_url("http://a:hunter2@rm:1", "x").starts_with("\"http://(left out)@rm:1\""));
    }
}
