//! The receiving half of a connection: reassembly, and when to acknowledge.
//!
//! Follows Linux `net/ipv4/tcp_input.c` (`tcp_data_queue`, `__tcp_ack_snd_check`,
//! `tcp_rcv_space_adjust`) and `tcp_output.c` (`tcp_send_delayed_ack`) where the profile says so, RFC
//! 5681 section 4.2 where not. The application reads everything at once.

use weir_core::{Duration, Ecn, Time, prefetch};

use crate::profile::{DelayedAck, Profile, Timers};
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
    count: usize,
}

/// State by which the receiver decides when to acknowledge (`inet_csk(sk)->icsk_ack`).
#[derive(Debug)]
struct AckState {
    /// Number of acknowledgements that are still sent at once (`quick`).
    quick: u32,
    /// Delay of the next delayed acknowledgement, in microseconds (`ato`); `None` before the first data.
    delay_us: Option<u32>,
    /// Arrival of the last data in order, in microseconds (`lrcvtime`).
    last_data_us: u64,
    /// Position that the last acknowledgement carried (`rcv_wup`), as a segment and in bytes.
    acked: u32,
    acked_offset: u64,
    /// Whether the next acknowledgement must leave at once (`ICSK_ACK_NOW`).
    at_once: bool,
    /// Whether data arrived that is not acknowledged yet (`ICSK_ACK_SCHED`).
    pending: bool,
    delayed: Option<Delayed>,
    /// When the compressed acknowledgement leaves; `None` while there is none.
    compressed_until: Option<Time>,
    /// Acknowledgements that the compressed one stands for.
    compressed: u32,
    /// Duplicate acknowledgements sent one by one for the gap at `duplicates_for`.
    duplicates: u32,
    /// Segment at which that gap starts.
    duplicates_for: u32,
}

/// A delayed acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Delayed {
    /// When its delay is over.
    due: Time,
    /// When the timer notices, which may be a tick or more later.
    fires: Time,
}

/// Measurements of the path by the connection's own sending half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnRtt {
    /// Eight times the smoothed round trip in microseconds; `None` before the first sample.
    pub srtt8_us: Option<u32>,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
}

