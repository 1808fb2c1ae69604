//! Messages over the WebSocket of a session: one JSON object each, `type` names the kind.
//!
//! Both sides pass over fields that they do not know, so that fields can be added within a version.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use weir_core::Direction;

use super::{Mac, Token};

/// Messages of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// Begins; answered by [`ServerMessage::Welcome`].
    Hello {
        /// The version that it speaks.
        version: u32,
        /// Name and version of the client, for the log.
        client: String,
        /// Random bits of the client.
        nonce: Token,
    },
    /// Answers the challenge, where a secret is asked for; answered by [`ServerMessage::Ready`].
    Authenticate {
        /// [`Secret::answer`](super::Secret::answer) of the server's challenge and the client's nonce.
        mac: Mac,
    },
    /// Asks for a flow; answered by [`ServerMessage::Opened`].
    Open(FlowRequest),
    /// Ends a flow before its time; answered by [`ServerMessage::Done`].
    Stop {
        /// Number of the flow.
        flow: u32,
    },
    /// Asks how many datagrams arrived; answered by [`ServerMessage::Echoes`].
    CountEchoes,
    /// Asks for an answer at once, over this connection; answered by [`ServerMessage::Pong`].
    Ping {
        /// Number that comes back with the answer.
        id: u32,
    },
}

/// Messages of the server. Times are nanoseconds on its clock, which starts with the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// Answers [`ClientMessage::Hello`].
    Welcome {
        /// The version that both speak from here on.
        version: u32,
        /// The server's name and version.
        server: String,
        /// Challenge that [`ClientMessage::Authenticate`] answers; `None` if the server asks for no secret.
        challenge: Option<Token>,
    },
    /// The session is open.
    Ready {
        /// Names the session, in datagrams too.
        token: Token,
        /// The client's address as the server sees it. Datagrams must come from the same one.
        client: SocketAddr,
        /// Where datagrams go: a port of the address that this connection goes to. `None`: nowhere.
        udp_port: Option<u16>,
        /// Congestion controls that a flow may ask for.
        congestion: Vec<String>,
        /// Limits that the server sets.
        limits: Limits,
    },
    /// A flow may begin: its connection says `ticket` within [`Limits::ticket_ns`].
    Opened {
        /// Number of the flow.
        flow: u32,
        /// Token by which the flow's connection names the flow.
        ticket: Token,
    },
    /// A flow's connection has come: now it runs.
    Started {
        /// Number of the flow.
        flow: u32,
        /// Time of the start, in ns on the server's clock.
        t_ns: u64,
        /// The congestion control that this end has.
        congestion: String,
    },
    /// How flows are doing.
    Samples {
        /// Time of the samples, in ns on the server's clock.
        t_ns: u64,
        /// Samples of all flows that run.
        flows: Vec<FlowSample>,
    },
    /// A flow has ended.
    Done {
        /// State of the flow at its end.
        last: FlowSample,
        /// Time of the end, in ns on the server's clock.
        t_ns: u64,
        /// Reason of the end.
        reason: EndReason,
    },
    /// Answers [`ClientMessage::CountEchoes`].
    Echoes {
        /// All trains of which something arrived.
        trains: Vec<EchoCount>,
        /// Requests that were not answered because there were more than [`Limits::echo_rate_pps`].
        limited: u64,
        /// Whether another test of the client's address has loaded its line meanwhile; older servers do not tell.
        #[serde(default)]
        met_others: bool,
    },
    /// Answers [`ClientMessage::Ping`].
    Pong {
        /// Number of the [`ClientMessage::Ping`].
        id: u32,
        /// Time of the answer, in ns on the server's clock.
        t_ns: u64,
    },
    /// A request cannot be done. Without a flow this ends the session.
    Error {
        /// Number of the flow that it is about.
        flow: Option<u32>,
        /// Why, in one sentence.
        reason: String,
    },
}

