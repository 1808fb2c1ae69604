//! Delays above the baselines of their sources, and answers that are overdue.
//!
//! Every source, be it a reflector, a server or a connection of the user's, has a baseline of its own: the
//! least that it showed within half a minute. What counts is the excess above it, in the middle of the
//! latest samples of different sources, so that one that lies or jumps is outvoted where there are three.

use std::collections::VecDeque;

use weir_core::{Duration, Time};

use crate::contract::{Delay, FIRST_CONNECTION, Measured, Side};
use crate::quantities::{Seconds, median};
use crate::recent::Recent;
use crate::source::{Sample, Source, part};

/// All sources and their latest samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    sources: Vec<Source>,
    recent: Recent,
    /// Probes without an answer: source and when it left.
    unanswered: VecDeque<(u32, Time)>,
    /// When those left to which no answer will come.
    lost: VecDeque<Time>,
    /// When the first probe left since anybody was heard; it is known for longer than its answer is waited for.
    waiting: Option<Time>,
    /// When the newest had left of which it is known that it arrived.
    answered: Option<Time>,
    /// When the newest probe had left that was answered, and when a source that is probed was last heard.
    probe_answered: Option<Time>,
    probes_heard: Option<Time>,
    /// What left before tells nothing.
    since: Time,
    /// Whether there was a load from the first moment on, so that baselines may be made of a queue.
    pub loaded_from_start: bool,
    /// When a baseline last fell, while that is so.
    fell: Option<Time>,
}

/// A probe whose answer is late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Overdue {
    /// When the probe left the shaper.
    pub sent: Time,
    /// Time since the answer was due: the least excess that it can have.
    pub by: Seconds,
}

/// How fast delays grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// When the probe or packet left from which on it is known.
    pub since: Time,
    /// Seconds of delay in each second, at least.
    pub per_second: f64,
}

impl Delays {
    /// A probe to `source` left at `now`.
    pub fn sent(&mut self, source: u32, now: Time) {
        self.unanswered.push_back((source, now));
        self.waiting.get_or_insert(now);
        while self.unanswered.front().is_some_and(|&(_, sent)| now.since(sent) > GIVE_UP) {
            self.unanswered.pop_front();
        }
    }

    /// A delay arrived at `now`. Differences count as jitter while delays are below `quiet`. Returns its excess if it counts.
    pub fn add(&mut self, delay: &Delay, quiet: Seconds, now: Time) -> Option<Seconds> {
        if delay.by == Measured::Acknowledgement
            && delay.one_way.is_none()
            && self.probes_answered(now)
        {
            return None;
        }
        self.waiting = None;
        self.answered = self.answered.max(Some(delay.sent));
        if delay.by == Measured::Arrival {
            return None;
        }
        let was_asked = delay.source < FIRST_CONNECTION && self.settle(delay, now);
        let is_told = delay.by != Measured::Echo;
        let middle = if is_told { self.middle_beside(delay, now) } else { None };
        let source = self.source(delay, now);
        source.probed |= was_asked;
        source.told |= is_told;
        let is_probe = source.probed;
        let before = source.rtt.get_ns();
        let sample = source.sample(delay, quiet, now);
        let fell = Seconds::from_nanos(before - source.rtt.get_ns());
        if let Some(middle) = middle {
            let off = (sample.total - middle).abs() > FAR + middle * FAR_SHARE;
            source.odd_share += (f64::from(u8::from(off)) - source.odd_share) * ODD_GAIN;
        }
        let odd_share = source.odd_share;
        if self.loaded_from_start && fell >= FELL_BY {
            self.fell = Some(now);
        }
        if is_probe {
            self.probe_answered = self.probe_answered.max(Some(delay.sent));
            self.probes_heard = Some(now);
        }
        if sample.sent < self.since {
            return None;
        }
        self.recent.push(sample, now);
        let votes = is_told && (is_probe || !self.probes_answered(now));
        (votes && odd_share <= self.max_odd_share(now)).then_some(sample.total)
    }

