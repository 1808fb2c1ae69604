//! What `weir-agent` advises to type can be typed where there is no `weir`.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

const AGENT: &str = env!("CARGO_BIN_EXE_weir-agent");

/// What the program prints to both streams, with these words.
fn said(words: &[&str]) -> String {
    let done = Command::new(AGENT).args(words).output().expect("it starts");
    let [out, err] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).expect("text"));
    out + &err
}

#[test]
fn a_second_shaper_is_told_how_the_first_is_ended() {
    let device = format!("none{}", std::process::id());
    let name = SocketAddr::from_abstract_name(format!("weir-shape-{device}")).expect("a name");
    let _first = UnixListener::bind_addr(&name).expect("nobody has it");
    let refused = said(&["shape", &device]);
    // Only who may shape is taken for a shaper.
    let expected = format!(
        "weir-agent: `{device}` is being shaped already: see `weir-agent shape status {device}`, or end it with \
         `weir-agent shape stop {device}`\n"
    );
    assert!(refused == expected || refused.contains("end that one first"), "{refused}");
}

#[test]
fn a_server_that_is_not_found_or_not_there_is_told_of_by_a_test_and_a_proof_as_one() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let hint = "start `weir serve` or `weir-agent serve` there, or name the port where it listens";
    let failed = |words: &[&str]| {
        let done = Command::new(AGENT).args(words).output().expect("it starts");
        (done.status.code(), String::from_utf8(done.stderr).expect("text"))
    };
    let told = format!("weir-agent: server `{free}`: connection refused; {hint}\n");
    assert_eq!(failed(&["test", &free.to_string()]), (Some(1), told));
    let name = "no-such-host.invalid";
    for words in [&["test", name][..], &["shape", "lo", "--prove", "--server", name]] {
        let (code, err) = failed(words);
        assert!(err.starts_with(&format!("weir-agent: server `{name}")), "{err}");
        assert_eq!(code, Some(1), "{err}");
    }
}

#[test]
fn nothing_advises_a_command_of_the_other_program() {
    let help = said(&["shape", "--help"]) + &said(&["--help"]) + &said(&["ping", "--help"]);
    let wrong = said(&["shape", "lo", "--queue-up", "none_such"]);
    assert!(wrong.contains("unknown queue discipline `none_such`: there are "), "{wrong}");
    let rules = said(&["shape", "rules"]);
    for text in [help, wrong, rules] {
        for command in ["`weir shape", "`weir list", "`weir ping"] {
            assert!(!text.contains(command), "{text}");
        }
    }
}

#[test]
fn what_is_no_option_of_a_command_is_told_with_the_one_that_was_meant() {
    let commands: [(&[&str], &str, &str); 6] = [
        (&["shape"], "dry-rum", "dry-run"),
        (&["shape", "status"], "jsn", "json"),
        (&["shape", "stop"], "hlp", "help"),
        (&["shape", "rules"], "halp", "help"),
        (&["replay"], "mod", "mode"),
        (&["ping"], "cuont", "count"),
    ];
    for (command, wrong, meant) in commands {
        let told = said(&[command, &[&format!("--{wrong}")]].concat());
        let help =
            if meant == "help" { ";".to_owned() } else { format!(", did you mean `--{meant}`?") };
        assert_eq!(
            told,
            format!("weir-agent: `--{wrong}` is no option{help} `--help` lists all\n")
        );
        assert!(
            said(&[command, &["--help"]].concat()).contains("\n\nUsage: weir-agent "),
            "{command:?}"
        );
    }
}

#[test]
fn what_is_no_log_is_told_with_its_name() {
    let told = said(&["replay", "Cargo.toml"]);
    assert!(
        told.starts_with("weir-agent: log `Cargo.toml`: line 1 is not of a shaper's log: "),
        "{told}"
    );
}
