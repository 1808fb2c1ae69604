//! The protocols that consist of HTTP requests: Cloudflare's, LibreSpeed's, Ookla's older one, the IETF's.

use std::time::SystemTime;

use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::time::Instant;
use weir_protocol::librespeed::{self, Endpoint};
use weir_protocol::{cloudflare, ookla, responsiveness};

use crate::http::{
    Client, Request, Response, content, empty, other_method, path, query, reads, text, wrong,
};

/// `/__down` and `/__up`.
pub(crate) async fn cloudflare(client: &Client, request: Request) -> Response {
    let came = Instant::now();
    let (mut response, came) = if path(&request) == cloudflare::UP {
        if request.method() != Method::POST {
            return other_method("POST");
        }
        match client.take("cloudflare", request).await {
            // What counts is what the server takes behind the last byte.
            Ok(_) => (text(StatusCode::OK, "ok"), Instant::now()),
            Err(response) => return response,
        }
    } else {
        match cloudflare::bytes(query(&request)) {
            Ok(bytes) => (client.load("cloudflare", bytes), came),
            Err(error) => return wrong(&error),
        }
    };
    let timing = cloudflare::server_timing(came.elapsed().as_nanos() as u64);
    let timing = HeaderValue::try_from(timing).expect("it is ASCII");
    response.headers_mut().insert(HeaderName::from_static("server-timing"), timing);
    response
}

/// `garbage`, `empty` and `getIP`.
pub(crate) async fn librespeed(client: &Client, request: Request, endpoint: Endpoint) -> Response {
    match endpoint {
        Endpoint::Garbage => match librespeed::garbage_bytes(query(&request)) {
            Ok(bytes) => client.load("librespeed", bytes),
            Err(error) => wrong(&error),
        },
        // A ping is a GET, or a POST without a body.
        Endpoint::Empty if reads(&request) => empty(StatusCode::OK),
        Endpoint::Empty => match client.take("librespeed", request).await {
            Ok(_) => empty(StatusCode::OK),
            Err(response) => response,
        },
        Endpoint::GetIp => {
            content("application/json; charset=utf-8", librespeed::address(client.ends.client.ip()))
        }
    }
}

/// What speedtest-cli and clients of OoklaServer ask for.
pub(crate) async fn ookla(client: &Client, request: Request) -> Response {
    let asked = path(&request);
    if asked == "/upload" || asked.starts_with("/speedtest/upload.") {
        // With GET a client finds out whether this is the right file.
        let taken = if reads(&request) { Ok(0) } else { client.take("ookla", request).await };
        return match taken {
            Ok(bytes) => text(StatusCode::OK, format!("size={bytes}\n")),
            Err(response) => response,
        };
    }
    if !reads(&request) {
        return other_method("GET");
    }
    match asked {
        "/hello" => text(StatusCode::OK, format!("hello {}", ookla::HELLO)),
        "/speedtest/latency.txt" => text(StatusCode::OK, "test=test\n"),
        "/speedtest-config.php" => {
            content("text/xml; charset=utf-8", ookla::config(client.ends.client.ip()))
        }
        "/download" => match query(&request).number("size", ookla::MOST_BYTES) {
            Ok(bytes) => client.load("ookla", bytes.unwrap_or(ookla::MOST_BYTES)),
            Err(error) => wrong(&error),
        },
        path => match ookla::image_bytes(path) {
            Some(bytes) => client.load("ookla", bytes),
            None => text(StatusCode::NOT_FOUND, "there is no such file\n"),
        },
    }
}

/// The IETF's responsiveness test.
pub(crate) async fn responsiveness(client: &Client, request: Request) -> Response {
    match path(&request) {
        responsiveness::CONFIG => match authority(client, &request) {
            Some(authority) => {
                let config = responsiveness::Config::at(&authority);
                let config = serde_json::to_string(&config).expect("it is plain data");
                content("application/json", config)
            }
            None => text(StatusCode::BAD_REQUEST, "the header Host is missing\n"),
        },
        responsiveness::SMALL => content("application/octet-stream", &b"w"[..]),
        responsiveness::LARGE => client.load("rpm", responsiveness::LARGE_BYTES),
        _ if request.method() != Method::POST => other_method("POST"),
        _ => match client.take("rpm", request).await {
            Ok(_) => empty(StatusCode::OK),
            Err(response) => response,
        },
    }
}

/// How the client reaches this server: as it says.
fn authority(client: &Client, request: &Request) -> Option<String> {
    let from_uri = request.uri().authority().map(ToString::to_string);
    let host = || Some(request.headers().get(header::HOST)?.to_str().ok()?.to_owned());
    let authority = from_uri.or_else(host)?;
    // The URLs name HTTPS, whose port is 443 where a plain request would mean 80.
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = client.ends.server.port();
    Some(if has_port || port == 443 { authority } else { format!("{authority}:{port}") })
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
