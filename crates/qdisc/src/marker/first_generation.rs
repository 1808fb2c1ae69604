//! `tcp_friendly_1`: the first TCP-friendly marker, which spreads red packets over the second half of its
//! tokens.
//!
//! Follows A. Feroz, S. Kalyanaraman, "A TCP-friendly traffic marker for IP differentiated services",
//! draft-azeem-tcpfriendly-diffserv-00, 1999, which describes it in words: at the start of an interval packets
//! are green one after the other; once half of the interval is over or half of the tokens are used, every
//! other packet is green; tokens that are left are carried into the next interval.

use std::collections::BTreeMap;

use weir_core::{Duration, FlowLabel, Packet, Time};

use super::interval::Intervals;
use super::{About, CLASS, INTERVAL, Marker, MarkerKind, Meter, TOKENS, UNCOUNTED, cost};
use crate::colour::Colour;
use crate::tc::{Record, either, params};

struct FirstGeneration {
    intervals: Intervals,
    tokens: u64,
    /// Whether half of the interval, too, ends the run of green packets.
    by_time: bool,
    uncounted: u32,
    scope: Scope,
}

/// Scope of the tokens: all flows together, or each flow by itself.
enum Scope {
    Aggregate(Allowance),
    Flows(BTreeMap<FlowLabel, Allowance>),
}

/// The tokens of an interval.
#[derive(Clone, Debug, Default)]
struct Allowance {
    /// At the start of the interval.
    given: u64,
    left: u64,
    /// The last packet of the alternating part was red.
    was_red: bool,
    /// It was used in this interval.
    used: bool,
}

impl Allowance {
    fn new(tokens: u64) -> Self {
        Self { given: tokens, left: tokens, ..Self::default() }
    }

    /// A new interval brings `tokens`; what was left is kept, up to as much again.
    fn renew(&mut self, tokens: u64) {
        *self = Self::new(tokens + self.left.min(tokens));
    }

    fn colour(&mut self, bytes: u64, second_half: bool) -> Colour {
        self.used = true;
        let alternate = second_half || self.left <= self.given / 2;
        if self.left < bytes || (alternate && !self.was_red) {
            self.was_red = true;
            return Colour::Red;
        }
        self.left -= bytes;
        self.was_red = false;
        Colour::Green
    }
}

impl FirstGeneration {
    fn renew(&mut self, now: Time) {
        for _ in 0..self.intervals.begun(now).min(FORGOTTEN) {
            match &mut self.scope {
                Scope::Aggregate(allowance) => allowance.renew(self.tokens),
                Scope::Flows(flows) => {
                    flows.retain(|_, allowance| allowance.used);
                    let each = self.tokens / flows.len().max(1) as u64;
                    flows.values_mut().for_each(|allowance| allowance.renew(each));
                }
            }
        }
    }
}

impl Meter for FirstGeneration {
    fn colour(&mut self, packet: &Packet, about: &dyn About, now: Time) -> Colour {
        self.renew(now);
        if about.tcp_header(packet).is_some_and(|header| header.payload == 0) {
            return Colour::Green;
        }
        let second_half = self.by_time && self.intervals.in_second_half(now);
        let allowance = match &mut self.scope {
            Scope::Aggregate(allowance) => allowance,
            Scope::Flows(flows) => {
                let sharing = flows.len() as u64 + 1;
                let tokens = self.tokens;
                flows.entry(packet.label).or_insert_with(|| Allowance::new(tokens / sharing))
            }
        };
        allowance.colour(cost(packet, self.uncounted), second_half)
    }
}

/// After so many empty intervals nothing is left of what was.
const FORGOTTEN: u64 = 3;

params! {
    /// Parameters of `tcp_friendly_1`.
    struct FirstGenerationOptions {
        tokens: u64 = TOKENS,
        interval: Duration = INTERVAL,
        /// who has tokens: all packets together, or each flow an equal part
        per_flow as "per": bool = either(&["aggregate", "flow"]).default("aggregate"),
        /// what ends the run of green packets: half of the interval or of the tokens, or the tokens
        /// alone
        by_tokens_alone as "alternate": bool = either(&["either", "tokens"]).default("either"),
        uncounted: u32 = UNCOUNTED,
        class: u8 = CLASS,
    }
}

pub(super) static TCP_FRIENDLY_1: MarkerKind = MarkerKind {
    name: "tcp_friendly_1",
    summary: "first TCP-friendly marker: green in a row, then every other packet",
    source: "draft-azeem-tcpfriendly-diffserv-00 (1999)",
    params: FirstGenerationOptions::PARAMS,
    examples: &[
        "tcp_friendly_1",
        "tcp_friendly_1 per flow alternate tokens tokens 20000 interval 20ms",
    ],
    build: |spec, device| {
        let options: FirstGenerationOptions = spec.read(device)?;
        let FirstGenerationOptions { tokens, uncounted, class, .. } = options;
        let meter = FirstGeneration {
            intervals: Intervals::new("tcp_friendly_1", options.interval)?,
            tokens,
            by_time: !options.by_tokens_alone,
            uncounted,
            scope: if options.per_flow {
                Scope::Flows(BTreeMap::new())
            } else {
                Scope::Aggregate(Allowance::new(tokens))
            },
        };
        Ok(Marker::new(meter, class))
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_tokens_go_in_a_row_and_the_rest_to_every_other_packet() {
        let mut allowance = Allowance::new(8_000);
        let colours: String = (0..14)
            .map(|_| match allowance.colour(1_000, false) {
                Colour::Green => 'g',
                _ => 'r',
            })
            .collect();
        assert_eq!(colours, "ggggrgrgrgrgrr");
        allowance.renew(8_000);
        assert_eq!(allowance.given, 8_000);
    }

    #[test]
    fn what_is_left_is_carried_into_the_next_interval() {
        let mut allowance = Allowance::new(8_000);
        assert_eq!(allowance.colour(1_000, true), Colour::Red);
        assert_eq!(allowance.colour(1_000, true), Colour::Green);
        allowance.renew(8_000);
        assert_eq!(allowance.given, 15_000);
        allowance.renew(8_000);
        assert_eq!(allowance.given, 16_000);
    }
}
