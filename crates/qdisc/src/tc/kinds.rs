//! The kinds of parameters that there are to declare, and how each is read.

use std::fmt::Display;

use weir_core::{Duration, Rate, units};

use super::SpecError;
use super::declared::{Declared, Plain, Read, Text};
use super::params::ParamKind;

/// A whole number from `low` to `high`, of what `unit` counts.
pub(crate) const fn number<T: Whole>(unit: &'static str, low: u64, high: u64) -> Declared<T> {
    assert!(high <= T::MAX, "the field's type cannot hold the largest number");
    Declared::new(ParamKind::Number { unit, range: (low, high) }, read_number)
}

/// How many bands there are, which are the discipline's classes and there by themselves.
pub(crate) const fn band_count<T: Whole>(low: u64, high: u64) -> Declared<T> {
    assert!(high <= T::MAX, "the field's type cannot hold the largest number");
    Declared::new(ParamKind::Bands { range: (low, high) }, read_number)
}

fn read_number<T: Whole>(text: &Text<'_>) -> Result<T, SpecError> {
    let (ParamKind::Number { range: (low, high), .. } | ParamKind::Bands { range: (low, high) }) =
        text.kind()
    else {
        unreachable!("`number` and `band_count` make no other kind")
    };
    // `tc` takes decimal and, behind 0x, hexadecimal.
    let value = match text.text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.text.parse().ok(),
    };
    let value = value.filter(|value| (low..=high).contains(value));
    value.map(T::of).ok_or_else(|| bad_range(text, low, high))
}

/// A whole number from `low` to `high`, which may be negative, of what `unit` counts.
pub(crate) const fn integer(unit: &'static str, low: i32, high: i32) -> Declared<i32> {
    Declared::new(ParamKind::Integer { unit, range: (low as i64, high as i64) }, read_integer)
}

fn read_integer(text: &Text<'_>) -> Result<i32, SpecError> {
    let ParamKind::Integer { range: (low, high), .. } = text.kind() else {
        unreachable!("`integer` makes no other kind")
    };
    let value = text.text.parse().ok();
    let value = value.filter(|&value| (low..=high).contains(&i64::from(value)));
    value.ok_or_else(|| bad_range(text, low, high))
}

/// A number from `low` to `high` with decimals.
pub(crate) const fn real(unit: &'static str, low: f64, high: f64) -> Declared<f64> {
    Declared::new(ParamKind::Real { unit, range: (low, high) }, read_real)
}

fn read_real(text: &Text<'_>) -> Result<f64, SpecError> {
    let ParamKind::Real { range: (low, high), .. } = text.kind() else {
        unreachable!("`real` makes no other kind")
    };
    let value = text.text.parse().ok().filter(|value| (low..=high).contains(value));
    value.ok_or_else(|| bad_range(text, low, high))
}

/// A probability, from 0 to 1.
pub(crate) const fn probability() -> Declared<f64> {
    Declared::new(ParamKind::Probability, |text| {
        let value = text.text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
        value.ok_or_else(|| bad_range(text, 0, 1))
    })
}

/// A share in percent, from 0 to 100.
pub(crate) const fn percent() -> Declared<f64> {
    Declared::new(ParamKind::Percent, |text| {
        let number = text.text.strip_suffix('%').unwrap_or(text.text).parse().ok();
        let value = number.filter(|value| (0.0..=100.0).contains(value));
        value.ok_or_else(|| bad_range(text, 0, 100))
    })
}

/// A hexadecimal class number.
pub(crate) const fn minor() -> Declared<u16> {
    Declared::new(ParamKind::Minor, |text| {
        read_minor(text.text).ok_or_else(|| text.bad("write a hexadecimal number from 0 to ffff"))
    })
}

