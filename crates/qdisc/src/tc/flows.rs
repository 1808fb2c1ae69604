//! How disciplines keep flows apart.

use super::{QueueSpec, SpecError};
use crate::cake::CakeOptions;
use crate::sfq::SfqOptions;
use crate::{Device, FqCodelOptions, FqOptions, FqPieOptions};

impl QueueSpec {
    /// Whether this discipline has a queue for each flow, on a port of `device`, so that a packet of a flow that sends
    /// little leaves before those of others that came earlier. Trees are not among these, whatever is in them, nor is one
    /// that was told to have a single queue.
    ///
    /// # Errors
    /// If a value is not of its parameter's kind or out of range.
    pub fn keeps_flows_apart(&self, device: &Device) -> Result<bool, SpecError> {
        Ok(self.stands_alone()
            && match self.discipline.name {
                "fq" => self.read::<FqOptions>(device)?.orphan_mask > 0,
                "fq_codel" => self.read::<FqCodelOptions>(device)?.flows > 1,
                "fq_pie" => self.read::<FqPieOptions>(device)?.flows > 1,
                "sfq" => {
                    let options = self.read::<SfqOptions>(device)?;
                    options.flows.min(options.divisor) > 1
                }
                "cake" => self.read::<CakeOptions>(device)?.keeps_flows_apart(),
                _ => false,
            })
    }

    /// Whether there is nothing to it but the discipline: no classes or children, filters or table of lengths.
    pub(super) fn stands_alone(&self) -> bool {
        let alone = self.classes.is_empty() && self.child.is_none() && self.size_table.is_none();
        alone && self.filters.is_empty() && self.egress.is_empty() && self.writes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disciplines_with_a_queue_for_each_flow_keep_flows_apart() {
        let apart = |text: &str| {
            QueueSpec::parse(text).unwrap().keeps_flows_apart(&Device::default()).unwrap()
        };
        for (text, expected) in [
            ("cake", true),
            ("cake diffserv4 dual-dsthost", true),
            ("cake flows wash", true),
            ("cake flowblind", false),
            ("cake dual-srchost srchost", false),
            ("cake hosts", false),
            ("fq", true),
            ("fq_codel limit 100 ecn", true),
            ("fq_pie", true),
            ("sfq perturb 10", true),
            ("sfq flows 0", true),
            ("fq_codel flows 2", true),
            ("fq_codel flows 1", false),
            ("fq_pie flows 1", false),
            ("sfq flows 1", false),
            ("sfq divisor 1", false),
            ("fq orphan_mask 0", false),
            ("pfifo", false),
            ("codel", false),
            ("tbf rate 10mbit burst 10kb latency 50ms", false),
            ("prio fq_codel", false),
            ("drr", false),
        ] {
            assert_eq!(apart(text), expected, "{text}");
        }
    }
}
