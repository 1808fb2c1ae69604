//! The file with the secret that both ends of a measurement know.

use std::path::Path;

use weir_protocol::weir::Secret;

use crate::NetError;

/// The secret in `file`: its first line, without the white space around it.
///
/// # Errors
/// If there is no such file or its first line is no secret.
pub fn read_secret(file: &Path) -> Result<Secret, NetError> {
    let name = || format!("secret `{}`", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| NetError::io(name(), &error))?;
    Secret::new(text.lines().next().unwrap_or_default())
        .map_err(|error| NetError::new(format!("{}: {error}", name())))
}
