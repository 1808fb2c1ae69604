//! Options that take one value, given once.

use crate::failure::Failure;

/// The options with a value that a command line has had so far.
#[derive(Debug, Default)]
pub(crate) struct Once(Vec<String>);

impl Once {
    /// Notes the option `--NAME`; an error if it was there before.
    pub fn see(&mut self, name: &str) -> Result<(), Failure> {
        if self.0.iter().any(|seen| seen == name) {
            return Err(Failure::usage(format!("--{name} is given twice: write it once")));
        }
        self.0.push(name.to_owned());
        Ok(())
    }
}
