//! Everything that a server may do to a method, in any order, and what must hold then. The fuzz target and
//! the replay of its corpus share this.

use std::collections::BTreeSet;

use weir_core::{Duration, Time};
use weir_speedtest::{Action, Event, Id, METHODS, Method};

/// Takes `data` as what happens to every method that there is.
pub fn methods(data: &[u8]) {
    for known in METHODS {
        let mut run = Run::of(known.begin(7));
        let mut rest = data;
        while let [kind, which, amount, after @ ..] = rest {
            rest = run.step(*kind, *which, *amount, after);
        }
        let result = run.test.result();
        assert_eq!(result["method"], known.name);
        assert!(result["failures"].is_array());
    }
}

struct Run {
    test: Box<dyn Method>,
    now: Time,
    used: BTreeSet<Id>,
    /// Connections that were not closed and requests on them, to which something can happen.
    live: Vec<Live>,
    wakes: BTreeSet<Time>,
    over: bool,
}

#[derive(Clone, Copy)]
struct Live {
    id: Id,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Waiting,
    Open,
    Request { on: Id },
}

impl Run {
    fn of(test: Box<dyn Method>) -> Self {
        let (used, live, wakes) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
        let mut run = Self { test, now: Time::ZERO, used, live, wakes, over: false };
        run.tell(Event::Begin);
        run
    }

    /// One event; what of `rest` it did not take.
    fn step<'d>(&mut self, kind: u8, which: u8, amount: u8, rest: &'d [u8]) -> &'d [u8] {
        let span = Duration::from_millis(u64::from(amount));
        let bytes = u64::from(amount) << (which % 24);
        let tls = which.is_multiple_of(2).then_some(span);
        match kind % 10 {
            0 => {
                if let Some(id) = self.pick(which, |what| what == What::Waiting) {
                    let place = self.live.iter().position(|live| live.id == id);
                    self.live[place.unwrap()].what = What::Open;
                    self.tell(Event::Opened { id, tcp: span, tls });
                }
            }
            kind @ 1..=6 => {
                let Some(id) = self.pick(which, |what| what != What::Waiting) else { return rest };
                match kind {
                    1 => self.tell(Event::Head { id, status: 200, server: tls }),
                    2 => {
                        let status = 100 + 2 * u16::from(amount);
                        self.tell(Event::Head { id, status, server: None });
                    }
                    3 => self.tell(Event::Received { id, bytes }),
                    4 => self.tell(Event::Sent { id, bytes }),
                    5 => {
                        let (said, after) = rest.split_at((amount as usize).min(rest.len()));
                        let text = String::from_utf8_lossy(said);
                        self.tell(Event::Text { id, text: &text });
                        return after;
                    }
                    _ => {
                        self.forget(id);
                        self.tell(Event::Ended { id });
                    }
                }
            }
            7 => {
                if let Some(id) = self.pick(which, |_| true) {
                    self.forget(id);
                    self.tell(Event::Failed { id, reason: "the fuzzer said so" });
                }
            }
            8 => self.now += span,
            _ => {
                // The next wake that was asked for, and all that are due with it.
                if let Some(at) = self.wakes.pop_first() {
                    self.now = self.now.max(at);
                    self.wakes = self.wakes.split_off(&self.now);
                    self.wakes.remove(&self.now);
                    self.tell(Event::Wake);
                }
            }
        }
        rest
    }

    /// Newer ones first: they are the ones that the method looks at.
    fn pick(&self, which: u8, fits: impl Fn(What) -> bool) -> Option<Id> {
        let all: Vec<Id> =
            self.live.iter().rev().filter(|live| fits(live.what)).map(|live| live.id).collect();
        all.get(which as usize % all.len().max(1)).copied()
    }

    /// Nothing more happens to it, nor to what it carries.
    fn forget(&mut self, id: Id) {
        self.live.retain(|live| live.id != id && live.what != What::Request { on: id });
    }

    fn tell(&mut self, event: Event<'_>) {
        let mut actions = Vec::new();
        self.test.on(self.now, event, &mut actions);
        let asked = actions.iter().any(|action| !matches!(action, Action::Close { .. }));
        assert!(!self.over || !asked, "it asked for something after its end: {actions:?}");
        for action in actions {
            match action {
                Action::Open { id, .. } => self.begin(id, What::Waiting),
                Action::Request { id, on, .. } => self.begin(id, What::Request { on }),
                Action::WakeAt(at) => drop(self.wakes.insert(at)),
                Action::Close { id } => self.forget(id),
                Action::Finish => self.over = true,
                Action::Say { id, .. } | Action::Datagram { id, .. } => {
                    assert!(self.live.iter().any(|live| live.id == id), "{id} is closed");
                }
                Action::Load { .. } => {}
            }
        }
    }

    fn begin(&mut self, id: Id, what: What) {
        assert!(self.used.insert(id), "number {id} is used twice");
        self.live.push(Live { id, what });
    }
}
