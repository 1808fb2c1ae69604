//! The methods by name: whoever drives them, over real sockets or simulated ones, finds them here.

use crate::cloudflare::Cloudflare;
use crate::librespeed::Librespeed;
use crate::method::Method;
use crate::ndt7::Ndt7;
use crate::ookla::Ookla;
use crate::responsiveness::Responsiveness;
use crate::web::Web;

/// One speed test of the registry: its name and properties.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// Name of the speed test, such as `ndt7`.
    pub name: &'static str,
    /// Whether it is made for HTTP/2, and with it TLS, only.
    pub needs_tls: bool,
    /// Whether it consists of HTTP requests, which have headers.
    pub has_headers: bool,
    begin: fn(u128) -> Box<dyn Method>,
}

/// The name of a speed test that the registry lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("method `{name}`: there are {}", names().collect::<Vec<_>>().join(", "))]
pub struct UnknownMethod {
    name: String,
}

/// All methods.
pub const METHODS: &[MethodInfo] = &[
    MethodInfo {
        name: "ndt7",
        needs_tls: false,
        has_headers: true,
        begin: |_| Box::new(Ndt7::new()),
    },
    MethodInfo {
        name: "cloudflare",
        needs_tls: false,
        has_headers: true,
        begin: |_| Box::new(Cloudflare::new()),
    },
    MethodInfo {
        name: "librespeed",
        needs_tls: false,
        has_headers: true,
        begin: |_| Box::new(Librespeed::new()),
    },
    MethodInfo {
        name: "ookla",
        needs_tls: false,
        has_headers: false,
        begin: |chance| Box::new(Ookla::new(chance)),
    },
    MethodInfo {
        name: "rpm",
        needs_tls: true,
        has_headers: true,
        begin: |_| Box::new(Responsiveness::new()),
    },
    MethodInfo {
        name: "http",
        needs_tls: false,
        has_headers: true,
        begin: |_| Box::new(Web::new()),
    },
];

impl MethodInfo {
    /// The method of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self, UnknownMethod> {
        let found = METHODS.iter().find(|known| known.name == name);
        found.ok_or_else(|| UnknownMethod { name: name.to_owned() })
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
        let error = MethodInfo::named("ndt5").unwrap_err().to_string();
        assert!(error.starts_with("method `ndt5`: there are ndt7, cloudflare"), "{error}");
    }
}
