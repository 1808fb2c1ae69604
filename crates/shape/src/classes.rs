//! The classes of packets at work: who is in which, and how fast each may be at most.

use std::time::Duration;

use weir_core::{TcpHeader, Time};
use weir_packet::Headers;
use weir_qdisc::{Count, Device, Port, QueueSpec};
use weir_rate_control::Side;

use crate::ShapeError;
use crate::due::Due;
use crate::held::HeldPackets;
use crate::owners::Owners;
use crate::rules::{Class, Rules};
use crate::settings::Settings;

/// The classes.
pub(crate) struct Classes {
    rules: Rules,
    /// Where a rule asks for it.
    owners: Option<Owners>,
    /// By side and class, in front of the side's own queue: packets of a class that has a greatest rate.
    caps: [[Option<Port>; Class::COUNT]; 2],
}

impl Classes {
    pub fn new(rules: &Rules, settings: &Settings) -> Result<Self, ShapeError> {
        let owners = rules.ask_owner().then(|| Owners::new(UNASKED)).transpose()?;
        let mut caps = [const { [const { None }; Class::COUNT] }; 2];
        for (side, of_side) in Side::ALL.into_iter().zip(&mut caps) {
            for (class, port) in of_side.iter_mut().enumerate() {
                let Some(rate) = rules.cap(side, class) else { continue };
                let qdisc = QueueSpec::parse(CAPPED)?.build(&Device::default())?;
                let mut capped = Port::shaped(qdisc, settings.framing);
                capped.set_rate(Some(rate), Time::ZERO);
                *port = Some(capped);
            }
        }
        Ok(Self { rules: rules.clone(), owners, caps })
    }

    /// The class of a packet.
    pub fn of(&mut self, headers: &Headers, tcp: Option<&TcpHeader>, side: Side) -> Option<Class> {
        self.rules.class_of(headers, tcp, side, self.owners.as_mut())
    }

    /// Whether the class is written into packets.
    pub const fn mark(&self) -> bool {
        self.rules.mark
    }

    /// Where packets of a class wait that has a greatest rate.
    pub fn capped(&mut self, side: Side, class: Class) -> Option<&mut Port> {
        self.caps[side as usize][class as usize].as_mut()
    }

    /// All queues of classes with a greatest rate, of both sides.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.caps.iter().flatten().flatten()
    }

    /// Packets that have come and not gone on: they wait for their class's rate or were dropped there.
    ///
    /// Bytes are as the framing counts them.
    pub fn waiting(&self, side: Side) -> Count {
        let mut all = Count::default();
        for port in self.caps[side as usize].iter().flatten() {
            let passed = port.shaped_traffic().expect("it is shaped");
            all.packets += passed.arrived.packets - passed.departed.packets;
            all.bytes += passed.arrived.bytes - passed.departed.bytes;
        }
        all
    }

    /// Passes on to `next` the packets that their class lets go by `now`.
    ///
    /// `next` has let go everything that was due before.
    pub fn let_go(&mut self, side: Side, next: &mut Port, held: &mut HeldPackets, now: Time) {
        for port in self.caps[side as usize].iter_mut().flatten() {
            let mut due = Due::by(now);
            while let Some(mut packet) = due.next(port, held) {
                next.enqueue(&mut packet, now, held);
            }
        }
    }

    /// No class has a greatest rate any more.
    pub fn open(&mut self, now: Time) {
        for port in self.caps.iter_mut().flatten().flatten() {
            port.set_rate(None, now);
        }
    }
}

/// Between two looks for owners of ports where no packet asks for one.
const UNASKED: Duration = Duration::from_secs(2);
/// The flows of a class share its rate.
const CAPPED: &str = "fq_codel";
