//! The user's own TCP connections, as a shaper in their way hears them.

use std::collections::BTreeMap;

use weir_core::{Duration, Time};

use crate::contract::{Delay, FIRST_CONNECTION, Measured};
use crate::round_trips::{RoundTrips, Seen};

/// The connections that are heard, told apart by keys of the driver's.
///
/// It is what a simulated shaper and one for real interfaces share: how many connections are heard, and how often each. The driver
/// [asks](Self::take) just before each tick, so that of one connection there is at most one delay in 20 ms, however fast it is.
#[derive(Clone, Debug)]
pub struct Connections<K> {
    heard: BTreeMap<K, Connection>,
    next_source: u32,
    /// Until then there is no room for another: for one that may not take the place of a closed one, and for one that may.
    full_until: [Time; 2],
}

#[derive(Clone, Debug)]
struct Connection {
    /// When a packet of it last left.
    seen: Time,
    /// Whether an end has closed it, so that it makes room at once.
    closed: bool,
    /// What it told since somebody asked: the newest of what is known best.
    told: Option<Delay>,
    round_trips: RoundTrips,
}

impl<K> Default for Connections<K> {
    fn default() -> Self {
        Self { heard: BTreeMap::new(), next_source: 0, full_until: [Time::ZERO; 2] }
    }
}

impl<K: Ord + Copy> Connections<K> {
    /// A packet of the connection `key` left at `now`.
    pub fn on_sent(&mut self, key: K, packet: &Seen, now: Time) {
        // Ports that are used again are those of another connection, perhaps by another path.
        let is_reopened = |it: &Connection| it.round_trips.is_reopened(packet);
        if packet.opens && self.heard.get(&key).is_some_and(is_reopened) {
            self.heard.remove(&key);
        }
        if !self.heard.contains_key(&key) && (packet.closes || !self.make_room(packet, now)) {
            return;
        }
        let connection = self.heard.entry(key).or_insert_with(|| {
            let round_trips = RoundTrips::new(FIRST_CONNECTION + self.next_source);
            self.next_source = (self.next_source + 1) % MAX_SOURCES;
            Connection { seen: now, closed: false, told: None, round_trips }
        });
        connection.seen = now;
        connection.round_trips.on_sent(packet, now);
        if packet.closes {
            connection.closed = true;
            self.full_until[1] = Time::ZERO;
        }
    }

    /// A packet of the connection `key` came in at `now`.
    pub fn on_came(&mut self, key: K, packet: &Seen, now: Time) {
        let Some(connection) = self.heard.get_mut(&key) else { return };
        if let Some(delay) = connection.round_trips.on_came(packet, now)
            && connection.told.is_none_or(|told| knowledge(&delay) >= knowledge(&told))
        {
            connection.told = Some(delay);
        }
        if packet.closes {
            connection.closed = true;
            self.full_until[1] = Time::ZERO;
        }
    }

    /// The delays that were heard since the last call, one of each connection at most: the newest of those that are known best.
    pub fn take(&mut self) -> impl Iterator<Item = Delay> {
        self.heard.values_mut().filter_map(|connection| connection.told.take())
    }

    /// Whether there is room for that of `packet` too, one that is closed or silent perhaps being forgotten.
    ///
    /// One that is closed makes room for what begins or sends alone: nothing else tells it from the last word of another one that
    /// was closed and forgotten.
    fn make_room(&mut self, packet: &Seen, now: Time) -> bool {
        if self.heard.len() < MAX_CONNECTIONS {
            return true;
        }
        let takes_closed = packet.opens || packet.has_data();
        let full_until = &mut self.full_until[usize::from(takes_closed)];
        if now < *full_until {
            return false;
        }
        let goes = |connection: &Connection| connection.closed && takes_closed;
        let first = self.heard.iter().min_by_key(|(_, it)| (!goes(it), it.seen));
        let (&key, connection) = first.expect("there are some");
        let forgotten_at = connection.seen + SILENT_AFTER;
        if !goes(connection) && now < forgotten_at {
            *full_until = forgotten_at;
            return false;
        }
        self.heard.remove(&key);
        true
    }
}

/// How much is known of a delay: the greater, the more.
const fn knowledge(delay: &Delay) -> u8 {
    match delay.by {
        Measured::Arrival => 0,
        Measured::Echo => 1,
        Measured::Answer | Measured::Acknowledgement => 2,
    }
}

