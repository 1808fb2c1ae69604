//! What must hold of any text that is read as a scenario, a test or a link: it is refused in a sentence of bounded
//! length, or what was read of it is written and read again the same, and a scenario can be resolved or is refused.

use weir_scenario::Scenario;
use weir_scenario::file::catalogue::{read, read_file};
use weir_scenario::file::field::{Field, Form};
use weir_scenario::file::link::LinkSpec;
use weir_scenario::file::spec::ScenarioSpec;
use weir_scenario::file::test::TestSpec;
use weir_scenario::file::{NoFiles, remarks, resolve};

/// Takes `data` as a scenario file.
///
/// # Panics
/// If something that must hold does not.
pub fn scenario(data: &[u8]) {
    let Some(spec) = file::<ScenarioSpec>(data) else { return };
    let _ = remarks(&spec, &NoFiles);
    match resolve(&spec, &NoFiles, |_| None) {
        Ok(resolved) => {
            for configuration in &resolved.configurations {
                let again =
                    Scenario::from_json(&configuration.scenario.to_json()).expect("it is one");
                assert_eq!(again, configuration.scenario);
            }
        }
        Err(error) => check_sentence(&error),
    }
}

/// Takes `data` as a test file.
///
/// # Panics
/// If something that must hold does not.
pub fn test(data: &[u8]) {
    file::<TestSpec>(data);
}

/// Takes `data` as a link file.
///
/// # Panics
/// If something that must hold does not.
pub fn link(data: &[u8]) {
    file::<LinkSpec>(data);
}

fn file<T: Field + PartialEq + std::fmt::Debug>(data: &[u8]) -> Option<T> {
    let text = String::from_utf8_lossy(data);
    let spec: T = match read_file(&text, "file.toml") {
        Ok(spec) => spec,
        Err(error) => {
            check_sentence(&error);
            return None;
        }
    };
    let again: T = read(&spec.write(Form::Words), "again", &[]).expect("what was written is read");
    assert_eq!(again, spec);
    Some(spec)
}

fn check_sentence(text: &str) {
    assert!(text.len() <= MAX_SENTENCE_BYTES, "{} bytes: {text}", text.len());
    assert!(!text.is_empty());
}

/// Twenty faults of three hundred characters each, of up to four bytes, for the place and for what is wrong there.
const MAX_SENTENCE_BYTES: usize = 60_000;
