//! How many flows fill a line: flows are added as long as that brings more.
//!
//! After every interval the bytes that arrived in it are told. The goodput of an interval counts as growth
//! if it exceeds the best one so far by [`RampSettings::gain_percent`]; then as many flows as there are
//! come on top. Two intervals in a row without growth mean that the line is full. The idea is that of the
//! responsiveness draft (draft-ietf-ippm-responsiveness-09, section 4.4), which waits for a stable goodput
//! at a fixed number of new flows an interval; doubling takes fewer intervals, and one interval without
//! growth is not enough, since a slow start may still be under way.

/// How a ramp goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampSettings {
    /// Flows to begin with.
    pub first: u32,
    /// Largest number of flows.
    pub most: u32,
    /// Growth that is worth more flows, in percent of the best interval.
    pub gain_percent: u32,
}

/// A ramp under way.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    settings: RampSettings,
    flows: u32,
    best: u64,
    without_growth: u32,
    intervals: u32,
    full_after: Option<u32>,
}

impl Ramp {
    /// The beginning; [`Ramp::flows`] are to run.
    #[must_use]
    pub fn new(settings: RampSettings) -> Self {
        let flows = settings.first.clamp(1, settings.most.max(1));
        Self { settings, flows, best: 0, without_growth: 0, intervals: 0, full_after: None }
    }

    /// Number of flows that are to run.
    #[must_use]
    pub const fn flows(&self) -> u32 {
        self.flows
    }

    /// Number of intervals after which the line was full; `None` while it is not.
    #[must_use]
    pub const fn full_after(&self) -> Option<u32> {
        self.full_after
    }

    /// Takes the bytes that arrived in the interval that just ended, and returns how many flows to add.
    pub fn interval(&mut self, bytes: u64) -> u32 {
        self.intervals += 1;
        let wanted = self.best.saturating_mul(100 + u64::from(self.settings.gain_percent)) / 100;
        let grew = bytes > wanted;
        self.best = self.best.max(bytes);
        if self.full_after.is_some() {
            return 0;
        }
        if !grew {
            self.without_growth += 1;
            if self.without_growth == PATIENCE {
                self.full_after = Some(self.intervals);
            }
            return 0;
        }
        self.without_growth = 0;
        let more = self.flows.min(self.settings.most - self.flows);
        self.flows += more;
        more
    }
}

impl Default for RampSettings {
    /// 2 flows to begin with, 16 at most (`MNP` of the draft), 10 % growth.
    fn default() -> Self {
        Self { first: 2, most: 16, gain_percent: 10 }
    }
}

/// Intervals without growth that mean a full line: one may fall into a recovery from loss.
const PATIENCE: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Ramp {
        Ramp::new(RampSettings::default())
    }

    #[test]
    fn a_line_that_two_flows_fill_gets_four() {
        let mut ramp = ramp();
        assert_eq!(ramp.flows(), 2);
        assert_eq!(ramp.interval(1_000), 2);
        assert_eq!(ramp.interval(1_050), 0);
        assert_eq!(ramp.full_after(), None);
        assert_eq!(ramp.interval(1_020), 0);
        assert_eq!((ramp.flows(), ramp.full_after()), (4, Some(3)));
        assert_eq!(ramp.interval(9_000), 0, "what is full stays so");
    }

    #[test]
    fn flows_double_up_to_the_most_while_each_brings_more() {
        let mut ramp = ramp();
        let added: Vec<_> = [100, 200, 400, 800, 1_600].map(|bytes| ramp.interval(bytes)).into();
        assert_eq!(added, [2, 4, 8, 0, 0]);
        assert_eq!((ramp.flows(), ramp.full_after()), (16, None));
    }

    #[test]
    fn one_bad_interval_does_not_end_it() {
        let mut ramp = ramp();
        assert_eq!(ramp.interval(100), 2);
        assert_eq!(ramp.interval(60), 0);
        assert_eq!(ramp.interval(200), 4);
        assert_eq!(ramp.full_after(), None);
    }
}