    /// Notes which probes `delay` answers, and which are lost since it overtook them; whether it is one's answer at all.
    fn settle(&mut self, delay: &Delay, now: Time) -> bool {
        let was_asked = self.unanswered.iter().any(|&(source, _)| source == delay.source);
        let Self { unanswered, lost, .. } = self;
        unanswered.retain(|&(source, sent)| {
            if source == delay.source && sent < delay.sent {
                lost.push_back(sent);
            }
            source != delay.source || sent > delay.sent
        });
        while lost.front().is_some_and(|&sent| now.since(sent) > KEEP) {
            lost.pop_front();
        }
        was_asked
    }

    /// The middle of the latest samples, where so many sources vote that one may be outvoted; `None` for a connection that has
    /// no vote beside probes.
    fn middle_beside(&self, delay: &Delay, now: Time) -> Option<Seconds> {
        if delay.source >= FIRST_CONNECTION && self.probes_answered(now) {
            return None;
        }
        let enough = self.voters(now).count() >= 3;
        Seconds::median(self.latest(KEEP, now).map(|sample| sample.total)).filter(|_| enough)
    }

    /// Whether a baseline that may be made of a queue fell within `span`.
    pub fn sank(&self, span: Duration, now: Time) -> bool {
        self.loaded_from_start && self.fell.is_some_and(|at| now.since(at) <= span)
    }

    /// The latest samples: one of each source that votes, at least three, none older than `age`.
    pub fn latest(&self, age: Duration, now: Time) -> impl Iterator<Item = &Sample> {
        let count = self.voters(now).count().clamp(3, MAX_VOTES);
        self.newest(age, now).take(count)
    }

    /// The latest samples; where there are none, and nobody answers probes, what acknowledgements that may have been kept back
    /// say at least: on a slow line with many connections there may be no others.
    pub fn told(&self, age: Duration, now: Time) -> impl Iterator<Item = Sample> {
        let latest = self.latest(age, now);
        let nothing = self.latest(age, now).next().is_none() && !self.probes_answered(now);
        let kept_back =
            self.recent.newest(age, false, now).filter(move |_| nothing).take(MAX_VOTES);
        latest.copied().chain(kept_back.map(Sample::at_least))
    }

    /// All samples of sources that vote which arrived within `age`, newest first.
    pub fn newest(&self, age: Duration, now: Time) -> impl Iterator<Item = &Sample> {
        let odd = self.max_odd_share(now);
        let odd_ones = self.sources.iter().filter(|source| source.odd_share > odd);
        let odd_ones: Vec<u32> = odd_ones.map(|source| source.id).collect();
        let told = self.recent.newest(age, self.probes_answered(now), now);
        told.filter(move |sample| {
            sample.delay.by != Measured::Echo && !odd_ones.contains(&sample.delay.source)
        })
    }

    /// Greatest share of odd samples of a source that is listened to.
    ///
    /// Where all sources are odd, the path is, and none lies.
    fn max_odd_share(&self, now: Time) -> f64 {
        let usual = median(self.voters(now).map(|source| source.odd_share)).unwrap_or(0.0);
        (ODD_FACTOR * usual).max(ODD_SHARE)
    }

    /// The sources that vote: those that are probed and answer or, if none does, all others that are heard
    /// of. A connection that began while there was a queue knows no better baseline than that.
    fn voters(&self, now: Time) -> impl Iterator<Item = &Source> {
        let probed = self.probes_answered(now);
        let active = self.sources.iter().filter(move |source| now.since(source.heard) <= ACTIVE);
        active.filter(move |source| source.probed || (!probed && source.told))
    }

    /// Whether any source that is probed answers.
    pub fn probes_answered(&self, now: Time) -> bool {
        self.probes_heard.is_some_and(|heard| now.since(heard) <= ACTIVE)
    }

    /// The share of `side` in an excess of `total`, by the latest samples that tell the two ways apart exactly;
    /// `None` if there are none, or they know of less than half of that excess.
    pub fn share(&self, side: Side, total: Seconds, now: Time) -> Option<f64> {
        let (mut sums, mut count) = ([Seconds::ZERO; 2], 0.0);
        let exact = self.recent.newest(SHARED, false, now).filter(|it| it.delay.by.is_exact());
        for ways in exact.filter_map(|sample| sample.by_side) {
            sums = [sums[0] + ways[0], sums[1] + ways[1]];
            count += 1.0;
        }
        let sum = sums[0] + sums[1];
        (sum > Seconds::ZERO && sum >= total * count * KNOWN_SHARE)
            .then(|| sums[side as usize] / sum)
    }

