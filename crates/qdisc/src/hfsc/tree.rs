//! The hierarchy: who is owed service now, and whose share of the rest is next.
//!
//! Two questions are asked one after the other (Stoica, Zhang, Ng, SIGCOMM 1997). *Real time*: among
//! the leaves whose service may begin by now, which has the earliest deadline? If there is none, *link
//! sharing*: from the root down, which child has had the least of its share, and may send by the upper
//! limits?

use std::num::NonZeroU64;

use super::curve::{Curve, Shape, Ticks};

/// The parameters of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Curves {
    /// Real-time service curve: the service that a leaf is guaranteed.
    pub real_time: Option<Shape>,
    /// By what the rest is shared.
    pub link_share: Option<Shape>,
    /// Upper-limit service curve: the most that link sharing may give.
    pub upper_limit: Option<Shape>,
}

/// All classes; the root has number 0, and class `n` of the spec is number `n` + 1.
pub(super) struct Tree {
    classes: Vec<Class>,
    /// The leaves with a real-time curve that have packets, by when their service may begin.
    eligible: Sorted<Ticks>,
}

/// One class. "Active" means: it, or one beneath it, has packets and takes part in link sharing.
#[derive(Default)]
struct Class {
    parent: Option<usize>,
    is_leaf: bool,
    curves: Curves,
    /// Bytes sent, and those of them by real time.
    total: u64,
    real_time_total: u64,

    /// The real-time curve as it stands, from the first packet on; its deadline for the next packet.
    deadline_curve: Option<Curve>,
    deadline: Ticks,

    /// The link-share curve in the parent's virtual time, and where the class stands in it.
    virtual_curve: Option<Curve>,
    virtual_time: Ticks,
    /// Amount added to the virtual time because the class could not send when it was its turn.
    adjustment: Ticks,
    /// How often the class became active, and how often the parent had when this one last did.
    period: u32,
    parent_period: u32,
    /// Active children; 1 for an active leaf.
    active: u32,

    /// The upper-limit curve as it stands, from the first packet on, and when by it the class may send.
    limit_curve: Option<Curve>,
    own_fit: Fit,
    /// When the class may send by its own limit and those beneath it.
    fit: Fit,

    /// The active children by virtual time, and by when they may send.
    by_virtual_time: Sorted<Ticks>,
    by_fit: Sorted<Fit>,
    /// Largest virtual time at which a child was served in this period; `None` before the first, and as in Linux while
    /// that time is 0.
    served: Option<NonZeroU64>,
    /// Largest virtual time of a child that left.
    most_left: Ticks,
}

/// When a class may send; `None` if no limit says.
type Fit = Option<Ticks>;

/// Classes by a time; equal times stand in the order in which they came.
#[derive(Default)]
struct Sorted<T>(Vec<(T, usize)>);

impl<T: Copy + Ord> Sorted<T> {
    fn insert(&mut self, at: T, class: usize) {
        let place = self.0.partition_point(|&(other, _)| other <= at);
        self.0.insert(place, (at, class));
    }

    fn remove(&mut self, class: usize) {
        self.0.retain(|&(_, other)| other != class);
    }

    fn contains(&self, class: usize) -> bool {
        self.0.iter().any(|&(_, other)| other == class)
    }

    fn first(&self) -> Option<T> {
        self.0.first().map(|&(at, _)| at)
    }
}

impl Tree {
    /// A tree of classes, each with the place of its parent among them (`None` for the root).
    pub fn new(classes: &[(Option<usize>, Curves)]) -> Self {
        let mut all = vec![Class::default()];
        for (parent, curves) in classes {
            let start = |shape: Shape| Curve::new(shape, (0, 0));
            all.push(Class {
                parent: Some(parent.map_or(0, |parent| parent + 1)),
                is_leaf: true,
                curves: *curves,
                virtual_curve: curves.link_share.map(start),
                ..Class::default()
            });
        }
        for class in 1..all.len() {
            let parent = all[class].parent.expect("only the root has none");
            all[parent].is_leaf = false;
            if parent != 0 && all[parent].virtual_curve.is_none() {
                // Real time guarantees leaves only: "Forced curve change on parent 'rt' to 'sc'".
                let real_time = all[parent].curves.real_time;
                all[parent].virtual_curve = real_time.map(|shape| Curve::new(shape, (0, 0)));
            }
        }
        Self { classes: all, eligible: Sorted::default() }
    }

