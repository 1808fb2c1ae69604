//! What a speed test says of itself: its name, its servers, its result.

use crate::method::Method;
use crate::result::Object;

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

impl MethodInfo {
    /// A test by this method, not begun yet. `chance` are random bits, for names that no other test has.
    #[must_use]
    pub fn begin(&self, chance: u128) -> Box<dyn Method> {
        (self.begin)(chance)
    }
}
