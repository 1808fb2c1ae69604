//! Routes: the protocol that a request belongs to, by its path.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::{Method, StatusCode};
use tracing::debug;
use weir_protocol::librespeed::Endpoint;
use weir_protocol::weir::{self as own, Direction};
use weir_protocol::{cloudflare, ndt7, responsiveness, throughput1};

use crate::activity::Answering;
use crate::head::path;
use crate::http::{
    Body, Client, Request, Response, content, empty, not_for_pages, other_method, preflight, reads,
    text,
};
use crate::metrics::CONTENT_TYPE;
use crate::options::Service;
use crate::{page, requests, weir};

/// The endpoint that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Page(page::File),
    Control,
    Flow,
    Ndt7(Direction),
    Throughput1(Direction),
    Cloudflare,
    Librespeed(Endpoint),
    LibrespeedTelemetry,
    Ookla,
    Responsiveness,
    Metrics,
    Health,
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            own::CONTROL => Self::Control,
            own::FLOW => Self::Flow,
            ndt7::DOWNLOAD => Self::Ndt7(Direction::Down),
            ndt7::UPLOAD => Self::Ndt7(Direction::Up),
            throughput1::DOWNLOAD => Self::Throughput1(Direction::Down),
            throughput1::UPLOAD => Self::Throughput1(Direction::Up),
            cloudflare::DOWN | cloudflare::UP => Self::Cloudflare,
            responsiveness::CONFIG
            | responsiveness::SMALL
            | responsiveness::LARGE
            | responsiveness::UPLOAD => Self::Responsiveness,
            "/metrics" => Self::Metrics,
            "/healthz" => Self::Health,
            "/hello" | "/download" | "/upload" | "/speedtest-config.php" => Self::Ookla,
            "/results/telemetry" | "/results/telemetry.php" => Self::LibrespeedTelemetry,
            _ if path.starts_with("/speedtest/") => Self::Ookla,
            _ => {
                let endpoint = Endpoint::of(path).map(Self::Librespeed);
                return endpoint.or_else(|| page::File::of(path).map(Self::Page));
            }
        })
    }

    /// Service that the route belongs to; `None` if the route is always there.
    const fn service(self) -> Option<Service> {
        Some(match self {
            Self::Page(_) => Service::Page,
            Self::Control | Self::Flow => Service::Weir,
            Self::Ndt7(_) => Service::Ndt7,
            Self::Throughput1(_) => Service::Msak,
            Self::Cloudflare => Service::Cloudflare,
            Self::Librespeed(_) | Self::LibrespeedTelemetry => Service::Librespeed,
            Self::Ookla => Service::Ookla,
            Self::Responsiveness => Service::Rpm,
            Self::Metrics => Service::Metrics,
            Self::Health => return None,
        })
    }

    /// Whether it is never POSTed to. Where it may be, the protocol says more.
    const fn only_reads(self) -> bool {
        matches!(self, Self::Page(_) | Self::Metrics | Self::Health)
    }

    /// Whether pages of other sites may read it.
    const fn is_for_pages(self) -> bool {
        !matches!(self, Self::Metrics | Self::Health)
    }

    /// Whether the secret has to be told with the request. The page holds none, and Weir's own protocol has
    /// a better way to ask for it.
    const fn needs_secret(self) -> bool {
        !matches!(self, Self::Page(_) | Self::Control | Self::Flow | Self::Health)
    }
}

/// Answers a request.
pub(crate) async fn answer(
    client: Arc<Client>,
    request: Request,
) -> Result<hyper::Response<Answering<Body>>, Infallible> {
    let busy = client.activity.begin();
    let response = answer_request(&client, request).await;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        client.activity.begin().for_good();
    }
    Ok(response.map(|body| Answering::new(body, busy)))
}

