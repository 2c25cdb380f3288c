//! Recording a model's answers, and replaying them without a network.
//!
//! `record:FILE=provider:model` asks the model and appends every answer to FILE; `replay:FILE`
//! answers from it. A tape is JSON lines, one per answer: the fingerprint of the request, the
//! pieces as they arrived, and the whole answer. Requests and headers are not written, and keys are
//! removed from answers.
//!
//! An answer is found by the fingerprint of the request, so any number of sessions may share a
//! tape, and an interrupted one continues where it was. A different system prompt or different
//! tools (the date, a new tool) do not matter if the conversation is the same; a different
//! conversation is an error that names the first message that differs.
//!
//! Effects: the local disk (writes), the model.

mod fingerprint;
mod redaction;
#[cfg(test)]
mod tests;

use crate::files::{self, AppendFile};
use crate::{Delta, Model, ModelError, ModelFacts, Reply, ReportedLimits, Request};
use fingerprint::Fingerprint;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{Block, Price, Redactor, StopReason, Usage};

/// One answer on a tape.
#[derive(Debug, Serialize, Deserialize)]
struct TapeEntry {
    asked: Fingerprint,
    pieces: Vec<TapeDelta>,
    #[serde(with = "ReplyForm")]
    reply: Reply,
}

/// The written form of a piece of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TapeDelta {
    Text(String),
    Thinking(String),
    Call { index: u32, name: String },
    Args { index: u32, json: String },
}

/// The written form of a reply.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Reply")]
struct ReplyForm {
    content: Vec<Block>,
    usage: Usage,
    stop: StopReason,
    model: String,
}

impl TapeDelta {
    /// Returns the form of a piece; none if it is no part of an answer.
    fn of(delta: &Delta) -> Option<Self> {
        match delta {
            Delta::Text(text) => Some(Self::Text(text.clone())),
            Delta::Thinking(text) => Some(Self::Thinking(text.clone())),
            Delta::CallStarted { index, name } => Some(Self::Call {
                index: *index,
                name: name.clone(),
            }),
            Delta::CallArgs { index, json } => Some(Self::Args {
                index: *index,
                json: json.clone(),
            }),
            Delta::Usage(_) | Delta::Retry { .. } | Delta::Done(_) => None,
        }
    }
}

impl From<TapeDelta> for Delta {
    fn from(piece: TapeDelta) -> Self {
        match piece {
            TapeDelta::Text(text) => Self::Text(text),
            TapeDelta::Thinking(text) => Self::Thinking(text),
            TapeDelta::Call { index, name } => Self::CallStarted { index, name },
            TapeDelta::Args { index, json } => Self::CallArgs { index, json },
        }
    }
}

/// A model that records the answers of another one.
#[derive(Debug)]
pub struct Recorder {
    model: Arc<dyn Model>,
    tape: Arc<Mutex<AppendFile>>,
    redactor: Redactor,
}

impl Recorder {
    /// Records the answers of `model`, without the secrets that `redactor` knows, at the end of the
    /// file at `path`, which is created if needed.
    pub fn new(model: Arc<dyn Model>, path: &Path, redactor: Redactor) -> Result<Self, ModelError> {
        Ok(Self {
            model,
            tape: Arc::new(Mutex::new(AppendFile::open(path)?)),
            redactor,
        })
    }
}

fn append_entry(tape: &Mutex<AppendFile>, take: &TapeEntry) -> Result<(), ModelError> {
    let line =
        serde_json::to_string(take).map_err(|error| ModelError::Config(error.to_string()))?;
    tape.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .append(line)
}

impl Model for Recorder {
    fn facts(&self) -> &ModelFacts {
        self.model.facts()
    }

    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        self.model.describe()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let heard = Vec::new();
        let answer = self.model.stream(request);
        stream::try_unfold((answer, heard), move |(mut answer, mut heard)| async move {
            let Some(delta) = answer.try_next().await? else {
                return Ok(None);
            };
            match &delta {
                Delta::Text(_)
                | Delta::Thinking(_)
                | Delta::CallStarted { .. }
                | Delta::CallArgs { .. }
                | Delta::Usage(_) => heard.extend(TapeDelta::of(&delta)),
                Delta::Retry { .. } => heard.clear(),
                // Recorded before it is passed on, so that everything that was acted upon can be
                // replayed.
                Delta::Done(reply) => {
                    let pieces = std::mem::take(&mut heard);
                    let take = TapeEntry {
                        asked: Fingerprint::of(request),
                        pieces,
                        reply: (**reply).clone(),
                    };
                    let take = redaction::redacted(take, &self.redactor);
                    let tape = self.tape.clone();
                    let kept =
                        tokio::task::spawn_blocking(move || append_entry(&tape, &take)).await;
                    kept.map_err(|error| {
                        ModelError::Config(format!("recording failed: {error}"))
                    })??;
                }
            }
            Ok(Some((delta, (answer, heard))))
        })
        .boxed()
    }
}

