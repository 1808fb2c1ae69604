//! One UDP load. What it sends goes to a port that has shown that it is the client's, and only while that is heard of.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use socket2::Socket;
use tokio::sync::mpsc;
use tokio::time::Duration as WallDuration;
use tokio_util::sync::CancellationToken;
use weir_core::{Duration, Seed, Time};
use weir_scenario::{IpVersion, UdpLoad, UdpReceiver, UdpSender};
use weir_sockets::Clock;
use weir_sockets::load::udp::{packets_per_second, udp_load, udp_received, udp_sent};
use weir_sockets::sys::message;
use weir_speedtest::protocol::weir::{
    Direction, FlowRequest, FlowSample, LOAD_BYTES, LoadDatagram, Token, UdpPattern, UdpRequest,
    UdpSample,
};

use super::News;
use super::lifetime::Lifetime;
use super::port::{Asked, ProvenPort};
use crate::admission::Reserved;
use crate::data;
use crate::datagrams::MAX_ECHO_BYTES;
use crate::metrics::UdpBytes;

/// A UDP load that was asked for.
pub(crate) struct UdpFlow {
    pub request: FlowRequest,
    pub ticket: Token,
    load: UdpLoad,
    client: IpAddr,
    /// The session's clock.
    clock: Clock,
    state: Mutex<State>,
    life: Lifetime,
    /// Its part of what the client's address may have.
    reserved: Reserved,
    counted: UdpBytes,
}

struct State {
    /// When it began.
    begun: Option<Time>,
    /// UDP payload that was sent, or arrived, each packet once.
    bytes: u64,
    end: End,
}

/// This end of the load.
enum End {
    Sends(Sends),
    Receives(UdpReceiver),
}

/// The sending end.
struct Sends {
    /// When packets are due; from the beginning on.
    sender: Option<UdpSender>,
    /// Where it goes.
    port: ProvenPort,
    /// When the client's last sign of life came.
    heard: Time,
    packet: Vec<u8>,
}

/// What became of a packet that was due.
pub(crate) enum Due {
    /// The next is due then.
    Next(Time),
    Over,
}

impl UdpFlow {
    /// The load that `request` asks for, which has a part in it for UDP.
    pub fn new(
        (request, asked): (FlowRequest, UdpRequest),
        (client, clock): (IpAddr, Clock),
        reserved: Reserved,
        counted: UdpBytes,
        (stop, news): (CancellationToken, mpsc::Sender<News>),
    ) -> Arc<Self> {
        let load = udp_load(&asked);
        let ticket = Token(data::random());
        let end = match request.direction {
            Direction::Down => {
                let packet = data::bytes(load.payload_bytes as usize).to_vec();
                End::Sends(Sends {
                    sender: None,
                    port: ProvenPort::default(),
                    heard: Time::ZERO,
                    packet,
                })
            }
            Direction::Up => End::Receives(UdpReceiver::new(&load)),
        };
        Arc::new(Self {
            ticket,
            load,
            client,
            clock,
            state: Mutex::new(State { begun: None, bytes: 0, end }),
            life: Lifetime::new(stop, news),
            reserved,
            counted,
            request,
        })
    }

    /// Whether a load can be had: all but what depends on the others of its address.
    pub fn check(asked: &UdpRequest) -> Result<(), String> {
        let UdpRequest { rate_bps, payload_bytes, pattern, jitter_buffer_ns, .. } = *asked;
        if !(LOAD_BYTES..=MAX_ECHO_BYTES).contains(&(payload_bytes as usize)) {
            return Err(format!(
                "udp.payload_bytes {payload_bytes}: {LOAD_BYTES} to {MAX_ECHO_BYTES} are allowed"
            ));
        }
        if rate_bps == 0 || packets_per_second(rate_bps, payload_bytes) > MAX_PPS {
            return Err(format!(
                "udp.rate_bps {rate_bps} in packets of {payload_bytes} bytes: a rate above 0 and up to {MAX_PPS} packets \
                 a second are allowed"
            ));
        }
        if let UdpPattern::Bursts { on_ns: 0, .. } | UdpPattern::OnOff { on_ns: 0, .. } = pattern {
            return Err("udp.pattern: on_ns above 0 is allowed".to_owned());
        }
        let longest = UdpLoad::MAX_JITTER_BUFFER.as_nanos();
        if let Some(ns) = jitter_buffer_ns.filter(|&ns| ns > longest) {
            return Err(format!("udp.jitter_buffer_ns {ns}: 0 to {longest} are allowed"));
        }
        Ok(())
    }

