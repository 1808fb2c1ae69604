//! A session that is kept open for the sake of its echo.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration as WallDuration;

use weir_speedtest::protocol::weir::Secret;

use crate::addresses::EchoSession;
use crate::session::Session;
use crate::target::Target;

/// Grant of a server's echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoGrant {
    /// The session.
    pub session: EchoSession,
    /// Datagrams a second that are answered.
    pub rate_pps: u32,
    /// Bytes of payload at most.
    pub max_bytes: u32,
}

/// News of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EchoNews {
    /// It is open.
    Open(EchoGrant),
    /// It is not, or no longer; another is tried soon. Why, in one sentence.
    Closed(String),
}

/// Keeps a session open, in a thread of its own, and opens another where one ends. Dropping it ends that.
#[derive(Debug)]
pub struct EchoKeeper {
    news: Receiver<EchoNews>,
    over: Arc<AtomicBool>,
}

impl EchoKeeper {
    /// Begins with the server whose TCP port is at `server`, with the secret that it may ask for.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(server: SocketAddr, secret: Option<Secret>) -> io::Result<Self> {
        let (sender, news) = mpsc::channel();
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let target = Target { authority: server.to_string(), address: server };
        std::thread::Builder::new()
            .name("echo session".to_owned())
            .spawn(move || keep(&target, secret.as_ref(), &sender, &ends))?;
        Ok(Self { news, over })
    }

    /// The next news, if there is any.
    #[must_use]
    pub fn news(&self) -> Option<EchoNews> {
        self.news.try_recv().ok()
    }
}

impl Drop for EchoKeeper {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn keep(target: &Target, secret: Option<&Secret>, news: &Sender<EchoNews>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let why = match Session::open(target, secret) {
            Err(error) => error.to_string(),
            Ok(session) => attend(session, target, news, over),
        };
        if news.send(EchoNews::Closed(why)).is_err() {
            return;
        }
        for _ in 0..PAUSES {
            std::thread::sleep(PAUSE);
            if over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Stays in a session until it ends or nobody wants it any more: why it has ended.
fn attend(
    mut session: Session,
    target: &Target,
    news: &Sender<EchoNews>,
    over: &AtomicBool,
) -> String {
    let Some(port) = session.grant.udp_port else {
        session.close();
        return format!("server `{}` does not answer datagrams", target.authority);
    };
    let session_of = EchoSession { token: session.grant.token, port };
    let (rate_pps, max_bytes) =
        (session.grant.limits.echo_rate_pps, session.grant.limits.echo_bytes);
    let mut ended = String::new();
    if news.send(EchoNews::Open(EchoGrant { session: session_of, rate_pps, max_bytes })).is_ok() {
        while !over.load(Ordering::Relaxed) {
            // What the server says meanwhile are questions whether anybody is there.
            if let Err(error) = session.hear(PAUSE) {
                ended = error.to_string();
                break;
            }
        }
    }
    session.close();
    ended
}

/// How soon an end is seen.
const PAUSE: WallDuration = WallDuration::from_millis(250);
/// Pauses between two attempts: 5 s.
const PAUSES: u32 = 20;
