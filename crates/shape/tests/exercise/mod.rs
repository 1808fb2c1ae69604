//! Checks of any text that is read as the log of a shaper: it is refused in one sentence, or replayed.

use weir_rate_control::Mode;

/// Takes `data` as a log, with its own controller and with Weir's.
///
/// # Panics
/// If something that must hold does not.
pub fn log(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for mode in [None, Some(Mode::Ping), Some(Mode::Bandwidth)] {
        match weir_shape::replay(&text, mode, &mut |_| {}) {
            Ok([logged, made, same]) => assert!(same <= logged.min(made), "{same} {logged} {made}"),
            Err(error) => check_sentence(&error.to_string()),
        }
    }
}

fn check_sentence(text: &str) {
    assert!(text.len() <= MAX_SENTENCE_BYTES, "{} bytes: {text}", text.len());
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?}");
}

const MAX_SENTENCE_BYTES: usize = 1_000;
