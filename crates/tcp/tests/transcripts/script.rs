//! A scripted peer: one endpoint under test, fed with hand-made segments at given times.
//!
//! Every segment that leaves has to be announced, at its time: what leaves unannounced fails the test
//! as soon as time moves on. Timers run by themselves.

use std::sync::Arc;

use weir_core::{Duration, Ecn, Seed, Time};
use weir_tcp::{Bursts, Endpoint, Flags, Info, Profile, Segment, Wire};

use crate::line::{Line, LineKind, MSS, ORIGIN, ack, all, since_origin, stamp_of, syn, syn_ack};

/// The endpoint under test, and how the connection starts.
#[derive(Clone, Debug)]
pub struct Setup {
    profile: Profile,
    algorithm: &'static str,
    rtt: Duration,
    peer_window: u32,
}

/// Linux with Reno, a round trip of 100 ms in the handshake, and segments sent one by one.
pub fn linux() -> Setup {
    setup("linux").with(|profile| profile.bursts = Bursts::None)
}

/// The plain rules of the RFCs with Reno, and a round trip of 100 ms in the handshake.
pub fn rfc() -> Setup {
    setup("rfc")
}

fn setup(name: &str) -> Setup {
    Setup {
        profile: Profile::named(name).expect("a known profile"),
        algorithm: "reno",
        rtt: Duration::from_millis(100),
        peer_window: 1_000 * MSS,
    }
}

impl Setup {
    /// With a changed profile.
    pub fn with(mut self, change: impl FnOnce(&mut Profile)) -> Self {
        change(&mut self.profile);
        self
    }

    /// With CUBIC.
    pub fn cubic(self) -> Self {
        self.algorithm("cubic")
    }

    /// With the congestion control of that name.
    pub fn algorithm(mut self, name: &'static str) -> Self {
        self.algorithm = name;
        self
    }

    /// With BBR, and bursts as Linux has them.
    pub fn bbr(mut self) -> Self {
        self.profile.bursts = Bursts::Linux;
        self.algorithm("bbr")
    }

    /// With another round trip in the handshake.
    pub fn rtt(mut self, rtt: Duration) -> Self {
        self.rtt = rtt;
        self
    }

    /// Sets the receive window that the peer offers, in bytes.
    pub fn peer_window(mut self, bytes: u32) -> Self {
        self.peer_window = bytes;
        self
    }

    pub fn endpoint(&self) -> Endpoint {
        let random = Seed::new(1).stream("tcp");
        Endpoint::new(Arc::new(self.profile.clone()), self.algorithm, MSS, random).expect("known")
    }

    /// Nothing has happened yet.
    pub fn closed(self) -> Script {
        Script {
            endpoint: self.endpoint(),
            now: ORIGIN,
            left: Outbox::default(),
            announced: 0,
            peer: Peer { ack: 0, offsets: vec![0], window: self.peer_window, echo: 0 },
        }
    }

    /// The endpoint opened the connection, and the answer arrives at the start of the script.
    pub fn connected(self) -> Script {
        let rtt = self.rtt;
        let mut script = self.closed();
        script.now = ORIGIN - rtt;
        script.connects();
        script.leaves(&[syn()]);
        script.at(Duration::ZERO).arrives(syn_ack()).leaves(&[ack(0)]);
        script.peer.echo = script.left.last_stamp;
        script
    }

    /// The peer opened the connection, and its acknowledgement arrives at the start of the script.
    pub fn accepted(self) -> Script {
        let rtt = self.rtt;
        let mut script = self.closed();
        script.now = ORIGIN - rtt;
        script.endpoint.listen();
        script.arrives(syn()).leaves(&[syn_ack()]);
        script.at(Duration::ZERO).arrives(ack(0)).leaves(&[]);
        script.peer.echo = script.left.last_stamp;
        script
    }
}

/// An endpoint and its scripted peer.
pub struct Script {
    endpoint: Endpoint,
    now: Time,
    left: Outbox,
    /// How many of the segments that left were announced.
    announced: usize,
    peer: Peer,
}

/// The peer: the values that it writes into its segments unless told otherwise.
struct Peer {
    /// Number of the segment up to which the peer has acknowledged.
    ack: u32,
    /// Where each of its data segments starts in its stream, and last where the next one will.
    offsets: Vec<u64>,
    window: u32,
    /// The timestamp that it echoes.
    echo: u32,
}

/// Everything that left.
#[derive(Default)]
struct Outbox {
    lines: Vec<(Time, Line)>,
    now: Time,
    /// The next data segment that was never sent, and when each was sent last.
    next: u32,
    stamps: Vec<u32>,
    last_stamp: u32,
}

