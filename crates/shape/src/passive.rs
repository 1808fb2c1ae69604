//! Round trips of the user's own TCP connections, as they pass through the shaper.

use weir_core::{FlowKey, TcpFlags, TcpHeader, Time};
use weir_rate_control::{Connections, Delay, Seen, Side};

/// The connections, and what is under way of each.
#[derive(Debug, Default)]
pub(crate) struct Passive {
    connections: Connections<FlowKey>,
}

impl Passive {
    /// A packet crosses the shaper on its line's side at `now`, or came at `now` on the way in.
    pub fn on_packet(&mut self, key: &FlowKey, tcp: &TcpHeader, side: Side, now: Time) {
        let packet = Seen {
            timestamps: tcp.timestamps.map(|(value, echo)| (value, Some(echo))),
            data: (tcp.seq, tcp.end()),
            ack: tcp.ack,
            opens: tcp.flags.only(TcpFlags::SYN) == TcpFlags::SYN,
            closes: tcp.flags.has_any(TcpFlags::FIN.with(TcpFlags::RST)),
        };
        match side {
            Side::Egress => self.connections.on_sent(*key, &packet, now),
            Side::Ingress => self.connections.on_came(key.reversed(), &packet, now),
        }
    }

    /// What the connections told since the last call.
    pub fn take(&mut self) -> impl Iterator<Item = Delay> {
        self.connections.take()
    }
}

#[cfg(test)]
mod tests {
    use weir_core::Protocol;

    use super::*;

    fn key() -> FlowKey {
        let (src, dst) = ("10.0.0.1".parse().unwrap(), "10.0.1.1".parse().unwrap());
        FlowKey { src, dst, sport: 1, dport: 2, protocol: Protocol::TCP }
    }

    /// The round trip, in ms, that the packet ends.
    fn see(passive: &mut Passive, of: &FlowKey, tcp: &TcpHeader, side: Side, at: u64) -> u64 {
        passive.on_packet(of, tcp, side, Time::from_millis(at));
        passive.take().next().map_or(0, |delay| delay.rtt.as_nanos() / 1_000_000)
    }

    #[test]
    fn data_that_answers_ends_a_round_trip_by_its_timestamps() {
        let (mut passive, key) = (Passive::default(), key());
        let stamps =
            |value, echo| TcpHeader { timestamps: Some((value, echo)), ..TcpHeader::default() };
        let data = |value, echo| TcpHeader { seq: 1, payload: 9, ..stamps(value, echo) };
        for (value, at) in [(6, 1), (6, 2), (7, 3), (8, 4)] {
            assert_eq!(see(&mut passive, &key, &stamps(value, 5), Side::Egress, at), 0);
        }
        let back = key.reversed();
        let mut came = |of: &FlowKey, tcp, at| see(&mut passive, of, &tcp, Side::Ingress, at);
        assert_eq!(came(&back, data(7, 6), 21), 20);
        assert_eq!(came(&back, data(7, 6), 22), 0);
        assert_eq!(came(&back, data(8, 8), 25), 21, "7 was not echoed");
        assert_eq!(came(&key, data(7, 8), 25), 0, "nobody's answer");
        assert_eq!(see(&mut passive, &key, &stamps(9, 8), Side::Egress, 30), 0);
        let before = see(&mut passive, &back, &data(9, 9), Side::Ingress, 29);
        assert_eq!(before, 0, "an answer before the question");
    }

    #[test]
    fn an_acknowledgement_of_two_segments_ends_a_round_trip_without_timestamps() {
        let (mut passive, key) = (Passive::default(), key());
        let data = |seq| TcpHeader { seq, payload: 1000, ..TcpHeader::default() };
        let ack = |ack| TcpHeader { ack, ..TcpHeader::default() };
        for (seq, at) in [(0, 1), (1000, 2), (2000, 3)] {
            assert_eq!(see(&mut passive, &key, &data(seq), Side::Egress, at), 0);
        }
        let mut came = |of, at| see(&mut passive, &key.reversed(), &ack(of), Side::Ingress, at);
        assert_eq!(came(2000, 22), 20);
        assert_eq!(came(3000, 63), 0, "it may have been kept back");
    }

    #[test]
    fn an_end_and_a_reset_make_room_for_another_connection() {
        let mut passive = Passive::default();
        let stamps =
            |value, echo| TcpHeader { timestamps: Some((value, echo)), ..TcpHeader::default() };
        let of = |sport| FlowKey { sport, ..key() };
        let is_heard = |by: &mut Passive, sport, at| {
            let data = TcpHeader { payload: 9, ..stamps(7, 1) };
            see(by, &of(sport), &data, Side::Egress, at);
            see(by, &of(sport).reversed(), &stamps(9, 7), Side::Ingress, at + 20) == 20
        };
        assert_eq!((0..=64).filter(|&sport| is_heard(&mut passive, sport, 1)).count(), 64);
        let ends = |flag| TcpHeader { flags: TcpFlags::ACK.with(flag), ..stamps(8, 1) };
        see(&mut passive, &of(5), &ends(TcpFlags::PSH), Side::Egress, 100);
        assert!(!is_heard(&mut passive, 100, 101));
        see(&mut passive, &of(5), &ends(TcpFlags::FIN), Side::Egress, 200);
        assert!(is_heard(&mut passive, 100, 201));
        assert!(!is_heard(&mut passive, 101, 301));
        see(&mut passive, &of(6).reversed(), &ends(TcpFlags::RST), Side::Ingress, 400);
        assert!(is_heard(&mut passive, 101, 401));
    }
}
