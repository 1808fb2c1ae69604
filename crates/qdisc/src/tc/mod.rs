//! `tc` syntax in, disciplines out.
//!
//! Two forms are read. The short form names a discipline, its parameters and, behind them, what sits
//! beneath it: `htb rate 95% fq_codel ecn`. The full form is what one types after `tc`, one command
//! a line (or separated by `;`): `qdisc add dev eth0 root handle 1: htb default 10`, `class add ...`,
//! `filter add ... u32 match ip dport 5000 0xffff flowid 1:10`. Comments, `\` at the end of a line and
//! `sudo tc` in front are read as a shell reads them.
//!
//! Both give a [`QueueSpec`], which is checked in full before anything is built.

mod chain;
mod declared;
mod filter;
mod flower;
mod flows;
mod gso;
mod kinds;
mod limits;
mod params;
mod script;
mod short;
mod size_table;
mod skbedit;
mod text;

use std::fmt;
use std::sync::Arc;

pub(crate) use declared::{Declared, NoOptions, Plain, Text, params};
pub use declared::{Every, Placed, Record, Unless0};
pub use filter::{Classifier, Field as MatchField, Filter, FilterKind, Match};
pub use gso::GsoPackets;
pub(crate) use kinds::{
    Choice, as_words, band_count, choice, depth, either, integer, minor, nonzero_depth,
    nonzero_size, number, one_of, percent, probability, rate, read_size, read_time, real,
    short_time, size, switch, time, word, words,
};
pub use params::{DefaultValue, Param, ParamKind, Params};
pub use size_table::SizeTable;
pub use skbedit::Edit;
pub(crate) use text::{check as check_text, did_you_mean, shortened};

use crate::Device;
use crate::Qdisc;
use crate::adjusted::Adjusted;
use crate::presets::Preset;
use crate::registry::{self, Discipline};
use crate::tbf::TbfParams;

/// A discipline as it was written, with everything beneath it; names are known, values not yet read.
#[derive(Clone, Debug)]
pub struct QueueSpec {
    /// The discipline.
    pub discipline: &'static Discipline,
    /// The handle it was given, such as `1:`.
    pub handle: Option<Handle>,
    /// Its parameters, as words.
    pub words: Vec<String>,
    /// Words of each later `qdisc change`, in order.
    pub changes: Vec<Vec<String>>,
    /// Its classes, in the order written.
    pub classes: Vec<ClassSpec>,
    /// Its filters, in the order written.
    pub filters: Vec<Filter>,
    /// The device's filters on the way out (`clsact`), in the order written: they number a packet
    /// before any discipline sees it (`tc_index`).
    pub egress: Arc<[Filter]>,
    /// Filters at the root of everything, where they write on packets (`action skbedit`); none
    /// beneath it.
    pub writes: Arc<[Filter]>,
    /// Size table (`stab`): length that packets count as here and beneath; only at the root.
    pub size_table: Option<SizeTable>,
    /// Child of a discipline without classes of its own (`tbf`), or of each of its bands
    /// (`prio`) where the short form says so.
    pub child: Option<Box<QueueSpec>>,
}

/// A class as it was written.
#[derive(Clone, Debug)]
pub struct ClassSpec {
    /// The class' own name, such as `1:10`.
    pub id: Handle,
    /// Parent: another class, or the discipline (minor number 0).
    pub parent: Handle,
    /// Its parameters, as words.
    pub words: Vec<String>,
    /// Discipline in the class, if one was written.
    pub leaf: Option<Box<QueueSpec>>,
}

