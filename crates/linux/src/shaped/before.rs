//! The queue disciplines that a device had before: read from the kernel's own dump, and written as the
//! requests that make them again.

use crate::LinuxError;
use crate::message::{About, CREATE_OR_REPLACE, Message, NLM_F_DUMP, attributes, read};
use crate::netlink::Netlink;
use crate::tc::cake::TCA_CAKE_NAT;
use crate::tc::options::TCA_HTB_INIT;
use crate::tc::rtnetlink::{
    RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER, RTM_NEWQDISC, RTM_NEWTCLASS, TC_H_INGRESS,
    TC_H_ROOT, TCA_KIND, TCA_OPTIONS, TCA_STAB,
};

/// The disciplines and filters that a device had before.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Requests that make them again once ours is gone; empty where the kernel does so by itself.
    pub again: Vec<Vec<u8>>,
    /// Whether the root is one of ours, left by an earlier process.
    pub ours: bool,
    /// Whether the device has a hook for filters of packets that come.
    pub ingress: bool,
}

/// A discipline or class of the dump.
#[derive(Debug)]
struct Found {
    about: About,
    kind: Vec<u8>,
    /// The attributes that it is made of, as they came.
    made_of: Vec<(u16, Vec<u8>)>,
}

impl Found {
    fn read(body: &[u8], index: u32) -> Option<Self> {
        let (about, rest) = read(body)?;
        let mut found = Self { about, kind: Vec::new(), made_of: Vec::new() };
        for (attribute, value) in attributes(rest) {
            match attribute {
                TCA_KIND => found.kind = value.strip_suffix(b"\0").unwrap_or(value).to_vec(),
                TCA_OPTIONS | TCA_STAB => {}
                _ => continue,
            }
            found.made_of.push((attribute, value.to_vec()));
        }
        (about.index == index).then_some(found)
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.kind).into_owned()
    }

    /// The request that makes it.
    fn again(&self, request: u16) -> Vec<u8> {
        let mut message = Message::new(request, CREATE_OR_REPLACE, self.about);
        for (attribute, value) in &self.made_of {
            if *attribute == TCA_OPTIONS
                && OTHERWISE.contains(&self.kind.as_slice())
                && request == RTM_NEWQDISC
            {
                message.nest(TCA_OPTIONS, |options| put_otherwise(options, &self.kind, value));
            } else {
                message.put(*attribute, value);
            }
        }
        message.finish()
    }

    /// Lengths by a table, which the kernel does not tell (tc-stab(8)).
    fn has_table(&self) -> bool {
        let stab = self.made_of.iter().filter(|(attribute, _)| *attribute == TCA_STAB);
        let mut sizes = stab.flat_map(|(_, stab)| attributes(stab));
        sizes.any(|(_, spec)| spec.get(20..24).is_some_and(|tsize| tsize != [0; 4]))
    }
}

impl Before {
    /// Reads what the device of that index has; a root discipline with the handle `ours` is ours.
    ///
    /// # Errors
    /// If something of it could not be put back: what.
    pub fn read(netlink: &Netlink, index: u32, ours: u32) -> Result<Self, LinuxError> {
        let qdiscs = dump(netlink, RTM_GETQDISC, index, 0)?;
        let mut before = Self {
            ingress: qdiscs.iter().any(|it| it.about.parent == TC_H_INGRESS),
            ..Self::default()
        };
        let egress = || qdiscs.iter().filter(|it| it.about.parent != TC_H_INGRESS);
        let root = egress().find(|it| it.about.parent == TC_H_ROOT);
        before.ours = root.is_some_and(|root| root.about.handle == ours);
        if before.ours || egress().all(|it| it.about.handle == 0) {
            return Ok(before);
        }
        let Some(root) = root.filter(|root| root.about.handle != 0) else {
            return Err(LinuxError::new(
                "its root discipline is the kernel's own with others beneath it, which could not be put back: \
                 name it, as in `tc qdisc replace dev DEVICE root handle 1: mq`",
            ));
        };
        before.add(netlink, root, &qdiscs)?;
        Ok(before)
    }

