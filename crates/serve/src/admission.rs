//! How much a client, and all of them, may have at a time.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use weir_core::Direction;

use crate::activity::Activity;
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
    /// UDP loads of an address in each direction.
    pub udp: UdpUse,
}

/// Why somebody has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the server is busy with {0}, which is all that it takes: try again in a minute")]
    Server(Full),
    #[error(
        "there is too much from this address already, {0}, which is all that it may have: try again in a minute"
    )]
    Address(Full),
    #[error("the server ends, and begins no test any more: try again in a minute")]
    Ending,
}

impl Refusal {
    /// What was refused, for log and metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Server(full) => match full.thing {
                Thing::Connection => "connections",
                Thing::Test => "tests",
                Thing::Irtt => "irtt connections",
            },
            Self::Address(full) => match full.thing {
                Thing::Connection => "connections of an address",
                Thing::Test => "tests of an address",
                Thing::Irtt => "irtt connections of an address",
            },
            Self::Ending => "ending",
        }
    }
}

/// A bound that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    most: u32,
    thing: Thing,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.thing {
            Thing::Connection => "connection",
            Thing::Test => "test",
            Thing::Irtt => "connection of irtt",
        };
        match (self.most, self.thing) {
            (1, _) => write!(f, "1 {word}"),
            (most, Thing::Irtt) => write!(f, "{most} connections of irtt"),
            (most, _) => write!(f, "{most} {word}s"),
        }
    }
}

/// Bounds how many connections and tests run at once, in all and of one address.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: Bounds,
    admitted: Mutex<Admitted>,
}

#[derive(Debug, Default)]
struct Admitted {
    all: Use,
    addresses: BTreeMap<IpAddr, Client>,
    /// UDP loads, by address and direction.
    udp: BTreeMap<(IpAddr, Direction), UdpUse>,
    /// The number of the next connection.
    next: u64,
}

/// Record of an address that has connections or tests at present.
#[derive(Debug)]
struct Client {
    used: Use,
    pace: Option<Arc<Pace>>,
    /// The address's connections by number.
    connections: BTreeMap<u64, Arc<Activity>>,
    loads: Loads,
}

/// Tests of an address that load its line: how many do now, and how many have begun.
#[derive(Clone, Copy, Debug, Default)]
struct Loads {
    now: u32,
    begun: u64,
}

/// A test that loads the line of its address, until it is dropped.
#[derive(Debug)]
pub(crate) struct Loading {
    admission: Arc<Admission>,
    address: IpAddr,
    /// Whether another one did when it began.
    met_others: bool,
    /// How many of the address had begun with it.
    begun: u64,
}

/// Number of connections, tests and irtt's connections that an address, or all of them, have at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Use {
    connections: u32,
    tests: u32,
    irtt: u32,
}

/// Rates of UDP loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UdpUse {
    /// UDP payload, in bit/s.
    pub bps: u64,
    /// Packets a second.
    pub pps: u64,
}

/// The part of a UDP load in what its address may have, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    admission: Arc<Admission>,
    place: (IpAddr, Direction),
    used: UdpUse,
    pace: Option<Arc<Pace>>,
}

/// A thing that was allowed, and is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
    thing: Thing,
    /// Number of the connection; `None` for a test.
    number: Option<u64>,
    /// How fast the address may be; the same for all that it has.
    pub pace: Option<Arc<Pace>>,
}

/// A connection that was allowed.
#[derive(Debug)]
pub(crate) struct Entered {
    pub permit: Permit,
    pub activity: Arc<Activity>,
    /// Whether an idle connection of the same address was given up for it.
    pub gave_up: bool,
}

/// A kind of resource that admission bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Connection,
    Test,
    /// A connection of irtt, which is no test before its first echo.
    Irtt,
}

