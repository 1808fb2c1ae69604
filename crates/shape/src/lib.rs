//! The shaper on a real interface.
//!
//! [`run`] holds the packets of a device back at rates that a controller finds (`weir-rate-control`) from delays
//! that it measures: in the kernel's own disciplines, or out of the kernel's hands in Weir's (`weir-linux`).
//! However it ends, what was there before is there again. [`replay`] runs a controller over the log of an
//! earlier run.

mod backend;
mod classes;
mod control_socket;
mod diagnostics;
mod engine;
mod framing;
mod held;
mod kernel;
mod log;
mod owners;
mod passive;
mod reflectors;
mod rules;
mod run;
mod settings;
mod shaper;
mod userspace;
mod view;

pub use backend::{Choice, choose};
pub use control_socket::{ask, stop};
pub use framing::{Found, detect_framing};
pub use log::replay;
pub use rules::{Class, Rule, Rules};
pub use run::{Command, run, run_with};
pub use settings::{Backend, Settings, Target, USUAL_QUEUES};
pub use view::{SideView, View};

/// Error of the shaper, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// The kernel refused something.
    #[error(transparent)]
    Linux(#[from] weir_linux::LinuxError),
    /// A queue set-up is none.
    #[error(transparent)]
    SetUp(#[from] weir_qdisc::SetUpError),
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
        matches!(self, Self::SetUp(_) | Self::Input(_))
    }

    fn io(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Other(format!("{what}: {error}"))
    }
}
