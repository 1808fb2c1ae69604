//! Quantities as people write them in scenarios: `20mbit`, `5ms`, `64kb`, `EF`.
//!
//! The words are those of `tc`, and `min` and `h` for times. One thing is stricter than in `tc` syntax: a time or a rate
//! needs its unit, since `30` is seconds to one reader, microseconds to another.

use weir_core::units::{UnitError, parse_duration, parse_rate, parse_size};
use weir_core::{Bytes, Dscp, Duration, Rate};

use crate::check::{LINE_RATES, LINE_RATES_BPS};
use crate::file::field::{Definitions, Field, Form, Reader, refer, sentence};
use crate::file::written::{Value, Written, table, texts};

/// Nanoseconds of a time such as `5ms`.
///
/// # Errors
/// If it is none, or a number without a unit.
pub fn read_time(written: &Written) -> Result<u64, String> {
    time_that(written, |_| true, "a time such as `5ms`")
}

/// Nanoseconds of a time that `allows` takes; of any other it is told to write `instead`.
///
/// # Errors
/// If it is none of these, or a number without a unit.
pub(crate) fn time_that(
    written: &Written,
    allows: impl Fn(u64) -> bool,
    instead: &str,
) -> Result<u64, String> {
    TIME.that(written, &allows, instead)
}

/// Bits per second of a rate such as `20mbit`.
///
/// # Errors
/// If it is none, or a number without a unit.
pub fn read_rate(written: &Written) -> Result<u64, String> {
    rate_that(written, |_| true, "a rate such as `20mbit`")
}

/// Bits per second of a rate that `allows` takes; of any other it is told to write `instead`.
///
/// # Errors
/// If it is none of these, or a number without a unit.
pub(crate) fn rate_that(
    written: &Written,
    allows: impl Fn(u64) -> bool,
    instead: &str,
) -> Result<u64, String> {
    RATE.that(written, &allows, instead)
}

/// Bytes of a size such as `64kb`; a whole number is bytes, as in `tc` and Flent.
///
/// # Errors
/// If it is none.
pub fn read_size(written: &Written) -> Result<u64, String> {
    match &written.value {
        Value::Text(text) => parse_size(text).map(Bytes::get).map_err(|error| error.to_string()),
        Value::Whole(bytes) if *bytes >= 0 => Ok(bytes.unsigned_abs()),
        _ => Err(format!(
            "{} is not a size: write a whole number of bytes, or such as `64kb`",
            written.shown()
        )),
    }
}

/// Bytes of a size that is not nothing; `otherwise` is what to write instead besides.
fn size_above_0(written: &Written, otherwise: &str) -> Result<u64, String> {
    match read_size(written)? {
        0 => Err(format!("`0`: write 1 or more{otherwise}")),
        bytes => Ok(bytes),
    }
}

/// What needs its unit, and how it is read.
struct Quantity {
    name: &'static str,
    /// Units that are told where one is missing.
    units: [&'static str; 3],
    example: &'static str,
    /// In base units.
    read: fn(&str) -> Result<u64, UnitError>,
}

impl Quantity {
    /// An amount that `allows` takes; of any other it is told to write `instead`.
    fn that(
        &self,
        written: &Written,
        allows: &dyn Fn(u64) -> bool,
        instead: &str,
    ) -> Result<u64, String> {
        let bare = match &written.value {
            Value::Text(text) => {
                let found = (self.read)(text).map_err(|error| error.to_string())?;
                if text.ends_with(char::is_alphabetic) {
                    return if allows(found) {
                        Ok(found)
                    } else {
                        Err(no_amount(written, instead))
                    };
                }
                text.clone()
            }
            Value::Whole(0..) => written.literal(),
            Value::Number(number) if *number >= 0.0 && number.is_finite() => written.literal(),
            _ => {
                let Self { name, example, .. } = self;
                return Err(format!(
                    "{} is not a {name}: write it with its unit, such as `{example}`",
                    written.shown()
                ));
            }
        };
        Err(self.without_unit(&bare, allows).unwrap_or_else(|| no_amount(written, instead)))
    }

