//! The log of a run: all that went into the controller and all that came out, a line of JSON each.
//!
//! | line | meaning |
//! |---|---|
//! | `{"weir_shape": 1, "settings": {...}}` | the first: version and settings |
//! | `{"t": ns, "sent": source}` | a probe left |
//! | `{"t": ns, "delay": {...}}` | a delay was measured |
//! | `{"t": ns, "delays": [[source, sent, rtt, [there, back] or null, by], ...]}` | several were, such as those of connections at a tick |
//! | `{"t": ns, "late": ns}` | the shaper itself was late: since when |
//! | `{"t": ns, "tick": [[bytes, packets, backlog_bytes] or null, ...]}` | the counters of up and down |
//! | `{"t": ns, "suspended": true or false}` | everything is let through from now on, and the controller hears of nothing, or it goes on |
//! | `{"t": ns, "open": true or false}` | the same of an earlier version, whose controller began anew each time |
//! | `{"t": ns, "warning": "..."}` | something keeps the shaper from helping |
//! | `{"t": ns, "decision": {...}}` | the controller decided |

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use weir_core::{Duration, Time};
use weir_rate_control::{
    AutoSettings, Control, Controller, Decision, Delay, Measured, Mode, OneWay, Side, Traffic,
};

use crate::ShapeError;
use crate::settings::Settings;
use crate::text::SIDES;

/// A log that is being written.
pub(crate) struct Log {
    name: String,
    file: BufWriter<File>,
    /// Why nothing is written any more.
    trouble: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    weir_shape: u32,
    settings: Settings,
}

/// A line but the first.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    t: u64,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Sent(u32),
    Delay(Heard),
    Delays(Vec<HeardInShort>),
    Late(u64),
    Tick([Option<(u64, u64, u64)>; 2]),
    Suspended(bool),
    Open(bool),
    Warning(String),
    Decision { side: LoggedSide, rate_bps: Option<u64>, state: String, reason: String, value: f64 },
}

/// A delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Heard {
    source: u32,
    sent: u64,
    rtt: u64,
    one_way: Option<(i64, i64)>,
    /// What it was measured by, if not by an answer.
    #[serde(default, skip_serializing_if = "Measured::is_answer")]
    by: Measured,
}

/// A delay among others: what [`Heard`] has, in its order.
type HeardInShort = (u32, u64, u64, Option<(i64, i64)>, Measured);

/// A side, as options and logs name it; older logs have the names of [`Side`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LoggedSide {
    #[serde(alias = "egress")]
    Up,
    #[serde(alias = "ingress")]
    Down,
}

/// Refuses a place where no log can begin: one with a file already, or without a folder to write into. Nothing is changed.
pub(crate) fn check_place(file: &Path) -> Result<(), ShapeError> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let found = match (file.symlink_metadata(), folder.metadata()) {
        (Ok(_), _) => Err(io::Error::from(Errno::EEXIST)),
        (_, Err(error)) => Err(error),
        (_, Ok(place)) if !place.is_dir() => Err(io::Error::from(Errno::ENOTDIR)),
        _ => access(folder, AccessFlags::W_OK | AccessFlags::X_OK).map_err(io::Error::from),
    };
    found.map_err(|error| unopened(file, &error))
}

/// Why a log cannot be begun. One that is there is what a run was like, and is kept.
fn unopened(file: &Path, error: &io::Error) -> ShapeError {
    let kept = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "; a log is never written over: name another file, or move it"
        }
        _ => "",
    };
    ShapeError::input(format!("cannot write the log `{}`: {error}{kept}", file.display()))
}

impl Log {
    /// Begins a log in a file that does not exist yet.
    pub fn create(file: &Path, settings: &Settings) -> Result<Self, ShapeError> {
        let opened = File::create_new(file).map_err(|error| unopened(file, &error))?;
        Self::begin(file, opened, settings)
    }

