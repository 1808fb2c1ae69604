//! iproute2's units: `20mbit`, `5ms`, `64kb`.
//!
//! The words and factors are those of `tc(8)`, section "PARAMETERS": in rates, `k` is 1000 and a
//! trailing `bps` counts bytes per second; in sizes, `k` is 1024 and `kbit` counts bits.

use crate::{Bytes, Duration, Rate};

/// A text that is not a quantity of the kind that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind}: {allowed}")]
pub struct UnitError {
    /// The text as it was given.
    pub text: String,
    /// The quantity that was expected: "rate", "time", "size" or "percentage".
    pub kind: &'static str,
    /// The forms that are allowed.
    pub allowed: &'static str,
}

/// Parses a rate such as `20mbit`, `1.5gbit`, `64kibit`, `125kbps` (bytes per second); a bare number
/// is bit/s.
///
/// # Errors
/// If the text is not a number with one of `tc`'s rate units, or the value is negative or too great.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    const ALLOWED: &str =
        "write a number with bit, kbit, mbit, gbit or tbit (bps, kbps... for bytes per second)";
    let fail = || UnitError { text: text.to_owned(), kind: "rate", allowed: ALLOWED };
    let (number, unit) = split(text).ok_or_else(fail)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        "tbit" => 1e12,
        "kibit" => 1024.0,
        "mibit" => 1024f64.powi(2),
        "gibit" => 1024f64.powi(3),
        "tibit" => 1024f64.powi(4),
        "bps" => 8.0,
        "kbps" => 8e3,
        "mbps" => 8e6,
        "gbps" => 8e9,
        "tbps" => 8e12,
        "kibps" => 8.0 * 1024.0,
        "mibps" => 8.0 * 1024f64.powi(2),
        "gibps" => 8.0 * 1024f64.powi(3),
        "tibps" => 8.0 * 1024f64.powi(4),
        _ => return Err(fail()),
    };
    whole(number * factor)
        .map(Rate::from_bps)
        .ok_or_else(|| UnitError { allowed: GREATEST_RATE, ..fail() })
}

/// Parses a time such as `5ms`, `100us`, `1.5s`; a bare number is microseconds, as in `tc`.
///
/// # Errors
/// If the text is not a number with one of `tc`'s time units, or the value is negative or too great.
pub fn parse_time(text: &str) -> Result<Duration, UnitError> {
    time_in(text, "us")
}

/// Parses one of the times that `tc` keeps in 64 bits (`get_time64`): as [`parse_time`], but a bare number is nanoseconds.
///
/// # Errors
/// As [`parse_time`].
pub fn parse_time64(text: &str) -> Result<Duration, UnitError> {
    time_in(text, "ns")
}

/// A time, of which a bare number is in units of `bare`.
fn time_in(text: &str, bare: &str) -> Result<Duration, UnitError> {
    const ALLOWED: &str = "write a number that is not negative with ns, us, ms or s";
    let fail = || UnitError { text: text.to_owned(), kind: "time", allowed: ALLOWED };
    let (number, unit) = split(text).ok_or_else(fail)?;
    let unit = if unit.is_empty() { bare } else { unit };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        "ms" | "msec" | "msecs" => 1e6,
        "s" | "sec" | "secs" => 1e9,
        _ => return Err(fail()),
    };
    whole(number * factor)
        .map(Duration::from_nanos)
        .ok_or_else(|| UnitError { allowed: GREATEST_TIME, ..fail() })
}

/// Parses how long something lasts: a time as [`parse_time`] reads it, or one with `min` or `h`, which `tc` has not.
///
/// # Errors
/// If the text is not a number with one of these units, or the value is negative or too great.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    const ALLOWED: &str = "write a number that is not negative with ns, us, ms, s, min or h";
    let fail = || UnitError { text: text.to_owned(), kind: "time", allowed: ALLOWED };
    let (number, unit) = split(text).ok_or_else(fail)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "min" => 60e9,
        "h" => 3600e9,
        _ => {
            let allowed = |error: UnitError| match error.allowed {
                GREATEST_TIME => error,
                _ => fail(),
            };
            return parse_time(text).map_err(allowed);
        }
    };
    whole(number * factor)
        .map(Duration::from_nanos)
        .ok_or_else(|| UnitError { allowed: GREATEST_TIME, ..fail() })
}

/// Parses a size such as `64kb`, `1600`, `1mbit` (bits); a bare number is bytes, `k` is 1024.
///
/// # Errors
/// If the text is not a number with one of `tc`'s size units, or the value is negative or too great.
pub fn parse_size(text: &str) -> Result<Bytes, UnitError> {
    const ALLOWED: &str = "write a number with b, kb, mb or gb (kbit, mbit, gbit for bits)";
    let fail = || UnitError { text: text.to_owned(), kind: "size", allowed: ALLOWED };
    let (number, unit) = split(text).ok_or_else(fail)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024f64.powi(2),
        "g" | "gb" => 1024f64.powi(3),
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024f64.powi(2) / 8.0,
        "gbit" => 1024f64.powi(3) / 8.0,
        _ => return Err(fail()),
    };
    whole(number * factor)
        .map(Bytes::new)
        .ok_or_else(|| UnitError { allowed: GREATEST_SIZE, ..fail() })
}

