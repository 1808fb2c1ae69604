//! A session of Weir's own protocol, as its client (`docs/protocol.md`).

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration as WallDuration, Instant};

use serde_json::Value;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::HandshakeError;
use tungstenite::handshake::client::ClientHandshake;
use tungstenite::http::{HeaderValue, StatusCode};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};
use weir_core::error_in_words;
use weir_speedtest::protocol::weir::{
    CONTROL, ClientMessage, Limits, MAX_MESSAGE_BYTES, SUBPROTOCOL, Secret, ServerMessage, Token,
    VERSION,
};

use crate::error::NetError;
use crate::sys::time::monotonic_ns;
use crate::target::Target;

/// An open session.
pub struct Session {
    socket: WebSocket<TcpStream>,
    /// The server's name, for errors.
    server: String,
    /// Grant of the server.
    pub grant: Grant,
}

/// Grant of a server for a session.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The server's program and version.
    pub software: String,
    /// The session's number, which loads and datagrams carry.
    pub token: Token,
    /// This end of the connection.
    pub local: SocketAddr,
    /// This end as the server sees it.
    pub seen: SocketAddr,
    /// The port that answers datagrams, if one does.
    pub udp_port: Option<u16>,
    /// The congestion controls of the server.
    pub congestion: Vec<String>,
    /// Limits of a session.
    pub limits: Limits,
}

/// Offset of the server's clock from `CLOCK_MONOTONIC` here, in ns, to within half of the round trip.
#[derive(Clone, Copy, Debug)]
pub struct ClockOffset {
    /// Nanoseconds.
    pub ns: i64,
    /// The round trip of the look that counts, in nanoseconds.
    pub round_trip_ns: u64,
}

impl Session {
    /// Opens a session.
    ///
    /// # Errors
    /// If there is no server, it speaks something else, or it refuses.
    pub fn open(target: &Target, secret: Option<&Secret>) -> Result<Self, NetError> {
        let server = &target.authority;
        let fail = |error: &io::Error| NetError::io(format_args!("server `{server}`"), error);
        let stream = TcpStream::connect_timeout(&target.address, PATIENCE)
            .map_err(|error| unconnected(server, &error))?;
        let local = stream.local_addr().map_err(|error| fail(&error))?;
        let configured = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        configured.map_err(|error| fail(&error))?;
        let mut request = format!("ws://{server}{CONTROL}")
            .into_client_request()
            .map_err(|error| NetError::new(format!("server `{server}`: {error}")))?;
        let name = HeaderValue::from_static(SUBPROTOCOL);
        request.headers_mut().insert("Sec-WebSocket-Protocol", name);
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let guard = Guard::of(&stream, HANDSHAKE).map_err(|error| fail(&error))?;
        let begun = tungstenite::client::client_with_config(request, stream, Some(config))
            .map_err(|error| refused(server, &error))
            .and_then(|(socket, _)| {
                let mut talk = Talk { socket, server };
                let grant = talk.shake_hands(local, secret)?;
                Ok((talk.socket, grant))
            });
        let (socket, grant) = begun.map_err(|error| guard.blamed(server).unwrap_or(error))?;
        Ok(Self { socket, server: target.authority.clone(), grant })
    }

