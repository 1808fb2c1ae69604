//! Whether the parts of a scenario fit together.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use weir_core::{Direction, Dscp, Duration, End, IpVersion, Rate};

use crate::application::Application;
use crate::scenario::{
    Change, Flow, Hop, LineChange, LineRate, Probe, ProbeKind, Sampling, Scenario, ScenarioError,
};

impl Scenario {
    /// Checks that the parts fit together. A path without hops may be one elsewhere, of whose routers nothing is
    /// known: worlds that make the path themselves [check](Self::check_routers) more.
    ///
    /// # Errors
    /// If they do not: the first thing that is wrong.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.check_with(self.path.up.is_empty() && self.path.down.is_empty())
    }

    /// Checks that every time to live ends at a router of the scenario's own path.
    ///
    /// # Errors
    /// If one does not: the first.
    pub fn check_routers(&self) -> Result<(), ScenarioError> {
        self.probes.iter().try_for_each(|probe| check_ttl(probe, self.routers_to(probe.host)))
    }

    /// Routers stand before, between and behind the hops on the way to server number `host`.
    fn routers_to(&self, host: u32) -> usize {
        self.counted_hops_to(host, Direction::Up) as usize + 1
    }

    /// Checks a scenario on a path elsewhere, of whose routers nothing is known.
    ///
    /// # Errors
    /// As [`Scenario::check`].
    pub fn check_elsewhere(&self) -> Result<(), ScenarioError> {
        self.check_with(true)
    }

    /// Checks everything; of a path that `is_elsewhere` no routers are known.
    fn check_with(&self, is_elsewhere: bool) -> Result<(), ScenarioError> {
        self.check_times()?;
        for direction in Direction::ALL {
            for hop in self.hops(direction) {
                hop.check().map_err(|error| {
                    ScenarioError::new(format!("path {direction}, hop `{}`: {error}", hop.name))
                })?;
            }
        }
        unique("hop up", self.path.up.iter().map(|hop| hop.name.clone()))?;
        unique("hop down", self.path.down.iter().map(|hop| hop.name.clone()))?;
        self.check_routes()?;
        self.check_methods()?;
        for flow in &self.flows {
            let name = &flow.name;
            self.check_ends(name, flow.host, flow.dscp, (flow.start_ns, flow.stop_ns))?;
            self.check_client_host(&format!("flow `{name}`"), flow.client_host)?;
            let load = match (&flow.udp, &flow.application) {
                (None, None) => flow.tcp.check(),
                (Some(udp), None) => udp.check(
                    self.mtu_within(flow.tunnel),
                    flow.ip_version.unwrap_or(self.ip_version),
                ),
                (None, Some(application)) => check_application(flow, application),
                (Some(_), Some(_)) => Err("a load is UDP or an application, not both".to_owned()),
            };
            load.map_err(|error| ScenarioError::new(format!("flow `{name}`: {error}")))?;
        }
        for probe in &self.probes {
            self.check_ends(&probe.name, probe.host, probe.dscp, (probe.start_ns, probe.stop_ns))?;
            if probe.period_ns < MIN_PERIOD_NS {
                return Err(ScenarioError::new(format!(
                    "probe `{}`: period {}: write 10us or more",
                    probe.name,
                    Duration::from_nanos(probe.period_ns)
                )));
            }
            let routers = if is_elsewhere { MAX_ROUTERS } else { self.routers_to(probe.host) };
            check_ttl(probe, routers)?;
            if !is_elsewhere {
                self.check_length(probe)?;
            }
        }
        self.check_sampling()?;
        self.check_ip_in_tunnels()?;
        self.check_tunnels()?;
        self.check_shaper()
    }

    /// Checks that a ping is one packet: no world of ours has fragments.
    fn check_length(&self, probe: &Probe) -> Result<(), ScenarioError> {
        let header = probe.ip_version.unwrap_or(self.ip_version).header_bytes() + ECHO_HEADER_BYTES;
        let mtu = self.mtu_within(probe.tunnel);
        let most = mtu - header;
        if probe.kind == ProbeKind::Tcp || probe.payload_bytes <= most {
            return Ok(());
        }
        Err(ScenarioError::new(format!(
            "probe `{}`: payload {}: write {most} bytes or less, so that a packet fits into the MTU of {mtu}",
            probe.name, probe.payload_bytes
        )))
    }

    fn check_sampling(&self) -> Result<(), ScenarioError> {
        let Sampling { throughput_ns, tcp_ns, queue_ns } = self.sampling;
        for (table, every_ns) in
            [("throughput", throughput_ns), ("tcp", tcp_ns), ("queue", queue_ns)]
        {
            if (1..MIN_PERIOD_NS).contains(&every_ns) {
                return Err(ScenarioError::new(format!(
                    "sampling.{table} {}: write 10us or more, or 0s for none",
                    Duration::from_nanos(every_ns)
                )));
            }
        }
        Ok(())
    }

    /// Checks that no connection has a round trip of no time at all: in virtual time it would never end.
    ///
    /// # Errors
    /// If one has.
    pub fn check_round_trips(&self) -> Result<(), ScenarioError> {
        let tcp = self.flows.iter().filter(|flow| flow.udp.is_none());
        let flows = tcp.map(|flow| ("flow", &flow.name, flow.host));
        let methods = self.methods.iter().map(|test| ("method", &test.name, test.host));
        for (kind, name, host) in flows.chain(methods) {
            let server = &self.hosts[host as usize];
            if server.delay_ns == 0 && self.may_pass_in_no_time(host) {
                return Err(ScenarioError::new(format!(
                    "{kind} `{name}`: its round trip to `{}` takes no time: give a hop of the link a \
                     `rate` or a `delay` that stays above 0",
                    server.name
                )));
            }
        }
        Ok(())
    }

    /// Whether packets to and from server number `host` may pass all hops at the instant at which they come.
    fn may_pass_in_no_time(&self, host: u32) -> bool {
        Direction::ALL.into_iter().all(|direction| {
            let hops = self.hops(direction);
            self.hops_to(host, direction).into_iter().all(|hop| hops[hop].may_take_no_time())
        })
    }

    /// A tunnel carries the Internet protocol of the scenario.
    fn check_ip_in_tunnels(&self) -> Result<(), ScenarioError> {
        let flows = self.flows.iter().map(|flow| (&flow.name, flow.tunnel, flow.ip_version));
        let probes = self.probes.iter().map(|probe| (&probe.name, probe.tunnel, probe.ip_version));
        let mut all = flows.chain(probes);
        let other = |ip: Option<IpVersion>| ip.is_some_and(|ip| ip != self.ip_version);
        match all.find(|(_, tunnel, ip)| tunnel.is_some() && other(*ip)) {
            Some((name, ..)) => Err(ScenarioError::new(format!(
                "`{name}`: a tunnel carries the Internet protocol of the scenario: leave `ip` or `tunnel` out"
            ))),
            None => Ok(()),
        }
    }

    /// The largest IP packet of `flow`, within its tunnel if it has one.
    fn mtu_within(&self, tunnel: Option<u32>) -> u32 {
        let tunnel = tunnel.and_then(|number| self.tunnels.get(number as usize));
        tunnel.map_or(self.mtu_bytes, |one| one.kind.inner_mtu(self.mtu_bytes, self.ip_version))
    }

    pub(crate) fn check_client_host(
        &self,
        of: &str,
        client_host: u32,
    ) -> Result<(), ScenarioError> {
        if client_host <= MAX_CLIENT_HOST {
            return Ok(());
        }
        Err(ScenarioError::new(format!(
            "{of}: client_host {client_host}: write 0 (the client) to {MAX_CLIENT_HOST}"
        )))
    }

    fn check_times(&self) -> Result<(), ScenarioError> {
        if self.duration_ns == 0 || self.duration_ns > MAX_DURATION_NS {
            return Err(ScenarioError::new(format!(
                "duration {}: write a time above 0 and up to a week",
                Duration::from_nanos(self.duration_ns)
            )));
        }
        if !(MIN_MTU..=MAX_MTU).contains(&self.mtu_bytes) {
            return Err(ScenarioError::new(format!(
                "mtu {}: write a number of bytes from {MIN_MTU} to {MAX_MTU}",
                self.mtu_bytes
            )));
        }
        for phase in &self.phases {
            if phase.start_ns >= phase.end_ns || phase.end_ns > self.duration_ns {
                return Err(ScenarioError::new(format!(
                    "phase `{}`: from {} to {}: it must last some time and end within the run of {}",
                    phase.name,
                    Duration::from_nanos(phase.start_ns),
                    Duration::from_nanos(phase.end_ns),
                    Duration::from_nanos(self.duration_ns)
                )));
            }
        }
        Ok(())
    }

    pub(crate) fn check_ends(
        &self,
        name: &str,
        host: u32,
        dscp: u8,
        (start_ns, stop_ns): (u64, u64),
    ) -> Result<(), ScenarioError> {
        if host as usize >= self.hosts.len() {
            return Err(ScenarioError::new(format!(
                "`{name}`: host {host} does not exist (there are {})",
                self.hosts.len()
            )));
        }
        if Dscp::new(dscp).is_none() {
            return Err(ScenarioError::new(format!("`{name}`: dscp {dscp}: write 0 to 63")));
        }
        if start_ns > stop_ns {
            return Err(ScenarioError::new(format!(
                "`{name}`: it starts at {} and stops before, at {}",
                Duration::from_nanos(start_ns),
                Duration::from_nanos(stop_ns)
            )));
        }
        Ok(())
    }
}

