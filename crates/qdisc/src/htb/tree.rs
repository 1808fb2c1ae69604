//! The tree of active classes: who may send, at which level, in whose turn.
//!
//! A class that has packets stands in the *row* of its level if it can send, or in the *feed* of its
//! parent if it must borrow; the parent then stands for it, further up. Rows and feeds are sorted by
//! class number, and each remembers where its round robin stands.

use weir_core::{Duration, Packet, Time};

use super::class::{Class, Mode};
use crate::contract::DropSink;
use crate::leaves::Leaves;
use crate::tc::Handle;

/// Levels of classes (`TC_HTB_MAXDEPTH`).
pub(super) const LEVELS: usize = 8;
/// Priorities of leaves (`TC_HTB_NUMPRIO`).
pub(super) const PRIORITIES: usize = 8;

pub(super) struct Tree {
    classes: Vec<Class>,
    /// By class: for each priority the children that borrow through it.
    feeds: Vec<[Ring; PRIORITIES]>,
    /// By class: the priorities for which it, or a child through it, wants to send.
    activity: Vec<u8>,
    /// By level and priority: the classes that can send.
    rows: [[Ring; PRIORITIES]; LEVELS],
    /// By level: when classes may change their mode, soonest first.
    waiting: [Vec<(Time, usize)>; LEVELS],
    /// By level: the priorities whose row is not empty.
    row_mask: [u8; LEVELS],
    /// The queues, by class.
    pub leaves: Leaves,
}

/// Classes sorted by number, with the place where the round robin stands.
#[derive(Clone, Default)]
struct Ring {
    members: Vec<(Handle, usize)>,
    next: RingCursor,
}

/// Where a round robin stands.
#[derive(Clone, Copy, Default, PartialEq)]
enum RingCursor {
    /// Behind the last class: the next look starts over.
    #[default]
    End,
    /// At this class.
    At(Handle),
    /// At this class or, since it has left, at the one behind it.
    AtOrAfter(Handle),
}

/// One ring of the tree.
#[derive(Clone, Copy)]
enum RingAt {
    Row(usize, usize),
    Feed(usize, usize),
}

impl Ring {
    fn insert(&mut self, id: Handle, class: usize) {
        let at = self.members.partition_point(|(other, _)| *other < id);
        self.members.insert(at, (id, class));
    }

    fn remove(&mut self, id: Handle) {
        self.members.retain(|&(other, _)| other != id);
    }

    fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The class at which the round robin stands.
    fn current(&mut self) -> Option<usize> {
        if let RingCursor::AtOrAfter(id) = self.next {
            self.next = RingCursor::of(self.members.iter().find(|&&(other, _)| other >= id));
        }
        let RingCursor::At(id) = self.next else { return None };
        self.members.iter().find(|&&(other, _)| other == id).map(|&(_, class)| class)
    }

    /// Moves on to the next class, or to the end.
    fn advance(&mut self) {
        if let RingCursor::At(id) = self.next {
            self.next = RingCursor::of(self.members.iter().find(|&&(other, _)| other > id));
        }
    }

    fn rewind(&mut self) {
        self.next = RingCursor::of(self.members.first());
    }
}

impl RingCursor {
    fn of(member: Option<&(Handle, usize)>) -> Self {
        member.map_or(Self::End, |&(id, _)| Self::At(id))
    }
}

impl Tree {
    pub fn new(classes: Vec<Class>, leaves: Leaves) -> Self {
        Self {
            feeds: vec![std::array::from_fn(|_| Ring::default()); classes.len()],
            activity: vec![0; classes.len()],
            rows: std::array::from_fn(|_| std::array::from_fn(|_| Ring::default())),
            waiting: std::array::from_fn(|_| Vec::new()),
            row_mask: [0; LEVELS],
            leaves,
            classes,
        }
    }

    /// Puts `packet` into the queue of `leaf`, which then takes part in the turns.
    pub fn enqueue(&mut self, leaf: usize, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        self.leaves.enqueue(leaf, packet, now, sink);
        if self.activity[leaf] == 0 && self.waits_in(leaf) {
            self.activity[leaf] = 1 << self.classes[leaf].prio;
            self.enter(leaf);
        }
    }

