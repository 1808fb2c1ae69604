//! Lines of text from whoever is at the other end of a Unix socket.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A line of at most `max_bytes` that comes within `patience` altogether, or all up to the other's end.
///
/// Everybody on this machine may be at the other end: who sends without end, or a byte now and then, takes
/// neither memory nor time.
///
/// # Errors
/// `WouldBlock` if it does not come in time, `InvalidData` if it is longer or no UTF-8; those of the socket.
pub fn line_from(stream: &UnixStream, max_bytes: usize, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let (mut line, mut part) = (Vec::new(), [0; 4096]);
    let mut from = stream;
    while !line.contains(&b'\n') {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::WouldBlock.into());
        }
        stream.set_read_timeout(Some(left))?;
        match from.read(&mut part) {
            Ok(0) => break,
            Ok(count) => line.extend(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if line.len() > max_bytes {
            let why = format!("what it says is longer than {max_bytes} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
    }
    let end = line.iter().position(|&byte| byte == b'\n').unwrap_or(line.len());
    line.truncate(end);
    String::from_utf8(line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread::sleep;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(2);

    /// What is read of somebody who says this and then nothing more.
    fn read_of(said: &[&[u8]]) -> io::Result<String> {
        let (near, mut far) = UnixStream::pair().unwrap();
        said.iter().for_each(|part| far.write_all(part).unwrap());
        drop(far);
        line_from(&near, 64, PATIENCE)
    }

    #[test]
    fn a_line_ends_where_it_ends_or_the_other_does() {
        assert_eq!(read_of(&[b"sta", b"tus\nmore"]).unwrap(), "status");
        assert_eq!(read_of(&[b"stop"]).unwrap(), "stop");
        assert_eq!(read_of(&[]).unwrap(), "");
    }

    #[test]
    fn neither_length_nor_time_is_without_bound() {
        let why = read_of(&[&[b'x'; 65]]).unwrap_err();
        assert_eq!(why.to_string(), "what it says is longer than 64 bytes");
        // A byte every 50 ms: each comes in time, the line does not.
        let (near, mut far) = UnixStream::pair().unwrap();
        let slow = std::thread::spawn(move || {
            while far.write_all(b"x").is_ok() {
                sleep(Duration::from_millis(50));
            }
        });
        assert_eq!(line_from(&near, 64, PATIENCE).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(near);
        slow.join().unwrap();
    }
}
