//! The methods by name: whoever drives them, over real sockets or simulated ones, finds them here.
//!
//! A method is a file of its own, which declares a [`MethodInfo`], and its place in [`METHODS`].

use crate::method::Method;
use crate::result::Object;
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

/// One speed test of the registry: its name and properties.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// Name of the speed test, such as `ndt7`.
    pub name: &'static str,
    /// Whose test it is and how it measures, in a few words.
    pub summary: &'static str,
    /// The kind of server that its official client is made for, as [`web`](crate::web) tells kinds apart;
    /// `None` if that does not know it.
    pub server_kind: Option<&'static str>,
    /// The answer by which its servers are known; `None` if they have none, or if `server_kind` tells them.
    pub known_by: Option<KnownBy>,
    /// Congestion control that its servers ask their sockets for; `None` if they take the machine's default.
    pub congestion_control: Option<&'static str>,
    /// Sentences about results that lack a figure.
    pub cautions: &'static [Caution],
    /// Whether it is made for HTTP/2, and with it TLS, only.
    pub needs_tls: bool,
    /// Whether it consists of HTTP requests, which have headers.
    pub has_headers: bool,
    /// Keys of the object that the test reports at its end.
    pub result: &'static Object,
    /// Begins a test; the bits are random, for names that no other test has.
    pub(crate) begin: fn(u128) -> Box<dyn Method>,
}

/// The answer to a `GET` that servers of one speed test give, and others do not.
#[derive(Clone, Copy, Debug)]
pub struct KnownBy {
    /// Path that is asked for.
    pub path: &'static str,
    /// Statuses of the answer, of which it has one.
    pub statuses: &'static [u16],
    /// Key of the JSON object that the answer is; `None` if its body says nothing.
    pub key: Option<&'static str>,
}

/// Meaning of a missing figure of a result.
#[derive(Clone, Copy, Debug)]
pub struct Caution {
    /// The figure by its keys in the result, outermost first, such as `["download", "rpm"]`. It is missing if it is
    /// null or false while what holds it is there.
    pub figure: &'static [&'static str],
    /// One sentence without its full stop. `{NAME}` stands for the value of the key `NAME` beside the figure.
    pub says: &'static str,
}

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

    /// A test by this method, not begun yet. `chance` are random bits, for names that no other test has.
    #[must_use]
    pub fn begin(&self, chance: u128) -> Box<dyn Method> {
        (self.begin)(chance)
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
