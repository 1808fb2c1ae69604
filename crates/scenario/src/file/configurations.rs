//! The configurations that a scenario compares: every link with every shaper, queue and congestion control.

use std::collections::BTreeSet;

use weir_core::{Direction, Duration};

use crate::file::beside;
use crate::file::catalogue::{Files, chosen_link, chosen_test};
use crate::file::field::blank;
use crate::file::link::{HopSpec, LinkSpec};
use crate::file::plain::OneOrMore;
use crate::file::plain::Word;
use crate::file::shaper::ShaperChoice;
use crate::file::spec::{DEFAULT_QUEUE, LinkChoice, SamplingSpec, ScenarioSpec};
use crate::file::test::{FlowSpec, TestSpec};
use crate::file::without_effect::{Queues, Shaped, takes_cc};

/// A configuration, of which a scenario compares several.
pub(crate) struct Configuration<'s> {
    /// The link.
    pub link: &'s LinkSpec,
    /// The shaper as written.
    pub shaper: &'s ShaperChoice,
    /// The queue specs.
    pub queues: Queues<'s>,
    /// The user's words for the shaper, if there is one, and for the queues of both directions.
    pub label: String,
    /// Congestion control of all loads, if one was named to be compared.
    pub cc: Option<&'s str>,
}

impl Configuration<'_> {
    /// The scenario of which this is the only configuration, without what a record has of its own: test, link and the
    /// user's words about it.
    pub(crate) fn alone(&self, spec: &ScenarioSpec) -> ScenarioSpec {
        let Queues { both, own: [up, down] } = self.queues;
        let one = |queue: &str| OneOrMore::One(queue.to_owned());
        let mut alone = ScenarioSpec {
            shaper: OneOrMore::One(self.shaper.clone()),
            queue: one(both),
            queue_up: up.map(one),
            queue_down: down.map(one),
            cc: self.cc.map(|cc| OneOrMore::One(Word(cc.to_owned()))),
            ..spec.clone()
        };
        for key in ["name", "test", "link", "beside", "seed", "repeat", "assert", "note", "tags"] {
            alone.keys.remove(key);
        }
        alone.drop_defaults();
        alone
    }
}

/// The links of a scenario, each once.
pub(crate) fn links(spec: &ScenarioSpec, files: &impl Files) -> Result<Vec<LinkSpec>, String> {
    once(spec.link.all()).into_iter().map(|choice| chosen_link(choice, files)).collect()
}

/// All configurations over these links, in the order of the product: what is named last changes first.
pub(crate) fn configurations<'s>(
    spec: &'s ScenarioSpec,
    test: &TestSpec,
    links: &'s [LinkSpec],
) -> Result<Vec<Configuration<'s>>, String> {
    let [ups, downs] = Direction::ALL.map(|direction| {
        let all = spec.queue_of(direction).map_or(&[][..], OneOrMore::all);
        or_none(once(all).into_iter().map(String::as_str).collect())
    });
    let ccs = spec.cc.as_ref().filter(|_| takes_cc(spec, test)).map_or(&[][..], OneOrMore::all);
    let ccs = or_none(once(ccs).into_iter().map(|Word(cc)| cc.as_str()).collect());
    let own = ups[0].is_some() && downs[0].is_some();
    // Where both directions have their own there is no direction left for the others.
    let queues: Vec<&str> = if own {
        vec![DEFAULT_QUEUE]
    } else {
        once(spec.queue.all()).into_iter().map(String::as_str).collect()
    };
    let shapers = named_apart(once(spec.shaper.all()));
    let parts = [links.len(), shapers.len(), queues.len(), ups.len(), downs.len(), ccs.len()];
    let count = parts.iter().fold(1, |count: usize, part| count.saturating_mul(*part));
    if count > MAX_CONFIGURATIONS {
        return Err(format!(
            "the scenario compares {count} configurations: write {MAX_CONFIGURATIONS} or fewer"
        ));
    }
    let takers = Shaped::all(shapers.iter().map(|(shaper, _)| *shaper))?;
    let mut found = Vec::with_capacity(count);
    for link in links {
        for ((shaper, name), taker) in shapers.iter().zip(&takers) {
            // Queues that go nowhere here, but into another shaper, are the link's own here, which counts once.
            let mut labels = BTreeSet::new();
            for written in product(&queues, &ups, &downs) {
                let taken = taker.taken(link, written)?;
                let label = label(name.as_deref(), taken);
                if !labels.insert(label.clone()) {
                    continue;
                }
                let with =
                    |&cc| Configuration { link, shaper, queues: taken, label: label.clone(), cc };
                found.extend(ccs.iter().map(with));
            }
        }
    }
    Ok(found)
}

