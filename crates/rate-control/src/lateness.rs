//! Times at which the shaper's process was late, as on a busy machine.
//!
//! Packets that it held back meanwhile leave in a burst. The burst waits at the line for as long as the lateness
//! took, and no longer: an excess of that much is no want of capacity. While the process was away the line
//! may have been idle, so that the bytes that crossed it tell nothing of what it carries.

use weir_core::{Duration, Time};

use crate::quantities::Seconds;
use crate::spans::Spans;

/// The last times at which the shaper's process was late.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    spans: Spans,
}

impl Lateness {
    /// Never late yet.
    pub const fn new() -> Self {
        Self { spans: Spans::new(SHOWS) }
    }

    /// Notes that nobody acted from `since` to `now`.
    pub fn note(&mut self, since: Time, now: Time) {
        self.spans.push(since, now);
    }

    /// End of the last time of lateness: until then nothing tells what the line carries.
    pub fn last(&self) -> Option<Time> {
        self.spans.last().map(|(_, end)| end)
    }

    /// The excess that lateness may explain at `now`: the longest of those that still show.
    pub fn allowance(&self, now: Time) -> Seconds {
        let recent = self.spans.iter().rev().take_while(|&(_, end)| now.since(end) <= SHOWS);
        let longest = recent.map(|(since, end)| end.since(since)).max();
        Seconds::from(longest.unwrap_or(Duration::ZERO).min(MAX_ALLOWANCE))
    }
}

/// A burst is gone as soon as the rate leaves room for it: 15 ms at 97 % of the line.
const SHOWS: Duration = Duration::from_millis(500);
/// A machine that is later than this for long cannot keep delays short, and is not forgiven either.
const MAX_ALLOWANCE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_late_counts_for_half_a_second() {
        let ms = Time::from_millis;
        let mut late = Lateness::new();
        assert_eq!((late.last(), late.allowance(ms(0))), (None, Seconds::ZERO));
        late.note(ms(100), ms(108));
        late.note(ms(200), ms(203));
        assert_eq!((late.last(), late.allowance(ms(300))), (Some(ms(203)), Seconds(0.008)));
        assert_eq!(late.allowance(ms(650)), Seconds(0.003));
        assert_eq!(late.allowance(ms(704)), Seconds::ZERO);
        late.note(ms(800), ms(900));
        assert_eq!(late.allowance(ms(900)), Seconds(0.02));
    }
}