impl Wire for Outbox {
    fn send(&mut self, segment: &mut Segment, ecn: Ecn) {
        self.lines.push((self.now, Line::of(segment, ecn, self.next)));
        self.last_stamp = segment.ts;
        if segment.len > 0 {
            self.next = self.next.max(segment.seq + 1);
            self.stamps.resize(self.next as usize, 0);
            self.stamps[segment.seq as usize] = segment.ts;
        }
    }
}

impl Script {
    /// Moves to `moment` after the start. Timers up to then, `moment` included, run.
    #[track_caller]
    pub fn at(&mut self, moment: Duration) -> &mut Self {
        let moment = ORIGIN + moment;
        assert!(moment >= self.now, "the script runs backwards");
        let mut calls = 0;
        while let Some(timer) = self.endpoint.next_timer().filter(|&timer| timer <= moment) {
            calls += 1;
            assert!(calls < 10_000, "the timers never come to rest");
            self.now = self.now.max(timer);
            self.left.now = self.now;
            self.endpoint.on_timer(&mut self.left, self.now);
        }
        self.now = moment;
        let early = self.left.lines[self.announced..].iter().find(|(at, _)| *at < moment);
        if let Some((at, line)) = early {
            panic!("left unannounced at {}: {line:#}", clock(*at));
        }
        self
    }

    /// Moves on by `span`.
    #[track_caller]
    pub fn later(&mut self, span: Duration) -> &mut Self {
        self.at(self.now.since(ORIGIN) + span)
    }

    /// Moves to `moment`, and lets what timers send meanwhile leave unannounced.
    #[track_caller]
    pub fn at_in_passing(&mut self, moment: Duration) -> &mut Self {
        while let Some(timer) = self.timer().filter(|&timer| timer < moment) {
            self.at(timer).skips();
        }
        self.at(moment).skips()
    }

    /// `line` arrives from the peer.
    #[track_caller]
    pub fn arrives(&mut self, line: Line) -> &mut Self {
        let segment = self.peer_segment(&line);
        self.left.now = self.now;
        let ecn = line.ecn.unwrap_or(Ecn::NotEct);
        self.endpoint.on_segment(&segment, ecn, &mut self.left, self.now);
        self
    }

    /// Exactly these leave now, in this order.
    #[track_caller]
    pub fn leaves(&mut self, lines: &[Line]) -> &mut Self {
        let real = &self.left.lines[self.announced..];
        let agree = lines.len() == real.len()
            && lines.iter().zip(real).all(|(line, (at, sent))| *at == self.now && line.says(sent));
        if !agree {
            let stated: Vec<_> = lines.iter().map(|line| format!("  {line:#}")).collect();
            let sent: Vec<_> =
                real.iter().map(|(at, line)| format!("  {line:#}, at {}", clock(*at))).collect();
            panic!(
                "at {} should leave:\n{}\nbut these did:\n{}",
                clock(self.now),
                stated.join("\n"),
                sent.join("\n")
            );
        }
        self.announced = self.left.lines.len();
        self
    }

    /// Nothing leaves before `moment`, and exactly `lines` then.
    #[track_caller]
    pub fn leaves_at(&mut self, moment: Duration, lines: &[Line]) -> &mut Self {
        self.at(moment - Duration::from_nanos(1)).leaves(&[]);
        self.at(moment).leaves(lines)
    }

    /// Skips the segments that have left: for stretches of a script that another test states in full.
    pub fn skips(&mut self) -> &mut Self {
        self.announced = self.left.lines.len();
        self
    }

    /// Everything that has left is acknowledged at `moment` by one segment, `changed`; what that lets leave does
    /// so unannounced.
    #[track_caller]
    pub fn all_arrive(
        &mut self,
        moment: Duration,
        changed: impl FnOnce(Line) -> Line,
    ) -> &mut Self {
        self.at(moment);
        let answer = changed(ack(self.left.next));
        self.arrives(answer).skips()
    }

    /// The application writes `segments` full segments.
    pub fn writes(&mut self, segments: u32) -> &mut Self {
        self.writes_bytes(u64::from(segments) * u64::from(MSS))
    }

    /// The application writes `bytes`.
    pub fn writes_bytes(&mut self, bytes: u64) -> &mut Self {
        self.left.now = self.now;
        self.endpoint.write(bytes, &mut self.left, self.now);
        self
    }

    /// The application writes without end.
    pub fn writes_on(&mut self) -> &mut Self {
        self.writes_bytes(u64::MAX)
    }

    /// The application has no more to send.
    pub fn stops(&mut self) -> &mut Self {
        self.endpoint.stop();
        self
    }

    /// The application opens the connection.
    pub fn connects(&mut self) -> &mut Self {
        self.left.now = self.now;
        self.endpoint.connect(&mut self.left, self.now);
        self
    }