/// Each queue with each of both directions, in the order of the product.
fn product<'q>(
    both: &[&'q str],
    ups: &[Option<&'q str>],
    downs: &[Option<&'q str>],
) -> Vec<Queues<'q>> {
    let with = |queue, up| downs.iter().map(move |&down| Queues { both: queue, own: [up, down] });
    both.iter().flat_map(|&queue| ups.iter().flat_map(move |&up| with(queue, up))).collect()
}

/// Sentences about what a scenario compares in vain: what is given more than once, which counts once, what nothing
/// takes, and pings that keep step with a line.
///
/// # Errors
/// If its tests or links cannot be had.
pub fn remarks(spec: &ScenarioSpec, files: &impl Files) -> Result<Vec<String>, String> {
    let in_step = pings_in_step(spec, files)?;
    let untaken = untaken_settings(spec, files)?;
    Ok([given_again(spec), untaken_ccs(spec, files)?, untaken, untaken_queues(spec), in_step]
        .concat())
}

/// A sentence for each line with grants that meets all pings of a train at the same moment of its intervals.
fn pings_in_step(spec: &ScenarioSpec, files: &impl Files) -> Result<Vec<String>, String> {
    let links = links(spec, files)?;
    let hops =
        links.iter().flat_map(|link| link.up.iter().chain(&link.down).map(move |hop| (link, hop)));
    let lines: Vec<_> =
        hops.filter_map(|(link, hop)| Some((link, hop, hop.grants.as_ref()?.interval.0))).collect();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let mut test = chosen_test(&spec.test, files)?;
    beside::join(&mut test, &spec.beside.0, files)?;
    let usual = spec.sampling.ping.0;
    let periods: BTreeSet<(u64, bool)> = test
        .probes
        .iter()
        .map(|probe| probe.period.map_or((usual, false), |own| (own.0, true)))
        .collect();
    let says = |(link, hop, interval): &(&LinkSpec, &HopSpec, u64), period: u64, is_own: bool| {
        // A part of the interval that comes back to the same moment after a hundred pings.
        let other = period + interval / 100 * 37;
        let [every, step, other] = [period, *interval, other].map(Duration::from_nanos);
        let remedy =
            if is_own { format!("`period = \"{other}\"`") } else { format!("`--ping {other}`") };
        format!(
            "link `{}`: pings every {every} meet the intervals of {step} of hop `{}` always at the same moment, which \
             the seed draws, so that single runs differ by up to {step}: {remedy} meets all moments",
            link.name.0, hop.name.0
        )
    };
    let met = lines.iter().flat_map(|line| {
        let in_step = periods.iter().filter(|(period, _)| period % line.2 == 0);
        in_step.map(move |&(period, is_own)| says(line, period, is_own))
    });
    Ok(met.collect())
}

/// A sentence for each congestion control, if no load takes any.
fn untaken_ccs(spec: &ScenarioSpec, files: &impl Files) -> Result<Vec<String>, String> {
    let Some(ccs) = &spec.cc else { return Ok(Vec::new()) };
    let mut test = chosen_test(&spec.test, files)?;
    beside::join(&mut test, &spec.beside.0, files)?;
    if takes_cc(spec, &test) {
        return Ok(Vec::new());
    }
    let name = &test.name.0;
    let says = |Word(cc): &Word| format!("cc `{cc}`: no load of test `{name}` takes it");
    Ok(once(ccs.all()).into_iter().map(says).collect())
}

/// Sentences on what is said of TCP or of pings, if no load has TCP, and no train of pings has the usual period.
fn untaken_settings(spec: &ScenarioSpec, files: &impl Files) -> Result<Vec<String>, String> {
    let usual: SamplingSpec = blank();
    let (says_tcp, ping) = (spec.tcp != blank(), spec.sampling.ping);
    if !says_tcp && ping == usual.ping {
        return Ok(Vec::new());
    }
    let mut test = chosen_test(&spec.test, files)?;
    beside::join(&mut test, &spec.beside.0, files)?;
    let name = &test.name.0;
    let has_methods = !test.methods.is_empty() || !spec.methods.is_empty();
    let mut says = Vec::new();
    if says_tcp && !has_methods && !test.flows.iter().any(FlowSpec::uses_tcp) {
        says.push(format!("options of TCP: no load of test `{name}` takes them"));
    }
    if ping != usual.ping && !has_methods && test.probes.iter().all(|probe| probe.period.is_some())
    {
        let every = Duration::from_nanos(ping.0);
        says.push(format!(
            "pings every {every}: no train of pings of test `{name}` takes that period"
        ));
    }
    Ok(says)
}

/// A sentence for each queue of both directions, if each of these has its own.
fn untaken_queues(spec: &ScenarioSpec) -> Vec<String> {
    if spec.queue_up.is_none() || spec.queue_down.is_none() {
        return Vec::new();
    }
    let written = once(spec.queue.all()).into_iter().filter(|queue| *queue != DEFAULT_QUEUE);
    let says = |queue| {
        format!("queue `{queue}`: both directions have their own, in `queue_up` and `queue_down`")
    };
    written.map(says).collect()
}

/// A sentence for each configuration that is given more than once.
fn given_again(spec: &ScenarioSpec) -> Vec<String> {
    let several = |written: &Option<OneOrMore<String>>| {
        written.as_ref().map_or(Vec::new(), |all| all.all().to_vec())
    };
    let ccs: Vec<Word> = spec.cc.iter().flat_map(OneOrMore::all).cloned().collect();
    [
        again("link", spec.link.all(), LinkChoice::title),
        again("queue", spec.queue.all(), String::clone),
        again("queue_up", &several(&spec.queue_up), String::clone),
        again("queue_down", &several(&spec.queue_down), String::clone),
        again("shaper", spec.shaper.all(), ShaperChoice::name),
        again("cc", &ccs, |Word(cc)| cc.clone()),
    ]
    .concat()
}

/// A sentence for each of `written` that is given more than once.
fn again<T: Given>(key: &str, written: &[T], name: impl Fn(&T) -> String) -> Vec<String> {
    let count = |one: &T| written.iter().filter(|other| is_same(one, other)).count();
    let several = once(written).into_iter().filter(|one| count(one) > 1);
    several
        .map(|one| {
            let name = spaced(&name(one));
            format!("{key} `{name}` is given {} times: it counts once", count(one))
        })
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
        if !found.iter().any(|other| is_same(one, other)) {
            found.push(one);
        }
    }
    found
}

