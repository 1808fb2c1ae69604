//! One end of a connection: handshake, sending and receiving half.

use std::mem::offset_of;
use std::sync::Arc;

use weir_core::{Duration, Ecn, Rng, Time, prefetch, prefetch_start};

use crate::ack_state::{AckNeed, OwnRtt};
use crate::congestion::{self, Algorithm};
use crate::profile::Profile;
use crate::receiver::Receiver;
use crate::segment::{Flags, Segment};
use crate::sender::{Counters, Sender, Wire};
use crate::window::Window;

/// One end of a TCP connection.
///
/// The driver hands in segments and the time, sends what comes out through its [`Wire`], and calls
/// [`on_timer`](Self::on_timer) at [`next_timer`](Self::next_timer), which it reads anew after each
/// call. An endpoint never reads a clock.
///
/// In front is what an end needs that only receives, up to the first fields of `Sender`: with many connections each
/// packet finds its end far from the processor, in as many pieces as there are cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Endpoint {
    profile: Arc<Profile>,
    state: State,
    receiver: Receiver,
    pub(crate) sender: Sender,
}

/// RFC 9293, section 3.3.2, as far as it matters: connections are opened and never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Listen,
    SynSent(Handshake),
    SynReceived(Handshake),
    Established,
}

/// A SYN or SYN-ACK under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Handshake {
    /// When it was sent first.
    first_us: u64,
    /// How often it was sent.
    attempts: u32,
    /// How often its timer expired.
    timeouts: u32,
    retry_at: Time,
}

/// An endpoint's state and its measurements of the path, as `TCP_INFO` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow start threshold, in segments; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Segments in the network.
    pub in_flight: u32,
    /// Smoothed round trip; `None` before the first.
    pub srtt: Option<Duration>,
    /// Mean deviation of the smoothed round trip.
    pub rttvar: Duration,
    /// Shortest round trip of the last minutes; `None` before the first.
    pub min_rtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Rate at which data is, or would be, paced, in bytes per second.
    pub pacing_rate: u64,
    /// Counters since the start.
    pub counters: Counters,
}

/// An algorithm that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown congestion control `{name}`: {}", congestion::instead_of(name))]
pub struct UnknownAlgorithm {
    name: String,
}

impl Endpoint {
    /// An endpoint that speaks `profile` with the congestion control of that name, on a path whose
    /// segments hold `mss` bytes of data. What is left to chance it draws from `random`. A congestion control that
    /// needs ECN asks for it whatever the profile says.
    ///
    /// # Errors
    /// If there is no such congestion control.
    pub fn new(
        mut profile: Arc<Profile>,
        algorithm: &str,
        mss: u32,
        random: Rng,
    ) -> Result<Self, UnknownAlgorithm> {
        let known = Algorithm::named(algorithm)
            .ok_or_else(|| UnknownAlgorithm { name: algorithm.to_owned() })?;
        let control = (known.begin)(random);
        let counts_marks = control.counts_marks();
        if counts_marks && !profile.ecn {
            Arc::make_mut(&mut profile).ecn = true;
        }
        let sender = Sender::new(&profile, control, mss);
        let receiver = Receiver::new(&profile, mss, counts_marks);
        Ok(Self { profile, state: State::Closed, sender, receiver })
    }

    /// Waits for the peer to open the connection.
    pub fn listen(&mut self) {
        self.state = State::Listen;
    }

    /// Opens the connection.
    pub fn connect(&mut self, wire: &mut impl Wire, now: Time) {
        let handshake = Handshake::new(now);
        self.receiver.open(&self.profile);
        self.send_syn(handshake, wire, now);
    }

    /// The application has `bytes` more to send ([`u64::MAX`]: without end).
    pub fn write(&mut self, bytes: u64, wire: &mut impl Wire, now: Time) {
        self.sender.write(bytes, &self.profile, now);
        self.push(wire, now);
    }

