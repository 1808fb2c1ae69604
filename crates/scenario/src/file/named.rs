//! Files that a file names: a test or a link in a scenario, a recording in a link.
//!
//! Their names are made paths as the text is read, where it is known which file says them ([`Files::named_in`]): whoever
//! looks them up later knows the working folder alone.

use std::io;
use std::path::{Path, PathBuf};

use weir_core::error_in_words;

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

/// The path of what `file` calls `name`: beside that file, or if nothing lies there from the working folder `here`.
///
/// It stays as it is written where both are the same file: `look` tells the device and the inode of a path.
///
/// # Errors
/// If nothing lies at either place, or a folder may not be searched, in one sentence.
pub fn find_named(
    file: &Path,
    name: &str,
    here: Option<&Path>,
    look: &dyn Fn(&Path) -> io::Result<(u64, u64)>,
) -> Result<PathBuf, String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let folder = folder.strip_prefix(".").unwrap_or(folder);
    let (beside, from_here) = (folder.join(name), PathBuf::from(name));
    if beside == from_here {
        return Ok(from_here);
    }
    let beside: PathBuf = beside.components().collect();
    // A name that no file can have is not there either.
    let found = |path: &Path| match look(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(format!(
            "`{name}` cannot be looked for in `{}`: {}",
            path.parent()
                .filter(|it| !it.as_os_str().is_empty())
                .unwrap_or(Path::new("."))
                .display(),
            error_in_words(&error)
        )),
        found => Ok(found.ok()),
    };
    match (found(&beside)?, found(&from_here)) {
        (Some(one), Ok(Some(other))) if one == other => Ok(from_here),
        (Some(_), _) => Ok(beside),
        (None, Err(why)) => Err(why),
        (None, Ok(Some(_))) => Ok(from_here),
        (None, Ok(None)) => Err(nowhere(name, &beside, here)),
    }
}

/// What is said of a file that is not at `beside`, and not in the working folder.
fn nowhere(name: &str, beside: &Path, here: Option<&Path>) -> String {
    let folder = beside.parent().unwrap_or(beside).display();
    let here = here.map_or_else(String::new, |it| format!(" `{}`", it.display()));
    format!(
        "`{name}` lies neither in `{folder}`, beside what names it, nor in the working folder{here}"
    )
}

const TRACE: &str = "trace";

/// The keys of scenarios and links that name files; no other key is called so.
const NAMING: [&str; 3] = ["test", "link", TRACE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_may_not_be_searched_is_told_and_no_file_in_it_is_missing() {
        let refuse = |closed: &'static str, found: Option<&'static str>| {
            move |path: &Path| match path {
                path if path.starts_with(closed) => Err(io::Error::from_raw_os_error(13)),
                path if found.is_some_and(|found| path == Path::new(found)) => Ok((1, 2)),
                _ => Err(io::Error::from_raw_os_error(2)),
            }
        };
        let said = |name, look: &dyn Fn(&Path) -> io::Result<(u64, u64)>| {
            find_named(Path::new("./mine/one.toml"), name, None, look)
        };
        let closed = "`line.toml` cannot be looked for in `mine`: permission denied";
        assert_eq!(said("line.toml", &refuse("mine", None)), Err(closed.to_owned()));
        // Whether that in the working folder is meant cannot be known.
        assert_eq!(said("line.toml", &refuse("mine", Some("line.toml"))), Err(closed.to_owned()));
        let here = "`a/line.toml` cannot be looked for in `a`: permission denied";
        assert_eq!(said("a/line.toml", &refuse("a", None)), Err(here.to_owned()));
        let beside = PathBuf::from("mine/a/line.toml");
        assert_eq!(said("a/line.toml", &refuse("a", Some("mine/a/line.toml"))), Ok(beside));
    }

    #[test]
    fn of_two_names_of_one_file_that_which_is_written_stays() {
        let same = |_: &Path| Ok((1, 2));
        let named = |file: &str, name| find_named(Path::new(file), name, None, &same);
        assert_eq!(named("mine/one.toml", "line.toml"), Ok("line.toml".into()));
        assert_eq!(named("one.toml", "line.toml"), Ok("line.toml".into()));
        assert_eq!(named("./one.toml", "line.toml"), Ok("line.toml".into()));
        assert_eq!(named("mine/one.toml", "/line.toml"), Ok("/line.toml".into()));
        let others = |path: &Path| Ok((1, u64::from(path.starts_with("mine"))));
        let apart = find_named(Path::new("mine/one.toml"), "./line.toml", None, &others);
        assert_eq!(apart, Ok("mine/line.toml".into()));
    }

    #[test]
    fn what_lies_nowhere_is_told_with_both_places() {
        let none = |_: &Path| Err(io::Error::from_raw_os_error(2));
        let said = |here| find_named(Path::new("mine/one.toml"), "gone", here, &none).unwrap_err();
        let neither =
            "`gone` lies neither in `mine`, beside what names it, nor in the working folder";
        assert_eq!(said(Some(Path::new("/work"))), format!("{neither} `/work`"));
        assert_eq!(said(None), neither);
    }
}
