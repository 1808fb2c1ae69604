//! Whole numbers as arguments.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt};

use crate::errors::wrong;
use crate::scenario::from_python;

/// A whole number that Python gives, or what it gives instead.
///
/// PyO3 by itself tells of a number out of range neither the number nor the argument.
pub(crate) struct Whole<T>(Result<T, String>);

impl<'a, 'py, T: Unsigned> FromPyObject<'a, 'py> for Whole<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_whole = given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>();
        let number: Option<u64> = if is_whole { given.extract().ok() } else { None };
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Ok(Self(Ok(number))),
            None => Ok(Self(Err(from_python(&given)?.shown()))),
        }
    }
}

impl<T: Unsigned> Whole<T> {
    /// The number, as the argument `name`.
    ///
    /// # Errors
    /// If it is none, or does not fit into its type.
    pub fn named(self, name: &str) -> PyResult<T> {
        let refuse =
            |shown| wrong(format!("{name} {shown}: write a whole number from 0 to {}", T::MAX));
        self.0.map_err(refuse)
    }
}

/// An unsigned integer of Rust.
pub(crate) trait Unsigned: TryFrom<u64> {
    /// The greatest one.
    const MAX: u64;
}

impl Unsigned for u8 {
    const MAX: u64 = Self::MAX as u64;
}

impl Unsigned for u16 {
    const MAX: u64 = Self::MAX as u64;
}

impl Unsigned for u32 {
    const MAX: u64 = Self::MAX as u64;
}

impl Unsigned for u64 {
    const MAX: u64 = Self::MAX;
}
