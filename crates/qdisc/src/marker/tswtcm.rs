//! `tswtcm`: the time sliding window three colour marker, which estimates a rate and colours by lot.
//!
//! Follows RFC 2859.

use weir_core::{Draw, Duration, Packet, Rate, Rng, Time};

use super::{About, CLASS, Marker, MarkerKind, Meter};
use crate::colour::Colour;
use crate::tc::{Record, SpecError, params, rate, time};

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

params! {
    /// Parameters of `tswtcm`.
    struct TswtcmOptions {
        /// committed target rate
        ctr: Rate = rate(),
        /// peak target rate
        ptr: Option<Rate> = rate().absent("`ctr`: no yellow"),
        /// length of the sliding window; for TCP about a round trip
        window: Duration = time().default("1s"),
        class: u8 = CLASS,
    }
}

pub(super) static TSWTCM: MarkerKind = MarkerKind {
    name: "tswtcm",
    summary: "time sliding window three colour marker: estimates the rate, colours what exceeds it by lot",
    source: "RFC 2859",
    params: TswtcmOptions::PARAMS,
    examples: &["tswtcm ctr 1mbit ptr 2mbit", "tswtcm ctr 500kbit window 100ms class 4"],
    build: |spec, device| {
        let TswtcmOptions { ctr: committed, ptr, window, class } = spec.read(device)?;
        let peak = ptr.unwrap_or(committed);
        let bad = |name: &str, value: &str, allowed: &str| {
            Err(SpecError::bad("tswtcm", name, value, allowed))
        };
        if window.is_zero() {
            return bad("window", "0", "write a time above 0, such as 1s");
        }
        if peak.as_bps() < committed.as_bps() {
            let allowed = format!("write `ctr`, which is {committed}, or more");
            return bad("ptr", &peak.to_string(), &allowed);
        }
        let meter = Tswtcm {
            committed: committed.as_bps() as f64 / 8.0,
            peak: peak.as_bps() as f64 / 8.0,
            window: window.as_nanos() as f64 / 1e9,
            estimate: committed.as_bps() as f64 / 8.0,
            front: Time::ZERO,
            rng: device.seed.stream("tswtcm"),
        };
        Ok(Marker::new(meter, class))
    },
};
