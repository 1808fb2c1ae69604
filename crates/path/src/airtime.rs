//! Opportunities to send in a wireless network: IEEE 802.11's distributed coordination, with aggregates.
//!
//! A station that has packets waits until the medium has been silent for the gap and for a number of slots that
//! it drew. Slots are counted while the medium is silent, and go on being counted after others have sent. Its
//! opportunity costs the overhead, then carries several packets back to back. One that fails costs the overhead
//! alone, as where RTS and CTS go ahead; the window from which slots are drawn then doubles.
//!
//! Stations of one medium that would start at the same instant do not collide: the one that did not send last goes
//! first. Collisions are among the failures.

use weir_core::{Draw, Duration, Rng, Time};
use weir_scenario::AirtimeParams;

/// The media of a path, by number.
#[derive(Debug, Default)]
pub(crate) struct Media {
    media: Vec<Medium>,
    names: Vec<Option<String>>,
}

/// Air that stations share.
#[derive(Clone, Copy, Debug, Default)]
struct Medium {
    busy_until: Time,
    /// Time in which slots were counted, until `busy_until`: silence beyond the gaps.
    counted: Duration,
    stations: u32,
    /// The station that sent last.
    last: Option<u32>,
}

/// A station at work.
#[derive(Clone, Debug)]
pub(crate) struct Airtime {
    params: AirtimeParams,
    /// Number of its medium, and its own on that.
    medium: usize,
    station: u32,
    rng: Rng,
    /// The window from which the next slots are drawn.
    window: u32,
    /// How much the medium will have counted when the station may start; `None` if it does not compete.
    starts_at_count: Option<Duration>,
    opportunity: Option<Opportunity>,
}

/// An opportunity that was won: packets are taken at the instant at which it starts.
#[derive(Clone, Copy, Debug)]
struct Opportunity {
    start: Time,
    /// When its last packet so far has left.
    until: Time,
    packets: u32,
}

impl Media {
    /// Adds a station to the medium of that name, or to a new one: the numbers of both.
    pub(crate) fn add_station(&mut self, name: Option<&str>) -> (usize, u32) {
        let known = self.names.iter().position(|one| name.is_some() && one.as_deref() == name);
        let medium = known.unwrap_or_else(|| {
            self.names.push(name.map(str::to_owned));
            self.media.push(Medium::default());
            self.names.len() - 1
        });
        self.media[medium].stations += 1;
        (medium, self.media[medium].stations - 1)
    }
}

impl Medium {
    /// How much is counted by `now`, if nobody sends until then.
    fn counted_by(&self, now: Time, gap: Duration) -> Duration {
        let silent = now.checked_since(self.busy_until).unwrap_or_default();
        self.counted + silent.saturating_sub(gap)
    }

    /// When `counted` will have been counted, if nobody sends until then.
    fn counts_at(&self, counted: Duration, gap: Duration) -> Time {
        self.busy_until + gap + counted.saturating_sub(self.counted)
    }

    /// Somebody sends from `start` to `end`.
    fn occupy(&mut self, start: Time, end: Time, gap: Duration) {
        self.counted = self.counted_by(start, gap);
        self.busy_until = end;
    }
}

impl Airtime {
    /// A station that was added to a medium and has nothing to send.
    pub(crate) const fn new(
        params: AirtimeParams,
        (medium, station): (usize, u32),
        rng: Rng,
    ) -> Self {
        let window = params.window;
        Self { params, medium, station, rng, window, starts_at_count: None, opportunity: None }
    }

    /// When the station is to be asked again: `now` if a packet may be taken. `waiting` says whether any waits;
    /// while some do it must be asked at the times that it says.
    pub(crate) fn ready_at(&mut self, now: Time, waiting: bool, media: &mut Media) -> Time {
        if !waiting || self.has_room(now) {
            return now;
        }
        let gap = Duration::from_nanos(self.params.gap_ns);
        loop {
            let start = self.start(&media.media[self.medium], now, gap);
            if start > now {
                return start;
            }
            let ready = now + Duration::from_nanos(self.params.overhead_ns);
            media.media[self.medium].occupy(now, ready, gap);
            self.starts_at_count = None;
            if self.params.failures > 0.0 && self.rng.unit() < self.params.failures {
                self.window = (2 * self.window + 1).min(self.params.max_window);
                continue;
            }
            media.media[self.medium].last = Some(self.station);
            self.window = self.params.window;
            self.opportunity = Some(Opportunity { start: now, until: ready, packets: 0 });
            return now;
        }
    }

    /// When the station starts, if nobody else does before.
    fn start(&mut self, medium: &Medium, now: Time, gap: Duration) -> Time {
        let count = match self.starts_at_count {
            Some(count) => count,
            None => {
                let behind = medium.stations > 1 && medium.last == Some(self.station);
                let backoff = self.backoff() + Duration::from_nanos(behind.into());
                *self.starts_at_count.insert(medium.counted_by(now, gap) + backoff)
            }
        };
        medium.counts_at(count, gap)
    }

    /// When a packet that is taken now starts on the air.
    pub(crate) fn starts(&self) -> Time {
        self.opportunity.expect("a packet is taken when the station is ready").until
    }

    /// A packet is on the air until `until`.
    pub(crate) fn took(&mut self, until: Time, media: &mut Media) {
        let won = self.opportunity.as_mut().expect("a packet is taken when the station is ready");
        won.packets += 1;
        won.until = until;
        media.media[self.medium].busy_until = until;
    }

    /// Whether the opportunity that starts at `now` takes another packet.
    fn has_room(&self, now: Time) -> bool {
        self.opportunity.is_some_and(|won| {
            let first = won.start + Duration::from_nanos(self.params.overhead_ns);
            won.start == now
                && won.packets < self.params.packets
                && won.until.since(first).as_nanos() <= self.params.longest_ns
        })
    }

    fn backoff(&mut self) -> Duration {
        let slots = self.rng.below(u64::from(self.window) + 1);
        Duration::from_nanos(slots * self.params.slot_ns)
    }
}
