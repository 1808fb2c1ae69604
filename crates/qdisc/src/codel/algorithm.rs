//! The CoDel algorithm, apart from any queue.
//!
//! Follows RFC 8289 as Linux has it (`include/net/codel_impl.h`): time in units of 1024 ns, the
//! inverse square root kept in 16 bits and refined by one Newton step a drop, and a restart from the
//! last drop rate within 16 intervals. The queue is reached through [`CodelQueue`] only, so that
//! `fq_codel` can keep one [`CodelState`] a flow.

use weir_core::{Duration, Packet, Time};

use crate::accounting::Accounting;
use crate::contract::{DropReason, DropSink, MarkReason};

/// The operations of a queue that CoDel controls.
pub(crate) trait CodelQueue {
    /// Takes the oldest packet, which then no longer counts into the backlog.
    fn pop(&mut self) -> Option<Packet>;
    /// Bytes that wait in the whole discipline.
    fn backlog_bytes(&self) -> u64;
    /// The accounting of the whole discipline.
    fn accounting(&mut self) -> &mut Accounting;
}

/// CoDel's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelParams {
    target: Ticks,
    interval: Ticks,
    ce_threshold: Option<Ticks>,
    /// A backlog of at most one full packet is never too long.
    full_packet: u32,
    ecn: bool,
}

/// CoDel's state: one a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodelState {
    /// Drops since the dropping state was entered; sets the drop rate.
    count: u32,
    /// `count` when the dropping state was last entered.
    last_count: u32,
    /// 1/sqrt(count) as a fraction of 2^16.
    inverse_sqrt: u16,
    dropping: bool,
    /// When the sojourn time will have been above the target for an interval.
    above_until: Option<Ticks>,
    /// When the next drop is due, or would have been; `None` before the first one.
    drop_next: Option<Ticks>,
    /// Sojourn time of the last packet that was looked at.
    sojourn: Ticks,
}

/// Time in units of 1024 ns (`CODEL_SHIFT`).
type Ticks = u64;

impl CodelParams {
    /// Parameters as `tc` takes them: whole microseconds, then ticks.
    pub fn new(
        target: Duration,
        interval: Duration,
        ce_threshold: Option<Duration>,
        full_packet: u32,
        ecn: bool,
    ) -> Self {
        let ticks = |span: Duration| (span.as_micros() * 1_000) >> TICK_SHIFT;
        Self {
            target: ticks(target),
            interval: ticks(interval),
            ce_threshold: ce_threshold.map(ticks),
            full_packet,
            ecn,
        }
    }
}

impl CodelState {
    /// Counts `drops` that the discipline itself made, so that the signal grows with them.
    pub fn add_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// Nothing waits, or only a packet that has just come: what was above the target is over.
    #[inline]
    pub fn on_empty(&mut self) {
        self.above_until = None;
        self.dropping = false;
    }

    /// Whether `packet`, just taken from the queue, may be dropped: RFC 8289, section 5.6
    /// ("dodequeue").
    fn may_drop(
        &mut self,
        packet: Option<&Packet>,
        backlog_bytes: u64,
        params: &CodelParams,
        now: Ticks,
    ) -> bool {
        let Some(packet) = packet else {
            self.above_until = None;
            return false;
        };
        self.sojourn = now - ticks_of(packet.enqueued_at);
        if self.sojourn < params.target || backlog_bytes <= u64::from(params.full_packet) {
            self.above_until = None;
            return false;
        }
        match self.above_until {
            None => {
                self.above_until = Some(now + params.interval);
                false
            }
            Some(until) => now > until,
        }
    }

    /// When the drop after the one at `at` is due: RFC 8289, section 5.5 ("control_law").
    fn control_law(&self, at: Ticks, params: &CodelParams) -> Ticks {
        // interval / sqrt(count), the fraction in Q0.32.
        at + ((params.interval * (u64::from(self.inverse_sqrt) << 16)) >> 32)
    }

    /// One Newton step towards 1/sqrt(count): x' = x (3 - count x^2) / 2.
    fn refine_inverse_sqrt(&mut self) {
        let x = u64::from(self.inverse_sqrt) << 16;
        let x_squared = (x * x) >> 32;
        // As in Linux the difference may wrap for a count that jumped; the next steps recover.
        let term = (3u64 << 32).wrapping_sub(u64::from(self.count) * x_squared) >> 2;
        self.inverse_sqrt = ((term.wrapping_mul(x) >> 31) as u32 >> 16) as u16;
    }

