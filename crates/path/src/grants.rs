//! Requests and grants, as a cable modem has them: packets are asked for, and sent in a later interval.
//!
//! Time goes in intervals of equal length (DOCSIS: of one MAP). A modem that has nothing outstanding asks at a
//! random moment of the next interval, for all packets that wait then. The grant begins with the first interval
//! that starts no earlier than the delay after the request. At the start of an interval in which the modem
//! sends it also asks for what has come meanwhile (DOCSIS: piggyback requests).

use std::collections::VecDeque;

use weir_core::{Draw, Duration, Rng, Time};
use weir_scenario::GrantParams;

/// A modem that asks for leave to send.
#[derive(Clone, Debug)]
pub(crate) struct Grants {
    interval: Duration,
    delay: Duration,
    rng: Rng,
    /// The start of the next interval that was not looked at.
    next: Time,
    /// When packets are asked for, if that was decided.
    request_at: Option<Time>,
    /// Packets that were asked for, and the start of the interval in which they may leave.
    granted: VecDeque<(Time, u64)>,
    /// Packets that may leave now.
    left: u64,
}

impl Grants {
    /// A modem that has asked for nothing.
    pub(crate) fn new(params: GrantParams, rng: Rng) -> Self {
        Self {
            interval: Duration::from_nanos(params.interval_ns),
            delay: Duration::from_nanos(params.delay_ns),
            rng,
            next: Time::ZERO,
            request_at: None,
            granted: VecDeque::new(),
            left: 0,
        }
    }

    /// When the line is to be asked again: `now` if a packet may leave. `waiting` packets wait, and the line
    /// is busy until `free_at`. While packets wait it must be asked at the times that it says.
    pub(crate) fn ready_at(&mut self, now: Time, waiting: u64, free_at: Time) -> Time {
        self.look(now, waiting);
        if waiting == 0 {
            return now;
        }
        let may_leave = if self.left > 0 { free_at.max(now) } else { Time::MAX };
        may_leave.min(self.next).min(self.request_at.unwrap_or(Time::MAX))
    }

    /// A packet leaves.
    pub(crate) const fn took(&mut self) {
        self.left -= 1;
    }

    /// Does what is due by `now`. Of intervals that started before, nothing waited then.
    fn look(&mut self, now: Time, waiting: u64) {
        if self.request_at.is_some_and(|at| at < now) {
            self.request_at = None;
        }
        while self.next <= now {
            let nothing_outstanding = self.granted.is_empty() && self.request_at.is_none();
            if self.next < now && nothing_outstanding {
                self.left = 0;
                let passed = now.as_nanos() / self.interval.as_nanos();
                self.next = Time::from_nanos(passed * self.interval.as_nanos());
            }
            let waits = if self.next < now { 0 } else { waiting };
            self.begin_interval(self.next, waits);
            self.next += self.interval;
        }
        if self.request_at == Some(now) {
            self.request_at = None;
            self.ask(now, waiting);
        }
    }

    fn begin_interval(&mut self, start: Time, waiting: u64) {
        // What was granted and is not needed goes unused.
        self.left = self.left.min(waiting);
        while let Some(&(from, packets)) = self.granted.front()
            && from <= start
        {
            self.left += packets;
            self.granted.pop_front();
        }
        if waiting == 0 {
            return;
        }
        if self.left > 0 {
            let outstanding =
                self.left + self.granted.iter().map(|(_, packets)| packets).sum::<u64>();
            self.ask(start, waiting.saturating_sub(outstanding));
        } else if self.granted.is_empty() && self.request_at.is_none() {
            let after = self.rng.below(self.interval.as_nanos());
            self.request_at = Some(start + Duration::from_nanos(after));
        }
    }

