//! The loop: packets, probes, the controller, one after another in one thread.

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use weir_core::{Duration, ETHERNET_HEADER, FlowKey, Rate, TcpHeader, Time};
use weir_linux::{DeviceCounters, GuardNews};
use weir_rate_control::{Control, Controller, Decision, Delay, MIN_RATE, Side, State, TICK};
use weir_sockets::Clock;

use crate::ShapeError;
use crate::backend::Choice;
use crate::cautions::standing;
use crate::diagnostics::{DOWN, Diagnostics, Second};
use crate::learned::Keeper;
use crate::log::Log;
use crate::passive::Passive;
use crate::reflectors::Reflectors;
use crate::run::Ended;
use crate::settings::Settings;
use crate::shaper::{Found, Shaper, Watch};
use crate::view::{FIXED, PASSED_THROUGH, SideView, View, median_rtt_ns};
use crate::wakes::WakeBudget;

/// State of the shaper's loop.
pub(crate) struct Engine {
    clock: Clock,
    settings: Settings,
    shaper: Box<dyn Shaper>,
    controller: Box<dyn Controller>,
    observer: Observer,
    log: Option<Log>,
    keeper: Option<Keeper>,
    diagnostics: Diagnostics,
    device: DeviceCounters,
    /// Bytes that the device and the shaper had counted at the last look.
    looked: [[u64; 2]; 2],
    warnings: Vec<String>,
    /// Whether the device is down, or has no link, while it is shaped: then that is all that is wrong.
    is_down: bool,
    /// Time at which warnings last held.
    warned: Time,
    /// Warnings that the device itself gives reason for.
    standing: Vec<String>,
    /// When the guard was told last that this loop is at work.
    beaten: Time,
    /// What happened to this process lately, and until when that is shown.
    incidents: Vec<(String, Time)>,
    /// Whether everything passes unshaped, as long as nobody asks to shape: the controller is suspended.
    open: bool,
    /// Since when the controller is at work: what left before tells nothing of what it does.
    since: Time,
    decided: [Option<Decision>; 2],
    decisions: u64,
    /// Decisions that were not shown yet.
    undisclosed: Vec<(Time, Decision)>,
    /// Delays that were not shown yet, and when a view was shown last.
    delays: Vec<(u64, u64, u32)>,
    /// When a view had delays last, and their median, both in ns.
    last_delay: Option<(u64, u64)>,
    shown: Time,
    shown_bytes: [u64; 2],
    /// Room for what connections told.
    heard: Vec<Delay>,
    /// Time that the loop waits for; `late` is by how much it was missed at worst since a view was shown.
    due: Time,
    late: Duration,
    wakes: WakeBudget,
}

/// An order to the shaper's loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Open,
    Shape,
    Stop,
}

/// The parts of the shaper that see every packet.
struct Observer {
    reflectors: Reflectors,
    passive: Passive,
    /// Probes that have left, of sources that have answered before.
    left: Vec<(u32, Time)>,
}

impl Watch for Observer {
    fn is_probe(&self, key: &FlowKey, side: Side) -> bool {
        let (ours, there): (u16, IpAddr) = match side {
            Side::Egress => (key.sport, key.dst),
            Side::Ingress => (key.dport, key.src),
        };
        self.reflectors.is_probe(key, ours, there)
    }

    fn probe_left(&mut self, key: &FlowKey, at: Time) {
        self.left.extend(self.reflectors.left(key, at));
    }

    fn answer_came(&mut self, key: &FlowKey, at: Time) {
        self.reflectors.came(key, at);
    }

    fn comes(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, bytes: u64, side: Side, at: Time) {
        let there = if side == Side::Egress { key.dst } else { key.src };
        self.reflectors.traffic_with(there, bytes);
        if side == Side::Ingress {
            self.see(key, tcp, side, at);
        }
    }

    fn goes(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, side: Side, now: Time) {
        // On the way out time counts from when a packet leaves the shaper.
        if side == Side::Egress {
            self.see(key, tcp, side, now);
        }
    }
}

impl Observer {
    fn see(&mut self, key: &FlowKey, tcp: Option<&TcpHeader>, side: Side, now: Time) {
        if let Some(tcp) = tcp {
            self.passive.on_packet(key, tcp, side, now);
        }
    }
}

