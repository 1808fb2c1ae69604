//! A device shaped by the kernel's own disciplines.
//!
//! ```text
//! out: local or forwarded ─> root of D: cake, or htb ─> discipline ─> line
//! in:  line ─> D ─> redirected to an ifb device of ours ─> its root: as out ─> local or forwarded
//! ```
//!
//! The rate is that of `cake`, or of the classes of an `htb` with a discipline beneath it, and is changed
//! as `tc change` changes it. What brings back what was there is written before anything is changed; this
//! process sends it when it ends, a [guard](crate::guard) when it is killed, and the next [`KernelShaper::new`]
//! when both were.

mod before;
mod classes;
mod guard;
mod htb;
mod ingress;
mod queue;
mod root;
mod side;
mod undo;

use std::collections::BTreeSet;
use std::net::IpAddr;

use weir_core::Cells;
use weir_core::{Framing, Rate};
use weir_qdisc::{Device, QueueSpec};

use self::before::Before;
pub use self::classes::{CLASSES, KernelClasses, KernelRule, OwnPort};
use self::classes::{Scope, Table};
use self::guard::PutBack;
use self::htb::HtbRoot;
pub use self::queue::KernelQueue;
use self::queue::{check_tiers, put_cake};
use self::root::{OURS, at_root};
pub use self::side::KernelCounts;
use self::side::SideCounters;
use self::undo::{Record, Undo};
use crate::LinuxError;
use crate::facts;
use crate::guard::{Guard, Post};
use crate::message::{About, CREATE, CREATE_OR_REPLACE, Message, NLM_F_ACK, NLM_F_DUMP};
use crate::netlink::{
    IFF_UP, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_TXQLEN, Netlink, RTM_NEWLINK,
    come_again, find_device, gone, index_of,
};
use crate::tc::rtnetlink::{RTM_DELQDISC, RTM_GETQDISC, TC_H_ROOT};
use crate::tc::{cake, counts_of};

/// Whether this kernel has the queue discipline `name`, or can load it: it is asked for one that cannot be.
///
/// # Errors
/// If this user may not ask.
pub fn kernel_has(name: &str) -> Result<bool, LinuxError> {
    let netlink = Netlink::new()?;
    let mut message = at_root(CREATE, index_of("lo")?, name);
    // No block of filters is 0, which is looked at once the kind is known (sch_api.c, Linux 4.16).
    message.put_u32(TCA_INGRESS_BLOCK, 0);
    asked(netlink.transact(&message.finish()), libc::ENOENT)
}

/// Whether this kernel makes devices of that kind: it is asked for one without queues.
fn has_device(netlink: &Netlink, kind: &str) -> Result<bool, LinuxError> {
    let mut message = Message::about_link(RTM_NEWLINK, CREATE, 0, 0);
    message.put_text(IFLA_IFNAME, "weir-none");
    message.put_u32(IFLA_NUM_TX_QUEUES, 0);
    message.nest(IFLA_LINKINFO, |info| info.put(IFLA_INFO_KIND, kind.as_bytes()));
    asked(netlink.transact(&message.finish()), libc::EOPNOTSUPP)
}

/// Reads an answer: error `missing` means that there is no such thing, any other error that there is.
fn asked(answer: std::io::Result<()>, missing: i32) -> Result<bool, LinuxError> {
    match answer.map_err(|error| error.raw_os_error()) {
        Err(Some(libc::EPERM)) => Err(LinuxError::new(
            "this user may not change queues: run as root, or with the capability CAP_NET_ADMIN",
        )),
        Err(code) => Ok(code != Some(missing)),
        Ok(()) => Err(LinuxError::new("this kernel makes what cannot be made: it is too old")),
    }
}

