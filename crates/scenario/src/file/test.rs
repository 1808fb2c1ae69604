//! What a test file can say: phases, servers, loads, probes and speed tests.

use weir_core::Direction;

use crate::file::field::{blank, choice, choice_field, spec};
use crate::file::plain::{ByName, Integer, Whole, Word};
use crate::file::quantity::{
    DscpValue, FlowBytes, FlowCount, Nanoseconds, Payload, PositiveNanoseconds, WindowBytes,
};
use crate::file::references;

spec! {
    /// A test: loads and probes on a time axis, on whatever link.
    TestSpec {
        /// Name of the test.
        name: Word,
        /// What a chart is headed with.
        title: String,
        /// What it does, in a line.
        summary: String = String::new(),
        /// What it follows.
        source: String = String::new(),
        /// Numbers that it leaves open.
        parameters: ByName<ParameterSpec> = ByName(Vec::new()),
        /// When what happens.
        phases: PhasesSpec,
        /// The servers.
        hosts: Vec<HostSpec> = vec![HostSpec::server()],
        /// The tunnels to them.
        tunnels: Vec<TunnelSpec> = Vec::new(),
        /// The loads.
        flows: Vec<FlowSpec> = Vec::new(),
        /// The probes.
        probes: Vec<ProbeSpec> = Vec::new(),
        /// The speed tests.
        methods: Vec<MethodSpec> = Vec::new(),
    }
    refers references::of_test;
}

spec! {
    /// A number that a test leaves open.
    ParameterSpec {
        /// Value of the parameter if nothing is said.
        default: Integer,
        /// Least value of the parameter.
        minimum: Integer,
        /// Greatest value of the parameter.
        maximum: Integer,
        /// What it is.
        meaning: String,
    }
}

spec! {
    /// The phases of a test, in the order in which they come. A phase of no length is left out.
    PhasesSpec {
        /// Length of the phase before the load.
        idle: Nanoseconds = Nanoseconds(0),
        /// Length of the phase with the load.
        load: Nanoseconds = Nanoseconds(0),
        /// Length of the phase after the load.
        cooldown: Nanoseconds = Nanoseconds(0),
    }
    check |phases| phases.duration_ns().map(|_| ());
}

impl PhasesSpec {
    /// How long the test lasts.
    ///
    /// # Errors
    /// If it lasts no time, or more than can be counted.
    pub fn duration_ns(&self) -> Result<u64, String> {
        let sum =
            self.idle.0.checked_add(self.load.0).and_then(|sum| sum.checked_add(self.cooldown.0));
        match sum {
            Some(0) => {
                Err("the test lasts no time: give one of idle, load, cooldown a length".to_owned())
            }
            Some(duration) => Ok(duration),
            None => Err("the test lasts more than 500 years: make its phases shorter".to_owned()),
        }
    }
}

spec! {
    /// A server.
    HostSpec {
        /// Name of the server.
        name: Word,
        /// Delay between it and the far end of the link, each way.
        delay: Nanoseconds = Nanoseconds(0),
    }
}

impl HostSpec {
    /// The server of a test that names none.
    fn server() -> Self {
        let keys = crate::file::field::Keys::of(&["name"]);
        Self { name: Word(SERVER.to_owned()), delay: Nanoseconds(0), keys }
    }
}

spec! {
    /// TCP settings of a load.
    TcpSpec {
        /// `linux`, `rfc`, `linux22` or `bsd`.
        profile: Option<Word>,
        /// `cubic`, `reno` and so on: `weir list congestion-controls` has them all.
        congestion_control: Option<Word>,
        /// Switches selective acknowledgements of the profile on or off.
        sack: Option<bool>,
        /// Switches explicit congestion notification on or off.
        ecn: Option<bool>,
        /// Switches timestamps on or off.
        timestamps: Option<bool>,
        /// Switches pacing on or off.
        pacing: Option<bool>,
        /// Whether segments leave the machine in bursts, as with segmentation offload, or one by one.
        bursts: Option<bool>,
        /// Whether every second segment is acknowledged, or each.
        delayed_ack: Option<bool>,
        /// Segments that may be sent first.
        initial_window: Option<Whole<1, 1000>>,
        /// Greatest receive window.
        receive_window: Option<WindowBytes>,
        /// Shortest retransmission timeout.
        rto_min: Option<Nanoseconds>,
    }
}

spec! {
    /// A VPN between the client's network and a server (simulator only). Flows, probes and speed tests whose `tunnel`
    /// has its name go through it, and are one UDP flow to whoever is outside.
    TunnelSpec {
        /// Name of the tunnel.
        name: Word,
        /// What it speaks: `wireguard`, as in Linux, or `ipsec`: ESP with AES-GCM in UDP.
        kind: TunnelWord,
        /// The server at which it ends, with all that goes through it.
        host: String = SERVER.to_owned(),
        /// The machine in the client's network at which it ends.
        station: String = CLIENT.to_owned(),
        /// Whether it ends on the machine that has the first queue of the upload, and not on one in front of it
        /// (`wireguard` only): there Linux still knows the hashes of the TCP and UDP flows inside, so that queues by
        /// flow tell them apart.
        on_first_hop: bool = false,
    }
}

