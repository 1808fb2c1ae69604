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
    let read = |text: &str| parse_duration(text).map(Duration::as_nanos);
    let bare = match with_unit(written, read, "time", "5ms")? {
        Amount::Of(nanoseconds) => return Ok(nanoseconds),
        Amount::Bare(bare) => bare,
    };
    let instead = if bare.trim_matches(['0', '.']).is_empty() {
        "`0s`".to_owned()
    } else {
        format!("`{bare}s`, `{bare}ms` or `{bare}us`")
    };
    Err(format!("`{bare}` is a time without its unit: write {instead}"))
}

/// Bits per second of a rate such as `20mbit`.
///
/// # Errors
/// If it is none, or a number without a unit.
pub fn read_rate(written: &Written) -> Result<u64, String> {
    match with_unit(written, |text| parse_rate(text).map(Rate::as_bps), "rate", "20mbit")? {
        Amount::Of(bps) => Ok(bps),
        Amount::Bare(bare) => Err(format!(
            "`{bare}` is a rate without its unit: write `{bare}mbit`, `{bare}kbit` or `{bare}bit`"
        )),
    }
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

/// An amount that was written.
enum Amount {
    /// With its unit, in base units.
    Of(u64),
    /// Without a unit, as it was written.
    Bare(String),
}

/// The amount that `read` finds in a text that ends in a unit.
fn with_unit(
    written: &Written,
    read: impl Fn(&str) -> Result<u64, UnitError>,
    quantity: &str,
    example: &str,
) -> Result<Amount, String> {
    match &written.value {
        Value::Text(text) => {
            let found = read(text).map_err(|error| error.to_string())?;
            let bare = !text.ends_with(char::is_alphabetic);
            Ok(if bare { Amount::Bare(text.clone()) } else { Amount::Of(found) })
        }
        Value::Whole(0..) => Ok(Amount::Bare(written.literal())),
        Value::Number(number) if *number >= 0.0 && number.is_finite() => {
            Ok(Amount::Bare(written.literal()))
        }
        _ => Err(format!(
            "{} is not a {quantity}: write it with its unit, such as `{example}`",
            written.shown()
        )),
    }
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
    |written| match read_time(written)? {
        0 => Err(format!("{}: write a time above 0, such as `5ms`", written.shown())),
        nanoseconds => Ok(nanoseconds),
    },
    |ns| time_words(ns).into()
);

quantity!(
    /// How much speech is in a packet: `5ms`, `10ms`, `20ms`, `30ms`, `40ms` or `60ms`.
    PacketTime(u64), (&["string"], "time"),
    |written| match read_time(written)? {
        // At each of these the rate is a whole number of bit/s.
        ns if [5, 10, 20, 30, 40, 60].contains(&(ns / 1_000_000)) && ns % 1_000_000 == 0 => Ok(ns),
        _ => Err(format!("{}: write 5ms, 10ms, 20ms, 30ms, 40ms or 60ms", written.shown())),
    },
    |ns| time_words(ns).into()
);

quantity!(
    /// The rate of a line: text with a unit, from 1kbit to 1tbit.
    LineRate(u64), (&["string"], "rate"), line_rate, |bps| rate_words(bps).into()
);

quantity!(
    /// How much a flow sends: an amount of data that is not nothing.
    FlowBytes(u64), (&["string", "integer"], "size"),
    |written| match read_size(written)? {
        0 => Err("`0`: write 1 or more, or leave the key out for a flow without end".to_owned()),
        bytes => Ok(bytes),
    },
    amount
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
    match read_rate(written)? {
        bps if LINE_RATES_BPS.contains(&bps) => Ok(bps),
        _ => Err(format!("{}: write {LINE_RATES}", written.shown())),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