/// Whether a received segment needs an acknowledgement at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckNeed {
    /// No acknowledgement is needed, or a timer will send it.
    Later,
    /// An acknowledgement is due at once.
    Now,
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
            ack: AckState {
                quick: 0,
                delay_us: None,
                last_data_us: 0,
                acked: 0,
                acked_offset: 0,
                at_once: false,
                pending: false,
                delayed: None,
                compressed_until: None,
                compressed: 0,
                duplicates: 0,
                duplicates_for: 0,
            },
            window: ReceiveWindow::new(profile, mss),
            echo_congestion: false,
            echoes_each,
            saw_ecn: false,
            ts_recent: None,
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
        self.window.open(profile.timestamps);
    }

    /// Starts the clocks of an open connection: pauses between data and the first round trip count from
    /// now (`tcp_finish_connect`).
    pub fn establish(&mut self, timers: Timers, now: Time) {
        self.ack.last_data_us = timers.due(now, Duration::ZERO).as_nanos() / 1_000;
        self.window.establish(now);
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
        self.unread = 0;
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
        if counts && self.ack.delayed.is_some() && self.changes_mark(ecn) {
            return true;
        }
        let blocks = &self.recent.blocks[..self.recent.count];
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
            self.enter_quick(MAX_QUICK);
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
        self.unread = 0;
        if self.ack.compressed_until.is_some_and(|at| at <= now) {
            self.ack.compressed_until = None;
            return AckNeed::Now;
        }
        if self.ack.delayed.take_if(|delayed| delayed.fires <= now).is_some() {
            if !self.ack.pending {
                return AckNeed::Later;
            }
            if profile.delayed_ack == DelayedAck::Linux {
                // The sender is slow: allow it more time (`tcp_delack_timer_handler`).
                self.ack.delay_us = self.ack.delay_us.map(|us| (us * 2).min(DELAY_MAX_US));
            }
            return AckNeed::Now;
        }
        AckNeed::Later
    }

    /// Time at which [`on_timer`](Self::on_timer) is next due; [`Time::MAX`] for never.
    #[inline]
    pub fn timer(&self) -> Time {
        let delayed = self.ack.delayed.map_or(Time::MAX, |delayed| delayed.fires);
        delayed.min(self.ack.compressed_until.unwrap_or(Time::MAX))
    }

    /// Writes acknowledgement, window, timestamp echo, ECE and SACK blocks into a segment that leaves now.
    ///
    /// All that was pending then counts as acknowledged.
    #[inline]
    pub fn write_ack(&mut self, segment: &mut Segment, profile: &Profile) {
        segment.flags = segment.flags.with(Flags::ACK);
        segment.ack = self.next;
        segment.window = self.offered_window();
        segment.ts_echo = self.ts_recent.filter(|_| profile.timestamps);
        if self.echo_congestion {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        if profile.sack {
            let room = if profile.timestamps { SackBlocks::MAX - 1 } else { SackBlocks::MAX };
            segment.sack = SackBlocks::default();
            if let Some(duplicate) = self.duplicate.take() {
                segment.sack.push(duplicate);
                segment.sack.set_duplicate();
            }
            for &block in &self.recent.blocks[..self.recent.count] {
                if segment.sack.len() < room {
                    segment.sack.push(block);
                }
            }
        }
        let ack = &mut self.ack;
        if ack.pending && ack.quick > 0 {
            ack.quick -= 1;
            if ack.quick == 0 {
                // The delay starts small again (`tcp_dec_quickack_mode`).
                ack.delay_us = Some(DELAY_MIN_US);
            }
        }
        ack.acked = self.next;
        ack.acked_offset = self.delivered;
        ack.at_once = false;
        ack.pending = false;
        ack.delayed = None;
        ack.compressed_until = None;
        ack.compressed = 0;
    }

    /// The window in bytes that a segment sent now would offer.
    #[inline]
    pub fn offered_window(&mut self) -> u32 {
        self.window.offer(self.delivered, self.held())
    }

    /// Data in the receive buffer: after a gap, or not read by the application yet.
    #[inline(always)]
    fn held(&self) -> BufferedData {
        if self.unread == 0 && self.ahead.is_empty() {
            return BufferedData { segments: 0, pieces: 0 };
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
                    self.enter_quick(2);
                    self.echo_congestion = true;
                }
                self.saw_ecn = true;
            }
            // A retransmission: the sender is in trouble.
            Ecn::NotEct if self.saw_ecn => self.enter_quick(2),
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
        // The sender may wait for an acknowledgement of the end of a burst (`tcp_measure_rcv_mss`,
        // `__tcp_cleanup_rbuf`).
        self.ack.at_once |= !gaps && segment.flags.has(Flags::PSH);
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
                self.delay(delay, profile.timers, now)
            }
            DelayedAck::Linux => {
                if second_segment || self.ack.quick > 0 || self.ack.at_once {
                    return AckNeed::Now;
                }
                if self.ahead.is_empty() {
                    return self.delay(self.ack.linux_delay(profile, own), profile.timers, now);
                }
                self.compress(profile, own, now)
            }
        }
    }

    /// Sets the timer of the delayed acknowledgement, or says that it is due at once (`tcp_send_delayed_ack`).
    fn delay(&mut self, delay: Duration, timers: Timers, now: Time) -> AckNeed {
        let delayed = Delayed { due: timers.due(now, delay), fires: timers.fires_at(now, delay) };
        match &mut self.ack.delayed {
            // The timer set before fires soon anyway: do not wait.
            Some(already)
                if already.due <= timers.due(now, Duration::ZERO) + timers.whole(delay / 4) =>
            {
                return AckNeed::Now;
            }
            Some(already) if already.due <= delayed.due => {}
            slot => *slot = Some(delayed),
        }
        AckNeed::Later
    }

    /// Compresses acknowledgements of data behind a gap (`tcp_comp_sack_delay_ns`).
    ///
    /// The first three leave one by one. The others leave once a millisecond or 5 % of a round trip,
    /// whichever is sooner.
    fn compress(&mut self, profile: &Profile, own: OwnRtt, now: Time) -> AckNeed {
        if !profile.sack || self.ack.compressed >= COMPRESSED_MAX {
            return AckNeed::Now;
        }
        if self.ack.duplicates_for != self.next {
            self.ack.duplicates_for = self.next;
            self.ack.duplicates = 0;
        }
        if self.ack.duplicates < 3 {
            self.ack.duplicates += 1;
            return AckNeed::Now;
        }
        self.ack.compressed += 1;
        if self.ack.compressed_until.is_none() {
            let rtt8_us = self.window.rtt8_us.unwrap_or(0);
            let rtt8_us = own.srtt8_us.map_or(rtt8_us, |srtt8_us| rtt8_us.min(srtt8_us));
            let twentieth = Duration::from_nanos(u64::from(rtt8_us) * 1_000 / 8 / 20);
            let delay = twentieth.min(COMPRESSED_DELAY);
            self.ack.compressed_until = Some(now + delay + COMPRESSED_SLACK);
        }
        AckNeed::Later
    }

    /// Has the next acknowledgements, `most` at most, leave at once (`tcp_enter_quickack_mode`).
    fn enter_quick(&mut self, most: u32) {
        self.ack.quick = self.ack.quick.max(self.window.quick_limit().min(most));
        self.ack.delay_us = Some(DELAY_MIN_US);
    }
}

