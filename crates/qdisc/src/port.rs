//! A discipline at work: arrival stamps, sojourn times, and a rate that can be set while it works.

use weir_core::{Duration, Framing, Packet, Rate, Serializer, Time};

use crate::contract::{Backlog, ClassView, Count, DropReason, DropSink, MarkReason, Qdisc, Stats};

/// A discipline with the two things that every driver needs: packets are stamped as they arrive, and
/// the sojourn of those that leave is measured.
///
/// A [shaped](Self::shaped) port lets packets leave no faster than its rate, whatever discipline is on
/// it: what the rate holds back waits in the discipline, which decides as it would in front of a line of
/// that rate. The rate is the port's and not the discipline's, so that whoever controls it
/// ([`set_rate`](Self::set_rate)) need not know which discipline that is.
pub struct Port {
    qdisc: Box<dyn Qdisc>,
    sojourn: Sojourn,
    shaper: Option<Shaper>,
}

/// Packets at a rate, one by one: each may leave when the one before it would be through a line of that
/// rate. There is no burst to save up, so that a line of the same rate behind it queues nothing.
struct Shaper {
    framing: Framing,
    /// The line that it imitates; `None` lets everything through.
    line: Option<Serializer>,
    /// The last dequeue found it busy until then.
    busy: Option<Time>,
    passed: ShapedTraffic,
}

/// Traffic that came to a [shaped](Port::shaped) port and left it since it was made, in bytes as its framing
/// counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShapedTraffic {
    /// Bytes that arrived, dropped packets included.
    pub arrived: Count,
    /// Bytes that left.
    pub departed: Count,
}

/// Sojourn times of the packets that left since the last [`Port::take_sojourn`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sojourn {
    /// How many packets left.
    pub packets: u64,
    /// Sum of their sojourn times.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
}

impl Sojourn {
    /// The mean, if any packet left.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.packets > 0).then(|| self.total / self.packets)
    }
}

impl Port {
    /// A port with `qdisc` on it.
    #[must_use]
    pub fn new(qdisc: Box<dyn Qdisc>) -> Self {
        Self { qdisc, sojourn: Sojourn::default(), shaper: None }
    }

    /// A port with `qdisc` on it and a rate, none at first, that counts packets as `framing` does.
    #[must_use]
    pub fn shaped(qdisc: Box<dyn Qdisc>, framing: Framing) -> Self {
        let shaper = Shaper { framing, line: None, busy: None, passed: ShapedTraffic::default() };
        Self { qdisc, sojourn: Sojourn::default(), shaper: Some(shaper) }
    }

    /// Lets packets leave at `rate` from `now` on, or at once if that is `None`. The driver then asks for
    /// packets again, since what waited may be allowed to leave.
    ///
    /// # Panics
    /// If the port is not [shaped](Self::shaped), or the rate is 0.
    pub fn set_rate(&mut self, rate: Option<Rate>, now: Time) {
        let shaper = self.shaper.as_mut().expect("only a shaped port has a rate");
        match (&mut shaper.line, rate) {
            (Some(line), Some(rate)) => line.set_rate(rate, now),
            (line, rate) => *line = rate.map(Serializer::new),
        }
    }

    /// Stamps `packet`, which the caller lends and which is changed by that, and hands it to the discipline.
    #[inline]
    pub fn enqueue(&mut self, packet: &mut Packet, now: Time, sink: &mut dyn DropSink) {
        if let Some(shaper) = &mut self.shaper {
            shaper.passed.arrived.add(sink.wire_bytes(packet, &shaper.framing) as u32);
        }
        packet.enqueued_at = now;
        self.qdisc.enqueue(packet, now, sink);
    }

    /// Lets `packet` pass if nothing waits and the discipline has nothing more to do; returns whether it did.
    #[inline]
    pub fn pass(&mut self, packet: &Packet, now: Time) -> bool {
        let passes = self.shaper.is_none() && self.qdisc.pass(packet, now);
        self.sojourn.packets += u64::from(passes);
        passes
    }

    /// The next packet to send at `now`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        if self.shaper.is_some() { self.take_shaped(now, sink) } else { self.take(now, sink) }
    }

    /// The next packet of the discipline.
    #[inline(always)]
    fn take(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        // Left where it was written, and not moved about: there is no other way out of here.
        let taken = self.qdisc.dequeue(now, sink);
        if let Some(packet) = &taken {
            let sojourn = now.since(packet.enqueued_at);
            self.sojourn.packets += 1;
            self.sojourn.total += sojourn;
            self.sojourn.max = self.sojourn.max.max(sojourn);
        }
        taken
    }

    /// The next packet of the discipline, if the shaper lets it go.
    #[inline(never)]
    fn take_shaped(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        if !self.shaper.as_mut()?.is_free(now) {
            return None;
        }
        let packet = self.take(now, sink)?;
        let shaper = self.shaper.as_mut()?;
        shaper.charge(sink.wire_bytes(&packet, &shaper.framing), now);
        Some(packet)
    }

    /// When a port that holds packets back may next send one, as found by the last dequeue; `None` if
    /// nothing waits.
    #[must_use]
    pub fn wake_at(&self) -> Option<Time> {
        match &self.shaper {
            Some(Shaper { busy: Some(until), .. }) => {
                (self.qdisc.backlog().packets > 0).then_some(*until)
            }
            _ => self.qdisc.wake_at(),
        }
    }

    /// From when on a timer for [`wake_at`](Self::wake_at) may go off.
    #[must_use]
    pub fn may_wake_at(&self) -> Option<Time> {
        self.qdisc.may_wake_at()
    }

    /// Packets and bytes that wait now.
    #[must_use]
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    /// Counts of all packets so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.qdisc.stats()
    }

    /// Bytes that arrived and left so far, as the shaper's framing counts them; `None` if the port is not shaped.
    #[must_use]
    pub fn shaped_traffic(&self) -> Option<ShapedTraffic> {
        self.shaper.as_ref().map(|shaper| shaper.passed)
    }

    /// Shows the tree of classes.
    pub fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        self.qdisc.classes(visit);
    }

    /// The sojourn times since the last call.
    pub fn take_sojourn(&mut self) -> Sojourn {
        std::mem::take(&mut self.sojourn)
    }
}

