//! The entry with which a run begins: an input, and where it came from.
//!
//! Effects: none.

use crate::{Block, InputId, RunId, SpendAmount};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The beginning of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "RecordedInput")]
pub struct UserInput {
    /// The run that begins.
    pub run: RunId,
    /// Why it begins.
    #[serde(skip_serializing_if = "RunCause::is_input")]
    pub cause: RunCause,
    /// Who began it, and how.
    pub origin: Origin,
    /// The content of an input; empty for every other cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Block>,
    /// The amount that a person added to the budget of a run that had exhausted it.
    #[serde(skip_serializing_if = "SpendAmount::is_zero")]
    pub raise: SpendAmount,
    /// The rows of the session's inbox that it is made of.
    #[serde(rename = "inputs", skip_serializing_if = "Vec::is_empty")]
    pub inbox_rows: Vec<InputId>,
    /// The JSON schema that the answer must conform to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// Why a run begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunCause {
    /// An input was accepted.
    #[default]
    Input,
    /// The last run is resumed.
    Resume,
    /// Subagent tasks have ended, and a notice reports them.
    Wake,
}

impl RunCause {
    /// Returns the name used in journals and by hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Resume => "resume",
            Self::Wake => "wake",
        }
    }

    fn is_input(&self) -> bool {
        *self == Self::Input
    }
}

/// Who or what began a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The kind of sender.
    pub kind: OriginKind,
    /// The sender: a person, a job, the session that handed over a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The way it came: `run`, `chat`, the name of a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The conversation of the channel that an answer belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The sender's key of the input. The same key is accepted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The kind of sender of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginKind {
    /// A person at this machine or at a console.
    #[default]
    Person,
    /// A chat channel.
    Channel,
    /// A schedule.
    Schedule,
    /// Delegated work: a task from another session, or the end of tasks of this one.
    Task,
    /// A hook.
    Hook,
    /// A program.
    Api,
}

impl Origin {
    /// Returns an origin of which only the kind is known.
    pub fn of_kind(kind: OriginKind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}

impl UserInput {
    /// Returns an input of a person.
    pub fn new(run: RunId, content: Vec<Block>) -> Self {
        Self {
            run,
            cause: RunCause::Input,
            origin: Origin::default(),
            content,
            raise: SpendAmount::default(),
            inbox_rows: Vec::new(),
            output_schema: None,
        }
    }

    /// Returns an input of one text.
    pub fn text(run: RunId, text: impl Into<String>) -> Self {
        Self::new(run, vec![Block::text(text)])
    }

    /// Returns the entry that resumes the last run with `raise` more to spend.
    pub fn resume(run: RunId, raise: SpendAmount) -> Self {
        Self {
            cause: RunCause::Resume,
            raise,
            ..Self::new(run, Vec::new())
        }
    }

    /// Returns the entry that begins a run because subagent tasks have ended.
    pub fn wake(run: RunId) -> Self {
        Self {
            cause: RunCause::Wake,
            origin: Origin::of_kind(OriginKind::Task),
            ..Self::new(run, Vec::new())
        }
    }

    /// Returns whether this is a task from another session, whose journal contains it too.
    pub fn is_delegated_task(&self) -> bool {
        self.cause == RunCause::Input && self.origin.kind == OriginKind::Task
    }
}

/// A `user` entry as journals contain it. Before there were causes and origins, the flags `wakes`
/// and `handed` and an empty content said the same.
#[derive(Deserialize)]
struct RecordedInput {
    run: RunId,
    cause: Option<RunCause>,
    origin: Option<Origin>,
    #[serde(default)]
    content: Vec<Block>,
    #[serde(default)]
    raise: SpendAmount,
    #[serde(default)]
    wakes: bool,
    #[serde(default)]
    handed: bool,
    #[serde(default)]
    inputs: Vec<InputId>,
    #[serde(default)]
    output_schema: Option<Value>,
}

impl From<RecordedInput> for UserInput {
    fn from(recorded: RecordedInput) -> Self {
        let cause = recorded.cause.unwrap_or(match recorded.wakes {
            true => RunCause::Wake,
            false if recorded.content.is_empty() => RunCause::Resume,
            false => RunCause::Input,
        });
        let kind = match recorded.wakes || recorded.handed {
            true => OriginKind::Task,
            false => OriginKind::Person,
        };
        Self {
            run: recorded.run,
            cause,
            origin: recorded.origin.unwrap_or(Origin::of_kind(kind)),
            content: recorded.content,
            raise: recorded.raise,
            inbox_rows: recorded.inputs,
            output_schema: recorded.output_schema,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_without_cause_and_origin_are_read_as_they_were_meant() {
        let person = || Origin::of_kind(OriginKind::Person);
        let task = || Origin::of_kind(OriginKind::Task);
        let content = r#""content":[{"type":"text","text":"hi"}]"#;
        let table = [
            (content.to_owned(), RunCause::Input, person()),
            (
                format!(r#"{content},"handed":true"#),
                RunCause::Input,
                task(),
            ),
            (r#""wakes":true"#.to_owned(), RunCause::Wake, task()),
            (
                r#""raise":{"tokens":5}"#.to_owned(),
                RunCause::Resume,
                person(),
            ),
        ];
        for (fields, cause, origin) in table {
            let read: UserInput =
                serde_json::from_str(&format!(r#"{{"run":"r1",{fields}}}"#)).unwrap();
            assert_eq!(
                (read.cause, read.origin.clone()),
                (cause, origin),
                "{fields}"
            );
            let written = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<UserInput>(&written).unwrap(), read);
            assert!(
                !written.contains("wakes") && !written.contains("handed"),
                "{written}"
            );
        }
    }
}
