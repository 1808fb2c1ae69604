//! Every recording of a real Linux discipline in `vectors/`, and that the judge can fail.

#![allow(clippy::disallowed_methods, reason = "a test may read its recordings")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use weir_conformance::{Judgement, Recording, Repeatability, SeedRuns, judge};

#[test]
fn recordings_of_linux_are_met() {
    let exceptions: BTreeMap<String, String> =
        serde_json::from_str(&read("exceptions.json")).expect("a reason for each name");
    let mut failures = Vec::new();
    let mut met = 0;
    for name in recordings() {
        let verdict = verdict(&read(&format!("{name}.json")));
        match (verdict, exceptions.contains_key(&name)) {
            (Ok(_), false) => met += 1,
            (Ok(_), true) => failures.push(format!("{name}: excepted, and yet it agrees")),
            (Err(_), true) => {}
            (Err(why), false) => failures.push(format!("{name}: {why}")),
        }
    }
    println!("{met} recordings met, {} excepted, {} not", exceptions.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(met >= 30, "only {met} recordings were found");
}

#[test]
fn a_recording_that_was_tampered_with_fails() {
    let recording = || Recording::parse(&read("codel-5ms-ecn-htb10.json")).unwrap();
    assert!(matches!(judge(&recording()).unwrap(), Judgement::Exact { packets: 1900 }));

    let mut late = recording();
    late.departures[7].at_ns += 4;
    assert!(matches!(judge(&late).unwrap(), Judgement::Fails(why) if why.contains("departure 7 ")));

    let mut unmarked = recording();
    let marked = unmarked.departures.iter_mut().find(|one| one.ecn == 3).unwrap();
    marked.ecn = 2;
    assert!(matches!(judge(&unmarked).unwrap(), Judgement::Fails(_)));

    let mut short = recording();
    short.departures.pop();
    assert!(matches!(judge(&short).unwrap(), Judgement::Fails(why) if why.contains("of Linux")));
}

/// `red-p002-htb10-l12` has what is known of 20 runs of Linux, and agrees; each change is one that an error in a
/// discipline may bring.
#[test]
fn a_random_recording_is_held_against_runs_of_ours() {
    let recording = || Recording::parse(&read("red-p002-htb10-l12.json")).unwrap();
    assert!(matches!(judge(&recording()).unwrap(), Judgement::Agrees { tests: 9, .. }));
    let fails = |change: &dyn Fn(&mut SeedRuns), says: &str| {
        let mut changed = recording();
        let Repeatability::Random(Some(runs)) = &mut changed.repeatability else {
            panic!("{:?}", changed.repeatability)
        };
        change(runs);
        let verdict = judge(&changed).unwrap();
        assert!(
            matches!(&verdict, Judgement::Fails(why) if why.contains(says)),
            "{says}: {verdict:?}"
        );
    };
    fails(&|runs| runs.dropped.iter_mut().for_each(|share| *share += 0.002), "share dropped 0.1");
    fails(&|runs| runs.marked.mean = 0.001, "share marked");
    fails(&|runs| runs.delay_ms.mean *= 1.03, "mean delay in ms");
    fails(&|runs| runs.delay_ms.min *= 1.02, "below");
}

/// The totals of the run stay as they are, and a flow gets what is another's.
#[test]
fn a_run_whose_flows_have_changed_places_fails() {
    let text = read("cake-10m-triple.json");
    assert!(matches!(judge(&Recording::parse(&text).unwrap()).unwrap(), Judgement::Agrees { .. }));
    let commands = text.replace("besteffort triple-isolate", "besteffort flows");
    let verdict = judge(&Recording::parse(&commands).unwrap()).unwrap();
    assert!(matches!(&verdict, Judgement::Fails(why) if why.contains("flow ")), "{verdict:?}");
}

/// Of 10 keys of Linux 9 gave the recording, and about as many of ours do; were it 1 of 10, ours would be others.
#[test]
fn keys_that_agree_are_held_against_linux_share_of_them() {
    let mut recording = Recording::parse(&read("cake-20m-32flows.json")).unwrap();
    assert_eq!(recording.repeatability, Repeatability::Hashed { agree: 9, runs: 10 });
    assert!(matches!(judge(&recording).unwrap(), Judgement::Exact { .. }));
    recording.repeatability = Repeatability::Hashed { agree: 1, runs: 10 };
    let verdict = judge(&recording).unwrap();
    assert!(
        matches!(&verdict, Judgement::Fails(why) if why.contains("of Linux' 1 of 10")),
        "{verdict:?}"
    );
}

#[test]
fn what_is_no_recording_is_refused_in_a_sentence() {
    let good = read("codel-underload-htb10.json");
    for (text, says) in [
        ("{}".to_owned(), "missing field"),
        ("hello".to_owned(), "this is no recording"),
        (good.replace("\"arrivals\":[[0,0,", "\"arrivals\":[[0,0,-"), "invalid value"),
        (good.replace("\"flows\":{\"0\"", "\"flows\":{\"9\""), "belongs to flow 0"),
        (good.replace("\"notes\":", "\"age_ns\":20000000,\n\"notes\":"), "a multiple of 16000000"),
        (good.replace("same order, drops and marks", "hash collisions"), "`N of M runs`"),
    ] {
        let error = Recording::parse(&text).map(|_| ()).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn numbers_that_no_recording_has_are_refused_in_a_sentence() {
    let arrivals = |rows: &str| FEW.replace("[0,0,1500,0,0,0],[1,1000,1500,0,0,0]", rows);
    let late =
        "is there 3600000000001 ns after the first one, allowed is at most 3600000000000 (an hour)";
    let seeds = |n: u32, dropped: &str| {
        let span = r#"{"mean":0.0,"min":0.0,"max":0.0}"#;
        let runs = format!(
            r#","seed_runs":{{"n":{n},"per_run_drop_fraction":[{dropped}],"ce_fraction":{span},"mean_delay_ms":{span}}}}}"#
        );
        FEW.trim_end_matches('}').to_owned() + &runs
    };
    let keys = |text: &str| {
        let text =
            format!(r#","determinism":{{"other_seeds":"{text} runs, else hash collisions"}}}}"#);
        FEW.trim_end_matches('}').to_owned() + &text
    };
    for (good, bad, says) in [
        (
            arrivals("[0,0,1500,0,0,0],[1,3600000000000,1500,0,0,0]"),
            arrivals("[0,0,1500,0,0,0],[1,3600000000001,1500,0,0,0]"),
            format!("packet 1 {late}"),
        ),
        (
            FEW.replace("[0,5,0]", "[0,3600000000000,0]"),
            FEW.replace("[0,5,0]", "[0,3600000000001,0]"),
            format!("packet 0 {late}"),
        ),
        (
            arrivals("[0,0,65535,0,0,0]"),
            arrivals("[0,0,65536,0,0,0]"),
            "packet 0 has length 65536, allowed is at most 65535".to_owned(),
        ),
        (
            FEW.to_owned(),
            arrivals("[0,0,1500,0,0,0],[0,9,1500,0,0,0]"),
            "packet 0 arrives twice".to_owned(),
        ),
        (
            FEW.replace("1024ns\":512", "1024ns\":1023"),
            FEW.replace("1024ns\":512", "1024ns\":1024"),
            "`first_arrival_mod_1024ns` is 1024; write a number up to 1023".to_owned(),
        ),
        (
            seeds(4, "0.0,0.0,0.0,0.0"),
            seeds(3, "0.0,0.0,0.0"),
            "`n` of `seed_runs` is 3; write a number from 4 to 10000".to_owned(),
        ),
        (
            seeds(5, "0.0,0.0,0.0,0.0,0.0"),
            seeds(5, "0.0"),
            "`seed_runs` has 1 shares of dropped packets of 5 runs".to_owned(),
        ),
        (
            keys("10000 of 10000"),
            keys("4294967295 of 4294967295"),
            "the number of runs of `other_seeds` is 4294967295; write a number from 1 to 10000"
                .to_owned(),
        ),
    ] {
        judge(&Recording::parse(&good).unwrap_or_else(|error| panic!("{good}: {error}"))).unwrap();
        let error = Recording::parse(&bad).map(|_| ()).expect_err(&says).to_string();
        assert_eq!(error, says);
    }
}

#[test]
fn packets_that_wait_for_years_are_added_up() {
    let arrivals = (0..9).map(|id| format!("[{id},{id},1500,0,0,0]")).collect::<Vec<_>>().join(",");
    let slow = FEW
        .replace("[0,0,1500,0,0,0],[1,1000,1500,0,0,0]", &arrivals)
        .replace("pfifo", "netem rate 8bit 2147483647 1 2147483647");
    let verdict = judge(&Recording::parse(&slow).unwrap()).unwrap();
    assert!(
        matches!(&verdict, Judgement::Fails(why) if why.contains("departure 0 ")),
        "{verdict:?}"
    );
}

/// A recording of two packets.
const FEW: &str = r#"{"name":"few","qdisc":["qdisc add dev a0 root handle 1: pfifo"],
"flows":{"0":{"src":"10.0.0.1","dst":"10.0.0.2","sport":1,"dport":2,"proto":17}},
"first_arrival_mod_1024ns":512,"arrivals":[[0,0,1500,0,0,0],[1,1000,1500,0,0,0]],
"departures":[[0,5,0]],"dropped":[]}"#;

fn verdict(text: &str) -> Result<(), String> {
    let recording = Recording::parse(text).map_err(|error| error.to_string())?;
    match judge(&recording) {
        Ok(Judgement::Fails(why)) => Err(why),
        Ok(Judgement::Exact { .. } | Judgement::Agrees { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn recordings() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the recordings are part of the repository");
    let mut names: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "exceptions")
        .collect();
    names.sort();
    names
}

fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-6.12")
}
