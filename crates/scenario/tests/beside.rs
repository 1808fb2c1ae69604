//! Tests beside the first: what they are called, when they run, which servers they share, and what is refused.

use weir_scenario::Scenario;
use weir_scenario::file::catalogue::read_file;
use weir_scenario::file::{NoFiles, resolve};

fn run(text: &str) -> Result<Scenario, String> {
    let resolved = resolve(&read_file(text, "s")?, &NoFiles, |_| None)?;
    Ok(resolved.configurations.into_iter().next().unwrap().scenario)
}

fn beside(first: &str, entry: &str) -> Result<Scenario, String> {
    run(&format!("link = 'line-50'\n{first}\n[[beside]]\n{entry}"))
}

const RRUL: &str = "test = 'rrul'\nphases = { idle = '5s', load = '60s', cooldown = '5s' }";

#[test]
fn the_flows_of_two_equal_tests_are_told_apart_and_the_second_has_its_own_time() {
    let scenario = beside(RRUL, "test = 'rrul'\nstart = '20s'\nlength = '30s'").unwrap();
    assert_eq!(scenario.flows.len(), 16);
    assert_eq!(scenario.name, "rrul 1 + rrul 2");
    let of = |test: &str| {
        let mut spans: Vec<_> = scenario
            .flows
            .iter()
            .filter(|flow| flow.name.starts_with(test))
            .map(|flow| (flow.start_ns, flow.stop_ns))
            .collect();
        assert_eq!(spans.len(), 8);
        spans.dedup();
        spans
    };
    assert_eq!(of("rrul 1 "), [(5_000_000_000, 65_000_000_000)]);
    assert_eq!(of("rrul 2 "), [(25_000_000_000, 55_000_000_000)]);
    let probes = scenario.probes.iter().filter(|probe| probe.name.starts_with("rrul 2 "));
    assert!(probes.clone().count() > 0);
    for probe in probes {
        assert_eq!((probe.start_ns, probe.stop_ns), (25_000_000_000, 55_000_000_000));
    }
    assert_eq!(scenario.hosts.len(), 1, "both use the one server");
}

#[test]
fn a_test_beside_another_ends_with_its_load_if_no_length_is_given() {
    let scenario = beside(RRUL, "test = 'tcp_download'\nname = 'bulk'\nstart = '50s'").unwrap();
    let flow = scenario.flows.iter().find(|flow| flow.name.starts_with("bulk ")).unwrap();
    assert_eq!((flow.start_ns, flow.stop_ns), (55_000_000_000, 65_000_000_000));
}

#[test]
fn parameters_are_those_of_the_test_that_they_stand_in() {
    let scenario = beside(
        "test = 'tcp_ndown'\nparameters.streams = 3",
        "test = 'tcp_nup'\nparameters.streams = 2",
    )
    .unwrap();
    let count = |test: &str| scenario.flows.iter().filter(|one| one.name.starts_with(test)).count();
    assert_eq!([count("tcp_ndown "), count("tcp_nup ")], [3, 2]);
}

#[test]
fn a_server_of_the_same_name_but_farther_away_is_another() {
    let own = "test = { name = 'far', title = 't', phases = { load = '10s' }, \
               hosts = [{ name = 'server', delay = '30ms' }], \
               flows = [{ name = 'up', direction = 'up' }], probes = [{ name = 'p', kind = 'icmp', host = 'server' }] }";
    let scenario = beside(RRUL, own).unwrap();
    let hosts: Vec<_> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(hosts, ["server", "far server"]);
    let of = |name: &str| scenario.flows.iter().find(|flow| flow.name == name).unwrap().host;
    assert_eq!((of("rrul TCP upload BE"), of("far up")), (0, 1));
    assert_eq!(scenario.probes.iter().find(|probe| probe.name == "far p").unwrap().host, 1);
}

#[test]
fn what_does_not_fit_is_refused_in_a_sentence() {
    let refused = |entry: &str| beside(RRUL, entry).unwrap_err();
    assert_eq!(
        refused("test = 'rrul'\nstart = '60s'"),
        "beside `rrul 2`: it starts 60 s after the load of the first test, which lasts 60 s: write an earlier start"
    );
    assert_eq!(
        refused("test = 'rrul'\nstart = '50s'\nlength = '20s'"),
        "beside `rrul 2`: it lasts 20 s, and the load of the first test ends 10 s after its start: write a shorter length"
    );
    assert_eq!(
        refused("test = 'rrul'\nparameters.streams = 2"),
        "s, line 6: beside.0.parameters.streams: test `rrul` has no parameter `streams` (known: it has none)"
    );
    assert!(refused("test = 'rrull'").starts_with("unknown test `rrull`, did you mean `rrul`?"));
    let speed_test = "test = { name = 'n', title = 't', phases = { load = '9s' }, methods = [{ name = 'm', kind = 'ndt7' }] }";
    assert_eq!(
        refused(&format!("{speed_test}\nlength = '5s'")),
        "beside `n`: its speed tests end by themselves: leave `length` out"
    );
    assert_eq!(
        refused("test = 'rrul_twice'\nlength = '20s'"),
        "beside `rrul_twice`: `second upload BE` would not run in its load of 20 s: write a longer length"
    );
}