    pub fn is_of(&self, client: IpAddr) -> bool {
        self.client == client.to_canonical() && !self.life.is_stopped()
    }

    pub fn has_started(&self) -> bool {
        self.state().begun.is_some()
    }

    pub fn stop(&self) {
        self.life.stop();
    }

    /// What was counted since the last call.
    pub fn sample(&self) -> FlowSample {
        let flow = self.request.flow;
        let mut state = self.state();
        let udp = match &mut state.end {
            End::Sends(Sends { sender: Some(sender), .. }) => {
                Some(UdpSample::Sent(udp_sent(&sender.take_counts())))
            }
            End::Sends(Sends { sender: None, .. }) => None,
            End::Receives(receiver) => {
                let row = receiver.row(Time::ZERO, flow, None);
                Some(UdpSample::Received(udp_received(&row)))
            }
        };
        FlowSample { flow, bytes: state.bytes, tcp: None, udp }
    }

    /// A datagram from `port` asks for the load, or says that it still listens.
    pub fn asked(&self, port: SocketAddr, asked: Option<IpAddr>, cookie: u64) -> Asked {
        let mut state = self.state();
        let now = self.clock.now();
        let End::Sends(sends) = &mut state.end else { return Asked::Unknown };
        let becomes = sends.port.asked(port, asked, cookie, now);
        if matches!(becomes, Asked::Begins | Asked::Heard) {
            sends.heard = now;
        }
        if becomes == Asked::Begins {
            let span = (now, now + Duration::from_nanos(self.request.duration_ns));
            let seed = Seed::new(self.request.udp.map_or(0, |udp| udp.seed));
            sends.sender = Some(self.load.sender(self.request.flow, span, seed));
            state.begun = Some(now);
            drop(state);
            self.life.begins();
        }
        becomes
    }

    /// Packet number `seq` of an upload arrived, which was sent at `sent` of the session's clock. False if there is none.
    pub fn arrived(&self, seq: u64, sent: Time, real_ns: Option<u64>, length: usize) -> bool {
        if length != self.load.payload_bytes as usize {
            return false;
        }
        let arrived = self.clock.of_stamp(real_ns);
        let delay = arrived.checked_since(sent).unwrap_or(Duration::ZERO).min(MAX_DELAY);
        let mut state = self.state();
        let State { begun, bytes, end } = &mut *state;
        let End::Receives(receiver) = end else { return false };
        if receiver.on_packet(seq, delay, arrived) {
            *bytes += length as u64;
        }
        self.counted.received.inc_by(length as u64);
        let first = begun.is_none();
        begun.get_or_insert(arrived);
        drop(state);
        if first {
            self.life.begins();
        }
        self.reserved.passed(Direction::Up, self.ip_len());
        true
    }

    /// Sends the packet that is due, and says when the next one is.
    pub fn send_due(&self, socket: &Socket) -> Due {
        if self.life.is_stopped() {
            return Due::Over;
        }
        let mut state = self.state();
        // Not before: a sign of life that comes meanwhile would be later than now.
        let now = self.clock.now();
        let State { bytes, end: End::Sends(sends), .. } = &mut *state else { return Due::Over };
        let (Some(sender), Some(port)) = (&mut sends.sender, sends.port.get()) else {
            return Due::Over;
        };
        let Some(next) = sender.next() else { return Due::Over };
        if now.since(sends.heard) > SILENCE {
            // Nobody listens, for all that is known: it goes on when there is a sign of life.
            return Due::Next(next.max(now + LOOK));
        }
        let Some(seq) = sender.take_due(now) else {
            return sender.next().map_or(Due::Over, Due::Next);
        };
        let after = sender.next();
        let sent_ns = now.as_nanos();
        LoadDatagram::Packet { ticket: self.ticket, seq, sent_ns }.emit(&mut sends.packet);
        let tos = self.request.dscp << 2;
        let length = sends.packet.len() as u64;
        // What the kernel would not take is as lost as what a queue drops.
        let _ = message::send_from(socket, &sends.packet, port.asked, port.address, tos);
        *bytes += length;
        drop(state);
        self.counted.sent.inc_by(length);
        self.reserved.passed(Direction::Down, self.ip_len());
        after.map_or(Due::Over, Due::Next)
    }

