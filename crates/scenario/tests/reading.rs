//! What is wrong with a file: all of it, each with its line, and what may stand there.

use weir_core::Direction;
use weir_scenario::LineRate;
use weir_scenario::file::catalogue::{read, read_file, read_file_beyond, read_scenario_file};
use weir_scenario::file::link::LinkSpec;
use weir_scenario::file::plain::Named;
use weir_scenario::file::spec::ScenarioSpec;
use weir_scenario::file::test::TestSpec;
use weir_scenario::file::{
    Fault, Files, NoFiles, Value, Written, faults_of_files, load_link, load_test, parse, remarks,
    resolve, schema, shipped_links, shipped_tests,
};

const LINK: &str = r#"name = "l"
titel = "Mine"          # 2

[[up]]
name = "a"
rate = 20               # 6
framing = "atmm"        # 7

[[up]]                  # 9: no name
framing = { overhead = -1 }
loss = { model = "random", probability = 2 }
changes = [             # 12
    { at = "1s", rate = "20mbit" },
    { at = 5, down = true },
]

[[down]]
name = ""               # 18
"#;

#[test]
fn all_faults_of_a_file_are_told_with_their_lines() {
    let said = read_file::<LinkSpec>(LINK, "link.toml").unwrap_err();
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "link.toml has 9 faults:",
            "line 1: title: this key is missing",
            "line 2: titel: unknown key, did you mean `title`? (known: name, title, summary, source, mtu, up, down, routes)",
            "line 6: up.0.rate: `20` is a rate without its unit: write `20mbit` or `20kbit`",
            "line 7: up.0.framing: `atmm`: write 'none', 'ethernet', 'ptm', 'atm' or 'docsis'",
            "line 9: up.1.name: this key is missing",
            "line 10: up.1.framing.overhead: -1: write 0 or more",
            "line 11: up.1.loss.probability: 2: write 1 or less",
            "line 14: up.1.changes.1.at: `5` is a time without its unit: write `5s`, `5ms` or `5us`",
            "line 18: down.0.name: it is empty: write at least one letter",
        ]
    );
}

#[test]
fn a_file_full_of_faults_is_told_in_part() {
    let text: String = (0..50).map(|number| format!("key{number} = 1\n")).collect();
    let said = read_file::<LinkSpec>(&text, "many.toml").unwrap_err();
    assert_eq!(said.lines().count(), 22);
    assert!(said.ends_with("and 32 more"));
}

/// What is told of a scenario that is fine but for the given keys.
fn told(keys: &str) -> String {
    let text = format!("test = \"rrul\"\n{keys}\n");
    let link = if keys.contains("link") { "" } else { "link = \"line-50\"\n" };
    read_file::<ScenarioSpec>(&format!("{link}{text}"), "s.toml").unwrap_err()
}