    /// The priorities at which a class of `level` can send, the most important first.
    pub fn active_priorities(&self, level: usize) -> impl Iterator<Item = usize> + use<> {
        bits(self.row_mask[level])
    }

    /// Changes the modes of the classes of `level` whose time has come, and says when the next may.
    pub fn apply_due_mode_changes(&mut self, level: usize, now: Time) -> Option<Time> {
        loop {
            let &(due, class) = self.waiting[level].first()?;
            if due > now {
                return Some(due);
            }
            self.waiting[level].remove(0);
            self.update_mode(class, now);
        }
    }

    /// Sends a packet of the class whose turn it is at `level` and `prio`.
    pub fn dequeue(
        &mut self,
        level: usize,
        prio: usize,
        now: Time,
        sink: &mut dyn DropSink,
    ) -> Option<Packet> {
        let mut class = self.leaf_in_turn(level, prio)?;
        let mut start = class;
        loop {
            if !self.waits_in(class) {
                // Its queue dropped what it had.
                self.deactivate(class);
                let next = self.leaf_in_turn(level, prio)?;
                if class == start {
                    start = next;
                }
                class = next;
                continue;
            }
            if let Some(packet) = self.leaves.dequeue(class, now, sink) {
                self.sent(class, level, prio, &packet, now);
                return Some(packet);
            }
            self.ring(self.turn_ring(class, level, prio)).advance();
            class = self.leaf_in_turn(level, prio)?;
            if class == start {
                return None;
            }
        }
    }

    fn waits_in(&self, leaf: usize) -> bool {
        self.leaves.backlog_of(leaf).packets > 0
    }

    /// `packet` of `class` left, lent by `level`.
    fn sent(&mut self, class: usize, level: usize, prio: usize, packet: &Packet, now: Time) {
        let quantum = self.classes[class].quantum;
        let deficit = &mut self.classes[class].deficit[level];
        *deficit -= i64::from(packet.len);
        if *deficit < 0 {
            *deficit += quantum;
            self.ring(self.turn_ring(class, level, prio)).advance();
        }
        if !self.waits_in(class) {
            self.deactivate(class);
        }
        self.charge(class, level, packet.len, now);
    }

    /// The class and everything above it pay; modes may change by it.
    fn charge(&mut self, leaf: usize, level: usize, len: u32, now: Time) {
        let mut payer = Some(leaf);
        while let Some(class) = payer {
            let lends = self.classes[class].level >= level;
            self.classes[class].charge(len, lends, now);
            let old = self.classes[class].mode;
            let (new, wait) = self.classes[class].mode_at(now);
            if new != old {
                self.change_mode(class, new);
                if old != Mode::CanSend {
                    let of_level = &mut self.waiting[self.classes[class].level];
                    of_level.retain(|&(_, other)| other != class);
                }
                if new != Mode::CanSend {
                    self.wait(class, wait, now);
                }
            }
            payer = self.classes[class].parent;
        }
    }

    /// Gives `class` the mode that it has at `now`, and lets it wait for the next if it cannot send.
    fn update_mode(&mut self, class: usize, now: Time) {
        let (mode, wait) = self.classes[class].mode_at(now);
        if mode != self.classes[class].mode {
            self.change_mode(class, mode);
        }
        if mode != Mode::CanSend {
            self.wait(class, wait, now);
        }
    }

    fn wait(&mut self, class: usize, nanos: i64, now: Time) {
        let due = now + Duration::from_nanos(nanos.max(1) as u64);
        let queue = &mut self.waiting[self.classes[class].level];
        let at = queue.partition_point(|&(other, _)| other <= due);
        queue.insert(at, (due, class));
    }

    fn change_mode(&mut self, class: usize, mode: Mode) {
        if self.activity[class] == 0 {
            self.classes[class].mode = mode;
            return;
        }
        if self.classes[class].mode != Mode::CantSend {
            self.leave(class);
        }
        self.classes[class].mode = mode;
        if mode != Mode::CantSend {
            self.enter(class);
        }
    }

