//! A stable fingerprint of a request's body, which tells a retry from another request under the same id.

use hintd_client::wire::v1::RequestHintsRequest;
use prost::Message as _;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a, 64 bits, over the encoded message without its id, its deadline, its token and its nonce: a retry has
/// less time left than the first try had, and is the same request all the same. Maps are encoded in
/// key order, so equal messages have equal digests in every build and after every restart. It takes the message: a copy is
/// a piece of memory for each of its texts, 20,000 rows among them.
#[must_use]
pub fn digest(mut body: RequestHintsRequest) -> u64 {
    body.request_id.clear();
    body.deadline_ms = 0;
    // What it shows for itself is no part of what it asks for: a retry may have the token by then.
    body.token.clear();
    body.nonce.clear();
    let bytes = body.encode_to_vec();
    bytes.iter().fold(FNV_OFFSET, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RequestHintsRequest {
        RequestHintsRequest {
            request_id: "a".to_owned(),
            queue: "q".to_owned(),
            deadline_ms: 50,
            ..RequestHintsRequest::default()
        }
    }

    #[test]
    fn id_and_deadline_do_not_count_and_everything_else_does() {
        let base = digest(sample());
        let other_id = RequestHintsRequest { request_id: "b".to_owned(), deadline_ms: 7, ..sample() };
        assert_eq!(digest(other_id), base);
        let shown = RequestHintsRequest { token: "t".to_owned(), nonce: vec![1; 16], ..sample() };
        assert_eq!(digest(shown), base);
        assert_ne!(digest(RequestHintsRequest { queue: "r".to_owned(), ..sample() }), base);
        assert_ne!(digest(RequestHintsRequest { seed: Some(0), ..sample() }), base);
    }

    #[test]
    fn the_digest_of_the_empty_body_is_the_published_offset_basis() {
        assert_eq!(digest(RequestHintsRequest::default()), FNV_OFFSET);
        assert_eq!(digest(sample()), digest(sample()));
    }
}
