//! Activity of a client's connection: whether it may be closed in favour of another connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Activity of one connection: idle if it has had a request and none is under way.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    requests: AtomicU32,
    /// When the last request ended, in milliseconds since the start.
    ended_ms: AtomicU64,
    /// Set by the first request.
    asked: CancellationToken,
    /// Ends the connection in favour of another one.
    give_up: CancellationToken,
}

/// A request under way, or an answer that is not yet handed over.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            requests: AtomicU32::new(0),
            ended_ms: AtomicU64::new(0),
            asked: CancellationToken::new(),
            give_up: CancellationToken::new(),
        })
    }

    /// Notes that a request came; the connection is busy until the result is dropped.
    pub fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.asked.cancel();
        Busy(Arc::clone(self))
    }

    /// How long the connection has been idle; `None` if it is not.
    pub fn idle(&self) -> Option<Duration> {
        let is_idle = self.asked.is_cancelled() && self.requests.load(Ordering::Acquire) == 0;
        let ended = Duration::from_millis(self.ended_ms.load(Ordering::Acquire));
        is_idle.then(|| self.start.elapsed().saturating_sub(ended))
    }

    pub fn give_up(&self) {
        self.give_up.cancel();
    }

    /// Resolves when the connection has to end in favour of another one.
    pub async fn given_up(&self) {
        self.give_up.cancelled().await;
    }

    /// Resolves with the first request.
    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }
}

impl Busy {
    /// Marks the connection as busy to its end: it has become something other than HTTP.
    pub fn for_good(self) {
        self.0.requests.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.ended_ms.store(now, Ordering::Release);
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of an answer, during which its connection is busy.
pub(crate) struct Answering<B> {
    body: B,
    _busy: Busy,
}

impl<B> Answering<B> {
    pub const fn new(body: B, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_between_requests_only() {
        let activity = Activity::new();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(activity.idle(), None, "it has not asked for anything yet");
        let (one, two) = (activity.begin(), activity.begin());
        drop(one);
        assert_eq!(activity.idle(), None);
        drop(two);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(activity.idle(), Some(Duration::from_secs(2)));
        activity.begin().for_good();
        assert_eq!(activity.idle(), None, "it is no HTTP any more");
    }
}
