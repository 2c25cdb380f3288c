//! A fake model server on loopback that speaks four wires and is as strict as the real providers.
//!
//! Effects: test support.

mod check;
pub(crate) mod http;
mod render;
mod script;
mod wire;

#[cfg(test)]
mod tests;

pub use check::{ParsedRequest, RequestCall, RequestTurn};
pub use render::render;
pub use script::{
    AnswerLatch, FakeAnswer, bench_like, fail, hang, latch, raw, raw_sse, reply, reset,
};
pub use wire::{FakeWire, ResponseMode};

use bytes::{Bytes, BytesMut};
use http::Framing;
use render::RenderContext;
use script::{BodyDelivery, EarlyEnd, FakeAnswerBody, FakeFailure};
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A model server for one test. It runs on its own thread, so tests with and without a runtime can
/// use it and a paused clock does not stop it. Dropping it closes every connection and waits for
/// the thread.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<FakeModelShared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A request that reached the server.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// The number of the request on this server, from 0.
    pub index: usize,
    /// The wire of the request.
    pub wire: FakeWire,
    /// Whether the request asks for a stream.
    pub mode: ResponseMode,
    /// Path and query.
    pub target: String,
    /// The headers as received.
    pub headers: Vec<(String, String)>,
    /// The body as received.
    pub body: Bytes,
    /// The body parsed; null if it is not JSON.
    pub json: Value,
    /// The content of the request, the same on every wire; or the reason why the provider refuses
    /// it.
    pub seen: Result<ParsedRequest, String>,
}

impl RecordedRequest {
    /// Returns the first header with this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    /// Returns the number of tool results in the conversation: the number of the step if each step
    /// has one call.
    pub fn result_count(&self) -> usize {
        self.seen.as_ref().map_or(0, |seen| seen.results().count())
    }
}

struct FakeModelShared {
    state: Mutex<FakeModelState>,
}

impl std::fmt::Debug for FakeModelShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("requests", &self.lock().requests.len())
            .finish_non_exhaustive()
    }
}

struct FakeModelState {
    requests: Vec<RecordedRequest>,
    answer: Box<dyn FnMut(&RecordedRequest) -> FakeAnswer + Send>,
}

impl FakeModelShared {
    fn lock(&self) -> MutexGuard<'_, FakeModelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeModel {
    /// Starts a server that answers the nth accepted request with the nth answer. Requests beyond
    /// the script get a 400.
    pub fn start(script: Vec<FakeAnswer>) -> Self {
        let mut rest = VecDeque::from(script);
        Self::start_with(move |request| {
            let over = || {
                fail(400).message(format!(
                    "the script has no answer for request {}",
                    request.index
                ))
            };
            rest.pop_front().unwrap_or_else(over)
        })
    }

    /// Starts a server that answers each accepted request with the result of `answer`. Refused
    /// requests are not passed to it.
    pub fn start_with(answer: impl FnMut(&RecordedRequest) -> FakeAnswer + Send + 'static) -> Self {
        let listener = StdListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener
            .set_nonblocking(true)
            .expect("a fresh socket can be set to non-blocking");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let shared = Arc::new(FakeModelShared {
            state: Mutex::new(FakeModelState {
                requests: Vec::new(),
                answer: Box::new(answer),
            }),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(serve(listener, serving, stopped));
        };
        let thread = std::thread::Builder::new()
            .name("fake-model".into())
            .spawn(serve)
            .expect("a thread");
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns `http://127.0.0.1:port`, the base of the Anthropic and Gemini wires.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base URL with `/v1`, as OpenAI's clients expect it.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns all requests in the order of arrival, including refused ones.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.lock().requests.clone()
    }

    /// Returns the last request. Panics if there was none.
    pub fn last_request(&self) -> RecordedRequest {
        self.shared
            .lock()
            .requests
            .last()
            .cloned()
            .expect("no request has reached the fake model")
    }

    /// Returns the refused requests: the number of each with the provider's message. Empty for a
    /// correct client.
    pub fn rejections(&self) -> Vec<(usize, String)> {
        let refusal = |r: &RecordedRequest| r.seen.as_ref().err().map(|why| (r.index, why.clone()));
        self.shared
            .lock()
            .requests
            .iter()
            .filter_map(refusal)
            .collect()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread's panic has already been printed; a second one here would abort the test
            // binary.
            let _ = thread.join();
        }
    }
}