    /// Begins the log in `made`, which was just made at `place`.
    fn begin(place: &Path, made: File, settings: &Settings) -> Result<Self, ShapeError> {
        let name = place.display().to_string();
        let mut file = BufWriter::new(made);
        let head = Head { weir_shape: VERSION, settings: settings.clone() };
        // What is full from the beginning is said before anything is changed.
        let begun = writeln!(file, "{}", json(&head)).and_then(|()| file.flush());
        if let Err(error) = begun {
            // It would be in the way of the next start.
            let _ = std::fs::remove_file(place);
            return Err(ShapeError::io(&format!("cannot write the log `{name}`"), error));
        }
        Ok(Self::into_file(name, file))
    }

    const fn into_file(name: String, file: BufWriter<File>) -> Self {
        Self { name, file, trouble: None }
    }

    /// Why nothing is written any more, if that is so: the log has ended there, and the shaper has not.
    pub const fn trouble(&self) -> Option<&String> {
        self.trouble.as_ref()
    }

    pub fn sent(&mut self, source: u32, now: Time) {
        self.write(now, What::Sent(source));
    }

    pub fn delay(&mut self, delay: &Delay, now: Time) {
        self.write(now, What::Delay(Heard::from(delay)));
    }

    /// Delays that were told at once: of 64 connections there are as many at every tick.
    pub fn delays(&mut self, delays: &[Delay], now: Time) {
        match delays {
            [] => {}
            [one] => self.delay(one, now),
            all => {
                let short = |delay: &Delay| {
                    let Heard { source, sent, rtt, one_way, by } = Heard::from(delay);
                    (source, sent, rtt, one_way, by)
                };
                self.write(now, What::Delays(all.iter().map(short).collect()));
            }
        }
    }

    pub fn late(&mut self, since: Time, now: Time) {
        self.write(now, What::Late(since.as_nanos()));
    }

    pub fn tick(&mut self, traffic: &[Option<Traffic>; 2], now: Time) {
        let counters = traffic.map(|it| it.map(|it| (it.bytes, it.packets, it.backlog_bytes)));
        self.write(now, What::Tick(counters));
    }

    pub fn suspended(&mut self, suspended: bool, now: Time) {
        self.write(now, What::Suspended(suspended));
    }

    pub fn warning(&mut self, warning: &str, now: Time) {
        self.write(now, What::Warning(warning.to_owned()));
    }

    pub fn decision(&mut self, decision: &Decision, now: Time) {
        self.write(now, decided(decision));
        // Whoever reads along sees decisions at once.
        if self.trouble.is_none() {
            let flushed = self.file.flush();
            self.note(flushed);
        }
    }

    fn write(&mut self, now: Time, what: What) {
        if self.trouble.is_none() {
            let written = writeln!(self.file, "{}", json(&Line { t: now.as_nanos(), what }));
            self.note(written);
        }
    }

    /// A full disk must not end a shaper. The log ends there, since one with gaps could not be replayed.
    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.trouble = Some(format!(
                "the log `{}` ends before this, since it cannot be written any more ({error}); it shapes on",
                self.name
            ));
        }
    }
}

impl From<&Delay> for Heard {
    fn from(delay: &Delay) -> Self {
        Self {
            source: delay.source,
            sent: delay.sent.as_nanos(),
            rtt: delay.rtt.as_nanos(),
            one_way: delay.one_way.map(|ways| (ways.there_ns, ways.back_ns)),
            by: delay.by,
        }
    }
}

impl Heard {
    /// Refuses what no shaper hears at `t`, in ns.
    fn check(self, t: u64) -> Result<(), String> {
        let Self { sent, rtt, one_way, .. } = self;
        if sent > t {
            return Err(format!("what was sent at {sent} ns cannot be back at {t} ns"));
        }
        let is_long =
            |(there, back): (i64, i64)| there.unsigned_abs().max(back.unsigned_abs()) > MAX_TIME_NS;
        if rtt > MAX_TIME_NS || one_way.is_some_and(is_long) {
            return Err(format!("its delay is longer than {MAX_TIME_NS} ns"));
        }
        Ok(())
    }

