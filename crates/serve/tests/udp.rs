//! UDP loads from the other end, and those who would misuse them.

mod client;

use std::net::SocketAddr;
use std::time::Duration;

use client::datagrams::{cookie_for, next, say, socket_at};
use client::{Session, ask_by_address, flow, serve, soon};
use tokio::net::UdpSocket;
use tokio::time::Instant;
use weir_speedtest::protocol::weir::{
    ClientMessage, Direction, ECHO_BYTES, EchoRequest, EndReason, FlowRequest, LOAD_BYTES,
    LoadDatagram, ServerMessage, Token, UdpPattern, UdpRequest, UdpSample,
};

/// 1 Mbit/s in packets of 250 bytes: one every 2 ms.
const LOAD: UdpRequest = UdpRequest {
    rate_bps: 1_000_000,
    payload_bytes: 250,
    pattern: UdpPattern::Constant,
    jitter_buffer_ns: Some(0),
    seed: 1,
};

fn load(number: u32, direction: Direction, ms: u64) -> FlowRequest {
    FlowRequest { udp: Some(LOAD), ..flow(number, direction, ms) }
}

/// Asks for a cookie, later than the server's pause between two.
async fn ask_late(socket: &UdpSocket, ticket: Token, cookie: u64, length: usize) {
    tokio::time::sleep(Duration::from_millis(50)).await;
    say(socket, LoadDatagram::Ask { ticket, cookie }, length).await;
}

#[tokio::test]
async fn a_download_comes_once_the_port_has_shown_its_cookie_and_ends_with_its_time() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(load(3, Direction::Down, 300)).await.unwrap();
    let socket = socket_at("127.0.0.1", address).await;
    let cookie = cookie_for(&socket, ticket).await;
    assert_eq!(next(&socket, 300).await, None, "nothing comes before the cookie is back");
    say(&socket, LoadDatagram::Ask { ticket, cookie }, LOAD_BYTES).await;
    let mut came = 0;
    while let Some((datagram, length)) = next(&socket, 1_000).await {
        let LoadDatagram::Packet { ticket: of, seq, .. } = datagram else { panic!("{datagram:?}") };
        assert_eq!((of, seq, length), (ticket, came, 250));
        came += 1;
    }
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 3, .. }));
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else { panic!() };
    let Some(UdpSample::Sent(sent)) = last.udp else { panic!("{last:?}") };
    assert_eq!((sent.packets, last.bytes, reason), (came, came * 250, EndReason::Duration));
    assert_eq!(sent.packets + sent.skipped, 150, "300 ms of it");
}

#[tokio::test]
async fn an_upload_is_counted_with_its_losses_and_delays() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(load(1, Direction::Up, 60_000)).await.unwrap();
    session.say(&ClientMessage::Ping { id: 1 }).await;
    let ServerMessage::Pong { t_ns, .. } = session.hear_news().await else { panic!() };
    let socket = socket_at("127.0.0.1", address).await;
    for seq in [0, 1, 2, 2, 5] {
        say(&socket, LoadDatagram::Packet { ticket, seq, sent_ns: t_ns }, 250).await;
    }
    say(&socket, LoadDatagram::Packet { ticket, seq: 9, sent_ns: t_ns }, 249).await;
    assert!(matches!(session.hear_news().await, ServerMessage::Started { flow: 1, .. }));
    // All of them have come when an echo behind them has.
    let mut echo = [0; ECHO_BYTES];
    EchoRequest { token: session.token, train: 0, seq: 0, answer_tos: 0, stamp: 0 }.emit(&mut echo);
    socket.send(&echo).await.unwrap();
    assert_eq!(soon(socket.recv(&mut echo)).await.unwrap(), ECHO_BYTES);
    session.say(&ClientMessage::Stop { flow: 1 }).await;
    let ServerMessage::Done { last, reason, .. } = session.hear_news().await else { panic!() };
    let Some(UdpSample::Received(counts)) = last.udp else { panic!("{last:?}") };
    assert_eq!((counts.packets, counts.lost, reason), (4, 2, EndReason::Stopped));
    assert_eq!(last.bytes, 1_000, "each once, and only those of the load's length");
    assert!(counts.delay_mean_ns.unwrap() < 10_000_000_000 && counts.buffer.is_some());
}

