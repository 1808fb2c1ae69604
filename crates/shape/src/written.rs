//! Settings and rules as people write them: in TOML files, and on the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use weir_core::{Framing, error_in_words};
use weir_qdisc::{Device, QueueSpec};
use weir_rate_control::{AutoSettings, Control, Mode};
use weir_scenario::file::catalogue::{read, read_file};
use weir_scenario::file::rules::{RuleSpec, RulesSpec};
use weir_scenario::file::shape::{
    BackendWord, ReflectorKind, ReflectorWords, ShapeSpec, SideRate, StatePlace,
};
use weir_scenario::file::shaper::ModeWord;
use weir_scenario::file::{Fault, Telling, Value, Written};
use weir_sockets::LookupError;

use crate::files::{MAX_TOML_BYTES, named_in, read_text};
use crate::learned::{check_place, usual_state_file};
use crate::rules::{Class, Rule, Rules};
use crate::settings::{Backend, Settings, Target};
use crate::{ShapeError, detect_framing};

/// What stands in a file of settings.
///
/// # Errors
/// If it cannot be read, or something in it cannot be: all of that, in a sentence.
pub fn read_config(file: &Path) -> Result<Written, ShapeError> {
    let place = format!("config `{}`", file.display());
    let text = read_text(file, MAX_TOML_BYTES)
        .map_err(|why| ShapeError::input(format!("{place} cannot be read: {why}")))?;
    read_file::<ShapeSpec>(&text, &place).map_err(ShapeError::input)?;
    weir_scenario::file::parse(&text).map_err(ShapeError::input)
}

/// The settings of the shaper of `device`: those of the file `config`, and those that are `given` before them.
///
/// # Errors
/// If something of them cannot be: all of that, in a sentence.
pub fn read_settings(
    device: &str,
    config: Option<&Path>,
    given: Written,
) -> Result<Settings, ShapeError> {
    let mut said = match config {
        None => Written::empty(),
        Some(file) => files_beside(read_config(file)?, file, &given)?,
    };
    // A line of the file would be told of what stands in none.
    said.line = None;
    if let Value::Table(entries) = given.value {
        for (key, value) in entries {
            said.set(&key, value);
        }
    }
    let place = config
        .map_or_else(|| "shape".to_owned(), |file| format!("shape, config `{}`", file.display()));
    let spec: ShapeSpec = read(&said, &place, &[]).map_err(ShapeError::input)?;
    let faults = queue_faults(&said, &spec);
    if !faults.is_empty() {
        return Err(ShapeError::input(Telling { place: &place, names: &[] }.sentence(faults)));
    }
    let settings = settings_of(device, &spec, &weir_sockets::address_of)?;
    Ok(settings)
}

/// The settings in the file `config`, with paths of the files that it names and that are read: beside it, or if nothing lies
/// there from the working folder, as with [scenarios](weir_scenario::file::name_files). What is `given` in their place is
/// no part of the file.
///
/// # Errors
/// If one lies in neither.
fn files_beside(mut said: Written, config: &Path, given: &Written) -> Result<Written, ShapeError> {
    let place = format!("config `{}`", config.display());
    let path = std::path::absolute(config)
        .map_err(|error| ShapeError::input(format!("{place}: {error}")))?;
    let mut faults = Vec::new();
    for key in ["auth", "rules"] {
        let Some(Written { value: Value::Text(name), line }) = said.get(key).cloned() else {
            continue;
        };
        let is_shipped = key == "rules" && shipped_rules().contains(&&*name);
        if is_shipped || given.get(key).is_some() {
            continue;
        }
        match named_in(&path, &name) {
            Ok(found) => {
                let text = found.into_os_string().into_string().map_err(|found| {
                    let found = found.display();
                    ShapeError::input(format!("{place}: `{found}` is no text in UTF-8"))
                })?;
                said.set(key, Written { value: Value::Text(text), line });
            }
            Err(says) => faults.push(Fault { path: key.to_owned(), line, says }),
        }
    }
    if faults.is_empty() {
        return Ok(said);
    }
    Err(ShapeError::input(Telling { place: &place, names: &[] }.sentence(faults)))
}

/// Queues that are none of ours, with the lines on which they stand; the kernel may have what ours have not.
fn queue_faults(said: &Written, spec: &ShapeSpec) -> Vec<Fault> {
    let sides = [("queue_up", spec.up), ("queue_down", spec.down)];
    let is_ours = |rate| rate != SideRate::None && spec.backend != BackendWord::Kernel;
    let fault = |key: &str| {
        let words = said.get(key)?;
        let Value::Text(text) = &words.value else { return None };
        let built = QueueSpec::parse(text).and_then(|queue| queue.build(&Device::default()));
        let says = built.err()?.to_string();
        Some(Fault { path: key.to_owned(), line: words.line, says })
    };
    sides.into_iter().filter(|(_, rate)| is_ours(*rate)).filter_map(|(key, _)| fault(key)).collect()
}