impl Engine {
    /// An engine for `settings`, which holds packets back from now on, and shows `trouble` if there is any.
    pub fn new(
        settings: Settings,
        choice: &Choice,
        seed: u64,
        clock: Clock,
        trouble: Option<String>,
    ) -> Result<Self, ShapeError> {
        let secret = settings.secret()?;
        let log = settings.log.as_deref().map(|file| Log::create(file, &settings)).transpose()?;
        let device = DeviceCounters::new(&settings.device)?;
        let bytes = device.state().map_or([0; 2], |it| it.bytes);
        let at_first = standing(&settings, choice.backend)?;
        let observer = Observer {
            reflectors: Reflectors::new(&settings.reflectors, secret, clock.now()),
            passive: Passive::default(),
            left: Vec::new(),
        };
        // Its guard expects beats from now on.
        let shaper = choice.shaper(&settings, seed, clock)?;
        let keeper = Keeper::new(&settings, clock.now())?;
        let standing = trouble.into_iter().chain(at_first).chain(shaper.caution()).collect();
        Ok(Self {
            clock,
            shaper,
            controller: settings.control.build(),
            observer,
            log,
            keeper,
            diagnostics: Diagnostics::new(&settings.control),
            is_down: false,
            device,
            looked: [[bytes[0], 0], [bytes[1], 0]],
            warnings: Vec::new(),
            warned: Time::ZERO,
            standing,
            beaten: clock.now(),
            incidents: Vec::new(),
            open: settings.open,
            since: Time::ZERO,
            decided: [None; 2],
            decisions: 0,
            undisclosed: Vec::new(),
            delays: Vec::new(),
            last_delay: None,
            shown: Time::ZERO,
            shown_bytes: [0; 2],
            heard: Vec::new(),
            due: clock.now(),
            late: Duration::ZERO,
            wakes: WakeBudget::new(),
            settings,
        })
    }

    /// Works until it is told to stop or its time is over. Views go to `views`.
    pub fn run(
        mut self,
        orders: &Receiver<Order>,
        views: &Sender<View>,
    ) -> Result<Ended, ShapeError> {
        let done = self.shape(orders, views);
        let restored = self.shaper.restore();
        let learned = self.controller.learned();
        let unkept = self.keeper.as_mut().and_then(|keeper| keeper.end(learned));
        done.and_then(|decisions| restored.map(|()| Ended { decisions, unkept }))
    }

    fn shape(&mut self, orders: &Receiver<Order>, views: &Sender<View>) -> Result<u64, ShapeError> {
        // To be woken when asked, and not up to 50 us later.
        let _ = prctl::set_timerslack(1);
        weir_linux::go_first();
        let mut tick = self.clock.now();
        let mut looked = tick;
        let mut begun = false;
        loop {
            let now = self.clock.now();
            if self.settings.time_ns.is_some_and(|end| now.as_nanos() >= end) {
                return Ok(self.decisions);
            }
            match orders.try_recv() {
                Ok(Order::Stop) => return Ok(self.decisions),
                Ok(order) => self.obey(order, now)?,
                Err(_) => {}
            }
            self.note_lateness(now);
            if now.since(self.beaten) >= BEAT {
                self.beat(now)?;
            }
            let found = self.shaper.work(&mut self.observer, now)?;
            match found {
                Found::Early(pause) => self.wakes.spend(now, Some(pause)),
                Found::Late => self.wakes.spend(now, None),
                Found::Nothing | Found::More => {}
            }
            self.probe(now);
            if now >= tick {
                // Probes have left since.
                self.tick(self.clock.now())?;
                // Ticks that were missed are not made up for.
                tick = now + TICK;
            }
            // The first at once: whoever started it waits for that.
            let due = !std::mem::replace(&mut begun, true) || now.since(self.shown) >= SHOW;
            if due && views.send(self.view(now)).is_err() {
                return Ok(self.decisions);
            }
            if now.since(looked) >= LOOK {
                // The log has the tick's time already.
                let later = self.clock.now();
                self.look(later.since(looked), later)?;
                looked = later;
            }
            if found != Found::More {
                self.wait(tick)?;
            }
        }
    }

    /// Notes how late the loop is. A late wake-up delays packets that were due earlier, and they leave in a
    /// burst.
    fn note_lateness(&mut self, now: Time) {
        let late = now.checked_since(self.due).unwrap_or(Duration::ZERO);
        self.late = self.late.max(late);
        if late >= LATE && self.shaper.fd().is_some() && !self.open {
            self.controller.on_late(self.due, now);
            if let Some(log) = &mut self.log {
                log.late(self.due, now);
            }
        }
    }