/// The class number that `text` writes, in hexadecimal.
pub(super) fn read_minor(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// An amount of bytes.
pub(crate) const fn size() -> Declared<u64> {
    Declared::new(ParamKind::Size, read_size)
}

/// The depth of a bucket in bytes, behind which a `/` and a cell may stand, as in `burst 10kb/8`.
pub(crate) const fn depth() -> Declared<u64> {
    Declared::new(ParamKind::Size, read_depth)
}

/// The depth of a bucket of which 0 would let nothing pass.
pub(crate) const fn nonzero_depth() -> Declared<u64> {
    Declared::new(ParamKind::Size, |text| nonzero(text, read_depth(text)?))
}

/// The cell is the step of a table of times, which `tc` computes and Linux 6.12 does not read.
fn read_depth(text: &Text<'_>) -> Result<u64, SpecError> {
    let Some((size, cell)) = text.text.split_once('/') else { return read_size(text) };
    if !cell.parse().is_ok_and(u32::is_power_of_two) {
        return Err(text.bad("the cell behind the `/` is a power of two"));
    }
    size_in(text, size)
}

/// An amount of bytes of which 0 would let nothing pass.
pub(crate) const fn nonzero_size() -> Declared<u64> {
    Declared::new(ParamKind::Size, |text| nonzero(text, read_size(text)?))
}

fn nonzero(text: &Text<'_>, bytes: u64) -> Result<u64, SpecError> {
    if bytes == 0 {
        return Err(text.bad("write a size of at least 1 byte"));
    }
    Ok(bytes)
}

/// An amount of bytes, which `tc` and the kernel keep in 32 bits.
pub(crate) fn read_size(text: &Text<'_>) -> Result<u64, SpecError> {
    size_in(text, text.text)
}

/// `word`, which is the text or a part of it, as a size that fits into 32 bits.
fn size_in(text: &Text<'_>, word: &str) -> Result<u64, SpecError> {
    let size = units::parse_size(word).map_err(|error| text.wrap(&error))?;
    let bytes = u32::try_from(size.get());
    bytes.map(u64::from).map_err(|_| text.bad("write a size below 4gb"))
}

/// A rate of at least 8 bit/s, or a share of the line's rate such as `95%`.
pub(crate) const fn rate() -> Declared<Rate> {
    Declared::new(ParamKind::Rate, |text| text.rate_in(text.text))
}

/// A time that fits into 32 bits of microseconds, as `tc` hands times over.
pub(crate) const fn time() -> Declared<Duration> {
    Declared::new(ParamKind::Time, read_time)
}

/// A time that fits into 32 bits of nanoseconds, as `tc` hands over those of timers; a bare number is nanoseconds.
pub(crate) const fn short_time() -> Declared<Duration> {
    Declared::new(ParamKind::Time, |text| {
        let time = units::parse_time64(text.text).map_err(|error| text.wrap(&error))?;
        time_up_to(text, time, Duration::from_nanos(U32), "4294ms")
    })
}

/// The text as a time that fits into 32 bits of microseconds.
pub(crate) fn read_time(text: &Text<'_>) -> Result<Duration, SpecError> {
    let time = units::parse_time(text.text).map_err(|error| text.wrap(&error))?;
    time_up_to(text, time, Duration::from_micros(U32), "4294s")
}

fn time_up_to(
    text: &Text<'_>,
    time: Duration,
    most: Duration,
    shown: &str,
) -> Result<Duration, SpecError> {
    if time > most {
        return Err(text.bad(&format!("write a time up to {shown}")));
    }
    Ok(time)
}

/// A word that switches something on, which is off where it is not written.
pub(crate) const fn switch() -> Declared<bool> {
    Declared::new(ParamKind::Switch { off: None }, |text| Ok(text.text == "on")).default("off")
}

/// One of several words behind the name, of which the first means `false` and every other `true`.
pub(crate) const fn either(words: &'static [&'static str]) -> Declared<bool> {
    Declared::new(ParamKind::Choice(words), read_either)
}

fn read_either(text: &Text<'_>) -> Result<bool, SpecError> {
    let ParamKind::Choice(words) = text.kind() else {
        unreachable!("`either` makes no other kind")
    };
    let place = words.iter().position(|word| *word == text.text);
    place.map(|place| place > 0).ok_or_else(|| not_among(text, words))
}

/// One of several words behind the name.
pub(crate) const fn one_of<T: Choice>() -> Declared<T> {
    Declared::new(ParamKind::Choice(T::WORDS), read_choice)
}

/// One of several words that stand alone, the first of which also names the parameter.
pub(crate) const fn word<T: Choice>() -> Declared<T> {
    Declared::new(ParamKind::Word(T::WORDS), read_choice)
}

fn read_choice<T: Choice>(text: &Text<'_>) -> Result<T, SpecError> {
    T::named(text.text).ok_or_else(|| not_among(text, T::WORDS))
}

/// Several words behind the name: `takes` says how many, and `read` what they mean.
pub(crate) const fn words<T: Plain>(
    shape: &'static str,
    takes: fn(&[&str]) -> usize,
    read: Read<T>,
) -> Declared<T> {
    Declared::new(ParamKind::Words { shape, takes }, read)
}

/// The words themselves.
pub(crate) fn as_words(text: &Text<'_>) -> Result<Vec<String>, SpecError> {
    Ok(text.words().into_iter().map(str::to_owned).collect())
}

fn bad_range(text: &Text<'_>, low: impl Display, high: impl Display) -> SpecError {
    text.bad(&format!("write a number from {low} to {high}"))
}

fn not_among(text: &Text<'_>, words: &[&str]) -> SpecError {
    text.bad(&format!("write one of {}", words.join(", ")))
}

/// A type with a word for each of its values.
pub(crate) trait Choice: Plain {
    /// The words.
    const WORDS: &'static [&'static str];

    /// The value of that name.
    fn named(word: &str) -> Option<Self>;
}

/// Gives a type its words.
macro_rules! choice {
    ($type:ty { $( $word:literal => $value:expr, )+ }) => {
        impl $crate::tc::Plain for $type {}

        impl $crate::tc::Choice for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn named(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some($value), )+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use choice;

/// A type of whole numbers.
pub(crate) trait Whole: Plain + Copy + PartialEq {
    /// The largest.
    const MAX: u64;

    /// A number up to the largest.
    fn of(number: u64) -> Self;
}

macro_rules! whole {
    ($($type:ty),+) => { $(
        impl Plain for $type {}

        impl Whole for $type {
            const MAX: u64 = <$type>::MAX as u64;

            fn of(number: u64) -> Self {
                number as Self
            }
        }
    )+ };
}
whole!(u8, u16, u32, u64, usize);

/// The most that 32 bits hold.
const U32: u64 = u32::MAX as u64;

impl Plain for i32 {}
impl Plain for f64 {}
impl Plain for bool {}
impl Plain for Rate {}
impl Plain for Duration {}
impl Plain for Vec<u32> {}
impl Plain for Vec<String> {}