/// Checks the load of an application, whose answers come down.
fn check_application(flow: &Flow, application: &Application) -> Result<(), String> {
    if flow.direction != Direction::Down || flow.bytes.is_some() || flow.opener() != End::Client {
        let key = application.key();
        return Err(format!(
            "`{key}`: it is asked for by the client and comes down: leave `bytes` and `opened_by` out, and write \
             direction = \"down\""
        ));
    }
    application.check()?;
    flow.tcp.check()
}

impl Hop {
    fn check(&self) -> Result<(), String> {
        match self.rate {
            LineRate::Bps(bps) => check_rate(bps)?,
            LineRate::PacketsPerSecond(rate) => check_packet_rate(rate)?,
            LineRate::Unlimited | LineRate::Trace(_) => {}
        }
        check_delay(self.delay_ns, MAX_DELAY)?;
        self.check_changes()?;
        self.check_access()?;
        self.flight().check().map_err(|error| error.to_string())
    }

    /// Whether packets may pass at the instant at which they come, now or after a change.
    fn may_take_no_time(&self) -> bool {
        let no_delay = self.delay_ns == 0
            || self.changes.iter().any(|change| change.to == LineChange::DelayNs(0));
        self.rate == LineRate::Unlimited && self.jitter_ns == 0 && no_delay
    }

