//! Parameters of disciplines as data: one table serves the parser, the error messages and
//! `weir list queues`.

use weir_core::{Bytes, Duration, Rate, units};

use super::{SetUpError, did_you_mean, shortened};
use crate::Device;

/// One parameter of a discipline or class.
#[derive(Debug)]
pub struct Param {
    /// Its name, as `tc` has it.
    pub name: &'static str,
    /// Other names that `tc` takes for it.
    pub aliases: &'static [&'static str],
    /// Kind of its value.
    pub kind: Kind,
    /// Its value where none is written.
    pub default: DefaultValue,
    /// Meaning in one line.
    pub meaning: &'static str,
}

/// Kind of a parameter's value, with its unit and bounds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number in a range; `unit` names what is counted.
    Number {
        /// Unit of the count, such as "packets".
        unit: &'static str,
        /// Smallest and largest value.
        range: (u64, u64),
    },
    /// The number of bands, which are the discipline's classes and there by themselves.
    Bands {
        /// Smallest and largest number.
        range: (u64, u64),
    },
    /// A whole number in a range that may be negative; `unit` names what is counted.
    Integer {
        /// Unit of the count, such as "bytes".
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
    /// A probability, from 0 to 1.
    Probability,
    /// A share in percent, with or without the sign.
    Percent,
    /// A number in a range, with decimals.
    Real {
        /// Unit, such as "1/s".
        unit: &'static str,
        /// Smallest and largest value.
        range: (f64, f64),
    },
    /// A word that switches something on; `off` is the word that switches it off, if there is one.
    Switch {
        /// The opposite word.
        off: Option<&'static str>,
    },
    /// One of several words behind the name.
    Choice(&'static [&'static str]),
    /// Several words, as in `delay 20ms 5ms`.
    Words {
        /// Syntax, such as "TIME [JITTER]".
        shape: &'static str,
        /// How many of the words behind the name belong to it.
        takes: fn(&[&str]) -> usize,
    },
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
            Self::Number { unit, .. } | Self::Real { unit, .. } | Self::Integer { unit, .. } => {
                (*unit).to_owned()
            }
            Self::Bands { .. } => "bands".to_owned(),
            Self::Minor => "class number, hexadecimal".to_owned(),
            Self::Size => "bytes".to_owned(),
            Self::Rate => "rate, or % of the line".to_owned(),
            Self::Time => "time".to_owned(),
            Self::Probability => "probability".to_owned(),
            Self::Percent => "percent".to_owned(),
            Self::Switch { off: None } => "switch".to_owned(),
            Self::Switch { off: Some(off) } => format!("switch (off: `{off}`)"),
            Self::Choice(words) => words.join(" | "),
            Self::Words { shape, .. } => (*shape).to_owned(),
            Self::Word(words) => format!("one of the words {}", words.join(", ")),
        }
    }

    /// How many of the words `behind` the name belong to it; `None` if there are too few.
    pub(crate) fn take(&self, behind: &[&str]) -> Option<usize> {
        let count = match self {
            Self::Switch { .. } | Self::Word(_) => return Some(0),
            Self::Words { takes, .. } => takes(behind).max(1),
            _ => 1,
        };
        (behind.len() >= count).then_some(count)
    }
}

