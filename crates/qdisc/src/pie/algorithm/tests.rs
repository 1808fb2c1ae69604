use super::*;

const PARAMS: PieParams = PieParams {
    target: Duration::from_millis(15),
    alpha: 2,
    beta: 20,
    mark_up_to: None,
    bytemode: false,
    dq_rate_estimator: false,
    full_packet: 1514,
};

fn packet(len: u32, enqueued_at: Time) -> Packet {
    let label = weir_core::FlowLabel::default();
    let (dscp, ecn) = (weir_core::Dscp::BE, weir_core::Ecn::Ect0);
    Packet { handle: 0, enqueued_at, label, len, flow_id: 0, dscp, ecn }
}

impl PieState {
    /// A state of that probability that strikes the next packet for certain: none was struck for long.
    pub(crate) fn sure_to_strike(prob: u64) -> Self {
        let target = ticks(Duration::from_secs(1));
        Self { prob, accumulated: MAX_PROB / 2 * 17, qdelay: target, burst: 0, ..Self::default() }
    }
}

/// A state whose last packet left after `ms` of waiting, with the update that follows.
fn after(state: &mut PieState, at: Time, ms: u64) -> u64 {
    let enqueued_at = at;
    state.on_dequeue(&packet(1514, enqueued_at), 9000, &PARAMS, at + Duration::from_millis(ms));
    state.update(9000, &PARAMS);
    state.prob
}

#[test]
fn the_probability_follows_the_delay_in_the_kernels_integers() {
    let mut state = PieState::default();
    let at = Time::from_millis(1000);
    // (30 - 15) ms x 0.125/s + (30 - 0) ms x 1.25/s, divided by 2048 at this low probability.
    let first = after(&mut state, at, 30);
    assert_eq!(first, 1_385_384_062_500);
    let share = first as f64 / MAX_PROB as f64;
    assert!((share - (0.015 * 0.125 + 0.030 * 1.25) / 2048.0).abs() < 1e-9, "{share}");
    assert_eq!(after(&mut state, at, 40), 10_181_476_796_875);
    assert_eq!(after(&mut state, at, 60), 79_142_845_703_125);
}

#[test]
fn high_probabilities_rise_by_two_percent_and_two_more_above_250_ms() {
    let tenth = MAX_PROB / 10;
    let mut state = PieState { prob: tenth, ..PieState::default() };
    let at = Time::from_millis(1000);
    assert_eq!(after(&mut state, at, 200), tenth + MAX_PROB / 100 * 2);
    assert_eq!(after(&mut state, at, 400), tenth + 2 * (MAX_PROB / 100 * 2) + MAX_PROB / 50);
}

#[test]
fn a_quiet_queue_forgets_by_a_64th_and_then_allows_a_burst_again() {
    let params = PieParams { target: Duration::ZERO, ..PARAMS };
    let mut state = PieState { prob: 6400, burst: 0, ..PieState::default() };
    state.update(0, &params);
    assert_eq!((state.prob, state.burst), (6300, 0));

    let mut calm = PieState { prob: 1, burst: 0, ..PieState::default() };
    calm.update(0, &PARAMS);
    assert_eq!((calm.prob, calm.burst), (0, 150_000_000 / 64));
}

#[test]
fn bursts_pass_until_150_ms_of_sending_are_used_up() {
    let mut state = PieState { prob: MAX_PROB, ..PieState::default() };
    let mut rng = weir_core::Seed::new(1).stream("test");
    let mut at = Time::from_millis(1000);
    state.on_dequeue(&packet(1514, at), 9000, &PARAMS, at);
    for _ in 0..15 {
        assert!(!state.strikes(1514, 9000, &PARAMS, &mut rng), "{at}");
        at += Duration::from_millis(10);
        state.on_dequeue(&packet(1514, at), 9000, &PARAMS, at);
    }
    assert!(state.strikes(1514, 9000, &PARAMS, &mut rng));
    assert!(!state.strikes(1514, 3027, &PARAMS, &mut rng), "less than two full packets wait");
}

