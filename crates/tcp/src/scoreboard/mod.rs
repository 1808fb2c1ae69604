//! The retransmission queue: all segments that were sent and are not acknowledged yet.
//!
//! It counts the segments in flight (RFC 6675, "pipe"), tags segments by selective acknowledgements, and
//! keeps the order of transmission for loss detection by time (RFC 8985). The work for an acknowledgement
//! grows with the segments that it newly reports, not with the window.

mod entry;

use std::ops::Range;

pub(crate) use self::entry::{Delivered, Entry};
use self::entry::{Link, State};
use crate::segment::Block;

/// The retransmission queue with its counters.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Scoreboard {
    /// The first segment in the queue.
    una: u32,
    /// Number behind the last segment in the queue.
    nxt: u32,
    /// The segments, each at its number modulo the length, which is a power of two.
    ring: Vec<Entry>,
    /// Segments that arrived out of order; without SACK, the number of duplicate acknowledgements.
    pub sacked_out: u32,
    /// Segments marked as lost.
    pub lost_out: u32,
    /// Retransmissions under way.
    pub retrans_out: u32,
    /// Number behind the highest segment that arrived; `una` or less if none did.
    highest_sacked: u32,
    /// Pieces of memory that hold the segments: one a burst at first, later cut and joined by SACK blocks.
    pub pieces: u32,
    /// First segment that may wait for retransmission: none below it does. It may be acknowledged by now.
    retransmit_hint: u32,
    /// Whether the order of transmission is kept.
    is_by_time: bool,
    /// The oldest transmission that is not known to have arrived or to be lost.
    oldest: Link,
    /// The newest of these transmissions.
    newest: Link,
    /// The blocks of the last acknowledgement. The segments in them are tagged already.
    seen: [Block; 4],
}

impl Scoreboard {
    /// Bytes in front: the numbers of the first and the next segment.
    pub const NUMBERS_BYTES: usize = 8;

    /// An empty queue that keeps the order of transmission if it `is_by_time` that losses are found.
    pub fn new(is_by_time: bool) -> Self {
        Self {
            is_by_time,
            ring: Vec::new(),
            una: 0,
            nxt: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            highest_sacked: 0,
            pieces: 0,
            retransmit_hint: 0,
            oldest: Link::END,
            newest: Link::END,
            seen: [Block::default(); 4],
        }
    }

    /// Segments in the queue (`packets_out`).
    pub const fn packets_out(&self) -> u32 {
        self.nxt - self.una
    }

