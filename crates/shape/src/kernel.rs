//! The backend `kernel`: packets of the device in the kernel's own disciplines.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use weir_core::{Rate, Time};
use weir_linux::{GuardNews, KernelQueue, KernelShaper};
use weir_rate_control::{Side, Traffic};

use crate::ShapeError;
use crate::owners::Owners;
use crate::rules::Rules;
use crate::settings::{Settings, Target};
use crate::shaper::{Found, Shaper, Watch};
use crate::view::SideCounts;

/// The device's queues in the kernel.
pub(crate) struct Kernel {
    shaper: KernelShaper,
    set: [Option<Option<Rate>>; 2],
    /// Rules that ask whose packets they are, and who knows.
    owned: Option<(Rules, Owners)>,
}

impl Kernel {
    pub fn new(settings: &Settings, queues: &[Option<KernelQueue>; 2]) -> Result<Self, ShapeError> {
        let servers = settings.reflectors.iter().filter_map(|target| match target {
            Target::Udp(server) => Some(server.ip()),
            Target::Icmp(_) | Target::Tcp(_) => None,
        });
        let servers: Vec<_> = servers.collect();
        let classes = settings.rules.as_ref().map(Rules::for_kernel);
        let shaper = KernelShaper::new(
            &settings.device,
            queues,
            settings.framing,
            &servers,
            classes.as_ref(),
        )?;
        let owned = match settings.rules.clone().filter(Rules::ask_owner) {
            Some(rules) => Some((rules, Owners::new(OFTEN)?)),
            None => None,
        };
        Ok(Self { shaper, set: [None; 2], owned })
    }
}

impl Shaper for Kernel {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn work(&mut self, _: &mut dyn Watch, _: Time) -> Result<Found, ShapeError> {
        Ok(Found::Nothing)
    }

    fn caution(&self) -> Option<String> {
        self.shaper.caution().map(str::to_owned)
    }

    /// Nothing: the kernel's own queues need nobody who is awake.
    fn beat(&mut self) -> Result<Option<GuardNews>, ShapeError> {
        Ok(None)
    }

    fn drop_unread(&mut self) -> Result<(), ShapeError> {
        Ok(())
    }

    fn wake_at(&self) -> Option<Time> {
        None
    }

    fn set_rate(&mut self, side: Side, rate: Option<Rate>, _: Time) -> Result<(), ShapeError> {
        // Decisions that change the state alone are none for the kernel.
        if self.set[side as usize] != Some(rate) {
            self.shaper.set_rate(side as usize, rate)?;
            self.set[side as usize] = Some(rate);
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), ShapeError> {
        if let Some((rules, owners)) = &self.owned
            && owners.have_news()
        {
            let owned = rules.rules.iter().enumerate().filter(|(_, rule)| rule.asks_owner());
            for (number, rule) in owned {
                self.shaper.set_ports(number, owners.ports(|owner| rule.is_of(owner)))?;
            }
        }
        Ok(self.shaper.look()?)
    }

    fn come_again(&mut self, name: &str) -> Result<(), ShapeError> {
        // What shaped it went with it. Where only the way in is shaped, the queue is on a device that stays.
        Err(weir_linux::come_again(name).into())
    }

    fn traffic(&self, side: Side) -> Option<Traffic> {
        let counts = self.shaper.counts(side as usize)?;
        let (bytes, packets) = match side {
            Side::Egress => (counts.departed_bytes, counts.departed_packets),
            Side::Ingress => (counts.arrived_bytes, counts.arrived_packets),
        };
        Some(Traffic { bytes, packets, backlog_bytes: counts.backlog_bytes })
    }

    fn counts(&mut self, side: Side) -> Option<SideCounts> {
        let counts = self.shaper.counts(side as usize)?;
        Some(SideCounts {
            bytes: self.traffic(side)?.bytes,
            departed_bytes: counts.departed_bytes,
            backlog_packets: counts.backlog_packets,
            backlog_bytes: counts.backlog_bytes,
            dropped: counts.dropped,
            marked: counts.marked,
            sojourn_ns: None,
        })
    }

    fn restore(&mut self) -> Result<(), ShapeError> {
        Ok(self.shaper.restore()?)
    }

    fn missed(&self) -> u64 {
        0
    }

    fn probe_priority(&self) -> Option<u32> {
        self.shaper.past_queue()
    }
}

/// Between two looks for owners of ports: here no packet asks for one, and one look takes some milliseconds.
const OFTEN: Duration = Duration::from_millis(500);
