//! The body of a request: the codec below is given whole messages and nothing else.
//!
//! tonic reserves what a message's five bytes of prefix claim. Here what arrives is gathered first, in memory that grows
//! with what has arrived and that the connection's share has room for. What comes whole, as nearly every request does,
//! passes as it came and is not copied. A message that began has to end in time; where a call has one message, the call
//! has to.

use super::budget::{Held, Share};
use super::{Call, Context, READ_TIMES, RETRY_AFTER};
use crate::server::status::{malformed, status};
use hintd_engine::Refusal;
use hyper::body::{Body as HttpBody, Frame};
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{self, Poll, ready};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Bytes;

/// Compression flag and length.
const PREFIX: usize = 5;
/// The first memory that a message in parts takes, unless it is smaller.
const FIRST: usize = 4_096;
/// tonic keeps the memory of a stream's largest message for the next one; what is below this is not counted.
const KEPT_MIN: usize = 64 * 1_024;
/// See the module.
pub(super) struct InboundBody {
    inner: Body,
    context: Arc<Context>,
    share: Share,
    call: Call,
    /// For the codec, in order.
    whole: VecDeque<Bytes>,
    /// A message of which something is missing.
    partial: Option<Partial>,
    held: Option<Held>,
    /// Where a call's only message leaves what it holds, until the call is answered.
    answered: Arc<OnceLock<Held>>,
    /// What the codec keeps of this stream's largest message.
    kept: usize,
    /// Until when the message, or the call, has to end; made when there is something to wait for.
    within: Option<Pin<Box<Sleep>>>,
    /// The codec refuses what it was given last, and reads no further.
    refused: bool,
}

#[derive(Default)]
struct Partial {
    bytes: Vec<u8>,
    /// Prefix and message, once the prefix is there.
    length: Option<usize>,
}

/// How far bytes may go to the codec as they are.
struct Ready {
    bytes: usize,
    /// It ends with a prefix that the codec refuses.
    refused: bool,
}

/// The length that a prefix claims; `None`: the codec refuses it, for no service takes compressed messages, or one so
/// long.
fn claimed(prefix: &[u8], most: usize) -> Option<usize> {
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    (prefix[0] == 0 && length <= most).then_some(length)
}

fn whole_messages(data: &[u8], most: usize) -> Ready {
    let mut at = 0;
    while let Some(prefix) = data.get(at..at + PREFIX) {
        match claimed(prefix, most) {
            None => return Ready { bytes: at + PREFIX, refused: true },
            Some(length) if length <= data.len() - at - PREFIX => at += PREFIX + length,
            Some(_) => break,
        }
    }
    Ready { bytes: at, refused: false }
}

impl InboundBody {
    pub(super) fn new(
        inner: Body,
        context: Arc<Context>,
        share: Share,
        call: Call,
        answered: Arc<OnceLock<Held>>,
    ) -> Self {
        Self {
            inner,
            context,
            share,
            call,
            whole: VecDeque::new(),
            partial: None,
            held: None,
            answered,
            kept: 0,
            within: None,
            refused: false,
        }
    }

    /// Takes in what arrived.
    fn take(&mut self, mut data: Bytes) -> Result<(), Status> {
        while !data.is_empty() && !self.refused {
            if self.partial.is_none() {
                let Ready { bytes, refused } = whole_messages(&data, self.context.message_bytes);
                if bytes > 0 {
                    self.whole.push_back(data.split_to(bytes));
                }
                self.refused = refused;
                if data.is_empty() || refused {
                    return Ok(());
                }
            }
            self.gather(&mut data)?;
        }
        Ok(())
    }

    /// Adds to the message of which something is missing, and passes it on once it is whole.
    fn gather(&mut self, data: &mut Bytes) -> Result<(), Status> {
        let mut partial = self.partial.take().unwrap_or_default();
        let missing = partial.length.unwrap_or(PREFIX) - partial.bytes.len();
        let next = data.split_to(missing.min(data.len()));
        self.make_room(&mut partial, next.len())?;
        partial.bytes.extend_from_slice(&next);
        if partial.length.is_none() && partial.bytes.len() == PREFIX {
            match claimed(&partial.bytes, self.context.message_bytes) {
                Some(length) => partial.length = Some(PREFIX + length),
                None => {
                    self.whole.push_back(partial.bytes.into());
                    self.refused = true;
                    return Ok(());
                }
            }
        }
        if partial.length == Some(partial.bytes.len()) { self.pass(partial) } else { self.wait_for(partial) }
    }

