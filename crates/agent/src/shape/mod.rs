//! `weir-agent shape`: a shaper on a real interface.

mod display;
#[cfg(feature = "test")]
mod load;
mod options;
mod prove;

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use lexopt::prelude::*;
use weir_core::{Duration, error_in_words};
use weir_shape::{Backend, Command, View, cautions, choose, framing_of, plan_lines, run_chosen};
use weir_sockets::Clock;

use crate::ending::Ending;
use crate::failure::Failure;
use crate::shape::display::Display;
use crate::shape::options::Start;
use crate::shape::prove::Proving;
use crate::terminal::{print, tell};
use crate::words::unexpected;

/// `shape IFACE`, or `shape status IFACE` and others.
pub(crate) fn run(mut words: Vec<OsString>) -> Result<(), Failure> {
    let command = words.first().map(|word| word.to_string_lossy().into_owned());
    let named =
        matches!(command.as_deref(), Some("start" | "status" | "stop" | "replay" | "rules"));
    let rest = if named { words.split_off(1) } else { words };
    match command.as_deref() {
        Some("status") => status(rest),
        Some("stop") => stop(rest),
        Some("replay") => crate::replay::run(rest),
        Some("rules") => rules(rest),
        _ => start(rest),
    }
}

/// Shapes until it is ended.
fn start(words: Vec<OsString>) -> Result<(), Failure> {
    let Some(options) = Start::parse(words)? else { return print(HELP) };
    let server = options.proof.find_server()?;
    let settings = options.settings()?;
    settings.check()?;
    let choice = choose(&settings)?;
    if options.dry_run {
        let (framing, why) = framing_of(&settings.device);
        let found = (framing == settings.framing).then_some(why);
        print(&(plan_lines(&settings, &choice, found).join("\n") + "\n"))?;
        for caution in cautions(&settings, choice.backend)? {
            tell(&format!("warning: {caution}"));
        }
        return Ok(());
    }
    let backend = if choice.backend == Backend::Kernel { "kernel" } else { "userspace" };
    tell(&format!("backend {backend}: {}", choice.why));
    let beginning = settings.clone().recall();
    if !beginning.words.is_empty() {
        tell(&beginning.words);
    }
    if options.prove {
        options.proof.check(server.as_ref(), &settings)?;
    }
    let ending = Ending::watch()?;
    let mut proving =
        options.prove.then(|| Proving::begin(&options.proof, &settings)).transpose()?;
    let mut display = Display::new(options.quiet);
    let mut ready = false;
    let mut show = |view: &View| {
        if !ready {
            ready = true;
            tell_service_manager("READY=1");
        }
        display.show(view);
        match &mut proving {
            _ if ending.is_asked() => Command::Stop,
            Some(proving) => proving.step(view, &mut display),
            None => Command::Continue,
        }
    };
    let seed = getrandom::u64()
        .map_err(|error| Failure::other(format!("the kernel gives no random numbers: {error}")))?;
    let done = run_chosen(&settings, &choice, seed, Clock::starting_in(Duration::ZERO), &mut show);
    display.close();
    if let Some(why) = done?.unkept {
        tell(&format!("warning: {why}"));
    }
    proving.map_or(Ok(()), Proving::end)?;
    tell(&format!("{} is as it was", settings.device));
    Ok(())
}

/// Says what a shaper does.
fn status(words: Vec<OsString>) -> Result<(), Failure> {
    let (mut device, mut json, mut prometheus) = (None, false, false);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("help") | Short('h') => return print(STATUS_HELP),
            Long("json") => json = true,
            Long("prometheus") => prometheus = true,
            Value(name) if device.is_none() => device = Some(name.string()?),
            other => return Err(unexpected(other, STATUS_HELP)),
        }
    }
    if json && prometheus {
        return Err(Failure::usage(
            "--json and --prometheus exclude each other: write one of them",
        ));
    }
    let view = weir_shape::ask(&named(device, "status")?)?;
    if json {
        let said = view.as_ref().map_or_else(|| Ok("{}".to_owned()), serde_json::to_string);
        return print(&(said.map_err(|error| Failure::other(error.to_string()))? + "\n"));
    }
    let Some(view) = view else { return Ok(()) };
    if prometheus {
        return print(&view.metrics());
    }
    let probed =
        if view.reflectors.is_empty() { "nobody".to_owned() } else { view.reflectors.join(", ") };
    let lines = display::lines(&view).join("\n");
    print(&format!("{lines}\nprocess {}; probes answered by {probed}\n", view.pid))
}

