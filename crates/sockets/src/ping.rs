//! Pings to any host, without a scenario: `weir ping`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration as WallDuration, Instant};

use weir_core::{Duration, Time};
use weir_scenario::LatencyRow;
use weir_speedtest::protocol::weir::{ECHO_BYTES, Secret};

use crate::check::MAX_PAYLOAD_BYTES;
use crate::clock::Clock;
use crate::echo::{EchoGrant, EchoKeeper, EchoNews};
use crate::error::{NetError, is_forbidden};
use crate::plan::Control;
use crate::probes::{
    Patience, PingMarks, PingMethod, PingSink, ProbeTrain, Prober, Reflector, Schedule,
};
use crate::sys::message::IcmpError;
use crate::sys::option;

/// Settings of a train of pings.
#[derive(Clone, Copy, Debug)]
pub struct PingSettings {
    /// The host, with its port where the method has one.
    pub server: SocketAddr,
    /// Protocol of the pings.
    pub method: PingMethod,
    /// Bytes behind the headers; a handshake has none.
    pub payload_bytes: u32,
    /// The DSCP of all packets.
    pub dscp: u8,
    /// Time to live or hop limit; the system's own if `None`.
    pub ttl: Option<u8>,
    /// Time between two pings.
    pub period: Duration,
    /// How many are sent; `None` until they are stopped, or 2^32 - 1 are sent.
    pub count: Option<u64>,
    /// A ping that is not answered for so long is lost.
    pub patience: Duration,
}

/// Outcome of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingEvent {
    /// A ping was answered, by an ICMP error if there is one, or is lost.
    Row(LatencyRow, Option<IcmpError>),
    /// Why a ping is lost, as an error number, where the kernel or a router tells.
    Refused(i32),
}

/// Pings under way, on a thread of their own.
#[must_use = "pings are joined"]
pub struct Ping {
    control: Arc<Control>,
    events: Receiver<PingEvent>,
    thread: JoinHandle<Result<(), NetError>>,
}

/// Passes on what the prober tells.
struct Events(Sender<PingEvent>);

impl PingSink for Events {
    fn row(&mut self, row: LatencyRow, by: Option<IcmpError>) {
        // Whoever no longer listens has no use for the rest either.
        let _ = self.0.send(PingEvent::Row(row, by));
    }

    fn refused(&mut self, error: &io::Error) {
        let _ = self.0.send(PingEvent::Refused(error.raw_os_error().unwrap_or(libc::EIO)));
    }
}

impl PingSettings {
    /// Checks what does not depend on the host.
    ///
    /// # Errors
    /// If something cannot be sent like that.
    pub fn check(&self) -> Result<(), NetError> {
        let least = match self.method {
            PingMethod::Weir(_) => ECHO_BYTES as u32,
            _ => 0,
        };
        let bytes = self.payload_bytes;
        if !(least..=MAX_PAYLOAD_BYTES).contains(&bytes) {
            return Err(NetError::new(format!(
                "payload {bytes} bytes: write {least} to {MAX_PAYLOAD_BYTES}"
            )));
        }
        if self.period < MIN_PING_PERIOD {
            return Err(NetError::new(format!("ping {}: write 1ms or more", self.period)));
        }
        Ok(())
    }

    fn schedule(&self) -> Schedule {
        // The last ping is the end: its answer is waited for, and nothing else.
        let last = self.count.unwrap_or(u64::MAX).clamp(1, MAX_PINGS) - 1;
        let stop = last.saturating_mul(self.period.as_nanos()).min(MAX_LENGTH_NS) + 1;
        Schedule::new(Time::ZERO, self.period, Time::from_nanos(stop))
    }
}

impl EchoGrant {
    /// Refuses pings that the server does not answer.
    fn check(&self, settings: &PingSettings) -> Result<(), NetError> {
        let (bytes, most) = (settings.payload_bytes, self.max_bytes);
        if bytes > most {
            return Err(NetError::new(format!(
                "payload {bytes} bytes: this server answers up to {most}"
            )));
        }
        let least =
            Duration::from_nanos(1_000_000_000_u64.div_ceil(u64::from(self.rate_pps.max(1))));
        if settings.period < least {
            return Err(NetError::new(format!(
                "ping {}: this server answers {} a second: write {least} or more",
                settings.period, self.rate_pps
            )));
        }
        Ok(())
    }
}

