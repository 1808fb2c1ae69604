//! A queue and its line as queue disciplines of this machine's kernel.
//!
//! The line is a `tbf` at the root with the queue beneath it; without a line the queue is at the root. What `tc` would be told is told to the kernel directly: no program is needed.

pub(crate) mod cake;
mod early;
pub(crate) mod filter;
mod flows;
pub(crate) mod options;
pub(crate) mod rtnetlink;
mod stats;

use std::collections::BTreeMap;

use weir_core::{Cells, Framing};
use weir_core::{ETHERNET_HEADER, Rate};
use weir_qdisc::{
    ClassSpec, Device, Filter, HtbOptions, Lengths, QueueSpec, SizeTable, SpecError, TbfParams,
};

use self::rtnetlink::{RTM_GETQDISC, RTM_GETTCLASS, RTM_NEWTCLASS, TC_H_ROOT, new_qdisc, put_kind};
pub(crate) use self::stats::counts_of;
pub use self::stats::{Counts, Reasons, wire_bytes};
use crate::LinuxError;
use crate::isolate::Namespace;
use crate::message::{About, CREATE, Message, NLM_F_DUMP};
use crate::netlink::{Netlink, index_of};

/// Checks that a spec can be expressed to a kernel.
///
/// # Errors
/// What cannot, in words that follow the name of the hop.
pub fn check_spec(spec: &QueueSpec) -> Result<(), String> {
    let name = spec.discipline.name;
    if !options::knows(name) {
        return Err(format!("no kernel is told yet how to make a `{name}`"));
    }
    if let Some(word) = options::untold(spec) {
        return Err(format!("no kernel is told yet of the word `{word}` of `{name}`"));
    }
    if !spec.egress.is_empty() {
        return Err(format!(
            "no kernel is told yet of filters of `clsact`, which stand before `{name}`"
        ));
    }
    for filter in &spec.filters {
        filter::keys(filter).map_err(|what| format!("no kernel is told yet of {what}"))?;
        if filter.flow.major != spec.major() {
            return Err(format!(
                "a filter of `{name}` names class {}, which is not its own",
                filter.flow
            ));
        }
    }
    let leaves = spec.classes.iter().filter_map(|class| class.leaf.as_deref());
    leaves.chain(spec.child.as_deref()).try_for_each(check_spec)
}

/// Checks the values of a spec that [`check_spec`] allows, for that device: those that a kernel would refuse without
/// saying which.
///
/// # Errors
/// The first that no kernel takes, or not all do, with what they take.
pub fn check_values(spec: &QueueSpec, device: &Device) -> Result<(), SpecError> {
    let about = About { index: 0, handle: 0, parent: 0 };
    options::put(&mut Message::new(0, 0, about), spec, device, 0)?;
    for class in &spec.classes {
        let HtbOptions { r2q, .. } = spec.read(device)?;
        options::put_class(&mut Message::new(0, 0, about), class, r2q, device, 0)?;
    }
    let leaves = spec.classes.iter().filter_map(|class| class.leaf.as_deref());
    leaves.chain(spec.child.as_deref()).try_for_each(|inner| check_values(inner, device))
}

/// A line that holds packets back: its rate, and what a packet occupies on it.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Rate of the line.
    pub rate: Rate,
    /// Framing of an IP packet on it.
    pub framing: Framing,
}

/// A queue and its line as disciplines of the kernel.
#[derive(Debug)]
pub struct Queue {
    index: u32,
    /// The classes that the spec names, by their numbers in the kernel.
    classes: BTreeMap<u32, String>,
    /// The bytes that the kernel counts a packet less than the userspace data path.
    uncounted: u32,
}

/// Counts of a hop's disciplines so far.
#[derive(Clone, Debug, Default)]
pub struct QueueCounts {
    /// Counts of the whole hop.
    pub whole: Counts,
    /// The classes, by name.
    pub classes: Vec<(String, Counts)>,
}

impl Queue {
    /// Makes `spec` on the device of that index, beneath a `tbf` that is its `line` if it has one; `device` is
    /// what the spec was expanded for.
    ///
    /// # Errors
    /// If this kernel lacks a discipline, or refuses it.
    pub fn install(
        netlink: &Netlink,
        index: u32,
        line: Option<Line>,
        spec: &QueueSpec,
        device: &Device,
    ) -> Result<Self, LinuxError> {
        let mut queue = Self { index, classes: BTreeMap::new(), uncounted: 0 };
        let mut root = TC_H_ROOT;
        if let Some(Line { rate, framing }) = line {
            let tbf = TbfParams {
                rate,
                burst: line_burst(rate.as_bps(), device),
                limit: u64::from(u32::MAX),
                peak: None,
                lengths: line_lengths(framing),
            };
            queue.uncounted = ETHERNET_HEADER.saturating_sub(framing.overhead_bytes);
            let about = About { index, handle: LINE << 16, parent: root };
            let mut message = new_qdisc(CREATE, about, "tbf");
            options::put_tbf(&mut message, &tbf, 0);
            queue.put_size_table(&mut message);
            make(netlink, message, "tbf")?;
            root = LINE << 16 | 1;
        }
        let mut used = Vec::new();
        queue.add(netlink, spec, root, device, &mut used)?;
        Ok(queue)
    }

