//! Applications from the other end, and those who would misuse them.

mod client;

use std::net::SocketAddr;
use std::time::Duration;

use client::datagrams::{cookie_for, next, say, socket_at};
use client::{Session, ask, flow, serve, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use weir_speedtest::protocol::weir::{
    APPLICATION_ANSWER_BYTES, ClientMessage, Direction, EndReason, FlowRequest, LOAD_BYTES,
    LoadDatagram, ServerMessage, Token,
};

const QUERY: usize = 51;
const REPLY: usize = 120;

fn application(number: u32, ms: u64) -> FlowRequest {
    FlowRequest { application: true, ..flow(number, Direction::Down, ms) }
}

/// The first request of a connection, for `answer` bytes.
async fn open(server: SocketAddr, ticket: Token, answer: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let request = format!(
        "GET /weir/v1/flow?ticket={ticket}&answer={answer} HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\n\
         Upgrade: weir-application\r\nX-Fill: xxx\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The head of the answer to it.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(soon(stream.read_u8()).await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn take(stream: &mut TcpStream, bytes: usize) {
    soon(stream.read_exact(&mut vec![0; bytes])).await.unwrap();
}

/// Whether nothing more comes for a while.
async fn is_silent(stream: &mut TcpStream) -> bool {
    timeout(Duration::from_millis(300), stream.read_u8()).await.is_err()
}

/// Whether the server has ended it.
async fn has_ended(stream: &mut TcpStream) -> bool {
    !matches!(soon(stream.read(&mut [0])).await, Ok(1..))
}

async fn status(server: SocketAddr, ticket: Token, answer: &str) -> u16 {
    let head = head(&mut open(server, ticket, answer).await).await;
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn request(stream: &mut TcpStream, bytes: u64) {
    let words = format!("GET /0/{bytes} HTTP/1.1\r\nHost: server\r\nX-Fill: xx\r\n\r\n");
    stream.write_all(words.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn every_request_of_a_connection_is_answered_with_as_many_bytes_as_it_asks_for() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    assert!(session.limits.applications.unwrap().connections >= 100);
    let ticket = session.ticket(application(2, 60_000)).await.unwrap();
    let mut stream = open(address, ticket, "2870").await;
    let head = head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert_eq!(head.len() as u64, APPLICATION_ANSWER_BYTES, "{head}");
    take(&mut stream, 2_870).await;
    assert!(is_silent(&mut stream).await);
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 2, .. }));
    // All at once, as over HTTP/2.
    for bytes in [1, 28_898, 3_000_000] {
        request(&mut stream, bytes).await;
    }
    take(&mut stream, 1 + 28_898 + 3_000_000).await;
    assert!(is_silent(&mut stream).await);
    // Half a request is waited for.
    stream.write_all(b"GET /0/7 HTTP/1.1\r\nHost").await.unwrap();
    assert!(is_silent(&mut stream).await);
    stream.write_all(b": server\r\n\r\n").await.unwrap();
    take(&mut stream, 7).await;
    session.say(&ClientMessage::Stop { flow: 2 }).await;
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else { panic!() };
    assert_eq!((last.bytes, reason), (2_870 + 1 + 28_898 + 3_000_000 + 7, EndReason::Stopped));
    assert!(has_ended(&mut stream).await, "its connections end with it");
}

#[tokio::test]
async fn what_is_no_request_or_no_application_is_refused() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(application(1, 60_000)).await.unwrap();
    for wrong in [
        FlowRequest { application: true, ..flow(2, Direction::Up, 1_000) },
        FlowRequest { bytes: Some(1), ..application(3, 1_000) },
    ] {
        assert!(session.ticket(wrong).await.unwrap_err().starts_with("application: "));
    }
    assert_eq!(status(address, Token(1), "9").await, 403, "a guessed ticket");
    for many in ["", "-1", "x", "18446744073709551616"] {
        assert_eq!(status(address, ticket, many).await, 400, "{many}");
    }
    let plain = ask(address, &format!("GET /weir/v1/flow?ticket={ticket}&answer=9"), b"").await;
    assert_eq!(plain.status, 426);
    for wrong in ["POST / HTTP/1.1\r\n\r\n", "GET /0/many HTTP/1.1\r\n\r\n", "\r\n\r\n"] {
        let mut stream = open(address, ticket, "0").await;
        head(&mut stream).await;
        stream.write_all(wrong.as_bytes()).await.unwrap();
        assert!(has_ended(&mut stream).await, "{wrong}");
    }
    let mut endless = open(address, ticket, "0").await;
    head(&mut endless).await;
    let _ = endless.write_all(&[b'x'; 20_000]).await;
    assert!(has_ended(&mut endless).await, "a request without end is not kept");
}