    fn wait_for(&mut self, partial: Partial) -> Result<(), Status> {
        self.partial = Some(partial);
        Ok(())
    }

    /// The prefix goes first: the codec reserves what it says, and the message fills it.
    fn pass(&mut self, partial: Partial) -> Result<(), Status> {
        let message = partial.bytes.len();
        let shape = self.context.shapes.of(self.call.path.path());
        let most = self.context.message_bytes.saturating_mul(READ_TIMES);
        if shape.is_some_and(|shape| !shape.fits(&partial.bytes[PREFIX..], most)) {
            let message = format!("its {message} bytes would take more than {most} when they are read");
            return Err(malformed(&message));
        }
        // The codec's copy.
        if !self.held.as_mut().is_none_or(|held| held.grow(message)) {
            return Err(self.no_room());
        }
        if message > KEPT_MIN {
            self.kept = self.kept.max(message);
        }
        let mut bytes = Bytes::from(partial.bytes);
        self.whole.push_back(bytes.split_to(PREFIX));
        self.whole.push_back(bytes);
        if self.call.streamed {
            self.within = None;
        }
        Ok(())
    }

    /// Memory doubles while a message arrives, up to what the prefix claims.
    fn make_room(&mut self, partial: &mut Partial, more: usize) -> Result<(), Status> {
        let (wanted, has) = (partial.bytes.len() + more, partial.bytes.capacity());
        if wanted <= has {
            return Ok(());
        }
        let capacity = (has * 2).max(FIRST).min(partial.length.unwrap_or(FIRST)).max(wanted);
        let room = match &mut self.held {
            Some(held) => held.grow(capacity - has),
            None => {
                self.held = self.share.take(capacity - has);
                self.held.is_some()
            }
        };
        if !room {
            return Err(self.no_room());
        }
        partial.bytes.reserve_exact(capacity - partial.bytes.len());
        Ok(())
    }

    fn no_room(&self) -> Status {
        self.context.refused_inbound();
        let message =
            "messages that are on their way take as much memory as limits.inbound_bytes leaves this connection";
        status(&Refusal::Unavailable { message: message.to_owned(), retry_after: RETRY_AFTER })
    }

    /// The codec asks for more: it has read what it was given.
    fn give_back(&mut self) {
        if let Some(mut held) = self.held.take_if(|_| self.partial.is_none()) {
            if self.call.streamed {
                held.shrink_to(self.kept);
                self.held = Some(held);
            } else if let Err(second) = self.answered.set(held) {
                self.held = Some(second); // a client that sends more than one message
            }
        }
    }

    /// Where something is waited for: whether it has come to its end in time.
    fn poll_overdue(&mut self, cx: &mut task::Context<'_>) -> Poll<Status> {
        if self.call.streamed && self.partial.is_none() {
            return Poll::Pending;
        }
        let upload = self.context.upload;
        let within = self.within.get_or_insert_with(|| Box::pin(sleep(upload)));
        ready!(within.as_mut().poll(cx));
        self.context.upload_ended();
        let message = format!("it began {upload:?} ago and is not whole yet (limits.upload)");
        Poll::Ready(status(&Refusal::Invalid { field: "message".to_owned(), message }))
    }
}

