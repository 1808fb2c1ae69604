//! Tokens, and how a client shows that it knows the secret without telling it.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;

/// Random bits that name a session, a flow or a challenge: 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// HMAC-SHA256, 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mac([u8; 32]);

/// The secret that client and server share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Why words are no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret has {bytes} bytes: it must have {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}")]
pub struct SecretError {
    bytes: usize,
}

impl Secret {
    /// A secret of 8 to 256 bytes, without the white space around it.
    ///
    /// # Errors
    /// If it is shorter or longer.
    pub fn new(words: &str) -> Result<Self, SecretError> {
        let words = words.trim().as_bytes();
        match words.len() {
            MIN_SECRET_BYTES..=MAX_SECRET_BYTES => Ok(Self(words.to_vec())),
            bytes => Err(SecretError { bytes }),
        }
    }

    /// Answer of a client to a challenge, which the server expects.
    #[must_use]
    pub fn answer(&self, challenge: Token, nonce: Token) -> Mac {
        Mac(self.hmac(challenge, nonce).finalize().into_bytes().into())
    }

    /// Whether that is the right answer, in a time that does not depend on it.
    #[must_use]
    pub fn accepts(&self, challenge: Token, nonce: Token, answer: Mac) -> bool {
        self.hmac(challenge, nonce).verify_slice(&answer.0).is_ok()
    }

    /// Whether the words are the secret itself, in a time that does not depend on them: for protocols that
    /// have nothing better than a parameter or a header.
    #[must_use]
    pub fn is(&self, words: &str) -> bool {
        let of = |bytes: &[u8]| {
            let mut hmac = new_hmac(&self.0);
            hmac.update(bytes);
            hmac
        };
        of(words.as_bytes()).verify(&of(&self.0).finalize().into_bytes()).is_ok()
    }

    /// Bytes of the secret, for protocols with keys of their own.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn hmac(&self, challenge: Token, nonce: Token) -> Hmac<Sha256> {
        let mut hmac = new_hmac(&self.0);
        hmac.update(CONTEXT);
        hmac.update(&challenge.0.to_be_bytes());
        hmac.update(&nonce.0.to_be_bytes());
        hmac
    }
}

fn new_hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Mac({self})")
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&base16ct::lower::encode_string(&self.0))
    }
}

impl FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        match base16ct::mixed::decode(text, &mut bytes) {
            Ok(decoded) if decoded.len() == 32 => Ok(Self(bytes)),
            _ => Err("a code has 64 hexadecimal digits"),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FromStr for Token {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or("a token has 16 hexadecimal digits")
    }
}

/// Makes tokens and MACs text in JSON: JavaScript has no integers of 64 bits.
macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}
as_text!(Token);
as_text!(Mac);

/// Keeps an answer from being good for anything else that the same secret may be used for.
const CONTEXT: &[u8] = b"weir.v1 session";
/// Shortest secret, in bytes: shorter ones are found by trying.
const MIN_SECRET_BYTES: usize = 8;
/// Longest secret, in bytes: longer ones are a wrong file.
const MAX_SECRET_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_answer_is_accepted() {
        let secret = Secret::new("correct horse\n").unwrap();
        let answer = secret.answer(Token(1), Token(2));
        assert!(secret.accepts(Token(1), Token(2), answer));
        assert!(!secret.accepts(Token(2), Token(2), answer));
        assert!(!Secret::new("incorrect horse").unwrap().accepts(Token(1), Token(2), answer));
        assert!(secret.is("correct horse"));
        assert!(!secret.is("correct hors"));
        assert!(!secret.is(""));
    }

    /// Computed with Python's `hmac` module.
    #[test]
    fn an_answer_is_what_others_compute() {
        let answer = Secret::new("correct horse").unwrap().answer(Token(1), Token(2));
        assert_eq!(
            answer.to_string(),
            "cf2aad33c6e9898896a279db30f81db4dbe96200c7bcc999c1729f0709372481"
        );
    }

    #[test]
    fn a_secret_has_a_length() {
        assert_eq!(
            Secret::new(" short ").unwrap_err().to_string(),
            "the secret has 5 bytes: it must have 8 to 256"
        );
        assert!(Secret::new(&"x".repeat(257)).is_err());
    }

    #[test]
    fn tokens_are_sixteen_digits() {
        assert_eq!(Token(255).to_string(), "00000000000000ff");
        assert_eq!("00000000000000FF".parse(), Ok(Token(255)));
        for wrong in ["", "ff", "+0000000000000ff", "00000000000000fg", "000000000000000ff"] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
    }
}
