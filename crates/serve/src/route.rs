//! Which protocol a request belongs to.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::{Method, StatusCode};
use tracing::debug;
use weir_protocol::librespeed::Endpoint;
use weir_protocol::weir::{self as own, Direction};
use weir_protocol::{cloudflare, ndt7, responsiveness, throughput1};

use crate::head::path;
use crate::http::{Client, Request, Response, content, empty, preflight, text};
use crate::metrics::CONTENT_TYPE;
use crate::options::Service;
use crate::{page, requests, weir};

/// What a path is for.
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
            "/hello" | "/download" | "/upload" | "/speedtest-config.php" => Self::Ookla,
            "/results/telemetry" | "/results/telemetry.php" => Self::LibrespeedTelemetry,
            _ if path.starts_with("/speedtest/") => Self::Ookla,
            _ => {
                let endpoint = Endpoint::of(path).map(Self::Librespeed);
                return endpoint.or_else(|| page::File::of(path).map(Self::Page));
            }
        })
    }

    const fn service(self) -> Service {
        match self {
            Self::Page(_) => Service::Page,
            Self::Control | Self::Flow => Service::Weir,
            Self::Ndt7(_) => Service::Ndt7,
            Self::Throughput1(_) => Service::Msak,
            Self::Cloudflare => Service::Cloudflare,
            Self::Librespeed(_) | Self::LibrespeedTelemetry => Service::Librespeed,
            Self::Ookla => Service::Ookla,
            Self::Responsiveness => Service::Rpm,
            Self::Metrics => Service::Metrics,
        }
    }

    /// Whether the secret has to be told with the request. The page holds none, and Weir's own protocol has
    /// a better way to ask for it.
    const fn needs_secret(self) -> bool {
        !matches!(self, Self::Page(_) | Self::Control | Self::Flow)
    }
}

/// Answers a request.
pub(crate) async fn answer(client: Arc<Client>, request: Request) -> Result<Response, Infallible> {
    let path = path(&request);
    debug!(client = %client.ends.client, method = %request.method(), path, "request");
    let route = Route::of(path).filter(|route| client.server.serves(route.service()));
    let Some(route) = route else {
        return Ok(text(StatusCode::NOT_FOUND, "there is nothing here\n"));
    };
    if request.method() == Method::OPTIONS {
        return Ok(preflight());
    }
    if route.needs_secret() && !client.is_known(&request) {
        client.server.metrics.refused("secret");
        return Ok(text(StatusCode::UNAUTHORIZED, "this server asks for its secret\n"));
    }
    Ok(match route {
        Route::Page(file) => page::answer(file, &client),
        Route::Control => weir::answer_control(&client, request),
        Route::Flow => weir::answer_flow(&client, request).await,
        Route::Ndt7(direction) => crate::ndt7::answer(&client, request, direction),
        Route::Throughput1(direction) => crate::throughput1::answer(&client, request, direction),
        Route::Cloudflare => requests::cloudflare(&client, request).await,
        Route::Librespeed(endpoint) => requests::librespeed(&client, request, endpoint).await,
        // Results are the client's: nothing is kept.
        Route::LibrespeedTelemetry => empty(StatusCode::OK),
        Route::Ookla => requests::ookla(&client, request).await,
        Route::Responsiveness => requests::responsiveness(&client, request).await,
        Route::Metrics => metrics(&client),
    })
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

/// Whatever a path is: what has a route is a path, and only what is safe goes without the secret.
#[cfg(any(test, fuzzing))]
pub(crate) fn exercise(path: &str) {
    if let Some(route) = Route::of(path) {
        assert!(path.starts_with('/'), "{path}");
        assert!(!route.needs_secret() || !matches!(route.service(), Service::Weir | Service::Page));
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
        assert_eq!(Route::of("/etc/passwd"), None);
        assert_eq!(Route::of(""), None);
    }
}
