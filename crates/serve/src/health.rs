//! Health of the listening sockets. If the task of one ends before it is told to, the server ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::error::ServeError;
use crate::http::{HttpRequest, HttpResponse, content, may_know_all};
use crate::log;
use crate::service::{OverHttp, Own, Rules, Service};
use crate::shared::Shared;

/// `/healthz`, for whoever watches over the server. It is always there.
pub(crate) const SERVICE: Service = Service::Own(&Own {
    name: "health",
    summary: "Whether all listening sockets are at work",
    http: Some(OverHttp {
        serves: |path| path == "/healthz",
        answer: |client, request| {
            Box::pin(async move { answer(&client.server, client.ends.client.ip(), &request) })
        },
        rules: Rules { is_for_pages: false, needs_secret: false, ..Rules::READ },
    }),
});

/// What `/healthz` tells, to one whose connection is one too many as well.
pub(crate) fn answer(server: &Shared, client: IpAddr, request: &HttpRequest) -> HttpResponse {
    let (well, said) = server.health.report(may_know_all(server, client, request));
    let mut response = content("application/json", said);
    if !well {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// All listening sockets of a server, and what ended it if something did.
#[derive(Debug)]
pub(crate) struct Health {
    start: Instant,
    listeners: Vec<Listener>,
    /// Token after which no test begins: the server is told to end, or ends.
    pub closing: CancellationToken,
    stop: CancellationToken,
    failure: OnceLock<ServeError>,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    /// `TCP` or `UDP`.
    pub transport: &'static str,
    /// Name of the protocols that are spoken on the socket.
    pub serves: &'static str,
    pub address: SocketAddr,
    /// When its task last ran, in milliseconds since the start.
    seen_ms: AtomicU64,
    failed: AtomicBool,
}

impl Listener {
    pub const fn new(transport: &'static str, serves: &'static str, address: SocketAddr) -> Self {
        let (seen_ms, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { transport, serves, address, seen_ms, failed }
    }
}

impl Health {
    /// The health of a server with these listening sockets, which `stop` ends.
    pub fn new(listeners: Vec<Listener>, stop: CancellationToken) -> Self {
        let closing = stop.child_token();
        Self { start: Instant::now(), listeners, closing, stop, failure: OnceLock::new() }
    }

    /// The task of listener `number` is at work. Every task says so each [`TICK`].
    pub fn seen(&self, number: usize) {
        self.listeners[number].seen_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Does the work of listener `number`. If it ends before the server does, by an error or by a panic, the
    /// server ends, and fails with the reason.
    pub async fn supervise(&self, number: usize, work: impl Future<Output = io::Result<()>>) {
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        if self.stop.is_cancelled() {
            return;
        }
        let Listener { transport, address, failed, .. } = &self.listeners[number];
        failed.store(true, Ordering::Relaxed);
        let what = format!("listening on {transport} {address} ended");
        self.fail(match ended {
            Ok(Err(error)) => ServeError::io(what, &error),
            Ok(Ok(())) | Err(_) => ServeError::new(format!("{what} by a bug: please report it")),
        });
    }

    /// Ends the server for this reason, unless it ends already.
    pub fn fail(&self, reason: ServeError) {
        if self.stop.is_cancelled() {
            return;
        }
        error!(%reason, "the server cannot go on");
        // The first reason counts.
        let _ = self.failure.set(reason);
        self.stop.cancel();
    }

    /// Why the server ended, if it was not told to.
    pub fn outcome(&self) -> Result<(), ServeError> {
        self.failure.get().map_or(Ok(()), |reason| Err(reason.clone()))
    }

    /// Whether all is well, and what `/healthz` says: to this machine of every listening socket, to others
    /// the status alone.
    pub fn report(&self, in_full: bool) -> (bool, String) {
        let states: Vec<_> = self.listeners.iter().map(|one| self.state(one)).collect();
        let status = if self.closing.is_cancelled() {
            "stopping"
        } else {
            states.iter().copied().find(|state| *state != OK).unwrap_or(OK)
        };
        let mut said = json!({ "status": status });
        if in_full {
            let each = self.listeners.iter().zip(&states).map(|(one, state)| {
                json!({
                    "transport": one.transport, "address": one.address.to_string(),
                    "serves": one.serves, "status": state,
                })
            });
            said["listeners"] = Value::Array(each.collect());
            said["log_lines_lost"] = json!(log::lost_lines());
        }
        (status == OK, format!("{said}\n"))
    }

    fn state(&self, listener: &Listener) -> &'static str {
        let silent_ms = self.now_ms().saturating_sub(listener.seen_ms.load(Ordering::Relaxed));
        if listener.failed.load(Ordering::Relaxed) {
            "failed"
        } else if Duration::from_millis(silent_ms) > STALLED {
            "stalled"
        } else {
            OK
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Whether an error says that the socket itself is of no use any more. All others concern one connection or
/// datagram, or pass (accept(2), "Error handling").
pub(crate) fn ends_listening(error: &io::Error) -> bool {
    let lasting = [libc::EBADF, libc::EINVAL, libc::ENOTSOCK, libc::EFAULT];
    error.raw_os_error().is_some_and(|code| lasting.contains(&code))
}

/// How often the task of a listening socket shows that it runs.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// Time after which a task that has not run is held up by something.
const STALLED: Duration = Duration::from_secs(5);
const OK: &str = "ok";

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> Health {
        let listener =
            |port| Listener::new("UDP", "irtt", SocketAddr::from(([127, 0, 0, 1], port)));
        Health::new(vec![listener(1), listener(2)], CancellationToken::new())
    }

    #[tokio::test]
    async fn a_task_that_ends_ends_the_server_with_its_reason() {
        let failing = health();
        failing.supervise(1, async { Err(io::Error::from_raw_os_error(libc::EBADF)) }).await;
        assert!(failing.stop.is_cancelled());
        let reason = failing.outcome().unwrap_err().to_string();
        assert_eq!(reason, "listening on UDP 127.0.0.1:2 ended: bad file descriptor");
        let panicking = health();
        panicking.supervise(0, async { panic!("of the test") }).await;
        let bug = panicking.outcome().unwrap_err().to_string();
        assert_eq!(bug, "listening on UDP 127.0.0.1:1 ended by a bug: please report it");
        let stopped = health();
        stopped.stop.cancel();
        stopped.supervise(0, async { Ok(()) }).await;
        assert_eq!(stopped.outcome(), Ok(()));
    }

    #[test]
    fn the_report_tells_of_each_listener() {
        let health = health();
        let (well, said) = health.report(true);
        assert!(well);
        assert!(
            said.contains(r#""address":"127.0.0.1:2","serves":"irtt","status":"ok""#),
            "{said}"
        );
        assert_eq!(health.report(false).1, "{\"status\":\"ok\"}\n");
        health.listeners[1].failed.store(true, Ordering::Relaxed);
        let (still_well, told) = health.report(true);
        assert!(!still_well && told.contains(r#""status":"failed""#), "{told}");
        health.closing.cancel();
        assert_eq!(health.report(false), (false, "{\"status\":\"stopping\"}\n".to_owned()));
    }
}
