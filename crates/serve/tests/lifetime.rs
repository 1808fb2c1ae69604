//! The start of a server, and its end.

mod client;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use client::datagrams::{IRTT_OPEN, irtt_of, open_irtt, socket_at};
use client::{NDT7, Session, ask, ask_by_address, flow, serve, soon, websocket};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use weir_serve::{Options, Running};
use weir_speedtest::protocol::weir::{ClientMessage, Direction, EndReason, ServerMessage};

#[tokio::test]
async fn a_server_ends_soon_whatever_is_under_way() {
    let (server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(flow(1, Direction::Down, 60_000)).await.unwrap();
    let mut stream = session.connect(ticket).await;
    let mut test = websocket(address, "/ndt/v7/download", NDT7).await.unwrap();
    let mut stalled = TcpStream::connect(address).await.unwrap();
    stalled.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let reading = tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
        while let Some(Ok(_)) = test.next().await {}
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.stopper().now();
    let ended = tokio::task::spawn_blocking(move || server.wait(Duration::from_secs(10)));
    assert_eq!(ended.await.unwrap(), Some(Ok(())), "ten seconds are enough for anything");
    soon(reading).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn tests_that_run_come_to_their_end_and_no_other_begins() {
    let (server, address) = serve(&[]);
    let mut session = Session::open(address).await;
    let ticket = session.ticket(flow(1, Direction::Down, 2_000)).await.unwrap();
    let mut stream = session.connect(ticket).await;
    let mut buffer = vec![0; 65_536];
    assert!(stream.read(&mut buffer).await.unwrap() > 0, "the flow has begun");
    server.stopper().stop();
    let says = "the server ends, and begins no test any more: try again in a minute";
    for path in ["/weir/v1", "/__down?bytes=1000"] {
        let refused = ask(address, &format!("GET {path}"), b"").await;
        assert_eq!(
            (refused.status, &*refused.body),
            (503, format!("{says}\n").as_bytes()),
            "{path}"
        );
    }
    for (path, subprotocol) in [("/weir/v1", "weir.v1"), ("/ndt/v7/download", NDT7)] {
        assert_eq!(websocket(address, path, subprotocol).await.err(), Some(503), "{path}");
    }
    let mut ookla = TcpStream::connect(address).await.unwrap();
    ookla.write_all(b"HI\n").await.unwrap();
    let mut said = String::new();
    soon(ookla.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, format!("ERROR {says}\n"));
    let health = ask(address, "GET /healthz", b"").await;
    assert_eq!(health.status, 503);
    assert!(
        health.body.starts_with(br#"{"status":"stopping""#),
        "the server still tells how it does"
    );
    // A flow of the session that runs has a connection of its own, or comes in requests as those of pages do.
    started(&mut session, 1).await;
    let second = session.ticket(flow(2, Direction::Up, 2_000)).await.unwrap();
    let mut more = session.connect(second).await;
    started(&mut session, 2).await;
    more.write_all(b"more").await.unwrap();
    drop(more);
    assert_eq!(done(&mut session).await, (2, EndReason::Closed, 4));
    let third = session.ticket(flow(3, Direction::Up, 2_000)).await.unwrap();
    let sent = ask(address, &format!("POST /weir/v1/flow?ticket={third}"), b"and more").await;
    assert_eq!(sent.status, 200);
    started(&mut session, 3).await;
    session.say(&ClientMessage::Stop { flow: 3 }).await;
    assert_eq!(done(&mut session).await, (3, EndReason::Stopped, 8));
    while stream.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
    drop(stream);
    let (number, reason, _) = done(&mut session).await;
    assert_eq!((number, reason), (1, EndReason::Duration));
    assert!(server.wait(Duration::ZERO).is_none(), "the session has not ended");
    drop(session);
    let ended = tokio::task::spawn_blocking(move || server.wait(Duration::from_secs(10)));
    assert_eq!(ended.await.unwrap(), Some(Ok(())), "with the last test, and not before");
}

/// A session whose load keeps a server that is to end, and that load.
async fn under_way(address: SocketAddr) -> (Session, TcpStream) {
    let mut session = Session::open(address).await;
    let ticket = session.ticket(flow(1, Direction::Down, 60_000)).await.unwrap();
    let mut stream = session.connect(ticket).await;
    assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0, "the flow has begun");
    (session, stream)
}

#[tokio::test]
async fn a_connection_of_irtt_s_that_has_no_test_yet_is_refused_once() {
    for (words, reason) in [(&[][..], "ending"), (&["--max-tests", "1"], "tests")] {
        let (server, address) = serve(&[&["--irtt-port", "0"], words].concat());
        let socket = socket_at("127.0.0.1", irtt_of(address).await).await;
        let _test = under_way(address).await;
        let tokens = [open_irtt(&socket).await, open_irtt(&socket).await];
        if reason == "ending" {
            server.stopper().stop();
        }
        for token in [tokens; 3].concat() {
            let echo = [&IRTT_OPEN[..3], &[0], &token, &[0; 60]].concat();
            socket.send(&echo).await.unwrap();
        }
        // What comes later is answered, and so all of them were looked at.
        open_irtt(&socket).await;
        let metrics = ask_by_address(address, "GET /metrics", b"").await.body;
        let metrics = String::from_utf8(metrics).unwrap();
        let told = format!("weir_refusals_total{{reason=\"{reason}\"}} 2\n");
        assert!(metrics.contains(&told), "{metrics}");
    }
}

#[tokio::test]
async fn a_connection_of_ookla_s_that_is_there_ends_its_load_and_is_refused_the_next() {
    let (server, address) = serve(&[]);
    let _test = under_way(address).await;
    let greeted = async || {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"HI\n").await.unwrap();
        assert!(soon(stream.read(&mut [0; 64])).await.unwrap() > 0);
        stream
    };
    let (mut idle, mut sends, mut loads) = (greeted().await, greeted().await, greeted().await);
    let length = 20_000_000;
    loads.write_all(format!("DOWNLOAD {length}\n").as_bytes()).await.unwrap();
    assert_eq!(soon(loads.read_u8()).await.unwrap(), b'D', "it has begun");
    server.stopper().stop();
    let says =
        "ERROR the server ends, and begins no test any more: try again in a minute\n".to_owned();
    let rest = async |mut stream: TcpStream| {
        let mut said = Vec::new();
        soon(stream.read_to_end(&mut said)).await.unwrap();
        said
    };
    idle.write_all(b"PING 1\nDOWNLOAD 1000\n").await.unwrap();
    let said = String::from_utf8(rest(idle).await).unwrap();
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.starts_with("PONG ") && said.ends_with(&says), "{said}");
    // Who sends is told too, though the server takes none of it as a test.
    let mut upload = b"UPLOAD 3000000 0\n".to_vec();
    upload.resize(3_000_000, b'x');
    soon(sends.write_all(&upload)).await.unwrap();
    assert_eq!(String::from_utf8(rest(sends).await).unwrap(), says);
    loads.write_all(b"DOWNLOAD 1000\n").await.unwrap();
    let whole = rest(loads).await;
    assert_eq!(whole.len(), length - 1 + says.len());
    assert!(whole.ends_with(says.as_bytes()));
}

