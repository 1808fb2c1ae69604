//! Parameters of disciplines as data: one table serves the parser, the error messages and
//! `weir list queues`.

use weir_core::{Rate, units};

use super::{SpecError, did_you_mean};
use crate::Device;

/// One parameter of a discipline or class.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name, as `tc` has it.
    pub name: &'static str,
    /// Other names that `tc` takes for it.
    pub aliases: &'static [&'static str],
    /// Kind of its value.
    pub kind: ParamKind,
    /// Its value where none is written.
    pub default: DefaultValue,
    /// Whether 0 counts as not written: `tc` then tells the kernel nothing.
    pub zero_is_default: bool,
    /// Meaning in one line.
    pub meaning: &'static str,
}

/// Kind of a parameter's value, with its unit and bounds.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
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
        /// Syntax, such as `TIME [JITTER]`.
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
    /// The value on `device`, if there is one.
    fn text(&self, device: &Device) -> Option<String> {
        match self {
            Self::Required | Self::Absent(_) => None,
            Self::Is(text) => Some((*text).to_owned()),
            Self::Device(_, value) => Some(value(device)),
        }
    }

    /// The default as documentation shows it.
    #[must_use]
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Absent(text) | Self::Is(text) | Self::Device(text, _) => text,
        }
    }
}

impl ParamKind {
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

    /// Whether `text` is 0 to `tc`, which counts times in whole microseconds.
    fn is_zero(&self, text: &str) -> bool {
        let no_time = || units::parse_time(text).is_ok_and(|time| time.as_micros() == 0);
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        match self {
            Self::Time => no_time(),
            Self::Words { .. } => no_time() || digits.parse() == Ok(0),
            Self::Size => units::parse_size(text).is_ok_and(|size| size.get() == 0),
            Self::Rate => units::parse_rate(text).is_ok_and(|rate| rate.as_bps() == 0),
            _ => super::skbedit::number(text) == Some(0),
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
                ParamKind::Switch { off } => off == Some(word),
                ParamKind::Word(words) => words.contains(&word),
                _ => false,
            }
    }
}

/// The parameters of one discipline or class as text, with defaults filled in.
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
    pub(crate) fn parse(
        owner: &'static str,
        table: &'static [Param],
        words: &[String],
        device: &Device,
    ) -> Result<Self, SpecError> {
        let mut values: Vec<(&Param, Option<String>)> =
            table.iter().map(|param| (param, param.default.text(device))).collect();
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
                ParamKind::Switch { off } => {
                    if off == Some(word) { "off" } else { "on" }.to_owned()
                }
                ParamKind::Word(_) => word.to_owned(),
                _ => behind[..count].join(" "),
            };
            rest = &behind[count..];
            written.push((slot.0.name, value.clone()));
            slot.1 = if slot.0.zero_is_default && slot.0.kind.is_zero(&value) {
                slot.0.default.text(device)
            } else {
                Some(value)
            };
        }
        let params = Self { owner, line_rate: device.line_rate, values, written };
        let missing = params.values.iter().find(|(param, value)| {
            matches!(param.default, DefaultValue::Required) && value.is_none()
        });
        match missing {
            Some((param, _)) => Err(params.missing(param)),
            None => Ok(params),
        }
    }

    /// Whose parameters they are.
    pub(super) const fn owner(&self) -> &'static str {
        self.owner
    }

    /// The rate of the line behind the device, if it is fixed.
    pub(super) const fn line_rate(&self) -> Option<Rate> {
        self.line_rate
    }

    /// The parameter called `name`.
    ///
    /// # Panics
    /// If the table has none of that name.
    pub(super) fn param(&self, name: &str) -> &'static Param {
        let found = self.values.iter().find(|(param, _)| param.name == name);
        found.unwrap_or_else(|| unreachable!("{} has no parameter {name}", self.owner)).0
    }

    /// The text of `param`: the last one written, or the default.
    pub(super) fn text(&self, param: &Param) -> Option<&str> {
        let slot = self.values.iter().find(|(known, _)| known.name == param.name);
        slot.and_then(|(_, value)| value.as_deref())
    }

    /// Every text written for `param` (`on` or `off` of a switch), with its place among all parameters written.
    pub(super) fn written(&self, param: &Param) -> impl Iterator<Item = (usize, &str)> {
        let places = self.written.iter().enumerate();
        places
            .filter(|(_, (name, _))| *name == param.name)
            .map(|(place, (_, text))| (place, &**text))
    }

    /// The error about a parameter that must be written and is not.
    pub(super) fn missing(&self, param: &Param) -> SpecError {
        let Param { name, meaning, .. } = param;
        SpecError::new(format!("{}: `{name}` is required ({meaning})", self.owner))
    }
}

