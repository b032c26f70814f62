//! Listens to the controller's websocket: events arrive within milliseconds, polls only every few seconds.

use super::options::RyuOptions;
use super::ryu;
use super::watch::ControllerEvent;
use crate::rest_client::backoff;
use crate::telemetry::sdn::{Asked, SdnMetrics};
use futures_util::SinkExt as _;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

/// Bytes of one event: a switch of ten thousand ports takes 1.5 MB.
const EVENT_BYTES: usize = 4 << 20;

/// Reads events for ever; after a break it connects again, later each time.
pub(super) async fn run(options: Arc<RyuOptions>, metrics: SdnMetrics, news: mpsc::Sender<ControllerEvent>) {
    let mut failures = 0;
    loop {
        let mut heard = false;
        let ended = session(&options, &metrics, &news, &mut heard).await;
        if heard {
            failures = 0;
        }
        failures += 1;
        metrics.asked(Asked::Events, Some("broken"));
        tracing::warn!(controller = %options.authority, error = %ended, "the controller's events can't be heard");
        // Only what was heard can be missed: a controller that tells no events is believed what it answers.
        if heard && news.send(ControllerEvent::Deaf).await.is_err() {
            return;
        }
        tokio::time::sleep(backoff(failures, options.backoff, rand::random())).await;
    }
}

/// One connection; returns why it ended.
async fn session(
    options: &RyuOptions,
    metrics: &SdnMetrics,
    news: &mpsc::Sender<ControllerEvent>,
    heard: &mut bool,
) -> tungstenite::Error {
    let connect = async {
        let stream = TcpStream::connect(&options.authority).await?;
        stream.set_nodelay(true)?;
        let url = format!("ws://{}/v1.0/topology/ws", options.authority);
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(EVENT_BYTES);
        config.max_frame_size = Some(EVENT_BYTES);
        client_async_with_config(url, stream, Some(config)).await
    };
    let mut socket = match tokio::time::timeout(options.timeout, connect).await {
        Ok(Ok((socket, _))) => socket,
        Ok(Err(error)) => return error,
        Err(late) => return tungstenite::Error::Io(late.into()),
    };
    metrics.asked(Asked::Events, None);
    tracing::info!(controller = %options.authority, "the controller's events are heard");
    *heard = true;
    loop {
        let message = match socket.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => return error,
            None => return tungstenite::Error::ConnectionClosed,
        };
        let Message::Text(text) = message else { continue };
        match ryu::call(&text) {
            Ok((event, answer)) => {
                match event {
                    Ok(event) => {
                        metrics.event(event.kind());
                        if news.send(ControllerEvent::Event(event)).await.is_err() {
                            return tungstenite::Error::AlreadyClosed;
                        }
                    }
                    Err(error) => {
                        metrics.event("nonsense");
                        tracing::warn!(%error, "an event of the controller is nonsense");
                    }
                }
                // Ryu sends nothing more to us before it has this.
                if let Err(error) = socket.send(Message::text(answer)).await {
                    return error;
                }
            }
            Err(error) => {
                metrics.event("nonsense");
                tracing::warn!(%error, "what the controller sent is no call");
            }
        }
    }
}
