//! Answers of a server to the speed tests that consist of plain HTTP, whoever carries the requests.
//!
//! A test is a file of its own, which declares an [`HttpTest`], and its place in [`HTTP_TESTS`]: `weir serve`
//! and the simulator then answer its requests.

use std::net::IpAddr;

use crate::protocol::{Query, QueryError, cloudflare, librespeed, ookla, responsiveness};

/// An HTTP request of a speed test.
#[derive(Clone, Copy, Debug)]
pub struct HttpTestRequest<'a> {
    /// Path of the request.
    pub path: &'a str,
    /// The parameters behind it.
    pub query: Query<'a>,
    /// Verb of the request.
    pub verb: Verb,
    /// Address of the client.
    pub client: IpAddr,
    /// How the client reaches the server over HTTPS: host, port unless 443, and a path that a proxy puts
    /// before the server's own. `None` if it does not say.
    pub authority: Option<&'a str>,
}

/// HTTP verb of a request, as far as servers look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET or HEAD.
    Get,
    /// POST.
    Post,
    /// Anything else.
    Other,
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A body of that many random bytes.
    RandomPayload(u64),
    /// Words: their type, and they.
    Words(&'static str, String),
    /// A response without a body, that all is well.
    Empty,
    /// The body is read to its end and thrown away, then this is said.
    Take(Receipt),
    /// Only this verb is served here.
    OnlyVerb(&'static str),
    /// The header `Host` is missing.
    NoHost,
    /// The path is not known.
    NotFound,
}

/// Response after the body of an upload was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// A response without a body.
    Empty,
    /// The word `ok`.
    Ok,
    /// `size=` and how many bytes there were.
    Size,
}

impl Receipt {
    /// The words that follow an upload of `bytes`.
    #[must_use]
    pub fn words(self, bytes: u64) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Ok => "ok".to_owned(),
            Self::Size => format!("size={bytes}\n"),
        }
    }
}

/// A speed test that consists of plain HTTP requests, as its server answers them.
#[derive(Debug)]
pub struct HttpTest {
    /// Name of the speed test, as `weir serve --without` and the metrics have it.
    pub name: &'static str,
    /// Summary in a few words.
    pub summary: &'static str,
    /// Whether a path belongs to it.
    pub serves: fn(&str) -> bool,
    /// The answer to a request for one of its paths.
    pub answer: fn(&HttpTestRequest<'_>) -> Result<Answer, QueryError>,
    /// The header `Server-Timing` of an answer that took so many nanoseconds; `None` if it has none.
    pub server_timing: Option<fn(u64) -> String>,
}

/// Every speed test of plain HTTP, in the order in which `weir serve` names them.
pub static HTTP_TESTS: &[&HttpTest] =
    &[&cloudflare::TEST, &librespeed::TEST, &ookla::TEST, &responsiveness::TEST];

/// The answer of a server that serves all of these tests.
///
/// # Errors
/// If a parameter makes no sense.
pub fn answer(request: &HttpTestRequest<'_>) -> Result<Answer, QueryError> {
    let test = HTTP_TESTS.iter().find(|test| (test.serves)(request.path));
    test.map_or(Ok(Answer::NotFound), |test| (test.answer)(request))
}

/// So many random bytes, or nothing where none are wanted.
pub(crate) const fn random_payload(bytes: u64) -> Answer {
    if bytes == 0 { Answer::Empty } else { Answer::RandomPayload(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(verb: Verb, url: &str) -> Result<Answer, QueryError> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let client = "192.0.2.1".parse().unwrap();
        let query = Query::new(query);
        answer(&HttpTestRequest { path, query, verb, client, authority: Some("server") })
    }

    #[test]
    fn a_path_belongs_to_one_test() {
        for path in [
            "/__down",
            "/__up",
            "/garbage.php",
            "/backend/empty.php",
            "/results/telemetry",
            "/hello",
            "/download",
            "/upload",
            "/speedtest/random350x350.jpg",
            "/.well-known/nq",
            "/small",
            "/slurp",
        ] {
            let of: Vec<_> = HTTP_TESTS
                .iter()
                .filter(|test| (test.serves)(path))
                .map(|test| test.name)
                .collect();
            assert_eq!(of.len(), 1, "{path}: {of:?}");
        }
        assert!(HTTP_TESTS.iter().all(|test| !(test.serves)("/elsewhere")));
    }

    #[test]
    fn every_test_has_its_answers() {
        let get = |url| ask(Verb::Get, url).unwrap();
        let post = |url| ask(Verb::Post, url).unwrap();
        assert_eq!(get("/__down?bytes=100000"), Answer::RandomPayload(100_000));
        assert_eq!(get("/__down?bytes=0"), Answer::Empty);
        assert_eq!(post("/__up?bytes=5"), Answer::Take(Receipt::Ok));
        assert_eq!(get("/__up"), Answer::OnlyVerb("POST"));
        assert_eq!(get("/large"), Answer::RandomPayload(8 << 30));
        assert_eq!(post("/slurp"), Answer::Take(Receipt::Empty));
        assert_eq!(get("/garbage.php?ckSize=2"), Answer::RandomPayload(2 << 20));
        assert_eq!(get("/empty.php?r=1"), Answer::Empty);
        assert_eq!(post("/empty.php"), Answer::Take(Receipt::Empty));
        assert_eq!(get("/download?size=77"), Answer::RandomPayload(77));
        assert_eq!(post("/upload"), Answer::Take(Receipt::Size));
        assert_eq!(Receipt::Size.words(77), "size=77\n");
        assert_eq!(get("/elsewhere"), Answer::NotFound);
        assert!(
            matches!(get("/.well-known/nq"), Answer::Words("application/json", text) if text.contains("https://server/small"))
        );
        assert!(ask(Verb::Get, "/__down?bytes=many").is_err());
    }
}
