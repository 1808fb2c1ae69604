//! The time of a flow that has no connection of its own to end it: it is told to the session.

use tokio::sync::{Notify, mpsc};
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;
use weir_speedtest::protocol::weir::{EndReason, FlowRequest};

use super::News;

/// Tells a session when a flow starts, and when its time is over.
pub(super) struct Lifetime {
    started: Notify,
    stop: CancellationToken,
    news: mpsc::Sender<News>,
}

impl Lifetime {
    pub fn new(stop: CancellationToken, news: mpsc::Sender<News>) -> Self {
        Self { started: Notify::new(), stop, news }
    }

    pub fn begins(&self) {
        self.started.notify_one();
    }

    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until the flow is stopped.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Tells of the flow of `request`, which lasts `more` longer than it was asked for.
    pub async fn watch(&self, request: &FlowRequest, more: Duration) {
        let flow = request.flow;
        let whole = async {
            self.started.notified().await;
            self.tell(News::Started { flow, congestion: String::new() }).await;
            sleep(Duration::from_nanos(request.duration_ns) + more).await;
        };
        if self.stop.run_until_cancelled(whole).await.is_some() {
            self.tell(News::Ended { flow, reason: EndReason::Duration }).await;
        }
    }

    async fn tell(&self, news: News) {
        // The session may be over, and then nobody wants to know.
        let _ = self.news.send(news).await;
    }
}
