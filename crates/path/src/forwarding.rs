//! Next stops of packets: behind most hops the same for all, else by the route of the packet's server.

use std::ops::Range;

use weir_core::End;
use weir_scenario::{Direction, Scenario};

/// The next stop of a packet that leaves the client, a server or a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The hop of that number.
    Hop(usize),
    /// The servers, each behind its own way.
    Servers,
    /// An end of the path.
    End(End),
    /// Another for packets of other routes.
    ByRoute,
}

/// A hop as the packets of one route find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// Next stop of packets that leave it.
    pub next: Next,
    /// How many hops of its direction come before it, without processors.
    pub place: u32,
}

/// The routes of a path: where each leads behind each hop.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// Number of the route of each server.
    route_of: Vec<usize>,
    /// Routes that servers have; that over all hops, if there is no server.
    routes: Vec<RouteHops>,
    /// By hop, then by route; `None` where the route does not pass the hop.
    stops: Vec<Option<Stop>>,
}

/// The hops of a route, up and down, by their numbers on the path.
#[derive(Debug, PartialEq, Eq)]
struct RouteHops {
    hops: [Vec<usize>; 2],
    /// How many of each direction take one off a packet's time to live.
    counted: [u32; 2],
}

impl Forwarding {
    /// The routes of `scenario` over hops that have these numbers, up and down.
    pub fn new(scenario: &Scenario, ranges: &[Range<usize>; 2]) -> Self {
        let all = Direction::ALL.map(|direction| {
            (ranges[direction as usize].clone().collect(), scenario.counted_hops(direction))
        });
        let (mut routes, mut route_of) = (Vec::new(), Vec::new());
        for host in 0..scenario.hosts.len() as u32 {
            let way = Direction::ALL.map(|direction| {
                let first = ranges[direction as usize].start;
                let hops = scenario.hops_to(host, direction).into_iter().map(|hop| first + hop);
                (hops.collect(), scenario.counted_hops_to(host, direction))
            });
            route_of.push(number_of(RouteHops::new(way), &mut routes));
        }
        if routes.is_empty() {
            routes.push(RouteHops::new(all));
        }
        let mut stops = vec![None; ranges[1].end * routes.len()];
        for (number, route) in routes.iter().enumerate() {
            for direction in Direction::ALL {
                let hops = &route.hops[direction as usize];
                let first = ranges[direction as usize].start;
                let specs = scenario.hops(direction);
                let mut place = 0;
                for (at, &hop) in hops.iter().enumerate() {
                    let next = hops.get(at + 1).map_or(behind(direction), |&next| Next::Hop(next));
                    stops[hop * routes.len() + number] = Some(Stop { next, place });
                    place += u32::from(!specs[hop - first].is_processor());
                }
            }
        }
        Self { route_of, routes, stops }
    }

    /// Hop number `hop` as packets to and from server number `host` find it.
    pub fn stop(&self, hop: usize, host: u32) -> Stop {
        let route = self.route_of[host as usize];
        self.stops[hop * self.routes.len() + route].expect("packets pass the hops of their route")
    }

    /// The next stop behind hop number `hop`.
    pub fn next(&self, hop: usize) -> Next {
        self.same(hop, |stop| stop.next).unwrap_or(Next::ByRoute)
    }

    /// How many hops of its direction come before hop number `hop`, without processors; `None` if that differs by
    /// route.
    pub fn place(&self, hop: usize) -> Option<u32> {
        self.same(hop, |stop| stop.place)
    }

    /// The next stop of packets that leave the client.
    pub fn leaving_client(&self) -> Next {
        let mut all = self.routes.iter().map(|route| route.first(Direction::Up));
        let first = all.next().expect("there is a route");
        if all.all(|next| next == first) { first } else { Next::ByRoute }
    }

    /// The first stop of packets of `direction` to or from server number `host`.
    pub fn first(&self, host: u32, direction: Direction) -> Next {
        self.routes[self.route_of[host as usize]].first(direction)
    }

    /// The hops of `direction` on the route of server number `host`.
    pub fn hops(&self, host: u32, direction: Direction) -> &[usize] {
        &self.routes[self.route_of[host as usize]].hops[direction as usize]
    }

    /// How many hops of `direction` on the route of server number `host` take one off a packet's time to live.
    pub fn counted(&self, host: u32, direction: Direction) -> u32 {
        self.routes[self.route_of[host as usize]].counted[direction as usize]
    }

    /// What all routes that pass hop number `hop` agree on; `None` if they do not, or none passes it.
    fn same<T: PartialEq>(&self, hop: usize, what: impl Fn(&Stop) -> T) -> Option<T> {
        let of_hop = &self.stops[hop * self.routes.len()..(hop + 1) * self.routes.len()];
        let mut all = of_hop.iter().flatten().map(what);
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }
}

impl RouteHops {
    fn new(way: [(Vec<usize>, u32); 2]) -> Self {
        let counted = [way[0].1, way[1].1];
        Self { hops: way.map(|(hops, _)| hops), counted }
    }

    fn first(&self, direction: Direction) -> Next {
        let first = self.hops[direction as usize].first();
        first.map_or(behind(direction), |&hop| Next::Hop(hop))
    }
}

/// The number of `route` among `routes`, to which it is added if it is not there.
fn number_of(route: RouteHops, routes: &mut Vec<RouteHops>) -> usize {
    routes.iter().position(|known| *known == route).unwrap_or_else(|| {
        routes.push(route);
        routes.len() - 1
    })
}

/// The stop behind the last hop of a direction.
const fn behind(direction: Direction) -> Next {
    match direction {
        Direction::Up => Next::Servers,
        Direction::Down => Next::End(End::Client),
    }
}
