//! The receiving half of a connection: reassembly, and when to acknowledge.
//!
//! Follows Linux `net/ipv4/tcp_input.c` (`tcp_data_queue`, `__tcp_ack_snd_check`,
//! `tcp_rcv_space_adjust`) and `tcp_output.c` (`tcp_send_delayed_ack`) where the profile says so, RFC
//! 5681 section 4.2 where not. The application reads everything at once.

use weir_core::{Ecn, Time, prefetch};

use crate::ack_state::{AckNeed, AckState, MAX_QUICK, OwnRtt};
use crate::clock::Timers;
use crate::profile::{DelayedAck, Profile};
use crate::receive_window::{BufferedData, PIECE, ReceiveWindow};
use crate::segment::{Block, Flags, SackBlocks, Segment};

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The next segment that is expected (`rcv_nxt`).
    next: u32,
    /// Bytes received in order. The application has read them all.
    delivered: u64,
    /// Segments that arrived ahead of `next`, by position.
    ahead: Vec<Range>,
    /// Segments that the application has not read yet: those that came into order with the last one.
    unread: u32,
    /// SACK blocks to report, the most recent first.
    recent: SackRecency,
    /// A segment that arrived twice and is still to be reported (D-SACK).
    duplicate: Option<Block>,
    ack: AckState,
    window: ReceiveWindow,
    /// Whether CE arrived and the sender has not answered with CWR yet; where each mark is echoed, whether the
    /// latest segment had one.
    echo_congestion: bool,
    /// Whether each mark is echoed, for a sender that counts them (RFC 8257).
    echoes_each: bool,
    /// Whether any segment arrived with an ECN codepoint.
    saw_ecn: bool,
    /// Timestamp to echo (RFC 7323, section 4.3); `None` before the first.
    ts_recent: Option<u32>,
    /// The window that the last segment offered, if nothing has come since that changes what the next one says, the
    /// timestamp aside: an end that only sends says the same with every segment.
    said: Option<u32>,
}

/// Segments that arrived ahead of a gap, and the bytes up to their end.
#[derive(Clone, Copy, Debug)]
struct Range {
    block: Block,
    end_offset: u64,
}

/// SACK blocks in the order in which they last grew, the latest first (RFC 2018, section 4).
#[derive(Debug, Default)]
struct SackRecency {
    blocks: [Block; SackBlocks::MAX],
    count: u8,
}

impl Receiver {
    /// A receiver that `echoes_each` congestion mark, or as long as the sender does not answer.
    pub fn new(profile: &Profile, mss: u32, echoes_each: bool) -> Self {
        Self {
            next: 0,
            delivered: 0,
            ahead: Vec::new(),
            unread: 0,
            recent: SackRecency::default(),
            duplicate: None,
            ack: AckState::default(),
            window: ReceiveWindow::new(profile, mss),
            echo_congestion: false,
            echoes_each,
            saw_ecn: false,
            ts_recent: None,
            said: None,
        }
    }

    /// Asks the processor for the segments ahead of a gap, if there is one.
    #[inline]
    pub fn prefetch_behind(&self) {
        if let Some(first) = self.ahead.first() {
            prefetch(first);
        }
    }

    /// This end opens the connection.
    pub fn open(&mut self, profile: &Profile) {
        self.said = None;
        self.window.open(profile.timestamps);
    }

    /// Starts the clocks of an open connection: pauses between data and the first round trip count from
    /// now (`tcp_finish_connect`).
    pub fn establish(&mut self, timers: Timers, now: Time) {
        self.ack.establish(timers, now);
        self.window.establish(now);
        self.said = None;
    }

    /// Bytes received in order.
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Keeps the timestamp of a segment for the echo (RFC 7323, section 4.3).
    ///
    /// A delayed acknowledgement echoes the earliest segment that it acknowledges. A segment that
    /// arrives late changes nothing.
    #[inline]
    pub fn on_timestamp(&mut self, segment: &Segment) {
        self.read_all();
        if segment.seq <= self.ack.acked && self.ts_recent.is_none_or(|recent| segment.ts >= recent)
        {
            self.ts_recent = Some(segment.ts);
        }
    }

