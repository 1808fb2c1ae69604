//! Round trips of a TCP connection, by what a shaper in its way sees of its headers.

use std::collections::VecDeque;

use weir_core::{Duration, Time, comes_before};

use crate::baseline::Baseline;
use crate::contract::{Delay, Measured, OneWay};
use crate::peer_clock::PeerClock;

/// What of one connection left the shaper and was not answered yet.
///
/// What is sent is acknowledged at once only where the acknowledgement is of two full segments or more; one of a single
/// segment may have been kept back for 40 ms and longer, in the hope of a second one (RFC 1122, section 4.2.3.2). So a
/// round trip of data lasts from when its last segment left to the acknowledgement of two or more up to just that one.
///
/// Of what is received the round trip is that of an acknowledgement that left to the data which it called forth: from the
/// first packet out with a new timestamp (RFC 7323) to the first packet in with data, or that opens the connection,
/// which echoes it. K. Nichols, `pping`, shows that this needs nothing but headers.
///
/// A sender may have paused before it sent that data, as a server that thinks before it answers. For no longer than since it sent
/// the packet before, by its clock: else that one would have echoed the timestamp. Where that is a small part of the round
/// trip, or the way there was no longer than the shortest, the data is its answer; else it tells that something
/// [arrived](Measured::Arrival).
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    /// Number of the source of its delays.
    source: u32,
    /// Timestamps that left, oldest first.
    timestamps: VecDeque<Stamp>,
    /// The newest timestamp that left.
    stamped: Option<u32>,
    /// The shortest way there, of two clocks that may differ.
    there: Option<Baseline>,
    /// The numbers behind the data of segments, with the time at which they left, oldest first.
    data: VecDeque<(u32, Time)>,
    /// The number behind the newest data that left.
    end: Option<u32>,
    /// The number behind the newest data that had left when some was sent again, until all of it is acknowledged.
    repairing: Option<u32>,
    /// What the last acknowledgement said.
    acknowledged: Option<u32>,
    peer: PeerClock,
    /// The number with which it was opened, if that was seen.
    opened: Option<u32>,
}

/// A timestamp that left.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    /// When the first packet with it left.
    left: Time,
}

/// A packet of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The sender's clock, and what it echoes of the other's, where there are timestamps.
    pub timestamps: Option<(u32, Option<u32>)>,
    /// Number of the first of its data, and that behind the last; the same without data.
    pub data: (u32, u32),
    /// Number of the data that its sender expects next.
    pub ack: u32,
    /// Whether it opens the connection.
    pub opens: bool,
    /// Whether it closes the connection, for its sender or for both.
    pub closes: bool,
}

impl Seen {
    pub(crate) const fn has_data(&self) -> bool {
        self.data.0 != self.data.1
    }
}

impl RoundTrips {
    /// A connection of which nothing was seen; its delays are those of the source of this number.
    pub fn new(source: u32) -> Self {
        Self { source, ..Self::default() }
    }

    /// Whether a packet that leaves opens another connection between the same ports.
    pub fn is_reopened(&self, packet: &Seen) -> bool {
        packet.opens && self.opened != Some(packet.data.0)
    }

    /// Notes a packet that left at `now`.
    pub fn on_sent(&mut self, packet: &Seen, now: Time) {
        let first = packet.data.0;
        if packet.opens {
            self.opened = Some(first);
        }
        if let Some((value, _)) = packet.timestamps
            && self.stamped.is_none_or(|newest| comes_before(newest, value))
        {
            self.stamped = Some(value);
            push(&mut self.timestamps, Stamp { value, left: now });
        }
        let end = packet.data.1;
        if !packet.has_data() {
            return;
        }
        if let Some(newest) = self.end.filter(|&newest| comes_before(first, newest)) {
            // Which copy of it is acknowledged nobody knows (Karn), and what came behind a gap is when the gap is closed.
            self.repairing = Some(newest);
            self.data.clear();
            return;
        }
        self.end = Some(end);
        if self.repairing.is_none() {
            push(&mut self.data, (end, now));
        }
    }

