//! Routes: the protocol that a request belongs to, by its path.

use std::sync::Arc;

use hyper::{Method, StatusCode, Version};
use tracing::debug;

use crate::activity::Answering;
use crate::head::path;
use crate::health;
use crate::http::{
    Body, Client, HttpRequest, HttpResponse, empty, not_for_pages, other_method, preflight, reads,
    text,
};
use crate::service::{Rules, SERVICES, Service};

/// The service to which a path belongs, whether it is served or not.
fn service_at(path: &str) -> Option<Service> {
    SERVICES.iter().copied().chain([health::SERVICE]).find(|service| service.serves(path))
}

/// Answers a request. The error is that it has to come again over HTTP/1.1: requests over HTTP/2 share a
/// connection (RFC 9113, section 7), and browsers ask in that way wherever they can.
pub(crate) async fn answer(
    client: Arc<Client>,
    request: HttpRequest,
) -> Result<hyper::Response<Answering<Body>>, h2::Error> {
    let shares = request.version() == Version::HTTP_2;
    if shares && service_at(path(&request)).is_some_and(|one| one.rules().shares_no_connection) {
        // As long as it has this connection Firefox asks for the next one over HTTP/2 again: each body comes twice.
        client.activity.give_up();
        return Err(h2::Reason::HTTP_1_1_REQUIRED.into());
    }
    let busy = client.activity.begin();
    let response = answer_request(&client, request).await;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        client.activity.begin().for_good();
    }
    Ok(response.map(|body| Answering::new(body, busy)))
}

async fn answer_request(client: &Arc<Client>, request: HttpRequest) -> HttpResponse {
    let path = path(&request);
    debug!(client = %client.ends.client, method = %request.method(), path, "request");
    // Health is no service that can be switched off.
    let is_served = |one: &Service| *one == health::SERVICE || client.server.serves(*one);
    let Some(service) = service_at(path).filter(is_served) else {
        return text(StatusCode::NOT_FOUND, "there is nothing here\n");
    };
    let rules = service.rules();
    let response = match refusal(client, &request, rules) {
        Some(refusal) => refusal,
        None => service.answer(client, request).await,
    };
    if rules.is_for_pages { response } else { not_for_pages(response) }
}

/// The answer to a request that no protocol sees: one that only asks what is allowed, or that is not.
fn refusal(client: &Client, request: &HttpRequest, rules: Rules) -> Option<HttpResponse> {
    if *request.method() == Method::OPTIONS {
        let empty = || empty(StatusCode::NO_CONTENT);
        return Some(if rules.is_for_pages { preflight() } else { empty() });
    }
    let posts = *request.method() == Method::POST && !rules.only_reads;
    if !reads(request) && !posts {
        let allowed = if rules.only_reads { READING } else { READING_AND_POST };
        return Some(other_method(allowed));
    }
    if rules.needs_secret && !client.is_known(request) {
        client.server.refused("secret", client.ends.client.ip());
        return Some(text(StatusCode::UNAUTHORIZED, "this server asks for its secret\n"));
    }
    None
}

const READING: &str = "GET, HEAD, OPTIONS";
const READING_AND_POST: &str = "GET, HEAD, POST, OPTIONS";

/// Checks what must hold for any path: every route starts with `/`, and only safe ones go without the secret.
#[cfg(any(test, fuzzing))]
pub(crate) fn exercise(path: &str) {
    if let Some(service) = service_at(path) {
        assert!(path.starts_with('/'), "{path}");
        let own = [crate::weir::SERVICE, crate::page::SERVICE].contains(&service);
        assert!(!service.rules().needs_secret || !own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_paths() {
        let name = |path| service_at(path).map(Service::name);
        assert_eq!(name("/weir/v1"), Some("weir"));
        assert_eq!(name("/ndt/v7/upload"), Some("ndt7"));
        assert_eq!(name("/throughput/v1/download"), Some("msak"));
        assert_eq!(name("/__down"), Some("cloudflare"));
        assert_eq!(name("/backend/empty.php"), Some("librespeed"));
        assert_eq!(name("/speedtest/random350x350.jpg"), Some("ookla"));
        assert_eq!(name("/.well-known/nq"), Some("rpm"));
        assert_eq!(name("/"), Some("page"));
        assert_eq!(name("/metrics"), Some("metrics"));
        assert_eq!(name("/healthz"), Some("health"));
        assert_eq!(name("/etc/passwd"), None);
        assert_eq!(name(""), None);
    }

    #[test]
    fn services_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = SERVICES.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), SERVICES.len());
    }
}
