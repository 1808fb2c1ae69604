//! Lines over TCP, and datagrams beside them, as tasks.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use weir_core::{Duration, error_in_words};
use weir_speedtest::protocol::ookla::MAX_LINE_BYTES;
use weir_speedtest::{Event, Id, News};

use super::drive::{TimedEvent, tell};
use super::transport::Dialer;

/// An open connection.
pub(super) struct Lines {
    pub reads: OwnedReadHalf,
    pub writes: OwnedWriteHalf,
    pub datagrams: UdpSocket,
    pub tcp: Duration,
}

/// Connects without TLS, whatever the URL says: lines have none.
pub(super) async fn open(dialer: &Dialer) -> std::io::Result<Lines> {
    let (stream, tcp): (TcpStream, _) = dialer.connect().await?;
    let server = stream.peer_addr()?;
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let datagrams = UdpSocket::bind(any).await?;
    datagrams.connect(server).await?;
    let (reads, writes) = stream.into_split();
    Ok(Lines { reads, writes, datagrams, tcp })
}

/// Tells the lines that come, to the end.
pub(super) async fn receive(id: Id, reads: OwnedReadHalf, events: UnboundedSender<TimedEvent>) {
    let mut reader = BufReader::new(reads);
    let end = loop {
        let mut line = Vec::new();
        // The rest of a longer one counts as the next: no server has such.
        let read = (&mut reader).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line).await;
        match read {
            Ok(0) => break News::Event(Event::Ended { id }),
            Ok(_) => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                tell(&events, News::Text { id, text });
            }
            Err(error) => break News::Failed { id, reason: error_in_words(&error) },
        }
    };
    tell(&events, end);
}

/// Sends lines until the connection is closed.
pub(super) async fn send(mut writes: OwnedWriteHalf, mut lines: UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if writes.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            // The receiving half says why.
            return;
        }
    }
}