    /// Whether `leaf` takes part in either.
    pub fn is_active(&self, leaf: usize) -> bool {
        let class = &self.classes[leaf + 1];
        class.virtual_curve.is_some() && class.active > 0
            || class.curves.real_time.is_some() && self.eligible.contains(leaf + 1)
    }

    /// Whether `leaf` has a real-time curve, so that the length of its next packet matters.
    pub fn has_deadlines(&self, leaf: usize) -> bool {
        self.classes[leaf + 1].curves.real_time.is_some()
    }

    /// `leaf` had nothing and now has a packet of `len` bytes.
    pub fn activate(&mut self, leaf: usize, len: u32, now: Ticks) {
        let leaf = leaf + 1;
        let class = &mut self.classes[leaf];
        if let Some(shape) = class.curves.real_time {
            come_back(&mut class.deadline_curve, shape, (now, class.real_time_total));
            self.schedule(leaf, len);
        }
        if self.classes[leaf].virtual_curve.is_some() {
            self.join_sharing(leaf, now);
        }
    }

    /// The leaf that is to send now, and whether by its guarantee.
    pub fn next(&mut self, now: Ticks) -> Option<(usize, bool)> {
        let due = self.eligible.0.iter().take_while(|&&(from, _)| from <= now);
        // Of equal deadlines the first.
        if let Some(&(_, leaf)) = due.min_by_key(|&&(_, class)| self.classes[class].deadline) {
            return Some((leaf - 1, true));
        }
        self.next_sharing(now).map(|leaf| (leaf - 1, false))
    }

    /// When [`next`](Self::next), which found nothing, may find something.
    pub fn next_event(&self) -> Option<Ticks> {
        let limited = self.classes[0].by_fit.first().flatten();
        self.eligible.first().into_iter().chain(limited).min()
    }

    /// `leaf` sent `len` bytes; `waits` says whether more wait there.
    pub fn sent(&mut self, leaf: usize, len: u32, by_guarantee: bool, waits: bool) {
        self.account(leaf + 1, len, waits);
        if by_guarantee {
            self.classes[leaf + 1].real_time_total += u64::from(len);
        }
    }

    /// The next packet of `leaf` after one that was [sent](Self::sent) has `len` bytes.
    pub fn reschedule(&mut self, leaf: usize, len: u32, by_guarantee: bool) {
        if by_guarantee {
            self.eligible.remove(leaf + 1);
            self.schedule(leaf + 1, len);
        } else {
            let class = &mut self.classes[leaf + 1];
            class.deadline = class.deadline_for(len);
        }
    }

    /// `leaf` has nothing more, and did not just send.
    pub fn deactivate(&mut self, leaf: usize) {
        if self.classes[leaf + 1].active > 0 {
            self.account(leaf + 1, 0, false);
        }
        self.end_deadlines(leaf);
    }

    /// `leaf` has no packet to be served by a deadline.
    pub fn end_deadlines(&mut self, leaf: usize) {
        self.eligible.remove(leaf + 1);
    }

    fn schedule(&mut self, leaf: usize, len: u32) {
        let class = &mut self.classes[leaf];
        let curve = class.deadline_curve.expect("a real-time curve").eligible();
        class.deadline = class.deadline_for(len);
        self.eligible.insert(curve.time_of(class.real_time_total), leaf);
    }

    /// From the root down the child with the least virtual time that may send.
    fn next_sharing(&mut self, now: Ticks) -> Option<usize> {
        if self.classes[0].by_fit.first().is_some_and(|fit| fit > Some(now)) {
            return None;
        }
        let mut class = 0;
        while !self.classes[class].is_leaf {
            let children = &self.classes[class].by_virtual_time.0;
            let (_, child) =
                *children.iter().find(|&&(_, child)| self.classes[child].fit <= Some(now))?;
            let served = NonZeroU64::new(self.classes[child].virtual_time);
            let parent = &mut self.classes[class];
            parent.served = parent.served.max(served);
            class = child;
        }
        Some(class)
    }

    /// `leaf` becomes active, and with it those above it that were not.
    fn join_sharing(&mut self, leaf: usize, now: Ticks) {
        let mut class = leaf;
        let mut joins = true;
        while let Some(parent) = self.classes[class].parent {
            if joins {
                self.classes[class].active += 1;
                joins = self.classes[class].active == 1;
            }
            if joins {
                self.join(class, parent, now);
            }
            self.update_fit(class, parent);
            class = parent;
        }
    }