    fn delay(self) -> Delay {
        let Self { source, sent, rtt, one_way, by } = self;
        let one_way = one_way.map(|(there_ns, back_ns)| OneWay { there_ns, back_ns });
        let (sent, rtt) = (Time::from_nanos(sent), Duration::from_nanos(rtt));
        Delay { source, sent, rtt, one_way, by }
    }
}

/// The delay that stands in short.
const fn whole((source, sent, rtt, one_way, by): HeardInShort) -> Heard {
    Heard { source, sent, rtt, one_way, by }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain JSON")
}

fn decided(decision: &Decision) -> What {
    What::Decision {
        side: if decision.side == Side::Egress { LoggedSide::Up } else { LoggedSide::Down },
        rate_bps: decision.rate.map(weir_core::Rate::as_bps),
        state: decision.state.name().to_owned(),
        reason: decision.reason.name().to_owned(),
        value: decision.value,
    }
}

/// Runs the controller of the log in `text`, or `auto` in `mode` and else as the log's, over what went into
/// it. `show` is given each decision as a line of the log; with the log's own controller they are those of the
/// log.
///
/// Returns how many decisions the log has, how many came out, and how many of them are the same.
///
/// # Errors
/// If `text` is no log: at which line.
pub fn replay(
    text: &str,
    mode: Option<Mode>,
    show: &mut dyn FnMut(&str),
) -> Result<[usize; 3], ShapeError> {
    let bad = |number: usize, error: &dyn std::fmt::Display| {
        // An error of JSON names what it does not know as that was written, line ends included.
        let error = error.to_string().replace(char::is_control, " ");
        ShapeError::input(format!("line {number} is not of a shaper's log: {error}"))
    };
    let mut lines = text.lines().zip(1..);
    let (first, _) = lines.next().ok_or_else(|| bad(1, &"there is none"))?;
    let head: Head = serde_json::from_str(first).map_err(|error| bad(1, &error))?;
    if head.weir_shape != VERSION {
        return Err(bad(1, &format!("its version is {}, and {VERSION} is read", head.weir_shape)));
    }
    head.settings.control.check().map_err(|error| bad(1, &error))?;
    let control = match (mode, head.settings.control) {
        (None, control) => control,
        (Some(mode), Control::Auto(auto)) => Control::Auto(AutoSettings { mode, ..auto }),
        (Some(mode), _) => Control::Auto(AutoSettings { mode, ..AutoSettings::default() }),
    };
    let mut run = Replay {
        controller: control.build(),
        open: head.settings.open,
        reached: Time::ZERO,
        shaped: None,
        counted: [None; 2],
        decided: Vec::new(),
    };
    let mut logged = Vec::new();
    for (line, number) in lines {
        match serde_json::from_str::<Line>(line) {
            Ok(line @ Line { what: What::Decision { .. }, .. }) => logged.push(Some(line)),
            Ok(Line { t, what }) => {
                let now = Time::from_nanos(t);
                run.check(now, &what).map_err(|error| bad(number, &error))?;
                run.feed(now, &what, &control, show);
            }
            // The process was ended while it wrote.
            Err(_) if !text.ends_with('\n') && text.lines().count() == number => break,
            Err(error) => return Err(bad(number, &error)),
        }
    }
    let same = logged.iter().zip(&run.decided).filter(|(one, other)| one == other).count();
    Ok([logged.len(), run.decided.len(), same])
}

struct Replay {
    controller: Box<dyn Controller>,
    open: bool,
    /// The time of the last line.
    reached: Time,
    /// The sides that have counters at every tick.
    shaped: Option<[bool; 2]>,
    /// The counters of the last tick, since the controller began.
    counted: [Option<(u64, u64, u64)>; 2],
    /// As they are read again; `None` if one cannot be, which then is in no log.
    decided: Vec<Option<Line>>,
}

