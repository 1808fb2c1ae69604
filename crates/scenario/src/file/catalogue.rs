//! Tests and links by name: those that are shipped, and files.

use weir_core::nearest;

use crate::file::document;
use crate::file::fault::{Fault, Telling, did_you_mean};
use crate::file::field::{Field, Reader};
use crate::file::link::LinkSpec;
use crate::file::named::name_files;
use crate::file::spec::{LinkChoice, ScenarioSpec, TestChoice};
use crate::file::test::TestSpec;
use crate::file::written::{Value, Written};

/// The files around, which only the caller can read.
pub trait Files {
    /// Whether a scenario can name files here at all.
    fn are_there(&self) -> bool {
        true
    }

    /// Whether there is a regular file of that name.
    fn is_file(&self, name: &str) -> bool;

    /// The path of what the file `file` calls `name`.
    ///
    /// # Errors
    /// If there is no such file, in one sentence.
    fn named_in(&self, file: &str, name: &str) -> Result<String, String>;

    /// The text of a file.
    ///
    /// # Errors
    /// Why it cannot be read, in words that end a sentence.
    fn read(&self, name: &str) -> Result<String, String>;

    /// The mean rate of a recording, shipped or a file, in bit/s.
    ///
    /// # Errors
    /// If it cannot be read or is none, in one sentence.
    fn trace_rate_bps(&self, name: &str) -> Result<u64, String>;
}

/// No files: whoever has none to offer, such as a page in a browser.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn are_there(&self) -> bool {
        false
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn named_in(&self, _: &str, name: &str) -> Result<String, String> {
        Ok(name.to_owned())
    }

    fn read(&self, _: &str) -> Result<String, String> {
        Err("there are no files here".to_owned())
    }

    fn trace_rate_bps(&self, name: &str) -> Result<u64, String> {
        Err(format!("trace `{name}`: there are no files here"))
    }
}

/// A kind of file that is shipped: its name, and the texts by name.
struct Shelf {
    word: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// The names of the shipped tests, sorted.
#[must_use]
pub fn shipped_tests() -> Vec<&'static str> {
    TESTS.names()
}

/// The names of the shipped links, sorted.
#[must_use]
pub fn shipped_links() -> Vec<&'static str> {
    LINKS.names()
}

/// The shipped test of that name, or the test in that file.
///
/// # Errors
/// If there is none, or something is wrong with it: all of that, in one sentence.
pub fn load_test(name: &str, files: &impl Files) -> Result<TestSpec, String> {
    TESTS.load(name, files, &nothing)
}

/// The shipped link of that name, or the link in that file.
///
/// # Errors
/// If there is none, or something is wrong with it: all of that, in one sentence.
pub fn load_link(name: &str, files: &impl Files) -> Result<LinkSpec, String> {
    LINKS.load(name, files, &nothing)
}

/// As [`load_link`], with what `beyond` finds besides in a file.
///
/// # Errors
/// If there is none, or something is wrong with it: all of that, in one sentence.
pub fn load_link_beyond(
    name: &str,
    files: &impl Files,
    beyond: Beyond<'_, LinkSpec>,
) -> Result<LinkSpec, String> {
    LINKS.load(name, files, beyond)
}

/// The test that was chosen.
pub(crate) fn chosen_test(choice: &TestChoice, files: &impl Files) -> Result<TestSpec, String> {
    match choice {
        TestChoice::Name(name) => load_test(name, files),
        TestChoice::Given(test) => Ok((**test).clone()),
    }
}

/// The link that was chosen.
pub(crate) fn chosen_link(choice: &LinkChoice, files: &impl Files) -> Result<LinkSpec, String> {
    match choice {
        LinkChoice::Name(name) => load_link(name, files),
        LinkChoice::Given(link) => Ok((**link).clone()),
    }
}

/// Reads a TOML file, called `place` in messages.
///
/// # Errors
/// All that is wrong with it, each with its line.
pub fn read_file<T: Field>(text: &str, place: &str) -> Result<T, String> {
    let written = document::parse(text).map_err(|why| format!("{place} cannot be read: {why}"))?;
    read(&written, place, &[])
}

