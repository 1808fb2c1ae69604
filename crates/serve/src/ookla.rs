//! Ookla's protocol over TCP, and the count of datagrams for it.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::time::{Instant, timeout, timeout_at};
use weir_core::Direction;
use weir_speedtest::protocol::EndAddresses;
use weir_speedtest::protocol::ookla::{
    Command, DOWNLOAD_PREFIX, HELLO, LossCount, LossDatagram, MAX_LINE_BYTES, pong, uploaded,
};

use crate::connection::Connection;
use crate::requests::unix_ms;
use crate::server::PATIENCE;
use crate::service::Service;
use crate::shared::{Shared, Test};
use crate::{data, refuse};

/// Over TCP and UDP too, beside the paths of HTTP.
pub(crate) const SERVICE: Service = Service::Http(&weir_speedtest::protocol::ookla::TEST);

/// The tests of loss under way. A datagram only ever counts: it is not answered.
#[derive(Debug, Default)]
pub(crate) struct LossTests(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// By address and name, which several connections may have, and then by number.
    tests: BTreeMap<Named, BTreeMap<u64, LossCount>>,
    /// The number of the next test.
    next: u64,
}

/// Address and name of a client.
type Named = (IpAddr, String);

/// A test of loss, until it is dropped.
struct LossTest {
    server: Arc<Shared>,
    named: Named,
    number: u64,
}

impl LossTests {
    /// A datagram arrived. One of a test that nobody began is forgotten.
    pub fn arrived(&self, from: IpAddr, datagram: &LossDatagram<'_>) -> bool {
        let named = (from.to_canonical(), datagram.name.to_owned());
        let mut counts = self.counts();
        let Some(tests) = counts.tests.get_mut(&named) else { return false };
        for count in tests.values_mut() {
            count.arrived(datagram.index);
        }
        true
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().expect("nothing panics with the tests held")
    }
}

impl LossTest {
    fn begin(server: &Arc<Shared>, client: IpAddr, name: &str) -> Self {
        let named = (client.to_canonical(), name.to_owned());
        let mut counts = server.loss_tests.counts();
        let number = counts.next;
        counts.next += 1;
        counts.tests.entry(named.clone()).or_default().insert(number, LossCount::default());
        drop(counts);
        Self { server: Arc::clone(server), named, number }
    }

    fn answer(&self) -> String {
        let counts = self.server.loss_tests.counts();
        counts.tests[&self.named][&self.number].answer()
    }
}

impl Drop for LossTest {
    fn drop(&mut self) {
        let mut counts = self.server.loss_tests.counts();
        let Some(tests) = counts.tests.get_mut(&self.named) else { return };
        tests.remove(&self.number);
        if tests.is_empty() {
            counts.tests.remove(&self.named);
        }
    }
}

/// Serves a client until it quits, or says something that it should not.
pub(crate) async fn serve(
    server: &Arc<Shared>,
    connection: Connection,
    ends: EndAddresses,
) -> io::Result<()> {
    let mut stream = BufStream::with_capacity(MAX_LINE_BYTES, 1024, connection);
    let mut line = Vec::new();
    let mut name = None;
    let mut loss = None;
    loop {
        line.clear();
        // Between two lines a client may rest; within one it may not.
        stream.fill_buf().await?;
        let mut limited = (&mut stream).take(MAX_LINE_BYTES as u64);
        timeout(PATIENCE, limited.read_until(b'\n', &mut line)).await??;
        let Some(said) = line.strip_suffix(b"\n") else { return Ok(()) };
        let command = match Command::parse(said) {
            Ok(command) => command,
            Err(error) => {
                stream.write_all(format!("ERROR {error}\n").as_bytes()).await?;
                return stream.flush().await;
            }
        };
        match command {
            Command::Hello(given) => {
                name = given.map(ToOwned::to_owned);
                stream.write_all(HELLO.as_bytes()).await?;
            }
            Command::Ping => stream.write_all(pong(unix_ms()).as_bytes()).await?,
            Command::Download(bytes) => {
                match server.begin_request("ookla", Direction::Down, ends.client) {
                    Ok(test) => load(server, test, download(&mut stream, bytes)).await?,
                    Err(refusal) => return refuse::told_on(server, stream, refusal).await,
                }
            }
            Command::Upload { total, rest } => {
                match server.begin_request("ookla", Direction::Up, ends.client) {
                    Ok(test) => load(server, test, upload(&mut stream, rest)).await?,
                    Err(refusal) => return refuse::told_on(server, stream, refusal).await,
                }
                stream.write_all(uploaded(total, unix_ms()).as_bytes()).await?;
            }
            Command::StartLoss => {
                // Is not answered; without a name there is nothing to count.
                loss = name.as_deref().map(|name| LossTest::begin(server, ends.client.ip(), name));
            }
            Command::Loss => {
                let answer =
                    loss.as_ref().map_or("ERROR say INITPLOSS first\n".into(), LossTest::answer);
                stream.write_all(answer.as_bytes()).await?;
            }
            Command::Quit => return Ok(()),
        }
        stream.flush().await?;
    }
}

/// Does the load of `test`, within its longest time.
async fn load(
    server: &Shared,
    test: Test,
    work: impl Future<Output = io::Result<u64>>,
) -> io::Result<()> {
    let end = Instant::now() + server.options.max_duration;
    let bytes = timeout_at(end, work).await??;
    test.passed(bytes);
    Ok(())
}

async fn download(stream: &mut BufStream<Connection>, bytes: u64) -> io::Result<u64> {
    stream.write_all(DOWNLOAD_PREFIX).await?;
    let mut left = bytes - DOWNLOAD_PREFIX.len() as u64 - 1;
    while left > 0 {
        let part = left.min(data::MAX_CHUNK_BYTES as u64);
        stream.write_all(&data::bytes(part as usize)).await?;
        left -= part;
    }
    stream.write_all(b"\n").await?;
    stream.flush().await?;
    Ok(bytes)
}

async fn upload(stream: &mut BufStream<Connection>, bytes: u64) -> io::Result<u64> {
    let mut left = bytes;
    let mut buffer = vec![0; BUFFER];
    while left > 0 {
        let part = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.read(&mut buffer[..part]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => left -= read as u64,
        }
    }
    Ok(bytes)
}

const BUFFER: usize = 64 << 10;