/// The settings that `spec` stands for, with `look_up` for the addresses of hosts.
fn settings_of(
    device: &str,
    spec: &ShapeSpec,
    look_up: &dyn Fn(&str) -> Result<IpAddr, LookupError>,
) -> Result<Settings, ShapeError> {
    let queue = |rate, queue: &String| (rate != SideRate::None).then(|| queue.clone());
    Ok(Settings {
        device: device.to_owned(),
        control: control(spec),
        queues: [queue(spec.up, &spec.queue_up), queue(spec.down, &spec.queue_down)],
        framing: spec.framing.framing().unwrap_or_else(|| framing_of(device).0),
        backend: match spec.backend {
            BackendWord::Auto => None,
            BackendWord::Kernel => Some(Backend::Kernel),
            BackendWord::Userspace => Some(Backend::Userspace),
        },
        reflectors: spec
            .reflectors
            .iter()
            .map(|one| target(one, look_up))
            .collect::<Result<_, _>>()?,
        auth: spec.auth.as_deref().map(absolute).transpose()?,
        rules: spec.rules.as_deref().map(read_rules).transpose()?,
        time_ns: spec.time.map(|time| time.0),
        log: None,
        state: match &spec.state {
            StatePlace::Usual => usual_state_file(device),
            StatePlace::None => None,
            StatePlace::File(file) => Some(state_file(file)?),
        },
        open: false,
    })
}

/// The framing of a device and the reason for it; Ethernet's if there is no such device.
#[must_use]
pub fn framing_of(device: &str) -> (Framing, &'static str) {
    detect_framing(device)
        .map_or((Framing::ETHERNET, "there is no such device"), |found| (found.framing, found.why))
}

fn control(spec: &ShapeSpec) -> Control {
    let stays = |rate| match rate {
        SideRate::Rate(bps) => Some(bps),
        SideRate::Auto | SideRate::None => None,
    };
    let [egress_bps, ingress_bps] = [spec.up, spec.down].map(stays);
    if ![spec.up, spec.down].contains(&SideRate::Auto) {
        return Control::Fixed { egress_bps, ingress_bps };
    }
    Control::Auto(AutoSettings {
        mode: match spec.mode {
            ModeWord::Ping => Mode::Ping,
            ModeWord::Bandwidth => Mode::Bandwidth,
        },
        egress_bps,
        ingress_bps,
        egress_max_bps: spec.up_max.map(|max| max.0),
        ingress_max_bps: spec.down_max.map(|max| max.0),
        egress_known_bps: None,
        ingress_known_bps: None,
    })
}

fn target(
    words: &ReflectorWords,
    look_up: &dyn Fn(&str) -> Result<IpAddr, LookupError>,
) -> Result<Target, ShapeError> {
    let host = &words.host;
    let is_one = |part: &str| (1..=MAX_LABEL_BYTES).contains(&part.len());
    if host.contains('%') {
        return Err(ShapeError::input(format!(
            "reflector `{host}`: write an address that is more than one link's, without `%`"
        )));
    }
    if !host.contains(':') && !host.trim_end_matches('.').split('.').all(is_one) {
        return Err(ShapeError::input(format!(
            "reflector `{host}`: no host can be called so: write parts of 1 to {MAX_LABEL_BYTES} letters"
        )));
    }
    let address = look_up(host).map_err(|error| {
        let said = format!("reflector `{host}`: {error}");
        match error {
            // Not the name is wrong: the network may not be up yet.
            LookupError::Unanswered => ShapeError::new(said),
            LookupError::Unknown => ShapeError::input(said),
        }
    })?;
    let everybody = IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
    if address.is_unspecified() || address.is_multicast() || address == everybody {
        return Err(ShapeError::input(format!(
            "reflector `{host}`: {address} is no single host's: write a host"
        )));
    }
    Ok(match words.kind {
        ReflectorKind::Icmp => Target::Icmp(address),
        ReflectorKind::Udp => Target::Udp(SocketAddr::new(address, words.port)),
        ReflectorKind::Tcp => Target::Tcp(SocketAddr::new(address, words.port)),
    })
}

/// A file that is named for what is learned of the line: none yet, or one of a shaper.
fn state_file(file: &str) -> Result<PathBuf, ShapeError> {
    let path = absolute(file)?;
    check_place(&path)
        .map_err(|why| ShapeError::input(format!("state `{file}`: {why}; name another")))?;
    Ok(path)
}