    /// Takes a packet that came in at `now`: the round trip that it ends, by the data that it acknowledges at once or else by
    /// the timestamp that it echoes, if it is the first to do so.
    pub fn on_came(&mut self, packet: &Seen, now: Time) -> Option<Delay> {
        let is_answer = packet.has_data() || packet.opens;
        let acknowledged = self.on_ack(packet.ack).filter(|_| !is_answer);
        let (mut back_ns, mut echoed, mut pause) = (None, None, None);
        if let Some((value, echo)) = packet.timestamps {
            pause = self.peer.pause(value);
            self.peer.note(value, now);
            back_ns = self.peer.since_ns(value, now);
            echoed = echo.and_then(|echo| self.on_echo(echo));
        }
        let found = match (acknowledged, echoed) {
            (Some(sent), _) => self.delay(sent, back_ns, Measured::Acknowledgement, now)?,
            (None, stamp) => {
                let stamp = stamp?;
                let delay = self.delay(stamp.left, back_ns, Measured::Echo, now)?;
                let is_prompt = || {
                    let is_short = pause.is_some_and(|pause| pause <= delay.rtt / PAUSE_PART);
                    delay.one_way.is_some() && is_short || self.is_near(&delay)
                };
                let by = match is_answer {
                    false => Measured::Echo,
                    true if packet.opens || is_prompt() => Measured::Answer,
                    true => Measured::Arrival,
                };
                Delay { by, ..delay }
            }
        };
        self.note_way(&found, now);
        Some(found)
    }

    /// Whether the way there was hardly longer than the shortest.
    fn is_near(&self, delay: &Delay) -> bool {
        self.there.zip(delay.one_way).is_some_and(|(shortest, ways)| {
            ways.there_ns - shortest.get_ns() <= NEAR.as_nanos() as i64
        })
    }

    /// Notes the way there, unless it may be one of a pause.
    fn note_way(&mut self, delay: &Delay, now: Time) {
        if let Some(ways) = delay.one_way.filter(|_| delay.by != Measured::Arrival) {
            let first = || Baseline::new(ways.there_ns, DRIFT_HALF, now);
            self.there.get_or_insert_with(first).add(ways.there_ns, now);
        }
    }

    /// The round trip of what left at `sent`; none if that was later: then what was answered went past the shaper.
    fn delay(&self, sent: Time, back_ns: Option<i64>, by: Measured, now: Time) -> Option<Delay> {
        let rtt = now.checked_since(sent)?;
        let one_way =
            back_ns.map(|back_ns| OneWay { there_ns: rtt.as_nanos() as i64 - back_ns, back_ns });
        Some(Delay { source: self.source, sent, rtt, one_way, by })
    }

    fn on_echo(&mut self, echo: u32) -> Option<Stamp> {
        while let Some(&stamp) = self.timestamps.front() {
            if comes_before(echo, stamp.value) {
                break;
            }
            self.timestamps.pop_front();
            if stamp.value == echo {
                return Some(stamp);
            }
        }
        None
    }

    /// When the last segment left that is acknowledged, if it is one that is acknowledged at once.
    fn on_ack(&mut self, ack: u32) -> Option<Time> {
        let before = self.acknowledged.replace(ack);
        self.repairing = self.repairing.filter(|&end| comes_before(ack, end));
        let (mut segments, mut last) = (0, None);
        while let Some(&(end, sent)) = self.data.front() {
            if comes_before(ack, end) {
                break;
            }
            self.data.pop_front();
            segments += 1;
            last = (end == ack).then_some(sent);
        }
        // Segments that the kernel hands on together count as they go over the line.
        let is_long = before.is_some_and(|before| ack.wrapping_sub(before) > MAX_SEGMENT);
        last.filter(|_| segments >= 2 || is_long)
    }
}

/// Adds the newest; the oldest are forgotten first.
fn push<T>(pending: &mut VecDeque<T>, newest: T) {
    if pending.len() == MAX_PENDING {
        pending.pop_front();
    }
    pending.push_back(newest);
}

