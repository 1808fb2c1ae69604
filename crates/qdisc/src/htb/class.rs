//! One class of HTB: its parameters, its tokens, its mode.

use weir_core::{Rate, Time};

use super::tree::{LEVELS, PRIORITIES};
use crate::Device;
use crate::linux::{RateTable, burst_time};
use crate::tbf::Lengths;
use crate::tc::{
    self, ClassSpec, Handle, QueueSpec, SpecError, Unless0, depth, number, params, rate, size,
};

/// A class.
pub(super) struct Class {
    pub id: Handle,
    /// Index of the class from which this one borrows.
    pub parent: Option<usize>,
    /// 0 for leaves; the classes next to the root have the highest.
    pub level: usize,
    pub prio: usize,
    pub quantum: i64,
    pub mode: Mode,
    /// The bytes left in this turn, by the level at which the class sends.
    pub deficit: [i64; LEVELS],
    rate: Bucket,
    ceil: Bucket,
    /// When both buckets were last brought up to date.
    checked_at: Time,
}

/// State of a class: it may send, borrow, or neither (`enum htb_cmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Above its ceiling: must wait.
    CantSend,
    /// Above its own rate: may send what its parent lends.
    MayBorrow,
    /// Within its own rate.
    CanSend,
}

/// Tokens in nanoseconds of sending. Unlike a token bucket filter HTB lets a packet leave whenever the
/// bucket is not in debt, and then goes into debt for it.
struct Bucket {
    table: RateTable,
    depth: i64,
    tokens: i64,
}

impl Bucket {
    fn charge(&mut self, len: u32, elapsed: i64) {
        let tokens = (self.tokens + elapsed).min(self.depth) - self.table.time_of(len);
        self.tokens = tokens.max(1 - MAX_TOKENS_NS);
    }
}

impl Class {
    /// Pays for a packet of `len` bytes that leaves at `now`. A class that borrowed pays from its
    /// ceiling only; `lends` says whether this class is at or above the lender.
    pub fn charge(&mut self, len: u32, lends: bool, now: Time) {
        let elapsed = self.elapsed(now);
        if lends {
            self.rate.charge(len, elapsed);
        } else {
            // The clock moves on for both buckets.
            self.rate.tokens += elapsed;
        }
        self.ceil.charge(len, elapsed);
        self.checked_at = now;
    }

    /// The mode at `now`, and in how many nanoseconds it may change.
    pub fn mode_at(&self, now: Time) -> (Mode, i64) {
        let elapsed = self.elapsed(now);
        let of_ceil = self.ceil.tokens + elapsed;
        let of_rate = self.rate.tokens + elapsed;
        if of_ceil < 0 {
            (Mode::CantSend, -of_ceil)
        } else if of_rate >= 0 {
            (Mode::CanSend, elapsed)
        } else {
            (Mode::MayBorrow, -of_rate)
        }
    }

    fn elapsed(&self, now: Time) -> i64 {
        i64::try_from(now.since(self.checked_at).as_nanos())
            .unwrap_or(MAX_TOKENS_NS)
            .min(MAX_TOKENS_NS)
    }
}

/// Makes all classes of `spec`, in the order written.
pub(super) fn read_all(
    spec: &QueueSpec,
    r2q: u32,
    device: &Device,
) -> Result<Vec<Class>, SpecError> {
    let mut classes: Vec<Class> = Vec::new();
    for written in &spec.classes {
        let inner = spec.classes.iter().any(|other| other.parent == written.id);
        let parent = classes.iter().position(|class| class.id == written.parent);
        let level = match (inner, parent) {
            (false, _) => 0,
            (true, None) => LEVELS - 1,
            (true, Some(parent)) => classes[parent].level - 1,
        };
        if inner && level == 0 {
            return Err(SpecError::new(format!(
                "htb: class `{}` lies too deep: {} levels are allowed",
                written.id,
                LEVELS - 1
            )));
        }
        classes.push(read(written, parent, level, r2q, device)?);
    }
    Ok(classes)
}

