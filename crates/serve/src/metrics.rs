//! The server's counters and gauges, for Prometheus.

use std::net::IpAddr;
use std::sync::atomic::AtomicI64;

use hyper::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::Notify;

use crate::http::{HttpRequest, HttpResponse, content, may_know_all, text};
use crate::service::{OverHttp, Own, Rules, Service};
use crate::shared::Shared;

pub(crate) const SERVICE: Service = Service::Own(&Own {
    name: "metrics",
    summary: "Metrics for Prometheus",
    http: Some(OverHttp {
        serves: |path| path == "/metrics",
        answer: |client, request| {
            Box::pin(async move { answer(&client.server, client.ends.client.ip(), &request) })
        },
        rules: Rules { is_for_pages: false, needs_secret: true, ..Rules::READ },
    }),
});

/// Counters are told to this machine only, unless everybody may know.
pub(crate) fn answer(server: &Shared, client: IpAddr, request: &HttpRequest) -> HttpResponse {
    if may_know_all(server, client, request) {
        content(CONTENT_TYPE, server.metrics.text())
    } else {
        text(StatusCode::FORBIDDEN, FORBIDDEN)
    }
}

/// All counters of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub connections: Counter,
    pub connections_now: Gauge<i64, AtomicI64>,
    pub connections_given_up: Counter,
    pub received_bytes: Counter,
    pub sent_bytes: Counter,
    tests: Family<TestLabels, Counter>,
    tests_now: Gauge<i64, AtomicI64>,
    /// Told when a test ends.
    test_ended: Notify,
    test_seconds: Histogram,
    pub refusals: Family<ReasonLabels, Counter>,
    pub datagrams: Family<ReasonLabels, Counter>,
    pub udp: UdpBytes,
}

/// UDP payload of loads.
#[derive(Clone, Debug, Default)]
pub(crate) struct UdpBytes {
    pub sent: Counter,
    pub received: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct TestLabels {
    pub protocol: &'static str,
    pub direction: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct ReasonLabels {
    pub reason: &'static str,
}

impl Metrics {
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("weir"),
            connections: Counter::default(),
            connections_now: Gauge::default(),
            connections_given_up: Counter::default(),
            received_bytes: Counter::default(),
            sent_bytes: Counter::default(),
            tests: Family::default(),
            tests_now: Gauge::default(),
            test_ended: Notify::new(),
            test_seconds: Histogram::new(SECONDS),
            refusals: Family::default(),
            datagrams: Family::default(),
            udp: UdpBytes::default(),
        };
        let m = &mut metrics;
        let to = &mut m.registry;
        to.register("connections", "TCP connections accepted", m.connections.clone());
        to.register("connections_now", "TCP connections open", m.connections_now.clone());
        let given_up = m.connections_given_up.clone();
        to.register("connections_given_up", "Idle connections ended in favour of others", given_up);
        let received = m.received_bytes.clone();
        to.register_with_unit("received", "Bytes received over TCP", Unit::Bytes, received);
        to.register_with_unit("sent", "Bytes sent over TCP", Unit::Bytes, m.sent_bytes.clone());
        to.register("tests", "Tests begun", m.tests.clone());
        to.register("tests_now", "Tests under way", m.tests_now.clone());
        let seconds = m.test_seconds.clone();
        to.register_with_unit("test_duration", "Duration of tests", Unit::Seconds, seconds);
        to.register("refusals", "What was refused, and why", m.refusals.clone());
        let udp = m.udp.clone();
        to.register_with_unit("udp_sent", "Payload of UDP loads sent", Unit::Bytes, udp.sent);
        let taken = "Payload of UDP loads received";
        to.register_with_unit("udp_received", taken, Unit::Bytes, udp.received);
        to.register("datagrams", "UDP datagrams by what became of them", m.datagrams.clone());
        metrics
    }

    /// Counts a test that begins.
    pub fn test_began(&self, labels: &TestLabels) {
        self.tests.get_or_create(labels).inc();
        self.tests_now.inc();
    }

    /// Counts a test's end.
    pub fn test_ended(&self, seconds: f64) {
        self.tests_now.dec();
        self.test_seconds.observe(seconds);
        self.test_ended.notify_waiters();
    }

    /// How many tests run.
    pub fn tests_now(&self) -> i64 {
        self.tests_now.get()
    }

    /// Resolves once no test runs.
    pub async fn no_test_runs(&self) {
        loop {
            let ended = self.test_ended.notified();
            if self.tests_now() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Counts a refusal with its reason.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// All metrics in OpenMetrics' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

const FORBIDDEN: &str = "metrics are for this machine only, which asks by an address or as localhost: see \
     --public-metrics\n";
/// The type of [`Metrics::text`].
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const SECONDS: [f64; 8] = [0.1, 1.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_test_that_ends_wakes_who_waits_for_it() {
        let metrics = Metrics::new();
        let labels = TestLabels { protocol: "weir", direction: "both" };
        metrics.test_began(&labels);
        metrics.test_began(&labels);
        let begun = Instant::now();
        let (over, left) = tokio::join!(timeout(DAY, metrics.no_test_runs()), async {
            sleep(DAY / 2).await;
            metrics.test_ended(1.0);
            let left = metrics.tests_now();
            sleep(DAY / 4).await;
            metrics.test_ended(1.0);
            left
        });
        assert_eq!((over, left, begun.elapsed()), (Ok(()), 1, DAY * 3 / 4));
        metrics.no_test_runs().await;
    }

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn what_is_counted_is_told() {
        let metrics = Metrics::new();
        metrics.refused("address");
        metrics.sent_bytes.inc_by(7);
        let text = metrics.text();
        assert!(text.contains("weir_refusals_total{reason=\"address\"} 1"), "{text}");
        assert!(text.contains("weir_sent_bytes_total 7"), "{text}");
    }
}
