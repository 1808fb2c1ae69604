//! Ookla's packet loss: numbered datagrams to a server that counts them, and says over TCP how many came.
//!
//! Datagrams go up only, so this is the loss of that direction, and they are few: they measure the queue's
//! loss as a call would have it. What is not published by anybody is ours, and named so in the constants.

use crate::protocol::ookla::{LossDatagram, LossReport};
use weir_core::{Duration, Time};

use crate::method::{Action, Connection, Event, Id};
use crate::result::object;

/// A test of loss, beside another test.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    stage: Stage,
    /// Name under which the server counts the datagrams.
    name: String,
    nonce: u64,
    /// The index of the next datagram.
    next: u32,
    next_at: Time,
}

object! {
    /// Datagrams by which loss was measured.
    pub(crate) struct DatagramCounts {
        /// How many were sent.
        pub sent: u32,
        /// How many the server received, each once; null where nobody knows.
        pub received: Option<u64>,
        /// How many the server received again; null where nobody knows.
        pub duplicates: Option<u64>,
    }
}

#[derive(Clone, Debug)]
enum Stage {
    Opening,
    /// The client has said its name.
    Greeted,
    /// The client has said that datagrams will come; the server counts them once it has answered.
    Announced,
    Sending,
    /// No more datagrams: waits for the last ones to arrive.
    Waiting(Time),
    /// The client has asked how many arrived, and awaits an answer until this time.
    Asked(Time),
    Over(Result<LossReport, String>),
}

impl Loss {
    /// A test of which the connection is number `ID`; its name is made of `chance`.
    pub fn new(chance: u128) -> Self {
        Self {
            stage: Stage::Opening,
            name: uuid(chance),
            nonce: chance as u64 % NONCES,
            next: 0,
            next_at: Time::MAX,
        }
    }

    /// Opens the connection to the server.
    pub fn begin(actions: &mut Vec<Action>) {
        actions.push(Action::Open { id: ID, kind: Connection::Lines });
    }

    /// Handles an event; true if it was of this test, and of no other.
    pub fn on(&mut self, now: Time, event: &Event<'_>, actions: &mut Vec<Action>) -> bool {
        match *event {
            Event::Wake => {
                self.on_wake(now, actions);
                return false;
            }
            Event::Opened { id: ID, .. } => {
                let name = &self.name;
                actions.push(say(format!("HI {name}")));
                self.stage = Stage::Greeted;
            }
            Event::Text { id: ID, text } => self.on_line(now, text, actions),
            Event::Ended { id: ID } => self.fail("the server closed its connection"),
            Event::Failed { id: ID, reason } => self.fail(reason),
            _ => return false,
        }
        true
    }

    /// No more datagrams: from now on [`is_over`](Self::is_over) will be true some time.
    pub fn finish(&mut self, now: Time, actions: &mut Vec<Action>) {
        match self.stage {
            Stage::Sending => {
                self.stage = Stage::Waiting(now + LATE);
                actions.push(Action::WakeAt(now + LATE));
            }
            Stage::Opening | Stage::Greeted | Stage::Announced => {
                self.fail("the server did not answer in time");
            }
            Stage::Waiting(_) | Stage::Asked(_) | Stage::Over(_) => {}
        }
    }

    /// Whether there is nothing more to wait for.
    pub const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Closes its connection.
    pub fn close(&self, actions: &mut Vec<Action>) {
        actions.push(Action::Close { id: ID });
    }

    /// In percent; `None` if it is not known.
    pub fn percent(&self) -> Option<f64> {
        self.report()?.loss().map(|loss| loss * 100.0)
    }

    /// Datagrams sent, received and duplicated; `None` where nobody knows.
    pub fn counts(&self) -> DatagramCounts {
        let report = self.report().filter(|report| report.received > 0);
        DatagramCounts {
            sent: self.next,
            received: report.map(|report| report.received),
            duplicates: report.map(|report| report.duplicates),
        }
    }

    /// Why it is not known.
    pub fn missing(&self) -> Option<String> {
        match &self.stage {
            Stage::Over(Ok(report)) if report.received > 0 => None,
            Stage::Over(Ok(_)) => {
                let sent = self.next;
                Some(format!("packet loss: the server saw none of {sent} datagrams: no UDP there"))
            }
            Stage::Over(Err(reason)) => Some(format!("packet loss: {reason}")),
            _ => Some("packet loss: the test ended before".to_owned()),
        }
    }

    const fn report(&self) -> Option<&LossReport> {
        match &self.stage {
            Stage::Over(Ok(report)) => Some(report),
            _ => None,
        }
    }

