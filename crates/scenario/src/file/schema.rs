//! The JSON Schema of scenario files, from the types that read them.

use std::sync::LazyLock;

use crate::file::fault::Telling;
use crate::file::field::{Definition, Definitions, Field};
use crate::file::spec::{NoteSpec, ScenarioSpec};
use crate::file::written::{Value, Written};

/// The schema: a scenario, and by name in `$defs` all that stands in one.
#[must_use]
pub fn schema() -> Written {
    let definitions = DEFINITIONS.iter().map(|known| (known.name.to_owned(), known.schema.clone()));
    Written::of(Value::Table(vec![
        ("$schema".to_owned(), DIALECT.into()),
        ("title".to_owned(), "Scenario of Weir".into()),
        ("$ref".to_owned(), "#/$defs/ScenarioSpec".into()),
        ("$defs".to_owned(), Written::of(Value::Table(definitions.collect()))),
    ]))
}

/// The schema of a kind of file that is no scenario; `title` says which.
#[must_use]
pub fn schema_of_file<T: Field>(title: &str) -> Written {
    let mut definitions = Vec::new();
    T::schema(&mut definitions);
    let mut file = vec![("$schema".to_owned(), DIALECT.into()), ("title".to_owned(), title.into())];
    // Those that it needs stand before it.
    if let Some(Value::Table(parts)) = definitions.pop().map(|whole| whole.schema.value) {
        file.extend(parts);
    }
    let others = definitions.into_iter().map(|known| (known.name.to_owned(), known.schema));
    file.push(("$defs".to_owned(), Written::of(Value::Table(others.collect()))));
    Written::of(Value::Table(file))
}

/// Reads a specification of that kind, such as `TestSpec`: the keys that were there, in base units.
/// `telling` says what a message calls it.
///
/// # Errors
/// All that is wrong with it, in one sentence.
pub fn read_spec(kind: &str, written: &Written, telling: Telling<'_>) -> Result<Written, String> {
    (definition(kind)?.read)(written).map_err(|faults| telling.sentence(faults))
}

/// Reads a quantity of that kind, such as `LineRate`, in base units.
///
/// # Errors
/// What is wrong with it, without its place.
pub fn read_quantity(kind: &str, written: &Written) -> Result<Written, String> {
    let faults = match (definition(kind)?.read)(written) {
        Ok(found) => return Ok(found),
        Err(faults) => faults,
    };
    Err(faults.into_iter().map(|fault| fault.says).collect::<Vec<_>>().join("; "))
}

fn definition(kind: &str) -> Result<&'static Definition, String> {
    let known = DEFINITIONS.iter().find(|known| known.name == kind);
    known.ok_or_else(|| format!("nothing in a scenario is called `{kind}`"))
}

/// All types with a name that can stand in a scenario.
static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    let mut definitions = Vec::new();
    ScenarioSpec::schema(&mut definitions);
    NoteSpec::schema(&mut definitions);
    definitions
});

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
