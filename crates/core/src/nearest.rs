//! "Did you mean": the known name that is most like a word that is none.

/// The name of `known` that is most like `word`, if one is like it at all.
///
/// Two words are as like as their parts in common are long (Ratcliff and Obershelp, 1988): twice the letters in common,
/// of the letters of both, must be three in five. Case, `_` and `-` do not count. Of names that are as like as each other it
/// is the last by the alphabet. A word of more than 60 letters is like no name.
#[must_use]
pub fn nearest<'n>(word: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let word = folded(word);
    if word.len() > MAX_LETTERS {
        return None;
    }
    let likeness = known.into_iter().map(|name| {
        let letters = folded(name);
        let both = letters.len() + word.len();
        (2 * in_common(&letters, &word), both, name)
    });
    // Likeness is a fraction, common letters of all letters: fractions are compared crosswise.
    let best = likeness.max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)).then(a.2.cmp(b.2)))?;
    (best.0 > 0 && best.0 * 5 >= best.1 * 3).then_some(best.2)
}

/// The letters that count, of which no more are taken than tell that a word is too long.
fn folded(word: &str) -> Vec<char> {
    let letters = word.chars().filter(|letter| !matches!(letter, '_' | '-'));
    letters.flat_map(char::to_lowercase).take(MAX_LETTERS + 1).collect()
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
        let near = |word| nearest(word, keys);
        assert_eq!(near("lode"), Some("load"));
        assert_eq!(near("titel"), Some("title"));
        assert_eq!(near("sede"), Some("seed"));
        assert_eq!(near("qeue"), Some("queue"));
        assert_eq!(near("x"), None);
        assert_eq!(near(""), None);
        assert_eq!(near(&"load".repeat(100_000)), None);
    }

    #[test]
    fn case_and_what_joins_words_do_not_count() {
        let names = ["pfifo", "bfifo", "pfifo_fast", "codel", "fq_codel", "fq_pie", "red", "rio"];
        let near = |word| nearest(word, names);
        assert_eq!(near("fqcodel"), Some("fq_codel"));
        assert_eq!(near("FQ-CoDel"), Some("fq_codel"));
        assert_eq!(near("fq_kodel"), Some("fq_codel"));
        assert_eq!(near("fq_cdoel"), Some("fq_codel"));
        assert_eq!(near("codle"), Some("codel"));
        assert_eq!(near("rde"), Some("red"));
        for none in ["rxx", "it", "wfq", "netem", "_", "--"] {
            assert_eq!(near(none), None, "{none}");
        }
    }
}
