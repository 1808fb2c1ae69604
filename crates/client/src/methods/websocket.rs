//! WebSockets as tasks.

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio_tungstenite::WebSocketStream;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, Message};
use weir_core::error_in_words;
use weir_speedtest::protocol::UnsentBound;
use weir_speedtest::protocol::load::MessageSize;
use weir_speedtest::{Event, Id, News};

use super::drive::{TimedEvent, tell};
use super::transport::{Dialer, Stream, Transport};

/// The sending half.
pub(super) type Sender = SplitSink<WebSocketStream<Stream>, Message>;
/// The receiving half.
pub(super) type Receiver = SplitStream<WebSocketStream<Stream>>;

/// Upgrades a connection.
pub(super) async fn open(
    dialer: &Dialer,
    path: &str,
    subprotocol: &'static str,
) -> Result<(Sender, Receiver, Handshakes), String> {
    let words = |error: &dyn std::fmt::Display| error_in_words(error);
    let Transport { mut stream, tcp, tls, .. } =
        dialer.dial(b"http/1.1").await.map_err(|error| words(&error))?;
    let url = format!("ws://{}{}{path}", dialer.url.authority, dialer.url.base);
    let mut request = url.into_client_request().map_err(|error| words(&error))?;
    let name = HeaderValue::from_static(subprotocol);
    request.headers_mut().insert("Sec-WebSocket-Protocol", name);
    if let Some(bearer) = &dialer.bearer {
        request.headers_mut().insert("Authorization", bearer.clone());
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES))
        .write_buffer_size(0);
    stream.hold(UnsentBound::of_websocket());
    let opened = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
    let (frames, _) = opened.map_err(|error| words(&error))?;
    let (sender, receiver) = frames.split();
    Ok((sender, receiver, Handshakes { tcp, tls }))
}

/// How long the handshakes took.
pub(super) struct Handshakes {
    pub tcp: weir_core::Duration,
    pub tls: Option<weir_core::Duration>,
}

/// Tells what comes, to the end.
pub(super) async fn receive(id: Id, mut receiver: Receiver, events: UnboundedSender<TimedEvent>) {
    let end = loop {
        match receiver.next().await {
            Some(Ok(Message::Binary(data))) => {
                tell(&events, Event::Received { id, bytes: data.len() as u64 });
            }
            Some(Ok(Message::Text(text))) => {
                tell(&events, News::Text { id, text: text.to_string() });
            }
            Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) | None => {
                break News::Event(Event::Ended { id });
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => break News::Failed { id, reason: error_in_words(&error) },
        }
    };
    tell(&events, end);
}

/// Sends binary messages until the connection is closed.
pub(super) async fn load(
    id: Id,
    mut sender: Sender,
    mut sizes: MessageSize,
    random_payload: Bytes,
    events: UnboundedSender<TimedEvent>,
) {
    let mut sent = 0;
    loop {
        let size = sizes.next(sent).min(random_payload.len());
        if sender.send(Message::Binary(random_payload.slice(..size))).await.is_err() {
            // The receiving half says why.
            return;
        }
        sent += size as u64;
        tell(&events, Event::Sent { id, bytes: size as u64 });
    }
}

/// ndt7: a receiver takes messages of so many bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 24;
