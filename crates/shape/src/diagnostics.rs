//! Diagnostics: what keeps a shaper from helping, as its own measurements show it. Pure: numbers in, sentences out.

use std::collections::{BTreeMap, VecDeque};

use weir_linux::Flowtable;
use weir_rate_control::{Control, Side};

/// Diagnostics of a running shaper: judges one second of measurements after another.
#[derive(Debug)]
pub(crate) struct Diagnostics {
    /// The rates that were set by whoever started the shaper, bit/s.
    set: [Option<u64>; 2],
    baselines: BTreeMap<u32, Baseline>,
    /// Delays of this second above their sources' baselines, ns.
    excess: Vec<u64>,
    /// How many seconds in a row each has lasted.
    elsewhere: u32,
    above: [u32; 2],
    /// Bytes of the last seconds by side: of the device, and of those what the shaper saw.
    seen: VecDeque<[Option<(u64, u64)>; 2]>,
}

/// A side within a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Second {
    /// The rate, bit/s, if there is one.
    pub rate_bps: Option<u64>,
    /// Load of the link in bit/s: traffic that left on egress, or came on ingress.
    pub load_bps: u64,
    /// Bytes that wait in the shaper.
    pub backlog_bytes: u64,
    /// Bytes that the device has counted.
    pub device_bytes: u64,
    /// Bytes that the shaper has, at least as long as the device counts them.
    pub seen_bytes: u64,
}

/// The least delay of the last one to two periods.
#[derive(Clone, Copy, Debug)]
struct Baseline {
    before: u64,
    now: u64,
    seconds: u32,
}

impl Diagnostics {
    pub fn new(control: &Control) -> Self {
        let set = match control {
            Control::Auto(auto) => {
                [auto.egress_bps.or(auto.egress_max_bps), auto.ingress_bps.or(auto.ingress_max_bps)]
            }
            Control::Fixed { egress_bps, ingress_bps } => [*egress_bps, *ingress_bps],
            Control::CakeAutorate { egress, ingress } => {
                [Some(egress.max_bps), Some(ingress.max_bps)]
            }
        };
        Self {
            set,
            baselines: BTreeMap::new(),
            excess: Vec::new(),
            elsewhere: 0,
            above: [0; 2],
            seen: VecDeque::new(),
        }
    }

    /// A round trip to a source was measured.
    pub fn on_delay(&mut self, source: u32, rtt_ns: u64) {
        let new = Baseline { before: rtt_ns, now: rtt_ns, seconds: 0 };
        let baseline = self.baselines.entry(source).or_insert(new);
        baseline.now = baseline.now.min(rtt_ns);
        self.excess.push(rtt_ns - baseline.now.min(baseline.before).min(rtt_ns));
    }

    /// A second is over: what is wrong now.
    pub fn on_second(&mut self, sides: &[Option<Second>; 2]) -> Vec<String> {
        let excess_ns = self.take_excess();
        self.seen.push_back(sides.map(|side| side.map(|it| (it.device_bytes, it.seen_bytes))));
        if self.seen.len() > LASTING as usize {
            self.seen.pop_front();
        }
        let late = excess_ns >= LATE_NS;
        let mut found = Vec::new();
        // Of the sides whose own queue is empty, the one with more of its rate in use.
        let used =
            |side: &Second| side.rate_bps.map(|rate| side.load_bps as f64 / rate.max(1) as f64);
        let keeps_up = |side: &Second| side.backlog_bytes <= EMPTY_BYTES;
        for side in Side::ALL {
            let above = sides[side as usize].as_ref().filter(|it| {
                it.rate_bps.is_some()
                    && it.rate_bps == self.set[side as usize]
                    && it.load_bps >= MIN_TRAFFIC_BPS
                    && used(it).is_some_and(|used| used < FULL)
                    && keeps_up(it)
                    && is_busier(it, sides[1 - side as usize].as_ref())
            });
            let lasts = &mut self.above[side as usize];
            *lasts = if late && above.is_some() { *lasts + 1 } else { 0 };
            if let (Some(it), true) = (above, *lasts >= LASTING) {
                found.push(above_line(side, it, excess_ns));
            }
        }
        let shaped = || sides.iter().flatten();
        let slack = shaped().next().is_some()
            && shaped().all(|it| used(it).is_some_and(|used| used < HALF) && keeps_up(it));
        let least = shaped().any(|it| it.rate_bps.is_some_and(|rate| rate <= FLOOR_BPS));
        self.elsewhere = if late && (slack || least) { self.elsewhere + 1 } else { 0 };
        if self.elsewhere >= LASTING && found.is_empty() {
            let most = shaped().filter_map(used).fold(0.0, f64::max);
            found.push(elsewhere(excess_ns, if least { None } else { Some(most) }));
        }
        found.extend(Side::ALL.into_iter().filter_map(|side| self.past(side)));
        found
    }

