//! TCP options that a handshake offers: switches that Linux has for a whole namespace only.
//!
//! Whether SACK, timestamps and ECN are offered is read from `/proc/sys/net/ipv4` when the SYN leaves and
//! again when it is answered. A load with other switches than those under way is therefore opened only
//! once all handshakes under way are done, and the switches are put back when its own is.

use std::fs;
use std::sync::{Mutex, PoisonError};

use weir_core::End;
use weir_scenario::Overrides;

use crate::error::NetError;

/// TCP options that a load's handshake offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    sack: bool,
    timestamps: bool,
    ecn: bool,
}

/// Handshakes that are under way, at both ends.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<UnderWay>);

#[derive(Debug, Default)]
struct UnderWay {
    handshakes: usize,
    /// Their offer and who set it; `None` if it is the default.
    kind: Option<(End, Offer)>,
}

/// The switches of one place.
pub(crate) struct Switches {
    /// By switch: what stands there now, and what stood there at first.
    now: [String; 3],
    at_first: [String; 3],
    /// Value that [`REFLECT_TOS`] had at first.
    reflect_tos: String,
}

impl Offer {
    /// Offer of a load with these changes to the kernel's TCP.
    pub fn of(overrides: &Overrides) -> Self {
        let Self { sack, timestamps, ecn } = Self::DEFAULT;
        Self {
            sack: overrides.sack.unwrap_or(sack),
            timestamps: overrides.timestamps.unwrap_or(timestamps),
            ecn: overrides.ecn.unwrap_or(ecn),
        }
    }

    /// Whether it is that of the kernel by default.
    pub fn is_default(self) -> bool {
        self == Self::DEFAULT
    }

    /// Offer of the kernel by default. It accepts everything that is offered to it.
    const DEFAULT: Self = Self { sack: true, timestamps: true, ecn: false };

    /// The values of [`SWITCHES`]. ECN: 1 asks for it, 2 only agrees.
    fn values(self) -> [&'static str; 3] {
        let switch = |on| if on { "1" } else { "0" };
        [switch(self.sack), switch(self.timestamps), if self.ecn { "1" } else { "2" }]
    }
}

impl Gate {
    /// Whether `side` may begin a handshake with `offer` now; if so, it counts as under way.
    pub fn enter(&self, side: End, offer: Offer) -> bool {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (offer != Offer::DEFAULT).then_some((side, offer));
        if under_way.handshakes > 0 && under_way.kind != kind {
            return false;
        }
        under_way.kind = kind;
        under_way.handshakes += 1;
        true
    }

    /// A handshake is done, or failed. `reset` is called if it was the last one under way, before anybody
    /// else may begin.
    pub fn leave<E>(&self, reset: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = if under_way.handshakes == 1 { reset() } else { Ok(()) };
        under_way.handshakes -= 1;
        result
    }
}

impl Switches {
    /// The switches where the calling thread is, set so that everything offered is accepted. `with_dscp`:
    /// loads have one.
    pub fn open(with_dscp: bool) -> Result<Self, NetError> {
        let at_first = SWITCHES.map(read);
        let reflect_tos = read(REFLECT_TOS);
        let mut switches = Self { now: at_first.clone(), at_first, reflect_tos };
        switches.set(Offer::DEFAULT)?;
        if with_dscp {
            // Where it may not be set, the answer to a SYN alone lacks the load's DSCP.
            let _ = fs::write(path(REFLECT_TOS), "1");
        }
        Ok(switches)
    }

    /// Makes handshakes that begin here from now on offer this.
    pub fn set(&mut self, offer: Offer) -> Result<(), NetError> {
        self.write(&offer.values().map(str::to_owned))
    }

    /// Sets the default offer again.
    pub fn reset(&mut self) -> Result<(), NetError> {
        self.set(Offer::DEFAULT)
    }

    /// Leaves everything as it was found.
    pub fn put_back(&mut self) -> Result<(), NetError> {
        if read(REFLECT_TOS) != self.reflect_tos {
            let _ = fs::write(path(REFLECT_TOS), &self.reflect_tos);
        }
        self.write(&self.at_first.clone())
    }

    fn write(&mut self, values: &[String; 3]) -> Result<(), NetError> {
        for ((name, now), value) in SWITCHES.iter().zip(&mut self.now).zip(values) {
            if now != value {
                fs::write(path(name), value).map_err(|error| {
                    NetError::io(format_args!("net.ipv4.{name} = {value} (it is {now})"), &error)
                })?;
                now.clone_from(value);
            }
        }
        Ok(())
    }
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap_or_default().trim().to_owned()
}

fn path(name: &str) -> String {
    format!("/proc/sys/net/ipv4/{name}")
}

/// ip-sysctl(7); they serve IPv6 too.
const SWITCHES: [&str; 3] = ["tcp_sack", "tcp_timestamps", "tcp_ecn"];

/// The answer to a SYN takes its DSCP over (Linux 5.10 and later).
const REFLECT_TOS: &str = "tcp_reflect_tos";

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(sack: bool) -> Offer {
        Offer { sack, ..Offer::DEFAULT }
    }

    #[test]
    fn handshakes_that_offer_other_things_wait_for_each_other() {
        let gate = Gate::default();
        let leave = || gate.leave(|| Ok::<_, ()>(())).unwrap();
        assert!(gate.enter(End::Client, offer(true)));
        assert!(gate.enter(End::Server, offer(true)), "what everybody offers does not collide");
        assert!(!gate.enter(End::Client, offer(false)));
        leave();
        assert!(!gate.enter(End::Client, offer(false)));
        leave();
        assert!(gate.enter(End::Client, offer(false)));
        assert!(
            !gate.enter(End::Server, offer(false)),
            "the switches of the other place are not set"
        );
        assert!(!gate.enter(End::Client, offer(true)));
    }

    #[test]
    fn the_last_one_puts_the_switches_back() {
        let gate = Gate::default();
        assert!(gate.enter(End::Client, offer(false)) && gate.enter(End::Client, offer(false)));
        let mut resets = 0;
        for _ in 0..2 {
            gate.leave(|| {
                resets += 1;
                Ok::<_, ()>(())
            })
            .unwrap();
        }
        assert_eq!(resets, 1);
    }

    #[test]
    fn overrides_become_values_of_switches() {
        let overrides = Overrides { sack: Some(false), ecn: Some(true), ..Overrides::default() };
        assert_eq!(Offer::of(&overrides).values(), ["0", "1", "1"]);
        assert_eq!(Offer::of(&Overrides::default()), Offer::DEFAULT);
    }
}
