//! Ookla's lines as `weir serve` answers them (`weir-serve`, `ookla.rs`), and the datagrams that it counts beside
//! them.

use weir_core::{Ecn, Packet, Time};
use weir_path::End;
use weir_speedtest::protocol::ookla::{Command, HELLO, LossCount, LossDatagram, pong};

use crate::encapsulation::Encapsulation;
use crate::run::Network;

/// State of a connection of lines: the server, and the datagrams from the client to it.
pub(crate) struct Lines {
    /// Name under which the client's datagrams come.
    name: Option<String>,
    /// Count of the datagrams that came; `None` until the client has announced them.
    loss: Option<LossCount>,
    /// Datagrams that were sent, by the handles of their packets.
    datagrams: Vec<String>,
    flow_id: u32,
    encapsulation: Encapsulation,
}

impl Lines {
    /// Datagrams carry `flow_id` and look like `encapsulation` on the path.
    pub const fn new(flow_id: u32, encapsulation: Encapsulation) -> Self {
        Self { name: None, loss: None, datagrams: Vec::new(), flow_id, encapsulation }
    }

    /// The server's answer to a line of the client, without its end; `None` if it says nothing.
    pub fn on_line(&mut self, line: &str, now: Time) -> Option<String> {
        let answer = match Command::parse(line.as_bytes()) {
            Ok(Command::Hello(name)) => {
                self.name = name.map(ToOwned::to_owned);
                HELLO.to_owned()
            }
            Ok(Command::Ping) => pong(now.as_nanos() / 1_000_000),
            Ok(Command::StartLoss) => {
                self.loss = self.name.is_some().then(LossCount::default);
                return None;
            }
            Ok(Command::Loss) => match &self.loss {
                Some(count) => count.answer(),
                None => "ERROR say INITPLOSS first".to_owned(),
            },
            Ok(Command::Quit) => return None,
            // No method of Weir's asks for them; loads go over HTTP.
            Ok(Command::Download(_) | Command::Upload { .. }) => {
                "ERROR no loads over lines in the simulator".to_owned()
            }
            Err(error) => format!("ERROR {error}"),
        };
        Some(answer.trim_end().to_owned())
    }

    /// The client sends a datagram.
    pub fn send(&mut self, text: String, network: &mut Network, now: Time) {
        let packet = Packet {
            handle: self.datagrams.len() as u64,
            enqueued_at: now,
            label: self.encapsulation.labels[End::Client as usize],
            len: self
                .encapsulation
                .sizes
                .queued_len(self.encapsulation.sizes.ip_header + UDP_HEADER + text.len() as u32),
            flow_id: self.flow_id,
            dscp: self.encapsulation.dscp,
            ecn: Ecn::NotEct,
        };
        self.datagrams.push(text);
        network.send(packet, End::Client, now);
    }

    /// The datagram of that handle, or a copy of it, arrived at the server.
    pub fn on_datagram(&mut self, handle: u64) {
        let Some(count) = &mut self.loss else { return };
        let datagram = LossDatagram::parse(self.datagrams[handle as usize].as_bytes());
        if let Some(LossDatagram { index, name }) = datagram
            && self.name.as_deref() == Some(name)
        {
            count.arrived(index);
        }
    }
}

const UDP_HEADER: u32 = 8;