impl Admission {
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, admitted: Mutex::default() })
    }

    /// Lets one more test of `address` in, or says why not.
    pub fn enter_test(self: &Arc<Self>, address: IpAddr) -> Result<Permit, Refusal> {
        let address = counted_as(address);
        self.enter(&mut self.admitted(), Thing::Test, address)
    }

    /// Lets one more connection of irtt's protocol of `address` in, or says why not. An address may have as many
    /// as it may have tests, which they become.
    pub fn enter_irtt(self: &Arc<Self>, address: IpAddr) -> Result<Permit, Refusal> {
        let address = counted_as(address);
        self.enter(&mut self.admitted(), Thing::Irtt, address)
    }

    /// Lets one more connection of `address` in, or says why not. An address that has as many as it may
    /// gives up the one that has been idle for the longest time, if there is one.
    pub fn enter_connection(self: &Arc<Self>, address: IpAddr) -> Result<Entered, Refusal> {
        let address = counted_as(address);
        let mut admitted = self.admitted();
        let mut gave_up = false;
        let entered = self.enter(&mut admitted, Thing::Connection, address).or_else(|refusal| {
            gave_up = matches!(refusal, Refusal::Address(_)) && admitted.give_up_idle(address);
            if gave_up {
                self.enter(&mut admitted, Thing::Connection, address)
            } else {
                Err(refusal)
            }
        });
        let mut permit = entered?;
        let (number, activity) = (admitted.next, Activity::new());
        admitted.next += 1;
        permit.number = Some(number);
        if let Some(client) = admitted.addresses.get_mut(&address) {
            client.connections.insert(number, Arc::clone(&activity));
        }
        Ok(Entered { permit, activity, gave_up })
    }

    /// Reserves `wanted` for a UDP load of `address`, or says how much is left.
    pub fn reserve_udp(
        self: &Arc<Self>,
        address: IpAddr,
        direction: Direction,
        wanted: UdpUse,
    ) -> Result<Reserved, UdpUse> {
        let place = (counted_as(address), direction);
        let mut admitted = self.admitted();
        let used = admitted.udp.get(&place).copied().unwrap_or_default();
        let left = UdpUse {
            bps: self.bounds.udp.bps.saturating_sub(used.bps),
            pps: self.bounds.udp.pps.saturating_sub(used.pps),
        };
        if wanted.bps > left.bps || wanted.pps > left.pps {
            return Err(left);
        }
        let more = UdpUse { bps: used.bps + wanted.bps, pps: used.pps + wanted.pps };
        admitted.udp.insert(place, more);
        let pace = admitted.addresses.get(&place.0).and_then(|client| client.pace.clone());
        drop(admitted);
        Ok(Reserved { admission: Arc::clone(self), place, used: wanted, pace })
    }

    fn enter(
        self: &Arc<Self>,
        admitted: &mut Admitted,
        thing: Thing,
        address: IpAddr,
    ) -> Result<Permit, Refusal> {
        let bounds = &self.bounds;
        let (most, most_of_one) = match thing {
            Thing::Connection => (bounds.connections, bounds.connections_per_address),
            Thing::Test => (bounds.tests, bounds.tests_per_address),
            Thing::Irtt => (MAX_IRTT_CONNECTIONS, bounds.tests_per_address),
        };
        let used = admitted.addresses.get_mut(&address).map_or(0, |client| *client.used.of(thing));
        if used >= most_of_one {
            return Err(Refusal::Address(Full { most: most_of_one, thing }));
        }
        if *admitted.all.of(thing) >= most {
            return Err(Refusal::Server(Full { most, thing }));
        }
        *admitted.all.of(thing) += 1;
        let client = admitted.addresses.entry(address).or_insert_with(|| Client {
            used: Use::default(),
            pace: bounds.rate_bps.map(|bps| Arc::new(Pace::new(bps))),
            connections: BTreeMap::new(),
            loads: Loads::default(),
        });
        *client.used.of(thing) += 1;
        let pace = client.pace.clone();
        Ok(Permit { admission: Arc::clone(self), address, thing, number: None, pace })
    }

    fn admitted(&self) -> MutexGuard<'_, Admitted> {
        self.admitted.lock().expect("nothing panics while it holds the lock")
    }
}

impl Reserved {
    /// Notes that a packet of `bytes` passed: what else the address has gets so much less.
    pub fn passed(&self, direction: Direction, bytes: usize) {
        let Some(pace) = &self.pace else { return };
        let bucket = if direction.is_down() { &pace.down } else { &pace.up };
        bucket.reserve(bytes, Instant::now());
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut admitted = self.admission.admitted();
        let Some(used) = admitted.udp.get_mut(&self.place) else { return };
        *used = UdpUse { bps: used.bps - self.used.bps, pps: used.pps - self.used.pps };
        if *used == UdpUse::default() {
            admitted.udp.remove(&self.place);
        }
    }
}

