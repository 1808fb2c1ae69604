//! `tbf`: a token bucket that holds packets back.
//!
//! Follows Linux `net/sched/sch_tbf.c`: tokens are nanoseconds of sending at the rate, a packet leaves
//! when they suffice for all of it, and a second, shallow bucket may limit the peak rate.

use weir_core::{Duration, Packet, Rate, Time};

use crate::Device;
use crate::accounting::Accounting;
use crate::contract::{Backlog, ClassView, DropReason, DropSink, Qdisc, Stats};
use crate::fifo::{Fifo, Limit};
use crate::linux::RateTable;
use crate::peeked::{Peeked, TakesNext};
use crate::registry::Discipline;
use crate::tc::{QueueSpec, Record, SpecError, depth, either, number, params, rate, size, time};

struct Tbf {
    rate: Bucket,
    peak: Option<Bucket>,
    /// Longer packets can never pass.
    max_len: u64,
    checked_at: Time,
    wake_at: Option<Time>,
    child: Box<dyn Qdisc>,
    /// Packets that are too long never reach the child.
    refused: Accounting,
}

/// Tokens in nanoseconds of sending, at most `depth` of them.
struct Bucket {
    table: RateTable,
    depth: i64,
    tokens: i64,
}

impl Bucket {
    fn full(table: RateTable, depth: i64) -> Self {
        Self { table, depth, tokens: depth }
    }

    /// The tokens left if a packet of `len` bytes were sent `elapsed` ns after the last one.
    fn after_sending(&self, len: u32, elapsed: i64) -> i64 {
        (self.tokens + elapsed).min(self.depth) - self.table.time_of(len)
    }
}

/// The parameters of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TbfParams {
    /// Rate at which tokens come in.
    pub rate: Rate,
    /// Depth of the bucket in bytes.
    pub burst: u64,
    /// Most bytes that may wait where nothing else sits beneath.
    pub limit: u64,
    /// A second bucket: its rate, and its depth in bytes.
    pub peak: Option<(Rate, u64)>,
    /// Length that packets count as, by framing.
    pub lengths: Lengths,
}

impl TbfParams {
    /// The parameters that `spec`, a `tbf`, says.
    ///
    /// # Errors
    /// If a value is missing, no value, or does not fit the others.
    pub fn read(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let options: TbfOptions = spec.read(device)?;
        let TbfOptions { rate, burst, peakrate, mtu, lengths, .. } = options;
        let limit = options.byte_limit()?;
        let peak = match (peakrate, mtu) {
            (None, _) => None,
            // Linux counts rates in whole bytes per second.
            (Some(peak), Some(mtu)) if peak.as_bytes_per_sec() > rate.as_bytes_per_sec() => {
                Some((peak, mtu))
            }
            (Some(_), None) => {
                return Err(SpecError::new("tbf: `peakrate` needs `mtu` (also called `minburst`)"));
            }
            (Some(peak), Some(_)) => {
                let allowed = format!("it must be above the rate {rate}, by 8bit at least");
                return Err(SpecError::bad("tbf", "peakrate", &peak.to_string(), &allowed));
            }
        };
        let read = Self { rate, burst, limit, peak, lengths };
        read.check_room(spec, device.full_packet(), "with the Ethernet header")?;
        Ok(read)
    }

    /// Refuses what never lets a full packet, which counts `full` bytes, pass. Linux warns of it ("burst
    /// is lower than device mtu") and drops every full packet.
    pub(crate) fn check_room(
        &self,
        spec: &QueueSpec,
        full: u32,
        counted: &str,
    ) -> Result<(), SpecError> {
        let limit = spec.child.is_none().then_some(self.limit);
        let peak = self.peak.map(|(_, mtu)| mtu);
        for (name, bytes) in [("burst", Some(self.burst)), ("mtu", peak), ("limit", limit)] {
            if let Some(bytes) = bytes.filter(|&bytes| bytes < u64::from(full)) {
                return Err(SpecError::new(format!(
                    "tbf: `{name} {bytes}`: a full packet never passes, which counts {full} bytes here \
                     {counted}: write {full} bytes or more"
                )));
            }
        }
        Ok(())
    }
}

params! {
    /// Length in bytes that a shaper counts a packet as.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Lengths {
        /// bytes added to every packet's length
        pub overhead: u32 = number("bytes", 0, 65_535).default("0"),
        /// least length that a packet counts as
        pub mpu: u32 = number("bytes", 0, 65_535).default("0"),
        /// `atm` (or `adsl`): a packet occupies whole cells of 53 bytes with 48 of payload
        pub cells as "linklayer": bool = either(&["ethernet", "atm", "adsl"]).default("ethernet"),
    }
}

impl Lengths {
    /// The times that packets of these lengths take at `rate`.
    pub(crate) fn table(self, rate: Rate) -> RateTable {
        RateTable::new(rate, self.overhead, self.mpu, self.cells)
    }
}

impl Tbf {
    fn new(spec: &QueueSpec, device: &Device) -> Result<Self, SpecError> {
        let TbfParams { rate, burst, limit, peak, lengths } = TbfParams::read(spec, device)?;
        let bucket = |speed: Rate, depth: u64| {
            let table = lengths.table(speed);
            Bucket::full(table, table.time_of(u32::try_from(depth).unwrap_or(u32::MAX)))
        };
        let child = match &spec.child {
            Some(child) => child.build(device)?,
            None => Box::new(Fifo::new(Limit::Bytes(limit))),
        };
        Ok(Self {
            rate: bucket(rate, burst),
            peak: peak.map(|(speed, mtu)| bucket(speed, mtu)),
            max_len: peak.map_or(burst, |(_, mtu)| burst.min(mtu)),
            checked_at: Time::ZERO,
            wake_at: None,
            child,
            refused: Accounting::default(),
        })
    }