    /// A packet on Ethernet counts its header; where the line's framing is shorter, the root's size table
    /// takes the difference off (tc-stab(8)), and shapers beneath it add it again.
    fn put_size_table(&self, message: &mut Message) {
        if self.uncounted == 0 {
            return;
        }
        put_size_table(message, self.uncounted);
    }

    /// Makes `spec` and everything beneath it. `used` are the major numbers that are taken.
    fn add(
        &mut self,
        netlink: &Netlink,
        spec: &QueueSpec,
        parent: u32,
        device: &Device,
        used: &mut Vec<u32>,
    ) -> Result<(), LinuxError> {
        let name = spec.discipline.name;
        let wrong = |error: SpecError| LinuxError::plain(error);
        let major = free_major(spec, used);
        used.push(major);
        let about = About { index: self.index, handle: major << 16, parent };
        let mut message = new_qdisc(CREATE, about, name);
        options::put(&mut message, spec, device, self.uncounted).map_err(wrong)?;
        if let Some(table) = &spec.size_table {
            options::put_size_table(&mut message, table);
        }
        make(netlink, message, name)?;
        if let Some(child) = &spec.child {
            self.add(netlink, child, major << 16 | 1, device, used)?;
        }
        for class in &spec.classes {
            let number = major << 16 | u32::from(class.id.minor);
            let above = major << 16 | u32::from(class.parent.minor);
            let of_class = About { index: self.index, handle: number, parent: above };
            let mut of_class = Message::new(RTM_NEWTCLASS, CREATE, of_class);
            put_kind(&mut of_class, name);
            self.put_class(&mut of_class, spec, class, device).map_err(wrong)?;
            make(netlink, of_class, name)?;
            self.classes.insert(number, class.id.to_string());
            if let Some(leaf) = &class.leaf {
                self.add(netlink, leaf, number, device, used)?;
            }
        }
        self.add_filters(netlink, spec, major)
    }

    /// Makes the filters of `spec`, which has that major number in the kernel, in the order in which they are asked.
    fn add_filters(
        &self,
        netlink: &Netlink,
        spec: &QueueSpec,
        major: u32,
    ) -> Result<(), LinuxError> {
        let mut filters: Vec<&Filter> = spec.filters.iter().collect();
        filters.sort_by_key(|filter| filter.priority);
        let about = About { index: self.index, handle: 0, parent: major << 16 };
        for (one, preference) in filters.into_iter().zip(1..) {
            let keys = filter::keys(one).map_err(LinuxError::new)?;
            let class = major << 16 | u32::from(one.flow.minor);
            let request =
                filter::classify(about, (preference, filter::protocol(one)), &keys, class);
            netlink.transact(&request).map_err(|error| {
                LinuxError::io(
                    &format!("this kernel refuses a filter of `{}`", spec.discipline.name),
                    error,
                )
            })?;
        }
        Ok(())
    }

    fn put_class(
        &self,
        message: &mut Message,
        spec: &QueueSpec,
        class: &ClassSpec,
        device: &Device,
    ) -> Result<(), SpecError> {
        let HtbOptions { r2q, .. } = spec.read(device)?;
        options::put_class(message, class, r2q, device, self.uncounted)
    }

    /// Counts of the disciplines so far.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn counts(&self, netlink: &Netlink) -> Result<QueueCounts, LinuxError> {
        let fail = |error| LinuxError::io("cannot read what the kernel's queues count", error);
        let mut counted = QueueCounts::default();
        let mut reasons: BTreeMap<u32, Reasons> = BTreeMap::new();
        let all = About { index: self.index, handle: 0, parent: 0 };
        netlink
            .list(&Message::new(RTM_GETQDISC, NLM_F_DUMP, all).finish(), &mut |body| {
                let Some((about, counts)) = counts_of(body) else { return };
                if about.index != self.index {
                    return;
                }
                reasons.insert(about.parent, counts.reasons);
                if about.parent == TC_H_ROOT {
                    counted.whole = self.whole(counts);
                }
            })
            .map_err(fail)?;
        counted.whole.reasons =
            reasons.values().fold(Reasons::default(), |sum, more| sum.and(*more));
        if self.classes.is_empty() {
            return Ok(counted);
        }
        netlink
            .list(&Message::new(RTM_GETTCLASS, NLM_F_DUMP, all).finish(), &mut |body| {
                let Some((about, counts)) = counts_of(body) else { return };
                if let Some(name) = self.classes.get(&about.handle) {
                    // Why, its leaf knows.
                    let of_leaf = reasons.get(&about.handle).copied().unwrap_or_default();
                    let counts = Counts { reasons: of_leaf, ..counts };
                    counted.classes.push((name.clone(), self.whole(counts)));
                }
            })
            .map_err(fail)?;
        Ok(counted)
    }

    /// Counts with the bytes that the size table took off.
    fn whole(&self, counts: Counts) -> Counts {
        Counts {
            bytes: counts.bytes + counts.packets * u64::from(self.uncounted),
            waiting_bytes: counts.waiting_bytes + counts.waiting_packets * self.uncounted,
            ..counts
        }
    }
}