#[test]
fn every_kind_of_fault_has_its_words() {
    for (keys, said) in [
        ("link = 5", "link: 5: write a text, a table or a list"),
        ("link = {name = 'l'}", "link.title: this key is missing"),
        ("link = ['a', {title = 'l'}]", "link.1.name: this key is missing"),
        ("assert = 'codel'", "assert: `codel`: write a list: put brackets around it"),
        ("queue = 5", "queue: 5: write a text or a list"),
        ("shaper = 5", "shaper: 5: write a text, a table or a list"),
        (
            "shaper = {control = 'auto', directions = 5}",
            "shaper.directions: 5: write 'up', 'down' or a list",
        ),
        ("queue = []", "queue: the list is empty: write at least one"),
        ("queue_up = 5", "queue_up: 5: write a text or a list"),
        ("ip = 5", "ip: 5: write 4 or 6"),
        ("repeat = 'many'", "repeat: `many`: write a whole number"),
        ("repeat = 1.5", "repeat: 1.5: write a whole number"),
        ("repeat = 0", "repeat: 0: write 1 or more"),
        (
            "seed = 99999999999999999999",
            "seed: 99999999999999999999: write 9223372036854775807 or less",
        ),
        ("repeat = -99999999999999999999", "repeat: -99999999999999999999: write 1 or more"),
        ("start_jitter = 1979-05-27", "start_jitter: 1979-05-27 is not a time"),
        ("tcp = {sack = 'maybe'}", "tcp.sack: `maybe`: write true or false"),
        ("tcp = 'bbr'", "tcp: `bbr`: write a table"),
        (
            "shaper = [{control = 'x'}]",
            "shaper.0.control: `x`: write 'auto', 'cake-autorate' or 'fixed'",
        ),
        ("methods = [{name = 'm', kind = 5}]", "methods.0.kind: 5: write a text in quotes"),
        (
            "link = {name = 'l', title = 'l', up = [{name = 'a', loss = {model = 'x'}}]}",
            "link.up.0.loss: {'model': 'x'}: write 'model' = 'random' or 'gilbert_elliott'",
        ),
        (
            "link = {name = 'l', title = 'l', up = [{name = 'a', loss = {}}]}",
            "link.up.0.loss: {}: write it with 'model'",
        ),
        (
            "link = {name = 'l', title = 'l', up = [{name = 'a', rate = '1mbit', trace = 'x'}]}",
            "link.up.0: hop `a`: `rate` and `trace` exclude each other",
        ),
        (
            "idle = '2s'",
            "idle: unknown key: lengths of phases stand in `phases = { idle = \"5s\" }`",
        ),
        ("qeue = []", "qeue: unknown key, did you mean `queue`? (known: name, test, link, queue"),
        (
            "cc = 'bbr'\ntcp.congestion_control = 'bbr'",
            "`cc` and `tcp.congestion_control` say the same",
        ),
        ("tags = ['a b']", "tags.0: `a b`: write a word without spaces"),
        (
            "phases.lode = '5s'",
            "phases.lode: unknown key, did you mean `load`? (known: idle, load, cooldown)",
        ),
        ("sampling.ping = '0s'", "sampling.ping: `0s`: write a time above 0, such as `5ms`"),
    ] {
        let found = told(keys);
        assert!(
            found.contains(&format!(": {said}")) || found.contains(&format!(", {said}")),
            "{keys}: {found}"
        );
        assert!(found.starts_with("s.toml, line "), "{found}");
    }
}

#[test]
fn the_tables_of_samples_can_be_switched_off() {
    let file = "test = 'rrul'\nlink = 'line-50'\nsampling = { throughput = '0s', tcp = '0s', queue = '0s' }";
    assert!(read_file::<ScenarioSpec>(file, "s.toml").is_ok());
}

#[test]
fn what_stands_in_no_file_is_told_in_a_row_by_names_of_its_own() {
    let Value::Table(mut entries) = parse("test = 'rrul'\nlink = 'line-50'").unwrap().value else {
        panic!()
    };
    let phases = Value::Table(vec![("load".to_owned(), Written::of(Value::Whole(30)))]);
    entries.push(("phases".to_owned(), Written::of(phases)));
    entries.push(("seed".to_owned(), Written::of(Value::Whole(-1))));
    for (_, entry) in &mut entries {
        entry.line = None;
    }
    let names = [("phases.load", "--load"), ("seed", "--seed")]
        .map(|(key, name)| (key.to_owned(), name.to_owned()));
    let written = Written::of(Value::Table(entries));
    assert_eq!(
        read::<ScenarioSpec>(&written, "command line", &names).unwrap_err(),
        "--seed: -1: write 0 or more; --load: `30` is a time without its unit: write `30s`, `30ms` or `30us`"
    );
}