#[test]
fn drops_are_spread_out() {
    // At 20 % none within 85 % of accumulated probability, and one for sure at 850 %.
    let prob = MAX_PROB / 5;
    let mut state = PieState { prob, burst: 0, ..PieState::default() };
    let mut rng = weir_core::Seed::new(1).stream("test");
    for _ in 0..1000 {
        let mut passed = 0;
        while !state.strikes(1514, 9000, &PARAMS, &mut rng) {
            passed += 1;
        }
        state.on_drop();
        assert!((4..=42).contains(&passed), "{passed}");
    }
    // A packet of a tenth of a full one counts a tenth with bytemode.
    let params = PieParams { bytemode: true, full_packet: 1510, ..PARAMS };
    state.on_drop();
    state.strikes(151, 9000, &params, &mut rng);
    assert_eq!(state.accumulated, 151 * (prob / 1510));
}

#[test]
fn the_drain_rate_is_an_average_over_16_kilobytes() {
    let params = PieParams { dq_rate_estimator: true, ..PARAMS };
    let mut state = PieState::default();
    // 1600 bytes every 1000 ticks; the first packet starts the clock.
    for n in 0..11 {
        state.on_dequeue(&packet(1600, Time::ZERO), 20_000, &params, Time::from_nanos(n * 64_000));
    }
    assert_eq!(state.drain_rate.map(NonZeroU32::get), Some(17_600 * 256 / 10_000));
    state.update(20_000, &params);
    assert_eq!(state.qdelay, 20_000 * 256 / 450, "Little's law");
}

#[test]
fn fifteen_milliseconds_are_five_ticks_of_the_kernels_clock() {
    let mut timer = UpdateTimer::new(Duration::from_millis(15));
    let fired: Vec<u64> = (0..600).filter(|&ms| timer.fires(Time::from_millis(ms))).collect();
    assert_eq!(fired, [512, 532, 552, 572, 592]);
    timer.skip(Time::from_millis(1_000_000), 1);
    assert!(!timer.fires(Time::from_millis(1_000_011)));
    assert!(timer.fires(Time::from_millis(1_000_012)), "the phase stays");
}

/// A state out of its burst allowance, with that probability and sum of probabilities, above the target.
fn state(prob: u64, accumulated: u64) -> PieState {
    let qdelay = PARAMS.target();
    PieState { prob, accumulated, qdelay, burst: 0, ..PieState::default() }
}

fn strikes(mut state: PieState, backlog: u64) -> bool {
    let mut rng = weir_core::Seed::new(1).stream("test");
    state.strikes(1514, backlog, &PARAMS, &mut rng)
}

/// 8.5 times a certain drop, which is then made.
const SURE: u64 = MAX_PROB / 2 * 17;

#[test]
fn below_half_the_target_only_a_probability_of_a_fifth_strikes() {
    let half = PARAMS.target() / 2;
    for (qdelay, prob, expected) in [
        (half - 1, MAX_PROB / 5 - 1, false),
        (half, MAX_PROB / 5 - 1, true),
        (half - 1, MAX_PROB / 5, true),
    ] {
        let due = PieState { qdelay, ..state(prob, SURE) };
        assert_eq!(strikes(due, 9_000), expected, "{qdelay} {prob}");
    }
}

#[test]
fn two_full_packets_are_a_queue() {
    assert!(!strikes(state(MAX_PROB / 5, SURE), 2 * 1_514 - 1));
    assert!(strikes(state(MAX_PROB / 5, SURE), 2 * 1_514));
}

/// At a probability of next to nothing only the sum decides: at 8.5 it strikes, a step below it does not.
#[test]
fn a_drop_is_certain_at_850_percent() {
    assert!(!strikes(state(1, SURE - 2), 9_000));
    assert!(strikes(state(1, SURE - 1), 9_000));
    let mut dropped = state(1, SURE);
    dropped.on_drop();
    assert!(!strikes(dropped, 9_000), "a drop starts the sum over");
}

