//! Virtual times of QFQ+: which of the members that wait is served next.
//!
//! A member starts at the virtual time at which it would start in a fluid that serves all by weight, and
//! finishes a budget later. Members whose budgets take about as long form a group, in which starts are
//! rounded down to slots of that length; groups are sorted by bits into four states. So everything is a few
//! operations on words, whatever the number of members.

/// A weight of one in the fixed point of inverse weights (`ONE_FP`).
pub(super) const ONE: u64 = 1 << 30;

/// The members that wait, in the order of their service.
pub(super) struct Timeline {
    times: Vec<Times>,
    groups: [Group; GROUPS],
    /// By [`State`]: a bit for each group that is in it.
    states: [u64; 4],
    /// The virtual time, and that of the last choice.
    now: u64,
    chosen_at: u64,
    /// Virtual time that a byte takes: [`ONE`] by the sum of all weights.
    per_byte: u64,
    smallest_shift: u32,
}

/// The virtual times of one member.
#[derive(Clone, Copy, Default)]
struct Times {
    start: u64,
    finish: u64,
    inverse_weight: u64,
    group: usize,
}

/// Members whose budgets take between half of and a whole slot.
struct Group {
    /// Start of the first slot that is not empty.
    start: u64,
    finish: u64,
    /// A slot is 2 to the power of this long.
    shift: u32,
    /// Place of the first slot in `slots`, which is a ring.
    front: usize,
    /// A bit for each slot that has members, counted from the first.
    full: u64,
    /// Members by slot; of one slot the last is served first.
    slots: [Vec<usize>; SLOTS],
}

/// State of a group (`enum qfq_state`). Blocked: a group of larger slots, which is
/// eligible, finishes sooner.
#[derive(Clone, Copy)]
enum State {
    EligibleReady = 0,
    IneligibleReady = 1,
    EligibleBlocked = 2,
    IneligibleBlocked = 3,
}

use State::{EligibleBlocked, EligibleReady, IneligibleBlocked, IneligibleReady};

impl Timeline {
    /// A timeline of members that have at most `most_classes` times the longest packet as budget.
    pub fn new(most_classes: u32) -> Self {
        let smallest_shift =
            ONE.ilog2() + MAX_PACKET_SHIFT + most_classes.ilog2() - (GROUPS as u32 - 1);
        let group = |index: usize| Group {
            start: 0,
            finish: 0,
            shift: smallest_shift + index as u32,
            front: 0,
            full: 0,
            slots: std::array::from_fn(|_| Vec::new()),
        };
        Self {
            times: Vec::new(),
            groups: std::array::from_fn(group),
            states: [0; 4],
            now: 0,
            chosen_at: 0,
            per_byte: 0,
            smallest_shift,
        }
    }

    /// Adds a member, whose group is that of the weight and the budget that it begins with.
    pub fn add(&mut self, weight: u32, budget: u32) {
        let inverse_weight = ONE / u64::from(weight);
        let slot = u64::from(budget) * inverse_weight;
        let group = match (slot >> self.smallest_shift).checked_ilog2() {
            None => 0,
            // A budget that takes a power of two belongs to the slots of just that length.
            Some(log) => log as usize + usize::from(slot != 1 << (log + self.smallest_shift)),
        };
        self.times.push(Times { inverse_weight, group, ..Times::default() });
    }

    /// Gives `member` another weight.
    pub fn set_weight(&mut self, member: usize, weight: u32) {
        self.times[member].inverse_weight = ONE / u64::from(weight);
    }

    /// Sets the sum of all weights.
    pub fn set_weights(&mut self, sum: u32) {
        self.per_byte = ONE.checked_div(u64::from(sum)).unwrap_or(self.per_byte);
    }

    /// `len` bytes were sent.
    pub fn advance(&mut self, len: u32) {
        self.now = self.now.wrapping_add(u64::from(len) * self.per_byte);
    }

    /// `member`, which had nothing to send, starts now, with `budget` bytes (`qfq_update_start`).
    pub fn start(&mut self, member: usize, budget: u32) {
        let Times { finish, group, .. } = self.times[member];
        let shift = self.groups[group].shift;
        let rounded = round_down(finish, shift);
        let limit = round_down(self.now, shift).wrapping_add(1 << shift);
        let stale = !later(finish, self.now) || later(rounded, limit);
        let start = if stale { self.start_among_eligible(group, rounded, limit) } else { finish };
        self.times[member].begin(start, budget);
    }