/// Ends a shaper, which restores what was there.
fn stop(words: Vec<OsString>) -> Result<(), Failure> {
    let mut device = None;
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("help") | Short('h') => return print(STOP_HELP),
            Value(name) if device.is_none() => device = Some(name.string()?),
            other => return Err(unexpected(other, STOP_HELP)),
        }
    }
    Ok(weir_shape::end(&named(device, "stop")?)?)
}

/// Prints a list of rules.
fn rules(words: Vec<OsString>) -> Result<(), Failure> {
    let mut name = None;
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next()? {
        match word {
            Long("help") | Short('h') => return print(RULES_HELP),
            Value(list) if name.is_none() => name = Some(list.string()?),
            other => return Err(unexpected(other, RULES_HELP)),
        }
    }
    let name = name.unwrap_or_else(|| "usual".to_owned());
    weir_shape::read_rules(&name)?;
    print(&weir_shape::rules_text(&name)?)
}

fn named(device: Option<String>, command: &str) -> Result<String, Failure> {
    device.ok_or_else(|| {
        Failure::usage(format!("say which device: `weir-agent shape {command} IFACE`"))
    })
}

/// Tells the service manager that started this, if one wants to know: sd_notify(3).
fn tell_service_manager(news: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(news.as_bytes(), &address));
    if let Err(error) = sent {
        let why = error_in_words(&error);
        tell(&format!("the service manager cannot be told that it shapes: {why}"));
    }
}

const HELP: &str = "Keeps latency low under load on a network interface, without being told rates.

Usage: weir-agent shape IFACE [OPTIONS]
       weir-agent shape status IFACE [--json | --prometheus]
       weir-agent shape stop IFACE
       weir-agent shape rules [LIST]

  --config FILE      TOML file with any of the settings
  --up RATE          out of IFACE: `auto` (the default), a rate that stays, or `none`
  --down RATE        the same, into IFACE
  --up-max RATE      `auto` never sets a higher rate
  --down-max RATE    the same, into IFACE
  --mode MODE        `ping` (the default) or `bandwidth`: what matters more
  --queue-up TC      queue out of IFACE, in tc syntax; cake by default
  --queue-down TC    the same, into IFACE
  --framing NAME     how bytes are counted; by default as the device tells
  --reflector WHOM   whom to probe: HOST, udp:HOST[:PORT] (a `weir serve`), tcp:HOST:PORT; several times
  --auth FILE        file with the secret that the `weir serve` asks for
  --backend NAME     who holds packets back: `auto`, `kernel` or `userspace`
  --rules FILE       priority rules: a file, or `usual` for the shipped list
  --state FILE       where what is learned of the line is kept: a file, `none`, or `auto` for the usual place
  --time TIME        ends by itself, such as after `1800s`
  --log FILE         file for every decision
  --dry-run          says what would be done, and changes nothing
  --quiet            shows nothing while it goes on

  --prove            measures the line under load without and with it, prints the factor, and undoes it if it is none
  --server HOST      with --prove: a `weir serve` to load the line with, and to probe unless --reflector says whom;
                     without it your own traffic is the load
  --rounds N         with --prove: how often each is measured; 3
  --load TIME        with --prove: for how long each time; 5s
  --max-cost SHARE   with --prove: how much throughput it may cost, 0 to 1; 0.1
  --json             with --prove: prints the result as JSON

What was there before is there again when it ends, however it does.
";

const STATUS_HELP: &str = "Says what the shaper of IFACE does.

Usage: weir-agent shape status IFACE [--json | --prometheus]

  --json          prints all that is known of it as JSON
  --prometheus    prints metrics in Prometheus' text format

Exit code 1 if IFACE is not being shaped.
";

const STOP_HELP: &str =
    "Ends the shaper of IFACE, and returns when what was there before is there again.

Usage: weir-agent shape stop IFACE
";

const RULES_HELP: &str =
    "Checks a list of priority rules and prints it: `usual`, the shipped one, or that of a file.

Usage: weir-agent shape rules [LIST]

LIST is `usual` (the default) or a file, as for the option --rules.
";