/// Up to 85 % no draw is made; at 85 % about every second strikes at a probability of one half.
#[test]
fn a_drop_is_possible_from_85_percent_on() {
    let least = MAX_PROB / 100 * 85 - MAX_PROB / 2;
    let struck = |accumulated: u64| {
        let mut rng = weir_core::Seed::new(1).stream("test");
        let one =
            |_: &usize| state(MAX_PROB / 2, accumulated).strikes(1514, 9_000, &PARAMS, &mut rng);
        (0..1_000).filter(one).count()
    };
    assert_eq!(struck(least - 1), 0);
    assert!((450..550).contains(&struck(least)), "{}", struck(least));
}

/// Without probability the sum starts over.
#[test]
fn a_probability_of_nothing_forgets_the_sum() {
    assert!(!strikes(state(0, SURE), 9_000));
}

/// A full packet is the longest that counts by its length; with `bytemode` a longer one counts whole.
#[test]
fn bytemode_counts_packets_up_to_a_full_one_by_their_length() {
    let params = PieParams { bytemode: true, full_packet: 1_000, ..PARAMS };
    let mut rng = weir_core::Seed::new(1).stream("test");
    for (len, part) in [(500, 500), (999, 999), (1_000, 1_000), (1_001, 1_000)] {
        let mut arrival = state(1_000_000, 0);
        arrival.strikes(len, 9_000, &params, &mut rng);
        assert_eq!(arrival.accumulated, 1_000 * part, "{len}");
    }
}

/// From a tenth on a step is 2 % at most; a smaller one is left as it is, and below a tenth a larger one too, but for
/// the halves of its weights.
#[test]
fn steps_are_bounded_from_a_tenth_on() {
    let tenth = MAX_PROB / 10;
    let (alpha, beta) = (2 * (MAX_PROB / 15_625_000) / 16, 20 * (MAX_PROB / 15_625_000) / 16);
    let stepped = |prob: u64, old_ms: u64, ms: u64| {
        let delay = |millis| ticks(Duration::from_millis(millis));
        let mut moved = state(prob, 0);
        (moved.qdelay_old, moved.qdelay) = (delay(old_ms), delay(ms));
        moved.update(9_000, &PARAMS);
        moved.prob
    };
    assert_eq!(stepped(tenth, 15, 15), tenth);
    assert_eq!(stepped(tenth, 15, 20), tenth + 78_125 * (alpha + beta));
    assert_eq!(stepped(tenth, 15, 40), tenth + MAX_PROB / 100 * 2);
    let halves = 45 * 15_625 * (alpha / 2 + beta / 2);
    assert_eq!(stepped(tenth - 1, 15, 60), tenth - 1 + halves);
    assert_eq!(stepped(tenth, 15, 60), tenth + MAX_PROB / 100 * 2);
    // At 250 ms not yet, a millisecond above 2 % more.
    assert_eq!(stepped(tenth, 250, 250), tenth + MAX_PROB / 100 * 2);
    assert_eq!(stepped(tenth, 251, 251), tenth + MAX_PROB / 100 * 2 + MAX_PROB / 50);
    assert_eq!(stepped(tenth, 40, 15), tenth - 25 * 15_625 * beta);
    assert_eq!(stepped(1, 40, 15), 0, "never below 0");
}

/// The weights are halved below 1/10, and quartered again below 1/100, 1/1000 and so on to 1/1000000.
#[test]
fn weights_shrink_with_the_probability() {
    let (alpha, beta) = (2 * (MAX_PROB / 15_625_000) / 16, 20 * (MAX_PROB / 15_625_000) / 16);
    let mut shift = 0;
    for power in [10, 100, 1_000, 10_000, 100_000, 1_000_000] {
        let gains = |prob: u64| state(prob, 0).gains(&PARAMS);
        let expected = |by: u32| ((alpha >> by) as i64, (beta >> by) as i64);
        assert_eq!(gains(MAX_PROB / power), expected(shift), "at 1/{power}");
        shift = if power == 10 { 1 } else { shift + 2 };
        assert_eq!(gains(MAX_PROB / power - 1), expected(shift), "below 1/{power}");
    }
    assert_eq!(shift, 11);
}

