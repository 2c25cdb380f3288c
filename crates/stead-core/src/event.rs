//! Events: what listeners are told while a run goes on. The command line, the terminal interface
//! and servers are projections of them.
//!
//! Effects: none.

use crate::client::WaitingTask;
use crate::{
    ApprovalQuestion, Block, CompactionCause, DecisionKind, DroppedCounts, PermissionMode,
    PlanStage, Redactor, ResultStatus, RunId, RunOutcome, SessionChange, SessionId, StopReason,
    Todo, Usage, Usd,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event. `seq` counts within a run without gaps, so that a listener can detect missed events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The position within the run's events, from 1.
    pub seq: u64,
    /// The journal entry that it follows, for listeners in this process.
    #[serde(skip)]
    pub entry: u64,
    /// The run.
    pub run: RunId,
    /// The session of the subagent that the event comes from, and where in its journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildPosition>,
    /// The source: empty for the run itself, the labels from outer to inner for a subagent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// A point in the session of a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildPosition {
    /// The session.
    pub session: SessionId,
    /// The journal entry.
    pub entry: u64,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// The input is durable and the run begins.
    RunStarted {
        /// The session.
        session: SessionId,
        /// The model that will be called, as `provider:model`.
        model: String,
        /// Whether it begins without a new input: an earlier run is resumed, or subagent tasks wake
        /// the session.
        resumed: bool,
    },
    /// A request is sent to the model.
    ModelStarted {
        /// The step, from 1.
        step: u32,
    },
    /// A piece of the answer's text.
    TextDelta {
        /// The piece.
        text: String,
    },
    /// A piece of the model's thinking.
    ThinkingDelta {
        /// The piece.
        text: String,
    },
    /// The model began to write a tool call.
    ToolCallStarted {
        /// The index among the answer's calls.
        index: u32,
        /// The tool.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolArgsDelta {
        /// The index of the call.
        index: u32,
        /// A piece of JSON text.
        json: String,
    },
    /// The request failed and is retried: the deltas of this step so far are void.
    ModelRetry {
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// The delay before it.
        wait_ms: u64,
        /// The reason of the failure.
        reason: String,
    },
    /// The answer is complete.
    ModelEnded {
        /// The step.
        step: u32,
        /// The token usage of this call.
        usage: Usage,
        /// The cost; absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Usd>,
        /// The reason why the model stopped.
        stop: StopReason,
        /// The tokens of the context after this answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
        /// The context window in tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// A summary of the older part of the conversation is being made, which takes a while.
    CompactionStarted {
        /// The cause.
        cause: CompactionCause,
        /// The tokens of the context now.
        before_tokens: u64,
    },
    /// The model is shown less of the conversation from here on.
    Compacted {
        /// The cause.
        cause: CompactionCause,
        /// What is no longer shown.
        dropped: DroppedCounts,
        /// Whether a summary replaces the older part.
        summarised: bool,
        /// The tokens before.
        before_tokens: u64,
        /// The estimated tokens after.
        after_tokens: u64,
        /// The reason why no model wrote a summary although one was planned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// A call passed the gate and starts.
    ToolStarted {
        /// The call.
        id: String,
        /// The tool's canonical name.
        name: String,
        /// The arguments.
        args: Value,
        /// The call that made it, if it is a nested call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A piece of a running tool's output.
    ToolOutputDelta {
        /// The call.
        id: String,
        /// The piece.
        text: String,
    },
    /// A call ended.
    ToolEnded {
        /// The call.
        id: String,
        /// The tool's name.
        name: String,
        /// How it ended.
        status: ResultStatus,
        /// The exit code of the command that it ran. Other than 0, the command failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The beginning of the result.
        preview: String,
        /// The change of files that it made, as a unified diff.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        /// The duration in milliseconds.
        ms: u64,
        /// The call that made it, if it is a nested call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A call waits for a person's decision.
    Ask {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        args: Value,
        /// A sentence that explains why it is asked.
        rule: String,
        /// The allowed answers.
        #[serde(default)]
        decisions: Vec<DecisionKind>,
        /// The time until which it can be answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<jiff::Timestamp>,
        /// What the call would do, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
        /// The call that made it, if it is a nested call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The run waits for answers to questions, and somebody who can answer listens.
    Awaiting {
        /// The questions.
        questions: Vec<ApprovalQuestion>,
    },
    /// A person answered.
    Decision {
        /// The call.
        id: String,
        /// Whether it was approved.
        approved: bool,
        /// The person.
        by: String,
        /// The kind of the answer.
        #[serde(default = "approve")]
        decision: DecisionKind,
    },
    /// Another agent of the workspace became active.
    AgentSwitched {
        /// The previous agent.
        from: String,
        /// The new agent.
        to: String,
        /// The model that it uses.
        model: String,
    },
    /// A steering message became part of the conversation.
    Steered {
        /// The content.
        content: Vec<Block>,
    },
    /// The todos changed.
    Todos {
        /// All todos.
        todos: Vec<Todo>,
    },
    /// Plan mode began or ended.
    Plan {
        /// The stage of the plan with its own fields; absent if there is no plan.
        #[serde(default, flatten)]
        stage: Option<PlanStage>,
    },
    /// The permission mode changed.
    Mode {
        /// The new mode.
        to: PermissionMode,
    },
    /// A message for a person.
    Notice {
        /// The severity.
        level: NoticeLevel,
        /// The text.
        text: String,
    },
    /// The run ended or parked; always the last event.
    RunEnded {
        /// The outcome.
        outcome: RunOutcome,
        /// Details, if there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The final text.
        text: String,
        /// The number of model calls.
        steps: u32,
        /// The token usage of the whole run.
        usage: Usage,
        /// The cost of the whole run; absent if any part is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Usd>,
        /// The answer as a value, if it had to conform to a JSON schema.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
        /// Tasks of subagents that wait for a person's decision.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waiting: Vec<WaitingTask>,
    },
}

/// The kind of an approved answer in events without `decision`.
fn approve() -> DecisionKind {
    DecisionKind::Approve
}

impl EventKind {
    /// Returns the event without any secret that `redactor` knows. Arguments and user messages are
    /// unchanged, because they come from the journal, which contains no secrets. A secret that is
    /// split over two events is not detected here.
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact_owned(text);
        match self {
            Self::TextDelta { text } => Self::TextDelta { text: clean(text) },
            Self::ThinkingDelta { text } => Self::ThinkingDelta { text: clean(text) },
            Self::ToolArgsDelta { index, json } => Self::ToolArgsDelta {
                index,
                json: clean(json),
            },
            Self::ToolCallStarted { index, name } => Self::ToolCallStarted {
                index,
                name: clean(name),
            },
            Self::ModelEnded {
                step,
                usage,
                cost,
                stop: StopReason::Other(stop),
                context_tokens,
                context_window,
            } => Self::ModelEnded {
                step,
                usage,
                cost,
                stop: StopReason::Other(clean(stop)),
                context_tokens,
                context_window,
            },
            Self::ToolOutputDelta { id, text } => Self::ToolOutputDelta {
                id,
                text: clean(text),
            },
            Self::ToolEnded {
                id,
                name,
                status,
                exit_code,
                preview,
                diff,
                ms,
                parent,
            } => Self::ToolEnded {
                id,
                name,
                status,
                exit_code,
                preview,
                diff: diff.map(clean),
                ms,
                parent,
            },
            Self::ModelRetry {
                attempt,
                wait_ms,
                reason,
            } => Self::ModelRetry {
                attempt,
                wait_ms,
                reason: clean(reason),
            },
            Self::Notice { level, text } => Self::Notice {
                level,
                text: clean(text),
            },
            Self::Compacted {
                cause,
                dropped,
                summarised,
                before_tokens,
                after_tokens,
                fallback,
            } => {
                let fallback = fallback.map(clean);
                Self::Compacted {
                    cause,
                    dropped,
                    summarised,
                    before_tokens,
                    after_tokens,
                    fallback,
                }
            }
            Self::RunStarted { .. }
            | Self::ModelStarted { .. }
            | Self::ModelEnded { .. }
            | Self::CompactionStarted { .. }
            | Self::ToolStarted { .. }
            | Self::AgentSwitched { .. }
            | Self::Steered { .. }
            | Self::Ask { .. }
            | Self::Awaiting { .. }
            | Self::Decision { .. }
            | Self::Todos { .. }
            | Self::Plan { .. }
            | Self::Mode { .. }
            | Self::RunEnded { .. } => self,
        }
    }

    /// Returns the event for a recorded change of the session.
    pub fn from_change(change: &SessionChange) -> Option<Self> {
        match change.clone() {
            SessionChange::Todos { todos } => Some(Self::Todos { todos }),
            SessionChange::Plan { plan } => Some(Self::Plan { stage: plan }),
            SessionChange::Mode { to, .. } => Some(Self::Mode { to }),
            SessionChange::Agent { .. }
            | SessionChange::Ceiling(_)
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        }
    }
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Information.
    Info,
    /// A problem that was handled.
    Warning,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_an_event_tells_a_secret() {
        let redactor = Redactor::new(["sk-secret".to_owned()]);
        let text = || "it is sk-secret!".to_owned();
        let events = [
            EventKind::TextDelta { text: text() },
            EventKind::ThinkingDelta { text: text() },
            EventKind::ToolArgsDelta {
                index: 0,
                json: text(),
            },
            EventKind::ToolCallStarted {
                index: 0,
                name: text(),
            },
            EventKind::ModelEnded {
                step: 1,
                usage: Usage::default(),
                cost: None,
                stop: StopReason::Other(text()),
                context_tokens: None,
                context_window: None,
            },
            EventKind::ToolOutputDelta {
                id: "c1".into(),
                text: text(),
            },
            EventKind::ToolEnded {
                id: "c1".into(),
                name: "edit_file".into(),
                status: ResultStatus::Ok,
                exit_code: None,
                preview: String::new(),
                diff: Some(text()),
                ms: 1,
                parent: None,
            },
            EventKind::ModelRetry {
                attempt: 2,
                wait_ms: 1,
                reason: text(),
            },
            EventKind::Notice {
                level: NoticeLevel::Info,
                text: text(),
            },
        ];
        for event in events {
            let told = serde_json::to_string(&event.redacted(&redactor)).unwrap();
            assert!(
                told.contains("it is [redacted]!") && !told.contains("sk-secret"),
                "{told}"
            );
        }
    }
    #[test]
    fn changes_are_told_in_a_stable_form() {
        let event = |change: &SessionChange| {
            serde_json::to_value(EventKind::from_change(change).unwrap()).unwrap()
        };
        let todos = vec![Todo {
            content: "a".into(),
            status: crate::TodoStatus::InProgress,
        }];
        let making = PlanStage::Making {
            file: "plans/PLAN.md".into(),
        };
        let agreed = PlanStage::Agreed {
            file: "plans/PLAN.md".into(),
            text: "1. a".into(),
        };
        #[rustfmt::skip]
        let table = [
            (SessionChange::Todos { todos }, r#"{"type":"todos","todos":[{"content":"a","status":"in_progress"}]}"#),
            (SessionChange::Plan { plan: Some(making) }, r#"{"type":"plan","stage":"making","file":"plans/PLAN.md"}"#),
            (SessionChange::Plan { plan: Some(agreed) },
                r#"{"type":"plan","stage":"agreed","file":"plans/PLAN.md","text":"1. a"}"#),
            (SessionChange::Plan { plan: None }, r#"{"type":"plan"}"#),
            (SessionChange::mode(PermissionMode::Explore), r#"{"type":"mode","to":"explore"}"#),
        ];
        for (change, json) in table {
            let told = event(&change);
            assert_eq!(told, serde_json::from_str::<Value>(json).unwrap());
            let back: EventKind = serde_json::from_value(told).unwrap();
            assert_eq!(Some(back), EventKind::from_change(&change));
        }
        assert_eq!(
            EventKind::from_change(&SessionChange::Agent { to: "x".into() }),
            None
        );
    }
}
