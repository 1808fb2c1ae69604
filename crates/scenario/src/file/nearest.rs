//! "Did you mean": the known name that is most like a word that is none.

/// The name of `known` that is most like `word`, if one is like it at all.
///
/// Two words are as like as their parts in common are long (Ratcliff and Obershelp, as in Python's `difflib`).
#[must_use]
pub fn nearest<'n>(word: &str, known: &[&'n str]) -> Option<&'n str> {
    let word: Vec<char> = word.chars().take(MAX_LETTERS + 1).collect();
    if word.len() > MAX_LETTERS {
        return None;
    }
    let likeness = known.iter().map(|name| {
        let letters: Vec<char> = name.chars().collect();
        let both = letters.len() + word.len();
        (2 * in_common(&letters, &word), both, *name)
    });
    // Likeness is a fraction, common letters of all letters: fractions are compared crosswise.
    let best = likeness.max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)).then(a.2.cmp(b.2)))?;
    (best.0 * 5 >= best.1 * 3).then_some(best.2)
}

/// End of a message about a word that is none of the `known` names: `, did you mean ...?`, or nothing.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or_else(String::new, |name| format!(", did you mean `{name}`?"))
}

/// Letters in common: of the longest part in common, and of what stands before and behind it in both.
fn in_common(a: &[char], b: &[char]) -> usize {
    let mut longest = (0, 0, 0);
    for start in 0..a.len() {
        for other in 0..b.len() {
            let pairs = a[start..].iter().zip(&b[other..]);
            let length = pairs.take_while(|(one, another)| one == another).count();
            if length > longest.0 {
                longest = (length, start, other);
            }
        }
    }
    let (length, start, other) = longest;
    if length == 0 {
        return 0;
    }
    length
        + in_common(&a[..start], &b[..other])
        + in_common(&a[start + length..], &b[other + length..])
}

/// Longer words are like no name.
const MAX_LETTERS: usize = 60;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let keys = ["idle", "load", "cooldown", "title", "seed", "queue"];
        let near = |word| nearest(word, &keys);
        assert_eq!(near("lode"), Some("load"));
        assert_eq!(near("titel"), Some("title"));
        assert_eq!(near("sede"), Some("seed"));
        assert_eq!(near("qeue"), Some("queue"));
        assert_eq!(near("x"), None);
        assert_eq!(near(""), None);
        assert_eq!(near(&"load".repeat(100_000)), None);
    }
}
