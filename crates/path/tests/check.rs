//! Scenarios whose queues or markers cannot be built are refused, and where they are is said.
use weir_scenario::{Hop, LineRate, Scenario};

fn scenario() -> Scenario {
    let hop = Hop::new("line", "pfifo", LineRate::Bps(10_000_000));
    Scenario::over("t", 1_000_000_000, hop.clone(), hop)
}

#[test]
fn errors_say_what_where_and_what_is_allowed() {
    weir_path::check(&scenario()).expect("it is sound");
    let error = |change: fn(&mut Scenario)| {
        let mut scenario = scenario();
        change(&mut scenario);
        weir_path::check(&scenario).unwrap_err().to_string()
    };
    assert_eq!(
        error(|s| s.path.down[0].queue = "htb rate 95%x".into()),
        "path down, hop `line`: htb class: `rate 95%x`: write a number with bit, kbit, mbit, \
         gbit or tbit (bps, kbps... for bytes per second)"
    );
    assert_eq!(
        error(|s| s.path.up[0].marker = Some("token_bucket tokens many".into())),
        "path up, hop `line`: token_bucket: `tokens many`: write a number with b, kb, mb or gb \
         (kbit, mbit, gbit for bits)"
    );
    assert_eq!(error(|s| s.duration_ns = 0), "duration 0ms: write a time above 0 and up to a week");
}