    /// Asks at `now` for leave to send so many packets.
    fn ask(&mut self, now: Time, packets: u64) {
        if packets == 0 {
            return;
        }
        let earliest = (now + self.delay).as_nanos();
        let interval = self.interval.as_nanos();
        let from = Time::from_nanos(earliest.div_ceil(interval) * interval);
        self.granted.push_back((from, packets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Seed;

    const fn us(us: u64) -> Time {
        Time::from_nanos(us * 1_000)
    }

    /// Intervals of 2 ms, and 3 ms from a request to its grant.
    fn modem() -> Grants {
        let params = GrantParams { interval_ns: 2_000_000, delay_ns: 3_000_000 };
        Grants::new(params, Seed::new(1).stream("link grants"))
    }

    /// Asks whenever the modem says until a packet may leave; the times at which it was asked.
    fn until_ready(modem: &mut Grants, from: Time, waiting: u64) -> Vec<Time> {
        let mut asked = vec![from];
        loop {
            let now = *asked.last().unwrap();
            let ready = modem.ready_at(now, waiting, Time::ZERO);
            if ready == now {
                return asked;
            }
            assert!(ready > now);
            asked.push(ready);
        }
    }

    #[test]
    fn a_packet_is_asked_for_in_the_next_interval_and_leaves_in_a_later_one() {
        let mut modem = modem();
        let asked = until_ready(&mut modem, us(500), 1);
        // The interval of 2 ms, its moment for the request, the intervals until that of the grant.
        let request = asked[2];
        assert!((us(2_000)..us(4_000)).contains(&request), "{request}");
        let grant =
            Time::from_nanos((request.as_nanos() + 3_000_000).div_ceil(2_000_000) * 2_000_000);
        assert_eq!(asked.last(), Some(&grant));
        assert!([us(6_000), us(8_000)].contains(&grant), "{grant}");
        modem.took();
        assert_eq!(modem.ready_at(grant, 0, grant), grant, "nothing waits");
    }

    /// A packet on an idle line waits the delay, rounded up to whole intervals, and up to two more; at least
    /// one more where the delay is a whole number of them. `docs/links.md` says so.
    #[test]
    fn a_packet_on_an_idle_line_waits_one_to_two_intervals_beyond_the_delay() {
        for (delay_us, least, greatest) in [
            (3_000, 4_000, 8_000),
            (2_000, 4_000, 6_000),
            (4_000, 6_000, 8_000),
            (0, 2_000, 4_000),
            (5_000, 6_000, 10_000),
        ] {
            let params = GrantParams { interval_ns: 2_000_000, delay_ns: delay_us * 1_000 };
            let mut modem = Grants::new(params, Seed::new(1).stream("link grants"));
            // Every 20.007 ms one: at every moment of the intervals.
            let waits: Vec<u64> = (1..=4_000)
                .map(|number| {
                    let from = us(number * 20_007);
                    let leaves = *until_ready(&mut modem, from, 1).last().unwrap();
                    modem.took();
                    leaves.since(from).as_nanos() / 1_000
                })
                .collect();
            let (min, max) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
            assert!((least..least + 100).contains(&min), "delay {delay_us} us: {min} us at least");
            assert!((greatest - 100..=greatest).contains(&max), "delay {delay_us} us: {max} us");
        }
    }

    #[test]
    fn what_comes_meanwhile_is_asked_for_with_what_is_sent() {
        let mut one = modem();
        let first = *until_ready(&mut one, us(500), 1).last().unwrap();
        one.took();
        // Ten come right after it, and are asked for at a random moment; behind the first grant of theirs others wait.
        let second = *until_ready(&mut one, first + Duration::from_micros(1), 10).last().unwrap();
        assert_eq!(one.ready_at(second, 10, second), second);
        (0..10).for_each(|_| one.took());
        // In the next interval nothing of it is left; two that came within it wait as the ten did.
        let third = until_ready(&mut one, second + Duration::from_micros(1), 2);
        assert!(third.last().unwrap().since(second) > Duration::from_millis(4), "{third:?}");
        // Five wait at the start of the grant of two: the other three are asked for there, and leave 4 ms later.
        let mut other = modem();
        let request = [us(500), us(2_000)].map(|now| other.ready_at(now, 2, Time::ZERO))[1];
        other.look(request, 2);
        let grant = *until_ready(&mut other, request + Duration::from_nanos(1), 5).last().unwrap();
        assert_eq!(other.left, 2);
        assert_eq!(other.granted, [(grant + Duration::from_millis(4), 3)]);
    }

    #[test]
    fn a_queue_that_never_empties_keeps_the_line_busy() {
        let mut modem = modem();
        // 1 ms a packet: a hundred always wait.
        let mut now = *until_ready(&mut modem, us(0), 100).last().unwrap();
        let began = now;
        let mut free_at = Time::ZERO;
        let mut sent = 0;
        while sent < 1_000 {
            let ready = modem.ready_at(now, 100, free_at);
            if ready == now {
                modem.took();
                sent += 1;
                free_at = now + Duration::from_millis(1);
            } else {
                now = ready;
            }
        }
        assert_eq!(free_at.since(began), Duration::from_millis(1_000));
    }

    #[test]
    fn a_grant_that_is_not_needed_does_not_last() {
        let mut modem = modem();
        let grant = *until_ready(&mut modem, us(0), 5).last().unwrap();
        // All five were dropped meanwhile; much later one comes, which waits as if at first.
        assert_eq!(modem.ready_at(grant, 0, Time::ZERO), grant);
        let later = grant + Duration::from_millis(100);
        let asked = until_ready(&mut modem, later, 1);
        assert!(asked.last().unwrap().since(later) >= Duration::from_millis(3), "{asked:?}");
    }
}
