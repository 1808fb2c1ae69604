//! Detection of the protocol that a client speaks, by its first bytes.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::sleep;

/// A protocol that is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    Tls,
    Http,
    Ookla,
}

impl Speech {
    const fn of(first: [u8; 2]) -> Self {
        match &first {
            // RFC 8446, section 5.1: the record of a handshake.
            [22, _] => Self::Tls,
            // No method of HTTP begins like Ookla's HI, PING, DOWNLOAD, UPLOAD, INITPLOSS, PLOSS, QUIT.
            b"HI" | b"PI" | b"DO" | b"UP" | b"IN" | b"PL" | b"QU" => Self::Ookla,
            _ => Self::Http,
        }
    }

    /// Looks at the first two bytes without taking them.
    pub async fn sniff(socket: &TcpStream) -> io::Result<Self> {
        loop {
            let mut first = [0; 2];
            match socket.peek(&mut first).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                1 => sleep(SNIFF_PAUSE).await,
                _ => return Ok(Self::of(first)),
            }
        }
    }
}

const SNIFF_PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_is_spoken() {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "PRI", "OPTIONS", "DELETE", "CONNECT"]
        {
            let bytes = method.as_bytes();
            assert_eq!(Speech::of([bytes[0], bytes[1]]), Speech::Http, "{method}");
        }
        for command in ["HI", "PING", "DOWNLOAD", "UPLOAD", "INITPLOSS", "PLOSS", "QUIT"] {
            let bytes = command.as_bytes();
            assert_eq!(Speech::of([bytes[0], bytes[1]]), Speech::Ookla, "{command}");
        }
        assert_eq!(Speech::of([22, 3]), Speech::Tls);
    }
}
