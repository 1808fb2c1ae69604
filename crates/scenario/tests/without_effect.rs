//! What takes the queue and the congestion control that a scenario compares; where nothing does they are refused.

use weir_scenario::file::catalogue::read_file;
use weir_scenario::file::{NoFiles, remarks, resolve};
use weir_scenario::{Direction, Scenario};

const TEST: &str = "[test]\nname = 't'\ntitle = 't'\nphases = { load = '1s' }\n";
const PLACE: &str = "place = 'queue'\n";

/// A scenario that says `words`, on a link of a hop up and one down, of which these have a place.
fn run(words: &str, up: &str, down: &str) -> Result<Scenario, String> {
    let up = format!("[[link.up]]\nname = 'a'\n{up}");
    let down = format!("[[link.down]]\nname = 'b'\n{down}");
    let text = format!("{words}\n{TEST}[link]\nname = 'l'\ntitle = 'l'\n{up}{down}");
    let resolved = resolve(&read_file(&text, "s.toml")?, &NoFiles, |_| None)?;
    Ok(resolved.configurations.into_iter().next().unwrap().scenario)
}

fn queues(scenario: &Scenario) -> [&str; 2] {
    Direction::ALL.map(|direction| scenario.hops(direction)[0].queue.as_str())
}

fn refused(key: &str, hops: &str) -> String {
    format!(
        "{key} `codel`: no hop {hops} of link `l` has a place for it: write `place = \"queue\"` at the hop whose queue it replaces"
    )
}

#[test]
fn a_queue_goes_where_there_is_a_place_for_it() {
    let both = run("queue = 'codel'", PLACE, PLACE).unwrap();
    assert_eq!(queues(&both), ["codel", "codel"]);
    let up = run("queue = 'codel'", PLACE, "").unwrap();
    assert_eq!(queues(&up), ["codel", "pfifo"]);
    let own = run("queue_down = 'codel'", "", PLACE).unwrap();
    assert_eq!(queues(&own), ["pfifo", "codel"]);
}

#[test]
fn a_queue_that_would_go_nowhere_is_refused() {
    assert_eq!(run("queue = 'codel'", "", "").unwrap_err(), refused("queue", "up or down"));
    assert_eq!(run("queue_up = 'codel'", "", PLACE).unwrap_err(), refused("queue_up", "up"));
    assert_eq!(run("queue_down = 'codel'", PLACE, "").unwrap_err(), refused("queue_down", "down"));
    let nowhere = format!(
        "queue_down = 'codel'\n{TEST}[link]\nname = 'l'\ntitle = 'l'\nup = []\ndown = []\n"
    );
    let said = resolve(&read_file(&nowhere, "s.toml").unwrap(), &NoFiles, |_| None).unwrap_err();
    let why = "there is no hop down to put it into, as the queues are those of what is measured";
    assert_eq!(said, format!("queue_down `codel`: {why}: leave it out"));
    // That of both directions is left for one of them, where there is none.
    let rest = "queue_up = 'sfq'\nqueue = 'codel'";
    assert_eq!(run(rest, PLACE, "").unwrap_err(), refused("queue", "down"));
    assert_eq!(queues(&run("queue_up = 'sfq'", PLACE, "").unwrap()), ["sfq", "pfifo"]);
    assert_eq!(queues(&run("queue = 'default'", "", "").unwrap()), ["pfifo", "pfifo"]);
}

#[test]
fn the_queue_of_a_shaper_needs_no_place_in_the_link() {
    let shaped = "shaper = [{ control = 'fixed', directions = 'up', up = { rate = '5mbit' } }]\n";
    let scenario = run(&format!("{shaped}queue = 'codel'"), "rate = '9mbit'\n", "").unwrap();
    assert_eq!(scenario.path.up[0].queue, "codel");
    let down = run(&format!("{shaped}queue_down = 'codel'"), "rate = '9mbit'\n", "");
    assert_eq!(down.unwrap_err(), refused("queue_down", "down"));
}

#[test]
fn a_queue_that_only_a_shaper_takes_is_the_links_own_without_it_and_counts_once() {
    let text = format!(
        "shaper = ['none', 'auto']\nqueue = ['codel', 'sfq']\nqueue_up = ['default', 'fq']\n{TEST}\
         [link]\nname = 'l'\ntitle = 'l'\n[[link.up]]\nname = 'a'\nrate = '9mbit'\n{PLACE}\
         [[link.down]]\nname = 'b'\nrate = '9mbit'\n"
    );
    let resolved = resolve(&read_file(&text, "s.toml").unwrap(), &NoFiles, |_| None).unwrap();
    let labels: Vec<_> = resolved.configurations.iter().map(|one| one.queue.as_str()).collect();
    assert_eq!(
        labels,
        [
            "up default, down default",
            "up fq, down default",
            "shaper auto, up default, down codel",
            "shaper auto, up fq, down codel",
            "shaper auto, up default, down sfq",
            "shaper auto, up fq, down sfq",
        ]
    );
    assert_eq!(queues(&resolved.configurations[1].scenario), ["fq", "pfifo"]);
}