#[tokio::test]
async fn connections_are_bounded_and_end_with_their_session() {
    let (_server, address) = serve(&["--max-connections-per-address", "1000"]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(application(1, 60_000)).await.unwrap();
    let most = session.limits.applications.unwrap().connections;
    let mut all = Vec::new();
    for _ in 0..most {
        let mut stream = open(address, ticket, "1").await;
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 101 "));
        all.push(stream);
    }
    assert_eq!(status(address, ticket, "1").await, 429);
    // One that is closed makes room for another, soon.
    all.pop();
    let deadline = Instant::now() + Duration::from_secs(20);
    while status(address, ticket, "1").await != 101 {
        assert!(Instant::now() < deadline, "there is no room again");
    }
    drop(session);
    take(&mut all[0], 1).await;
    assert!(has_ended(&mut all[0]).await);
}

#[tokio::test]
async fn an_application_ends_with_its_time_whether_its_client_reads_or_not() {
    let (_server, address) = serve(&["--max-duration", "1s"]);
    let mut session = Session::open(address).await;
    assert!(session.ticket(application(1, 1_001)).await.is_err(), "longer than is allowed");
    let ticket = session.ticket(application(2, 1_000)).await.unwrap();
    // More than all sockets hold, and nobody reads it.
    let mut stream = open(address, ticket, "1000000000000").await;
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 2, .. }));
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else { panic!() };
    assert_eq!((last.flow, reason), (2, EndReason::Duration));
    assert!(last.bytes < 100_000_000, "{}", last.bytes);
    while soon(stream.read(&mut [0; 65_536])).await.is_ok_and(|bytes| bytes > 0) {}
    assert_eq!(status(address, ticket, "1").await, 403, "its ticket is void");
}

#[tokio::test]
async fn the_rate_of_an_address_holds_for_its_applications() {
    let (_server, address) = serve(&["--max-rate", "8mbit"]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(application(1, 60_000)).await.unwrap();
    let before = Instant::now();
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(open(address, ticket, "500000").await);
    }
    for stream in &mut streams {
        head(stream).await;
        take(stream, 500_000).await;
    }
    // 2 MB at 1 MB/s, of which handshakes and probes would not wait: 64 KiB a connection.
    let took = before.elapsed();
    assert!(took > Duration::from_millis(1_400), "{took:?}");
}

#[tokio::test]
async fn names_are_answered_only_where_a_cookie_came_back() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(application(1, 60_000)).await.unwrap();
    let stranger = socket_at("127.0.0.2", address).await;
    say(&stranger, LoadDatagram::Ask { ticket, cookie: 0 }, LOAD_BYTES).await;
    assert_eq!(next(&stranger, 300).await, None, "another address has no flow");
    let (own, victim) =
        (socket_at("127.0.0.1", address).await, socket_at("127.0.0.1", address).await);
    for cookie in [0, 7] {
        say(&own, LoadDatagram::Query { ticket, cookie, number: 1 }, QUERY).await;
    }
    assert_eq!(next(&own, 300).await, None, "an answer is longer than its query");
    let cookie = cookie_for(&own, ticket).await;
    say(&victim, LoadDatagram::Query { ticket, cookie, number: 1 }, QUERY).await;
    assert_eq!(next(&victim, 300).await, None, "the cookie is of no use to another port");
    for number in [5, 6, 6] {
        say(&own, LoadDatagram::Query { ticket, cookie, number }, QUERY).await;
        let reply = LoadDatagram::Reply { ticket, number };
        assert_eq!(next(&own, 10_000).await, Some((reply, REPLY)));
    }
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 1, .. }));
    for length in [LOAD_BYTES, QUERY - 1, QUERY + 1, 1_400] {
        say(&own, LoadDatagram::Query { ticket, cookie, number: 7 }, length).await;
    }
    say(&own, LoadDatagram::Query { ticket: Token(1), cookie, number: 7 }, QUERY).await;
    say(&own, LoadDatagram::Ask { ticket, cookie }, LOAD_BYTES).await;
    assert_eq!(next(&own, 300).await, None, "queries have one length");
    // Once a port is proven no other one is told a cookie.
    say(&victim, LoadDatagram::Ask { ticket, cookie: 0 }, LOAD_BYTES).await;
    say(&victim, LoadDatagram::Query { ticket, cookie, number: 8 }, QUERY).await;
    assert_eq!(next(&victim, 300).await, None);
    session.say(&ClientMessage::Stop { flow: 1 }).await;
    let ServerMessage::Done { last, .. } = session.hear_news().await else { panic!() };
    assert_eq!(last.bytes, 3 * REPLY as u64);
    say(&own, LoadDatagram::Query { ticket, cookie, number: 9 }, QUERY).await;
    assert_eq!(next(&own, 300).await, None, "it is over");
}

#[tokio::test]
async fn names_are_answered_at_the_rate_of_echoes() {
    let (_server, address) = serve(&["--max-echo-rate", "100"]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(application(1, 60_000)).await.unwrap();
    let socket = socket_at("127.0.0.1", address).await;
    let cookie = cookie_for(&socket, ticket).await;
    let before = Instant::now();
    for number in 0..1_000 {
        say(&socket, LoadDatagram::Query { ticket, cookie, number }, QUERY).await;
    }
    let mut answered = 0;
    while next(&socket, 500).await.is_some() {
        answered += 1;
    }
    // 50 ms of it at once, and 10 ms of time a further one.
    let most = 7 + before.elapsed().as_millis() / 10;
    assert!((1..=most).contains(&answered), "{answered} of {most}");
}