/// The error about a word that is no parameter.
pub(super) fn unknown(owner: &str, table: &[Param], word: &str) -> SpecError {
    let near = did_you_mean(word, first_words(table));
    let near = near.unwrap_or_else(|| match table {
        [] => " (it takes none)".to_owned(),
        _ => format!(" (known: {})", known(table)),
    });
    SpecError::new(format!("{owner}: unknown parameter `{word}`{near}"))
}

/// The error about a parameter without its value.
pub(super) fn needs_value(owner: &str, word: &str) -> SpecError {
    SpecError::new(format!("{owner}: `{word}` needs a value behind it"))
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
        ParamKind::Word(words) => words.to_vec(),
        _ => vec![param.name],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;

    /// Discipline, words that it needs, and the parameters of which `tc` sends no 0 (`if (value)` in `q_*.c` of
    /// iproute2), or of which the kernel ignores a 0 (sfq).
    const ZEROS: [(&str, &str, &str); 12] = [
        ("codel", "", "limit target interval"),
        ("fq_codel", "", "limit flows quantum target interval drop_batch"),
        ("pie", "", "limit target tupdate alpha beta"),
        ("fq_pie", "", "limit flows target tupdate alpha beta quantum memory_limit ecn_prob"),
        ("dualpi2", "", "limit memlimit target tupdate step_thresh max_rtt typical_rtt"),
        ("fq", "", "buckets"),
        ("sfq", "", "quantum divisor flows depth"),
        ("red", "limit 100k avpkt 1000", "bandwidth"),
        ("tbf", "rate 1mbit burst 2000 latency 50ms", "limit mtu peakrate"),
        ("tbf", "rate 1mbit burst 2000 limit 9000", "latency"),
        ("cake", "", "bandwidth"),
        ("htb", "rate 1mbit", "ceil quantum"),
    ];

    fn spec(words: &str) -> Result<(), String> {
        let built = crate::QueueSpec::parse(words).and_then(|it| it.build(&Device::default()));
        built.map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_tc_does_not_tell_the_kernel_is_the_default() {
        for (discipline, needed, names) in ZEROS {
            let known = find(discipline).unwrap();
            let table = if discipline == "htb" { known.class_params } else { known.params };
            for name in names.split(' ') {
                let param = table.iter().find(|param| param.name == name).unwrap();
                let zeros: &[&str] = match param.kind {
                    ParamKind::Time => &["0", "0ms", "0.9us"],
                    ParamKind::Size => &["0", "0kb"],
                    ParamKind::Words { .. } => &["0", "0p"],
                    _ => &["0"],
                };
                for zero in zeros {
                    let text = |words: &str| {
                        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
                        let params = Params::parse(discipline, table, &words, &Device::default());
                        params.unwrap().text(param).map(str::to_owned)
                    };
                    let words = format!("{needed} {name} {zero}");
                    assert_eq!(text(&words), text(needed), "{discipline} {words}");
                    assert_eq!(spec(&format!("{discipline} {words}")), Ok(()));
                }
            }
        }
    }

    #[test]
    fn what_tc_does_tell_the_kernel_is_0_or_refused() {
        let text = |words: &str| {
            let table = find("fq_codel").unwrap().params;
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            let params = Params::parse("fq_codel", table, &words, &Device::default()).unwrap();
            params.text(params.param(&words[0])).map(str::to_owned)
        };
        assert_eq!(text("ce_threshold 0").as_deref(), Some("0"));
        assert_eq!(text("target 0 target 3ms").as_deref(), Some("3ms"));
        assert_eq!(text("target 3ms target 0").as_deref(), Some("5ms"), "the last one counts");
        for (words, said) in [
            ("fq_codel memory_limit 0", "write a size of at least 1 byte"),
            ("sfq limit 0", "write a number from 2 to 4294967295"),
            ("fq quantum 0", "write a number from 1 to 4294967295"),
            ("pie alpha 33", "write a number from 0 to 32"),
        ] {
            assert!(spec(words).unwrap_err().ends_with(said), "{words}");
        }
    }
}
