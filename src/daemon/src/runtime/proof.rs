//! What callers show for an attempt or a watch, off the wire.

use hintd_engine::{NonceHash, Proof, Refusal, Shown, Token};
use sha2::{Digest as _, Sha256};
use std::ops::RangeInclusive;

/// Bytes of a nonce: fewer can be guessed, more are kept for nothing.
const NONCE_BYTES: RangeInclusive<usize> = 16..=64;

/// What a caller shows; of the nonce only its hash goes further.
///
/// # Errors
/// [`Refusal::Invalid`] for a nonce that is too short or too long.
pub fn proof(token: &str, nonce: &[u8]) -> Result<Proof, Refusal> {
    if !nonce.is_empty() && !NONCE_BYTES.contains(&nonce.len()) {
        let (least, most) = NONCE_BYTES.into_inner();
        let message = format!("a nonce has {least} to {most} bytes, not {}", nonce.len());
        return Err(Refusal::Invalid { field: "nonce".to_owned(), message });
    }
    let token = (!token.is_empty()).then(|| Token(token.into()));
    let nonce = (!nonce.is_empty()).then(|| NonceHash(Sha256::digest(nonce).into()));
    Ok(Proof::Shown(Shown { token, nonce, listed: false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_hashed_and_one_that_can_be_guessed_is_refused() {
        let Proof::Shown(shown) = proof("", &[7; 16]).unwrap() else { panic!("it is a caller's") };
        // sha256 of sixteen bytes 7.
        assert_eq!(shown.nonce, Some(NonceHash(Sha256::digest([7; 16]).into())));
        assert_ne!(shown.nonce, Some(NonceHash([7; 32])));
        assert_eq!(proof("", &[]), Ok(Proof::Shown(Shown::default())));
        let short = proof("t", &[7; 15]).unwrap_err().to_string();
        assert_eq!(short, "nonce: a nonce has 16 to 64 bytes, not 15");
        assert!(proof("t", &[7; 65]).is_err() && proof("t", &[7; 64]).is_ok());
    }
}