    /// Compares the clocks, while nothing else is said.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn compare_clocks(&mut self) -> Result<ClockOffset, NetError> {
        let stream = self.socket.get_ref();
        let guard = Guard::of(stream, LOOKS * PATIENCE).map_err(|error| self.fail(&error))?;
        self.looked().map_err(|error| guard.blamed(&self.server).unwrap_or(error))
    }

    /// The quickest of several looks at the server's clock.
    fn looked(&mut self) -> Result<ClockOffset, NetError> {
        let mut best: Option<ClockOffset> = None;
        for id in 0..LOOKS {
            let before = monotonic_ns();
            self.say(&ClientMessage::Ping { id })?;
            let deadline = Instant::now() + PATIENCE;
            while Instant::now() < deadline {
                match self.hear(PATIENCE)? {
                    Some(ServerMessage::Pong { id: of, t_ns }) if of == id => {
                        let round_trip_ns = monotonic_ns() - before;
                        let here = before + round_trip_ns / 2;
                        let look =
                            ClockOffset { ns: t_ns.wrapping_sub(here) as i64, round_trip_ns };
                        let better = |known: ClockOffset| round_trip_ns < known.round_trip_ns;
                        if best.is_none_or(better) {
                            best = Some(look);
                        }
                        break;
                    }
                    _ => {}
                }
            }
        }
        best.ok_or_else(|| {
            let server = &self.server;
            NetError::new(format!("server `{server}` does not answer over its control connection"))
        })
    }

    /// Says something.
    ///
    /// # Errors
    /// If the connection broke.
    pub fn say(&mut self, message: &ClientMessage) -> Result<(), NetError> {
        send(&mut self.socket, &self.server, message)
    }

    /// Next message of the server within `wait`, if there is one.
    ///
    /// # Errors
    /// If the connection broke, or what came is no message.
    pub fn hear(&mut self, wait: WallDuration) -> Result<Option<ServerMessage>, NetError> {
        let set = self.socket.get_ref().set_read_timeout(Some(wait));
        set.map_err(|error| self.fail(&error))?;
        receive(&mut self.socket, &self.server)
    }

    /// Next message of the server that is there already, if there is one.
    ///
    /// # Errors
    /// If the connection broke, or what came is no message.
    pub fn hear_now(&mut self) -> Result<Option<ServerMessage>, NetError> {
        self.set_nonblocking(true)?;
        let heard = receive(&mut self.socket, &self.server);
        self.set_nonblocking(false)?;
        heard
    }

    fn set_nonblocking(&self, nonblocking: bool) -> Result<(), NetError> {
        let set = self.socket.get_ref().set_nonblocking(nonblocking);
        set.map_err(|error| self.fail(&error))
    }

    /// The server's name, as errors have it.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    fn fail(&self, error: &io::Error) -> NetError {
        NetError::io(format_args!("the control connection to server `{}`", self.server), error)
    }

    /// Takes leave, and waits a moment until the server has ended the session too: a test that begins right after has its
    /// place.
    pub fn close(mut self) {
        let until = Instant::now() + FAREWELL;
        let _ = self.socket.close(None);
        let _ = self.socket.flush();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // A wait of no time is none for the socket.
            if left.is_zero() || self.socket.get_ref().set_read_timeout(Some(left)).is_err() {
                return;
            }
            // What the server said before it heard of the end comes first.
            if self.socket.read().is_err() {
                return;
            }
        }
    }
}

impl AsFd for Session {
    /// It is readable once the server has said something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.get_ref().as_fd()
    }
}

/// Ends a connection that takes longer than it may, however little is said on it now and then.
struct Guard {
    limit: WallDuration,
    /// Says that it is over, by being dropped.
    over: Option<Sender<()>>,
    watch: Option<JoinHandle<bool>>,
}

impl Guard {
    fn of(stream: &TcpStream, limit: WallDuration) -> io::Result<Self> {
        let stream = stream.try_clone()?;
        let (over, waiting) = channel();
        let watch = std::thread::Builder::new().name("patience".to_owned()).spawn(move || {
            let is_late = waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_late {
                let _ = stream.shutdown(Shutdown::Both);
            }
            is_late
        })?;
        Ok(Self { limit, over: Some(over), watch: Some(watch) })
    }

    fn end(&mut self) -> bool {
        drop(self.over.take());
        self.watch.take().is_some_and(|watch| watch.join().unwrap_or(false))
    }

