//! Part of the scripted model: the format of its script. Every mistake in one is reported with its
//! line and column.
//!
//! Effects: none.

use super::condition::Condition;
use super::deltas;
use crate::wire::args::parse_args;
use crate::{Delta, ModelError};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use stead_core::{Block, StopReason, Thinking, ToolCall};

/// A parsed and checked script.
#[derive(Debug)]
pub(super) struct ModelScript {
    pub(super) steps: Vec<ScriptStep>,
    /// Whether it starts again after its last step.
    pub(super) looped: bool,
}

/// One item: an action with its condition.
#[derive(Debug)]
pub(super) struct ScriptStep {
    /// The line in the file.
    pub(super) line: u64,
    when: Condition,
    action: ScriptAction,
    otherwise: Option<Box<ScriptStep>>,
}

impl ScriptStep {
    /// Returns the action of the first branch whose condition holds.
    pub(super) fn action_when(&self, holds: &impl Fn(&Condition) -> bool) -> Option<&ScriptAction> {
        if holds(&self.when) {
            Some(&self.action)
        } else {
            self.otherwise.as_ref()?.action_when(holds)
        }
    }
}

#[derive(Debug)]
pub(super) enum ScriptAction {
    Answer(Box<ScriptAnswer>),
    Fail(ScriptFailure),
}

#[derive(Debug)]
pub(super) struct ScriptAnswer {
    pub(super) expect: Condition,
    pub(super) pieces: ScriptDeltas,
    pub(super) content: Vec<Block>,
    pub(super) stop: StopReason,
    pub(super) usage: ScriptUsage,
}

/// A failure, after the pieces that arrived before it.
#[derive(Debug)]
pub(super) struct ScriptFailure {
    pub(super) pieces: ScriptDeltas,
    pub(super) error: ModelError,
    remaining: AtomicU32,
}

impl ScriptFailure {
    /// Takes one of the remaining occurrences of this failure, if there is one.
    pub(super) fn take_occurrence(&self) -> bool {
        self.remaining
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }
}

#[derive(Debug, Clone)]
pub(super) struct ScriptDeltas {
    pub(super) deltas: Vec<Delta>,
    pub(super) delay: Duration,
}

/// The token usage to report instead of estimates.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ScriptUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_read_tokens: u64,
    pub(super) cache_write_tokens: u64,
    pub(super) output_tokens: Option<u64>,
    pub(super) reasoning_tokens: u64,
}

/// An item as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptItem {
    when: Option<Condition>,
    expect: Option<Condition>,
    thinking: Option<String>,
    text: Option<String>,
    calls: Option<Vec<ScriptCall>>,
    stop: Option<StopReason>,
    usage: Option<ScriptUsage>,
    chunk: Option<NonZeroUsize>,
    delay_ms: Option<u64>,
    error: Option<ScriptError>,
    r#else: Option<Box<Spanned<ScriptItem>>>,
    r#loop: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    tool: String,
    /// An object, or a text with the raw arguments that a model wrote.
    #[serde(default)]
    args: Value,
    #[serde(default)]
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptError {
    kind: ScriptErrorKind,
    message: Option<String>,
    retry_after_ms: Option<u64>,
    status: Option<u16>,
    times: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScriptErrorKind {
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

/// A problem in a script, with its position.
struct ScriptProblem {
    at: Option<Location>,
    message: String,
}

impl ModelScript {
    /// Parses a script; `file` is its name in messages.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, ModelError> {
        parse_steps(text).map_err(|ScriptProblem { at, message }| {
            ModelError::Config(match at {
                Some(at) => format!("{file}:{}:{}: {message}", at.line(), at.column()),
                None => format!("{file}: {message}"),
            })
        })
    }
}

fn parse_steps(text: &str) -> Result<ModelScript, ScriptProblem> {
    let mut items: Vec<Spanned<ScriptItem>> = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        // The location is shown once, in front.
        let message = error.to_string();
        let message = message
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        ScriptProblem {
            at: error.location(),
            message,
        }
    })?;
    let looped = items
        .last()
        .is_some_and(|last| last.value.r#loop == Some(true));
    if looped && let Some(last) = items.pop() {
        last.value.check_loop().map_err(|message| ScriptProblem {
            at: Some(last.defined),
            message: message.into(),
        })?;
    }
    let steps: Vec<_> = items
        .into_iter()
        .map(parse_step)
        .collect::<Result<_, _>>()?;
    if steps.is_empty() {
        return Err(ScriptProblem {
            at: None,
            message: "the script has no answers".into(),
        });
    }
    Ok(ModelScript { steps, looped })
}