/// A model that replays recorded answers.
#[derive(Debug)]
pub struct Replay {
    facts: ModelFacts,
    source: ReplaySource,
}

#[derive(Debug)]
enum ReplaySource {
    /// Answers found by the request's fingerprint.
    Tape { file: String, takes: Vec<TapeEntry> },
    /// Answers in a fixed order.
    Sequence {
        replies: Vec<Reply>,
        next: AtomicUsize,
    },
}

impl ReplaySource {
    /// Adds the models that gave the answers, so that their calls are read with their profiles.
    fn add_answering_models(&self, facts: &mut ModelFacts) {
        let mut add = |model: &str| {
            if !facts.names().any(|name| name == model) {
                facts.add_fallback(&ModelFacts::unknown(model.to_owned().into()));
            }
        };
        match self {
            Self::Tape { takes, .. } => takes.iter().for_each(|take| add(&take.reply.model)),
            Self::Sequence { replies, .. } => replies.iter().for_each(|reply| add(&reply.model)),
        }
    }
}

impl Replay {
    /// Parses a tape from its text; `file` is its name in messages. An incomplete last line, left
    /// by a crash, is skipped.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelError> {
        let lines = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let take = |(index, line)| {
            serde_json::from_str(line).map_err(|error| {
                ModelError::Config(format!(
                    "{file}:{}: not a line of a tape: {error}",
                    index + 1
                ))
            })
        };
        let entries = lines.enumerate().map(take).collect::<Result<_, _>>()?;
        let source = ReplaySource::Tape {
            file: file.to_owned(),
            takes: entries,
        };
        Ok(Self::new(format!("replay:{file}"), source))
    }

    /// Reads a tape from its file.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        Self::parse(&path.to_string_lossy(), &files::read(path)?)
    }

    /// Returns a model that gives `replies` in order, whatever the requests are.
    pub fn from_replies(replies: Vec<Reply>) -> Self {
        let source = ReplaySource::Sequence {
            replies,
            next: AtomicUsize::new(0),
        };
        Self::new("replay:replies".to_owned(), source)
    }

    fn new(name: String, source: ReplaySource) -> Self {
        let mut facts = ModelFacts::unknown(name.into());
        source.add_answering_models(&mut facts);
        Self { facts, source }
    }

    /// Sets the price of every answer, whichever model gave it when it was recorded.
    pub fn with_price(mut self, price: Option<Price>) -> Self {
        self.facts.price = price;
        for fallback in &mut self.facts.fallbacks {
            fallback.price = price;
        }
        self
    }

    fn next_answer(&self, request: &Request) -> Result<(Vec<Delta>, Reply), ModelError> {
        match &self.source {
            ReplaySource::Tape { file, takes } => {
                let take = find_entry(file, takes, &Fingerprint::of(request))?;
                Ok((
                    take.pieces.iter().cloned().map(Delta::from).collect(),
                    take.reply.clone(),
                ))
            }
            ReplaySource::Sequence { replies, next } => {
                let call = next.fetch_add(1, Ordering::AcqRel);
                let reply = replies.get(call).cloned().ok_or_else(|| {
                    let call = call + 1;
                    let count = replies.len();
                    ModelError::Config(format!(
                        "there is no answer for model call {call}: the record has {count}"
                    ))
                })?;
                Ok((reply.deltas(), reply))
            }
        }
    }
}

/// Returns the answer to the same request, or else to the same conversation.
fn find_entry<'a>(
    file: &str,
    takes: &'a [TapeEntry],
    asked: &Fingerprint,
) -> Result<&'a TapeEntry, ModelError> {
    let same = takes.iter().find(|take| take.asked == *asked);
    let alike = || {
        takes
            .iter()
            .find(|take| take.asked.messages == asked.messages)
    };
    same.or_else(alike).ok_or_else(|| {
        let nearest = takes
            .iter()
            .map(|take| &take.asked)
            .max_by_key(|recorded| recorded.similarity(asked));
        let why = match nearest {
            Some(recorded) => recorded.difference(asked),
            None => "the tape is empty".into(),
        };
        ModelError::Config(format!("{file} has no answer for this request: {why}"))
    })
}

impl Model for Replay {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        match self.next_answer(request) {
            Err(error) => stream::iter([Err(error)]).boxed(),
            Ok((pieces, reply)) => {
                let done = Delta::Done(Box::new(reply));
                stream::iter(pieces.into_iter().chain([done]).map(Ok)).boxed()
            }
        }
    }
}
