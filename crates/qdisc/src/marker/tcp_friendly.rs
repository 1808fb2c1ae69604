//! `tcp_friendly`: the second TCP-friendly marker, which knows flows: small windows and retransmissions are
//! green, and the red packets of a flow are spread over its window.
//!
//! A reconstruction. G. Lo Monaco and others, "TCP-friendly marking for scalable best-effort services on the
//! Internet", SIGCOMM CCR 2001, names the three mechanisms in its abstract; the algorithm itself is not
//! public. An interval is one to two round trips, so the packets of a flow in an interval are about its
//! window: the cheapest estimate that a router at the edge can have. `docs/markers.md` has every choice and
//! its status.

use std::collections::BTreeMap;

use weir_core::{Draw, Duration, FlowLabel, Packet, Rng, TcpHeader, Time, comes_before};

use super::interval::Intervals;
use super::{About, CLASS, INTERVAL, Marker, MarkerKind, Meter, TOKENS, UNCOUNTED, cost};
use crate::Device;
use crate::colour::Colour;
use crate::tc::{Record, SpecError, choice, either, number, one_of, params};

struct TcpFriendly {
    intervals: Intervals,
    tokens: i64,
    /// Tokens of nobody in particular: what was left of the last interval. Below 0 it is a debt.
    common: i64,
    /// A full packet's cost.
    full: i64,
    uncounted: u32,
    small: u32,
    spacing: u32,
    estimate: Estimate,
    /// The sender's own window tells which windows are small.
    oracle: bool,
    /// No green packet without tokens.
    strict: bool,
    forget: u32,
    flows: BTreeMap<FlowLabel, MarkedFlow>,
    rng: Rng,
}

/// How a flow's packets in an interval follow from those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Estimate {
    Last,
    Average,
    Largest,
}

choice! { Estimate {
    "last" => Self::Last,
    "average" => Self::Average,
    "largest" => Self::Largest,
} }

#[derive(Clone, Debug, Default)]
struct MarkedFlow {
    /// The end of the data seen so far.
    end: Option<u32>,
    /// Packets in this interval.
    packets: u32,
    /// Packets in the interval before.
    before: u32,
    /// Packets expected in an interval.
    expected: u32,
    /// Tokens of its own that are left.
    own: i64,
    /// Tokens that it was given at the start of the interval.
    given: i64,
    /// Packets since the last red one.
    since_red: u32,
    was_red: bool,
    idle_intervals: u32,
}

impl TcpFriendly {
    fn new(options: &TcpFriendlyOptions, device: &Device) -> Result<Self, SpecError> {
        let tokens = i64::try_from(options.tokens).unwrap_or(i64::MAX);
        let uncounted = options.uncounted;
        Ok(Self {
            intervals: Intervals::new("tcp_friendly", options.interval)?,
            tokens,
            common: tokens,
            full: i64::from(device.mtu.saturating_sub(uncounted).max(1)),
            uncounted,
            small: options.small,
            spacing: options.spacing,
            estimate: options.estimate,
            oracle: options.oracle,
            strict: options.strict,
            forget: options.forget,
            flows: BTreeMap::new(),
            rng: device.seed.stream("tcp_friendly"),
        })
    }

    /// The start of an interval: shares the tokens out, the smallest windows first.
    fn renew(&mut self) {
        let unused: i64 = self.flows.values().map(|flow| flow.own).sum();
        let carried = (self.common + unused).clamp(-self.tokens, self.tokens);
        let mut pool = (self.tokens + carried).max(0);
        let debt = (self.tokens + carried).min(0);
        let estimate = self.estimate;
        let forget = self.forget;
        self.flows.retain(|_, flow| {
            flow.begin_interval(estimate);
            flow.idle_intervals <= forget
        });
        let rng = &mut self.rng;
        let mut order: Vec<(u32, u64, &mut MarkedFlow)> = self
            .flows
            .values_mut()
            .map(|flow| (flow.expected, rng.below(u64::MAX), flow))
            .collect();
        order.sort_unstable_by_key(|&(expected, lot, _)| (expected, lot));
        let count = order.len();
        for (place, (expected, _, flow)) in order.into_iter().enumerate() {
            let wanted = (i64::from(expected) + 1) * self.full;
            let given = wanted.min(pool / (count - place) as i64);
            (flow.own, flow.given) = (given, given);
            pool -= given;
        }
        self.common = pool + debt;
    }

