//! `srtcm` and `trtcm`: the three-colour markers with token buckets.
//!
//! Follow RFC 2697 (single rate) and RFC 2698 (two rates). A packet takes tokens of a bucket whole or not at
//! all.

use weir_core::{Packet, Time};

use super::bucket::Bucket;
use super::{About, CLASS, MarkerKind, Meter, UNCOUNTED, cost, uncounted};
use crate::colour::Colour;
use crate::tc::{DefaultValue, Kind, Param, Params, SetUpError};

/// RFC 2697: what the committed bucket does not take flows over into the excess bucket.
struct SingleRate {
    committed: Bucket,
    excess: Bucket,
    reading: Reading,
}

/// RFC 2698: each bucket has a rate of its own.
struct TwoRate {
    committed: Bucket,
    peak: Bucket,
    reading: Reading,
}

/// How packets are read.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// A colour that a packet brings along is never improved.
    aware: bool,
    uncounted: u32,
}

impl Reading {
    fn new(params: &Params) -> Result<Self, SetUpError> {
        Ok(Self { aware: params.choice("mode")? == "aware", uncounted: uncounted(params)? })
    }

    /// The best colour that a packet may get. What brings no colour counts as green.
    fn best(self, packet: &Packet) -> Colour {
        if self.aware { Colour::of(packet.dscp).unwrap_or(Colour::Green) } else { Colour::Green }
    }
}

impl Meter for SingleRate {
    fn colour(&mut self, packet: &Packet, _about: &dyn About, now: Time) -> Colour {
        let over = self.committed.fill(now);
        self.excess.pour(over);
        let bytes = cost(packet, self.reading.uncounted);
        let best = self.reading.best(packet);
        if best == Colour::Green && self.committed.take(bytes) {
            Colour::Green
        } else if best <= Colour::Yellow && self.excess.take(bytes) {
            Colour::Yellow
        } else {
            Colour::Red
        }
    }
}

impl Meter for TwoRate {
    fn colour(&mut self, packet: &Packet, _about: &dyn About, now: Time) -> Colour {
        self.committed.fill(now);
        self.peak.fill(now);
        let bytes = cost(packet, self.reading.uncounted);
        let best = self.reading.best(packet);
        if best == Colour::Red || !self.peak.take(bytes) {
            Colour::Red
        } else if best == Colour::Yellow || !self.committed.take(bytes) {
            Colour::Yellow
        } else {
            Colour::Green
        }
    }
}

/// Reads a bucket from a rate and a depth.
fn bucket(params: &Params, rate: &str, depth: &str) -> Result<Bucket, SetUpError> {
    let rate = params.rate(rate)?.expect("required or with a default");
    Ok(Bucket::full(rate, params.size(depth)?.expect("with a default").get()))
}

pub(super) static SRTCM: MarkerKind = MarkerKind {
    name: "srtcm",
    summary: "single rate three colour marker: green up to a burst, yellow up to an excess burst, else red",
    source: "RFC 2697",
    params: &[CIR, CBS, EBS, MODE, UNCOUNTED_NONE, CLASS],
    examples: &["srtcm cir 2mbit cbs 6000 ebs 9000", "srtcm cir 1mbit mode aware uncounted 20"],
    build: |params, _| {
        let committed = bucket(params, "cir", "cbs")?;
        let excess = bucket(params, "cir", "ebs")?;
        Ok(Box::new(SingleRate { committed, excess, reading: Reading::new(params)? }))
    },
};

pub(super) static TRTCM: MarkerKind = MarkerKind {
    name: "trtcm",
    summary: "two rate three colour marker: green within the committed rate, yellow within the peak rate, else red",
    source: "RFC 2698",
    params: &[
        CIR,
        CBS,
        Param {
            name: "pir",
            aliases: &[],
            kind: Kind::Rate,
            default: DefaultValue::Required,
            meaning: "peak information rate, `cir` or more",
        },
        Param {
            name: "pbs",
            aliases: &[],
            kind: Kind::Size,
            default: DefaultValue::Is("50000"),
            meaning: "peak burst size",
        },
        MODE,
        UNCOUNTED_NONE,
        CLASS,
    ],
    examples: &[
        "trtcm cir 1mbit cbs 3000 pir 2mbit pbs 6000",
        "trtcm cir 1mbit pir 3mbit mode aware",
    ],
    build: |params, _| {
        let rates =
            ["cir", "pir"].map(|name| params.rate(name).map(|rate| rate.expect("required")));
        let [committed, peak] = rates;
        let (committed, peak) = (committed?, peak?);
        if peak.as_bps() < committed.as_bps() {
            let allowed = format!("write `cir`, which is {committed}, or more");
            return Err(params.bad("pir", &peak.to_string(), &allowed));
        }
        Ok(Box::new(TwoRate {
            committed: bucket(params, "cir", "cbs")?,
            peak: bucket(params, "pir", "pbs")?,
            reading: Reading::new(params)?,
        }))
    },
};

const CIR: Param = Param {
    name: "cir",
    aliases: &[],
    kind: Kind::Rate,
    default: DefaultValue::Required,
    meaning: "committed information rate",
};

/// A few packets' worth, as draft-ibanez-diffserv-assured-eval-00 has it (20 to 25 KB).
const CBS: Param = Param {
    name: "cbs",
    aliases: &[],
    kind: Kind::Size,
    default: DefaultValue::Is("25000"),
    meaning: "committed burst size",
};

const EBS: Param = Param {
    name: "ebs",
    aliases: &[],
    kind: Kind::Size,
    default: DefaultValue::Is("25000"),
    meaning: "excess burst size",
};

const MODE: Param = Param {
    name: "mode",
    aliases: &[],
    kind: Kind::Choice(&["blind", "aware"]),
    default: DefaultValue::Is("blind"),
    meaning: "whether a colour that a packet brings along counts: it is then never improved",
};

/// The RFCs count whole IP packets.
const UNCOUNTED_NONE: Param = Param { default: DefaultValue::Is("0"), ..UNCOUNTED };
