//! `fair`: Kim's fair marker, which shares tokens out among flows as FRED shares a queue.
//!
//! Follows draft-kim-fairmarker-diffserv-00 (1999). Tokens that were used leave traces, which vanish at the
//! rate at which tokens come in: a queue that exists in thought only. A packet is green if FRED would let it
//! into that queue.

use std::collections::VecDeque;

use weir_core::{Duration, Packet, Rate, Time};

use super::{About, CLASS, INTERVAL, Marker, MarkerKind, Meter, TOKENS, UNCOUNTED, cost};
use crate::colour::Colour;
use crate::early::Curve;
use crate::fred::{FredOptions, FredRules};
use crate::tc::{Record, nonzero_size, params, probability, size};

struct Fair {
    bytes_per_sec: u128,
    depth: u64,
    uncounted: u32,
    rules: FredRules,
    /// Packets that used tokens, and what of them has vanished of the oldest, in bytes times [`SCALE`].
    traces: VecDeque<Packet>,
    traced_bytes: u64,
    vanished: u128,
    seen_at: Time,
}

impl Fair {
    fn vanish(&mut self, now: Time) {
        let came = self.bytes_per_sec * u128::from(now.since(self.seen_at).as_nanos());
        self.seen_at = now;
        self.vanished += came;
        while let Some(oldest) = self.traces.front() {
            let bytes = cost(oldest, self.uncounted);
            if self.vanished < u128::from(bytes) * SCALE {
                return;
            }
            self.vanished -= u128::from(bytes) * SCALE;
            self.traced_bytes -= bytes;
            self.rules.left(oldest, self.traced_bytes, now);
            self.traces.pop_front();
        }
        self.vanished = 0;
    }
}

impl Meter for Fair {
    fn colour(&mut self, packet: &Packet, _about: &dyn About, now: Time) -> Colour {
        self.vanish(now);
        let bytes = cost(packet, self.uncounted);
        let refused = self.rules.judge(packet, self.traced_bytes, now).is_some();
        if refused || self.traced_bytes + bytes > self.depth {
            return Colour::Red;
        }
        self.rules.entered(packet);
        self.traced_bytes += bytes;
        self.traces.push_back(*packet);
        Colour::Green
    }
}

/// Bytes per second times nanoseconds make this many to a byte.
const SCALE: u128 = 1_000_000_000;

params! {
    /// Parameters of `fair`.
    struct FairOptions {
        tokens: u64 = TOKENS,
        interval: Duration = INTERVAL,
        /// depth of the bucket: most traces at a time
        limit: u64 = size().aliases(&["depth"]).default("47360"),
        /// average of traces above which packets may turn red; also the most that a flow may hold
        min: u64 = nonzero_size().default("23680"),
        /// average of traces above which only `above_max` decides
        max: u64 = size().default("47360"),
        /// probability of red just below `max`
        probability: f64 = probability().default("0.1"),
        rules: FredOptions,
        uncounted: u32 = UNCOUNTED,
        class: u8 = CLASS,
    }
}

pub(super) static FAIR: MarkerKind = MarkerKind {
    name: "fair",
    summary: "Kim's fair marker: shares tokens out among flows as FRED shares a queue",
    source: "draft-kim-fairmarker-diffserv-00 (1999)",
    params: FairOptions::PARAMS,
    examples: &[
        "fair",
        "fair tokens 4000 interval 10ms limit 9000 min 3000 max 6000 wq 0.2 minq 1",
    ],
    build: |spec, device| {
        let options: FairOptions = spec.read(device)?;
        let FairOptions { tokens, limit, min, max, probability, uncounted, .. } = options;
        let length = options.interval.as_nanos().max(1);
        let curve = Curve { min: (min, "min"), max: (max, "max"), probability };
        let rng = device.seed.stream("fair");
        let bps = u128::from(tokens) * 8_000_000_000 / u128::from(length);
        let rate = Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
        let meter = Fair {
            bytes_per_sec: u128::from(rate.as_bytes_per_sec()),
            depth: limit,
            uncounted,
            rules: FredRules::new("fair", curve, &options.rules, rng)?,
            traces: VecDeque::new(),
            traced_bytes: 0,
            vanished: 0,
            seen_at: Time::ZERO,
        };
        Ok(Marker::new(meter, options.class))
    },
};
