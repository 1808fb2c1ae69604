//! Datagrams of loads, by hand.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;
use weir_speedtest::protocol::weir::{LOAD_BYTES, LoadDatagram, Token};

use super::{ask_by_address, soon};

pub async fn socket_at(address: &str, server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(format!("{address}:0")).await.unwrap();
    socket.connect(server).await.unwrap();
    socket
}

pub async fn say(socket: &UdpSocket, datagram: LoadDatagram, length: usize) {
    let mut bytes = vec![0; length];
    datagram.emit(&mut bytes);
    socket.send(&bytes).await.unwrap();
}

/// The first datagram of `irtt client -d 1s -i 10ms` (irtt 0.9.0 of Debian 12).
pub const IRTT_OPEN: &[u8] =
    b"\x14\xa7\x5b\x01\x01\x02\x02\x80\xa8\xd6\xb9\x07\x03\x80\xda\xc4\x09\x05\x06\x06\x06\x07\x06";

/// Where a server that has irtt's protocol speaks it.
pub async fn irtt_of(server: SocketAddr) -> SocketAddr {
    let health = ask_by_address(server, "GET /healthz", b"").await.body;
    let health: serde_json::Value = serde_json::from_slice(&health).unwrap();
    health["listeners"][2]["address"].as_str().unwrap().parse().unwrap()
}

/// Opens a connection of irtt's protocol; its token.
pub async fn open_irtt(socket: &UdpSocket) -> [u8; 8] {
    let mut answer = [0; 64];
    socket.send(IRTT_OPEN).await.unwrap();
    let length = soon(socket.recv(&mut answer)).await.unwrap();
    assert!(length > 12, "{length}");
    *answer[4..].first_chunk().unwrap()
}

/// The next datagram within a time, and its length.
pub async fn next(socket: &UdpSocket, ms: u64) -> Option<(LoadDatagram, usize)> {
    let mut bytes = [0; 2048];
    let came = timeout(Duration::from_millis(ms), socket.recv(&mut bytes)).await;
    let length = came.ok()?.unwrap();
    Some((LoadDatagram::parse(&bytes[..length]).expect("it is of a load"), length))
}

/// The cookie that a port is told.
pub async fn cookie_for(socket: &UdpSocket, ticket: Token) -> u64 {
    say(socket, LoadDatagram::Ask { ticket, cookie: 0 }, LOAD_BYTES).await;
    match next(socket, 10_000).await {
        Some((LoadDatagram::Answer { ticket: of, cookie }, LOAD_BYTES)) if of == ticket => cookie,
        other => panic!("{other:?}"),
    }
}
