//! A port that has shown that it is the client's: it has returned a cookie that only it was told.

use std::net::{IpAddr, SocketAddr};

use weir_core::{Duration, Time};

use crate::data;

/// The port that asked last; once its cookie came back it is that for good.
#[derive(Debug, Default)]
pub(super) struct ProvenPort {
    port: Option<Port>,
    is_proven: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub address: SocketAddr,
    /// The address of this machine that it asked.
    pub asked: Option<IpAddr>,
    cookie: u64,
    answered: Time,
}

/// What becomes of a datagram with a cookie, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The port is told this cookie.
    Cookie(u64),
    /// The port has shown its cookie for the first time: the flow begins.
    Begins,
    /// The client still listens.
    Heard,
    /// It is of no use.
    Unknown,
}

impl ProvenPort {
    /// The port, if it is proven.
    pub fn get(&self) -> Option<Port> {
        self.port.filter(|_| self.is_proven)
    }

    /// A datagram with `cookie` came from `port`: whether it is the port's own.
    pub fn shown(&mut self, port: SocketAddr, cookie: u64) -> Asked {
        let is_own = |known: Port| known.address == port && known.cookie == cookie;
        if !self.port.is_some_and(is_own) {
            return Asked::Unknown;
        }
        let first = !std::mem::replace(&mut self.is_proven, true);
        if first { Asked::Begins } else { Asked::Heard }
    }

    /// A datagram with `cookie`, or 0, came from `port` to the address `asked` at `now`, and wants the port's cookie.
    pub fn asked(
        &mut self,
        port: SocketAddr,
        asked: Option<IpAddr>,
        cookie: u64,
        now: Time,
    ) -> Asked {
        let shown = self.shown(port, cookie);
        let rests = self.port.is_some_and(|known| now.since(known.answered) < ANSWER_EVERY);
        if shown != Asked::Unknown || self.is_proven || rests {
            return shown;
        }
        if let Some(known) = self.port.as_mut().filter(|known| known.address == port) {
            known.answered = now;
            return Asked::Cookie(known.cookie);
        }
        let fresh = data::random().max(1);
        self.port = Some(Port { address: port, asked, cookie: fresh, answered: now });
        Asked::Cookie(fresh)
    }
}

/// At most so often a cookie is told, whoever asks.
const ANSWER_EVERY: Duration = Duration::from_millis(10);
