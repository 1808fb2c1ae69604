//! `token_bucket`: green while there are tokens, red when there are none.
//!
//! The plain marker of Lo Monaco's thesis. Read literally its tokens come in a batch every interval, and what
//! is sent behind the last of them is red in one block; filled continuously it is the usual token bucket.

use weir_core::{Packet, Rate, Time};

use super::bucket::Bucket;
use super::interval::Intervals;
use super::{About, CLASS, INTERVAL, MarkerKind, Meter, TOKENS, UNCOUNTED, cost, uncounted};
use crate::colour::Colour;
use crate::tc::{DefaultValue, Kind, Param};

struct TokenBucket {
    tokens: Tokens,
    uncounted: u32,
}

enum Tokens {
    Batch { intervals: Intervals, batch: u64, depth: u64, left: u64 },
    Continuous(Bucket),
}

impl Tokens {
    fn take(&mut self, bytes: u64, now: Time) -> bool {
        match self {
            Self::Batch { intervals, batch, depth, left } => {
                let came = batch.saturating_mul(intervals.begun(now));
                *left = left.saturating_add(came).min(*depth);
                let enough = *left >= bytes;
                if enough {
                    *left -= bytes;
                }
                enough
            }
            Self::Continuous(bucket) => {
                bucket.fill(now);
                bucket.take(bytes)
            }
        }
    }
}

impl Meter for TokenBucket {
    fn colour(&mut self, packet: &Packet, _about: &dyn About, now: Time) -> Colour {
        if self.tokens.take(cost(packet, self.uncounted), now) {
            Colour::Green
        } else {
            Colour::Red
        }
    }
}

pub(super) static TOKEN_BUCKET: MarkerKind = MarkerKind {
    name: "token_bucket",
    summary: "green while there are tokens, red when there are none; tokens come in batches or continuously",
    source: "Lo Monaco's thesis (2000), section 3.3; draft-ibanez-diffserv-assured-eval-00",
    params: &[
        TOKENS,
        INTERVAL,
        Param {
            name: "depth",
            aliases: &[],
            kind: Kind::Size,
            default: DefaultValue::Absent("`tokens`"),
            meaning: "most tokens that are kept",
        },
        Param {
            name: "refill",
            aliases: &[],
            kind: Kind::Choice(&["batch", "continuous"]),
            default: DefaultValue::Is("batch"),
            meaning: "how tokens come in: all at the start of an interval, or evenly",
        },
        UNCOUNTED,
        CLASS,
    ],
    examples: &[
        "token_bucket",
        "token_bucket tokens 4000 interval 10ms refill continuous depth 9000 uncounted 0",
    ],
    build: |params, _| {
        let batch = params.size("tokens")?.expect("a default").get();
        let depth = params.size("depth")?.map_or(batch, weir_core::Bytes::get);
        let mut intervals = Intervals::read(params)?;
        let tokens = if params.choice("refill")? == "batch" {
            // The first interval begins with the run.
            intervals.begun(Time::ZERO);
            Tokens::Batch { intervals, batch, depth, left: batch.min(depth) }
        } else {
            let length = params.time("interval")?.expect("a default");
            let bps = u128::from(batch) * 8_000_000_000 / u128::from(length.as_nanos());
            let bps = u64::try_from(bps).unwrap_or(u64::MAX);
            Tokens::Continuous(Bucket::full(Rate::from_bps(bps), depth))
        };
        Ok(Box::new(TokenBucket { tokens, uncounted: uncounted(params)? }))
    },
};