/// Bytes of data in a segment on an Ethernet, at most.
const MAX_SEGMENT: u32 = 1460;
/// At 1 ms a timestamp, a round trip of two seconds.
const MAX_PENDING: usize = 2048;
/// Part of a round trip that its sender may have paused for: what a queue is told by is several times the round trip without one.
const PAUSE_PART: u64 = 4;
/// How much longer than the shortest a way there is that nobody paused behind: less than any queue that counts.
const NEAR: Duration = Duration::from_millis(2);
/// Half the time for which the shortest way there is known: two clocks drift apart by up to 1 ms in 10 s.
const DRIFT_HALF: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Duration;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn data(first: u32, end: u32) -> Seen {
        Seen { data: (first, end), ..Seen::default() }
    }

    fn ack(ack: u32) -> Seen {
        Seen { ack, ..Seen::default() }
    }

    /// Segments of 1000 bytes from `first` on leave, one a millisecond.
    fn leaving(first: u32, count: u32) -> RoundTrips {
        let mut connection = RoundTrips::default();
        for number in 0..count {
            let begins = first.wrapping_add(number * 1000);
            connection.on_sent(&data(begins, begins.wrapping_add(1000)), ms(u64::from(number)));
        }
        connection
    }

    /// When that left, in ms, of which an acknowledgement without timestamps tells the round trip.
    fn acknowledged(connection: &mut RoundTrips, up_to: u32) -> Option<u64> {
        connection.on_came(&ack(up_to), ms(100_000)).map(|delay| {
            assert_eq!(
                (delay.by, delay.rtt),
                (Measured::Acknowledgement, ms(100_000).since(delay.sent))
            );
            delay.sent.as_nanos() / 1_000_000
        })
    }

    #[test]
    fn of_two_segments_that_are_acknowledged_the_last_counts_and_one_alone_may_have_been_kept_back()
    {
        // Around the end of the numbers, and not.
        for first in [7, u32::MAX - 1_500] {
            let mut connection = leaving(first, 6);
            let mut came = |bytes: u32| acknowledged(&mut connection, first.wrapping_add(bytes));
            assert_eq!(came(0), None, "of nothing new");
            assert_eq!(came(2000), Some(1));
            assert_eq!(came(2000), None, "once");
            assert_eq!(came(3000), None, "of one alone");
            assert_eq!(came(4500), None, "up to no segment's end");
            assert_eq!(came(6000), Some(5));
        }
    }

    #[test]
    fn a_packet_of_many_segments_is_acknowledged_at_once_but_for_its_last_one() {
        let mut connection = RoundTrips::default();
        connection.on_sent(&data(0, 14_480), ms(3));
        assert_eq!(acknowledged(&mut connection, 2_896), None);
        assert_eq!(acknowledged(&mut connection, 14_480), Some(3));
        connection.on_sent(&data(14_480, 28_960), ms(9));
        assert_eq!(acknowledged(&mut connection, 27_512), None);
        assert_eq!(acknowledged(&mut connection, 28_960), None);
    }

    #[test]
    fn nothing_is_known_from_a_loss_on_until_all_of_then_is_acknowledged() {
        let mut connection = leaving(0, 4);
        connection.on_sent(&data(0, 1000), ms(50));
        connection.on_sent(&data(4000, 5000), ms(51));
        connection.on_sent(&data(5000, 6000), ms(52));
        // The gap is closed: up to behind what left long ago, and what left lately.
        assert_eq!(acknowledged(&mut connection, 1000), None);
        assert_eq!(acknowledged(&mut connection, 6000), None);
        connection.on_sent(&data(6000, 7000), ms(60));
        connection.on_sent(&data(7000, 8000), ms(61));
        assert_eq!(acknowledged(&mut connection, 8000), Some(61));
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let most = u32::try_from(MAX_PENDING).expect("few");
        let mut connection = leaving(0, most + 2);
        assert_eq!(acknowledged(&mut connection, 2000), None);
        assert_eq!(connection.data.len(), MAX_PENDING);
        assert_eq!(acknowledged(&mut connection, 4000), Some(3));
    }

    /// When that left, in ms, the timestamp of which a packet echoes, and what its round trip was measured by.
    fn echoed(connection: &mut RoundTrips, packet: &Seen) -> Option<(u64, Measured)> {
        let delay = connection.on_came(packet, ms(100_000));
        delay.map(|delay| (delay.sent.as_nanos() / 1_000_000, delay.by))
    }

    #[test]
    fn the_first_packet_that_echoes_the_first_with_a_timestamp_ends_a_round_trip() {
        let out = |value| Seen { timestamps: Some((value, None)), ..Seen::default() };
        let back = |echo| Seen { timestamps: Some((1, Some(echo))), ..data(9, 18) };
        for first in [7, u32::MAX] {
            let [next, last] = [1, 2].map(|more| first.wrapping_add(more));
            let mut connection = RoundTrips::default();
            for (value, at) in [(first, 1), (first, 2), (next, 3), (last, 4)] {
                connection.on_sent(&out(value), ms(at));
            }
            let mut came = |echo| echoed(&mut connection, &back(echo));
            assert_eq!(came(first.wrapping_sub(1)), None, "nobody's answer");
            assert_eq!(came(first), Some((1, Measured::Answer)));
            assert_eq!(came(first), None);
            assert_eq!(came(last), Some((4, Measured::Answer)), "with it that between");
            assert_eq!(came(next), None);
        }
    }

    #[test]
    fn a_timestamp_that_was_echoed_begins_nothing_anew() {
        let out = Seen { timestamps: Some((5, None)), ..Seen::default() };
        let back = Seen { timestamps: Some((1, Some(5))), ..ack(1) };
        let mut connection = RoundTrips::default();
        connection.on_sent(&out, ms(1));
        assert_eq!(echoed(&mut connection, &back), Some((1, Measured::Echo)));
        // Others of the same millisecond waited in the shaper.
        connection.on_sent(&out, ms(40));
        assert_eq!(echoed(&mut connection, &back), None);
    }

    #[test]
    fn who_opens_a_connection_is_answered_at_once_and_an_acknowledgement_may_be_kept_back() {
        let stamped = |value, echo| Seen { timestamps: Some((value, echo)), ..Seen::default() };
        let mut connection = RoundTrips::default();
        connection.on_sent(&Seen { opens: true, ..stamped(5, None) }, ms(1));
        let answer = Seen { opens: true, ..stamped(9, Some(5)) };
        assert_eq!(echoed(&mut connection, &answer), Some((1, Measured::Answer)));
        connection.on_sent(&Seen { data: (1, 1001), ..stamped(6, Some(9)) }, ms(30));
        let kept = Seen { ack: 1001, ..stamped(10, Some(6)) };
        assert_eq!(echoed(&mut connection, &kept), Some((30, Measured::Echo)));
    }

    /// A server that thinks for a time before it answers, on a path of 8 ms there and 12 back, seen from its opening on.
    fn thinking(has_timestamps: bool, thinks_ms: impl Iterator<Item = u64>) -> Vec<Delay> {
        let mut connection = RoundTrips::default();
        let stamps = |value: u64, echo: Option<u64>| {
            has_timestamps.then(|| (value as u32, echo.map(|echo| echo as u32)))
        };
        let open = Seen { opens: true, timestamps: stamps(0, None), ..Seen::default() };
        connection.on_sent(&open, ms(0));
        let answer = Seen { timestamps: stamps(8, Some(0)), ..open };
        let mut found = vec![connection.on_came(&answer, ms(20))];
        let (mut at, mut number, mut asked) = (1_000, 0, 0);
        for thinks in thinks_ms {
            let asks =
                Seen { timestamps: stamps(at, None), ack: number, ..data(asked, asked + 200) };
            connection.on_sent(&asks, ms(at));
            asked += 200;
            let left = at + 8 + thinks;
            // Ten segments at once, of which each second is acknowledged as it comes.
            for _ in 0..10 {
                let timestamps = stamps(left, Some(at));
                let part = Seen { timestamps, ack: asked, ..data(number, number + 1_000) };
                found.push(connection.on_came(&part, ms(left + 12)));
                number += 1_000;
                if number % 2_000 == 0 {
                    let ack = Seen {
                        timestamps: stamps(left + 12, Some(left)),
                        ack: number,
                        ..data(asked, asked)
                    };
                    connection.on_sent(&ack, ms(left + 12));
                }
            }
            at = left + 700;
        }
        found.into_iter().flatten().collect()
    }

    #[test]
    fn a_server_that_thinks_is_no_longer_path() {
        for thinks in [5, 20, 100, 500] {
            let found = thinking(true, (0..20).map(|turn| thinks + 3 * (turn % 4)));
            assert_eq!(found.len(), 21, "one is of the opening");
            for delay in &found {
                let is_bound = delay.rtt <= Duration::from_millis(22);
                assert!(!delay.by.is_exact() || is_bound, "{thinks} ms: {delay:?}");
                assert_ne!(delay.by, Measured::Echo, "which is believed but for 40 ms");
            }
            assert!(thinking(false, (0..20).map(|_| thinks)).is_empty(), "nothing is known");
        }
    }

    #[test]
    fn who_answers_as_soon_as_ever_did_so_at_once() {
        let found = thinking(true, [2, 1, 90, 3].into_iter());
        let by: Vec<_> = found.iter().map(|delay| delay.by).collect();
        use Measured::{Answer, Arrival};
        assert_eq!(by, [Answer, Answer, Answer, Arrival, Arrival]);
    }

    /// What is heard of a peer that sends data after each of these times, in ms, whatever is on the way: 40 ms there, with a queue
    /// of so many more, and 60 back. Each packet is acknowledged as it comes.
    fn pushed(gaps: impl Iterator<Item = u64>, queue: impl Fn(u64) -> u64) -> Vec<Delay> {
        let mut connection = RoundTrips::default();
        // When each acknowledgement left and came.
        let mut acks: VecDeque<(u64, u64)> = VecDeque::from([(1, 1)]);
        // When each packet left, and what it echoes.
        let mut on_way: VecDeque<(u64, u64)> = VecDeque::new();
        let (mut at, mut number, mut echo) = (100, 0, 1);
        let mut found = vec![];
        connection.on_sent(&Seen { timestamps: Some((1, None)), ..Seen::default() }, ms(1));
        for gap in gaps {
            at += gap;
            while let Some(&(left, echoed)) = on_way.front().filter(|(left, _)| left + 60 <= at) {
                on_way.pop_front();
                let now = left + 60;
                let timestamps = Some((left as u32, Some(echoed as u32)));
                let packet = Seen { timestamps, ..data(number, number + 1_000) };
                number += 1_000;
                found.extend(connection.on_came(&packet, ms(now)));
                let stamp = Some((now as u32, None));
                connection
                    .on_sent(&Seen { timestamps: stamp, ack: number, ..Seen::default() }, ms(now));
                acks.push_back((now, now + 40 + queue(now)));
            }
            while let Some(&(left, _)) = acks.front().filter(|(_, came)| *came <= at) {
                acks.pop_front();
                echo = left;
            }
            on_way.push_back((at, echo));
        }
        found
    }

    #[test]
    fn who_pushes_now_and_then_while_data_is_on_the_way_is_no_longer_path() {
        let gaps = || (0..400).map(|turn| 5 + turn * 37 % 85);
        for grows in [false, true] {
            let queue = |at: u64| if grows { (at / 50).min(100) } else { 0 };
            let found = pushed(gaps(), queue);
            assert!(found.len() > 200, "{}", found.len());
            for delay in found.iter().filter(|delay| delay.by.is_exact()) {
                let path = Duration::from_millis(100 + queue(delay.sent.as_nanos() / 1_000_000));
                assert!(delay.rtt <= path + path / 3, "{delay:?}");
            }
        }
    }

    #[test]
    fn who_sends_all_the_time_tells_a_queue_of_the_acknowledgements() {
        let found = pushed((0..4_000).map(|_| 2), |at| if at > 4_000 { 150 } else { 0 });
        let exact = |delay: &&Delay| delay.by.is_exact();
        let queued = found.iter().filter(exact).filter(|it| it.rtt >= Duration::from_millis(250));
        assert!(queued.count() > 1_000);
        assert!(found.iter().filter(exact).all(|it| it.rtt <= Duration::from_millis(253)));
    }

    #[test]
    fn a_peer_that_counts_milliseconds_tells_the_ways_apart() {
        let mut connection = RoundTrips::new(9);
        for number in 0..100 {
            let left = 20 * u64::from(number);
            let stamps = Some((number, None));
            connection.on_sent(&Seen { timestamps: stamps, ..data(number, number + 1) }, ms(left));
            // There in 8 ms, back in 12 and, of the last one, in 30.
            let back = if number == 99 { 30 } else { 12 };
            let answered = Some((left as u32 + 8, Some(number)));
            let answer = Seen { timestamps: answered, ..ack(number + 1) };
            let delay = connection.on_came(&answer, ms(left + 8 + back)).expect("it echoes");
            assert_eq!((delay.source, delay.rtt), (9, Duration::from_millis(8 + back)));
            let ways = delay.one_way.expect("it is known").back_ns / 1_000_000;
            // The first one's way back is called 0.
            assert_eq!(ways, back as i64 - 12);
        }
    }
}
