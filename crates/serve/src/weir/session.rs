//! One session: the WebSocket over which a client asks for flows and hears of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use weir_sockets::Clock;
use weir_sockets::load::udp::packets_per_second;
use weir_speedtest::protocol::weir::{
    ApplicationLimits, ClientMessage, EchoCount, EchoRequest, EndReason, FlowRequest, Limits,
    MAX_MESSAGE_BYTES, SUBPROTOCOL, ServerMessage, Token, UdpLimits, UdpRequest, VERSION,
};

use super::application::{self, ApplicationFlow};
use super::flow::{News, ServedFlow};
use super::udp::UdpFlow;
use super::{Flow, MAX_PPS};
use crate::admission::UdpUse;
use crate::connection::{OverTcp, Transport};
use crate::data;
use crate::http::{Client, HttpRequest, HttpResponse, refuse};
use crate::shared::{Shared, Test};
use crate::upgrade::websocket;

/// The part of a session that datagrams need.
pub(crate) struct Session {
    token: Token,
    client: IpAddr,
    clock: Clock,
    echo_rate_pps: u32,
    echoes: Mutex<Echoes>,
}

#[derive(Default)]
struct Echoes {
    trains: BTreeMap<u8, EchoCount>,
    limited: u64,
    /// When the datagrams so far would have come at the highest rate, in nanoseconds of the session.
    next_ns: u64,
}

/// How a datagram is to be answered.
pub(crate) struct Echo {
    /// Datagrams of its train so far.
    pub received: u32,
    pub clock: Clock,
}

impl Session {
    pub const fn token(&self) -> Token {
        self.token
    }

    pub const fn client(&self) -> IpAddr {
        self.client
    }

    /// A datagram of this session asks to be echoed; `None` if there were too many.
    pub fn echo(&self, request: &EchoRequest, tos: u8) -> Option<Echo> {
        let mut echoes = self.echoes.lock().expect(HELD);
        if !echoes.have_room(self.now_ns(), self.echo_rate_pps) {
            echoes.limited += 1;
            return None;
        }
        let train = request.train;
        let fresh = EchoCount { train, received: 0, ce: 0, highest_seq: 0 };
        let count = echoes.trains.entry(train).or_insert(fresh);
        count.received = count.received.saturating_add(1);
        count.ce += u32::from(tos & ECN_BITS == ECN_BITS);
        count.highest_seq = count.highest_seq.max(request.seq);
        Some(Echo { received: count.received, clock: self.clock })
    }

    /// Whether a datagram that is no echo is answered: not if there were too many, echoes included.
    pub fn may_answer(&self) -> bool {
        self.echoes.lock().expect(HELD).have_room(self.now_ns(), self.echo_rate_pps)
    }

    pub const fn clock(&self) -> Clock {
        self.clock
    }

    fn now_ns(&self) -> u64 {
        self.clock.now().as_nanos()
    }
}

impl Echoes {
    /// Whether one more answer is below the highest rate at `now_ns`; it counts as given then.
    fn have_room(&mut self, now_ns: u64, rate_pps: u32) -> bool {
        let next_ns = self.next_ns.max(now_ns);
        let has_room = next_ns - now_ns <= ECHO_BURST_NS;
        if has_room {
            self.next_ns = next_ns + 1_000_000_000 / u64::from(rate_pps.max(1));
        }
        has_room
    }
}

/// Begins a session.
pub(super) fn answer(client: &Arc<Client>, mut request: HttpRequest) -> HttpResponse {
    let (response, upgrade) = match websocket(&mut request, SUBPROTOCOL) {
        Ok(both) => both,
        // A page is not told why its WebSocket was refused, and asks without one for the reason.
        Err(response) => {
            let Client { server, ends, .. } = &**client;
            let begins = server.may_begin(ends.client);
            let has_room = begins.and_then(|()| server.admission.enter_test(ends.client.ip()));
            return has_room.map_or_else(refuse, |_| *response);
        }
    };
    let test = match client.server.begin_session("weir", client.ends.client) {
        Ok(test) => test,
        Err(refusal) => return refuse(refusal),
    };
    let client = Arc::clone(client);
    let tasks = client.server.tasks.clone();
    tasks.spawn(async move {
        let Some((mut transport, begun)) = upgrade.complete().await else { return };
        transport.carries_no_load();
        let stop = client.server.stop.child_token();
        let mut talk = Talk::new(client, transport, begun, test, stop.clone()).await;
        if let Err(reason) = talk.run().await {
            debug!(client = %talk.client.ends.client, ?reason, "session over");
            if let Over::Refused(reason) = reason {
                let _ = talk.say(&ServerMessage::Error { flow: None, reason }).await;
            }
        }
        // Who hears that the session is over may begin the next one at once.
        talk.close();
        let Talk { mut socket, test: place, .. } = talk;
        drop(place);
        let _ = timeout(FAREWELL, socket.close(None)).await;
    });
    response
}