impl Permit {
    /// The test that this lets in loads the line from now on.
    pub fn load(&self) -> Loading {
        let mut admitted = self.admission.admitted();
        let loads = admitted.addresses.get_mut(&self.address).map(|client| &mut client.loads);
        let before = loads.as_deref().copied().unwrap_or_default();
        if let Some(loads) = loads {
            *loads = Loads { now: before.now + 1, begun: before.begun + 1 };
        }
        drop(admitted);
        Loading {
            admission: Arc::clone(&self.admission),
            address: self.address,
            met_others: before.now > 0,
            begun: before.begun + 1,
        }
    }
}

impl Loading {
    /// Whether another test of the address has loaded the line since this one began.
    pub fn met_others(&self) -> bool {
        let admitted = self.admission.admitted();
        let begun = admitted.addresses.get(&self.address).map_or(0, |client| client.loads.begun);
        self.met_others || begun > self.begun
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        if let Some(client) = self.admission.admitted().addresses.get_mut(&self.address) {
            client.loads.now -= 1;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.admitted().leave(self.thing, self.address, self.number);
    }
}

impl Admitted {
    /// Gives up the connection of `address` that has been idle for the longest time, if there is one.
    fn give_up_idle(&mut self, address: IpAddr) -> bool {
        let Some(client) = self.addresses.get(&address) else { return false };
        let idle =
            client.connections.iter().filter_map(|(number, one)| Some((one.idle()?, *number)));
        let longest = idle.max().filter(|(idle, _)| *idle >= MIN_IDLE);
        let Some((_, number)) = longest else { return false };
        client.connections[&number].give_up();
        self.leave(Thing::Connection, address, Some(number));
        true
    }