    /// Whether the line is reached in a way that suits its rate.
    fn check_access(&self) -> Result<(), String> {
        let constant = matches!(self.rate, LineRate::Bps(_));
        if let Some(access) = &self.access {
            access.check()?;
            if !constant {
                return Err("only a line of constant `rate` has `grants` or `airtime`".to_owned());
            }
        }
        let Some(reconfiguration) = &self.reconfiguration else { return Ok(()) };
        reconfiguration.check()?;
        if reconfiguration.changes_rate() && !constant {
            return Err(
                "reconfiguration: only a line of constant `rate` has a `min_rate_share`".to_owned()
            );
        }
        Ok(())
    }

    fn check_changes(&self) -> Result<(), String> {
        if !self.changes.is_sorted_by_key(|change| change.at_ns) {
            return Err("changes: write them in the order of their times".to_owned());
        }
        for Change { at_ns, to } in &self.changes {
            to.check(&self.rate)
                .map_err(|error| format!("change at {}: {error}", Duration::from_nanos(*at_ns)))?;
        }
        Ok(())
    }
}

impl LineChange {
    /// Checks that a line of that `rate` can be changed so; says what is wrong with it without its time.
    pub(crate) fn check(&self, rate: &LineRate) -> Result<(), String> {
        match (self, rate) {
            (Self::DelayNs(delay_ns), _) => check_delay(*delay_ns, MAX_DELAY),
            (Self::Loss(loss), _) => loss.check().map_err(|error| error.to_string()),
            (Self::RateBps(bps), LineRate::Bps(_)) => check_rate(*bps),
            (Self::Down, LineRate::Bps(_)) => Ok(()),
            (Self::RateBps(_) | Self::Down, _) => {
                Err("only a line of constant `rate` can be given another".to_owned())
            }
        }
    }
}