#[test]
fn the_links_own_queue_counts_once_whether_it_is_written_before_or_behind() {
    for written in ["['codel', 'default']", "['default', 'codel']"] {
        let text = format!(
            "shaper = ['none', 'auto']\nqueue = {written}\n{TEST}[link]\nname = 'l'\ntitle = 'l'\n\
             [[link.up]]\nname = 'a'\nrate = '9mbit'\n[[link.down]]\nname = 'b'\nrate = '9mbit'\n"
        );
        let resolved = resolve(&read_file(&text, "s.toml").unwrap(), &NoFiles, |_| None).unwrap();
        let mut labels: Vec<_> =
            resolved.configurations.iter().map(|one| one.queue.as_str()).collect();
        labels.sort_unstable();
        assert_eq!(labels, ["default", "shaper auto", "shaper auto, codel"], "{written}");
    }
}

/// The congestion controls that are compared by a test with these loads.
fn compared(loads: &str) -> Vec<Option<String>> {
    let text = format!(
        "cc = ['bbr', 'reno']\nlink = 'line-50'\n{TEST}{loads}[[test.probes]]\nname = 'p'\nkind = 'icmp'\n"
    );
    let resolved = resolve(&read_file(&text, "s.toml").unwrap(), &NoFiles, |_| None).unwrap();
    resolved.configurations.into_iter().map(|one| one.cc).collect()
}

#[test]
fn a_congestion_control_that_no_load_takes_is_not_compared() {
    let flow = |more: &str| format!("[[test.flows]]\nname = 'f'\ndirection = 'down'\n{more}\n");
    let own = flow("tcp = { congestion_control = 'cubic' }");
    let method = |more: &str| format!("[[test.methods]]\nname = 'm'\nkind = 'rpm'\n{more}\n");
    let untaken = [
        String::new(),
        flow("udp = { rate = '1mbit' }"),
        flow("dns = {}"),
        own.clone(),
        method("cc = 'reno'\nclient_cc = 'reno'"),
    ];
    for loads in untaken {
        assert_eq!(compared(&loads), [None], "{loads}");
    }
    let mixed = format!("{own}{}", flow("").replace("'f'", "'g'"));
    for loads in [flow(""), mixed, flow("web = {}"), method("cc = 'reno'")] {
        assert_eq!(compared(&loads), [Some("bbr".to_owned()), Some("reno".to_owned())], "{loads}");
    }
}

#[test]
fn what_nothing_takes_is_told() {
    let says = |text: &str| remarks(&read_file(text, "s.toml").unwrap(), &NoFiles).unwrap();
    let ping = "test = 'ping'\nlink = 'line-50'\n";
    assert_eq!(
        says(&format!("{ping}cc = ['bbr', 'nonsense', 'bbr']")),
        [
            "cc `bbr` is given 2 times: it counts once",
            "cc `bbr`: no load of test `ping` takes it",
            "cc `nonsense`: no load of test `ping` takes it"
        ]
    );
    assert_eq!(says(&format!("{ping}cc = 'bbr'\n[[beside]]\ntest = 'rrul'")), [""; 0]);
    let calls = "test = 'voip'\nlink = 'line-50'\n";
    assert_eq!(
        says(&format!(
            "{calls}tcp = {{ ecn = true, sack = false }}\nsampling = {{ ping = '5ms' }}"
        )),
        [
            "options of TCP: no load of test `voip` takes them",
            "pings every 5ms: no train of pings of test `voip` takes that period"
        ]
    );
    assert_eq!(says(&format!("{ping}sampling = {{ ping = '5ms' }}")), [""; 0]);
    assert_eq!(says(&format!("{ping}tcp = {{ ecn = true }}\n[[beside]]\ntest = 'rrul'")), [""; 0]);
    let both = "queue_up = 'codel'\nqueue_down = 'pie'";
    assert_eq!(
        says(&format!("{ping}{both}\nqueue = ['default', 'red']")),
        ["queue `red`: both directions have their own, in `queue_up` and `queue_down`"]
    );
    assert_eq!(says(&format!("{ping}{both}")), [""; 0]);
}
