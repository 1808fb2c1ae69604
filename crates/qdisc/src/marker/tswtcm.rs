//! `tswtcm`: the time sliding window three colour marker, which estimates a rate and colours by lot.
//!
//! Follows RFC 2859.

use weir_core::{Draw, Packet, Rng, Time};

use super::{About, CLASS, MarkerKind, Meter};
use crate::colour::Colour;
use crate::tc::{DefaultValue, Kind, Param};

struct Tswtcm {
    /// Bytes per second.
    committed: f64,
    peak: f64,
    /// Seconds.
    window: f64,
    estimate: f64,
    front: Time,
    rng: Rng,
}

impl Tswtcm {
    /// RFC 2859, section 3: the rate estimator.
    fn take_in(&mut self, bytes: u32, now: Time) {
        let passed = now.since(self.front).as_nanos() as f64 / 1e9;
        self.estimate = (self.estimate * self.window + f64::from(bytes)) / (passed + self.window);
        self.front = now;
    }
}

impl Meter for Tswtcm {
    /// RFC 2859, section 4: what exceeds a rate gets the worse colour with the probability that leaves the
    /// rate for the better one.
    fn colour(&mut self, packet: &Packet, _about: &dyn About, now: Time) -> Colour {
        self.take_in(packet.ip_len(), now);
        if self.estimate <= self.committed {
            return Colour::Green;
        }
        let lot = self.rng.unit() * self.estimate;
        let red = (self.estimate - self.peak).max(0.0);
        if lot < red {
            Colour::Red
        } else if lot < self.estimate - self.committed {
            Colour::Yellow
        } else {
            Colour::Green
        }
    }
}

pub(super) static TSWTCM: MarkerKind = MarkerKind {
    name: "tswtcm",
    summary: "time sliding window three colour marker: estimates the rate, colours what exceeds it by lot",
    source: "RFC 2859",
    params: &[
        Param {
            name: "ctr",
            aliases: &[],
            kind: Kind::Rate,
            default: DefaultValue::Required,
            meaning: "committed target rate",
        },
        Param {
            name: "ptr",
            aliases: &[],
            kind: Kind::Rate,
            default: DefaultValue::Absent("`ctr`: no yellow"),
            meaning: "peak target rate",
        },
        Param {
            name: "window",
            aliases: &[],
            kind: Kind::Time,
            default: DefaultValue::Is("1s"),
            meaning: "length of the sliding window; for TCP about a round trip",
        },
        CLASS,
    ],
    examples: &["tswtcm ctr 1mbit ptr 2mbit", "tswtcm ctr 500kbit window 100ms class 4"],
    build: |params, device| {
        let committed = params.rate("ctr")?.expect("required");
        let peak = params.rate("ptr")?.unwrap_or(committed);
        let window = params.time("window")?.expect("a default");
        if window.is_zero() {
            return Err(params.bad("window", "0", "write a time above 0, such as 1s"));
        }
        if peak.as_bps() < committed.as_bps() {
            let allowed = format!("write `ctr`, which is {committed}, or more");
            return Err(params.bad("ptr", &peak.to_string(), &allowed));
        }
        Ok(Box::new(Tswtcm {
            committed: committed.as_bps() as f64 / 8.0,
            peak: peak.as_bps() as f64 / 8.0,
            window: window.as_nanos() as f64 / 1e9,
            estimate: committed.as_bps() as f64 / 8.0,
            front: Time::ZERO,
            rng: device.seed.stream("tswtcm"),
        }))
    },
};
