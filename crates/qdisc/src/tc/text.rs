//! Reads the lines of a text without comments, and checks the limits of all texts.

use weir_core::nearest;

use super::SpecError;

/// The lines of `text` as a shell reads them: without comments, a `\` at the end joins the next line.
///
/// # Errors
/// If the text or a word of it is longer than any spec, or it has control characters.
pub(crate) fn lines(text: &str) -> Result<Vec<String>, SpecError> {
    check(text)?;
    let mut lines = Vec::new();
    let mut line = String::new();
    for raw in text.lines() {
        let (written, commented) = without_comment(raw);
        let continued = (!commented).then(|| written.strip_suffix('\\')).flatten();
        line.push_str(continued.unwrap_or(written));
        line.push(' ');
        if continued.is_none() {
            lines.push(std::mem::take(&mut line));
        }
    }
    lines.push(line);
    lines.retain(|whole| !whole.trim().is_empty());
    Ok(lines)
}

/// End of a message about `word` if one of `names` is near it: `: did you mean ...?`.
pub(crate) fn did_you_mean<'n>(
    word: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    nearest(word, names).map(|name| format!(": did you mean `{name}`?"))
}

/// Checks what holds for every text: its length, that of its words, and that it can be printed.
///
/// # Errors
/// If it is too long or has control characters.
pub(crate) fn check(text: &str) -> Result<(), SpecError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(SpecError::new(format!(
            "a spec of {} bytes: write {MAX_TEXT_BYTES} at most",
            text.len()
        )));
    }
    if let Some(control) = text.chars().find(|c| c.is_control() && !c.is_whitespace()) {
        return Err(SpecError::new(format!(
            "a spec with the control character U+{:04X}: write printable characters",
            u32::from(control)
        )));
    }
    match text.split_whitespace().find(|word| word.len() > MAX_WORD_BYTES) {
        None => Ok(()),
        Some(word) => Err(SpecError::new(format!(
            "a word of {} bytes, `{}`: write {MAX_WORD_BYTES} at most",
            word.len(),
            shortened(word)
        ))),
    }
}

/// `text` as a message quotes it: a long one is cut.
pub(crate) fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_QUOTED {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_QUOTED - 3).collect();
    format!("{start}...")
}

/// The part of a line before its comment, and whether there is one: `#` begins one where a word begins.
fn without_comment(line: &str) -> (&str, bool) {
    let starts =
        |at: usize| line[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == ';');
    match line.match_indices('#').find(|&(at, _)| starts(at)) {
        Some((at, _)) => (&line[..at], true),
        None => (line, false),
    }
}

/// The longest text of a spec: room for thousands of `tc` commands.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The longest word: `tc` has none near it.
const MAX_WORD_BYTES: usize = 100;
/// Most characters of a text that a message quotes: a whole command of `tc` fits.
const MAX_QUOTED: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_continued_lines_are_a_shells() {
        let text = "# all\nqdisc add \\\n dev a root pfifo # the queue \\\nclass;# x\na#b";
        let lines: Vec<String> = lines(text)
            .unwrap()
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(lines, ["qdisc add dev a root pfifo", "class;", "a#b"]);
    }

    #[test]
    fn a_long_text_is_quoted_by_its_start() {
        assert_eq!(shortened("fq_codel"), "fq_codel");
        assert_eq!(shortened(&"ä".repeat(160)), "ä".repeat(160));
        assert_eq!(shortened(&"ä".repeat(161)), "ä".repeat(157) + "...");
    }
}
