//! Reading of a request's head, where no library does it.

use std::net::IpAddr;

use hyper::Request;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use weir_core::without_brackets;
use weir_speedtest::protocol::Query;

/// The parameters of a request.
pub(crate) fn query<B>(request: &Request<B>) -> Query<'_> {
    Query::new(request.uri().query().unwrap_or_default())
}

/// The path of a request. One that begins with two slashes is a base that ended with one.
pub(crate) fn path<B>(request: &Request<B>) -> &str {
    let path = request.uri().path();
    path.strip_prefix('/').filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// Whether a header with a list of names has this one.
pub(crate) fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(wanted))
}

/// The secret that a request tells: in the header of RFC 6750. The name of the scheme may have letters of
/// either case (RFC 9110, section 11.1).
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, secret) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim_start_matches(' '))
}

/// Whether a request asks a machine by an address or as `localhost`, or does not say whom it asks. A page of
/// another site that has its name lead to this machine (DNS rebinding) asks by that name.
pub(crate) fn asks_by_address<B>(request: &Request<B>) -> bool {
    let said = match request.uri().authority() {
        Some(authority) => authority.as_str(),
        None => match request.headers().get(header::HOST).map(HeaderValue::to_str) {
            Some(Ok(host)) => host,
            Some(Err(_)) => return false,
            None => return true,
        },
    };
    let Ok(said) = said.parse::<Authority>() else { return false };
    address_of(said.host()).is_some() || is_localhost(said.host())
}

/// Whether a request asks this machine by a name or an address that no other one has.
pub(crate) fn asks_loopback<B>(request: &Request<B>) -> bool {
    let Some(said) = authority(request).and_then(|said| said.parse::<Authority>().ok()) else {
        return false;
    };
    address_of(said.host()).is_some_and(|address| address.is_loopback())
        || is_localhost(said.host())
}

fn address_of(host: &str) -> Option<IpAddr> {
    without_brackets(host)?.parse().ok()
}

/// RFC 6761, section 6.3.
fn is_localhost(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost" || host.ends_with(".localhost")
}

/// How the client reaches this server over HTTPS, as it says: host, and port unless 443. Without a port it
/// is 443: the listening port is another one behind a proxy. `None` if what it says is no host.
pub(crate) fn authority<B>(request: &Request<B>) -> Option<String> {
    let from_uri = request.uri().authority().cloned();
    let from_header = || request.headers().get(header::HOST)?.to_str().ok()?.parse().ok();
    let said: Authority = from_uri.or_else(from_header)?;
    let host = Some(said.host()).filter(|host| !host.is_empty())?;
    let port = match said.as_str().rsplit('@').next()?.strip_prefix(host)? {
        "" | ":" => 443,
        _ => said.port_u16()?,
    };
    let reached = match port {
        443 => host.to_owned(),
        port => format!("{host}:{port}"),
    };
    // What stands behind an `@` may be no host by itself.
    reached.parse::<Authority>().is_ok().then_some(reached)
}

/// Reads `data` as the head of a request: its target, then a header a line. What is answered makes sense.
#[cfg(any(test, fuzzing))]
pub fn exercise(data: &[u8]) {
    use weir_speedtest::protocol::answers::{self, Answer, Verb};
    exercise_application(data);
    let Some(request) = request(data) else { return };
    let headers = request.headers();
    for name in [header::CONNECTION, header::UPGRADE, header::SEC_WEBSOCKET_PROTOCOL] {
        for wanted in ["upgrade", "websocket", "weir.v1"] {
            let told = lists(headers, &name, wanted);
            assert_eq!(lists(&joined(headers, &name), &name, wanted), told, "{headers:?}");
        }
    }
    assert!(
        bearer(headers).is_none_or(|secret| headers[header::AUTHORIZATION].len() > secret.len())
    );
    let path = path(&request);
    assert!(!path.starts_with("//") || request.uri().path().starts_with("///"));
    crate::route::exercise(path);
    let authority = authority(&request);
    for verb in [Verb::Get, Verb::Post, Verb::Other] {
        let (query, authority) = (query(&request), authority.as_deref());
        let client = std::net::Ipv4Addr::LOCALHOST.into();
        match answers::answer(&answers::HttpTestRequest { path, query, verb, client, authority }) {
            Ok(Answer::RandomPayload(bytes)) => {
                assert!(bytes <= weir_speedtest::protocol::ookla::MAX_BYTES);
            }
            Ok(Answer::Words(kind, words)) if kind.starts_with("application/json") => {
                let told: serde_json::Value = serde_json::from_str(&words).expect("it is JSON");
                if let Some(url) = told["urls"]["small_download_url"].as_str() {
                    let url: hyper::Uri = url.parse().expect("it is a URL");
                    assert_eq!((url.scheme_str(), url.path()), (Some("https"), "/small"));
                    assert_eq!(url.authority().map(Authority::as_str), authority);
                }
            }
            Ok(_) => {}
            Err(error) => assert!(error.to_string().len() < 300, "{error}"),
        }
    }
}

