//! Connections of HTTP/1.1 that carry request after request, one at a time each.

use weir_core::{Duration, Time};

use crate::method::{Action, Connection, Event, Id, is_success};

/// A number of connections; each has a place, which it keeps if it has to be opened anew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    next_id: Id,
    streams: Vec<Stream>,
    /// Requests in a row that failed.
    failures: u32,
}

#[derive(Clone, Debug)]
struct Stream {
    connection: Id,
    is_open: bool,
    request: Option<BulkRequest>,
}

/// A request under way, with the times of its start and of the head of its answer.
#[derive(Clone, Copy, Debug)]
struct BulkRequest {
    id: Id,
    uploads: bool,
    began: Time,
    head: Option<(Time, u16)>,
}

/// Meaning of an event for a set of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The connection at this place was opened and waits for a request.
    Ready(usize),
    /// Bytes of a body that have passed, in the direction that their request loads.
    Moved(u64),
    /// The request at this place is answered; the connection waits for the next one.
    Done(usize, Answer),
    /// The server cannot be reached, or breaks off everything.
    Failed(String),
}

/// A request with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Time from the request to the head of its answer.
    pub to_head: Duration,
    /// Time from the request to the end of its answer.
    pub took: Duration,
    pub status: u16,
}

impl Answer {
    /// Whether the server did what it was asked for.
    pub fn is_success(&self) -> bool {
        is_success(self.status)
    }
}

impl Streams {
    /// An empty set, whose connections and requests will have numbers above `id`.
    pub fn numbered_above(id: Id) -> Self {
        Self { next_id: id, ..Self::default() }
    }

    /// Number of connections.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    /// Whether the connection at this place could take a request now.
    pub fn waits(&self, place: usize) -> bool {
        self.streams.get(place).is_some_and(|stream| stream.is_open && stream.request.is_none())
    }

    /// With which status the request at this place is being answered, if it is.
    pub fn status(&self, place: usize) -> Option<u16> {
        let (_, status) = self.streams.get(place)?.request?.head?;
        Some(status)
    }

    /// Opens one more; it has the next place, counted from 0.
    pub fn open(&mut self, actions: &mut Vec<Action>) {
        let connection = self.connect(actions);
        self.streams.push(Stream { connection, is_open: false, request: None });
    }

    /// Sends a request at a place that waits for one.
    pub fn ask(
        &mut self,
        place: usize,
        now: Time,
        (path, upload): (String, Option<u64>),
        actions: &mut Vec<Action>,
    ) {
        let id = self.id();
        let stream = &mut self.streams[place];
        stream.request =
            Some(BulkRequest { id, uploads: upload.is_some(), began: now, head: None });
        actions.push(Action::Request { id, on: stream.connection, path, upload });
    }

    /// Closes all of them.
    pub fn close(&mut self, actions: &mut Vec<Action>) {
        for stream in self.streams.drain(..) {
            let request = stream.request.map(|request| request.id);
            let ids = request.into_iter().chain([stream.connection]);
            actions.extend(ids.map(|id| Action::Close { id }));
        }
    }

    /// Takes `event`, and says what it means for these connections; `None` if nothing.
    pub fn hear(
        &mut self,
        now: Time,
        event: &Event<'_>,
        actions: &mut Vec<Action>,
    ) -> Option<Heard> {
        match *event {
            Event::Opened { id, .. } => {
                let place = self.streams.iter().position(|stream| stream.connection == id)?;
                self.streams[place].is_open = true;
                Some(Heard::Ready(place))
            }
            Event::Head { id, status, .. } => {
                let (_, request) = self.request(id)?;
                request.head = Some((now, status));
                None
            }
            Event::Received { id, bytes } => self.moved(id, bytes, false),
            Event::Sent { id, bytes } => self.moved(id, bytes, true),
            Event::Ended { id } => {
                let (place, request) = self.request(id)?;
                let (at, status) = request.head.unwrap_or((now, 0));
                let began = request.began;
                self.streams[place].request = None;
                self.failures = 0;
                let (to_head, took) = (at.since(began), now.since(began));
                Some(Heard::Done(place, Answer { to_head, took, status }))
            }
            Event::Failed { id, reason } => self.failed(id, reason, actions),
            Event::Begin | Event::Text { .. } | Event::Wake => None,
        }
    }

