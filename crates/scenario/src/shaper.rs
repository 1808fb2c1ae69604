//! A shaper beside the line, as a scenario has it: who controls it, and what it probes.

use serde::{Deserialize, Serialize};
use weir_core::{Direction, Duration, FlowKey, IpVersion, Protocol};
use weir_rate_control::Control;

use crate::scenario::{Scenario, ScenarioError};

/// A shaper at the [shaped](crate::Hop::shaped) hops of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaper {
    /// Who sets the rates.
    pub control: Control,
    /// Protocol of its probes.
    pub probe: ShaperProbe,
    /// Whom it probes, in turn.
    pub reflectors: Vec<Reflector>,
    /// Whether the round trips of the user's own TCP connections count as delays.
    #[serde(default)]
    pub passive: bool,
    /// While these last the shaper is not looked after, as if the machine slept.
    #[serde(default)]
    pub sleeps: Vec<Span>,
}

/// Protocol of a shaper's probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShaperProbe {
    /// ICMP echo: the round trip.
    Icmp,
    /// UDP to a server that tells its time: the round trip and both ways.
    Udp,
    /// Nothing.
    None,
}

/// One that answers probes, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reflector {
    /// Number of its server.
    pub host: u32,
    /// Share of the probes that it never answers, drawn one by one.
    #[serde(default)]
    pub loss: f64,
    /// Faults of the reflector, with their times.
    #[serde(default)]
    pub troubles: Vec<Trouble>,
}

/// Something that goes wrong with a reflector for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// While.
    pub during: Span,
    /// The fault.
    pub what: TroubleKind,
}

/// A fault of a reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// It does not answer.
    Silent,
    /// It answers that many ns late.
    LateNs(u64),
    /// It answers late by anything up to that many ns, drawn evenly.
    ErraticNs(u64),
    /// The machine's clock is set forward by so many ns, or back.
    ClockNs(i64),
}

/// From a time to another, which is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Start of the span.
    pub from_ns: u64,
    /// End of the span.
    pub to_ns: u64,
}

impl Scenario {
    /// The 5-tuple of the shaper's probes to its reflector number `reflector`.
    #[must_use]
    pub fn shaper_probe_key(&self, shaper: &Shaper, reflector: usize) -> FlowKey {
        let protocol = match (shaper.probe, self.ip_version) {
            (ShaperProbe::Udp, _) => Protocol::UDP,
            (_, IpVersion::V4) => Protocol::ICMP,
            (_, IpVersion::V6) => Protocol::ICMPV6,
        };
        let number = self.flows.len() + self.probes.len() + reflector;
        self.key(number, shaper.reflectors[reflector].host, protocol)
    }

    /// Checks that shaper and shaped hops belong together.
    pub(crate) fn check_shaper(&self) -> Result<(), ScenarioError> {
        let mut shaped = 0;
        for direction in Direction::ALL {
            let count = self.hops(direction).iter().filter(|hop| hop.shaped).count();
            if count > 1 {
                return Err(ScenarioError::new(format!(
                    "path {direction}: {count} hops are shaped; there is one shaper a direction"
                )));
            }
            shaped += count;
        }
        match &self.shaper {
            None if shaped > 0 => {
                Err(ScenarioError::new("a hop is shaped but there is no shaper to set its rate"))
            }
            Some(_) if shaped == 0 => Err(ScenarioError::new("the shaper has no hop to shape")),
            Some(shaper) => {
                shaper.check(self).map_err(|text| ScenarioError::new(format!("shaper: {text}")))
            }
            None => Ok(()),
        }
    }
}

impl Shaper {
    fn check(&self, scenario: &Scenario) -> Result<(), String> {
        self.control.check()?;
        if self.probe != ShaperProbe::None && self.reflectors.is_empty() {
            return Err("it probes nobody: name reflectors, or probe with `none`".to_owned());
        }
        for Reflector { host, loss, troubles } in &self.reflectors {
            if *host as usize >= scenario.hosts.len() {
                return Err(format!(
                    "reflector host {host} does not exist (there are {})",
                    scenario.hosts.len()
                ));
            }
            if !(0.0..=1.0).contains(loss) {
                return Err(format!("reflector loss {loss}: write a share from 0 to 1"));
            }
            for trouble in troubles {
                trouble.during.check()?;
            }
        }
        if let Some(pair) = self.sleeps.windows(2).find(|pair| pair[0].to_ns > pair[1].from_ns) {
            return Err(format!(
                "a sleep from {} begins before the one before has ended",
                Duration::from_nanos(pair[1].from_ns)
            ));
        }
        self.sleeps.iter().try_for_each(Span::check)
    }
}

impl Span {
    /// Whether `at_ns` lies in it.
    #[must_use]
    pub const fn contains(&self, at_ns: u64) -> bool {
        self.from_ns <= at_ns && at_ns < self.to_ns
    }

    fn check(&self) -> Result<(), String> {
        if self.from_ns < self.to_ns {
            return Ok(());
        }
        let [from, to] = [self.from_ns, self.to_ns].map(Duration::from_nanos);
        Err(format!("from {from} to {to}: it must last some time"))
    }
}
