//! Processing of acknowledgements: Linux' `tcp_ack` and the functions that it calls.

use weir_core::Time;

use crate::congestion::Verdict;
use crate::profile::Profile;
use crate::rack::REORDERING;
use crate::rate::RateSample;
use crate::recovery::{Phase, Resend, TailProbe};
use crate::scoreboard::Delivered;
use crate::segment::{Block, Flags, Segment};
use crate::sender::{Sender, Wire, by_time};
use crate::timers::Timer;
use crate::window::{AckSample, Clocks};

/// The facts that one acknowledgement brings: Linux' flags of `tcp_ack` and its `sack_state`.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckInfo {
    /// The acknowledged segment number.
    pub ack: u32,
    /// The first unacknowledged segment before it.
    pub prior_una: u32,
    pub una_advanced: bool,
    /// Segments were newly acknowledged in order.
    pub data_acked: bool,
    /// Segments were newly reported as arrived out of order.
    pub newly_sacked: bool,
    /// Whether one of the segments acknowledged in order had been retransmitted.
    pub retransmitted_acked: bool,
    /// Whether data arrived that was sent before recovery began and not sent again.
    pub original_delivered: bool,
    pub ecn_echo: bool,
    /// A duplicate was reported (RFC 2883).
    pub duplicate_reported: bool,
    /// The duplicate that was reported is the tail loss probe.
    pub probe_was_duplicate: bool,
    /// Whether the acknowledgement reports nothing new at all.
    pub duplicate_ack: bool,
    /// New data acknowledged, or the window changed.
    pub not_duplicate: bool,
    /// The timer has to be set anew.
    pub set_timer: bool,
    /// A retransmission was found to be lost.
    pub lost_retransmission: bool,
    /// Segments newly taken for lost.
    pub newly_lost: u32,
    /// Bytes newly acknowledged in order.
    acked_bytes: u32,
    /// Whether it does nothing but acknowledge data in order (Linux' fast path).
    is_plain: bool,
    /// Transmission times of the first and last segment acknowledged without retransmission.
    acked_sent: Option<(u64, u64)>,
    /// Transmission times of the first and last segment newly reported by SACK without retransmission.
    sacked_sent: Option<(u64, u64)>,
    /// Lowest segment that arrived after higher ones without having been sent again.
    reordered: Option<u32>,
    /// Segments delivered when the latest of the newly delivered ones was sent.
    prior_delivered: Option<(u64, u32)>,
}

/// State of the connection before an acknowledgement is processed, in segments.
#[derive(Clone, Copy, Debug)]
struct BeforeAck {
    /// First unacknowledged segment.
    una: u32,
    packets_out: u32,
    in_flight: u32,
    sacked_out: u32,
    highest_sacked: u32,
    delivered: u32,
    lost: u32,
}

impl Sender {
    /// Processes the acknowledgement that `segment` carries, and sends what it allows.
    pub fn on_ack(
        &mut self,
        segment: &Segment,
        profile: &Profile,
        wire: &mut impl Wire,
        now: Time,
    ) {
        if self.is_unused() {
            // The end that only receives: nothing but the window can be news, which begins where nothing was sent.
            return self.peer_window.offer(u64::from(segment.window), segment.window);
        }
        self.refresh(now);
        if segment.ack < self.board.una() || segment.ack > self.board.nxt() {
            return;
        }
        let prior = self.before_ack();
        let mut info = AckInfo {
            ack: segment.ack,
            prior_una: prior.una,
            una_advanced: segment.ack > prior.una,
            ecn_echo: profile.ecn && segment.flags.has(Flags::ECE),
            ..AckInfo::default()
        };
        if let Some(rate) = &mut self.delivery.sampler {
            rate.start();
        }
        if info.una_advanced {
            self.timers.backoffs = 0;
        }
        self.set_last_echo(segment.ts_echo, profile);
        self.take_window(segment, &mut info);
        if profile.sack && !segment.sack.is_empty() {
            self.take_sack(segment, &mut info);
        }
        if prior.packets_out == 0 {
            return self.on_late_duplicate(&mut info, profile, now);
        }
        self.take_delivered(&prior, &mut info, profile);
        // A single short segment may have waited in the receiver for company.
        let maybe_delayed = info.acked_bytes < self.mss
            && prior.sacked_out == 0
            && self.is_single_segment(&info)
            && !info.is_alert();
        let rtt_us = self.measure_rtt(&mut info, maybe_delayed, profile);
        self.tell_algorithm(rtt_us, segment, &info, &prior);
        if info.data_acked {
            info.set_timer = true;
            if let Some(seq) =
                info.reordered.filter(|&seq| profile.sack && seq < prior.highest_sacked)
            {
                self.note_reordering(seq);
            }
        }
        let newest = info.prior_delivered.map(|(_, delivered)| delivered);
        self.rack.update_window(newest, self.delivery.delivered);
        self.on_probe_ack(&info);
        let resend = self.recover(&mut info, profile, now);
        if info.set_timer && !self.schedule_loss_probe(true, profile, now) {
            self.rearm_timeout(now);
        }
        let sample = RateSample { rtt_us, is_ack_delayed: maybe_delayed, ..RateSample::default() };
        self.control(&prior, &mut info, sample, profile, now);
        self.resend(resend, profile, wire, now);
    }