/// Checks that a propagation delay is no longer than `most`.
pub(crate) fn check_delay(delay_ns: u64, most: Duration) -> Result<(), String> {
    if delay_ns <= most.as_nanos() {
        return Ok(());
    }
    let delay = Duration::from_nanos(delay_ns);
    Err(format!("delay {delay}: write a propagation delay of up to {most}, such as `40ms`"))
}

fn check_rate(bps: u64) -> Result<(), String> {
    if LINE_RATES_BPS.contains(&bps) {
        Ok(())
    } else {
        Err(format!("rate {bps} bit/s: write {LINE_RATES}"))
    }
}

fn check_packet_rate(rate: u64) -> Result<(), String> {
    if (1..=MAX_PACKET_RATE).contains(&rate) {
        Ok(())
    } else {
        Err(format!("packet rate {rate}: write 1 to {MAX_PACKET_RATE} packets per second"))
    }
}

/// Names tell things apart in records: none may occur twice.
pub(crate) fn unique(kind: &str, names: impl Iterator<Item = String>) -> Result<(), ScenarioError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if seen.contains(&name) {
            return Err(ScenarioError::new(format!(
                "two are called {kind} `{name}`: name them apart"
            )));
        }
        seen.insert(name);
    }
    Ok(())
}

/// A time to live must end on the way to the server: at the routers before, between and behind the hops.
fn check_ttl(probe: &Probe, routers: usize) -> Result<(), ScenarioError> {
    let name = &probe.name;
    match (probe.kind, probe.ttl) {
        (ProbeKind::UdpTtl, Some(ttl)) if (1..=routers).contains(&usize::from(ttl)) => Ok(()),
        (ProbeKind::UdpTtl, Some(ttl)) => Err(ScenarioError::new(format!(
            "probe `{name}`: ttl {ttl}: write 1 to {routers}, the routers of this path"
        ))),
        (ProbeKind::UdpTtl, None) => Err(ScenarioError::new(format!(
            "probe `{name}`: a probe of kind udp_ttl needs `ttl`, the number of the router"
        ))),
        (_, Some(ttl)) => Err(ScenarioError::new(format!(
            "probe `{name}`: ttl {ttl}: only a probe of kind udp_ttl has one"
        ))),
        (_, None) => Ok(()),
    }
}