fn parse_step(item: Spanned<ScriptItem>) -> Result<ScriptStep, ScriptProblem> {
    let Spanned {
        value: mut item,
        defined: at,
        ..
    } = item;
    let mistake = |message: &str| ScriptProblem {
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
        .map(|item| parse_step(*item).map(Box::new))
        .transpose()?;
    let act = item.into_action().map_err(mistake)?;
    Ok(ScriptStep {
        line: at.line(),
        when,
        action: act,
        otherwise,
    })
}

impl ScriptItem {
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

    fn into_action(self) -> Result<ScriptAction, &'static str> {
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
            deltas.extend(deltas::thinking(&text, self.chunk));
            content.push(Block::Thinking(Thinking {
                text,
                origin: "scripted".into(),
                ..Thinking::default()
            }));
        }
        if let Some(text) = self.text {
            deltas.extend(deltas::text(&text, self.chunk));
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
            ScriptCall {
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
            deltas.extend(deltas::call(index, &name, &raw, self.chunk));
            let (args, invalid) = parse_args(&raw);
            content.push(Block::ToolCall(ToolCall {
                id,
                name,
                args,
                invalid,
                signature: None,
            }));
        }
        let pieces = ScriptDeltas {
            deltas,
            delay: Duration::from_millis(self.delay_ms.unwrap_or(0)),
        };
        match self.error {
            None => Ok(ScriptAction::Answer(Box::new(ScriptAnswer {
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
                Ok(ScriptAction::Fail(ScriptFailure {
                    pieces,
                    error: given.into_error()?,
                    remaining: left,
                }))
            }
        }
    }
}

impl ScriptError {
    fn into_error(self) -> Result<ModelError, &'static str> {
        let retry_after = self.retry_after_ms.map(Duration::from_millis);
        if self.status.is_some() && !matches!(self.kind, ScriptErrorKind::Unavailable) {
            return Err("only `unavailable` has a `status`");
        }
        if retry_after.is_some()
            && !matches!(
                self.kind,
                ScriptErrorKind::Unavailable | ScriptErrorKind::RateLimited
            )
        {
            return Err("only `rate_limited` and `unavailable` have `retry_after_ms`");
        }
        let message = self.message.unwrap_or_else(|| "scripted".into());
        Ok(match self.kind {
            ScriptErrorKind::ContextOverflow => ModelError::ContextOverflow(message),
            ScriptErrorKind::RateLimited => ModelError::RateLimited {
                retry_after,
                message,
            },
            ScriptErrorKind::Unavailable => ModelError::Unavailable {
                status: self.status.unwrap_or(503),
                retry_after,
                message,
            },
            ScriptErrorKind::Auth => ModelError::Auth(message),
            ScriptErrorKind::Quota => ModelError::Quota(message),
            ScriptErrorKind::NotFound => ModelError::NotFound(message),
            ScriptErrorKind::BadRequest => ModelError::BadRequest(message),
            ScriptErrorKind::TimedOut => ModelError::TimedOut(message),
            ScriptErrorKind::Network => ModelError::Network(message),
            ScriptErrorKind::Cut => ModelError::Cut,
            ScriptErrorKind::Protocol => ModelError::Protocol(message),
            ScriptErrorKind::Config => ModelError::Config(message),
        })
    }
}
