//! Round trips of the user's own connections, as a shaper in their way sees them.

use std::collections::VecDeque;

use weir_core::Time;
use weir_rate_control::{Delay, FIRST_CONNECTION, RoundTrips, Seen};
use weir_scenario::Direction;
use weir_tcp::{Flags, Segment};

/// What is under way of each connection.
#[derive(Debug, Default)]
pub(crate) struct PassiveRtt {
    /// By connection, loads first.
    connections: Vec<RoundTrips>,
    found: VecDeque<Delay>,
}

impl PassiveRtt {
    /// A segment of connection number `flow` crosses the shaper, on its side of the line.
    pub fn on_segment(&mut self, flow: u32, segment: &Segment, direction: Direction, now: Time) {
        while self.connections.len() <= flow as usize {
            let source = FIRST_CONNECTION + self.connections.len() as u32;
            self.connections.push(RoundTrips::new(source));
        }
        let connection = &mut self.connections[flow as usize];
        let seen = Seen {
            timestamps: Some((segment.ts, segment.ts_echo)),
            data: (segment.seq, segment.end_seq()),
            ack: segment.ack,
            opens: segment.flags.has(Flags::SYN),
        };
        match direction {
            Direction::Up => connection.on_sent(&seen, now),
            Direction::Down => {
                self.found.extend(connection.on_came(&seen, now).into_iter().flatten());
            }
        }
    }

    /// The next round trip that was found.
    pub fn next(&mut self) -> Option<Delay> {
        self.found.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Duration;

    #[test]
    fn each_connection_is_a_source_of_its_own() {
        let mut rtt = PassiveRtt::default();
        let ms = Time::from_millis;
        let out = |ts| Segment { ts, ..Segment::default() };
        let back = |ts, echo| Segment { ts, ts_echo: Some(echo), len: 1, ..Segment::default() };
        rtt.on_segment(1, &out(7), Direction::Up, ms(1));
        rtt.on_segment(0, &back(9, 7), Direction::Down, ms(11));
        assert!(rtt.next().is_none(), "another connection");
        rtt.on_segment(1, &back(9, 7), Direction::Down, ms(21));
        let found = rtt.next().expect("it was answered");
        assert_eq!((found.source, found.sent), (FIRST_CONNECTION + 1, ms(1)));
        assert_eq!(found.rtt, Duration::from_millis(20));
        assert!(rtt.next().is_none());
    }
}
