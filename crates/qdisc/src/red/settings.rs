//! RED's parameters as one writes them, and what `tc` makes of them before the kernel sees them.
//!
//! Follows iproute2 6.1 `tc/tc_red.c`: the weight of the average is the largest power of two that lets
//! a burst pass, and the idle table models the packets that the line would have sent.

use weir_core::Rate;

use super::Policy;
use super::algorithm::{Average, CELLS, IdleDamping, RedParams};
use crate::linux::burst_time;
use crate::tc::{
    self, Declared, ParamKind, SpecError, Text, Unless0, number, probability, rate, switch,
};

/// RED's parameters as `tc` takes them, with defaults filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedSettings {
    /// Lower threshold of the average, in bytes or packets.
    pub min: u32,
    /// Upper threshold, in the same unit.
    pub max: u32,
    /// Bytes that one unit of the thresholds stands for: 1, or `avpkt` where they count packets.
    pub unit: u32,
    /// Bytes of an average packet (`avpkt`).
    pub average_packet: u32,
    /// Packets that may come at once without being dropped.
    pub burst: u32,
    /// Probability of a drop at the upper threshold, above 0.
    pub probability: f64,
    /// Rate of the line, for the idle time; `None` keeps the average while the queue is idle.
    pub bandwidth: Option<Rate>,
    /// Whether the probability rises to 1 at twice the upper threshold instead of jumping there.
    pub gentle: bool,
}

/// RED as a kernel is told of it: `struct tc_red_qopt` (include/uapi/linux/pkt_sched.h), and what stands beside it.
#[derive(Clone, Copy, Debug)]
pub struct RedTold {
    /// Lower threshold of the average, in bytes or packets.
    pub min: u32,
    /// Upper threshold, in the same unit.
    pub max: u32,
    /// An arrival weighs 2^-this in the average (`Wlog`).
    pub weight_log: u8,
    /// The greatest probability as a power of two (`Plog`), for one that `max_p` cannot hold.
    pub probability_log: u8,
    /// Cells of the idle table are of 2^this microseconds (`Scell_log`).
    pub cell_log: u8,
    /// ECN, hard drop, adaptive and no drop (`TC_RED_ECN`, `TC_RED_HARDDROP`, `TC_RED_ADAPTATIVE`, `TC_RED_NODROP`).
    pub flags: u8,
    /// The greatest probability as a fraction of 2^32; 0 if it is 1 (`TCA_RED_MAX_P`).
    pub max_p: u32,
    /// By how many bits the average falls in so many idle cells (`TCA_RED_STAB`).
    pub shifts: [u8; CELLS],
}

impl RedSettings {
    /// What a kernel is told of these settings of the discipline called `owner`, and of its `policy`.
    ///
    /// # Errors
    /// As [`for_kernel`](Self::for_kernel).
    pub fn told(&self, owner: &str, policy: Policy) -> Result<RedTold, SpecError> {
        let params = self.for_kernel(owner)?;
        let (cell_log, shifts) =
            params.damping.map_or((0, [0; CELLS]), |idle| (idle.cell_log, idle.shifts));
        Ok(RedTold {
            min: self.min,
            max: self.max,
            weight_log: params.weight_log as u8,
            probability_log: self.probability_log().unwrap_or(0) as u8,
            cell_log: cell_log as u8,
            flags: policy.flags(),
            max_p: self.fraction(),
            shifts,
        })
    }

