//! Pings to any host.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use pyo3::prelude::*;
use weir_core::{Duration, Time};
use weir_sockets::{Clock, PingEvent, PingMethod, PingSettings, run_pings, run_weir_pings};

use crate::errors::{fail, wrong};
use crate::whole::Whole;

/// A ping: when it was sent, its number, its round trip, how late it was sent, who answered by an ICMP
/// error, and its type and code.
type PingRow = (u64, u32, Option<u64>, u64, Option<String>, Option<(u8, u8)>);

/// Sends pings to `address` until they are over. `told` is called a few times a second with
/// what `CLOCK_MONOTONIC` showed at time 0, with the pings that were answered or lost since, and with error
/// numbers of why some were; if it returns false or raises, or a signal is pending, the pings end.
///
/// `scope` is the number of the interface of a link-local address, else 0; `port` is 0 where `method` (`icmp`, `tcp`, `udp` or
/// `weir`) has none; `secret` is what the server of `weir` asks for. `dscp` and `ttl` are those of all packets, `None` the
/// system's own. A ping is sent every `period_ns`, `count` in all or until they are stopped, and is lost if it is not answered
/// for `timeout_ns`.
///
/// What cannot be sent is an `InputError`.
#[pyfunction]
#[pyo3(signature = (
    told, *, address, scope, port, method, secret, payload_bytes, dscp, ttl, period_ns, count, timeout_ns
))]
#[expect(clippy::too_many_arguments, reason = "each has a name where it is called")]
pub(crate) fn ping(
    py: Python<'_>,
    told: Py<PyAny>,
    address: &str,
    scope: Whole<u32>,
    port: Whole<u16>,
    method: &str,
    secret: Option<&str>,
    payload_bytes: Whole<u32>,
    dscp: Whole<u8>,
    ttl: Option<Whole<u8>>,
    period_ns: Whole<u64>,
    count: Option<Whole<u64>>,
    timeout_ns: Whole<u64>,
) -> PyResult<()> {
    let settings = PingSettings {
        server: server(address, scope.named("scope")?, port.named("port")?)?,
        method: method_of(method)?,
        payload_bytes: payload_bytes.named("payload_bytes")?,
        dscp: dscp.named("dscp")?,
        ttl: ttl.map(|ttl| ttl.named("ttl")).transpose()?,
        period: Duration::from_nanos(period_ns.named("period_ns")?),
        count: count.map(|count| count.named("count")).transpose()?,
        patience: Duration::from_nanos(timeout_ns.named("timeout_ns")?),
    };
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
        if method == WEIR {
            run_weir_pings(&settings, secret, &mut tell)
        } else {
            run_pings(&settings, &mut tell)
        }
    });
    match raised {
        Some(error) => Err(error),
        None => result.map_err(fail),
    }
}

fn server(address: &str, scope: u32, port: u16) -> PyResult<SocketAddr> {
    match address.parse() {
        Ok(IpAddr::V4(v4)) => Ok(SocketAddr::new(v4.into(), port)),
        Ok(IpAddr::V6(v6)) => Ok(SocketAddrV6::new(v6, port, 0, scope).into()),
        Err(_) => Err(wrong(format!("address `{address}`: write an IPv4 or IPv6 address"))),
    }
}

fn method_of(word: &str) -> PyResult<PingMethod> {
    match word {
        "icmp" => Ok(PingMethod::Icmp),
        "tcp" => Ok(PingMethod::Tcp),
        // A session is opened first.
        "udp" | WEIR => Ok(PingMethod::Udp),
        other => Err(wrong(format!("there are no pings of method `{other}`"))),
    }
}

fn split(events: Vec<PingEvent>) -> (Vec<PingRow>, Vec<i32>) {
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
