//! Requests of applications and their answers on real sockets: HTTP/1.1 without content, of the lengths that are wanted.

use std::fmt::Write as _;

/// A request of `bytes` for an answer of `response` bytes in all, which belongs to flow number `flow`.
#[must_use]
pub fn request(flow: usize, bytes: u64, response: u64) -> Vec<u8> {
    filled(format!("GET /{flow}/{response} HTTP/1.1\r\nHost: server\r\n"), bytes)
}

/// The head of a request, of which `lines` are there, padded to `bytes`.
#[must_use]
pub fn filled(mut lines: String, bytes: u64) -> Vec<u8> {
    lines.push_str("X-Fill: ");
    let fill = (bytes as usize).saturating_sub(lines.len() + END.len());
    let _ = write!(lines, "{:x<fill$}{END}", "");
    lines.into_bytes()
}

/// The flow and the length of the answer of the first whole request in `heard`, and how long the request is; `None` while it
/// is not there in full.
///
/// # Errors
/// If it is none.
pub fn parse(heard: &[u8]) -> Result<Option<(usize, u64, usize)>, &'static str> {
    let Some(end) = heard.windows(END.len()).position(|four| four == END.as_bytes()) else {
        return if heard.len() > MAX_REQUEST_BYTES {
            Err("a request without end")
        } else {
            Ok(None)
        };
    };
    let asked = || {
        let line = str::from_utf8(&heard[..end]).ok()?.lines().next()?;
        let path = line.strip_prefix("GET /")?.strip_suffix(" HTTP/1.1")?;
        let (flow, response) = path.split_once('/')?;
        Some((flow.parse().ok()?, response.parse().ok()?, end + END.len()))
    };
    asked().map(Some).ok_or("not a request")
}

/// The beginning of an answer of `bytes` in all, and how many bytes follow it: the head and a part of the body, which are one
/// packet where they fit into one.
#[must_use]
pub fn response_head(bytes: u64) -> (Vec<u8>, u64) {
    let head = |body: u64| format!("HTTP/1.1 200 OK\r\nContent-Length: {body:020}{END}");
    let body = bytes.saturating_sub(head(0).len() as u64);
    let with_head = body.min(WITH_HEAD_BYTES);
    let mut beginning = head(body).into_bytes();
    beginning.resize(beginning.len() + with_head as usize, 0);
    (beginning, body - with_head)
}

/// Bytes of a body that are handed to the kernel with the head.
const WITH_HEAD_BYTES: u64 = 16 << 10;
/// The end of a head.
const END: &str = "\r\n\r\n";
/// Longer than any that is sent.
const MAX_REQUEST_BYTES: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_have_the_lengths_that_are_wanted() {
        for bytes in [100, 131, 450, 517] {
            let mut heard = request(7, bytes, 28_898);
            assert_eq!(heard.len() as u64, bytes);
            assert_eq!(parse(&heard[..heard.len() - 1]), Ok(None));
            heard.extend(request(8, bytes, 1));
            assert_eq!(parse(&heard), Ok(Some((7, 28_898, bytes as usize))), "the first of two");
        }
        for bytes in [130, 300, 3_000, 1 << 40] {
            let (head, body) = response_head(bytes);
            assert_eq!(head.len() as u64 + body, bytes);
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert!(parse(b"POST /1/2 HTTP/1.1\r\n\r\n").is_err());
        assert!(parse(b"GET /1/many HTTP/1.1\r\n\r\n").is_err());
        assert!(parse(&[b'x'; 5_000]).is_err());
    }
}