/// A flow: data over one TCP connection, or datagrams, in one direction; or an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRequest {
    /// The client's number for it, one that no flow of the session had.
    pub flow: u32,
    /// Direction of the data, as the client sees it.
    pub direction: Direction,
    /// How long data is sent, in nanoseconds.
    pub duration_ns: u64,
    /// Bytes that are sent at most, for a download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Congestion control of the server's end; its system's default if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// DSCP of the packets from the server, 0 to 63.
    #[serde(default)]
    pub dscp: u8,
    /// Highest rate of the server's end in bit/s, for a download (`SO_MAX_PACING_RATE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Data that may wait unsent in the server's socket, in bytes (`TCP_NOTSENT_LOWAT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent_bytes: Option<u32>,
    /// Nanoseconds between samples; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_ns: Option<u64>,
    /// The load, if it is one over UDP. Servers that do not know it ([`Limits::udp`]) must not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpRequest>,
    /// Whether it is an application: connections and names that are asked for as the client goes along. Servers that do not
    /// know it ([`Limits::applications`]) must not be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub application: bool,
}

/// A UDP load: datagrams of one length ([`LoadDatagram`](super::LoadDatagram)) that leave whether they arrive or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpRequest {
    /// Rate of the UDP payload while it sends, in bit/s.
    pub rate_bps: u64,
    /// UDP payload of a packet, in bytes.
    pub payload_bytes: u32,
    /// When packets leave.
    pub pattern: UdpPattern,
    /// Least time that the receiver's jitter buffer holds packets back; without a jitter buffer if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_buffer_ns: Option<u64>,
    /// Seed of what is random in the times at which packets leave.
    pub seed: u64,
}

/// When the packets of a UDP load leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpPattern {
    /// One after the other at the rate.
    Constant,
    /// At random times that do not depend on one another, at the rate in the mean.
    Poisson,
    /// At the rate for a fixed time, then none for a fixed time.
    Bursts {
        /// Length of a burst, in nanoseconds.
        on_ns: u64,
        /// Time without packets behind a burst, in nanoseconds.
        off_ns: u64,
    },
    /// At the rate and silent in turns, each for a time drawn from an exponential distribution.
    OnOff {
        /// Mean time with packets, in nanoseconds.
        on_ns: u64,
        /// Mean time without packets, in nanoseconds.
        off_ns: u64,
    },
}

/// Why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The flow's time was over.
    Duration,
    /// All bytes were sent.
    Bytes,
    /// The client closed its connection.
    Closed,
    /// The client asked for it.
    Stopped,
    /// No connection came in time.
    NeverStarted,
    /// The connection broke, or nothing moved on it for too long.
    Broken,
}

/// Limits that the server sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Flows at a time.
    pub flows: u32,
    /// Duration of a flow.
    pub duration_ns: u64,
    /// Duration of a session.
    pub session_ns: u64,
    /// How long a ticket is good.
    pub ticket_ns: u64,
    /// The shortest interval between samples.
    pub sample_ns: u64,
    /// Datagrams a second that are echoed, and names that are answered; [`ServerMessage::Echoes`] counts echoes beyond.
    pub echo_rate_pps: u32,
    /// The longest datagram that is echoed, in bytes.
    pub echo_bytes: u32,
    /// Rate of all that this client's address sends, and of all that it is sent, in bit/s.
    pub rate_bps: Option<u64>,
    /// Limits of UDP loads; `None` from servers that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpLimits>,
    /// Limits of applications; `None` from servers that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applications: Option<ApplicationLimits>,
}

/// Limits of each application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationLimits {
    /// Connections at a time, those that the client has closed and the server has not heard of included.
    pub connections: u32,
}

/// Limits of the UDP loads of an address, in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpLimits {
    /// UDP payload of all of them together, in bit/s.
    pub rate_bps: u64,
    /// Packets of all of them together, a second.
    pub rate_pps: u64,
    /// The longest UDP payload of a packet, in bytes.
    pub payload_bytes: u32,
}

/// The state of a flow at the server's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSample {
    /// Number of the flow.
    pub flow: u32,
    /// Bytes that this end's application has handed to TCP, or has got from it; of UDP loads the payload sent, or arrived,
    /// each packet once.
    pub bytes: u64,
    /// `TCP_INFO` of its connection; `None` for a flow of several HTTP requests without one now, and for UDP loads.
    pub tcp: Option<TcpSample>,
    /// What the server's end of a UDP load counted since the flow's last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpSample>,
}

/// What the server's end of a UDP load counted since the flow's last sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpSample {
    /// Of a download.
    Sent(UdpSent),
    /// Of an upload.
    Received(UdpReceived),
}

/// What a sender counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpSent {
    /// Packets sent.
    pub packets: u64,
    /// Packets left out because they were too late.
    pub skipped: u64,
    /// How much later than planned a packet was sent, at most, in nanoseconds.
    pub late_max_ns: u64,
}

