//! `ets`: strict bands first, then bands that share what is left by their quanta (enhanced transmission
//! selection, IEEE 802.1Qaz).
//!
//! Follows Linux `net/sched/sch_ets.c` and iproute2 `tc/q_ets.c`. Nothing is done differently.

use weir_core::{Packet, Time};

use crate::Device;
use crate::contract::{DropSink, Qdisc};
use crate::drr::{MIN_QUANTUM_BYTES, RoundRobin};
use crate::leaves::Leaves;
use crate::priomap::{PRIOMAP, PrioMap};
use crate::registry::Discipline;
use crate::scheduler::{Schedule, Scheduler, Sorter, bands};
use crate::tc::{
    Classifier, QueueSpec, Record, SpecError, Text, band_count, number, params, words,
};

struct Ets {
    strict: usize,
    sharing: RoundRobin,
}

impl Schedule for Ets {
    fn after_enqueue(
        &mut self,
        band: usize,
        leaves: &mut Leaves,
        now: Time,
        sink: &mut dyn DropSink,
    ) {
        if band >= self.strict {
            self.sharing.after_enqueue(band, leaves, now, sink);
        }
    }

    fn next(&mut self, leaves: &mut Leaves, now: Time, sink: &mut dyn DropSink) -> Option<Packet> {
        (0..self.strict)
            .find_map(|band| leaves.dequeue(band, now, sink))
            .or_else(|| self.sharing.next(leaves, now, sink))
    }
}

fn build(spec: &QueueSpec, device: &Device) -> Result<Box<dyn Qdisc>, SpecError> {
    let EtsOptions { bands: written, strict, quanta, priomap } = spec.read(device)?;
    let mut quanta = quanta.unwrap_or_default();
    let needed = usize::from(strict) + quanta.len();
    let wanted = written.map_or(needed, usize::from);
    if wanted == 0 {
        return Err(SpecError::new("ets: one of `bands`, `strict` and `quanta` is required"));
    }
    let fits = needed <= wanted && wanted <= usize::from(MAX_BANDS);
    let Some(count) = u8::try_from(wanted).ok().filter(|_| fits) else {
        return Err(SpecError::new(format!(
            "ets: `strict {strict}` and {} quanta make {needed} bands; write as many `bands` at least, \
             and {MAX_BANDS} at most",
            quanta.len()
        )));
    };
    // Bands without a quantum have that of a full packet; strict ones have none.
    quanta.resize((count - strict).into(), device.full_packet().max(MIN_QUANTUM_BYTES));
    let map = PrioMap::all(count - 1).overwritten("ets", &priomap.unwrap_or_default(), count)?;
    let sharing = RoundRobin::new(std::iter::repeat_n(0, strict.into()).chain(quanta));
    let sorter = Sorter::Bands(Classifier::with_priorities(spec), map, count.into());
    let leaves = bands(spec, count.into(), device)?;
    Ok(Scheduler::boxed(Ets { strict: strict.into(), sharing }, sorter, leaves))
}

fn read_quanta(text: &Text<'_>) -> Result<Vec<u32>, SpecError> {
    let quantum = |word: &str| {
        let quantum = word.parse().ok().filter(|quantum| (1..=1 << 20).contains(quantum));
        quantum
            .map(|quantum: u32| quantum.max(MIN_QUANTUM_BYTES))
            .ok_or_else(|| text.bad_value(word, "write bytes from 1 to 1048576, one number a band"))
    };
    text.words().into_iter().map(quantum).collect()
}

params! {
    /// Parameters of `ets`.
    struct EtsOptions {
        /// number of bands, which are the classes 1: and on; band 0 is class 1
        bands: Option<u8> = band_count(1, MAX_BANDS as u64).absent("strict + quanta"),
        /// how many bands, from the first, go before all behind them
        strict: u8 = number("bands", 0, MAX_BANDS as u64).default("0"),
        /// bytes that each band behind the strict ones may send in its turn (256 at least)
        quanta: Option<Vec<u32>> = words("bytes, a number a band", numbers, read_quanta)
            .absent("one full packet each"),
        priomap: Option<Vec<String>> = PRIOMAP.absent("the last band for all"),
    }
}

pub(crate) static ETS: Discipline = Discipline {
    name: "ets",
    summary: "strict bands first, then bands that share what is left by their quanta",
    source: "Linux net/sched/sch_ets.c; iproute2 tc/q_ets.c; IEEE 802.1Qaz",
    params: EtsOptions::PARAMS,
    class_params: &[],
    takes_child: false,
    examples: &[
        "ets strict 1 quanta 4000 1000 priomap 2 1 0",
        "ets bands 3 fq_codel limit 20",
        "qdisc add dev eth0 root handle 1: ets bands 3 strict 1 quanta 300
         qdisc add dev eth0 parent 1:1 handle 10: tbf rate 1mbit burst 2000 limit 6000
         qdisc add dev eth0 parent 1:2 handle 20: codel limit 10 target 1ms interval 10ms
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5000 0xffff flowid 1:1
         filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 5001 0xffff flowid 1:2",
    ],
    build,
};

fn numbers(behind: &[&str]) -> usize {
    behind.iter().take_while(|word| word.starts_with(|c: char| c.is_ascii_digit())).count()
}

/// `TCQ_ETS_MAX_BANDS`.
const MAX_BANDS: u8 = 16;