impl QueueSpec {
    /// Reads a spec in either form.
    ///
    /// # Errors
    /// If a discipline or parameter is unknown, a value is missing, the tree does not hang together,
    /// or the spec is larger than what can be built. Values are checked by [`build`](Self::build).
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let lines = text::lines(text)?;
        let first = lines.first().and_then(|line| line.split_whitespace().next());
        let spec = match first {
            None => {
                Err(SpecError::new("an empty queue spec: name a discipline, such as `fq_codel`"))
            }
            Some(word) if script::begins(word) => script::parse(&lines),
            Some(_) => short::parse(&lines.join(" ")),
        }?;
        limits::check(&spec)?;
        Ok(spec)
    }

    /// Makes the discipline and everything beneath it, for a port on `device`.
    ///
    /// # Errors
    /// If a value is not of its parameter's kind or out of range.
    pub fn build(&self, device: &Device) -> Result<Box<dyn Qdisc>, SpecError> {
        let qdisc = (self.discipline.build)(self, device)?;
        let writes = self.writes.iter().any(|filter| filter.edit != Edit::default());
        if self.size_table.is_none() && !writes {
            return Ok(qdisc);
        }
        if let Some(table) = &self.size_table {
            self.check_room(table.length_of(device.full_packet()), device)?;
        }
        Ok(Box::new(Adjusted::new(qdisc, self.size_table.clone(), &self.writes)))
    }

    /// Checks that token buckets let a full packet pass, which counts `full` bytes by the size table.
    fn check_room(&self, full: u32, device: &Device) -> Result<(), SpecError> {
        if self.discipline.name == "tbf" {
            TbfParams::read(self, device)?.check_room(self, full, "by the size table")?;
        }
        let leaves = self.classes.iter().filter_map(|class| class.leaf.as_deref());
        leaves.chain(self.child.as_deref()).try_for_each(|beneath| beneath.check_room(full, device))
    }

    /// This spec or, if it is a preset, what it stands for on a port on `device`.
    ///
    /// # Errors
    /// If a value of the preset is not of its parameter's kind or out of range.
    pub fn expanded(&self, device: &Device) -> Result<Self, SpecError> {
        match Preset::named(self.discipline.name) {
            Some(preset) => {
                let expanded = Self::parse(&preset.expand(self, device)?)?;
                Ok(Self {
                    size_table: self.size_table.clone(),
                    egress: Arc::clone(&self.egress),
                    writes: Arc::clone(&self.writes),
                    ..expanded
                })
            }
            None => Ok(self.clone()),
        }
    }

    /// This discipline's own parameters, as `R` declares them. Those of a `qdisc change` count as if they
    /// stood behind the others.
    ///
    /// # Errors
    /// If a word is no parameter, a value is missing or a required parameter is not there, or a value is not
    /// of its parameter's kind or out of range.
    pub fn read<R: Record>(&self, device: &Device) -> Result<R, SpecError> {
        let words: Vec<_> = self.all_words().cloned().collect();
        read(self.discipline.name, &words, device)
    }

    /// The words of its parameters, those of each later `qdisc change` behind the others.
    pub fn all_words(&self) -> impl Iterator<Item = &String> {
        self.words.iter().chain(self.changes.iter().flatten())
    }

    /// The major number under which the classes stand; 1 where no handle was written.
    #[must_use]
    pub fn major(&self) -> u16 {
        self.handle.map_or(1, |handle| handle.major)
    }
}

/// A handle or class name: `major:minor`, both hexadecimal, as in `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// The discipline's number.
    pub major: u16,
    /// The class' number; 0 is the discipline itself.
    pub minor: u16,
}

impl Handle {
    /// Reads `1:10`, `1:` or `:10` (whose major number is then 0).
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self { major: hexadecimal(major)?, minor: hexadecimal(minor)? })
    }

    /// Reads the handle of a discipline, `1:` or, as `tc` does too, `1`.
    fn of_discipline(text: &str) -> Option<Self> {
        if text.contains(':') {
            return Self::parse(text);
        }
        Some(Self { major: u16::from_str_radix(text, 16).ok()?, minor: 0 })
    }

    /// Reads the name of a class, `1:10`, `:10` or, as `tc` does too, `10` (whose major number is then 0).
    fn of_class(text: &str) -> Option<Self> {
        if text.contains(':') {
            return Self::parse(text);
        }
        Some(Self { major: 0, minor: u16::from_str_radix(text, 16).ok()? })
    }
}

/// One number of a handle, 0 where none is written.
fn hexadecimal(digits: &str) -> Option<u16> {
    if digits.is_empty() { Some(0) } else { u16::from_str_radix(digits, 16).ok() }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:", self.major)?;
        if self.minor != 0 {
            write!(f, "{:x}", self.minor)?;
        }
        Ok(())
    }
}

/// Error in a queue spec, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpecError {
    message: String,
}

impl SpecError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// An error about the value of `owner`'s parameter `name`.
    pub(crate) fn bad(owner: &str, name: &str, value: &str, allowed: &str) -> Self {
        Self::new(format!("{owner}: `{name} {}`: {allowed}", shortened(value)))
    }
}

/// The parameters that `words` say of what is called `owner`.
///
/// # Errors
/// If a word is no parameter, a value is missing or a required parameter is not there, or a value is not of
/// its parameter's kind or out of range.
pub(crate) fn read<R: Record>(
    owner: &'static str,
    words: &[String],
    device: &Device,
) -> Result<R, SpecError> {
    R::read(&Params::parse(owner, R::PARAMS, words, device)?)
}

/// The discipline called `name`.
fn find(name: &str) -> Result<&'static Discipline, SpecError> {
    registry::find(name).ok_or_else(|| {
        let near = did_you_mean(name, registry::DISCIPLINES.iter().map(|known| known.name));
        let names = || registry::DISCIPLINES.iter().map(|known| known.name).collect::<Vec<_>>();
        let near = near.unwrap_or_else(|| format!(": there are {}", names().join(", ")));
        SpecError::new(format!("unknown queue discipline `{name}`{near}"))
    })
}
