//! Round trips of the user's own connections, as a shaper in their way sees them.
//!
//! The timestamp of the packet that comes in tells the two ways apart, to a millisecond, up to what the two clocks
//! differ.

use std::collections::VecDeque;

use weir_core::Time;
use weir_rate_control::{Delay, OneWay, PendingTimestamps};
use weir_scenario::Direction;
use weir_tcp::Segment;

/// The timestamps under way of each connection.
#[derive(Debug, Default)]
pub(crate) struct PassiveRtt {
    /// By connection, loads first.
    connections: Vec<PendingTimestamps>,
    found: VecDeque<Delay>,
}

impl PassiveRtt {
    /// A segment of connection number `flow` crosses the shaper, on its side of the line.
    pub fn on_segment(&mut self, flow: u32, segment: &Segment, direction: Direction, now: Time) {
        if self.connections.len() <= flow as usize {
            self.connections.resize(flow as usize + 1, PendingTimestamps::default());
        }
        let pending = &mut self.connections[flow as usize];
        match direction {
            Direction::Up => pending.on_sent(segment.ts, now),
            Direction::Down => {
                let Some(sent) = segment.ts_echo.and_then(|echo| pending.on_echo(echo)) else {
                    return;
                };
                let source = FIRST_SOURCE + flow;
                let rtt = now.since(sent);
                // The peer's timestamp tells when it answered, by its own clock of milliseconds.
                let back_ns = now.as_nanos() as i64 - i64::from(segment.ts) * 1_000_000;
                let there_ns = rtt.as_nanos() as i64 - back_ns;
                let one_way = Some(OneWay { there_ns, back_ns });
                self.found.push_back(Delay { source, sent, rtt, one_way });
            }
        }
    }

    /// The next round trip that was found.
    pub fn next(&mut self) -> Option<Delay> {
        self.found.pop_front()
    }
}

/// Numbers of sources beyond those of any reflectors.
const FIRST_SOURCE: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Duration;

    #[test]
    fn the_peers_timestamp_tells_the_two_ways_apart() {
        let mut rtt = PassiveRtt::default();
        let ms = Time::from_millis;
        let out = |ts| Segment { ts, ..Segment::default() };
        let back = |ts, echo| Segment { ts, ts_echo: Some(echo), ..Segment::default() };
        rtt.on_segment(1, &out(7), Direction::Up, ms(1));
        rtt.on_segment(0, &back(9, 7), Direction::Down, ms(11));
        assert!(rtt.next().is_none(), "another connection");
        rtt.on_segment(1, &back(9, 7), Direction::Down, ms(21));
        let found = rtt.next().unwrap();
        assert_eq!((found.source, found.sent), (FIRST_SOURCE + 1, ms(1)));
        assert_eq!(found.rtt, Duration::from_millis(20));
        assert_eq!(
            found.one_way,
            Some(OneWay { there_ns: 8_000_000, back_ns: 12_000_000 }),
            "it answered at 9 ms"
        );
        assert!(rtt.next().is_none());
    }
}
