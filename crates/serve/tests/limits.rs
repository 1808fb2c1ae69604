//! Limits that a server on the open Internet needs.

mod client;

use std::net::SocketAddr;
use std::time::Duration;

use client::datagrams::{IRTT_OPEN, irtt_of, open_irtt, socket_at};
use client::{
    NDT7, Session, ask, ask_by_address, ask_host, ask_on, serve, soon, websocket, websocket_on,
};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// A connection from another address of this machine.
async fn connect_from(source: &str, server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(server).await.unwrap()
}

#[tokio::test]
async fn an_address_has_so_many_tests_and_others_still_theirs() {
    let (_server, address) = serve(&["--max-tests-per-address", "2", "--max-tests", "3"]);
    let _one = websocket(address, "/ndt/v7/upload", NDT7).await.unwrap();
    let _two = websocket(address, "/weir/v1", "weir.v1").await.unwrap();
    assert_eq!(websocket(address, "/ndt/v7/upload", NDT7).await.err(), Some(429));
    let refused = ask(address, "GET /__down?bytes=1000000", b"").await;
    assert_eq!(refused.status, 429);
    assert!(refused.head.contains("retry-after: 60"));
    assert_eq!(ask(address, "GET /__down?bytes=0", b"").await.status, 200, "a probe is no test");
    let other = connect_from("127.0.0.2", address).await;
    let _three = websocket_on(other, "/ndt/v7/upload", NDT7).await.unwrap();
    let third = connect_from("127.0.0.3", address).await;
    assert_eq!(websocket_on(third, "/ndt/v7/upload", NDT7).await.err(), Some(503));
    let metrics =
        String::from_utf8(ask_by_address(address, "GET /metrics", b"").await.body).unwrap();
    assert!(metrics.contains("weir_refusals_total{reason=\"tests of an address\"} 2"), "{metrics}");
    assert!(metrics.contains("weir_refusals_total{reason=\"tests\"} 1"), "{metrics}");
}

#[tokio::test]
async fn an_address_has_so_many_connections_of_irtt_and_others_still_theirs() {
    let (_server, address) = serve(&["--irtt-port", "0", "--max-tests-per-address", "3"]);
    let irtt = irtt_of(address).await;
    let greedy = socket_at("127.0.0.1", irtt).await;
    for _ in 0..3 {
        open_irtt(&greedy).await;
    }
    greedy.send(IRTT_OPEN).await.unwrap();
    // What comes later is answered, and so the fourth was refused.
    open_irtt(&socket_at("127.0.0.2", irtt).await).await;
    assert!(greedy.try_recv(&mut [0; 64]).is_err(), "the fourth is not answered");
    let metrics =
        String::from_utf8(ask_by_address(address, "GET /metrics", b"").await.body).unwrap();
    let told = "weir_refusals_total{reason=\"irtt connections of an address\"} 1";
    assert!(metrics.contains(told), "{metrics}");
}

#[tokio::test]
async fn connections_are_bounded_too() {
    let (_server, address) = serve(&["--max-connections-per-address", "3"]);
    let _held = held(3, address).await;
    let mut fourth = TcpStream::connect(address).await.unwrap();
    assert_eq!(soon(fourth.read(&mut [0; 8])).await.unwrap_or(0), 0, "it says nothing itself");
    let refused = ask(address, "GET /empty", b"").await;
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("retry-after: 60"), "{}", refused.head);
    let mut ookla = TcpStream::connect(address).await.unwrap();
    ookla.write_all(b"HI\n").await.unwrap();
    let mut said = String::new();
    soon(ookla.read_to_string(&mut said)).await.unwrap();
    assert_eq!(
        said,
        "ERROR there is too much from this address already, 3 connections, which is all that it may have: \
         try again in a minute\n"
    );
    let other = connect_from("127.0.0.2", address).await;
    assert_eq!(ask_on(other, "GET /empty", b"").await.status, 200);
}

#[tokio::test]
async fn a_full_server_still_tells_this_machine_how_it_does() {
    let (_server, address) = serve(&["--max-connections", "2"]);
    let _held = held(2, address).await;
    let refused = ask_by_address(address, "GET /empty", b"").await;
    assert_eq!(refused.status, 503);
    let says = "the server is busy with 2 connections, which is all that it takes: try again in a minute\n";
    assert_eq!(String::from_utf8(refused.body).unwrap(), says);
    let health = ask_by_address(address, "GET /healthz", b"").await;
    assert_eq!(health.status, 200);
    let health: serde_json::Value = serde_json::from_slice(&health.body).unwrap();
    assert_eq!(health["status"], "ok");
    let metrics = ask_by_address(address, "GET /metrics", b"").await;
    assert_eq!(metrics.status, 200);
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains("weir_connections_now 2\n"), "{metrics}");
    assert_eq!(ask_by_address(address, "POST /healthz", b"").await.status, 503);
}