/// A device's packets on their way out, in, or both.
#[derive(Debug)]
pub struct KernelShaper {
    device: String,
    /// Of the device, which it keeps as long as it is there.
    index: u32,
    netlink: Netlink,
    sides: [Option<SideCounters>; 2],
    framing: Framing,
    ceilings: [[Option<Rate>; 4]; 2],
    /// Where packets get their classes from rules.
    table: Option<Table>,
    undo: Undo,
    record: Record,
    /// What follows from that it cannot be kept, if it cannot.
    caution: Option<String>,
    /// Guard that is kept until everything is as it was.
    guard: Option<Guard>,
}

impl KernelShaper {
    /// Whether [`new`](Self::new) would have what it needs. Nothing is changed.
    ///
    /// # Errors
    /// The first thing that is missing, or that could not be put back.
    pub fn check(
        device: &str,
        queues: &[Option<KernelQueue>; 2],
        framing: Framing,
        classes: Option<&KernelClasses>,
    ) -> Result<(), LinuxError> {
        let index = index_of(device)?;
        let netlink = Netlink::new()?;
        for name in queues.iter().flatten().flat_map(KernelQueue::needs) {
            if !kernel_has(name)? {
                return Err(LinuxError::new(format!("this kernel has no `{name}`")));
            }
        }
        if queues[1].is_some() && !has_device(&netlink, "ifb")? {
            return Err(LinuxError::new(
                "this kernel has no devices of the kind `ifb`, by which ingress is shaped",
            ));
        }
        let htb = queues.iter().flatten().any(|queue| matches!(queue, KernelQueue::Htb { .. }));
        if htb && framing.cells == Cells::Ptm {
            return Err(LinuxError::new("the kernel's `htb` does not know the framing PTM"));
        }
        if let Some(classes) = classes {
            check_tiers(queues, classes)?;
            let [past_out, ifb] = [&queues[0], &queues[1]].map(|it| it.as_ref().map(|_| OURS));
            Table::check(&Scope { device, past_out, ifb, servers: &[] }, classes)?;
        }
        Before::read(&netlink, index, OURS).map(|_| ())
    }

    /// Puts `queues`, `[out, in]`, on `device` of the calling thread's network namespace, without a rate at
    /// first. What `servers` send by UDP passes the queues, as answers to pings do. Packets belong to tiers by
    /// their code points and, where there are `classes`, by rules before that.
    ///
    /// # Errors
    /// If this user may not, the kernel cannot, or what is there could not be put back: which, in one
    /// sentence.
    pub fn new(
        device: &str,
        queues: &[Option<KernelQueue>; 2],
        framing: Framing,
        servers: &[IpAddr],
        classes: Option<&KernelClasses>,
    ) -> Result<Self, LinuxError> {
        let netlink = Netlink::new()?;
        let index = index_of(device)?;
        let post = Post::take(device)?;
        let record = Record::of(device, index);
        heal(&netlink, index, &record);
        let before = Before::read(&netlink, index, OURS)?;
        let undo = undoing(index, queues, &before);
        // Where it cannot be kept, the guard has it still.
        let caution = record.write(&undo);
        let duty = PutBack { netlink: Netlink::new()?, undo: undo.clone(), record: record.name() };
        let guard = Guard::start(duty, post)?;
        let mut shaper = Self {
            device: device.to_owned(),
            index,
            netlink,
            sides: [None, None],
            framing,
            ceilings: classes.map_or([[None; 4]; 2], |classes| classes.ceilings),
            table: None,
            undo,
            record,
            caution,
            guard: Some(guard),
        };
        // What has been done so far is undone when it is dropped.
        match shaper.put_all(queues, before.ingress, servers, classes) {
            Ok(()) => Ok(shaper),
            Err(error) => Err(shaper.unless_gone(error)),
        }
    }

