//! All disciplines. A new one is a file of its own and one line here.

use crate::tc::{Param, ParamKind, QueueSpec, SpecError};
use crate::{Device, Qdisc};

/// Every discipline, in the order in which `weir list queues` shows them.
pub static DISCIPLINES: &[&Discipline] = &[
    &crate::fifo::PFIFO,
    &crate::fifo::BFIFO,
    &crate::fifo::PFIFO_HEAD_DROP,
    &crate::pfifo_fast::PFIFO_FAST,
    &crate::tbf::TBF,
    &crate::htb::HTB,
    &crate::hfsc::HFSC,
    &crate::codel::CODEL,
    &crate::fq_codel::FQ_CODEL,
    &crate::red::RED,
    &crate::gred::GRED,
    &crate::choke::CHOKE,
    &crate::sfb::SFB,
    &crate::sfq::SFQ,
    &crate::fq::FQ,
    &crate::pie::PIE,
    &crate::fq_pie::FQ_PIE,
    &crate::dualpi2::DUALPI2,
    &crate::prio::PRIO,
    &crate::ets::ETS,
    &crate::drr::DRR,
    &crate::qfq::QFQ,
    &crate::skbprio::SKBPRIO,
    &crate::cake::CAKE,
    &crate::netem::NETEM,
    &crate::ingress::INGRESS,
    &crate::presets::NFQ_CODEL,
    &crate::presets::SIMPLE,
    &crate::presets::SIMPLEST,
    &crate::presets::PIECE_OF_CAKE,
    &crate::presets::LAYER_CAKE,
    &crate::rio::RIO,
    &crate::fred::FRED,
    &crate::frio::FRIO,
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
    /// Specs on which the tests that all disciplines share are run.
    pub examples: &'static [&'static str],
    /// Makes one.
    pub build: Build,
}

impl Discipline {
    /// Whether its classes are bands, which are there by themselves.
    #[must_use]
    pub fn has_bands(&self) -> bool {
        self.params.iter().any(|param| matches!(param.kind, ParamKind::Bands { .. }))
    }
}

/// Makes a discipline from what was written, for a port on a device.
pub type Build = fn(&QueueSpec, &Device) -> Result<Box<dyn Qdisc>, SpecError>;

/// The discipline called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Discipline> {
    DISCIPLINES.iter().find(|discipline| discipline.name == name).copied()
}
