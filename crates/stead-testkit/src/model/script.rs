//! The script language: the answers of the fake model, the same on every wire.
//!
//! Effects: test support.

use super::RecordedRequest;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use stead_core::{StopReason, Usage};
use tokio::sync::watch;

/// One answer of the fake model. Created by [`reply`], [`fail`], [`hang`], [`reset`], [`raw`] or
/// [`raw_sse`].
#[derive(Debug, Clone)]
pub struct FakeAnswer {
    pub(super) body: FakeAnswerBody,
    pub(super) delivery: BodyDelivery,
    pub(super) latch: Option<AnswerLatch>,
}

#[derive(Debug, Clone)]
pub(super) enum FakeAnswerBody {
    Reply(FakeReply),
    Fail(FakeFailure),
    Raw {
        status: u16,
        content_type: String,
        text: String,
    },
    Hang,
    Reset,
}

/// A well-formed answer before it is rendered on a wire.
#[derive(Debug, Clone, Default)]
pub(super) struct FakeReply {
    pub(super) pieces: Vec<FakeReplyPiece>,
    pub(super) usage: Option<Usage>,
    pub(super) stop: Option<StopReason>,
}

#[derive(Debug, Clone)]
pub(super) enum FakeReplyPiece {
    Text(String),
    Thinking(String),
    /// A tool call. `args` is text, so that a script can send arguments that are not JSON.
    Call {
        id: Option<String>,
        name: String,
        args: String,
    },
}

#[derive(Debug, Clone)]
pub(super) struct FakeFailure {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) kind: Option<String>,
    pub(super) retry_after_s: Option<u64>,
}

/// How the bytes of an answer's body are sent.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyDelivery {
    pub(super) chunk_bytes: Option<usize>,
    pub(super) pause: Duration,
    pub(super) stop: Option<(usize, EarlyEnd)>,
}

/// What happens at the byte at which a body stops early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlyEnd {
    Close,
    Finish,
    Stall,
}

/// Returns an answer of text, thinking and calls, which are added in order. It is empty until
/// something is added.
pub fn reply() -> FakeAnswer {
    FakeAnswer::new(FakeAnswerBody::Reply(FakeReply::default()))
}

/// Returns an error in the provider's format.
pub fn fail(status: u16) -> FakeAnswer {
    let message = format!("scripted failure {status}");
    FakeAnswer::new(FakeAnswerBody::Fail(FakeFailure {
        status,
        message,
        kind: None,
        retry_after_s: None,
    }))
}

/// Returns no answer; the connection stays open.
pub fn hang() -> FakeAnswer {
    FakeAnswer::new(FakeAnswerBody::Hang)
}

/// Resets the connection without sending a byte.
pub fn reset() -> FakeAnswer {
    FakeAnswer::new(FakeAnswerBody::Reset)
}

/// Returns these bytes as a stream of events, on any wire.
pub fn raw_sse(text: impl Into<String>) -> FakeAnswer {
    raw(200, "text/event-stream", text)
}

/// Returns these bytes with this status and content type.
pub fn raw(status: u16, content_type: &str, text: impl Into<String>) -> FakeAnswer {
    FakeAnswer::new(FakeAnswerBody::Raw {
        status,
        content_type: content_type.into(),
        text: text.into(),
    })
}

/// Returns a script of `steps` steps that each write one file, then the text `done`, like a
/// benchmark run.
pub fn bench_like(steps: usize) -> impl FnMut(&RecordedRequest) -> FakeAnswer + Send + 'static {
    move |request| match request.result_count() {
        step if step < steps => reply().call(
            "write_file",
            json!({"file_path": format!("f{step}.txt"), "content": "one\ntwo\nthree\n"}),
        ),
        _ => reply().text("done"),
    }
}

impl FakeAnswer {
    fn new(body: FakeAnswerBody) -> Self {
        Self {
            body,
            delivery: BodyDelivery::default(),
            latch: None,
        }
    }

