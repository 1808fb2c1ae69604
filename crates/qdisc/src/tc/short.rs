//! The short form: a discipline, its parameters, and what sits beneath it.

use super::filter::Filter;
use super::params::{Param, known, needs_value, unknown};
use super::{ClassSetUp, Handle, SetUp, SetUpError, find};

/// Reads the short form, such as `htb rate 95% fq_codel ecn`.
pub(super) fn parse(text: &str) -> Result<SetUp, SetUpError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    discipline(&words)
}

fn discipline(words: &[&str]) -> Result<SetUp, SetUpError> {
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
            (None, None) if find(word).is_ok() => {
                beneath = Some(discipline(rest)?);
                break;
            }
            (None, None) => {
                let table: Vec<&Param> = kind.params.iter().chain(kind.class_params).collect();
                return Err(unknown_in(kind.name, &table, word));
            }
        };
        let count = param.kind.take(behind).ok_or_else(|| needs_value(name, word))?;
        into.extend(rest[..=count].iter().copied().map(str::to_owned));
        rest = &behind[count..];
    }
    assemble(kind, own, of_class, beneath)
}

/// A discipline with classes gets one class, `1:1`, that takes everything.
fn assemble(
    kind: &'static crate::Discipline,
    mut own: Vec<String>,
    of_class: Vec<String>,
    beneath: Option<SetUp>,
) -> Result<SetUp, SetUpError> {
    let handle = Some(Handle { major: 1, minor: 0 });
    let mut set_up = SetUp {
        discipline: kind,
        handle,
        words: Vec::new(),
        changes: Vec::new(),
        classes: Vec::new(),
        filters: Vec::new(),
        egress: Vec::new(),
        child: None,
    };
    if kind.class_params.is_empty() {
        if beneath.is_some() && !kind.takes_child && !kind.has_bands() {
            return Err(SetUpError::new(format!("{}: nothing can sit beneath it", kind.name)));
        }
        set_up.child = beneath.map(Box::new);
    } else {
        let id = Handle { major: 1, minor: 1 };
        if answering(kind.params, "default").is_none() {
            set_up.filters.push(Filter { priority: 1, matches: Vec::new(), flow: id });
        } else if !own.iter().any(|word| word == "default") {
            own.extend(["default".to_owned(), "1".to_owned()]);
        }
        set_up.classes.push(ClassSetUp {
            id,
            parent: Handle { major: 1, minor: 0 },
            words: of_class,
            leaf: beneath.map(Box::new),
        });
    }
    set_up.words = own;
    Ok(set_up)
}

fn answering(table: &'static [Param], word: &str) -> Option<&'static Param> {
    table.iter().find(|param| param.answers_to(word))
}

fn unknown_in(owner: &str, table: &[&Param], word: &str) -> SetUpError {
    if table.is_empty() {
        return unknown(owner, &[], word);
    }
    SetUpError::new(format!(
        "{owner}: `{word}` is neither a parameter (known: {}) nor a queue discipline",
        known(table.iter().copied())
    ))
}