/// What others find wrong with what was written, who know more than the reader, such as the words of queues; and with what
/// was read of it, if there is nothing that the reader finds.
pub type Beyond<'a, T> = &'a dyn Fn(&Written, Option<&T>) -> Vec<Fault>;

/// As [`read_file`] of what lies in `file`, with paths of the `files` that it names, and with what `beyond` finds besides.
///
/// # Errors
/// All that is wrong with it, each with its line.
pub fn read_file_beyond<T: Field>(
    text: &str,
    file: &str,
    place: &str,
    files: &impl Files,
    beyond: Beyond<'_, T>,
) -> Result<T, String> {
    let mut written =
        document::parse(text).map_err(|why| format!("{place} cannot be read: {why}"))?;
    read_written_beyond(&mut written, file, place, files, beyond)
}

/// As [`read_file_beyond`], of what stands in a part of `file`, which messages call `place`.
///
/// # Errors
/// All that is wrong with it.
pub fn read_written_beyond<T: Field>(
    written: &mut Written,
    file: &str,
    place: &str,
    files: &impl Files,
    beyond: Beyond<'_, T>,
) -> Result<T, String> {
    let unnamed = name_files(written, file, files);
    read_beyond(written, place, unnamed, beyond)
}

fn read_beyond<T: Field>(
    written: &Written,
    place: &str,
    unnamed: Vec<Fault>,
    beyond: Beyond<'_, T>,
) -> Result<T, String> {
    let (found, mut faults) = match Reader::read(written) {
        Ok(found) => (Some(found), unnamed),
        Err(faults) => (None, [faults, unnamed].concat()),
    };
    for more in beyond(written, found.as_ref()) {
        // What the reader has told of a place is told once.
        if !faults.iter().any(|fault| fault.path == more.path) {
            faults.push(more);
        }
    }
    match found {
        Some(found) if faults.is_empty() => Ok(found),
        _ => Err(Telling { place, names: &[] }.sentence(faults)),
    }
}

/// Nobody knows more than the reader.
fn nothing<T>(_: &Written, _: Option<&T>) -> Vec<Fault> {
    Vec::new()
}

/// Reads a value, called `place` in messages; `names` are those of keys that have their own, such as `--load` for
/// `phases.load`.
///
/// # Errors
/// All that is wrong with it.
pub fn read<T: Field>(
    written: &Written,
    place: &str,
    names: &[(String, String)],
) -> Result<T, String> {
    Reader::read(written).map_err(|faults| Telling { place, names }.sentence(faults))
}

/// The scenario in a file, if it is one, and none of a test. `link` takes the place of the scenario's own, which then
/// need not be there; `files` are those that it names, and `beyond` finds what is wrong besides.
///
/// # Errors
/// If it is no TOML, it is empty or the file of a link, or something is wrong with the scenario.
pub fn read_scenario_file(
    text: &str,
    place: &str,
    link: Option<Written>,
    files: &impl Files,
    beyond: Beyond<'_, ScenarioSpec>,
) -> Result<Option<ScenarioSpec>, String> {
    let mut written =
        document::parse(text).map_err(|why| format!("`{place}` cannot be read: {why}"))?;
    match Content::of(&written) {
        Content::Nothing => Err(format!(
            "`{place}` says nothing: a scenario says at least which test runs and over which link, as \
             `test = \"rrul\"` and `link = \"line-50\"`"
        )),
        Content::Link => Err(format!(
            "`{place}` is the file of a link, not of a test or a scenario: name it as the link of one"
        )),
        Content::Test => Ok(None),
        Content::Scenario => {
            if link.is_some() {
                // Its own link is not looked for, and the other is none of this file's.
                written.set("link", Written::of(Value::Nothing));
            }
            let unnamed = name_files(&mut written, place, files);
            if let Some(link) = link {
                written.set("link", link);
            }
            read_beyond(&written, place, unnamed, beyond).map(Some)
        }
    }
}

/// What a file is to describe, be it with slips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Nothing,
    Scenario,
    Test,
    Link,
}

