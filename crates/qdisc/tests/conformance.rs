//! Every recording of a real Linux discipline, replayed packet by packet.
//!
//! What must agree: the order of departures, every drop, every mark, and the times within 3 ns
//! (`vectors/linux-6.12/README.md` says how they were recorded).

#![allow(clippy::disallowed_methods, reason = "a test may read its recordings")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_core::{Dscp, Ecn, FlowKey, Packet, Protocol, Time};
use weir_qdisc::{Device, SetUp, replay};

#[test]
fn recordings_of_linux_are_met() {
    let mut failures = Vec::new();
    let mut met = 0;
    for path in recordings() {
        let recording = Recording::load(&path);
        match recording.check() {
            Ok(()) => met += 1,
            Err(why) => failures.push(format!("{}: {why}", recording.name)),
        }
    }
    println!("{met} recordings met, {} not", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(met >= 30, "only {met} recordings were found");
}

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-6.12");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the recordings are part of the repository")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    paths
}

struct Recording {
    name: String,
    commands: String,
    arrivals: Vec<(Time, Packet)>,
    /// Packet, nanoseconds since the first arrival, ECN bits.
    departures: Vec<(u64, u64, u8)>,
    dropped: BTreeSet<u64>,
    start: u64,
}

impl Recording {
    fn load(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        // The phase against the kernel's clocks matters (CoDel's ticks); the settling second before it
        // lets buckets fill.
        let start = 1_024_000_000_000 + number(&json["first_arrival_mod_1024ns"]);
        let arrivals = json["arrivals"].as_array().unwrap().iter().map(|row| {
            let flow = &json["flows"][number(&row[3]).to_string()];
            let key = FlowKey {
                src: flow["src"].as_str().unwrap().parse().unwrap(),
                dst: flow["dst"].as_str().unwrap().parse().unwrap(),
                sport: number(&flow["sport"]) as u16,
                dport: number(&flow["dport"]) as u16,
                protocol: Protocol(number(&flow["proto"]) as u8),
            };
            let at = Time::from_nanos(start + number(&row[1]));
            let packet = Packet {
                handle: number(&row[0]),
                enqueued_at: at,
                label: key.label(1),
                len: number(&row[2]) as u32 + 14,
                owner: number(&row[3]) as u32,
                dscp: Dscp::new(number(&row[4]) as u8).unwrap(),
                ecn: Ecn::from_tos(number(&row[5]) as u8),
            };
            (at, packet)
        });
        let mut arrivals: Vec<_> = arrivals.collect();
        arrivals.sort_by_key(|(at, packet)| (*at, packet.handle));
        Self {
            name: json["name"].as_str().unwrap().to_owned(),
            commands: json["qdisc"]
                .as_array()
                .unwrap()
                .iter()
                .map(|line| line.as_str().unwrap())
                .collect::<Vec<_>>()
                .join("\n"),
            arrivals,
            departures: json["departures"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| (number(&row[0]), number(&row[1]), number(&row[2]) as u8))
                .collect(),
            dropped: json["dropped"].as_array().unwrap().iter().map(number).collect(),
            start,
        }
    }

    fn check(&self) -> Result<(), String> {
        let qdisc = SetUp::parse(&self.commands)
            .and_then(|set_up| set_up.build(&Device::default()))
            .map_err(|error| error.to_string())?;
        let outcome = replay(qdisc, &self.arrivals);
        for (place, (ours, theirs)) in outcome.departures.iter().zip(&self.departures).enumerate() {
            let (at, packet) = ours;
            let at = at.as_nanos() - self.start;
            let &(id, their_at, their_ecn) = theirs;
            if packet.handle != id || at.abs_diff(their_at) > 3 || packet.ecn.bits() != their_ecn {
                return Err(format!(
                    "departure {place}: packet {} at {at} ns with ECN {}, Linux sent {id} at \
                     {their_at} ns with ECN {their_ecn}",
                    packet.handle,
                    packet.ecn.bits()
                ));
            }
        }
        let dropped: BTreeSet<u64> =
            outcome.drops.iter().map(|(packet, _)| packet.handle).collect();
        if dropped != self.dropped {
            let differ: Vec<_> = dropped.symmetric_difference(&self.dropped).take(5).collect();
            return Err(format!("drops differ, first in packets {differ:?}"));
        }
        if outcome.departures.len() != self.departures.len() {
            return Err(format!(
                "{} packets left, of Linux {}",
                outcome.departures.len(),
                self.departures.len()
            ));
        }
        Ok(())
    }
}
