//! The format of a script. Reading one is pure; every mistake is reported with its line and column.

use super::condition::Condition;
use super::pieces;
use crate::wire::args::parse_args;
use crate::{Delta, ModelError};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use stead_core::{Block, StopReason, Thinking, ToolCall};

/// A script that has been read and checked.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    /// Whether it starts again after its last step.
    pub(super) looped: bool,
}

/// One item: what to do, and under which condition.
#[derive(Debug)]
pub(super) struct Step {
    /// Where it stands in the file.
    pub(super) line: u64,
    when: Condition,
    act: Act,
    otherwise: Option<Box<Step>>,
}

impl Step {
    /// The act of the first branch whose condition holds.
    pub(super) fn act(&self, holds: &impl Fn(&Condition) -> bool) -> Option<&Act> {
        if holds(&self.when) {
            Some(&self.act)
        } else {
            self.otherwise.as_ref()?.act(holds)
        }
    }
}

#[derive(Debug)]
pub(super) enum Act {
    Answer(Box<Answer>),
    Fail(Failure),
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) expect: Condition,
    pub(super) pieces: Pieces,
    pub(super) content: Vec<Block>,
    pub(super) stop: StopReason,
    pub(super) usage: GivenUsage,
}

/// A failure, after the pieces that arrived before it.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) pieces: Pieces,
    pub(super) error: ModelError,
    left: AtomicU32,
}

impl Failure {
    /// Takes one of the times this failure is to happen, if any is left.
    pub(super) fn take(&self) -> bool {
        self.left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Pieces {
    pub(super) deltas: Vec<Delta>,
    pub(super) delay: Duration,
}

/// Tokens to report instead of estimates.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GivenUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_read_tokens: u64,
    pub(super) cache_write_tokens: u64,
    pub(super) output_tokens: Option<u64>,
    pub(super) reasoning_tokens: u64,
}

/// An item as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    when: Option<Condition>,
    expect: Option<Condition>,
    thinking: Option<String>,
    text: Option<String>,
    calls: Option<Vec<Call>>,
    stop: Option<StopReason>,
    usage: Option<GivenUsage>,
    chunk: Option<NonZeroUsize>,
    delay_ms: Option<u64>,
    error: Option<GivenError>,
    r#else: Option<Box<Spanned<Item>>>,
    r#loop: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    /// An object; or a text, to be read as the raw arguments a model wrote.
    #[serde(default)]
    args: Value,
    #[serde(default)]
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenError {
    kind: ErrorKind,
    message: Option<String>,
    retry_after_ms: Option<u64>,
    status: Option<u16>,
    times: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorKind {
    ContextOverflow,
    RateLimited,
    Unavailable,
    Auth,
    Quota,
    NotFound,
    BadRequest,
    TimedOut,
    Network,
    Cut,
    Protocol,
    Config,
}

/// What is wrong with a script, and where.
struct Mistake {
    at: Option<Location>,
    message: String,
}

impl Script {
    /// Reads a script; `file` is its name in messages.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, ModelError> {
        read(text).map_err(|Mistake { at, message }| {
            ModelError::Config(match at {
                Some(at) => format!("{file}:{}:{}: {message}", at.line(), at.column()),
                None => format!("{file}: {message}"),
            })
        })
    }
}

fn read(text: &str) -> Result<Script, Mistake> {
    let mut items: Vec<Spanned<Item>> = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        // The location is said once, in front.
        let message = error.to_string();
        let message = message
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        Mistake {
            at: error.location(),
            message,
        }
    })?;
    let looped = items
        .last()
        .is_some_and(|last| last.value.r#loop == Some(true));
    if looped && let Some(last) = items.pop() {
        last.value.check_loop().map_err(|message| Mistake {
            at: Some(last.defined),
            message: message.into(),
        })?;
    }
    let steps: Vec<_> = items.into_iter().map(step).collect::<Result<_, _>>()?;
    if steps.is_empty() {
        return Err(Mistake {
            at: None,
            message: "the script has no answers".into(),
        });
    }
    Ok(Script { steps, looped })
}

fn step(item: Spanned<Item>) -> Result<Step, Mistake> {
    let Spanned {
        value: mut item,
        defined: at,
        ..
    } = item;
    let mistake = |message: &str| Mistake {
        at: Some(at),
        message: message.into(),
    };
    if item.r#loop.is_some() {
        return Err(mistake(
            "`loop: true` must be an item of its own, and the last one",
        ));
    }
    if item.r#else.is_some() && item.when.is_none() {
        return Err(mistake("`else` needs a `when`"));
    }
    let when = item.when.take().unwrap_or_default();
    let otherwise = item
        .r#else
        .take()
        .map(|item| step(*item).map(Box::new))
        .transpose()?;
    let act = item.act().map_err(mistake)?;
    Ok(Step {
        line: at.line(),
        when,
        act,
        otherwise,
    })
}

