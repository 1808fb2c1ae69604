//! Round trips of the user's own TCP connections, as they pass through the shaper.
//!
//! The clock of the other end tells nothing of use here: it may run at any speed.

use std::collections::BTreeMap;

use weir_core::{FlowKey, TcpHeader, Time};
use weir_rate_control::{Delay, PendingTimestamps, Side};

/// The connections and their timestamps under way.
#[derive(Debug, Default)]
pub(crate) struct Passive {
    connections: BTreeMap<FlowKey, Connection>,
    next_source: u32,
}

#[derive(Debug)]
struct Connection {
    source: u32,
    seen: Time,
    pending: PendingTimestamps,
}

impl Passive {
    /// A packet crosses the shaper on its line's side at `now`, or came at `now` on the way in: the round trip
    /// that it ends, if it ends one.
    pub fn on_packet(
        &mut self,
        key: &FlowKey,
        tcp: &TcpHeader,
        side: Side,
        now: Time,
    ) -> Option<Delay> {
        let (value, echo) = tcp.timestamps?;
        match side {
            Side::Egress => {
                if !self.connections.contains_key(key) && !self.make_room(now) {
                    return None;
                }
                let source = FIRST_SOURCE + self.next_source;
                let connection = self.connections.entry(*key).or_insert_with(|| {
                    self.next_source = (self.next_source + 1) % MAX_SOURCES;
                    Connection { source, seen: now, pending: PendingTimestamps::default() }
                });
                connection.seen = now;
                connection.pending.on_sent(value, now);
                connection.pending.keep(MAX_PENDING_TIMESTAMPS);
                None
            }
            Side::Ingress => {
                let connection = self.connections.get_mut(&key.reversed())?;
                let sent = connection.pending.on_echo(echo)?;
                // One that came sooner answers a packet before, which went past the shaper.
                let (source, rtt) = (connection.source, now.checked_since(sent)?);
                Some(Delay { source, sent, rtt, one_way: None })
            }
        }
    }

    /// Whether there is room for a connection, one that is silent perhaps being forgotten.
    fn make_room(&mut self, now: Time) -> bool {
        if self.connections.len() < MAX_CONNECTIONS {
            return true;
        }
        let silent = self.connections.iter().min_by_key(|(_, connection)| connection.seen);
        let silent = silent
            .filter(|(_, connection)| now.since(connection.seen).as_secs_f64() >= SILENT_AFTER);
        let Some(key) = silent.map(|(key, _)| *key) else { return false };
        self.connections.remove(&key);
        true
    }
}

/// Numbers of sources beyond those of any reflectors.
pub(crate) const FIRST_SOURCE: u32 = 1 << 16;
const MAX_SOURCES: u32 = 1 << 15;
/// Enough connections to know the line by.
const MAX_CONNECTIONS: usize = 64;
const SILENT_AFTER: f64 = 5.0;
/// At 1 ms a timestamp, a round trip of two seconds.
const MAX_PENDING_TIMESTAMPS: usize = 2048;

#[cfg(test)]
mod tests {
    use weir_core::{Duration, Protocol};

    use super::*;

    #[test]
    fn the_first_packet_out_and_the_first_echo_count() {
        let mut passive = Passive::default();
        let (src, dst) = ("10.0.0.1".parse().unwrap(), "10.0.1.1".parse().unwrap());
        let key = FlowKey { src, dst, sport: 1, dport: 2, protocol: Protocol::TCP };
        let stamps =
            |value, echo| TcpHeader { timestamps: Some((value, echo)), ..TcpHeader::default() };
        let ms = Time::from_millis;
        // Around the end of the numbers.
        let last = u32::MAX;
        let mut see = |of: &FlowKey, tcp: TcpHeader, side, at| {
            passive.on_packet(of, &tcp, side, ms(at)).map(|delay| delay.rtt)
        };
        assert_eq!(see(&key, stamps(last, 5), Side::Egress, 1), None);
        assert_eq!(see(&key, stamps(last, 5), Side::Egress, 2), None);
        assert_eq!(see(&key, stamps(0, 5), Side::Egress, 3), None);
        assert_eq!(see(&key, stamps(1, 5), Side::Egress, 4), None);
        let back = key.reversed();
        let rtt = Duration::from_millis;
        assert_eq!(see(&back, stamps(7, last), Side::Ingress, 21), Some(rtt(20)));
        assert_eq!(see(&back, stamps(7, last), Side::Ingress, 22), None);
        assert_eq!(see(&back, stamps(8, 1), Side::Ingress, 25), Some(rtt(21)), "0 was not echoed");
        assert_eq!(see(&key, stamps(7, 1), Side::Ingress, 25), None, "nobody's answer");
        assert_eq!(see(&key, stamps(9, 8), Side::Egress, 30), None);
        assert_eq!(
            see(&back, stamps(9, 9), Side::Ingress, 29),
            None,
            "an answer before the question"
        );
    }
}
