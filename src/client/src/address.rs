//! Addresses in messages: never the user or password that one names, nor the values of its query and its fragment.

/// What stands for a value that is left out.
pub const LEFT_OUT: &str = "(left out)";

/// What has so many letters and nothing but a `=` after it may be a value without a name.
const NAME_MOST: usize = 12;

/// A text that was to be an address or a URL: a password may stand before its last `@`, whatever else is wrong, and a token
/// behind a `?` or a `#`.
#[must_use]
pub fn shown_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        // Within a path, a query or a user it begins no address.
        Some((scheme, rest)) if !scheme.contains(['/', '?', '#', '@']) => (format!("{scheme}://"), rest),
        _ => (String::new(), address),
    };
    if let Some(clean) = without_unclear(rest) {
        return format!("{scheme}{clean}");
    }
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, host)) => (format!("{LEFT_OUT}@"), host),
        None => (String::new(), rest),
    };
    let is_url = address.contains("://");
    // Without a scheme it may be anything: a `?` alone makes no query of what follows.
    let plain = !is_url && !rest.contains('=');
    let rest = if plain { rest.to_owned() } else { without_values(rest, &mut |_, _| {}) };
    format!("{scheme}{user}{rest}")
}

/// What follows a URL's scheme, where its last `@` comes after a `?` or a `#`; `None`: it does not. The `@` may be of a value,
/// or the `?` of a password: all from there on is left out, and what is before it too unless it is a host.
#[must_use]
pub fn without_unclear(rest: &str) -> Option<String> {
    let from = rest.find(['?', '#'])?;
    rest.rfind('@').filter(|at| *at > from)?;
    let (user, host) = match rest[..from].rsplit_once('@') {
        Some((_, host)) => (format!("{LEFT_OUT}@"), host),
        None => (String::new(), &rest[..from]),
    };
    let authority = host.split('/').next().unwrap_or_default();
    let port = if authority.ends_with(']') { None } else { authority.rsplit_once(':').map(|(_, port)| port) };
    Some(match port {
        Some(port) if port.parse::<u16>().is_err() => LEFT_OUT.to_owned(),
        _ => format!("{user}{host}{}{LEFT_OUT}", &rest[from..=from]),
    })
}

/// What follows a URL's user, without the values of its query and its fragment: `h/p?token=abc#top` as
/// `h/p?token=(left out)#(left out)`. Names of parameters stay; what has no name is a value. `found` is told each value,
/// after its name (empty: it has none).
pub fn without_values(rest: &str, found: &mut impl FnMut(&str, &str)) -> String {
    let Some(at) = rest.find(['?', '#']) else { return rest.to_owned() };
    let mut clean = rest[..at].to_owned();
    let (query, fragment) = match rest[at..].split_once('#') {
        Some((query, fragment)) => (query, Some(fragment)),
        None => (&rest[at..], None),
    };
    if let Some(query) = query.strip_prefix('?') {
        clean.push('?');
        clean += &parameters(query, found);
    }
    if let Some(fragment) = fragment {
        clean.push('#');
        clean += &parameters(fragment, found);
    }
    clean
}

fn parameters(text: &str, found: &mut impl FnMut(&str, &str)) -> String {
    let mut without = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
        let (name, value) = match value.trim_end_matches('=') {
            // No name, but a value in Base64, which may end in one of them, or two.
            "" if name.len() >= NAME_MOST || value == "=" => ("", parameter),
            _ => (name, value),
        };
        if value.is_empty() {
            return parameter.to_owned();
        }
        found(name, value);
        if name.is_empty() && !parameter.starts_with('=') { LEFT_OUT.to_owned() } else { format!("{name}={LEFT_OUT}") }
    };
    text.split('&').map(&mut without).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_passwords_and_values_are_left_out_with_a_scheme_and_without() {
        for (address, shown) in [
            ("ann:hunter2@h:8470", "(left out)@h:8470"),
            ("http://ann:hunter2@h:8470", "http://(left out)@h:8470"),
            ("http://ann:hun/t\"er@2@h:1/x", "http://(left out)@h:1/x"),
            ("h:8470", "h:8470"),
            ("http://h:1/x?token=hunter2&a=&b=3#hunter2", "http://h:1/x?token=(left out)&a=&b=(left out)#(left out)"),
            ("h:1/x?token=hunter2", "h:1/x?token=(left out)"),
            ("http://ann:hunter2@h?hunter2", "http://(left out)@h?(left out)"),
            ("http://h/?=hunter2#", "http://h/?=(left out)#"),
            ("queue?", "queue?"),
            ("part#3", "part#3"),
            ("http://c:4317/v1?token=abc@hunter2", "http://c:4317/v1?(left out)"),
            ("http://h?token=abc@hunter2", "http://h?(left out)"),
            ("http://[::1]#abc@hunter2", "http://[::1]#(left out)"),
            ("h:1/x?token=abc@hunter2", "h:1/x?(left out)"),
            ("http://ann:pw@h:1/?to=bob@hunter2", "http://(left out)@h:1/?(left out)"),
            ("http://ann:hun?ter2@h:1/x", "http://(left out)"),
            ("ann:hun#ter2@h:1", "(left out)"),
            ("h:1/x?to=http://bob:hunter@hunter2", "h:1/x?(left out)"),
            ("ann:hunter2@h/x://y", "(left out)@h/x://y"),
            ("http://h/?aHVudGVyMg==", "http://h/?(left out)"),
            ("http://h/?aHVudGVyMmh1bnRlcjI=&token=", "http://h/?(left out)&token="),
        ] {
            assert_eq!(shown_address(address), shown);
        }
    }
}