async fn answer_request(client: &Arc<Client>, request: Request) -> Response {
    let path = path(&request);
    debug!(client = %client.ends.client, method = %request.method(), path, "request");
    let is_served = |route: &Route| route.service().is_none_or(|one| client.server.serves(one));
    let Some(route) = Route::of(path).filter(is_served) else {
        return text(StatusCode::NOT_FOUND, "there is nothing here\n");
    };
    let response = answer_route(client, request, route).await;
    if route.is_for_pages() { response } else { not_for_pages(response) }
}

async fn answer_route(client: &Arc<Client>, request: Request, route: Route) -> Response {
    if *request.method() == Method::OPTIONS {
        return if route.is_for_pages() { preflight() } else { empty(StatusCode::NO_CONTENT) };
    }
    let posts = *request.method() == Method::POST && !route.only_reads();
    if !reads(&request) && !posts {
        let allowed = if route.only_reads() { READING } else { READING_AND_POST };
        return other_method(allowed);
    }
    if route.needs_secret() && !client.is_known(&request) {
        client.server.refused("secret", client.ends.client.ip());
        return text(StatusCode::UNAUTHORIZED, "this server asks for its secret\n");
    }
    match route {
        Route::Page(file) => page::answer(file, client),
        Route::Control => weir::answer_control(client, request),
        Route::Flow => weir::answer_flow(client, request).await,
        Route::Ndt7(direction) => crate::ndt7::answer(client, request, direction),
        Route::Throughput1(direction) => crate::throughput1::answer(client, request, direction),
        Route::Cloudflare => requests::cloudflare(client, request).await,
        Route::Librespeed(endpoint) => requests::librespeed(client, request, endpoint).await,
        // Results are the client's: nothing is kept.
        Route::LibrespeedTelemetry => empty(StatusCode::OK),
        Route::Ookla => requests::ookla(client, request).await,
        Route::Responsiveness => requests::responsiveness(client, request).await,
        Route::Metrics => metrics(client),
        Route::Health => health(client),
    }
}

/// Whether all listening sockets are at work, for whoever watches over the server.
fn health(client: &Client) -> Response {
    let in_full = client.ends.client.ip().is_loopback() || client.server.options.public_metrics;
    let (well, said) = client.server.health.report(in_full);
    let mut response = content("application/json", said);
    if !well {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Counters are told to this machine only, unless everybody may know.
fn metrics(client: &Client) -> Response {
    let near = client.ends.client.ip().is_loopback();
    if near || client.server.options.public_metrics {
        content(CONTENT_TYPE, client.server.metrics.text())
    } else {
        text(StatusCode::FORBIDDEN, "metrics are for this machine only: see --public-metrics\n")
    }
}

const READING: &str = "GET, HEAD, OPTIONS";
const READING_AND_POST: &str = "GET, HEAD, POST, OPTIONS";

/// Checks what must hold for any path: every route starts with `/`, and only safe ones go without the secret.
#[cfg(any(test, fuzzing))]
pub(crate) fn exercise(path: &str) {
    if let Some(route) = Route::of(path) {
        assert!(path.starts_with('/'), "{path}");
        let own = matches!(route.service(), Some(Service::Weir | Service::Page));
        assert!(!route.needs_secret() || !own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_paths() {
        assert_eq!(Route::of("/weir/v1"), Some(Route::Control));
        assert_eq!(Route::of("/ndt/v7/upload"), Some(Route::Ndt7(Direction::Up)));
        assert_eq!(Route::of("/backend/empty.php"), Some(Route::Librespeed(Endpoint::Empty)));
        assert_eq!(Route::of("/speedtest/random350x350.jpg"), Some(Route::Ookla));
        assert_eq!(Route::of("/.well-known/nq"), Some(Route::Responsiveness));
        assert!(matches!(Route::of("/"), Some(Route::Page(_))));
        assert_eq!(Route::of("/healthz"), Some(Route::Health));
        assert_eq!(Route::of("/etc/passwd"), None);
        assert_eq!(Route::of(""), None);
    }
}
