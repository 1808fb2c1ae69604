//! How files say that a line asks, competes, or is another from time to time.

use weir_scenario::file::catalogue::read_file;
use weir_scenario::file::spec::ScenarioSpec;
use weir_scenario::file::{NoFiles, resolve};
use weir_scenario::{Access, AirtimeParams, GrantParams, Hop, Reconfiguration};

/// The upstream hop of a link with these keys, as worlds take it.
fn hop(keys: &str) -> Result<Hop, String> {
    let text = format!(
        "test = 'ping'\n[link]\nname = 'l'\ntitle = 'l'\n[[link.up]]\nname = 'line'\n{keys}\n\
         [[link.down]]\nname = 'line'\nrate = '100mbit'"
    );
    let resolved = resolve(&read_file::<ScenarioSpec>(&text, "s.toml")?, &NoFiles, |_| None)?;
    let scenario = &resolved.configurations[0].scenario;
    scenario.check().map_err(|error| error.to_string())?;
    Ok(scenario.path.up[0].clone())
}

#[test]
fn what_is_left_out_is_what_most_have() {
    let plain = hop("rate = '8mbit'").unwrap();
    assert_eq!((plain.access, plain.reconfiguration), (None, None));
    let asking = hop("rate = '8mbit'\ngrants = { delay = '3ms' }").unwrap();
    let grants = GrantParams { interval_ns: 2_000_000, delay_ns: 3_000_000 };
    assert_eq!(asking.access, Some(Access::Grants(grants)));
    let wireless = "rate = '65mbit'\nairtime = { medium = 'air', overhead = '200us' }";
    let airtime = AirtimeParams {
        medium: Some("air".to_owned()),
        packets: 32,
        longest_ns: 4_000_000,
        overhead_ns: 200_000,
        gap_ns: 34_000,
        slot_ns: 9_000,
        window: 15,
        max_window: 1_023,
        failures: 0.0,
    };
    assert_eq!(hop(wireless).unwrap().access, Some(Access::Airtime(airtime)));
    let pausing = hop("reconfiguration = { period = '16s', outage = '60ms' }").unwrap();
    let reconfiguration = Reconfiguration {
        first_ns: 16_000_000_000,
        period_ns: 16_000_000_000,
        delay_ns: 0,
        min_rate_share: 1.0,
        outage_ns: 60_000_000,
    };
    assert_eq!(pausing.reconfiguration, Some(reconfiguration));
}

#[test]
fn what_does_not_go_together_is_told() {
    let error = |keys: &str| hop(keys).unwrap_err();
    let both = "rate = '8mbit'\ngrants = { delay = '3ms' }\nairtime = { overhead = '0s' }";
    assert!(error(both).contains("hop `line`: `grants` and `airtime` exclude each other"));
    assert!(
        error("grants = { delay = '3ms' }")
            .contains("only a line of constant `rate` has `grants` or `airtime`")
    );
    assert!(
        error("reconfiguration = { period = '1s', min_rate_share = 0.5 }")
            .contains("only a line of constant `rate` has a `min_rate_share`")
    );
    assert!(
        error("reconfiguration = { period = '15s' }").contains("nothing changes: give `delay`")
    );
    assert!(error("reconfiguration = { period = '15' }").contains("15"));
    assert!(
        error("rate = '1mbit'\nairtime = { overhead = '2s' }")
            .contains("airtime: overhead 2s: write 0ms to 1s")
    );
}

/// What a scenario of an earlier version says is what it was.
#[test]
fn lines_without_it_are_written_as_before() {
    let written = serde_json::to_string(&hop("rate = '8mbit'").unwrap()).unwrap();
    assert!(!written.contains("access") && !written.contains("reconfiguration"), "{written}");
}
