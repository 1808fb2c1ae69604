//! A client's TCP connection: counted, paced, and closed when nothing moves on it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use weir_sockets::load::options;
use weir_sockets::{BoundedStream, TcpCarrier, TcpInfo, write_apart};
use weir_speedtest::protocol::EndAddresses;

use crate::admission::Permit;
use crate::metrics::Metrics;
use crate::pace::Bucket;

/// The connection itself. The socket is shared with whoever wants to look at it.
pub(crate) struct Connection {
    socket: Arc<TcpStream>,
    permit: Permit,
    metrics: Arc<Metrics>,
    silence: Silence,
    read_turn: Turn,
    write_turn: Turn,
    /// Bytes that still pass without waiting for the address's pace, so that a ping does not wait for a load.
    free: u64,
    /// Whether each write ends a segment, so that a small bound for what waits unsent holds.
    apart: bool,
}

/// A connection without TLS, or with it.
pub(crate) type Transport = BoundedStream<Connection>;

/// Requests that a protocol makes of the TCP connection beneath it.
pub(crate) trait OverTcp {
    /// Lets this connection, which carries no load, pass without waiting for the address's pace.
    fn carries_no_load(&mut self);

    /// Lets this connection, which somebody ends in time, be silent until then.
    fn may_rest(&mut self);

    fn socket(&self) -> &Arc<TcpStream>;
}

/// Ends a connection on which nothing moves, or that has been there for too long.
struct Silence {
    last: Instant,
    /// Whether it only ends when it has been there for too long.
    may_rest: bool,
    end: Instant,
    timer: Pin<Box<Sleep>>,
}

/// A connection's turn at a bucket.
#[derive(Default)]
struct Turn {
    /// Bytes of it that have not passed; below zero: bytes of the next one that have.
    left: i64,
    /// Wakes the task when the turn comes.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    pub fn new(
        socket: TcpStream,
        permit: Permit,
        metrics: Arc<Metrics>,
        longest: Duration,
    ) -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now + SILENCE));
        Self {
            socket: Arc::new(socket),
            permit,
            metrics,
            silence: Silence { last: now, may_rest: false, end: now + longest, timer },
            read_turn: Turn::default(),
            write_turn: Turn::default(),
            free: FREE,
            apart: false,
        }
    }

    pub const fn socket(&self) -> &Arc<TcpStream> {
        &self.socket
    }

    /// Writes once there is room for it.
    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bucket = self.permit.pace.as_ref().map(|pace| &pace.down);
        let most = ready!(self.write_turn.poll(bucket, self.free, context));
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let first = parts.iter().find(|part| !part.is_empty());
        let cut = [IoSlice::new(first.map_or(&[], |part| &part[..part.len().min(most)]))];
        let parts = if total <= most { parts } else { &cut };
        loop {
            if self.socket.poll_write_ready(context)?.is_pending() {
                return self.silence.poll(context);
            }
            match self.try_send(parts) {
                Ok(bytes) => {
                    self.silence.last = Instant::now();
                    self.metrics.sent_bytes.inc_by(bytes as u64);
                    self.write_turn.passed(bucket, bytes, self.free);
                    self.free = self.free.saturating_sub(bytes as u64);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.apart {
            return self.socket.try_write_vectored(parts);
        }
        let socket = SockRef::from(&*self.socket);
        self.socket.try_io(Interest::WRITABLE, || write_apart(&socket, parts))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        let bucket = me.permit.pace.as_ref().map(|pace| &pace.up);
        let most = ready!(me.read_turn.poll(bucket, me.free, context)).min(buffer.remaining());
        let before = buffer.filled().len();
        loop {
            if me.socket.poll_read_ready(context)?.is_pending() {
                return me.silence.poll(context);
            }
            let read = match bucket {
                None => me.socket.try_read_buf(buffer),
                Some(_) => {
                    let read = me.socket.try_read(buffer.initialize_unfilled_to(most));
                    read.inspect(|&bytes| buffer.advance(bytes))
                }
            };
            match read {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let bytes = buffer.filled().len() - before;
        me.silence.last = Instant::now();
        me.metrics.received_bytes.inc_by(bytes as u64);
        me.read_turn.passed(bucket, bytes, me.free);
        me.free = me.free.saturating_sub(bytes as u64);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(context, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.socket).shutdown(std::net::Shutdown::Write))
    }
}

impl TcpCarrier for Connection {
    fn socket(&self) -> SockRef<'_> {
        SockRef::from(&*self.socket)
    }

    fn write_apart(&mut self, apart: bool) {
        self.apart = apart;
    }
}

impl OverTcp for Transport {
    fn carries_no_load(&mut self) {
        self.tcp_mut().free = u64::MAX;
    }

    fn may_rest(&mut self) {
        self.tcp_mut().silence.may_rest = true;
    }

    fn socket(&self) -> &Arc<TcpStream> {
        &self.tcp().socket
    }
}

impl Silence {
    /// Pending until the connection has to end, and then the reason.
    fn poll<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let now = Instant::now();
            let due = if self.may_rest { self.end } else { (self.last + SILENCE).min(self.end) };
            if now >= due {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(due);
        }
    }
}

