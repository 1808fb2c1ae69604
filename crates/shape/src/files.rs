//! Files of settings and rules: where they lie; regular ones only, and no more of them than fits the purpose.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_core::error_in_words;

/// Text of a regular file of up to `max_bytes`.
///
/// # Errors
/// If it is no such file, or cannot be read: why, in words that end a sentence.
pub fn read_text(file: &Path, max_bytes: usize) -> Result<String, String> {
    // Opening a named pipe would wait for who writes into it.
    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = opened.map_err(|error| error_in_words(&error))?;
    let kind = opened.metadata().map_err(|error| error_in_words(&error))?.file_type();
    if !kind.is_file() {
        let name = match kind {
            _ if kind.is_dir() => "folder",
            _ if kind.is_fifo() => "pipe",
            _ if kind.is_socket() => "socket",
            _ => "device",
        };
        return Err(format!("it is a {name}, and no regular file"));
    }
    let mut bytes = Vec::new();
    opened
        .take(max_bytes as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error_in_words(&error))?;
    if bytes.len() > max_bytes {
        return Err(format!("it has more than {} MiB", max_bytes >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        format!("it is not UTF-8: invalid bytes at byte {}", error.utf8_error().valid_up_to())
    })
}

/// The path of what `file` calls `name`: beside that file, or if nothing lies there from the working folder.
///
/// It stays as it is written where both are the same file.
///
/// # Errors
/// If nothing lies at either place, or a folder may not be searched, in one sentence.
pub fn named_in(file: &Path, name: &str) -> Result<PathBuf, String> {
    named_by(file, name, &|path| path.metadata().map(|found| (found.dev(), found.ino())))
}

/// As [`named_in`], with what tells the device and the inode of a path.
fn named_by(
    file: &Path,
    name: &str,
    look: &dyn Fn(&Path) -> io::Result<(u64, u64)>,
) -> Result<PathBuf, String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let folder = folder.strip_prefix(".").unwrap_or(folder);
    let (beside, here) = (folder.join(name), PathBuf::from(name));
    if beside == here {
        return Ok(here);
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
    match (found(&beside)?, found(&here)) {
        (Some(one), Ok(Some(other))) if one == other => Ok(here),
        (Some(_), _) => Ok(beside),
        (None, Err(why)) => Err(why),
        (None, Ok(Some(_))) => Ok(here),
        (None, Ok(None)) => Err(nowhere(name, &beside)),
    }
}

/// What is said of a file that is not at `beside`, and not in the working folder.
fn nowhere(name: &str, beside: &Path) -> String {
    let folder = beside.parent().unwrap_or(beside).display();
    // It may have been removed.
    let here =
        std::env::current_dir().map_or_else(|_| String::new(), |it| format!(" `{}`", it.display()));
    format!(
        "`{name}` lies neither in `{folder}`, beside what names it, nor in the working folder{here}"
    )
}

/// Bytes of a list of rules or of settings: the longest that are shipped have 20 kB.
pub const MAX_TOML_BYTES: usize = 1 << 20;

/// Bytes of a shaper's log: 8 to 10 hours of it under load.
pub const MAX_LOG_BYTES: usize = 256 << 20;

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
            named_by(Path::new("./mine/one.toml"), name, look)
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
        let named = |file: &str, name| named_by(Path::new(file), name, &same);
        assert_eq!(named("mine/one.toml", "line.toml"), Ok("line.toml".into()));
        assert_eq!(named("one.toml", "line.toml"), Ok("line.toml".into()));
        assert_eq!(named("./one.toml", "line.toml"), Ok("line.toml".into()));
        assert_eq!(named("mine/one.toml", "/line.toml"), Ok("/line.toml".into()));
        let others = |path: &Path| Ok((1, u64::from(path.starts_with("mine"))));
        let apart = named_by(Path::new("mine/one.toml"), "./line.toml", &others);
        assert_eq!(apart, Ok("mine/line.toml".into()));
    }

    #[test]
    fn what_lies_nowhere_is_told_with_both_places() {
        let name = format!("gone-{}", "x".repeat(300));
        let place = std::env::current_dir().unwrap();
        let said = format!(
            "`{name}` lies neither in `mine`, beside what names it, nor in the working folder `{}`",
            place.display()
        );
        assert_eq!(named_in(Path::new("mine/one.toml"), &name), Err(said));
        assert!(named_in(Path::new("mine/one.toml"), "a\0b").unwrap_err().contains("lies neither"));
    }
}