impl Ping {
    /// Opens the sockets and starts to ping at the clock's start.
    ///
    /// # Errors
    /// If a socket cannot be opened, or something cannot be sent like that.
    pub fn start(settings: &PingSettings, clock: Clock) -> Result<Self, NetError> {
        settings.check()?;
        // Pings without a number have a socket each while they are under way; fewer do too.
        let _ = option::raise_open_files();
        let marks = PingMarks {
            dscp: settings.dscp,
            ttl: settings.ttl,
            payload_bytes: settings.payload_bytes as usize,
        };
        let schedule = settings.schedule();
        let end = schedule.stop();
        let train = ProbeTrain::alone(settings.method, settings.server, marks, schedule)
            .map_err(|error| refusal(settings, &error))?;
        let control = Arc::<Control>::default();
        let (sender, events) = mpsc::channel();
        // A server elsewhere tells nobody what arrived.
        let (_, arrived) = mpsc::channel();
        let manner = (Arc::clone(&control), Patience::Each(settings.patience));
        let prober = Prober::with(vec![train], (clock, end), manner, arrived, Events(sender))?;
        let thread = thread::Builder::new()
            .name("pings".into())
            .spawn(move || prober.run())
            .map_err(|error| NetError::io("thread `pings`", &error))?;
        Ok(Self { control, events, thread })
    }

