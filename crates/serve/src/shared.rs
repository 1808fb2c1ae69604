//! State that all parts of a server share.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info};
use weir_core::Direction;
use weir_speedtest::protocol::weir::Secret;

use crate::admission::{Admission, Loading, Permit, Refusal};
use crate::health::Health;
use crate::metrics::{Metrics, TestLabels};
use crate::ookla::LossTests;
use crate::options::Options;
use crate::refusals::Refusals;
use crate::senders::Begins;
use crate::service::Service;
use crate::weir::Sessions;

/// One server.
pub(crate) struct Shared {
    pub options: Options,
    pub services: BTreeSet<Service>,
    pub secret: Option<Secret>,
    pub admission: Arc<Admission>,
    pub metrics: Arc<Metrics>,
    pub refusals: Refusals,
    /// Connections beyond the bounds that are told so at a time.
    pub refusing: Semaphore,
    /// More of them, for clients of this machine.
    pub refusing_near: Semaphore,
    pub health: Health,
    pub sessions: Sessions,
    pub loss_tests: LossTests,
    /// Takes UDP loads that begin.
    pub senders: Sender<Begins>,
    /// Congestion controls that this machine lets us use.
    pub congestion: Vec<String>,
    /// Whether Weir's datagrams are echoed.
    pub echoes: bool,
    /// Token that ends the whole server.
    pub stop: CancellationToken,
    /// Tasks that the server waits for at its end.
    pub tasks: TaskTracker,
}

/// A test under way.
pub(crate) struct Test {
    /// What it knows of others of its address, from when it loads the line; it goes before the permit does.
    loading: OnceLock<Box<Loading>>,
    permit: Permit,
    metrics: Arc<Metrics>,
    protocol: &'static str,
    direction: &'static str,
    client: SocketAddr,
    start: Instant,
    bytes: AtomicU64,
    /// Whether it is counted as one: a session is with its first flow, since who only looks or pings tests nothing.
    is_counted: AtomicBool,
    /// Whether the test is one of many requests, which only a verbose log tells of.
    is_request: bool,
}

impl Shared {
    pub fn serves(&self, service: Service) -> bool {
        self.services.contains(&service)
    }

    /// Counts something that was refused, for the metrics and the log.
    pub fn refused(&self, reason: &'static str, client: IpAddr) {
        self.metrics.refused(reason);
        self.refusals.add(reason, client);
    }

    /// Begins a test, if one more is allowed.
    pub fn begin(
        &self,
        protocol: &'static str,
        direction: &'static str,
        client: SocketAddr,
    ) -> Result<Test, Refusal> {
        let test = self.enter(protocol, direction, client, false)?;
        test.count();
        Ok(test)
    }

    /// As [`begin`](Self::begin), for what was refused before, which does not count as refused again.
    pub fn begin_at_last(
        &self,
        protocol: &'static str,
        direction: &'static str,
        client: SocketAddr,
    ) -> Result<Test, Refusal> {
        let test = self.admit(protocol, direction, client, false)?;
        test.count();
        Ok(test)
    }

    /// Begins a session, which takes the place of a test and [counts](Test::count) as one once it is.
    pub fn begin_session(
        &self,
        protocol: &'static str,
        client: SocketAddr,
    ) -> Result<Test, Refusal> {
        self.enter(protocol, "both", client, false)
    }

    /// Begins one request or command of a test; the server cannot tell which of them belong to one test.
    pub fn begin_request(
        &self,
        protocol: &'static str,
        direction: Direction,
        client: SocketAddr,
    ) -> Result<Test, Refusal> {
        let test = self.enter(protocol, direction.word(), client, true)?;
        test.count();
        Ok(test)
    }

    /// Refuses, and counts as refused, what would begin a test once the server is to end.
    pub fn may_begin(&self, client: SocketAddr) -> Result<(), Refusal> {
        let refused = |refusal: &Refusal| self.refused(refusal.reason(), client.ip());
        self.begins_tests().inspect_err(refused)
    }

    /// Refuses once the server is to end: it waits for the tests that run, and for no other.
    fn begins_tests(&self) -> Result<(), Refusal> {
        if self.health.closing.is_cancelled() { Err(Refusal::Ending) } else { Ok(()) }
    }

    /// Admits a test, or counts it as refused.
    fn enter(
        &self,
        protocol: &'static str,
        direction: &'static str,
        client: SocketAddr,
        is_request: bool,
    ) -> Result<Test, Refusal> {
        self.admit(protocol, direction, client, is_request).inspect_err(|refusal| {
            self.refused(refusal.reason(), client.ip());
            debug!(%client, protocol, %refusal, "refused");
        })
    }

    fn admit(
        &self,
        protocol: &'static str,
        direction: &'static str,
        client: SocketAddr,
        is_request: bool,
    ) -> Result<Test, Refusal> {
        self.begins_tests()?;
        let permit = self.admission.enter_test(client.ip())?;
        Ok(Test {
            loading: OnceLock::new(),
            permit,
            metrics: Arc::clone(&self.metrics),
            protocol,
            direction,
            client,
            start: Instant::now(),
            bytes: AtomicU64::new(0),
            is_counted: AtomicBool::new(false),
            is_request,
        })
    }
}

impl Test {
    /// Counts it as a test, unless that was done.
    pub fn count(&self) {
        if !self.is_counted.swap(true, Ordering::Relaxed) {
            let Self { protocol, direction, .. } = *self;
            self.metrics.test_began(&TestLabels { protocol, direction });
            // Requests of one test cannot be told from those of another, and irtt loads nothing.
            if !self.is_request && self.protocol != "irtt" {
                self.loading.get_or_init(|| Box::new(self.permit.load()));
            }
        }
    }

    /// Whether another test of the same address has loaded the line since this one does.
    pub fn met_others(&self) -> bool {
        self.loading.get().is_some_and(|loading| loading.met_others())
    }

    /// Counts bytes that went in the test's direction.
    pub fn passed(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        let seconds = self.start.elapsed().as_secs_f64();
        let Self { protocol, direction, client, .. } = self;
        if !*self.is_counted.get_mut() {
            debug!(%client, protocol, seconds, "session without a load done");
            return;
        }
        self.metrics.test_ended(seconds);
        let bytes = self.bytes.load(Ordering::Relaxed);
        let mbit_s = mbit_s(bytes, seconds);
        if self.is_request {
            debug!(%client, protocol, direction, seconds, bytes, mbit_s, "request done");
        } else {
            info!(%client, protocol, direction, seconds, bytes, mbit_s, "test done");
        }
    }
}

/// The rate of a test, to a thousandth: that of a slow line is read too.
fn mbit_s(bytes: u64, seconds: f64) -> f64 {
    (bytes as f64 * 8.0 / seconds.max(1e-9) / 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_slow_line_is_told_to_a_thousandth() {
        assert_eq!(mbit_s(1_856_996, 11.04), 1.346);
        assert_eq!(mbit_s(0, 0.0), 0.0);
    }
}
