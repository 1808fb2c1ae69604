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
use weir_core::{Duration, Time, error_in_words};
use weir_rate_control::{Decision, Delay, Measured, OneWay, Side, Traffic};

use crate::ShapeError;
use crate::settings::Settings;

/// A log that is being written.
pub(crate) struct Log {
    name: String,
    file: BufWriter<File>,
    /// Why nothing is written any more.
    trouble: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object with `weir_shape` and `settings`")]
pub(crate) struct Head {
    pub weir_shape: u32,
    pub settings: Settings,
}

/// A line but the first.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub t: u64,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
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
pub(crate) struct Heard {
    source: u32,
    sent: u64,
    rtt: u64,
    one_way: Option<(i64, i64)>,
    /// What it was measured by, if not by an answer.
    #[serde(default, skip_serializing_if = "Measured::is_answer")]
    by: Measured,
}

/// A delay among others: what [`Heard`] has, in its order.
pub(crate) type HeardInShort = (u32, u64, u64, Option<(i64, i64)>, Measured);

/// A side, as options and logs name it; older logs have the names of [`Side`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoggedSide {
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
    let why = error_in_words(error);
    ShapeError::input(format!("cannot write the log `{}`: {why}{kept}", file.display()))
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
                "the log `{}` ends before this, since it cannot be written any more ({}); it shapes on",
                self.name,
                error_in_words(&error)
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
    pub fn check(self, t: u64) -> Result<(), String> {
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

    pub fn delay(self) -> Delay {
        let Self { source, sent, rtt, one_way, by } = self;
        let one_way = one_way.map(|(there_ns, back_ns)| OneWay { there_ns, back_ns });
        let (sent, rtt) = (Time::from_nanos(sent), Duration::from_nanos(rtt));
        Delay { source, sent, rtt, one_way, by }
    }
}

/// The delay that stands in short.
pub(crate) const fn whole((source, sent, rtt, one_way, by): HeardInShort) -> Heard {
    Heard { source, sent, rtt, one_way, by }
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain JSON")
}

pub(crate) fn decided(decision: &Decision) -> What {
    What::Decision {
        side: if decision.side == Side::Egress { LoggedSide::Up } else { LoggedSide::Down },
        rate_bps: decision.rate.map(weir_core::Rate::as_bps),
        state: decision.state.name().to_owned(),
        reason: decision.reason.name().to_owned(),
        value: decision.value,
    }
}

pub(crate) const VERSION: u32 = 1;
/// A hundred years: no time of a log is later, and sums of two still fit.
pub(crate) const MAX_TIME_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

#[cfg(test)]
pub(crate) mod tests {
    use weir_core::Framing;
    use weir_rate_control::{AutoSettings, Control};

    use super::*;
    use crate::replay::replay;

    #[test]
    fn a_full_disk_is_told_and_ends_the_log_alone() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut log = Log::into_file("eth0.jsonl".into(), BufWriter::new(full));
        assert_eq!(log.trouble(), None);
        for second in 0..1000 {
            log.tick(&[None; 2], Time::from_nanos(second));
        }
        let said = "the log `eth0.jsonl` ends before this, since it cannot be written any more (no space left on \
                    device); it shapes on";
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
        assert!(refused.contains("no space left on device"), "{refused}");
        // One that was there before stays.
        let next = Log::create(&place, &settings).map(|_| ());
        let exists = Log::create(&place, &settings).err().unwrap().to_string();
        let is_kept = std::fs::read(&place).is_ok_and(|log| !log.is_empty());
        std::fs::remove_file(&place).unwrap();
        assert!(next.is_ok(), "{next:?}");
        assert!(exists.contains("a log is never written over") && is_kept, "{exists}");
    }

    pub(crate) fn settings(control: Control) -> Settings {
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
}
