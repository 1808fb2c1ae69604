//! The configurations that a scenario compares: every link with every shaper, queue and congestion control.

use crate::file::catalogue::{Files, chosen_link};
use crate::file::link::LinkSpec;
use crate::file::plain::OneOrMore;
use crate::file::plain::Word;
use crate::file::shaper::ShaperChoice;
use crate::file::spec::{DEFAULT_QUEUE, LinkChoice, ScenarioSpec};

/// A configuration, of which a scenario compares several.
pub(crate) struct Configuration<'s> {
    /// The link.
    pub link: &'s LinkSpec,
    /// The shaper as written.
    pub shaper: &'s ShaperChoice,
    /// The queue specs, upwards and downwards.
    pub queues: [&'s str; 2],
    /// The user's words for the shaper, if there is one, and for the queues of both directions.
    pub label: String,
    /// Congestion control of all loads, if one was named to be compared.
    pub cc: Option<&'s str>,
}

/// The links of a scenario, each once.
pub(crate) fn links(spec: &ScenarioSpec, files: &impl Files) -> Result<Vec<LinkSpec>, String> {
    once(spec.link.all()).into_iter().map(|choice| chosen_link(choice, files)).collect()
}

/// All configurations over these links, in the order of the product: what is named last changes first.
pub(crate) fn configurations<'s>(
    spec: &'s ScenarioSpec,
    links: &'s [LinkSpec],
) -> Result<Vec<Configuration<'s>>, String> {
    let [ups, downs] = [&spec.queue_up, &spec.queue_down].map(|queues| {
        let all = queues.as_ref().map_or(&[][..], OneOrMore::all);
        or_none(once(all).into_iter().map(String::as_str).collect())
    });
    let ccs = spec.cc.as_ref().map_or(&[][..], OneOrMore::all);
    let ccs = or_none(once(ccs).into_iter().map(|Word(cc)| cc.as_str()).collect());
    let own = ups[0].is_some() && downs[0].is_some();
    // Where both directions have their own there is no direction left for the others.
    let queues: Vec<&str> = if own {
        vec![DEFAULT_QUEUE]
    } else {
        once(&spec.queue.0).into_iter().map(String::as_str).collect()
    };
    let shapers = once(&spec.shaper.0);
    let parts = [links.len(), shapers.len(), queues.len(), ups.len(), downs.len(), ccs.len()];
    let count = parts.iter().fold(1, |count: usize, part| count.saturating_mul(*part));
    if count > MAX_CONFIGURATIONS {
        return Err(format!(
            "the scenario compares {count} configurations: write {MAX_CONFIGURATIONS} or fewer"
        ));
    }
    let mut found = Vec::with_capacity(count);
    for link in links {
        for &shaper in &shapers {
            for &queue in &queues {
                for &up in &ups {
                    for &down in &downs {
                        let label = label(shaper, queue, up, down);
                        let both = [up.unwrap_or(queue), down.unwrap_or(queue)];
                        let with = |&cc| Configuration {
                            link,
                            shaper,
                            queues: both,
                            label: label.clone(),
                            cc,
                        };
                        found.extend(ccs.iter().map(with));
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Sentences about configurations that are given more than once. Each counts once.
#[must_use]
pub fn given_again(spec: &ScenarioSpec) -> Vec<String> {
    let several = |written: &Option<OneOrMore<String>>| {
        written.as_ref().map_or(Vec::new(), |all| all.all().to_vec())
    };
    let words = [
        ("link", spec.link.all().iter().map(LinkChoice::title).collect()),
        ("queue", spec.queue.0.clone()),
        ("queue_up", several(&spec.queue_up)),
        ("queue_down", several(&spec.queue_down)),
        ("shaper", spec.shaper.0.iter().map(ShaperChoice::name).collect()),
        ("cc", spec.cc.iter().flat_map(OneOrMore::all).map(|Word(cc)| cc.clone()).collect()),
    ];
    words.iter().flat_map(|(key, words)| again(key, words)).collect()
}

fn again(key: &str, words: &[String]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(|word| spaced(word)).collect();
    let count = |word: &String| words.iter().filter(|other| *other == word).count();
    let first = |place: usize| !words[..place].contains(&words[place]);
    let several = words.iter().enumerate().filter(|(place, word)| first(*place) && count(word) > 1);
    several
        .map(|(_, word)| format!("{key} `{word}` is given {} times: it counts once", count(word)))
        .collect()
}

/// A value that can be given twice: as a text with other spaces, or as the same table.
trait Given: PartialEq {
    /// The text by which it is the same as another, if it is a text.
    fn text(&self) -> Option<&str>;
}

impl Given for String {
    fn text(&self) -> Option<&str> {
        Some(self)
    }
}

impl Given for Word {
    fn text(&self) -> Option<&str> {
        Some(&self.0)
    }
}

impl<T: PartialEq> Given for crate::file::plain::Named<String, T> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Given(_) => None,
        }
    }
}

impl LinkChoice {
    /// Name in messages.
    fn title(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Given(link) => link.name.0.clone(),
        }
    }
}

/// Each value of `written` once, where it stood first.
fn once<T: Given>(written: &[T]) -> Vec<&T> {
    let mut found: Vec<&T> = Vec::new();
    for one in written {
        let same = |other: &&T| match (one.text(), other.text()) {
            (Some(one), Some(other)) => spaced(one) == spaced(other),
            _ => one == *other,
        };
        if !found.iter().any(same) {
            found.push(one);
        }
    }
    found
}

/// `text` with one space between words, and none around it.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn or_none(all: Vec<&str>) -> Vec<Option<&str>> {
    if all.is_empty() { vec![None] } else { all.into_iter().map(Some).collect() }
}

fn label(shaper: &ShaperChoice, queue: &str, up: Option<&str>, down: Option<&str>) -> String {
    let own = match (up, down) {
        (None, None) => queue.to_owned(),
        _ => format!("up {}, down {}", up.unwrap_or(queue), down.unwrap_or(queue)),
    };
    match shaper {
        ShaperChoice::Name(name) if name == crate::file::shaper::NO_SHAPER => own,
        _ if own == DEFAULT_QUEUE => format!("shaper {}", shaper.name()),
        _ => format!("shaper {}, {own}", shaper.name()),
    }
}

/// Configurations of a scenario: each with each is soon more than any memory holds.
const MAX_CONFIGURATIONS: usize = 10_000;
