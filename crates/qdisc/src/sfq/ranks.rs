//! Flows sorted by how many packets they hold, each step up or down in constant time.

/// The flows of each length, the one that came to it last first. The kernel drops from the first of
/// the longest, so this order is part of its behaviour (`dep` in `sch_sfq.c`).
pub(super) struct Ranks {
    /// By length: the flow that came to it last.
    first: Vec<Option<u32>>,
    flows: Vec<RankNode>,
    longest: usize,
}

/// Length of a flow, and its neighbours among flows of that length.
#[derive(Clone, Copy, Default)]
struct RankNode {
    length: u16,
    before: Option<u32>,
    behind: Option<u32>,
}

impl Ranks {
    /// `flows` empty flows, of at most `depth` packets each.
    pub fn new(flows: usize, depth: usize) -> Self {
        let mut ranks = Self {
            first: vec![None; depth + 1],
            flows: vec![RankNode::default(); flows],
            longest: 0,
        };
        for flow in 0..flows as u32 {
            ranks.link(flow);
        }
        ranks
    }

    /// A flow without packets.
    pub fn empty(&self) -> Option<u32> {
        self.first[0]
    }

    /// Of the flows with the most packets, the one that came to that length last; and that length.
    pub fn longest(&self) -> (Option<u32>, usize) {
        (self.first[self.longest], self.longest)
    }

    /// `flow` has one packet more.
    pub fn grow(&mut self, flow: u32) {
        self.unlink(flow);
        self.flows[flow as usize].length += 1;
        self.longest = self.longest.max(usize::from(self.flows[flow as usize].length));
        self.link(flow);
    }

    /// `flow` has one packet less.
    pub fn shrink(&mut self, flow: u32) {
        self.unlink(flow);
        let length = &mut self.flows[flow as usize].length;
        if self.longest == usize::from(*length) && self.first[self.longest].is_none() {
            self.longest -= 1;
        }
        *length -= 1;
        self.link(flow);
    }

    fn link(&mut self, flow: u32) {
        let length = usize::from(self.flows[flow as usize].length);
        let behind = self.first[length].replace(flow);
        let place = &mut self.flows[flow as usize];
        place.before = None;
        place.behind = behind;
        if let Some(behind) = behind {
            self.flows[behind as usize].before = Some(flow);
        }
    }

    fn unlink(&mut self, flow: u32) {
        let RankNode { length, before, behind } = self.flows[flow as usize];
        match before {
            None => self.first[usize::from(length)] = behind,
            Some(before) => self.flows[before as usize].behind = behind,
        }
        if let Some(behind) = behind {
            self.flows[behind as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_the_last_that_came_to_its_length() {
        let mut ranks = Ranks::new(4, 3);
        assert_eq!((ranks.empty(), ranks.longest()), (Some(3), (Some(3), 0)));
        for flow in [0, 1, 2, 1, 0] {
            ranks.grow(flow);
        }
        assert_eq!(ranks.longest(), (Some(0), 2));
        ranks.shrink(0);
        assert_eq!(ranks.longest(), (Some(1), 2));
        ranks.shrink(1);
        // All of 0, 1, 2 hold one packet; 1 came to it last.
        assert_eq!(ranks.longest(), (Some(1), 1));
        ranks.shrink(0); // from the middle of its chain
        assert_eq!((ranks.longest(), ranks.empty()), ((Some(1), 1), Some(0)));
        ranks.shrink(1);
        ranks.shrink(2);
        assert_eq!((ranks.longest(), ranks.empty()), ((Some(2), 0), Some(2)));
    }
}
