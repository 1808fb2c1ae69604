//! Answers of a server to the speed tests that consist of plain HTTP, whoever carries the requests.
//!
//! The tests are Cloudflare's, LibreSpeed's, Ookla's older one and the IETF's.

use std::net::IpAddr;

use crate::librespeed::{self, Endpoint};
use crate::{Query, QueryError, cloudflare, ookla, responsiveness};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
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

/// The answer of a server that serves all of these tests.
///
/// # Errors
/// If a parameter makes no sense.
pub fn answer(request: &Request<'_>) -> Result<Answer, QueryError> {
    match request.path {
        cloudflare::DOWN | cloudflare::UP => cloudflare(request),
        responsiveness::CONFIG
        | responsiveness::SMALL
        | responsiveness::LARGE
        | responsiveness::UPLOAD => Ok(responsiveness(request)),
        path => match Endpoint::of(path) {
            Some(endpoint) => librespeed(request, endpoint),
            None => ookla(request),
        },
    }
}

/// `/__down` and `/__up`.
///
/// # Errors
/// If a parameter makes no sense.
pub fn cloudflare(request: &Request<'_>) -> Result<Answer, QueryError> {
    Ok(match (request.path == cloudflare::UP, request.verb) {
        (true, Verb::Post) => Answer::Take(Receipt::Ok),
        (true, _) => Answer::OnlyVerb("POST"),
        (false, _) => random_payload(cloudflare::bytes(request.query)?),
    })
}

/// `garbage`, `empty` and `getIP`.
///
/// # Errors
/// If a parameter makes no sense.
pub fn librespeed(request: &Request<'_>, endpoint: Endpoint) -> Result<Answer, QueryError> {
    Ok(match endpoint {
        Endpoint::Garbage => random_payload(librespeed::garbage_bytes(request.query)?),
        // A ping is a GET, or a POST without a body.
        Endpoint::Empty if request.verb == Verb::Get => Answer::Empty,
        Endpoint::Empty => Answer::Take(Receipt::Empty),
        Endpoint::GetIp => {
            let address = librespeed::address(request.client);
            Answer::Words("application/json; charset=utf-8", address)
        }
    })
}

/// Answers the requests of speedtest-cli and of OoklaServer's clients.
///
/// # Errors
/// If a parameter makes no sense.
pub fn ookla(request: &Request<'_>) -> Result<Answer, QueryError> {
    let (path, gets) = (request.path, request.verb == Verb::Get);
    let text = |words: &str| Answer::Words("text/plain; charset=utf-8", words.to_owned());
    Ok(match path {
        _ if path == "/upload" || path.starts_with("/speedtest/upload.") => {
            // With GET a client finds out whether this is the right file.
            if gets { text(&Receipt::Size.words(0)) } else { Answer::Take(Receipt::Size) }
        }
        _ if !gets => Answer::OnlyVerb("GET"),
        "/hello" => text(&format!("hello {}", ookla::HELLO)),
        "/speedtest/latency.txt" => text("test=test\n"),
        "/speedtest-config.php" => {
            Answer::Words("text/xml; charset=utf-8", ookla::config(request.client))
        }
        "/download" => {
            let size = request.query.number("size", ookla::MAX_BYTES)?;
            random_payload(size.unwrap_or(ookla::MAX_BYTES))
        }
        _ => ookla::image_bytes(path).map_or(Answer::NotFound, random_payload),
    })
}

/// The IETF's responsiveness test.
#[must_use]
pub fn responsiveness(request: &Request<'_>) -> Answer {
    match (request.path, request.verb) {
        (responsiveness::CONFIG, _) => match request.authority {
            Some(authority) => {
                let config = responsiveness::Config::at(authority);
                let config = serde_json::to_string(&config).expect("it is plain data");
                Answer::Words("application/json", config)
            }
            None => Answer::NoHost,
        },
        (responsiveness::SMALL, _) => Answer::Words("application/octet-stream", "w".to_owned()),
        (responsiveness::LARGE, _) => Answer::RandomPayload(responsiveness::LARGE_BYTES),
        (_, Verb::Post) => Answer::Take(Receipt::Empty),
        _ => Answer::OnlyVerb("POST"),
    }
}

const fn random_payload(bytes: u64) -> Answer {
    if bytes == 0 { Answer::Empty } else { Answer::RandomPayload(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(verb: Verb, url: &str) -> Result<Answer, QueryError> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let client = "192.0.2.1".parse().unwrap();
        let query = Query::new(query);
        answer(&Request { path, query, verb, client, authority: Some("server") })
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