/// Reads `data` as requests of an application's connection, one after the other, as the server does.
#[cfg(any(test, fuzzing))]
fn exercise_application(mut data: &[u8]) {
    use weir_sockets::load::application::{parse, request};
    while let Ok(Some((flow, response, length))) = parse(data) {
        assert!(length >= 4 && data[..length].ends_with(b"\r\n\r\n"));
        let again = request(flow, length as u64, response);
        assert_eq!(parse(&again), Ok(Some((flow, response, again.len()))));
        data = &data[length..];
    }
}

/// A request whose target is the first line of `data`, and whose headers the others are, as hyper takes them.
#[cfg(any(test, fuzzing))]
fn request(data: &[u8]) -> Option<Request<()>> {
    let mut lines = data.split(|&byte| byte == b'\n');
    let mut request = Request::new(());
    *request.uri_mut() = hyper::Uri::try_from(lines.next()?).ok()?;
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        request.headers_mut().append(name, value);
    }
    Some(request)
}

/// The headers of that name as one (RFC 9110, section 5.3).
#[cfg(any(test, fuzzing))]
fn joined(headers: &HeaderMap, name: &HeaderName) -> HeaderMap {
    let values: Vec<_> =
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    let value = values.join(", ").parse().expect("a list of values is a value");
    HeaderMap::from_iter([(name.clone(), value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(lines: &str) -> Option<String> {
        authority(&request(lines.as_bytes()).unwrap())
    }

    #[test]
    fn the_server_is_where_the_client_says() {
        assert_eq!(reached("/\nhost: test:8080").unwrap(), "test:8080");
        assert_eq!(reached("/\nhost: test").unwrap(), "test", "as behind a proxy");
        assert_eq!(reached("/\nhost: test:443").unwrap(), "test");
        assert_eq!(reached("/\nhost: [::1]").unwrap(), "[::1]");
        assert_eq!(reached("/\nhost: [::1]:9").unwrap(), "[::1]:9");
        assert_eq!(reached("https://a:7/\nhost: b:9").unwrap(), "a:7");
    }

    #[test]
    fn a_name_of_somebody_else_is_not_this_machine() {
        let asks = |lines: &str| asks_by_address(&request(lines.as_bytes()).unwrap());
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "192.0.2.1:80",
            "LocalHost:1",
            "a.localhost",
        ] {
            assert!(asks(&format!("/\nhost: {host}")), "{host}");
        }
        assert!(asks("/"), "only programs say nothing");
        for host in [
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "a b",
        ] {
            assert!(!asks(&format!("/\nhost: {host}")), "{host}");
        }
        assert!(!asks("https://evil.example/\nhost: 127.0.0.1"));
    }

    #[test]
    fn a_host_that_makes_no_sense_is_none() {
        // An empty port is none, and what stands before an @ is not for others.
        assert_eq!(reached("/\nhost: test:").unwrap(), "test");
        assert_eq!(reached("/\nhost: me@test:8080").unwrap(), "test:8080");
        for host in ["", ":8080", "a/b", "a\"b", "a b", "[::1", "test:9x", "test:65536"] {
            assert_eq!(reached(&format!("/\nhost: {host}")), None, "{host}");
        }
    }

    #[test]
    fn the_scheme_of_a_secret_has_letters_of_either_case() {
        let told = |line: &str| {
            let request = request(format!("/\nauthorization: {line}").as_bytes()).unwrap();
            bearer(request.headers()).map(ToOwned::to_owned)
        };
        for line in ["Bearer correct horse", "bearer correct horse", "BEARER  correct horse"] {
            assert_eq!(told(line).as_deref(), Some("correct horse"), "{line}");
        }
        for line in ["Basic correct", "Bearer", "Bearercorrect horse"] {
            assert_eq!(told(line), None, "{line}");
        }
    }

    #[test]
    fn a_list_may_come_in_several_headers() {
        let request =
            request(b"/\nconnection: keep-alive\nconnection: foo , Upgrade\nconnection: \xff")
                .unwrap();
        assert!(lists(request.headers(), &header::CONNECTION, "upgrade"));
        assert!(!lists(request.headers(), &header::CONNECTION, "up"));
        assert!(!lists(request.headers(), &header::UPGRADE, "upgrade"));
    }

    /// The corpus of the fuzz target `serve_heads`, every file also cut short at every byte.
    #[test]
    fn heads_of_the_corpus_are_answered_with_sense() {
        crate::replay::replay("serve_heads", 10, crate::replay::every_byte, exercise);
    }
}
