//! The request by which a connection to the server becomes a load's.

use std::io::{self, Read};

use socket2::Socket;
use weir_sockets::load::application::filled;
use weir_sockets::sys::epoll::Ready;
use weir_speedtest::protocol::weir::{APPLICATION_UPGRADE, FLOW, FLOW_UPGRADE, Token};

/// A request for a load's connection under way, on a socket that does not block.
#[derive(Debug)]
pub(crate) struct Upgrade {
    stage: Stage,
    /// Bytes of the request that are still to be sent, then bytes of the answer.
    head: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The connection opens, and takes the request.
    Asking,
    /// The request is sent, and its answer awaited.
    Awaiting,
}

/// State of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpgradeStep {
    /// Nothing new.
    Waiting,
    /// The request is sent: from now on only the answer matters.
    Asked,
    /// The connection is the load's, and so many bytes of its data came with the answer.
    Done(u64),
}

impl Upgrade {
    /// A request to the server called `authority` with the load's ticket.
    pub fn new(ticket: Token, authority: &str) -> Self {
        let head = format!(
            "GET {FLOW}?ticket={ticket} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\nUpgrade: {FLOW_UPGRADE}\r\n\r\n",
        );
        Self { stage: Stage::Asking, head: head.into_bytes() }
    }

    /// A request that others send.
    pub const fn awaiting() -> Self {
        Self { stage: Stage::Awaiting, head: Vec::new() }
    }

    /// Does what the socket is ready for.
    ///
    /// # Errors
    /// If the connection breaks, or the server refuses: what it answered.
    pub fn go_on(&mut self, socket: &Socket, ready: Ready) -> io::Result<UpgradeStep> {
        match self.stage {
            Stage::Asking if ready.writable() => {
                let sent = socket.send(&self.head)?;
                self.head.drain(..sent);
                if self.head.is_empty() {
                    self.stage = Stage::Awaiting;
                    return Ok(UpgradeStep::Asked);
                }
                Ok(UpgradeStep::Waiting)
            }
            Stage::Awaiting if ready.readable() => {
                let mut buffer = [0; MAX_ANSWER_BYTES];
                let got = (&mut &*socket).read(&mut buffer)?;
                self.hear(&buffer[..got])
            }
            _ => Ok(UpgradeStep::Waiting),
        }
    }

    /// Takes what came of the answer; nothing if the server ended the connection.
    ///
    /// # Errors
    /// If the connection ended, or the server refuses: what it answered.
    pub fn hear(&mut self, bytes: &[u8]) -> io::Result<UpgradeStep> {
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.head.extend_from_slice(bytes);
        let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if self.head.len() > MAX_ANSWER_BYTES {
                Err(io::ErrorKind::InvalidData.into())
            } else {
                Ok(UpgradeStep::Waiting)
            };
        };
        if !self.head.starts_with(b"HTTP/1.1 101") {
            let line = self.head.split(|&byte| byte == b'\r').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line).into_owned();
            return Err(io::Error::other(format!("the server answered `{line}`")));
        }
        Ok(UpgradeStep::Done((self.head.len() - end - 4) as u64))
    }
}

/// The first request of an application's connection to the server called `authority`: it asks for `answer` bytes behind
/// the answer's head, and has `bytes` bytes if its words fit.
pub(crate) fn application_request(
    ticket: Token,
    authority: &str,
    bytes: u64,
    answer: u64,
) -> Vec<u8> {
    let lines = format!(
        "GET {FLOW}?ticket={ticket}&answer={answer} HTTP/1.1\r\nHost: {authority}\r\nConnection: Upgrade\r\n\
         Upgrade: {APPLICATION_UPGRADE}\r\n",
    );
    filled(lines, bytes)
}

/// The longest answer to the request for a connection.
const MAX_ANSWER_BYTES: usize = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_come_in_pieces_and_bring_data() {
        let mut upgrade = Upgrade::awaiting();
        let first = upgrade.hear(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n").unwrap();
        assert_eq!(first, UpgradeStep::Waiting);
        assert_eq!(upgrade.hear(b"\r\nabc").unwrap(), UpgradeStep::Done(3));
    }

    #[test]
    fn a_first_request_has_the_length_that_is_wanted() {
        // The shortest that there is: of HTTP/2 without TLS, behind its preface.
        for bytes in [173, 450, 517] {
            let request = application_request(Token(7), "server.example:8080", bytes, 28_777);
            assert_eq!(request.len() as u64, bytes);
            assert!(
                request.starts_with(b"GET /weir/v1/flow?ticket=0000000000000007&answer=28777 HTTP")
            );
            assert!(request.ends_with(b"\r\n\r\n"));
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let error = Upgrade::awaiting().hear(b"HTTP/1.1 403 Forbidden\r\n\r\nno").unwrap_err();
        assert_eq!(error.to_string(), "the server answered `HTTP/1.1 403 Forbidden`");
    }

    #[test]
    fn an_answer_without_end_and_one_cut_off_are_refused() {
        let endless = Upgrade::awaiting().hear(&[b'x'; MAX_ANSWER_BYTES + 1]).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::InvalidData);
        assert_eq!(Upgrade::awaiting().hear(b"").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
