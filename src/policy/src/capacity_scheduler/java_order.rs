//! The order in which Java's hash tables are walked: which of several reservations YARN gives up hangs on it.

/// `String.hashCode` over UTF-16 units.
pub(super) fn string_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// `NodeId.hashCode`.
pub(super) fn node_hash(host: &str, port: u16) -> i32 {
    let prime = 493_217_i32;
    let with_host = prime.wrapping_mul(8501).wrapping_add(string_hash(host));
    prime.wrapping_mul(with_host).wrapping_add(i32::from(port))
}

/// The bucket of a hash in a table that at most `peak` entries were ever in at once (16 buckets, doubled beyond
/// three quarters). Entries of one bucket keep the order in which they came.
pub(super) fn bucket(hash: i32, peak: usize) -> u32 {
    let hash = hash as u32;
    let mut buckets = 16_usize;
    while peak * 4 > buckets * 3 {
        buckets *= 2;
    }
    (hash ^ (hash >> 16)) & (buckets as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_javas() {
        assert_eq!(string_hash("hintd"), 99_283_645);
        assert_eq!(string_hash(""), 0);
        assert_eq!(bucket(0x10_000, 12), 1);
        assert_eq!((bucket(17, 12), bucket(17, 13)), (1, 17));
    }
}
