//! The ways to the servers of a scenario: each over IPv4, IPv6 or both, as its loads and probes ask for.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use weir_core::Time;
use weir_scenario::{IpVersion, Scenario};
use weir_sockets::sys::time::monotonic_ns;
use weir_sockets::{Clock, ClockOffset, Target};

use crate::ClientError;
use crate::request::MeasureRequest;

/// The way of a load: the addresses of both ends, and what is known of the server's clock.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// Address of this end.
    pub local: IpAddr,
    /// Where connections go.
    pub server: SocketAddr,
    /// Where datagrams go.
    pub datagrams: SocketAddr,
    /// The server, as its requests name it.
    pub authority: String,
    pub clocks: Clocks,
    pub ip_version: IpVersion,
}

/// The run's clock, and what a server's is ahead of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub clock: Clock,
    pub offset: ClockOffset,
}

impl Clocks {
    /// The run's time at the server's `t_ns`.
    pub fn here(&self, t_ns: u64) -> Time {
        self.clock.of_monotonic_ns(t_ns.saturating_add_signed(-self.offset.ns))
    }

    /// What the server's clock shows now, in nanoseconds.
    pub fn there_now(&self) -> u64 {
        monotonic_ns().saturating_add_signed(self.offset.ns)
    }
}

/// A scenario whose servers have addresses.
#[derive(Debug)]
pub(crate) struct Reached {
    /// The scenario, in which every load and probe has the Internet protocol over which it goes.
    pub scenario: Scenario,
    /// The servers by number, over each Internet protocol that is used with them.
    pub targets: Vec<(u32, Target)>,
}

/// Looks the servers of `request` up, and decides over which Internet protocol each load and probe goes: over its own if it
/// has one, or else the one that was asked for, or else the one that the system prefers for that server.
///
/// # Errors
/// If there are too few or too many servers, one is not known, has no address of a protocol that is asked for, or is given
/// in place of two.
pub(crate) fn reach(request: &MeasureRequest) -> Result<Reached, ClientError> {
    let hosts = &request.scenario.hosts;
    if request.hosts.len() != hosts.len() {
        let names: Vec<_> = hosts.iter().map(|host| format!("`{}`", host.name)).collect();
        return Err(ClientError::new(format!(
            "the test has {} servers ({}), and {} given: give one for each, in that order",
            hosts.len(),
            names.join(", "),
            match request.hosts.len() {
                1 => "1 is".to_owned(),
                count => format!("{count} are"),
            }
        )));
    }
    let found = request.hosts.iter().map(|words| Target::find_each(words));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let asked =
        request.ip.or((request.scenario.ip_version == IpVersion::V6).then_some(IpVersion::V6));
    let usual: Vec<_> = found.iter().map(|each| asked.unwrap_or_else(|| ip_of(&each[0]))).collect();
    let mut targets = Vec::new();
    for ((host, ip), user) in used(request, &usual) {
        let each = &found[host as usize];
        let target = each.iter().find(|target| ip_of(target) == ip).ok_or_else(|| {
            ClientError::new(format!(
                "{user} asks for {}: server `{}` has no such address",
                name_of(ip),
                request.hosts[host as usize]
            ))
        })?;
        targets.push((host, target.clone()));
    }
    refuse_repeated(request, &targets)?;
    Ok(Reached { scenario: over(&request.scenario, &usual), targets })
}

/// Which servers are used over which protocol, each with the first that asks for it.
fn used(request: &MeasureRequest, usual: &[IpVersion]) -> BTreeMap<(u32, IpVersion), String> {
    let scenario = &request.scenario;
    let flows =
        scenario.flows.iter().map(|one| (one.host, one.ip_version, format!("flow `{}`", one.name)));
    let probes = scenario
        .probes
        .iter()
        .map(|one| (one.host, one.ip_version, format!("probe `{}`", one.name)));
    let mut used = BTreeMap::new();
    for (host, ip, user) in flows.chain(probes) {
        used.entry((host, ip.unwrap_or(usual[host as usize]))).or_insert(user);
    }
    for (host, &ip) in (0..).zip(usual) {
        // A ramp's loads go to the first server, and a server without loads is to be there all the same.
        let idle = IP_VERSIONS.iter().all(|&any| !used.contains_key(&(host, any)));
        if idle || host == 0 && request.ramp.is_some() {
            used.entry((host, ip)).or_insert_with(|| "the test".to_owned());
        }
    }
    used
}

/// Refuses one server in place of two: what goes to both would share its way.
fn refuse_repeated(request: &MeasureRequest, targets: &[(u32, Target)]) -> Result<(), ClientError> {
    for (place, (host, target)) in targets.iter().enumerate() {
        let again = |(other, one): &&(u32, Target)| other != host && one.address == target.address;
        if let Some((other, _)) = targets[place..].iter().find(again) {
            let name = |number: u32| &request.scenario.hosts[number as usize].name;
            let words = &request.hosts[*other as usize];
            return Err(ClientError::new(format!(
                "server `{words}` is given for `{}` and again for `{}`: give a server of its own for each",
                name(*host),
                name(*other)
            )));
        }
    }
    Ok(())
}

