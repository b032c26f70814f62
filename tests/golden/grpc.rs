//! A minimal gRPC client: one connection per call, JSON in and out. It shares no code with the programs, so it tests
//! what really goes over the wire.

use crate::codec::{decode, encode};
use crate::hpack;
use crate::proto::Schema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

/// The longest wait for something that should happen right away.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The declarations in `proto/`.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::read(&crate::programs::root().join("proto")));

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// The largest flow-control window, so that no answer is held back.
const WINDOW: u32 = 0x7FFF_FFFF;

/// The frame payload size that every peer accepts.
const FRAME: usize = 16_384;

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

/// An open call; dropping it closes the connection.
pub(crate) struct Call {
    socket: Socket,
    writer: Arc<Mutex<Socket>>,
    events: Receiver<Event>,
    input: String,
    output: String,
    schema: &'static Schema,
    ended: Option<Status>,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn connect(place: &Place) -> std::io::Result<Self> {
        Ok(match place {
            Place::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Self::Tcp(stream)
            }
            Place::Unix(path) => Self::Unix(UnixStream::connect(path)?),
        })
    }

    fn again(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().unwrap()),
            Self::Unix(stream) => Self::Unix(stream.try_clone().unwrap()),
        }
    }

    fn close(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn fill(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.read_exact(bytes),
            Self::Unix(stream) => stream.read_exact(bytes),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Sends headers, split into frames as needed.
    fn headers(&mut self, block: &[u8]) -> std::io::Result<()> {
        let pieces: Vec<&[u8]> = block.chunks(FRAME).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let kind = if at == 0 { HEADERS } else { CONTINUATION };
            self.frame(kind, if at + 1 == pieces.len() { END_HEADERS } else { 0 }, 1, piece)?;
        }
        Ok(())
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.put(&frame)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.socket.close();
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

impl Call {
    /// Opens a call to one of this project's methods.
    pub(crate) fn open(place: &Place, method: &str) -> Result<Self, Status> {
        Self::open_with(place, method, &SCHEMA, &[])
    }

    /// Opens a call to a method of another schema, with additional headers.
    pub(crate) fn open_with(
        place: &Place,
        method: &str,
        schema: &'static Schema,
        headers: &[(&str, &str)],
    ) -> Result<Self, Status> {
        let broken = |error: std::io::Error| ended("(no connection)", &error.to_string());
        let declared = schema.method(method);
        let mut socket = Socket::connect(place).map_err(broken)?;
        let mut fields = vec![(":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost")];
        fields.extend([("te", "trailers"), ("content-type", "application/grpc")]);
        fields.extend(headers);
        let mut settings = Vec::new();
        for (key, value) in [(1_u16, 0), (2, 0), (4, WINDOW)] {
            settings.extend(key.to_be_bytes());
            settings.extend(value.to_be_bytes());
        }
        let opened = socket
            .put(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .and_then(|()| socket.frame(SETTINGS, 0, 0, &settings))
            .and_then(|()| socket.frame(WINDOW_UPDATE, 0, 0, &(WINDOW - 65_535).to_be_bytes()))
            .and_then(|()| socket.headers(&hpack::write(&fields)));
        opened.map_err(broken)?;
        let (sender, events) = channel();
        let (reader, writer) = (socket.again(), Arc::new(Mutex::new(socket.again())));
        let answers = Arc::clone(&writer);
        std::thread::spawn(move || listen(reader, &answers, &sender));
        let (input, output) = (declared.input.0.clone(), declared.output.0.clone());
        Ok(Self { socket, writer, events, input, output, schema, ended: None })
    }

    /// Sends a message. Errors show when reading.
    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(&encode(self.schema, &self.input, message));
    }

    /// Sends raw bytes as a message.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let mut framed = vec![0];
        framed.extend((bytes.len() as u32).to_be_bytes());
        framed.extend(bytes);
        let mut writer = self.writer.lock().unwrap();
        for piece in framed.chunks(FRAME) {
            let _ = writer.frame(DATA, 0, 1, piece);
        }
    }

    /// Closes the sending side.
    pub(crate) fn close(&mut self) {
        let _ = self.writer.lock().unwrap().frame(DATA, END_STREAM, 1, &[]);
    }

    /// Waits for the next message; `None` means the call ended with OK.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Status> {
        self.next_within(SOON).unwrap_or_else(|| panic!("nothing came of {}", self.output))
    }

    /// Waits for the next message for a limited time; the outer `None` means timeout.
    pub(crate) fn next_within(&mut self, within: Duration) -> Option<Result<Option<Value>, Status>> {
        if self.ended.is_none() {
            match self.events.recv_timeout(within) {
                Ok(Event::Message(bytes)) => return Some(Ok(Some(decode(self.schema, &self.output, &bytes)))),
                Ok(Event::End(status)) => self.ended = Some(status),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => self.ended = Some(ended("(broken)", "the connection broke")),
            }
        }
        self.ended.clone().map(|status| if status.code == "OK" { Ok(None) } else { Err(status) })
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

/// Reads frames until the call or the connection ends.
fn listen(mut socket: Socket, writer: &Mutex<Socket>, events: &Sender<Event>) {
    let (mut headers, mut fields, mut data) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let mut head = [0; 9];
        if socket.fill(&mut head).is_err() {
            return;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let mut payload = vec![0; length];
        if socket.fill(&mut payload).is_err() {
            return;
        }
        let mut end = kind == DATA && flags & END_STREAM != 0;
        match kind {
            SETTINGS | PING if flags & ACK == 0 => {
                let answer = if kind == PING { payload } else { Vec::new() };
                let _ = writer.lock().unwrap().frame(kind, ACK, 0, &answer);
            }
            DATA => {
                data.extend(payload);
                for message in messages(&mut data) {
                    let _ = events.send(Event::Message(message));
                }
            }
            HEADERS | CONTINUATION => {
                headers.extend(payload);
                if flags & END_HEADERS != 0 {
                    fields.extend(hpack::read(&std::mem::take(&mut headers)));
                }
                end = kind == HEADERS && flags & END_STREAM != 0;
            }
            RST_STREAM | GOAWAY => {
                let code = payload.last_chunk::<4>().map_or(0, |code| u32::from_be_bytes(*code));
                if kind == RST_STREAM {
                    fields.push(("reset".to_owned(), code.to_string()));
                    end = true;
                }
            }
            _ => {}
        }
        if end {
            let _ = events.send(Event::End(status(&fields)));
            return;
        }
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

fn status(fields: &[(String, String)]) -> Status {
    let mut metadata: BTreeMap<String, String> = fields.iter().cloned().collect();
    metadata.retain(|name, _| !name.starts_with("(static"));
    let http = metadata.remove(":status").unwrap_or_default();
    let message = metadata.remove("grpc-message").map_or(String::new(), |text| plain(&text));
    let code = match metadata.remove("grpc-status").and_then(|code| code.parse::<usize>().ok()) {
        Some(code) => CODES[code].to_owned(),
        None => format!("(HTTP status {http})"),
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
