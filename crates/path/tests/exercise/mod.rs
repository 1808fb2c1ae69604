//! What must hold of any text that is read as a resolved scenario or as a recording of a line: it is
//! refused in one sentence, or it is written again the same.

use weir_path::Trace;
use weir_scenario::Scenario;

/// Takes `data` as a resolved scenario.
///
/// # Panics
/// If something that must hold does not.
pub fn scenario(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let sound = Scenario::from_json(&text).and_then(|one| weir_path::check(&one).map(|()| one));
    let scenario = match sound {
        Ok(scenario) => scenario,
        Err(error) => return check_sentence(&error.to_string()),
    };
    let again = Scenario::from_json(&scenario.to_json()).expect("what was written is read");
    assert_eq!(again, scenario);
}

/// Takes `data` as a recording of a line in Mahimahi's format.
///
/// # Panics
/// If something that must hold does not.
pub fn trace(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Trace::parse("given", &text) {
        Ok(trace) => {
            let _ = trace.mean_rate();
            let times: Vec<_> = (0..20).map(|index| trace.at(index)).collect();
            assert!(times.is_sorted(), "{times:?}");
        }
        Err(error) => check_sentence(&error.to_string()),
    }
}

fn check_sentence(text: &str) {
    assert!(text.len() <= MAX_SENTENCE_BYTES, "{} bytes: {text}", text.len());
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
}

const MAX_SENTENCE_BYTES: usize = 2_000;