    /// The jitter of the middle source.
    pub fn jitter(&self, now: Time) -> Seconds {
        Seconds::median(self.voters(now).map(|source| source.jitter)).unwrap_or(Seconds::ZERO)
    }

    /// The baseline of the middle source; that of all that ever answered if none does now.
    pub fn base(&self, now: Time) -> Option<Seconds> {
        let base = |source: &Source| Seconds::from_nanos(source.rtt.get_ns());
        Seconds::median(self.voters(now).map(base))
            .or_else(|| Seconds::median(self.sources.iter().map(base)))
    }

    /// The oldest answer that is overdue, if at least [`OVERDUE_PROBES`] in a row wait for one.
    ///
    /// Any shorter row may simply be lost. An answer counts as overdue from `slack` on. None is where what left much later
    /// than probes that wait for an answer has arrived: nobody answers any more.
    pub fn overdue(&self, slack: Seconds, now: Time) -> Option<Overdue> {
        let mut unanswered = self.unanswered.iter().map(|&(_, sent)| sent);
        let silent = unanswered.find(|&sent| self.probe_answered.is_some_and(|last| sent > last));
        if silent.zip(self.answered).is_some_and(|(since, arrived)| arrived > since + SILENT) {
            return None;
        }
        let mut late = self.unanswered.iter().filter_map(|&(id, sent)| {
            if self.answered.is_some_and(|answered| sent <= answered) {
                return None;
            }
            let source = self.sources.iter().find(|source| source.id == id)?;
            let by = Seconds::from(now.since(sent)) - Seconds::from_nanos(source.rtt.get_ns());
            (by > slack).then_some(Overdue { sent, by })
        });
        let oldest = late.next()?;
        (late.count() + 1 >= OVERDUE_PROBES).then_some(oldest)
    }

    /// How fast delays grew from the newest sample to an answer that is overdue.
    pub fn growth(&self, overdue: Overdue, now: Time) -> Option<Growth> {
        let newest = self.newest(GROWS_WITHIN, now).next()?;
        let took = overdue.sent.checked_since(newest.sent).filter(|took| !took.is_zero())?;
        let per_second = (overdue.by - newest.total) / Seconds::from(took);
        Some(Growth { since: newest.sent, per_second })
    }

    /// Whether anybody is probed.
    pub fn is_probing(&self) -> bool {
        !self.unanswered.is_empty() || self.sources.iter().any(|source| source.probed)
    }

    /// How long nobody has answered although probes are out.
    pub fn silence(&self, now: Time) -> Option<Duration> {
        self.waiting.map(|asked| now.since(asked))
    }

    /// Number of lost probes that left within `age`: later ones to the same source were answered.
    pub fn lost_within(&self, age: Duration, now: Time) -> usize {
        let lost = self.lost.iter().rev().take_while(|&&sent| now.since(sent) <= age);
        lost.count()
    }

    /// Whether the delays of an idle line have stood above their baselines for [`IDLE_PATH`], hardly moving: its path has become
    /// longer.
    pub fn is_longer_path(&self, now: Time) -> bool {
        let samples: Vec<&Sample> = self.newest(IDLE_PATH, now).collect();
        let is_seen = samples.len() >= IDLE_PATH_SAMPLES
            && samples.last().is_some_and(|oldest| now.since(oldest.arrived) >= IDLE_PATH_SEEN);
        let range = Seconds::range(samples.iter().map(|sample| sample.total));
        let stands = |(least, most)| least >= LONGER && most - least <= least * LONGER_SHARE;
        is_seen && range.is_some_and(stands)
    }

