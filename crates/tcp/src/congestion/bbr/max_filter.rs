//! The largest value of a sliding window, by the three best that can still become it.
//!
//! Kathleen Nichols' algorithm, as in Linux `lib/minmax.c`: exact while the maximum lasts, and after that
//! never older than the window.

/// The largest of the values of the last so many rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    /// The largest, the largest after it, and the largest after that.
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u32,
    value: u32,
}

impl MaxFilter {
    pub fn get(&self) -> u32 {
        self.best[0].value
    }

    /// Takes in `value`, of `round`; what is older than `window` rounds no longer counts.
    pub fn offer(&mut self, value: u32, round: u32, window: u32) {
        let new = Sample { round, value };
        if value >= self.best[0].value || round - self.best[2].round > window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].value {
            self.best = [self.best[0], new, new];
        } else if value >= self.best[2].value {
            self.best[2] = new;
        }
        self.age(new, window);
    }

    /// Drops what has left the window, and keeps the two behind the best from being of its age.
    fn age(&mut self, new: Sample, window: u32) {
        let age = new.round - self.best[0].round;
        if age > window {
            self.best = [self.best[1], self.best[2], new];
            if new.round - self.best[0].round > window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].round == self.best[0].round && age > window / 4 {
            self.best = [self.best[0], new, new];
        } else if self.best[2].round == self.best[1].round && age > window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_largest_of_the_window() {
        let mut filter = MaxFilter::default();
        let mut seen = Vec::new();
        let values = [50, 90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 4, 3, 2, 1, 0];
        for (round, value) in values.into_iter().enumerate() {
            filter.offer(value, round as u32, 10);
            seen.push(filter.get());
        }
        // 90 of round 1 lasts up to round 11. Then the second best takes over: of those that came when
        // a quarter of the window had passed the largest, 60 of round 4; and after it the largest of those after
        // half of the window, 30 of round 7.
        assert_eq!(seen, [50, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 60, 60, 60, 30]);
    }

    #[test]
    fn after_a_long_silence_only_the_newest_counts() {
        let mut filter = MaxFilter::default();
        filter.offer(90, 0, 10);
        filter.offer(10, 11, 10);
        assert_eq!(filter.get(), 10);
    }
}