#[test]
fn a_test_refers_only_to_what_it_has() {
    let test = |keys: &str| {
        let text = format!("name = 't'\ntitle = 't'\nphases.load = '1s'\n{keys}");
        let test: TestSpec = read_file(&text, "t.toml")?;
        let written = "test = 'ping'\nlink = 'line-50'";
        let mut spec: ScenarioSpec = read_file(written, "s.toml")?;
        spec.test = Named::Given(Box::new(test));
        resolve(&spec, &NoFiles, |_| None)
    };
    let error = |keys| test(keys).unwrap_err();
    assert_eq!(
        error("flows = [{name = 'a', direction = 'up', host = 'far'}]"),
        "t.toml, line 4: flows.0.host: unknown host `far` (known: server)"
    );
    assert_eq!(
        error("probes = [{name = 'a', kind = 'icmp', tunnel = 'vpn'}]"),
        "t.toml, line 4: probes.0.tunnel: unknown tunnel `vpn` (known: the test has none)"
    );
    assert_eq!(
        error("flows = [{name = 'a', direction = 'down', web = {document = 0, object = '0kb'}}]"),
        "t.toml has 2 faults:\n  line 4: flows.0.web.document: `0`: write 1 or more\n  line 4: \
         flows.0.web.object: `0`: write 1 or more"
    );
    assert_eq!(
        error("flows = [{name = 'a', direction = 'up', bytes = 0}]"),
        "t.toml, line 4: flows.0.bytes: `0`: write 1 or more, or leave the key out for a flow \
         without end"
    );
    assert_eq!(
        error("flows = [{name = 'a', direction = 'up', count = 'streams'}]"),
        "t.toml, line 4: flows.0.count: `count` names no parameter of the test: streams"
    );
    let many = "{name = 'a', direction = 'up', count = 10000},".repeat(11);
    assert_eq!(
        error(&format!("flows = [{many}]")),
        "the test has more than 100000 flows: write fewer"
    );
}

const LOST: &str = r#"name = "t"
title = "t"
phases.load = "1s"
hosts = [{ name = "near" }]

[[tunnels]]
name = "vpn"
kind = "wireguard"
host = "far"            # 9

[[flows]]               # 11: the server that is there is not called `server`
name = "a"
direction = "up"

[[flows]]
name = "b"
direction = "down"
host = "near"
count = "streams"       # 19
tunnel = "ipsec"        # 20

[[methods]]
name = "m"
kind = "ndt7"
host = "nowhere"        # 25
"#;

#[test]
fn everything_that_a_test_names_and_lacks_is_told_with_its_line() {
    let said = read_file::<TestSpec>(LOST, "t.toml").unwrap_err();
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "t.toml has 5 faults:",
            "line 9: tunnels.0.host: unknown host `far` (known: near)",
            "line 11: flows.0: unknown host `server` (known: near)",
            "line 19: flows.1.count: `count` names no parameter of the test: streams",
            "line 20: flows.1.tunnel: unknown tunnel `ipsec` (known: vpn)",
            "line 25: methods.0.host: unknown host `nowhere` (known: near)",
        ]
    );
}

#[test]
fn what_a_scenario_names_of_its_test_is_told_with_its_line() {
    let text = "test = 'tcp_ndown'\nlink = 'line-50'\nparameters.flows = 3\nparameters.streams = 0\n\
                methods = [{name = 'm', kind = 'ndt7', host = 'far'}]";
    let said = read_file::<ScenarioSpec>(text, "s.toml").unwrap_err();
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(lines[0], "s.toml has 3 faults:");
    assert!(
        lines[1].starts_with(
            "line 3: parameters.flows: test `tcp_ndown` has no parameter `flows` (known: streams)"
        ),
        "{said}"
    );
    assert!(
        lines[2].starts_with("line 4: parameters.streams: parameter `streams` is 0: "),
        "{said}"
    );
    assert_eq!(lines[3], "line 5: methods.0.host: unknown host `far` (known: server)");
}

#[test]
fn a_load_without_a_length_is_refused_where_a_test_has_loads() {
    let read = |test: &str| {
        let text =
            format!("test = '{test}'\nlink = 'line-50'\nphases = {{ idle = '5s', load = '0s' }}");
        resolve(&read_file(&text, "s").unwrap(), &NoFiles, |_| None).map(|_| ())
    };
    assert!(
        read("rrul")
            .unwrap_err()
            .starts_with("phases.load: 0 leaves the loads of the test no time")
    );
    // A voice stream on an idle line is no load.
    assert_eq!([read("ping"), read("voip")], [Ok(()), Ok(())]);
}

