//! Who is served next: three lists of flows, each flow in one of them or in none.

use super::flows::FLOWS;

/// The lists of one tin: circles of flows, doubly linked through one array in which each list has a
/// place of its own behind the flows.
#[derive(Debug)]
pub(super) struct Turns {
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u16,
    next: u16,
}

/// A list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Flows that have not used up their first turn.
    New = FLOWS as isize,
    /// Flows that have.
    Old,
    /// Empty flows whose state is still remembered.
    Decaying,
}

impl Turns {
    pub fn new() -> Self {
        let links = (0..FLOWS as u16 + 3).map(|own| Link { previous: own, next: own });
        Self { links: links.collect() }
    }

    /// The flow that is first in `turn`.
    pub fn first(&self, turn: Turn) -> Option<usize> {
        let first = usize::from(self.links[turn as usize].next);
        (first < FLOWS).then_some(first)
    }

    /// Puts `flow` behind the last one of `turn`, wherever it was.
    pub fn move_to_end(&mut self, flow: usize, turn: Turn) {
        self.remove(flow);
        let last = self.links[turn as usize].previous;
        self.links[flow] = Link { previous: last, next: turn as u16 };
        self.links[usize::from(last)].next = flow as u16;
        self.links[turn as usize].previous = flow as u16;
    }

    /// Takes `flow` out of its list, if it is in one.
    pub fn remove(&mut self, flow: usize) {
        let Link { previous, next } = self.links[flow];
        self.links[usize::from(previous)].next = next;
        self.links[usize::from(next)].previous = previous;
        self.links[flow] = Link { previous: flow as u16, next: flow as u16 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(turns: &mut Turns, turn: Turn) -> Vec<usize> {
        let mut found = Vec::new();
        while let Some(flow) = turns.first(turn) {
            turns.remove(flow);
            found.push(flow);
        }
        found
    }

    #[test]
    fn flows_move_between_lists_from_any_place() {
        let mut turns = Turns::new();
        for flow in [5, 0, 1023] {
            turns.move_to_end(flow, Turn::New);
        }
        turns.move_to_end(0, Turn::Decaying);
        turns.move_to_end(5, Turn::New);
        turns.remove(77);
        assert_eq!(turns.first(Turn::Old), None);
        assert_eq!(drain(&mut turns, Turn::New), [1023, 5]);
        assert_eq!(drain(&mut turns, Turn::Decaying), [0]);
    }
}
