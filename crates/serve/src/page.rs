//! The browser page. Its source is TypeScript in `page/`; what is served is what `make page` made of it.

use hyper::header::{HeaderName, HeaderValue};

use crate::head::path;
use crate::http::{HttpResponse, content};
use crate::service::{OverHttp, Own, Rules, Service};

pub(crate) const SERVICE: Service = Service::Own(&Own {
    name: "page",
    summary: "The browser page",
    http: Some(OverHttp {
        serves: |path| File::of(path).is_some(),
        answer: |client, request| {
            let file = File::of(path(&request)).expect("its path is one of the page");
            Box::pin(async move { answer(file, client.is_trusted(&request)) })
        },
        rules: Rules { is_for_pages: true, needs_secret: false, ..Rules::READ },
    }),
});

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    Html,
    Script,
    Style,
    Icon,
}

impl File {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/" | "/index.html" => Some(Self::Html),
            "/page.js" => Some(Self::Script),
            "/page.css" => Some(Self::Style),
            "/icon.svg" | "/favicon.ico" => Some(Self::Icon),
            _ => None,
        }
    }
}

/// A file, with headers that keep everything foreign out of the page. One that a browser does not trust cannot
/// have a process of its own, and asking for it is told on the browser's console.
fn answer(file: File, is_trusted: bool) -> HttpResponse {
    let (kind, text) = match file {
        File::Html => ("text/html; charset=utf-8", HTML),
        File::Script => ("text/javascript; charset=utf-8", SCRIPT),
        File::Style => ("text/css; charset=utf-8", STYLE),
        File::Icon => ("image/svg+xml", ICON),
    };
    let mut response = content(kind, text);
    let headers = [
        ("content-security-policy", POLICY),
        ("referrer-policy", "no-referrer"),
        // Alone in its process a page has a clock of microseconds instead of a tenth of a millisecond.
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-embedder-policy", "require-corp"),
    ];
    let isolates = |name: &str| name.starts_with("cross-origin-");
    for (name, value) in headers.into_iter().filter(|(name, _)| is_trusted || !isolates(name)) {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

const HTML: &str = include_str!("../page/dist/index.html");
const SCRIPT: &str = include_str!("../page/dist/page.js");
const STYLE: &str = include_str!("../page/dist/page.css");
const ICON: &str = include_str!("../page/dist/icon.svg");
/// WebSockets of the same host are not `'self'` in all browsers; a chart is saved as a picture by way of `data:`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
