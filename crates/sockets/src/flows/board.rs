//! State that the threads of the loads share.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use portable_atomic::AtomicU64;
use socket2::Socket;
use weir_core::{End, Protocol, Time};
use weir_scenario::{Flow, UdpLoad};

use super::handshake::Gate;
use super::udp::UdpFlow;
use crate::plan::Plan;

/// All loads, as all threads see them.
pub(crate) struct Board {
    pub plan: Arc<Plan>,
    pub flows: Vec<FlowState>,
    /// Who may open a connection.
    pub gate: Gate,
}

/// A load. The sockets of one over TCP are kept until the very end, so that the kernel can be
/// asked about them.
pub(crate) struct FlowState {
    pub start: Time,
    pub stop: Time,
    /// Bytes that the receiver has read.
    pub delivered: AtomicU64,
    first_data: OnceLock<Time>,
    completed: OnceLock<Time>,
    pub sender: OnceLock<Arc<Socket>>,
    pub receiver: OnceLock<Arc<Socket>>,
    /// IP bytes of an application's answers that arrived.
    pub application_wire: AtomicU64,
    /// The load, if it is one over UDP.
    pub udp: Option<UdpFlow>,
}

impl Board {
    pub fn new(plan: Arc<Plan>) -> Self {
        let state = |(n, flow): (usize, &Flow)| {
            let start = plan.scenario.flow_start(n, plan.seed);
            let stop = flow.stop().max(start);
            let udp = |load: UdpLoad| {
                UdpFlow::new(&load, load.sender(n as u32, (start, stop), plan.seed))
            };
            FlowState {
                start,
                stop,
                delivered: AtomicU64::new(0),
                first_data: OnceLock::new(),
                completed: OnceLock::new(),
                sender: OnceLock::new(),
                receiver: OnceLock::new(),
                application_wire: AtomicU64::new(0),
                udp: flow.udp.map(udp),
            }
        };
        let flows = plan.scenario.flows.iter().enumerate().map(state).collect();
        Self { plan, flows, gate: Gate::default() }
    }

    /// Whether `flow` is a load of data over TCP.
    pub fn is_tcp(&self, flow: usize) -> bool {
        self.spec(flow).is_tcp()
    }

    pub fn spec(&self, flow: usize) -> &Flow {
        &self.plan.scenario.flows[flow]
    }

    /// Bytes of the IP header of the packets of `flow`.
    pub fn ip_header(&self, flow: usize) -> u32 {
        self.plan.scenario.flow_ip(flow).header_bytes()
    }

    /// The address and port of the end of `flow` at `side`.
    pub fn end(&self, flow: usize, side: End) -> SocketAddr {
        let key = self.plan.scenario.flow_key(flow);
        let (client, server) = self.plan.addresses.ends(&key, self.spec(flow).host);
        match side {
            End::Client => client,
            End::Server => server,
        }
    }

    /// The load that has these ends, seen from `side`.
    pub fn owner(&self, side: End, local: SocketAddr, peer: SocketAddr) -> Option<usize> {
        let (client, server) = match side {
            End::Client => (local, peer),
            End::Server => (peer, local),
        };
        let plan = &self.plan;
        plan.addresses
            .owner(&plan.scenario, client, server, Protocol::TCP)
            .filter(|&owner| owner < self.flows.len())
    }

    /// Puts a connected socket where the sampler finds it.
    pub fn show(&self, flow: usize, side: End, socket: &Arc<Socket>) {
        let state = &self.flows[flow];
        let place = if side == self.spec(flow).sender() { &state.sender } else { &state.receiver };
        // A second connection of the same ends would be a stranger's: the first one stays.
        let _ = place.set(Arc::clone(socket));
    }

    /// Packets of `bytes` more arrived for the application `flow`.
    pub fn arrived_on_wire(&self, flow: usize, bytes: u64) {
        self.flows[flow].application_wire.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `bytes` more of `flow` were read at `now`.
    pub fn delivered(&self, flow: usize, bytes: u64, now: Time) {
        let state = &self.flows[flow];
        state.first_data.get_or_init(|| now);
        // The receiver is the only writer; the times are set before the count that implies them.
        let total = state.delivered.load(Ordering::Relaxed) + bytes;
        if self.spec(flow).bytes == Some(total) {
            state.completed.get_or_init(|| now);
        }
        state.delivered.store(total, Ordering::Release);
    }
}

impl FlowState {
    /// When data first arrived.
    pub fn first_data(&self) -> Option<Time> {
        self.first_data.get().copied()
    }

    /// When everything was delivered, for a load of fixed size.
    pub fn completed(&self) -> Option<Time> {
        self.completed.get().copied()
    }
}
