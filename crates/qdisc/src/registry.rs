//! All disciplines. A new one is a file of its own and one line here.

use crate::tc::{Kind, Param, SetUp, SetUpError};
use crate::{
    Device, Qdisc, cake, choke, codel, drr, dualpi2, ets, fifo, fq, fq_codel, fq_pie, fred, frio,
    gred, hfsc, htb, ingress, netem, pfifo_fast, pie, presets, prio, qfq, red, rio, sfb, sfq,
    skbprio, tbf,
};

/// Every discipline, in the order in which `weir list queues` shows them.
pub static DISCIPLINES: &[&Discipline] = &[
    &fifo::PFIFO,
    &fifo::BFIFO,
    &fifo::PFIFO_HEAD_DROP,
    &pfifo_fast::PFIFO_FAST,
    &tbf::TBF,
    &htb::HTB,
    &hfsc::HFSC,
    &codel::CODEL,
    &fq_codel::FQ_CODEL,
    &red::RED,
    &gred::GRED,
    &choke::CHOKE,
    &sfb::SFB,
    &sfq::SFQ,
    &fq::FQ,
    &pie::PIE,
    &fq_pie::FQ_PIE,
    &dualpi2::DUALPI2,
    &prio::PRIO,
    &ets::ETS,
    &drr::DRR,
    &qfq::QFQ,
    &skbprio::SKBPRIO,
    &cake::CAKE,
    &netem::NETEM,
    &ingress::INGRESS,
    &presets::NFQ_CODEL,
    &presets::SIMPLE,
    &presets::SIMPLEST,
    &presets::PIECE_OF_CAKE,
    &presets::LAYER_CAKE,
    &rio::RIO,
    &fred::FRED,
    &frio::FRIO,
];

/// Description of a discipline in the registry: name, source, parameters.
#[derive(Debug)]
pub struct Discipline {
    /// Its name, as `tc` has it.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source: kernel file, RFC or paper.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The parameters of its classes; empty if it has none.
    pub class_params: &'static [Param],
    /// Whether another discipline may sit beneath it without a class.
    pub takes_child: bool,
    /// Set-ups on which the tests that all disciplines share are run.
    pub examples: &'static [&'static str],
    /// Makes one.
    pub build: Build,
}

impl Discipline {
    /// Whether its classes are bands, which are there by themselves.
    #[must_use]
    pub fn has_bands(&self) -> bool {
        self.params.iter().any(|param| matches!(param.kind, Kind::Bands { .. }))
    }
}

/// Makes a discipline from what was written, for a port on a device.
pub type Build = fn(&SetUp, &Device) -> Result<Box<dyn Qdisc>, SetUpError>;

/// The discipline called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Discipline> {
    DISCIPLINES.iter().find(|discipline| discipline.name == name).copied()
}