impl Item {
    fn check_loop(&self) -> Result<(), &'static str> {
        let Self {
            when,
            expect,
            thinking,
            text,
            calls,
            stop,
            usage,
            chunk,
            delay_ms,
            error,
            r#else,
            r#loop: _,
        } = self;
        let speaks = thinking.is_some() || text.is_some() || calls.is_some() || error.is_some();
        let tunes = stop.is_some() || usage.is_some() || chunk.is_some() || delay_ms.is_some();
        if speaks || tunes || when.is_some() || expect.is_some() || r#else.is_some() {
            return Err("`loop: true` must be an item of its own");
        }
        Ok(())
    }

    fn act(self) -> Result<Act, &'static str> {
        if self.thinking.is_none()
            && self.text.is_none()
            && self.calls.is_none()
            && self.error.is_none()
        {
            return Err("an item needs `text`, `thinking`, `calls` or `error`");
        }
        let mut deltas = Vec::new();
        let mut content = Vec::new();
        if let Some(text) = self.thinking {
            deltas.extend(pieces::thinking(&text, self.chunk));
            content.push(Block::Thinking(Thinking {
                text,
                origin: "scripted".into(),
                ..Thinking::default()
            }));
        }
        if let Some(text) = self.text {
            deltas.extend(pieces::text(&text, self.chunk));
            content.push(Block::Text { text });
        }
        let calls = self.calls.unwrap_or_default();
        let called = if calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolUse
        };
        for (
            index,
            Call {
                tool: name,
                args,
                id,
            },
        ) in (0..).zip(calls)
        {
            let raw = match args {
                Value::Null => "{}".to_owned(),
                Value::String(raw) => raw,
                args @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    args.to_string()
                }
            };
            deltas.extend(pieces::call(index, &name, &raw, self.chunk));
            let (args, invalid) = parse_args(&raw);
            content.push(Block::ToolCall(ToolCall {
                id,
                name,
                args,
                invalid,
                signature: None,
            }));
        }
        let pieces = Pieces {
            deltas,
            delay: Duration::from_millis(self.delay_ms.unwrap_or(0)),
        };
        match self.error {
            None => Ok(Act::Answer(Box::new(Answer {
                expect: self.expect.unwrap_or_default(),
                pieces,
                content,
                stop: self.stop.unwrap_or(called),
                usage: self.usage.unwrap_or_default(),
            }))),
            Some(_) if self.stop.is_some() || self.usage.is_some() || self.expect.is_some() => {
                Err("an item with `error` has no `stop`, `usage` or `expect`")
            }
            Some(given) => {
                let left = AtomicU32::new(given.times.map_or(1, NonZeroU32::get));
                Ok(Act::Fail(Failure {
                    pieces,
                    error: given.into_error()?,
                    left,
                }))
            }
        }
    }
}

impl GivenError {
    fn into_error(self) -> Result<ModelError, &'static str> {
        let retry_after = self.retry_after_ms.map(Duration::from_millis);
        if self.status.is_some() && !matches!(self.kind, ErrorKind::Unavailable) {
            return Err("only `unavailable` has a `status`");
        }
        if retry_after.is_some()
            && !matches!(self.kind, ErrorKind::Unavailable | ErrorKind::RateLimited)
        {
            return Err("only `rate_limited` and `unavailable` have `retry_after_ms`");
        }
        let message = self.message.unwrap_or_else(|| "scripted".into());
        Ok(match self.kind {
            ErrorKind::ContextOverflow => ModelError::ContextOverflow(message),
            ErrorKind::RateLimited => ModelError::RateLimited {
                retry_after,
                message,
            },
            ErrorKind::Unavailable => ModelError::Unavailable {
                status: self.status.unwrap_or(503),
                retry_after,
                message,
            },
            ErrorKind::Auth => ModelError::Auth(message),
            ErrorKind::Quota => ModelError::Quota(message),
            ErrorKind::NotFound => ModelError::NotFound(message),
            ErrorKind::BadRequest => ModelError::BadRequest(message),
            ErrorKind::TimedOut => ModelError::TimedOut(message),
            ErrorKind::Network => ModelError::Network(message),
            ErrorKind::Cut => ModelError::Cut,
            ErrorKind::Protocol => ModelError::Protocol(message),
            ErrorKind::Config => ModelError::Config(message),
        })
    }
}
