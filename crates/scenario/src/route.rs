//! Routes: the hops between the client and a server, where not all servers are reached over all hops.

use serde::{Deserialize, Serialize};
use weir_core::Direction;

use crate::check::unique;
use crate::scenario::{Hop, Scenario, ScenarioError};

/// A way between the client and servers, over some hops of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Name of the route.
    pub name: String,
    /// Numbers of the hops up, from 0, in the order in which packets pass them; none means directly.
    pub up: Vec<u32>,
    /// Numbers of the hops down, from 0, in the order in which packets pass them; none means directly.
    pub down: Vec<u32>,
}

impl Route {
    /// Numbers of the hops of one direction, in the order in which packets pass them.
    #[must_use]
    pub fn hops(&self, direction: Direction) -> &[u32] {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }
}

impl Scenario {
    /// Numbers of the hops of `direction` between the client and server number `host`, in the order in which packets
    /// pass them: those of its route, or all.
    ///
    /// # Panics
    /// If there is no such server, or not its route.
    #[must_use]
    pub fn hops_to(&self, host: u32, direction: Direction) -> Vec<usize> {
        match self.hosts[host as usize].route {
            None => (0..self.hops(direction).len()).collect(),
            Some(route) => {
                let numbers = self.routes[route as usize].hops(direction).iter();
                numbers.map(|&number| number as usize).collect()
            }
        }
    }

    /// How many hops of `direction` between the client and server number `host` take one off a packet's time to live:
    /// all but the processors of routers.
    ///
    /// # Panics
    /// If there is no such server, or not its route.
    #[must_use]
    pub fn counted_hops_to(&self, host: u32, direction: Direction) -> u32 {
        let hops = self.hops(direction);
        let on_the_way = self.hops_to(host, direction);
        on_the_way.iter().filter(|&&number| !hops[number].is_processor()).count() as u32
    }

    /// The name of the first route that a server has, for worlds that have no routes.
    #[must_use]
    pub fn first_route(&self) -> Option<&str> {
        let number = self.hosts.iter().find_map(|host| host.route)?;
        self.routes.get(number as usize).map(|route| route.name.as_str())
    }

    /// Checks that all routes lead over hops that are there, each once, and that servers have routes that are there.
    pub(crate) fn check_routes(&self) -> Result<(), ScenarioError> {
        unique("route", self.routes.iter().map(|route| route.name.clone()))?;
        for route in &self.routes {
            for direction in Direction::ALL {
                check_hops(self.hops(direction), route.hops(direction)).map_err(|says| {
                    ScenarioError::new(format!("route `{}` {direction}: {says}", route.name))
                })?;
            }
        }
        let known = self.routes.len();
        for host in &self.hosts {
            if let Some(route) = host.route.filter(|&route| route as usize >= known) {
                return Err(ScenarioError::new(format!(
                    "host `{}`: route {route} does not exist (there are {known})",
                    host.name
                )));
            }
        }
        Ok(())
    }
}

/// How many hops of the way back come before the router that stands behind `passed` hops of the way there.
///
/// All are counted without processors: `there` and `back` are the hops of the two ways. A router stands as far from the
/// sender on both, so that its answer passes the last `passed` hops of the way back; the router behind the last hop
/// stands in front of the first hop of the way back.
#[must_use]
pub const fn hops_before_router(passed: u32, there: u32, back: u32) -> u32 {
    if passed == there { 0 } else { back.saturating_sub(passed) }
}

