//! How much a client, and all of them, may have at a time.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::pace::Pace;

/// How much may be had at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub connections: u32,
    pub connections_per_address: u32,
    pub tests: u32,
    pub tests_per_address: u32,
    /// Bits a second of an address in each direction.
    pub rate_bps: Option<u64>,
}

/// Why somebody has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the server is busy: try again in a minute")]
    Server,
    #[error("there is too much from this address already: try again in a minute")]
    Address,
}

/// Who has how much.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: Bounds,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    all: Use,
    addresses: BTreeMap<IpAddr, (Use, Option<Arc<Pace>>)>,
}

/// What somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    connections: u32,
    tests: u32,
}

/// A thing that was allowed, and is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
    thing: Thing,
    /// How fast the address may be; the same for all that it has.
    pub pace: Option<Arc<Pace>>,
}

/// What there can be too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Connection,
    Test,
}

impl Admission {
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, books: Mutex::default() })
    }

    /// Lets one more thing of `address` in, or says why not.
    pub fn enter(self: &Arc<Self>, thing: Thing, address: IpAddr) -> Result<Permit, Refusal> {
        let address = counted_as(address);
        let bounds = &self.bounds;
        let mut books = self.books();
        let (most, most_of_one) = match thing {
            Thing::Connection => (bounds.connections, bounds.connections_per_address),
            Thing::Test => (bounds.tests, bounds.tests_per_address),
        };
        if *books.all.of(thing) >= most {
            return Err(Refusal::Server);
        }
        let new = || (Use::default(), bounds.rate_bps.map(|bps| Arc::new(Pace::new(bps))));
        let (used, pace) = books.addresses.entry(address).or_insert_with(new);
        if *used.of(thing) >= most_of_one {
            return Err(Refusal::Address);
        }
        *used.of(thing) += 1;
        let pace = pace.clone();
        *books.all.of(thing) += 1;
        Ok(Permit { admission: Arc::clone(self), address, thing, pace })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("nothing panics with the books open")
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut books = self.admission.books();
        *books.all.of(self.thing) -= 1;
        let (used, _) = books.addresses.get_mut(&self.address).expect("it has something");
        *used.of(self.thing) -= 1;
        if *used == Use::default() {
            books.addresses.remove(&self.address);
        }
    }
}

impl Use {
    const fn of(&mut self, thing: Thing) -> &mut u32 {
        match thing {
            Thing::Connection => &mut self.connections,
            Thing::Test => &mut self.tests,
        }
    }
}

/// An IPv6 client has at least a /64 of addresses (RFC 6177), which count as one.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn admission() -> Arc<Admission> {
        Admission::new(Bounds {
            connections: 4,
            connections_per_address: 4,
            tests: 3,
            tests_per_address: 2,
            rate_bps: Some(1_000_000),
        })
    }

    #[test]
    fn an_address_has_its_bound_and_the_server_too() {
        let admission = admission();
        let enter = |from: &str| admission.enter(Thing::Test, address(from));
        let first = enter("192.0.2.1").unwrap();
        let _second = enter("::ffff:192.0.2.1").unwrap();
        assert_eq!(enter("192.0.2.1").unwrap_err(), Refusal::Address);
        let _third = enter("192.0.2.2").unwrap();
        assert_eq!(enter("192.0.2.3").unwrap_err(), Refusal::Server);
        drop(first);
        assert!(enter("192.0.2.1").is_ok());
        assert!(admission.enter(Thing::Connection, address("192.0.2.1")).is_ok(), "counted apart");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let admission = admission();
        let enter = |from: &str| admission.enter(Thing::Test, address(from));
        let one = enter("2001:db8::1").unwrap();
        let two = enter("2001:db8::2").unwrap();
        assert!(Arc::ptr_eq(one.pace.as_ref().unwrap(), two.pace.as_ref().unwrap()));
        assert_eq!(enter("2001:db8::3").unwrap_err(), Refusal::Address);
        assert!(enter("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn who_has_left_is_forgotten() {
        let admission = admission();
        drop(admission.enter(Thing::Test, address("192.0.2.1")));
        assert!(admission.books().addresses.is_empty());
        assert_eq!(admission.books().all, Use::default());
    }
}
