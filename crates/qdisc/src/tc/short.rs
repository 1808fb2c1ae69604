//! The short form: a discipline, its parameters, and what sits beneath it.

use std::sync::Arc;

use super::filter::Filter;
use super::kinds::read_minor;
use super::params::{Param, first_words, known, needs_value, unknown};
use super::{
    ClassSpec, Handle, QueueSpec, SizeTable, SpecError, did_you_mean, find, limits, size_table,
};
use crate::registry;

/// Reads the short form, such as `htb rate 95% fq_codel ecn`.
pub(super) fn parse(text: &str) -> Result<QueueSpec, SpecError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(behind) = words.strip_prefix(&["stab"]) else { return discipline(&words, 1) };
    let (own, rest) = behind.split_at(size_table::words_of(behind));
    match rest.first() {
        Some(name) if registry::find(name).is_some() => {
            let size_table = Some(SizeTable::read(own)?);
            Ok(QueueSpec { size_table, ..discipline(rest, 1)? })
        }
        other => Err(size_table::name_missing(other.copied())),
    }
}

/// Reads a discipline on `level`, the root's being 1, and what sits beneath it.
fn discipline(words: &[&str], level: usize) -> Result<QueueSpec, SpecError> {
    limits::check_level(level)?;
    let (name, words) = words.split_first().expect("the caller saw a first word");
    let kind = find(name)?;
    let mut own = Vec::new();
    let mut of_class = Vec::new();
    let mut rest = words;
    let mut beneath = None;
    while let Some((word, behind)) = rest.split_first() {
        let (param, into) = match (answering(kind.params, word), answering(kind.class_params, word))
        {
            (Some(param), _) => (param, &mut own),
            (None, Some(param)) => (param, &mut of_class),
            (None, None) if registry::find(word).is_some() => {
                beneath = Some(discipline(rest, level + 1)?);
                break;
            }
            (None, None) if *word == "stab" => return Err(size_table::only_at_the_root()),
            (None, None) => {
                let table: Vec<&Param> = kind.params.iter().chain(kind.class_params).collect();
                return Err(unknown_in(kind.name, &table, word));
            }
        };
        let count = param.kind.take(behind).ok_or_else(|| needs_value(name, word))?;
        if !kind.class_params.is_empty() {
            check_one_class(kind.name, param, &behind[..count])?;
        }
        into.extend(rest[..=count].iter().copied().map(str::to_owned));
        rest = &behind[count..];
    }
    assemble(kind, own, of_class, beneath)
}

/// Refuses what speaks of packets outside the one class that there is, which takes everything: written from
/// habit, `default 30` would have them all go past the class, or be dropped.
fn check_one_class(name: &str, param: &Param, value: &[&str]) -> Result<(), SpecError> {
    let value = value.join(" ");
    let meant = match param.name {
        // What is no number is told where values are read.
        "default" => read_minor(&value).is_none_or(|minor| minor == THE_CLASS.minor),
        "direct_qlen" => false,
        _ => true,
    };
    if meant {
        return Ok(());
    }
    let allowed = format!(
        "the short form has one class, {:x}, which takes everything: leave `{}` out, or write every \
         class with `class add`",
        THE_CLASS.minor, param.name
    );
    Err(SpecError::bad(name, param.name, &value, &allowed))
}

/// A discipline with classes gets one class, `1:1`, that takes everything.
fn assemble(
    kind: &'static crate::Discipline,
    mut own: Vec<String>,
    of_class: Vec<String>,
    beneath: Option<QueueSpec>,
) -> Result<QueueSpec, SpecError> {
    let handle = Some(Handle { major: 1, minor: 0 });
    let mut spec = QueueSpec {
        discipline: kind,
        handle,
        words: Vec::new(),
        changes: Vec::new(),
        classes: Vec::new(),
        filters: Vec::new(),
        egress: Arc::default(),
        writes: Arc::default(),
        size_table: None,
        child: None,
    };
    if kind.class_params.is_empty() {
        if beneath.is_some() && !kind.takes_child && !kind.has_bands() {
            return Err(SpecError::new(format!("{}: nothing can sit beneath it", kind.name)));
        }
        spec.child = beneath.map(Box::new);
    } else {
        let id = THE_CLASS;
        if answering(kind.params, "default").is_none() {
            spec.filters.push(Filter::to(id));
        } else if !own.iter().any(|word| word == "default") {
            own.extend(["default".to_owned(), format!("{:x}", id.minor)]);
        }
        spec.classes.push(ClassSpec {
            id,
            parent: Handle { major: 1, minor: 0 },
            words: of_class,
            leaf: beneath.map(Box::new),
        });
    }
    spec.words = own;
    Ok(spec)
}

fn answering(table: &'static [Param], word: &str) -> Option<&'static Param> {
    table.iter().find(|param| param.answers_to(word))
}

fn unknown_in(owner: &str, table: &[&Param], word: &str) -> SpecError {
    if table.is_empty() {
        return unknown(owner, &[], word);
    }
    let disciplines = registry::DISCIPLINES.iter().map(|known| known.name);
    let names = first_words(table.iter().copied()).chain(disciplines);
    let near = did_you_mean(word, names)
        .unwrap_or_else(|| format!(" (known parameters: {})", known(table.iter().copied())));
    SpecError::new(format!("{owner}: `{word}` is neither a parameter nor a queue discipline{near}"))
}

/// The class of a discipline in the short form.
const THE_CLASS: Handle = Handle { major: 1, minor: 1 };
