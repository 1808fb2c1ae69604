//! Capacity of the line, measured while it has a queue.
//!
//! A line that is never idle carries between the exits of two packets exactly what entered between them.
//! On egress what enters is what the shaper let go, and a probe that left at `t` with an excess `q` exits at
//! `t + q`, up to a constant. On ingress what the line carried is what arrived at the shaper.

use weir_core::{Duration, Time};

use crate::contract::Side;
use crate::delays::{Delays, Overdue};
use crate::history::History;
use crate::pauses::Pauses;
use crate::quantities::{BitsPerSecond, Seconds};
use crate::source::Sample;

/// One measurement of a line's capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The rate that the line carried.
    pub rate: BitsPerSecond,
    /// Growth of the queue meanwhile.
    pub grown: Seconds,
}

/// Window of samples from which the capacity is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    /// Greatest span of the samples, back from the last one.
    pub span: Duration,
    /// Queue at or below which a sample is the first of the window: the line was idle before.
    pub quiet: Seconds,
    /// Time before which no sample counts.
    pub since: Option<Time>,
    /// Whether the load has only just begun, so that the line was idle before the queue, and may be so after it.
    pub just_begun: bool,
    /// Times in which the line carried nothing, which do not count.
    pub pauses: &'a Pauses,
}

/// The line's rate over the samples of `window`; `None` if they span too little to tell.
pub(crate) fn measure(
    side: Side,
    delays: &Delays,
    history: &History,
    window: Window<'_>,
    now: Time,
) -> Option<Measured> {
    let last = last_of_window(side, delays, &window, now)?;
    let (mut first, mut second) = (last, last);
    let samples = delays.newest(LOOK_BACK, now).skip_while(|&sample| !std::ptr::eq(sample, last));
    for sample in samples.skip(1) {
        if window.since.is_some_and(|since| sample.sent < since) {
            break;
        }
        (first, second) = (sample, first);
        // One without a queue in front is the last that may be used: the line was idle before.
        let span = last.sent.checked_since(sample.sent)?;
        if sample.of(side) <= window.quiet || span >= window.span {
            break;
        }
    }
    let busy_from = match side {
        Side::Ingress if window.just_begun => queue_began(second).max(first.arrived),
        _ => first.arrived,
    };
    between(side, first, last, busy_from, window.pauses, history)
}

/// The latest sample; on ingress, where a load has only just begun, the latest one that had a queue in front, if it is recent.
fn last_of_window<'a>(
    side: Side,
    delays: &'a Delays,
    window: &Window<'_>,
    now: Time,
) -> Option<&'a Sample> {
    let queued = |sample: &&Sample| sample.of(side) > window.quiet;
    let queued = match side {
        Side::Ingress if window.just_begun => delays.newest(QUEUED_WITHIN, now).find(queued),
        _ => None,
    };
    queued.or_else(|| delays.newest(LOOK_BACK, now).next())
}

/// When the queue began, at the latest, that a sample found on its way in: all the time since it arrived the line was busy.
fn queue_began(sample: &Sample) -> Time {
    let waited = sample.of(Side::Ingress).to_duration();
    sample.arrived.saturating_sub(waited)
}

/// The most that the line can carry, as told by an answer that is overdue; `None` if it tells nothing.
///
/// On egress the probe has not left the queue yet: what entered since the last one that was answered took at
/// least until now. On ingress what arrived since the answer was due is what the line carries.
pub(crate) fn at_most(
    side: Side,
    delays: &Delays,
    history: &History,
    overdue: Overdue,
    now: Time,
) -> Option<BitsPerSecond> {
    let (from, to, took) = match side {
        Side::Egress => {
            let last = delays.newest(LOOK_BACK, now).find(|sample| sample.sent < overdue.sent)?;
            let sent = Seconds::from(overdue.sent.since(last.sent));
            (last.sent, overdue.sent, sent + overdue.by - last.of(side))
        }
        Side::Ingress => {
            let due = now.as_nanos().saturating_sub(overdue.by.to_duration().as_nanos());
            (Time::from_nanos(due), now, overdue.by)
        }
    };
    let bytes = history.bytes_between(from, to)?;
    (took >= MIN_SPAN && bytes >= MIN_BYTES).then(|| BitsPerSecond::of_bytes(bytes, took))
}

