//! Scenarios whose queues or markers cannot be built are refused, and where they are is said.

use weir_core::Framing;
use weir_world::{Hop, Host, IpVersion, LineRate, Path, Sampling, Scenario};

fn scenario() -> Scenario {
    let hop = Hop {
        name: "line".into(),
        marker: None,
        queue: "pfifo".into(),
        rate: LineRate::Bps(10_000_000),
        framing: Framing::NONE,
        delay_ns: 0,
        jitter_ns: 0,
        loss: None,
        reorder: None,
        duplicate: 0.0,
        tx_queue_len: 1000,
        reference_rate_bps: None,
        changes: vec![],
        shaped: false,
    };
    Scenario {
        name: "t".into(),
        duration_ns: 1_000_000_000,
        phases: vec![],
        path: Path { up: vec![hop.clone()], down: vec![hop] },
        hosts: vec![Host { name: "server".into(), delay_ns: 0 }],
        tunnels: vec![],
        flows: vec![],
        probes: vec![],
        start_jitter_ns: 0,
        shaper: None,
        methods: vec![],
        sampling: Sampling { throughput_ns: 0, tcp_ns: 0, queue_ns: 0 },
        ip_version: IpVersion::V4,
        mtu_bytes: 1500,
    }
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