    /// The kernel's parameters, of the discipline called `owner`.
    ///
    /// # Errors
    /// If the thresholds are not in order or too large for the weight, the burst is too small for the
    /// lower threshold, or the probability or bandwidth is out of what fixed point can hold.
    pub fn for_kernel(&self, owner: &str) -> Result<RedParams, SpecError> {
        let Self { min, max, probability, .. } = *self;
        if max < min {
            return Err(SpecError::bad(
                owner,
                "max",
                &max.to_string(),
                &format!("it is below `min` {min}"),
            ));
        }
        let weight_log = self.weight_log().ok_or_else(|| {
            let least = 1 + u64::from(min) * u64::from(self.unit) / u64::from(self.average_packet);
            let allowed = if u64::from(self.burst) < least {
                format!("write at least {least}, or lower `min` {min}")
            } else {
                format!("a burst can only be allowed if `min` {min} is above one average packet")
            };
            SpecError::bad(owner, "burst", &self.burst.to_string(), &allowed)
        })?;
        if u64::from(max) << weight_log >= 1 << 31 {
            let allowed = format!(
                "with a weight of 2^-{weight_log} (from `burst` {}) it must be below {}",
                self.burst,
                (1u64 << 31) >> weight_log
            );
            return Err(SpecError::bad(owner, "max", &max.to_string(), &allowed));
        }
        let max_p = self.max_p().ok_or_else(|| {
            let least = f64::from(max - min) * f64::from(self.unit) / 2f64.powi(31);
            let allowed = format!("with these thresholds write a number above {least}, up to 1");
            SpecError::bad(owner, "probability", &probability.to_string(), &allowed)
        })?;
        let damping = match self.bandwidth {
            None => None,
            Some(rate) => Some(self.damping(weight_log, rate).ok_or_else(|| {
                let allowed = "it is too little for packets of `avpkt` and this `burst`";
                SpecError::bad(owner, "bandwidth", &rate.to_string(), allowed)
            })?),
        };
        let span = (max - min).max(1);
        Ok(RedParams {
            min: Average::from(min) << weight_log,
            max: Average::from(max) << weight_log,
            span,
            weight_log,
            max_p,
            step: (max_p / span).max(1),
            damping,
            gentle: self.gentle,
        })
    }

    /// The smallest `w` whose weight W = 2^-w lets `burst` packets pass the lower threshold:
    /// burst + 1 - min/avpkt <= (1 - (1-W)^burst) / W (`tc_red_eval_ewma`).
    fn weight_log(&self) -> Option<u32> {
        let min_packets =
            f64::from(self.min) * f64::from(self.unit) / f64::from(self.average_packet);
        let wanted = f64::from(self.burst) + 1.0 - min_packets;
        if wanted < 1.0 {
            return None;
        }
        (1..32).find(|&log| {
            let weight = 0.5f64.powi(log as i32);
            wanted <= (1.0 - (1.0 - weight).powf(f64::from(self.burst))) / weight
        })
    }

    /// The greatest probability as a fraction of 2^32, or `None` if `tc` finds none
    /// (`tc_red_eval_P`). Probability 1 does not fit the fraction: `tc` then sends 0, and the kernel
    /// falls back on the power of two that it got beside it (`red_maxp`), which may be far below 1.
    fn max_p(&self) -> Option<u32> {
        let log = self.probability_log()?;
        let fraction = self.fraction();
        Some(if fraction > 0 {
            fraction
        } else {
            (u32::MAX >> log).wrapping_mul((self.max - self.min).max(1))
        })
    }

    /// The probability of a byte between the thresholds is just above 2^-this (`tc_red_eval_P`).
    fn probability_log(&self) -> Option<u32> {
        let bytes = f64::from(self.max - self.min) * f64::from(self.unit);
        let per_byte = self.probability / bytes.max(1.0);
        if bytes == 0.0 {
            return Some(0);
        }
        (0..32).find(|&log| per_byte * 2f64.powi(log as i32) > 1.0)
    }

    /// The probability as a fraction of 2^32, in which 1 is 0.
    fn fraction(&self) -> u32 {
        (self.probability * 2f64.powi(32)) as u64 as u32
    }

