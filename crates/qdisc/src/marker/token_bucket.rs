//! `token_bucket`: green while there are tokens, red when there are none.
//!
//! The plain marker of Lo Monaco's thesis. Read literally its tokens come in a batch every interval, and what
//! is sent behind the last of them is red in one block; filled continuously it is the usual token bucket.

use weir_core::{Duration, Packet, Rate, Time};

use super::bucket::Bucket;
use super::interval::Intervals;
use super::{About, CLASS, INTERVAL, Marker, MarkerKind, Meter, TOKENS, UNCOUNTED, cost};
use crate::colour::Colour;
use crate::tc::{Record, either, params, size};

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

params! {
    /// Parameters of `token_bucket`.
    struct TokenBucketOptions {
        tokens: u64 = TOKENS,
        interval: Duration = INTERVAL,
        /// most tokens that are kept
        depth: Option<u64> = size().absent("`tokens`"),
        /// how tokens come in: all at the start of an interval, or evenly
        continuous as "refill": bool = either(&["batch", "continuous"]).default("batch"),
        uncounted: u32 = UNCOUNTED,
        class: u8 = CLASS,
    }
}

pub(super) static TOKEN_BUCKET: MarkerKind = MarkerKind {
    name: "token_bucket",
    summary: "green while there are tokens, red when there are none; tokens come in batches or continuously",
    source: "Lo Monaco's thesis (2000), section 3.3; draft-ibanez-diffserv-assured-eval-00",
    params: TokenBucketOptions::PARAMS,
    examples: &[
        "token_bucket",
        "token_bucket tokens 4000 interval 10ms refill continuous depth 9000 uncounted 0",
    ],
    build: |spec, device| {
        let options: TokenBucketOptions = spec.read(device)?;
        let TokenBucketOptions { tokens: batch, interval, uncounted, .. } = options;
        let depth = options.depth.unwrap_or(batch);
        let mut intervals = Intervals::new("token_bucket", interval)?;
        let tokens = if options.continuous {
            let bps = u128::from(batch) * 8_000_000_000 / u128::from(interval.as_nanos());
            let bps = u64::try_from(bps).unwrap_or(u64::MAX);
            Tokens::Continuous(Bucket::full(Rate::from_bps(bps), depth))
        } else {
            // The first interval begins with the run.
            intervals.begun(Time::ZERO);
            Tokens::Batch { intervals, batch, depth, left: batch.min(depth) }
        };
        Ok(Marker::new(TokenBucket { tokens, uncounted }, options.class))
    },
};
