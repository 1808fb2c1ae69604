//! Trials of an excess: a queue of this side falls as the rate is lowered, a foreign delay does as it likes.
//!
//! While the rate stands below what the line was just measured to carry, a queue must be gone after the time
//! that the difference takes. An excess that is still there, and did not grow either as that of a slower line
//! would, failed the trial. The rate is halved and the trial repeated, since a line may have become just as slow
//! as the first rate; no line follows two rates. What fails both is the delay of something else.

use weir_core::{Duration, Time};

use super::episode::MIN_DRAIN_SHARE;
use super::probing::STEP_SEEN;
use super::{MIN_LOAD, SideControl, View};
use crate::capacity::Measured;
use crate::contract::{Reason, Side, State};
use crate::quantities::{BitsPerSecond, Seconds};
use crate::source::Sample;

/// One trial within an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// When it began.
    since: Time,
    /// Excess when it began.
    excess: Seconds,
    /// What the line was known to carry when it began; `None` before the first trial of an episode.
    capacity: Option<BitsPerSecond>,
    /// Trials in a row that the excess failed.
    pub failed: u32,
    /// Whether any trial of the episode found a queue.
    pub proven: bool,
    /// Greatest excess that failed a trial.
    pub foreign: Seconds,
    /// What the line carried in the last trial that the excess failed, if the excess was a queue for all that.
    carried: Option<BitsPerSecond>,
    /// Capacity to return to if the excess is foreign: from before the episode, or from what was surely a queue.
    pub sound: Option<BitsPerSecond>,
}

impl Default for Trial {
    /// No trial.
    fn default() -> Self {
        Self {
            since: Time::ZERO,
            excess: Seconds::ZERO,
            capacity: None,
            failed: 0,
            proven: false,
            foreign: Seconds::ZERO,
            carried: None,
            sound: None,
        }
    }
}

/// What the samples of a trial say.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Finding {
    /// Not enough yet.
    Open,
    /// The excess is a queue of this side's.
    Queue,
    /// Probes are lost: it may be a full buffer.
    Overrun,
    /// The excess falls about as a queue of this side's would, in front of a line that carries so much.
    Draining(BitsPerSecond),
    /// The excess should be gone, and is not: so long it was when it should have been gone.
    Unmoved(Seconds),
}

/// The course of an excess during a trial.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Time between the first and the last sample.
    took: Seconds,
    /// What crossed the side meanwhile.
    bytes: f64,
    /// Excess of the first, the last, the shortest and the longest sample.
    first: Seconds,
    last: Seconds,
    least: Seconds,
    most: Seconds,
}

impl Course {
    /// What the line carried if the excess was a queue in front of it.
    fn carried(&self) -> BitsPerSecond {
        let took = (self.took + self.last - self.first).max(STEP_SEEN * MIN_DRAIN_SHARE);
        BitsPerSecond::of_bytes(self.bytes, took)
    }
}

impl Trial {
    /// The first trial of an episode, before which the line carried `capacity`.
    pub fn first(capacity: Option<BitsPerSecond>) -> Self {
        Self { sound: capacity, ..Self::default() }
    }
}