/// The scenario, whose protocol is the one that is usual for the first server; what goes elsewhere says so itself.
fn over(scenario: &Scenario, usual: &[IpVersion]) -> Scenario {
    let mut scenario = Scenario { ip_version: usual[0], ..scenario.clone() };
    // How far they are is what is measured.
    scenario.hosts.iter_mut().for_each(|host| host.delay_ns = 0);
    let own = |host: u32| Some(usual[host as usize]).filter(|&ip| ip != usual[0]);
    for flow in &mut scenario.flows {
        flow.ip_version = flow.ip_version.or_else(|| own(flow.host));
    }
    for probe in &mut scenario.probes {
        probe.ip_version = probe.ip_version.or_else(|| own(probe.host));
    }
    scenario
}

fn ip_of(target: &Target) -> IpVersion {
    IpVersion::of(target.address.ip())
}

const fn name_of(ip: IpVersion) -> &'static str {
    match ip {
        IpVersion::V4 => "IPv4",
        IpVersion::V6 => "IPv6",
    }
}

const IP_VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

#[cfg(test)]
impl Way {
    /// One that leads nowhere.
    pub fn nowhere() -> Self {
        let local: SocketAddr = ([127, 0, 0, 1], 9).into();
        let offset = ClockOffset { ns: 0, round_trip_ns: 0 };
        Self {
            local: local.ip(),
            server: local,
            datagrams: local,
            authority: "nowhere".to_owned(),
            clocks: Clocks { clock: Clock::starting_in(weir_core::Duration::ZERO), offset },
            ip_version: IpVersion::V4,
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_scenario::{Direction, Flow, Hop, Host, LineRate};

    use super::*;

    /// A request of one flow to each server, over the protocols that are told.
    fn request(hosts: &[&str], over: &[Option<IpVersion>]) -> MeasureRequest {
        let hop = Hop::new("line", "pfifo", LineRate::Unlimited);
        let span = (Time::ZERO, Time::from_millis(1));
        let one = |(host, &ip_version)| Flow {
            host,
            ip_version,
            ..Flow::new(format!("to {host}"), Direction::Up, "reno", span)
        };
        let host = |number| Host { name: format!("host {number}"), delay_ns: 0, route: None };
        let scenario = Scenario {
            hosts: (0..over.len()).map(host).collect(),
            flows: (0..).zip(over).map(one).collect(),
            ..Scenario::over("test", 1_000_000, hop.clone(), hop)
        };
        let hosts = hosts.iter().map(|&words| words.to_owned()).collect();
        MeasureRequest { hosts, ip: None, secret: None, scenario, seed: 1, ramp: None }
    }

    fn refused(request: &MeasureRequest) -> String {
        reach(request).unwrap_err().to_string()
    }

    fn addresses(reached: &Reached) -> Vec<(u32, String)> {
        let one = |(host, target): &(u32, Target)| (*host, target.address.to_string());
        reached.targets.iter().map(one).collect()
    }

    #[test]
    fn each_server_is_reached_over_the_protocols_that_are_used_with_it() {
        let (v4, v6) = (Some(IpVersion::V4), Some(IpVersion::V6));
        let mut both = request(&["127.0.0.1,::1", "::1"], &[v4, None]);
        both.hosts[1] = "[::1]:9".to_owned();
        let reached = reach(&both).unwrap();
        let found = [(0, "127.0.0.1:8080".to_owned()), (1, "[::1]:9".to_owned())];
        assert_eq!(addresses(&reached), found);
        assert_eq!(reached.scenario.ip_version, IpVersion::V4);
        assert_eq!(
            [0, 1].map(|flow| reached.scenario.flow_ip(flow)),
            [IpVersion::V4, IpVersion::V6]
        );
        let mut one = request(&["127.0.0.1,::1"], &[v4]);
        one.scenario.flows.push(Flow { ip_version: v6, ..one.scenario.flows[0].clone() });
        let ways = [(0, "127.0.0.1:8080".to_owned()), (0, "[::1]:8080".to_owned())];
        assert_eq!(addresses(&reach(&one).unwrap()), ways);
    }

    #[test]
    fn the_protocol_that_is_asked_for_counts_where_a_load_has_none() {
        let mut asked = request(&["::1,127.0.0.1"], &[None]);
        assert_eq!(reach(&asked).unwrap().scenario.ip_version, IpVersion::V6);
        asked.ip = Some(IpVersion::V4);
        assert_eq!(reach(&asked).unwrap().scenario.ip_version, IpVersion::V4);
        asked.hosts = vec!["::1".to_owned()];
        let said = "flow `to 0` asks for IPv4: server `::1` has no such address";
        assert_eq!(refused(&asked), said);
    }

    #[test]
    fn what_cannot_be_reached_is_refused_in_a_sentence() {
        let few = refused(&request(&["127.0.0.1"], &[None, None]));
        assert_eq!(
            few,
            "the test has 2 servers (`host 0`, `host 1`), and 1 is given: give one for each, in that order"
        );
        let six = refused(&request(&["127.0.0.1"], &[Some(IpVersion::V6)]));
        assert_eq!(six, "flow `to 0` asks for IPv6: server `127.0.0.1` has no such address");
        let twice = refused(&request(&["127.0.0.1", "127.0.0.1:8080"], &[None, None]));
        assert_eq!(
            twice,
            "server `127.0.0.1:8080` is given for `host 0` and again for `host 1`: give a server of its own for each"
        );
        assert!(reach(&request(&["127.0.0.1:1", "127.0.0.1:2"], &[None, None])).is_ok());
    }

    #[test]
    fn a_server_without_loads_is_to_be_there_too() {
        let mut idle = request(&["127.0.0.1", "127.0.0.2"], &[None, None]);
        idle.scenario.flows.pop();
        assert_eq!(addresses(&reach(&idle).unwrap()).len(), 2);
    }
}
