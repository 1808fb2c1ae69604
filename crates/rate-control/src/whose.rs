//! Whose queue it is, where both sides are loaded and no sample tells their ways apart.
//!
//! A line that is never idle carries evenly. What leaves a queue on egress is what entered it, at times that the delays tell: if these
//! make an even flow of an uneven one, they are that queue's. On ingress what arrives is what leaves the line: if that is even while
//! the delays change, and nothing waits in the shaper that would make it so, they are the queue's in front of it.

use weir_core::{Duration, Time};

use crate::contract::Side;
use crate::delays::Delays;
use crate::history::History;
use crate::quantities::{BitsPerSecond, Seconds};
use crate::side::FULL_PACKET_BITS;

/// The side whose line makes the delays of the latest samples above `quiet`; `None` if neither does surely, or both might.
///
/// `histories` are of egress and ingress, `granted` is what ingress let through; `presses` is whether ingress uses most of its rate.
/// The longest span tells that tells at all: a line that changed within a longer one was not even.
pub(crate) fn whose(
    delays: &Delays,
    histories: [&History; 2],
    granted: &History,
    presses: bool,
    quiet: Seconds,
    now: Time,
) -> Option<Side> {
    let all = queued(delays, quiet, now);
    let newest = all.last()?.arrived;
    let told = SPANS.into_iter().find_map(|span| {
        let from = all.partition_point(|sample| newest.since(sample.arrived) > span);
        told_by(&all[from..], histories, granted, presses)
    });
    match told? {
        Told::One(side) => Some(side),
        Told::Either => None,
    }
}

/// What some samples tell.
enum Told {
    /// It is the queue of this side.
    One(Side),
    /// It may be that of either.
    Either,
}

/// What these samples tell; `None` if nothing.
fn told_by(
    samples: &[Queued],
    histories: [&History; 2],
    granted: &History,
    presses: bool,
) -> Option<Told> {
    if !is_enough(samples) {
        return None;
    }
    let egress = Egress::of(samples, histories[0])?;
    let arrivals = Arrivals::of(samples, histories[1], granted)?;
    match (egress.leaves_evenly(), arrivals.come_of_queue(samples)) {
        (true, false) => Some(Told::One(Side::Egress)),
        (true, true) => Some(Told::Either),
        // What enters evenly may leave evenly, too, and who sends evenly by himself needs no queue for it.
        (false, true) => (presses || egress.is_refuted() || arrivals.exceed() || arrivals.fell())
            .then_some(Told::One(Side::Ingress)),
        (false, false) => {
            comes_of_none(samples, histories[1], granted)?.then_some(Told::One(Side::Egress))
        }
    }
}

/// A delay while there was a queue.
struct Queued {
    sent: Time,
    arrived: Time,
    excess: Seconds,
}

/// The latest samples without one at or below `quiet` among them, in the order in which they arrived.
fn queued(delays: &Delays, quiet: Seconds, now: Time) -> Vec<Queued> {
    let newest = delays.newest(SPANS[0], now).take_while(|sample| sample.total > quiet);
    let queued = |sample: &crate::source::Sample| Queued {
        sent: sample.sent,
        arrived: sample.arrived,
        excess: sample.total,
    };
    let mut samples: Vec<Queued> = newest.map(queued).collect();
    // Connections are heard at the next tick, one after another.
    samples.sort_by_key(|sample| sample.arrived);
    samples
}

/// What went out on egress, as it entered and as it would leave a queue that makes the delays.
struct Egress {
    entered: Flow,
    left: Flow,
}

impl Egress {
    fn of(samples: &[Queued], history: &History) -> Option<Self> {
        let first = samples.iter().map(|sample| sample.sent).min()?;
        let (mut entered, mut left) = (Vec::new(), Vec::new());
        for sample in samples {
            let bits = history.bytes_between(first, sample.sent)? * 8.0;
            let at = Seconds::from(sample.sent.since(first));
            entered.push((at, bits));
            left.push((at + sample.excess, bits));
        }
        Some(Self { entered: Flow::of(&entered)?, left: Flow::of(&left)? })
    }