#[test]
fn every_shipped_test_runs_on_every_shipped_link() {
    for test in shipped_tests() {
        assert_eq!(load_test(test, &NoFiles).unwrap().name.0, test);
        for link in shipped_links() {
            assert_eq!(load_link(link, &NoFiles).unwrap().name.0, link);
            let text = format!(
                "test = '{test}'\nlink = '{link}'\nrepeat = 2\nseed = 7\nqueue = ['pfifo', 'codel']"
            );
            let resolved = resolve(&read_file(&text, "s").unwrap(), &NoFiles, |_| None).unwrap();
            assert_eq!(resolved.seeds, [7, 8]);
            let queues: Vec<&str> =
                resolved.configurations.iter().map(|one| one.queue.as_str()).collect();
            assert_eq!(queues, ["pfifo", "codel"]);
        }
    }
}

#[test]
fn servers_of_a_speed_test_may_ask_for_a_congestion_control() {
    let written = "[[methods]]\nname = 'a'\nkind = 'asks'\n[[methods]]\nname = 'b'\nkind = 'other'\n\
                   [[methods]]\nname = 'c'\nkind = 'asks'\ncc = 'cubic'";
    let text =
        format!("test = 'ping'\nlink = 'line-50'\ntcp.congestion_control = 'reno'\n{written}");
    let servers = |kind: &str| (kind == "asks").then_some("bbr");
    let resolved = resolve(&read_file(&text, "s").unwrap(), &NoFiles, servers).unwrap();
    let methods = &resolved.configurations[0].scenario.methods;
    let asked: Vec<_> = methods.iter().map(|one| one.tcp.congestion_control.as_str()).collect();
    assert_eq!(asked, ["bbr", "reno", "cubic"]);
    assert!(methods.iter().all(|one| one.client_congestion_control == "reno"));
}

#[test]
fn a_link_takes_the_place_of_that_of_a_file() {
    let link = || Some(Written::from("line-50"));
    let read =
        |text: &str| read_scenario_file(text, "s.toml", link(), &NoFiles, &|_, _| Vec::new());
    for text in
        ["test = 'ping'", "link = 'nowhere'\ntest = 'ping'", "link = ['a', 'b']\ntest = 'ping'"]
    {
        let spec = read(text).unwrap().unwrap();
        assert_eq!(resolve(&spec, &NoFiles, |_| None).unwrap().configurations.len(), 1);
    }
    assert!(read("name = 'own'\ntitle = 'a test'").unwrap().is_none());
    assert_eq!(
        read("test = 'ping'\nseed = 'x'").unwrap_err(),
        "s.toml, line 2: seed: `x`: write a whole number"
    );
}

#[test]
fn what_others_find_is_told_with_what_the_reader_finds() {
    let beyond = |written: &Written, spec: Option<&ScenarioSpec>| {
        let line = written.get("queue").and_then(|queue| queue.line);
        let fault = |path: &str, says: &str| Fault { path: path.into(), line, says: says.into() };
        let mut faults = vec![fault("queue", "no such queue"), fault("seed", "told twice")];
        faults.extend(spec.map(|_| fault("", "read")));
        faults
    };
    let said =
        |text: &str| read_file_beyond(text, "/a/s.toml", "s.toml", &NoFiles, &beyond).unwrap_err();
    assert_eq!(
        said("test = 'ping'\nlink = 'line-50'\nqueue = 'kodel'\nseed = 'x'\n"),
        "s.toml has 2 faults:\n  line 3: queue: no such queue\n  line 4: seed: `x`: write a whole number"
    );
    assert!(said("test = 'ping'\nlink = 'line-50'\nqueue = 'kodel'\n").ends_with("line 3: read"));
    let none = |_: &Written, _: Option<&ScenarioSpec>| Vec::new();
    assert!(
        read_file_beyond("test = 'ping'\nlink = 'line-50'\n", "s.toml", "s.toml", &NoFiles, &none)
            .is_ok()
    );
}

