//! A gRPC client that sends and reads messages as bytes or as JSON: one connection a call, over `h2`. It has none of the
//! programs' own code about gRPC, so it sees what really goes over the wire.

use crate::codec::{decode, encode};
use crate::proto::{Method, Schema};
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;
use tonic::codegen::{Bytes, http};

/// The longest wait for something that should happen right away.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The declarations in `proto/`.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::of_set(hintd_client::wire::DESCRIPTORS));

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads can be made")
});

/// The largest flow-control window, so that no answer is held back.
const WINDOW: u32 = 0x7FFF_FFFF;

const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Where a daemon listens.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Tcp(String),
    Unix(PathBuf),
}

/// How a call ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    pub(crate) code: String,
    pub(crate) message: String,
    /// Trailers other than status and message, including `grpc-status-details-bin`.
    pub(crate) metadata: BTreeMap<String, String>,
}

enum Event {
    Message(Vec<u8>),
    End(Status),
}

/// An open call whose messages are bytes; dropping it closes the connection.
pub(crate) struct RawCall {
    requests: SendStream<Bytes>,
    events: Receiver<Event>,
    connection: AbortHandle,
    ended: Option<Status>,
}

/// An open call of one of this project's methods, whose messages are JSON.
pub(crate) struct Call {
    raw: RawCall,
    method: &'static Method,
}

impl Drop for RawCall {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Makes a unary call.
pub(crate) fn unary(place: &Place, method: &str, request: &Value) -> Result<Value, Status> {
    let mut call = Call::open(place, method)?;
    call.send(request);
    call.close();
    let answer = call.next();
    match call.end() {
        status if status.code == "OK" => Ok(answer?.expect("an answer that is OK has a message")),
        status => Err(status),
    }
}

impl RawCall {
    /// Opens a call, with additional headers.
    pub(crate) fn open(place: &Place, path: &str, headers: &[(&str, &str)]) -> Result<Self, Status> {
        let mut request = http::Request::post(format!("http://localhost{path}"))
            .header("te", "trailers")
            .header("content-type", "application/grpc");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("headers are well-formed");
        RUNTIME.block_on(begin(place, request)).map_err(|error| ended("(no connection)", &error.to_string()))
    }

    /// Sends a message. Errors show when reading.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let mut framed = vec![0];
        framed.extend((bytes.len() as u32).to_be_bytes());
        framed.extend(bytes);
        let _ = self.requests.send_data(framed.into(), false);
    }

    /// Closes the sending side.
    pub(crate) fn close(&mut self) {
        let _ = self.requests.send_data(Bytes::new(), true);
    }

    /// Waits for the next message; `None` means the call ended with OK.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, Status> {
        self.next_within(SOON).expect("something comes soon")
    }

    /// Waits for the next message for a limited time; the outer `None` means timeout.
    fn next_within(&mut self, within: Duration) -> Option<Result<Option<Vec<u8>>, Status>> {
        if self.ended.is_none() {
            match self.events.recv_timeout(within) {
                Ok(Event::Message(bytes)) => return Some(Ok(Some(bytes))),
                Ok(Event::End(status)) => self.ended = Some(status),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => self.ended = Some(ended("(broken)", "the connection broke")),
            }
        }
        self.ended.clone().map(|status| if status.code == "OK" { Ok(None) } else { Err(status) })
    }
}

impl Call {
    /// Opens a call to one of this project's methods.
    pub(crate) fn open(place: &Place, method: &str) -> Result<Self, Status> {
        Self::open_with(place, method, &[])
    }

    /// The same with additional headers.
    pub(crate) fn open_with(place: &Place, method: &str, headers: &[(&str, &str)]) -> Result<Self, Status> {
        let declared = SCHEMA.method(method);
        Ok(Self { raw: RawCall::open(place, method, headers)?, method: declared })
    }

    /// Sends a message. Errors show when reading.
    pub(crate) fn send(&mut self, message: &Value) {
        self.raw.send(&encode(&SCHEMA, &self.method.input.0, message));
    }

