//! The entry with which the harness tells the model something.
//!
//! Effects: none.

use crate::{RunId, TaintOrigin};
use serde::{Deserialize, Serialize};

/// A message from the harness to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RecordedNotice")]
pub struct Notice {
    /// The run.
    pub run: RunId,
    /// Why the model is told.
    pub kind: NoticeKind,
    /// The text for the model.
    pub text: String,
    /// The tasks of subagents whose end it tells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// The tools that it says are found with `tool_search`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether it contains untrusted content.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Where the untrusted content comes from, as far as it is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<TaintOrigin>,
}

/// Why a model is sent a notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A hook adds context, or the reason is not recorded.
    #[default]
    #[serde(alias = "general")]
    Context,
    /// The run repeats the same steps. The model is told once for each repetition.
    Repetition,
    /// An agent that became active is reminded of its role.
    Reminder,
    /// Tasks of subagents have ended.
    Tasks,
    /// The tools that are not shown are other ones than before.
    Tools,
    /// The answer was cut off by a limit, and the model is to go on.
    Continuation,
    /// The answer before it was cut off, because the run was stopped or the connection was lost.
    CutOff,
    /// The answer does not conform to the schema that was asked for.
    Correction,
}

impl Notice {
    /// Returns a notice of `kind` that tells `text`.
    pub fn new(run: RunId, kind: NoticeKind, text: impl Into<String>) -> Self {
        Self {
            run,
            kind,
            text: text.into(),
            tasks: Vec::new(),
            tools: None,
            untrusted: false,
            taint: Vec::new(),
        }
    }
}

/// A `notice` entry as journals contain it. Before there were these kinds, the flag `reminds` and
/// the list of tasks said the same.
#[derive(Deserialize)]
struct RecordedNotice {
    run: RunId,
    text: String,
    kind: Option<NoticeKind>,
    #[serde(default)]
    tasks: Vec<String>,
    tools: Option<Vec<String>>,
    #[serde(default)]
    reminds: bool,
    #[serde(default)]
    untrusted: bool,
    #[serde(default)]
    taint: Vec<TaintOrigin>,
}

impl From<RecordedNotice> for Notice {
    fn from(recorded: RecordedNotice) -> Self {
        let kind = recorded.kind.unwrap_or(match recorded.reminds {
            true => NoticeKind::Reminder,
            false if recorded.tasks.is_empty() => NoticeKind::Context,
            false => NoticeKind::Tasks,
        });
        Self {
            run: recorded.run,
            kind,
            text: recorded.text,
            tasks: recorded.tasks,
            tools: recorded.tools,
            untrusted: recorded.untrusted,
            taint: recorded.taint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_without_a_kind_are_read_as_they_were_meant() {
        let table = [
            ("", NoticeKind::Context),
            (r#","kind":"general""#, NoticeKind::Context),
            (r#","kind":"repetition""#, NoticeKind::Repetition),
            (r#","reminds":true"#, NoticeKind::Reminder),
            (r#","tasks":["t1"],"untrusted":true"#, NoticeKind::Tasks),
        ];
        for (fields, kind) in table {
            let read: Notice =
                serde_json::from_str(&format!(r#"{{"run":"r1","text":"x"{fields}}}"#)).unwrap();
            assert_eq!(read.kind, kind, "{fields}");
            let written = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Notice>(&written).unwrap(), read);
            assert!(!written.contains("reminds"), "{written}");
        }
    }
}