    /// Events since the last look, waiting for the first `wait` at most. `None` at the end.
    #[must_use]
    pub fn events(&self, wait: WallDuration) -> Option<Vec<PingEvent>> {
        match self.events.recv_timeout(wait) {
            Ok(first) => Some(std::iter::once(first).chain(self.events.try_iter()).collect()),
            Err(mpsc::RecvTimeoutError::Timeout) => Some(Vec::new()),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Ends them now; those that are under way are left out.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits for their end.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn join(self) -> Result<(), NetError> {
        let bug = || Err(NetError::new("the thread of the pings ended by a bug: please report it"));
        let ended = self.thread.join().unwrap_or_else(|_| bug());
        self.control.failure().map_or(ended, Err)
    }
}

/// Pings until the end, or until `told` says false, which is called with what comes a few times a second.
///
/// # Errors
/// If pings cannot be sent.
pub fn run_pings(
    settings: &PingSettings,
    told: &mut dyn FnMut(Clock, Vec<PingEvent>) -> bool,
) -> Result<(), NetError> {
    attend(settings, None, told)
}

/// Pings the echo of the `weir serve` at `settings.server`, in a session that is opened for it with the
/// secret that the server may ask for.
///
/// # Errors
/// If pings cannot be sent, or if there is no session or it ends: there is no server, it refuses, or it
/// answers no such pings.
pub fn run_weir_pings(
    settings: &PingSettings,
    secret: Option<&str>,
    told: &mut dyn FnMut(Clock, Vec<PingEvent>) -> bool,
) -> Result<(), NetError> {
    let secret = secret.map(Secret::new).transpose();
    let secret = secret.map_err(|error| NetError::new(error.to_string()))?;
    let keeper = EchoKeeper::start(settings.server, secret)
        .map_err(|error| NetError::io("thread `echo session`", &error))?;
    let grant = first_grant(settings.server, &keeper)?;
    let settings = PingSettings { method: PingMethod::Weir(grant.session), ..*settings };
    grant.check(&settings)?;
    attend(&settings, Some(&keeper), told)
}

fn attend(
    settings: &PingSettings,
    keeper: Option<&EchoKeeper>,
    told: &mut dyn FnMut(Clock, Vec<PingEvent>) -> bool,
) -> Result<(), NetError> {
    let clock = Clock::starting_in(HEAD_START);
    let ping = Ping::start(settings, clock)?;
    let mut ended = None;
    while let Some(mut events) = ping.events(TELL_EVERY) {
        if !events.is_empty() {
            // What comes soon is told with it.
            thread::sleep(TELL_EVERY);
            events.extend(ping.events(WallDuration::ZERO).into_iter().flatten());
        }
        if let Some(EchoNews::Closed(why)) = keeper.and_then(EchoKeeper::news) {
            ended = Some(NetError::new(why));
        }
        if !told(clock, events) || ended.is_some() {
            ping.stop();
            break;
        }
    }
    let result = ping.join();
    ended.map_or(result, Err)
}

/// Grant of the server, once there is one.
fn first_grant(server: SocketAddr, keeper: &EchoKeeper) -> Result<EchoGrant, NetError> {
    let deadline = Instant::now() + SESSION_PATIENCE;
    loop {
        match keeper.news() {
            Some(EchoNews::Open(grant)) => return Ok(grant),
            Some(EchoNews::Closed(why)) => return Err(NetError::new(why)),
            None if Instant::now() > deadline => {
                return Err(NetError::new(format!("server `{server}` does not answer")));
            }
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Why there are no such pings.
fn refusal(settings: &PingSettings, error: &io::Error) -> NetError {
    let host = settings.server.ip();
    if is_forbidden(error) && settings.method == PingMethod::Icmp {
        let said = match Reflector::icmp_is_forbidden(PROBE_IDENTIFIER) {
            true => format!("{NO_ICMP}, or ping by `--method udp` or `tcp`"),
            false => format!(
                "`{host}` cannot be pinged: the kernel forbids it, as of a broadcast address"
            ),
        };
        return NetError::new(said);
    }
    NetError::io(format_args!("`{host}` cannot be pinged"), error)
}

/// That of a ping that is never sent.
const PROBE_IDENTIFIER: u16 = 1;
/// Said where the kernel refuses both kinds of sockets for ICMP echo; how else to ask may follow.
pub const NO_ICMP: &str = "ICMP echo: this user may open neither ping sockets nor raw ones: run as root \
                           `sysctl -w net.ipv4.ping_group_range='0 2147483647'`";
/// Least time between two pings: hrPing goes no faster either, and a thread that wakes up late by 50 us has 5 % of it.
pub const MIN_PING_PERIOD: Duration = Duration::from_millis(1);
/// Pings at most: sequence numbers have 32 bits, 49 days at 1 ms.
pub const MAX_PINGS: u64 = u32::MAX as u64;
/// Times have 64 bits, and half of them is room for sums: 292 years.
const MAX_LENGTH_NS: u64 = u64::MAX / 2;
/// As long as a session takes at most to be had.
const SESSION_PATIENCE: WallDuration = WallDuration::from_secs(20);
/// Time before the clock starts, in which the thread does.
const HEAD_START: Duration = Duration::from_millis(10);
const TELL_EVERY: WallDuration = WallDuration::from_millis(50);
const LOOK_EVERY: WallDuration = WallDuration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(method: PingMethod, payload_bytes: u32, period_us: u64) -> PingSettings {
        PingSettings {
            server: "127.0.0.1:9".parse().unwrap(),
            method,
            payload_bytes,
            dscp: 0,
            ttl: None,
            period: Duration::from_micros(period_us),
            count: Some(3),
            patience: Duration::from_secs(1),
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_what_can() {
        let refused = |method, bytes, us| {
            settings(method, bytes, us).check().map_err(|error| error.to_string())
        };
        assert_eq!(refused(PingMethod::Udp, 0, 1_000), Ok(()));
        let long = refused(PingMethod::Icmp, 65_001, 1_000).unwrap_err();
        assert_eq!(long, "payload 65001 bytes: write 0 to 65000");
        let quick = refused(PingMethod::Icmp, 0, 999).unwrap_err();
        assert_eq!(quick, "ping 999us: write 1ms or more");
    }

    #[test]
    fn so_many_pings_are_due_and_the_last_is_the_end() {
        let mut schedule = settings(PingMethod::Udp, 0, 2_000).schedule();
        let mut due = Vec::new();
        while let Some(at) = schedule.next() {
            due.push(at.as_nanos());
            schedule.advance();
        }
        assert_eq!(due, [0, 2_000_000, 4_000_000]);
        assert_eq!(schedule.stop().as_nanos(), 4_000_001);
        let endless = PingSettings { count: None, ..settings(PingMethod::Udp, 0, 1_000) };
        let pings = u128::from(endless.schedule().stop().as_nanos()).div_ceil(1_000_000);
        assert_eq!(pings, u128::from(u32::MAX));
    }
}