    fn moved(&mut self, id: Id, bytes: u64, sent: bool) -> Option<Heard> {
        let (_, request) = self.request(id)?;
        (request.uploads == sent).then_some(Heard::Moved(bytes))
    }

    fn failed(&mut self, id: Id, reason: &str, actions: &mut Vec<Action>) -> Option<Heard> {
        let place = self.streams.iter().position(|stream| {
            stream.connection == id || stream.request.is_some_and(|request| request.id == id)
        })?;
        self.failures += 1;
        if !self.streams[place].is_open || self.failures > MAX_FAILURES {
            return Some(Heard::Failed(reason.to_owned()));
        }
        // A server that keeps no connection alive is one too.
        actions.push(Action::Close { id: self.streams[place].connection });
        let connection = self.connect(actions);
        self.streams[place] = Stream { connection, is_open: false, request: None };
        None
    }

    fn connect(&mut self, actions: &mut Vec<Action>) -> Id {
        let id = self.id();
        actions.push(Action::Open { id, kind: Connection::Http1 });
        id
    }

    fn request(&mut self, id: Id) -> Option<(usize, &mut BulkRequest)> {
        let mut all = self.streams.iter_mut().map(|stream| stream.request.as_mut()).enumerate();
        all.find_map(|(place, request)| Some((place, request.filter(|request| request.id == id)?)))
    }

    fn id(&mut self) -> Id {
        self.next_id += 1;
        self.next_id
    }
}

/// Requests in a row that a server may break off; one that breaks off more would do so for ever.
const MAX_FAILURES: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_breaks_is_opened_anew_at_its_place() {
        let (mut streams, mut actions) = (Streams::numbered_above(10), Vec::new());
        streams.open(&mut actions);
        let tcp = Duration::ZERO;
        let opened = |id| Event::Opened { id, tcp, tls: None };
        assert_eq!(streams.hear(Time::ZERO, &opened(11), &mut actions), Some(Heard::Ready(0)));
        streams.ask(0, Time::ZERO, ("/".to_owned(), None), &mut actions);
        actions.clear();
        let broken = Event::Failed { id: 12, reason: "reset" };
        assert_eq!(streams.hear(Time::ZERO, &broken, &mut actions), None);
        let again = Action::Open { id: 13, kind: Connection::Http1 };
        assert_eq!(actions, [Action::Close { id: 11 }, again]);
        assert_eq!(streams.hear(Time::ZERO, &opened(13), &mut actions), Some(Heard::Ready(0)));
        streams.ask(0, Time::from_millis(5), ("/".to_owned(), None), &mut actions);
        streams.hear(
            Time::from_millis(25),
            &Event::Head { id: 14, status: 404, server: None },
            &mut actions,
        );
        let Some(Heard::Done(0, answer)) =
            streams.hear(Time::from_millis(30), &Event::Ended { id: 14 }, &mut actions)
        else {
            panic!("it is answered")
        };
        assert_eq!(answer.to_head, Duration::from_millis(20));
        assert_eq!(answer.took, Duration::from_millis(25));
        assert!(!answer.is_success());
    }

    #[test]
    fn a_connection_that_cannot_be_opened_is_a_failure() {
        let (mut streams, mut actions) = (Streams::numbered_above(0), Vec::new());
        streams.open(&mut actions);
        let refused = Event::Failed { id: 1, reason: "refused" };
        let heard = streams.hear(Time::ZERO, &refused, &mut actions);
        assert_eq!(heard, Some(Heard::Failed("refused".to_owned())));
    }
}
