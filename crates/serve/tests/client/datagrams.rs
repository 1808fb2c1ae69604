//! Datagrams of loads, by hand.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::timeout;
use weir_speedtest::protocol::weir::{LOAD_BYTES, LoadDatagram, Token};

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
