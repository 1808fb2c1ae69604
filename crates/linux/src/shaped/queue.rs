//! Disciplines that hold packets back on one side, in the words of `tc`.

use std::fmt;

use weir_core::Framing;
use weir_qdisc::{CakeDiffserv, CakeOptions, Device, QueueSpec};

use super::classes::KernelClasses;
use super::htb::HtbClasses;
use super::root::at_root;
use crate::LinuxError;
use crate::message::{CREATE_OR_REPLACE, Message};
use crate::tc::cake;

/// Queue spec that holds packets back on one side.
#[derive(Clone, Debug)]
pub enum KernelQueue {
    /// `cake`, which is its own shaper.
    Cake(QueueSpec),
    /// `htb` with a discipline beneath it.
    Htb {
        /// The discipline.
        leaf: QueueSpec,
        /// The classes, each of which has one.
        classes: HtbClasses,
    },
}

impl KernelQueue {
    /// The queue of a spec such as `cake`, `htb diffserv4 LEAF`, which has four tiers as `cake diffserv4` has them,
    /// or `htb hosts LEAF`, whose hosts have equal parts.
    ///
    /// # Errors
    /// If it is none that the kernel is told of.
    pub fn new(text: &str) -> Result<Self, LinuxError> {
        let (classes, leaf) = match (text.strip_prefix(TIERED), text.strip_prefix(BY_HOST)) {
            (Some(leaf), _) => (HtbClasses::Tiers, leaf),
            (None, Some(leaf)) => (HtbClasses::Hosts, leaf),
            (None, None) => (HtbClasses::Only, text),
        };
        let spec = QueueSpec::parse(leaf).map_err(LinuxError::plain)?;
        let name = spec.discipline.name;
        if spec.size_table.is_some() {
            return Err(LinuxError::new(
                "the kernel's shaper counts bytes by `framing`, not by a size table: leave `stab` out",
            ));
        }
        if !spec.egress.is_empty() {
            return Err(LinuxError::new(
                "the kernel's shaper is told of no filters on the way out: leave `egress` out",
            ));
        }
        if name == "cake" && classes == HtbClasses::Only {
            let mut message = at_root(CREATE_OR_REPLACE, 0, name);
            put_cake(&mut message, &spec, Framing::NONE, true)?;
            return Ok(Self::Cake(spec));
        }
        let is_leaf = LEAVES.contains(&name)
            && spec.classes.is_empty()
            && spec.filters.is_empty()
            && spec.child.is_none();
        if !is_leaf {
            return Err(LinuxError::new(format!(
                "the kernel holds packets back by `cake`, or by `htb` with one of {} beneath it or, written \
                 `{TIERED}{leaf}` or `{BY_HOST}{leaf}`, beneath each of four tiers or of its hosts, and not by \
                 `{name}`",
                LEAVES.join(", "),
                leaf = LEAVES[0]
            )));
        }
        Ok(Self::Htb { leaf: spec, classes })
    }

    /// Whether it has the tiers of `cake diffserv4`, known by the same numbers.
    fn has_tiers(&self) -> bool {
        match self {
            Self::Cake(spec) => spec
                .read::<CakeOptions>(&Device::default())
                .is_ok_and(|options| options.diffserv.value == CakeDiffserv::Diffserv4),
            Self::Htb { classes, .. } => *classes == HtbClasses::Tiers,
        }
    }

    /// The disciplines that the kernel must have.
    pub fn needs(&self) -> Vec<&'static str> {
        match self {
            Self::Cake(_) => vec!["cake"],
            Self::Htb { leaf, .. } => vec!["htb", leaf.discipline.name],
        }
    }
}

impl fmt::Display for KernelQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cake(_) => write!(f, "cake"),
            Self::Htb { leaf, classes } => {
                let above = match classes {
                    HtbClasses::Only => "it",
                    HtbClasses::Tiers => "each of its four tiers",
                    HtbClasses::Hosts => "each of its hosts",
                };
                write!(f, "htb with {} beneath {above}", leaf.discipline.name)
            }
        }
    }
}

