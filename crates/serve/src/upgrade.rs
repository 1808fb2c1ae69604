//! From HTTP to something else on the same connection.

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Method, StatusCode, Version};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::connection::Transport;
use crate::head::lists;
use crate::http::{HttpRequest, HttpResponse, empty, text};

/// A connection that is about to be handed over.
pub(crate) struct Upgrade(hyper::upgrade::OnUpgrade);

impl Upgrade {
    /// The connection, and what was already read of what follows. `None` if the client is gone.
    pub async fn complete(self) -> Option<(Transport, Bytes)> {
        let upgraded = self.0.await.ok()?;
        let parts = downcast::<TokioIo<Transport>>(upgraded).ok()?;
        Some((parts.io.into_inner(), parts.read_buf))
    }
}

/// Turns a request into a WebSocket that speaks `subprotocol` (RFC 6455, section 4.2).
pub(crate) fn websocket(
    request: &mut HttpRequest,
    subprotocol: &'static str,
) -> Result<(HttpResponse, Upgrade), Box<HttpResponse>> {
    let refused = |words: Bytes| Err(Box::new(text(StatusCode::BAD_REQUEST, words)));
    let asked = request.headers();
    let needed = "this is for WebSockets\n";
    if request.method() != Method::GET || !asks_for(request, "websocket") {
        let mut response = text(StatusCode::UPGRADE_REQUIRED, needed);
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        return Err(Box::new(response));
    }
    if asked.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return refused("WebSockets have version 13\n".into());
    }
    if !lists(asked, &header::SEC_WEBSOCKET_PROTOCOL, subprotocol) {
        let words = format!("the header Sec-WebSocket-Protocol has to name {subprotocol}\n");
        return refused(words.into());
    }
    let Some(key) = asked.get(header::SEC_WEBSOCKET_KEY) else {
        return refused("the header Sec-WebSocket-Key is missing\n".into());
    };
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes())).expect("it is base64");
    let (mut response, upgrade) = switch(request, "websocket");
    let headers = response.headers_mut();
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
    Ok((response, upgrade))
}

/// Turns a request into a connection for `protocol`, if that is what it asks for.
pub(crate) fn plain(
    request: &mut HttpRequest,
    protocol: &'static str,
) -> Option<(HttpResponse, Upgrade)> {
    asks_for(request, protocol).then(|| switch(request, protocol))
}

/// RFC 9110, section 7.8: only HTTP/1.1 has it.
fn asks_for(request: &HttpRequest, protocol: &str) -> bool {
    let headers = request.headers();
    request.version() == Version::HTTP_11
        && lists(headers, &header::CONNECTION, "upgrade")
        && lists(headers, &header::UPGRADE, protocol)
}

fn switch(request: &mut HttpRequest, protocol: &'static str) -> (HttpResponse, Upgrade) {
    let mut response = empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    // There is nothing that could be kept or read: what follows is another protocol's.
    headers.clear();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(protocol));
    (response, Upgrade(hyper::upgrade::on(request)))
}