params! {
    /// Parameters of a class of `htb`.
    pub(super) struct HtbClassOptions {
        /// rate that the class is guaranteed
        rate: Rate = rate(),
        /// rate that the class may reach by borrowing
        ceil: Option<Rate> = rate().or_0().absent("the rate"),
        /// bytes that may leave at once at the guaranteed rate
        burst: Unless0<u64> = depth().aliases(&["buffer", "maxburst"]).absent_or_0("1600 bytes"),
        /// bytes that may leave at once at the greatest rate
        cburst: Unless0<u64> = depth().aliases(&["cbuffer", "cmaxburst"]).absent_or_0("1600 bytes"),
        /// bytes that the class may send in its turn
        quantum: Option<u64> = number("bytes", 1, u32::MAX as u64)
            .or_0()
            .absent("rate / r2q, 1000 to 200000"),
        /// 0 goes first, 7 last, where classes compete for what others leave
        prio: u32 = number("priority", 0, u32::MAX as u64).default("0"),
        /// the default of burst and cburst
        mtu: u64 = size().default("1600"),
        lengths: Lengths,
    }
}

/// The parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbClassParams {
    /// Rate that the class is guaranteed.
    pub rate: Rate,
    /// Rate that it may reach by borrowing.
    pub ceil: Rate,
    /// Depth of the rate's bucket, in nanoseconds of sending as `tc` hands it to the kernel.
    pub buffer_ns: i64,
    /// Depth of the ceiling's.
    pub cbuffer_ns: i64,
    /// Bytes that the class may send in its turn.
    pub quantum: u64,
    /// 0 goes first, 7 last.
    pub prio: u8,
    /// Length that packets count as, by framing.
    pub lengths: Lengths,
}

impl HtbClassParams {
    /// The parameters that a class of a discipline with that `r2q` says.
    ///
    /// # Errors
    /// If a value is missing or no value.
    pub fn read(written: &ClassSpec, r2q: u32, device: &Device) -> Result<Self, SpecError> {
        let options: HtbClassOptions = tc::read("htb class", &written.words, device)?;
        let HtbClassOptions { rate, mtu, lengths, .. } = options;
        let ceil = options.ceil.unwrap_or(rate);
        // `sch_htb.c` keeps a derived quantum within 1000 and 200000 bytes.
        let derived = (rate.as_bytes_per_sec() / u64::from(r2q)).clamp(1_000, 200_000);
        Ok(Self {
            rate,
            ceil,
            buffer_ns: buffer(options.burst, rate, mtu),
            cbuffer_ns: buffer(options.cburst, ceil, mtu),
            quantum: options.quantum.unwrap_or(derived),
            prio: options.prio.min(PRIORITIES as u32 - 1) as u8,
            lengths,
        })
    }
}

/// The depth of a bucket, in nanoseconds of sending at `rate`.
fn buffer(written: Unless0<u64>, rate: Rate, mtu: u64) -> i64 {
    // `tc` adds what a clock tick at the rate would carry; its tick is a nanosecond today.
    let smallest = rate.as_bytes_per_sec() / 1_000_000_000 + mtu;
    burst_time(written.0.unwrap_or(smallest), rate)
}

fn read(
    written: &ClassSpec,
    parent: Option<usize>,
    level: usize,
    r2q: u32,
    device: &Device,
) -> Result<Class, SpecError> {
    let params = HtbClassParams::read(written, r2q, device)?;
    let bucket = |rate, depth| Bucket { table: params.lengths.table(rate), depth, tokens: depth };
    Ok(Class {
        id: written.id,
        parent,
        level,
        prio: usize::from(params.prio),
        quantum: params.quantum as i64,
        mode: Mode::CanSend,
        deficit: [0; LEVELS],
        rate: bucket(params.rate, params.buffer_ns),
        ceil: bucket(params.ceil, params.cbuffer_ns),
        checked_at: Time::ZERO,
    })
}

/// Times and debts are cut at a minute (`mbuffer`).
const MAX_TOKENS_NS: i64 = 60_000_000_000;