/// The least that the line carries, whatever its delays are made of; `None` if the samples tell nothing.
///
/// The most of what several spans prove counts, the length of the present `step` of probing among them; `error` is time by which
/// a baseline may be wrong.
///
/// On egress all that entered until a probe left has crossed the line, but for what the probe waited for: at most its whole
/// excess. On ingress all that arrived had left the line at most an excess earlier, if the path became shorter meanwhile.
pub(crate) fn at_least(
    side: Side,
    delays: &Delays,
    history: &History,
    error: Seconds,
    step: Duration,
    now: Time,
) -> Option<BitsPerSecond> {
    let (newest, newest_waited) = longest_until(now, side, delays, now)?;
    let spans = PROOF_SPANS.into_iter().chain([step.max(PROOF_SPANS[0])]);
    let proven = spans.filter_map(|span| {
        let (from, to, took) = match side {
            Side::Egress => {
                let from = Time::from_nanos(newest.sent.as_nanos().checked_sub(span.as_nanos())?);
                (from, newest.sent, Seconds::from(span) + newest_waited)
            }
            Side::Ingress => {
                let from =
                    Time::from_nanos(newest.arrived.as_nanos().checked_sub(span.as_nanos())?);
                let (first, waited) = longest_until(from, side, delays, now)?;
                let took = Seconds::from(newest.arrived.since(first.arrived)) + waited;
                (first.arrived, newest.arrived, took)
            }
        };
        Some(BitsPerSecond::of_bytes(history.bytes_between(from, to)?, took + error))
    });
    proven.reduce(BitsPerSecond::max)
}

/// The last sample that arrived until `until`, and the longest excess of the last ones until then: one each of three sources.
fn longest_until(
    until: Time,
    side: Side,
    delays: &Delays,
    now: Time,
) -> Option<(&Sample, Seconds)> {
    let samples = || delays.newest(LOOK_BACK, now).skip_while(move |one| one.arrived > until);
    let longest = samples().take(PROOF_SAMPLES).map(|sample| sample.of(side));
    Some((samples().next()?, longest.reduce(Seconds::max)?))
}

/// The line's rate between the exits of two probes; on ingress from `busy_from` on.
fn between(
    side: Side,
    first: &Sample,
    last: &Sample,
    busy_from: Time,
    pauses: &Pauses,
    history: &History,
) -> Option<Measured> {
    let (from, to, took) = match side {
        Side::Egress => {
            let sent = last.sent.checked_since(first.sent)?;
            (first.sent, last.sent, Seconds::from(sent) + last.of(side) - first.of(side))
        }
        Side::Ingress => {
            let took = last.arrived.checked_since(busy_from)?;
            (busy_from, last.arrived, Seconds::from(took))
        }
    };
    let bytes = history.bytes_between(from, to)?;
    // Gaps in what comes in may be another connection's.
    let took = took - pauses.within(busy_from, last.arrived).min(took * MAX_PAUSED_SHARE);
    let grown = last.of(side) - first.of(side);
    (took >= MIN_SPAN && bytes >= MIN_BYTES)
        .then(|| Measured { rate: BitsPerSecond::of_bytes(bytes, took), grown })
}

