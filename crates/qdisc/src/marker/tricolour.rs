//! `srtcm` and `trtcm`: the three-colour markers with token buckets.
//!
//! Follow RFC 2697 (single rate) and RFC 2698 (two rates). A packet takes tokens of a bucket whole or not at
//! all.

use weir_core::{Packet, Rate, Time};

use super::bucket::Bucket;
use super::{About, CLASS, Marker, MarkerKind, Meter, UNCOUNTED, cost};
use crate::colour::Colour;
use crate::tc::{Declared, Record, SpecError, either, params, rate, size};

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

params! {
    /// How packets are read.
    #[derive(Clone, Copy, Debug)]
    struct Reading {
        /// whether a colour that a packet brings along counts: it is then never improved
        aware as "mode": bool = either(&["blind", "aware"]).default("blind"),
        // The RFCs count whole IP packets.
        uncounted: u32 = UNCOUNTED.default("0"),
    }
}

impl Reading {
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

params! {
    /// Parameters of `srtcm`.
    struct SrtcmOptions {
        cir: Rate = CIR,
        cbs: u64 = CBS,
        /// excess burst size
        ebs: u64 = size().default("25000"),
        reading: Reading,
        class: u8 = CLASS,
    }
}

pub(super) static SRTCM: MarkerKind = MarkerKind {
    name: "srtcm",
    summary: "single rate three colour marker: green up to a burst, yellow up to an excess burst, else red",
    source: "RFC 2697",
    params: SrtcmOptions::PARAMS,
    examples: &["srtcm cir 2mbit cbs 6000 ebs 9000", "srtcm cir 1mbit mode aware uncounted 20"],
    build: |spec, device| {
        let SrtcmOptions { cir, cbs, ebs, reading, class } = spec.read(device)?;
        let [committed, excess] = [cbs, ebs].map(|depth| Bucket::full(cir, depth));
        Ok(Marker::new(SingleRate { committed, excess, reading }, class))
    },
};

params! {
    /// Parameters of `trtcm`.
    struct TrtcmOptions {
        cir: Rate = CIR,
        cbs: u64 = CBS,
        /// peak information rate, `cir` or more
        pir: Rate = rate(),
        /// peak burst size
        pbs: u64 = size().default("50000"),
        reading: Reading,
        class: u8 = CLASS,
    }
}

pub(super) static TRTCM: MarkerKind = MarkerKind {
    name: "trtcm",
    summary: "two rate three colour marker: green within the committed rate, yellow within the peak rate, else red",
    source: "RFC 2698",
    params: TrtcmOptions::PARAMS,
    examples: &[
        "trtcm cir 1mbit cbs 3000 pir 2mbit pbs 6000",
        "trtcm cir 1mbit pir 3mbit mode aware",
    ],
    build: |spec, device| {
        let TrtcmOptions { cir, cbs, pir, pbs, reading, class } = spec.read(device)?;
        if pir.as_bps() < cir.as_bps() {
            let allowed = format!("write `cir`, which is {cir}, or more");
            return Err(SpecError::bad("trtcm", "pir", &pir.to_string(), &allowed));
        }
        let (committed, peak) = (Bucket::full(cir, cbs), Bucket::full(pir, pbs));
        Ok(Marker::new(TwoRate { committed, peak, reading }, class))
    },
};

const CIR: Declared<Rate> = rate().means("committed information rate");

/// A few packets' worth, as draft-ibanez-diffserv-assured-eval-00 has it (20 to 25 KB).
const CBS: Declared<u64> = size().default("25000").means("committed burst size");