    /// Tells the guard that this loop is at work, and whoever looks what the guard has done.
    fn beat(&mut self, now: Time) -> Result<(), ShapeError> {
        let stood_still = now.since(self.beaten);
        self.beaten = now;
        if stood_still >= STALE {
            self.shaper.drop_unread()?;
        }
        while let Some(news) = self.shaper.beat()? {
            let said = match news {
                GuardNews::Opened => format!(
                    "this process stood still for {:.1} s (stopped, swapped out, or in a debugger): its guard let \
                     everything pass meanwhile, and it shapes again",
                    stood_still.as_secs_f64()
                ),
                GuardNews::Gone => {
                    "the guard of this process was ended by another: a new one has taken its place".to_owned()
                }
                GuardNews::Deaf => {
                    "the guard of this process stands still: nobody opens the line if this process does, too"
                        .to_owned()
                }
                GuardNews::Holds | GuardNews::Refused(_) => continue,
            };
            if let Some(log) = &mut self.log {
                log.warning(&said, now);
            }
            self.show_incident(said, now);
            if news == GuardNews::Deaf {
                break;
            }
        }
        self.incidents.retain(|(_, until)| *until > now);
        Ok(())
    }

    /// Shows for a while what happened: the last few things, each once.
    fn show_incident(&mut self, said: String, now: Time) {
        self.incidents.retain(|(before, _)| *before != said);
        if self.incidents.len() == MAX_INCIDENTS {
            self.incidents.remove(0);
        }
        self.incidents.push((said, now + INCIDENT));
    }

    /// Lets everything pass and suspends the controller, or goes on at the rates that it had decided on.
    ///
    /// What it knows of the line stays. It meets the pause as one in which the machine slept, and nothing that was measured in
    /// it: that tells of the line without a shaper.
    fn obey(&mut self, order: Order, now: Time) -> Result<(), ShapeError> {
        let open = order == Order::Open;
        if open == self.open {
            return Ok(());
        }
        (self.open, self.since) = (open, now);
        if let Some(log) = &mut self.log {
            log.suspended(open, now);
        }
        Side::ALL.into_iter().try_for_each(|side| {
            let decided = self.decided[side as usize].filter(|_| !open);
            let rate = decided.and_then(|decision| decision.rate);
            self.shaper.set_rate(side, rate.map(bounded), now)
        })
    }

    /// Passes on what the answers to probes told.
    fn hear(&mut self, now: Time) {
        while let Some(delay) = self.observer.reflectors.answer(self.clock) {
            self.show_delay(&delay);
            self.pass_on(&delay, now);
        }
    }

    /// Passes on what connections told. They tell less evenly than probes, and are shown where nobody answers those.
    fn hear_connections(&mut self, now: Time) {
        let is_answered = self.observer.reflectors.is_heard(now);
        let mut heard = std::mem::take(&mut self.heard);
        heard.extend(self.observer.passive.take());
        for delay in &heard {
            if !is_answered && delay.by.is_exact() {
                self.show_delay(delay);
            }
        }
        heard.retain(|delay| self.concerns_control(delay));
        heard.iter().for_each(|delay| self.controller.on_delay(delay, now));
        if let Some(log) = &mut self.log {
            log.delays(&heard, now);
        }
        heard.clear();
        self.heard = heard;
    }

    fn show_delay(&mut self, delay: &Delay) {
        self.delays.push((delay.sent.as_nanos(), delay.rtt.as_nanos(), delay.source));
        self.diagnostics.on_delay(delay.source, delay.rtt.as_nanos());
    }

    /// Whether a delay is of the time in which the controller is at work.
    fn concerns_control(&self, delay: &Delay) -> bool {
        !self.open && delay.sent >= self.since
    }

    fn pass_on(&mut self, delay: &Delay, now: Time) {
        if !self.concerns_control(delay) {
            return;
        }
        self.controller.on_delay(delay, now);
        if let Some(log) = &mut self.log {
            log.delay(delay, now);
        }
    }

