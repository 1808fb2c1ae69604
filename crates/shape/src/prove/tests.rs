use super::*;

type SideView = crate::SideView;
type View = crate::View;

const STEP_NS: u64 = 200_000_000;

fn settings(own_traffic: bool) -> ProverSettings {
    ProverSettings {
        rounds: 2,
        measure_ns: 4_000_000_000,
        max_cost: 0.1,
        own_traffic,
        takes_commands: false,
    }
}

/// What comes of round trips (ms) and rates (Mbit/s) of the three kinds of stages.
fn led(
    idle_ms: f64,
    before: (f64, f64),
    after: (f64, f64),
    own_traffic: bool,
) -> Result<Proof, String> {
    led_at(Some(9_000_000), idle_ms, before, after, own_traffic)
}

/// The same of a shaper that sets this rate.
fn led_at(
    rate_bps: Option<u64>,
    idle_ms: f64,
    before: (f64, f64),
    after: (f64, f64),
    own_traffic: bool,
) -> Result<Proof, String> {
    let mut prover = Prover::new(settings(own_traffic));
    let (mut now, mut commands) = (0, Vec::new());
    while !prover.has_ended() {
        let (rtt_ms, mbps) = match prover.present() {
            None | Some(Stage::Before) => before,
            Some(Stage::After) => after,
            Some(Stage::Idle) => (idle_ms, 0.01),
        };
        // Every second is a little different; whatever comes from a connection does not count.
        let rtt_ms = rtt_ms + (now / 1_000_000_000 % 3) as f64 * 0.1;
        let mut delays = vec![(now, (rtt_ms * 1e6) as u64, 0), (now, 1, FIRST_CONNECTION)];
        if own_traffic {
            // It pauses now and then.
            delays.push((now, (idle_ms * 1e6) as u64, 0));
        }
        let is_shaped = prover.present() == Some(Stage::After) && rate_bps.is_some();
        let rate_bps = rate_bps.filter(|_| is_shaped);
        let side = SideView { load_bps: (mbps * 1e6) as u64, rate_bps, ..SideView::default() };
        let view = View {
            t_ns: now,
            delays,
            sides: [Some(side), None],
            late_ns: 3_000_000,
            ..View::default()
        };
        let wanted = prover.step(&view);
        if wanted != Command::Continue {
            commands.push(wanted);
        }
        now += STEP_NS;
    }
    use Command::{Open, Shape};
    let idle: &[Command] = if own_traffic { &[] } else { &[Open] };
    assert_eq!(commands, [&[Open, Shape, Open, Shape], idle, &[Open]].concat());
    prover.proof()
}

#[test]
fn a_proof_has_the_factor_and_its_interval() {
    let proof = led(10.0, (60.0, 10.0), (15.0, 9.5), false).unwrap();
    assert_eq!(proof.verdict, None);
    assert!((proof.before_ms - 50.0).abs() < 0.1, "{proof:?}");
    assert!((proof.after_ms - 5.0).abs() < 0.1, "{proof:?}");
    let Factor { factor: Some(factor), low: Some(low), high: Some(high) } = proof.factor else {
        panic!("{proof:?}")
    };
    assert!((factor - 10.0).abs() < 0.3 && low < factor && factor < high, "{proof:?}");
    assert!((proof.cost - 0.05).abs() < 1e-9);
    assert_eq!(proof.late_ms, 3.0);
    assert_eq!(
        proof.lines()[3],
        "throughput           10.00 Mbit/s without it, 9.50 Mbit/s with it (-5.0%)"
    );
}

#[test]
fn what_does_not_help_or_costs_too_much_is_refused() {
    let verdict = |before, after| led(10.0, before, after, false).unwrap().verdict.unwrap();
    assert_eq!(
        verdict((12.0, 10.0), (12.0, 10.0)),
        "latency did not improve: the increase was 2.0 ms without it, 2.0 ms with it"
    );
    assert_eq!(
        verdict((60.0, 10.0), (15.0, 8.0)),
        "throughput fell by 20.0%, and 10.0% is allowed; on the way up that is what was sent, of which the line may \
         have dropped a part"
    );
}

#[test]
fn what_is_nothing_has_no_minus() {
    let proof = led(10.0, (10.04, 10.0), (9.98, 10.0), false).unwrap();
    assert_eq!(proof.lines()[1], "increase under load  0.0 ms without it, 0.0 ms with it");
    assert!(proof.lines()[3].ends_with("(+0.0%)"), "{proof:?}");
    assert!(proof.verdict.is_some_and(|verdict| verdict.contains(", 0.0 ms with it")));
}