    /// The median delay of the second above its source's baseline, ns; 0 if none was measured.
    fn take_excess(&mut self) -> u64 {
        for baseline in self.baselines.values_mut() {
            baseline.seconds += 1;
            if baseline.seconds >= PERIOD_S {
                *baseline = Baseline { before: baseline.now, now: u64::MAX, seconds: 0 };
            }
        }
        let mut all = std::mem::take(&mut self.excess);
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    }

    /// Whether a part of the traffic goes past the shaper.
    fn past(&self, side: Side) -> Option<String> {
        if self.seen.len() < LASTING as usize {
            return None;
        }
        let mut sums = (0, 0);
        for second in &self.seen {
            let (device, seen) = second[side as usize]?;
            sums = (sums.0 + device, sums.1 + seen);
        }
        let (device, seen) = sums;
        let past = device.saturating_sub(seen);
        let fast = past * 8 / u64::from(LASTING) >= MIN_TRAFFIC_BPS;
        (fast && past * PAST_PARTS >= device).then(|| {
            format!(
                "{}: {:.0} % of what crosses the device goes past the shaper, {:.1} Mbit/s: hardware or flowtable \
                 offload, or a bridge, does it; switch that off",
                name(side),
                past as f64 * 100.0 / device as f64,
                past as f64 * 8.0 / f64::from(LASTING) / 1e6
            )
        })
    }
}

/// A rate is of no use on a device that is slower.
pub(crate) fn slower_link(control: &Control, link_bps: u64) -> Vec<String> {
    let set = Diagnostics::new(control).set;
    let sides = Side::ALL.into_iter().zip(set);
    let faster =
        sides.filter_map(|(side, rate)| Some((side, rate?))).filter(|&(_, rate)| rate > link_bps);
    faster
        .map(|(side, rate)| {
            format!(
                "{}: {:.1} Mbit/s is above the speed of the device itself, {:.1} Mbit/s",
                name(side),
                rate as f64 / 1e6,
                link_bps as f64 / 1e6
            )
        })
        .collect()
}

/// A sentence about the flows that a flowtable with `device` takes away from a shaper; `None` if it takes
/// none.
///
/// `sees_all` holds for a shaper that sees all of this machine's traffic: the kernel's own queues, without
/// rules.
pub(crate) fn taken_by(it: &Flowtable, device: &str, sees_all: bool) -> Option<String> {
    let what = match (it.in_hardware, sees_all) {
        (true, _) => "the device forwards its flows by itself, past every queue (`flags offload`)",
        (false, false) => "its flows go past the shaper",
        (false, true) => return None,
    };
    Some(format!(
        "the flowtable `{}` of the table `{}` has `{device}`: {what}; take `{device}` out of it",
        it.name, it.table
    ))
}

/// A sentence about the packets that a device with `hw-tc-offload` takes away from a shaper.
pub(crate) fn taken_by_hardware(device: &str) -> String {
    format!(
        "`hw-tc-offload` of `{device}` is on: packets that filters in its hardware take do not come here; \
         `ethtool -K {device} hw-tc-offload off` ends that"
    )
}

