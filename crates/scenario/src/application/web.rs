//! Web pages: a document, and the objects that it names, over HTTP/1.1 or HTTP/2.

use serde::{Deserialize, Serialize};
use weir_core::{Duration, Time};

use super::channel::{Channel, News};
use super::lookup::Lookup;
use super::work::{Outcome, PERIODS_NS, Work, check_time};

/// Pages that are loaded again and again, each as by somebody who has never been there: nothing is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebLoad {
    /// Bytes of the document.
    pub document_bytes: u64,
    /// Objects that the document names.
    pub objects: u32,
    /// Bytes of each object.
    pub object_bytes: u64,
    /// HTTP/1.1: connections at most.
    pub connections: u32,
    /// Whether all objects come over one connection (HTTP/2).
    pub http2: bool,
    /// Whether connections are secured (TLS 1.3).
    pub tls: bool,
    /// Whether the server's name is looked up first.
    pub dns: bool,
    /// Time from the start of one page to that of the next; one that takes longer is followed at once.
    pub every_ns: u64,
    /// How long a page is waited for.
    pub timeout_ns: u64,
}

impl WebLoad {
    pub(super) fn check(self) -> Result<(), String> {
        let count = |key: &str, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(format!("web.{key} {value}: write {least} to {most}"))
        };
        count("document", self.document_bytes, 1, MAX_BYTES)?;
        count("object", self.object_bytes, 1, MAX_BYTES)?;
        count("objects", self.objects.into(), 0, MAX_OBJECTS)?;
        count("connections", self.connections.into(), 1, MAX_CONNECTIONS)?;
        check_time("web.every", self.every_ns, PERIODS_NS)?;
        check_time("web.timeout", self.timeout_ns, PERIODS_NS)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Web {
    load: WebLoad,
    next: Time,
    visit: Option<Visit>,
}

/// A page under way.
#[derive(Clone, Debug)]
struct Visit {
    begun: Time,
    lookup: Option<Lookup>,
    /// Whether the document has been asked for.
    asked: bool,
    queries: u64,
    channels: Vec<Channel<Part>>,
    /// Objects that nobody has asked for; none before the document has come.
    unasked: u32,
    /// Answers that are still to come, the document's included.
    missing: u32,
    first_byte: Option<Duration>,
    bytes: u64,
}

/// What an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Document,
    Object,
}

impl Web {
    pub const fn new(load: WebLoad, start: Time) -> Self {
        Self { load, next: start, visit: None }
    }

    pub fn begins(&self) -> Option<Time> {
        self.visit.is_none().then_some(self.next)
    }

    pub fn due(&self) -> Option<Time> {
        let visit = self.visit.as_ref()?;
        let give_up = visit.begun.saturating_add(Duration::from_nanos(self.load.timeout_ns));
        let lookup = visit.lookup.as_ref().map(Lookup::due);
        Some(lookup.map_or(give_up, |due| due.min(give_up)))
    }

    pub fn on_due(&mut self, work: &mut Work<'_>) {
        if let Some(visit) = &mut self.visit {
            let waits = work.now.since(visit.begun) < Duration::from_nanos(self.load.timeout_ns);
            let resolves = visit.lookup.as_mut().is_none_or(|lookup| lookup.go_on(work));
            if !(waits && resolves) {
                self.end(Outcome::GivenUp, work);
            }
        }
        if self.visit.is_none() && self.next <= work.now && work.now < work.state.stop {
            self.begin(work);
        }
    }

    fn begin(&mut self, work: &mut Work<'_>) {
        let mut visit = Visit {
            begun: work.now,
            lookup: None,
            asked: false,
            queries: 0,
            channels: Vec::new(),
            unasked: 0,
            missing: 1,
            first_byte: None,
            bytes: 0,
        };
        if self.load.dns {
            visit.lookup = Some(Lookup::begin(work));
        } else {
            visit.open(self.load, work);
        }
        self.visit = Some(visit);
    }

    pub fn on_answer(&mut self, number: u64, work: &mut Work<'_>) {
        let Some(visit) = &mut self.visit else { return };
        let Some(lookup) = visit.lookup.filter(|lookup| lookup.number == number) else { return };
        visit.lookup = None;
        visit.queries = lookup.queries;
        visit.open(self.load, work);
    }

