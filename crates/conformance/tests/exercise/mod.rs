//! Checks of any text that is read as a recording of a queue discipline: it is refused in one sentence, or
//! judged.

use weir_conformance::{Recording, judge};

/// Takes `data` as a recording.
///
/// # Panics
/// If something that must hold does not.
pub fn recording(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let sentence = match Recording::parse(&text) {
        Ok(recording) => judge(&recording).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(said) = sentence {
        assert!(said.len() <= MAX_SENTENCE_BYTES, "{} bytes: {said}", said.len());
        assert!(!said.is_empty() && !said.contains('\n'), "{said:?}");
    }
}

const MAX_SENTENCE_BYTES: usize = 2_000;