#[tokio::test]
async fn a_client_that_a_full_server_answers_is_told_that_the_connection_ends() {
    let (_server, address) = serve(&["--max-connections", "1"]);
    let _held = held(1, address).await;
    for (path, status) in [("/empty", "503"), ("/healthz", "200"), ("/metrics", "200")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        soon(stream.read_to_string(&mut said)).await.unwrap();
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
        assert!(said.contains("\r\nconnection: close\r\n"), "{said}");
    }
}

#[tokio::test]
async fn a_full_server_with_a_secret_keeps_its_metrics() {
    let secret = std::env::temp_dir().join(format!("weir-full-{}", std::process::id()));
    std::fs::write(&secret, "correct horse\n").unwrap();
    let (_server, address) = serve(&["--max-connections", "1", "--auth", secret.to_str().unwrap()]);
    std::fs::remove_file(&secret).unwrap();
    let _held = held(1, address).await;
    assert_eq!(ask_by_address(address, "GET /healthz", b"").await.status, 200);
    assert_eq!(ask_by_address(address, "GET /metrics", b"").await.status, 503);
}

#[tokio::test]
async fn a_line_of_ookla_s_that_does_not_end_is_not_waited_for() {
    let (_server, address) = serve(&[]);
    let mut slow = TcpStream::connect(address).await.unwrap();
    let began = std::time::Instant::now();
    let mut ended = false;
    while !ended && began.elapsed() < Duration::from_secs(20) {
        ended = slow.write_all(b"HI").await.is_err();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(ended, "it was kept for {:?}", began.elapsed());
    assert!(began.elapsed() > Duration::from_secs(8), "{:?}", began.elapsed());
}

/// Connections that count and say nothing whole.
async fn held(count: usize, server: SocketAddr) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(b"GE").await.unwrap();
        held.push(stream);
    }
    // They count once they are accepted.
    tokio::time::sleep(Duration::from_millis(200)).await;
    held
}