    /// The sentence about a number without a unit: those units are told that make it one that is
    /// allowed. `None` if there is none.
    fn without_unit(&self, bare: &str, allows: &dyn Fn(u64) -> bool) -> Option<String> {
        // Nothing is the same in all units.
        let is_zero = bare.trim_matches(['0', '.']).is_empty();
        let count = if is_zero { 1 } else { self.units.len() };
        let fitting: Vec<String> = self.units[..count]
            .iter()
            .map(|unit| format!("{bare}{unit}"))
            .filter(|text| (self.read)(text).is_ok_and(allows))
            .map(|text| format!("`{text}`"))
            .collect();
        let texts = match fitting.as_slice() {
            [] => return None,
            [one] => one.clone(),
            [others @ .., last] => format!("{} or {last}", others.join(", ")),
        };
        Some(format!("`{bare}` is a {} without its unit: write {texts}", self.name))
    }
}

fn no_amount(written: &Written, instead: &str) -> String {
    format!("{}: write {instead}", written.shown())
}

fn amount(amount: impl Into<u64>) -> Written {
    amount.into().into()
}

/// The words for an amount, in the largest unit of which it is a whole number.
fn words(amount: u64, units: [(u64, &str); 4]) -> String {
    let (factor, unit) =
        units.into_iter().find(|(factor, _)| amount.is_multiple_of(*factor)).unwrap_or(units[3]);
    format!("{}{unit}", amount / factor)
}

pub(crate) fn time_words(nanoseconds: u64) -> String {
    words(nanoseconds, [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
}

pub(crate) fn rate_words(bps: u64) -> String {
    words(bps, [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")])
}

/// Declares a quantity: what JSON Schema says of it, how it is read, and how it is written in words.
macro_rules! quantity {
    (
        $(#[doc = $doc:literal])+
        $name:ident($of:ty), $schema:expr, $read:expr, $words:expr
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub $of);

        impl Field for $name {
            fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
                let read: fn(&Written) -> Result<$of, String> = $read;
                read(written).map(Self).map_err(|says| reader.fault(says)).ok()
            }

            fn write(&self, form: Form) -> Written {
                let words: fn($of) -> Written = $words;
                match form {
                    Form::Numbers => amount(self.0),
                    Form::Words | Form::AllWords => words(self.0),
                }
            }

            fn schema(definitions: &mut Definitions) -> Written {
                refer::<Self>(stringify!($name), definitions, |_| {
                    let (kind, format): (&[&str], &str) = $schema;
                    let kind = if let [one] = kind { (*one).into() } else { texts(kind.iter().copied()) };
                    table([
                        ("type", kind),
                        ("format", format.into()),
                        ("description", sentence(&[$($doc),+])),
                    ])
                })
            }
        }
    };
}

quantity!(
    /// A time: text with a unit, such as `5ms`.
    Nanoseconds(u64), (&["string"], "time"), read_time, |ns| time_words(ns).into()
);

quantity!(
    /// A time above 0: text with a unit, such as `5ms`.
    PositiveNanoseconds(u64), (&["string"], "time"),
    |written| time_that(written, |ns| ns > 0, "a time above 0, such as `5ms`"),
    |ns| time_words(ns).into()
);

quantity!(
    /// How much speech is in a packet: `5ms`, `10ms`, `20ms`, `30ms`, `40ms` or `60ms`.
    PacketTime(u64), (&["string"], "time"),
    // At each of these the rate is a whole number of bit/s.
    |written| time_that(
        written,
        |ns| [5, 10, 20, 30, 40, 60].contains(&(ns / 1_000_000)) && ns % 1_000_000 == 0,
        "5ms, 10ms, 20ms, 30ms, 40ms or 60ms",
    ),
    |ns| time_words(ns).into()
);

quantity!(
    /// The rate of a line: text with a unit, from 1kbit to 1tbit.
    LineRate(u64), (&["string"], "rate"), line_rate, |bps| rate_words(bps).into()
);

quantity!(
    /// How much a flow sends: an amount of data that is not nothing.
    FlowBytes(u64), (&["string", "integer"], "size"),
    |written| size_above_0(written, ", or leave the key out for a flow without end"),
    amount
);

quantity!(
    /// How much a server answers with: an amount of data that is not nothing.
    AnswerBytes(u64), (&["string", "integer"], "size"), |written| size_above_0(written, ""), amount
);

quantity!(
    /// A receive window: an amount of data of less than 4 GiB.
    WindowBytes(u32), (&["string", "integer"], "size"),
    |written| u32::try_from(read_size(written)?)
        .map_err(|_| format!("{}: write less than 4gb", written.shown())),
    amount
);

quantity!(
    /// Payload of a ping: an amount of data that one IP packet can carry, 65507 bytes or less.
    Payload(u32), (&["string", "integer"], "size"),
    |written| match read_size(written)? {
        bytes @ 0..=MAX_PAYLOAD_BYTES => Ok(bytes as u32),
        bytes => Err(format!(
            "`{bytes}`: write {MAX_PAYLOAD_BYTES} bytes or less, since no IP packet is longer"
        )),
    },
    amount
);

quantity!(
    /// A differentiated services code point: a name such as EF or CS1, or a number from 0 to 63.
    DscpValue(u8), (&["string", "integer"], "dscp"),
    |written| {
        let text = written.plain();
        Dscp::parse(&text).map(Dscp::get).ok_or_else(|| no_dscp(&text))
    },
    amount
);

/// The sentence about a text that is no code point.
#[must_use]
pub fn no_dscp(text: &str) -> String {
    format!("`{text}` is no DSCP: write a name such as EF or CS1, or a number from 0 to 63")
}

fn line_rate(written: &Written) -> Result<u64, String> {
    rate_that(written, |bps| LINE_RATES_BPS.contains(&bps), LINE_RATES)
}

/// The rate of a shaper: that of a line, or a share of the line's such as `95%`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShaperRate {
    /// In bit/s.
    Rate(u64),
    /// Percent of the line's rate, as written, with the sign.
    Share(String),
}

impl ShaperRate {
    /// The rate in bit/s, where the line has `line_bps`; `None` of a share where it has no rate.
    #[must_use]
    pub fn bps(&self, line_bps: Option<u64>) -> Option<u64> {
        match self {
            Self::Rate(bps) => Some(*bps),
            Self::Share(share) => {
                let percent: f64 = share.trim_end_matches('%').parse().ok()?;
                Some((line_bps? as f64 * percent / 100.0).round_ties_even() as u64)
            }
        }
    }
}

impl Field for ShaperRate {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        if let Value::Text(text) = &written.value
            && let Some(share) = text.strip_suffix('%')
        {
            let digits = share.replacen('.', "", 1);
            let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let percent =
                share.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= MAX_SHARE);
            if !plain || percent.is_none() {
                reader.fault(format!("{}: write a share above 0%, such as 95%", written.shown()));
                return None;
            }
            return Some(Self::Share(text.clone()));
        }
        line_rate(written).map(Self::Rate).map_err(|says| reader.fault(says)).ok()
    }

    fn write(&self, form: Form) -> Written {
        match self {
            Self::Share(share) => share.clone().into(),
            Self::Rate(bps) => LineRate(*bps).write(form),
        }
    }

    fn schema(definitions: &mut Definitions) -> Written {
        refer::<Self>("ShaperRate", definitions, |_| {
            table([
                ("type", "string".into()),
                ("format", "rate".into()),
                (
                    "description",
                    "The rate of a shaper: that of a line, or a share of the line's such as `95%`."
                        .into(),
                ),
            ])
        })
    }
}

/// How many flows there are: a number, or the name of a parameter of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowCount {
    /// So many.
    Number(u64),
    /// As many as the parameter says.
    Parameter(String),
}

