//! A server of HTTP: what it answers stands in [`weir_speedtest::protocol::answers`], which `weir serve` answers by too.

use std::collections::BTreeMap;
use std::net::IpAddr;

use weir_speedtest::Id;
use weir_speedtest::protocol::Query;
use weir_speedtest::protocol::answers::{self, Answer, Receipt, Verb};

use super::pipe::{Meaning, Pipe, RequestHead, ResponseHead};
use super::sizes::response_head;

/// The server's side of a connection.
#[derive(Debug)]
pub(crate) struct HttpServer {
    /// Whether it speaks HTTP/2.
    two: bool,
    client: IpAddr,
    /// Bodies that are being read: what is said then, and how much came.
    taking: BTreeMap<Id, (Receipt, u64)>,
}

impl HttpServer {
    pub const fn new(two: bool, client: IpAddr) -> Self {
        Self { two, client, taking: BTreeMap::new() }
    }

    /// The head of a request came: it is answered, or its body is read first.
    pub fn on_request(&mut self, request: RequestHead, pipe: &mut Pipe) {
        let RequestHead { id, path, upload } = request;
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let asked = answers::HttpTestRequest {
            path,
            query: Query::new(query),
            verb: if upload.is_some() { Verb::Post } else { Verb::Get },
            client: self.client,
            authority: Some(AUTHORITY),
        };
        match answers::answer(&asked) {
            Ok(Answer::RandomPayload(bytes)) => {
                self.say(ResponseHead { id, status: 200, body: bytes, text: None }, true, pipe);
            }
            Ok(Answer::Words(kind, words)) => {
                let body = words.len() as u64;
                let text = kind.starts_with("application/json").then_some(words);
                self.say(ResponseHead { id, status: 200, body, text }, false, pipe);
            }
            Ok(Answer::Take(receipt)) if upload.is_some_and(|bytes| bytes > 0) => {
                self.taking.insert(id, (receipt, 0));
            }
            Ok(Answer::Take(receipt)) => self.receive(id, receipt, 0, pipe),
            Ok(Answer::Empty) => self.refuse(id, 200, pipe),
            Ok(Answer::OnlyVerb(_)) => self.refuse(id, 405, pipe),
            Ok(Answer::NotFound) => self.refuse(id, 404, pipe),
            Ok(Answer::NoHost) | Err(_) => self.refuse(id, 400, pipe),
        }
    }

    /// Takes `bytes` more of a request's body; `ended` says that it is complete.
    pub fn on_body(&mut self, id: Id, bytes: u64, ended: bool, pipe: &mut Pipe) {
        let Some((receipt, taken)) = self.taking.get_mut(&id) else { return };
        *taken += bytes;
        if ended {
            let (receipt, taken) = (*receipt, *taken);
            self.taking.remove(&id);
            self.receive(id, receipt, taken, pipe);
        }
    }

    fn receive(&self, id: Id, receipt: Receipt, bytes: u64, pipe: &mut Pipe) {
        let body = receipt.words(bytes).len() as u64;
        self.say(ResponseHead { id, status: 200, body, text: None }, false, pipe);
    }

    /// Answers with nothing but a status.
    fn refuse(&self, id: Id, status: u16, pipe: &mut Pipe) {
        self.say(ResponseHead { id, status, body: 0, text: None }, false, pipe);
    }

    fn say(&self, head: ResponseHead, is_load: bool, pipe: &mut Pipe) {
        let ResponseHead { id, body, .. } = head;
        pipe.say(response_head(self.two), Meaning::Head(head));
        if body > 0 {
            pipe.send_body(id, body, self.two, is_load);
        }
    }
}

/// The name of all servers, which no method looks at.
const AUTHORITY: &str = "server";