    /// Sends raw bytes as a message.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.raw.send(bytes);
    }

    /// Closes the sending side.
    pub(crate) fn close(&mut self) {
        self.raw.close();
    }

    /// Waits for the next message; `None` means the call ended with OK.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Status> {
        self.next_within(SOON).unwrap_or_else(|| panic!("nothing came of {}", self.method.output.0))
    }

    /// Waits for the next message for a limited time; the outer `None` means timeout.
    pub(crate) fn next_within(&mut self, within: Duration) -> Option<Result<Option<Value>, Status>> {
        let read = |bytes: Vec<u8>| decode(&SCHEMA, &self.method.output.0, &bytes);
        Some(self.raw.next_within(within)?.map(|message| message.map(read)))
    }

    /// Reads to the end and returns the final status.
    pub(crate) fn end(&mut self) -> Status {
        loop {
            match self.next() {
                Ok(Some(_)) => {}
                Ok(None) => return ended("OK", ""),
                Err(status) => return status,
            }
        }
    }
}

fn ended(code: &str, message: &str) -> Status {
    Status { code: code.to_owned(), message: message.to_owned(), metadata: BTreeMap::new() }
}

async fn begin(place: &Place, request: http::Request<()>) -> io::Result<RawCall> {
    let (mut requests, connection) = match place {
        Place::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            connected(stream).await?
        }
        Place::Unix(path) => connected(UnixStream::connect(path).await?).await?,
    };
    let (answer, requests) = requests.send_request(request, false).map_err(io::Error::other)?;
    let (sender, events) = channel();
    tokio::spawn(listen(answer, sender));
    Ok(RawCall { requests, events, connection, ended: None })
}

/// A connection, driven until it ends or is told to.
async fn connected<S>(stream: S) -> io::Result<(SendRequest<Bytes>, AbortHandle)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).enable_push(false);
    let (requests, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(async move {
        let _ = connection.await; // a call says for itself how it ended
    });
    let requests = requests.ready().await.map_err(io::Error::other)?;
    Ok((requests, connection.abort_handle()))
}

/// Reads messages until the call ends. A connection that breaks has no end.
async fn listen(answer: h2::client::ResponseFuture, events: Sender<Event>) {
    let (head, mut body) = match answer.await {
        Ok(response) => response.into_parts(),
        Err(error) => return broken(&error, &events),
    };
    let mut fields = head.headers;
    match messages_of(&mut body, &events).await {
        Ok(trailers) => fields.extend(trailers),
        Err(error) => return broken(&error, &events),
    }
    let _ = events.send(Event::End(status(head.status, &fields)));
}

/// Hands on each message; the trailers.
async fn messages_of(body: &mut RecvStream, events: &Sender<Event>) -> Result<http::HeaderMap, h2::Error> {
    let mut data = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        body.flow_control().release_capacity(piece.len())?;
        data.extend_from_slice(&piece);
        for message in messages(&mut data) {
            let _ = events.send(Event::Message(message));
        }
    }
    Ok(body.trailers().await?.unwrap_or_default())
}

/// A stream that was reset has ended, and says why; of a connection that broke nothing is said.
fn broken(error: &h2::Error, events: &Sender<Event>) {
    if let Some(reason) = error.reason().filter(|_| error.is_reset()) {
        let metadata = BTreeMap::from([("reset".to_owned(), u32::from(reason).to_string())]);
        let _ = events.send(Event::End(Status { metadata, ..ended("(HTTP status )", "") }));
    }
}

/// Takes complete messages off the front of the received data.
fn messages(data: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some(head) = data.first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if data.len() < 5 + length {
            break;
        }
        found.push(data[5..5 + length].to_vec());
        data.drain(..5 + length);
    }
    found
}

/// Of headers and trailers together; what is no text is left out.
fn status(http: http::StatusCode, fields: &http::HeaderMap) -> Status {
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        Some((name.to_string(), value.to_str().ok()?.to_owned()))
    };
    let mut metadata: BTreeMap<String, String> = fields.iter().filter_map(text).collect();
    let message = metadata.remove("grpc-message").map_or(String::new(), |text| plain(&text));
    let code = match metadata.remove("grpc-status").and_then(|code| code.parse::<usize>().ok()) {
        Some(code) => CODES[code].to_owned(),
        None => format!("(HTTP status {})", http.as_u16()),
    };
    Status { code, message, metadata }
}

/// Decodes percent-encoding.
fn plain(text: &str) -> String {
    let (bytes, mut at, mut out) = (text.as_bytes(), 0, Vec::new());
    while at < bytes.len() {
        let coded = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match coded.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