impl HttpBody for InboundBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = &mut *self;
        loop {
            if let Some(bytes) = body.whole.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if body.refused {
                return Poll::Ready(None);
            }
            body.give_back();
            let frame = match Pin::new(&mut body.inner).poll_frame(cx) {
                Poll::Pending => return body.poll_overdue(cx).map(|status| Some(Err(status))),
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Ready(None) if body.partial.is_some() => {
                    body.partial = None;
                    return Poll::Ready(Some(Err(malformed("the stream ended within a message"))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
            };
            match frame.into_data() {
                Ok(data) => {
                    if let Err(status) = body.take(data) {
                        (body.partial, body.refused) = (None, true);
                        return Poll::Ready(Some(Err(status)));
                    }
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_empty() && self.partial.is_none() && self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tests::running;
    use crate::server::bounds::budget::Budget;
    use std::future::poll_fn;
    use std::time::Duration;
    use tokio_stream::StreamExt as _;

    const MOST: usize = 16 << 20;

    struct Received {
        body: InboundBody,
        share: Share,
        answered: Arc<OnceLock<Held>>,
        up: tokio::sync::mpsc::UnboundedSender<Bytes>,
    }

    impl Received {
        fn new(daemon: &crate::runtime::Daemon, streamed: bool) -> Self {
            let (up, sent) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
            let frames = tokio_stream::wrappers::UnboundedReceiverStream::new(sent);
            let frames = frames.map(|bytes| Ok::<_, Status>(Frame::data(bytes)));
            let shapes = super::super::Shapes::new(super::super::DESCRIPTORS);
            let upload = Duration::from_secs(60);
            let context = Context { daemon: daemon.clone(), message_bytes: MOST, upload, shapes };
            let call = Call { path: "/hintd.v1.Placement/RequestHints".parse().unwrap(), streamed };
            let (share, answered) = (Budget::new(64 << 20).share(), Arc::default());
            let inner = Body::new(http_body_util::StreamBody::new(frames));
            let body = InboundBody::new(inner, Arc::new(context), share.clone(), call, Arc::clone(&answered));
            Self { body, share, answered, up }
        }

        /// What the codec gets next; `None`: nothing yet.
        async fn next(&mut self) -> Option<Bytes> {
            let next = poll_fn(|cx| Poll::Ready(Pin::new(&mut self.body).poll_frame(cx))).await;
            match next {
                Poll::Pending => None,
                Poll::Ready(frame) => Some(frame.unwrap().unwrap().into_data().unwrap()),
            }
        }

        /// Whether at least so many bytes could be taken beside what is held.
        fn leaves(&self, bytes: usize) -> bool {
            self.share.take(bytes / 2).is_some()
        }
    }

    fn message(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).unwrap();
        [&[0][..], &length.to_be_bytes(), &vec![7; bytes]].concat()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_arrives_whole_passes_as_it_came_and_takes_nothing() {
        let (_folder, running) = running().await;
        let mut call = Received::new(&running.daemon, true);
        let two = Bytes::from([message(100), message(0)].concat());
        call.up.send(two.clone()).unwrap();
        let passed = call.next().await.unwrap();
        assert_eq!((passed.as_ptr(), passed.len()), (two.as_ptr(), two.len()), "the very bytes, not a copy");
        assert!(call.next().await.is_none() && call.share.still_since().is_none());
        running.shutdown().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_message_in_parts_takes_what_arrived_and_is_passed_on_when_it_is_whole() {
        let (_folder, running) = running().await;
        for streamed in [false, true] {
            let mut call = Received::new(&running.daemon, streamed);
            let whole = message(300_000);
            let parts = [&whole[..3], &whole[3..6], &whole[6..100_000], &whole[100_000..299_999]];
            for part in parts {
                call.up.send(Bytes::copy_from_slice(part)).unwrap();
                assert!(call.next().await.is_none(), "something is missing");
            }
            assert!(call.leaves((64 << 20) - 2 * 400_000), "no more than twice what arrived is held");
            call.up.send(Bytes::copy_from_slice(&whole[299_999..])).unwrap();
            let (prefix, rest) = (call.next().await.unwrap(), call.next().await.unwrap());
            assert_eq!([&prefix[..], &rest[..]].concat(), whole);
            assert_eq!(prefix.len(), PREFIX);
            assert!(call.next().await.is_none());
            assert!(call.share.still_since().is_some(), "the message is being worked on");
            assert_eq!(call.answered.get().is_some(), !streamed);
            let Received { share, answered, body, .. } = call;
            drop(body);
            drop(answered);
            assert_eq!(share.still_since(), None, "all is given back");
        }
        running.shutdown().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_prefix_takes_no_more_than_a_page_whatever_it_claims_and_a_refused_one_goes_to_the_codec() {
        let (_folder, running) = running().await;
        let mut call = Received::new(&running.daemon, false);
        call.up.send(Bytes::copy_from_slice(&message(MOST)[..PREFIX])).unwrap();
        assert!(call.next().await.is_none());
        assert!(call.leaves((64 << 20) - 4 * FIRST));
        for refused in [[0, 1, 0, 0, 1], [1, 0, 0, 0, 9]] {
            let mut call = Received::new(&running.daemon, false);
            for byte in refused {
                call.up.send(Bytes::copy_from_slice(&[byte])).unwrap();
            }
            assert_eq!(call.next().await.unwrap(), refused[..], "the codec says what is wrong with it");
            assert!(matches!(
                poll_fn(|cx| Poll::Ready(Pin::new(&mut call.body).poll_frame(cx))).await,
                Poll::Ready(None)
            ));
        }
        running.shutdown().await.unwrap();
    }
}