    /// Segments that left the network: they arrived or are lost (`tcp_left_out`).
    pub const fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    /// Segments in the network (`tcp_packets_in_flight`).
    #[inline]
    pub fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retrans_out).saturating_sub(self.left_out())
    }

    /// The first segment that is not acknowledged (`snd_una`).
    pub const fn una(&self) -> u32 {
        self.una
    }

    /// Number of the segment that is sent next (`snd_nxt`).
    pub const fn nxt(&self) -> u32 {
        self.nxt
    }

    /// Number behind the highest segment that arrived; `una` if none did.
    pub const fn highest_sacked(&self) -> u32 {
        if self.highest_sacked > self.una { self.highest_sacked } else { self.una }
    }

    /// The segment `seq`, which must be in the queue.
    #[inline]
    pub fn get(&self, seq: u32) -> &Entry {
        debug_assert!(self.una <= seq && seq < self.nxt);
        &self.ring[seq as usize & (self.ring.len() - 1)]
    }

    /// The oldest segment.
    #[inline]
    pub fn head(&self) -> Option<&Entry> {
        (self.una < self.nxt).then(|| self.get(self.una))
    }

    /// Appends a segment that was just sent. `starts_burst` says whether it is the first of its burst.
    #[inline]
    pub fn push(
        &mut self,
        offset: u64,
        len: u16,
        starts_burst: bool,
        sent_us: u64,
        delivered: u32,
    ) {
        if self.packets_out() as usize == self.ring.len() {
            self.grow();
        }
        let seq = self.nxt;
        self.nxt += 1;
        *self.at(seq) = Entry {
            sent_us,
            offset,
            delivered,
            older: Link::END,
            newer: Link::END,
            len,
            state: State(if starts_burst { State::STARTS_PIECE } else { 0 }),
        };
        self.pieces += u32::from(starts_burst);
        self.append(seq);
    }

    /// Removes the first segment, which was acknowledged.
    #[inline]
    pub fn pop(&mut self) -> Delivered {
        let seq = self.una;
        let entry = *self.get(seq);
        if entry.state.has(State::RETRANSMITTED | State::LOST) {
            self.retrans_out -= u32::from(entry.retransmitted());
            self.lost_out -= u32::from(entry.lost());
        }
        if self.is_by_time {
            // Nobody asks for its own place again.
            self.detach(seq, entry);
        }
        self.una += 1;
        if entry.state.has(State::STARTS_PIECE) {
            // The rest of the piece stays one.
            match (self.una < self.nxt).then(|| &mut self.at(seq + 1).state) {
                Some(next) if !next.has(State::STARTS_PIECE) => next.0 |= State::STARTS_PIECE,
                _ => self.pieces -= 1,
            }
        }
        entry.delivered_as(seq)
    }

    /// Tags the segments of `block` as arrived, and calls `newly` for each that was not tagged before.
    pub fn tag(&mut self, block: Block, mut newly: impl FnMut(&Delivered)) {
        let end = block.end.min(self.nxt);
        let mut seq = block.start.max(self.una);
        while seq < end {
            if let Some(seen) = self.seen.iter().find(|seen| seen.start <= seq && seq < seen.end) {
                seq = seen.end;
                continue;
            }
            let entry = *self.get(seq);
            if !entry.sacked() {
                newly(&entry.delivered_as(seq));
                self.mark_sacked(seq, entry);
            }
            seq += 1;
        }
        self.highest_sacked = self.highest_sacked.max(end);
    }

    /// Keeps the blocks of an acknowledgement, so that [`tag`](Self::tag) skips them the next time.
    pub fn remember(&mut self, blocks: &[Block]) {
        self.seen = [Block::default(); 4];
        for (slot, block) in self.seen.iter_mut().zip(blocks) {
            *slot = *block;
        }
    }

    /// Marks `seq` as lost, and returns whether that is new.
    ///
    /// A segment can be lost again after its retransmission.
    pub fn mark_lost(&mut self, seq: u32) -> bool {
        let entry = *self.get(seq);
        if entry.sacked() {
            return false;
        }
        self.retransmit_hint = self.retransmit_hint.min(seq);
        if !entry.lost() {
            self.lost_out += 1;
            self.at(seq).state.0 |= State::LOST;
            return true;
        }
        if entry.retransmitted() {
            self.retrans_out -= 1;
            self.at(seq).state.0 &= !State::RETRANSMITTED;
            return true;
        }
        false
    }

    /// Removes the lost segment `seq` from the order of transmission.
    pub fn forget_transmission(&mut self, seq: u32) {
        self.unlink(seq);
    }

    /// Removes all marks of loss, when a loss turned out to be none.
    pub fn unmark_all_lost(&mut self) {
        for seq in self.una..self.nxt {
            self.at(seq).state.0 &= !State::LOST;
        }
        self.lost_out = 0;
        self.retransmit_hint = self.una;
    }

    /// The first segment at or behind the hint that is lost and waits for retransmission.
    pub fn next_to_retransmit(&mut self) -> Option<u32> {
        if self.retrans_out >= self.lost_out {
            return None;
        }
        self.retransmit_hint = self.retransmit_hint.max(self.una);
        while self.retransmit_hint < self.nxt {
            let entry = self.get(self.retransmit_hint);
            if entry.lost() && !entry.sacked() && !entry.retransmitted() {
                return Some(self.retransmit_hint);
            }
            self.retransmit_hint += 1;
        }
        None
    }

    /// End of the segments that leave together with `seq` when it is sent again: one behind the last.
    ///
    /// They are lost, lie in one piece of memory, and are `most` at most.
    pub fn end_of_resend(&self, seq: u32, most: u32) -> u32 {
        let end = self.nxt.min(seq.saturating_add(most));
        let leaves_alone = |&next: &u32| {
            let entry = self.get(next);
            entry.state.has(State::STARTS_PIECE)
                || entry.sacked()
                || entry.retransmitted()
                || !entry.lost()
        };
        (seq + 1..end).find(leaves_alone).unwrap_or(end)
    }

    /// Cuts pieces of memory so that `segments` are a piece of their own (`tcp_fragment`).
    pub fn cut_out(&mut self, segments: Range<u32>) {
        self.cut_before(segments.start);
        self.cut_before(segments.end);
    }

    /// Counts a retransmission of `seq`. A tail loss probe is none that is under way.
    pub fn on_retransmit(&mut self, seq: u32, now_us: u64, delivered: u32, probe: bool) {
        if !probe {
            self.retrans_out += 1;
        }
        let entry = self.at(seq);
        entry.sent_us = now_us;
        entry.delivered = delivered;
        entry.state.0 |= State::EVER_RETRANSMITTED;
        if !probe {
            entry.state.0 |= State::RETRANSMITTED;
        }
        self.unlink(seq);
        self.append(seq);
    }

    /// Counts a reported duplicate of `seq`: its retransmission is no longer under way.
    pub fn on_duplicate(&mut self, seq: u32) {
        if self.get(seq).retransmitted() {
            self.retrans_out -= 1;
            self.at(seq).state.0 &= !State::RETRANSMITTED;
        }
    }

    /// Moves the retransmission hint back to the start of the queue.
    pub fn reset_hint(&mut self) {
        self.retransmit_hint = self.una;
    }

    /// The oldest transmission that is not known to have arrived or to be lost; `None` if there is none.
    pub fn oldest_transmission(&self) -> Option<u32> {
        self.oldest.seq()
    }

    /// The transmission after that of `seq`; `None` if it is the newest.
    pub fn newer_transmission(&self, seq: u32) -> Option<u32> {
        self.get(seq).newer.seq()
    }

    fn mark_sacked(&mut self, seq: u32, entry: Entry) {
        if entry.retransmitted() && entry.lost() {
            self.retrans_out -= 1;
            self.at(seq).state.0 &= !State::RETRANSMITTED;
        }
        if entry.lost() {
            self.lost_out -= 1;
            self.at(seq).state.0 &= !State::LOST;
        }
        self.at(seq).state.0 |= State::SACKED;
        self.sacked_out += 1;
        self.unlink(seq);
        // Segments that arrived are joined, and cut off from those that did not (`tcp_shift_skb_data`,
        // `tcp_match_skb_to_sack`).
        if seq > self.una && self.get(seq - 1).sacked() {
            self.join_to_previous(seq);
            if seq + 1 < self.nxt && self.get(seq + 1).sacked() {
                return self.join_to_previous(seq + 1);
            }
        } else {
            self.cut_before(seq);
        }
        self.cut_before(seq + 1);
    }

    /// Starts a piece of memory at `seq`, if that is in the queue.
    #[inline]
    fn cut_before(&mut self, seq: u32) {
        if seq < self.nxt && !self.get(seq).state.has(State::STARTS_PIECE) {
            self.at(seq).state.0 |= State::STARTS_PIECE;
            self.pieces += 1;
        }
    }

    /// Joins the piece of memory that starts at `seq` to the one before it.
    fn join_to_previous(&mut self, seq: u32) {
        if self.get(seq).state.has(State::STARTS_PIECE) {
            self.at(seq).state.0 &= !State::STARTS_PIECE;
            self.pieces -= 1;
        }
    }

    /// Appends `seq` to the order of transmission.
    #[inline]
    fn append(&mut self, seq: u32) {
        if !self.is_by_time {
            return;
        }
        let newest = self.newest;
        let entry = self.at(seq);
        entry.older = newest;
        entry.newer = Link::END;
        match newest.seq() {
            None => self.oldest = Link::to(seq),
            Some(newest) => self.at(newest).newer = Link::to(seq),
        }
        self.newest = Link::to(seq);
    }

    /// Removes `seq` from the order of transmission, if it is there.
    #[inline]
    fn unlink(&mut self, seq: u32) {
        if !self.is_by_time {
            return;
        }
        if self.detach(seq, *self.get(seq)) {
            let entry = self.at(seq);
            entry.older = Link::END;
            entry.newer = Link::END;
        }
    }

    /// Joins the neighbours of `seq`, which is `entry`, in the order of transmission; returns whether it was there.
    #[inline]
    fn detach(&mut self, seq: u32, Entry { older, newer, .. }: Entry) -> bool {
        match older.seq() {
            None if self.oldest != Link::to(seq) => return false,
            None => self.oldest = newer,
            Some(older) => self.at(older).newer = newer,
        }
        match newer.seq() {
            None => self.newest = older,
            Some(newer) => self.at(newer).older = older,
        }
        true
    }

    fn at(&mut self, seq: u32) -> &mut Entry {
        let mask = self.ring.len() - 1;
        &mut self.ring[seq as usize & mask]
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.ring.len() * 2).max(MIN_RING_ENTRIES);
        let mut ring = vec![Entry::EMPTY; size];
        for seq in self.una..self.nxt {
            ring[seq as usize & (size - 1)] = *self.get(seq);
        }
        self.ring = ring;
    }
}

