//! Parameters of disciplines as data: one table serves the parser, the error messages and
//! `weir list queues`.

use weir_core::{Bytes, Duration, Rate, units};

use super::SetUpError;
use crate::Device;

/// One parameter of a discipline or class.
#[derive(Debug)]
pub struct Param {
    /// Its name, as `tc` has it.
    pub name: &'static str,
    /// Other names that `tc` takes for it.
    pub aliases: &'static [&'static str],
    /// What kind of value it takes.
    pub kind: Kind,
    /// Its value where none is written.
    pub default: DefaultValue,
    /// What it means, in a line.
    pub meaning: &'static str,
}

/// What kind of value a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number in a range; `unit` names what is counted.
    Number {
        /// What is counted, such as "packets".
        unit: &'static str,
        /// Smallest and largest value.
        range: (u64, u64),
    },
    /// A whole number in a range that may be negative; `unit` names what is counted.
    Integer {
        /// What is counted, such as "bytes".
        unit: &'static str,
        /// Smallest and largest value.
        range: (i64, i64),
    },
    /// A hexadecimal class number, as `default 10` of htb.
    Minor,
    /// An amount of bytes.
    Size,
    /// A rate, or a share of the line's rate such as `95%`.
    Rate,
    /// A time.
    Time,
    /// A word that switches something on; `off` is the word that switches it off, if there is one.
    Switch {
        /// The opposite word.
        off: Option<&'static str>,
    },
    /// One of several words behind the name.
    Choice(&'static [&'static str]),
    /// One of several words that stand alone, such as `hosts` or `flows` of cake.
    Word(&'static [&'static str]),
}

/// A parameter's value where none is written.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// It must be written.
    Required,
    /// It then has no value, and `0` says what that means.
    Absent(&'static str),
    /// This value, written as a user would.
    Is(&'static str),
    /// A value of the device on which the discipline sits.
    Device(&'static str, fn(&Device) -> String),
}

impl DefaultValue {
    /// The default as documentation shows it.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Absent(text) | Self::Is(text) | Self::Device(text, _) => text,
        }
    }
}

impl Kind {
    /// The unit as documentation shows it.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Number { unit, .. } | Self::Integer { unit, .. } => (*unit).to_owned(),
            Self::Minor => "class number, hexadecimal".to_owned(),
            Self::Size => "bytes".to_owned(),
            Self::Rate => "rate, or % of the line".to_owned(),
            Self::Time => "time".to_owned(),
            Self::Switch { off: None } => "switch".to_owned(),
            Self::Switch { off: Some(off) } => format!("switch (off: `{off}`)"),
            Self::Choice(words) => words.join(" | "),
            Self::Word(words) => format!("one of the words {}", words.join(", ")),
        }
    }

    /// How many words follow the name.
    pub(super) const fn arity(&self) -> usize {
        match self {
            Self::Switch { .. } | Self::Word(_) => 0,
            _ => 1,
        }
    }
}

impl Param {
    /// Whether `word` is this parameter's name, or switches it off.
    pub(super) fn answers_to(&self, word: &str) -> bool {
        self.name == word
            || self.aliases.contains(&word)
            || match self.kind {
                Kind::Switch { off } => off == Some(word),
                Kind::Word(words) => words.contains(&word),
                _ => false,
            }
    }
}

/// The parameters of one discipline or class, with defaults filled in.
#[derive(Debug)]
pub struct Params {
    owner: &'static str,
    line_rate: Option<Rate>,
    values: Vec<(&'static Param, Option<String>)>,
    /// Names of parameters and their values, in the order written.
    written: Vec<(&'static str, String)>,
}

impl Params {
    /// Reads `words` by `table`, for the discipline called `owner`.
    ///
    /// # Errors
    /// If a word is no parameter, a value is missing or a required parameter is not there.
    pub fn read(
        owner: &'static str,
        table: &'static [Param],
        words: &[String],
        device: &Device,
    ) -> Result<Self, SetUpError> {
        let mut values: Vec<(&Param, Option<String>)> = table
            .iter()
            .map(|param| {
                let default = match &param.default {
                    DefaultValue::Required | DefaultValue::Absent(_) => None,
                    DefaultValue::Is(text) => Some((*text).to_owned()),
                    DefaultValue::Device(_, value) => Some(value(device)),
                };
                (param, default)
            })
            .collect();
        let mut written = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let slot = values
                .iter_mut()
                .find(|(param, _)| param.answers_to(word))
                .ok_or_else(|| unknown(owner, table, word))?;
            let value = match slot.0.kind {
                Kind::Switch { off } => if off == Some(word) { "off" } else { "on" }.to_owned(),
                Kind::Word(_) => word.clone(),
                _ => words
                    .next()
                    .ok_or_else(|| {
                        SetUpError::new(format!("{owner}: `{word}` needs a value behind it"))
                    })?
                    .clone(),
            };
            written.push((slot.0.name, value.clone()));
            slot.1 = Some(value);
        }
        for (param, value) in &values {
            if matches!(param.default, DefaultValue::Required) && value.is_none() {
                return Err(SetUpError::new(format!(
                    "{owner}: `{}` is required ({})",
                    param.name, param.meaning
                )));
            }
        }
        Ok(Self { owner, line_rate: device.line_rate, values, written })
    }

    /// The value of a [`Kind::Number`] that has one.
    ///
    /// # Errors
    /// If it is not a whole number within the parameter's range.
    pub fn number(&self, name: &str) -> Result<u64, SetUpError> {
        self.try_number(name).map(|value| value.expect("a parameter with a default"))
    }

    /// The value of a [`Kind::Number`], or `None`.
    ///
    /// # Errors
    /// If it is not a whole number within the parameter's range.
    pub fn try_number(&self, name: &str) -> Result<Option<u64>, SetUpError> {
        let (param, text) = self.slot(name);
        let Kind::Number { range: (low, high), .. } = param.kind else {
            unreachable!("{name} is a number")
        };
        let Some(text) = text else { return Ok(None) };
        // `tc` takes decimal and, behind 0x, hexadecimal.
        let value = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        value
            .filter(|value| (low..=high).contains(value))
            .map(Some)
            .ok_or_else(|| self.bad(name, text, &format!("write a number from {low} to {high}")))
    }

    /// The value of a [`Kind::Integer`], or `None`.
    ///
    /// # Errors
    /// If it is not a whole number within the parameter's range.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, SetUpError> {
        let (param, text) = self.slot(name);
        let Kind::Integer { range: (low, high), .. } = param.kind else {
            unreachable!("{name} is an integer")
        };
        let Some(text) = text else { return Ok(None) };
        let value = text.parse().ok().filter(|value| (low..=high).contains(value));
        let bad = || self.bad(name, text, &format!("write a number from {low} to {high}"));
        value.map(Some).ok_or_else(bad)
    }

