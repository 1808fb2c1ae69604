//! Declaration of test files: phases, servers, loads, probes and speed tests.

use weir_core::Direction;

use crate::check::MAX_ROUTERS;
use crate::file::field::{blank, choice, choice_field, spec};
use crate::file::plain::{AtMost, ByName, Integer, ListOf, Whole, Word};
use crate::file::quantity::{
    AnswerBytes, DscpValue, FlowBytes, FlowCount, LineRate, Nanoseconds, PacketTime, Payload,
    PositiveNanoseconds, WindowBytes,
};
use crate::file::references;
use crate::file::spec::IpNumber;
use crate::udp::UdpPattern;

spec! {
    /// A test: loads and probes on a time axis, on whatever link.
    TestSpec {
        /// Name of the test.
        name: Word,
        /// Heading of charts.
        title: String,
        /// Description of the test, in a line.
        summary: String = String::new(),
        /// Source that it follows.
        source: String = String::new(),
        /// Numbers that it leaves open.
        parameters: ByName<ParameterSpec> = ByName(Vec::new()),
        /// When what happens.
        phases: PhasesSpec,
        /// Phases of any name within the load, one after the other, with their lengths, such as `upload = "10s"`.
        stages: ByName<PositiveNanoseconds> = ByName(Vec::new()),
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
        /// Meaning of the parameter.
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
        /// Name of the link's route by which it is reached; over all hops of the link in order if nothing is said.
        route: Option<Word>,
    }
}

impl HostSpec {
    /// The server of a test that names none.
    fn server() -> Self {
        let keys = crate::file::field::Keys::of(&["name"]);
        Self { name: Word(SERVER.to_owned()), delay: Nanoseconds(0), route: None, keys }
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
        /// Its protocol: `wireguard`, as in Linux, or `ipsec`: ESP with AES-GCM in UDP.
        kind: TunnelWord,
        /// The server at which it ends, with all that goes through it.
        host: String = SERVER.to_owned(),
        /// The machine in the client's network at which it ends.
        client_host: String = CLIENT.to_owned(),
        /// Whether it ends on the machine that has the first queue of the upload, and not on one in front of it
        /// (`wireguard` only): there Linux still knows the hashes of the TCP and UDP flows inside, so that queues by
        /// flow tell them apart.
        on_first_hop: bool = false,
    }
}

choice! {
    /// Protocol of a tunnel.
    TunnelWord {
        /// `WireGuard`, as in Linux.
        WireGuard = "wireguard",
        /// ESP with AES-GCM in UDP.
        Ipsec = "ipsec",
    }
}

spec! {
    /// One or several loads. They are data over TCP, packets over UDP with `udp` or `voice`, or an application with `web`,
    /// `video` or `dns`.
    FlowSpec {
        /// Name of the flow; several are numbered `name::1`, `name::2` ...
        name: Word,
        /// Direction of its data, as the client sees it.
        direction: Direction,
        /// Service class of its packets.
        dscp: DscpValue = DscpValue(0),
        /// The server at its other end; that of its tunnel, or else `server`, if nothing is said.
        host: Option<String>,
        /// The tunnel that it goes through, by name; none if nothing is said.
        tunnel: Option<String>,
        /// Internet protocol, 4 or 6; the scenario's if nothing is said.
        ip: Option<IpNumber>,
        /// The machine in the client's network at its near end, by any name, each with an address of its own
        /// (simulator only); `client` is the one that the probes are of.
        client_host: String = CLIENT.to_owned(),
        /// Who opens the connection; the one who sends the data can send it half a round trip sooner if it opened
        /// the connection.
        opened_by: OpenerWord = OpenerWord::Client,
        /// How many there are: a number, or the name of one of the test's parameters.
        count: FlowCount = FlowCount::Number(1),
        /// The phase during which it runs, by name: `idle`, `load`, `cooldown` or one of the test's stages.
        during: Option<String>,
        /// When it starts; with the phase `load` if nothing is said, a voice stream and an application with the test.
        start: Option<Nanoseconds>,
        /// When it stops; with the phase `load` if nothing is said, a voice stream and an application with the test.
        stop: Option<Nanoseconds>,
        /// How much it sends; without end if nothing is said.
        bytes: Option<FlowBytes>,
        /// TCP of the flow.
        tcp: TcpSpec = blank(),
        /// Makes it a UDP flow: its packets.
        udp: Option<UdpSpec>,
        /// Makes it a voice stream of ITU-T G.711: UDP with an RTP header, of which the record has the mean opinion score.
        voice: Option<VoiceSpec>,
        /// Makes it web pages that are loaded again and again.
        web: Option<WebSpec>,
        /// Makes it a video of adaptive bitrate that plays.
        video: Option<VideoSpec>,
        /// Makes it names that are looked up.
        dns: Option<DnsSpec>,
    }
    check |flow| flow.check_kind();
}

