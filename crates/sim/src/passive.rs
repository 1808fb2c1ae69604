//! Round trips of the user's own connections, as a shaper in their way sees them.

use weir_core::Time;
use weir_rate_control::{Connections, Delay, Seen};
use weir_scenario::Direction;
use weir_tcp::{Flags, Segment};

/// What is under way of each connection.
#[derive(Debug, Default)]
pub(crate) struct PassiveRtt {
    /// By number, loads first.
    connections: Connections<u32>,
}

impl PassiveRtt {
    /// A segment of connection number `flow` crosses the shaper, on its side of the line. It has timestamps if `stamped`.
    pub fn on_segment(
        &mut self,
        flow: u32,
        segment: &Segment,
        stamped: bool,
        direction: Direction,
        now: Time,
    ) {
        let seen = Seen {
            timestamps: stamped.then_some((segment.ts, segment.ts_echo)),
            data: (segment.seq, segment.end_seq()),
            ack: segment.ack,
            opens: segment.flags.has(Flags::SYN),
            closes: false,
        };
        match direction {
            Direction::Up => self.connections.on_sent(flow, &seen, now),
            Direction::Down => self.connections.on_came(flow, &seen, now),
        }
    }

    /// What the connections told since the last call, by their source.
    pub fn take(&mut self) -> impl Iterator<Item = Delay> {
        self.connections.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Duration;
    use weir_rate_control::FIRST_CONNECTION;

    #[test]
    fn each_connection_is_a_source_of_its_own() {
        let mut rtt = PassiveRtt::default();
        let ms = Time::from_millis;
        let out = |ts| Segment { ts, ..Segment::default() };
        let back =
            |ts, echo| Segment { ts, ts_echo: Some(echo), seq: 1, len: 1, ..Segment::default() };
        rtt.on_segment(0, &out(7), true, Direction::Up, ms(1));
        rtt.on_segment(1, &out(7), true, Direction::Up, ms(1));
        rtt.on_segment(2, &back(9, 7), true, Direction::Down, ms(11));
        assert_eq!(rtt.take().next(), None, "another connection");
        rtt.on_segment(1, &back(9, 7), true, Direction::Down, ms(21));
        let found = rtt.take().next().expect("it was answered");
        assert_eq!((found.source, found.sent), (FIRST_CONNECTION + 1, ms(1)));
        assert_eq!(found.rtt, Duration::from_millis(20));
        assert_eq!(rtt.take().next(), None);
    }
}