/// Calm means: no probability, and twice in a row a delay below half the target.
#[test]
fn bursts_are_allowed_again_once_it_is_calm() {
    let half = PARAMS.target() / 2;
    let allowed = |qdelay_old: Ticks, qdelay: Ticks, prob: u64| {
        let mut calm = PieState { qdelay, qdelay_old, ..state(prob, 0) };
        calm.update(9_000, &PARAMS);
        calm.burst > 0
    };
    assert!(allowed(half - 1, half - 1, 0));
    assert!(!allowed(half, half - 1, 0));
    assert!(!allowed(half - 1, half, 0));
    assert!(!allowed(half - 1, half - 1, MAX_PROB));
}

/// A 64th is forgotten only where nothing waits and neither delay was above 0.
#[test]
fn a_queue_that_is_not_idle_does_not_forget() {
    let params = PieParams { target: Duration::ZERO, ..PARAMS };
    let after = |qdelay_old: Ticks, backlog: u64| {
        let mut idle = PieState { qdelay: 0, qdelay_old, ..state(MAX_PROB / 4, 0) };
        idle.update(backlog, &params);
        MAX_PROB / 4 - idle.prob
    };
    assert_eq!(after(0, 0), MAX_PROB / 4 / 64);
    assert_eq!(after(0, 1), 0);
    // One tick less than before takes its own part, and no 64th.
    assert_eq!(after(1, 0), 20 * (MAX_PROB / 15_625_000) / 16);
}

/// A measurement begins once 16384 bytes wait, and ends when as many have left.
#[test]
fn the_drain_rate_is_measured_while_16_kilobytes_wait() {
    let params = PieParams { dq_rate_estimator: true, ..PARAMS };
    let depart = |state: &mut PieState, len: u32, backlog: u64, tick: u64| {
        state.on_dequeue(&packet(len, Time::ZERO), backlog, &params, Time::from_nanos(tick << 6));
        state.drain_rate.map_or(0, NonZeroU32::get)
    };
    let mut few = PieState::default();
    assert_eq!(depart(&mut few, 1_000, 16_383, 0), 0);
    assert_eq!(few.measured, None);
    let mut enough = PieState::default();
    depart(&mut enough, 383, 16_384, 1_000);
    assert_eq!((enough.measured, enough.since), (Some(383), Some(1_000)));
    assert_eq!(depart(&mut enough, 16_000, 16_383, 2_000), 0, "16383 bytes");
    let burst = enough.burst;
    assert_eq!(depart(&mut enough, 1, 16_383, 3_000), 16_384 * 256 / 2_000);
    assert_eq!(enough.burst, burst - 2_000);
    assert_eq!(enough.measured, None, "too few wait for another one");
    // The next one counts an eighth.
    depart(&mut enough, 384, 16_384, 5_000);
    let first: u32 = 16_384 * 256 / 2_000;
    assert_eq!(
        depart(&mut enough, 16_000, 16_384, 6_000),
        first - first / 8 + 16_384 * 256 / 1_000 / 8
    );
    assert_eq!((enough.measured, enough.since), (Some(0), Some(6_000)));
}

/// A part of an update follows a jiffy after the one before, and the next update keeps the period from there.
#[test]
fn an_update_in_parts_goes_on_a_jiffy_later() {
    let mut timer = UpdateTimer::new(Duration::from_millis(15));
    assert!(timer.fires(Time::from_millis(512)));
    timer.continues();
    let fired: Vec<u64> = (513..560).filter(|&ms| timer.fires(Time::from_millis(ms))).collect();
    assert_eq!(fired, [516, 536, 556]);
    // Of updates in two parts, six jiffies apart, those at 144, 150 and 156 (624 ms) are left out.
    timer.skip(Time::from_millis(624), 2);
    assert!(!timer.fires(Time::from_millis(647)));
    assert!(timer.fires(Time::from_millis(648)));
    assert!(!UpdateTimer::new(Duration::ZERO).fires(Time::from_millis(511)));
}
