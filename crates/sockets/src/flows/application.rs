//! Clients of applications in the lab.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use socket2::{SockAddr, Socket};
use weir_core::{Duration, End, Time};
use weir_scenario::{Application, Client, TransferRow};

use super::board::Board;
use super::handshake::Offer;
use super::sockets::{bound, set_up};
use crate::clock::Clock;
use crate::ends::Sample;
use crate::error::NetError;
use crate::load::application::{ApplicationDriver, ApplicationWorld, request};
use crate::probes::shared_udp_socket;
use crate::sys::message::receive;
use crate::sys::option;
use crate::sys::time::wake_exactly;
use crate::tcp_info::TcpInfo;

/// The clients of all applications.
pub(crate) struct ApplicationWorker(ApplicationDriver<Lab>);

/// The lab, as its applications see it.
struct Lab {
    board: Arc<Board>,
    samples: Sender<Sample>,
    /// Where DNS queries leave, by flow.
    dns: BTreeMap<usize, Socket>,
}

impl ApplicationWorker {
    /// Opens the sockets that clients have from the start on, where the calling thread is.
    pub fn new(board: &Arc<Board>, samples: Sender<Sample>) -> Result<Self, NetError> {
        let lab = Lab { board: Arc::clone(board), samples, dns: BTreeMap::new() };
        let mut driver =
            ApplicationDriver::new(lab).map_err(|error| NetError::io("epoll", &error))?;
        for (flow, state) in board.flows.iter().enumerate() {
            let Some(application) = &board.spec(flow).application else { continue };
            let client = Client::new(application, flow as u32, (state.start, state.stop));
            dns_socket(board, flow)
                .and_then(|dns| {
                    driver.add(flow, client, state.stop, &dns)?;
                    driver.world.dns.insert(flow, dns);
                    Ok(())
                })
                .map_err(|error| driver.world.error(flow, "opening its socket", &error))?;
        }
        Ok(Self(driver))
    }

    /// Works until the run is over.
    pub fn run(mut self) -> Result<(), NetError> {
        wake_exactly();
        let board = Arc::clone(&self.0.world.board);
        while !board.plan.control.ends_may_close() {
            self.0.go_on(MAX_WAIT)?;
        }
        // What was cut off by a run that is stopped early.
        self.0.stop_all()
    }
}

fn dns_socket(board: &Board, flow: usize) -> io::Result<Socket> {
    let socket = shared_udp_socket(board.end(flow, End::Client), board.spec(flow).dscp)?;
    socket.connect(&SockAddr::from(board.end(flow, End::Server)))?;
    Ok(socket)
}

impl Lab {
    fn error(&self, flow: usize, what: &str, error: &io::Error) -> NetError {
        NetError::io(format_args!("flow `{}`: {what}", self.board.spec(flow).name), error)
    }
}

impl ApplicationWorld for Lab {
    /// IP bytes that have arrived by the last look.
    type Connection = u64;

    fn clock(&self) -> Clock {
        self.board.plan.clock
    }

    fn open(&mut self, flow: usize) -> io::Result<(Socket, u64)> {
        Ok((bound(SocketAddr::new(self.board.end(flow, End::Client).ip(), 0), false)?, 0))
    }

    fn connect(&mut self, flow: usize, socket: &Socket) -> io::Result<bool> {
        let spec = self.board.spec(flow);
        if !self.board.gate.enter(End::Client, Offer::of(&spec.tcp.overrides)) {
            return Ok(false);
        }
        set_up(socket, spec, false).map_err(io::Error::other)?;
        let server = SocketAddr::new(self.board.end(flow, End::Server).ip(), PORT);
        match socket.connect(&SockAddr::from(server)) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(true),
        }
    }

    fn leaves_handshake(&mut self) {
        // It set no switches that would have to be put back.
        let _ = self.board.gate.leave(|| Ok::<_, NetError>(()));
    }

    fn request(&mut self, flow: usize, _: &mut u64, bytes: u64, response: u64) -> Vec<u8> {
        request(flow, bytes, response)
    }

    fn receive(&mut self, flow: usize, wire_bytes: &mut u64, socket: &Socket) -> io::Result<u64> {
        let bytes = match option::discard(socket, MAX_READ_BYTES)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => bytes as u64,
        };
        let header = self.board.ip_header(flow);
        if let Ok(info) = TcpInfo::of(socket) {
            let wire = info.wire_bytes(header);
            self.board.arrived_on_wire(flow, wire.saturating_sub(*wire_bytes));
            *wire_bytes = wire;
        }
        self.board.delivered(flow, bytes, self.clock().now());
        Ok(bytes)
    }

    fn query(&mut self, flow: usize, number: u64) -> io::Result<()> {
        let mut payload = [0; Application::QUERY_BYTES as usize];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        self.dns[&flow].send(&payload).map(|_| ())
    }

    fn answer(&mut self, flow: usize) -> io::Result<Option<(u64, Time)>> {
        let mut answer = [0; Application::ANSWER_BYTES as usize];
        let received = receive(&self.dns[&flow], &mut answer)?;
        if received.len != answer.len() {
            return Ok(None);
        }
        let now = self.clock().of_stamp(received.real_ns);
        let number = u64::from_be_bytes(std::array::from_fn(|byte| answer[byte]));
        self.board.delivered(flow, answer.len() as u64, now);
        let version = self.board.plan.scenario.flow_ip(flow);
        self.board.arrived_on_wire(flow, Application::answer_ip_len(version).into());
        Ok(Some((number, now)))
    }

    fn ended(&mut self, row: TransferRow) {
        // Whoever no longer listens has no use for the rest either.
        let _ = self.samples.send(Sample::Transfer(row));
    }

    fn failed(&mut self, flow: usize, what: &str, error: io::Error) -> Result<(), NetError> {
        Err(self.error(flow, what, &error))
    }
}

/// Port at which servers answer the connections of applications.
pub(super) const PORT: u16 = 8_000;
/// How soon the end of the run is noticed.
const MAX_WAIT: Duration = Duration::from_millis(20);
/// Taken from the kernel at once. Nothing is copied.
const MAX_READ_BYTES: usize = 4 << 20;
