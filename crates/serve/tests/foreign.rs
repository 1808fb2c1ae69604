//! Requests of foreign clients, from the client's end.

mod client;

use client::{NDT7, ask, serve, soon, websocket};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpStream, UdpSocket};
use tokio_tungstenite::tungstenite::Message;

#[tokio::test]
async fn cloudflare_gets_exact_bytes_and_its_headers() {
    let (_server, address) = serve(&[]);
    let answer = ask(address, "GET /__down?bytes=1234567&during=download", b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 1_234_567));
    for header in [
        "content-length: 1234567",
        "timing-allow-origin: *",
        "access-control-allow-origin: *",
        "server-timing: cfrequestduration;dur=",
        "cache-control: no-store",
    ] {
        assert!(answer.head.contains(header), "{header}: {}", answer.head);
    }
    let probe = ask(address, "GET /__down?bytes=0", b"").await;
    assert_eq!((probe.status, probe.body.len()), (200, 0));
    assert!(probe.head.contains("content-length: 0"));
    let up = ask(address, "POST /__up?bytes=300000", &[b'0'; 300_000]).await;
    assert_eq!((up.status, &up.body[..]), (200, &b"ok"[..]));
    let wrong = ask(address, "GET /__down?bytes=many", b"").await;
    assert_eq!(wrong.status, 400);
    assert_eq!(
        String::from_utf8(wrong.body).unwrap(),
        "parameter `bytes` is `many`: it must be a number from 0 to 10000000000\n"
    );
}

#[tokio::test]
async fn librespeed_gets_garbage_in_mebibytes_and_empty_answers() {
    let (_server, address) = serve(&[]);
    let garbage = ask(address, "GET /backend/garbage.php?ckSize=2&r=0.5", b"").await;
    assert_eq!((garbage.status, garbage.body.len()), (200, 2 << 20));
    for request in ["GET /empty", "GET /backend/empty.php?r=1", "POST /empty"] {
        let empty = ask(address, request, b"").await;
        assert_eq!((empty.status, empty.body.len()), (200, 0), "{request}");
    }
    assert_eq!(ask(address, "POST /empty.php", &[0; 500_000]).await.status, 200);
    let who = ask(address, "GET /getIP.php?isp=true", b"").await;
    let who: Value = serde_json::from_slice(&who.body).unwrap();
    assert_eq!(who["processedString"], "127.0.0.1 - loopback");
}

#[tokio::test]
async fn ookla_gets_its_files_over_http() {
    let (_server, address) = serve(&[]);
    let text = async |request: &str, body: &[u8]| {
        String::from_utf8(ask(address, request, body).await.body).unwrap()
    };
    assert_eq!(text("GET /speedtest/latency.txt?x=1.0", b"").await, "test=test\n");
    assert_eq!(text("GET //speedtest/upload.php", b"").await, "size=0\n");
    assert_eq!(text("POST /speedtest/upload.php", &[b'x'; 32_768]).await, "size=32768\n");
    assert!(text("GET /speedtest-config.php", b"").await.contains("<client ip=\"127.0.0.1\""));
    let image = ask(address, "GET /speedtest/random350x350.jpg?x=1", b"").await;
    assert_eq!(image.body.len(), 245_388);
    assert_eq!(ask(address, "GET /download?size=1000", b"").await.body.len(), 1000);
    assert_eq!(ask(address, "GET /speedtest/random7x7.jpg", b"").await.status, 404);
}

#[tokio::test]
async fn ookla_speaks_lines_on_the_same_port() {
    let (_server, address) = serve(&[]);
    let mut stream = BufStream::new(TcpStream::connect(address).await.unwrap());
    assert!(say(&mut stream, b"HI some-name\n").await.starts_with("HELLO 2.9 "));
    assert_eq!(say(&mut stream, b"PING 1\n").await.len(), 19);
    stream.write_all(b"DOWNLOAD 100000\n").await.unwrap();
    stream.flush().await.unwrap();
    let mut data = vec![0; 100_000];
    soon(stream.read_exact(&mut data)).await.unwrap();
    assert_eq!((&data[..9], data[99_999]), (&b"DOWNLOAD "[..], b'\n'));
    let mut upload = b"UPLOAD 5000 0\n".to_vec();
    upload.resize(4999, b'x');
    upload.push(b'\n');
    assert!(say(&mut stream, &upload).await.starts_with("OK 5000 1"));
    stream.write_all(b"INITPLOSS\n").await.unwrap();
    // Behind its answer the test of loss has begun.
    say(&mut stream, b"PING 1\n").await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for datagram in
        ["LOSS 1 0 some-name", "LOSS 1 2 some-name", "LOSS 1 2 some-name", "LOSS 1 3 another"]
    {
        socket.send_to(datagram.as_bytes(), address).await.unwrap();
    }
    counts(&mut stream, "PLOSS 3 1 2\n").await;
    assert_eq!(say(&mut stream, b"NONSENSE\n").await, "ERROR no such command\n");
    assert_eq!(soon(stream.read(&mut [0; 8])).await.unwrap(), 0, "then it is closed");
}

