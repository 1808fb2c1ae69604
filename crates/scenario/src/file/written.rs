//! Values as somebody wrote them: in a TOML file, or as objects of a programming language.

use std::fmt::Write as _;

/// A value as it was written, with the line on which it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The value.
    pub value: Value,
    /// The line of its file, from 1: that of its key, or of itself in a list. `None` of what stands in no file.
    pub line: Option<usize>,
}

/// A written value, of the kinds that TOML and JSON have.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, such as `None` in Python: as if the key was not there.
    Nothing,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A number with a fraction or an exponent.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Written>),
    /// Keys and their values, in the order in which they were written.
    Table(Vec<(String, Written)>),
    /// Anything else, such as a date or a number of hundred digits, in words that a message can show.
    Other(String),
}

impl Written {
    /// A value that stands in no file.
    #[must_use]
    pub const fn of(value: Value) -> Self {
        Self { value, line: None }
    }

    /// A table without keys.
    #[must_use]
    pub const fn empty() -> Self {
        Self::of(Value::Table(Vec::new()))
    }

    /// The value at `key`, if this is a table that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, written)| written)
    }

    /// Puts a value at `key`, in place of what stands there, if this is a table.
    pub fn set(&mut self, key: &str, written: Self) {
        let Value::Table(entries) = &mut self.value else { return };
        match entries.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = written,
            None => entries.push((key.to_owned(), written)),
        }
    }

    /// The value a step further: at a key of a table, or at a place of a list, from 0.
    #[must_use]
    pub fn step(&self, step: &str) -> Option<&Self> {
        match &self.value {
            Value::List(parts) => parts.get(step.parse::<usize>().ok()?),
            _ => self.get(step),
        }
    }

    /// The value as a message shows it: a text in backticks, and of what is long the start.
    #[must_use]
    pub fn shown(&self) -> String {
        let text = match &self.value {
            Value::Text(text) => format!("`{}`", head(text, 2 * MAX_SHOWN_CHARS)),
            _ => self.literal(),
        };
        if text.chars().count() <= MAX_SHOWN_CHARS {
            return text;
        }
        format!("{}...", head(&text, MAX_SHOWN_CHARS - 3))
    }

    /// The value as a literal: a text in quotes.
    #[must_use]
    pub fn literal(&self) -> String {
        let mut out = String::new();
        self.literal_into(&mut out);
        out
    }

    /// The value without quotes.
    #[must_use]
    pub fn plain(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            _ => self.literal(),
        }
    }

    /// Appends the literal, as far as a message can show it.
    fn literal_into(&self, out: &mut String) {
        if out.len() > 8 * MAX_SHOWN_CHARS {
            return;
        }
        match &self.value {
            Value::Nothing => out.push_str("None"),
            Value::Bool(value) => _ = write!(out, "{value}"),
            Value::Whole(value) => _ = write!(out, "{value}"),
            Value::Number(value) => _ = write!(out, "{value:?}"),
            Value::Text(text) => _ = write!(out, "'{}'", head(text, 8 * MAX_SHOWN_CHARS)),
            Value::Other(text) => out.push_str(head(text, 8 * MAX_SHOWN_CHARS)),
            Value::List(parts) => {
                out.push('[');
                for (number, part) in parts.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { ", " });
                    part.literal_into(out);
                }
                out.push(']');
            }
            Value::Table(entries) => {
                out.push('{');
                for (number, (key, part)) in entries.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { ", " });
                    _ = write!(out, "'{}': ", head(key, MAX_SHOWN_CHARS));
                    part.literal_into(out);
                }
                out.push('}');
            }
        }
    }
}

/// A table with these entries.
pub(crate) fn table<'k>(entries: impl IntoIterator<Item = (&'k str, Written)>) -> Written {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Written::of(Value::Table(entries.collect()))
}

/// A list of texts.
pub(crate) fn texts<'t>(all: impl IntoIterator<Item = &'t str>) -> Written {
    all.into_iter().map(Written::from).collect::<Vec<_>>().into()
}

impl From<&str> for Written {
    fn from(text: &str) -> Self {
        Self::of(Value::Text(text.to_owned()))
    }
}

impl From<String> for Written {
    fn from(text: String) -> Self {
        Self::of(Value::Text(text))
    }
}

impl From<bool> for Written {
    fn from(value: bool) -> Self {
        Self::of(Value::Bool(value))
    }
}

impl From<i64> for Written {
    fn from(number: i64) -> Self {
        Self::of(Value::Whole(number))
    }
}

impl From<u64> for Written {
    fn from(number: u64) -> Self {
        Self::of(match i64::try_from(number) {
            Ok(number) => Value::Whole(number),
            Err(_) => Value::Other(number.to_string()),
        })
    }
}

impl From<f64> for Written {
    fn from(number: f64) -> Self {
        Self::of(Value::Number(number))
    }
}

impl From<Vec<Self>> for Written {
    fn from(parts: Vec<Self>) -> Self {
        Self::of(Value::List(parts))
    }
}

impl From<serde_json::Value> for Written {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::of(Value::Nothing),
            Json::Bool(value) => value.into(),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => whole.into(),
                (None, Some(number)) => number.into(),
                (None, None) => Self::of(Value::Other(number.to_string())),
            },
            Json::String(text) => text.into(),
            Json::Array(parts) => parts.into_iter().map(Self::from).collect::<Vec<_>>().into(),
            Json::Object(entries) => {
                let entries = entries.into_iter().map(|(key, part)| (key, part.into()));
                Self::of(Value::Table(entries.collect()))
            }
        }
    }
}

/// The first `chars` characters of `text`.
pub(crate) fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// Characters of a value that is shown.
pub const MAX_SHOWN_CHARS: usize = 60;
