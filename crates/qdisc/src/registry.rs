//! All disciplines. A new one is a file of its own and one line here.

use crate::tc::{Param, SetUp, SetUpError};
use crate::{Device, Qdisc, cake, codel, fifo, fq_codel, htb, pfifo_fast, tbf};

/// Every discipline, in the order in which `weir list queues` shows them.
pub static DISCIPLINES: &[&Discipline] = &[
    &fifo::PFIFO,
    &fifo::BFIFO,
    &fifo::PFIFO_HEAD_DROP,
    &pfifo_fast::PFIFO_FAST,
    &tbf::TBF,
    &htb::HTB,
    &codel::CODEL,
    &fq_codel::FQ_CODEL,
    &cake::CAKE,
];

/// What is known of a discipline before one is made.
#[derive(Debug)]
pub struct Discipline {
    /// Its name, as `tc` has it.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What it follows: kernel file, RFC, paper.
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

/// Makes a discipline from what was written, for a port on a device.
pub type Build = fn(&SetUp, &Device) -> Result<Box<dyn Qdisc>, SetUpError>;

/// The discipline called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Discipline> {
    DISCIPLINES.iter().find(|discipline| discipline.name == name).copied()
}
