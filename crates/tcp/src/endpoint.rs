//! One end of a connection: set-up, and both halves joined.

use std::sync::Arc;

use weir_core::{Duration, Ecn, Time};

use crate::congestion::{ALGORITHMS, Algorithm};
use crate::profile::Profile;
use crate::receiver::{AckNeed, OwnRtt, Receiver};
use crate::segment::{Flags, Segment};
use crate::sender::{Counters, Sender, Wire};
use crate::window::Window;

/// One end of a TCP connection.
///
/// The driver hands in segments and the time, sends what comes out through its [`Wire`], and calls
/// [`on_timer`](Self::on_timer) at [`next_timer`](Self::next_timer), which it reads anew after each
/// call. An endpoint never reads a clock.
#[derive(Debug)]
pub struct Endpoint {
    profile: Arc<Profile>,
    state: State,
    sender: Sender,
    receiver: Receiver,
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
    sent_us: u64,
    attempts: u32,
    retry_at: Time,
}

/// What an endpoint knows of its path and of itself, as `TCP_INFO` tells it.
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
    /// Its variation.
    pub rttvar: Duration,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Rate at which data is, or would be, paced, in bytes per second.
    pub pacing_rate: u64,
    /// Counters since the start.
    pub counters: Counters,
}

/// An algorithm that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown congestion control `{name}` (known: {})", ALGORITHMS.join(", "))]
pub struct UnknownAlgorithm {
    name: String,
}

impl Endpoint {
    /// An endpoint that speaks `profile` with the congestion control of that name, on a path whose
    /// segments hold `mss` bytes of data.
    ///
    /// # Errors
    /// If there is no such congestion control.
    pub fn new(profile: Arc<Profile>, algorithm: &str, mss: u32) -> Result<Self, UnknownAlgorithm> {
        let algorithm = Algorithm::named(algorithm)
            .ok_or_else(|| UnknownAlgorithm { name: algorithm.to_owned() })?;
        let sender = Sender::new(&profile, algorithm, mss);
        let receiver = Receiver::new(&profile, mss);
        Ok(Self { profile, state: State::Closed, sender, receiver })
    }

    /// Waits for the peer to open the connection.
    pub fn listen(&mut self) {
        self.state = State::Listen;
    }

    /// Opens the connection.
    pub fn connect(&mut self, wire: &mut impl Wire, now: Time) {
        self.send_syn(0, wire, now);
    }

    /// The application has `bytes` more to send ([`u64::MAX`]: without end).
    pub fn write(&mut self, bytes: u64, wire: &mut impl Wire, now: Time) {
        self.sender.write(bytes);
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
        let profile = &*self.profile;
        let mut stamped = Stamped { receiver: &mut self.receiver, profile, wire, acked: false };
        self.sender.on_ack(segment, profile, &mut stamped, now);
        let need = if segment.len > 0 {
            let own = OwnRtt { srtt_us: self.sender.rtt.srtt8() >> 3, rto_us: self.sender.rto_us };
            stamped.receiver.on_data(segment, ecn, profile, own, now)
        } else {
            AckNeed::Later
        };
        stamped.acked = false;
        self.sender.send_new_data(profile, &mut stamped, now);
        if need == AckNeed::Now && !stamped.acked {
            self.send_ack(wire, now);
        }
    }

    /// The time of [`next_timer`](Self::next_timer) has come.
    pub fn on_timer(&mut self, wire: &mut impl Wire, now: Time) {
        match self.state {
            State::SynSent(handshake) if handshake.retry_at <= now => {
                self.send_syn(handshake.attempts, wire, now);
            }
            State::SynReceived(handshake) if handshake.retry_at <= now => {
                self.send_syn_ack(handshake.attempts, wire, now);
            }
            State::Established => {
                if self.receiver.on_timer(&self.profile, now) == AckNeed::Now {
                    self.send_ack(wire, now);
                }
                if self.sender.timer().is_some_and(|at| at <= now) {
                    let profile = &*self.profile;
                    let mut stamped =
                        Stamped { receiver: &mut self.receiver, profile, wire, acked: false };
                    self.sender.on_timer(profile, &mut stamped, now);
                }
            }
            State::Closed | State::Listen | State::SynSent(_) | State::SynReceived(_) => {}
        }
    }

