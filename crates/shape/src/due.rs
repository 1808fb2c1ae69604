//! Packets that may leave a port by now.

use weir_core::{Duration, Packet, Time};
use weir_qdisc::{DropSink, Port};

/// Takes packets out of a port that may leave it by `now`, each at the time at which it was allowed to.
///
/// A loop that wakes up late so costs nothing of the rate. That has a bound, [`CATCH_UP`], since what is made up for
/// goes in a burst.
#[derive(Debug)]
pub(crate) struct Due {
    /// The earliest time at which a packet leaves.
    from: Time,
    now: Time,
    at: Option<Time>,
}

impl Due {
    /// Packets that may leave by `now`, which never goes back for a port.
    pub const fn by(now: Time) -> Self {
        Self::between(Time::ZERO, now)
    }

    /// Packets that may leave by `now`, none of them before `from`, when the last of them came.
    pub const fn between(from: Time, now: Time) -> Self {
        Self { from, now, at: None }
    }

    /// When packets come to their queue that came since it was `looked` at, and are found `now`: as early as they may
    /// leave, or after a late look they would have waited for long as soon as they came.
    pub fn taken_in_at(looked: Time, now: Time) -> Time {
        looked.max(Self::earliest(now))
    }

    /// The earliest time at which a packet may leave that is asked for `now`.
    fn earliest(now: Time) -> Time {
        now.saturating_sub(CATCH_UP)
    }

    /// The next packet of `port`, which is the same at every call; what it drops goes to `sink`.
    pub fn next(&mut self, port: &mut Port, sink: &mut dyn DropSink) -> Option<Packet> {
        loop {
            let at = self.at.unwrap_or_else(|| self.allowed(port));
            // After a packet left it is asked at the same time again: only then it knows when the next may.
            self.at = Some(at);
            if let Some(packet) = port.dequeue(at, sink) {
                return Some(packet);
            }
            if at == self.now {
                return None;
            }
            self.at = Some(self.allowed(port)).filter(|&next| next > at).or(Some(self.now));
        }
    }

    /// When the port may next send, if that is by now and not longer ago than is made up for; now otherwise.
    fn allowed(&self, port: &Port) -> Time {
        let earliest = Self::earliest(self.now).max(self.from);
        let due = port.wake_at().filter(|&at| at <= self.now);
        due.map_or(self.now, |at| at.max(earliest))
    }
}

/// How much lateness is made up for: what goes in a burst waits in the modem.
const CATCH_UP: Duration = Duration::from_millis(4);

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, ETHERNET_HEADER, Ecn, FlowLabel, Framing, Rate};
    use weir_qdisc::{Device, Ignore, QueueSpec};

    use super::*;

    /// A port of 12 Mbit/s with 100 packets of 1500 bytes, which take a millisecond each.
    fn port() -> Port {
        port_with("pfifo")
    }

    fn port_with(discipline: &str) -> Port {
        let spec = QueueSpec::parse(discipline).unwrap();
        let queue = spec.build(&Device::default()).unwrap();
        let mut port = Port::shaped(queue, Framing::NONE);
        port.set_rate(Some(Rate::from_mbit(12)), Time::ZERO);
        for handle in 0..100 {
            port.enqueue(&mut packet(handle, 1500, FlowLabel::default()), Time::ZERO, &mut Ignore);
        }
        port
    }

    fn packet(handle: u64, len: u32, label: FlowLabel) -> Packet {
        Packet {
            handle,
            enqueued_at: Time::ZERO,
            label,
            len: len + ETHERNET_HEADER,
            flow_id: 0,
            dscp: Dscp::BE,
            ecn: Ecn::NotEct,
        }
    }

    fn leave(port: &mut Port, now: Time) -> usize {
        let mut due = Due::by(now);
        std::iter::from_fn(|| due.next(port, &mut Ignore)).count()
    }

    #[test]
    fn a_late_look_costs_nothing_of_the_rate() {
        let mut port = port();
        let looks = [0, 100, 1_000, 1_250, 4_900, 5_000, 8_999, 12_000];
        let left = looks.map(|micros| leave(&mut port, Time::from_nanos(micros * 1_000)));
        assert_eq!(left, [1, 0, 1, 0, 3, 1, 3, 4]);
    }

    #[test]
    fn what_is_made_up_for_is_bounded() {
        let mut port = port();
        assert_eq!(leave(&mut port, Time::ZERO), 1);
        assert_eq!(leave(&mut port, Time::from_millis(50)), 5);
        assert_eq!(port.wake_at(), Some(Time::from_millis(51)));
    }

    #[test]
    fn what_came_since_the_last_look_leaves_in_the_order_of_its_queue() {
        let other = FlowLabel { hash: 1 << 31, sport: 7, ..FlowLabel::default() };
        let first_of = |queue| {
            let mut port = port_with(queue);
            let looked = Time::from_nanos(3_500_000);
            assert_eq!([Time::ZERO, looked].map(|at| leave(&mut port, at)), [1, 3]);
            port.enqueue(&mut packet(1_000, 100, other), looked, &mut Ignore);
            let mut due = Due::between(looked, Time::from_millis(5));
            due.next(&mut port, &mut Ignore).unwrap().handle
        };
        assert_eq!(["fq_codel", "cake", "pfifo"].map(first_of), [1_000, 1_000, 4]);
    }

    #[test]
    fn none_leaves_before_it_came() {
        let mut port = port();
        assert_eq!(leave(&mut port, Time::ZERO), 1);
        let mut due = Due::between(Time::from_nanos(2_500_000), Time::from_millis(4));
        assert_eq!(std::iter::from_fn(|| due.next(&mut port, &mut Ignore)).count(), 2);
        assert_eq!(port.wake_at(), Some(Time::from_nanos(4_500_000)));
    }

    #[test]
    fn what_is_found_late_has_waited_no_longer_than_is_made_up_for() {
        let looked = Time::from_nanos(3_500_000);
        let waited = |now| {
            let mut port = port();
            port.set_rate(None, Time::ZERO);
            leave(&mut port, looked);
            port.take_sojourn();
            let came = Due::taken_in_at(looked, now);
            port.enqueue(&mut packet(100, 1500, FlowLabel::default()), came, &mut Ignore);
            leave(&mut port, now);
            port.take_sojourn().max
        };
        let [soon, late] = [4, 200].map(|ms| waited(Time::from_millis(ms)));
        assert_eq!([soon, late], [Duration::from_micros(500), CATCH_UP]);
    }

    #[test]
    fn without_a_rate_everything_leaves() {
        let mut port = port();
        port.set_rate(None, Time::ZERO);
        assert_eq!(leave(&mut port, Time::ZERO), 100);
    }
}