impl SideControl {
    /// Judges the excess by the trial under way; `None` if the episode goes on as that of a queue.
    pub(super) fn judge(&mut self, excess: Seconds, view: &View<'_>) -> Option<(Reason, f64)> {
        let Some(capacity) = self.episode.trial.capacity else {
            self.try_anew(excess, 0, view);
            return None;
        };
        match self.find(capacity, view) {
            Finding::Open => {
                let tried = view.now.since(self.episode.trial.since);
                if self.is_stuck(view) && tried >= STUCK {
                    self.try_anew(excess, self.episode.trial.failed, view);
                }
            }
            Finding::Queue => {
                self.episode.trial.sound = self.line.capacity;
                self.episode.trial.proven = true;
                self.try_anew(excess, 0, view);
            }
            Finding::Overrun => {
                self.learn_lower(|known| known * OVERRUN_FACTOR);
                self.try_anew(excess, 0, view);
            }
            Finding::Draining(found) => {
                // A queue that came while the rate was held: the line carries less than was thought.
                if !self.episode.wanted && found < capacity {
                    self.learn_lower(|known| known + (found - known) * DRAINING_GAIN);
                }
                self.episode.trial.foreign = Seconds::ZERO;
                self.try_anew(excess, 0, view);
            }
            Finding::Unmoved(_) if self.learn_at_last(view) => self.try_anew(excess, 0, view),
            Finding::Unmoved(most) if self.episode.trial.failed + 1 >= TRIALS => {
                self.episode.trial.foreign = self.episode.trial.foreign.max(most);
                if self.is_stuck(view) && self.is_level(view) {
                    return Some(self.reroute(view));
                }
                return Some(self.dismiss(view));
            }
            Finding::Unmoved(most) => {
                self.episode.trial.foreign = self.episode.trial.foreign.max(most);
                let failed = self.episode.trial.failed + 1;
                self.episode.trial.carried = self.course(view).map(|course| match self.side {
                    Side::Egress => course.carried(),
                    // What comes out of a queue is what the line carries, however long it is.
                    Side::Ingress => BitsPerSecond::of_bytes(course.bytes, course.took),
                });
                self.try_anew(excess, failed, view);
                self.rate = self.rate.map(|rate| self.bounded(rate / 2.0));
            }
        }
        (self.episode.trial.failed > 0).then_some((Reason::Test, excess.as_millis()))
    }

    /// Whether an excess was found to be no queue of this side's a short time ago.
    pub fn has_dismissed(&self, now: Time) -> bool {
        self.dismissed.is_some_and(|at| now.since(at) < DISMISSED_FOR)
    }

    /// Lowers the capacity where delays vary, so that none of the usual measurements counts.
    fn learn_lower(&mut self, lower: impl Fn(BitsPerSecond) -> BitsPerSecond) {
        if self.is_disturbed() {
            self.line.capacity = self.line.capacity.map(|known| lower(known).min(known));
            self.episode.trial.proven = true;
        }
    }

    /// Begins a trial of what the line is now known to carry, after `failed` that the excess failed in a row.
    fn try_anew(&mut self, excess: Seconds, failed: u32, view: &View<'_>) {
        let trial = &mut self.episode.trial;
        (trial.since, trial.excess, trial.failed) = (view.now, excess, failed);
        trial.capacity = self.line.capacity;
    }

    /// What the samples that saw the rate of this trial say of a line of `capacity`.
    fn find(&self, capacity: BitsPerSecond, view: &View<'_>) -> Finding {
        let Some(course) = self.course(view) else { return Finding::Open };
        if view.delays.lost_within(LOST_WITHIN, view.now) > 0 {
            return Finding::Overrun;
        }
        let growth = (course.last - course.first) / course.took;
        if growth > MAX_FOREIGN_GROWTH {
            return Finding::Queue;
        }
        let sure = capacity * self.sure_share();
        let drained = course.took - sure.time_for_bits(course.bytes * 8.0);
        let surplus = (self.episode.trial.excess - view.clear()).max(Seconds::ZERO);
        let needed = surplus * MARGIN + MIN_DRAINED;
        let is_level = course.most - course.least <= course.least * LONGER_PATH_SHARE;
        if drained < needed || (is_level && !self.is_disturbed()) {
            return Finding::Open;
        }
        if course.last > self.most_foreign() {
            return Finding::Queue;
        }
        let fall = -growth / (drained / course.took);
        if fall > MAX_FALL {
            return Finding::Open;
        }
        if fall > 1.0 / MARGIN {
            return Finding::Draining(course.carried());
        }
        Finding::Unmoved(self.left(sure, needed / MARGIN, view))
    }

    /// Learns what the line carries if an excess that stayed in one trial falls in the next as a queue does; whether it does.
    pub(super) fn learn_at_last(&mut self, view: &View<'_>) -> bool {
        let found = self.found_at_last(view);
        if let Some(carried) = found {
            self.learn_lower(|_| carried);
        }
        found.is_some()
    }

