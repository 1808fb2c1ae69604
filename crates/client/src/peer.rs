//! One server over one Internet protocol: its control session, what it grants, and its clock.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use serde_json::{Value, json};
use weir_core::Duration;
use weir_scenario::{Flow, IpVersion, Probe, Scenario};
use weir_sockets::{Clock, ClockOffset, EchoSession, Grant, Session, SessionEnds, Target};
use weir_speedtest::protocol::weir::{ClientMessage, FlowRequest, Secret, ServerMessage};

use crate::ClientError;
use crate::check::{Share, check};
use crate::numbers::Numbers;
use crate::ways::{Clocks, Way};

/// A server with which there is a session.
pub(crate) struct Peer {
    /// Its number in the scenario.
    host: u32,
    target: Target,
    session: Session,
    numbers: Numbers,
    offset: ClockOffset,
    /// The clocks at the end, if they were compared again.
    later: Option<ClockOffset>,
}

impl Peer {
    /// Opens a session with server number `host`, once it can do what `scenario` asks of it.
    ///
    /// # Errors
    /// If it is not there, refuses, or cannot.
    pub fn open(
        (host, target): (u32, Target),
        secret: Option<&Secret>,
        scenario: &Scenario,
    ) -> Result<Self, ClientError> {
        let mut session = Session::open(&target, secret)?;
        let share = Share::of(scenario, host, IpVersion::of(target.address.ip()));
        check(&share, &session.grant).map_err(|error| match scenario.hosts.len() {
            1 => error,
            _ => ClientError::new(format!("server `{}`: {error}", target.authority)),
        })?;
        let offset = session.compare_clocks()?;
        Ok(Self { host, target, session, numbers: Numbers::default(), offset, later: None })
    }

    /// Whether what goes to server number `host` over `ip` goes here.
    pub fn is(&self, host: u32, ip: IpVersion) -> bool {
        self.host == host && IpVersion::of(self.target.address.ip()) == ip
    }

    pub const fn grant(&self) -> &Grant {
        &self.session.grant
    }

    /// The way of its loads in a run with that clock.
    pub fn way(&self, clock: Clock) -> Way {
        let Target { authority, address } = self.target.clone();
        Way {
            local: self.grant().local.ip(),
            server: address,
            datagrams: SocketAddr::new(address.ip(), self.udp_port()),
            authority,
            clocks: self.clocks(clock),
            ip_version: IpVersion::of(address.ip()),
        }
    }

    /// The run's clock, and what the server's is ahead of it.
    pub const fn clocks(&self, clock: Clock) -> Clocks {
        Clocks { clock, offset: self.offset }
    }

    /// The ends of its probes.
    pub fn ends(&self) -> SessionEnds {
        SessionEnds {
            host: self.host,
            client: self.grant().local.ip(),
            server: self.target.address.ip(),
            session: EchoSession { token: self.grant().token, port: self.udp_port() },
        }
    }

    fn udp_port(&self) -> u16 {
        self.grant().udp_port.unwrap_or(self.target.address.port())
    }

    /// Asks for load `number` of the record.
    pub fn ask(&mut self, number: u32, request: FlowRequest) -> Result<(), ClientError> {
        let flow = self.numbers.ask(number);
        self.say(&ClientMessage::Open(FlowRequest { flow, ..request }))
    }

    /// Ends load `number` of the record, if it was asked for.
    pub fn stop(&mut self, number: u32) -> Result<(), ClientError> {
        match self.numbers.at_server(number) {
            Some(flow) => self.say(&ClientMessage::Stop { flow }),
            None => Ok(()),
        }
    }

    pub fn say(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        Ok(self.session.say(message)?)
    }

    /// What the server has said, with the record's numbers, if there is something.
    ///
    /// # Errors
    /// If it ended the session, or the connection broke.
    pub fn hear(&mut self) -> Result<Option<ServerMessage>, ClientError> {
        let Some(message) = self.session.hear_now()? else { return Ok(None) };
        match self.numbers.in_record(message)? {
            ServerMessage::Error { flow: None, reason } => Err(self.ended(&reason)),
            message => Ok(Some(message)),
        }
    }

    fn ended(&self, reason: &str) -> ClientError {
        let server = self.session.server();
        ClientError::new(format!("server `{server}` ended the session: {reason}"))
    }

    /// What is said of it if it does not tell what it was asked.
    pub fn silent(&self) -> ClientError {
        let server = self.session.server();
        ClientError::new(format!("server `{server}` does not say how many datagrams arrived"))
    }

    /// What is said of it if nothing has come from it for so long.
    pub fn fell_silent(&self, silence: Duration) -> ClientError {
        let (server, seconds) = (self.session.server(), silence.as_nanos() / 1_000_000_000);
        ClientError::new(format!(
            "nothing has come from server `{server}` for {seconds} s: it, or the line, is cut off"
        ))
    }

    /// Compares the clocks again, if the server still answers.
    pub fn compare_clocks(&mut self) {
        self.later = self.session.compare_clocks().ok();
    }

    /// The server as the record describes it; `scenario` names it.
    pub fn described(&self, scenario: &Scenario) -> Value {
        let grant = self.grant();
        let mut said = json!({
            "host": scenario.hosts[self.host as usize].name,
            "name": self.target.authority,
            "address": self.target.address.to_string(),
            "software": grant.software,
            "client_seen_as": grant.seen.to_string(),
            "clock_ahead_ns": self.offset.ns,
            "clock_compared_within_ns": self.offset.round_trip_ns / 2,
            "limits": grant.limits,
        });
        if let Some(later) = self.later {
            said["clock_drift"] = drift(self.offset, later);
        }
        said
    }

    pub fn close(self) {
        self.session.close();
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }
}

impl<'s> Share<'s> {
    /// What of `scenario` goes to server number `host` over `ip`.
    pub fn of(scenario: &'s Scenario, host: u32, ip: IpVersion) -> Self {
        let goes = |to: u32, over: Option<IpVersion>| {
            to == host && over.unwrap_or(scenario.ip_version) == ip
        };
        let flow = |one: &&Flow| goes(one.host, one.ip_version);
        let probe = |one: &&Probe| goes(one.host, one.ip_version);
        Self {
            flows: scenario.flows.iter().filter(flow).collect(),
            probes: scenario.probes.iter().filter(probe).collect(),
        }
    }
}

/// By how much the server's clock ran ahead between two comparisons, and how sure that is.
fn drift(start: ClockOffset, end: ClockOffset) -> Value {
    let within_ns = (start.round_trip_ns + end.round_trip_ns) / 2;
    json!({"ns": end.ns.saturating_sub(start.ns), "within_ns": within_ns})
}