    /// The application stops: what was not sent yet will not be.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// A segment arrived, with `ecn` in its IP header.
    pub fn on_segment(&mut self, segment: &Segment, ecn: Ecn, wire: &mut impl Wire, now: Time) {
        if segment.flags.has(Flags::SYN) {
            return self.on_syn(segment, wire, now);
        }
        if let State::SynReceived(handshake) = self.state {
            self.establish(segment, handshake, now);
        }
        if self.state != State::Established {
            return;
        }
        self.receiver.on_timestamp(segment);
        let (sender, profile, mut stamped) = self.stamped(wire, now);
        sender.on_ack(segment, profile, &mut stamped, now);
        let need = self.take_data(segment, ecn, wire, now);
        let acked = self.push(wire, now);
        if need == AckNeed::Now && !acked {
            self.send_ack(wire, now);
        }
    }

    /// The time of [`next_timer`](Self::next_timer) has come.
    pub fn on_timer(&mut self, wire: &mut impl Wire, now: Time) {
        match self.state {
            State::SynSent(handshake) if handshake.retry_at <= now => {
                self.send_syn(handshake.timed_out(), wire, now);
            }
            State::SynReceived(handshake) if handshake.retry_at <= now => {
                self.send_syn_ack(handshake.timed_out(), wire, now);
            }
            State::Established => {
                if self.receiver.on_timer(&self.profile, now) == AckNeed::Now {
                    self.send_ack(wire, now);
                }
                if self.sender.timer(&self.profile) <= now {
                    let (sender, profile, mut stamped) = self.stamped(wire, now);
                    sender.on_timer(profile, &mut stamped, now);
                }
            }
            State::Closed | State::Listen | State::SynSent(_) | State::SynReceived(_) => {}
        }
    }