/// Initial time to live of most systems (RFC 1700).
pub(crate) const MAX_ROUTERS: usize = 64;
/// A week: longer runs would not fit times in microseconds of 32 bits in places where Linux keeps them.
const MAX_DURATION_NS: u64 = 7 * 24 * 3_600 * 1_000_000_000;
/// RFC 791: what every host must take; the largest jumbo frame.
pub(crate) const MIN_MTU: u32 = 576;
pub(crate) const MAX_MTU: u32 = 9_000;
/// Rates that a line may have, in bit/s: 1 kbit/s to 1 Tbit/s.
pub(crate) const LINE_RATES_BPS: RangeInclusive<u64> = Rate::MIN_LINE.as_bps()..=1_000_000_000_000;
/// What a message says of `LINE_RATES_BPS`.
pub(crate) const LINE_RATES: &str = "a rate from 1kbit to 1tbit";
/// Packets per second that a router's processor may forward: one a nanosecond, the clock of all worlds.
pub(crate) const MAX_PACKET_RATE: u64 = 1_000_000_000;
/// To Jupiter light takes 54 minutes at most.
const MAX_DELAY: Duration = Duration::from_secs(3600);
/// Least time between two pings or samples.
const MIN_PERIOD_NS: u64 = 10_000;
/// That of ICMP echo and of UDP.
const ECHO_HEADER_BYTES: u32 = 8;
/// A /24 of machines, as home routers have it.
const MAX_CLIENT_HOST: u32 = 253;

#[cfg(test)]
mod tests {
    use weir_core::Time;

    use super::*;

    fn scenario() -> Scenario {
        let hop = Hop::new("line", "pfifo", LineRate::Bps(10_000_000));
        Scenario::over("t", 1_000_000_000, hop.clone(), hop)
    }

    #[test]
    fn json_round_trips() {
        let scenario = scenario();
        assert_eq!(Scenario::from_json(&scenario.to_json()).unwrap(), scenario);
    }

    #[test]
    fn a_time_to_live_ends_at_a_router_of_the_path_or_at_any_of_one_elsewhere() {
        let with_ttl = |ttl| {
            let mut scenario = scenario();
            let (period, stop) = (Duration::from_millis(1), Time::from_millis(1));
            let probe = Probe::new("router", ProbeKind::UdpTtl, period, stop);
            scenario.probes = vec![Probe { payload_bytes: 0, ttl: Some(ttl), ..probe }];
            scenario
        };
        let refusal = |outcome: Result<(), ScenarioError>| outcome.unwrap_err().to_string();
        let sentence = |ttl, most| {
            format!("probe `router`: ttl {ttl}: write 1 to {most}, the routers of this path")
        };
        assert_eq!(refusal(with_ttl(3).check()), sentence(3, 2));
        let mut slow = with_ttl(3);
        slow.path.up.insert(0, Hop::processor("line", 1_000, 10));
        assert_eq!(refusal(slow.check()), sentence(3, 2), "a processor is no router of its own");
        let mut elsewhere = with_ttl(3);
        elsewhere.path.up.clear();
        elsewhere.path.down.clear();
        assert_eq!(elsewhere.check(), Ok(()));
        assert_eq!(refusal(elsewhere.check_routers()), sentence(3, 1));
        elsewhere.probes[0].ttl = Some(65);
        assert_eq!(refusal(elsewhere.check()), sentence(65, 64));
    }

    #[test]
    fn errors_say_what_where_and_what_is_allowed() {
        let error = |change: fn(&mut Scenario)| {
            let mut scenario = scenario();
            change(&mut scenario);
            scenario.check().unwrap_err().to_string()
        };
        assert_eq!(
            error(|s| s.path.up[0].rate = LineRate::Bps(0)),
            "path up, hop `line`: rate 0 bit/s: write a rate from 1kbit to 1tbit"
        );
        assert_eq!(
            error(|s| s.duration_ns = 0),
            "duration 0ms: write a time above 0 and up to a week"
        );
        assert_eq!(
            error(|s| s.path.up[0].changes =
                vec![Change { at_ns: 5_000_000, to: LineChange::RateBps(10) }]),
            "path up, hop `line`: change at 5ms: rate 10 bit/s: write a rate from 1kbit to 1tbit"
        );
        assert_eq!(
            error(|s| {
                s.path.up[0].rate = LineRate::Unlimited;
                s.path.up[0].changes = vec![Change { at_ns: 0, to: LineChange::Down }];
            }),
            "path up, hop `line`: change at 0ms: only a line of constant `rate` can be given another"
        );
        assert_eq!(
            error(|s| s.path.up[0].delay_ns = 4_000_000_000_000),
            "path up, hop `line`: delay 4000s: write a propagation delay of up to 3600s, such as `40ms`"
        );
        assert_eq!(
            error(|s| {
                let to = LineChange::DelayNs(3_600_000_000_001);
                s.path.up[0].changes = vec![Change { at_ns: 5_000_000, to }];
            }),
            "path up, hop `line`: change at 5ms: delay 3600000000001ns: write a propagation delay of up to 3600s, \
             such as `40ms`"
        );
        assert_eq!(
            error(|s| s.path.up.insert(0, Hop::processor("line", 0, 1))),
            "path up, hop `line-cpu`: packet rate 0: write 1 to 1000000000 packets per second"
        );
        assert_eq!(
            error(|s| s.sampling.tcp_ns = 9_999),
            "sampling.tcp 9999ns: write 10us or more, or 0s for none"
        );
        assert_eq!(error(|s| s.mtu_bytes = 60), "mtu 60: write a number of bytes from 576 to 9000");
    }

