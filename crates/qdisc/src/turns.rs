//! Flows that take turns: deficit round robin in which a flow that had nothing waiting is served
//! before the others, once (RFC 8290, section 4.2).

/// Whose turn it is among the flows of a discipline, which are numbered from 0.
pub(crate) struct Turns {
    /// Bytes that a flow may send in one turn.
    quantum: i32,
    flows: Vec<Turn>,
    /// Flows that had nothing waiting until now.
    new: Chain,
    old: Chain,
}

/// Where one flow stands.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// Bytes that the flow may still send in this turn.
    deficit: i32,
    waiting: bool,
    /// The flow that is served after this one.
    next: Option<u32>,
}

/// Flows in the order in which they are served, threaded through [`Turn::next`].
#[derive(Clone, Copy, Default)]
struct Chain {
    ends: Option<(u32, u32)>,
}

impl Turns {
    pub fn new(flows: usize, quantum: u32) -> Self {
        // A quantum below 256 would spend all time on turns; Linux raises it in silence.
        let quantum = quantum.max(MIN_QUANTUM_BYTES) as i32;
        let flows = vec![Turn::default(); flows];
        Self { quantum, flows, new: Chain::default(), old: Chain::default() }
    }

    /// `flow` has packets. If it had none it is served before the old flows, with a whole quantum.
    #[inline]
    pub fn join(&mut self, flow: usize) {
        let turn = &mut self.flows[flow];
        if !turn.waiting {
            turn.waiting = true;
            turn.deficit = self.quantum;
            self.new.push(flow as u32, &mut self.flows);
        }
    }

    /// The flow whose turn it is.
    #[inline(always)]
    pub fn current(&mut self) -> Option<usize> {
        let (flow, _) = self.chain().ends?;
        let has_turn = self.flows[flow as usize].deficit > 0;
        Some(if has_turn { flow as usize } else { self.begin_turn(flow) })
    }

    /// The first flow, `flow`, has sent what it may in its turn: goes behind all others, with a new quantum. Returns the
    /// next one that may send.
    fn begin_turn(&mut self, mut flow: u32) -> usize {
        loop {
            self.flows[flow as usize].deficit += self.quantum;
            if self.new.ends.is_some() {
                self.new.pop(&self.flows);
                self.old.push(flow, &mut self.flows);
            } else {
                self.old.rotate(&mut self.flows);
            }
            (flow, _) = self.chain().ends.expect("it went behind the others");
            if self.flows[flow as usize].deficit > 0 {
                return flow as usize;
            }
        }
    }

    /// The flow whose turn it is next, if none is found to have nothing to send.
    pub fn next(&self) -> Option<usize> {
        let (first, _) = self.chain().ends?;
        let turn = &self.flows[first as usize];
        if turn.deficit > 0 { Some(first as usize) } else { turn.next.map(|flow| flow as usize) }
    }

    /// `flow` sent `len` bytes in its turn.
    #[inline]
    pub fn charge(&mut self, flow: usize, len: u32) {
        self.flows[flow].deficit -= len as i32;
    }

    /// The flow whose turn it is has nothing to send.
    pub fn pass(&mut self) {
        let was_new = self.new.ends.is_some();
        let Some(flow) = self.leave() else { return };
        if was_new && self.old.ends.is_some() {
            // One pass through the old flows first: a flow that keeps coming back as new must not
            // starve them.
            self.old.push(flow, &mut self.flows);
        } else {
            self.flows[flow as usize].waiting = false;
        }
    }

    /// Takes the flow whose turn it is out of its chain.
    fn leave(&mut self) -> Option<u32> {
        let chain = if self.new.ends.is_some() { &mut self.new } else { &mut self.old };
        chain.pop(&self.flows)
    }

    #[inline(always)]
    fn chain(&self) -> &Chain {
        if self.new.ends.is_some() { &self.new } else { &self.old }
    }
}

impl Chain {
    fn push(&mut self, flow: u32, flows: &mut [Turn]) {
        flows[flow as usize].next = None;
        match &mut self.ends {
            None => self.ends = Some((flow, flow)),
            Some((_, tail)) => {
                flows[*tail as usize].next = Some(flow);
                *tail = flow;
            }
        }
    }

    /// Moves the first flow behind the last.
    fn rotate(&mut self, flows: &mut [Turn]) {
        if let Some((head, tail)) = &mut self.ends
            && let Some(next) = flows[*head as usize].next.take()
        {
            flows[*tail as usize].next = Some(*head);
            *tail = *head;
            *head = next;
        }
    }

    fn pop(&mut self, flows: &[Turn]) -> Option<u32> {
        let (head, tail) = self.ends?;
        self.ends = flows[head as usize].next.map(|next| (next, tail));
        Some(head)
    }
}

/// `sch_fq_codel.c` and `sch_fq_pie.c`.
const MIN_QUANTUM_BYTES: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_flow_is_served_once_before_the_old_ones() {
        let mut turns = Turns::new(3, 1500);
        turns.join(0);
        turns.charge(0, 1500);
        assert_eq!(turns.current(), Some(0), "alone, and old with a new quantum");
        turns.join(1);
        assert_eq!(turns.current(), Some(1), "new goes first");
        turns.charge(1, 100);
        turns.pass();
        turns.join(1);
        assert_eq!(turns.current(), Some(0), "coming back at once does not make it new");
        turns.charge(0, 1500);
        assert_eq!(turns.current(), Some(1));
        turns.pass();
        turns.pass();
        assert_eq!(turns.current(), None);
    }

    #[test]
    fn old_flows_keep_their_order_whatever_they_owe() {
        let mut turns = Turns::new(3, 1500);
        let mut served = Vec::new();
        (0..3).for_each(|flow| turns.join(flow));
        for len in [1500, 3000, 1500, 1500, 1500, 1500, 1500] {
            let flow = turns.current().unwrap();
            turns.charge(flow, len);
            served.push(flow);
        }
        // Flow 1 took two quanta at once, and waits for a round.
        assert_eq!(served, [0, 1, 2, 0, 2, 0, 1]);
    }
}