fn absolute(file: &str) -> Result<PathBuf, ShapeError> {
    std::path::absolute(file)
        .map_err(|error| ShapeError::input(format!("`{file}`: {}", error_in_words(&error))))
}

/// Names of the shipped lists of rules, sorted.
#[must_use]
pub fn shipped_rules() -> Vec<&'static str> {
    SHIPPED_RULES.iter().map(|(name, _)| *name).collect()
}

/// The text of the shipped list of rules of that name, or of the file.
///
/// # Errors
/// If there is neither.
pub fn rules_text(name: &str) -> Result<String, ShapeError> {
    if let Some((_, text)) = SHIPPED_RULES.iter().find(|(shipped, _)| *shipped == name) {
        return Ok((*text).to_owned());
    }
    read_text(Path::new(name), MAX_TOML_BYTES).map_err(|why| {
        let shipped: Vec<String> = shipped_rules().iter().map(|list| format!("`{list}`")).collect();
        ShapeError::input(format!(
            "rules `{name}` are neither shipped ({}) nor a file that can be read: {why}",
            shipped.join(", ")
        ))
    })
}

/// The rules of a shipped list, or of a file.
///
/// # Errors
/// If there is neither, or something in it cannot be: all of that with its lines, in a sentence.
pub fn read_rules(name: &str) -> Result<Rules, ShapeError> {
    let spec: RulesSpec = read_file(&rules_text(name)?, name).map_err(ShapeError::input)?;
    let mut caps_bps = [[None; Class::COUNT]; 2];
    for (class, cap) in &spec.class.0 {
        caps_bps[0][*class as usize] = cap.up_max.map(|max| max.0);
        caps_bps[1][*class as usize] = cap.down_max.map(|max| max.0);
    }
    Ok(Rules { rules: spec.rule.iter().map(rule_of).collect(), caps_bps, mark: spec.mark })
}

fn rule_of(spec: &RuleSpec) -> Rule {
    Rule {
        name: spec.name.clone(),
        class: Class::ALL[spec.class as usize],
        programs: spec.program.clone(),
        cgroups: spec.cgroup.clone(),
        protocols: spec.protocol.iter().map(|protocol| protocol.0).collect(),
        ports: spec.port.iter().map(|ports| (ports.0, ports.1)).collect(),
        hosts: spec.host.iter().map(|network| (network.0, network.1)).collect(),
        dscps: spec.dscp.iter().map(|dscp| dscp.0).collect(),
        acks: spec.acks,
    }
}

/// Bytes of a part of a host's name at most (RFC 1035).
const MAX_LABEL_BYTES: usize = 63;

/// Lists of rules that are shipped, by their names.
const SHIPPED_RULES: &[(&str, &str)] = &[("usual", include_str!("../data/rules/usual.toml"))];

#[cfg(test)]
mod tests {
    use weir_linux::CLASSES;
    use weir_scenario::file::rules::ClassWord;
    use weir_scenario::file::shape::USUAL_QUEUES;

    use super::*;

    fn given(entries: &[(&str, Written)]) -> Written {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        Written::of(Value::Table(entries.collect()))
    }

    #[test]
    fn a_name_is_wrong_only_if_somebody_says_so() {
        let words = given(&[("reflectors", vec![Written::from("server")].into())]);
        let spec: ShapeSpec = read(&words, "shape", &[]).unwrap();
        for (error, says, is_input) in [
            (
                LookupError::Unanswered,
                "reflector `server`: nobody answers what its address is",
                false,
            ),
            (LookupError::Unknown, "reflector `server`: no such host is known", true),
        ] {
            let told = settings_of("eth0", &spec, &|_| Err(error)).unwrap_err();
            assert_eq!((told.to_string().as_str(), told.is_input()), (says, is_input));
        }
    }

    #[test]
    fn brackets_of_a_reflector_are_a_pair_around_an_address_of_ipv6() {
        let read = |reflector: &str| {
            let words = given(&[("reflectors", vec![Written::from(reflector)].into())]);
            read::<ShapeSpec>(&words, "shape", &[]).map(|spec| spec.reflectors[0].host.clone())
        };
        assert_eq!(read("[fd00::1]"), Ok("fd00::1".to_owned()));
        assert_eq!(read("udp:[fd00::1]"), Ok("fd00::1".to_owned()));
        assert_eq!(read("tcp:[fd00::1]:80"), Ok("fd00::1".to_owned()));
        for (wrong, host) in [
            ("[10.9.0.2", "[10.9.0.2"),
            ("10.9.0.2]", "10.9.0.2]"),
            ("]", "]"),
            ("[]", "[]"),
            ("[::1", "[::1"),
            ("udp:[]", "[]"),
            ("udp:[server]", "[server]"),
            ("tcp:[::1:80", "[::1"),
            ("tcp:[]:80", "[]"),
        ] {
            let said = read(wrong).unwrap_err();
            let end = format!(
                "`{host}`: brackets stand around an address of IPv6, such as [2001:db8::1]: write one so, or without brackets"
            );
            assert!(said.ends_with(&end), "{wrong}: {said}");
        }
    }