impl Shaper {
    fn is_free(&mut self, now: Time) -> bool {
        let until = self.line.as_ref().map(Serializer::busy_until);
        self.busy = until.filter(|&until| until > now);
        self.busy.is_none()
    }

    fn charge(&mut self, bytes: u64, now: Time) {
        self.passed.departed.add(bytes as u32);
        if let Some(line) = &mut self.line {
            line.send(bytes, now);
        }
    }
}

/// DropSink that nobody asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl DropSink for Ignore {
    fn on_drop(&mut self, _: Packet, _: DropReason) {}
    fn on_mark(&mut self, _: &Packet, _: MarkReason) {}
}

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, ETHERNET_HEADER, Ecn, FlowLabel};

    use super::*;
    use crate::{Device, QueueSpec};

    fn packet() -> Packet {
        Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: FlowLabel::default(),
            len: 1500 + ETHERNET_HEADER,
            flow_id: 0,
            dscp: Dscp::BE,
            ecn: Ecn::NotEct,
        }
    }

    fn port(framing: Framing) -> Port {
        let qdisc = QueueSpec::parse("pfifo").unwrap().build(&Device::default()).unwrap();
        let mut port = Port::shaped(qdisc, framing);
        for _ in 0..5 {
            port.enqueue(&mut packet(), Time::ZERO, &mut Ignore);
        }
        port
    }

    /// When each of the packets that wait leaves, in microseconds.
    fn leave(port: &mut Port, mut now: Time, most: usize) -> Vec<u64> {
        let mut left = Vec::new();
        while left.len() < most {
            if port.dequeue(now, &mut Ignore).is_some() {
                left.push(now.as_nanos() / 1_000);
            } else if let Some(at) = port.wake_at() {
                now = at;
            } else {
                break;
            }
        }
        left
    }

    #[test]
    fn without_a_rate_everything_passes() {
        assert_eq!(leave(&mut port(Framing::NONE), Time::ZERO, 9), [0; 5]);
    }

    #[test]
    fn packets_leave_at_the_rate_and_the_first_at_once() {
        let mut port = port(Framing::NONE);
        port.set_rate(Some(Rate::from_mbit(12)), Time::ZERO);
        assert_eq!(leave(&mut port, Time::ZERO, 9), [0, 1_000, 2_000, 3_000, 4_000]);
        assert_eq!(port.wake_at(), None);
    }

    #[test]
    fn framing_counts() {
        let mut port = port(Framing::ETHERNET);
        port.set_rate(Some(Rate::from_mbit(8)), Time::ZERO);
        assert_eq!(leave(&mut port, Time::ZERO, 4), [0, 1_538, 3_076, 4_614]);
        let passed = port.shaped_traffic().unwrap();
        assert_eq!(passed.arrived, Count { packets: 5, bytes: 5 * 1538 });
        assert_eq!(passed.departed, Count { packets: 4, bytes: 4 * 1538 });
    }

    /// Owner of packets that are two on the line each.
    struct Twice;

    impl DropSink for Twice {
        fn on_drop(&mut self, _: Packet, _: DropReason) {}
        fn on_mark(&mut self, _: &Packet, _: MarkReason) {}

        fn wire_bytes(&self, packet: &Packet, framing: &Framing) -> u64 {
            2 * framing.wire_bytes(packet.ip_len() / 2)
        }
    }

    #[test]
    fn the_owner_of_packets_says_what_they_are_on_the_line() {
        let mut port = port(Framing::ETHERNET);
        port.set_rate(Some(Rate::from_mbit(8)), Time::ZERO);
        assert!(port.dequeue(Time::ZERO, &mut Twice).is_some());
        assert!(port.dequeue(Time::ZERO, &mut Twice).is_none());
        assert_eq!(port.wake_at(), Some(Time::from_nanos(1_576_000)));
        port.enqueue(&mut packet(), Time::ZERO, &mut Twice);
        let passed = port.shaped_traffic().unwrap();
        assert_eq!(passed.arrived, Count { packets: 6, bytes: 5 * 1538 + 1576 });
        assert_eq!(passed.departed, Count { packets: 1, bytes: 1576 });
    }

    #[test]
    fn a_rate_that_is_set_while_packets_wait_holds_at_once() {
        let mut port = port(Framing::NONE);
        port.set_rate(Some(Rate::from_mbit(1)), Time::ZERO);
        assert_eq!(leave(&mut port, Time::ZERO, 1), [0]);
        assert!(port.dequeue(Time::from_millis(1), &mut Ignore).is_none());
        assert_eq!(port.wake_at(), Some(Time::from_millis(12)));
        // 8 of the 12 ms are left, which four times the rate carries in 2.
        port.set_rate(Some(Rate::from_mbit(4)), Time::from_millis(4));
        assert_eq!(leave(&mut port, Time::from_millis(4), 2), [6_000, 9_000]);
        port.set_rate(None, Time::from_millis(9));
        assert_eq!(leave(&mut port, Time::from_millis(9), 9), [9_000, 9_000]);
    }
}
