//! Paths of a client that has several: each over hops of its own, with an address of its own at both ends.
//!
//! A scenario of such a client has a route and a server for each path, in the same order: path number n is route number n,
//! and what its packets see as the server is server number n. All servers are one machine.

use std::net::IpAddr;

use weir_core::{Direction, IpVersion};

use crate::access::Access;
use crate::addresses::client_host_address;
use crate::check::unique;
use crate::route::Route;
use crate::scenario::{Host, Scenario, ScenarioError};

/// Most paths of one client: the most subflows of a connection that Linux' MPTCP makes (`MPTCP_PM_ADDR_MAX`).
pub const MAX_CLIENT_PATHS: usize = 8;

/// The paths of a client: their names in order, or none where a client has one path without a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPaths {
    names: Vec<String>,
}

impl ClientPaths {
    /// The paths of the client of `scenario`: its routes, if it has any.
    ///
    /// # Errors
    /// If its routes are not those of [`Scenario::with_client_paths`]: one for each server, in order.
    pub fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let numbers = scenario.hosts.iter().map(|host| host.route);
        if !scenario.routes.is_empty() && !numbers.eq((0..scenario.routes.len() as u32).map(Some)) {
            return Err(ScenarioError::new(
                "the scenario has routes that are not the client's paths: write a server for each route, in order",
            ));
        }
        check_count(scenario.routes.len())?;
        Ok(Self { names: scenario.routes.iter().map(|route| route.name.clone()).collect() })
    }

    /// How many there are: 1 or more.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.names.len().max(1) as u32
    }

    /// Whether there may be several, which have names.
    #[must_use]
    pub const fn are_named(&self) -> bool {
        !self.names.is_empty()
    }

    /// The names in order; none where a client has one path without a name.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of path number `path`; `None` where a client has one path without a name.
    #[must_use]
    pub fn name(&self, path: u32) -> Option<&str> {
        self.names.get(path as usize).map(String::as_str)
    }

    /// The client's address on path number `path`: 10.0.0.1 and on, or fd00::1 and on.
    #[must_use]
    pub fn client_address(ip: IpVersion, path: u32) -> IpAddr {
        client_host_address(ip, path)
    }

    /// The number of the path on which the client has `address`, in any Internet protocol, if it has.
    #[must_use]
    pub fn of_client_address(&self, address: IpAddr) -> Option<u32> {
        let ip = IpVersion::of(address);
        (0..self.count()).find(|&path| Self::client_address(ip, path) == address)
    }
}

impl Scenario {
    /// The scenario of a client with several paths, of which each is that of a scenario with one server and without
    /// loads, by the path's name. Hops, and media of the air, get the name in front of theirs: `lte/cell`. The server
    /// that is reached by a path is called `server-` and the path's name.
    ///
    /// # Errors
    /// If there are none or more than [`MAX_CLIENT_PATHS`], a name is none or is given twice, or the scenarios have
    /// loads, probes, a shaper, tunnels or other MTUs than the first.
    pub fn with_client_paths(paths: &[(String, Self)]) -> Result<Self, ScenarioError> {
        check_count(paths.len())?;
        let Some((first_name, first)) = paths.first() else {
            return Err(ScenarioError::new("a client without a path: write one or more"));
        };
        unique("path", paths.iter().map(|(name, _)| name.clone()))?;
        let mut joined = first.clone();
        (joined.path, joined.hosts) = Default::default();
        for (number, (name, scenario)) in paths.iter().enumerate() {
            check_name(name)?;
            scenario.check_is_a_path(name)?;
            if scenario.mtu_bytes != first.mtu_bytes {
                return Err(ScenarioError::new(format!(
                    "path `{name}` has an mtu of {} bytes, path `{first_name}` one of {}: all paths of a client need the same",
                    scenario.mtu_bytes, first.mtu_bytes
                )));
            }
            let [up, down] =
                Direction::ALL.map(|direction| joined.add_hops(name, scenario, direction));
            joined.routes.push(Route { name: name.clone(), up, down });
            let host = format!("server-{name}");
            joined.hosts.push(Host { name: host, delay_ns: 0, route: Some(number as u32) });
        }
        joined.check()?;
        Ok(joined)
    }

    /// Adds the hops that `of` has in `direction`, with the `path`'s name in front of theirs. Returns their numbers.
    fn add_hops(&mut self, path: &str, of: &Self, direction: Direction) -> Vec<u32> {
        let hops = match direction {
            Direction::Up => &mut self.path.up,
            Direction::Down => &mut self.path.down,
        };
        let first = hops.len() as u32;
        for hop in of.hops(direction) {
            let mut hop = hop.clone();
            hop.name = format!("{path}/{}", hop.name);
            if let Some(Access::Airtime(airtime)) = &mut hop.access {
                airtime.medium = airtime.medium.as_ref().map(|medium| format!("{path}/{medium}"));
            }
            hops.push(hop);
        }
        (first..hops.len() as u32).collect()
    }

    /// Checks that the scenario is nothing but a path, which is to be called `name`.
    fn check_is_a_path(&self, name: &str) -> Result<(), ScenarioError> {
        let has_loads =
            !(self.flows.is_empty() && self.probes.is_empty() && self.methods.is_empty());
        let says = if has_loads {
            "it has loads or probes, which take one path only"
        } else if self.shaper.is_some() || !self.tunnels.is_empty() {
            "it has a shaper or tunnels, which are made for one path only"
        } else if self.hosts.len() != 1 || !self.routes.is_empty() {
            "it has routes or several servers: a path leads to one"
        } else {
            return Ok(());
        };
        Err(ScenarioError::new(format!("path `{name}`: {says}")))
    }
}