/// Whether a side carries more of its rate than the other, or there is no other.
fn is_busier(one: &Second, other: Option<&Second>) -> bool {
    let share =
        |it: &Second| it.rate_bps.map_or(0.0, |rate| it.load_bps as f64 / rate.max(1) as f64);
    other.is_none_or(|other| share(one) >= share(other))
}

fn above_line(side: Side, it: &Second, excess_ns: u64) -> String {
    format!(
        "{}: {:.1} Mbit/s is above what the line carries: {:.1} Mbit/s get through, delays are {:.0} ms up, and \
         nothing waits here; set less, or `auto`",
        name(side),
        it.rate_bps.unwrap_or_default() as f64 / 1e6,
        it.load_bps as f64 / 1e6,
        excess_ns as f64 / 1e6
    )
}

fn elsewhere(excess_ns: u64, used: Option<f64>) -> String {
    let ms = excess_ns as f64 / 1e6;
    match used {
        None => format!(
            "delays stay {ms:.0} ms up at the least rate: the queue is not one that this shaper can empty (Wi-Fi, \
             another host's traffic, a second hop)"
        ),
        Some(used) => format!(
            "delays are {ms:.0} ms up though at most {:.0} % of the rate is used and nothing waits here: the \
             queue is elsewhere (Wi-Fi, another host's traffic, a second hop)",
            used * 100.0
        ),
    }
}

const fn name(side: Side) -> &'static str {
    match side {
        Side::Egress => "up",
        Side::Ingress => "down",
    }
}

/// What is said of a device that is not at work.
pub(crate) const DOWN: &str =
    "the device is down, or has no link to its other end: nothing passes until it has";