    /// The application waits for a connection.
    pub fn listens(&mut self) -> &mut Self {
        self.endpoint.listen();
        self
    }

    /// The first `count` segments leave now, and are acknowledged one by one a round trip of `rtt`
    /// later, by when the next ones leave, which are twice as many: slow start.
    #[track_caller]
    pub fn slow_starts(&mut self, count: u32, rtt: Duration) -> &mut Self {
        self.leaves(&all(0..count));
        let later = self.now.since(ORIGIN) + rtt;
        self.at(later);
        for number in 1..=count {
            let next = count + 2 * (number - 1);
            self.arrives(ack(number)).leaves(&all(next..next + 2));
        }
        self
    }

    pub fn info(&self) -> Info {
        self.endpoint.info()
    }

    /// The congestion window, in segments.
    pub fn cwnd(&self) -> u32 {
        self.info().cwnd
    }

    /// Window and threshold.
    pub fn windows(&self) -> (u32, Option<u32>) {
        (self.info().cwnd, self.info().ssthresh)
    }

    /// The next data segment that was never sent.
    pub fn next(&self) -> u32 {
        self.left.next
    }

    /// The receive window that the last segment offered, in bytes.
    pub fn last_window(&self) -> u32 {
        self.left.lines.last().and_then(|(_, line)| line.window).expect("something left")
    }

    /// When the endpoint wants to be called, from the start of the script.
    pub fn timer(&self) -> Option<Duration> {
        self.endpoint.next_timer().map(|at| at.since(ORIGIN))
    }

    fn peer_segment(&mut self, line: &Line) -> Segment {
        let stamp = line.stamp.unwrap_or_else(|| since_origin(self.now_ms()));
        let next = self.peer.offsets.len() - 1;
        let mut segment = Segment {
            seq: next as u32,
            offset: self.peer.offsets[next],
            ack: line.acks.unwrap_or(self.peer.ack),
            window: line.window.unwrap_or(self.peer.window),
            ts: stamp_of(stamp),
            flags: line.flags.with(Flags::ACK),
            sack: line.sack,
            ..Segment::default()
        };
        if line.pushed == Some(true) {
            segment.flags = segment.flags.with(Flags::PSH);
        }
        match line.kind {
            LineKind::Syn => segment.flags = line.flags.with(Flags::SYN),
            LineKind::SynAck => segment.flags = segment.flags.with(Flags::SYN),
            LineKind::Ack => segment.ack = line.number,
            LineKind::Data | LineKind::Again => {
                segment.seq = line.number;
                segment.len = line.len.unwrap_or(MSS as u16);
                segment.offset = self.peer.sends(line.number, segment.len);
            }
        }
        segment.ts_echo = match line.echo {
            Some(echo) => Some(stamp_of(echo)),
            None => self.peer_echo(&segment),
        };
        self.peer.ack = self.peer.ack.max(segment.ack);
        segment
    }

    /// The timestamp that a peer by the book echoes (RFC 7323, section 4.3).
    ///
    /// It is that of the segment with which the newly acknowledged stretch begins.
    fn peer_echo(&mut self, segment: &Segment) -> Option<u32> {
        if segment.flags.has(Flags::SYN) {
            return segment.flags.has(Flags::ACK).then_some(self.left.last_stamp);
        }
        if segment.ack > self.peer.ack {
            self.peer.echo = self.left.stamps[self.peer.ack as usize];
        }
        Some(self.peer.echo)
    }

    fn now_ms(&self) -> u32 {
        (self.now.as_nanos() / 1_000_000) as u32
    }
}

/// A script that ends must not leave anything unannounced either.
impl Drop for Script {
    fn drop(&mut self) {
        if let Some((at, line)) = self.left.lines.get(self.announced)
            && !std::thread::panicking()
        {
            panic!("left unannounced at the end, {}: {line:#}", clock(*at));
        }
    }
}

impl Peer {
    /// Sends `len` bytes as segment `number`, and returns where they start. What it has sent before in
    /// between was full.
    fn sends(&mut self, number: u32, len: u16) -> u64 {
        let number = number as usize;
        while self.offsets.len() <= number {
            let next = self.offsets[self.offsets.len() - 1] + u64::from(MSS);
            self.offsets.push(next);
        }
        let start = self.offsets[number];
        if self.offsets.len() == number + 1 {
            self.offsets.push(start + u64::from(len));
        }
        start
    }
}

/// A time of the script, for people.
fn clock(at: Time) -> String {
    let since = |span: Duration| format!("{} ms", span.as_millis_f64());
    at.checked_since(ORIGIN).map_or_else(|| format!("-{}", since(ORIGIN.since(at))), since)
}

/// Milliseconds.
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Microseconds.
pub fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Nanoseconds.
pub fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}