    /// What the line carries if it became just as slow as the rate of a trial that the excess stayed in: in the next one the excess
    /// falls as that line drains.
    fn found_at_last(&self, view: &View<'_>) -> Option<BitsPerSecond> {
        let trial = &self.episode.trial;
        let carried = trial.carried.filter(|_| trial.failed > 0)?;
        let at = self.seen_at();
        let mut samples: Vec<(Time, Seconds)> =
            self.samples(view).map(|sample| (at(sample), sample.of(self.side))).collect();
        samples.sort_by_key(|sample| sample.0);
        // What is gone falls no further.
        let gone = samples.iter().position(|&(_, excess)| excess <= view.clear());
        samples.truncate(gone.map_or(samples.len(), |gone| gone + 1));
        let (&(from, first), &(to, last)) = (samples.first()?, samples.last()?);
        let bytes = self.let_through(from, to, view)?;
        let drained = Seconds::from(to.since(from)) - carried.time_for_bits(bytes * 8.0);
        let fell = first - last;
        let steps = samples.windows(2).map(|pair| pair[0].1 - pair[1].1);
        let longest_step = steps.fold(Seconds::ZERO, Seconds::max);
        // Of a line with a queue more comes than was let through before.
        let comes_of_queue = self.side == Side::Egress || !self.is_as_granted(from, to, view);
        let is_queue = comes_of_queue
            && fell >= MIN_DRAINED
            && fell >= drained / MARGIN
            && fell <= drained * MAX_FALL
            // The delay of a path jumps.
            && longest_step <= fell * MAX_STEP_SHARE;
        is_queue.then_some(carried)
    }

    /// Whether an episode lasts for longer than most queues do.
    ///
    /// Beside jitter what crosses an idle line seems to be what it carries, so that the rate is to fall far enough to tell.
    pub(super) fn is_stuck(&self, view: &View<'_>) -> bool {
        view.now.since(self.episode.began) >= STUCK && !self.is_disturbed()
    }

    /// Share of what the line was known to carry that it surely carries.
    ///
    /// What a line that varies should have drained nobody knows; that it fell to less than half is rare.
    pub(super) fn sure_share(&self) -> f64 {
        if self.line.varied() && !self.is_disturbed() { SURE_SHARE } else { 1.0 }
    }

    /// Whether the excess stayed within what jitter explains in the present trial.
    fn is_level(&self, view: &View<'_>) -> bool {
        self.course(view).is_some_and(|course| course.most - course.least <= view.threshold)
    }

