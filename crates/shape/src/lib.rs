//! The shaper on a real interface.
//!
//! [`run`] takes the packets of a device out of the kernel's hands (`weir-linux`), queues them with Weir's
//! own disciplines, and lets them go at rates that a controller finds (`weir-control`) from delays that it
//! measures. Nothing that was there is changed, so that undoing is removing, which the kernel does by itself
//! when the process ends. [`replay`] runs a controller over the log of an earlier run.

mod backend;
mod door;
mod engine;
mod held;
mod log;
mod passive;
mod reflectors;
mod run;
mod settings;
mod userspace;
mod view;

pub use backend::{Choice, choose};
pub use door::{ask, stop};
pub use log::replay;
pub use run::{Command, run, run_with};
pub use settings::{Backend, Settings, Target};
pub use view::{SideView, View};

/// What cannot be done, in one sentence.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// The kernel refused something.
    #[error(transparent)]
    Linux(#[from] weir_linux::LinuxError),
    /// A queue set-up is none.
    #[error(transparent)]
    SetUp(#[from] weir_qdisc::SetUpError),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

impl ShapeError {
    fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    fn io(what: &str, error: impl std::fmt::Display) -> Self {
        Self::Other(format!("{what}: {error}"))
    }
}