#[test]
fn what_helps_so_little_that_it_may_be_chance_is_refused() {
    let verdict = |before, after| led(10.0, (before, 10.0), (after, 10.0), false).unwrap().verdict;
    assert_eq!(
        verdict(165.9, 165.6).unwrap(),
        "latency hardly improved: the increase was 155.9 ms without it, 155.6 ms with it, factor 1.0 (95 % interval \
         1.0 to 1.0); 1 ms less and a factor that is surely 1.1 are asked for"
    );
    assert!(
        verdict(165.9, 156.0).unwrap().starts_with("latency hardly improved: "),
        "a factor of 1.07"
    );
    assert!(verdict(10.9, 10.2).unwrap().starts_with("latency hardly improved: "), "0.7 ms");
    assert_eq!(verdict(165.9, 145.0), None);
    assert_eq!(
        verdict(12.0, 10.2),
        None,
        "the increase was small already, and is nine times smaller"
    );
}

#[test]
fn a_shaper_that_never_set_a_rate_has_proved_nothing() {
    let proof = led_at(None, 10.0, (60.0, 10.0), (15.0, 9.5), false).unwrap();
    let verdict = proof.verdict.unwrap();
    assert!(verdict.starts_with("it held nothing back: no rate was set"), "{verdict}");
}

#[test]
fn of_ones_own_traffic_the_least_round_trip_stands_for_the_idle_line() {
    let proof = led(10.0, (60.0, 10.0), (15.0, 9.5), true).unwrap();
    assert_eq!(proof.idle_ms, 10.0);
    assert!(
        (proof.before_ms - 25.0).abs() < 0.1,
        "half of the round trips were those of pauses: {proof:?}"
    );
    let nothing = led(10.0, (60.0, 0.5), (15.0, 0.5), true).unwrap_err();
    assert!(
        nothing.starts_with("your own traffic was 0.50 Mbit/s, which shows nothing"),
        "{nothing}"
    );
}

#[test]
fn a_line_on_which_nothing_waits_any_more_is_a_proof() {
    let proof = led(9.98, (60.0, 10.0), (10.0, 10.0), false).unwrap();
    assert_eq!(proof.verdict, None, "round trips are as the idle line's, give or take some noise");
}

#[test]
fn the_plan_is_told_and_has_to_fit_the_run() {
    let prover = Prover::new(settings(false));
    assert_eq!(prover.plan(), "measuring for 39 s: 2 times 7 s without and 9 s with it, then idle");
    let one = Prover::new(ProverSettings { rounds: 1, ..settings(false) });
    assert!(one.plan().contains(" s: once 7 s without and 9 s with it, "), "{}", one.plan());
    assert_eq!(prover.fits(None), Ok(()));
    assert_eq!(prover.fits(Some(39_000_000_000)), Ok(()));
    assert_eq!(
        prover.fits(Some(38_999_999_999)).unwrap_err(),
        "--time is shorter than the 39 s that the measurement takes"
    );
}

#[test]
fn a_late_shaper_is_remarked_on() {
    let proof = led(10.0, (60.0, 10.0), (15.0, 9.5), false).unwrap();
    assert_eq!(proof.remark(), None);
    let late = Proof { late_ms: 12.4, ..proof };
    assert_eq!(
        late.remark().unwrap(),
        "this machine is busy: the shaper itself was up to 12 ms late"
    );
}

#[test]
fn a_proof_waits_for_its_load() {
    let lasts_s = |load_from_ns| {
        let mut prover = Prover::new(ProverSettings { rounds: 1, ..settings(false) });
        let mut now = 0;
        while !prover.has_ended() {
            let load_bps = if now >= load_from_ns { 8_000_000 } else { 10_000 };
            let side = SideView { load_bps, ..SideView::default() };
            let delays = vec![(now, 10_000_000, 0)];
            prover.step(&View { t_ns: now, delays, sides: [Some(side), None], ..View::default() });
            now += STEP_NS;
        }
        (now - prover.total_ns()) as f64 / 1e9
    };
    assert!((lasts_s(7_000_000_000) - lasts_s(200_000_000) - 6.8).abs() < 1e-6);
    // What never comes is not waited for any longer.
    assert!(lasts_s(u64::MAX) < 22.0);
}

#[test]
fn a_proof_says_first_that_nothing_loaded_the_line() {
    let mut prover = Prover::new(settings(false));
    let mut now = 0;
    while !prover.has_ended() {
        let side = SideView { load_bps: 1_000, ..SideView::default() };
        prover.step(&View { t_ns: now, sides: [Some(side), None], ..View::default() });
        now += STEP_NS;
    }
    let said = prover.proof().unwrap_err();
    assert_eq!(
        said,
        "the line was not loaded: 0.00 Mbit/s crossed it, and 0.00 Mbit/s while it was to be idle"
    );
    prover.settings.takes_commands = true;
    let advised = prover.proof().unwrap_err();
    assert_eq!(advised, format!("{said}; `--run` takes a command that loads it"));
}
