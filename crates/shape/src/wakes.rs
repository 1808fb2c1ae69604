//! How often packets may wake the loop up.

use weir_core::{Duration, TcpHeader, Time};
use weir_qdisc::{Device, QueueSpec};

use crate::ShapeError;
use crate::rules::is_ack_alone;
use crate::settings::Settings;

/// A budget of wake-ups for packets: [`BURST`] at once, then one every [`PERIOD`] at most, or every [`CALM_PERIOD`].
///
/// Waking up costs several times what a packet costs. While packets are held back they are therefore looked at
/// together, as network cards do that moderate their interrupts; what had to leave meanwhile leaves with the same
/// word to the kernel, in a burst of that time's worth of the rate at most: the millisecond for which `htb` bursts in
/// sqm-scripts, or half of it.
///
/// How long they are left alone is learned: longer each time that the next look was early, since packets were
/// held back all the while, half as long each time that it was late, since the line may have been idle. A sender
/// whose few packets all wait here, and who sends the next when they have left (TCP Small Queues on this
/// machine), is so never kept waiting.
#[derive(Debug)]
pub(crate) struct WakeBudget {
    /// When all that was spent has come back.
    whole: Time,
    /// The last wake-up, and how long packets are left alone after it.
    woken: Time,
    patience: Duration,
}

impl WakeBudget {
    /// A budget of which nothing is spent.
    pub const fn new() -> Self {
        Self { whole: Time::ZERO, woken: Time::ZERO, patience: Duration::ZERO }
    }

    /// A wake-up at `now` found packets. Where it was early, since a later one would have done, the next may be up to
    /// `pause` later.
    pub fn spend(&mut self, now: Time, pause: Option<Duration>) {
        self.whole = self.whole.clamp(now, now + BURST) + pause.unwrap_or(PERIOD);
        self.woken = now;
        self.patience = match pause {
            Some(longest) => (self.patience + STEP).min(longest),
            None => self.patience / 2,
        };
    }

    /// From when on packets may wake the loop up again: at most the pause after the last wake-up.
    pub fn next(&self) -> Time {
        if self.patience < LEAST {
            return self.woken;
        }
        let allowed = self.whole.saturating_sub(BURST);
        allowed.min(self.woken + self.patience)
    }
}

/// Flows that send so little that their packets leave before those of others that came earlier (sparse flows, RFC 8290).
#[derive(Debug)]
pub(crate) struct SparseFlows {
    /// Whether the disciplines keep flows apart, so that only packets of such flows are kept waiting by a pause.
    apart: bool,
    /// When a packet of one left last.
    last: Time,
}

impl SparseFlows {
    /// What is known of them before any packet came.
    pub fn new(settings: &Settings) -> Result<Self, ShapeError> {
        // With rules packets are taken in after those that are due.
        let mut apart = settings.rules.is_none();
        for text in settings.queues.iter().flatten() {
            apart &= QueueSpec::parse(text)?.keeps_flows_apart(&Device::default())?;
        }
        Ok(Self { apart, last: Time::ZERO })
    }

    /// A packet that came at `came` left at `now`, by a look that had packets come at `comes_at`.
    ///
    /// One that leaves by the look that found it waited behind nobody. Acknowledgements do not count: nobody waits for
    /// any one of them.
    pub fn left(&mut self, came: Time, comes_at: Time, tcp: Option<&TcpHeader>, now: Time) {
        if came == comes_at && !tcp.is_some_and(is_ack_alone) {
            self.last = now;
        }
    }

    /// The longest time after which packets that are held back are looked at again.
    pub fn pause(&self, now: Time) -> Duration {
        let calm = self.apart && now.since(self.last) >= CALM;
        if calm { CALM_PERIOD } else { PERIOD }
    }
}

