//! `fair`: Kim's fair marker, which shares tokens out among flows as FRED shares a queue.
//!
//! Follows draft-kim-fairmarker-diffserv-00 (1999). Tokens that were used leave traces, which vanish at the
//! rate at which tokens come in: a queue that exists in thought only. A packet is green if FRED would let it
//! into that queue.

use std::collections::VecDeque;

use weir_core::{Packet, Rate, Time};

use super::{About, CLASS, INTERVAL, MarkerKind, Meter, TOKENS, UNCOUNTED, cost, uncounted};
use crate::colour::Colour;
use crate::early::{AVPKT, BANDWIDTH, GENTLE, SPACING, WQ};
use crate::fred::{ABOVE_MAX, FredRules, MINQ, ON_DEPARTURE, STRIKES};
use crate::tc::{DefaultValue, Kind, Param};

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

pub(super) static FAIR: MarkerKind = MarkerKind {
    name: "fair",
    summary: "Kim's fair marker: shares tokens out among flows as FRED shares a queue",
    source: "draft-kim-fairmarker-diffserv-00 (1999)",
    params: &[
        TOKENS,
        INTERVAL,
        Param {
            name: "limit",
            aliases: &["depth"],
            kind: Kind::Size,
            default: DefaultValue::Is("47360"),
            meaning: "depth of the bucket: most traces at a time",
        },
        Param {
            name: "min",
            aliases: &[],
            kind: Kind::Size,
            default: DefaultValue::Is("23680"),
            meaning: "average of traces above which packets may turn red; also the most that a flow may hold",
        },
        Param {
            name: "max",
            aliases: &[],
            kind: Kind::Size,
            default: DefaultValue::Is("47360"),
            meaning: "average of traces above which only `above_max` decides",
        },
        Param {
            name: "probability",
            aliases: &[],
            kind: Kind::Probability,
            default: DefaultValue::Is("0.1"),
            meaning: "probability of red just below `max`",
        },
        WQ,
        AVPKT,
        BANDWIDTH,
        SPACING,
        GENTLE,
        MINQ,
        STRIKES,
        ABOVE_MAX,
        ON_DEPARTURE,
        UNCOUNTED,
        CLASS,
    ],
    examples: &[
        "fair",
        "fair tokens 4000 interval 10ms limit 9000 min 3000 max 6000 wq 0.2 minq 1",
    ],
    build: |params, device| {
        let tokens = params.size("tokens")?.expect("a default").get();
        let length = params.time("interval")?.expect("a default").as_nanos().max(1);
        let bps = u128::from(tokens) * 8_000_000_000 / u128::from(length);
        let rate = Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
        Ok(Box::new(Fair {
            bytes_per_sec: u128::from(rate.as_bytes_per_sec()),
            depth: params.size("limit")?.expect("a default").get(),
            uncounted: uncounted(params)?,
            rules: FredRules::read(params, device.seed.stream("fair"))?,
            traces: VecDeque::new(),
            traced_bytes: 0,
            vanished: 0,
            seen_at: Time::ZERO,
        }))
    },
};
