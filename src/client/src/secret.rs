//! What a client is known by: nonces, derived from one secret.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// Bytes of a nonce.
const NONCE_BYTES: usize = 16;

/// The secret of a client, from which the nonces of its applications and watches follow. Who has the same one is the same
/// client to the daemon: the next process of an application's, or a standby that takes over.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Fewest bytes.
    pub const LEAST_BYTES: usize = 16;

    /// A secret that nobody else has.
    #[must_use]
    pub fn random() -> Self {
        Self(Box::new(rand::random::<[u8; 32]>()))
    }

    /// A secret that is kept somewhere, all bytes of it; `None`: fewer than [`Self::LEAST_BYTES`], which can be guessed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= Self::LEAST_BYTES).then(|| Self(bytes.into()))
    }

    /// The nonce of an application, by its id: the first 16 bytes of HMAC-SHA256 of the id under the secret, in every
    /// language's client.
    #[must_use]
    pub fn nonce(&self, application_id: &str) -> Vec<u8> {
        self.derive(application_id.as_bytes())
    }

    /// The nonce of a watch, by its watcher's name.
    #[must_use]
    pub fn watch_nonce(&self, watcher: &str) -> Vec<u8> {
        self.derive(format!("watcher {watcher}").as_bytes())
    }

    fn derive(&self, subject: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(subject);
        mac.finalize().into_bytes()[..NONCE_BYTES].to_vec()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What a message's Debug prints in the place of a token or a nonce.
pub(crate) struct Hidden(pub(crate) bool);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "(none)" } else { "(secret)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::v1;

    #[test]
    fn the_same_secret_gives_the_same_nonce_in_every_language() {
        // As clients/python/tests and clients/java have it.
        let secret = Secret::of(b"0123456789abcdef").unwrap();
        let hex: String = secret.nonce("application_1_0001").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "eabbc6f648f32bfa66e81a1ae9334893");
        assert_ne!(secret.nonce("application_1_0001"), secret.nonce("application_1_0002"));
        assert_ne!(secret.nonce("a"), secret.watch_nonce("a"));
        assert_ne!(Secret::random().nonce("a"), Secret::random().nonce("a"));
        assert!(Secret::of(b"0123456789abcde").is_none());
    }

    #[test]
    fn no_message_prints_a_token_or_a_nonce() {
        let (token, nonce) = ("0a1b2c3d".to_owned(), vec![201, 202, 203, 204]);
        let id = || "application_1_0001".to_owned();
        let request = v1::RequestHintsRequest {
            application_id: id(),
            token: token.clone(),
            nonce: nonce.clone(),
            ..Default::default()
        };
        let response = v1::RequestHintsResponse { token: token.clone(), ..Default::default() };
        let event = v1::TaskEvent { token: token.clone(), nonce: nonce.clone(), ..Default::default() };
        let start = v1::FollowStart { application_id: id(), token: token.clone(), nonce, ..Default::default() };
        let follow = v1::FollowRequest { start: Some(start), events: vec![event] };
        let release = v1::ReleaseRequest { token, lease_ids: vec![7], ..Default::default() };
        let printed = format!("{request:?} {response:?} {follow:?} {release:?} {:?}", Secret::random());
        assert!(!printed.contains("0a1b2c3d") && !printed.contains("201"), "{printed}");
        assert!(printed.contains("application_1_0001") && printed.contains("lease_ids: [7]"), "{printed}");
        assert!(printed.contains("token: (secret)") && printed.contains("nonce: (none)"), "{printed}");
    }
}
