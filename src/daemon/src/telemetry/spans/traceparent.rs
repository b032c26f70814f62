//! The header `traceparent` of W3C's Trace Context. The SDK's own reader takes what the standard calls invalid: a version of
//! one digit, ids that are too short.

/// What a caller says of the trace that its request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceParent {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) sampled: bool,
}

/// Bytes of the fields that every version has.
const FIELDS: usize = 55;

impl TraceParent {
    /// Reads `version-trace-span-flags`; `None` for what the standard has a receiver ignore.
    pub(super) fn read(text: &str) -> Option<Self> {
        let known = text.get(..FIELDS)?;
        let mut parts = known.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = hex(parts.next()?, 32)?;
        let span = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        // A later version may say more, after another dash; 255 is none.
        let more = &text[FIELDS..];
        let ends_well = more.is_empty() || (version > 0 && more.starts_with('-'));
        let valid = parts.next().is_none() && version < 0xff && trace != 0 && span != 0 && ends_well;
        let span = u64::try_from(span).ok()?;
        valid.then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

/// So many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let plain = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn a_traceparent_is_read_as_the_standard_says() {
        let read = |text: &str| TraceParent::read(text).map(|found| (found.trace, found.span, found.sampled));
        let (trace, span) = (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331);
        assert_eq!(read(&format!("00-{TRACE}-b7ad6b7169203331-01")), Some((trace, span, true)));
        assert_eq!(read(&format!("00-{TRACE}-b7ad6b7169203331-00")), Some((trace, span, false)));
        assert_eq!(
            read(&format!("00-{TRACE}-b7ad6b7169203331-03")),
            Some((trace, span, true)),
            "other flags are ignored"
        );
        assert_eq!(read(&format!("cc-{TRACE}-b7ad6b7169203331-01-what-may-come")), Some((trace, span, true)));
    }

    #[test]
    fn what_the_standard_calls_invalid_is_none() {
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-1"),
            format!("00-{TRACE}-b7ad6b7169203331-01-more"),
            format!("00-{TRACE}-b7ad6b7169203331-011"),
            format!("cc-{TRACE}-b7ad6b7169203331-01.more"),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("0-{TRACE}-b7ad6b7169203331-001"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}-+7ad6b7169203331-01"),
            format!("00-{}é-b7ad6b7169203331-01", &TRACE[2..]),
            format!(" 00-{TRACE}-b7ad6b7169203331-01"),
        ] {
            assert_eq!(TraceParent::read(&text), None, "{text}");
        }
    }
}