    /// Whether what entered unevenly leaves evenly.
    fn leaves_evenly(&self) -> bool {
        self.left.is_even() && self.entered.unevenness >= self.left.chance() * DISTINCT
    }

    /// Whether no queue of a steady line lets it leave as it would.
    fn is_refuted(&self) -> bool {
        !self.left.is_even()
    }
}

/// What arrived on ingress from the first to the last of some samples.
struct Arrivals<'a> {
    history: &'a History,
    began: Time,
    flow: Flow,
    bits: f64,
    let_through: f64,
    /// Whether packets waited in the shaper meanwhile.
    waits: bool,
}

impl<'a> Arrivals<'a> {
    fn of(samples: &[Queued], history: &'a History, granted: &History) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let mut arrived = Vec::new();
        for sample in samples {
            let bits = history.bytes_between(first.arrived, sample.arrived)? * 8.0;
            arrived.push((Seconds::from(sample.arrived.since(first.arrived)), bits));
        }
        let span = last.arrived.since(first.arrived);
        let flow = Flow::of(&arrived)?;
        Some(Self {
            history,
            began: first.arrived,
            flow,
            bits: arrived.last()?.1,
            let_through: granted.bytes_between(first.arrived, last.arrived)? * 8.0,
            waits: history.held_back(span) >= SHAPED_SHARE,
        })
    }

    /// Whether less came than in one of the seconds before.
    fn fell(&self) -> bool {
        let second = |ago: u64| {
            let to = self.began.as_nanos().checked_sub(ago * SECOND.as_nanos())?;
            let from = to.checked_sub(SECOND.as_nanos())?;
            self.history.bytes_between(Time::from_nanos(from), Time::from_nanos(to))
        };
        let most = (0..SECONDS).filter_map(second).fold(0.0, f64::max);
        self.flow.rate < BitsPerSecond::of_bytes(most, SECOND.into()) * FELL_SHARE
    }

    /// Whether more comes than the shaper lets through, so that packets wait in it.
    fn exceed(&self) -> bool {
        self.waits && self.bits > self.let_through * MORE_THAN_LET_THROUGH
    }

    /// Whether they come of a queue: they are even though the delays change, and the shaper, in which nothing waits or less than
    /// comes is let through, does not make them so.
    fn come_of_queue(&self, samples: &[Queued]) -> bool {
        let is_shaped = self.waits && !self.exceed();
        !is_shaped && self.flow.is_even() && spread(samples) >= self.flow.chance() * DISTINCT
    }
}

/// Whether the delays fall by much while no more than is let through arrives, and that unevenly: as a queue on ingress drains, more
/// does. `None` if nothing is known.
fn comes_of_none(samples: &[Queued], history: &History, granted: &History) -> Option<bool> {
    let most = samples.iter().map(|sample| sample.excess).fold(Seconds::ZERO, Seconds::max);
    let falling = &samples[samples.iter().position(|sample| sample.excess >= most)?..];
    if !is_enough(falling) {
        return Some(false);
    }
    let arrivals = Arrivals::of(falling, history, granted)?;
    let Arrivals { flow, bits, let_through, waits, .. } = arrivals;
    let distinct = flow.chance() * DISTINCT;
    let fell = most - falling.last()?.excess;
    let surplus = flow.rate.time_for_bits(bits - let_through);
    Some(waits && flow.unevenness >= distinct && fell >= distinct && surplus < fell * DRAINED_SHARE)
}

/// Whether there are samples enough, over a span that is long enough.
fn is_enough(samples: &[Queued]) -> bool {
    let ends = samples.first().zip(samples.last());
    samples.len() >= MIN_SAMPLES
        && ends.is_some_and(|(first, last)| last.arrived.since(first.arrived) >= MIN_SPAN)
}

