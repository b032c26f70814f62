//! What an attempt is held by, and what callers show for it: the token that its first answer gave, or the nonce that its
//! client made.

use super::refusal::Refusal;
use hintd_model::units::AttemptId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// What an attempt shows to go on asking, to release leases and to follow. Drawn at random by the runtime.
#[derive(Clone, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub Arc<str>);

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        alike(self.0.as_bytes(), other.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)") // a secret does not go to logs
    }
}

/// SHA-256 of a nonce: whoever reads the journal can't show the nonce by it.
#[derive(Clone, Copy, Eq)]
pub struct NonceHash(pub [u8; 32]);

impl PartialEq for NonceHash {
    fn eq(&self, other: &Self) -> bool {
        alike(&self.0, &other.0)
    }
}

impl fmt::Debug for NonceHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NonceHash(…)")
    }
}

impl Serialize for NonceHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        let mut hex = String::with_capacity(64);
        hex.extend(self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| DIGITS[usize::from(digit)]));
        serializer.serialize_str(&hex)
    }
}

impl<'de> Deserialize<'de> for NonceHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom(format!("a hash has 64 hexadecimal digits, this has {}", text.len()));
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

/// Takes the same time wherever the difference is, so that a secret can't be guessed byte by byte.
fn alike(mine: &[u8], theirs: &[u8]) -> bool {
    mine.len() == theirs.len() && mine.iter().zip(theirs).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Proof {
    /// The daemon itself, an operator, or a ResourceManager: needs to show nothing.
    #[default]
    Trusted,
    /// A caller.
    Shown(Shown),
}

/// What a caller shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The token, if it shows one.
    pub token: Option<Token>,
    /// Of the nonce, if it shows one.
    pub nonce: Option<NonceHash>,
    /// A ResourceManager lists the attempt: it runs, and no later one of its application does.
    pub listed: bool,
}

impl Proof {
    /// What shows a token and nothing else.
    #[must_use]
    pub const fn of_token(token: Token) -> Self {
        Self::Shown(Shown { token: Some(token), nonce: None, listed: false })
    }

    /// Whether it is the holder's.
    pub(crate) fn opens(&self, held: HeldBy<'_>) -> bool {
        match self {
            Self::Trusted => true,
            Self::Shown(shown) => {
                let token = shown.token.as_ref().is_some_and(|token| token == held.token);
                let nonce = shown.nonce.as_ref().zip(held.nonce).is_some_and(|(shown, held)| shown == held);
                token | nonce
            }
        }
    }

    /// The nonce that the attempt is to be held by from now on.
    pub(crate) const fn nonce(&self) -> Option<NonceHash> {
        match self {
            Self::Trusted => None,
            Self::Shown(shown) => shown.nonce,
        }
    }
}

/// What an attempt is held by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Secrets {
    pub(crate) token: Token,
    /// `None`: its first request had none, as those of 0.1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<NonceHash>,
    /// It has ended the attempts before it: these are over for good.
    pub(crate) supersedes: bool,
}

impl Secrets {
    /// Secrets without a nonce of an attempt that may end those before it, as 0.1.0 knew no others.
    pub(crate) const fn of_token(token: Token) -> Self {
        Self { token, nonce: None, supersedes: true }
    }

    pub(crate) const fn held(&self) -> HeldBy<'_> {
        HeldBy { token: &self.token, nonce: self.nonce.as_ref() }
    }
}

impl<'de> Deserialize<'de> for Secrets {
    /// 0.1.0 wrote the token alone, as a text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Row {
            Token(Token),
            Secrets { token: Token, nonce: Option<NonceHash>, supersedes: bool },
        }
        Ok(match Row::deserialize(deserializer)? {
            Row::Token(token) => Self::of_token(token),
            Row::Secrets { token, nonce, supersedes } => Self { token, nonce, supersedes },
        })
    }
}

/// The secrets of an attempt, or of the attempt that was given an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldBy<'s> {
    pub(crate) token: &'s Token,
    pub(crate) nonce: Option<&'s NonceHash>,
}