    fn on_line(&mut self, now: Time, line: &str, actions: &mut Vec<Action>) {
        match self.stage {
            Stage::Greeted if line.starts_with("HELLO") => {
                // INITPLOSS is not answered: what is said behind it is.
                actions.extend(["INITPLOSS", "PING 0"].map(|words| say(words.to_owned())));
                self.stage = Stage::Announced;
            }
            Stage::Announced if line.starts_with("PONG") => {
                self.stage = Stage::Sending;
                self.send(now, actions);
            }
            Stage::Asked(_) => match LossReport::parse(line) {
                Some(report) => self.stage = Stage::Over(Ok(report)),
                None => self.fail("the server does not count datagrams"),
            },
            Stage::Greeted | Stage::Announced => self.fail("the server speaks no lines of Ookla's"),
            _ => {}
        }
    }

    fn on_wake(&mut self, now: Time, actions: &mut Vec<Action>) {
        match self.stage {
            Stage::Sending if now >= self.next_at => self.send(now, actions),
            Stage::Waiting(until) if now >= until => {
                actions.extend([say("PLOSS".to_owned()), Action::WakeAt(now + PATIENCE)]);
                self.stage = Stage::Asked(now + PATIENCE);
            }
            Stage::Asked(until) if now >= until => self.fail("the server did not answer in time"),
            _ => {}
        }
    }

    fn send(&mut self, now: Time, actions: &mut Vec<Action>) {
        let datagram = LossDatagram { index: self.next, name: &self.name };
        actions.push(Action::Datagram { id: ID, text: datagram.text(self.nonce) });
        self.next += 1;
        self.next_at = now + EVERY;
        actions.push(Action::WakeAt(self.next_at));
    }

    fn fail(&mut self, reason: &str) {
        if !self.is_over() {
            self.stage = Stage::Over(Err(reason.to_owned()));
        }
    }
}

fn say(line: String) -> Action {
    Action::Say { id: ID, line }
}

/// A name of random bits, as RFC 9562, section 5.4, writes it.
fn uuid(chance: u128) -> String {
    let bits = chance & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Stands apart from the numbers of other connections and requests.
const ID: Id = 1 << 24;
/// As showwin/speedtest-go has them, apart and named: 15 datagrams a second, numbers of ten digits.
const EVERY: Duration = Duration::from_millis(67);
const NONCES: u64 = 10_000_000_000;
/// Ours: more than queues hold, and less than who watches waits for.
const LATE: Duration = Duration::from_secs(1);
/// Ours: an answer that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use weir_core::Duration;

    use super::*;

    const OPENED: Event<'static> = Event::Opened { id: ID, tcp: Duration::ZERO, tls: None };

    /// The state and the last actions of a test whose server says `lines`, one an event, once it is
    /// connected.
    fn told(lines: &[&str]) -> (Loss, Vec<Action>) {
        let (mut loss, mut actions) = (Loss::new(5), Vec::new());
        assert!(loss.on(Time::ZERO, &OPENED, &mut actions));
        for line in lines {
            actions.clear();
            let event = Event::Text { id: ID, text: line };
            assert!(loss.on(Time::ZERO, &event, &mut actions));
        }
        (loss, actions)
    }

    #[test]
    fn datagrams_go_once_they_are_counted() {
        let name = "00000000-0000-4000-8000-000000000005";
        let (_, greeting) = told(&[]);
        assert_eq!(greeting, [say(format!("HI {name}"))]);
        let (_, announced) = told(&["HELLO 2.9 (2.9.0)"]);
        assert_eq!(announced, [say("INITPLOSS".into()), say("PING 0".into())]);
        let (mut loss, mut actions) = told(&["HELLO 2.9 (2.9.0)", "PONG 1700000000000"]);
        let datagram =
            |index: u32| Action::Datagram { id: ID, text: format!("LOSS 5 {index} {name}") };
        assert_eq!(actions, [datagram(0), Action::WakeAt(Time::from_millis(67))]);
        actions.clear();
        assert!(!loss.on(Time::from_millis(66), &Event::Wake, &mut actions));
        assert!(actions.is_empty());
        loss.on(Time::from_millis(67), &Event::Wake, &mut actions);
        assert_eq!(actions, [datagram(1), Action::WakeAt(Time::from_millis(134))]);
    }

    #[test]
    fn what_never_came_to_be_counted_is_missing() {
        let missing = |lines: &[&str]| {
            let (mut loss, mut actions) = told(lines);
            loss.finish(Time::ZERO, &mut actions);
            assert_eq!((loss.is_over(), loss.percent()), (true, None));
            loss.missing().unwrap()
        };
        assert_eq!(missing(&[]), "packet loss: the server did not answer in time");
        let other = "packet loss: the server speaks no lines of Ookla's";
        assert_eq!(missing(&["HTTP/1.1 400 Bad Request"]), other);
        assert_eq!(missing(&["HELLO", "ERROR"]), other);
        let (mut loss, mut actions) = (Loss::new(5), Vec::new());
        loss.on(Time::ZERO, &Event::Failed { id: ID, reason: "refused" }, &mut actions);
        assert_eq!(loss.missing().unwrap(), "packet loss: refused");
    }
}