    /// The idle table: in cell t stand the bits by which t cells of nothing but average packets would
    /// shift the average, -log(1-W) t / time of a packet (`tc_red_eval_idle_damping`).
    ///
    /// `tc` counts the time of a packet in ticks of 64 ns while the kernel counts idle time in
    /// microseconds, so that the average falls 15.6 times slower than the paper means. This is kept.
    fn damping(&self, weight_log: u32, bandwidth: Rate) -> Option<IdleDamping> {
        let ticks = burst_time(u64::from(self.average_packet), bandwidth) / 64;
        let per_tick = -(1.0 - 0.5f64.powi(weight_log as i32)).ln() / ticks as f64;
        let longest = f64::from(MAX_SHIFT) / per_tick;
        let cell_log = (0..32).find(|&log| longest / 2f64.powi(log) < 512.0)? as u32;
        let mut shifts = [0; CELLS];
        for (cell, shift) in shifts.iter_mut().enumerate().skip(1) {
            let bits = (cell << cell_log) as f64 * per_tick;
            *shift = (bits as u8).min(MAX_SHIFT);
        }
        shifts[CELLS - 1] = MAX_SHIFT;
        Some(IdleDamping { cell_log, shifts })
    }
}

/// A size of at least 1 byte, which `tc` keeps in 32 bits.
pub(crate) const fn size() -> Declared<u32> {
    Declared::new(ParamKind::Size, |text| match read_size(text)? {
        0 => Err(text.bad_value("0", "write a size of at least 1 byte")),
        bytes => Ok(bytes),
    })
}

/// A size, which `tc` keeps in 32 bits.
pub(crate) const fn size_or_0() -> Declared<u32> {
    Declared::new(ParamKind::Size, read_size)
}

fn read_size(text: &Text<'_>) -> Result<u32, SpecError> {
    // It is below 4 GiB.
    tc::read_size(text).map(|bytes| bytes as u32)
}

/// The lower and the upper threshold of a queue called `owner`, as written or as `tc` computes them from `limit`, a
/// parameter's name and value: max = limit / 4, min = max / 3.
///
/// # Errors
/// If the upper threshold is above the limit, or the lower one not below the upper one.
pub(crate) fn thresholds(
    owner: &str,
    (limit_name, limit): (&str, u32),
    min: Unless0<u32>,
    max: Unless0<u32>,
) -> Result<(u32, u32), SpecError> {
    let max = max.0.unwrap_or(limit / 4);
    let min = min.0.unwrap_or(max / 3);
    let bad = |name: &str, value: u32, allowed: &str| {
        Err(SpecError::bad(owner, name, &value.to_string(), allowed))
    };
    if max > limit {
        return bad("max", max, &format!("it is above `{limit_name}` {limit}"));
    }
    if min >= max {
        return bad("min", min, &format!("it is not below `max` {max}"));
    }
    Ok((min, max))
}

/// `burst` as written, or as `tc` computes it from the thresholds in packets.
pub(crate) fn burst(written: Unless0<u32>, min: u32, max: u32, packet: u32) -> u32 {
    let computed = (2 * u64::from(min) + u64::from(max)) / (3 * u64::from(packet));
    written.0.unwrap_or(computed as u32)
}

/// The greatest shift of the idle table: nothing is left of 32 bits.
const MAX_SHIFT: u8 = 31;

pub(crate) const BURST: Declared<Unless0<u32>> = number("packets", 0, u32::MAX as u64)
    .absent_or_0("(2 min + max) / (3 avpkt)")
    .means("packets that may come at once; sets the weight of the average");

pub(crate) const PROBABILITY: Declared<f64> = probability()
    .default("0.02")
    .means("share of packets dropped or marked as the average reaches max");

pub(crate) const BANDWIDTH: Declared<Rate> = rate()
    .default("10mbit")
    .or_0()
    .means("rate of the line, by which the average falls while nothing waits");

pub(crate) const ECN: Declared<bool> =
    switch().means("mark packets whose sender speaks ECN instead of dropping them");

pub(crate) const HARDDROP: Declared<bool> =
    switch().means("from max on drop packets even where `ecn` would mark them");