#[test]
fn a_scenario_without_its_test_is_told_what_a_scenario_lacks() {
    let said = |text: &str| {
        read_scenario_file(text, "s.toml", None, &NoFiles, &|_, _| Vec::new()).unwrap_err()
    };
    let lines =
        |text: &str| said(text).lines().map(|one| one.trim().to_owned()).collect::<Vec<_>>();
    let known = "name, test, link, queue";
    let slip = lines("tset = 'rrul'\nlink = 'cable-20-8'");
    assert_eq!(slip.len(), 3, "{slip:?}");
    assert_eq!(slip[0], "s.toml has 2 faults:");
    assert_eq!(slip[1], "line 1: test: this key is missing");
    let near = format!("line 1: tset: unknown key, did you mean `test`? (known: {known}");
    assert!(slip[2].starts_with(&near), "{slip:?}");
    assert_eq!(said("link = 'cable-20-8'"), "s.toml, line 1: test: this key is missing");
    assert!(said("qeue = 'cake'\nlink = 'line-50'").contains("test: this key is missing"));
    assert!(said("tset = 'rrul'").contains("did you mean `test`?"));
    for nothing in ["", "# test = 'rrul'\n"] {
        assert!(said(nothing).starts_with("`s.toml` says nothing: a scenario says at least"));
    }
    let link = "name = 'l'\ntitle = 'mine'\n[[up]]\nname = 'a'\n[[down]]\nname = 'b'\n";
    assert_eq!(
        said(link),
        "`s.toml` is the file of a link, not of a test or a scenario: name it as the link of one"
    );
}

#[test]
fn a_test_with_slips_is_still_a_test() {
    for text in [
        "name = 'own'\nphases = { load = '5s' }",
        "nmae = 'own'\ntitel = 'a test'\nflosw = []",
        "name = 'own'\ntitle = 'a test'\nphases = { load = '5s' }\nlink = 'line-50'",
    ] {
        assert!(
            read_scenario_file(text, "s.toml", None, &NoFiles, &|_, _| Vec::new())
                .unwrap()
                .is_none(),
            "{text}"
        );
    }
}

#[test]
fn all_files_of_the_folders_are_shipped() {
    let names = |folder: &str| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(folder);
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> =
            files.map(|name| name.to_str().unwrap().trim_end_matches(".toml").to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names("tests"), shipped_tests());
    assert_eq!(names("links"), shipped_links());
}

#[test]
fn what_is_given_twice_counts_once_where_it_stood_first() {
    let text = "test = 'rrul'\nlink = ['line-50', ' line-50']\nqueue = ['pfifo', 'codel', 'pfifo']\ncc = 'bbr'";
    let spec: ScenarioSpec = read_file(text, "s").unwrap();
    assert_eq!(
        remarks(&spec, &NoFiles).unwrap(),
        [
            "link `line-50` is given 2 times: it counts once",
            "queue `pfifo` is given 2 times: it counts once"
        ]
    );
    let resolved = resolve(&spec, &NoFiles, |_| None).unwrap();
    let queues: Vec<&str> = resolved.configurations.iter().map(|one| one.queue.as_str()).collect();
    assert_eq!(queues, ["pfifo", "codel"]);
}

/// Shapers with one short name are different ones all the same: none is dropped, and labels tell them apart.
#[test]
fn shapers_that_differ_in_anything_have_other_labels() {
    let text = "test = 'ping'\nlink = 'line-50'\nshaper = [{ control = 'auto', down = { max = '20mbit' } }, { \
                control = 'auto', down = { max = '30mbit' } }, { control = 'auto', directions = ['up'] }, { \
                control = 'auto', reflectors = [{ delay = '1ms' }] }, { control = 'auto', reflectors = [{ delay = \
                '2ms' }] }, 'auto', { control = 'auto', directions = ['up'] }]";
    let spec: ScenarioSpec = read_file(text, "s").unwrap();
    assert_eq!(
        remarks(&spec, &NoFiles).unwrap(),
        ["shaper `auto passive` is given 2 times: it counts once"]
    );
    let resolved = resolve(&spec, &NoFiles, |_| None).unwrap();
    let labels: Vec<&str> = resolved.configurations.iter().map(|one| one.queue.as_str()).collect();
    assert_eq!(
        labels,
        [
            "shaper auto down max 20mbit",
            "shaper auto down max 30mbit",
            "shaper auto directions up",
            "shaper auto reflectors 1",
            "shaper auto reflectors 1 (2)",
            "shaper auto",
        ]
    );
}

