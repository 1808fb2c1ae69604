//! Errors as exceptions of Python.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(_native, NativeError, PyValueError, "What is wrong, in one sentence.");
create_exception!(_native, InputError, NativeError, "What was given cannot be used.");

/// Turns any error into the exception of this module: all of them are one sentence for people.
pub(crate) fn fail(error: impl std::fmt::Display) -> PyErr {
    NativeError::new_err(error.to_string())
}

/// Turns an error in the user's input into the exception for input that cannot be used.
pub(crate) fn wrong(error: impl std::fmt::Display) -> PyErr {
    InputError::new_err(error.to_string())
}