    /// Whether an acknowledgement that is held back must leave before `segment`, with `ecn` in its IP header,
    /// is processed.
    ///
    /// A compressed one: with more than two blocks the segment could displace one that was not reported yet
    /// (`tcp_sack_new_ofo_skb`). A delayed one, where each mark is echoed: it still reports segments with the
    /// other mark (RFC 8257, section 3.2; `dctcp_ece_ack_update`).
    #[inline]
    pub fn must_report_before(&self, segment: &Segment, ecn: Ecn, profile: &Profile) -> bool {
        let Segment { seq, .. } = *segment;
        let counts = profile.ecn && self.echoes_each && seq >= self.next;
        if counts && self.ack.is_delayed() && self.changes_mark(ecn) {
            return true;
        }
        let blocks = self.recent.blocks();
        let place = blocks.iter().position(|block| block.start <= seq + 1 && seq <= block.end);
        self.ack.compressed > 0
            && seq > self.next
            && place.unwrap_or(blocks.len()) >= BLOCKS_EXPECTED
    }

    /// Processes a data segment, and says whether it must be acknowledged at once.
    #[inline]
    pub fn on_data(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        profile: &Profile,
        own: OwnRtt,
        now: Time,
    ) -> AckNeed {
        let now_us = now.as_nanos() / 1_000;
        self.said = None;
        self.duplicate = None;
        if profile.ecn {
            self.on_ecn(segment, ecn);
        }
        self.ack.pending = true;
        let block = Block { start: segment.seq, end: segment.seq + 1 };
        if segment.seq == self.next {
            self.unread = 1;
            let held = self.held();
            let next = self.next;
            let end = segment.offset + u64::from(segment.len);
            self.on_expected(segment, own, profile.timers, now);
            self.unread = self.next - next;
            self.window.measure_rtt(segment, end, now_us);
            if self.window.grow(held) {
                self.ack.quick |= 1;
            }
            // The segment may fill a gap. The kernel joins the segments behind the gap to it, unless the
            // piece becomes too large: then the application reads the segment first (`tcp_ofo_queue`),
            // and the others at the same time, when a new round trip has begun.
            let read_to = if self.unread <= PIECE { self.delivered } else { end };
            self.window.on_read(read_to, self.delivered, now_us);
        } else if segment.seq < self.next {
            // RFC 2883: report the duplicate, and acknowledge at once for a while.
            self.duplicate = Some(block);
            self.ack.enter_quick(&self.window, MAX_QUICK);
        } else {
            let held = self.held();
            self.on_ahead(segment, block);
            // Without SACK a larger window would keep the acknowledgement from counting as a duplicate
            // (`tcp_data_queue_ofo`).
            if profile.sack && self.window.grow(held) {
                self.ack.quick |= 1;
            }
        }
        self.need(profile, own, now)
    }

    /// Handles the expired timer of a delayed or compressed acknowledgement.
    pub fn on_timer(&mut self, profile: &Profile, now: Time) -> AckNeed {
        self.said = None;
        self.unread = 0;
        self.ack.on_timer(profile, now)
    }

    /// Time at which [`on_timer`](Self::on_timer) is next due; [`Time::MAX`] for never.
    #[inline]
    pub fn timer(&self, timers: Timers) -> Time {
        self.ack.timer(timers)
    }