/// Samples of which the longest bounds what waited: one each of three sources.
const PROOF_SAMPLES: usize = 3;
/// Spans over which what crossed proves what the line carries.
const PROOF_SPANS: [Duration; 4] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// Share of a time over which the line is measured that counts as paused at most.
const MAX_PAUSED_SHARE: f64 = 0.75;
/// Two ticks of the counters.
const MIN_SPAN: Seconds = Seconds(0.04);
/// Three full packets: with one more or less at the ends it is right within a third.
const MIN_BYTES: f64 = 4_500.0;
/// Time within which the last sample with a queue in front is to be found: half of that between two probes of an idle line.
const QUEUED_WITHIN: Duration = Duration::from_millis(100);
/// Time for which samples are looked back at: longer than any window.
const LOOK_BACK: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Delay, Measured, Traffic};

    const WINDOW: Window<'_> = Window {
        span: Duration::from_millis(200),
        quiet: Seconds(0.002),
        since: None,
        just_begun: false,
        pauses: &NO_PAUSES,
    };
    static NO_PAUSES: Pauses = Pauses::new();

    /// Jitter up to this counts.
    const QUIET: Seconds = Seconds(0.005);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A line of 8 Mbit/s, into which 16 Mbit/s go from 100 ms on, and probes every 20 ms over 10 ms.
    fn filling(side: Side) -> (Delays, History) {
        let (mut delays, mut history) = (Delays::default(), History::default());
        for tick in 0..=20 {
            let now = 20 * tick;
            let after = u64::from(now > 100) * (now - 100.min(now));
            let bytes = match side {
                Side::Egress => 500 * now.min(100) + 2_000 * after,
                Side::Ingress => 500 * now.min(100) + 1_000 * after,
            };
            history.note(ms(now), Traffic { bytes, packets: bytes / 1000, backlog_bytes: 0 });
            // Half of what enters stays.
            let sent = now;
            let queue = u64::from(sent > 100) * (sent - 100.min(sent));
            if sent + 10 + queue <= 400 {
                let rtt = Duration::from_millis(10 + queue);
                let delay =
                    Delay { source: 0, sent: ms(sent), rtt, one_way: None, by: Measured::Answer };
                delays.add(&delay, QUIET, ms(sent) + rtt);
            }
        }
        (delays, history)
    }

    /// The probe that left at 160 ms waits behind 1000 bytes/ms that are too much; at 400 ms it is 230 ms late.
    #[test]
    fn an_answer_that_is_out_tells_what_the_line_carries_at_most() {
        let at_most = |side, by: f64| {
            let (mut delays, mut history) = (Delays::default(), History::default());
            for tick in 0..=20 {
                history.note(ms(20 * tick), Traffic { bytes: 20_000 * tick, ..Traffic::default() });
            }
            let rtt = Duration::from_millis(10);
            let delay =
                Delay { source: 0, sent: ms(100), rtt, one_way: None, by: Measured::Answer };
            delays.add(&delay, QUIET, ms(110));
            let overdue = Overdue { sent: ms(160), by: Seconds(by) };
            at_most(side, &delays, &history, overdue, ms(400)).map(|most| most.0.round())
        };
        // 60 000 bytes entered between the probes, and took 60 ms + 230 ms at least.
        assert_eq!(at_most(Side::Egress, 0.23), Some((480_000.0 / 0.29_f64).round()));
        // 230 000 bytes arrived since the answer was due.
        assert_eq!(at_most(Side::Ingress, 0.23), Some(8_000_000.0));
        assert_eq!(at_most(Side::Ingress, 0.03), None, "too short");
    }

    /// What crossed proves a rate, whatever the delays are made of; the longest that a probe waited is taken off.
    #[test]
    fn what_crossed_proves_what_a_line_carries_at_least() {
        let least = |later_ms: u64, error: f64, span_ms: u64| {
            let (mut delays, mut history) = (Delays::default(), History::default());
            for tick in 0..=150 {
                history.note(ms(20 * tick), Traffic { bytes: 20_000 * tick, ..Traffic::default() });
            }
            // 10 ms each at first, so that these are the baselines.
            for (from, rtt_ms) in [(100, 10), (2_800, later_ms)] {
                for source in 0..3 {
                    let (sent, rtt) =
                        (ms(from + 20 * u64::from(source)), Duration::from_millis(rtt_ms));
                    let delay = Delay { source, sent, rtt, one_way: None, by: Measured::Answer };
                    delays.add(&delay, QUIET, sent + rtt);
                }
            }
            let span = Duration::from_millis(span_ms);
            at_least(Side::Egress, &delays, &history, Seconds(error), span, ms(3_000))
                .map(BitsPerSecond::as_mbit)
        };
        let is = |found: Option<f64>, mbit: f64| (found.unwrap() / mbit - 1.0).abs() < 1e-9;
        // 8 Mbit/s crossed for 2 s until the last probe left: all of it is proven, if nothing waited.
        assert!(is(least(10, 0.0, 0), 8.0));
        // What waited may be 50 ms of the queue, and the times may be wrong by 50 ms more.
        assert!(is(least(60, 0.0, 0), 8.0 * 2.0 / 2.05));
        assert!(is(least(60, 0.05, 0), 8.0 * 2.0 / 2.1));
        // A longer span proves more.
        assert!(is(least(60, 0.0, 2_500), 8.0 * 2.5 / 2.55));
        let (delays, history) = (Delays::default(), History::default());
        let nothing =
            at_least(Side::Egress, &delays, &history, Seconds::ZERO, Duration::ZERO, ms(9));
        assert_eq!(nothing, None);
    }

    #[test]
    fn what_a_line_carries_is_known_while_its_queue_grows() {
        for side in Side::ALL {
            let (delays, history) = filling(side);
            let found = measure(side, &delays, &history, WINDOW, ms(400)).unwrap();
            assert!((found.rate.as_mbit() / 8.0 - 1.0).abs() < 0.01, "{side:?}: {found:?}");
            // Seven of the ten probes since 100 ms are back, each 20 ms later than the one before.
            assert!((found.grown.0 - 0.14).abs() < 1e-9, "{side:?}: {found:?}");
        }
    }

    /// Of 400 ms that the line is busy it carries nothing for 80: it is as fast as in the others.
    #[test]
    fn a_pause_of_the_line_makes_it_no_slower() {
        let found = |side, is_known| {
            let (mut delays, mut history) = (Delays::default(), History::default());
            let mut pauses = Pauses::new();
            let (mut entered, mut arrived) = (0, 0);
            for tick in 0..=55u64 {
                entered += 20_000;
                arrived += if (40..44).contains(&tick) { 0 } else { 20_000 };
                let bytes = if side == Side::Egress { entered } else { arrived };
                history.note(ms(20 * tick), Traffic { bytes, ..Traffic::default() });
                if is_known {
                    pauses.note(ms(20 * tick), arrived / 1_000);
                }
            }
            // Up, what enters in the pause waits behind it.
            let queues: [u64; 5] =
                if side == Side::Egress { [0, 30, 110, 110, 110] } else { [0, 30, 100, 30, 30] };
            for (sent, queue) in [660, 700, 780, 900, 980].into_iter().zip(queues) {
                let rtt = Duration::from_millis(10 + queue);
                let delay =
                    Delay { source: 0, sent: ms(sent), rtt, one_way: None, by: Measured::Answer };
                delays.add(&delay, QUIET, ms(sent) + rtt);
            }
            let window = Window { span: Duration::from_millis(400), pauses: &pauses, ..WINDOW };
            measure(side, &delays, &history, window, ms(1_100)).unwrap().rate.as_mbit()
        };
        for side in Side::ALL {
            assert!(
                (found(side, true) / 8.0 - 1.0).abs() < 0.09,
                "{side:?}: {}",
                found(side, true)
            );
            assert!(found(side, false) < 8.0 * 0.8, "{side:?}: {}", found(side, false));
        }
    }

    /// Gaps of another connection over the whole time of a measurement make it no more than four times as much.
    #[test]
    fn a_quarter_of_a_measurement_counts_at_least() {
        let (mut delays, mut history, mut pauses) =
            (Delays::default(), History::default(), Pauses::new());
        for tick in 0..=55u64 {
            history.note(ms(20 * tick), Traffic { bytes: 20_000 * tick, ..Traffic::default() });
            pauses.note(ms(20 * tick), 20 * tick.min(43));
        }
        for (sent, queue) in [(780, 30), (860, 30), (980, 30)] {
            let rtt = Duration::from_millis(10 + queue);
            let delay =
                Delay { source: 0, sent: ms(sent), rtt, one_way: None, by: Measured::Answer };
            delays.add(&delay, QUIET, ms(sent) + rtt);
        }
        let window = Window { pauses: &pauses, quiet: Seconds(-1.0), ..WINDOW };
        let found =
            measure(Side::Egress, &delays, &history, window, ms(1_060)).unwrap().rate.as_mbit();
        assert!((found / 32.0 - 1.0).abs() < 0.01, "{found}");
    }

    /// The load begins at 200 ms and is over at 300 ms; the line carries 1000 bytes/ms while it has a queue, from 210 to 340 ms.
    #[test]
    fn what_a_load_measures_that_has_just_begun_is_measured_while_the_line_was_busy() {
        let (mut delays, mut history) = (Delays::default(), History::default());
        for tick in 0..=20 {
            let busy = (20 * tick).clamp(210, 340) - 210;
            let traffic = Traffic { bytes: 1_000 * busy, packets: busy, backlog_bytes: 0 };
            history.note(ms(20 * tick), traffic);
        }
        // Probes of an idle line are far apart: 200 ms until there is a load, and again once it is over.
        for (sent, queue) in [(100, 0), (240, 20), (260, 30), (280, 30), (300, 20), (350, 0)] {
            let rtt = Duration::from_millis(10 + queue);
            let delay =
                Delay { source: 0, sent: ms(sent), rtt, one_way: None, by: Measured::Answer };
            delays.add(&delay, QUIET, ms(sent) + rtt);
        }
        let found = |just_begun| {
            let span = Duration::from_millis(600);
            let window = Window { span, just_begun, ..WINDOW };
            measure(Side::Ingress, &delays, &history, window, ms(360)).unwrap().rate.as_mbit()
        };
        assert!((found(true) / 8.0 - 1.0).abs() < 0.01, "{}", found(true));
        assert!(found(false) < 8.0 * 0.6, "{}: nothing to be mended", found(false));
    }

    #[test]
    fn what_lies_before_the_window_does_not_count() {
        let (delays, history) = filling(Side::Egress);
        let found = |since| {
            let window = Window { since: Some(ms(since)), ..WINDOW };
            measure(Side::Egress, &delays, &history, window, ms(400))
        };
        // The last probe that is back left at 240 ms: three are left, and then two, which span too little.
        assert!((found(200).unwrap().grown.0 - 0.04).abs() < 1e-9);
        assert_eq!(found(230), None);
    }

    #[test]
    fn too_little_tells_nothing() {
        let (_, history) = filling(Side::Egress);
        let mut delays = Delays::default();
        let found = |seen: &Delays, now| measure(Side::Egress, seen, &history, WINDOW, now);
        assert_eq!(found(&delays, ms(400)), None);
        for sent in [200, 210] {
            let rtt = Duration::from_millis(10);
            delays.add(
                &Delay { source: 0, sent: ms(sent), rtt, one_way: None, by: Measured::Answer },
                QUIET,
                ms(sent + 10),
            );
            // One sample, and then two that are 10 ms apart.
            assert_eq!(found(&delays, ms(sent + 10)), None);
        }
    }
}
