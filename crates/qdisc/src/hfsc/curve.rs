//! Service curves: how many bytes a class is to have been served by when.
//!
//! A curve is two straight lines: a slope for some time, then another. The kernel computes in whole
//! bytes and ticks of 64 ns, with slopes in fixed point (`sch_hfsc.c`: `seg_x2y`, `rtsc_min`); the
//! rounding is part of when packets leave.

use weir_core::Time;

/// A time in ticks of 64 ns (`PSCHED_SHIFT`).
pub(super) type Ticks = u64;

/// The tick in which `now` lies.
pub(super) const fn ticks(now: Time) -> Ticks {
    now.as_nanos() >> TICK_BITS
}

/// When tick `ticks` begins.
pub(super) const fn time(ticks: Ticks) -> Time {
    Time::from_nanos(ticks << TICK_BITS)
}

/// A service curve as `tc` hands it to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServiceCurve {
    /// Slope of the first part, bytes per second.
    pub m1: u32,
    /// Length of the first part, microseconds.
    pub d: u32,
    /// Slope of the second part, bytes per second.
    pub m2: u32,
}

/// A service curve that starts at the origin, in fixed point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    first: Slope,
    second: Slope,
    /// Where the first part ends: time and bytes.
    bend: (Ticks, u64),
}

/// A slope and its inverse, both rounded up.
#[derive(Clone, Copy, Debug)]
struct Slope {
    /// Bytes per tick, with 24 bits behind the point.
    bytes: u64,
    /// Ticks per byte, with 14 bits behind the point; `None` for a slope of 0.
    ticks: Option<u64>,
}

/// A service curve at work: started somewhere, and lowered whenever its class comes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve {
    shape: Shape,
    start: (Ticks, u64),
    /// Where the first part ends, from the start.
    bend: (Ticks, u64),
}

impl Slope {
    fn new(bytes_per_sec: u32) -> Self {
        let rate = u64::from(bytes_per_sec);
        Self {
            bytes: (rate << BYTES_BITS).div_ceil(TICKS_PER_SEC),
            ticks: (rate > 0).then(|| (TICKS_PER_SEC << TICKS_BITS).div_ceil(rate)),
        }
    }

    fn bytes_in(self, ticks: Ticks) -> u64 {
        scale(ticks, self.bytes, BYTES_BITS)
    }

    fn ticks_for(self, bytes: u64) -> Ticks {
        match self.ticks {
            _ if bytes == 0 => 0,
            // Never, which the kernel adds to the start and so wraps around.
            None => Ticks::MAX,
            Some(ticks) => scale(bytes, ticks, TICKS_BITS),
        }
    }
}

/// `value * factor >> bits`, without losing the product's upper bits.
const fn scale(value: u64, factor: u64, bits: u32) -> u64 {
    let low = value & ((1 << bits) - 1);
    (value >> bits).wrapping_mul(factor).wrapping_add(low.wrapping_mul(factor) >> bits)
}

impl Shape {
    pub fn new(curve: ServiceCurve) -> Self {
        let first = Slope::new(curve.m1);
        let length = (u64::from(curve.d) * TICKS_PER_SEC).div_ceil(1_000_000);
        Self { first, second: Slope::new(curve.m2), bend: (length, first.bytes_in(length)) }
    }

    /// Whether the curve gets steeper: service may then be late and is never early.
    pub const fn is_convex(&self) -> bool {
        self.first.bytes <= self.second.bytes
    }
}

impl Curve {
    pub const fn new(shape: Shape, start: (Ticks, u64)) -> Self {
        Self { shape, start, bend: shape.bend }
    }

    /// The curve that says when service may begin: the same, but for a convex one a straight line of
    /// the second slope.
    pub const fn eligible(mut self) -> Self {
        if self.shape.is_convex() {
            self.bend = (0, 0);
        }
        self
    }

    /// When the curve reaches `bytes`.
    pub fn time_of(&self, bytes: u64) -> Ticks {
        let (start, from) = self.start;
        let (length, height) = self.bend;
        if bytes < from {
            start
        } else if bytes <= from + height {
            let first = if height == 0 { length } else { self.shape.first.ticks_for(bytes - from) };
            start.wrapping_add(first)
        } else {
            let second = self.shape.second.ticks_for(bytes - from - height);
            start.wrapping_add(length).wrapping_add(second)
        }
    }