/// Standard deviation of the delays.
fn spread(samples: &[Queued]) -> Seconds {
    let count = samples.len() as f64;
    let mean = samples.iter().map(|sample| sample.excess.0).sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample.excess.0 - mean).powi(2));
    Seconds((squares.sum::<f64>() / count).sqrt())
}

/// A flow of bits, as a straight line through what had passed at some times.
#[derive(Clone, Copy, Debug)]
struct Flow {
    rate: BitsPerSecond,
    /// Root mean square of the times by which bits passed early or late.
    unevenness: Seconds,
}

impl Flow {
    /// The line of least squares; `None` if nothing flows or all is at one time.
    fn of(passed: &[(Seconds, f64)]) -> Option<Self> {
        let count = passed.len() as f64;
        let mean_at = passed.iter().map(|(at, _)| at.0).sum::<f64>() / count;
        let mean_bits = passed.iter().map(|(_, bits)| bits).sum::<f64>() / count;
        let (mut both, mut square) = (0.0, 0.0);
        for (at, bits) in passed {
            both += (at.0 - mean_at) * (bits - mean_bits);
            square += (at.0 - mean_at).powi(2);
        }
        let rate = both / square;
        if !rate.is_finite() || rate <= 0.0 {
            return None;
        }
        let off = |(at, bits): &(Seconds, f64)| (bits - mean_bits) / rate - (at.0 - mean_at);
        let squares = passed.iter().map(|one| off(one).powi(2)).sum::<f64>();
        Some(Self { rate: BitsPerSecond(rate), unevenness: Seconds((squares / count).sqrt()) })
    }

    /// Unevenness that packets and the times of probes make by chance.
    fn chance(self) -> Seconds {
        CHANCE + self.rate.time_for_bits(FULL_PACKET_BITS) / 2.0
    }

    fn is_even(self) -> bool {
        self.unevenness <= self.chance()
    }
}

