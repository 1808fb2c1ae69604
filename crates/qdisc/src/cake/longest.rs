//! The longest queue: bytes waiting in each, and a heap over them while the memory limit is hit.
//!
//! The heap, like Linux', is kept only for some time after an overflow, so that a queue that never
//! overflows pays nothing for it. Which of several equally long queues is found first depends on the
//! heap's history; it is Linux' here. So is that a shrinking queue sinks past one longer queue only
//! (`sift_down`): until the heap is built anew, others may lie hidden beneath it, and a queue is found
//! that is not the longest.

use super::flows::FLOWS;

/// Bytes waiting in every queue of all tins.
#[derive(Debug)]
pub(super) struct Longest {
    /// By queue: tin times [`FLOWS`] plus flow.
    bytes: Vec<u32>,
    /// Queues, the longest on top when it has just been built; empty until the first overflow.
    heap: Vec<u16>,
    /// Where each queue is in the heap.
    place: Vec<u16>,
    /// For how many more packets the heap is kept; 0 if it is not.
    kept: u16,
}

impl Longest {
    pub fn new() -> Self {
        Self { bytes: vec![0; QUEUES], heap: Vec::new(), place: Vec::new(), kept: 0 }
    }

    /// `bytes` more wait in `queue`, and then, in its place, `less` of them do not.
    pub fn add(&mut self, queue: usize, bytes: u32, less: u32) {
        self.bytes[queue] += bytes;
        self.bytes[queue] -= less;
        if self.kept > 0 {
            self.sift_up(self.place[queue]);
        }
    }

    pub fn subtract(&mut self, queue: usize, bytes: u32) {
        self.bytes[queue] -= bytes;
        if self.kept > 0 {
            self.sift_down(self.place[queue]);
        }
    }

    /// The queue on top of the heap, the longest if it has just been built; from here on it is kept.
    pub fn find(&mut self) -> usize {
        if self.heap.is_empty() {
            let nth = |n: usize| (n % TINS * FLOWS + n / TINS) as u16;
            self.heap = (0..QUEUES).map(nth).collect();
            self.place = vec![0; QUEUES];
            for (place, &queue) in self.heap.iter().enumerate() {
                self.place[usize::from(queue)] = place as u16;
            }
        }
        if self.kept == 0 {
            for place in (0..QUEUES / 2).rev() {
                self.sift_down(place as u16);
            }
        }
        self.kept = KEPT;
        usize::from(self.heap[0])
    }

    /// The heap is wrong: it is built again before it is used again.
    pub fn forget(&mut self) {
        self.kept = 0;
    }

    /// A packet was sent.
    pub fn age(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// Linux' `cake_heapify`, which goes on to compare with the queue that has risen, not with the one
    /// that sinks: where the heap is in order no queue sinks by more than one place.
    fn sift_down(&mut self, place: u16) {
        let mut at = usize::from(place);
        let mut most = self.bytes_at(at);
        loop {
            let mut largest = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < QUEUES && self.bytes_at(child) > most {
                    largest = child;
                    most = self.bytes_at(child);
                }
            }
            if largest == at {
                return;
            }
            self.swap(at, largest);
            at = largest;
        }
    }

    fn sift_up(&mut self, place: u16) {
        let mut at = usize::from(place);
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.bytes_at(at) <= self.bytes_at(parent) {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn bytes_at(&self, place: usize) -> u32 {
        self.bytes[usize::from(self.heap[place])]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.place[usize::from(self.heap[place])] = place as u16;
        }
    }
}

/// Most tins (`CAKE_MAX_TINS`).
pub(super) const TINS: usize = 8;
const QUEUES: usize = TINS * FLOWS;
/// Packets for which the heap is kept behind an overflow (`overflow_timeout`).
const KEPT: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_found_through_changes() {
        let mut longest = Longest::new();
        longest.add(7, 300, 0);
        longest.add(1024 + 5, 500, 0);
        assert_eq!(longest.find(), 1024 + 5);
        longest.subtract(1024 + 5, 300);
        assert_eq!(longest.find(), 7);
        longest.add(8_191, 400, 80);
        assert_eq!(longest.find(), 8_191);
        for _ in 0..KEPT {
            longest.age();
        }
        longest.add(9, 1_000, 0);
        assert_eq!(longest.find(), 9, "built again");
    }

    /// Of equal queues the one stays on top that was there; only a longer one takes its place.
    #[test]
    fn equal_queues_keep_their_places() {
        let mut longest = Longest::new();
        for queue in 0..3 {
            longest.add(queue, 500, 0);
        }
        assert_eq!(longest.find(), 0);
        longest.add(2, 1, 0);
        assert_eq!(longest.find(), 2);
        longest.subtract(2, 1);
        assert_eq!(longest.find(), 2, "as long as the others again");
        longest.subtract(2, 1);
        assert_ne!(longest.find(), 2);
    }

    /// Queues in the places 3, 7 and 2 of the heap (a tin's number is a place modulo 8). As it is built the first rises
    /// to the top, and the queues that sink for it stop above the second, which so lies beneath an empty one.
    #[test]
    fn a_longer_queue_may_lie_hidden_until_the_heap_is_built_anew() {
        let [first, hidden, short] = [3, 7, 2].map(|place| place * FLOWS);
        let mut longest = Longest::new();
        for (queue, bytes) in [(first, 100), (hidden, 90), (short, 50)] {
            longest.add(queue, bytes, 0);
        }
        assert_eq!(longest.find(), first);
        longest.subtract(first, 60);
        assert_eq!(longest.find(), short, "50 bytes, where another has 90");
        longest.forget();
        assert_eq!(longest.find(), hidden, "built again");
    }

    #[test]
    fn built_anew_it_agrees_with_a_scan() {
        let mut longest = Longest::new();
        let mut state = 1u64;
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let queue = (state >> 40) as usize % 50 * 163;
            let bytes = (state >> 33) as u32 % 1500;
            if longest.bytes[queue] > bytes && state >> 63 == 1 {
                longest.subtract(queue, bytes);
            } else {
                longest.add(queue, bytes, 0);
            }
            longest.forget();
            let found = longest.find();
            assert_eq!(longest.bytes[found], *longest.bytes.iter().max().unwrap());
        }
    }
}