/// What a receiver counted. Delays are from the sender's stamp to the arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpReceived {
    /// Packets that arrived, each once.
    pub packets: u64,
    /// Packets found missing, less those that had been and came.
    pub lost: i64,
    /// Mean delay, in nanoseconds; `None` if nothing arrived.
    pub delay_mean_ns: Option<u64>,
    /// Longest delay, in nanoseconds; `None` if nothing arrived.
    pub delay_max_ns: Option<u64>,
    /// Interarrival jitter now, in nanoseconds (RFC 3550, section 6.4.1).
    pub jitter_ns: u64,
    /// Packets too late to be played out, and the sum over the others of the time from sending to playout in
    /// nanoseconds; `None` without a jitter buffer.
    pub buffer: Option<(u64, u64)>,
}

/// State of a connection in the server's kernel (`TCP_INFO`).
///
/// What an older kernel does not tell is 0, or `None` where 0 would mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow start threshold, in segments; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Segments in the network.
    pub in_flight: u32,
    /// Sender's maximum segment size in bytes.
    pub mss: u32,
    /// Smoothed round trip; `None` before the first.
    pub srtt_ns: Option<u64>,
    /// Mean deviation of the round trip, in nanoseconds.
    pub rttvar_ns: u64,
    /// The shortest round trip of late; `None` before the first.
    pub min_rtt_ns: Option<u64>,
    /// Retransmission timeout.
    pub rto_ns: u64,
    /// Rate at which data is, or would be, paced; 0 before the first round trip.
    pub pacing_rate_bps: u64,
    /// The kernel's estimate of the rate at which data is delivered.
    pub delivery_rate_bps: u64,
    /// Bytes of data sent, repetitions included.
    pub sent_bytes: u64,
    /// Bytes of data sent again, a part of [`sent_bytes`](Self::sent_bytes).
    pub retransmitted_bytes: u64,
    /// Bytes of data that were acknowledged.
    pub acked_bytes: u64,
    /// Bytes of data that arrived in order.
    pub received_bytes: u64,
    /// Data segments that arrived.
    pub received_segments: u32,
    /// Segments sent again.
    pub retransmits: u64,
    /// Expirations of the retransmission timer; `None` before Linux 6.7.
    pub timeouts: Option<u64>,
    /// Time with data to send.
    pub busy_ns: u64,
    /// Time stalled by the receive window, a part of [`busy_ns`](Self::busy_ns).
    pub receive_window_limited_ns: u64,
    /// Time stalled by the send buffer, a part of [`busy_ns`](Self::busy_ns).
    pub send_buffer_limited_ns: u64,
    /// Whether both ends agreed on ECN.
    pub ecn: bool,
    /// Segments that arrived at the other end with a CE mark, as it says.
    pub delivered_ce: u32,
}

/// The requests of one train of datagrams that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoCount {
    /// Number of the train of probes.
    pub train: u8,
    /// Requests of the train that arrived.
    pub received: u32,
    /// Requests of the train that arrived with a CE mark.
    pub ce: u32,
    /// The highest sequence number.
    pub highest_seq: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_flat_objects_with_a_type() {
        let hello: ClientMessage = serde_json::from_str(
            r#"{"type":"hello","version":1,"client":"x","nonce":"00000000000000ff","more":[]}"#,
        )
        .unwrap();
        assert_eq!(
            hello,
            ClientMessage::Hello { version: 1, client: "x".into(), nonce: Token(255) }
        );
        let open: ClientMessage = serde_json::from_str(
            r#"{"type":"open","flow":3,"direction":"down","duration_ns":1000}"#,
        )
        .unwrap();
        let ClientMessage::Open(request) = open else { panic!("{open:?}") };
        assert_eq!((request.flow, request.dscp, request.sample_ns), (3, 0, None));
        assert_eq!(
            serde_json::to_string(&ServerMessage::Pong { id: 7, t_ns: 1 }).unwrap(),
            r#"{"type":"pong","id":7,"t_ns":1}"#
        );
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for wrong in [
            "",
            "{}",
            r#"{"type":"format_disk"}"#,
            r#"{"type":"ping","id":-1}"#,
            r#"{"type":"authenticate","mac":"00"}"#,
        ] {
            assert!(serde_json::from_str::<ClientMessage>(wrong).is_err(), "{wrong}");
        }
    }
}