#[test]
fn more_configurations_than_memory_holds_are_refused() {
    let many =
        (0..101).map(|number| format!("'pfifo limit {number}'")).collect::<Vec<_>>().join(",");
    let text =
        format!("test = 'ping'\nlink = 'line-50'\nqueue_up = [{many}]\nqueue_down = [{many}]");
    let error = resolve(&read_file(&text, "s").unwrap(), &NoFiles, |_| None).unwrap_err();
    assert_eq!(error, "the scenario compares 10201 configurations: write 10000 or fewer");
}

#[test]
fn a_key_that_was_renamed_is_refused_with_its_present_name() {
    let of = |list: &str| {
        let text = format!("name = 't'\n[[{list}]]\nname = 'a'\ndirection = 'up'\nstation = 'b'");
        read_file::<TestSpec>(&text, "t").unwrap_err()
    };
    let says = "station: this key is now called `client_host`";
    assert!(of("flows").contains(says), "{}", of("flows"));
    assert!(of("tunnels").contains(says), "{}", of("tunnels"));
    // Where there never was such a key it is just unknown.
    assert!(of("probes").contains("station: unknown key"), "{}", of("probes"));
}

#[test]
fn the_schema_says_of_every_key_what_it_means() {
    let schema = schema();
    let Value::Table(definitions) = &schema.get("$defs").unwrap().value else { panic!() };
    assert!(definitions.len() > 25);
    for (name, definition) in definitions {
        let keys = definition.get("properties").map(|keys| &keys.value);
        let Some(Value::Table(keys)) = keys else { continue };
        for (key, of) in keys {
            let Value::Text(meaning) = &of.get("description").unwrap().value else { panic!() };
            assert!(meaning.len() > 5 && meaning.ends_with('.'), "{name}.{key}: {meaning}");
        }
    }
    let jitter =
        definitions.iter().find(|(name, _)| name == "ScenarioSpec").unwrap().1.get("properties");
    assert_eq!(jitter.unwrap().get("start_jitter").unwrap().get("default"), Some(&"50ms".into()));
}

#[test]
fn what_a_scenario_names_of_a_test_in_a_file_has_its_line() {
    struct OneTest;
    impl Files for OneTest {
        fn is_file(&self, name: &str) -> bool {
            name == "own.toml"
        }
        fn named_in(&self, _: &str, name: &str) -> Result<String, String> {
            Ok(name.to_owned())
        }
        fn read(&self, name: &str) -> Result<String, String> {
            match name {
                "own.toml" => Ok("name = 'own'\ntitle = 't'\nphases = { load = '9s' }\n\
                     [parameters.streams]\ndefault = 2\nminimum = 1\nmaximum = 4\nmeaning = 'how many'"
                    .to_owned()),
                _ => Err("there is none".to_owned()),
            }
        }
        fn trace_rate_bps(&self, name: &str) -> Result<u64, String> {
            Err(format!("trace `{name}`: there are none here"))
        }
    }
    let text = "test = 'own.toml'\nlink = 'line-50'\n[parameters]\nstreams = 9\nstrems = 2\n\
                [[methods]]\nname = 'm'\nkind = 'ndt7'\nhost = 'nowhere'\n\
                [[beside]]\ntest = 'own.toml'\nparameters.streams = 0";
    let spec: ScenarioSpec = read_file(text, "s").unwrap();
    let found = faults_of_files(&spec, &parse(text).unwrap(), &OneTest);
    let lines: Vec<_> = found.iter().map(|fault| (fault.line, fault.path.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Some(4), "parameters.streams"),
            (Some(5), "parameters.strems"),
            (Some(9), "methods.0.host"),
            (Some(12), "beside.0.parameters.streams"),
        ]
    );
    assert!(found[1].says.contains("(known: streams)"), "{}", found[1].says);
    assert_eq!(faults_of_files(&spec, &parse(text).unwrap(), &NoFiles), []);
}