    #[inline]
    fn before_ack(&self) -> BeforeAck {
        BeforeAck {
            una: self.board.una(),
            packets_out: self.board.packets_out(),
            in_flight: self.board.in_flight(),
            sacked_out: self.board.sacked_out,
            highest_sacked: self.board.highest_sacked(),
            delivered: self.delivery.delivered,
            lost: self.delivery.lost,
        }
    }

    /// Takes what is acknowledged in order off the queue, and tells a duplicate acknowledgement.
    #[inline]
    fn take_delivered(&mut self, prior: &BeforeAck, info: &mut AckInfo, profile: &Profile) {
        self.take_cumulative(info, profile);
        info.not_duplicate |= info.data_acked;
        info.duplicate_ack = !info.not_duplicate && !info.una_advanced && !info.duplicate_reported;
        if !profile.sack && info.data_acked {
            self.take_off_duplicates(info.ack - prior.una);
            if info.retransmitted_acked {
                info.original_delivered = false;
            }
        }
    }

    /// Lets the congestion control act on the acknowledgement: by the rate, or by what was delivered.
    #[inline]
    fn control(
        &mut self,
        prior: &BeforeAck,
        info: &mut AckInfo,
        sample: RateSample,
        profile: &Profile,
        now: Time,
    ) {
        let acked = self.delivery.delivered - prior.delivered;
        if info.ecn_echo {
            self.delivery.marked += acked;
        }
        info.newly_lost = self.delivery.lost - prior.lost;
        if self.delivery.sampler.is_some() {
            let (losses, prior_in_flight) = (info.newly_lost, prior.in_flight);
            self.control_rate(RateSample { acked, losses, prior_in_flight, ..sample }, now);
        } else {
            self.control_congestion(info, acked, profile);
        }
    }

    /// The timer of the sending half expired.
    pub fn on_timer(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) {
        match self.due_timer(profile, now) {
            Some(Timer::Retransmission) => self.on_timeout(profile, wire, now),
            Some(Timer::LossProbe) => self.send_loss_probe(profile, wire, now),
            Some(Timer::Reordering) => self.on_reordering_timeout(profile, wire, now),
            None if self.take_pacing_timer(now) => {
                self.refresh(now);
                self.resend_lost(profile, wire, now);
                self.send_new_data(profile, wire, now);
            }
            None => {}
        }
    }

    /// Whether one segment alone is acknowledged, sent when nothing else was: it may have waited in the receiver
    /// for company.
    #[inline]
    fn is_single_segment(&self, info: &AckInfo) -> bool {
        let newest = info.prior_delivered;
        info.ack - info.prior_una == 1
            && newest.is_some_and(|(_, prior)| prior + 1 == self.delivery.delivered)
    }

    /// Runs loss recovery if the acknowledgement may matter to it.
    #[inline]
    fn recover(&mut self, info: &mut AckInfo, profile: &Profile, now: Time) -> Resend {
        if info.not_duplicate && !info.is_alert() && self.recovery.phase == Phase::Open {
            return Resend::Nothing;
        }
        self.fastretrans_alert(info, profile, now)
    }

    /// Handles an acknowledgement when nothing is under way any more.
    ///
    /// A report of duplicates may still show that the last retransmission or probe was needless.
    fn on_late_duplicate(&mut self, info: &mut AckInfo, profile: &Profile, now: Time) {
        if info.duplicate_reported {
            self.fastretrans_alert(info, profile, now);
        }
        self.on_probe_ack(info);
    }