    /// Enters the dropping state, at the drop rate that worked a short while ago if there was one.
    fn enter_dropping(&mut self, params: &CodelParams, now: Ticks) {
        self.dropping = true;
        let since_entry = self.count.wrapping_sub(self.last_count);
        let recently = self.drop_next.is_some_and(|due| now < due + 16 * params.interval);
        if since_entry > 1 && recently {
            self.count = since_entry;
            self.refine_inverse_sqrt();
        } else {
            self.count = 1;
            self.inverse_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = Some(self.control_law(now, params));
    }
}

/// Takes the next packet of `queue` that CoDel lets pass at `now`.
#[inline(always)]
pub(crate) fn codel_dequeue(
    queue: &mut impl CodelQueue,
    state: &mut CodelState,
    params: &CodelParams,
    now: Time,
    sink: &mut dyn DropSink,
) -> Option<Packet> {
    let now = ticks_of(now);
    let mut candidate = queue.pop();
    if candidate.is_none() {
        state.on_empty();
        return candidate;
    }
    let may_drop = state.may_drop(candidate.as_ref(), queue.backlog_bytes(), params, now);
    if may_drop {
        candidate = drop_from(candidate, queue, state, params, now, sink);
    } else {
        state.dropping = false;
    }
    if let (Some(packet), Some(threshold)) = (&mut candidate, params.ce_threshold)
        && state.sojourn > threshold
    {
        queue.accounting().mark(packet, MarkReason::CeThreshold, sink);
    }
    candidate
}

/// Drops `candidate` or marks it if it is time, and returns what passes. It has waited for too long.
#[inline(never)]
fn drop_from(
    mut candidate: Option<Packet>,
    queue: &mut impl CodelQueue,
    state: &mut CodelState,
    params: &CodelParams,
    now: Ticks,
    sink: &mut dyn DropSink,
) -> Option<Packet> {
    if state.dropping {
        return drop_while_due(candidate, queue, state, params, now, sink);
    }
    if !mark_instead(candidate.as_mut(), queue, params, sink) {
        discard(candidate, queue, sink);
        candidate = queue.pop();
        state.may_drop(candidate.as_ref(), queue.backlog_bytes(), params, now);
    }
    state.enter_dropping(params, now);
    candidate
}

/// Drops, or marks, as long as a drop is due: more than one if the schedule has fallen behind.
fn drop_while_due(
    mut candidate: Option<Packet>,
    queue: &mut impl CodelQueue,
    state: &mut CodelState,
    params: &CodelParams,
    now: Ticks,
    sink: &mut dyn DropSink,
) -> Option<Packet> {
    while let Some(due) = state.drop_next.filter(|&due| state.dropping && due <= now) {
        state.count = state.count.wrapping_add(1);
        state.refine_inverse_sqrt();
        if mark_instead(candidate.as_mut(), queue, params, sink) {
            state.drop_next = Some(state.control_law(due, params));
            return candidate;
        }
        discard(candidate, queue, sink);
        candidate = queue.pop();
        if state.may_drop(candidate.as_ref(), queue.backlog_bytes(), params, now) {
            state.drop_next = Some(state.control_law(due, params));
        } else {
            state.dropping = false;
        }
    }
    candidate
}

fn discard(candidate: Option<Packet>, queue: &mut impl CodelQueue, sink: &mut dyn DropSink) {
    if let Some(packet) = candidate {
        queue.accounting().discard(packet, DropReason::TargetExceeded, sink);
    }
}

fn mark_instead(
    candidate: Option<&mut Packet>,
    queue: &mut impl CodelQueue,
    params: &CodelParams,
    sink: &mut dyn DropSink,
) -> bool {
    params.ecn
        && candidate
            .is_some_and(|packet| queue.accounting().mark(packet, MarkReason::TargetExceeded, sink))
}

fn ticks_of(time: Time) -> Ticks {
    time.as_nanos() >> TICK_SHIFT
}

/// One tick is 2^10 ns, so that a shift turns a clock reading into ticks (`CODEL_SHIFT`).
const TICK_SHIFT: u32 = 10;
