//! Recorded lines in Mahimahi's format.
//!
//! One whole number a line: a millisecond at which the line could deliver one packet of 1500 bytes;
//! equal lines are several packets in one millisecond. Behind its last line the recording starts over.

use weir_core::{Duration, Rate, Time};

/// A recorded line: its opportunities to deliver 1500 bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    opportunities_ms: Vec<u32>,
    period_ms: u32,
}

/// A text that is not a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is no line in it.
    #[error("trace `{name}` is empty: write one millisecond a line, at least one above 0")]
    Empty {
        /// The trace's name.
        name: String,
    },
    /// A line is not a whole number.
    #[error("trace `{name}`, line {line}: `{text}` is not a whole number of milliseconds")]
    NotANumber {
        /// The trace's name.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The text of that line.
        text: String,
    },
    /// A line is earlier than the one before it.
    #[error(
        "trace `{name}`, line {line}: {now} ms comes after {before} ms; lines must not go back"
    )]
    Backwards {
        /// The trace's name.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The line's time.
        now: u32,
        /// The time on the line before.
        before: u32,
    },
    /// All lines are 0, so that it never starts over.
    #[error("trace `{name}` lasts 0 ms: its last line must be above 0")]
    NoTime {
        /// The trace's name.
        name: String,
    },
}

impl Trace {
    /// Bytes of IP packets that one opportunity delivers.
    pub const OPPORTUNITY_BYTES: u64 = 1500;

    /// Reads the recording called `name`.
    ///
    /// # Errors
    /// If it is empty, a line is not a whole number or goes back in time, or it lasts no time.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let mut opportunities_ms: Vec<u32> = Vec::new();
        for (index, row) in text.lines().enumerate() {
            let row = row.trim();
            if row.is_empty() {
                continue;
            }
            let line = index + 1;
            let now: u32 = row.parse().map_err(|_| TraceError::NotANumber {
                name: name.to_owned(),
                line,
                text: row.to_owned(),
            })?;
            if let Some(&before) = opportunities_ms.last()
                && now < before
            {
                return Err(TraceError::Backwards { name: name.to_owned(), line, now, before });
            }
            opportunities_ms.push(now);
        }
        let period_ms =
            *opportunities_ms.last().ok_or_else(|| TraceError::Empty { name: name.to_owned() })?;
        if period_ms == 0 {
            return Err(TraceError::NoTime { name: name.to_owned() });
        }
        Ok(Self { opportunities_ms, period_ms })
    }

    /// How long the recording is.
    #[must_use]
    pub const fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms as u64)
    }

    /// How many opportunities it has.
    #[must_use]
    pub const fn opportunities(&self) -> usize {
        self.opportunities_ms.len()
    }

    /// Rate of the recording on average.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        let bits = self.opportunities_ms.len() as u64 * Self::OPPORTUNITY_BYTES * 8;
        Rate::from_bps(bits * 1_000 / u64::from(self.period_ms))
    }

    /// When opportunity number `index` comes, counted from the start of the run.
    #[must_use]
    pub fn at(&self, index: u64) -> Time {
        let count = self.opportunities_ms.len() as u64;
        let (round, within) = (index / count, (index % count) as usize);
        Time::from_millis(
            round * u64::from(self.period_ms) + u64::from(self.opportunities_ms[within]),
        )
    }

    /// The first opportunity at `now` or later.
    #[must_use]
    pub fn first_from(&self, now: Time) -> u64 {
        let count = self.opportunities_ms.len() as u64;
        let period = self.period().as_nanos();
        // An opportunity at the very end of a round comes at the same time as those of 0 in the next.
        let round = now.as_nanos().saturating_sub(1) / period;
        let within = now.as_nanos() - round * period;
        let before =
            self.opportunities_ms.partition_point(|&ms| u64::from(ms) * 1_000_000 < within);
        round * count + before as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_starts_over() {
        let trace = Trace::parse("t", "0\n0\n3\n10\n").unwrap();
        assert_eq!(trace.period(), Duration::from_millis(10));
        assert_eq!(trace.mean_rate(), Rate::from_bps(4 * 12_000 * 100));
        let times: Vec<u64> = (0..9).map(|i| trace.at(i).as_nanos() / 1_000_000).collect();
        assert_eq!(times, [0, 0, 3, 10, 10, 10, 13, 20, 20]);
    }

    #[test]
    fn the_first_opportunity_from_a_time() {
        let trace = Trace::parse("t", "0\n0\n3\n10\n").unwrap();
        let first = |us: u64| trace.first_from(Time::from_nanos(us * 1_000));
        assert_eq!(first(0), 0);
        assert_eq!(first(1), 2);
        assert_eq!(first(3_000), 2);
        assert_eq!(first(3_001), 3);
        assert_eq!(first(10_000), 3);
        assert_eq!(first(10_001), 6);
        assert_eq!(first(20_000), 7);
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| Trace::parse("lte", text).unwrap_err().to_string();
        assert_eq!(
            error(""),
            "trace `lte` is empty: write one millisecond a line, at least one above 0"
        );
        assert_eq!(
            error("0\n5\nfive\n"),
            "trace `lte`, line 3: `five` is not a whole number of milliseconds"
        );
        assert_eq!(
            error("-1\n"),
            "trace `lte`, line 1: `-1` is not a whole number of milliseconds"
        );
        assert_eq!(
            error("5\n4\n"),
            "trace `lte`, line 2: 4 ms comes after 5 ms; lines must not go back"
        );
        assert_eq!(error("0\n0\n"), "trace `lte` lasts 0 ms: its last line must be above 0");
    }
}