impl FlowSpec {
    /// Checks that it is a load of one kind.
    fn check_kind(&self) -> Result<(), String> {
        // What says no more than its default is as good as nothing: a record tells a test with all its keys.
        let has_tcp = !self.uses_tcp() && self.tcp != blank();
        let kinds: Vec<_> = has_tcp.then_some("tcp").into_iter().chain(self.kinds()).collect();
        let name = &self.name.0;
        if let [one, other, ..] = kinds[..] {
            return Err(format!("flow `{name}`: it has `{one}` and `{other}`: write one of them"));
        }
        let Some(kind) = kinds.first() else { return Ok(()) };
        let of_data =
            [("bytes", self.bytes.is_some()), ("opened_by", self.opened_by != OpenerWord::Client)];
        if let Some((key, _)) = of_data.into_iter().find(|(_, is_said)| *is_said) {
            return Err(format!(
                "flow `{name}`: `{key}` is for data over TCP: one with `{kind}` has `start` and `stop`"
            ));
        }
        if self.direction == Direction::Up && ["web", "video", "dns"].contains(kind) {
            return Err(format!(
                "flow `{name}`: what `{kind}` asks for comes down: write direction = \"down\""
            ));
        }
        Ok(())
    }

    /// The keys that make it another load than data over TCP.
    fn kinds(&self) -> impl Iterator<Item = &'static str> {
        let kinds = [
            ("udp", self.udp.is_some()),
            ("voice", self.voice.is_some()),
            ("web", self.web.is_some()),
            ("video", self.video.is_some()),
            ("dns", self.dns.is_some()),
        ];
        kinds.into_iter().filter_map(|(key, is_said)| is_said.then_some(key))
    }

    /// Whether its data goes over TCP.
    pub(crate) fn uses_tcp(&self) -> bool {
        self.udp.is_none() && self.voice.is_none() && self.dns.is_none()
    }

    /// Whether its congestion control is the scenario's.
    pub(crate) fn takes_cc(&self) -> bool {
        self.uses_tcp() && self.tcp.congestion_control.is_none()
    }

    /// Whether it runs during the whole test, and not its phase `load` only, if nothing is said.
    pub(crate) const fn runs_all_the_time(&self) -> bool {
        self.voice.is_some() || self.web.is_some() || self.video.is_some() || self.dns.is_some()
    }
}

spec! {
    /// The packets of a UDP flow.
    UdpSpec {
        /// Rate of the UDP payload while it sends; of a flood, any rate above the line's.
        rate: LineRate,
        /// UDP payload of each packet.
        payload: Payload = Payload(1_470),
        /// When packets leave.
        pattern: UdpPatternWord = UdpPatternWord::Constant,
        /// For `bursts` and `on_off`: how long it sends, for `on_off` in the mean.
        on: Option<PositiveNanoseconds>,
        /// For `bursts` and `on_off`: how long it is silent, for `on_off` in the mean.
        off: Option<PositiveNanoseconds>,
    }
    check |udp| udp.pattern_of_packets().map(|_| ());
}

impl UdpSpec {
    /// When its packets leave.
    ///
    /// # Errors
    /// If the times do not fit the pattern.
    pub fn pattern_of_packets(&self) -> Result<UdpPattern, String> {
        match (self.pattern, self.on, self.off) {
            (UdpPatternWord::Constant, None, None) => Ok(UdpPattern::Constant),
            (UdpPatternWord::Poisson, None, None) => Ok(UdpPattern::Poisson),
            (UdpPatternWord::Bursts, Some(on), Some(off)) => {
                Ok(UdpPattern::Bursts { on_ns: on.0, off_ns: off.0 })
            }
            (UdpPatternWord::OnOff, Some(on), Some(off)) => {
                Ok(UdpPattern::OnOff { on_ns: on.0, off_ns: off.0 })
            }
            (UdpPatternWord::Constant | UdpPatternWord::Poisson, _, _) => {
                Err("`on` and `off` are for the patterns `bursts` and `on_off`".to_owned())
            }
            (UdpPatternWord::Bursts | UdpPatternWord::OnOff, _, _) => {
                Err("the patterns `bursts` and `on_off` need the times `on` and `off`".to_owned())
            }
        }
    }
}

