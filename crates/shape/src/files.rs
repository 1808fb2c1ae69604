//! Files of settings and rules: regular ones only, and no more of them than fits the purpose.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

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

/// Bytes of a list of rules or of settings: the longest that are shipped have 20 kB.
pub const MAX_TOML_BYTES: usize = 1 << 20;

/// Bytes of a shaper's log: 8 to 10 hours of it under load.
pub const MAX_LOG_BYTES: usize = 256 << 20;