fn is_same<T: Given>(one: &T, other: &T) -> bool {
    match (one.text(), other.text()) {
        (Some(one), Some(other)) => spaced(one) == spaced(other),
        _ => one == other,
    }
}

/// Shapers that differ, each with a name that no other has; `None` for no shaper.
///
/// Where the short name does not tell them apart, what was written of each does.
fn named_apart(shapers: Vec<&ShaperChoice>) -> Vec<(&ShaperChoice, Option<String>)> {
    let count = |names: &[String], name| names.iter().filter(|other| *other == name).count();
    let short: Vec<String> = shapers.iter().map(|shaper| shaper.name()).collect();
    let long: Vec<String> = shapers
        .iter()
        .zip(&short)
        .map(|(shaper, name)| match shaper {
            ShaperChoice::Given(spec) if count(&short, name) > 1 => spec.long_name(),
            _ => name.clone(),
        })
        .collect();
    let named = |place: usize, shaper| {
        let name = &long[place];
        let before = count(&long[..place], name);
        let number = if before == 0 { String::new() } else { format!(" ({})", before + 1) };
        let is_none = *name == crate::file::shaper::NO_SHAPER;
        (shaper, (!is_none).then(|| format!("{name}{number}")))
    };
    shapers.into_iter().enumerate().map(|(place, shaper)| named(place, shaper)).collect()
}

/// `text` with one space between words, and none around it.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn or_none(all: Vec<&str>) -> Vec<Option<&str>> {
    if all.is_empty() { vec![None] } else { all.into_iter().map(Some).collect() }
}

fn label(shaper: Option<&str>, queues: Queues<'_>) -> String {
    let [up, down] = queues.of_directions();
    let own = match queues.own {
        [None, None] => queues.both.to_owned(),
        _ => format!("up {up}, down {down}"),
    };
    match shaper {
        None => own,
        Some(name) if own == DEFAULT_QUEUE => format!("shaper {name}"),
        Some(name) => format!("shaper {name}, {own}"),
    }
}

/// Configurations of a scenario: each with each is soon more than any memory holds.
const MAX_CONFIGURATIONS: usize = 10_000;