    /// Takes over the peer's receive window, and counts the bytes newly acknowledged in order.
    #[inline]
    fn take_window(&mut self, segment: &Segment, info: &mut AckInfo) {
        let una_offset = self.offset_of(segment.ack);
        let end = una_offset + u64::from(segment.window);
        // RFC 5681, section 2: a duplicate acknowledgement carries no data, acknowledges nothing new
        // and leaves the window as it is.
        info.not_duplicate = info.una_advanced || end > self.peer_window.end || segment.len > 0;
        info.acked_bytes = (una_offset - self.offset_of(self.board.una())) as u32;
        info.is_plain = info.una_advanced
            && !info.ecn_echo
            && segment.sack.is_empty()
            && segment.window == self.peer_window.last;
        self.peer_window.offer(end, segment.window);
    }

    /// Where segment `seq` starts in the stream.
    #[inline]
    fn offset_of(&self, seq: u32) -> u64 {
        if seq < self.board.nxt() && seq >= self.board.una() {
            self.board.get(seq).offset
        } else {
            self.sent_bytes()
        }
    }

    /// Tags what selective acknowledgements report (`tcp_sacktag_write_queue`).
    fn take_sack(&mut self, segment: &Segment, info: &mut AckInfo) {
        if let Some(duplicate) = segment.sack.duplicate() {
            self.take_duplicate(duplicate, info);
        }
        let now_us = self.window.now_us;
        let highest = self.board.highest_sacked();
        let recovery_end = self.recovery.end;
        let min_rtt_us = self.rtt.min_us();
        let mut delivered = 0;
        for block in segment.sack.in_order() {
            let rack = &mut self.rack;
            let rate = &mut self.delivery.sampler;
            self.board.tag(block, |arrived| {
                delivered += 1;
                info.newly_sacked = true;
                info.note_rate(arrived);
                if let Some(rate) = rate {
                    rate.on_delivered(arrived);
                }
                rack.on_delivered(arrived, min_rtt_us, now_us);
                if !arrived.ever_retransmitted {
                    if arrived.seq < highest {
                        info.note_reordered(arrived.seq);
                    }
                    if arrived.seq < recovery_end {
                        info.original_delivered = true;
                    }
                    info.sacked_sent = join(info.sacked_sent, arrived.sent_us);
                }
            });
        }
        self.board.remember(segment.sack.received());
        self.delivery.delivered += delivered;
        let reordered = info.reordered.take();
        if let Some(seq) = reordered
            && (self.recovery.phase != Phase::Loss || self.recovery.undo.marker.is_some())
        {
            self.note_reordering(seq);
        }
    }

    /// The receiver got segments twice (`tcp_check_dsack`).
    fn take_duplicate(&mut self, block: Block, info: &mut AckInfo) {
        let Block { start, end } = block;
        let count = end.saturating_sub(start);
        info.probe_was_duplicate =
            self.recovery.tail_probe.is_some_and(|probe| probe.end == end && count == 1);
        self.recovery.duplicates_reported += u64::from(count);
        if count == 0 || self.recovery.duplicates_reported > self.counters.segments_retransmitted {
            // The network made it, and it says nothing about our retransmissions.
            return;
        }
        info.duplicate_reported = true;
        if self.reordering.is_seen && !info.probe_was_duplicate {
            self.rack.on_duplicate();
        }
        if end <= info.prior_una {
            self.recovery.undo.on_duplicate(end, count);
        } else {
            for seq in start.max(self.board.una())..end.min(self.board.nxt()) {
                let entry = self.board.get(seq);
                if !entry.ever_retransmitted() {
                    continue;
                }
                if entry.sacked() {
                    info.note_reordered(seq);
                }
                self.recovery.undo.on_duplicate(seq + 1, 1);
                self.board.on_duplicate(seq);
            }
        }
        self.delivery.delivered += count;
    }