choice! {
    /// What a tunnel speaks.
    TunnelWord {
        /// `WireGuard`, as in Linux.
        WireGuard = "wireguard",
        /// ESP with AES-GCM in UDP.
        Ipsec = "ipsec",
    }
}

spec! {
    /// One or several TCP loads.
    FlowSpec {
        /// Name of the flow; several are numbered `name::1`, `name::2` ...
        name: Word,
        /// Which way its data flows, as the client sees it.
        direction: Direction,
        /// Service class of its packets.
        dscp: DscpValue = DscpValue(0),
        /// The server at its other end; that of its tunnel, if it has one.
        host: String = SERVER.to_owned(),
        /// The tunnel that it goes through, by name; none if nothing is said.
        tunnel: Option<String>,
        /// The machine in the client's network at its near end, by any name, each with an address of its own
        /// (simulator only); `client` is the one that the probes are of.
        station: String = CLIENT.to_owned(),
        /// Who opens the connection; the one who sends the data can send it half a round trip sooner if it opened
        /// the connection.
        opened_by: OpenerWord = OpenerWord::Client,
        /// How many there are: a number, or the name of one of the test's parameters.
        count: FlowCount = FlowCount::Number(1),
        /// When it starts; with the phase `load` if nothing is said.
        start: Option<Nanoseconds>,
        /// When it stops; with the phase `load` if nothing is said.
        stop: Option<Nanoseconds>,
        /// How much it sends; without end if nothing is said.
        bytes: Option<FlowBytes>,
        /// TCP of the flow.
        tcp: TcpSpec = blank(),
    }
}

choice_field!(Direction);

choice! {
    /// Who opens a connection.
    OpenerWord {
        /// The client.
        Client = "client",
        /// The server.
        Server = "server",
    }
}

spec! {
    /// A train of pings.
    ProbeSpec {
        /// Name of the probe.
        name: Word,
        /// What is sent: `icmp` and `udp` echoes, `udp_ttl` (UDP that a router on the way answers with ICMP time
        /// exceeded), `tcp` (requests and responses over one connection; live worlds only).
        kind: ProbeWord,
        /// For `udp_ttl`: the number of the router that answers, from 1, the one before the first hop.
        ttl: Option<Whole<1, 64>>,
        /// Service class of its packets.
        dscp: DscpValue = DscpValue(0),
        /// The server that answers; that of its tunnel, if it has one.
        host: String = SERVER.to_owned(),
        /// The tunnel that it goes through, by name; none if nothing is said.
        tunnel: Option<String>,
        /// Time between two pings, answered or not; the scenario's if nothing is said.
        period: Option<PositiveNanoseconds>,
        /// Bytes of payload: 56 for ICMP as `ping` has it, 60 for UDP.
        payload: Option<Payload>,
        /// When the first is sent; at the start of the test if nothing is said.
        start: Option<Nanoseconds>,
        /// When the last may be sent; at the end of the test if nothing is said.
        stop: Option<Nanoseconds>,
    }
}

choice! {
    /// What a ping is made of.
    ProbeWord {
        /// ICMP echoes.
        Icmp = "icmp",
        /// UDP echoes.
        Udp = "udp",
        /// UDP that a router on the way answers.
        UdpTtl = "udp_ttl",
        /// Requests and responses over one TCP connection.
        Tcp = "tcp",
    }
}

spec! {
    /// A foreign speed test, as its official client runs it: it ends when its method does.
    MethodSpec {
        /// Name of the speed test; the record has two flows of it, `name down` and `name up`, and its own round trips as the probe
        /// `name in flow`.
        name: Word,
        /// Method, as `weir test --method` has it: `ndt7`, `cloudflare`, `rpm` and so on.
        kind: String,
        /// When it begins; with the phase `load` if nothing is said.
        start: Option<Nanoseconds>,
        /// Server of the speed test; that of its tunnel, if it has one.
        host: String = SERVER.to_owned(),
        /// The tunnel that it goes through, by name; none if nothing is said.
        tunnel: Option<String>,
        /// Service class of its packets.
        dscp: DscpValue = DscpValue(0),
        /// Whether its connections are secured, as those of all official clients are by default.
        tls: bool = true,
        /// Congestion control of the server, so that of downloads; `bbr` for ndt7, whose server asks for it, and the
        /// scenario's for the others if nothing is said.
        cc: Option<Word>,
        /// Congestion control of the client, so that of uploads; the scenario's if nothing is said.
        client_cc: Option<Word>,
        /// The rest of the TCP of both ends.
        tcp: TcpSpec = blank(),
    }
    check |method| match &method.tcp.congestion_control {
        None => Ok(()),
        Some(_) => Err(format!(
            "method `{}`: write `cc` and `client_cc`, not tcp.congestion_control",
            method.name.0
        )),
    };
}

/// The machine of the client's network that the probes are of.
pub(crate) const CLIENT: &str = "client";

/// The server that everything goes to if nothing is said.
pub(crate) const SERVER: &str = "server";
