//! Weir's own protocol, from the other end.

mod client;

use std::time::Duration;

use client::{NDT7, Session, ask, ask_by_address, flow, serve, soon, websocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;
use weir_speedtest::protocol::weir::{
    ClientMessage, Direction, EchoReply, EchoRequest, EndReason, FlowRequest, ServerMessage, Token,
};

#[tokio::test]
async fn a_download_sends_what_was_asked_for_and_tells_of_it() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let request = FlowRequest {
        bytes: Some(3_000_000),
        dscp: 46,
        congestion: Some("reno".into()),
        sample_ns: Some(10_000_000),
        ..flow(1, Direction::Down, 60_000)
    };
    let ticket = session.ticket(request).await.unwrap();
    let mut stream = session.connect(ticket).await;
    let ServerMessage::Started { flow: 1, congestion, .. } = session.hear_news().await else {
        panic!("not started")
    };
    assert_eq!(congestion, "reno");
    let mut data = Vec::new();
    soon(stream.read_to_end(&mut data)).await.unwrap();
    assert_eq!(data.len(), 3_000_000);
    drop(stream);
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else {
        panic!("not done")
    };
    assert_eq!((last.flow, last.bytes, reason), (1, 3_000_000, EndReason::Bytes));
    let tcp = last.tcp.expect("the connection was there");
    // RFC 9293, section 3.4: the end takes a sequence number.
    assert_eq!(tcp.acked_bytes, tcp.sent_bytes - tcp.retransmitted_bytes + 1);
    assert!(tcp.acked_bytes > 3_000_000, "the answer to the upgrade and the end count too");
}

/// The number of tests by Weir's own protocol that the server has counted.
async fn counted(address: std::net::SocketAddr) -> Option<u32> {
    let metrics =
        String::from_utf8(ask_by_address(address, "GET /metrics", b"").await.body).unwrap();
    let count = |line: &str| {
        line.strip_prefix("weir_tests_total{protocol=\"weir\",direction=\"both\"} ")?.parse().ok()
    };
    metrics.lines().find_map(count)
}

/// Before a test its client asks, in a session of its own, what the server can do; and a session may be for its echo alone.
#[tokio::test]
async fn a_session_is_a_test_once_it_has_a_flow() {
    let (_server, address) = serve(&[]);
    drop(Session::open(address).await);
    let mut session = Session::open(address).await;
    assert_eq!(counted(address).await, None);
    for number in [1, 2] {
        session.ticket(flow(number, Direction::Up, 60_000)).await.unwrap();
        assert_eq!(counted(address).await, Some(1));
    }
}

#[tokio::test]
async fn an_upload_is_counted_to_the_byte() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(flow(5, Direction::Up, 60_000)).await.unwrap();
    let mut stream = session.connect(ticket).await;
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 5, .. }));
    stream.write_all(&vec![1; 1_234_567]).await.unwrap();
    stream.shutdown().await.unwrap();
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else {
        panic!("not done")
    };
    assert_eq!((last.bytes, reason), (1_234_567, EndReason::Closed));
}

#[tokio::test]
async fn samples_come_while_a_flow_runs_and_it_can_be_stopped() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let request = FlowRequest {
        sample_ns: Some(10_000_000),
        pacing_bps: Some(8_000_000),
        ..flow(1, Direction::Down, 60_000)
    };
    let ticket = session.ticket(request).await.unwrap();
    let mut stream = session.connect(ticket).await;
    let reading = tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
    });
    let (mut samples, mut before) = (0, 0);
    while samples < 5 {
        if let ServerMessage::Samples { t_ns, flows } = session.hear().await {
            assert_eq!(flows.len(), 1);
            assert!(t_ns > before);
            assert!(flows[0].tcp.as_ref().unwrap().cwnd > 0);
            (samples, before) = (samples + 1, t_ns);
        }
    }
    session.say(&ClientMessage::Stop { flow: 1 }).await;
    let ServerMessage::Done { reason, .. } = session.hear_news().await else { panic!("not done") };
    assert_eq!(reason, EndReason::Stopped);
    soon(reading).await.unwrap();
}

#[tokio::test]
async fn a_download_ends_with_its_time() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(flow(1, Direction::Down, 100)).await.unwrap();
    let mut stream = session.connect(ticket).await;
    let mut buffer = vec![0; 1 << 20];
    while soon(stream.read(&mut buffer)).await.unwrap() > 0 {}
    drop(stream);
    assert!(matches!(session.hear_news().await, ServerMessage::Started { .. }));
    let ServerMessage::Done { reason, .. } = session.hear_news().await else { panic!("not done") };
    assert_eq!(reason, EndReason::Duration);
}

