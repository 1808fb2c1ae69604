//! The file with the secret that both ends of a measurement know.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use weir_speedtest::protocol::weir::Secret;

use crate::NetError;

/// The secret in `file`: its first line, without the white space around it.
///
/// # Errors
/// If there is no such regular file, it is too long, or its first line is no secret.
pub fn read_secret(file: &Path) -> Result<Secret, NetError> {
    let name = || format!("secret `{}`", file.display());
    let unreadable = |error| NetError::io(name(), &error);
    if !std::fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err(NetError::new(format!("{}: it is no regular file", name())));
    }
    let mut text = String::new();
    let opened = File::open(file).map_err(unreadable)?;
    opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(NetError::new(format!("{}: it is longer than {MAX_FILE_BYTES} bytes", name())));
    }
    Secret::new(text.lines().next().unwrap_or_default())
        .map_err(|error| NetError::new(format!("{}: {error}", name())))
}

/// Far more than any secret: whatever else the file is, it is not read whole.
const MAX_FILE_BYTES: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_with_a_secret_is_not_read() {
        let folder = std::env::temp_dir().join(format!("weir-secret-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let long = folder.join("long");
        std::fs::write(&long, vec![b'x'; 1 + MAX_FILE_BYTES as usize]).unwrap();
        let refusal = |file: &Path| read_secret(file).unwrap_err().to_string();
        assert!(refusal(Path::new("/dev/zero")).ends_with("`: it is no regular file"));
        assert!(refusal(&folder).ends_with("`: it is no regular file"));
        assert!(refusal(&long).ends_with("`: it is longer than 65536 bytes"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