    /// Whether the child's next packet may leave at `now`: then both buckets are charged for it.
    fn charge(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<()> {
        let Some(next) = self.child.peek(now, sink) else {
            self.wake_at = self.child.wake_at();
            return None;
        };
        let len = next.len;
        let (tokens, peak_tokens) = self.tokens_after(len, now);
        if tokens < 0 || peak_tokens < 0 {
            // A bucket gains a nanosecond of sending a nanosecond: the larger debt is the wait.
            let debt = (-tokens).max(-peak_tokens);
            self.wake_at = Some(now + Duration::from_nanos(debt as u64));
            return None;
        }
        self.wake_at = None;
        self.checked_at = now;
        self.rate.tokens = tokens;
        if let Some(peak) = &mut self.peak {
            peak.tokens = peak_tokens;
        }
        Some(())
    }

    /// Tokens in both buckets after a packet of `len` bytes at `now`.
    fn tokens_after(&self, len: u32, now: Time) -> (i64, i64) {
        let elapsed = i64::try_from(now.since(self.checked_at).as_nanos()).unwrap_or(i64::MAX);
        let elapsed = elapsed.min(self.rate.depth);
        let peak = self.peak.as_ref().map_or(0, |peak| peak.after_sending(len, elapsed));
        (self.rate.after_sending(len, elapsed), peak)
    }
}

impl TbfOptions {
    /// The limit in bytes: given, or what leaves within `latency` at the rate, and the burst; no more than
    /// what leaves meanwhile at the peak rate, and its `mtu` (`tc/q_tbf.c`).
    fn byte_limit(&self) -> Result<u64, SpecError> {
        let within = |speed: Rate, latency: Duration| {
            (speed.as_bytes_per_sec() as f64 * latency.as_secs_f64()) as u64
        };
        match (self.limit, self.latency) {
            (Some(limit), None) => Ok(limit),
            (None, Some(latency)) => {
                let by_rate = within(self.rate, latency).saturating_add(self.burst);
                let by_peak = self
                    .peakrate
                    .map(|peak| within(peak, latency).saturating_add(self.mtu.unwrap_or(0)));
                let bytes = by_peak.map_or(by_rate, |by_peak| by_rate.min(by_peak));
                if u32::try_from(bytes).is_err() {
                    return Err(SpecError::new(format!(
                        "tbf: `latency {latency}`: what leaves at {} meanwhile is no `limit` below 4gb: write a \
                         shorter time",
                        self.rate
                    )));
                }
                Ok(bytes)
            }
            (None, None) => Err(SpecError::new("tbf: one of `limit` and `latency` is required")),
            (Some(_), Some(_)) => Err(SpecError::new(
                "tbf: `limit` and `latency` say the same thing; write one of them",
            )),
        }
    }
}

impl TakesNext for Tbf {
    fn enqueue(&mut self, packet: &Packet, now: Time, sink: &mut dyn DropSink) {
        if u64::from(packet.len) > self.max_len {
            self.refused.xmit_drop(*packet, DropReason::TooLong, sink);
        } else {
            self.child.enqueue(packet, now, sink);
        }
    }

    fn take_next(&mut self, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        self.charge(now, sink)?;
        self.child.dequeue(now, sink)
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn backlog(&self) -> Backlog {
        self.child.backlog()
    }

    fn stats(&self) -> Stats {
        let mut stats = self.child.stats();
        stats += self.refused.stats();
        stats
    }

    fn classes(&self, visit: &mut dyn FnMut(ClassView<'_>)) {
        visit(ClassView { name: "1:1", backlog: self.child.backlog(), stats: self.child.stats() });
        self.child.classes(visit);
    }
}

params! {
    /// Parameters of `tbf`.
    struct TbfOptions {
        /// rate at which tokens come in
        rate: Rate = rate(),
        /// depth of the bucket; a longer packet never passes
        burst: u64 = depth().aliases(&["buffer", "maxburst"]),
        /// most bytes that may wait
        limit: Option<u64> = size().or_0().absent("from latency"),
        /// longest time that a packet may wait, in place of `limit`
        latency: Option<Duration> = time().or_0().absent("from limit"),
        /// rate of a second bucket of depth `mtu`
        peakrate: Option<Rate> = rate().or_0().absent("unlimited"),
        /// depth of the bucket of `peakrate`
        mtu: Option<u64> = depth().aliases(&["minburst"]).or_0().absent("none"),
        lengths: Lengths,
    }
}

pub(crate) static TBF: Discipline = Discipline {
    name: "tbf",
    summary: "a token bucket that holds packets back to a rate",
    source: "Linux net/sched/sch_tbf.c",
    params: TbfOptions::PARAMS,
    class_params: &[],
    takes_child: true,
    examples: &[
        "tbf rate 1mbit burst 2000 latency 50ms",
        "tbf rate 2mbit burst 5000 limit 20000 peakrate 4mbit mtu 1600",
        "tbf rate 1mbit burst 1600 limit 10000000 codel limit 30",
    ],
    build: |spec, device| Ok(Box::new(Peeked::new(Tbf::new(spec, device)?))),
};