/// The bucket of a line: a few packets, for a kernel wakes up late and could not catch up with less.
fn line_burst(bps: u64, device: &Device) -> u64 {
    let packets = LINE_PACKETS * u64::from(device.full_packet());
    packets.max(bps / 8 * LINE_MICROSECONDS / 1_000_000)
}

/// Lengths that packets of Ethernet count as on a line of that framing.
fn line_lengths(framing: Framing) -> Lengths {
    Lengths {
        overhead: framing.overhead_bytes.saturating_sub(ETHERNET_HEADER),
        mpu: framing.minimum_bytes,
        cells: framing.cells == Cells::Atm,
    }
}

/// The major number that was written, or the next that is free: the short form writes 1 everywhere.
fn free_major(spec: &QueueSpec, used: &[u32]) -> u32 {
    let written = u32::from(spec.major());
    if written != 0 && written != LINE && !used.contains(&written) {
        return written;
    }
    (FIRST_FREE..LINE).find(|major| !used.contains(major)).expect("no spec is that large")
}

/// Has a discipline and what is beneath it count packets as `shorter` bytes shorter (tc-stab(8)).
pub(crate) fn put_size_table(message: &mut Message, shorter: u32) {
    options::put_size_table(message, &SizeTable::shorter(shorter));
}

/// Has the kernel make what `message` says, a discipline called `name` or a class of one.
fn make(netlink: &Netlink, message: Message, name: &str) -> Result<(), LinuxError> {
    netlink.transact(&message.finish()).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => LinuxError::new(format!(
            "this kernel has no queue discipline `{name}`: use the userspace data path"
        )),
        _ => LinuxError::io(&format!("this kernel refuses the queue discipline `{name}`"), error),
    })
}

/// Why this kernel does not have the discipline `name`, if it does not or nobody can tell: tried on the
/// loopback device of a network namespace made for it.
#[must_use]
pub fn kernel_lacks(name: &str) -> Option<LinuxError> {
    let attempt = || {
        let netlink = Netlink::new()?;
        let about = About { index: index_of("lo")?, handle: FIRST_FREE << 16, parent: TC_H_ROOT };
        make(&netlink, new_qdisc(CREATE, about, name), name)
    };
    Namespace::new().and_then(|namespace| namespace.within(attempt)).err()
}

/// Packets that the bucket of a line holds at least.
const LINE_PACKETS: u64 = 2;
/// How long a bucket of a line must last at its rate.
const LINE_MICROSECONDS: u64 = 200;
/// The handle of a line: below those that the kernel gives by itself.
const LINE: u32 = 0x7fff;
const FIRST_FREE: u32 = 0x7000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_no_kernel_is_told_is_refused_wherever_it_stands() {
        let check = |text: &str| check_spec(&QueueSpec::parse(text).unwrap());
        assert!(check("fq quantum 3000").is_ok());
        for text in [
            "fq bands 3",
            "htb rate 95% fq bands 3",
            "qdisc add dev a root handle 1: fq\nqdisc change dev a handle 1: fq bands 3",
        ] {
            assert_eq!(
                check(text),
                Err("no kernel is told yet of the word `bands` of `fq`".to_owned()),
                "{text}"
            );
        }
        assert!(check("red limit 30000 avpkt 500 gentle").is_err());
        assert!(check("red limit 30000 avpkt 500 adaptative").is_ok());
    }

    #[test]
    fn values_that_no_linux_has_together_are_refused_wherever_they_stand() {
        let device = Device { line_rate: Some(Rate::from_mbit(10)), ..Device::default() };
        let check = |text: &str| {
            let spec = QueueSpec::parse(text).unwrap().expanded(&device).unwrap();
            check_values(&spec, &device).map_err(|error| error.to_string())
        };
        let words = "red limit 40000 avpkt 1000 ecn nodrop adaptive";
        for text in [words.to_owned(), format!("htb rate 95% {words}")] {
            assert_eq!(
                check(&text),
                Err("red: no Linux has `adaptive` beside `nodrop`: leave one of them out"
                    .to_owned()),
                "{text}"
            );
        }
        assert_eq!(check("htb rate 95% fq quantum 3000"), Ok(()));
    }
}
