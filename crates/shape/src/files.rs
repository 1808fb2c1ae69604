//! Files of settings and rules: where they lie; regular ones only, and no more of them than fits the purpose.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_core::error_in_words;
use weir_scenario::file::find_named;

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
/// # Errors
/// If nothing lies at either place, or a folder may not be searched, in one sentence.
pub fn named_in(file: &Path, name: &str) -> Result<PathBuf, String> {
    let look = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino()));
    // It may have been removed.
    let here = std::env::current_dir().ok();
    find_named(file, name, here.as_deref(), &look)
}

/// Bytes of a list of rules or of settings: the longest that are shipped have 20 kB.
pub const MAX_TOML_BYTES: usize = 1 << 20;

/// Bytes of a shaper's log: 8 to 10 hours of it under load.
pub const MAX_LOG_BYTES: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_file_can_have_lies_nowhere() {
        let place = std::env::current_dir().unwrap();
        for name in [format!("gone-{}", "x".repeat(300)), "a\0b".to_owned()] {
            let said = format!(
                "`{name}` lies neither in `mine`, beside what names it, nor in the working folder `{}`",
                place.display()
            );
            assert_eq!(named_in(Path::new("mine/one.toml"), &name), Err(said));
        }
    }
}