impl Param {
    /// Whether `word` is this parameter's name, or switches it off.
    pub(crate) fn answers_to(&self, word: &str) -> bool {
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
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut rest = &words[..];
        while let Some((&word, behind)) = rest.split_first() {
            let slot = values
                .iter_mut()
                .find(|(param, _)| param.answers_to(word))
                .ok_or_else(|| unknown(owner, table, word))?;
            let count = slot.0.kind.take(behind).ok_or_else(|| needs_value(owner, word))?;
            let value = match slot.0.kind {
                Kind::Switch { off } => if off == Some(word) { "off" } else { "on" }.to_owned(),
                Kind::Word(_) => word.to_owned(),
                _ => behind[..count].join(" "),
            };
            rest = &behind[count..];
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

    /// The value of a [`Kind::Number`] or [`Kind::Bands`] that has one.
    ///
    /// # Errors
    /// If it is not a whole number within the parameter's range.
    pub fn number(&self, name: &str) -> Result<u64, SetUpError> {
        self.try_number(name).map(|value| value.expect("a parameter with a default"))
    }

    /// The value of a [`Kind::Number`] or [`Kind::Bands`], or `None`.
    ///
    /// # Errors
    /// If it is not a whole number within the parameter's range.
    pub fn try_number(&self, name: &str) -> Result<Option<u64>, SetUpError> {
        let (param, text) = self.slot(name);
        let (Kind::Number { range: (low, high), .. } | Kind::Bands { range: (low, high) }) =
            param.kind
        else {
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

    /// The value of a [`Kind::Size`] of which 0 would let nothing pass, or `None`.
    ///
    /// # Errors
    /// If it is not a size, or 0.
    pub fn some_size(&self, name: &str) -> Result<Option<Bytes>, SetUpError> {
        let size = self.size(name)?;
        match self.slot(name).1 {
            Some(text) if size.is_some_and(|size| size.get() == 0) => {
                Err(self.bad(name, text, "write a size of at least 1 byte"))
            }
            _ => Ok(size),
        }
    }

    /// The value of a [`Kind::Rate`], or `None`.
    ///
    /// # Errors
    /// If it is not a rate of at least 8 bit/s, or a share of a line whose rate is not fixed.
    pub fn rate(&self, name: &str) -> Result<Option<Rate>, SetUpError> {
        self.slot(name).1.map(|text| self.rate_in(name, text)).transpose()
    }

    /// `text`, which stands behind `name`, as a rate.
    pub(crate) fn rate_in(&self, name: &str, text: &str) -> Result<Rate, SetUpError> {
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
        Ok(rate)
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

    /// The value of a [`Kind::Probability`] that has one.
    ///
    /// # Errors
    /// If it is not a number from 0 to 1.
    pub fn probability(&self, name: &str) -> Result<f64, SetUpError> {
        let text = self.slot(name).1.expect("a parameter with a default");
        text.parse()
            .ok()
            .filter(|p| (0.0..=1.0).contains(p))
            .ok_or_else(|| self.bad(name, text, "write a number from 0 to 1"))
    }

    /// The value of a [`Kind::Percent`] that has one.
    ///
    /// # Errors
    /// If it is not a number from 0 to 100.
    pub fn percent(&self, name: &str) -> Result<f64, SetUpError> {
        let text = self.slot(name).1.expect("a parameter with a default");
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
        number
            .filter(|percent| (0.0..=100.0).contains(percent))
            .ok_or_else(|| self.bad(name, text, "write a number from 0 to 100"))
    }

    /// The value of a [`Kind::Real`], or `None`.
    ///
    /// # Errors
    /// If it is not a number within the parameter's range.
    pub fn real(&self, name: &str) -> Result<Option<f64>, SetUpError> {
        let (param, text) = self.slot(name);
        let Kind::Real { range: (low, high), .. } = param.kind else {
            unreachable!("{name} is a number with decimals")
        };
        let Some(text) = text else { return Ok(None) };
        let number = text.parse().ok().filter(|number| (low..=high).contains(number));
        let allowed = || self.bad(name, text, &format!("write a number from {low} to {high}"));
        number.map(Some).ok_or_else(allowed)
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

    /// Whose parameters they are.
    pub(crate) const fn owner(&self) -> &'static str {
        self.owner
    }

    /// The words of a [`Kind::Words`]; none if it has no value.
    #[must_use]
    pub fn words(&self, name: &str) -> Vec<&str> {
        self.slot(name).1.map_or_else(Vec::new, |text| text.split(' ').collect())
    }

    /// An error about the value of `name`.
    pub fn bad(&self, name: &str, value: &str, allowed: &str) -> SetUpError {
        SetUpError::new(format!("{}: `{name} {}`: {allowed}", self.owner, shortened(value)))
    }

    pub(crate) fn wrap(&self, name: &str, error: &units::UnitError) -> SetUpError {
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
    let near = did_you_mean(word, first_words(table));
    let near = near.unwrap_or_else(|| match table {
        [] => " (it takes none)".to_owned(),
        _ => format!(" (known: {})", known(table)),
    });
    SetUpError::new(format!("{owner}: unknown parameter `{word}`{near}"))
}

/// The error about a parameter without its value.
pub(super) fn needs_value(owner: &str, word: &str) -> SetUpError {
    SetUpError::new(format!("{owner}: `{word}` needs a value behind it"))
}

/// The words that begin the parameters of `table`, as a message lists them.
pub(super) fn known<'t>(table: impl IntoIterator<Item = &'t Param>) -> String {
    first_words(table).collect::<Vec<_>>().join(", ")
}

/// The words that begin the parameters of `table`.
pub(super) fn first_words<'t>(
    table: impl IntoIterator<Item = &'t Param>,
) -> impl Iterator<Item = &'static str> {
    table.into_iter().flat_map(|param| match param.kind {
        Kind::Word(words) => words.to_vec(),
        _ => vec![param.name],
    })
}
