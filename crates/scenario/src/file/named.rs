//! Files that a file names: a test or a link in a scenario, a recording in a link.
//!
//! Their names are made paths as the text is read, where it is known which file says them ([`Files::named_in`]): whoever
//! looks them up later knows the working folder alone.

use crate::file::catalogue::Files;
use crate::file::fault::Fault;
use crate::file::written::{Value, Written};

/// Makes paths of the names that stand in `file`; what is wrong with one is a fault of its own.
///
/// Names of shipped tests and links stay as they are.
pub fn name_files(written: &mut Written, file: &str, files: &impl Files) -> Vec<Fault> {
    let mut faults = Vec::new();
    in_table(written, "", &mut |key, path, one| {
        let Value::Text(name) = &mut one.value else { return };
        if key != TRACE && !name.ends_with(".toml") {
            return;
        }
        match files.named_in(file, name) {
            Ok(found) => *name = found,
            Err(says) => faults.push(Fault { path: path.to_owned(), line: one.line, says }),
        }
    });
    faults
}

/// What is done with a value that may name a file: its key, its place, and itself.
type Visit<'v> = &'v mut dyn FnMut(&str, &str, &mut Written);

/// Visits each value that may name a file in a table, and in the tables within it.
fn in_table(written: &mut Written, path: &str, visit: Visit<'_>) {
    let Value::Table(entries) = &mut written.value else { return };
    for (key, one) in entries {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match &mut one.value {
            Value::List(parts) => {
                for (number, part) in parts.iter_mut().enumerate() {
                    in_value(part, key, &format!("{path}.{number}"), visit);
                }
            }
            _ => in_value(one, key, &path, visit),
        }
    }
}

fn in_value(written: &mut Written, key: &str, path: &str, visit: Visit<'_>) {
    if NAMING.contains(&key) && matches!(written.value, Value::Text(_)) {
        visit(key, path, written);
    } else {
        in_table(written, path, visit);
    }
}

const TRACE: &str = "trace";

/// The keys of scenarios and links that name files; no other key is called so.
const NAMING: [&str; 3] = ["test", "link", TRACE];