/// Says `PLOSS` until the answer is `wanted`, since datagrams take their time.
async fn counts(stream: &mut BufStream<TcpStream>, wanted: &str) {
    let mut answer = String::new();
    for _ in 0..100 {
        answer = say(stream, b"PLOSS\n").await;
        if answer == wanted {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(answer, wanted);
}

#[tokio::test]
async fn ookla_s_loss_begins_anew_and_ends_with_its_own_connection() {
    let (_server, address) = serve(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = BufStream::new(TcpStream::connect(address).await.unwrap());
        say(&mut stream, b"HI some-name\n").await;
        stream.write_all(b"INITPLOSS\n").await.unwrap();
        say(&mut stream, b"PING 1\n").await;
        streams.push(stream);
    }
    socket.send_to(b"LOSS 1 7 some-name", address).await.unwrap();
    for stream in &mut streams {
        counts(stream, "PLOSS 1 0 7\n").await;
    }
    let mut again = streams.pop().unwrap();
    again.write_all(b"INITPLOSS\n").await.unwrap();
    counts(&mut again, "PLOSS 0 0 0\n").await;
    // The other one ends, and takes nothing away.
    let mut other = streams.pop().unwrap();
    other.write_all(b"QUIT\n").await.unwrap();
    other.flush().await.unwrap();
    soon(other.read(&mut [0; 8])).await.unwrap();
    socket.send_to(b"LOSS 1 3 some-name", address).await.unwrap();
    counts(&mut again, "PLOSS 1 0 3\n").await;
}

#[tokio::test]
async fn ookla_s_lines_may_come_together() {
    let (_server, address) = serve(&[]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    // All in one segment; the smallest download, and an upload whose only line is all of it.
    stream.write_all(b"HI\nPING 5\nDOWNLOAD 10\nUPLOAD 12 0\nPLOSS\nQUIT\n").await.unwrap();
    let mut answers = String::new();
    soon(stream.read_to_string(&mut answers)).await.unwrap();
    let lines: Vec<_> = answers.lines().collect();
    assert!(lines[0].starts_with("HELLO 2.9 (2.9.0) "), "{answers}");
    assert_eq!((lines[1].len(), lines[2]), (18, "DOWNLOAD "));
    assert_eq!(lines[3].rsplit_once(' ').unwrap().0, "OK 12");
    assert_eq!(lines[4..], ["ERROR say INITPLOSS first"]);
}

#[tokio::test]
async fn ookla_s_lines_may_come_in_pieces() {
    let (_server, address) = serve(&[]);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in b"HI\nUPLOAD 14 0\nx\nQUIT\n" {
        stream.write_all(&[*byte]).await.unwrap();
    }
    let mut answers = String::new();
    soon(stream.read_to_string(&mut answers)).await.unwrap();
    assert!(answers.lines().nth(1).unwrap().starts_with("OK 14 "), "{answers}");
}

#[tokio::test]
async fn what_ookla_s_lines_may_not_be_ends_the_connection() {
    let (_server, address) = serve(&[]);
    for (words, answer) in [
        (&b"DOWNLOAD 9\n"[..], "ERROR fewer bytes than the answer has\n"),
        (b"DOWNLOAD 10737418241\n", "ERROR more bytes than allowed\n"),
        (b"UPLOAD 10 0\n", "ERROR fewer bytes than the command has\n"),
        (b"UPLOAD\n", "ERROR a number of bytes is missing\n"),
        (b"PI\xff\n", "ERROR a command is ASCII text\n"),
        // No line at all.
        (&[b'P', b'I'].repeat(200), ""),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(words).await.unwrap();
        let mut told = Vec::new();
        // What it did not read before it closes makes that a reset.
        let _ = soon(stream.read_to_end(&mut told)).await;
        assert_eq!(String::from_utf8_lossy(&told), answer);
    }
}

async fn say(stream: &mut BufStream<TcpStream>, words: &[u8]) -> String {
    stream.write_all(words).await.unwrap();
    stream.flush().await.unwrap();
    let mut line = String::new();
    soon(stream.read_line(&mut line)).await.unwrap();
    line
}

#[tokio::test]
async fn responsiveness_names_its_urls_as_the_client_reaches_it() {
    let (_server, address) = serve(&[]);
    let stream = TcpStream::connect(address).await.unwrap();
    let answer = client::ask_on(stream, "GET /.well-known/nq", b"").await;
    let config: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(config["version"], 1);
    assert_eq!(config["urls"]["small_download_url"], "https://test/small");
    assert_eq!(config["urls"]["https_upload_url"], "https://test/slurp");
    assert_eq!(ask(address, "GET /small", b"").await.body.len(), 1);
    assert_eq!(ask(address, "POST /slurp", &[1; 200_000]).await.status, 200);
    assert_eq!(ask(address, "GET /slurp", b"").await.status, 405);
}

#[tokio::test]
async fn ndt7_download_sends_load_and_measurements_until_it_closes() {
    let (_server, address) = serve(&["--max-duration", "1s"]);
    let path = "/ndt/v7/download?client_name=test";
    let mut socket = websocket(address, path, NDT7).await.unwrap();
    let (mut bytes, mut last, mut measurements, mut longest) = (0, Value::Null, 0, 0);
    let mut pings = 0;
    loop {
        match soon(socket.next()).await.unwrap().unwrap() {
            Message::Binary(load) => {
                bytes += load.len() as u64;
                longest = longest.max(load.len());
                assert!(load.len().is_power_of_two() && load.len() >= 8192);
            }
            Message::Text(text) => {
                measurements += 1;
                last = serde_json::from_str(&text).unwrap();
            }
            Message::Ping(_) => pings += 1,
            Message::Close(frame) => {
                assert_eq!(u16::from(frame.unwrap().code), 1000);
                break;
            }
            Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    assert!(longest <= 1 << 20 && measurements >= 2 && pings == measurements);
    assert_eq!(last["Test"], "download");
    assert!(last["AppInfo"]["NumBytes"].as_u64().unwrap() >= bytes);
    assert!(last["TCPInfo"]["BytesAcked"].as_u64().unwrap() > 0);
    assert!(last["TCPInfo"]["ElapsedTime"].as_u64().unwrap() >= 1_000_000);
    assert!(last["ConnectionInfo"]["UUID"].as_str().unwrap().starts_with("weir_"));
}

#[tokio::test]
async fn ndt7_upload_is_counted_and_told() {
    let (_server, address) = serve(&["--max-duration", "1s"]);
    let mut socket = websocket(address, "/ndt/v7/upload", NDT7).await.unwrap();
    for _ in 0..50 {
        socket.send(Message::binary(vec![3; 8192])).await.unwrap();
    }
    let mut last = Value::Null;
    loop {
        match soon(socket.next()).await.unwrap().unwrap() {
            Message::Text(text) => last = serde_json::from_str(&text).unwrap(),
            Message::Close(_) => break,
            _ => {}
        }
    }
    assert_eq!(last["AppInfo"]["NumBytes"], 50 * 8192);
    assert_eq!(last["Test"], "upload");
    // Headers of frames count there, and the request for the upgrade.
    assert!(last["TCPInfo"]["BytesReceived"].as_u64().unwrap() > 50 * 8192);
}

#[tokio::test]
async fn ndt7_asks_for_its_name_and_for_sense() {
    let (_server, address) = serve(&[]);
    assert_eq!(websocket(address, "/ndt/v7/download", "something.else").await.err(), Some(400));
    let early = websocket(address, "/ndt/v7/download?early_exit=100", NDT7);
    assert_eq!(early.await.err(), Some(400));
    let twice = websocket(address, "/ndt/v7/download?a=1&a=2", NDT7);
    assert_eq!(twice.await.err(), Some(400));
    assert_eq!(ask(address, "GET /ndt/v7/download", b"").await.status, 426);
}

#[tokio::test]
async fn throughput1_keeps_to_the_bytes_asked_for() {
    let (_server, address) = serve(&[]);
    let path = "/throughput/v1/download?mid=x&streams=1&duration=5000&bytes=1000000&cc=cubic";
    let mut socket = websocket(address, path, "net.measurementlab.throughput.v1").await.unwrap();
    let (mut bytes, mut first) = (0, None);
    loop {
        match soon(socket.next()).await.unwrap().unwrap() {
            Message::Binary(load) => bytes += load.len(),
            Message::Text(text) => {
                bytes += text.len();
                first.get_or_insert(serde_json::from_str::<Value>(&text).unwrap());
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
    let first = first.unwrap();
    // The last measurement comes behind the bytes.
    assert!((1_000_000..1_004_000).contains(&bytes), "{bytes}");
    assert_eq!(first["CC"], "cubic");
    assert!(first["Application"]["BytesSent"].as_u64().unwrap() > 0);
    let without =
        websocket(address, "/throughput/v1/download?streams=1", "net.measurementlab.throughput.v1");
    assert_eq!(without.await.err(), Some(400));
}

#[tokio::test]
async fn what_is_switched_off_is_not_there() {
    let (_server, address) =
        serve(&["--without", "page,ndt7,ookla,cloudflare,metrics,rpm,librespeed,msak"]);
    for path in [
        "/",
        "/ndt/v7/download",
        "/hello",
        "/__down",
        "/metrics",
        "/small",
        "/garbage",
        "/throughput/v1/upload",
    ] {
        assert_eq!(ask(address, &format!("GET {path}"), b"").await.status, 404, "{path}");
    }
    assert!(websocket(address, "/weir/v1", "weir.v1").await.is_ok());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"HI\n").await.unwrap();
    assert_eq!(soon(stream.read(&mut [0; 8])).await.unwrap_or(0), 0);
}