    #[test]
    fn what_is_given_stands_before_the_file() {
        let file = std::env::temp_dir().join(format!("weir-shape-config-{}", std::process::id()));
        std::fs::write(&file, "up = \"8mbit\"\ndown = \"9mbit\"\n").unwrap();
        let settings = read_settings("eth0", Some(&file), given(&[("down", "none".into())]));
        let wrong = read_settings("eth0", Some(&file), given(&[("down", "1bit".into())]));
        std::fs::remove_file(&file).unwrap();
        let settings = settings.unwrap();
        let fixed = Control::Fixed { egress_bps: Some(8_000_000), ingress_bps: None };
        assert_eq!(settings.control, fixed);
        assert_eq!(settings.queues, [Some(USUAL_QUEUES[0].to_owned()), None]);
        let said = wrong.unwrap_err().to_string();
        assert!(said.ends_with("`: down: `1bit`: write 100kbit or more"), "{said}");
    }

    #[test]
    fn files_that_a_file_names_lie_beside_it() {
        let folder = std::env::temp_dir().join(format!("weir-shape-beside-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let config = folder.join("line.toml");
        let rules = "[[rule]]\nname = \"own\"\nclass = \"bulk\"\nport = [873]\n";
        std::fs::write(folder.join("own.toml"), rules).unwrap();
        let read = |text: &str| {
            std::fs::write(&config, text).unwrap();
            read_settings("eth0", Some(&config), given(&[]))
        };
        let own = read("rules = \"own.toml\"\nauth = \"own.toml\"\n");
        let shipped = read("rules = \"usual\"\n");
        let gone = read("up = \"8mbit\"\nrules = \"gone.toml\"\n");
        let usual = given(&[("rules", "usual".into())]);
        let other = read_settings("eth0", Some(&config), usual);
        std::fs::remove_dir_all(&folder).unwrap();
        let settings = own.unwrap();
        assert_eq!(settings.rules.unwrap().rules[0].name, "own");
        assert_eq!(settings.auth, Some(folder.join("own.toml")));
        assert!(shipped.unwrap().rules.unwrap().rules.len() > 1);
        assert!(
            other.unwrap().rules.unwrap().rules.len() > 1,
            "those of the file are not looked for"
        );
        let (file, place) = (config.display(), folder.display());
        assert_eq!(
            gone.unwrap_err().to_string(),
            format!(
                "config `{file}`, line 2: rules: `gone.toml` lies neither in `{place}`, beside what names it, nor in the \
                 working folder `{}`",
                std::env::current_dir().unwrap().display()
            )
        );
    }

    #[test]
    fn a_queue_that_is_none_is_told_with_its_file_its_line_and_its_key() {
        let file = std::env::temp_dir().join(format!("weir-shape-queues-{}", std::process::id()));
        std::fs::write(&file, "up = \"8mbit\"\nqueue_up = \"fq_kodel\"\n").unwrap();
        let read = |words: &[_]| {
            let read = read_settings("eth0", Some(&file), given(words));
            read.map(|_| ()).map_err(|error| (error.to_string(), error.is_input()))
        };
        let said = "unknown queue discipline `fq_kodel`: did you mean `fq_codel`?";
        let in_file = read(&[]);
        let in_words = read(&[("queue_up", "fq_codel limit".into())]);
        let unasked = read(&[("up", "none".into())]);
        let of_kernel = read(&[("backend", "kernel".into())]);
        std::fs::remove_file(&file).unwrap();
        let place = format!("shape, config `{}`", file.display());
        assert_eq!(in_file, Err((format!("{place}, line 2: queue_up: {said}"), true)));
        let in_words = in_words.unwrap_err().0;
        assert!(in_words.starts_with(&format!("{place}: queue_up: ")), "{in_words}");
        assert_eq!([unasked, of_kernel], [Ok(()), Ok(())]);
    }

    #[test]
    fn classes_of_files_are_those_of_the_kernel_in_their_order() {
        assert_eq!(ClassWord::WORDS, CLASSES);
    }
}