    /// A time before which [`timer`](Self::timer) is not; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_from(&self, timers: Timers) -> Time {
        self.ack.timer_from(timers)
    }

    /// Writes acknowledgement, window, timestamp echo, ECE and SACK blocks into a segment that leaves now and has none of
    /// these yet.
    ///
    /// All that was pending then counts as acknowledged.
    #[inline(always)]
    pub fn write_ack(&mut self, segment: &mut Segment, profile: &Profile) {
        segment.flags = segment.flags.with(Flags::ACK);
        segment.ack = self.next;
        segment.ts_echo = self.ts_recent.filter(|_| profile.timestamps);
        if self.echo_congestion {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        match self.said {
            Some(window) => {
                debug_assert!(!self.ack.pending);
                debug_assert_eq!(window, self.window.would_offer(self.delivered, self.held()));
                segment.window = window;
            }
            None => self.write_news(segment, profile),
        }
    }

    /// Writes window and SACK blocks into a segment that leaves now.
    fn write_news(&mut self, segment: &mut Segment, profile: &Profile) {
        segment.window = self.offered_window();
        if profile.sack {
            let room = if profile.timestamps { SackBlocks::MAX - 1 } else { SackBlocks::MAX };
            if let Some(duplicate) = self.duplicate.take() {
                segment.sack.push(duplicate);
                segment.sack.set_duplicate();
            }
            for &block in self.recent.blocks() {
                if segment.sack.len() < room {
                    segment.sack.push(block);
                }
            }
        }
        self.ack.on_acknowledged(self.next, self.delivered);
        self.said = self.recent.blocks().is_empty().then_some(segment.window);
    }

    /// The application has read everything.
    #[inline]
    fn read_all(&mut self) {
        if self.unread > 0 {
            self.unread = 0;
            self.said = None;
        }
    }

    /// Data is sent, with what [`write_ack`](Self::write_ack) has written.
    #[inline]
    pub fn on_sent(&mut self, profile: &Profile, now: Time) {
        self.ack.on_sent(profile, now);
    }

    /// The window in bytes that a segment sent now would offer.
    #[inline]
    pub fn offered_window(&mut self) -> u32 {
        self.window.offer(self.delivered, self.held())
    }

    /// Data in the receive buffer: after a gap, or not read by the application yet.
    #[inline(always)]
    fn held(&self) -> BufferedData {
        // Mostly there is no gap, and the segment that has just come is all that was not read.
        if self.unread <= 1 && self.ahead.is_empty() {
            return BufferedData { segments: self.unread, pieces: self.unread };
        }
        self.held_now()
    }

    fn held_now(&self) -> BufferedData {
        let ranges = self.ahead.iter().map(|range| range.block.end - range.block.start);
        let (segments, pieces) = ranges.fold((0, 0), |(segments, pieces), length| {
            (segments + length, pieces + length.div_ceil(PIECE))
        });
        let unread_pieces = match self.unread {
            0 => 0,
            1..=PIECE => 1,
            // The segment that filled the gap, and those behind it.
            more => 1 + (more - 1).div_ceil(PIECE),
        };
        BufferedData { segments: segments + self.unread, pieces: pieces + unread_pieces }
    }

    /// Whether `ecn` is another mark than that of the segment before; one without ECN says nothing.
    fn changes_mark(&self, ecn: Ecn) -> bool {
        ecn != Ecn::NotEct && (ecn == Ecn::Ce) != self.echo_congestion
    }

    /// Follows ECN marks: CE is echoed until the sender answers with CWR (RFC 3168, section 6.1.3), or for
    /// the segment alone (RFC 8257, section 3.2).
    fn on_ecn(&mut self, segment: &Segment, ecn: Ecn) {
        if segment.flags.has(Flags::CWR) {
            self.echo_congestion &= self.echoes_each;
            self.ack.at_once = true;
        }
        if self.echoes_each && segment.seq >= self.next {
            self.ack.at_once |= self.changes_mark(ecn);
            self.echo_congestion =
                if ecn == Ecn::NotEct { self.echo_congestion } else { ecn == Ecn::Ce };
        }
        match ecn {
            Ecn::Ce => {
                if !self.echo_congestion {
                    self.ack.enter_quick(&self.window, 2);
                    self.echo_congestion = true;
                }
                self.saw_ecn = true;
            }
            // A retransmission: the sender is in trouble.
            Ecn::NotEct if self.saw_ecn => self.ack.enter_quick(&self.window, 2),
            Ecn::NotEct => {}
            Ecn::Ect0 | Ecn::Ect1 => self.saw_ecn = true,
        }
    }

    /// Takes a segment that continues the stream, with those behind the gap that it fills.
    #[inline]
    fn on_expected(&mut self, segment: &Segment, own: OwnRtt, timers: Timers, now: Time) {
        self.next = segment.seq + 1;
        self.delivered = segment.offset + u64::from(segment.len);
        self.ack.on_in_order(&self.window, own, timers, now);
        let gaps = !self.ahead.is_empty();
        while let Some(first) = self.ahead.first()
            && first.block.start <= self.next
        {
            self.next = self.next.max(first.block.end);
            self.delivered = self.delivered.max(first.end_offset);
            self.ahead.remove(0);
        }
        if !gaps && segment.flags.has(Flags::PSH) {
            self.ack.on_pushed();
        }
        if gaps {
            // RFC 5681, section 4.2: at once when a gap is filled in part or in full.
            self.ack.at_once |= self.ahead.is_empty();
            self.recent.drop_below(self.next);
        }
    }

    /// Keeps a segment that arrived behind a gap.
    fn on_ahead(&mut self, segment: &Segment, block: Block) {
        let end_offset = segment.offset + u64::from(segment.len);
        let at = self.ahead.partition_point(|range| range.block.end < block.start);
        let joined = match self.ahead.get_mut(at) {
            Some(range) if range.block.start <= block.start && block.end <= range.block.end => {
                self.duplicate = Some(block);
                range.block
            }
            Some(range) if range.block.start <= block.end => {
                range.block.start = range.block.start.min(block.start);
                range.block.end = range.block.end.max(block.end);
                range.end_offset = range.end_offset.max(end_offset);
                range.block
            }
            _ => {
                self.ahead.insert(at, Range { block, end_offset });
                block
            }
        };
        if let Some(&behind) = self.ahead.get(at + 1)
            && behind.block.start <= joined.end
        {
            self.ahead[at].block.end = behind.block.end;
            self.ahead[at].end_offset = behind.end_offset;
            self.ahead.remove(at + 1);
        }
        self.recent.put_first(self.ahead[at].block);
    }

    /// Decides whether to acknowledge now, and sets the timer if not (`__tcp_ack_snd_check`).
    #[inline]
    fn need(&mut self, profile: &Profile, own: OwnRtt, now: Time) -> AckNeed {
        let unacked = self.delivered - self.ack.acked_offset;
        let second_segment = unacked > u64::from(self.window.mss);
        match profile.delayed_ack {
            DelayedAck::Never => AckNeed::Now,
            DelayedAck::Every2(delay) => {
                if second_segment
                    || self.ack.at_once
                    || !self.ahead.is_empty()
                    || self.duplicate.is_some()
                {
                    return AckNeed::Now;
                }
                self.ack.delay(delay, profile.timers, now)
            }
            DelayedAck::Linux => {
                if second_segment || self.ack.is_quick() || self.ack.at_once {
                    return AckNeed::Now;
                }
                if self.ahead.is_empty() {
                    let delay = self.ack.linux_delay(profile, own);
                    return self.ack.delay(delay, profile.timers, now);
                }
                if !profile.sack {
                    return AckNeed::Now;
                }
                let rtt8_us = self.window.rtt8_us.unwrap_or(0);
                let rtt8_us = own.srtt8_us.map_or(rtt8_us, |srtt8_us| rtt8_us.min(srtt8_us));
                self.ack.compress(self.next, rtt8_us, now)
            }
        }
    }
}

impl SackRecency {
    #[inline]
    fn blocks(&self) -> &[Block] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Puts `block`, which just grew, first, and drops the blocks that lie within it (RFC 2018, section 4).
    fn put_first(&mut self, block: Block) {
        let mut kept = [Block::default(); SackBlocks::MAX];
        kept[0] = block;
        let mut count = 1_usize;
        for &old in self.blocks() {
            let swallowed = old.start >= block.start && old.end <= block.end;
            if !swallowed && count < SackBlocks::MAX {
                kept[count] = old;
                count += 1;
            }
        }
        self.blocks = kept;
        self.count = count as u8;
    }

    /// Drops the blocks below `next`, which arrived in order meanwhile.
    fn drop_below(&mut self, next: u32) {
        let mut count = 0_usize;
        for index in 0..usize::from(self.count) {
            if self.blocks[index].start >= next {
                self.blocks[count] = self.blocks[index];
                count += 1;
            }
        }
        self.count = count as u8;
    }
}

/// Most SACK blocks that are expected while acknowledgements are compressed (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS_EXPECTED: usize = 2;
