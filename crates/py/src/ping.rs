//! Pings to any host.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use pyo3::prelude::*;
use serde::Deserialize;
use weir_core::{Duration, Time};
use weir_sockets::{Clock, PingEvent, PingMethod, PingSettings, run_pings, run_weir_pings};

use crate::{fail, wrong};

/// What is to be sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PingRequest {
    address: IpAddr,
    /// Of a link-local address the interface.
    scope: u32,
    port: u16,
    method: String,
    secret: Option<String>,
    payload_bytes: u32,
    dscp: u8,
    ttl: Option<u8>,
    period_ns: u64,
    count: Option<u64>,
    timeout_ns: u64,
}

/// A ping: when it was sent, its number, its round trip, how late it was sent, who answered by an ICMP
/// error, and its type and code.
type Row = (u64, u32, Option<u64>, u64, Option<String>, Option<(u8, u8)>);

/// Sends the pings that `request` says, JSON, until they are over. `told` is called a few times a second with
/// what `CLOCK_MONOTONIC` showed at time 0, with the pings that were answered or lost since, and with error
/// numbers of why some were; if it returns false or raises, or a signal is pending, the pings end.
///
/// What cannot be sent is an `InputError`.
#[pyfunction]
pub(crate) fn ping(py: Python<'_>, request: &str, told: Py<PyAny>) -> PyResult<()> {
    let request: PingRequest = serde_json::from_str(request).map_err(wrong)?;
    let settings = request.settings()?;
    settings.check().map_err(wrong)?;
    let mut raised = None;
    let result = py.detach(|| {
        let mut tell = |clock: Clock, events: Vec<PingEvent>| {
            let zero_ns = clock.monotonic_ns_of(Time::ZERO);
            let go_on = Python::attach(|held| {
                held.check_signals()?;
                let (rows, refused) = split(events);
                told.call1(held, (zero_ns, rows, refused))?.is_truthy(held)
            });
            go_on.unwrap_or_else(|error| {
                raised = Some(error);
                false
            })
        };
        if request.method == WEIR {
            run_weir_pings(&settings, request.secret.as_deref(), &mut tell)
        } else {
            run_pings(&settings, &mut tell)
        }
    });
    match raised {
        Some(error) => Err(error),
        None => result.map_err(fail),
    }
}

impl PingRequest {
    fn settings(&self) -> PyResult<PingSettings> {
        let method = match self.method.as_str() {
            "icmp" => PingMethod::Icmp,
            "tcp" => PingMethod::Tcp,
            // A session is opened first.
            "udp" | WEIR => PingMethod::Udp,
            other => return Err(wrong(format!("there are no pings of method `{other}`"))),
        };
        let server = match self.address {
            IpAddr::V4(v4) => SocketAddr::new(v4.into(), self.port),
            IpAddr::V6(v6) => SocketAddrV6::new(v6, self.port, 0, self.scope).into(),
        };
        Ok(PingSettings {
            server,
            method,
            payload_bytes: self.payload_bytes,
            dscp: self.dscp,
            ttl: self.ttl,
            period: Duration::from_nanos(self.period_ns),
            count: self.count,
            patience: Duration::from_nanos(self.timeout_ns),
        })
    }
}

fn split(events: Vec<PingEvent>) -> (Vec<Row>, Vec<i32>) {
    let (mut rows, mut refused) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            PingEvent::Refused(errno) => refused.push(errno),
            PingEvent::Row(row, by) => rows.push((
                row.t.as_nanos(),
                row.seq,
                row.rtt.map(Duration::as_nanos),
                row.timer_error.as_nanos(),
                by.and_then(|error| error.from).map(|from| from.to_string()),
                by.map(|error| (error.icmp.kind, error.icmp.code)),
            )),
        }
    }
    (rows, refused)
}

const WEIR: &str = "weir";