#[tokio::test]
async fn browsers_have_flows_of_requests() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let up = session.ticket(flow(1, Direction::Up, 1_500)).await.unwrap();
    for _ in 0..2 {
        let answer = ask(address, &format!("POST /weir/v1/flow?ticket={up}"), &[7; 100_000]).await;
        assert_eq!(answer.status, 200);
    }
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 1, .. }));
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else {
        panic!("not done")
    };
    assert_eq!((last.bytes, reason), (200_000, EndReason::Duration));
    let paced = FlowRequest { pacing_bps: Some(80_000_000), ..flow(2, Direction::Down, 500) };
    let down = session.ticket(paced).await.unwrap();
    let answer = ask(address, &format!("GET /weir/v1/flow?ticket={down}"), b"").await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.len() > 10_000);
    let wrong = ask(address, &format!("POST /weir/v1/flow?ticket={down}"), b"x").await;
    assert_eq!(wrong.status, 403, "its time is over");
}

#[tokio::test]
async fn no_load_without_a_ticket() {
    let (_server, address) = serve(&[]);
    for query in ["", "?ticket=", "?ticket=0000000000000001", "?ticket=x"] {
        let answer = ask(address, &format!("GET /weir/v1/flow{query}"), b"").await;
        assert_eq!(answer.status, 403, "{query}");
    }
}

#[tokio::test]
async fn what_cannot_be_had_is_refused_in_one_sentence() {
    let (_server, address) = serve(&["--max-duration", "10s"]);
    let mut session = Session::open(address).await;
    let long = flow(1, Direction::Down, 10_001);
    assert_eq!(
        session.ticket(long).await.unwrap_err(),
        "duration_ns 10001000000: 1 to 10000000000 are allowed"
    );
    let marked = FlowRequest { dscp: 64, ..flow(1, Direction::Down, 1) };
    assert_eq!(session.ticket(marked).await.unwrap_err(), "dscp 64: 0 to 63 are allowed");
    let odd = FlowRequest { congestion: Some("no\nsuch".into()), ..flow(1, Direction::Down, 1) };
    let refusal = session.ticket(odd).await.unwrap_err();
    assert!(refusal.starts_with("congestion `no\nsuch`: this server has "), "{refusal}");
    let often = FlowRequest { sample_ns: Some(1), ..flow(1, Direction::Down, 1) };
    assert_eq!(
        session.ticket(often).await.unwrap_err(),
        "sample_ns 1: 10000000 and more are allowed"
    );
    session.ticket(flow(3, Direction::Down, 1)).await.unwrap();
    assert_eq!(
        session.ticket(flow(3, Direction::Down, 1)).await.unwrap_err(),
        "flow 3: numbers only go up"
    );
    for number in 4..67 {
        session.ticket(flow(number, Direction::Down, 1)).await.unwrap();
    }
    assert_eq!(
        session.ticket(flow(67, Direction::Down, 1)).await.unwrap_err(),
        "there are 64 flows: more are not allowed at a time"
    );
}

/// Sends a request of `length` bytes.
async fn send(socket: &UdpSocket, request: &EchoRequest, length: usize) {
    let mut datagram = vec![0; length];
    request.emit(&mut datagram);
    socket.send(&datagram).await.unwrap();
}

/// The next answer, and its length.
async fn answer(socket: &UdpSocket) -> (EchoReply, usize) {
    let mut answer = vec![0; 2048];
    let received = soon(socket.recv(&mut answer)).await.unwrap();
    (EchoReply::parse(&answer[..received]).unwrap(), received)
}

async fn echo(socket: &UdpSocket, request: &EchoRequest, length: usize) -> (EchoReply, usize) {
    send(socket, request, length).await;
    answer(socket).await
}

#[tokio::test]
async fn datagrams_are_echoed_with_stamps_and_counts() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    let request =
        |seq| EchoRequest { token: session.token, train: 2, seq, answer_tos: 0xb8, stamp: 99 };
    let (first, short) = echo(&socket, &request(0), 48).await;
    assert_eq!((first.seq, first.stamp, first.received, short), (0, 99, 1, 48));
    let (second, long) = echo(&socket, &request(7), 1400).await;
    assert_eq!((second.seq, second.received, long), (7, 2, 1400));
    assert!(first.received_ns <= first.sent_ns && first.sent_ns <= second.received_ns);
    // Longer than an Ethernet frame: it has no answer, and the one behind it has.
    send(&socket, &request(8), 1473).await;
    let (third, _) = echo(&socket, &request(9), 48).await;
    assert_eq!((third.seq, third.received), (9, 3));
    session.say(&ClientMessage::CountEchoes).await;
    let ServerMessage::Echoes { trains, limited, met_others } = session.hear().await else {
        panic!()
    };
    assert_eq!((trains.len(), limited, met_others), (1, 0, false));
    assert_eq!((trains[0].train, trains[0].received, trains[0].highest_seq), (2, 3, 9));
    session.say(&ClientMessage::Ping { id: 4 }).await;
    let ServerMessage::Pong { id: 4, t_ns } = session.hear().await else { panic!() };
    assert!(t_ns > third.sent_ns, "one clock for everything in a session");
}