impl Replay {
    /// Refuses what no shaper writes: times and counters that go back, what lies ahead of its own line, and sides that
    /// come and go.
    fn check(&mut self, now: Time, what: &What) -> Result<(), String> {
        let (t, reached) = (now.as_nanos(), self.reached.as_nanos());
        if t < reached {
            return Err(format!(
                "its time {t} ns is before that of the line before it, {reached} ns"
            ));
        }
        if t > MAX_TIME_NS {
            return Err(format!("its time {t} ns is later than {MAX_TIME_NS} ns"));
        }
        self.reached = now;
        match *what {
            What::Delay(heard) => heard.check(t),
            What::Delays(ref all) => all.iter().try_for_each(|&short| whole(short).check(t)),
            What::Late(since) if since > t => {
                Err(format!("the shaper is late since {since} ns, which is after {t} ns"))
            }
            What::Open(_) => {
                self.counted = [None; 2];
                Ok(())
            }
            What::Tick(counters) => self.count(counters),
            _ => Ok(()),
        }
    }

    fn count(&mut self, counters: [Option<(u64, u64, u64)>; 2]) -> Result<(), String> {
        let shaped = counters.map(|side| side.is_some());
        let always = *self.shaped.get_or_insert(shaped);
        if let Some(side) = (0..2).find(|&side| shaped[side] != always[side]) {
            let [here, before] =
                if shaped[side] { ["has", "had none"] } else { ["has no", "had some"] };
            return Err(format!(
                "`{}` {here} counters at this tick and {before} before: a side is shaped from start to end, or never",
                SIDES[side]
            ));
        }
        for (before, now) in self.counted.iter_mut().zip(counters) {
            if let (Some(before), Some(now)) = (*before, now)
                && (now.0 < before.0 || now.1 < before.1)
            {
                return Err(format!(
                    "its counters {} bytes, {} packets are below those before, {} and {}",
                    now.0, now.1, before.0, before.1
                ));
            }
            *before = now;
        }
        Ok(())
    }

    fn feed(&mut self, now: Time, what: &What, control: &Control, show: &mut dyn FnMut(&str)) {
        match *what {
            What::Suspended(suspended) => self.open = suspended,
            What::Open(open) => {
                self.open = open;
                self.controller = control.build();
            }
            // A controller that is suspended hears of nothing.
            _ if self.open => {}
            What::Late(since) => self.controller.on_late(Time::from_nanos(since), now),
            What::Sent(source) => self.controller.on_sent(source, now),
            What::Delay(heard) => self.controller.on_delay(&heard.delay(), now),
            What::Delays(ref all) => {
                all.iter().for_each(|&short| self.controller.on_delay(&whole(short).delay(), now));
            }
            What::Tick(counters) => {
                let traffic = counters.map(|it| {
                    it.map(|(bytes, packets, backlog_bytes)| Traffic {
                        bytes,
                        packets,
                        backlog_bytes,
                    })
                });
                let mut decide = |decision: Decision| {
                    let line = json(&Line { t: now.as_nanos(), what: decided(&decision) });
                    show(&line);
                    self.decided.push(serde_json::from_str(&line).ok());
                };
                self.controller.on_tick(&traffic, now, &mut decide);
            }
            What::Warning(_) | What::Decision { .. } => {}
        }
    }
}