impl AckState {
    /// Adjusts the delay to the time between data in order (`tcp_event_data_recv`).
    fn on_in_order(&mut self, window: &ReceiveWindow, own: OwnRtt, timers: Timers, now: Time) {
        // Linux counts in ticks here.
        let now_us = timers.due(now, Duration::ZERO).as_nanos() / 1_000;
        let since = now_us.saturating_sub(self.last_data_us);
        self.last_data_us = now_us;
        let Some(delay_us) = self.delay_us else {
            self.quick = self.quick.max(window.quick_limit().min(MAX_QUICK));
            self.delay_us = Some(DELAY_MIN_US);
            return;
        };
        let half = Duration::from_micros(u64::from(delay_us / 2));
        let half = timers.whole(half).as_micros() as u32;
        if since <= u64::from(DELAY_MIN_US / 2) {
            self.delay_us = Some(half + DELAY_MIN_US / 2);
        } else if since < u64::from(delay_us) {
            self.delay_us = Some((half + since as u32).min(DELAY_MAX_US).min(own.rto_us));
        } else if since > u64::from(own.rto_us) {
            // A fresh start after a pause.
            self.quick = self.quick.max(window.quick_limit().min(MAX_QUICK));
        }
    }

    /// Delay of an acknowledgement as Linux has it (`tcp_send_delayed_ack`).
    fn linux_delay(&self, profile: &Profile, own: OwnRtt) -> Duration {
        let mut delay = self.delay_us.unwrap_or(0);
        if delay > DELAY_MIN_US {
            delay = delay.min(match own.srtt8_us.unwrap_or(0) >> 3 {
                0 => DELAY_LIMIT_US,
                srtt => srtt.clamp(DELAY_MIN_US, DELAY_LIMIT_US),
            });
        }
        // Never later than the sender's shortest timeout, less a tick.
        let tick = profile.timers.tick().as_micros() as u32;
        let rto_min = profile.rto_min.as_micros() as u32;
        Duration::from_micros(u64::from(delay.min(rto_min.saturating_sub(tick))))
    }
}

impl SackRecency {
    /// Puts `block`, which just grew, first, and drops the blocks that lie within it (RFC 2018, section 4).
    fn put_first(&mut self, block: Block) {
        let mut kept = [Block::default(); SackBlocks::MAX];
        kept[0] = block;
        let mut count = 1;
        for &old in &self.blocks[..self.count] {
            let swallowed = old.start >= block.start && old.end <= block.end;
            if !swallowed && count < SackBlocks::MAX {
                kept[count] = old;
                count += 1;
            }
        }
        self.blocks = kept;
        self.count = count;
    }

    /// Drops the blocks below `next`, which arrived in order meanwhile.
    fn drop_below(&mut self, next: u32) {
        let mut count = 0;
        for index in 0..self.count {
            if self.blocks[index].start >= next {
                self.blocks[count] = self.blocks[index];
                count += 1;
            }
        }
        self.count = count;
    }
}

/// Most acknowledgements that leave at once after a start or a pause (`TCP_MAX_QUICKACKS`).
const MAX_QUICK: u32 = 16;
/// Shortest delay of an acknowledgement (`TCP_ATO_MIN`).
const DELAY_MIN_US: u32 = 40_000;
/// Longest delay of an acknowledgement that follows from the spacing of data (`TCP_DELACK_MAX`).
const DELAY_MAX_US: u32 = 200_000;
/// Longest delay of any acknowledgement (RFC 1122, section 4.2.3.2).
const DELAY_LIMIT_US: u32 = 500_000;
/// Most SACK blocks that are expected while acknowledgements are compressed (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS_EXPECTED: usize = 2;
/// Most acknowledgements that a compressed one may stand for (`tcp_comp_sack_nr`).
const COMPRESSED_MAX: u32 = 44;
/// Longest time that acknowledgements are compressed for (`tcp_comp_sack_delay_ns`).
const COMPRESSED_DELAY: Duration = Duration::from_millis(1);
/// Slack of the compression timer (`tcp_comp_sack_slack_ns`): it fires so much later unless another timer
/// fires meanwhile.
const COMPRESSED_SLACK: Duration = Duration::from_micros(100);