/// Time between wake-ups for packets on a busy line: 2000 a second.
pub(crate) const PERIOD: Duration = Duration::from_micros(500);
/// Likewise while nothing of a sparse flow leaves, so that nobody waits for a look: 1000 a second.
const CALM_PERIOD: Duration = Duration::from_millis(1);
/// Who has sent nothing for so long is not waited for: calls send every 20 ms, players 20 to 128 times a second.
const CALM: Duration = Duration::from_millis(200);
/// What a line that was quiet may spend at once: 16 wake-ups.
const BURST: Duration = Duration::from_micros(16 * 500);
/// By how much patience grows: in 64 wake-ups from none to [`PERIOD`].
const STEP: Duration = Duration::from_nanos(7_813);
/// A shorter sleep is not worth its cost.
const LEAST: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use weir_core::TcpFlags;

    use super::*;
    use crate::rules::Rules;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1_000)
    }

    /// How often the loop wakes up in a second in which a packet is always there, if it is `early` at wake-up
    /// number n.
    fn woken(early: impl Fn(u32) -> bool) -> u32 {
        woken_with(early, PERIOD)
    }

    fn woken_with(early: impl Fn(u32) -> bool, pause: Duration) -> u32 {
        let mut budget = WakeBudget::new();
        let mut now = at(1_000_000);
        let end = now + Duration::from_secs(1);
        let mut count = 0;
        while now < end {
            budget.spend(now, early(count).then_some(pause));
            count += 1;
            now = (now + Duration::from_micros(10)).max(budget.next());
        }
        count
    }

    #[test]
    fn packets_that_are_held_back_wake_the_loop_2000_times_a_second() {
        let woken = woken(|_| true);
        assert!((2_000..=2_080).contains(&woken), "{woken}");
    }

    #[test]
    fn packets_that_nobody_waits_for_wake_the_loop_half_as_often() {
        let woken = woken_with(|_| true, CALM_PERIOD);
        assert!((1_000..=1_160).contains(&woken), "{woken}");
    }

    #[test]
    fn a_pause_is_shorter_as_soon_as_somebody_waits() {
        let mut budget = WakeBudget::new();
        let mut now = at(1_000_000);
        for _ in 0..1_000 {
            budget.spend(now, Some(CALM_PERIOD));
            now = now.max(budget.next());
        }
        assert_eq!(budget.next(), now);
        budget.spend(now, Some(CALM_PERIOD));
        assert_eq!(budget.next(), now + CALM_PERIOD);
        budget.spend(budget.next(), Some(PERIOD));
        assert_eq!(budget.next(), now + CALM_PERIOD + PERIOD);
    }

    #[test]
    fn where_nothing_is_held_back_every_packet_wakes_the_loop() {
        assert_eq!(woken(|_| false), 100_000);
    }

    #[test]
    fn a_queue_that_runs_dry_every_fourth_time_is_never_kept_waiting() {
        assert_eq!(woken(|n| n % 4 != 3), 100_000);
    }

    #[test]
    fn patience_comes_back_after_a_queue_ran_dry_once() {
        let woken = woken(|n| n != 1_000);
        assert!((2_000..=2_100).contains(&woken), "{woken}");
    }

    #[test]
    fn a_quiet_line_has_its_packets_looked_at_as_they_come() {
        let mut budget = WakeBudget::new();
        for micros in (1_000..1_000_000).step_by(500) {
            assert!(budget.next() <= at(micros));
            budget.spend(at(micros), Some(PERIOD));
        }
    }

    #[test]
    fn what_was_saved_is_bounded() {
        let mut budget = WakeBudget::new();
        (0..100).for_each(|_| budget.spend(at(0), Some(PERIOD)));
        let late = at(60_000_000);
        let free = (0..1_000).take_while(|_| {
            let free = budget.next() <= late;
            budget.spend(late, Some(PERIOD));
            free
        });
        assert_eq!(free.count(), 17);
    }

    #[test]
    fn looks_are_rarer_while_no_packet_of_a_sparse_flow_leaves() {
        let mut sparse = SparseFlows { apart: true, last: Time::ZERO };
        let pauses = |flows: &SparseFlows| {
            [1_000_000, 1_199_999, 1_200_000].map(|micros| flows.pause(at(micros)))
        };
        assert_eq!(pauses(&sparse), [CALM_PERIOD; 3]);
        sparse.left(at(999_000), at(999_000), None, at(1_000_000));
        assert_eq!(pauses(&sparse), [PERIOD, PERIOD, CALM_PERIOD]);
    }

    #[test]
    fn what_waited_for_others_or_is_waited_for_by_nobody_is_of_no_sparse_flow() {
        let [looked, now] = [999_000, 1_000_000].map(at);
        let last = |came, tcp: Option<TcpHeader>| {
            let mut sparse = SparseFlows { apart: true, last: Time::ZERO };
            sparse.left(came, looked, tcp.as_ref(), now);
            sparse.last
        };
        let tcp = |flags, payload| Some(TcpHeader { flags, payload, ..TcpHeader::default() });
        assert_eq!(last(looked, None), now);
        assert_eq!(last(looked, tcp(TcpFlags::ACK, 100)), now);
        assert_eq!(last(looked, tcp(TcpFlags::SYN, 0)), now);
        assert_eq!(last(looked, tcp(TcpFlags::ACK, 0)), Time::ZERO);
        assert_eq!(last(at(998_000), None), Time::ZERO);
    }

    #[test]
    fn looks_are_as_often_as_ever_where_flows_share_a_queue_or_there_are_rules() {
        let calm = |up: &str, down: &str, rules| {
            let queues = [up, down].map(|text| Some(text.to_owned()));
            let given = weir_scenario::file::Written::empty();
            let settings = crate::read_settings("nosuch0", None, given).unwrap();
            let settings = Settings { queues, rules, ..settings };
            SparseFlows::new(&settings).unwrap().pause(at(60_000_000)) == CALM_PERIOD
        };
        assert!(calm("cake diffserv4", "fq_codel", None));
        assert!(!calm("cake", "cake", Some(Rules::default())));
        assert!(!calm("cake", "pfifo", None));
        assert!(!calm("cake flowblind", "cake", None));
    }
}