    pub fn on_received(&mut self, connection: u32, bytes: u64, work: &mut Work<'_>) {
        let Some(visit) = &mut self.visit else { return };
        let mut channels = visit.channels.iter();
        let Some(place) = channels.position(|one| one.connection == connection) else { return };
        visit.bytes += bytes;
        let mut left = bytes;
        while left > 0 {
            if visit.channels[place].answering().is_some() {
                visit.first_byte.get_or_insert(work.now.since(visit.begun));
            }
            let (rest, news) = visit.channels[place].take(left);
            left = rest;
            let Some(news) = news else { break };
            if let News::Complete(part) = news {
                visit.missing -= 1;
                if part == Part::Document {
                    visit.unasked = self.load.objects;
                    visit.missing = self.load.objects;
                }
            }
            visit.ask(place, self.load, work);
            if news == News::Complete(Part::Document) && !self.load.http2 {
                // The first connection has taken one of them.
                let others = visit.unasked.min(self.load.connections - 1);
                (0..others).for_each(|_| visit.open(self.load, work));
            }
        }
        if visit.missing == 0 {
            self.end(Outcome::Done, work);
        }
    }

    pub fn stop(&mut self, work: &mut Work<'_>) {
        self.end(Outcome::Cut, work);
    }

    fn end(&mut self, outcome: Outcome, work: &mut Work<'_>) {
        let Some(visit) = self.visit.take() else { return };
        visit.channels.iter().for_each(|channel| work.close(channel.connection));
        let next = visit.begun.saturating_add(Duration::from_nanos(self.load.every_ns));
        self.next = next.max(work.now);
        let row = work.row(visit.begun, outcome);
        row.first_byte = visit.first_byte;
        row.bytes = visit.bytes;
        row.queries = visit.lookup.map_or(visit.queries, |lookup| lookup.queries);
    }
}

impl Visit {
    /// Opens a connection, and asks what it may.
    fn open(&mut self, load: WebLoad, work: &mut Work<'_>) {
        self.channels.push(Channel::open(load.tls, load.http2, work));
        self.ask(self.channels.len() - 1, load, work);
    }

    /// Asks on a connection for what is wanted next: as much as it takes.
    fn ask(&mut self, place: usize, load: WebLoad, work: &mut Work<'_>) {
        let channel = &mut self.channels[place];
        if !self.asked && channel.is_free() {
            self.asked = true;
            channel.ask(Part::Document, load.document_bytes, work);
        }
        while self.unasked > 0 && channel.is_free() {
            channel.ask(Part::Object, load.object_bytes, work);
            self.unasked -= 1;
        }
    }
}

