//! The methods by name: whoever drives them, over real sockets or simulated ones, finds them here.
//!
//! A method is a file of its own, which declares a [`MethodInfo`], and its place in [`METHODS`].

use crate::method_info::MethodInfo;
use crate::{cloudflare, librespeed, ndt7, ookla, responsiveness, web};

/// Every method, in the order in which `weir test --method` names them.
pub static METHODS: &[&MethodInfo] = &[
    &ndt7::METHOD,
    &cloudflare::METHOD,
    &librespeed::METHOD,
    &ookla::METHOD,
    &responsiveness::METHOD,
    &web::METHOD,
];

/// The name of a speed test that the registry lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("method `{name}`: there are {}", names().collect::<Vec<_>>().join(", "))]
pub struct UnknownMethod {
    name: String,
}

impl MethodInfo {
    /// The method of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self, UnknownMethod> {
        let found = METHODS.iter().find(|known| known.name == name);
        found.copied().ok_or_else(|| UnknownMethod { name: name.to_owned() })
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|known| known.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_says_its_own_name() {
        for known in METHODS {
            assert_eq!(known.begin(0).result()["method"], known.name);
        }
        let names: std::collections::BTreeSet<_> = names().collect();
        assert_eq!(names.len(), METHODS.len());
        let error = MethodInfo::named("ndt5").unwrap_err().to_string();
        assert!(error.starts_with("method `ndt5`: there are ndt7, cloudflare"), "{error}");
    }
}