    /// Where the curve is at `at`.
    fn bytes_at(&self, at: Ticks) -> u64 {
        let (start, from) = self.start;
        let (length, height) = self.bend;
        if at <= start {
            from
        } else if at <= start + length {
            from + self.shape.first.bytes_in(at - start)
        } else {
            from + height + self.shape.second.bytes_in(at - start - length)
        }
    }

    /// Becomes the lower of this curve and one of the same shape that starts at `start`.
    pub fn lower_to(&mut self, start: (Ticks, u64)) {
        let (at, bytes) = start;
        let here = self.bytes_at(at);
        if self.shape.is_convex() {
            if here >= bytes {
                self.start = start;
            }
            return;
        }
        if here <= bytes {
            return;
        }
        let (length, height) = self.shape.bend;
        if self.bytes_at(at + length) >= bytes + height {
            *self = Self { start, bend: self.shape.bend, shape: self.shape };
            return;
        }
        // They cross: the new curve's first part goes on until it meets the old one's second.
        let closing = self.shape.first.bytes - self.shape.second.bytes;
        let mut crossing = ((here - bytes) << BYTES_BITS) / closing;
        let old_bend = self.start.0 + self.bend.0;
        if old_bend > at {
            crossing += old_bend - at;
        }
        self.start = start;
        self.bend = (crossing, self.shape.first.bytes_in(crossing));
    }
}

/// `PSCHED_SHIFT` of `include/net/pkt_sched.h`.
const TICK_BITS: u32 = 6;
const TICKS_PER_SEC: u64 = 1_000_000_000 >> TICK_BITS;
/// `SM_SHIFT` and `ISM_SHIFT` of `sch_hfsc.c`.
const BYTES_BITS: u32 = 30 - TICK_BITS;
const TICKS_BITS: u32 = 8 + TICK_BITS;

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABIT: u32 = 125_000;

    fn curve(m1: u32, d: u32, m2: u32) -> Curve {
        Curve::new(Shape::new(ServiceCurve { m1, d, m2 }), (0, 0))
    }

    #[test]
    fn a_straight_curve_serves_at_its_rate() {
        let line = curve(0, 0, 10 * MEGABIT);
        // 1514 bytes at 10 Mbit/s take 1 211 200 ns, which are 18 925 ticks.
        assert_eq!(line.time_of(1514), 18_925);
        assert_eq!(line.time_of(0), 0);
    }

    #[test]
    fn two_slopes_meet_at_the_bend() {
        // 4 Mbit/s for 10 ms are 5000 bytes; then 1 Mbit/s.
        let concave = curve(4 * MEGABIT, 10_000, MEGABIT);
        assert_eq!(concave.time_of(5_000), 156_250);
        assert_eq!(concave.time_of(6_000), 156_250 + 125_000);
        // Nothing for 10 ms, then 1 Mbit/s.
        let convex = curve(0, 10_000, MEGABIT);
        assert_eq!(convex.time_of(1_000), 156_250 + 125_000);
        assert_eq!(convex.eligible().time_of(1_000), 125_000);
    }

    #[test]
    fn a_class_that_comes_back_gets_no_more_than_either_curve() {
        // A concave curve that was idle long enough starts over.
        let mut concave = curve(4 * MEGABIT, 10_000, MEGABIT);
        concave.lower_to((10_000_000, 1_000));
        assert_eq!(concave.time_of(6_000), 10_000_000 + 156_250);
        // One that comes back soon gets only a part of its burst again: the curves cross. At tick
        // 312500 (20 ms) the old one is at 6250 bytes; 750 are served: 5500 bytes at 3 Mbit/s more.
        let mut soon = curve(4 * MEGABIT, 10_000, MEGABIT);
        soon.lower_to((312_500, 5_750));
        assert_eq!(soon.time_of(5_750), 312_500);
        // 500 bytes of advance are used up at 3 Mbit/s: after 1.33 ms, 666 bytes.
        assert_eq!(soon.bend, (20_833, 666));
        // A curve that is ahead of its service stays.
        let mut ahead = curve(4 * MEGABIT, 10_000, MEGABIT);
        ahead.lower_to((312_500, 7_000));
        assert_eq!(ahead.start, (0, 0));
    }

    #[test]
    fn a_second_slope_of_nothing_wraps_as_in_the_kernel() {
        let burst = curve(MEGABIT, 8_000, 0);
        assert_eq!(burst.time_of(1_000), 125_000);
        assert_eq!(burst.time_of(1_001), 125_000 - 1);
    }
}