#[tokio::test]
async fn nobody_elses_port_or_address_is_sent_anything() {
    let (_server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(load(1, Direction::Down, 60_000)).await.unwrap();
    // Another address knows the ticket: it gets not even an answer.
    let stranger = socket_at("127.0.0.2", address).await;
    say(&stranger, LoadDatagram::Ask { ticket, cookie: 0 }, LOAD_BYTES).await;
    assert_eq!(next(&stranger, 300).await, None);
    // Another port of the same address gets a cookie of its own; that of the first is of no use to it.
    let (own, victim) =
        (socket_at("127.0.0.1", address).await, socket_at("127.0.0.1", address).await);
    let cookie = cookie_for(&own, ticket).await;
    ask_late(&victim, ticket, cookie, LOAD_BYTES).await;
    let Some((LoadDatagram::Answer { cookie: other, .. }, _)) = next(&victim, 10_000).await else {
        panic!("no answer")
    };
    assert_ne!(other, cookie);
    assert_eq!(next(&own, 50).await, None, "it was told its own");
    ask_late(&victim, ticket, cookie, LOAD_BYTES).await;
    let heard = next(&victim, 300).await;
    assert!(!matches!(heard, Some((LoadDatagram::Packet { .. }, _))), "{heard:?}");
    // An answer is never longer than what it answers, and there is none to what is no ticket.
    say(&own, LoadDatagram::Ask { ticket: Token(1), cookie: 0 }, 1_400).await;
    assert_eq!(next(&own, 300).await, None);
    ask_late(&own, ticket, 0, 1_400).await;
    let Some((LoadDatagram::Answer { cookie: last, .. }, 1_400)) = next(&own, 10_000).await else {
        panic!("no answer")
    };
    say(&own, LoadDatagram::Ask { ticket, cookie: last }, LOAD_BYTES).await;
    assert!(matches!(next(&own, 10_000).await, Some((LoadDatagram::Packet { .. }, 250))));
    // Once it runs it goes nowhere else.
    say(&victim, LoadDatagram::Ask { ticket, cookie: 0 }, LOAD_BYTES).await;
    say(&victim, LoadDatagram::Ask { ticket, cookie: last }, LOAD_BYTES).await;
    assert_eq!(next(&victim, 300).await, None);
}

/// How long packets come, with so many milliseconds of patience behind the last.
async fn lasts(socket: &UdpSocket) -> Duration {
    let start = Instant::now();
    let mut last = start;
    while next(socket, 1_500).await.is_some() {
        last = Instant::now();
    }
    last - start
}

/// A download for a minute that has begun: its session, its socket, its ticket and its cookie.
async fn download(address: SocketAddr) -> (Session, UdpSocket, Token, u64) {
    let mut session = Session::open(address).await;
    let ticket = session.ticket(load(1, Direction::Down, 60_000)).await.unwrap();
    let socket = socket_at("127.0.0.1", address).await;
    let cookie = cookie_for(&socket, ticket).await;
    say(&socket, LoadDatagram::Ask { ticket, cookie }, LOAD_BYTES).await;
    (session, socket, ticket, cookie)
}

#[tokio::test]
async fn a_client_that_is_silent_is_sent_nothing_until_it_is_heard_again() {
    let (_server, address) = serve(&[]);
    let (_session, socket, ticket, cookie) = download(address).await;
    let lasted = lasts(&socket).await;
    assert!(lasted < Duration::from_secs(3), "a second, and what a busy machine takes: {lasted:?}");
    say(&socket, LoadDatagram::Ask { ticket, cookie: cookie ^ 1 }, LOAD_BYTES).await;
    assert_eq!(next(&socket, 300).await, None, "a guess is no sign of life");
    say(&socket, LoadDatagram::Ask { ticket, cookie }, LOAD_BYTES).await;
    let again = soon(next(&socket, 10_000)).await;
    assert!(matches!(again, Some((LoadDatagram::Packet { .. }, 250))), "{again:?}");
}

#[tokio::test]
async fn a_load_ends_with_its_session() {
    let (_server, address) = serve(&[]);
    let (session, socket, ticket, cookie) = download(address).await;
    assert!(next(&socket, 10_000).await.is_some());
    drop(session);
    let start = Instant::now();
    while next(&socket, 500).await.is_some() {
        // It still listens: only the session's end can end it.
        say(&socket, LoadDatagram::Ask { ticket, cookie }, LOAD_BYTES).await;
        assert!(start.elapsed() < Duration::from_secs(20), "it does not end");
    }
    say(&socket, LoadDatagram::Ask { ticket, cookie: 0 }, LOAD_BYTES).await;
    assert_eq!(next(&socket, 300).await, None, "its ticket is void");
    // What it had of its address's rate is there again.
    let whole = UdpRequest { rate_bps: 100_000_000, payload_bytes: 1_472, ..LOAD };
    let mut again = Session::open(address).await;
    let request = FlowRequest { udp: Some(whole), ..flow(1, Direction::Down, 1) };
    again.ticket(request).await.unwrap();
}

#[tokio::test]
async fn rates_are_bounded_by_address_and_what_cannot_be_is_refused() {
    let (_server, address) = serve(&["--max-udp-rate", "1500kbit"]);
    let (mut one, mut two) = (Session::open(address).await, Session::open(address).await);
    assert_eq!(one.limits.udp.unwrap().rate_bps, 1_500_000);
    one.ticket(load(1, Direction::Down, 1_000)).await.unwrap();
    assert_eq!(
        two.ticket(load(1, Direction::Down, 1_000)).await.unwrap_err(),
        "UDP load of 1000000 bit/s, 500 packets a second: of what this server allows one address in this direction \
         500000 bit/s and 49500 packets a second are left"
    );
    two.ticket(load(2, Direction::Up, 1_000)).await.unwrap();
    let refused = [
        (UdpRequest { payload_bytes: 31, ..LOAD }, "udp.payload_bytes 31: 32 to 1472 are allowed"),
        (
            UdpRequest { rate_bps: 100_000_000, payload_bytes: 32, ..LOAD },
            "udp.rate_bps 100000000 in packets of 32 bytes: a rate above 0 and up to 50000 packets a second are allowed",
        ),
        (
            UdpRequest { pattern: UdpPattern::OnOff { on_ns: 0, off_ns: 1 }, ..LOAD },
            "udp.pattern: on_ns above 0 is allowed",
        ),
        (
            UdpRequest { jitter_buffer_ns: Some(60_000_000_001), ..LOAD },
            "udp.jitter_buffer_ns 60000000001: 0 to 60000000000 are allowed",
        ),
    ];
    for (udp, said) in refused {
        let request = FlowRequest { udp: Some(udp), ..flow(9, Direction::Up, 1_000) };
        assert_eq!(two.ticket(request).await.unwrap_err(), said);
    }
    let metrics =
        String::from_utf8(ask_by_address(address, "GET /metrics", b"").await.body).unwrap();
    let told = "weir_refusals_total{reason=\"UDP rate of an address\"} 1";
    assert!(metrics.contains(told), "{metrics}");
}
