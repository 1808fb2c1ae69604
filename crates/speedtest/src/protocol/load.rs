//! How loads are handed over: how long their messages are, when a server tells how it goes.

/// The sizes of the binary messages of ndt7 and throughput1: they grow with what was sent, so that a slow
/// line is not held up by one long message and a fast one not by many short ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSize {
    now: usize,
    most: usize,
}

impl MessageSize {
    /// Starts with messages of `first` bytes and grows up to `most`.
    #[must_use]
    pub const fn new(first: usize, most: usize) -> Self {
        Self { now: first, most }
    }

    /// The size of the next message after `sent` bytes of messages; doubles at most once a call.
    pub fn next(&mut self, sent: u64) -> usize {
        if self.now < self.most && self.now as u64 <= sent / FRACTION {
            self.now = (self.now * 2).min(self.most);
        }
        self.now
    }
}

/// A time that is drawn anew each time, exponentially, within bounds: a sampler that does not fall into
/// step with what it samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The mean, in nanoseconds, if there were no bounds.
    pub mean_ns: u64,
    /// Shortest time, in nanoseconds.
    pub min_ns: u64,
    /// Longest time, in nanoseconds.
    pub max_ns: u64,
}

impl Interval {
    /// The time that belongs to a number drawn evenly between 0 (not included) and 1, in nanoseconds.
    #[must_use]
    pub fn draw(self, uniform: f64) -> u64 {
        ((-uniform.ln() * self.mean_ns as f64) as u64).clamp(self.min_ns, self.max_ns)
    }
}

/// ndt7 specification, appendix on scaling: a message is a sixteenth of what was sent at most.
const FRACTION: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_keep_their_bounds() {
        let interval = Interval { mean_ns: 250, min_ns: 25, max_ns: 625 };
        assert_eq!([1.0, 0.5, 1e-9].map(|uniform| interval.draw(uniform)), [25, 173, 625]);
    }

    #[test]
    fn a_message_doubles_once_sixteen_of_its_size_were_sent() {
        let mut size = MessageSize::new(8192, 1 << 20);
        assert_eq!(size.next(0), 8192);
        assert_eq!(size.next(16 * 8192 - 1), 8192);
        assert_eq!(size.next(16 * 8192), 16384);
        assert_eq!(size.next(16 * 8192), 16384);
        assert_eq!(size.next(1 << 40), 32768);
        for _ in 0..10 {
            size.next(1 << 40);
        }
        assert_eq!(size.next(1 << 40), 1 << 20);
    }
}
