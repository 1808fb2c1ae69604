//! One end of a load: it hands data in, or takes it out.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use super::SendBudget;
use crate::sys::epoll::{Interest, Ready};
use crate::sys::option;

/// One end of a load, on a connected socket that does not block.
#[derive(Debug)]
pub struct LoadEnd {
    socket: Arc<Socket>,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Sends(SendBudget),
    Receives { acknowledge_at_once: bool },
}

/// Work that an end did when its socket was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// Handed in so many bytes; more are left.
    Sent(usize),
    /// Handed in the last of its bytes.
    SentAll,
    /// Took out so many bytes.
    Received(u64),
    /// The other end has sent everything.
    Ended,
}

impl LoadEnd {
    /// The end that sends `bytes`, without end if `None`.
    #[must_use]
    pub const fn sender(socket: Arc<Socket>, bytes: Option<u64>) -> Self {
        Self { socket, role: Role::Sends(SendBudget::new(bytes)) }
    }

    /// The end that receives. `acknowledge_at_once`: every segment is acknowledged by itself.
    #[must_use]
    pub const fn receiver(socket: Arc<Socket>, acknowledge_at_once: bool) -> Self {
        Self { socket, role: Role::Receives { acknowledge_at_once } }
    }

    /// The socket that it is on.
    #[must_use]
    pub const fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Whether it sends the load's data.
    #[must_use]
    pub const fn sends(&self) -> bool {
        matches!(self.role, Role::Sends(_))
    }

    /// Readiness that it waits for once it is connected.
    #[must_use]
    pub const fn interest(&self) -> Interest {
        match self.role {
            Role::Sends(budget) if budget.is_spent() => Interest::NONE,
            Role::Sends(_) => Interest::WRITE,
            Role::Receives { .. } => Interest::READ,
        }
    }

    /// Lets it hand in nothing more. What the socket holds still goes out.
    pub const fn stop(&mut self) {
        if let Role::Sends(budget) = &mut self.role {
            budget.end();
        }
    }

    /// Does once what its socket is ready for: a level-triggered wait tells when there is more to do. A sender sends
    /// `data` over and over. `None` if there was nothing to do.
    ///
    /// # Errors
    /// If the connection is broken; `WouldBlock` if the socket was not ready after all.
    pub fn go_on(&mut self, ready: Ready, data: &[u8]) -> io::Result<Option<LoadStep>> {
        if let Role::Sends(budget) = &mut self.role
            && ready.writable()
            && !budget.is_spent()
        {
            let sent = self.socket.send(&data[..budget.next(data.len())])?;
            budget.spend(sent);
            let step = if budget.is_spent() { LoadStep::SentAll } else { LoadStep::Sent(sent) };
            return Ok(Some(step));
        }
        if !ready.readable() {
            return Ok(None);
        }
        let bytes = option::discard(&self.socket, MAX_READ_BYTES)?;
        if bytes == 0 {
            return Ok(Some(LoadStep::Ended));
        }
        if self.role == (Role::Receives { acknowledge_at_once: true }) {
            // The kernel forgets it after a few segments.
            self.socket.set_tcp_quickack(true)?;
        }
        Ok(Some(LoadStep::Received(bytes as u64)))
    }
}

/// Taken from the kernel at once. Nothing is copied.
const MAX_READ_BYTES: usize = 4 << 20;
