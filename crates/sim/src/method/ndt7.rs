//! The server of an ndt7 test, as `weir serve` runs it (`weir-serve`, `stream_test.rs`): messages as fast as they
//! go or none at all, and beside them measurements of its own.

use serde_json::{Map, Value};
use weir_core::{Draw, Duration, Rng, Time};
use weir_scenario::Direction;
use weir_speedtest::protocol::ndt7::{self, AppInfo, ConnectionInfo, Measurement, Options};
use weir_speedtest::protocol::{EndAddresses, Query, QueryError};
use weir_tcp::Endpoint;

use super::pipe::{Meaning, Pipe};
use super::sizes::{CLOSE, PING, web_socket_header};

/// A test in one direction.
#[derive(Debug)]
pub(crate) struct Ndt7Server {
    direction: Direction,
    options: Options,
    began: Time,
    /// When the next measurement is due.
    next: Time,
    connection: ConnectionInfo,
    /// Bytes of messages that came.
    pub received: u64,
    closed: bool,
}

impl Ndt7Server {
    /// The test at `path`; `None` if there is none at it.
    pub fn begin(
        path: &str,
        ends: EndAddresses,
        now: Time,
        random: &mut Rng,
    ) -> Option<Result<Self, QueryError>> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let direction = match path {
            ndt7::DOWNLOAD => Direction::Down,
            ndt7::UPLOAD => Direction::Up,
            _ => return None,
        };
        Some(Options::parse(Query::new(query)).map(|options| Self {
            direction,
            options,
            began: now,
            next: now + draw(random),
            connection: ConnectionInfo {
                client: ends.client,
                server: ends.server,
                uuid: format!("weir_{:016x}", random.below(u64::MAX)),
            },
            received: 0,
            closed: false,
        }))
    }

    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// When an upload's next measurement is due; a download's come between its messages.
    pub fn next_due(&self) -> Option<Time> {
        let is_due = self.direction == Direction::Up && !self.closed;
        is_due.then(|| self.next.min(self.end()))
    }

    /// Between two messages of a download, or when an upload's measurement is due: says what there is to say.
    pub fn look(&mut self, pipe: &mut Pipe, tcp: &Endpoint, now: Time, random: &mut Rng) {
        if self.closed || (now < self.next && now < self.end() && !self.is_enough(tcp)) {
            return;
        }
        let ends = now >= self.end() || self.is_enough(tcp);
        if ends {
            pipe.clear(None);
        }
        let text = self.tell(pipe, tcp, now);
        let bytes = web_socket_header(text.len() as u64, false) + text.len() as u64;
        pipe.say_next(PING, Meaning::Ping);
        pipe.say_next(bytes, Meaning::Text(text));
        self.next = now + draw(random);
        if ends {
            pipe.say(CLOSE, Meaning::Close);
            self.closed = true;
        }
    }

    fn end(&self) -> Time {
        self.began + Duration::from_nanos(ndt7::DURATION_NS)
    }

    fn is_enough(&self, tcp: &Endpoint) -> bool {
        self.direction == Direction::Down
            && self.options.early_exit_bytes.is_some_and(|limit| tcp.acked_bytes() >= limit)
    }

    fn tell(&self, pipe: &Pipe, tcp: &Endpoint, now: Time) -> String {
        let elapsed_time = now.since(self.began).as_micros();
        let (test, num_bytes) = match self.direction {
            Direction::Down => ("download", pipe.load_written()),
            Direction::Up => ("upload", self.received),
        };
        let measurement = Measurement {
            app_info: AppInfo { elapsed_time, num_bytes },
            connection_info: self.connection.clone(),
            origin: "server",
            test,
            tcp_info: Some(kernel_words(tcp, elapsed_time)),
        };
        serde_json::to_string(&measurement).expect("it has no maps with keys that are not text")
    }
}

/// The kernel's `TCP_INFO` of `tcp`, under the names of [`weir_speedtest::protocol::kernel`].
fn kernel_words(tcp: &Endpoint, elapsed_us: u64) -> Map<String, Value> {
    let info = tcp.info();
    let micros = |span: Duration| Value::from(span.as_micros());
    let counters = info.counters;
    let words = [
        ("ElapsedTime", elapsed_us.into()),
        ("RTO", micros(info.rto)),
        ("Unacked", info.in_flight.into()),
        ("RTT", micros(info.srtt.unwrap_or(Duration::ZERO))),
        ("RTTVar", micros(info.rttvar)),
        ("MinRTT", micros(info.min_rtt.unwrap_or(Duration::ZERO))),
        ("SndSsThresh", info.ssthresh.unwrap_or(i32::MAX as u32).into()),
        ("SndCwnd", info.cwnd.into()),
        ("TotalRetrans", counters.segments_retransmitted.into()),
        ("PacingRate", info.pacing_rate.into()),
        ("BytesAcked", tcp.acked_bytes().into()),
        ("BytesReceived", tcp.delivered_bytes().into()),
        ("NotsentBytes", tcp.unsent_bytes().into()),
        ("DataSegsOut", counters.segments_sent.into()),
        ("BytesSent", counters.bytes_sent.into()),
        ("BytesRetrans", counters.bytes_retransmitted.into()),
    ];
    words.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn draw(random: &mut Rng) -> Duration {
    // In (0, 1], so that the logarithm is finite.
    Duration::from_nanos(ndt7::MEASUREMENTS.draw(1.0 - random.unit()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_core::Seed;
    use weir_tcp::Profile;

    use super::*;

    #[test]
    fn the_kernels_words_are_those_of_the_kernel() {
        let profile = Arc::new(Profile::named("linux").unwrap());
        let tcp = Endpoint::new(profile, "cubic", 1448, Seed::new(1).stream("t")).unwrap();
        let known = weir_speedtest::protocol::kernel::tcp_info(&[0; 232]);
        for name in kernel_words(&tcp, 5).keys() {
            assert!(name == "ElapsedTime" || known.contains_key(name), "{name}");
        }
    }
}