choice! {
    /// When the packets of a UDP flow leave.
    UdpPatternWord {
        /// One after the other at the rate.
        Constant = "constant",
        /// At random times that do not depend on one another, at the rate in the mean.
        Poisson = "poisson",
        /// At the rate for the time `on`, then none for the time `off`.
        Bursts = "bursts",
        /// At the rate and silent in turns, for times that are drawn from exponential distributions.
        OnOff = "on_off",
    }
}

spec! {
    /// The receiver of a voice stream.
    VoiceSpec {
        /// Least time that the receiver's jitter buffer holds packets back.
        jitter_buffer: PositiveNanoseconds = PositiveNanoseconds(40_000_000),
        /// Speech in a packet, as `ptime` of RTP.
        packet_time: PacketTime = PacketTime(20_000_000),
    }
}

spec! {
    /// Web pages that are loaded again and again, each as by somebody who has never been there.
    WebSpec {
        /// Bytes of the document.
        document: AnswerBytes = AnswerBytes(28_598),
        /// Objects that the document names.
        objects: Whole<0, 10_000> = Whole(109),
        /// Bytes of each object.
        object: AnswerBytes = AnswerBytes(28_598),
        /// Connections of HTTP/1.1 at most.
        connections: Whole<1, 100> = Whole(6),
        /// `1.1` with several connections, or `2` with one that carries everything at once.
        http: HttpWord = HttpWord::Http1,
        /// Whether connections are secured by TLS.
        tls: bool = true,
        /// Whether the server's name is looked up first.
        dns: bool = true,
        /// Time from the start of one page to that of the next; one that takes longer is followed at once.
        every: PositiveNanoseconds = PositiveNanoseconds(2_000_000_000),
        /// How long a page is waited for.
        timeout: PositiveNanoseconds = PositiveNanoseconds(60_000_000_000),
    }
}

choice! {
    /// Version of HTTP.
    HttpWord {
        /// HTTP/1.1: one request at a time on each of several connections.
        Http1 = "1.1",
        /// HTTP/2: all requests at once on one connection.
        Http2 = "2",
    }
}

spec! {
    /// A video of adaptive bitrate, as DASH players load it.
    VideoSpec {
        /// Bitrates that there are, the least first; those of Netflix of 2015, 235kbit to 5.8mbit, if nothing is said.
        bitrates: AtMost<LineRate, 100> = ListOf(Vec::new()),
        /// How long a segment plays.
        segment: PositiveNanoseconds = PositiveNanoseconds(4_000_000_000),
        /// How much the player loads ahead.
        buffer: PositiveNanoseconds = PositiveNanoseconds(30_000_000_000),
    }
}

spec! {
    /// Names that are looked up.
    DnsSpec {
        /// Time between two lookups, answered or not.
        every: PositiveNanoseconds = PositiveNanoseconds(200_000_000),
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
        /// Protocol of the pings: `icmp` and `udp` echoes, `udp_ttl` (UDP that a router on the way answers with ICMP time
        /// exceeded), `tcp` (requests and responses over one connection; live worlds only).
        kind: ProbeWord,
        /// For `udp_ttl`: the number of the router that answers, from 1, the one before the first hop.
        ttl: Option<Whole<1, { MAX_ROUTERS as i64 }>>,
        /// Service class of its packets.
        dscp: DscpValue = DscpValue(0),
        /// The server that answers; that of its tunnel, or else `server`, if nothing is said.
        host: Option<String>,
        /// The tunnel that it goes through, by name; none if nothing is said.
        tunnel: Option<String>,
        /// Internet protocol, 4 or 6; the scenario's if nothing is said.
        ip: Option<IpNumber>,
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
    /// Protocol of a ping.
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
        /// Server of the speed test; that of its tunnel, or else `server`, if nothing is said.
        host: Option<String>,
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

impl MethodSpec {
    /// Whether the congestion control of an end is the scenario's.
    pub(crate) const fn takes_cc(&self) -> bool {
        self.cc.is_none() || self.client_cc.is_none()
    }
}

/// The machine of the client's network that the probes are of.
pub(crate) const CLIENT: &str = "client";

/// The server that everything goes to if nothing is said.
pub(crate) const SERVER: &str = "server";