    #[test]
    fn a_ping_is_one_packet_of_a_link_of_ours() {
        let with = |payload_bytes, ip_version| {
            let mut scenario = scenario();
            let (period, stop) = (Duration::from_millis(1), Time::from_millis(1));
            let probe = Probe::new("ping", ProbeKind::Icmp, period, stop);
            scenario.probes = vec![Probe { ip_version, payload_bytes, ..probe }];
            scenario
        };
        with(1472, None).check().unwrap();
        with(1452, Some(IpVersion::V6)).check().unwrap();
        assert_eq!(
            with(1473, None).check().unwrap_err().to_string(),
            "probe `ping`: payload 1473: write 1472 bytes or less, so that a packet fits into the MTU of 1500"
        );
        with(1453, Some(IpVersion::V6)).check().unwrap_err();
        // Elsewhere routers and hosts have theirs.
        let mut elsewhere = with(9_000, None);
        elsewhere.path.up.clear();
        elsewhere.path.down.clear();
        elsewhere.check().unwrap();
    }

    /// A scenario with one connection over lines that carry everything at once.
    fn instant() -> Scenario {
        let mut scenario = scenario();
        scenario.path.up[0].rate = LineRate::Unlimited;
        scenario.path.down[0].rate = LineRate::Unlimited;
        scenario.flows.push(
            serde_json::from_str(
                r#"{"name": "load", "direction": "up", "host": 0, "dscp": 0, "start_ns": 0, "stop_ns": 1,
                "tcp": {"profile": "linux", "congestion_control": "cubic"}}"#,
            )
            .unwrap(),
        );
        scenario.check().unwrap();
        scenario
    }

    #[test]
    fn a_round_trip_takes_time() {
        let refused = "flow `load`: its round trip to `server` takes no time: give a hop of the link a \
                       `rate` or a `delay` that stays above 0";
        assert_eq!(instant().check_round_trips().unwrap_err().to_string(), refused);

        let sound: [fn(&mut Scenario); 6] = [
            |s| s.path.up[0].rate = LineRate::Bps(*LINE_RATES_BPS.end()),
            |s| s.path.down[0].rate = LineRate::Trace("t".into()),
            |s| s.path.down[0].delay_ns = 1,
            |s| s.path.down[0].jitter_ns = 1,
            |s| s.hosts[0].delay_ns = 1,
            |s| s.flows.clear(),
        ];
        for change in sound {
            let mut scenario = instant();
            change(&mut scenario);
            scenario.check_round_trips().unwrap();
        }

        let mut later = instant();
        later.path.up[0].delay_ns = 5_000_000;
        later.path.up[0].changes = vec![Change { at_ns: 500_000_000, to: LineChange::DelayNs(0) }];
        assert_eq!(later.check_round_trips().unwrap_err().to_string(), refused);
    }
}