impl Field for FlowCount {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        match &written.value {
            Value::Text(text) if is_identifier(text) => Some(Self::Parameter(text.clone())),
            Value::Whole(count @ 1..=MAX_FLOWS) => Some(Self::Number(count.unsigned_abs())),
            _ => {
                let allowed = format!(
                    "a whole number from 1 to {MAX_FLOWS}, or the name of a parameter of the test"
                );
                reader.wanted(written, &allowed)
            }
        }
    }

    fn write(&self, _: Form) -> Written {
        match self {
            Self::Number(count) => (*count).into(),
            Self::Parameter(name) => name.clone().into(),
        }
    }

    fn schema(definitions: &mut Definitions) -> Written {
        refer::<Self>("FlowCount", definitions, |_| {
            table([
                ("type", texts(["integer", "string"])),
                ("minimum", 1i64.into()),
                ("maximum", MAX_FLOWS.into()),
                (
                    "description",
                    "How many flows there are: a number, or the name of a parameter of the test."
                        .into(),
                ),
            ])
        })
    }
}

fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// An IPv4 packet of 65535 bytes less its header and that of UDP or ICMP (RFC 791, RFC 768).
const MAX_PAYLOAD_BYTES: u64 = 65_507;

/// Flows of one name: as many as the shipped tests with a parameter allow.
pub(crate) const MAX_FLOWS: i64 = 10_000;

