//! The protocols that consist of HTTP requests: Cloudflare's, LibreSpeed's, Ookla's older one, the IETF's. What
//! they answer stands in [`weir_protocol::answers`].

use std::time::SystemTime;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::time::Instant;
use weir_protocol::answers::{self, Answer, Verb};
use weir_protocol::librespeed::Endpoint;
use weir_protocol::{QueryError, cloudflare};

use crate::head::{authority, path, query};
use crate::http::{Client, Request, Response, content, empty, other_method, reads, text, wrong};

/// Answers a request of Cloudflare's speed test: `/__down` or `/__up`.
pub(crate) async fn cloudflare(client: &Client, request: Request) -> Response {
    let came = Instant::now();
    let answer = answers::cloudflare(&asked(client, &request, None));
    let takes = matches!(answer, Ok(Answer::Take(_)));
    let mut response = give(client, "cloudflare", request, answer).await;
    if response.status() == StatusCode::OK {
        // Of an upload counts what the server takes behind the last byte.
        let took = if takes { 0 } else { came.elapsed().as_nanos() as u64 };
        let timing = HeaderValue::try_from(cloudflare::server_timing(took));
        let timing = timing.expect("it is ASCII");
        response.headers_mut().insert(HeaderName::from_static("server-timing"), timing);
    }
    response
}

/// `garbage`, `empty` and `getIP`.
pub(crate) async fn librespeed(client: &Client, request: Request, endpoint: Endpoint) -> Response {
    let answer = answers::librespeed(&asked(client, &request, None), endpoint);
    give(client, "librespeed", request, answer).await
}

/// Answers a request of speedtest-cli or another client of `OoklaServer`.
pub(crate) async fn ookla(client: &Client, request: Request) -> Response {
    let answer = answers::ookla(&asked(client, &request, None));
    give(client, "ookla", request, answer).await
}

/// The IETF's responsiveness test.
pub(crate) async fn responsiveness(client: &Client, request: Request) -> Response {
    let public = client.server.options.public_url.as_ref().map(ToString::to_string);
    let authority = public.or_else(|| authority(&request));
    let answer = answers::responsiveness(&asked(client, &request, authority.as_deref()));
    give(client, "rpm", request, Ok(answer)).await
}

/// The protocol-independent form of a request, from which its answer is made.
fn asked<'a>(
    client: &Client,
    request: &'a Request,
    authority: Option<&'a str>,
) -> answers::Request<'a> {
    let verb = match *request.method() {
        _ if reads(request) => Verb::Get,
        Method::POST => Verb::Post,
        _ => Verb::Other,
    };
    let client = client.ends.client.ip();
    answers::Request { path: path(request), query: query(request), verb, client, authority }
}

/// Answers a request of a test called `protocol`.
async fn give(
    client: &Client,
    protocol: &'static str,
    request: Request,
    answer: Result<Answer, QueryError>,
) -> Response {
    match answer {
        Ok(Answer::RandomPayload(bytes)) => client.load(protocol, bytes),
        Ok(Answer::Words(kind, words)) => content(kind, words),
        Ok(Answer::Empty) => empty(StatusCode::OK),
        Ok(Answer::Take(receipt)) => match client.take(protocol, request).await {
            Ok(bytes) => text(StatusCode::OK, receipt.words(bytes)),
            Err(response) => response,
        },
        Ok(Answer::OnlyVerb(verb)) => other_method(verb),
        Ok(Answer::NoHost) => {
            text(StatusCode::BAD_REQUEST, "the header Host is missing or names no host\n")
        }
        Ok(Answer::NotFound) => text(StatusCode::NOT_FOUND, "there is no such file\n"),
        Err(error) => wrong(&error),
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