/// Entries of a ring at the start. An end that sends nothing has no ring.
const MIN_RING_ENTRIES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn board(segments: u32) -> Scoreboard {
        let mut board = Scoreboard::new(true);
        for n in 0..u64::from(segments) {
            board.push(n * 1448, 1448, true, n, 0);
        }
        board
    }

    fn order(board: &Scoreboard) -> Vec<u32> {
        std::iter::successors(board.oldest_transmission(), |&seq| board.newer_transmission(seq))
            .collect()
    }

    #[test]
    fn counters_follow_a_loss_from_start_to_end() {
        let mut board = board(10);
        let mut newly = Vec::new();
        board.tag(Block { start: 3, end: 6 }, |delivered| newly.push(delivered.seq));
        assert_eq!(newly, [3, 4, 5]);
        assert_eq!((board.sacked_out, board.in_flight()), (3, 7));
        assert_eq!(order(&board), [0, 1, 2, 6, 7, 8, 9]);

        assert!(board.mark_lost(0));
        assert!(!board.mark_lost(0));
        board.forget_transmission(0);
        assert_eq!(board.in_flight(), 6);
        assert_eq!(board.next_to_retransmit(), Some(0));
        board.on_retransmit(0, 100, 3, false);
        assert_eq!(board.in_flight(), 7);
        assert_eq!(board.next_to_retransmit(), None);
        assert_eq!(order(&board), [1, 2, 6, 7, 8, 9, 0]);

        assert!(board.mark_lost(0), "the retransmission is lost");
        assert_eq!(board.in_flight(), 6);
        board.on_retransmit(0, 200, 3, false);

        for _ in 0..6 {
            board.pop();
        }
        // The caller takes what had arrived already off `sacked_out`.
        board.sacked_out -= 3;
        assert_eq!((board.packets_out(), board.retrans_out, board.lost_out), (4, 0, 0));
        assert_eq!(board.in_flight(), 4);
    }

    #[test]
    fn what_was_said_before_is_not_walked_again() {
        let mut board = board(100);
        board.tag(Block { start: 10, end: 90 }, |_| {});
        board.remember(&[Block { start: 10, end: 90 }]);
        let mut newly = Vec::new();
        board.tag(Block { start: 10, end: 92 }, |delivered| newly.push(delivered.seq));
        assert_eq!(newly, [90, 91]);
        assert_eq!(board.sacked_out, 82);
    }

    #[test]
    fn pieces_follow_bursts_and_sack_blocks() {
        let mut board = Scoreboard::new(true);
        for n in 0..8 {
            board.push(n * 1448, 1448, n % 4 == 0, n, 0);
        }
        assert_eq!(board.pieces, 2); // 0123 4567
        board.tag(Block { start: 5, end: 6 }, |_| {});
        assert_eq!(board.pieces, 4); // 0123 4 5 67
        board.tag(Block { start: 2, end: 8 }, |_| {});
        assert_eq!(board.pieces, 2); // 01 234567
        board.pop();
        assert_eq!(board.pieces, 2); // 1 234567
        board.pop();
        assert_eq!(board.pieces, 1);
        for _ in 0..6 {
            board.pop();
        }
        assert_eq!(board.pieces, 0);
    }

    #[test]
    fn the_ring_grows_and_keeps_its_order() {
        let mut board = board(15);
        for _ in 0..10 {
            board.pop();
        }
        for n in 15..60u64 {
            board.push(n * 1448, 1448, true, n, 0);
        }
        assert_eq!(order(&board), (10..60).collect::<Vec<_>>());
        assert!((10..60).all(|seq| board.get(seq).sent_us == u64::from(seq)));
    }
}
