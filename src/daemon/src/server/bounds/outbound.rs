//! The body of an answer: its bytes are counted from when they are encoded until the connection has sent them.
//!
//! An answer that nobody reads would wait as the message it is made of, which takes twice as much. So its first part is
//! encoded at once; what the budget has no room for is refused with a delay, and the same request finds its answer later.
//! Pieces tell when the other side reads: each is let go of as it is sent.

use super::pace::{Outgoing, WaitingAnswer};
use super::{Context, RETRY_AFTER};
use crate::server::status::status;
use hintd_engine::Refusal;
use hyper::body::{Body as HttpBody, Frame};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};

/// What is handed to the connection at once.
const PIECE: usize = 64 * 1_024;
/// See the module.
pub(super) struct OutboundBody {
    inner: Body,
    context: Arc<Context>,
    share: Outgoing,
    /// What is encoded and not handed over yet.
    waits: Option<(Bytes, Arc<WaitingAnswer>)>,
    /// What comes after it.
    next: Option<Frame<Bytes>>,
    ended: bool,
}

/// Bytes on their way out, with what they hold.
struct Piece {
    bytes: Bytes,
    _held: Arc<WaitingAnswer>,
    share: Outgoing,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.share.sent();
    }
}

/// An answer whose bytes are counted, or a refusal in its place.
pub(super) async fn counted(
    response: http::Response<Body>,
    context: Arc<Context>,
    share: Outgoing,
) -> http::Response<Body> {
    let (head, inner) = response.into_parts();
    if inner.is_end_stream() {
        return http::Response::from_parts(head, inner);
    }
    let mut body = OutboundBody { inner, context, share, waits: None, next: None, ended: false };
    let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut body.inner).poll_frame(cx))).await;
    match first {
        Poll::Pending => {}
        Poll::Ready(None) => body.ended = true,
        Poll::Ready(Some(Err(status))) => return status.into_http(),
        Poll::Ready(Some(Ok(frame))) => {
            if let Err(status) = body.take(frame) {
                return status.into_http();
            }
        }
    }
    http::Response::from_parts(head, Body::new(body))
}

impl OutboundBody {
    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), Status> {
        match frame.into_data() {
            Ok(data) => match self.share.take(data.len()) {
                Some(held) => self.waits = Some((data, Arc::new(held))),
                None => return Err(self.no_room(data.len())),
            },
            Err(other) => self.next = Some(other),
        }
        Ok(())
    }

    fn no_room(&self, bytes: usize) -> Status {
        self.context.refused_outbound();
        let message = format!(
            "the answer has {bytes} bytes, and unread ones take as much memory as limits.outbound_bytes leaves this \
             connection"
        );
        status(&Refusal::Unavailable { message, retry_after: RETRY_AFTER })
    }

    fn piece(&mut self) -> Option<Frame<Bytes>> {
        let (mut rest, held) = self.waits.take()?;
        let bytes = rest.split_to(rest.len().min(PIECE));
        if !rest.is_empty() {
            self.waits = Some((rest, Arc::clone(&held)));
        }
        // It is asked for when the other side has room.
        self.share.progress();
        Some(Frame::data(Bytes::from_owner(Piece { bytes, _held: held, share: self.share.clone() })))
    }
}

impl HttpBody for OutboundBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = &mut *self;
        loop {
            if let Some(frame) = body.piece().or_else(|| body.next.take()) {
                return Poll::Ready(Some(Ok(frame)));
            }
            if body.ended {
                return Poll::Ready(None);
            }
            match ready!(Pin::new(&mut body.inner).poll_frame(cx)) {
                None => body.ended = true,
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                Some(Ok(frame)) => {
                    if let Err(status) = body.take(frame) {
                        // A stream ends with it; who follows or watches resumes.
                        body.ended = true;
                        let mut trailers = http::HeaderMap::new();
                        // A status of ours is plain text: it always fits into headers.
                        let _ = status.add_header(&mut trailers);
                        body.next = Some(Frame::trailers(trailers));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waits.is_none() && self.next.is_none() && (self.ended || self.inner.is_end_stream())
    }
}
