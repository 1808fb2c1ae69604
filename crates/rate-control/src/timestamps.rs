//! Round trips of TCP connections by their timestamps (RFC 7323).

use std::collections::VecDeque;

use weir_core::{Time, comes_before};

/// Timestamps of one connection that left and were not echoed yet.
///
/// A round trip lasts from the first packet out with a new timestamp to the first packet in that echoes it. K. Nichols,
/// `pping`, shows that this needs nothing but packet headers.
#[derive(Clone, Debug, Default)]
pub struct PendingTimestamps {
    /// With the time at which they left, oldest first.
    pending: VecDeque<(u32, Time)>,
}

impl PendingTimestamps {
    /// Notes that a packet with timestamp `value` left at `now`; only the first with a new one counts.
    pub fn on_sent(&mut self, value: u32, now: Time) {
        if self.pending.back().is_none_or(|&(last, _)| comes_before(last, value)) {
            self.pending.push_back((value, now));
        }
    }

    /// Takes the timestamp that a packet which came in echoes. Returns when that timestamp left, if it is the first to
    /// echo it.
    pub fn on_echo(&mut self, echo: u32) -> Option<Time> {
        while let Some(&(value, sent)) = self.pending.front() {
            if comes_before(echo, value) {
                break;
            }
            self.pending.pop_front();
            if value == echo {
                return Some(sent);
            }
        }
        None
    }

    /// Forgets the oldest ones beyond `most`.
    pub fn keep(&mut self, most: usize) {
        self.pending.drain(..self.pending.len().saturating_sub(most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_out_and_the_first_echo_count() {
        let ms = Time::from_millis;
        // Around the end of the numbers, and not.
        for first in [7, u32::MAX] {
            let [next, last] = [1, 2].map(|more| first.wrapping_add(more));
            let mut pending = PendingTimestamps::default();
            for (value, at) in [(first, 1), (first, 2), (next, 3), (last, 4)] {
                pending.on_sent(value, ms(at));
            }
            assert_eq!(pending.on_echo(first.wrapping_sub(1)), None, "nobody's answer");
            assert_eq!(pending.on_echo(first), Some(ms(1)));
            assert_eq!(pending.on_echo(first), None);
            assert_eq!(pending.on_echo(last), Some(ms(4)), "the one between was answered with it");
            assert_eq!(pending.on_echo(next), None);
        }
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut pending = PendingTimestamps::default();
        for value in 0..5 {
            pending.on_sent(value, Time::from_millis(u64::from(value)));
        }
        pending.keep(2);
        assert_eq!(pending.on_echo(2), None);
        assert_eq!(pending.on_echo(3), Some(Time::from_millis(3)));
        pending.keep(2);
        assert_eq!(pending.on_echo(4), Some(Time::from_millis(4)));
    }
}