/// Spans of the samples that are looked at, longest first.
const SPANS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_millis(500), Duration::from_millis(250)];
/// Span and number that they have at least.
const MIN_SPAN: Duration = Duration::from_millis(120);
const MIN_SAMPLES: usize = 6;
/// Times of probes, ticks and baselines that are wrong by so much.
const CHANCE: Seconds = Seconds(0.002);
/// Multiple of chance that is none.
const DISTINCT: f64 = 3.0;
/// Seconds that are looked at for what came before, and share of that below which it is less.
const SECONDS: u64 = 5;
const SECOND: Duration = Duration::from_secs(1);
const FELL_SHARE: f64 = 0.8;
/// Share of a queue that drained that at least comes beyond what is let through.
const DRAINED_SHARE: f64 = 0.5;
/// Multiple of what is let through that nobody sends because of that.
const MORE_THAN_LET_THROUGH: f64 = 1.2;
/// Share of the ticks at which packets wait in a shaper that makes what arrives even.
const SHAPED_SHARE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Delay, Measured, Traffic};

    const QUIET: Seconds = Seconds(0.005);

    /// What a side carried at the ticks of half a second: in bytes each ms, as a function of the time in ms.
    fn history(bytes_per_ms: impl Fn(u64) -> u64, waits: bool) -> History {
        let mut history = History::default();
        let mut bytes = 0;
        for ms in 0..=700 {
            if ms % 20 == 0 {
                let backlog_bytes = if waits { 9_000 } else { 0 };
                let traffic = Traffic { bytes, packets: bytes / 1500, backlog_bytes };
                history.note(Time::from_millis(ms), traffic);
            }
            bytes += bytes_per_ms(ms);
        }
        history
    }

    /// Probes every 20 ms over a path of 20 ms, with an excess of so many ms each.
    fn delays(excess_ms: impl Fn(u64) -> u64) -> Delays {
        let mut delays = Delays::default();
        let mut seen: Vec<_> = (0..24)
            .map(|probe| {
                let sent = 20 * probe;
                let extra = if sent < 100 { 0 } else { excess_ms(sent) };
                let rtt = Duration::from_millis(20 + extra);
                (Time::from_millis(sent), rtt)
            })
            .collect();
        seen.sort_by_key(|&(sent, rtt)| sent + rtt);
        for (sent, rtt) in seen {
            let delay = Delay { source: 0, sent, rtt, one_way: None, by: Measured::Answer };
            delays.add(&delay, QUIET, sent + rtt);
        }
        delays
    }

    fn told(delays: &Delays, sides: [&History; 2], granted: &History) -> Option<Side> {
        whose(delays, sides, granted, false, QUIET, Time::from_millis(700))
    }

    /// 2000 bytes/ms until 300 ms and 500 after, through a line of 1250: 60 ms of queue per 100 ms, less 60 after.
    fn uneven(ms: u64) -> u64 {
        if ms < 300 { 2_000 } else { 500 }
    }

    fn queue_of_uneven(sent: u64) -> u64 {
        let rising = 60 * (sent.min(300) - 100) / 100;
        (10 + rising).saturating_sub(60 * (sent.max(300) - 300) / 100)
    }

    #[test]
    fn what_enters_unevenly_and_leaves_evenly_is_the_queue_on_egress() {
        let (egress, delays) = (history(uneven, true), delays(queue_of_uneven));
        let level = history(|_| 1_000, true);
        assert_eq!(told(&delays, [&egress, &level], &level), Some(Side::Egress));
        // What arrives is as even, and nothing in the shaper makes it so: it may be either.
        let unshaped = history(|_| 1_000, false);
        assert_eq!(told(&delays, [&egress, &unshaped], &level), None);
    }

    #[test]
    fn what_arrives_evenly_beside_delays_that_change_is_the_queue_on_ingress() {
        let (egress, line) = (history(|_| 1_000, true), history(|_| 2_500, false));
        let granted = history(|_| 5_000, false);
        let moves = delays(|sent| 20 + sent % 200);
        assert_eq!(told(&moves, [&egress, &line], &granted), Some(Side::Ingress));
        // Neither tells anything as long as nothing changes.
        let stands = delays(|_| 40);
        assert_eq!(told(&stands, [&egress, &line], &granted), None);
        // The shaper makes it even if packets wait in it, unless more comes than it lets through.
        let waits = history(|_| 2_500, true);
        assert_eq!(told(&moves, [&egress, &waits], &waits), None);
        let less = history(|_| 1_500, true);
        assert_eq!(told(&moves, [&egress, &waits], &less), Some(Side::Ingress));
    }

    /// A queue of 200 ms drains while no more arrives than is let through, in two steps.
    #[test]
    fn what_drains_while_no_more_arrives_than_is_let_through_is_not_on_ingress() {
        let (egress, falls) =
            (history(|_| 100, true), delays(|sent| 220 - 200 * (sent - 100) / 500));
        let steps = |ms: u64| if ms < 450 { 3_000 } else { 600 };
        let (ingress, granted) = (history(steps, true), history(steps, true));
        assert_eq!(told(&falls, [&egress, &ingress], &granted), Some(Side::Egress));
        let more = history(|ms| steps(ms) * 2, true);
        assert_eq!(told(&falls, [&egress, &more], &granted), None);
    }

    #[test]
    fn few_samples_or_none_tell_nothing() {
        let level = history(|_| 1_000, false);
        let none = Delays::default();
        assert_eq!(told(&none, [&level, &level], &level), None);
        let late = delays(|sent| if sent < 380 { 0 } else { sent % 100 });
        assert_eq!(told(&late, [&level, &level], &level), None);
        // A side that carries nothing has no rate to be even.
        let (nothing, moves) = (history(|_| 0, false), delays(|sent| 20 + sent % 200));
        assert_eq!(told(&moves, [&nothing, &nothing], &level), None);
    }
}
