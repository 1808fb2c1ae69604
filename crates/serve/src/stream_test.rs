//! A test over one WebSocket: load in one direction, measurements of the server beside it. What ndt7 and
//! throughput1 have in common.

use std::io;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use weir_sockets::TcpInfo;
use weir_speedtest::protocol::load::{Interval, MessageSize};
use weir_speedtest::protocol::weir::Direction;

use crate::connection::{OverTcp, Transport, tcp_info};
use crate::data;
use crate::frames::{FrameReader, FrameWriter, Received};

/// How a test is to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub direction: Direction,
    pub duration: Duration,
    /// When it is over whatever happens.
    pub longest: Duration,
    pub sizes: MessageSize,
    pub longest_message: u64,
    pub every: Interval,
    /// Bound that ends the test early.
    pub limit: Limit,
    /// Whether a ping follows each measurement.
    pub pings: bool,
}

/// A bound that ends a test before its time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    None,
    /// Bytes that the client has acknowledged.
    Acknowledged(u64),
    /// Bytes of messages sent, or received by the kernel in an upload.
    Bytes(u64),
}

/// How a test stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub elapsed: Duration,
    /// Bytes of messages.
    pub sent: u64,
    pub received: u64,
    pub tcp: Option<TcpInfo>,
}

struct Test<N> {
    plan: Plan,
    start: Instant,
    socket: Arc<TcpStream>,
    narrate: N,
}

/// Bytes sent and received by the two halves of a test, and the ping that one hands to the other.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    /// A ping that has to be answered.
    ping: Mutex<Option<Vec<u8>>>,
}

/// Runs a test to its end, and returns the bytes of messages that went in its direction. `narrate` puts a
/// measurement into words.
pub(crate) async fn run<N>(transport: Transport, begun: &[u8], plan: Plan, narrate: N) -> u64
where
    N: FnMut(&State) -> String + Send,
{
    let socket = Arc::clone(transport.socket());
    let (read, write) = split(transport);
    let mut reader = FrameReader::new(read, begun, plan.longest_message);
    let mut writer = FrameWriter::new(write);
    let start = Instant::now();
    let mut test = Test { plan, start, socket, narrate };
    let counts = Counts::default();
    // An error is an end like any other here: the specification has both sides tolerate it.
    let _ = timeout_at(start + plan.longest, test.run(&mut reader, &mut writer, &counts)).await;
    let counted = match plan.direction {
        Direction::Down => &counts.sent,
        Direction::Up => &counts.received,
    };
    counted.load(Ordering::Relaxed)
}

impl<N: FnMut(&State) -> String + Send> Test<N> {
    async fn run(
        &mut self,
        reader: &mut FrameReader<ReadHalf<Transport>>,
        writer: &mut FrameWriter<WriteHalf<Transport>>,
        counts: &Counts,
    ) -> io::Result<()> {
        {
            let mut receiving = std::pin::pin!(receive(reader, counts));
            let sending = async {
                match self.plan.direction {
                    Direction::Down => self.download(writer, counts).await,
                    Direction::Up => self.upload(writer, counts).await,
                }
            };
            tokio::select! {
                ended = &mut receiving => return ended,
                sent = sending => sent?,
            }
        }
        // What was sent last is lost if the connection is closed before the client has read it.
        let _ = timeout(FAREWELL, receive(reader, counts)).await;
        Ok(())
    }

    async fn download(
        &mut self,
        writer: &mut FrameWriter<WriteHalf<Transport>>,
        counts: &Counts,
    ) -> io::Result<()> {
        let plan = self.plan;
        let mut sizes = plan.sizes;
        let end = self.start + plan.duration;
        let mut next = self.start + draw(plan.every);
        let mut sent = 0;
        loop {
            let now = Instant::now();
            if now >= end || self.limit_reached(sent) {
                break;
            }
            if now >= next {
                sent += self.tell(writer, counts).await?;
                next = now + draw(plan.every);
            }
            answer_ping(writer, counts).await?;
            let mut size = sizes.next(sent) as u64;
            if let Limit::Bytes(limit) = plan.limit {
                size = size.min(limit - sent);
            }
            writer.binary(data::bytes(size as usize)).await?;
            sent += size;
            counts.sent.store(sent, Ordering::Relaxed);
        }
        self.tell(writer, counts).await?;
        writer.close().await
    }

    async fn upload(
        &mut self,
        writer: &mut FrameWriter<WriteHalf<Transport>>,
        counts: &Counts,
    ) -> io::Result<()> {
        let end = self.start + self.plan.duration;
        loop {
            let next = Instant::now() + draw(self.plan.every);
            sleep_until(next.min(end)).await;
            answer_ping(writer, counts).await?;
            self.tell(writer, counts).await?;
            if next >= end || self.limit_reached(0) {
                return writer.close().await;
            }
        }
    }

    /// Sends a measurement, and returns the bytes of its message.
    async fn tell(
        &mut self,
        writer: &mut FrameWriter<WriteHalf<Transport>>,
        counts: &Counts,
    ) -> io::Result<u64> {
        let state = State {
            elapsed: self.start.elapsed(),
            sent: counts.sent.load(Ordering::Relaxed),
            received: counts.received.load(Ordering::Relaxed),
            tcp: tcp_info(&self.socket),
        };
        let text = (self.narrate)(&state);
        let bytes = text.len() as u64;
        writer.text(text).await?;
        if self.plan.pings {
            let stamp = self.start.elapsed().as_nanos() as u64;
            writer.ping(stamp.to_be_bytes().to_vec()).await?;
        }
        counts.sent.fetch_add(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    fn limit_reached(&self, sent: u64) -> bool {
        let kernel = || tcp_info(&self.socket).map(|info| info.delivered_bytes());
        match (self.plan.limit, self.plan.direction) {
            (Limit::None, _) => false,
            (Limit::Bytes(limit), Direction::Down) => sent >= limit,
            (Limit::Bytes(limit), Direction::Up) => {
                kernel().is_some_and(|(_, received)| received >= limit)
            }
            (Limit::Acknowledged(limit), _) => kernel().is_some_and(|(acked, _)| acked >= limit),
        }
    }
}

/// How long until the next measurement.
fn draw(every: Interval) -> Duration {
    // In (0, 1], so that the logarithm is finite.
    let uniform = (f64::from(data::random() as u32) + 1.0) / (f64::from(u32::MAX) + 1.0);
    Duration::from_nanos(every.draw(uniform))
}

/// Takes what the client sends until it ends.
async fn receive(reader: &mut FrameReader<ReadHalf<Transport>>, counts: &Counts) -> io::Result<()> {
    loop {
        match reader.next().await? {
            Received::Data(bytes) => {
                counts.received.fetch_add(bytes, Ordering::Relaxed);
            }
            Received::Ping(payload) => {
                *counts.ping.lock().expect("nothing panics while it is held") = Some(payload);
            }
            Received::Close => return Ok(()),
        }
    }
}

/// RFC 6455, section 5.5.3: of several pings the latest may be answered alone.
async fn answer_ping(
    writer: &mut FrameWriter<WriteHalf<Transport>>,
    counts: &Counts,
) -> io::Result<()> {
    let ping = counts.ping.lock().expect("nothing panics while it is held").take();
    match ping {
        Some(payload) => writer.pong(payload).await,
        None => Ok(()),
    }
}

/// How long a client may take to read what was sent last: a deep buffer before it is full.
const FAREWELL: Duration = Duration::from_secs(4);