    fn probe(&mut self, now: Time) {
        self.hear(now);
        let Observer { reflectors, left, .. } = &mut self.observer;
        if let Some(priority) = self.shaper.probe_priority() {
            reflectors.set_priority(priority);
        }
        // A controller may want none: warnings need some, and while it is open delays are what is wanted.
        let every = self.controller.probe_every().unwrap_or(PROBE_ANYWAY);
        let every = if self.open { every.min(PROBE_OPEN) } else { every };
        let leaves =
            self.shaper.fd().is_some() && self.settings.queues[Side::Egress as usize].is_some();
        let asked = reflectors.ask(Some(every), leaves, self.clock, now);
        for (source, sent) in left.drain(..).chain(asked).filter(|_| !self.open) {
            self.controller.on_sent(source, sent);
            if let Some(log) = &mut self.log {
                log.sent(source, sent);
            }
        }
    }

    fn tick(&mut self, now: Time) -> Result<(), ShapeError> {
        self.shaper.look()?;
        self.hear_connections(now);
        if self.open {
            return Ok(());
        }
        let traffic = Side::ALL.map(|side| self.shaper.traffic(side));
        if let Some(log) = &mut self.log {
            log.tick(&traffic, now);
        }
        let Self { controller, shaper, log, decided, decisions, undisclosed, .. } = self;
        let mut done = Ok(());
        controller.on_tick(&traffic, now, &mut |decision| {
            let set = shaper.set_rate(decision.side, decision.rate.map(bounded), now);
            if set.is_err() {
                done = set;
            }
            decided[decision.side as usize] = Some(decision);
            *decisions += 1;
            undisclosed.push((now, decision));
            if let Some(log) = log {
                log.decision(&decision, now);
            }
        });
        done
    }

    /// Once a second: whether the device is still there, and whether anything keeps the shaper from helping.
    fn look(&mut self, since: Duration, now: Time) -> Result<(), ShapeError> {
        let device = self.settings.device.as_str();
        match weir_linux::find_device(device) {
            Ok(Some(index)) if index != self.device.index() => {
                self.shaper.come_again(device)?;
                self.device = DeviceCounters::new(device)?;
            }
            Ok(Some(_)) => {}
            Ok(None) => return Err(weir_linux::gone(device, self.device.index()).into()),
            // This is no reason to end: packets are handed over as before.
            Err(why) => self.show_incident(format!("{why}; it shapes on"), now),
        }
        let state = self.device.state();
        let bytes = state.map_or([0; 2], |it| it.bytes);
        let seconds = since.as_secs_f64();
        let sides = Side::ALL.map(|side| {
            let traffic = self.shaper.traffic(side)?;
            let at = side as usize;
            // A packet of the device may be longer than IP's by its header.
            let header = traffic.packets * u64::from(ETHERNET_HEADER);
            let counted = [bytes[at], traffic.bytes + header];
            let [device_bytes, seen_bytes] =
                [0, 1].map(|one| counted[one].saturating_sub(self.looked[at][one]));
            self.looked[at] = counted;
            Some(Second {
                rate_bps: self.rate(side).map(Rate::as_bps),
                load_bps: (device_bytes as f64 * 8.0 / seconds) as u64,
                backlog_bytes: traffic.backlog_bytes,
                device_bytes,
                seen_bytes,
            })
        });
        let found = self.diagnostics.on_second(&sides);
        let was_down = self.is_down;
        self.is_down = !self.open && state.is_some_and(|it| !it.is_running);
        let found = if self.open || self.is_down { Vec::new() } else { found };
        if let (Some(log), true) = (&mut self.log, self.is_down && !was_down) {
            log.warning(DOWN, now);
        }
        // The numbers in them change all the time.
        if found.len() > self.warnings.len()
            && let Some(log) = &mut self.log
        {
            found.iter().for_each(|warning| log.warning(warning, now));
        }
        if !self.open
            && let Some(keeper) = &mut self.keeper
            && let Some(why) = keeper.look(self.controller.learned(), now)
            && !self.standing.contains(&why)
        {
            self.standing.push(why);
        }
        // What queues make comes and goes with them.
        if !found.is_empty() {
            (self.warnings, self.warned) = (found, now);
        } else if self.is_down || now.since(self.warned) >= STAYS {
            self.warnings.clear();
        }
        Ok(())
    }