    /// When the endpoint wants to be called next.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        match self.state {
            State::Closed | State::Listen => None,
            State::SynSent(handshake) | State::SynReceived(handshake) => Some(handshake.retry_at),
            State::Established => match (self.sender.timer(), self.receiver.timer()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// Bytes that the application has received in order.
    #[must_use]
    pub const fn delivered_bytes(&self) -> u64 {
        self.receiver.delivered()
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

    /// What the endpoint knows of its path and of itself.
    #[must_use]
    pub fn info(&self) -> Info {
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        let window = &self.sender.window;
        let srtt8 = self.sender.rtt.srtt8();
        Info {
            cwnd: window.cwnd,
            ssthresh: (window.ssthresh < Window::INFINITE).then_some(window.ssthresh),
            in_flight: self.sender.board.in_flight(),
            srtt: (srtt8 > 0).then(|| micros(srtt8 >> 3)),
            rttvar: micros(self.sender.rtt.rttvar()),
            rto: micros(self.sender.rto_us),
            pacing_rate: window.pacing_rate,
            counters: self.sender.counters,
        }
    }

    /// The profile that it speaks.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn push(&mut self, wire: &mut impl Wire, now: Time) {
        if self.state == State::Established {
            let profile = &*self.profile;
            let mut stamped = Stamped { receiver: &mut self.receiver, profile, wire, acked: false };
            self.sender.send_new_data(profile, &mut stamped, now);
        }
    }

    fn on_syn(&mut self, segment: &Segment, wire: &mut impl Wire, now: Time) {
        self.receiver.on_timestamp(segment);
        match self.state {
            State::Listen => self.send_syn_ack(0, wire, now),
            // The peer did not get our answer.
            State::SynReceived(handshake) => self.send_syn_ack(handshake.attempts, wire, now),
            State::SynSent(handshake) if segment.flags.has(Flags::ACK) => {
                self.establish(segment, handshake, now);
                self.send_ack(wire, now);
                self.push(wire, now);
            }
            // Our acknowledgement was lost.
            State::Established if segment.flags.has(Flags::ACK) => self.send_ack(wire, now),
            State::Closed | State::SynSent(_) | State::Established => {}
        }
    }

    fn establish(&mut self, segment: &Segment, handshake: Handshake, now: Time) {
        let rtt = (now.as_nanos() / 1_000 - handshake.sent_us) as u32;
        let rtt = (handshake.attempts == 1).then_some(rtt);
        self.sender.establish(segment.window, rtt, now);
        self.state = State::Established;
    }

    fn send_syn(&mut self, attempts: u32, wire: &mut impl Wire, now: Time) {
        let mut syn = self.bare_segment(now);
        syn.flags = Flags::SYN;
        if self.profile.ecn {
            syn.flags = syn.flags.with(Flags::ECE).with(Flags::CWR);
        }
        syn.window = self.receiver.offered_window();
        wire.send(syn, Ecn::NotEct);
        // Linux retries four times at the initial timeout before it doubles it.
        let doublings = attempts.saturating_sub(SYN_LINEAR_TIMEOUTS);
        self.state = State::SynSent(self.handshake(attempts, doublings, now));
    }

    fn send_syn_ack(&mut self, attempts: u32, wire: &mut impl Wire, now: Time) {
        let mut syn_ack = self.bare_segment(now);
        self.receiver.write_ack(&mut syn_ack, &self.profile);
        syn_ack.flags = syn_ack.flags.with(Flags::SYN);
        if self.profile.ecn {
            syn_ack.flags = syn_ack.flags.with(Flags::ECE);
        }
        wire.send(syn_ack, Ecn::NotEct);
        self.state = State::SynReceived(self.handshake(attempts, attempts, now));
    }

    fn handshake(&self, attempts: u32, doublings: u32, now: Time) -> Handshake {
        let wait = self.profile.rto_initial * (1 << doublings.min(6));
        Handshake {
            sent_us: now.as_nanos() / 1_000,
            attempts: attempts + 1,
            retry_at: self.profile.timers.fires_at(now, wait),
        }
    }

    fn send_ack(&mut self, wire: &mut impl Wire, now: Time) {
        let mut ack = self.bare_segment(now);
        self.receiver.write_ack(&mut ack, &self.profile);
        wire.send(ack, Ecn::NotEct);
    }

    fn bare_segment(&self, now: Time) -> Segment {
        Segment {
            seq: self.sender.board.nxt(),
            offset: self.sender.sent_bytes(),
            ts: (now.as_nanos() / 1_000_000) as u32,
            ..Segment::default()
        }
    }
}

/// Writes into every segment of the sending half what the receiving half has to say.
struct Stamped<'a, W> {
    receiver: &'a mut Receiver,
    profile: &'a Profile,
    wire: &'a mut W,
    acked: bool,
}

impl<W: Wire> Wire for Stamped<'_, W> {
    fn send(&mut self, mut segment: Segment, ecn: Ecn) {
        self.receiver.write_ack(&mut segment, self.profile);
        self.acked = true;
        self.wire.send(segment, ecn);
    }
}

/// `tcp_syn_linear_timeouts`.
const SYN_LINEAR_TIMEOUTS: u32 = 4;