    /// The start of a member of `group` whose last finish is of no use: now, but not before the finish of
    /// the groups that would block it.
    fn start_among_eligible(&self, group: usize, rounded: u64, limit: u64) -> u64 {
        let blocking = first(self.states[EligibleReady as usize] & from(group));
        match blocking.map(|other| self.groups[other].finish) {
            Some(finish) if later(rounded, finish) => {
                if later(limit, finish) {
                    finish
                } else {
                    limit
                }
            }
            _ => self.now,
        }
    }

    /// `member` goes on after what it sent, with `budget` more bytes.
    pub fn go_on(&mut self, member: usize, budget: u32) {
        let times = &mut self.times[member];
        times.begin(times.finish, budget);
    }

    /// `member` sent `bytes` of its budget and no more.
    pub fn finish_after(&mut self, member: usize, bytes: u32) {
        let times = &mut self.times[member];
        times.begin(times.start, bytes);
    }

    /// `member` is served at once, since nobody else waits: its start is now.
    pub fn jump_to(&mut self, member: usize) {
        self.now = self.times[member].start;
        self.chosen_at = self.now;
    }

    /// Puts `member` into its group, while another is served (`qfq_schedule_agg`).
    pub fn insert(&mut self, member: usize) {
        let Times { start, group: index, .. } = self.times[member];
        let group = &mut self.groups[index];
        let rounded = round_down(start, group.shift);
        if group.full != 0 {
            if !later(group.start, start) {
                return self.put_into_slot(member, rounded);
            }
            // The group starts sooner: its slots move back to make room.
            let slots = group.start.wrapping_sub(rounded) >> group.shift;
            group.full <<= slots;
            group.front = group.front.wrapping_sub(slots as usize) % SLOTS;
            self.leave(index, &[IneligibleReady, IneligibleBlocked]);
        }
        self.place(index, rounded);
        self.put_into_slot(member, rounded);
    }

    /// Takes `member`, which is not served, out of its group (`qfq_deactivate_agg`).
    pub fn remove(&mut self, member: usize) {
        let Times { start, group: index, .. } = self.times[member];
        self.times[member].finish = start;
        let group = &mut self.groups[index];
        let offset = round_down(start, group.shift).wrapping_sub(group.start) >> group.shift;
        let slot = &mut group.slots[(group.front + offset as usize) % SLOTS];
        slot.retain(|&other| other != member);
        if slot.is_empty() {
            group.full &= !(1 << offset);
        }
        if group.full == 0 {
            self.leave(index, &[IneligibleReady, EligibleBlocked, IneligibleBlocked]);
            self.unblock_below(index);
            self.leave(index, &[EligibleReady]);
        } else if group.slots[group.front].is_empty() {
            let head = group.scan().expect("a slot is full");
            let rounded = round_down(self.times[head].start, self.groups[index].shift);
            if self.groups[index].start != rounded {
                self.leave(index, &ALL_STATES);
                self.place(index, rounded);
            }
        }
    }

    /// `index` was the last eligible group and goes: those that it blocked are blocked no more.
    fn unblock_below(&mut self, index: usize) {
        let ready = self.states[EligibleReady as usize];
        if ready & (1 << index) == 0 || ready & from(index) & !(1 << index) != 0 {
            return;
        }
        let below = ready & ((1 << index) - 1);
        let mask = below.checked_ilog2().map_or(u64::MAX, |last| from(last as usize));
        self.move_groups(mask, EligibleBlocked, EligibleReady);
        self.move_groups(mask, IneligibleBlocked, IneligibleReady);
    }

    /// Takes out the member that is to be served next (`qfq_choose_next_agg`).
    pub fn choose(&mut self) -> Option<usize> {
        self.make_eligible();
        self.chosen_at = self.now;
        let index = first(self.states[EligibleReady as usize])?;
        let group = &mut self.groups[index];
        let old_finish = group.finish;
        let member = group.slots[group.front].pop().expect("the first slot has members");
        if group.slots[group.front].is_empty() {
            group.full &= !1;
        }
        match group.scan() {
            None => self.leave(index, &[EligibleReady]),
            Some(head) => {
                let rounded = round_down(self.times[head].start, group.shift);
                if group.start == rounded {
                    return Some(member);
                }
                self.leave(index, &[EligibleReady]);
                self.place(index, rounded);
            }
        }
        self.unblock(index, old_finish);
        Some(member)
    }