    /// Takes the excess of all samples since `since` for a path that has become longer; returns by how much.
    pub fn reroute(&mut self, since: Time) -> Seconds {
        let Self { sources, recent, .. } = self;
        let samples = || recent.all().filter(move |sample| sample.arrived >= since);
        let Some(least) = samples().map(|sample| sample.total).reduce(Seconds::min) else {
            return Seconds::ZERO;
        };
        for source in sources {
            let own = || samples().map(|sample| sample.delay).filter(|d| d.source == source.id);
            let by = own().map(|delay| delay.rtt.as_nanos() as i64 - source.rtt.get_ns()).min();
            source.rtt.raise(by.unwrap_or((least.0 * 1e9) as i64));
            if let Some(ways) = &mut source.ways {
                for (way, base) in ways.iter_mut().enumerate() {
                    let now = own().filter_map(|d| d.one_way).map(|parts| part(parts, way)).min();
                    let now = now.unwrap_or(base.get_ns());
                    base.raise(now - base.get_ns());
                }
            }
        }
        self.recent.clear();
        least
    }

    /// Forgets what counted as jitter.
    pub fn forget_jitter(&mut self) {
        self.sources.iter_mut().for_each(|source| source.jitter = Seconds::ZERO);
    }

    /// Forgets what left before `now`, also what has not arrived yet: the line was out.
    pub fn begin_anew(&mut self, now: Time) {
        self.forget_recent();
        self.since = now;
    }

    /// Forgets what is under way, as after a pause in which nobody looked.
    pub fn forget_recent(&mut self) {
        self.recent.clear();
        self.unanswered.clear();
        self.waiting = None;
    }

    fn source(&mut self, delay: &Delay, now: Time) -> &mut Source {
        if let Some(place) = self.sources.iter().position(|source| source.id == delay.source) {
            return &mut self.sources[place];
        }
        if self.sources.len() == MAX_SOURCES {
            let oldest = (0..MAX_SOURCES).min_by_key(|&place| self.sources[place].heard);
            self.sources.swap_remove(oldest.expect("there are some"));
        }
        self.sources.push(Source::new(delay, now));
        self.sources.last_mut().expect("one was pushed")
    }
}