fn check_count(count: usize) -> Result<(), ScenarioError> {
    if count <= MAX_CLIENT_PATHS {
        return Ok(());
    }
    Err(ScenarioError::new(format!("the client has {count} paths: write up to {MAX_CLIENT_PATHS}")))
}

/// Checks that `name` can be a part of a host's name (RFC 1123, section 2.1) and of a hop's.
fn check_name(name: &str) -> Result<(), ScenarioError> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.ends_with('-');
    if is_name {
        return Ok(());
    }
    Err(ScenarioError::new(format!(
        "path `{name}`: write a name of 1 to {MAX_NAME_BYTES} characters, of `a` to `z`, digits and `-`, without `-` at its end"
    )))
}

/// With `server-` in front it fits into a label of a host's name, 63 bytes.
const MAX_NAME_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use weir_core::{Duration, Time};

    use super::*;
    use crate::access::AirtimeParams;
    use crate::scenario::{Hop, LineRate, Probe, ProbeKind};

    fn path(name: &str, hop: &str) -> (String, Scenario) {
        let hop = || Hop::new(hop, "pfifo", LineRate::Bps(1_000_000));
        (name.to_owned(), Scenario::over("t", 1_000_000_000, hop(), hop()))
    }

    fn refused(paths: &[(String, Scenario)]) -> String {
        Scenario::with_client_paths(paths).unwrap_err().to_string()
    }

    #[test]
    fn each_path_has_hops_a_route_and_a_server_of_its_own() {
        let (mut wifi, lte) = (path("wifi", "air"), path("lte", "cell"));
        wifi.1.path.up.insert(0, Hop::processor("air", 100, 10));
        let joined = Scenario::with_client_paths(&[wifi, lte]).unwrap();
        let names = |direction| {
            joined.hops(direction).iter().map(|hop| hop.full_name(direction)).collect::<Vec<_>>()
        };
        assert_eq!(names(Direction::Up), ["up/wifi/air-cpu", "up/wifi/air", "up/lte/cell"]);
        assert_eq!(names(Direction::Down), ["down/wifi/air", "down/lte/cell"]);
        assert_eq!([0, 1].map(|host| joined.hops_to(host, Direction::Up)), [vec![0, 1], vec![2]]);
        let hosts: Vec<_> = joined.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(hosts, ["server-wifi", "server-lte"]);
        let paths = ClientPaths::of(&joined).unwrap();
        assert_eq!((paths.count(), paths.name(1)), (2, Some("lte")));
        for ip in [IpVersion::V4, IpVersion::V6] {
            let addresses = [0, 1, 2].map(|path| ClientPaths::client_address(ip, path));
            let found = addresses.map(|address| paths.of_client_address(address));
            assert_eq!(found, [Some(0), Some(1), None]);
        }
    }

    #[test]
    fn a_client_of_one_path_needs_no_name_for_it() {
        let (_, scenario) = path("", "line");
        let paths = ClientPaths::of(&scenario).unwrap();
        assert_eq!((paths.count(), paths.name(0), paths.are_named()), (1, None, false));
        assert_eq!(paths.of_client_address(scenario.client_address()), Some(0));
    }

    #[test]
    fn paths_share_no_air() {
        let mut wifi = path("a", "air").1;
        let params = AirtimeParams {
            medium: Some("m".to_owned()),
            packets: 32,
            longest_ns: 4_000_000,
            overhead_ns: 100_000,
            gap_ns: 34_000,
            slot_ns: 9_000,
            window: 15,
            max_window: 1_023,
            failures: 0.1,
        };
        wifi.path.up[0].access = Some(Access::Airtime(params));
        let both = [("a".to_owned(), wifi.clone()), ("b".to_owned(), wifi)];
        let joined = Scenario::with_client_paths(&both).unwrap();
        let media = joined.path.up.iter().map(|hop| match &hop.access {
            Some(Access::Airtime(airtime)) => airtime.medium.clone(),
            _ => None,
        });
        assert_eq!(media.collect::<Vec<_>>(), [Some("a/m".to_owned()), Some("b/m".to_owned())]);
    }

    #[test]
    fn what_is_no_path_is_refused_in_a_sentence() {
        assert_eq!(refused(&[]), "a client without a path: write one or more");
        let nine: Vec<_> = (0..9).map(|number| path(&format!("p{number}"), "l")).collect();
        assert_eq!(refused(&nine), "the client has 9 paths: write up to 8");
        assert!(Scenario::with_client_paths(&nine[..8]).is_ok());
        for name in ["", "Wifi", "a/b", "a b", "lte-", &"x".repeat(33)] {
            assert!(refused(&[path(name, "l")]).contains("write a name of 1 to 32 characters"));
        }
        assert_eq!(
            refused(&[path("a", "l"), path("a", "l")]),
            "two are called path `a`: name them apart"
        );
        let mut small = path("lte", "l");
        small.1.mtu_bytes = 1400;
        assert_eq!(
            refused(&[path("wifi", "l"), small]),
            "path `lte` has an mtu of 1400 bytes, path `wifi` one of 1500: all paths of a client need the same"
        );
        let mut probed = path("a", "l");
        let period = Duration::from_millis(1);
        probed.1.probes.push(Probe::new("p", ProbeKind::Icmp, period, Time::from_millis(1)));
        assert_eq!(
            refused(&[probed]),
            "path `a`: it has loads or probes, which take one path only"
        );
    }

    #[test]
    fn routes_of_a_link_are_not_the_clients_paths() {
        let both = [path("a", "l"), path("b", "l")];
        let mut joined = Scenario::with_client_paths(&both).unwrap();
        joined.hosts.swap(0, 1);
        let says = ClientPaths::of(&joined).unwrap_err().to_string();
        assert!(says.starts_with("the scenario has routes that are not the client's paths"));
    }
}