const VERSION: u32 = 1;
/// A hundred years: no time of a log is later, and sums of two still fit.
pub(crate) const MAX_TIME_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use weir_core::Framing;

    use super::*;

    #[test]
    fn a_full_disk_is_told_and_ends_the_log_alone() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut log = Log::into_file("eth0.jsonl".into(), BufWriter::new(full));
        assert_eq!(log.trouble(), None);
        for second in 0..1000 {
            log.tick(&[None; 2], Time::from_nanos(second));
        }
        let said = "the log `eth0.jsonl` ends before this, since it cannot be written any more (No space left on \
                    device (os error 28)); it shapes on";
        assert_eq!(log.trouble().unwrap(), said);
    }

    #[test]
    fn a_log_that_cannot_begin_is_refused_beforehand_as_it_would_be_then() {
        let folder =
            std::env::temp_dir().join(format!("weir-shape-log-place-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("is-there");
        std::fs::write(&file, "").unwrap();
        let free = check_place(&folder.join("free"));
        let all = [file.clone(), folder.clone(), folder.join("no/log"), file.join("log")];
        let said = all.each_ref().map(|place| {
            let before = check_place(place).unwrap_err().to_string();
            (before, File::create_new(place).unwrap_err())
        });
        let is_empty = std::fs::read_dir(&folder).unwrap().count() == 1;
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(free.is_ok() && is_empty);
        for (place, (before, then)) in all.iter().zip(said) {
            assert_eq!(before, unopened(place, &then).to_string());
        }
    }

    #[test]
    fn a_log_that_could_not_begin_is_not_in_the_way_of_the_next() {
        let place =
            std::env::temp_dir().join(format!("weir-shape-log-begin-{}", std::process::id()));
        let settings = settings(Control::Auto(AutoSettings::default()));
        drop(File::create_new(&place).unwrap());
        let full = File::options().write(true).open("/dev/full").unwrap();
        let refused = Log::begin(&place, full, &settings).err().unwrap().to_string();
        assert!(refused.contains("No space left on device"), "{refused}");
        // One that was there before stays.
        let next = Log::create(&place, &settings).map(|_| ());
        let exists = Log::create(&place, &settings).err().unwrap().to_string();
        let is_kept = std::fs::read(&place).is_ok_and(|log| !log.is_empty());
        std::fs::remove_file(&place).unwrap();
        assert!(next.is_ok(), "{next:?}");
        assert!(exists.contains("a log is never written over") && is_kept, "{exists}");
    }

    fn settings(control: Control) -> Settings {
        Settings {
            device: "eth0".into(),
            control,
            queues: [Some("fq_codel".into()), Some("fq_codel".into())],
            framing: Framing::ETHERNET,
            backend: None,
            reflectors: vec![],
            auth: None,
            rules: None,
            time_ns: None,
            log: None,
            state: None,
            open: false,
        }
    }

    /// A proof lets everything pass at first and now and then; what the controller knew before, it knows after.
    #[test]
    fn a_replay_suspends_its_controller_as_the_shaper_did() {
        let control = Control::Auto(AutoSettings::default());
        let settings = Settings { open: true, ..settings(control) };
        let file =
            std::env::temp_dir().join(format!("weir-shape-log-proof-{}", std::process::id()));
        let mut log = Log::create(&file, &settings).unwrap();
        let mut controller = control.build();
        let mut decisions = Vec::new();
        // A line of 10 Mbit/s on which 12 arrive after some seconds, until the shaper holds them back.
        let (mut queue_ns, mut bytes) = (0_u64, 0);
        let mut rate_bps = 12_000_000;
        for step in 0..1500_u64 {
            let now = Time::from_millis(20 * step);
            let open = step < 200 || (600..1000).contains(&step);
            if [200, 600, 1000].contains(&step) {
                log.suspended(open, now);
            }
            let sent_bps = match step {
                0..300 => 50_000,
                _ if open => 12_000_000,
                _ => rate_bps,
            };
            bytes += sent_bps / 400;
            queue_ns = (queue_ns + sent_bps * 2).saturating_sub(20_000_000).min(200_000_000);
            if open {
                continue;
            }
            let rtt = Duration::from_nanos(10_000_000 + queue_ns);
            let sent = Time::from_nanos(now.as_nanos().saturating_sub(rtt.as_nanos()));
            controller.on_sent(0, now);
            log.sent(0, now);
            let delay = Delay { source: 0, sent, rtt, one_way: None, by: Measured::Answer };
            controller.on_delay(&delay, now);
            log.delay(&delay, now);
            let traffic = [Some(Traffic { bytes, packets: bytes / 1500, backlog_bytes: 0 }), None];
            log.tick(&traffic, now);
            controller.on_tick(&traffic, now, &mut |decision| {
                rate_bps = decision.rate.map_or(12_000_000, |rate| rate.as_bps().min(12_000_000));
                decisions.push((step, decision));
                log.decision(&decision, now);
            });
        }
        drop(log);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(replay(&text, None, &mut |_| {}).unwrap(), [decisions.len(); 3]);
        // It goes on at once at a rate that it knew.
        let rate_at = |until| {
            let last = decisions.iter().rev().find(|(step, _)| *step <= until);
            last.and_then(|(_, decision)| decision.rate).map_or(0, weir_core::Rate::as_bps)
        };
        assert_eq!(decisions[0].1.rate, None, "nothing is known at the first start");
        let known = rate_at(599);
        assert!((8_000_000..11_000_000).contains(&known), "{known}");
        let again = rate_at(1000);
        assert!(again.abs_diff(known) * 10 < known, "{again} {known}");
        // One of an earlier version began anew each time, and says so with another word.
        let former = text.replace("\"suspended\":", "\"open\":");
        let [logged, made, same] = replay(&former, None, &mut |_| {}).unwrap();
        assert!(logged == decisions.len() && same < made, "{logged} {made} {same}");
    }

    #[test]
    fn delays_that_were_told_at_once_stand_in_one_line() {
        let ways = Some(OneWay { there_ns: -5, back_ns: 7 });
        let delay = |source, by, one_way| {
            let (sent, rtt) = (Time::from_millis(1), Duration::from_millis(2));
            Delay { source, sent, rtt, one_way, by }
        };
        let all = [
            delay(65_536, Measured::Echo, None),
            delay(65_537, Measured::Answer, ways),
            delay(65_538, Measured::Arrival, None),
        ];
        let file =
            std::env::temp_dir().join(format!("weir-shape-log-at-once-{}", std::process::id()));
        let mut log =
            Log::create(&file, &settings(Control::Auto(AutoSettings::default()))).unwrap();
        for count in 0..=3 {
            log.delays(&all[..count], Time::from_millis(4));
        }
        drop(log);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(lines.len(), 3, "none, one, two and three: {lines:?}");
        assert!(lines[0].contains("\"delay\":{\"source\":65536,"), "{lines:?}");
        let said = "{\"t\":4000000,\"delays\":[[65536,1000000,2000000,null,\"echo\"],\
                    [65537,1000000,2000000,[-5,7],\"answer\"],[65538,1000000,2000000,null,\"arrival\"]]}";
        assert_eq!(lines[2], said);
        let Line { what: What::Delays(read), .. } = serde_json::from_str(lines[2]).unwrap() else {
            panic!("{lines:?}")
        };
        assert_eq!(read.into_iter().map(|short| whole(short).delay()).collect::<Vec<_>>(), all);
        assert_eq!(replay(&text, None, &mut |_| {}).unwrap(), [0; 3]);
        let early = text.replace("[65537,1000000,", "[65537,5000000,");
        let refused = replay(&early, None, &mut |_| {}).unwrap_err().to_string();
        assert!(refused.contains("cannot be back at 4000000 ns"), "{refused}");
    }

    #[test]
    fn a_replay_decides_what_was_decided_and_another_controller_something_else() {
        let egress_bps = Some(7_000_000);
        let control = Control::Auto(AutoSettings { egress_bps, ..AutoSettings::default() });
        let settings = settings(control);
        let mut file = std::env::temp_dir();
        file.push(format!("weir-shape-log-test-{}", std::process::id()));
        let mut log = Log::create(&file, &settings).unwrap();
        // A line of 10 Mbit/s on which 12 arrive: delays rise by 0.2 s a second.
        let mut controller = control.build();
        let mut decisions = 0;
        for step in 0..500u64 {
            let now = Time::from_millis(20 * step);
            let queue = Duration::from_millis(10 + 4 * step);
            let sent = Time::from_nanos(now.as_nanos().saturating_sub(queue.as_nanos()));
            controller.on_sent(0, now);
            log.sent(0, now);
            let delay = Delay { source: 0, sent, rtt: queue, one_way: None, by: Measured::Answer };
            controller.on_delay(&delay, now);
            log.delay(&delay, now);
            if step % 50 == 0 {
                let since = Time::from_nanos(now.as_nanos().saturating_sub(5_000_000));
                controller.on_late(since, now);
                log.late(since, now);
            }
            let bytes = 30_000 * step;
            let traffic = [Some(Traffic { bytes, packets: bytes / 1500, backlog_bytes: 0 }); 2];
            log.tick(&traffic, now);
            controller.on_tick(&traffic, now, &mut |decision| {
                decisions += 1;
                log.decision(&decision, now);
            });
        }
        drop(log);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(decisions > 5, "{decisions}");
        assert_eq!(replay(&text, None, &mut |_| {}).unwrap(), [decisions; 3]);
        // Of a log with the former names of both sides all decisions are the same too.
        let former = text.replace(r#""side":"up""#, r#""side":"egress""#);
        let former = former.replace(r#""side":"down""#, r#""side":"ingress""#);
        assert!(former.contains("gress\",\"rate"), "{former}");
        assert_eq!(replay(&former, None, &mut |_| {}).unwrap(), [decisions; 3]);
        // Ended while it wrote.
        let cut = &text[..text.len() - 5];
        assert!(replay(cut, None, &mut |_| {}).is_ok());
        let mut shown = Vec::new();
        let mut show = |line: &str| shown.push(line.to_owned());
        let [logged, made, same] = replay(&text, Some(Mode::Bandwidth), &mut show).unwrap();
        assert_eq!((logged, made), (decisions, shown.len()));
        assert!(0 < made && same < made, "{made} {same}");
        // What else the log's controller was told stays.
        let kept = r#""side":"up","rate_bps":7000000"#;
        assert!(shown.iter().all(|line| line.contains(kept) || line.contains("down")), "{shown:?}");
        // Times that go back, a counter that does, and a rate that no shaper has.
        let (head, rest) = text.split_once('\n').unwrap();
        let backwards: Vec<_> = std::iter::once(head).chain(rest.lines().rev()).collect();
        let highest = text.replace("\"tick\":[[30000,", "\"tick\":[[18446744073709551615,");
        // One side is left alone for a moment, or shaped for one.
        let pause = |from: &str, to: &str| {
            let whole = rest.lines().map(|line| match line.contains("\"tick\"") {
                true => line.replacen(from, to, 1),
                false => line.to_owned(),
            });
            let lines: Vec<_> = std::iter::once(head.to_owned()).chain(whole).collect();
            lines.join("\n")
        };
        let goes = pause("[[30000,20,0],", "[null,");
        let comes = pause("[[0,0,0],", "[null,");
        let slow = text.replace("\"egress_bps\":7000000", "\"egress_bps\":7");
        for (refused, words) in [
            (backwards.join("\n"), "is before that of the line before it"),
            (highest, "its counters 60000 bytes"),
            (goes, "`up` has no counters at this tick and had some before"),
            (comes, "`up` has counters at this tick and had none before"),
            (slow, "line 1 is not of a shaper's log: up rate 7 bit/s"),
            ("{}".to_owned(), "line 1 is not of a shaper's log: "),
        ] {
            let error = replay(&refused, None, &mut |_| {}).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
