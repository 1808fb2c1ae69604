//! A scripted schedule of arrivals through a discipline: what left, when, and what did not.
//!
//! The port behaves as a real one whose line takes no time: a packet leaves at the instant at which
//! the discipline lets it go, as in the recordings of real Linux (`vectors/linux-6.12/README.md`).

use std::collections::BTreeMap;

use weir_core::{Duration, Packet, TcpHeader, Time};

use crate::contract::{DropReason, DropSink, MarkReason, Qdisc};
use crate::port::Port;

/// Outcome of a replay: departures, drops and marks of a schedule's packets.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The packets that left, with the instant, in order.
    pub departures: Vec<(Time, Packet)>,
    /// The packets that were dropped, in order.
    pub drops: Vec<(Packet, DropReason)>,
}

/// Sends `arrivals`, sorted by time, through `qdisc` until nothing is left in it.
///
/// # Panics
/// If the discipline holds packets for ever: it has a backlog and no time to wake.
#[must_use]
pub fn replay(qdisc: Box<dyn Qdisc>, arrivals: &[(Time, Packet)]) -> Outcome {
    replay_tcp(qdisc, arrivals, &BTreeMap::new())
}

/// Replays a schedule in which some packets have a TCP header, by their handles.
///
/// # Panics
/// As [`replay`].
#[must_use]
pub fn replay_tcp(
    qdisc: Box<dyn Qdisc>,
    arrivals: &[(Time, Packet)],
    headers: &BTreeMap<u64, TcpHeader>,
) -> Outcome {
    let mut port = Port::new(qdisc);
    let mut outcome = Outcome::default();
    let mut sink = Drops { headers, drops: Vec::new(), refused: false };
    let mut wake = None;
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let arrival = arrivals.peek().map(|(at, _)| *at);
        let now = match (arrival, wake) {
            (None, None) => break,
            (Some(at), None) => at,
            (None, Some(wake)) => wake,
            (Some(at), Some(wake)) => at.min(wake),
        };
        sink.refused = false;
        if arrival == Some(now) {
            let (_, mut packet) = *arrivals.next().expect("one was peeked at");
            // The sender is woken by a timer too, and then timers go off that may already.
            if port.may_wake_at().is_some_and(|from| from <= now) {
                while let Some(due) = port.dequeue(now, &mut sink) {
                    port.take_sojourn();
                    outcome.departures.push((now, due));
                }
            }
            port.enqueue(&mut packet, now, &mut sink);
        }
        while let Some(packet) = port.dequeue(now, &mut sink) {
            // Nobody asks for the sum of waits, which may be years.
            port.take_sojourn();
            outcome.departures.push((now, packet));
        }
        wake = port.wake_at();
        assert!(
            wake.is_none_or(|wake| wake > now),
            "the discipline wants to wake at {wake:?}, which is not after {now}"
        );
        if sink.refused {
            wake = wake.map(|wake| wake.max(now + AFTER_FAILED_SEND));
        }
        assert!(wake.is_some() || port.backlog().packets == 0, "packets wait for nothing at {now}");
    }
    outcome.drops = sink.drops;
    outcome
}

/// In the recordings a packet that is refused outright (its sender's `send` fails) puts off a timer
/// that was due within the next microsecond: seven of seven such cases in the recordings of Linux 6.12
/// leave 1000 ns after the refused packet, while packets that are taken, or dropped as a signal of
/// congestion, never delay a timer. User-mode Linux lets a system call that fails take a microsecond
/// (`handle_syscall` in arch/um/kernel/skas/syscall.c).
const AFTER_FAILED_SEND: Duration = Duration::from_micros(1);

struct Drops<'a> {
    headers: &'a BTreeMap<u64, TcpHeader>,
    drops: Vec<(Packet, DropReason)>,
    refused: bool,
}

impl DropSink for Drops<'_> {
    fn on_drop(&mut self, packet: Packet, reason: DropReason) {
        self.drops.push((packet, reason));
    }

    fn on_xmit_drop(&mut self, packet: Packet, reason: DropReason) {
        self.refused = true;
        self.on_drop(packet, reason);
    }

    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}

    fn tcp_header(&self, packet: &Packet) -> Option<TcpHeader> {
        self.headers.get(&packet.handle).copied()
    }
}
