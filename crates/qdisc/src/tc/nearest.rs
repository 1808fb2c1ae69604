//! "Did you mean": the known name that is nearest to a word that is none.

/// End of a message about `word` if one of `names` is near it: `: did you mean ...?`.
pub(crate) fn did_you_mean<'n>(
    word: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<String> {
    nearest(word, names).map(|name| format!(": did you mean `{name}`?"))
}

/// The name nearest to `word`, if it is near: case, `_` and `-` do not count, and a letter in three may
/// be wrong, two at most.
fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = folded(word);
    if plain.is_empty() || plain.len() > MAX_LETTERS {
        return None;
    }
    let allowed = (plain.len() / 3).min(2);
    let distances = names.into_iter().map(|name| (distance(&plain, &folded(name)), name));
    let best = distances.min_by_key(|&(distance, _)| distance)?;
    (best.0 <= allowed).then_some(best.1)
}

fn folded(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// How many letters must be put in, left out, changed or swapped with the next (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &letter) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &other) in b.iter().enumerate() {
            let changed = last[j] + usize::from(letter != other);
            let mut least = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && letter == b[j - 1] && a[i - 1] == other {
                least = least.min(before_last[j - 1] + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Longer words are near to no name.
const MAX_LETTERS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let names = ["pfifo", "bfifo", "pfifo_fast", "codel", "fq_codel", "fq_pie", "red", "rio"];
        let near = |word| nearest(word, names);
        assert_eq!(near("fqcodel"), Some("fq_codel"));
        assert_eq!(near("FQ-CoDel"), Some("fq_codel"));
        assert_eq!(near("fq_kodel"), Some("fq_codel"));
        assert_eq!(near("fq_cdoel"), Some("fq_codel"));
        assert_eq!(near("codle"), Some("codel"));
        assert_eq!(near("rde"), Some("red"));
        assert_eq!(near("rxx"), None);
        assert_eq!(near("it"), None);
        assert_eq!(near("wfq"), None);
        assert_eq!(near("netem"), None);
    }
}