/// Parses a percentage such as `95%`; `None` if there is no percent sign.
///
/// # Errors
/// If there is a percent sign after something that is not a number from 0 to 100.
pub fn parse_percent(text: &str) -> Option<Result<f64, UnitError>> {
    let number = text.strip_suffix('%')?;
    Some(number.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| UnitError {
        text: text.to_owned(),
        kind: "percentage",
        allowed: "write a number from 0 to 100 before the %",
    }))
}

/// The number at the start of `text` and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, &text[end..]))
}

/// `value` as an integer, rounded to the nearest, if it is one that can be held.
fn whole(value: f64) -> Option<u64> {
    (0.0..=u64::MAX as f64 / 2.0).contains(&value).then(|| value.round() as u64)
}

/// The greatest quantities that are read, as error messages state them: 2^63 bit/s, ns and bytes, rounded down.
const GREATEST_RATE: &str = "write 9223372tbit or less";
const GREATEST_TIME: &str = "write 9223372036s or less";
const GREATEST_SIZE: &str = "write 8589934591gb or less";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(parse_rate("20mbit"), Ok(Rate::from_mbit(20)));
        assert_eq!(parse_rate("109341kbit"), Ok(Rate::from_bps(109_341_000)));
        assert_eq!(parse_rate("1.5Gbit"), Ok(Rate::from_mbit(1500)));
        assert_eq!(parse_rate("125kbps"), Ok(Rate::from_mbit(1)));
        assert_eq!(parse_rate("1000"), Ok(Rate::from_bps(1000)));
        assert_eq!(parse_rate("1kibit"), Ok(Rate::from_bps(1024)));
        assert_eq!(
            parse_rate("-5mbit").unwrap_err().to_string(),
            "`-5mbit` is not a rate: write a number with bit, kbit, mbit, gbit or tbit \
             (bps, kbps... for bytes per second)"
        );
        assert!(parse_rate("fast").is_err());
        assert!(parse_rate("20 mbit").is_err());
    }

    #[test]
    fn times() {
        assert_eq!(parse_time("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(parse_time("100"), Ok(Duration::from_micros(100)));
        assert_eq!(parse_time64("100"), Ok(Duration::from_nanos(100)));
        assert_eq!(parse_time64("100us"), parse_time("100"));
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("250ns"), Ok(Duration::from_nanos(250)));
        assert!(parse_time("-1ms").is_err());
        assert!(parse_time("5min").is_err());
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(parse_duration("1.5min"), Ok(Duration::from_millis(90_000)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_millis(7_200_000)));
        assert_eq!(
            parse_duration("10m").unwrap_err().to_string(),
            "`10m` is not a time: write a number that is not negative with ns, us, ms, s, min or h"
        );
        assert!(parse_duration("-1h").is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("1600"), Ok(Bytes::new(1600)));
        assert_eq!(parse_size("64kb"), Ok(Bytes::new(65_536)));
        assert_eq!(parse_size("32Mb"), Ok(Bytes::new(33_554_432)));
        assert_eq!(parse_size("1kbit"), Ok(Bytes::new(128)));
        assert!(parse_size("big").is_err());
    }

    #[test]
    fn a_quantity_beyond_the_greatest_is_told_which_that_is() {
        let refused = |error: UnitError| error.to_string();
        assert!(parse_rate("9223372tbit").is_ok());
        assert_eq!(
            refused(parse_rate("9223373tbit").unwrap_err()),
            "`9223373tbit` is not a rate: write 9223372tbit or less"
        );
        assert!(parse_time("9223372036s").is_ok() && parse_duration("2562047h").is_ok());
        for error in [parse_time("9223372037s"), parse_duration("9223372037s")] {
            assert_eq!(
                refused(error.unwrap_err()),
                "`9223372037s` is not a time: write 9223372036s or less"
            );
        }
        assert_eq!(
            refused(parse_duration("2562048h").unwrap_err()),
            "`2562048h` is not a time: write 9223372036s or less"
        );
        assert!(parse_size("8589934591gb").is_ok());
        assert_eq!(
            refused(parse_size("8589934593gb").unwrap_err()),
            "`8589934593gb` is not a size: write 8589934591gb or less"
        );
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("95%"), Some(Ok(95.0)));
        assert_eq!(parse_percent("95"), None);
        assert!(parse_percent("195%").unwrap().is_err());
    }
}