/// Checks a route over `numbers` of the `hops` of its direction.
fn check_hops(hops: &[Hop], numbers: &[u32]) -> Result<(), String> {
    let mut passed = vec![false; hops.len()];
    for (place, &number) in numbers.iter().enumerate() {
        let Some(hop) = hops.get(number as usize) else {
            return Err(format!("hop {number} does not exist (there are {})", hops.len()));
        };
        if std::mem::replace(&mut passed[number as usize], true) {
            return Err(format!("hop `{}` stands twice: write each once", hop.name));
        }
        let before = place.checked_sub(1).map(|place| numbers[place]);
        let has_processor = number > 0 && hops[number as usize - 1].is_processor();
        if has_processor && before != Some(number - 1) {
            return Err(format!(
                "hop `{}` stands without its processor: write hop {} in front of it",
                hop.name,
                number - 1
            ));
        }
        if hop.is_processor() && numbers.get(place + 1) != Some(&(number + 1)) {
            return Err(format!(
                "processor `{}` stands without its hop: write hop {} behind it",
                hop.name,
                number + 1
            ));
        }
    }
    match (0..).zip(hops).find(|(number, hop)| hop.shaped && !numbers.contains(number)) {
        Some((number, hop)) => Err(format!(
            "it goes past the shaper's hop `{}`: write hop {number} on every route",
            hop.name
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use weir_core::{Duration, Time};

    use super::*;
    use crate::scenario::{Flow, Host, LineRate, Probe, ProbeKind};

    /// Three hops up, of which the second has a processor, and one down.
    fn scenario(up: &[u32], down: &[u32]) -> Scenario {
        let hop = |name: &str| Hop::new(name, "pfifo", LineRate::Bps(1_000_000));
        let mut scenario = Scenario::over("t", 1_000_000_000, hop("a"), hop("back"));
        scenario.path.up.extend([Hop::processor("b", 100, 10), hop("b"), hop("c")]);
        scenario.routes = vec![Route { name: "r".into(), up: up.into(), down: down.into() }];
        scenario.hosts.push(Host { name: "far".into(), delay_ns: 0, route: Some(0) });
        scenario
    }

    #[test]
    fn a_route_passes_hops_that_are_there_once_in_any_order() {
        let refused =
            |up: &[u32], down: &[u32]| scenario(up, down).check().unwrap_err().to_string();
        for (up, down) in [(&[][..], &[][..]), (&[3, 0], &[0]), (&[0, 1, 2, 3], &[0])] {
            scenario(up, down).check().unwrap();
        }
        assert_eq!(refused(&[4], &[]), "route `r` up: hop 4 does not exist (there are 4)");
        assert_eq!(
            refused(&[], &[0, 0]),
            "route `r` down: hop `back` stands twice: write each once"
        );
        assert_eq!(
            refused(&[0, 2], &[]),
            "route `r` up: hop `b` stands without its processor: write hop 1 in front of it"
        );
        assert_eq!(
            refused(&[1, 3], &[]),
            "route `r` up: processor `b-cpu` stands without its hop: write hop 2 behind it"
        );
        let mut nowhere = scenario(&[], &[]);
        nowhere.hosts[1].route = Some(1);
        let says = nowhere.check().unwrap_err().to_string();
        assert_eq!(says, "host `far`: route 1 does not exist (there are 1)");
        let mut twice = scenario(&[], &[]);
        twice.routes.push(twice.routes[0].clone());
        let told = twice.check().unwrap_err().to_string();
        assert_eq!(told, "two are called route `r`: name them apart");
    }

    #[test]
    fn a_time_to_live_ends_at_a_router_of_the_route() {
        let with_ttl = |host, ttl| {
            let (period, stop) = (Duration::from_millis(1), Time::from_millis(1));
            let probe = Probe::new("router", ProbeKind::UdpTtl, period, stop);
            let mut scenario = scenario(&[3], &[]);
            scenario.probes = vec![Probe { host, ttl: Some(ttl), ..probe }];
            scenario
        };
        assert_eq!(with_ttl(0, 4).check(), Ok(()));
        assert_eq!(with_ttl(1, 2).check(), Ok(()));
        let says = with_ttl(1, 3).check().unwrap_err().to_string();
        assert_eq!(says, "probe `router`: ttl 3: write 1 to 2, the routers of this path");
        assert_eq!(with_ttl(1, 3).check_elsewhere(), Ok(()));
        assert_eq!(with_ttl(1, 3).check_routers().unwrap_err().to_string(), says);
    }

    #[test]
    fn a_round_trip_over_a_direct_route_takes_no_time() {
        let span = (Time::ZERO, Time::from_millis(1));
        let mut scenario = scenario(&[], &[]);
        scenario.flows = vec![Flow { host: 1, ..Flow::new("load", Direction::Up, "reno", span) }];
        assert_eq!(
            scenario.check_round_trips().unwrap_err().to_string(),
            "flow `load`: its round trip to `far` takes no time: give a hop of the link a `rate` or a `delay` that stays \
             above 0"
        );
        scenario.flows[0].host = 0;
        assert_eq!(scenario.check_round_trips(), Ok(()));
    }

    #[test]
    fn scenarios_without_routes_are_written_as_before() {
        let mut scenario = scenario(&[3, 0], &[]);
        assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
        scenario.routes.clear();
        scenario.hosts.pop();
        assert!(!scenario.to_json().contains("route"));
    }
}