/// Percent of a line's rate: of one that a shaper is told to exceed on purpose.
const MAX_SHARE: f64 = 1000.0;

/// How long something takes; units as in Linux's `tc`.
const TIME: Quantity = Quantity {
    name: "time",
    units: ["s", "ms", "us"],
    example: "5ms",
    read: |text| parse_duration(text).map(Duration::as_nanos),
};

/// How fast a line is; units as in `tc`.
const RATE: Quantity = Quantity {
    name: "rate",
    units: ["mbit", "kbit", "bit"],
    example: "20mbit",
    read: |text| parse_rate(text).map(Rate::as_bps),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read_quantity;

    fn text(text: &str) -> Written {
        Written::of(Value::Text(text.to_owned()))
    }

    #[test]
    fn a_time_needs_its_unit() {
        assert_eq!(read_time(&text("1.5s")), Ok(1_500_000_000));
        let bare = |written: &Written| read_time(written).unwrap_err();
        assert_eq!(
            bare(&text("30")),
            "`30` is a time without its unit: write `30s`, `30ms` or `30us`"
        );
        assert_eq!(bare(&text("0")), "`0` is a time without its unit: write `0s`");
        assert_eq!(
            bare(&Written::of(Value::Number(5.0))),
            "`5.0` is a time without its unit: write `5.0s`, `5.0ms` or `5.0us`"
        );
        assert_eq!(
            bare(&Written::of(Value::Bool(true))),
            "true is not a time: write it with its unit, such as `5ms`"
        );
        assert!(bare(&text("-5ms")).starts_with("`-5ms` is not a time: "));
        for none in [Value::Whole(-5), Value::Number(f64::NAN), Value::List(Vec::new())] {
            assert!(bare(&Written::of(none)).contains("is not a time"));
        }
    }

    #[test]
    fn only_units_that_make_it_a_time_that_is_taken_are_told() {
        let bare = |kind, written: &Written| read_quantity(kind, written).unwrap_err();
        assert_eq!(
            bare("PositiveNanoseconds", &text("0")),
            "`0`: write a time above 0, such as `5ms`"
        );
        assert_eq!(
            bare("PacketTime", &text("20")),
            "`20` is a time without its unit: write `20ms`"
        );
        assert_eq!(
            bare("PacketTime", &text("7")),
            "`7`: write 5ms, 10ms, 20ms, 30ms, 40ms or 60ms"
        );
    }

    #[test]
    fn only_units_that_make_it_a_rate_of_a_line_are_told() {
        let bare = |written: &str| line_rate(&text(written)).unwrap_err();
        assert_eq!(bare("5"), "`5` is a rate without its unit: write `5mbit` or `5kbit`");
        assert_eq!(bare("0"), "`0`: write a rate from 1kbit to 1tbit");
        assert_eq!(bare("0.5"), "`0.5` is a rate without its unit: write `0.5mbit`");
        assert_eq!(
            bare("20000000"),
            "`20000000` is a rate without its unit: write `20000000kbit` or `20000000bit`"
        );
        assert_eq!(bare("0mbit"), "`0mbit`: write a rate from 1kbit to 1tbit");
        assert_eq!(
            read_rate(&text("20")).unwrap_err(),
            "`20` is a rate without its unit: write `20mbit`, `20kbit` or `20bit`"
        );
        assert_eq!(
            read_rate(&text("0")).unwrap_err(),
            "`0` is a rate without its unit: write `0mbit`"
        );
    }

    #[test]
    fn amounts_are_written_without_loss() {
        assert_eq!(
            [0, 30_000_000_000, 1_500_000_000, 7].map(time_words),
            ["0s", "30s", "1500ms", "7ns"]
        );
        assert_eq!(
            [20_000_000, 109_341_000, 1001].map(rate_words),
            ["20mbit", "109341kbit", "1001bit"]
        );
    }

    #[test]
    fn a_share_is_of_the_line() {
        let read = |word| Reader::read::<ShaperRate>(&text(word));
        assert_eq!(read("95%").unwrap().bps(Some(20_000_001)), Some(19_000_001));
        assert_eq!(read("95%").unwrap().bps(None), None);
        assert_eq!(read("5mbit").unwrap().bps(None), Some(5_000_000));
        for none in ["0%", "-5%", "%", ".%", "1e2%", "1001%", "nan%", "9..5%"] {
            assert_eq!(
                read(none).unwrap_err()[0].says,
                format!("`{none}`: write a share above 0%, such as 95%")
            );
        }
    }
}