    fn deactivate(&mut self, leaf: usize) {
        if self.activity[leaf] != 0 {
            self.leave(leaf);
            self.activity[leaf] = 0;
        }
    }

    /// Enters `class` into the feeds above it, as far up as borrowing reaches, and the topmost into its
    /// row if that can send.
    fn enter(&mut self, class: usize) {
        let mut class = class;
        let mut wanted = self.activity[class];
        while self.classes[class].mode == Mode::MayBorrow && wanted != 0 {
            let Some(parent) = self.classes[class].parent else { break };
            let id = self.classes[class].id;
            for prio in bits(wanted) {
                if !self.feeds[parent][prio].is_empty() {
                    // The parent stands for this priority already.
                    wanted &= !(1 << prio);
                }
                self.feeds[parent][prio].insert(id, class);
            }
            self.activity[parent] |= wanted;
            class = parent;
        }
        if self.classes[class].mode == Mode::CanSend {
            let (id, level) = (self.classes[class].id, self.classes[class].level);
            for prio in bits(wanted) {
                self.rows[level][prio].insert(id, class);
            }
            self.row_mask[level] |= wanted;
        }
    }

    /// Takes `class` out of the feeds above it and out of its row.
    fn leave(&mut self, class: usize) {
        let mut class = class;
        let mut wanted = self.activity[class];
        while self.classes[class].mode == Mode::MayBorrow && wanted != 0 {
            let Some(parent) = self.classes[class].parent else { break };
            let id = self.classes[class].id;
            let mut emptied = 0;
            for prio in bits(wanted) {
                let feed = &mut self.feeds[parent][prio];
                if feed.next == RingCursor::At(id) {
                    feed.next = RingCursor::AtOrAfter(id);
                }
                feed.remove(id);
                if feed.is_empty() {
                    emptied |= 1 << prio;
                }
            }
            self.activity[parent] &= !emptied;
            wanted = emptied;
            class = parent;
        }
        if self.classes[class].mode == Mode::CanSend {
            let (id, level) = (self.classes[class].id, self.classes[class].level);
            for prio in bits(wanted) {
                let row = &mut self.rows[level][prio];
                if row.next == RingCursor::At(id) {
                    row.advance();
                }
                row.remove(id);
                if row.is_empty() {
                    self.row_mask[level] &= !(1 << prio);
                }
            }
        }
    }

    /// Follows the round robins from a row down to the leaf whose turn it is.
    fn leaf_in_turn(&mut self, level: usize, prio: usize) -> Option<usize> {
        if self.rows[level][prio].is_empty() {
            return None;
        }
        let mut path = [RingAt::Row(level, prio); LEVELS + 1];
        let mut depth = 0;
        loop {
            match self.ring(path[depth]).current() {
                Some(class) if self.leaves.holds_queue(class) => return Some(class),
                Some(class) => {
                    depth += 1;
                    path[depth] = RingAt::Feed(class, prio);
                }
                None => {
                    // The end of this ring: start it over, and it is the next one's turn above.
                    self.ring(path[depth]).rewind();
                    if depth > 0 {
                        depth -= 1;
                        self.ring(path[depth]).advance();
                    }
                }
            }
        }
    }

    /// The ring in which `class` takes turns when it sends at `level`.
    fn turn_ring(&self, class: usize, level: usize, prio: usize) -> RingAt {
        match self.classes[class].parent {
            Some(parent) if level > 0 => RingAt::Feed(parent, prio),
            _ => RingAt::Row(0, prio),
        }
    }

    fn ring(&mut self, at: RingAt) -> &mut Ring {
        match at {
            RingAt::Row(level, prio) => &mut self.rows[level][prio],
            RingAt::Feed(class, prio) => &mut self.feeds[class][prio],
        }
    }
}

/// The numbers of the bits that are set, lowest first.
fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |bit| mask & (1 << bit) != 0)
}