/// Why a session ends.
#[derive(Debug)]
enum Over {
    /// The client is gone, or the connection.
    Gone,
    /// The client said or did what it should not.
    Refused(String),
}

/// The conversation of a session.
struct Talk {
    client: Arc<Client>,
    socket: WebSocketStream<Transport>,
    stop: CancellationToken,
    clock: Clock,
    session: Option<Arc<Session>>,
    /// All flows that were asked for and have not ended.
    flows: BTreeMap<u32, (Flow, Instant)>,
    highest_flow: Option<u32>,
    news_to: mpsc::Sender<News>,
    news: mpsc::Receiver<News>,
    /// Ticks when samples are due.
    sampler: Option<(u64, Interval)>,
    test: Test,
}

impl Talk {
    async fn new(
        client: Arc<Client>,
        transport: Transport,
        begun: Bytes,
        test: Test,
        stop: CancellationToken,
    ) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(MAX_MESSAGE_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(4 * MAX_MESSAGE_BYTES)
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let socket = WebSocketStream::from_partially_read(
            transport,
            begun.to_vec(),
            Role::Server,
            Some(config),
        )
        .await;
        let (news_to, news) = mpsc::channel(NEWS);
        Self {
            client,
            socket,
            stop,
            clock: Clock::starting_in(weir_core::Duration::ZERO),
            session: None,
            flows: BTreeMap::new(),
            highest_flow: None,
            news_to,
            news,
            sampler: None,
            test,
        }
    }

