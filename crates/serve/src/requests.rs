//! The speed tests that consist of plain HTTP requests. What they answer stands in
//! [`weir_speedtest::protocol::answers`].

use std::time::SystemTime;

use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::time::Instant;
use weir_speedtest::protocol::QueryError;
use weir_speedtest::protocol::answers::{self, Answer, HttpTest, Verb};

use crate::head::{authority, path, query};
use crate::http::{
    Client, HttpRequest, HttpResponse, content, empty, other_method, reads, text, wrong,
};

/// Answers a request for one of the paths of `test`.
pub(crate) async fn answer(
    client: &Client,
    request: HttpRequest,
    test: &'static HttpTest,
) -> HttpResponse {
    let came = Instant::now();
    let public = client.server.options.public_url.as_ref().map(ToString::to_string);
    let authority = public.or_else(|| authority(&request));
    let answer = (test.answer)(&asked(client, &request, authority.as_deref()));
    let takes = matches!(answer, Ok(Answer::Take(_)));
    let mut response = give(client, test.name, request, answer).await;
    if let Some(timing) = test.server_timing
        && response.status() == StatusCode::OK
    {
        // Of an upload counts what the server takes behind the last byte.
        let took = if takes { 0 } else { came.elapsed().as_nanos() as u64 };
        let timing = HeaderValue::try_from(timing(took)).expect("it is ASCII");
        response.headers_mut().insert(HeaderName::from_static("server-timing"), timing);
    }
    response
}

/// The request in the form in which tests answer it.
fn asked<'a>(
    client: &Client,
    request: &'a HttpRequest,
    authority: Option<&'a str>,
) -> answers::HttpTestRequest<'a> {
    let verb = match *request.method() {
        _ if reads(request) => Verb::Get,
        Method::POST => Verb::Post,
        _ => Verb::Other,
    };
    let client = client.ends.client.ip();
    answers::HttpTestRequest { path: path(request), query: query(request), verb, client, authority }
}

/// Answers a request of a test called `protocol`.
async fn give(
    client: &Client,
    protocol: &'static str,
    request: HttpRequest,
    answer: Result<Answer, QueryError>,
) -> HttpResponse {
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
