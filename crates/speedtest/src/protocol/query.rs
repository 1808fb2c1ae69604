//! The parameters of a URL.

use std::borrow::Cow;
use std::str::FromStr;

/// The parameters behind the `?` of a URL, decoded when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a>(&'a str);

/// Error in the parameters of a URL, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A parameter that is needed is not there.
    #[error("parameter `{0}` is missing")]
    Missing(&'static str),
    /// A parameter has a value that it may not have.
    #[error("parameter `{name}` is `{value}`: it must be {allowed}")]
    Value {
        /// Name of the parameter.
        name: &'static str,
        /// The value that was given, cut short if it is long.
        value: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// All parameters together are too long.
    #[error("the parameters have {length} bytes: {most} are allowed")]
    Long {
        /// Length of all parameters together, in bytes.
        length: usize,
        /// The longest that is taken.
        most: usize,
    },
    /// A parameter without a name or value.
    #[error("parameter {0} has no name or no value")]
    Empty(usize),
    /// A parameter that is given twice.
    #[error("parameter `{0}` is given twice")]
    Twice(String),
}

impl<'a> Query<'a> {
    /// The parameters in `text`, which is what follows the `?` of a URL.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// All parameters, in order.
    pub fn pairs(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        form_urlencoded::parse(self.0.as_bytes())
    }

    /// The first one of that name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.pairs().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The number that a parameter is, `None` if it is not there or empty.
    ///
    /// # Errors
    /// If it is something else than a number up to `most`.
    pub fn number(self, name: &'static str, most: u64) -> Result<Option<u64>, QueryError> {
        let Some(value) = self.get(name).filter(|value| !value.is_empty()) else { return Ok(None) };
        match u64::from_str(&value) {
            Ok(number) if number <= most => Ok(Some(number)),
            _ => Err(QueryError::value(name, &value, format!("a number from 0 to {most}"))),
        }
    }

    /// Checks what M-Lab's protocols ask of metadata: short, named, each once.
    ///
    /// # Errors
    /// If there is too much, or a parameter is empty or given twice.
    pub fn check_metadata(self) -> Result<(), QueryError> {
        if self.0.len() > MAX_METADATA_BYTES {
            return Err(QueryError::Long { length: self.0.len(), most: MAX_METADATA_BYTES });
        }
        let mut seen = std::collections::BTreeSet::new();
        for (number, (name, value)) in self.pairs().enumerate() {
            if name.is_empty() || value.is_empty() {
                return Err(QueryError::Empty(number + 1));
            }
            if !seen.insert(name.to_string()) {
                return Err(QueryError::Twice(shortened(&name)));
            }
        }
        Ok(())
    }
}

impl QueryError {
    /// A value that is not allowed.
    pub(crate) fn value(name: &'static str, value: &str, allowed: impl Into<String>) -> Self {
        Self::Value { name, value: shortened(value), allowed: allowed.into() }
    }
}

/// As much of a stranger's words as an answer repeats.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_QUOTE_CHARS).collect()
}

/// ndt7 specification, section "Query string parameters".
const MAX_METADATA_BYTES: usize = 4096;
const MAX_QUOTE_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_bound() {
        let query = Query::new("bytes=100&empty=&word=ten&big=1001&enc=%31%32");
        assert_eq!(query.number("bytes", 1000), Ok(Some(100)));
        assert_eq!(query.number("enc", 1000), Ok(Some(12)));
        assert_eq!(query.number("empty", 1000), Ok(None));
        assert_eq!(query.number("none", 1000), Ok(None));
        assert_eq!(
            query.number("big", 1000).unwrap_err().to_string(),
            "parameter `big` is `1001`: it must be a number from 0 to 1000"
        );
        assert!(query.number("word", 1000).is_err());
    }

    #[test]
    fn metadata_is_short_named_and_given_once() {
        assert_eq!(Query::new("client_name=weir&client_os=linux").check_metadata(), Ok(()));
        assert_eq!(Query::new("").check_metadata(), Ok(()));
        assert_eq!(Query::new("a=1&b=").check_metadata(), Err(QueryError::Empty(2)));
        assert_eq!(Query::new("a=1&%61=2").check_metadata(), Err(QueryError::Twice("a".into())));
        let long = format!("a={}", "x".repeat(4095));
        assert_eq!(
            Query::new(&long).check_metadata(),
            Err(QueryError::Long { length: 4097, most: 4096 })
        );
    }
}