    /// Takes everything below the acknowledged segment off the queue (`tcp_clean_rtx_queue`).
    fn take_cumulative(&mut self, info: &mut AckInfo, profile: &Profile) {
        let now_us = self.window.now_us;
        let min_rtt_us = self.rtt.min_us();
        while self.board.una() < info.ack {
            let arrived = self.board.pop();
            info.data_acked = true;
            info.note_rate(&arrived);
            if let Some(rate) = &mut self.delivery.sampler
                && !arrived.was_sacked
            {
                rate.on_delivered(&arrived);
            }
            if arrived.ever_retransmitted {
                info.retransmitted_acked = true;
            } else if !arrived.was_sacked {
                info.acked_sent = join(info.acked_sent, arrived.sent_us);
                info.note_reordered(arrived.seq);
                if arrived.seq < self.recovery.end {
                    info.original_delivered = true;
                }
            }
            if arrived.was_sacked {
                self.board.sacked_out -= 1;
            } else if profile.sack {
                self.delivery.delivered += 1;
                if !self.answers_original(&arrived) {
                    self.rack.on_delivered(&arrived, min_rtt_us, now_us);
                }
            }
        }
        self.window.una = self.board.una();
    }

    /// Whether the echoed timestamp shows that a retransmitted segment's original arrived.
    fn answers_original(&self, arrived: &Delivered) -> bool {
        arrived.ever_retransmitted
            && self.last_echo().is_some_and(|echo| u64::from(echo) < arrived.sent_us / 1_000)
    }

    /// Without SACK: the acknowledged segments are no longer among those counted as arrived.
    fn take_off_duplicates(&mut self, acked: u32) {
        self.delivery.delivered += acked.saturating_sub(self.board.sacked_out).max(1);
        self.board.sacked_out =
            if acked > self.board.sacked_out { 0 } else { self.board.sacked_out - (acked - 1) };
        self.limit_duplicates(acked);
    }

    /// Karn's rule and its refinements (`tcp_ack_update_rtt`): by segments never sent again, else by
    /// SACK, else by the timestamp. Returns that of the last segment, in microseconds.
    #[inline]
    fn measure_rtt(
        &mut self,
        info: &mut AckInfo,
        maybe_delayed: bool,
        profile: &Profile,
    ) -> Option<u32> {
        let now_us = self.window.now_us;
        let since = |sent: u64| (now_us - sent) as u32;
        let by_ack = info
            .acked_sent
            .filter(|_| !info.retransmitted_acked)
            .map(|(oldest, newest)| (since(oldest), since(newest)));
        let by_sack = info.sacked_sent.map(|(oldest, newest)| (since(oldest), since(newest)));
        let by_timestamp = || {
            let echo = self.last_echo().filter(|_| profile.timestamps && info.data_acked)?;
            let ms = (now_us / 1_000).saturating_sub(u64::from(echo)).max(1);
            Some(((ms * 1_000) as u32, (ms * 1_000) as u32))
        };
        // The estimate takes the first segment's round trip, congestion control the last one's.
        let first = by_ack.or(by_sack).or_else(by_timestamp).map(|(first, _)| first);
        let last = by_sack.or(by_ack).or_else(by_timestamp).map(|(_, last)| last);
        if let (Some(first), Some(last)) = (first, last) {
            if !(maybe_delayed && last > self.rtt.min_us()) {
                self.rtt.offer_min(last, now_us);
            }
            self.rtt.sample(first, self.board.una(), self.board.nxt());
            self.timers.rto_us = self.rtt.rto_us(self.window.cwnd, profile.timers);
            // The timer of the head runs by the new estimate.
            let head = self.board.head().map(|head| since(head.sent_us));
            if !info.data_acked
                && let (Some((oldest, _)), Some(head)) = (by_sack, head)
            {
                info.set_timer |= oldest > head;
            }
        }
        last
    }

    /// Tells the congestion control what the acknowledgement `segment` brings.
    #[inline]
    fn tell_algorithm(
        &mut self,
        rtt_us: Option<u32>,
        segment: &Segment,
        info: &AckInfo,
        prior: &BeforeAck,
    ) {
        let clocks = |echo_ms| Clocks { peer_ms: segment.ts, echo_ms };
        let sample = AckSample {
            rtt_us,
            acked: info.ack - info.prior_una,
            acked_bytes: info.acked_bytes,
            mss: self.mss,
            sacked_out: self.board.sacked_out,
            is_plain: info.is_plain,
            delivered: prior.delivered,
            delivered_marked: self.delivery.marked,
            clocks: segment.ts_echo.map(clocks),
        };
        self.algorithm.on_ack(&mut self.window, &sample);
    }

