//! What a side looks at in one tick.

use weir_core::{Duration, Time};

use super::{CLEAR_SHARE, MOST_CLEAR_SHARE};
use crate::delays::{Delays, Overdue};
use crate::pauses::Pauses;
use crate::quantities::{BitsPerSecond, Seconds};

/// All that a side looks at in one tick.
pub(crate) struct View<'a> {
    pub inputs: Inputs,
    pub delays: &'a Delays,
    /// Times in which nothing arrived on the way in.
    pub pauses: &'a Pauses,
    /// End of the last time at which the shaper's process was late; `None` if it was not late recently.
    pub late: Option<Time>,
    /// Whether the other side leaves the queue to this one.
    pub may_probe: bool,
}

/// Quantities that both sides and the delays together give one side at a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs {
    pub now: Time,
    /// Time since the last tick.
    pub elapsed: Duration,
    /// Excess delay that is this side's, as measured; `None` without a sample.
    pub excess: Option<Seconds>,
    /// Whether it is this side's alone.
    pub certain: bool,
    /// Whether it is known to be this side's although the other is loaded too; `None` if nothing tells.
    pub known: Option<bool>,
    /// Excess delay that is this side's, as far as it can be told for this moment.
    pub expected: Seconds,
    /// Excess above which there is a queue.
    pub threshold: Seconds,
    /// The oldest answer that is overdue, if this side may be the reason.
    pub overdue: Option<Overdue>,
    /// Whether answers are overdue, whichever side is the reason.
    pub is_waiting: bool,
    /// Whether nothing at all comes over the line, neither packets nor answers.
    pub is_out: bool,
    /// Excess of both ways together, whosever it is.
    pub total: Seconds,
    /// Time until a change of rate shows in a delay.
    pub feedback: Seconds,
    /// How long nobody has answered although probes are out.
    pub silence: Option<Duration>,
    /// Load of the probes, which go past the shaper.
    pub probes: BitsPerSecond,
    /// Whether the other side has hardly any traffic.
    pub alone: bool,
    /// Whether an excess that is not this side's may be a queue of the other's: that has a load, and no trial of its own says that it
    /// is not.
    pub may_be_other: bool,
    /// Excess above which there is a queue if it stays; `None` as long as the idle line is not known.
    pub standing: Option<Seconds>,
    /// Time in which a baseline falls again if it is made of a queue that drains; `None` if it surely is not.
    pub sinking: Option<Seconds>,
    /// Whether one fell in that time.
    pub sank: bool,
    /// Excess that the path shows now and then without traffic; zero as long as that is not known.
    pub idle: Seconds,
    /// Excess that jitter explains.
    pub jitter: Seconds,
    /// Whether something tells why there is an excess, if there is one: the line's own delays are known, a load rose, or one was
    /// there from the start.
    pub is_explained: bool,
}

impl std::ops::Deref for View<'_> {
    type Target = Inputs;

    fn deref(&self) -> &Inputs {
        &self.inputs
    }
}

impl View<'_> {
    /// The same, with `excess` as this side's.
    pub fn with_excess(&self, excess: Seconds) -> Self {
        let inputs = Inputs { excess: Some(excess), expected: excess, ..self.inputs };
        Self { inputs, ..*self }
    }
}

impl Inputs {
    /// Excess at or below which a queue counts as gone: no less than what the path shows without any.
    pub fn clear(&self) -> Seconds {
        let idle = self.idle.min(self.threshold * MOST_CLEAR_SHARE);
        idle.max(self.threshold * CLEAR_SHARE)
    }
}
