//! How long the messages of a WebSocket download are.

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

/// ndt7 specification, appendix on scaling: a message is a sixteenth of what was sent at most.
const FRACTION: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

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
