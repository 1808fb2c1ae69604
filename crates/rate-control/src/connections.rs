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
    /// Until then there is no room for another.
    full_until: Time,
}

#[derive(Clone, Debug)]
struct Connection {
    /// When a packet of it last left.
    seen: Time,
    /// What it told since somebody asked: the newest of what is known best.
    told: Option<Delay>,
    round_trips: RoundTrips,
}

impl<K> Default for Connections<K> {
    fn default() -> Self {
        Self { heard: BTreeMap::new(), next_source: 0, full_until: Time::ZERO }
    }
}

impl<K: Ord + Copy> Connections<K> {
    /// A packet of the connection `key` left at `now`.
    pub fn on_sent(&mut self, key: K, packet: &Seen, now: Time) {
        if !self.heard.contains_key(&key) {
            if !self.make_room(now) {
                return;
            }
            let round_trips = RoundTrips::new(FIRST_CONNECTION + self.next_source);
            self.next_source = (self.next_source + 1) % MAX_SOURCES;
            let connection = Connection { seen: now, told: None, round_trips };
            self.heard.insert(key, connection);
        }
        let connection = self.heard.get_mut(&key).expect("it is there or was made");
        connection.seen = now;
        connection.round_trips.on_sent(packet, now);
    }

    /// A packet of the connection `key` came in at `now`.
    pub fn on_came(&mut self, key: K, packet: &Seen, now: Time) {
        let Some(connection) = self.heard.get_mut(&key) else { return };
        if let Some(delay) = connection.round_trips.on_came(packet, now)
            && connection.told.is_none_or(|told| knowledge(&delay) >= knowledge(&told))
        {
            connection.told = Some(delay);
        }
    }

    /// The delays that were heard since the last call, one of each connection at most: the newest of those that are known best.
    pub fn take(&mut self) -> impl Iterator<Item = Delay> {
        self.heard.values_mut().filter_map(|connection| connection.told.take())
    }

    /// Whether there is room for one more, one that is silent perhaps being forgotten.
    fn make_room(&mut self, now: Time) -> bool {
        if self.heard.len() < MAX_CONNECTIONS {
            return true;
        }
        if now < self.full_until {
            return false;
        }
        let silent = self.heard.iter().min_by_key(|(_, connection)| connection.seen);
        let (&key, connection) = silent.expect("there are some");
        let forgotten_at = connection.seen + SILENT_AFTER;
        if now < forgotten_at {
            self.full_until = forgotten_at;
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