#[tokio::test]
async fn tests_of_one_address_at_once_are_told_of_each_other() {
    let (_server, address) = serve(&[]);
    let (mut one, mut two) = (Session::open(address).await, Session::open(address).await);
    one.ticket(flow(1, Direction::Down, 60_000)).await.unwrap();
    assert!(!has_met_others(&mut one).await, "who has no load yet disturbs nobody");
    two.ticket(flow(1, Direction::Up, 60_000)).await.unwrap();
    assert!(has_met_others(&mut one).await && has_met_others(&mut two).await);
}

async fn has_met_others(session: &mut Session) -> bool {
    session.say(&ClientMessage::CountEchoes).await;
    let ServerMessage::Echoes { met_others, .. } = session.hear().await else { panic!() };
    met_others
}

#[tokio::test]
async fn nothing_is_echoed_to_strangers() {
    let (_server, address) = serve(&[]);
    let session = Session::open(address).await;
    let request = |token, seq| EchoRequest { token, train: 0, seq, answer_tos: 0, stamp: 0 };
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    // A token that nobody has.
    send(&socket, &request(Token(1), 0), 48).await;
    // A token of another address.
    let other = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    other.connect(address).await.unwrap();
    send(&other, &request(session.token, 1), 48).await;
    // Datagrams are answered in order: whoever is not answered by now never is.
    let (only, _) = echo(&socket, &request(session.token, 2), 48).await;
    assert_eq!((only.seq, only.received), (2, 1));
    let more = timeout(Duration::from_millis(100), other.recv(&mut [0; 48])).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn a_flood_of_datagrams_is_cut_to_the_rate() {
    let (_server, address) = serve(&["--max-echo-rate", "1"]);
    let mut session = Session::open(address).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(address).await.unwrap();
    for seq in 0..200 {
        let request = EchoRequest { token: session.token, train: 0, seq, answer_tos: 0, stamp: 0 };
        send(&socket, &request, 48).await;
    }
    let counting = async {
        loop {
            session.say(&ClientMessage::CountEchoes).await;
            let ServerMessage::Echoes { trains, limited, .. } = session.hear().await else {
                panic!()
            };
            let answered = trains.first().map_or(0, |train| train.received);
            if u64::from(answered) + limited == 200 {
                break (answered, limited);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (answered, limited) = soon(counting).await;
    for _ in 0..answered {
        answer(&socket).await;
    }
    let more = timeout(Duration::from_millis(100), socket.recv(&mut [0; 48])).await;
    assert!(more.is_err(), "{more:?}");
    // One a second, for far less than a minute.
    assert!(limited > 100, "{limited}");
}

#[tokio::test]
async fn a_secret_is_asked_for_and_checked() {
    let file = std::env::temp_dir().join(format!("weir-secret-{}", std::process::id()));
    std::fs::write(&file, "correct horse\n").unwrap();
    let (_server, address) = serve(&["--auth", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert!(Session::open_with(address, Some("correct horse")).await.is_ok());
    let refusal = |result: Result<Session, String>| result.err().unwrap();
    let wrong = Session::open_with(address, Some("incorrect horse")).await;
    assert_eq!(refusal(wrong), "the secret is wrong");
    let none = Session::open_with(address, None).await;
    assert_eq!(refusal(none), "this server asks for its secret first");
    // Others have it in the request, or are refused.
    assert_eq!(ask(address, "GET /__down?bytes=10", b"").await.status, 401);
    assert_eq!(
        ask(address, "GET /__down?bytes=10&access_token=correct+horse", b"").await.status,
        200
    );
    let ndt7 = |query: &str| format!("/ndt/v7/download{query}");
    assert_eq!(websocket(address, &ndt7(""), NDT7).await.err(), Some(401));
    let known = ndt7("?access_token=correct%20horse");
    assert!(websocket(address, &known, NDT7).await.is_ok());
}

#[tokio::test]
async fn another_version_is_refused() {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    let (_server, address) = serve(&[]);
    for (words, reason) in [
        (
            r#"{"type":"hello","version":2,"client":"x","nonce":"0000000000000000"}"#,
            "version 2: this server speaks version 1",
        ),
        (r#"{"type":"ping","id":1}"#, "a session begins with hello"),
        ("nonsense", "this is no message: expected ident at line 1 column 2"),
    ] {
        let mut socket = websocket(address, "/weir/v1", "weir.v1").await.unwrap();
        socket.send(Message::text(words)).await.unwrap();
        let Message::Text(answer) = soon(socket.next()).await.unwrap().unwrap() else { panic!() };
        let expected = ServerMessage::Error { flow: None, reason: reason.into() };
        assert_eq!(serde_json::from_str::<ServerMessage>(&answer).unwrap(), expected);
    }
}