#[test]
fn a_packet_rate_becomes_a_processor_in_front_of_its_hop() {
    let resolved = |keys: &str| {
        let text = format!(
            "test = 'ping'\nqueue = ['fq_codel']\n[link]\nname = 'slow'\ntitle = 'slow'\n\
             [[link.up]]\nname = 'router'\nplace = 'queue'\nrate = '100mbit'\n{keys}\n\
             [[link.down]]\nname = 'line'\nrate = '100mbit'"
        );
        resolve(&read_file(&text, "s.toml")?, &NoFiles, |_| None)
    };
    let hops = |keys: &str| -> Vec<(String, String, LineRate)> {
        let path = resolved(keys).unwrap().configurations.remove(0).scenario.path;
        path.up.into_iter().map(|hop| (hop.name, hop.queue, hop.rate)).collect()
    };
    let router = ("router".to_owned(), "fq_codel".to_owned(), LineRate::Bps(100_000_000));
    let processor = |queue: &str| {
        ("router-cpu".to_owned(), queue.to_owned(), LineRate::PacketsPerSecond(6_250))
    };
    assert_eq!(hops(""), vec![router.clone()]);
    assert_eq!(hops("packet_rate = 6250"), [processor("pfifo limit 1000"), router.clone()]);
    assert_eq!(
        hops("packet_rate = 6250\npacket_queue = 64"),
        [processor("pfifo limit 64"), router.clone()]
    );
    let error = |keys| resolved(keys).unwrap_err();
    assert_eq!(
        error("packet_queue = 64"),
        "s.toml, line 6: link.up.0: hop `router`: `packet_queue` needs `packet_rate`"
    );
    assert_eq!(
        error("packet_rate = 0"),
        "s.toml, line 10: link.up.0.packet_rate: 0: write 1 or more"
    );
    assert_eq!(
        error("packet_rate = 1000000001"),
        "s.toml, line 10: link.up.0.packet_rate: 1000000001: write 1000000000 or less"
    );
}

#[test]
fn one_queue_shaper_or_direction_needs_no_list() {
    let read = |text: &str| {
        read_file::<ScenarioSpec>(&format!("test = 'rrul'\nlink = 'line-50'\n{text}"), "s.toml")
    };
    let one = read("queue = 'fq_codel'\nshaper = {control = 'auto', directions = 'up'}").unwrap();
    let list =
        read("queue = ['fq_codel']\nshaper = [{control = 'auto', directions = ['up']}]").unwrap();
    assert_eq!(one.queue.all(), list.queue.all());
    let shapers = [&one, &list].map(|spec| match &spec.shaper.all()[0] {
        Named::Given(shaper) => shaper.directions.all().to_vec(),
        Named::Name(name) => panic!("{name}"),
    });
    assert_eq!(shapers, [[Direction::Up], [Direction::Up]]);
}

#[test]
fn pings_that_keep_step_with_a_line_are_told() {
    let says = |text: &str| remarks(&read_file(text, "s.toml").unwrap(), &NoFiles).unwrap();
    let docsis = "test = 'rrul'\nlink = ['docsis-31', 'line-50']\n";
    assert_eq!(
        says(docsis),
        [
            "link `docsis-31`: pings every 10ms meet the intervals of 2ms of hop `modem` always at the same moment, \
          which the seed draws, so that single runs differ by up to 2ms: `--ping 10740us` meets all moments"
        ]
    );
    let other = |period: &str| says(&format!("{docsis}[sampling]\nping = '{period}'\n"));
    assert_eq!(other("10.74ms"), [""; 0]);
    assert_eq!(other("1ms"), [""; 0], "which meets two moments");
    assert!(other("1s")[0].ends_with(": `--ping 1000740us` meets all moments"));
    assert_eq!(says("test = 'rrul'\nlink = 'line-50'"), [""; 0]);
    let own = "link = 'docsis-31'\n[test]\nname = 't'\ntitle = 'T'\nphases = { load = '1s' }\n\
               probes = [{ name = 'own', kind = 'udp', period = '20ms' }, { name = 'usual', kind = 'udp' }]\n";
    let said = says(own);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("every 10ms") && said[0].contains("`--ping 10740us`"), "{said:?}");
    assert!(
        said[1].contains("every 20ms") && said[1].contains("`period = \"20740us\"`"),
        "{said:?}"
    );
}
