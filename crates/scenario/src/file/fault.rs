//! Faults of what was written: each with its place and its line, and the sentence about all of them.

use weir_core::nearest;

use crate::file::written::head;

/// One thing that is wrong with what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Keys and places in lists that lead to it, joined by dots; empty for the whole.
    pub path: String,
    /// The line of its file, from 1; `None` of what stands in no file.
    pub line: Option<usize>,
    /// The fault, and what is allowed.
    pub says: String,
}

/// Names by which messages tell the faults of a text.
#[derive(Clone, Copy, Debug)]
pub struct Telling<'a> {
    /// Name of the text.
    pub place: &'a str,
    /// Names for keys of their own, such as `--load` for `phases.load`.
    pub names: &'a [(String, String)],
}

/// End of a message about a word that is none of the `known` names: `, did you mean ...?`, or nothing.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known.iter().copied())
        .map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

impl Fault {
    /// The place, and what is wrong there.
    fn told(&self) -> String {
        let says = shortened(&self.says);
        if self.path.is_empty() { says } else { format!("{}: {says}", shortened(&self.path)) }
    }
}

impl Telling<'_> {
    /// All faults in a sentence; in a line each where there are several and they have lines.
    #[must_use]
    pub fn sentence(&self, mut faults: Vec<Fault>) -> String {
        faults.sort_by_key(|fault| fault.line);
        let mut known: Vec<Fault> = Vec::new();
        for fault in faults {
            if !known.contains(&fault) {
                known.push(fault);
            }
        }
        let first = &known[..known.len().min(MAX_FAULTS)];
        let rest = known.len() - first.len();
        let more = (rest > 0).then(|| format!("and {rest} more"));
        let lines: Option<Vec<usize>> = first.iter().map(|fault| fault.line).collect();
        match lines {
            Some(lines) => self.in_lines(first, &lines, known.len(), more),
            None => self.in_a_row(first, more),
        }
    }

    fn in_lines(
        &self,
        first: &[Fault],
        lines: &[usize],
        all: usize,
        more: Option<String>,
    ) -> String {
        let pairs = lines.iter().zip(first);
        let mut said: Vec<_> =
            pairs.map(|(line, fault)| format!("line {line}: {}", fault.told())).collect();
        if said.len() == 1 {
            return format!("{}, {}", self.place, said.remove(0));
        }
        said.insert(0, format!("{} has {all} faults:", self.place));
        said.extend(more);
        said.join("\n  ")
    }

    fn in_a_row(&self, first: &[Fault], more: Option<String>) -> String {
        let own = |fault: &Fault| self.names.iter().find(|(key, _)| *key == fault.path);
        let told = |fault: &Fault| match own(fault) {
            Some((_, name)) => format!("{name}: {}", fault.says),
            None => fault.told(),
        };
        let said: Vec<String> = first.iter().map(told).chain(more).collect();
        let place = if first.iter().all(|fault| own(fault).is_some()) {
            String::new()
        } else {
            format!("{}: ", self.place)
        };
        format!("{place}{}", said.join("; "))
    }
}

/// `text`, or the start of a long one: what was written may be of any length.
fn shortened(text: &str) -> String {
    let start = head(text, MAX_QUOTED_CHARS);
    if start.len() == text.len() { text.to_owned() } else { format!("{start}...") }
}

/// Characters of a place, and of what is wrong there, that a message has at most: a list of all keys fits.
pub const MAX_QUOTED_CHARS: usize = 300;

/// Faults that are told; a file that has more is of another kind.
pub const MAX_FAULTS: usize = 20;