/// Seconds in a row, and of the window for what goes past: a controller that can help has done so.
const LASTING: u32 = 5;
/// Delays so far up are felt: as cake-autorate's threshold.
const LATE_NS: u64 = 30_000_000;
/// A rate of which less is used is no bottleneck, even with what framing and bursts hide.
const HALF: f64 = 0.5;
/// A rate that is used up to here may be the bottleneck.
const FULL: f64 = 0.9;
/// Two packets: a queue of ours that keeps nothing waiting.
const EMPTY_BYTES: u64 = 2 * 1_538;
/// Traffic below that proves nothing.
const MIN_TRAFFIC_BPS: u64 = 500_000;
/// A fifth of the least rate above it is at it.
const FLOOR_BPS: u64 = 120_000;
/// A fifth of the traffic.
const PAST_PARTS: u64 = 5;
/// Baselines are of the last half to full minute.
const PERIOD_S: u32 = 30;

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO: Control = Control::Auto(weir_rate_control::AutoSettings {
        mode: weir_rate_control::Mode::Ping,
        egress_bps: None,
        ingress_bps: None,
        egress_max_bps: None,
        ingress_max_bps: None,
        egress_known_bps: None,
        ingress_known_bps: None,
    });

    const fn second(rate_bps: u64, load_bps: u64) -> Second {
        let bytes = load_bps / 8;
        Second {
            rate_bps: Some(rate_bps),
            load_bps,
            backlog_bytes: 0,
            device_bytes: bytes,
            seen_bytes: bytes,
        }
    }

    /// Warnings after `seconds` such seconds, in each of which delays are `ms` milliseconds high.
    fn said(control: &Control, sides: [Option<Second>; 2], seconds: u32, ms: u64) -> Vec<String> {
        let mut diagnostics = Diagnostics::new(control);
        diagnostics.on_delay(0, 20_000_000);
        assert!(diagnostics.on_second(&sides).is_empty());
        let mut last = Vec::new();
        for _ in 0..seconds {
            diagnostics.on_delay(0, (20 + ms) * 1_000_000);
            last = diagnostics.on_second(&sides);
        }
        last
    }

    #[test]
    fn a_queue_elsewhere() {
        let sides = [Some(second(10_000_000, 1_000_000)), Some(second(50_000_000, 20_000_000))];
        assert_eq!(
            said(&AUTO, sides, 5, 40),
            [
                "delays are 40 ms up though at most 40 % of the rate is used and nothing waits here: the queue is \
              elsewhere (Wi-Fi, another host's traffic, a second hop)"
            ]
        );
        assert!(said(&AUTO, sides, 4, 40).is_empty(), "too short");
        assert!(said(&AUTO, sides, 5, 29).is_empty(), "not late");
        let busy = [sides[0], Some(second(50_000_000, 26_000_000))];
        assert!(said(&AUTO, busy, 9, 40).is_empty(), "the controller's to judge");
        let mut waiting = sides;
        waiting[0].as_mut().unwrap().backlog_bytes = 4_000;
        assert!(said(&AUTO, waiting, 9, 40).is_empty(), "it waits here");
        let least = [Some(second(100_000, 95_000)), None];
        assert!(said(&AUTO, least, 5, 40)[0].starts_with("delays stay 40 ms up at the least rate"));
    }

    #[test]
    fn a_rate_above_the_line() {
        let fixed = Control::Fixed { egress_bps: Some(100_000_000), ingress_bps: None };
        let sides = [Some(second(100_000_000, 20_000_000)), None];
        assert_eq!(
            said(&fixed, sides, 5, 90),
            [
                "up: 100.0 Mbit/s is above what the line carries: 20.0 Mbit/s get through, delays are 90 ms up, \
              and nothing waits here; set less, or `auto`"
            ]
        );
        let full = [Some(second(100_000_000, 95_000_000)), None];
        assert!(said(&fixed, full, 9, 90).is_empty(), "the rate is in use");
        assert_eq!(
            slower_link(&fixed, 10_000_000),
            ["up: 100.0 Mbit/s is above the speed of the device itself, 10.0 Mbit/s"]
        );
        assert!(slower_link(&fixed, 100_000_000).is_empty());
    }

    #[test]
    fn traffic_that_goes_past() {
        let mut side = second(50_000_000, 4_000_000);
        side.device_bytes = 1_250_000;
        let mut diagnostics = Diagnostics::new(&AUTO);
        let said: Vec<_> = (0..5).map(|_| diagnostics.on_second(&[None, Some(side)])).collect();
        assert!(said[..4].iter().all(Vec::is_empty));
        assert_eq!(
            said[4],
            [
                "down: 60 % of what crosses the device goes past the shaper, 6.0 Mbit/s: hardware or flowtable \
              offload, or a bridge, does it; switch that off"
            ]
        );
        side.seen_bytes = 1_010_000;
        for _ in 0..4 {
            diagnostics.on_second(&[None, Some(side)]);
        }
        assert!(diagnostics.on_second(&[None, Some(side)]).is_empty(), "19 %");
    }

    #[test]
    fn flowtables_that_have_the_device() {
        let mut it =
            Flowtable { table: "inet fw4".to_owned(), name: "ft".to_owned(), in_hardware: false };
        assert_eq!(
            taken_by(&it, "eth0", false).unwrap(),
            "the flowtable `ft` of the table `inet fw4` has `eth0`: its flows go past the shaper; take `eth0` out \
             of it"
        );
        assert_eq!(taken_by(&it, "eth0", true), None, "the kernel's own queues come behind it");
        it.in_hardware = true;
        assert!(taken_by(&it, "eth0", true).unwrap().contains("past every queue"));
    }

    #[test]
    fn a_baseline_is_forgotten() {
        let mut diagnostics = Diagnostics::new(&AUTO);
        let sides = [Some(second(10_000_000, 0)), None];
        diagnostics.on_delay(3, 10_000_000);
        for _ in 0..59 {
            diagnostics.on_second(&sides);
            diagnostics.on_delay(3, 50_000_000);
        }
        assert_eq!(diagnostics.excess, [40_000_000]);
        diagnostics.on_second(&sides);
        diagnostics.on_delay(3, 50_000_000);
        assert_eq!(diagnostics.excess, [0]);
    }
}