impl HeldBy<'_> {
    /// Whether who shows this is the attempt. `legacy`: attempts whose clients know no nonces may show nothing.
    ///
    /// # Errors
    /// [`Refusal::NoToken`] where nothing is shown, [`Refusal::BadToken`] where it is another's.
    pub(crate) fn check(self, attempt: AttemptId, proof: &Proof, legacy: bool) -> Result<(), Refusal> {
        let Proof::Shown(shown) = proof else { return Ok(()) };
        if proof.opens(self) {
            return Ok(());
        }
        match (&shown.token, &shown.nonce) {
            (None, _) if legacy && self.nonce.is_none() => Ok(()),
            (None, None) => Err(Refusal::NoToken { what: attempt.to_string() }),
            _ => Err(Refusal::BadToken { attempt }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hintd_model::units::ApplicationId;

    const ATTEMPT: AttemptId =
        AttemptId { application: ApplicationId { cluster_timestamp: 1, sequence: 1 }, attempt: 1 };

    fn shown(token: Option<&str>, nonce: Option<u8>) -> Proof {
        let token = token.map(|token| Token(token.into()));
        Proof::Shown(Shown { token, nonce: nonce.map(|byte| NonceHash([byte; 32])), listed: false })
    }

    #[test]
    fn the_token_or_the_nonce_opens_and_nothing_else_does() {
        let (token, nonce) = (Token("t".into()), NonceHash([7; 32]));
        let held = HeldBy { token: &token, nonce: Some(&nonce) };
        for proof in [Proof::Trusted, shown(Some("t"), None), shown(None, Some(7)), shown(Some("x"), Some(7))] {
            assert_eq!(held.check(ATTEMPT, &proof, true), Ok(()), "{proof:?}");
        }
        let nothing = Refusal::NoToken { what: ATTEMPT.to_string() };
        assert_eq!(held.check(ATTEMPT, &shown(None, None), true), Err(nothing));
        for proof in [shown(Some(""), None), shown(Some("u"), Some(8)), shown(None, Some(8))] {
            let found = held.check(ATTEMPT, &proof, true);
            assert_eq!(found, Err(Refusal::BadToken { attempt: ATTEMPT }), "{proof:?}");
        }
    }

    #[test]
    fn an_attempt_without_a_nonce_needs_to_show_nothing_while_old_clients_are_allowed() {
        let token = Token("t".into());
        let held = HeldBy { token: &token, nonce: None };
        assert_eq!(held.check(ATTEMPT, &shown(None, None), true), Ok(()));
        assert_eq!(held.check(ATTEMPT, &shown(None, Some(1)), true), Ok(()), "its client was upgraded meanwhile");
        assert!(held.check(ATTEMPT, &shown(Some("u"), None), true).is_err(), "a wrong token is one");
        assert!(held.check(ATTEMPT, &shown(None, None), false).is_err());
        assert_eq!(held.check(ATTEMPT, &shown(Some("t"), None), false), Ok(()));
    }

    #[test]
    fn rows_are_read_as_both_versions_write_them_and_no_secret_is_printed() {
        let secrets = Secrets { token: Token("t".into()), nonce: Some(NonceHash([0xab; 32])), supersedes: false };
        let row = serde_json::to_string(&secrets).unwrap();
        assert_eq!(serde_json::from_str::<Secrets>(&row).unwrap(), secrets);
        let old = serde_json::from_str::<Secrets>("\"t\"").unwrap();
        assert_eq!(old, Secrets::of_token(Token("t".into())));
        assert!(serde_json::from_str::<Secrets>("7").is_err());
        let cut = row.replace("abab", "ab");
        assert!(serde_json::from_str::<Secrets>(&cut).is_err(), "{cut}");
        let printed = format!("{secrets:?} {:?}", shown(Some("t0"), Some(0xab)));
        assert!(!printed.contains("171") && !printed.contains("t0"), "{printed}");
    }
}
