//! The shaper on a real interface.
//!
//! [`run`] holds the packets of a device back at rates that a controller finds (`weir-rate-control`) from delays
//! that it measures: in the kernel's own disciplines, or out of the kernel's hands in Weir's (`weir-linux`).
//! However it ends, what was there before is there again. [`replay`] runs a controller over the log of an
//! earlier run.

use std::sync::OnceLock;

mod backend;
mod cautions;
mod classes;
mod control_socket;
mod diagnostics;
mod due;
mod engine;
mod files;
mod framing;
mod gso;
mod held;
mod kernel;
mod learned;
mod log;
mod owners;
mod passive;
mod prove;
mod reflectors;
mod replay;
mod rules;
mod run;
mod settings;
mod shaper;
mod text;
mod userspace;
mod view;
mod wakes;
mod written;

pub use backend::{Choice, choose};
pub use cautions::cautions;
pub use control_socket::{ask, end};
pub use files::{MAX_LOG_BYTES, MAX_TOML_BYTES, named_in, read_text};
pub use framing::{Found, detect_framing};
pub use learned::{Beginning, STATE_VARIABLE, usual_state_file};
pub use prove::{Factor, Proof, Prover, ProverSettings, Stage};
pub use replay::replay;
pub use rules::{Class, Rule, Rules};
pub use run::{Command, Ended, run, run_chosen, run_with};
pub use settings::{Backend, Settings, Target};
pub use text::{LATE_NS, decision_line, plan_lines};
pub use view::{SideCounts, SideView, View};
pub use written::{framing_of, read_config, read_rules, read_settings, rules_text, shipped_rules};

/// Says what the program is called in which this runs, for advice on what to type; `weir` if nobody does.
pub fn call_program(name: &'static str) {
    // The first name stays.
    let _ = PROGRAM.set(name);
}

/// What the program is called in which this runs.
fn program() -> &'static str {
    PROGRAM.get().copied().unwrap_or("weir")
}

static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Error of the shaper, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// The kernel refused something.
    #[error(transparent)]
    Linux(#[from] weir_linux::LinuxError),
    /// A queue spec cannot be used.
    #[error(transparent)]
    Queue(#[from] weir_qdisc::SpecError),
    /// Something else that was given cannot be used.
    #[error("{0}")]
    Input(String),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

impl ShapeError {
    fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    fn input(message: impl Into<String>) -> Self {
        Self::Input(message.into())
    }

    /// Whether what was given cannot be used, and not something else has failed.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Queue(_) | Self::Input(_))
    }

    fn io(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Other(format!("{what}: {}", weir_core::error_in_words(&error)))
    }
}
