//! Queues and markers in scenario and link files: what is wrong with their words, with the lines on which they stand.
//!
//! The reader of files does not know disciplines; what it takes for a text is held against them here.

use weir_qdisc::{MarkerSpec, QueueSpec};
use weir_scenario::file::spec::DEFAULT_QUEUE;
use weir_scenario::file::{Fault, Value, Written};

/// Faults in the queues and markers of a scenario or link file, whatever else is wrong with it: names and
/// words that no discipline or marker has. Values that depend on the line are checked once the scenario is resolved.
#[must_use]
pub fn word_faults(file: &Written) -> Vec<Fault> {
    let mut faults = Vec::new();
    for key in ["queue", "queue_up", "queue_down"] {
        if let Some(words) = file.get(key) {
            texts(key, words, file.line, &mut |text| queue(text), &mut faults);
        }
    }
    hops("", file, &mut faults);
    if let Some(link) = file.get("link") {
        match &link.value {
            Value::List(links) => {
                for (place, one) in links.iter().enumerate() {
                    hops(&format!("link.{place}."), one, &mut faults);
                }
            }
            _ => hops("link.", link, &mut faults),
        }
    }
    faults
}

/// Checks the hops of a link that stands at `path`.
fn hops(path: &str, link: &Written, faults: &mut Vec<Fault>) {
    for way in ["up", "down"] {
        let Some(Value::List(hops)) = link.get(way).map(|hops| &hops.value) else { continue };
        for (place, hop) in hops.iter().enumerate() {
            if let Some(words) = hop.get("queue") {
                let at = format!("{path}{way}.{place}.queue");
                texts(&at, words, hop.line, &mut |text| queue(text), faults);
            }
            if let Some(words) = hop.get("marker") {
                let at = format!("{path}{way}.{place}.marker");
                texts(&at, words, hop.line, &mut |text| marker(text), faults);
            }
        }
    }
}

/// Checks a text, or each of a list, that stands at `path`.
fn texts(
    path: &str,
    words: &Written,
    around: Option<usize>,
    check: &mut dyn FnMut(&str) -> Option<String>,
    faults: &mut Vec<Fault>,
) {
    let line = words.line.or(around);
    match &words.value {
        Value::Text(text) => {
            let says = check(text);
            faults.extend(says.map(|says| Fault { path: path.to_owned(), line, says }));
        }
        Value::List(parts) => {
            for (place, part) in parts.iter().enumerate() {
                texts(&format!("{path}.{place}"), part, line, check, faults);
            }
        }
        _ => {}
    }
}

fn queue(text: &str) -> Option<String> {
    if text == DEFAULT_QUEUE {
        return None;
    }
    QueueSpec::parse(text).err().map(|error| error.to_string())
}

fn marker(text: &str) -> Option<String> {
    MarkerSpec::parse(text).err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::file::{Telling, parse};

    #[test]
    fn words_that_no_discipline_has_are_told_with_their_lines() {
        let text = "test = 'rrul'\nqueue = [\n  'fq_codel limti 5',\n  'default',\n  'kodel',\n]\n\
                    queue_up = 'pfifo limit 7'\n[[link.up]]\nname = 'a'\nqueue = 'red limit'\n\
                    [[link.up]]\nmarker = 'none_such'\n";
        let faults = word_faults(&parse(text).unwrap());
        let told: Vec<_> =
            faults.iter().map(|fault| (fault.path.as_str(), fault.line.unwrap())).collect();
        assert_eq!(
            told,
            [("queue.0", 3), ("queue.2", 5), ("link.up.0.queue", 10), ("link.up.1.marker", 12)]
        );
        let said = Telling { place: "s.toml", names: &[] }.sentence(faults);
        assert!(said.contains("line 3: queue.0: ") && said.contains("`limti`"), "{said}");
        assert!(said.contains("line 5: queue.2: unknown queue discipline `kodel`"), "{said}");
    }
}
