//! For tests: a line of a known rate, some way off, on which a method of HTTP requests runs.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_core::{Duration, Time};

use crate::protocol::ookla::{Command, HELLO, LossCount, LossDatagram, pong};

use crate::method::{Action, Connection, Event, Id, Method};

/// A line and its server, to the millisecond.
pub(crate) struct Script {
    /// Bytes a millisecond that all loads share, at a millisecond.
    pub rate: fn(u64) -> u64,
    /// Round trip in milliseconds, and while there is load.
    pub trip: u64,
    pub loaded: u64,
    /// To which paths the server answers 200; to others 404.
    pub knows: fn(&str) -> bool,
    /// Whether the datagram with an index arrives; `None` for a server that speaks no lines.
    pub arrive: Option<fn(u32) -> bool>,
}

/// Requests of at most so many bytes pass beside the loads.
const SMALL: u64 = 1_000;

struct Load {
    up: bool,
    left: u64,
    /// When its first byte can come or go.
    from: u64,
}

impl Script {
    /// Runs it to its end; its result, and at which millisecond that was there.
    pub fn run(&self, test: &mut dyn Method) -> (Value, u64) {
        let mut actions = Vec::new();
        let mut agenda: BTreeMap<(u64, u32), Due> = BTreeMap::new();
        let mut loads: BTreeMap<Id, Load> = BTreeMap::new();
        let (mut count, mut counted) = (0, LossCount::default());
        test.on(Time::ZERO, Event::Begin, &mut actions);
        for now in 0_u64..200_000 {
            // What is answered at once may ask for more at once.
            loop {
                for action in std::mem::take(&mut actions) {
                    count += 1;
                    let mut at = |when: u64, due: Due| _ = agenda.insert((when, count), due);
                    let trip = if loads.is_empty() { self.trip } else { self.loaded };
                    match action {
                        Action::Open { id, kind: Connection::Lines } if self.arrive.is_none() => {
                            at(now + trip, Due::Refused(id));
                        }
                        Action::Say { id, line } => {
                            let answer = match Command::parse(line.as_bytes()) {
                                Ok(Command::Hello(Some(_))) => HELLO.to_owned(),
                                Ok(Command::Ping) => pong(now),
                                Ok(Command::Loss) => counted.answer(),
                                Ok(Command::StartLoss) => continue,
                                other => panic!("{line}: {other:?}"),
                            };
                            at(now + trip, Due::Line(id, answer));
                        }
                        Action::Datagram { text, .. } => {
                            let index = LossDatagram::parse(text.as_bytes()).unwrap().index;
                            if self.arrive.is_some_and(|arrives| arrives(index)) {
                                counted.arrived(index);
                            }
                        }
                        Action::Open { id, .. } => at(now + trip, Due::Opened(id, trip)),
                        Action::Request { id, upload, path, .. } => {
                            let status = if (self.knows)(&path) { 200 } else { 404 };
                            let left = if status == 200 { size(&path, upload) } else { 0 };
                            if left <= SMALL {
                                at(now + trip, Due::Answer(id, status, left));
                                continue;
                            }
                            let up = upload.is_some();
                            let from = if up { now } else { now + trip };
                            loads.insert(id, Load { up, left, from });
                            if !up {
                                at(now + trip, Due::Head(id));
                            }
                        }
                        Action::WakeAt(when) => at(when.as_nanos().div_ceil(1_000_000), Due::Wake),
                        Action::Close { id } => drop(loads.remove(&id)),
                        Action::Finish => return (test.result(), now),
                        Action::Load { .. } => unreachable!("it has no WebSockets"),
                    }
                }
                let Some(entry) = agenda.first_entry().filter(|entry| entry.key().0 <= now) else {
                    break;
                };
                Self::happen(test, now, entry.remove(), &mut actions);
            }
            self.carry(now, test, &mut loads, &mut agenda, &mut actions);
        }
        panic!("the test does not end");
    }

    fn happen(test: &mut dyn Method, now: u64, due: Due, actions: &mut Vec<Action>) {
        let time = Time::from_millis(now);
        match due {
            Due::Wake => test.on(time, Event::Wake, actions),
            Due::Opened(id, trip) => {
                let tcp = Duration::from_millis(trip);
                test.on(time, Event::Opened { id, tcp, tls: None }, actions);
            }
            Due::Refused(id) => test.on(time, Event::Failed { id, reason: "refused" }, actions),
            Due::Line(id, line) => {
                test.on(time, Event::Text { id, text: line.trim_end() }, actions);
            }
            Due::Head(id) => test.on(time, Event::Head { id, status: 200, server: None }, actions),
            Due::Answer(id, status, bytes) => {
                test.on(time, Event::Head { id, status, server: None }, actions);
                test.on(time, Event::Received { id, bytes }, actions);
                test.on(time, Event::Ended { id }, actions);
            }
        }
    }

    /// Gives the millisecond's bytes to the load whose turn it is.
    fn carry(
        &self,
        now: u64,
        test: &mut dyn Method,
        loads: &mut BTreeMap<Id, Load>,
        agenda: &mut BTreeMap<(u64, u32), Due>,
        actions: &mut Vec<Action>,
    ) {
        let ready: Vec<Id> =
            loads.iter().filter(|(_, load)| load.from <= now).map(|(id, _)| *id).collect();
        let turn = now as usize % ready.len().max(1);
        let mut budget = (self.rate)(now);
        for id in ready[turn..].iter().chain(&ready[..turn]).copied() {
            let Some(load) = loads.get_mut(&id) else { continue };
            let bytes = budget.min(load.left);
            budget -= bytes;
            load.left -= bytes;
            let (up, over) = (load.up, load.left == 0);
            if bytes > 0 {
                let event =
                    if up { Event::Sent { id, bytes } } else { Event::Received { id, bytes } };
                test.on(Time::from_millis(now), event, actions);
            }
            if over {
                loads.remove(&id);
                if up {
                    agenda.insert((now + self.loaded, u32::MAX - id), Due::Answer(id, 200, 0));
                } else {
                    test.on(Time::from_millis(now), Event::Ended { id }, actions);
                }
            }
        }
    }
}

enum Due {
    Wake,
    Refused(Id),
    /// A line of the server, with its end.
    Line(Id, String),
    /// A connection that was opened, and how many milliseconds that took.
    Opened(Id, u64),
    Head(Id),
    /// Status of an answer, and its number of bytes.
    Answer(Id, u16, u64),
}

/// Bytes that a request moves.
fn size(path: &str, upload: Option<u64>) -> u64 {
    let number = |name: &str| {
        let (_, query) = path.split_once('?')?;
        query.split('&').find_map(|part| part.strip_prefix(name)?.parse::<u64>().ok())
    };
    let file = path.is_empty().then_some(500_000);
    upload
        .or(number("size="))
        .or(number("bytes="))
        .or(file)
        .or(number("ckSize=").map(|mib| mib << 20))
        .unwrap_or(0)
}