    async fn run(&mut self) -> Result<(), Over> {
        match timeout(HANDSHAKE, self.shake_hands()).await {
            Ok(result) => result?,
            Err(_) => return Err(Over::Refused("the handshake took too long".into())),
        }
        let end = Instant::now() + self.client.server.options.session();
        let mut over = std::pin::pin!(tokio::time::sleep_until(end));
        let mut heart = interval(HEARTBEAT);
        let stop = self.stop.clone();
        loop {
            let tick = async {
                match &mut self.sampler {
                    Some((_, interval)) => interval.tick().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return Err(Over::Refused("the server is stopping".into())),
                () = &mut over => return Err(Over::Refused("the session took too long".into())),
                message = self.socket.next() => {
                    let message = decode(message)?;
                    if let Some(message) = message {
                        self.hear(message).await?;
                    }
                }
                Some(news) = self.news.recv() => self.pass_on(news).await?,
                _ = tick => self.sample().await?,
                _ = heart.tick() => {
                    self.expire().await?;
                    self.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }

    async fn shake_hands(&mut self) -> Result<(), Over> {
        let refused = |reason: &str| Over::Refused(reason.to_owned());
        let ClientMessage::Hello { version, client: name, nonce } = self.listen().await? else {
            return Err(refused("a session begins with hello"));
        };
        if version != VERSION {
            return Err(Over::Refused(format!(
                "version {version}: this server speaks version {VERSION}"
            )));
        }
        debug!(client = %self.client.ends.client, name = name.escape_debug().take(80).collect::<String>(), "hello");
        let server = Arc::clone(&self.client.server);
        let challenge = server.secret.as_ref().map(|_| Token(data::random()));
        self.say(&ServerMessage::Welcome { version: VERSION, server: SOFTWARE.into(), challenge })
            .await?;
        if let (Some(secret), Some(challenge)) = (&server.secret, challenge) {
            let ClientMessage::Authenticate { mac } = self.listen().await? else {
                return Err(refused("this server asks for its secret first"));
            };
            if !secret.accepts(challenge, nonce, mac) {
                server.refused("secret", self.client.ends.client.ip());
                return Err(refused("the secret is wrong"));
            }
        }
        self.open(&server).await
    }

    /// Opens the session: from here on there are flows and echoes.
    async fn open(&mut self, server: &Arc<Shared>) -> Result<(), Over> {
        let token = Token(data::random());
        let ends = self.client.ends;
        self.clock = Clock::starting_in(weir_core::Duration::ZERO);
        let session = Arc::new(Session {
            token,
            client: ends.client.ip(),
            clock: self.clock,
            echo_rate_pps: server.options.max_echo_rate,
            echoes: Mutex::default(),
        });
        server.sessions.open(&session);
        self.session = Some(session);
        let limits = Limits {
            flows: MAX_FLOWS as u32,
            duration_ns: server.options.max_duration.as_nanos() as u64,
            session_ns: server.options.session().as_nanos() as u64,
            ticket_ns: TICKET.as_nanos() as u64,
            sample_ns: MIN_SAMPLE_INTERVAL.as_nanos() as u64,
            echo_rate_pps: server.options.max_echo_rate,
            echo_bytes: crate::datagrams::MAX_ECHO_BYTES as u32,
            rate_bps: server.options.max_rate,
            udp: server.echoes.then(|| UdpLimits {
                rate_bps: server.options.most_udp(),
                rate_pps: MAX_PPS,
                payload_bytes: crate::datagrams::MAX_ECHO_BYTES as u32,
            }),
            applications: Some(ApplicationLimits { connections: application::MAX_CONNECTIONS }),
        };
        self.say(&ServerMessage::Ready {
            token,
            client: ends.client,
            udp_port: server.echoes.then_some(ends.server.port()),
            congestion: server.congestion.clone(),
            limits,
        })
        .await
    }

    async fn hear(&mut self, message: ClientMessage) -> Result<(), Over> {
        match message {
            ClientMessage::Hello { .. } | ClientMessage::Authenticate { .. } => {
                Err(Over::Refused("the session is open already".into()))
            }
            ClientMessage::Open(request) => self.open_flow(request).await,
            ClientMessage::Stop { flow } => {
                match self.flows.get(&flow) {
                    Some((Flow::Tcp(flow), _)) if flow.has_started() => flow.stop(),
                    Some(_) => self.end(flow, EndReason::Stopped).await?,
                    // It may have ended while the client asked for it.
                    None => {}
                }
                Ok(())
            }
            ClientMessage::CountEchoes => {
                let counted = {
                    let session = self.session.as_ref().expect("the session is open");
                    let echoes = session.echoes.lock().expect(HELD);
                    let trains = echoes.trains.values().copied().collect();
                    let met_others = self.test.met_others();
                    ServerMessage::Echoes { trains, limited: echoes.limited, met_others }
                };
                self.say(&counted).await
            }
            ClientMessage::Ping { id } => {
                self.say(&ServerMessage::Pong { id, t_ns: self.now_ns() }).await
            }
        }
    }

    async fn open_flow(&mut self, request: FlowRequest) -> Result<(), Over> {
        let number = request.flow;
        if let Err(reason) = self.check(&request) {
            return self.say(&ServerMessage::Error { flow: Some(number), reason }).await;
        }
        self.highest_flow = self.highest_flow.max(Some(number));
        self.test.count();
        if let Some(every) = request.sample_ns {
            self.sample_every(every);
        }
        let client = self.client.ends.client.ip();
        let (server, stop) = (&self.client.server, self.stop.child_token());
        let flow = if let Some(asked) = request.udp {
            let wanted = udp_use(&asked);
            let reserved = server.admission.reserve_udp(client, request.direction, wanted);
            let reserved = match reserved {
                Ok(reserved) => reserved,
                Err(left) => {
                    server.refused("UDP rate of an address", client);
                    let reason = format!(
                        "UDP load of {} bit/s, {} packets a second: of what this server allows one address in this \
                         direction {} bit/s and {} packets a second are left",
                        wanted.bps, wanted.pps, left.bps, left.pps
                    );
                    return self.say(&ServerMessage::Error { flow: Some(number), reason }).await;
                }
            };
            let flow = UdpFlow::new(
                (request, asked),
                (client, self.clock),
                reserved,
                server.metrics.udp.clone(),
                (stop, self.news_to.clone()),
            );
            server.sessions.sell_udp(&flow);
            server.tasks.spawn(Arc::clone(&flow).watch());
            Flow::Udp(flow)
        } else if request.application {
            let session = Arc::clone(self.session.as_ref().expect("the session is open"));
            let flow = ApplicationFlow::new(request, session, (stop, self.news_to.clone()));
            server.sessions.sell_application(&flow);
            server.tasks.spawn(Arc::clone(&flow).watch());
            Flow::Application(flow)
        } else {
            let flow = ServedFlow::new(request, client, stop, self.news_to.clone());
            server.sessions.sell(flow.ticket, &flow);
            Flow::Tcp(flow)
        };
        let ticket = flow.ticket();
        self.flows.insert(number, (flow, Instant::now() + TICKET));
        self.say(&ServerMessage::Opened { flow: number, ticket }).await
    }

    /// Whether a flow can be had.
    fn check(&self, request: &FlowRequest) -> Result<(), String> {
        let options = &self.client.server.options;
        let longest = options.max_duration.as_nanos() as u64;
        let congestion = &self.client.server.congestion;
        if self.highest_flow.is_some_and(|highest| request.flow <= highest) {
            return Err(format!("flow {}: numbers only go up", request.flow));
        }
        if self.flows.len() >= MAX_FLOWS {
            return Err(format!("there are {MAX_FLOWS} flows: more are not allowed at a time"));
        }
        if !(1..=longest).contains(&request.duration_ns) {
            let ns = request.duration_ns;
            return Err(format!("duration_ns {ns}: 1 to {longest} are allowed"));
        }
        if request.dscp > MAX_DSCP {
            return Err(format!("dscp {}: 0 to {MAX_DSCP} are allowed", request.dscp));
        }
        let shortest = MIN_SAMPLE_INTERVAL.as_nanos() as u64;
        if let Some(ns) = request.sample_ns.filter(|&ns| ns < shortest) {
            return Err(format!("sample_ns {ns}: {shortest} and more are allowed"));
        }
        if let Some(udp) = &request.udp {
            UdpFlow::check(udp)?;
        }
        let is_plain = request.udp.is_none() && request.bytes.is_none();
        if request.application && !(is_plain && request.direction.is_down()) {
            return Err("application: its answers come down, without `udp` and `bytes`".to_owned());
        }
        if let Some(name) = request.congestion.as_ref().filter(|name| !congestion.contains(name)) {
            let name: String = name.chars().take(16).collect();
            return Err(format!("congestion `{name}`: this server has {}", congestion.join(", ")));
        }
        Ok(())
    }

    /// Samples are for all flows at once, at the shortest interval that was asked for.
    fn sample_every(&mut self, ns: u64) {
        if self.sampler.as_ref().is_some_and(|(present, _)| *present <= ns) {
            return;
        }
        let period = Duration::from_nanos(ns);
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.sampler = Some((ns, ticks));
    }

    async fn sample(&mut self) -> Result<(), Over> {
        let t_ns = self.now_ns();
        let running = self.flows.values().map(|(flow, _)| flow).filter(|flow| flow.has_started());
        let wanted = running.filter(|flow| flow.wants_samples());
        let flows: Vec<_> = wanted.map(Flow::sample).collect();
        if flows.is_empty() {
            return Ok(());
        }
        self.say(&ServerMessage::Samples { t_ns, flows }).await
    }

    async fn pass_on(&mut self, news: News) -> Result<(), Over> {
        match news {
            News::Started { flow, congestion } => {
                let t_ns = self.now_ns();
                self.say(&ServerMessage::Started { flow, t_ns, congestion }).await
            }
            News::Ended { flow, reason } => self.end(flow, reason).await,
            News::Failed { flow, reason } => {
                self.forget(flow);
                self.say(&ServerMessage::Error { flow: Some(flow), reason }).await
            }
        }
    }

    /// Tickets that nobody used are void.
    async fn expire(&mut self) -> Result<(), Over> {
        let now = Instant::now();
        let late = |(flow, until): &(Flow, Instant)| !flow.has_started() && now > *until;
        let expired: Vec<_> =
            self.flows.iter().filter(|(_, flow)| late(flow)).map(|(&flow, _)| flow).collect();
        for flow in expired {
            self.end(flow, EndReason::NeverStarted).await?;
        }
        Ok(())
    }

    async fn end(&mut self, flow: u32, reason: EndReason) -> Result<(), Over> {
        let Some(flow) = self.forget(flow) else { return Ok(()) };
        let last = flow.sample();
        self.test.passed(last.bytes);
        let t_ns = self.now_ns();
        self.say(&ServerMessage::Done { last, t_ns, reason }).await
    }

    fn forget(&mut self, flow: u32) -> Option<Flow> {
        let (flow, _) = self.flows.remove(&flow)?;
        self.client.server.sessions.void(flow.ticket());
        match &flow {
            Flow::Tcp(_) => {}
            Flow::Udp(flow) => flow.stop(),
            Flow::Application(flow) => flow.stop(),
        }
        if !self.flows.values().any(|(other, _)| other.wants_samples()) {
            self.sampler = None;
        }
        Some(flow)
    }

    /// Ends everything that the session has.
    fn close(&mut self) {
        self.stop.cancel();
        for flow in self.flows.keys().copied().collect::<Vec<_>>() {
            if let Some(flow) = self.forget(flow) {
                self.test.passed(flow.sample().bytes);
            }
        }
        if let Some(session) = &self.session {
            self.client.server.sessions.close(session);
        }
    }

    async fn listen(&mut self) -> Result<ClientMessage, Over> {
        loop {
            let message = self.socket.next().await;
            if let Some(message) = decode(message)? {
                return Ok(message);
            }
        }
    }

    async fn say(&mut self, message: &ServerMessage) -> Result<(), Over> {
        let text = serde_json::to_string(message).expect("it is plain data");
        self.send(Message::text(text)).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        self.socket.send(message).await.map_err(|_| Over::Gone)
    }

    fn now_ns(&self) -> u64 {
        self.clock.now().as_nanos()
    }
}

/// The part of a UDP load in what its address may have.
fn udp_use(asked: &UdpRequest) -> UdpUse {
    let UdpRequest { rate_bps, payload_bytes, .. } = *asked;
    UdpUse { bps: rate_bps, pps: packets_per_second(rate_bps, payload_bytes) }
}

type Heard = Option<Result<Message, tokio_tungstenite::tungstenite::Error>>;

/// The message in a frame; `None` for those that are no message.
fn decode(heard: Heard) -> Result<Option<ClientMessage>, Over> {
    match heard {
        None | Some(Err(_) | Ok(Message::Close(_))) => Err(Over::Gone),
        Some(Ok(Message::Text(text))) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Over::Refused(format!("this is no message: {error}"))),
        Some(Ok(Message::Binary(_))) => Err(Over::Refused("messages are text".into())),
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
    }
}

const SOFTWARE: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));
const HELD: &str = "nothing panics while it is held";
const HANDSHAKE: Duration = Duration::from_secs(10);
const TICKET: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(2);
/// Keeps address translators awake and finds clients that are gone.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Five times what RRUL with all its classes opens.
const MAX_FLOWS: usize = 64;
/// Events that may wait for a session: two for each flow, so that flows need not wait for it.
const NEWS: usize = 2 * MAX_FLOWS;
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(10);
const MAX_DSCP: u8 = 63;
const ECN_BITS: u8 = 3;
/// Length of the longest burst of echoes, in ns of the echo rate: what a briefly busy machine sends at once.
const ECHO_BURST_NS: u64 = 50_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers that `rate_pps` lets a flood of one datagram each tenth of a millisecond have within `ms`.
    fn answered(rate_pps: u32, ms: u64) -> usize {
        let mut echoes = Echoes::default();
        (0..ms * 10).filter(|tenth| echoes.have_room(tenth * 100_000, rate_pps)).count()
    }

    #[test]
    fn a_flood_is_answered_at_the_rate_and_a_burst_of_50_ms() {
        assert_eq!(answered(100, 10), 6, "those of 0 to 50 ms, at once");
        assert_eq!(answered(100, 11), 7);
        assert_eq!(answered(100, 1_000), 6 + 99);
        assert_eq!(answered(100, 10_000), 6 + 999);
        assert_eq!(answered(2_000, 10_000), 101 + 19_999);
        assert_eq!(answered(1, 950), 1);
        assert_eq!(answered(1, 951), 2, "one that is due within 50 ms is answered");
        assert_eq!(answered(1, 1_950), 2);
    }

    #[test]
    fn what_comes_at_the_rate_is_answered_and_a_pause_saves_up_no_more_than_the_burst() {
        let mut echoes = Echoes::default();
        assert!((0..500).all(|n| echoes.have_room(n * 10_000_000, 100)));
        let later = 60_000_000_000;
        assert_eq!((0..500).filter(|_| echoes.have_room(later, 100)).count(), 6);
    }
}