impl Turn {
    /// Pending until bytes may pass, and then how many at most. `free`: so many need not wait.
    fn poll(
        &mut self,
        bucket: Option<&Bucket>,
        free: u64,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        let Some(bucket) = bucket else { return Poll::Ready(usize::MAX) };
        if free == 0 && self.left <= 0 {
            let timer = self.timer.get_or_insert_with(|| {
                let due = bucket.reserve(bucket.turn(), Instant::now().into_std());
                Box::pin(sleep_until(due.into()))
            });
            ready!(timer.as_mut().poll(context));
            self.timer = None;
            self.left += bucket.turn() as i64;
        }
        Poll::Ready(bucket.turn())
    }

    /// Notes that `bytes` passed; if `free` is not 0, they passed without waiting for a turn.
    fn passed(&mut self, bucket: Option<&Bucket>, bytes: usize, free: u64) {
        if free == 0 {
            self.left -= bytes as i64;
        } else if let Some(bucket) = bucket {
            bucket.reserve(bytes, Instant::now().into_std());
        }
    }
}

/// Reads the addresses of both ends of a connection. An IPv4 client of an IPv6 socket has its IPv4 address.
pub(crate) fn end_addresses(socket: &TcpStream) -> io::Result<EndAddresses> {
    let canonical =
        |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    Ok(EndAddresses {
        client: canonical(socket.peer_addr()?),
        server: canonical(socket.local_addr()?),
    })
}

/// Reads the kernel's `TCP_INFO` of a connection; `None` if the connection is gone.
pub(crate) fn tcp_info(socket: &TcpStream) -> Option<TcpInfo> {
    TcpInfo::of(&SockRef::from(socket)).ok()
}

/// The name of a connection's congestion control.
pub(crate) fn congestion(socket: &TcpStream) -> Option<String> {
    options::congestion_control(&SockRef::from(socket)).ok()
}

/// Time after which a client that neither takes nor sends a byte is gone, or never meant to be there.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes that pass before a connection has to wait: more than handshakes and probes take, less than a load.
const FREE: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_30_s_after_the_last_byte_and_one_that_may_rest_when_it_was_there_too_long()
     {
        let second = Duration::from_secs(1);
        let longest = second * 90;
        for (may_rest, last, lasts) in [
            (false, Duration::ZERO, second * 30),
            (false, second * 7, second * 37),
            (false, second * 80, longest),
            (true, Duration::ZERO, longest),
        ] {
            let now = Instant::now();
            let timer = Box::pin(sleep_until(now + SILENCE));
            let mut silence = Silence { last: now + last, may_rest, end: now + longest, timer };
            let ended: io::Result<()> = poll_fn(|context| silence.poll(context)).await;
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
            let took = now.elapsed();
            assert!(took >= lasts && took < lasts + second, "{took:?}");
        }
    }
}