    #[inline]
    fn control_congestion(&mut self, info: &AckInfo, newly_delivered: u32, profile: &Profile) {
        let progress = if self.reordering.degree > REORDERING {
            info.data_acked || info.newly_sacked
        } else {
            info.data_acked
        };
        if self.recovery.phase.is_reducing() {
            self.reduce(info, newly_delivered, profile);
        } else if progress {
            let acked = if profile.byte_counting { newly_delivered } else { 1 };
            if self.algorithm.on_delivered(&mut self.window, acked) == Verdict::Congested {
                self.enter_cwr();
            }
            self.stamp_cwnd();
        }
        self.update_pacing_rate();
    }

    fn resend(&mut self, resend: Resend, profile: &Profile, wire: &mut impl Wire, now: Time) {
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.resend_lost(profile, wire, now),
            Resend::NewData => {
                self.send_new_data(profile, wire, now);
                if self.board.nxt() <= self.recovery.end {
                    self.recovery.f_rto_running = false;
                    self.resend_lost(profile, wire, now);
                }
            }
        }
    }

    /// Sends lost segments again, lowest first, as far as the window allows, and those of a piece of memory
    /// in one burst (`tcp_xmit_retransmit_queue`).
    pub fn resend_lost(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) {
        let head = self.board.una();
        let max_burst = self.max_burst(profile);
        let mut head_sent = false;
        while self.in_flight(profile) < self.window.cwnd && !self.must_wait_for_pace(now) {
            let Some(seq) = self.board.next_to_retransmit() else { break };
            let room = self.window.cwnd - self.in_flight(profile);
            let end = self.board.end_of_resend(seq, room.min(max_burst));
            self.retransmit(seq..end, false, wire, now);
            self.on_sent(end - seq);
            head_sent |= seq == head && self.pending_timer() != Some(Timer::Reordering);
        }
        if head_sent {
            self.set_timer(Timer::Retransmission, self.timers.rto_us, now);
        }
    }

    /// RFC 8985, section 7.3: new data if there is any, else the last segment again.
    fn send_loss_probe(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) {
        self.refresh(now);
        if self.recovery.tail_probe.is_none() && self.board.packets_out() > 0 {
            let fresh = self.send_one_new(profile, wire, now);
            if !fresh {
                let last = self.board.nxt() - 1;
                self.retransmit(last..last + 1, true, wire, now);
            }
            self.recovery.tail_probe =
                Some(TailProbe { end: self.board.nxt(), retransmission: !fresh });
            self.counters.loss_probes += 1;
            self.clear_timer();
        }
        self.rearm_timeout(now);
    }

    /// Handles the reordering timer: segments that might have been reordered are lost (RFC 8985, section 6.2,
    /// step 5).
    fn on_reordering_timeout(&mut self, profile: &Profile, wire: &mut impl Wire, now: Time) {
        self.refresh(now);
        let before = self.board.in_flight();
        let lost_before = self.delivery.lost;
        self.mark_overdue();
        if self.board.in_flight() != before {
            if self.recovery.phase != Phase::Recovery {
                self.enter_recovery(false);
                let newly_lost = self.delivery.lost - lost_before;
                self.reduce(&AckInfo { newly_lost, ..AckInfo::default() }, 1, profile);
            }
            self.resend_lost(profile, wire, now);
        }
        if self.pending_timer() != Some(Timer::Retransmission) {
            self.rearm_timeout(now);
        }
        debug_assert!(by_time(profile));
    }
}

impl AckInfo {
    /// Whether it may mean congestion (`FLAG_CA_ALERT`).
    fn is_alert(&self) -> bool {
        self.newly_sacked || self.ecn_echo || self.duplicate_reported
    }

    fn note_reordered(&mut self, seq: u32) {
        self.reordered = Some(self.reordered.map_or(seq, |lowest| lowest.min(seq)));
    }

    /// Keeps the delivery count at the sending of the latest transmission that arrived.
    fn note_rate(&mut self, arrived: &Delivered) {
        if arrived.was_sacked {
            return;
        }
        if self.prior_delivered.is_none_or(|(sent, _)| arrived.sent_us >= sent) {
            self.prior_delivered = Some((arrived.sent_us, arrived.prior_delivered));
        }
    }
}

/// The earliest and latest of a set of times, with `sent` added: first come, last come.
fn join(span: Option<(u64, u64)>, sent: u64) -> Option<(u64, u64)> {
    Some(span.map_or((sent, sent), |(first, _)| (first, sent)))
}
