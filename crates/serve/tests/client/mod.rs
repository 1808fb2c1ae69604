//! A small client for the tests: HTTP by hand, WebSockets by tungstenite, Weir's own protocol.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub mod datagrams;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use weir_serve::{Options, Running};
use weir_speedtest::protocol::weir::{
    ClientMessage, Direction, FlowRequest, Limits, Secret, ServerMessage, Token,
};

/// The subprotocol of NDT7.
pub const NDT7: &str = "net.measurementlab.ndt.v7";

/// A server on a port of its own, without irtt unless asked for.
pub fn serve(words: &[&str]) -> (Running, SocketAddr) {
    let mut all = vec!["weir serve", "--listen", "127.0.0.1:0"];
    if !words.contains(&"--irtt-port") {
        all.extend(["--without", "irtt"]);
    }
    all.extend(words);
    let running = Running::start(Options::try_parse_from(all).unwrap()).unwrap();
    let address = running.addresses()[0];
    (running, address)
}

/// Waits for something that must come soon.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), work).await.expect("it takes too long")
}

/// An answer: status, headers in small letters, body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// One request on a connection of its own.
pub async fn ask(server: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let stream = TcpStream::connect(server).await.unwrap();
    ask_on(stream, head, body).await
}

/// The same, of a server that is asked by its address.
pub async fn ask_by_address(server: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let stream = TcpStream::connect(server).await.unwrap();
    ask_host(stream, &server.to_string(), head, body).await
}

/// Sends one request on the connection `stream` and reads the answer.
pub async fn ask_on(stream: TcpStream, head: &str, body: &[u8]) -> Answer {
    ask_host(stream, "test", head, body).await
}

/// The same, of this host.
pub async fn ask_host(mut stream: TcpStream, host: &str, head: &str, body: &[u8]) -> Answer {
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let request = format!("{head} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    // A server that refuses need not read it.
    let _ = stream.write_all(body).await;
    let mut bytes = Vec::new();
    soon(stream.read_to_end(&mut bytes)).await.unwrap();
    split(&bytes)
}

fn split(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}

/// A WebSocket, or the status of the refusal.
pub async fn websocket(
    server: SocketAddr,
    path: &str,
    subprotocol: &'static str,
) -> Result<WebSocketStream<TcpStream>, u16> {
    let stream = TcpStream::connect(server).await.unwrap();
    websocket_on(stream, path, subprotocol).await
}

pub async fn websocket_on(
    stream: TcpStream,
    path: &str,
    subprotocol: &'static str,
) -> Result<WebSocketStream<TcpStream>, u16> {
    let mut request = format!("ws://test{path}").into_client_request().unwrap();
    let value = HeaderValue::from_static(subprotocol);
    request.headers_mut().insert("Sec-WebSocket-Protocol", value);
    match soon(tokio_tungstenite::client_async(request, stream)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

/// A session of Weir's own protocol.
pub struct Session {
    pub server: SocketAddr,
    pub token: Token,
    pub limits: Limits,
    pub congestion: Vec<String>,
    socket: WebSocketStream<TcpStream>,
}

impl Session {
    pub async fn open(server: SocketAddr) -> Self {
        Self::open_with(server, None).await.unwrap()
    }

    /// Opens a session, with a secret if there is one; the error is what the server said.
    pub async fn open_with(server: SocketAddr, secret: Option<&str>) -> Result<Self, String> {
        let mut socket = websocket(server, "/weir/v1", "weir.v1").await.unwrap();
        let nonce = Token(7);
        say(&mut socket, &ClientMessage::Hello { version: 1, client: "test".into(), nonce }).await;
        let ServerMessage::Welcome { version: 1, challenge, .. } = hear(&mut socket).await else {
            panic!("no welcome")
        };
        if let (Some(challenge), Some(secret)) = (challenge, secret) {
            let mac = Secret::new(secret).unwrap().answer(challenge, nonce);
            say(&mut socket, &ClientMessage::Authenticate { mac }).await;
        } else if challenge.is_some() {
            say(&mut socket, &ClientMessage::Ping { id: 1 }).await;
        }
        match hear(&mut socket).await {
            ServerMessage::Ready { token, limits, congestion, .. } => {
                Ok(Self { server, token, limits, congestion, socket })
            }
            ServerMessage::Error { flow: None, reason } => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    pub async fn say(&mut self, message: &ClientMessage) {
        say(&mut self.socket, message).await;
    }

    pub async fn hear(&mut self) -> ServerMessage {
        hear(&mut self.socket).await
    }

    /// The next message that is no sample.
    pub async fn hear_news(&mut self) -> ServerMessage {
        loop {
            match self.hear().await {
                ServerMessage::Samples { .. } => {}
                news => return news,
            }
        }
    }

    /// Asks for a flow, and returns its ticket or the refusal.
    pub async fn ticket(&mut self, request: FlowRequest) -> Result<Token, String> {
        let number = request.flow;
        self.say(&ClientMessage::Open(request)).await;
        match self.hear_news().await {
            ServerMessage::Opened { flow, ticket } => {
                assert_eq!(flow, number);
                Ok(ticket)
            }
            ServerMessage::Error { flow, reason } => {
                assert_eq!(flow, Some(number));
                Err(reason)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The connection of a flow, ready for data.
    pub async fn connect(&self, ticket: Token) -> TcpStream {
        let mut stream = TcpStream::connect(self.server).await.unwrap();
        let request = format!(
            "GET /weir/v1/flow?ticket={ticket} HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: weir-flow\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        // To the empty line and no further: data follows.
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(stream.read_u8()).await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        stream
    }
}

/// A flow of so many milliseconds.
pub fn flow(flow: u32, direction: Direction, ms: u64) -> FlowRequest {
    FlowRequest {
        flow,
        direction,
        duration_ns: ms * 1_000_000,
        bytes: None,
        congestion: None,
        dscp: 0,
        pacing_bps: None,
        unsent_bytes: None,
        sample_ns: None,
        udp: None,
        application: false,
    }
}

async fn say(socket: &mut WebSocketStream<TcpStream>, message: &ClientMessage) {
    let text = serde_json::to_string(message).unwrap();
    socket.send(Message::text(text)).await.unwrap();
}

async fn hear(socket: &mut WebSocketStream<TcpStream>) -> ServerMessage {
    loop {
        match soon(socket.next()).await.expect("the server says something").unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