    fn view(&mut self, now: Time) -> View {
        let seconds = now.since(self.shown).max(TICK).as_secs_f64();
        self.shown = now;
        let sides = Side::ALL.map(|side| {
            let counts = self.shaper.counts(side)?;
            let before = std::mem::replace(&mut self.shown_bytes[side as usize], counts.bytes);
            let decided = self.decided[side as usize].filter(|_| !self.open && !self.is_fixed());
            let undecided = match () {
                () if self.open => PASSED_THROUGH,
                () if self.is_fixed() => (FIXED, ""),
                () => (State::Idle.name(), ""),
            };
            let (state, reason) =
                decided.map_or(undecided, |it| (it.state.name(), it.reason.name()));
            Some(SideView {
                rate_bps: self.rate(side).map(Rate::as_bps),
                load_bps: ((counts.bytes - before) as f64 * 8.0 / seconds) as u64,
                state,
                reason,
                value: decided.map_or(0.0, |it| it.value),
                unit: decided.map_or("", |it| it.reason.unit()),
                counts,
            })
        });
        let delays = std::mem::take(&mut self.delays);
        if let Some(median) = median_rtt_ns(&delays) {
            self.last_delay = Some((now.as_nanos(), median));
        }
        View {
            t_ns: now.as_nanos(),
            pid: std::process::id(),
            device: self.settings.device.clone(),
            open: self.open,
            sides,
            delays,
            last_delay: self.last_delay,
            decisions: std::mem::take(&mut self.undisclosed),
            // Nobody is asked over a device that lets nothing pass.
            trouble: self.observer.reflectors.trouble(now).filter(|_| !self.is_down),
            late_ns: std::mem::take(&mut self.late).as_nanos(),
            reflectors: self.observer.reflectors.heard(now).map(|it| it.name()).collect(),
            missed: self.shaper.missed(),
            warnings: self.warnings().map(str::to_owned).collect(),
        }
    }

    /// The rate of a side now; `None` lets everything through.
    fn rate(&self, side: Side) -> Option<Rate> {
        let decided = self.decided[side as usize].filter(|_| !self.open);
        decided.and_then(|it| it.rate).map(bounded)
    }

    /// Whether the user chose all rates.
    const fn is_fixed(&self) -> bool {
        matches!(self.settings.control, Control::Fixed { .. })
    }

    /// What keeps the shaper from helping, or did until a moment ago.
    fn warnings(&self) -> impl Iterator<Item = &str> {
        let incidents = self.incidents.iter().map(|(said, _)| said);
        let log = self.log.as_ref().and_then(Log::trouble);
        let others = log.into_iter().chain(incidents).chain(&self.standing).chain(&self.warnings);
        others.map(String::as_str).chain(self.is_down.then_some(DOWN))
    }

    /// Waits until a packet or an answer comes, or something is due.
    fn wait(&mut self, tick: Time) -> Result<(), ShapeError> {
        let now = self.clock.now();
        let asks = tick.min(self.observer.reflectors.next());
        let next = self.wakes.next();
        let packets_due = if next > now { Some(next) } else { self.shaper.wake_at() };
        let due = packets_due.map_or(asks, |at| at.min(asks));
        self.due = due.max(now);
        let pause = std::time::Duration::from_nanos(self.clock.until(due).as_nanos());
        let pause = TimeSpec::from_duration(pause);
        let packets = self.shaper.fd().filter(|_| next <= now);
        let packets = packets.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let mut fds: Vec<_> = packets.into_iter().chain(self.observer.reflectors.fds()).collect();
        match ppoll(&mut fds, Some(pause), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(ShapeError::io("cannot wait for packets", error)),
        }
    }
}

/// The rate, never below the least with which a line still works.
fn bounded(rate: Rate) -> Rate {
    rate.max(MIN_RATE)
}

/// Lateness that the controller hears of: half of the queue that it takes for one.
const LATE: Duration = Duration::from_millis(1);
/// Views a second: 5.
const SHOW: Duration = Duration::from_millis(200);
/// How soon it is seen that a device has gone.
const LOOK: Duration = Duration::from_secs(1);
/// How long a warning is shown that holds no longer.
const STAYS: Duration = Duration::from_secs(10);
/// A loop that comes so late has stood still: its guard has let everything pass.
const STALE: Duration = Duration::from_secs(1);
/// How long it is shown what happened to this process: whoever stopped it has other things to do first.
const INCIDENT: Duration = Duration::from_secs(60);
const MAX_INCIDENTS: usize = 3;
/// Between two words to the guard.
const BEAT: Duration = Duration::from_nanos(weir_linux::BEAT.as_nanos() as u64);
/// Between two probes while nothing is shaped: delays are then all that is wanted.
const PROBE_OPEN: Duration = Duration::from_millis(20);
/// Between two probes where the controller wants none: two a second tell a queue that lasts.
const PROBE_ANYWAY: Duration = Duration::from_millis(500);