/// Checks that the queues have the tiers that rules need.
pub(super) fn check_tiers(
    queues: &[Option<KernelQueue>; 2],
    classes: &KernelClasses,
) -> Result<(), LinuxError> {
    for (queue, ceilings) in queues.iter().zip(&classes.ceilings) {
        let Some(queue) = queue else { continue };
        if !queue.has_tiers() {
            return Err(LinuxError::new(format!(
                "rules put packets into the tiers of `cake diffserv4` or `{TIERED}...`, which {queue} does not have"
            )));
        }
        if matches!(queue, KernelQueue::Cake(_)) && ceilings.iter().any(Option::is_some) {
            return Err(LinuxError::new(format!(
                "the tins of `cake` have no greatest rates, which rules set: name no queue, or `{TIERED}{}`",
                LEAVES[0]
            )));
        }
    }
    Ok(())
}

/// Adds the options of a `cake`, which looks behind translated addresses if `nat`.
pub(super) fn put_cake(
    message: &mut Message,
    spec: &QueueSpec,
    framing: Framing,
    nat: bool,
) -> Result<(), LinuxError> {
    let options = spec.read(&Device::default()).map_err(LinuxError::plain)?;
    cake::put(message, &options, framing, nat)
}

/// In front of the discipline beneath each of four tiers.
const TIERED: &str = "htb diffserv4 ";
/// In front of the discipline beneath each host.
const BY_HOST: &str = "htb hosts ";
/// Disciplines that may stand beneath an `htb`.
const LEAVES: [&str; 5] = ["fq_codel", "codel", "pfifo", "bfifo", "pfifo_head_drop"];

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Rate;

    #[test]
    fn what_the_kernel_is_told_of_and_what_not() {
        let say = |text: &str| KernelQueue::new(text).map(|queue| queue.to_string());
        assert_eq!(say("cake diffserv4 nat").unwrap(), "cake");
        assert_eq!(say("pfifo limit 40").unwrap(), "htb with pfifo beneath it");
        let tiers = say("htb diffserv4 pfifo limit 40").unwrap();
        assert_eq!(tiers, "htb with pfifo beneath each of its four tiers");
        assert!(say("htb diffserv4 cake").is_err());
        let hosts = say("htb hosts fq_codel").unwrap();
        assert_eq!(hosts, "htb with fq_codel beneath each of its hosts");
        assert!(say("htb hosts cake").is_err());
        let refused = say("red limit 400000").unwrap_err().to_string();
        assert!(refused.ends_with("and not by `red`"), "{refused}");
        for text in ["stab overhead 4 cake", "stab overhead 4 fq_codel"] {
            let tables = say(text).unwrap_err().to_string();
            assert!(tables.ends_with("leave `stab` out"), "{tables}");
        }
        let filtered = "qdisc add dev e clsact\n\
             filter add dev e egress matchall action skbedit mark 1\n\
             qdisc add dev e root cake";
        let filters = say(filtered).unwrap_err().to_string();
        assert!(filters.ends_with("leave `egress` out"), "{filters}");
    }

    #[test]
    fn rules_need_tiers_and_greatest_rates_need_htb() {
        let refused = |text: &str, ceiling| {
            let queues = [Some(KernelQueue::new(text).unwrap()), None];
            let mut classes = KernelClasses::default();
            classes.ceilings[0][0] = ceiling;
            check_tiers(&queues, &classes).err().map(|error| error.to_string())
        };
        let most = Some(Rate::from_mbit(1));
        assert_eq!(refused("cake diffserv4 dual-srchost", None), None);
        assert_eq!(refused("cake diffserv", None), None);
        assert_eq!(refused("htb diffserv4 pfifo limit 9", most), None);
        assert_eq!(
            refused("cake diffserv4", most).unwrap(),
            "the tins of `cake` have no greatest rates, which rules set: name no queue, or `htb diffserv4 \
             fq_codel`"
        );
        for text in ["cake", "cake besteffort", "fq_codel", "htb hosts fq_codel"] {
            assert!(refused(text, None).unwrap().starts_with("rules put packets into the tiers"));
        }
    }
}
