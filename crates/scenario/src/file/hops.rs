//! The hops of a link as worlds take them, and the rates of its lines.

use crate::{
    Access, AirtimeParams, Change, GrantParams, Hop, LineChange, LineRate, LossParams, Path,
    Reconfiguration, ReorderParams, Route,
};
use weir_core::{Cells, Direction, Framing};

use crate::file::catalogue::Files;
use crate::file::link::{
    AirtimeSpec, CellsWord, ChangeSpec, FramingChoice, FramingWord, HopSpec, LinkSpec, LossSpec,
    PlaceWord, ReconfigurationSpec, RouteSpec,
};
use crate::file::plain::{Count, Word};
use crate::file::shaper::ShaperSpec;
use crate::file::spec::DEFAULT_QUEUE;

impl LinkSpec {
    /// The hops of a direction.
    #[must_use]
    pub fn hops(&self, direction: Direction) -> &[HopSpec] {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Whether a hop of a direction says that the user's queue goes there.
    #[must_use]
    pub fn has_place(&self, direction: Direction) -> bool {
        self.hops(direction).iter().any(|hop| hop.place == PlaceWord::Queue)
    }

    /// The link's rate in one direction, in bit/s: that of its slowest hop; `None` if a recording sets it.
    #[must_use]
    pub fn line_rate_bps(&self, direction: Direction) -> Option<u64> {
        let hops = self.hops(direction);
        if hops.iter().any(|hop| hop.trace.is_some()) {
            return None;
        }
        hops.iter().filter_map(|hop| hop.rate).map(|rate| rate.0).min()
    }

    /// The link's rate in one direction, in bit/s: that of its slowest hop, of recordings the mean rate.
    ///
    /// # Errors
    /// If a recording cannot be read.
    pub fn mean_rate_bps(
        &self,
        direction: Direction,
        files: &impl Files,
    ) -> Result<Option<u64>, String> {
        let rate = |hop: &HopSpec| match &hop.trace {
            Some(trace) => files.trace_rate_bps(trace).map(Some),
            None => Ok(hop.rate.map(|rate| rate.0)),
        };
        let rates: Vec<Option<u64>> =
            self.hops(direction).iter().map(rate).collect::<Result<_, _>>()?;
        Ok(rates.into_iter().flatten().min())
    }

    /// The names of the recordings of its lines.
    pub fn traces(&self) -> impl Iterator<Item = &str> {
        self.up.iter().chain(&self.down).filter_map(|hop| hop.trace.as_deref())
    }
}

/// The hops of a direction with the user's `queue`, or with that of a shaper in front or behind.
pub(crate) fn hops(
    link: &LinkSpec,
    direction: Direction,
    shaper: Option<&ShaperSpec>,
    queue: &str,
) -> Vec<Hop> {
    let reference = link.line_rate_bps(direction);
    let with_processor = |spec: &HopSpec, users: &str| {
        processor(spec).into_iter().chain([hop(spec, users, reference)]).collect::<Vec<_>>()
    };
    let own = |users: &str| {
        link.hops(direction).iter().flat_map(|spec| with_processor(spec, users)).collect()
    };
    let Some(shaper) = shaper.filter(|shaper| shaper.shapes(direction)) else {
        return own(queue);
    };
    // The queue is the shaper's, at the client's end of the path; the rest of the path is as it was.
    let inner = if queue == DEFAULT_QUEUE { SHAPER_QUEUE } else { queue };
    let shaped = Hop {
        framing: framing(&shaper.framing),
        reference_rate_bps: reference,
        shaped: true,
        ..Hop::new("shaper", inner, LineRate::Unlimited)
    };
    let mut all: Vec<Hop> = own(DEFAULT_QUEUE);
    let place = match direction {
        Direction::Up => 0,
        Direction::Down => all.len(),
    };
    all.insert(place, shaped);
    all
}

/// The routes of a link over the hops of `path`, which are those of [`hops`]: a hop's processor goes with it, and a shaper
/// stands at the client's end of each route.
pub(crate) fn routes(link: &LinkSpec, path: &Path) -> Vec<Route> {
    let route = |(name, spec): &(String, RouteSpec)| {
        let on_route = |direction| {
            let of_path = match direction {
                Direction::Up => &path.up,
                Direction::Down => &path.down,
            };
            match spec.hops(direction) {
                Some(names) => numbers(names, of_path, direction),
                None => (0..of_path.len() as u32).collect(),
            }
        };
        let [up, down] = Direction::ALL.map(on_route);
        Route { name: name.clone(), up, down }
    };
    link.routes.0.iter().map(route).collect()
}

/// The numbers of the hops of these names, with those of their processors and of the shaper.
fn numbers(names: &[Word], hops: &[Hop], direction: Direction) -> Vec<u32> {
    let mut found = Vec::new();
    for name in names {
        // The reader has looked whether there is one.
        let Some(place) = hops.iter().position(|hop| hop.name == name.0) else { continue };
        let processor = place.checked_sub(1).filter(|&before| hops[before].is_processor());
        found.extend(processor.into_iter().chain([place]).map(|place| place as u32));
    }
    if let Some(shaper) = hops.iter().position(|hop| hop.shaped) {
        let place = match direction {
            Direction::Up => 0,
            Direction::Down => found.len(),
        };
        found.insert(place, shaper as u32);
    }
    found
}

/// The processor of the router in front of a hop, if it forwards only so many packets per second.
fn processor(hop: &HopSpec) -> Option<Hop> {
    let queue = hop.packet_queue.map_or(PACKET_QUEUE, Count::fitting);
    hop.packet_rate.map(|rate| Hop::processor(&hop.name.0, rate.fitting(), queue))
}

fn hop(hop: &HopSpec, queue: &str, reference: Option<u64>) -> Hop {
    let users = hop.place == PlaceWord::Queue && queue != DEFAULT_QUEUE;
    let queue = if users { queue } else { &hop.queue };
    let rate = match (hop.rate, &hop.trace) {
        (Some(rate), _) => LineRate::Bps(rate.0),
        (None, Some(trace)) => LineRate::Trace(trace.clone()),
        (None, None) => LineRate::Unlimited,
    };
    let mut changes: Vec<&ChangeSpec> = hop.changes.iter().collect();
    changes.sort_by_key(|change| change.at);
    Hop {
        marker: hop.marker.clone(),
        framing: framing(&hop.framing),
        delay_ns: hop.delay.0,
        jitter_ns: hop.jitter.0,
        loss: hop.loss.as_ref().map(loss),
        reorder: hop.reorder.as_ref().map(|reorder| ReorderParams {
            probability: reorder.probability.0,
            gap: reorder.gap.fitting(),
        }),
        duplicate: hop.duplicate.0,
        tx_queue_len: hop.txqueuelen.fitting(),
        reference_rate_bps: reference,
        changes: changes.into_iter().flat_map(parts).collect(),
        access: access(hop),
        reconfiguration: hop.reconfiguration.as_ref().map(reconfiguration),
        ..Hop::new(&hop.name.0, queue, rate)
    }
}

fn access(hop: &HopSpec) -> Option<Access> {
    let grants = hop.grants.as_ref().map(|grants| {
        Access::Grants(GrantParams { interval_ns: grants.interval.0, delay_ns: grants.delay.0 })
    });
    grants.or_else(|| hop.airtime.as_ref().map(|spec| Access::Airtime(airtime(spec))))
}

fn airtime(spec: &AirtimeSpec) -> AirtimeParams {
    AirtimeParams {
        medium: spec.medium.as_ref().map(|name| name.0.clone()),
        packets: spec.packets.fitting(),
        longest_ns: spec.longest.0,
        overhead_ns: spec.overhead.0,
        gap_ns: spec.gap.0,
        slot_ns: spec.slot.0,
        window: spec.window.fitting(),
        max_window: spec.max_window.fitting(),
        failures: spec.failures.0,
    }
}

fn reconfiguration(spec: &ReconfigurationSpec) -> Reconfiguration {
    Reconfiguration {
        first_ns: spec.first.map_or(spec.period.0, |first| first.0),
        period_ns: spec.period.0,
        delay_ns: spec.delay.0,
        min_rate_share: spec.min_rate_share.0,
        outage_ns: spec.outage.0,
    }
}

/// The changes of which one that was written consists.
pub(crate) fn parts(change: &ChangeSpec) -> impl Iterator<Item = Change> + use<> {
    let at_ns = change.at.0;
    let all = [
        change.down.then_some(LineChange::Down),
        change.rate.map(|rate| LineChange::RateBps(rate.0)),
        change.delay.map(|delay| LineChange::DelayNs(delay.0)),
        change.loss.as_ref().map(|lost| LineChange::Loss(loss(lost))),
    ];
    all.into_iter().flatten().map(move |to| Change { at_ns, to })
}

fn loss(loss: &LossSpec) -> LossParams {
    match loss {
        LossSpec::Random(loss) => LossParams::Random { probability: loss.probability.0 },
        LossSpec::GilbertElliott(loss) => LossParams::GilbertElliott {
            good_to_bad: loss.good_to_bad.0,
            bad_to_good: loss.bad_to_good.0,
            loss_when_bad: loss.loss_when_bad.0,
            loss_when_good: loss.loss_when_good.0,
        },
    }
}

fn framing(framing: &FramingChoice) -> Framing {
    match framing {
        FramingChoice::Name(FramingWord::None) => Framing::NONE,
        FramingChoice::Name(FramingWord::Ethernet) => Framing::ETHERNET,
        FramingChoice::Name(FramingWord::Ptm) => Framing::PTM,
        FramingChoice::Name(FramingWord::Atm) => Framing::ATM,
        FramingChoice::Name(FramingWord::Docsis) => Framing::DOCSIS,
        FramingChoice::Numbers(numbers) => Framing {
            overhead_bytes: numbers.overhead.fitting(),
            minimum_bytes: numbers.minimum.fitting(),
            cells: match numbers.cells {
                CellsWord::None => Cells::None,
                CellsWord::Atm => Cells::Atm,
                CellsWord::Ptm => Cells::Ptm,
            },
        },
    }
}

/// Packets that wait for a processor unless the link says how many: Linux' `net.core.netdev_max_backlog`
/// (net/core/hotdata.c: `max_backlog`).
const PACKET_QUEUE: u32 = 1000;
/// The queue of a shaper for which none is named: that of sqm-scripts' default.
const SHAPER_QUEUE: &str = "fq_codel";