    /// When the endpoint wants to be called next.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        Some(self.timer_at()).filter(|&at| at < Time::MAX)
    }

    /// When the endpoint wants to be called next; [`Time::MAX`] for never.
    #[must_use]
    pub fn timer_at(&self) -> Time {
        match self.state {
            State::Closed | State::Listen => Time::MAX,
            State::SynSent(handshake) | State::SynReceived(handshake) => handshake.retry_at,
            State::Established => {
                self.sender.timer(&self.profile).min(self.receiver.timer(self.profile.timers))
            }
        }
    }

    /// A time before which the endpoint does not want to be called, which takes less work to tell than
    /// [`timer_at`](Self::timer_at): timers go by ticks, and most are set anew before they expire.
    #[must_use]
    #[inline(always)]
    pub fn timer_from(&self) -> Time {
        if self.state != State::Established {
            return self.timer_at();
        }
        let timers = self.profile.timers;
        self.sender.timer_from(&self.profile).min(self.receiver.timer_from(timers))
    }

    /// Asks the processor for the endpoint, of which an end that only receives needs the beginning.
    #[inline]
    pub fn prefetch(&self, only_receives: bool) {
        if only_receives {
            prefetch_start(self, offset_of!(Self, sender) + Sender::RECEIVING_BYTES);
        } else {
            prefetch(self);
        }
    }

    /// Asks the processor for what an acknowledgement needs and the endpoint only points to.
    #[inline]
    pub fn prefetch_behind(&self) {
        self.receiver.prefetch_behind();
        if let Some(head) = self.sender.board.head() {
            prefetch(head);
            prefetch(&*self.sender.algorithm);
        }
    }

    /// Bytes that the application has received in order.
    #[must_use]
    pub const fn delivered_bytes(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Bytes of what was written that the peer has acknowledged, in order.
    #[must_use]
    pub fn acked_bytes(&self) -> u64 {
        self.sender.acked_bytes()
    }

    /// Bytes that the peer is known to have, in order or not, in whole segments (`tcpi_delivered`).
    #[must_use]
    pub fn reached_bytes(&self) -> u64 {
        u64::from(self.sender.delivery.delivered) * u64::from(self.sender.mss)
    }

    /// Bytes that were written and never sent (`tcpi_notsent_bytes`, and what the buffer has no room for).
    #[must_use]
    pub const fn unsent_bytes(&self) -> u64 {
        self.sender.stream.written - self.sender.stream.sent
    }

    /// Whether the send buffer has taken everything that was written: who writes more then does not block.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.sender.stream.buffered.end == self.sender.stream.written
    }

    /// The last round trip that was measured since the last call, not smoothed.
    pub fn take_rtt(&mut self) -> Option<Duration> {
        self.sender.rtt.take_latest_us().map(|us| Duration::from_micros(u64::from(us)))
    }

    /// Whether the connection is open.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether everything that was written has been acknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }

    /// The endpoint's state and its measurements of the path.
    #[must_use]
    pub fn info(&self) -> Info {
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        let window = &self.sender.window;
        let srtt8 = self.sender.rtt.srtt8_us();
        Info {
            cwnd: window.cwnd,
            ssthresh: (window.ssthresh < Window::INFINITE).then_some(window.ssthresh),
            in_flight: self.sender.board.in_flight(),
            srtt: srtt8.map(|srtt8| micros(srtt8 >> 3)),
            rttvar: micros(self.sender.rtt.mean_deviation_us()),
            min_rtt: srtt8.map(|_| micros(self.sender.rtt.min_us())),
            rto: micros(self.sender.timers.rto_us),
            pacing_rate: window.pacing_rate,
            counters: self.sender.counters,
        }
    }

    /// The profile that it speaks, without what the peer turned down.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Sends what may be sent, and says whether it did: then the peer has its acknowledgement too.
    fn push(&mut self, wire: &mut impl Wire, now: Time) -> bool {
        if self.state != State::Established || self.sender.is_idle() {
            return false;
        }
        let (sender, profile, mut stamped) = self.stamped(wire, now);
        sender.send_new_data(profile, &mut stamped, now);
        stamped.acked
    }

    /// Hands the data of `segment`, if it has any, to the receiving half.
    fn take_data(
        &mut self,
        segment: &Segment,
        ecn: Ecn,
        wire: &mut impl Wire,
        now: Time,
    ) -> AckNeed {
        if segment.len == 0 {
            return AckNeed::Later;
        }
        if self.receiver.must_report_before(segment, ecn, &self.profile) {
            self.send_ack(wire, now);
        }
        let own =
            OwnRtt { srtt8_us: self.sender.rtt.srtt8_us(), rto_us: self.sender.timers.rto_us };
        self.receiver.on_data(segment, ecn, &self.profile, own, now)
    }

    /// The sending half, and a wire that lets the receiving half have its say on what it sends.
    fn stamped<'a, W>(
        &'a mut self,
        wire: &'a mut W,
        now: Time,
    ) -> (&'a mut Sender, &'a Profile, Stamped<'a, W>) {
        let Self { profile, sender, receiver, .. } = self;
        (sender, profile, Stamped { receiver, profile, wire, now, acked: false })
    }

    fn on_syn(&mut self, segment: &Segment, wire: &mut impl Wire, now: Time) {
        self.receiver.on_timestamp(segment);
        match self.state {
            State::Listen => {
                // RFC 3168, section 6.1.1: a SYN asks for ECN with both flags ...
                self.agree_on_ecn(segment.flags.has(Flags::ECE.with(Flags::CWR)));
                self.send_syn_ack(Handshake::new(now), wire, now);
            }
            // The peer did not get our answer.
            State::SynReceived(handshake) => self.send_syn_ack(handshake, wire, now),
            State::SynSent(handshake) if segment.flags.has(Flags::ACK) => {
                // ... and the answer agrees with one of them.
                let flags = segment.flags;
                self.agree_on_ecn(flags.has(Flags::ECE) && !flags.has(Flags::CWR));
                self.establish(segment, handshake, now);
                self.send_ack(wire, now);
                self.push(wire, now);
            }
            // Our acknowledgement was lost.
            State::Established if segment.flags.has(Flags::ACK) => self.send_ack(wire, now),
            State::Closed | State::SynSent(_) | State::Established => {}
        }
    }

    /// Goes without ECN unless the peer wants it too.
    fn agree_on_ecn(&mut self, peer_agrees: bool) {
        if self.profile.ecn && !peer_agrees {
            Arc::make_mut(&mut self.profile).ecn = false;
        }
    }

    fn establish(&mut self, segment: &Segment, handshake: Handshake, now: Time) {
        let echo = segment.ts_echo.filter(|_| self.profile.timestamps);
        self.sender.establish(segment.window, handshake.rtt_us(echo, now), &self.profile, now);
        self.receiver.establish(self.profile.timers, now);
        if handshake.lost_more_than_once(echo) {
            self.sender.window.cwnd = 1;
        }
        self.state = State::Established;
    }

    fn send_syn(&mut self, handshake: Handshake, wire: &mut impl Wire, now: Time) {
        let mut syn = self.bare_segment(now);
        syn.flags = Flags::SYN;
        let falls_back = self.profile.ecn_fallback && handshake.attempts > 0;
        if self.profile.ecn && !falls_back {
            syn.flags = syn.flags.with(Flags::ECE).with(Flags::CWR);
        }
        syn.window = self.receiver.offered_window();
        wire.send(
            &mut syn,
            if self.sender.algorithm.counts_marks() { Ecn::Ect0 } else { Ecn::NotEct },
        );
        let doublings = handshake.timeouts.saturating_sub(self.profile.syn_linear_timeouts);
        self.state = State::SynSent(handshake.sent(doublings, &self.profile, now));
    }

    fn send_syn_ack(&mut self, handshake: Handshake, wire: &mut impl Wire, now: Time) {
        let mut syn_ack = self.bare_segment(now);
        self.receiver.write_ack(&mut syn_ack, &self.profile);
        syn_ack.flags = syn_ack.flags.with(Flags::SYN);
        if self.profile.ecn {
            syn_ack.flags = syn_ack.flags.with(Flags::ECE);
        }
        wire.send(&mut syn_ack, Ecn::NotEct);
        self.state = State::SynReceived(handshake.sent(handshake.timeouts, &self.profile, now));
    }

    fn send_ack(&mut self, wire: &mut impl Wire, now: Time) {
        let mut ack = self.bare_segment(now);
        self.receiver.write_ack(&mut ack, &self.profile);
        wire.send(&mut ack, self.sender.control_ecn);
    }

    #[inline]
    fn bare_segment(&self, now: Time) -> Segment {
        Segment {
            seq: self.sender.board.nxt(),
            offset: self.sender.sent_bytes(),
            ts: (now.as_nanos() / 1_000_000) as u32,
            ..Segment::default()
        }
    }
}