    /// A discipline, its classes, and what is beneath them.
    fn add(&mut self, netlink: &Netlink, one: &Found, all: &[Found]) -> Result<(), LinuxError> {
        let refuse = |why: &str| {
            Err(LinuxError::new(format!(
                "its queue discipline `{}` {why}, so that it could not be put back: remove it first",
                one.name()
            )))
        };
        if !GIVEN_BACK.contains(&one.kind.as_slice()) {
            return refuse("is of a kind that the kernel's list does not describe in full");
        }
        if one.has_table() {
            return refuse("counts lengths by a table that the kernel does not tell");
        }
        let index = one.about.index;
        if !dump(netlink, RTM_GETTFILTER, index, one.about.handle)?.is_empty() {
            return refuse("has filters");
        }
        self.again.push(one.again(RTM_NEWQDISC));
        if one.kind == b"htb" {
            self.add_classes(dump(netlink, RTM_GETTCLASS, index, 0)?, one.about.handle >> 16);
        }
        let beneath = all.iter().filter(|it| {
            it.about.handle != 0
                && it.about.parent >> 16 == one.about.handle >> 16
                && it.about.parent != TC_H_INGRESS
        });
        for child in beneath {
            self.add(netlink, child, all)?;
        }
        Ok(())
    }

    /// The classes of the discipline of that major number, each behind the one above it.
    fn add_classes(&mut self, classes: Vec<Found>, major: u32) {
        let mut waiting: Vec<_> =
            classes.into_iter().filter(|class| class.about.handle >> 16 == major).collect();
        let mut above = vec![TC_H_ROOT, major << 16];
        while !waiting.is_empty() {
            let (next, rest): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|class| above.contains(&class.about.parent));
            if next.is_empty() {
                break;
            }
            above.extend(next.iter().map(|class| class.about.handle));
            self.again.extend(next.iter().map(|class| class.again(RTM_NEWTCLASS)));
            waiting = rest;
        }
    }
}

/// Adds options that the kernel does not take as it tells them.
fn put_otherwise(options: &mut Message, kind: &[u8], told: &[u8]) {
    for (attribute, value) in attributes(told) {
        let mut value = value.to_vec();
        match (kind, attribute) {
            // The version, of which the minor part is not to be said (sch_htb.c).
            (b"htb", TCA_HTB_INIT) => {
                if let Some(version) = value.first_chunk_mut() {
                    *version = (u32::from_ne_bytes(*version) >> 16).to_ne_bytes();
                }
            }
            // Off, which a kernel without tables of connections refuses to hear (sch_cake.c).
            (b"cake", TCA_CAKE_NAT) if value == [0; 4] => continue,
            _ => {}
        }
        options.put(attribute, &value);
    }
}

fn dump(
    netlink: &Netlink,
    request: u16,
    index: u32,
    parent: u32,
) -> Result<Vec<Found>, LinuxError> {
    let mut all = Vec::new();
    let about = About { index, handle: 0, parent };
    netlink
        .list(&Message::new(request, NLM_F_DUMP, about).finish(), &mut |body| {
            all.extend(Found::read(body, index));
        })
        .map_err(|error| LinuxError::io("cannot read the device's queue disciplines", error))?;
    Ok(all)
}

/// Disciplines that are told otherwise than the kernel tells of them.
const OTHERWISE: [&[u8]; 2] = [b"htb", b"cake"];
/// Disciplines whose description in a dump is what they are made of.
const GIVEN_BACK: &[&[u8]] = &[
    b"mq",
    b"noqueue",
    b"pfifo",
    b"bfifo",
    b"pfifo_head_drop",
    b"pfifo_fast",
    b"fq",
    b"codel",
    b"fq_codel",
    b"cake",
    b"pie",
    b"fq_pie",
    b"sfq",
    b"tbf",
    b"htb",
];