impl Content {
    /// That of which it has the most keys, or keys that are like them; a test if two have as many.
    ///
    /// Only a scenario has a key `test`.
    fn of(written: &Written) -> Self {
        let Value::Table(entries) = &written.value else { return Self::Nothing };
        if entries.is_empty() {
            return Self::Nothing;
        }
        if written.get("test").is_some() {
            return Self::Scenario;
        }
        let known = [ScenarioSpec::KEYS, TestSpec::KEYS, LinkSpec::KEYS];
        let every = known.concat();
        let near = |key| nearest(key, every.iter().copied());
        let meant: Vec<&str> = entries.iter().filter_map(|(key, _)| near(key)).collect();
        let [scenario, test, link] =
            known.map(|keys| meant.iter().filter(|key| keys.contains(key)).count());
        if scenario > test.max(link) {
            Self::Scenario
        } else if link > test {
            Self::Link
        } else {
            Self::Test
        }
    }
}

impl Shelf {
    fn names(&self) -> Vec<&'static str> {
        self.files.iter().map(|(name, _)| *name).collect()
    }

    fn load<T: Field>(
        &self,
        name: &str,
        files: &impl Files,
        beyond: Beyond<'_, T>,
    ) -> Result<T, String> {
        let word = self.word;
        if let Some((_, text)) = self.files.iter().find(|(shipped, _)| *shipped == name) {
            return read_file(text, &format!("{word} `{name}`"));
        }
        if name.ends_with(".toml") {
            let text = files.read(name).map_err(|why| format!("{name} cannot be read: {why}"))?;
            return read_file_beyond(&text, name, name, files, beyond);
        }
        if name.contains('/') || files.is_file(name) {
            return Err(format!(
                "`{name}` is not a .toml file: write the name of a {word} or a path to one in TOML"
            ));
        }
        let known = self.names();
        let near = did_you_mean(name, &known);
        let known = known.join(", ");
        let path = if files.are_there() { "; or a path to a .toml file" } else { "" };
        Err(format!("unknown {word} `{name}`{near} (known: {known}{path})"))
    }
}

/// The texts of the shipped files of a folder.
macro_rules! shipped {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../data/", $folder, "/", $name, ".toml")))),+]
    };
}

const TESTS: Shelf = Shelf {
    word: "test",
    files: shipped!("tests": "bursts", "bursts_11e", "cisco_5tcpup", "cisco_5tcpup_2udpflood", "cubic_bbr", "cubic_cdg", "cubic_dctcp", "cubic_ledbat", "cubic_ledbat_1", "cubic_reno", "cubic_westwood", "dash", "dns", "household", "http", "http-1down", "http-1up", "http-rrul", "ledbat_cubic_1", "ping", "reno_cubic_westwood_cdg", "reno_cubic_westwood_ledbat", "reno_cubic_westwood_lp", "rrul", "rrul46", "rrul46compete", "rrul_100_up", "rrul_50_down", "rrul_50_up", "rrul_be", "rrul_be_nflows", "rrul_cs8", "rrul_icmp", "rrul_noclassification", "rrul_prio", "rrul_spec", "rrul_torrent", "rrul_twice", "rrul_up", "rrul_var", "rtt_fair", "rtt_fair4be", "rtt_fair6be", "rtt_fair_up", "rtt_fair_var", "rtt_fair_var_down", "rtt_fair_var_up", "short_flows", "tcp_1up_noping", "tcp_2up_delay", "tcp_2up_square", "tcp_2up_square_westwood", "tcp_4up_squarewave", "tcp_bidirectional", "tcp_download", "tcp_ndown", "tcp_nup", "tcp_upload", "tcp_upload_1000", "tcp_upload_prio", "three_rtts", "udp_flood", "udp_flood_var_up", "udp_flood_var_up_stagger", "voip", "voip-1up", "voip-rrul"),
};

const LINKS: Shelf = Shelf {
    word: "link",
    files: shipped!("links": "cable-140-12", "cable-20-8", "denmark-germany", "docsis-31", "fios-25-25", "line-50",
        "lte-att", "lte-tmobile", "lte-verizon", "starlink", "thesis-10", "vdsl-100-40", "wifi-n"),
};