impl Handshake {
    fn new(now: Time) -> Self {
        Self { first_us: now.as_nanos() / 1_000, attempts: 0, timeouts: 0, retry_at: Time::MAX }
    }

    /// The handshake after its timer has expired once more.
    fn timed_out(self) -> Self {
        Self { timeouts: self.timeouts + 1, ..self }
    }

    /// The handshake after its segment was sent once more; the wait is the initial timeout, doubled
    /// `doublings` times.
    fn sent(self, doublings: u32, profile: &Profile, now: Time) -> Self {
        let wait = (profile.rto_initial * (1 << doublings.min(16))).min(profile.rto_max);
        let retry_at = profile.timers.fires_at(now, wait);
        Self { attempts: self.attempts + 1, retry_at, ..self }
    }

    /// The round trip in microseconds: by the only transmission, or by which one the answer echoes
    /// (RFC 7323, section 4.1).
    fn rtt_us(self, echo: Option<u32>, now: Time) -> Option<u32> {
        let now_us = now.as_nanos() / 1_000;
        if self.attempts == 1 {
            return Some((now_us - self.first_us) as u32);
        }
        let echo_ms = u64::from(echo?);
        Some(((now_us / 1_000).saturating_sub(echo_ms).max(1) * 1_000) as u32)
    }

    /// RFC 6928, section 2: the initial window is one segment only after more than one loss in the
    /// handshake, for a single one may have been but late; and not if the first transmission is the one
    /// that was answered (`tcp_init_transfer`, `tcp_try_undo_spurious_syn`).
    fn lost_more_than_once(self, echo: Option<u32>) -> bool {
        let answers_first = echo.is_some_and(|echo| u64::from(echo) == self.first_us / 1_000);
        self.attempts > 2 && self.timeouts > 0 && !answers_first
    }
}

/// Writes into every segment of the sending half what the receiving half has to say.
struct Stamped<'a, W> {
    receiver: &'a mut Receiver,
    profile: &'a Profile,
    wire: &'a mut W,
    now: Time,
    acked: bool,
}

impl<W: Wire> Wire for Stamped<'_, W> {
    #[inline(always)]
    fn send(&mut self, segment: &mut Segment, ecn: Ecn) {
        self.receiver.write_ack(segment, self.profile);
        if segment.len > 0 {
            self.receiver.on_sent(self.profile, self.now);
        }
        self.acked = true;
        self.wire.send(segment, ecn);
    }
}