    /// Lets those become eligible whose start has come; if nobody else is, the virtual time jumps to the
    /// first (`qfq_update_eligible`, `qfq_make_eligible`).
    fn make_eligible(&mut self) {
        let ineligible =
            self.states[IneligibleReady as usize] | self.states[IneligibleBlocked as usize];
        let Some(next) = first(ineligible) else { return };
        if self.states[EligibleReady as usize] == 0 && later(self.groups[next].start, self.now) {
            self.now = self.groups[next].start;
        }
        // The highest bit of slots that has changed tells which groups may have got on. The kernel
        // looks at 32 bits.
        let flipped = (self.now >> self.smallest_shift) ^ (self.chosen_at >> self.smallest_shift);
        let mask = match (flipped, (flipped as u32).checked_ilog2()) {
            (0, _) | (_, None) => return,
            (_, Some(31)) => u64::MAX,
            (_, Some(last)) => (2 << last) - 1,
        };
        self.move_groups(mask, IneligibleReady, EligibleReady);
        self.move_groups(mask, IneligibleBlocked, EligibleBlocked);
    }

    /// `index` no longer finishes at `old_finish`: smaller groups that it blocked may go, unless another
    /// one blocks them (`qfq_unblock_groups`).
    fn unblock(&mut self, index: usize, old_finish: u64) {
        let next = first(self.states[EligibleReady as usize] & from(index + 1));
        if next.is_some_and(|next| !later(self.groups[next].finish, old_finish)) {
            return;
        }
        let mask = (1 << index) - 1;
        self.move_groups(mask, EligibleBlocked, EligibleReady);
        self.move_groups(mask, IneligibleBlocked, IneligibleReady);
    }

    /// Lets the group `index` start at `rounded`, and finds its state (`qfq_calc_state`).
    fn place(&mut self, index: usize, rounded: u64) {
        let group = &mut self.groups[index];
        group.start = rounded;
        group.finish = rounded.wrapping_add(2 << group.shift);
        let (start, finish) = (group.start, group.finish);
        let blocking = first(self.states[EligibleReady as usize] & from(index));
        let blocked = blocking.is_some_and(|other| later(finish, self.groups[other].finish));
        let state = match (later(start, self.now), blocked) {
            (false, false) => EligibleReady,
            (true, false) => IneligibleReady,
            (false, true) => EligibleBlocked,
            (true, true) => IneligibleBlocked,
        };
        self.states[state as usize] |= 1 << index;
    }

    /// Puts `member` into its slot; one that would lie too far ahead is moved back with its times
    /// (`qfq_slot_insert`).
    fn put_into_slot(&mut self, member: usize, rounded: u64) {
        let times = &mut self.times[member];
        let group = &mut self.groups[times.group];
        let ahead = rounded.wrapping_sub(group.start);
        let last = SLOTS as u64 - 2;
        let slot = (ahead >> group.shift).min(last);
        if ahead >> group.shift > last {
            let back = ahead - (last << group.shift);
            times.start = times.start.wrapping_sub(back);
            times.finish = times.finish.wrapping_sub(back);
        }
        group.slots[(group.front + slot as usize) % SLOTS].push(member);
        group.full |= 1 << slot;
    }

    fn leave(&mut self, index: usize, states: &[State]) {
        for &state in states {
            self.states[state as usize] &= !(1 << index);
        }
    }

    fn move_groups(&mut self, mask: u64, source: State, target: State) {
        self.states[target as usize] |= self.states[source as usize] & mask;
        self.states[source as usize] &= !mask;
    }
}

impl Times {
    fn begin(&mut self, start: u64, budget: u32) {
        self.start = start;
        self.finish = start.wrapping_add(u64::from(budget) * self.inverse_weight);
    }
}

impl Group {
    /// Moves on to the first slot that has members, and returns the one that is served first.
    fn scan(&mut self) -> Option<usize> {
        let empty = first(self.full)?;
        self.front = (self.front + empty) % SLOTS;
        self.full >>= empty;
        self.slots[self.front].last().copied()
    }
}

/// Whether virtual time `one` is later than `other`, which may have wrapped.
fn later(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) > 0
}

fn round_down(time: u64, shift: u32) -> u64 {
    time >> shift << shift
}

/// The lowest bit of `bits`.
fn first(bits: u64) -> Option<usize> {
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

/// The bits from `lowest` on.
fn from(lowest: usize) -> u64 {
    u64::MAX << lowest
}

const ALL_STATES: [State; 4] = [EligibleReady, IneligibleReady, EligibleBlocked, IneligibleBlocked];

/// `QFQ_MAX_INDEX` + 1.
const GROUPS: usize = 25;

/// `QFQ_MAX_SLOTS`.
const SLOTS: usize = 32;

/// The longest packet has 2^16 bytes (`QFQ_MTU_SHIFT`).
const MAX_PACKET_SHIFT: u32 = 16;