    /// The samples that saw the rate of the present trial.
    fn samples<'a>(&self, view: &View<'a>) -> impl Iterator<Item = &'a Sample> + use<'a> {
        let at = self.seen_at();
        let since = self.episode.trial.since.saturating_add(self.lag(view).to_duration());
        let recent = view.delays.newest(LOOK_BACK, view.now);
        recent
            .take_while(move |sample| sample.arrived >= since)
            .filter(move |sample| at(sample) >= since)
    }

    /// The course of the excess in the present trial; `None` if it is too short to tell.
    fn course(&self, view: &View<'_>) -> Option<Course> {
        let at = self.seen_at();
        let last = self.samples(view).max_by_key(|sample| at(sample))?;
        let first = self.samples(view).min_by_key(|sample| at(sample))?;
        let (from, to) = (at(first), at(last));
        let took = Seconds::from(to.since(from));
        let excess = || self.samples(view).map(|sample| sample.of(self.side));
        (took >= STEP_SEEN).then_some(Course {
            took,
            bytes: self.history.bytes_between(from, to)?,
            first: first.of(self.side),
            last: last.of(self.side),
            least: excess().reduce(Seconds::min)?,
            most: excess().reduce(Seconds::max)?,
        })
    }

    /// The greatest excess after a line of `capacity` could have drained `needed`: what is left then is no queue.
    fn left(&self, capacity: BitsPerSecond, needed: Seconds, view: &View<'_>) -> Seconds {
        let at = self.seen_at();
        let from = self.samples(view).map(at).min().unwrap_or(view.now);
        let gone = |sample: &&Sample| {
            let bytes = self.history.bytes_between(from, at(sample)).unwrap_or(f64::INFINITY);
            Seconds::from(at(sample).since(from)) - capacity.time_for_bits(bytes * 8.0) >= needed
        };
        let left = self.samples(view).filter(gone).map(|sample| sample.of(self.side));
        left.fold(Seconds::ZERO, Seconds::max)
    }

    /// When a sample shows what the rate does: on egress at its way into the line, on ingress at its way out.
    pub(super) fn seen_at(&self) -> fn(&Sample) -> Time {
        match self.side {
            Side::Egress => |sample| sample.sent,
            Side::Ingress => |sample| sample.arrived,
        }
    }

    /// Time until what is let through comes out of the line: on ingress a round trip.
    pub(super) fn lag(&self, view: &View<'_>) -> Seconds {
        match self.side {
            Side::Egress => Seconds::ZERO,
            Side::Ingress => view.feedback,
        }
    }

    /// Whether from `from` to `to` about as much crossed as was let through before.
    ///
    /// On ingress a line with a queue gives its capacity, whatever the rate is.
    pub(super) fn is_as_granted(&self, from: Time, to: Time, view: &View<'_>) -> bool {
        self.came_of_granted(from, to, view).is_none_or(|share| (share - 1.0).abs() < AS_GRANTED)
    }

    /// What crossed from `from` to `to`, as a share of what was let through before; `None` on egress.
    fn came_of_granted(&self, from: Time, to: Time, view: &View<'_>) -> Option<f64> {
        if self.side == Side::Egress {
            return None;
        }
        let granted = self.let_through(from, to, view);
        let came = self.history.bytes_between(from, to);
        granted.zip(came).map(|(granted, came)| came / granted.max(1.0))
    }

    /// Bytes that were let through and went into the line so that samples from `from` to `to` show what they did.
    fn let_through(&self, from: Time, to: Time, view: &View<'_>) -> Option<f64> {
        if self.side == Side::Egress {
            return self.history.bytes_between(from, to);
        }
        let lag = self.lag(view).to_duration();
        let before = |at: Time| at.saturating_sub(lag);
        self.granted.bytes_between(before(from), before(to))
    }

    /// What to believe of a line that carried `before`, after a measurement over `took` that varying delays disturb.
    pub(super) fn believed(
        &self,
        before: BitsPerSecond,
        found: BitsPerSecond,
        took: Seconds,
    ) -> BitsPerSecond {
        let change = found / before - 1.0;
        let error = self.line.foreign / took;
        before * (1.0 + change * change * change / (change * change + error * error))
    }

    /// Excess above which there is a queue whatever the path does.
    pub(super) fn most_foreign(&self) -> Seconds {
        self.line.foreign + MAX_FOREIGN
    }

    /// Excess that stands, where delays vary: those of a path return, but a queue in front of a slower line does not.
    pub(super) fn standing(&self, view: &View<'_>) -> Option<Seconds> {
        if !self.is_disturbed() {
            return self.standing_in_jitter(view);
        }
        if view.now.since(self.episode.ended) < STANDING {
            return None;
        }
        // Samples that do not tell the ways apart tell nothing of whose it is, so that no more stands than is this side's now.
        let mine = view.excess.filter(|&excess| excess > view.clear())?;
        if view.delays.lost_within(STANDING, view.now) >= OVERRUN_PROBES {
            return Some(mine);
        }
        let samples = view.delays.newest(STANDING, view.now).map(|sample| sample.of(self.side));
        let least = samples.reduce(Seconds::min)?;
        (least > view.clear()).then(|| least.min(mine))
    }

    /// Excess that stands although no more than jitter may be expected: a short buffer, kept full.
    ///
    /// Jitter comes and goes, so that it cannot be what two of three samples of a load that lasts exceed, beyond what the
    /// path shows without traffic.
    fn standing_in_jitter(&self, view: &View<'_>) -> Option<Seconds> {
        let lasts = self.state == State::Loaded
            && view.now.since(self.entered) >= STANDING
            && self.history.load(STANDING) >= MIN_LOAD;
        let least = view.standing.filter(|_| lasts)?;
        let mine = view.excess.filter(|&excess| excess > least)?;
        let samples = view.delays.newest(STANDING, view.now).map(|sample| sample.of(self.side));
        let mut samples: Vec<f64> = samples.map(|excess| excess.0).collect();
        samples.sort_by(f64::total_cmp);
        let stands = samples.get(samples.len() / SHORTER_ONE_IN)?;
        (*stands > least.0).then_some(mine)
    }

    /// Whether an excess that stood beneath what jitter seemed to explain was found at `now`.
    pub fn stood_in_jitter(&self, now: Time) -> bool {
        let episode = &self.episode;
        self.state == State::BackingOff
            && episode.stood
            && episode.began == now
            && !self.is_disturbed()
    }

    /// Whether the excess fell to `excess` faster than a queue can at what crossed the line in the episode.
    pub(super) fn fell_too_fast(&mut self, excess: Seconds, view: &View<'_>) -> bool {
        let from = self.episode.began.saturating_add(self.lag(view).to_duration());
        let Some(capacity) = self.line.capacity.filter(|_| view.now > from) else { return false };
        let bytes = self.history.bytes_between(from, view.now).unwrap_or(0.0);
        let drained = Seconds::from(view.now.since(from)) - capacity.time_for_bits(bytes * 8.0);
        let fell = self.episode.peak - excess;
        let is_foreign = self.is_as_granted(from, view.now, view)
            && fell > drained.max(Seconds::ZERO) * MAX_FALL + MIN_DRAINED;
        if is_foreign {
            self.episode.trial.foreign = self.episode.trial.foreign.max(self.episode.peak);
        }
        is_foreign
    }

    /// Takes the excess for foreign, and returns to the rate that is known to be sound.
    pub(super) fn dismiss(&mut self, view: &View<'_>) -> (Reason, f64) {
        let excess = self.episode.trial.foreign;
        if !view.may_be_other {
            self.line.note_foreign(excess);
        }
        self.dismissed = Some(view.now);
        if self.episode.stood {
            return self.reroute(view);
        }
        // What crossed while delays were longer for another reason tells nothing of the line.
        self.return_to(self.episode.trial.sound, view.probes, view.now);
        (Reason::Foreign, excess.as_millis())
    }
}

