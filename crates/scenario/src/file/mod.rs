//! Scenario files: what they can say, how they are read, and the resolved scenarios that they stand for.
//!
//! Everything that a test, a link or a scenario can say is declared once: in [`mod@test`], [`mod@beside`], [`link`], [`shaper`] and [`spec`],
//! as fields with their meaning, their bounds and their defaults. The reader, which finds all faults of a file at once, the
//! [JSON Schema](schema()) and Python's types come from these declarations. [`resolve()`] makes of them what a world runs.

pub mod beside;
pub mod catalogue;
mod configurations;
mod document;
mod fault;
pub mod field;
mod hops;
pub mod link;
mod named;
mod ordered;
pub mod plain;
pub mod quantity;
mod references;
mod resolve;
pub mod rules;
mod schema;
pub mod shape;
pub mod shaper;
mod shaping;
pub mod spec;
pub mod test;
mod without_effect;
mod written;

pub use catalogue::{Files, NoFiles, load_link, load_test, shipped_links, shipped_tests};
pub use configurations::remarks;
pub use document::parse;
pub use fault::{Fault, MAX_FAULTS, MAX_QUOTED_CHARS, Telling};
pub use named::{find_named, name_files};
pub use ordered::{HopChange, read_ordered};
pub use references::faults_of_files;
pub use resolve::{Resolved, ResolvedConfiguration, ServersOf, resolve};
pub use schema::{read_quantity, read_spec, schema, schema_of_file};
pub use written::{MAX_SHOWN_CHARS, Value, Written};