    /// What is said of a failure if it was this that ended the connection.
    fn blamed(mut self, server: &str) -> Option<NetError> {
        self.end().then(|| {
            let limit_s = self.limit.as_secs();
            NetError::new(format!("server `{server}` has not said in {limit_s} s what it has to"))
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

/// The beginning of a session.
struct Talk<'t> {
    socket: WebSocket<TcpStream>,
    server: &'t str,
}

impl Talk<'_> {
    fn shake_hands(
        &mut self,
        local: SocketAddr,
        secret: Option<&Secret>,
    ) -> Result<Grant, NetError> {
        let nonce = Token(getrandom::u64().map_err(|error| {
            NetError::new(format!("this machine has no random numbers: {error}"))
        })?);
        let hello = ClientMessage::Hello { version: VERSION, client: SOFTWARE.to_owned(), nonce };
        send(&mut self.socket, self.server, &hello)?;
        let ServerMessage::Welcome { server: software, challenge, .. } = self.listen()? else {
            return Err(self.odd("welcome"));
        };
        match (challenge, secret) {
            (None, _) => {}
            (Some(_), None) => {
                return Err(NetError::new(format!(
                    "server `{}` asks for its secret: give the file with it (--auth)",
                    self.server
                )));
            }
            (Some(challenge), Some(secret)) => {
                let mac = secret.answer(challenge, nonce);
                send(&mut self.socket, self.server, &ClientMessage::Authenticate { mac })?;
            }
        }
        let ServerMessage::Ready { token, client, udp_port, congestion, limits } = self.listen()?
        else {
            return Err(self.odd("ready"));
        };
        Ok(Grant { software, token, local, seen: client, udp_port, congestion, limits })
    }

    fn listen(&mut self) -> Result<ServerMessage, NetError> {
        match receive(&mut self.socket, self.server)? {
            Some(ServerMessage::Error { reason, .. }) => {
                Err(NetError::new(format!("server `{}`: {reason}", self.server)))
            }
            Some(message) => Ok(message),
            None => Err(NetError::new(format!(
                "server `{}` said nothing for {} s",
                self.server,
                PATIENCE.as_secs()
            ))),
        }
    }

    fn odd(&self, expected: &str) -> NetError {
        NetError::new(format!("server `{}` did not say `{expected}`", self.server))
    }
}

fn send(
    socket: &mut WebSocket<TcpStream>,
    server: &str,
    message: &ClientMessage,
) -> Result<(), NetError> {
    let text = serde_json::to_string(message).expect("it is plain data");
    socket.send(Message::text(text)).map_err(|error| gone(server, &error))
}

/// Next message before the socket's timeout, if one comes.
fn receive(
    socket: &mut WebSocket<TcpStream>,
    server: &str,
) -> Result<Option<ServerMessage>, NetError> {
    match socket.read() {
        Ok(Message::Text(text)) => message(&text).map(Some).map_err(|says| {
            NetError::new(format!("server `{server}` said what is no message: {says}"))
        }),
        Ok(_) => Ok(None),
        Err(Error::Io(error)) if is_passing(&error) => Ok(None),
        Err(error) => Err(gone(server, &error)),
    }
}

/// The message that a text is, if its numbers are such as may be counted on with.
fn message(text: &str) -> Result<ServerMessage, String> {
    let said: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    check_numbers("", &said)?;
    serde_json::from_value(said).map_err(|error| error.to_string())
}

/// Refuses numbers that nothing comes to which a server counts: bytes, packets, rates or times.
fn check_numbers(key: &str, said: &Value) -> Result<(), String> {
    match said {
        // A clock may have begun whenever it likes.
        Value::Number(_) if key == "t_ns" => Ok(()),
        Value::Number(number) => match number.as_u64() {
            Some(counted) if counted > MAX_COUNT => {
                Err(format!("`{key}` is {counted}, and at most {MAX_COUNT} is believed"))
            }
            _ => Ok(()),
        },
        Value::Array(all) => all.iter().try_for_each(|one| check_numbers(key, one)),
        Value::Object(all) => all.iter().try_for_each(|(name, one)| check_numbers(name, one)),
        _ => Ok(()),
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Why nobody is spoken to: where nothing listens, what to start there.
fn unconnected(server: &str, error: &io::Error) -> NetError {
    let hint = match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; start `weir serve` or `weir-agent serve` there, or name the port where it listens"
        }
        _ => "",
    };
    NetError::new(format!("server `{server}`: {}{hint}", error_in_words(error)))
}

/// Why there is no session: a server that has too much to do may still speak the protocol.
fn refused(server: &str, error: &HandshakeError<ClientHandshake<TcpStream>>) -> NetError {
    let busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    match error {
        HandshakeError::Failure(Error::Http(answer)) if busy.contains(&answer.status()) => {
            let status = answer.status();
            let whose =
                if status == StatusCode::TOO_MANY_REQUESTS { " from this address" } else { "" };
            NetError::new(format!(
                "server `{server}` takes no more tests{whose} now ({status}): try again in a minute"
            ))
        }
        _ => NetError::foreign(format!(
            "server `{server}` does not speak Weir's protocol ({}): start `weir serve` or `weir-agent serve` there",
            error_in_words(error)
        )),
    }
}

fn gone(server: &str, error: &Error) -> NetError {
    NetError::new(format!(
        "the control connection to server `{server}` broke: {}",
        error_in_words(error)
    ))
}

const SOFTWARE: &str = concat!("weir ", env!("CARGO_PKG_VERSION"));
/// 100 petabytes, 3 years in nanoseconds: sums of such, and their bits, are numbers of 64 bits too.
const MAX_COUNT: u64 = 100_000_000_000_000_000;
/// Longer than a full buffer of any line, shorter than a person's patience.
const PATIENCE: WallDuration = WallDuration::from_secs(8);
/// A server that does not answer in this time is gone, or far behind a full buffer.
const FAREWELL: WallDuration = WallDuration::from_secs(1);
/// Until there is a session, however the server dawdles.
const HANDSHAKE: WallDuration = WallDuration::from_secs(16);
/// The quickest of these counts.
const LOOKS: u32 = 8;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Why there is no session with a server that answers the first request like this.
    fn why(answer: &'static str) -> NetError {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 1000]).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
        });
        let Err(error) = Session::open(&Target::find(&host).unwrap(), None) else {
            panic!("there is a session")
        };
        server.join().unwrap();
        error
    }

    #[test]
    fn where_nothing_listens_it_is_told_what_to_start_there() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let Err(error) = Session::open(&Target::find(&free.to_string()).unwrap(), None) else {
            panic!("there is a session")
        };
        let said = format!(
            "server `{free}`: connection refused; start `weir serve` or `weir-agent serve` there, or name the port \
             where it listens"
        );
        assert_eq!(error.to_string(), said);
        assert!(!error.is_foreign() && !error.is_input());
    }

    #[test]
    fn a_server_that_is_full_is_no_foreign_one() {
        for status in ["429 Too Many Requests", "503 Service Unavailable"] {
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").leak();
            let error = why(answer);
            assert!(!error.is_foreign());
            let said = error.to_string();
            let whose = if status.starts_with("429") { " from this address" } else { "" };
            let says = format!("takes no more tests{whose} now ({status}): try again in a minute");
            assert!(said.ends_with(&says), "{said}");
        }
        let error = why("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert!(error.is_foreign());
        assert!(error.to_string().contains("does not speak Weir's protocol"));
    }

    #[test]
    fn numbers_that_cannot_be_counts_are_told() {
        let done = |bytes: u64, t_ns: u64| {
            let last = format!(r#"{{"flow":0,"bytes":{bytes},"tcp":null}}"#);
            message(&format!(
                r#"{{"type":"done","last":{last},"t_ns":{t_ns},"reason":"duration"}}"#
            ))
        };
        for (bytes, t_ns) in [(0, 0), (MAX_COUNT, u64::MAX)] {
            let ServerMessage::Done { last, t_ns: told, .. } = done(bytes, t_ns).unwrap() else {
                panic!("another message")
            };
            assert_eq!((last.bytes, told), (bytes, t_ns));
        }
        for bytes in [MAX_COUNT + 1, u64::MAX] {
            let said = done(bytes, 0).unwrap_err();
            assert!(said.starts_with(&format!("`bytes` is {bytes}, and at most ")), "{said}");
        }
        assert!(message("{").unwrap_err().contains("EOF"));
    }

    #[test]
    fn a_connection_that_dawdles_is_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut dawdling, _) = listener.accept().unwrap();
        let dawdler = std::thread::spawn(move || {
            while dawdling.write_all(b"x").is_ok() {
                std::thread::sleep(WallDuration::from_millis(20));
            }
        });
        let guard = Guard::of(&stream, WallDuration::from_millis(100)).unwrap();
        while stream.read(&mut [0; 9]).is_ok_and(|read| read > 0) {}
        let said = guard.blamed("s").unwrap().to_string();
        assert_eq!(said, "server `s` has not said in 0 s what it has to");
        dawdler.join().unwrap();
        // One that is in time is blamed for nothing, and not ended.
        let mut in_time = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        assert!(Guard::of(&in_time, HANDSHAKE).unwrap().blamed("s").is_none());
        other.write_all(b"y").unwrap();
        assert_eq!(in_time.read(&mut [0; 9]).unwrap(), 1);
    }
}
