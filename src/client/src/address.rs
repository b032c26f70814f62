//! Addresses in messages: never the user or password that one names.

/// What stands for a value that is left out.
pub const LEFT_OUT: &str = "(left out)";

/// A text that was to be an address or a URL: a password may stand before its last `@`, whatever else is wrong.
#[must_use]
pub fn shown_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{LEFT_OUT}@{host}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_and_a_password_are_left_out_with_a_scheme_and_without() {
        for (address, shown) in [
            ("ann:hunter2@h:8470", "(left out)@h:8470"),
            ("http://ann:hunter2@h:8470", "http://(left out)@h:8470"),
            ("http://ann:hun/t\"er@2@h:1/x", "http://(left out)@h:1/x"),
            ("h:8470", "h:8470"),
        ] {
            assert_eq!(shown_address(address), shown);
        }
    }
}