    /// `class` joins the active children of `parent`.
    fn join(&mut self, class: usize, parent: usize, now: Ticks) {
        let (it, parent_class) = pair(&mut self.classes, class, parent);
        match parent_class.by_virtual_time.0.last() {
            Some(&(last, _)) => {
                // Between the least and the most that the others have had; within a period of the
                // parent a class that comes back keeps what it had, if that is more.
                let middle = parent_class.served.map_or(last, |least| (least.get() + last) / 2);
                if it.parent_period != parent_class.period || middle > it.virtual_time {
                    it.virtual_time = middle;
                }
            }
            None => {
                it.virtual_time = parent_class.most_left;
                parent_class.served = None;
            }
        }
        if let Some(curve) = &mut it.virtual_curve {
            curve.lower_to((it.virtual_time, it.total));
        }
        it.adjustment = 0;
        it.period = it.period.wrapping_add(1);
        it.parent_period = parent_class.period;
        if parent_class.active == 0 {
            // The parent joins right after this and then is a period further.
            it.parent_period = it.parent_period.wrapping_add(1);
        }
        it.fit = None;
        parent_class.by_virtual_time.insert(it.virtual_time, class);
        parent_class.by_fit.insert(None, class);
        if let Some(shape) = it.curves.upper_limit {
            let curve = come_back(&mut it.limit_curve, shape, (now, it.total));
            it.own_fit = Some(curve.time_of(it.total));
        }
    }

    /// Accounts `len` bytes that `leaf` sent to it and all above it.
    fn account(&mut self, leaf: usize, len: u32, waits: bool) {
        let mut class = leaf;
        let mut leaves = !waits && self.classes[leaf].active > 0;
        while let Some(parent) = self.classes[class].parent {
            let (it, parent_class) = pair(&mut self.classes, class, parent);
            it.total += u64::from(len);
            if let Some(curve) = it.virtual_curve.filter(|_| it.active > 0) {
                if leaves {
                    it.active -= 1;
                    leaves = it.active == 0;
                }
                it.virtual_time = curve.time_of(it.total).wrapping_add(it.adjustment);
                let served = parent_class.served.map_or(0, NonZeroU64::get);
                if it.virtual_time < served {
                    // It was passed over while it could not send: no credit for that.
                    it.adjustment += served - it.virtual_time;
                    it.virtual_time = served;
                }
                parent_class.by_virtual_time.remove(class);
                if leaves {
                    parent_class.most_left = parent_class.most_left.max(it.virtual_time);
                    parent_class.by_fit.remove(class);
                } else {
                    parent_class.by_virtual_time.insert(it.virtual_time, class);
                    if let Some(limit) = &it.limit_curve {
                        it.own_fit = Some(limit.time_of(it.total));
                    }
                    self.update_fit(class, parent);
                }
            }
            class = parent;
        }
    }

    /// When `class` may send has changed, perhaps.
    fn update_fit(&mut self, class: usize, parent: usize) {
        let (it, parent_class) = pair(&mut self.classes, class, parent);
        let fit = it.own_fit.max(it.by_fit.first().flatten());
        if fit != it.fit {
            it.fit = fit;
            if it.active > 0 {
                parent_class.by_fit.remove(class);
                parent_class.by_fit.insert(fit, class);
            }
        }
    }
}

impl Class {
    fn deadline_for(&self, len: u32) -> Ticks {
        let curve = self.deadline_curve.expect("a real-time curve");
        curve.time_of(self.real_time_total + u64::from(len))
    }
}

/// A class with a curve in real time comes back at `start`. Linux begins such curves when the machine starts, which
/// is so long before the first packet that this one finds no trace of it.
fn come_back(curve: &mut Option<Curve>, shape: Shape, start: (Ticks, u64)) -> &Curve {
    match curve {
        Some(begun) => begun.lower_to(start),
        None => *curve = Some(Curve::new(shape, start)),
    }
    curve.as_ref().expect("it has just begun")
}

/// Class `child` and its `parent`, which stands before it.
fn pair(classes: &mut [Class], child: usize, parent: usize) -> (&mut Class, &mut Class) {
    let (front, back) = classes.split_at_mut(child);
    (&mut back[0], &mut front[parent])
}