async fn started(session: &mut Session, number: u32) {
    let news = soon(session.hear_news()).await;
    assert!(matches!(news, ServerMessage::Started { flow, .. } if flow == number), "{news:?}");
}

/// The flow that ends next, why, and its bytes.
async fn done(session: &mut Session) -> (u32, EndReason, u64) {
    match soon(session.hear_news()).await {
        ServerMessage::Done { last, reason, .. } => (last.flow, reason, last.bytes),
        other => panic!("{other:?}"),
    }
}

/// Why a server with these words does not start.
fn refusal(words: &[&str]) -> String {
    let all = [&["weir serve"], words].concat();
    Running::start(Options::try_parse_from(all).unwrap()).err().expect("it starts").to_string()
}

#[tokio::test]
async fn what_is_wrong_at_the_start_is_one_sentence() {
    let (_server, address) = serve(&[]);
    let taken = address.to_string();
    assert_eq!(
        refusal(&["--listen", &taken]),
        format!("cannot listen on TCP {taken}: address already in use")
    );
    let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = udp.local_addr().unwrap().port().to_string();
    assert_eq!(
        refusal(&["--listen", "127.0.0.1:0", "--irtt-port", &port]),
        format!(
            "irtt: cannot listen on UDP 127.0.0.1:{port}: address already in use; choose another with \
             --irtt-port, or --without irtt"
        )
    );
    let here = ["--listen", "127.0.0.1:0"];
    let with = |words: &[&str]| refusal(&[&here, words].concat());
    assert_eq!(
        with(&["--auth", "/no/such/file"]),
        "secret `/no/such/file`: no such file or directory"
    );
    let folder = std::env::temp_dir().join(format!("weir-start-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let short = file("secret", "short\n");
    assert_eq!(
        with(&["--auth", &short]),
        format!("secret `{short}`: the secret has 5 bytes: it must have 8 to 256")
    );
    let (cert, key) = (file("cert.pem", "nonsense"), file("key.pem", ""));
    assert_eq!(
        with(&["--cert", &cert, "--key", &key]),
        format!("certificate `{cert}`: no certificate in PEM in it")
    );
    assert_eq!(
        with(&["--cert", "/no/such", "--key", &key]),
        "certificate `/no/such`: no such file or directory"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn wrong_words_are_one_sentence() {
    let refusal = |words: &[&str]| {
        let all: Vec<_> =
            std::iter::once("weir serve").chain(words.iter().copied()).map(String::from).collect();
        let failure = weir_serve::serve(&all).err().unwrap();
        (failure.exit_code, failure.message)
    };
    assert_eq!(
        refusal(&["--listen", "localhost"]),
        (2, "invalid value 'localhost' for '--listen <[ADDRESS:]PORT>': write a port (8080), or an address with a port (192.0.2.1:8080, [2001:db8::1]:8080)".into())
    );
    assert_eq!(
        refusal(&["--max-duration", "0s"]),
        (2, "invalid value '0s' for '--max-duration <TIME>': write a time from 1s to 86400s with its unit".into())
    );
    let (code, help) = refusal(&["--help"]);
    assert!(code == 0 && help.contains("--max-tests-per-address"));
}