    fn judge(&mut self, packet: &Packet, header: Option<TcpHeader>, window: Option<u32>) -> Colour {
        let cost = cost(packet, self.uncounted) as i64;
        let flow = self.flows.entry(packet.label).or_default();
        let again = flow.note(header);
        let expected = flow.expected.max(flow.packets);
        let covered = flow.own >= cost || self.common >= cost;
        // What must be green becomes so on credit, unless the cap is strict.
        let on_credit = covered || !self.strict;
        let small = window.unwrap_or(expected) <= self.small;
        let green = if again || small {
            on_credit
        } else if flow.since_red + 1 >= flow.gap(expected, self.full, self.spacing) {
            false
        } else {
            covered || (flow.was_red && on_credit)
        };
        if green {
            if flow.own >= cost {
                flow.own -= cost;
            } else {
                self.common -= cost;
            }
            flow.since_red += 1;
        } else {
            flow.since_red = 0;
        }
        flow.was_red = !green;
        if green { Colour::Green } else { Colour::Red }
    }
}

impl MarkedFlow {
    fn begin_interval(&mut self, estimate: Estimate) {
        self.expected = match estimate {
            Estimate::Last => self.packets,
            Estimate::Average => (self.expected + self.packets).div_ceil(2),
            Estimate::Largest => self.before.max(self.packets),
        };
        self.idle_intervals = if self.packets == 0 { self.idle_intervals + 1 } else { 0 };
        self.before = self.packets;
        self.packets = 0;
    }

    /// Counts a packet, and says whether its data was seen before.
    fn note(&mut self, header: Option<TcpHeader>) -> bool {
        self.packets += 1;
        let Some(header) = header else { return false };
        let again = self.end.is_some_and(|end| comes_before(header.seq, end));
        if !again {
            self.end = Some(header.end());
        }
        again
    }

    /// The distance of the flow's red packets as long as tokens last: what its own do not cover, spread evenly.
    fn gap(&self, expected: u32, full: i64, least: u32) -> u32 {
        let beyond = i64::from(expected) * full - self.given;
        if beyond <= 0 {
            return u32::MAX;
        }
        let gap = (i64::from(expected) * full + beyond - 1) / beyond;
        u32::try_from(gap).unwrap_or(u32::MAX).max(least)
    }
}

impl Meter for TcpFriendly {
    fn colour(&mut self, packet: &Packet, about: &dyn About, now: Time) -> Colour {
        let begun = self.intervals.begun(now);
        for _ in 0..begun.min(u64::from(self.forget) + 2) {
            self.renew();
        }
        let header = about.tcp_header(packet);
        if header.is_some_and(|header| header.payload == 0) {
            return Colour::Green;
        }
        let window = if self.oracle { about.window(packet) } else { None };
        self.judge(packet, header, window)
    }

    fn needs_window(&self) -> bool {
        self.oracle
    }
}

params! {
    /// Parameters of `tcp_friendly`.
    struct TcpFriendlyOptions {
        tokens: u64 = TOKENS,
        interval: Duration = INTERVAL,
        /// whether retransmissions and small windows may be green without tokens, as a debt
        strict as "cap": bool = either(&["soft", "strict"]).default("soft"),
        /// packets an interval (or segments of window) up to which a flow is all green
        small: u32 = number("packets", 0, 10_000).default("6"),
        /// least distance of a flow's red packets as long as tokens last
        spacing: u32 = number("packets", 1, 10_000).default("2"),
        /// a flow's window: packets of the last interval, their average, or the largest of two
        estimate: Estimate = one_of().default("last"),
        /// which windows are small: as counted, or as the sender knows (simulator only)
        oracle as "window": bool = either(&["count", "sender"]).default("count"),
        /// a flow that sends nothing for so long is forgotten
        forget: u32 = number("intervals", 0, 10_000).default("25"),
        uncounted: u32 = UNCOUNTED,
        class: u8 = CLASS,
    }
}

pub(super) static TCP_FRIENDLY: MarkerKind = MarkerKind {
    name: "tcp_friendly",
    summary: "second TCP-friendly marker: small windows and retransmissions green, red packets spread out",
    source: "a reconstruction after Lo Monaco et al., SIGCOMM CCR 2001, and Lo Monaco's thesis (2000)",
    params: TcpFriendlyOptions::PARAMS,
    examples: &[
        "tcp_friendly",
        "tcp_friendly cap strict tokens 20000 interval 20ms small 2 estimate average",
        "tcp_friendly window sender small 4 estimate largest forget 1",
    ],
    build: |spec, device| {
        let options: TcpFriendlyOptions = spec.read(device)?;
        Ok(Marker::new(TcpFriendly::new(&options, device)?, options.class))
    },
};
