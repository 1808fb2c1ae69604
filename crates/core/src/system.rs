//! Errors of the operating system, in words for people.

/// The words of `error`, without the numbers ("os error 28") that the standard library puts behind those of the system, and
/// without what it puts in front of those of the resolver.
///
/// An error that consists of the system's words alone begins with a small letter, as it ends a sentence of ours.
#[must_use]
pub fn error_in_words(error: &(impl std::fmt::Display + ?Sized)) -> String {
    let mut words = error.to_string();
    let before = words.len();
    if let Some(start) = words.find(BEFORE_RESOLVER) {
        words.replace_range(start..start + BEFORE_RESOLVER.len(), "");
    }
    while let Some((start, end)) = number_in(&words) {
        words.replace_range(start..end, "");
    }
    let mut letters = words.chars();
    if let (Some(first), Some(second)) = (letters.next(), letters.next())
        && words.len() < before
        && first.is_ascii_uppercase()
        && second.is_ascii_lowercase()
    {
        words[..1].make_ascii_lowercase();
    }
    words
}

/// Where the number of an error of the system stands, if one does.
fn number_in(words: &str) -> Option<(usize, usize)> {
    words.match_indices(BEFORE_NUMBER).find_map(|(start, _)| {
        let rest = &words[start + BEFORE_NUMBER.len()..];
        let digits =
            rest.trim_start_matches('-').trim_start_matches(|it: char| it.is_ascii_digit());
        let end = words.len() - digits.strip_prefix(')')?.len();
        Some((start, end))
    })
}

/// `Display` of an error of `ToSocketAddrs`: this, then the words of `gai_strerror`.
const BEFORE_RESOLVER: &str = "failed to lookup address information: ";
/// `Display` of `std::io::Error`: the system's words, then its number.
const BEFORE_NUMBER: &str = " (os error ";

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_of_the_system_is_told_in_its_words() {
        let unknown = "server `a`: failed to lookup address information: Name or service not known";
        assert_eq!(error_in_words(unknown), "server `a`: Name or service not known");
        let unknown = unknown.split_once(": ").map(|(_, words)| words).unwrap();
        assert_eq!(error_in_words(unknown), "name or service not known");
        let full = io::Error::from_raw_os_error(28);
        assert_eq!(error_in_words(&full), "no space left on device");
        let within = io::Error::other(format!("IO error: {full}; it goes on"));
        assert_eq!(error_in_words(&within), "IO error: No space left on device; it goes on");
        let both = format!("{full}, then {full}");
        assert_eq!(error_in_words(&both), "no space left on device, then No space left on device");
    }

    #[test]
    fn words_of_others_stay_as_they_are() {
        for said in [
            "",
            "A",
            "Invalid value",
            "I (os error)",
            "Name `x (os error y)` is none",
            "Ä (os error 3",
        ] {
            assert_eq!(error_in_words(said), said);
        }
    }
}
