//! Which backend is to hold packets back, and why.

use serde::Serialize;
use weir_linux::{Intercept, kernel_lacks};

use crate::settings::{Backend, Settings};
use crate::{ShapeError, door};

/// A backend and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The backend.
    pub backend: Backend,
    /// Why this one, in one sentence.
    pub why: String,
}

/// Chooses the best available backend, or the one that was asked for. Nothing is changed.
///
/// # Errors
/// If none is possible, or the one that was asked for is not: why.
pub fn choose(settings: &Settings) -> Result<Choice, ShapeError> {
    if door::ask(&settings.device).is_ok() {
        return Err(door::taken(&settings.device));
    }
    let kernel = kernel();
    if settings.backend == Some(Backend::Kernel) {
        return Err(ShapeError::new(format!("the backend `kernel` cannot be used: {kernel}")));
    }
    let kind = Intercept::check(&settings.device, settings.queues.each_ref().map(Option::is_some))?;
    let why = match settings.backend {
        Some(_) => format!("it was asked for, and this kernel hands packets over ({kind})"),
        None => format!(
            "this kernel hands packets over ({kind}), and the backend `kernel` cannot be used: {kernel}"
        ),
    };
    Ok(Choice { backend: Backend::Userspace, why })
}

/// Why the kernel's own disciplines cannot be used.
fn kernel() -> String {
    let lacking: Vec<_> = NEEDED.iter().filter_map(|name| kernel_lacks(name)).collect();
    match &lacking[..] {
        [] => "it has no code yet that sets the rates of the kernel's disciplines while they work"
            .to_owned(),
        _ if lacking.len() == NEEDED.len() => {
            "this kernel has neither `cake` nor `fq_codel`".to_owned()
        }
        [one, ..] => one.to_string(),
    }
}

/// Disciplines that the backend `kernel` works with: one of them is enough.
const NEEDED: [&str; 2] = ["cake", "fq_codel"];