/// Connections that are heard at most: enough to know a line by.
const MAX_CONNECTIONS: usize = 64;
/// Time after which a connection of which nothing leaves makes room for another.
const SILENT_AFTER: Duration = Duration::from_secs(5);
/// Numbers of sources, which are used again after so many.
const MAX_SOURCES: u32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn out(value: u32) -> Seen {
        Seen { timestamps: Some((value, None)), ..Seen::default() }
    }

    /// A packet with data that echoes `echo`, of a sender that had more on its way, or without data.
    fn back(echo: u32, bytes: u32) -> Seen {
        Seen { timestamps: Some((1, Some(echo))), data: (9, 9 + bytes), ..Seen::default() }
    }

    fn told(connections: &mut Connections<u8>) -> Vec<(u32, u64, Measured)> {
        let told = connections.take();
        told.map(|it| (it.source - FIRST_CONNECTION, it.rtt.as_nanos() / 1_000_000, it.by))
            .collect()
    }

    #[test]
    fn of_each_the_newest_of_what_is_known_best_is_told_once() {
        use Measured::{Answer, Echo};
        let mut connections = Connections::default();
        for key in [7, 3] {
            for value in 1..=5 {
                connections.on_sent(key, &out(value), ms(u64::from(value)));
            }
        }
        connections.on_came(7, &back(1, 100), ms(21));
        connections.on_came(7, &back(2, 100), ms(32));
        connections.on_came(7, &back(3, 0), ms(43));
        connections.on_came(3, &back(4, 0), ms(50));
        connections.on_came(99, &back(4, 0), ms(50));
        assert_eq!(told(&mut connections), [(1, 46, Echo), (0, 30, Answer)], "by key");
        assert_eq!(told(&mut connections), [], "once");
        connections.on_came(7, &back(5, 0), ms(55));
        assert_eq!(told(&mut connections), [(0, 50, Echo)]);
    }

    #[test]
    fn what_is_closed_makes_room_at_once() {
        let mut connections = Connections::default();
        let most = MAX_CONNECTIONS as u8;
        for key in 0..most {
            connections.on_sent(key, &out(1), ms(u64::from(key)));
        }
        let mut opened = |key, closing: Option<(u8, bool)>, at| {
            let end = Seen { closes: true, ..out(9) };
            match closing {
                Some((of, true)) => connections.on_sent(of, &end, ms(at)),
                Some((of, false)) => connections.on_came(of, &end, ms(at)),
                None => (),
            }
            connections.on_sent(key, &Seen { data: (1, 9), ..out(1) }, ms(at + 1));
            connections.on_came(key, &back(1, 0), ms(at + 21));
            told(&mut connections).len()
        };
        assert_eq!(opened(most, None, 100), 0);
        assert_eq!(opened(most, Some((5, true)), 200), 1, "its end was sent");
        assert_eq!(opened(most + 1, None, 300), 0);
        assert_eq!(opened(most + 1, Some((9, false)), 400), 1, "its end came");
        // The end of one that is not heard is nothing.
        assert_eq!(opened(most + 2, Some((most + 2, true)), 500), 0);
    }

    #[test]
    fn the_last_word_of_a_connection_that_was_forgotten_takes_no_place() {
        let mut connections = Connections::default();
        let most = MAX_CONNECTIONS as u8;
        for key in 0..most {
            connections.on_sent(key, &out(1), ms(u64::from(key)));
        }
        let opening = Seen { opens: true, data: (1, 1), ..out(1) };
        for key in [5, 6] {
            connections.on_sent(key, &Seen { closes: true, ..out(9) }, ms(100));
        }
        connections.on_sent(most, &opening, ms(101));
        // It acknowledges the other end's end.
        connections.on_sent(5, &out(10), ms(120));
        connections.on_sent(most + 1, &opening, ms(130));
        for key in [most, most + 1] {
            connections.on_came(key, &back(1, 0), ms(150));
        }
        assert_eq!(told(&mut connections).len(), 2);
        // Once all are silent for long it is as good as any.
        connections.on_sent(5, &out(11), ms(5_101));
        connections.on_came(5, &back(11, 0), ms(5_121));
        assert_eq!(told(&mut connections).len(), 1);
    }

    #[test]
    fn ports_that_are_used_again_are_another_source() {
        let mut connections = Connections::default();
        let opening = |first, value| Seen { opens: true, data: (first, first), ..out(value) };
        let mut source = |packet: &Seen, at| {
            connections.on_sent(7, packet, ms(at));
            let (value, _) = packet.timestamps.expect("it has them");
            connections.on_came(7, &back(value, 0), ms(at + 20));
            told(&mut connections).first().map(|&(source, ..)| source)
        };
        assert_eq!(source(&opening(1, 10), 0), Some(0));
        assert_eq!(source(&opening(1, 11), 1_000), Some(0), "the same, sent again");
        assert_eq!(source(&out(12), 1_100), Some(0));
        assert_eq!(source(&opening(500, 13), 2_000), Some(1));
    }

    #[test]
    fn one_more_is_heard_once_another_is_silent() {
        let mut connections = Connections::default();
        for key in 0..=MAX_CONNECTIONS as u8 {
            connections.on_sent(key, &out(1), ms(u64::from(key)));
        }
        let more = MAX_CONNECTIONS as u8;
        let is_heard = |of: &mut Connections<u8>, key| {
            of.on_came(key, &back(1, 0), ms(20_000));
            !told(of).is_empty()
        };
        assert!(!is_heard(&mut connections, more));
        // The first is still at it, the second is not.
        connections.on_sent(0, &out(2), ms(4_000));
        connections.on_sent(more, &out(1), ms(5_000));
        assert!(!is_heard(&mut connections, more));
        connections.on_sent(more, &out(1), ms(5_001));
        assert!(is_heard(&mut connections, more));
        assert!(!is_heard(&mut connections, 1));
        assert!(is_heard(&mut connections, 0));
    }
}
