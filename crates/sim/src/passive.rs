//! Round trips of the user's own connections, as a shaper in their way sees them.
//!
//! By the timestamps of TCP (RFC 7323): the first packet out with a new timestamp, and the first packet in
//! that echoes it. K. Nichols, `pping`, shows that this needs nothing but packet headers. The timestamp of
//! the packet that comes in tells the two ways apart, to a millisecond, up to what the two clocks differ.

use std::collections::VecDeque;

use weir_core::Time;
use weir_rate_control::{Delay, OneWay};
use weir_scenario::Direction;
use weir_tcp::Segment;

/// The timestamps under way of each connection.
#[derive(Debug, Default)]
pub(crate) struct PassiveRtt {
    /// By connection, loads first: timestamps and when they left, oldest first.
    under_way: Vec<VecDeque<(u32, Time)>>,
    found: VecDeque<Delay>,
}

impl PassiveRtt {
    /// A segment of connection number `flow` crosses the shaper, on its side of the line.
    pub fn on_segment(&mut self, flow: u32, segment: &Segment, direction: Direction, now: Time) {
        if self.under_way.len() <= flow as usize {
            self.under_way.resize(flow as usize + 1, VecDeque::new());
        }
        let under_way = &mut self.under_way[flow as usize];
        match direction {
            Direction::Up => {
                if under_way.back().is_none_or(|&(ts, _)| ts < segment.ts) {
                    under_way.push_back((segment.ts, now));
                }
            }
            Direction::Down => {
                while let Some((&(ts, sent), echo)) = under_way.front().zip(segment.ts_echo) {
                    if ts > echo {
                        break;
                    }
                    under_way.pop_front();
                    if ts == echo {
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
    fn the_first_packet_out_and_the_first_echo_count() {
        let mut rtt = PassiveRtt::default();
        let ms = Time::from_millis;
        let out = |ts| Segment { ts, ..Segment::default() };
        let back = |echo| Segment { ts_echo: Some(echo), ..Segment::default() };
        rtt.on_segment(0, &out(7), Direction::Up, ms(1));
        rtt.on_segment(0, &out(7), Direction::Up, ms(2));
        rtt.on_segment(0, &out(8), Direction::Up, ms(3));
        rtt.on_segment(0, &out(9), Direction::Up, ms(4));
        rtt.on_segment(0, &back(7), Direction::Down, ms(21));
        rtt.on_segment(0, &back(7), Direction::Down, ms(22));
        // 8 was acknowledged together with 9.
        rtt.on_segment(0, &back(9), Direction::Down, ms(25));
        let found: Vec<_> = std::iter::from_fn(|| rtt.next()).map(|delay| delay.rtt).collect();
        assert_eq!(found, [20, 21].map(Duration::from_millis));
    }
}