    /// Counts something as gone. A connection that was given up is gone already when it ends.
    fn leave(&mut self, thing: Thing, address: IpAddr, number: Option<u64>) {
        let Some(client) = self.addresses.get_mut(&address) else { return };
        if number.is_some_and(|number| client.connections.remove(&number).is_none()) {
            return;
        }
        *client.used.of(thing) -= 1;
        *self.all.of(thing) -= 1;
        if client.used == Use::default() {
            self.addresses.remove(&address);
        }
    }
}

impl Use {
    const fn of(&mut self, thing: Thing) -> &mut u32 {
        match thing {
            Thing::Connection => &mut self.connections,
            Thing::Test => &mut self.tests,
            Thing::Irtt => &mut self.irtt,
        }
    }
}

/// An IPv6 client has at least a /64 of addresses (RFC 6177), which count as one.
pub(crate) fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// About 200 bytes each.
const MAX_IRTT_CONNECTIONS: u32 = 4096;
/// An idle connection may have its next request on the way: it is not given up before this. HTTP's clients
/// repeat a request that met a connection's end.
const MIN_IDLE: Duration = Duration::from_secs(1);

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
            udp: UdpUse { bps: 1_000, pps: 10 },
        })
    }

    #[test]
    fn an_address_has_its_bound_and_the_server_too() {
        let admission = admission();
        let enter = |from: &str| admission.enter_test(address(from));
        let first = enter("192.0.2.1").unwrap();
        let _second = enter("::ffff:192.0.2.1").unwrap();
        assert!(matches!(enter("192.0.2.1"), Err(Refusal::Address(_))));
        let _third = enter("192.0.2.2").unwrap();
        assert!(matches!(enter("192.0.2.3"), Err(Refusal::Server(_))));
        drop(first);
        assert!(enter("192.0.2.1").is_ok());
        assert!(admission.enter_connection(address("192.0.2.1")).is_ok(), "counted apart");
    }

    #[test]
    fn irtt_s_connections_of_an_address_are_as_many_as_its_tests() {
        let admission = admission();
        let enter = |from: &str| admission.enter_irtt(address(from));
        let first = enter("192.0.2.1").unwrap();
        let _second = enter("192.0.2.1").unwrap();
        assert!(matches!(enter("192.0.2.1"), Err(Refusal::Address(_))));
        assert!(admission.enter_test(address("192.0.2.1")).is_ok(), "counted apart");
        drop(first);
        assert!(enter("192.0.2.1").is_ok());
        let clients = (0..MAX_IRTT_CONNECTIONS - 1)
            .map(|one| enter(&format!("10.0.{}.{}", one / 250, one % 250)));
        let _all: Vec<_> = clients.map(Result::unwrap).collect();
        assert!(matches!(enter("192.0.2.2"), Err(Refusal::Server(_))));
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let admission = admission();
        let enter = |from: &str| admission.enter_test(address(from));
        let one = enter("2001:db8::1").unwrap();
        let two = enter("2001:db8::2").unwrap();
        assert!(Arc::ptr_eq(one.pace.as_ref().unwrap(), two.pace.as_ref().unwrap()));
        assert!(matches!(enter("2001:db8::3"), Err(Refusal::Address(_))));
        assert!(enter("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn tests_that_load_a_line_at_once_know_of_each_other() {
        let admission = admission();
        let enter = |from: &str| admission.enter_test(address(from)).unwrap();
        let (one, two, elsewhere) = (enter("192.0.2.1"), enter("192.0.2.1"), enter("192.0.2.2"));
        let first = one.load();
        let other = elsewhere.load();
        assert!(!first.met_others() && !other.met_others());
        let second = two.load();
        assert!(first.met_others() && second.met_others() && !other.met_others());
        drop(second);
        assert!(first.met_others(), "it shared the line for a while");
        drop(first);
        assert!(!two.load().met_others(), "they came one after the other");
    }

    #[test]
    fn who_has_left_is_forgotten() {
        let admission = admission();
        drop(admission.enter_test(address("192.0.2.1")));
        drop(admission.enter_connection(address("192.0.2.1")));
        assert!(admission.admitted().addresses.is_empty());
        assert_eq!(admission.admitted().all, Use::default());
    }

    #[test]
    fn udp_loads_of_an_address_share_its_rate_and_give_it_back() {
        let admission = admission();
        let reserve = |from: &str, direction, bps, pps| {
            admission.reserve_udp(address(from), direction, UdpUse { bps, pps })
        };
        let first = reserve("2001:db8::1", Direction::Down, 700, 1).unwrap();
        let second = reserve("2001:db8::2", Direction::Down, 300, 9).unwrap();
        let none = reserve("2001:db8::3", Direction::Down, 1, 1).unwrap_err();
        assert_eq!(none, UdpUse { bps: 0, pps: 0 });
        let _other = reserve("2001:db8::1", Direction::Up, 1_000, 10).unwrap();
        assert!(reserve("192.0.2.1", Direction::Down, 1, 11).is_err(), "packets count too");
        drop(first);
        let left = reserve("2001:db8::1", Direction::Down, 701, 1).unwrap_err();
        assert_eq!(left, UdpUse { bps: 700, pps: 1 });
        drop((second, reserve("2001:db8::1", Direction::Down, 700, 1).unwrap()));
        assert_eq!(admission.admitted().udp.len(), 1, "what is given back is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_is_idle_longest_is_given_up_first() {
        let admission = admission();
        let enter = || admission.enter_connection(address("192.0.2.1"));
        let mut all: Vec<_> = (0..4).map(|_| enter().unwrap()).collect();
        // The first has not asked for anything, the second waits for its answer.
        let _busy = all[1].activity.begin();
        drop(all[3].activity.begin());
        tokio::time::advance(Duration::from_millis(100)).await;
        drop(all[2].activity.begin());
        tokio::time::advance(MIN_IDLE - Duration::from_millis(101)).await;
        assert!(matches!(enter(), Err(Refusal::Address(_))), "none is idle for long enough");
        tokio::time::advance(Duration::from_millis(1)).await;
        let fifth = enter().unwrap();
        assert!(fifth.gave_up);
        all[3].activity.given_up().await;
        // What ends later is not counted twice.
        drop(all.remove(3));
        assert_eq!(admission.admitted().all.connections, 4);
        assert!(matches!(enter(), Err(Refusal::Address(_))));
        drop(fifth);
        assert!(!enter().unwrap().gave_up, "there is room again");
    }
}