async fn serve(
    listener: StdListener,
    shared: Arc<FakeModelShared>,
    mut stopped: oneshot::Receiver<()>,
) {
    let listener = TcpListener::from_std(listener).expect("the socket is non-blocking");
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(converse(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// What happens to the connection after an answer.
enum AfterAnswer {
    KeepAlive,
    Close,
    Reset,
}

async fn converse(mut stream: TcpStream, shared: Arc<FakeModelShared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = BytesMut::new();
    while let Some(request) = http::read(&mut stream, &mut buffer).await? {
        let last = request
            .header("connection")
            .is_some_and(|v| v.eq_ignore_ascii_case("close"));
        let next = match FakeWire::of(&request.target) {
            Some(wire) if request.method == "POST" => {
                answer(&mut stream, &shared, wire, request).await?
            }
            Some(_) | None => {
                let text = format!(
                    "the fake model does not serve {} {}",
                    request.method, request.target
                );
                send(
                    &mut stream,
                    404,
                    "text/plain",
                    text.as_bytes(),
                    &BodyDelivery::default(),
                    None,
                )
                .await?
            }
        };
        match next {
            AfterAnswer::KeepAlive if last => return stream.shutdown().await,
            AfterAnswer::KeepAlive => {}
            AfterAnswer::Close => return stream.shutdown().await,
            AfterAnswer::Reset => return stream.set_zero_linger(),
        }
    }
    Ok(())
}

async fn answer(
    stream: &mut TcpStream,
    shared: &FakeModelShared,
    wire: FakeWire,
    request: http::FakeHttpRequest,
) -> io::Result<AfterAnswer> {
    let (recorded, answer) = {
        let mut state = shared.lock();
        let recorded = record(state.requests.len(), wire, request);
        state.requests.push(recorded.clone());
        let answer = match &recorded.seen {
            Ok(_) => (state.answer)(&recorded),
            Err(why) => fail(400).message(why),
        };
        (recorded, answer)
    };
    if let Some(latch) = &answer.latch {
        latch.pass().await;
    }
    let delivery = &answer.delivery;
    match answer.body {
        FakeAnswerBody::Reply(reply) => {
            let asked = RenderContext {
                serial: recorded.index,
                request_bytes: recorded.body.len(),
            };
            let body = render::body(&reply, wire, recorded.mode, asked);
            let content_type = match recorded.mode {
                ResponseMode::Whole => "application/json",
                ResponseMode::Stream | ResponseMode::StreamWithUsage => SSE,
            };
            send(stream, 200, content_type, body.as_bytes(), delivery, None).await
        }
        FakeAnswerBody::Fail(failure) => {
            let FakeFailure {
                status,
                retry_after_s,
                ..
            } = failure;
            send(
                stream,
                status,
                "application/json",
                wire.error(&failure).as_bytes(),
                delivery,
                retry_after_s,
            )
            .await
        }
        FakeAnswerBody::Raw {
            status,
            content_type,
            text,
        } => {
            send(
                stream,
                status,
                &content_type,
                text.as_bytes(),
                delivery,
                None,
            )
            .await
        }
        FakeAnswerBody::Hang => std::future::pending().await,
        FakeAnswerBody::Reset => Ok(AfterAnswer::Reset),
    }
}

fn record(index: usize, wire: FakeWire, request: http::FakeHttpRequest) -> RecordedRequest {
    let parsed = serde_json::from_slice::<Value>(&request.body);
    let seen = match &parsed {
        Ok(json) => check::check(wire, &request, json),
        Err(error) => Err(format!(
            "We could not parse the JSON body of your request: {error}"
        )),
    };
    let json = parsed.unwrap_or_default();
    let mode = wire.mode(&request.target, &json);
    let http::FakeHttpRequest {
        target,
        headers,
        body,
        ..
    } = request;
    RecordedRequest {
        index,
        wire,
        mode,
        target,
        headers,
        body,
        json,
        seen,
    }
}

const SSE: &str = "text/event-stream";

async fn send(
    stream: &mut TcpStream,
    status: u16,
    content_type: &str,
    body: &[u8],
    delivery: &BodyDelivery,
    retry_after_s: Option<u64>,
) -> io::Result<AfterAnswer> {
    let (body, ending, announced) = match delivery.stop {
        None => (body, EarlyEnd::Finish, body.len()),
        Some((at, EarlyEnd::Finish)) => (
            &body[..at.min(body.len())],
            EarlyEnd::Finish,
            at.min(body.len()),
        ),
        Some((at, early)) => (&body[..at.min(body.len())], early, body.len()),
    };
    let framing = if content_type == SSE {
        Framing::Chunked
    } else {
        Framing::Length(announced)
    };
    let head = http::head(status, content_type, framing, retry_after_s);
    if delivery.chunk_bytes.is_none() && delivery.pause.is_zero() {
        // Head and body are one write, so that the answer is one segment if it fits.
        let mut out = head.into_bytes();
        if !body.is_empty() {
            out.extend(http::frame(framing, body));
        }
        stream.write_all(&out).await?;
    } else {
        stream.write_all(head.as_bytes()).await?;
        for piece in body.chunks(delivery.chunk_bytes.unwrap_or(usize::MAX)) {
            tokio::time::sleep(delivery.pause).await;
            stream.write_all(&http::frame(framing, piece)).await?;
        }
    }
    match ending {
        EarlyEnd::Finish => {
            if framing == Framing::Chunked {
                stream.write_all(b"0\r\n\r\n").await?;
            }
            Ok(AfterAnswer::KeepAlive)
        }
        EarlyEnd::Close => Ok(AfterAnswer::Close),
        EarlyEnd::Stall => std::future::pending().await,
    }
}