    /// The value of a [`Kind::Minor`], or `None`.
    ///
    /// # Errors
    /// If it is not a hexadecimal number up to ffff.
    pub fn minor(&self, name: &str) -> Result<Option<u16>, SetUpError> {
        let Some(text) = self.slot(name).1 else { return Ok(None) };
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u16::from_str_radix(digits, 16)
            .map(Some)
            .map_err(|_| self.bad(name, text, "write a hexadecimal number from 0 to ffff"))
    }

    /// The value of a [`Kind::Size`], or `None`.
    ///
    /// # Errors
    /// If it is not a size.
    pub fn size(&self, name: &str) -> Result<Option<Bytes>, SetUpError> {
        self.slot(name)
            .1
            .map(|text| units::parse_size(text).map_err(|error| self.wrap(name, &error)))
            .transpose()
    }

    /// The value of a [`Kind::Rate`], or `None`.
    ///
    /// # Errors
    /// If it is not a rate of at least 8 bit/s, or a share of a line whose rate is not fixed.
    pub fn rate(&self, name: &str) -> Result<Option<Rate>, SetUpError> {
        let Some(text) = self.slot(name).1 else { return Ok(None) };
        let rate = match units::parse_percent(text) {
            None => units::parse_rate(text).map_err(|error| self.wrap(name, &error))?,
            Some(percent) => {
                let percent = percent.map_err(|error| self.wrap(name, &error))?;
                let line = self.line_rate.ok_or_else(|| {
                    self.bad(
                        name,
                        text,
                        "this line has no fixed rate to take a share of; write a rate",
                    )
                })?;
                line.percent(percent)
            }
        };
        if rate.as_bytes_per_sec() == 0 {
            return Err(self.bad(name, text, "write a rate of at least 8bit"));
        }
        Ok(Some(rate))
    }

    /// The value of a [`Kind::Time`], or `None`.
    ///
    /// # Errors
    /// If it is not a time.
    pub fn time(&self, name: &str) -> Result<Option<Duration>, SetUpError> {
        self.slot(name)
            .1
            .map(|text| units::parse_time(text).map_err(|error| self.wrap(name, &error)))
            .transpose()
    }

    /// Whether a [`Kind::Switch`] is on.
    #[must_use]
    pub fn switch(&self, name: &str) -> bool {
        self.slot(name).1 == Some("on")
    }

    /// The value of a [`Kind::Word`] that has one.
    #[must_use]
    pub fn word(&self, name: &str) -> &str {
        self.slot(name).1.expect("a parameter with a default")
    }

    /// The parameters that were written, by name and value (`on` or `off` of a switch), in the order
    /// written: for disciplines in which it matters.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.written.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The value of a [`Kind::Choice`] that has one.
    ///
    /// # Errors
    /// If it is none of the words.
    pub fn choice(&self, name: &str) -> Result<&str, SetUpError> {
        let (param, text) = self.slot(name);
        let Kind::Choice(words) = param.kind else { unreachable!("{name} is a choice") };
        let text = text.expect("a parameter with a default");
        if words.contains(&text) {
            Ok(text)
        } else {
            Err(self.bad(name, text, &format!("write one of {}", words.join(", "))))
        }
    }

    /// An error about the value of `name`.
    pub fn bad(&self, name: &str, value: &str, allowed: &str) -> SetUpError {
        SetUpError::new(format!("{}: `{name} {value}`: {allowed}", self.owner))
    }

    fn wrap(&self, name: &str, error: &units::UnitError) -> SetUpError {
        self.bad(name, &error.text, error.allowed)
    }

    fn slot(&self, name: &str) -> (&'static Param, Option<&str>) {
        let (param, value) = self
            .values
            .iter()
            .find(|(param, _)| param.name == name)
            .unwrap_or_else(|| unreachable!("{} has no parameter {name}", self.owner));
        (param, value.as_deref())
    }
}

/// The error about a word that is no parameter.
pub(super) fn unknown(owner: &str, table: &[Param], word: &str) -> SetUpError {
    let known = if table.is_empty() { "it takes none".to_owned() } else { known(table) };
    SetUpError::new(format!("{owner}: unknown parameter `{word}` (known: {known})"))
}

/// The words that begin the parameters of `table`.
pub(super) fn known<'t>(table: impl IntoIterator<Item = &'t Param>) -> String {
    let words = table.into_iter().flat_map(|param| match param.kind {
        Kind::Word(words) => words.to_vec(),
        _ => vec![param.name],
    });
    words.collect::<Vec<_>>().join(", ")
}