    /// Adds text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.piece(FakeReplyPiece::Text(text.into()))
    }

    /// Adds thinking.
    pub fn thinking(self, text: impl Into<String>) -> Self {
        self.piece(FakeReplyPiece::Thinking(text.into()))
    }

    /// Adds a tool call. Its id is unique on this server.
    pub fn call(self, name: &str, args: Value) -> Self {
        self.piece(FakeReplyPiece::Call {
            id: None,
            name: name.into(),
            args: args.to_string(),
        })
    }

    /// Adds a tool call with this id.
    pub fn call_with_id(self, id: &str, name: &str, args: Value) -> Self {
        self.piece(FakeReplyPiece::Call {
            id: Some(id.into()),
            name: name.into(),
            args: args.to_string(),
        })
    }

    /// Adds a tool call with this text as arguments, JSON or not. Wires that carry arguments as an
    /// object (whole Anthropic answers, Gemini) send text that is not JSON as `{}`.
    pub fn call_raw(self, name: &str, args: &str) -> Self {
        self.piece(FakeReplyPiece::Call {
            id: None,
            name: name.into(),
            args: args.into(),
        })
    }

    /// Sets the reported tokens; by default they are estimated from the sizes of request and
    /// answer.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.reply_mut().usage = Some(usage);
        self
    }

    /// Sets the stop reason; the default is `ToolUse` if there are calls, and `EndTurn` otherwise.
    pub fn stop(mut self, stop: StopReason) -> Self {
        self.reply_mut().stop = Some(stop);
        self
    }

    /// Sets the message of a failure.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.failure_mut().message = message.into();
        self
    }

    /// Sets the machine-readable code of a failure, for example `context_length_exceeded`.
    pub fn kind(mut self, kind: &str) -> Self {
        self.failure_mut().kind = Some(kind.into());
        self
    }

    /// Adds a `retry-after` header.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.failure_mut().retry_after_s = Some(seconds);
        self
    }

    /// Sends the body in pieces of this many bytes.
    pub fn chunks_of(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "a chunk has at least one byte");
        self.delivery.chunk_bytes = Some(bytes);
        self
    }

    /// Waits this long before each piece of the body.
    pub fn pause_ms(mut self, pause_ms: u64) -> Self {
        self.delivery.pause = Duration::from_millis(pause_ms);
        self
    }

    /// Closes the connection after this many bytes of the body.
    pub fn cut_at(mut self, bytes: usize) -> Self {
        self.delivery.stop = Some((bytes, EarlyEnd::Close));
        self
    }

    /// Ends the body regularly after this many bytes, like a proxy that lost its upstream.
    pub fn end_at(mut self, bytes: usize) -> Self {
        self.delivery.stop = Some((bytes, EarlyEnd::Finish));
        self
    }

    /// Sends nothing more after this many bytes of the body; the connection stays open.
    pub fn stall_at(mut self, bytes: usize) -> Self {
        self.delivery.stop = Some((bytes, EarlyEnd::Stall));
        self
    }

    /// Holds this answer until the latch is released.
    pub fn held_by(mut self, latch: &AnswerLatch) -> Self {
        self.latch = Some(latch.clone());
        self
    }

    fn piece(mut self, piece: FakeReplyPiece) -> Self {
        self.reply_mut().pieces.push(piece);
        self
    }

    fn reply_mut(&mut self) -> &mut FakeReply {
        match &mut self.body {
            FakeAnswerBody::Reply(reply) => reply,
            other => panic!("only a reply() has content, not {other:?}"),
        }
    }

    fn failure_mut(&mut self) -> &mut FakeFailure {
        match &mut self.body {
            FakeAnswerBody::Fail(failure) => failure,
            other => panic!("only a fail() has this, not {other:?}"),
        }
    }
}

/// A latch that holds answers until the test releases them. Clones are the same latch.
#[derive(Debug, Clone)]
pub struct AnswerLatch {
    released: watch::Sender<bool>,
    arrived: watch::Sender<usize>,
}

/// Creates a closed latch.
pub fn latch() -> AnswerLatch {
    AnswerLatch {
        released: watch::Sender::new(false),
        arrived: watch::Sender::new(0),
    }
}

impl AnswerLatch {
    /// Releases every held answer, and all later ones.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// Returns the number of requests that have reached this latch.
    pub fn arrivals(&self) -> usize {
        *self.arrived.borrow()
    }

    /// Waits until `count` requests have reached this latch.
    pub async fn arrived(&self, count: usize) {
        self.arrived
            .subscribe()
            .wait_for(|n| *n >= count)
            .await
            .expect("self holds the sender");
    }

    /// Waits like [`AnswerLatch::arrived`], for tests without a runtime. Panics when it takes longer
    /// than `deadline`.
    pub fn wait_arrived(&self, count: usize, deadline: Duration) {
        let end = Instant::now() + deadline;
        while self.arrivals() < count {
            assert!(
                Instant::now() < end,
                "{} of {count} requests came to the latch in {deadline:?}",
                self.arrivals()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) async fn pass(&self) {
        self.arrived.send_modify(|n| *n += 1);
        self.released
            .subscribe()
            .wait_for(|open| *open)
            .await
            .expect("self holds the sender");
    }
}
