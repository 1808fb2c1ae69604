//! Everything that a server does with bytes of strangers, and what must hold then. The fuzz targets and the
//! replay of their corpus share this.

use weir_speedtest::protocol::irtt::{self, Answer, IrttRequest, Stamp, Window, opened};
use weir_speedtest::protocol::librespeed::{self, Endpoint};
use weir_speedtest::protocol::ookla::{self, Command, LossCount, LossDatagram, LossReport};
use weir_speedtest::protocol::weir::{
    ClientMessage, ECHO_BYTES, EchoReply, EchoRequest, LOAD_BYTES, LoadDatagram, Mac,
    ServerMessage, Token, echoes,
};
use weir_speedtest::protocol::{Query, cloudflare, kernel, ndt7, throughput1};

/// Reads `data` as every datagram that there is, and answers it.
pub fn datagrams(data: &[u8]) {
    echo(data);
    load(data);
    if let Some(loss) = LossDatagram::parse(data) {
        let mut count = LossCount::default();
        count.arrived(loss.index);
        count.arrived(loss.index);
        assert_eq!(count.answer(), format!("PLOSS 2 1 {}\n", loss.index));
        assert_eq!(LossDatagram::parse(loss.text(1).as_bytes()), Some(loss));
    }
    for key in [None, Some(KEY)] {
        irtt(data, key);
    }
    let info = kernel::tcp_info(data);
    assert!(info.len() <= 50);
    let mut window = Window::default();
    for four in data.chunks_exact(4) {
        let seen = window.arrived(u32::from_le_bytes(four.try_into().unwrap()));
        assert!(seen == 0 || seen & 1 == 1, "the newest has arrived");
    }
}

fn echo(data: &[u8]) {
    if let Some(request) = EchoRequest::parse(data) {
        assert!(echoes(data));
        assert!(EchoReply::parse(data).is_none(), "never both");
        let mut datagram = data.to_vec();
        EchoReply::answer(&mut datagram, 3, 7, 1, 2);
        assert_eq!(datagram.len(), data.len());
        let reply = EchoReply::parse(&datagram).expect("an answer");
        assert_eq!(
            (reply.token, reply.seq, reply.train),
            (request.token, request.seq, request.train)
        );
        assert_eq!((reply.stamp, reply.received, reply.sent_ns), (request.stamp, 7, 2));
        assert_eq!(datagram[ECHO_BYTES..], data[ECHO_BYTES..]);
        let mut again = vec![0; ECHO_BYTES];
        request.emit(&mut again);
        assert_eq!(EchoRequest::parse(&again), Some(request));
    }
    let _ = EchoReply::parse(data);
}

fn load(data: &[u8]) {
    let Some(load) = LoadDatagram::parse(data) else { return };
    assert!(echoes(data));
    assert!(EchoRequest::parse(data).is_none() && EchoReply::parse(data).is_none(), "never both");
    let mut again = vec![0; LOAD_BYTES];
    load.emit(&mut again);
    assert_eq!(LoadDatagram::parse(&again), Some(load));
}

fn irtt(data: &[u8], key: Option<&[u8]>) {
    match IrttRequest::parse(data, key) {
        None | Some(IrttRequest::Close { .. }) => {}
        Some(IrttRequest::Open { params, .. }) => {
            let params = params.bounded(1_000_000_000, 1_000_000, 1472);
            assert!(params.duration_ns <= 1_000_000_000 && params.interval_ns >= 1_000_000);
            assert!((0..=1472).contains(&params.length));
            let reply = opened(7, &params, false, key);
            assert!(IrttRequest::parse(&reply, key).is_none(), "an answer is no request");
        }
        Some(IrttRequest::Echo { .. }) => {
            // Every combination of what can be asked for.
            for flags in 0..64 {
                let params = irtt::Params {
                    received_stats: flags & 3,
                    stamp_at: if flags & 48 == 48 { 4 } else { (flags >> 2) & 3 },
                    clock: (flags >> 4) & 3,
                    length: i64::from(data[data.len() - 1]),
                    ..irtt::Params::default()
                };
                let stamp = Stamp { wall: u64::MAX, monotonic: u64::MAX };
                let said = Answer { received: 1, window: 1, arrived: stamp, leaves: stamp };
                let mut datagram = data.to_vec();
                let answer = irtt::answer(&mut datagram, &params, &said, false, key);
                if let Some(answer) = answer {
                    assert!(answer.len() <= data.len(), "an answer is never longer");
                    assert!(IrttRequest::parse(answer, key).is_none(), "an answer is no request");
                }
            }
        }
    }
}

/// Reads `data` as every text that there is.
pub fn words(data: &[u8]) {
    if let Ok(Command::Upload { total, rest }) = Command::parse(data) {
        assert_eq!(total - rest, data.len() as u64 + 1);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(message) = serde_json::from_str::<ClientMessage>(text) {
        let again = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<ClientMessage>(&again).unwrap(), message);
    }
    if let Ok(message) = serde_json::from_str::<ServerMessage>(text) {
        let again = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<ServerMessage>(&again).unwrap(), message);
    }
    if let Ok(token) = text.parse::<Token>() {
        assert!(token.to_string().eq_ignore_ascii_case(text));
    }
    if let Ok(mac) = text.parse::<Mac>() {
        assert!(mac.to_string().eq_ignore_ascii_case(text));
    }
    if let Some(report) = LossReport::parse(text) {
        assert!(report.loss().is_none_or(|loss| (0.0..1.0).contains(&loss)));
    }
    assert!(ookla::image_bytes(text).is_none_or(|bytes| bytes > 200_000));
    let _ = Endpoint::of(text);
    assert!(cloudflare::server_time(text).is_none_or(|ns| ns > 0));
    let query = Query::new(text);
    assert!(
        cloudflare::bytes(query).is_ok_and(|bytes| bytes <= 10_000_000_000)
            || query.get("bytes").is_some()
    );
    assert!(
        librespeed::garbage_bytes(query).is_ok_and(|bytes| bytes <= 1 << 30)
            || query.get("ckSize").is_some()
    );
    let _ = ndt7::Options::parse(query);
    if let Ok(options) = throughput1::Options::parse(query) {
        assert!(options.duration_ns <= throughput1::MAX_STREAM_NS);
    }
}

const KEY: &[u8] = b"secret key";