    /// How long until `time` of the session's clock.
    pub fn until(&self, time: Time) -> Duration {
        self.clock.until(time)
    }

    /// Tells when its time is over. A receiver waits for what is under way.
    pub async fn watch(self: Arc<Self>) {
        let is_upload = self.request.direction == Direction::Up;
        let more = if is_upload { FAREWELL } else { WallDuration::ZERO };
        self.life.watch(&self.request, more).await;
    }

    /// Bytes of an IP packet.
    fn ip_len(&self) -> usize {
        let version = if self.client.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        self.load.ip_len(version) as usize
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

/// Packets a second of all UDP loads of an address, in each direction: far fewer than keep the echo from its answers.
pub(crate) const MAX_PPS: u64 = 50_000;
/// How long a client may be silent, which tells every 100 ms that it listens, before nothing is sent to it.
const SILENCE: Duration = Duration::from_secs(1);
/// How soon a sign of life is seen then.
const LOOK: Duration = Duration::from_millis(20);
/// How long what is under way at the end may take.
const FAREWELL: WallDuration = WallDuration::from_secs(1);
/// Longest delay that counts: sums of what a client may claim stay numbers.
const MAX_DELAY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use super::*;
    use crate::admission::{Admission, Bounds, UdpUse};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// A download that lasts for the whole of a test, in many packets a second.
    fn download() -> Arc<UdpFlow> {
        let bounds = Bounds {
            connections: 1,
            connections_per_address: 1,
            tests: 1,
            tests_per_address: 1,
            rate_bps: None,
            udp: UdpUse { bps: u64::MAX, pps: u64::MAX },
        };
        let wanted = UdpUse { bps: 8_000_000, pps: 10_000 };
        let reserved = Admission::new(bounds).reserve_udp(CLIENT, Direction::Down, wanted).unwrap();
        let asked = UdpRequest {
            rate_bps: 8_000_000,
            payload_bytes: 100,
            pattern: UdpPattern::Constant,
            jitter_buffer_ns: None,
            seed: 1,
        };
        let request = FlowRequest {
            flow: 0,
            direction: Direction::Down,
            duration_ns: 3_600_000_000_000,
            bytes: None,
            congestion: None,
            dscp: 0,
            pacing_bps: None,
            unsent_bytes: None,
            sample_ns: None,
            udp: Some(asked),
            application: false,
        };
        let (news, _) = mpsc::channel(1);
        let ends = (CancellationToken::new(), news);
        let place = (CLIENT, Clock::starting_in(Duration::ZERO));
        UdpFlow::new((request, asked), place, reserved, UdpBytes::default(), ends)
    }

    #[test]
    fn a_sign_of_life_may_come_while_a_packet_is_sent() {
        let flow = download();
        let socket = std::net::UdpSocket::bind((CLIENT, 0)).unwrap();
        let port = socket.local_addr().unwrap();
        let Asked::Cookie(cookie) = flow.asked(port, Some(CLIENT), 0) else { panic!("no cookie") };
        assert_eq!(flow.asked(port, Some(CLIENT), cookie), Asked::Begins);
        let socket = Socket::from(socket);
        thread::scope(|scope| {
            let hears = scope.spawn(|| {
                for _ in 0..300_000 {
                    assert_eq!(flow.asked(port, Some(CLIENT), cookie), Asked::Heard);
                }
            });
            while !hears.is_finished() {
                assert!(matches!(flow.send_due(&socket), Due::Next(_)));
            }
        });
    }
}