    /// Puts `queues` on the device; `hooked` is whether something takes in already what comes to it.
    fn put_all(
        &mut self,
        queues: &[Option<KernelQueue>; 2],
        hooked: bool,
        servers: &[IpAddr],
        classes: Option<&KernelClasses>,
    ) -> Result<(), LinuxError> {
        let index = self.index;
        if let Some(queue) = &queues[0] {
            self.sides[0] = Some(self.put(0, index, queue)?);
        }
        let mut to = None;
        if let Some(queue) = &queues[1] {
            let ifb = self.make_ifb(index)?;
            self.sides[1] = Some(self.put(1, ifb, queue)?);
            to = Some(ifb);
        }
        match (classes, to) {
            (Some(classes), ifb) => {
                let past_out = self.past_queue();
                let scope = Scope { device: &self.device, past_out, ifb, servers };
                self.table = Some(Table::create(&scope, classes)?);
            }
            (None, Some(ifb)) => self.redirect(index, ifb, hooked, servers)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// What may not be put back in the end although it should be, in one sentence; `None` if all is.
    #[must_use]
    pub fn caution(&self) -> Option<&str> {
        self.caution.as_deref()
    }

    /// Puts back what a shaper of `device` has left that was killed together with its guard.
    ///
    /// # Errors
    /// If there is no such device, or its guard is still at work.
    pub fn heal(device: &str) -> Result<(), LinuxError> {
        let _post = Post::take(device)?;
        let index = index_of(device)?;
        heal(&Netlink::new()?, index, &Record::of(device, index));
        Ok(())
    }

    /// Sets the rate of a way, or lets everything through.
    ///
    /// # Errors
    /// If the kernel does not.
    pub fn set_rate(&self, way: usize, rate: Option<Rate>) -> Result<(), LinuxError> {
        let Some(side) = &self.sides[way] else { return Ok(()) };
        let requests = match &side.queue {
            KernelQueue::Cake(_) => {
                let mut message = at_root(NLM_F_ACK, side.index, "cake");
                cake::put_rate(&mut message, rate);
                vec![message.finish()]
            }
            KernelQueue::Htb { classes, .. } => {
                self.htb_root(way, side.index, side.header).rates(*classes, rate, NLM_F_ACK)
            }
        };
        requests
            .iter()
            .try_for_each(|request| self.netlink.transact(request))
            .map_err(|error| LinuxError::io("the kernel does not change the rate", error))
    }

    /// Reads what the kernel counts.
    ///
    /// # Errors
    /// If a discipline of ours is not there any more.
    pub fn look(&mut self) -> Result<(), LinuxError> {
        let mut found = [false; 2];
        let (sides, framing) = (&mut self.sides, self.framing);
        let about = About { index: 0, handle: 0, parent: 0 };
        self.netlink
            .list(&Message::new(RTM_GETQDISC, NLM_F_DUMP, about).finish(), &mut |body| {
                let Some((of, counts)) = counts_of(body) else { return };
                for (side, is_there) in sides.iter_mut().zip(&mut found) {
                    let Some(side) = side.as_mut().filter(|side| side.index == of.index) else {
                        continue;
                    };
                    if of.handle == OURS {
                        side.count(counts, framing);
                        *is_there = true;
                    } else if of.parent >> 16 == OURS >> 16 {
                        side.count_beneath(counts.reasons);
                    }
                }
            })
            .map_err(|error| LinuxError::io("cannot read what the kernel's queues count", error))?;
        match sides.iter().zip(found).all(|(side, found)| side.is_none() || found) {
            true => Ok(()),
            false => Err(self.why_gone()),
        }
    }

    /// `error`, or that the device has gone meanwhile, which is the reason then.
    fn unless_gone(&self, error: LinuxError) -> LinuxError {
        match find_device(&self.device) {
            Ok(Some(found)) if found == self.index => error,
            Ok(_) => self.why_gone(),
            Err(_) => error,
        }
    }

    /// Why a discipline of ours is not there any more.
    fn why_gone(&self) -> LinuxError {
        let Self { device, index, .. } = self;
        match find_device(device) {
            Ok(None) => gone(device, *index),
            Ok(Some(found)) if found != *index => come_again(device),
            _ => LinuxError::new(format!(
                "somebody else has changed the queue disciplines of `{device}`"
            )),
        }
    }

    /// Counts of a direction at the last [look](Self::look).
    #[must_use]
    pub fn counts(&self, way: usize) -> Option<KernelCounts> {
        self.sides[way].as_ref().map(|side| side.told(self.framing))
    }

    /// The priority of a socket (SO_PRIORITY) whose packets do not wait in the way out.
    #[must_use]
    pub fn past_queue(&self) -> Option<u32> {
        self.sides[0].as_ref().and_then(|side| match &side.queue {
            // To the tin of the highest priority (sch_cake.c, `cake_select_tin`).
            KernelQueue::Cake(spec) => {
                let options = spec.read(&Device::default()).ok()?;
                Some(OURS | cake::highest_tin(&options))
            }
            // Past all classes (sch_htb.c, `HTB_DIRECT`).
            KernelQueue::Htb { .. } => Some(OURS),
        })
    }

    /// The sockets whose packets a rule holds for that asks whose they are, from here on.
    ///
    /// # Errors
    /// If the kernel does not take them.
    pub fn set_ports(&mut self, rule: usize, ports: BTreeSet<OwnPort>) -> Result<(), LinuxError> {
        self.table.as_mut().map_or(Ok(()), |table| table.set_ports(rule, ports))
    }

    /// Brings back what was there.
    ///
    /// # Errors
    /// If the kernel does not take it back.
    pub fn restore(&mut self) -> Result<(), LinuxError> {
        // Before the device goes to which it sends packets.
        self.table = None;
        let Some(guard) = self.guard.take() else { return Ok(()) };
        let whole = self.undo.run(self.netlink.fd());
        guard.dismiss();
        self.record.remove();
        if whole {
            return Ok(());
        }
        Err(LinuxError::new(format!(
            "the kernel did not take back the queue disciplines that `{}` had: see `tc qdisc show dev {0}`",
            self.device
        )))
    }

    /// Puts a queue at the root of the device of that index.
    fn put(&self, way: usize, index: u32, queue: &KernelQueue) -> Result<SideCounters, LinuxError> {
        let mut header = self.header(index)?;
        match queue {
            KernelQueue::Cake(spec) => self.put_cake(index, spec)?,
            KernelQueue::Htb { leaf, classes } => {
                let uncounted = header.saturating_sub(self.framing.overhead_bytes);
                header -= uncounted;
                for (request, name) in
                    self.htb_root(way, index, header).make(leaf, *classes, uncounted)?
                {
                    self.netlink.transact(&request).map_err(|error| refused(name, error))?;
                }
            }
        }
        Ok(SideCounters::new(index, queue.clone(), header))
    }

    fn put_cake(&self, index: u32, spec: &QueueSpec) -> Result<(), LinuxError> {
        let make = |nat| {
            let mut message = at_root(CREATE_OR_REPLACE, index, "cake");
            put_cake(&mut message, spec, self.framing, nat)?;
            Ok(self.netlink.transact(&message.finish()))
        };
        // A kernel without tables of connections translates nothing.
        let made = match make(true)? {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => make(false)?,
            made => made,
        };
        made.map_err(|error| refused("cake", error))
    }

    const fn htb_root(&self, way: usize, index: u32, header: u32) -> HtbRoot {
        HtbRoot {
            index,
            header,
            framing: self.framing,
            ceilings: self.ceilings[way],
            comes: way == 1,
        }
    }

    /// Makes the device through which packets that come are sent: its index.
    fn make_ifb(&self, index: u32) -> Result<u32, LinuxError> {
        let name = ifb_name(index);
        let mut message = Message::about_link(RTM_NEWLINK, CREATE, 0, IFF_UP);
        message.put_text(IFLA_IFNAME, &name);
        message.put_u32(IFLA_TXQLEN, QUEUE_LEN);
        message.nest(IFLA_LINKINFO, |info| info.put(IFLA_INFO_KIND, b"ifb"));
        self.netlink.transact(&message.finish()).map_err(|error| {
            LinuxError::io(
                "cannot make a device of the kind `ifb`, by which ingress is shaped",
                error,
            )
        })?;
        index_of(&name)
    }

    fn redirect(
        &self,
        index: u32,
        ifb: u32,
        hooked: bool,
        servers: &[IpAddr],
    ) -> Result<(), LinuxError> {
        let fail = |error| LinuxError::io("cannot send packets that come to another device", error);
        if !hooked {
            self.netlink.transact(&ingress::hook(index)).map_err(fail)?;
        }
        for filter in ingress::passing(index, servers) {
            self.netlink.transact(&filter).map_err(fail)?;
        }
        let [by_matchall, by_u32] = ingress::redirect(index, ifb);
        self.netlink
            .transact(&by_matchall)
            .or_else(|_| self.netlink.transact(&by_u32))
            .map_err(fail)
    }

    /// Bytes in front of the IP header that the kernel counts on the device of that index.
    fn header(&self, index: u32) -> Result<u32, LinuxError> {
        let link = self.netlink.get(&facts::request(index));
        let link = link.map_err(|error| LinuxError::io("cannot read what the device is", error))?;
        let kind = facts::hardware(&link);
        Ok(if kind == libc::ARPHRD_ETHER { weir_core::ETHERNET_HEADER } else { 0 })
    }
}

impl Drop for KernelShaper {
    fn drop(&mut self) {
        // Whoever wants to know has asked before.
        let _ = self.restore();
    }
}

/// Puts back what a shaper left, if it left anything.
fn heal(netlink: &Netlink, index: u32, record: &Record) {
    let before = Before::read(netlink, index, OURS);
    if before.is_ok_and(|before| before.ours) || index_of(&ifb_name(index)).is_ok() {
        let nothing_known = || undoing(index, &[None, None], &Before::default());
        record.read().unwrap_or_else(nothing_known).run(netlink.fd());
    }
    record.remove();
}

/// Requests that undo all that a shaper of `queues` does to the device with that index.
///
/// They undo both ways if nobody knows which were shaped.
fn undoing(index: u32, queues: &[Option<KernelQueue>; 2], before: &Before) -> Undo {
    let mut undo = Undo::default();
    let unknown = queues.iter().all(Option::is_none);
    if queues[1].is_some() || unknown {
        // Each by itself: one that is not there is no reason to leave the others.
        for request in ingress::no_filters(index) {
            undo.add(vec![request]);
        }
        if !before.ingress && !unknown {
            undo.add(vec![ingress::no_hook(index)]);
        }
        let mut device = Message::about_link(RTM_DELLINK, NLM_F_ACK, 0, 0);
        device.put_text(IFLA_IFNAME, &ifb_name(index));
        undo.add(vec![device.finish()]);
    }
    if queues[0].is_some() || unknown {
        // The handle is said: a discipline that somebody else has put there since stays.
        let about = About { index, handle: OURS, parent: TC_H_ROOT };
        let mut group = vec![Message::new(RTM_DELQDISC, NLM_F_ACK, about).finish()];
        group.extend(before.again.iter().cloned());
        undo.add(group);
    }
    undo
}

fn refused(name: &str, error: std::io::Error) -> LinuxError {
    LinuxError::io(&format!("the kernel refuses the queue discipline or filter `{name}`"), error)
}

fn ifb_name(index: u32) -> String {
    format!("weirifb{index}")
}

/// `txqueuelen` of our device, as Ethernet devices have it.
const QUEUE_LEN: u32 = 1000;
// include/uapi/linux/rtnetlink.h, if_link.h, pkt_sched.h
const RTM_DELLINK: u16 = 17;
const TCA_INGRESS_BLOCK: u16 = 13;
const IFLA_NUM_TX_QUEUES: u16 = 31;