/// Whether what was just measured over `span` must have been a queue, however the delays of the path vary.
pub(super) fn is_beyond_doubt(found: &Measured, span: Duration) -> bool {
    found.grown / Seconds::from(span) > MAX_FOREIGN_GROWTH
}

/// Time for which the finding counts that an excess is no queue of one side's: the other's trials take as long.
const DISMISSED_FOR: Duration = Duration::from_secs(2);
/// Trials that an excess fails before it counts as foreign, each at half the rate of the one before.
const TRIALS: u32 = 2;
/// Time after which the excess of an episode should be gone, and is tried anew.
const STUCK: Duration = Duration::from_secs(1);
/// Factor by which a queue may take longer to drain than it should.
const MARGIN: f64 = 2.0;
/// Probes lost while a delay varies by which a buffer is full.
const OVERRUN_PROBES: usize = 5;
/// Time in which a delay that varies returns.
const STANDING: Duration = Duration::from_secs(2);
/// Share of what a line that varies was known to carry that it surely carries.
const SURE_SHARE: f64 = 0.5;
/// Factor by which a queue may drain faster than it should.
const MAX_FALL: f64 = 1.5;
/// One sample in so many may be shorter than an excess that stands: behind a short buffer TCP lets the line run empty at times.
const SHORTER_ONE_IN: usize = 3;
/// Factor of what a line is thought to carry when probes are lost meanwhile.
const OVERRUN_FACTOR: f64 = 0.9;
/// Weight of what a line was seen to carry while its queue drained.
const DRAINING_GAIN: f64 = 0.3;
/// Share of its fall by which a queue falls at most from one sample to the next.
const MAX_STEP_SHARE: f64 = 0.75;
/// Time of the line that is left unused at least before an excess should have gone: a sample each of three sources.
const MIN_DRAINED: Seconds = Seconds(0.02);
/// Growth of an excess, in s a s, from which on it is a queue: delays of paths change by a tenth of that and jump.
const MAX_FOREIGN_GROWTH: f64 = 0.25;
/// Excess that is foreign at most.
pub(super) const MAX_FOREIGN: Seconds = Seconds(0.1);
/// Share by which what arrives differs at most from what the rate let through before.
const AS_GRANTED: f64 = 0.12;
/// Share of an excess within which it is rather that of a longer path, which has a test of its own.
const LONGER_PATH_SHARE: f64 = 0.2;
/// Time within which a lost probe may tell of a full buffer.
pub(super) const LOST_WITHIN: Duration = Duration::from_millis(500);
/// Time for which samples are looked back at.
const LOOK_BACK: Duration = Duration::from_secs(3);
