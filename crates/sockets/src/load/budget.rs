//! How much a load still sends.

/// Bytes that the sender of a load has still to hand in, perhaps without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendBudget {
    /// `None`: without end.
    left: Option<u64>,
}

impl SendBudget {
    /// A budget of `bytes`; without end if `None`.
    #[must_use]
    pub const fn new(bytes: Option<u64>) -> Self {
        Self { left: bytes }
    }

    /// Bytes to hand in next, `most` at most.
    #[must_use]
    pub fn next(self, most: usize) -> usize {
        let left = self.left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        left.map_or(most, |left| left.min(most))
    }

    /// Takes `bytes` that were handed in out of the budget.
    pub const fn spend(&mut self, bytes: usize) {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes as u64);
        }
    }

    /// Leaves nothing to hand in.
    pub const fn end(&mut self) {
        self.left = Some(0);
    }

    /// Whether there is nothing left to hand in.
    #[must_use]
    pub const fn is_spent(self) -> bool {
        matches!(self.left, Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_by_what_was_handed_in_and_no_more() {
        let mut budget = SendBudget::new(Some(10));
        assert_eq!((budget.next(4), budget.next(100)), (4, 10));
        budget.spend(9);
        assert_eq!((budget.next(4), budget.is_spent()), (1, false));
        budget.spend(1);
        assert_eq!((budget.next(4), budget.is_spent()), (0, true));
    }

    #[test]
    fn a_budget_without_end_is_spent_only_when_it_is_ended() {
        let mut budget = SendBudget::new(None);
        budget.spend(usize::MAX);
        assert_eq!((budget.next(7), budget.is_spent()), (7, false));
        budget.end();
        assert_eq!((budget.next(7), budget.is_spent()), (0, true));
        assert!(SendBudget::new(Some(0)).is_spent());
    }
}