/// Fall of a baseline that counts: less is the luck of single packets.
const FELL_BY: Seconds = Seconds(0.001);
/// Time for which the delays of an idle line stand above their baselines where its path is longer; the part of it that must have been
/// seen, and samples of it: all but two of the probes of an idle line in that time.
pub(crate) const IDLE_PATH: Duration = Duration::from_millis(1_600);
const IDLE_PATH_SEEN: Duration = Duration::from_millis(1_200);
const IDLE_PATH_SAMPLES: usize = 6;
/// Excess at least of a longer path, and share of it by which it moves at most.
const LONGER: Seconds = Seconds(0.002);
const LONGER_SHARE: f64 = 0.3;
/// Age of a sample at most from which on it is known how fast delays grow.
const GROWS_WITHIN: Duration = Duration::from_millis(500);
/// Probes in a row without an answer that are not chance: with a loss of 20 % they are, once in 16 000.
const OVERDUE_PROBES: usize = 6;
/// Time after which a source without an answer has no vote: ten times the longest time between two probes.
const ACTIVE: Duration = Duration::from_secs(2);
/// Distance from the middle from which on a sample is far from it, where the middle itself is small.
///
/// A queue that grows three times as fast as time passes differs by no more between two probes.
const FAR: Seconds = Seconds(0.01);
/// Share of the middle that a sample may differ by on top of [`FAR`]: twice the middle is far.
const FAR_SHARE: f64 = 1.0;
/// Weight of a new sample in the share of odd ones: the last eight count for two thirds.
const ODD_GAIN: f64 = 1.0 / 8.0;
/// Share of a source's samples that may lie far from the middle; a source with more is not listened to.
const ODD_SHARE: f64 = 0.3;
/// Multiple of the usual share up to which a source is listened to, where that is more than [`ODD_SHARE`].
const ODD_FACTOR: f64 = 2.0;
/// Share of an excess that the samples of the two ways must explain to tell whose it is.
///
/// A connection that began in a queue takes that for its baseline, and knows only what is beyond.
const KNOWN_SHARE: f64 = 0.5;
/// How long the ways of a queue tell of one that is measured now.
const SHARED: Duration = Duration::from_millis(200);
/// Time for which samples are kept: longer than any feedback delay that is believed.
pub(crate) const KEEP: Duration = Duration::from_secs(4);
/// Time for which an answer is waited for; Linux' `ping` gives up after 10 s.
const GIVE_UP: Duration = Duration::from_secs(10);
/// By how much what arrived has left later than any probe that was answered where nobody answers them: in one queue they
/// keep their order.
const SILENT: Duration = Duration::from_secs(1);
/// Sources at most, the user's connections included; of more the longest silent makes room.
const MAX_SOURCES: usize = 96;
/// Sources that vote at most: more votes would take in older samples.
const MAX_VOTES: usize = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::OneWay;

    const QUIET: Seconds = Seconds(0.01);

    fn answer(source: u32, sent_ms: u64, rtt_ms: u64) -> (Delay, Time) {
        let rtt = Duration::from_millis(rtt_ms);
        let sent = Time::from_millis(sent_ms);
        (Delay { source, sent, rtt, one_way: None, by: Measured::Answer }, sent + rtt)
    }

    fn add(delays: &mut Delays, (delay, at): (Delay, Time)) {
        delays.add(&delay, QUIET, at);
    }

    fn nth(delays: &Delays, place: usize) -> Sample {
        *delays.recent.all().nth(place).unwrap()
    }

    fn totals(delays: &Delays, now_ms: u64) -> Vec<u64> {
        delays
            .latest(Duration::from_millis(500), Time::from_millis(now_ms))
            .map(|sample| sample.total.as_millis().round() as u64)
            .collect()
    }

    #[test]
    fn each_source_has_its_own_baseline() {
        let mut delays = Delays::default();
        for n in 0..3u64 {
            add(&mut delays, answer(n as u32, 20 * n, 10 * (n + 1)));
        }
        add(&mut delays, answer(0, 100, 12));
        add(&mut delays, answer(1, 110, 25));
        add(&mut delays, answer(2, 120, 37));
        assert_eq!(totals(&delays, 160), [7, 5, 2]);
        assert_eq!(delays.base(Time::from_millis(160)), Some(Seconds(0.02)));
    }

    #[test]
    fn overdue_takes_six_in_a_row() {
        let mut delays = Delays::default();
        add(&mut delays, answer(0, 0, 10));
        let ms = Time::from_millis;
        for n in 1..=6 {
            delays.sent(0, ms(20 * n));
        }
        assert_eq!(delays.overdue(Seconds(0.005), ms(130)), None);
        // The sixth left at 120 ms and was due at 130 ms.
        let overdue = delays.overdue(Seconds(0.005), ms(136)).unwrap();
        assert_eq!(overdue.sent, ms(20));
        assert!((overdue.by.0 - 0.106).abs() < 1e-9);
        // An answer to a later one: those before it are lost, not late.
        add(&mut delays, answer(0, 120, 20));
        assert_eq!(delays.overdue(Seconds(0.005), ms(141)), None);
    }

    /// A round trip of one of the user's connections, which are never announced.
    fn passive(sent_ms: u64, rtt_ms: u64, by: Measured) -> (Delay, Time) {
        let (delay, at) = answer(FIRST_CONNECTION, sent_ms, rtt_ms);
        (Delay { by, ..delay }, at)
    }

    #[test]
    fn what_may_have_been_kept_back_is_no_measure_of_a_queue() {
        let mut delays = Delays::default();
        add(&mut delays, passive(0, 20, Measured::Acknowledgement));
        add(&mut delays, passive(40, 60, Measured::Echo));
        add(&mut delays, passive(100, 25, Measured::Acknowledgement));
        add(&mut delays, passive(110, 60, Measured::Echo));
        assert_eq!(totals(&delays, 180), [5, 0]);
    }

    #[test]
    fn where_all_may_have_been_kept_back_they_say_at_least_so_much() {
        let mut delays = Delays::default();
        add(&mut delays, passive(0, 20, Measured::Acknowledgement));
        let told = |of: &Delays, now_ms| {
            let told = of.told(Duration::from_millis(500), Time::from_millis(now_ms));
            told.map(|sample| sample.total.as_millis().round() as u64).collect::<Vec<_>>()
        };
        add(&mut delays, passive(40, 75, Measured::Echo));
        assert_eq!(told(&delays, 200), [0], "of what came at once");
        add(&mut delays, passive(900, 75, Measured::Echo));
        add(&mut delays, passive(930, 50, Measured::Echo));
        assert_eq!(told(&delays, 1_000), [0, 15]);
    }

    #[test]
    fn acknowledgements_are_listened_to_where_nobody_answers_probes() {
        let mut delays = Delays::default();
        delays.sent(0, Time::ZERO);
        add(&mut delays, answer(0, 0, 10));
        add(&mut delays, passive(0, 20, Measured::Acknowledgement));
        assert_eq!(delays.sources.len(), 1);
        add(&mut delays, passive(2_100, 20, Measured::Acknowledgement));
        assert_eq!(delays.sources.len(), 2);
    }

    #[test]
    fn nobody_is_overdue_where_all_have_fallen_silent() {
        let mut delays = Delays::default();
        let ms = Time::from_millis;
        for n in 0..=100 {
            delays.sent(0, ms(20 * n));
        }
        add(&mut delays, answer(0, 0, 10));
        let overdue = |of: &Delays| of.overdue(Seconds(0.005), ms(2_000)).map(|late| late.sent);
        // What left later has arrived: those before are lost, and the others may be late.
        add(&mut delays, passive(1_015, 40, Measured::Echo));
        assert_eq!(overdue(&delays), Some(ms(1_020)));
        // A second is more than a queue can have turned around.
        add(&mut delays, passive(1_021, 40, Measured::Echo));
        assert_eq!(overdue(&delays), None);
        add(&mut delays, answer(0, 1_020, 50));
        assert_eq!(overdue(&delays), Some(ms(1_040)));
    }

    #[test]
    fn silence_begins_with_the_first_probe_that_nobody_answers() {
        let mut delays = Delays::default();
        let ms = Time::from_millis;
        assert_eq!(delays.silence(ms(50)), None);
        delays.sent(0, ms(0));
        add(&mut delays, answer(0, 0, 10));
        assert_eq!(delays.silence(ms(900)), None);
        delays.sent(0, ms(1000));
        assert_eq!(delays.silence(ms(1500)), Some(Duration::from_millis(500)));
        // However seldom anybody is asked, it ends with an answer only.
        delays.sent(0, ms(61_000));
        assert_eq!(delays.silence(ms(62_000)), Some(Duration::from_secs(61)));
        add(&mut delays, answer(0, 61_000, 10));
        assert_eq!(delays.silence(ms(62_000)), None);
    }

    fn with_ways(sent_ms: u64, there: i64, back: i64, offset: i64) -> (Delay, Time) {
        let (mut delay, at) = answer(0, sent_ms, (there + back) as u64);
        let ns = 1_000_000;
        delay.one_way =
            Some(OneWay { there_ns: (there + offset) * ns, back_ns: (back - offset) * ns });
        (delay, at)
    }

    #[test]
    fn the_ways_are_told_apart_whatever_the_other_clock_says() {
        let mut delays = Delays::default();
        add(&mut delays, with_ways(0, 5, 5, -7_000));
        add(&mut delays, with_ways(50, 5, 25, -7_000));
        let sample = nth(&delays, 1);
        assert_eq!(
            [Side::Egress, Side::Ingress].map(|side| sample.of(side)),
            [0.0, 0.02].map(Seconds)
        );
    }

    /// Two clocks that drift by 50 ppm are 3 ms apart after a minute without a probe: that is no way's queue.
    #[test]
    fn the_ways_begin_anew_after_a_pause() {
        let mut delays = Delays::default();
        add(&mut delays, with_ways(0, 5, 5, 0));
        add(&mut delays, with_ways(60_000, 5, 5, 3));
        add(&mut delays, with_ways(60_100, 5, 15, 3));
        assert_eq!(delays.recent.all().last().unwrap().by_side, Some([0.0, 0.01].map(Seconds)));
    }

    /// 10 ms there and 30 ms back, twice: a quarter and three quarters. They tell of an excess of which they know half.
    #[test]
    fn an_excess_is_shared_as_the_ways_that_are_known() {
        let mut delays = Delays::default();
        add(&mut delays, with_ways(0, 5, 5, -7_000));
        for sent in [250, 260] {
            add(&mut delays, with_ways(sent, 15, 35, -7_000));
        }
        let now = Time::from_millis(315);
        let share = |side, total| delays.share(side, Seconds(total), now);
        assert!((share(Side::Egress, 0.04).unwrap() - 0.25).abs() < 1e-9);
        assert!((share(Side::Ingress, 0.04).unwrap() - 0.75).abs() < 1e-9);
        assert!(share(Side::Egress, 0.079).is_some());
        assert_eq!(share(Side::Egress, 0.081), None);
    }

    #[test]
    fn what_may_have_been_kept_back_shares_nothing_and_what_arrived_after_a_pause_is_no_delay() {
        let mut delays = Delays::default();
        let heard = |sent, there, by| {
            let (delay, at) = with_ways(sent, there, 5, 0);
            (Delay { source: FIRST_CONNECTION, by, ..delay }, at)
        };
        add(&mut delays, heard(0, 5, Measured::Acknowledgement));
        add(&mut delays, heard(10, 45, Measured::Echo));
        let share = |of: &Delays| of.share(Side::Egress, Seconds(0.04), Time::from_millis(150));
        assert_eq!(share(&delays), None);
        add(&mut delays, heard(20, 85, Measured::Arrival));
        assert_eq!((share(&delays), delays.recent.all().count()), (None, 2));
        assert_eq!(delays.answered, Some(Time::from_millis(20)), "but it arrived");
        delays.forget_recent();
        add(&mut delays, heard(30, 45, Measured::Acknowledgement));
        assert_eq!(share(&delays), Some(1.0));
    }

    /// The jitter moves by a sixteenth of the way to each difference, as long as there is no queue.
    #[test]
    fn jitter_is_the_mean_difference_while_it_is_quiet() {
        let mut delays = Delays::default();
        let mut jitter_after = |sent: u64, rtt: u64| {
            let (delay, at) = answer(0, sent, rtt);
            delays.add(&delay, QUIET, at);
            (delays.jitter(at).0 * 1e9).round() as u64
        };
        assert_eq!(jitter_after(0, 20), 0);
        assert_eq!(jitter_after(100, 24), 250_000, "4 ms more");
        assert_eq!(jitter_after(200, 22), 359_375, "2 ms less: 250 + 1750 / 16 us");
        assert_eq!(jitter_after(300, 30), 359_375, "10 ms above the baseline are not quiet");
        assert_eq!(jitter_after(400, 22), 359_375, "nor is the way down");
        assert_eq!(jitter_after(500, 22), 336_914, "no difference: a sixteenth less");
    }

    #[test]
    fn a_clock_that_is_set_is_no_delay() {
        let mut delays = Delays::default();
        add(&mut delays, with_ways(0, 5, 5, 0));
        // An hour forward: one way seems to take an hour more.
        add(&mut delays, with_ways(50, 5, 5, 3_600_000));
        assert_eq!(nth(&delays, 1).total, Seconds::ZERO);
        assert_eq!(nth(&delays, 1).by_side, None);
        // From there on the ways are told apart again.
        add(&mut delays, with_ways(100, 15, 5, 3_600_000));
        assert_eq!(nth(&delays, 2).by_side, Some([0.01, 0.0].map(Seconds)));
    }

    #[test]
    fn a_longer_path_is_a_new_baseline() {
        let mut delays = Delays::default();
        add(&mut delays, answer(0, 0, 10));
        add(&mut delays, answer(1, 10, 20));
        add(&mut delays, answer(0, 100, 41));
        add(&mut delays, answer(0, 150, 43));
        assert!((delays.reroute(Time::from_millis(140)).0 - 0.031).abs() < 1e-9);
        add(&mut delays, answer(0, 200, 43));
        add(&mut delays, answer(1, 220, 53));
        assert_eq!(totals(&delays, 300), [2, 2]);
    }
}