const MAX_BYTES: u64 = 1 << 40;
const MAX_OBJECTS: u64 = 10_000;
const MAX_CONNECTIONS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::super::{Action, Application, Client};
    use super::*;

    const PLAIN: WebLoad = WebLoad {
        document_bytes: 1_000,
        objects: 3,
        object_bytes: 500,
        connections: 2,
        http2: false,
        tls: false,
        dns: false,
        every_ns: 1_000_000_000,
        timeout_ns: 3_000_000_000,
    };

    /// A client of `load`, from the start to 10 s.
    fn client(load: WebLoad) -> Client {
        Client::new(&Application::Web(load), 0, (Time::ZERO, Time::from_millis(10_000)))
    }

    /// What the client wants done upon `event`.
    fn upon(client: &mut Client, event: impl FnOnce(&mut Client, &mut Vec<Action>)) -> Vec<Action> {
        let mut actions = Vec::new();
        event(client, &mut actions);
        actions
    }

    fn due(client: &mut Client, ms: u64) -> Vec<Action> {
        assert_eq!(client.next_due(), Some(Time::from_millis(ms)));
        upon(client, |client, actions| client.on_due(Time::from_millis(ms), actions))
    }

    fn received(client: &mut Client, connection: u32, bytes: u64, ms: u64) -> Vec<Action> {
        let now = Time::from_millis(ms);
        upon(client, |client, actions| client.on_received(connection, bytes, now, actions))
    }

    const fn ask(connection: u32, response: u64) -> Action {
        Action::Ask { connection, request: 450, response }
    }

    #[test]
    fn a_page_is_its_document_and_then_all_objects_over_as_many_connections_as_allowed() {
        let mut page = client(PLAIN);
        let open = |connection| Action::Open { connection };
        assert_eq!(due(&mut page, 0), [open(0), ask(0, 1_300)]);
        assert_eq!(received(&mut page, 0, 1_000, 40), [], "a part of it");
        assert_eq!(received(&mut page, 0, 300, 50), [ask(0, 800), open(1), ask(1, 800)]);
        assert_eq!(received(&mut page, 1, 800, 90), [ask(1, 800)]);
        assert_eq!(received(&mut page, 1, 800, 130), []);
        let close = |connection| Action::Close { connection };
        assert_eq!(received(&mut page, 0, 800, 140), [close(0), close(1)]);
        let rows: Vec<_> = page.take_rows().collect();
        let ms = Duration::from_millis;
        assert_eq!((rows.len(), rows[0].t, rows[0].took), (1, Time::ZERO, ms(140)));
        assert_eq!((rows[0].first_byte, rows[0].bytes), (Some(ms(40)), 1_300 + 3 * 800));
        assert_eq!((rows[0].outcome, rows[0].queries), ("done", 0));
        assert_eq!(page.next_due(), Some(Time::from_millis(1_000)), "the next page has its time");
        assert_eq!(due(&mut page, 1_000), [open(2), ask(2, 1_300)], "numbers are never used twice");
    }

    #[test]
    fn over_http_2_one_connection_asks_for_everything_at_once() {
        let mut page = client(WebLoad { http2: true, tls: true, dns: true, ..PLAIN });
        assert_eq!(due(&mut page, 0), [Action::Query { number: 0 }]);
        let hello = Action::Ask { connection: 0, request: 517, response: 3_000 };
        let opened =
            upon(&mut page, |page, actions| page.on_answer(0, Time::from_millis(20), actions));
        assert_eq!(opened, [Action::Open { connection: 0 }, hello]);
        let request = 109 + 22;
        let first = Action::Ask {
            connection: 0,
            request: request + 80 + 64,
            response: 1_000 + 9 + 129 + 22,
        };
        assert_eq!(received(&mut page, 0, 3_000, 60), [first], "the handshake's end goes with it");
        let object = Action::Ask { connection: 0, request, response: 500 + 9 + 129 + 22 };
        assert_eq!(received(&mut page, 0, 1_160, 80), [object; 3]);
        assert_eq!(received(&mut page, 0, 3 * 660, 100), [Action::Close { connection: 0 }]);
        let rows: Vec<_> = page.take_rows().collect();
        assert_eq!((rows[0].took, rows[0].queries), (Duration::from_millis(100), 1));
        assert_eq!(rows[0].first_byte, Some(Duration::from_millis(80)), "of the document");
    }

    #[test]
    fn a_page_that_takes_too_long_is_given_up_and_followed_at_once() {
        let mut page = client(PLAIN);
        due(&mut page, 0);
        received(&mut page, 0, 1_300, 2_900);
        let given_up = due(&mut page, 3_000);
        assert_eq!(given_up[..2], [0, 1].map(|connection| Action::Close { connection }));
        assert_eq!(given_up[2], Action::Open { connection: 2 });
        assert_eq!(received(&mut page, 0, 800, 3_001), [], "it is closed");
        let last = upon(&mut page, |page, actions| page.stop(Time::from_millis(3_500), actions));
        assert_eq!(last, [Action::Close { connection: 2 }]);
        let told = page.take_rows().map(|row| (row.seq, row.outcome, row.took.as_millis_f64()));
        assert_eq!(told.collect::<Vec<_>>(), [(0, "given_up", 3_000.0), (1, "cut", 500.0)]);
        assert_eq!(page.next_due(), None);
    }

    #[test]
    fn a_page_without_objects_is_a_flow_of_fixed_size() {
        let mut page = client(WebLoad { objects: 0, ..PLAIN });
        due(&mut page, 0);
        assert_eq!(received(&mut page, 0, 1_300, 70), [Action::Close { connection: 0 }]);
        assert_eq!(page.take_rows().next().map(|row| row.took), Some(Duration::from_millis(70)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let said = |load: WebLoad| load.check().unwrap_err();
        assert_eq!(said(WebLoad { connections: 0, ..PLAIN }), "web.connections 0: write 1 to 100");
        assert_eq!(said(WebLoad { every_ns: 0, ..PLAIN }), "web.every 0ms: write 1ms to 3600s");
    }
}