/// A connection that has had an answer and stays open.
async fn kept_alive(server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(b"GET /empty HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let mut buffer = [0; 1024];
    let read = soon(stream.read(&mut buffer)).await.unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 200 "));
    stream
}

#[tokio::test]
async fn idle_connections_are_given_up_first() {
    let (_server, address) = serve(&["--max-connections-per-address", "3"]);
    let _waits_for_its_end = websocket(address, "/weir/v1", "weir.v1").await.unwrap();
    let mut first = kept_alive(address).await;
    let _second = kept_alive(address).await;
    soon(async {
        // Once the first has been idle for long enough, others get its place.
        while ask(address, "GET /empty", b"").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!(soon(first.read(&mut [0; 8])).await.unwrap_or(0), 0, "it was closed");
    // A place is free again, now that the last one has left.
    let metrics =
        String::from_utf8(ask_by_address(address, "GET /metrics", b"").await.body).unwrap();
    assert!(metrics.contains("weir_connections_given_up_total 1\n"), "{metrics}");
}

#[tokio::test]
async fn half_a_preface_of_http2_ends_with_those_that_say_nothing() {
    let (_server, address) = serve(&[]);
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"PRI * HTTP/2.0\r\n\r\nSM").await.unwrap();
    // Whoever says nothing has the same time; this one begins later, and so ends later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let (mut one, mut two) = ([0; 64], [0; 64]);
    let first = soon(async {
        tokio::select! {
            biased;
            _ = half.read(&mut one) => "half a preface",
            _ = silent.read(&mut two) => "nothing",
        }
    });
    assert_eq!(first.await, "half a preface");
}

#[tokio::test]
async fn a_rate_holds_for_all_connections_of_an_address() {
    let (_server, address) = serve(&["--max-rate", "80mbit"]);
    let started = std::time::Instant::now();
    let loads = (0..4).map(|_| ask(address, "GET /__down?bytes=2500000", b""));
    for answer in futures_util::future::join_all(loads).await {
        assert_eq!(answer.body.len(), 2_500_000);
    }
    // Ten megabytes are a second at 80 Mbit/s: what passes at once is far less.
    assert!(started.elapsed() > Duration::from_millis(850), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_load_ends_with_the_longest_duration() {
    let (_server, address) = serve(&["--max-duration", "1s", "--max-rate", "8mbit"]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut all = Vec::new();
    // The announced length is not reached: the connection breaks off, with or without a reset.
    let _ = soon(stream.read_to_end(&mut all)).await;
    assert!((100_000..20_000_000).contains(&all.len()), "{}", all.len());
}

#[tokio::test]
async fn who_says_nothing_or_too_slowly_is_dropped() {
    let (_server, address) = serve(&[]);
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    let mut tls = TcpStream::connect(address).await.unwrap();
    tls.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
    let mut quiet = websocket(address, "/weir/v1", "weir.v1").await.unwrap();
    let drip = async {
        // A byte of a header a second, and no end.
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
        loop {
            if stream.write_all(b"x").await.is_err() {
                break;
            }
            let read =
                tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0; 256])).await;
            if read.is_ok_and(|read| read.unwrap_or(0) == 0) {
                break;
            }
        }
    };
    let read =
        async |stream: &mut TcpStream| stream.read_to_end(&mut Vec::new()).await.unwrap_or(0);
    soon(async {
        tokio::join!(read(&mut silent), read(&mut half), read(&mut tls), drip);
    })
    .await;
    let Message::Text(last) = soon(quiet.next()).await.unwrap().unwrap() else { panic!() };
    assert!(last.contains("the handshake took too long"), "{last}");
}

#[tokio::test]
async fn a_session_lasts_for_the_longest_load_and_what_is_beside_it() {
    for (words, session_s) in [(&[][..], 3_600), (&["--max-duration", "86400s"][..], 87_000)] {
        let (_server, address) = serve(words);
        let limits = Session::open(address).await.limits;
        assert_eq!(limits.session_ns, session_s * 1_000_000_000);
    }
}

#[tokio::test]
async fn messages_and_headers_are_bounded() {
    use futures_util::SinkExt;
    let (_server, address) = serve(&[]);
    let mut socket = websocket(address, "/weir/v1", "weir.v1").await.unwrap();
    // The server may close before all of it is written.
    let _ = socket.send(Message::text("x".repeat(70_000))).await;
    while let Some(Ok(_)) = soon(socket.next()).await {}
    let mut stream = TcpStream::connect(address).await.unwrap();
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(2_000_000));
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_tests_at_once_go_without_an_error() {
    let (_server, address) = serve(&[]);
    let tests = (0..200_u32).map(|number| async move {
        let from = connect_from(&format!("127.0.1.{}", number % 50 + 1), address).await;
        match number % 4 {
            0 => {
                let mut socket = websocket_on(from, "/ndt/v7/download", NDT7).await.unwrap();
                while !matches!(soon(socket.next()).await.unwrap().unwrap(), Message::Close(_)) {}
            }
            1 => {
                let mut socket = websocket_on(from, "/ndt/v7/upload", NDT7).await.unwrap();
                use futures_util::SinkExt;
                let end = tokio::time::Instant::now() + Duration::from_secs(1);
                while tokio::time::Instant::now() < end {
                    socket.send(Message::binary(vec![1; 65_536])).await.unwrap();
                }
                while !matches!(soon(socket.next()).await.unwrap().unwrap(), Message::Close(_)) {}
            }
            2 => {
                let answer = ask_on(from, "GET /__down?bytes=3000000", b"").await;
                assert_eq!((answer.status, answer.body.len()), (200, 3_000_000));
            }
            _ => {
                let answer = ask_on(from, "POST /__up", &vec![b'0'; 3_000_000]).await;
                assert_eq!(answer.status, 200);
            }
        }
    });
    futures_util::future::join_all(tests).await;
    // The server hears of the last one's end after its client does.
    soon(async {
        loop {
            let metrics = ask_by_address(address, "GET /metrics", b"").await.body;
            if String::from_utf8(metrics).unwrap().contains("weir_tests_now 0\n") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn metrics_and_health_are_for_this_machine() {
    let (_server, address) = serve(&["--irtt-port", "0"]);
    for path in ["/metrics", "/healthz"] {
        let answer = ask_by_address(address, &format!("GET {path}"), b"").await;
        assert_eq!(answer.status, 200);
        assert!(!answer.head.contains("access-control-"), "{}", answer.head);
        let preflight = ask(address, &format!("OPTIONS {path}"), b"").await;
        assert!(!preflight.head.contains("access-control-"), "{}", preflight.head);
    }
    assert!(ask(address, "GET /empty", b"").await.head.contains("access-control-allow-origin: *"));
    let health = ask_by_address(address, "GET /healthz", b"").await.body;
    let health: serde_json::Value = serde_json::from_slice(&health).unwrap();
    assert_eq!(health["status"], "ok");
    let listeners = health["listeners"].as_array().unwrap();
    let spoken: Vec<_> = listeners.iter().map(|one| one["serves"].as_str().unwrap()).collect();
    assert_eq!(spoken, ["HTTP, TLS, Ookla", "Weir's echo, Ookla's loss", "irtt"]);
    assert_eq!(listeners[0]["address"], address.to_string());
    assert!(ask(address, "GET /nothing", b"").await.status == 404);
}

#[tokio::test]
async fn a_page_whose_name_leads_to_this_machine_learns_nothing() {
    let (_server, address) = serve(&[]);
    let of_evil = async |server, head| {
        let stream = TcpStream::connect(server).await.unwrap();
        ask_host(stream, "evil.example", head, b"").await
    };
    assert_eq!(of_evil(address, "GET /metrics").await.status, 403);
    let health = of_evil(address, "GET /healthz").await;
    assert_eq!((health.status, health.body.as_slice()), (200, &b"{\"status\":\"ok\"}\n"[..]));
    let (_public, open) = serve(&["--public-metrics"]);
    assert_eq!(of_evil(open, "GET /metrics").await.status, 200);
}

#[tokio::test]
async fn only_a_page_that_a_browser_trusts_asks_for_a_process_of_its_own() {
    let (_server, address) = serve(&[]);
    for (host, asks) in [
        ("test", false),
        ("192.0.2.1:8080", false),
        ("127.0.0.1:8080", true),
        ("localhost:8080", true),
        ("test\r\nX-Forwarded-Proto: https", true),
    ] {
        let stream = TcpStream::connect(address).await.unwrap();
        let answer = ask_host(stream, host, "GET /", b"").await;
        assert_eq!(answer.head.contains("cross-origin-opener-policy"), asks, "{host}");
        assert!(answer.head.contains("content-security-policy"), "{host}");
    }
}

#[tokio::test]
async fn a_full_server_says_so_to_who_asks_for_a_session_without_a_websocket() {
    let (_server, address) = serve(&["--max-tests", "1"]);
    assert_eq!(ask(address, "GET /weir/v1", b"").await.status, 426);
    let _session = Session::open(address).await;
    let answer = ask(address, "GET /weir/v1", b"").await;
    assert_eq!(answer.status, 503);
    let says =
        "the server is busy with 1 test, which is all that it takes: try again in a minute\n";
    assert_eq!(String::from_utf8(answer.body).unwrap(), says);
}

#[tokio::test]
async fn methods_that_nothing_answers_are_told_so() {
    let (_server, address) = serve(&[]);
    for path in ["/", "/page.js", "/metrics", "/healthz", "/small", "/empty", "/.well-known/nq"] {
        for method in ["TRACE", "DELETE", "PUT", "PATCH", "BREW"] {
            let answer = ask(address, &format!("{method} {path}"), b"").await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert!(answer.head.contains("allow: get, head"), "{}", answer.head);
        }
    }
    for path in ["/", "/metrics", "/healthz"] {
        assert_eq!(ask(address, &format!("POST {path}"), b"x").await.status, 405, "{path}");
        assert_eq!(
            ask_by_address(address, &format!("HEAD {path}"), b"").await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_responsiveness_test_is_told_where_clients_reach_the_server() {
    let large = async |address| {
        let told = ask(address, "GET /.well-known/nq", b"").await;
        let config: serde_json::Value = serde_json::from_slice(&told.body).unwrap();
        config["urls"]["large_download_url"].as_str().unwrap().to_owned()
    };
    let (_plain, address) = serve(&[]);
    // The client's Host is `test`, without a port.
    assert_eq!(large(address).await, "https://test/large");
    for (url, said) in [
        ("https://example.net", "https://example.net/large"),
        ("https://example.net/", "https://example.net/large"),
        ("https://[2001:db8::1]:8443/weir/", "https://[2001:db8::1]:8443/weir/large"),
    ] {
        let (_server, named) = serve(&["--public-url", url]);
        assert_eq!(large(named).await, said);
    }
}
