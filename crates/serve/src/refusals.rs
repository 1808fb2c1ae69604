//! Refusals in the log: a line at once when they begin, then one a minute with counts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Refusals that the log has not told of.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    tallies: Mutex<BTreeMap<&'static str, Tally>>,
    news: Notify,
}

/// Refusals for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    /// By client, of the first [`MAX_CLIENTS`].
    clients: BTreeMap<IpAddr, u64>,
}

impl Refusals {
    pub fn add(&self, reason: &'static str, client: IpAddr) {
        let mut tallies = self.tallies();
        let tally = tallies.entry(reason).or_default();
        tally.count += 1;
        if tally.clients.len() < MAX_CLIENTS || tally.clients.contains_key(&client) {
            *tally.clients.entry(client).or_default() += 1;
        }
        self.news.notify_one();
    }

    /// Writes them into the log until the server stops.
    pub async fn tell(&self, stop: &CancellationToken) {
        while stop.run_until_cancelled(self.news.notified()).await.is_some() {
            self.tell_now();
            // What comes meanwhile is told together.
            let _ = timeout(EVERY, stop.cancelled()).await;
        }
        self.tell_now();
    }

    fn tell_now(&self) {
        for (reason, tally) in std::mem::take(&mut *self.tallies()) {
            let Some((most_from, most)) = tally.most() else { continue };
            let (count, clients) = (tally.count, tally.clients.len());
            warn!(reason, count, clients, %most_from, most, "refused");
        }
    }

    fn tallies(&self) -> MutexGuard<'_, BTreeMap<&'static str, Tally>> {
        self.tallies.lock().expect("nothing panics while it is held")
    }
}

impl Tally {
    /// The client with the most refusals, and how many.
    fn most(&self) -> Option<(IpAddr, u64)> {
        self.clients.iter().map(|(client, count)| (*client, *count)).max_by_key(|(_, count)| *count)
    }
}

/// How often the log tells of what happens again and again.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// About 50 bytes each.
const MAX_CLIENTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_told_at_once_and_the_others_once_a_minute() {
        let (refusals, stop) = (Refusals::default(), CancellationToken::new());
        let client = |text: &str| text.parse::<IpAddr>().unwrap();
        let waiting = || refusals.tallies().values().map(|tally| tally.count).sum::<u64>();
        let work = async {
            refusals.add("tests", client("192.0.2.1"));
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(waiting(), 0, "told at once");
            for last in 1..=3 {
                refusals.add("tests", client(&format!("192.0.2.{}", last / 2)));
            }
            tokio::time::sleep(EVERY / 2).await;
            assert_eq!(waiting(), 3, "kept for the minute");
            let tally = refusals.tallies()["tests"].clone();
            assert_eq!((tally.clients.len(), tally.most()), (2, Some((client("192.0.2.1"), 2))));
            tokio::time::sleep(EVERY).await;
            assert_eq!(waiting(), 0, "told after the minute");
            refusals.add("secret", client("192.0.2.1"));
            stop.cancel();
        };
        tokio::join!(refusals.tell(&stop), work);
        assert_eq!(waiting(), 0, "told at the end");
    }
}
