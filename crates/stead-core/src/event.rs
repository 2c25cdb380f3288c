//! What listeners see while a run goes on. CLI, terminal interface and servers are projections of
//! it.

use crate::{
    Block, CompactionCause, DecisionKind, DroppedCounts, PermissionMode, PlanStage, Redactor,
    ResultStatus, RunId, RunOutcome, SessionChange, SessionId, StopReason, Todo, Usage, Usd,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event. `seq` counts within a run without gaps, so a listener can tell what it missed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Position within the run's events, from 1.
    pub seq: u64,
    /// The run.
    pub run: RunId,
    /// Whose event: empty for the run itself, the labels from outer to inner for a subagent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// The input is durable and work begins.
    RunStarted {
        /// The session.
        session: SessionId,
        /// The model that will be asked, as `provider:model`.
        model: String,
        /// Whether it begins without a new input: an earlier run is taken up again, or tasks wake
        /// the session.
        resumed: bool,
    },
    /// A request is sent.
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
    /// The model has begun to write a call.
    ToolCallStarted {
        /// Its position among the answer's calls.
        index: u32,
        /// The tool.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolArgsDelta {
        /// The call's position.
        index: u32,
        /// A piece of JSON text.
        json: String,
    },
    /// The request failed and is tried again: deltas of this step so far are void.
    ModelRetry {
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// After this long.
        wait_ms: u64,
        /// Why.
        reason: String,
    },
    /// The answer is whole.
    ModelEnded {
        /// The step.
        step: u32,
        /// Tokens of this call.
        usage: Usage,
        /// Its cost; absent when not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Usd>,
        /// Why the model stopped.
        stop: StopReason,
        /// Tokens of the context after this answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
        /// How many fit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_window: Option<u64>,
    },
    /// A summary of the older part of the conversation is being made, which takes a while.
    CompactionStarted {
        /// Why.
        cause: CompactionCause,
        /// Tokens of the context now.
        before_tokens: u64,
    },
    /// The model is shown less of the conversation from here on.
    Compacted {
        /// Why.
        cause: CompactionCause,
        /// What is no longer shown.
        dropped: DroppedCounts,
        /// Whether a summary stands for the older part.
        summarised: bool,
        /// Tokens before.
        before_tokens: u64,
        /// An estimate of them after.
        after_tokens: u64,
        /// Why no model wrote a summary though one was wanted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fallback: Option<String>,
    },
    /// A call passed the gate and begins.
    ToolStarted {
        /// The call.
        id: String,
        /// The tool's canonical name.
        name: String,
        /// The arguments.
        args: Value,
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
        /// How.
        status: ResultStatus,
        /// The beginning of what the model was told.
        preview: String,
        /// How long it took.
        ms: u64,
    },
    /// A call waits for a person.
    Ask {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        args: Value,
        /// The rule that asks.
        rule: String,
        /// Answers that may be given.
        #[serde(default)]
        decisions: Vec<DecisionKind>,
        /// Until when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<jiff::Timestamp>,
        /// What would happen, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
    },
    /// A person answered.
    Decision {
        /// The call.
        id: String,
        /// Yes or no.
        approved: bool,
        /// Who.
        by: String,
        /// Which of the ways to answer it is.
        #[serde(default = "approve")]
        decision: DecisionKind,
    },
    /// Another agent of the workspace acts from here on.
    AgentSwitched {
        /// The one before.
        from: String,
        /// The one from now on.
        to: String,
        /// The model it asks.
        model: String,
    },
    /// What a person said while the run went on is part of the conversation from here on.
    Steered {
        /// What was said.
        content: Vec<Block>,
    },
    /// The things to do are these now.
    Todos {
        /// All of them.
        todos: Vec<Todo>,
    },
    /// Plan mode began or ended.
    Plan {
        /// How the plan stands now, with its own fields beside; left out where there is none.
        #[serde(default, flatten)]
        stage: Option<PlanStage>,
    },
    /// Another permission mode holds from here on.
    Mode {
        /// Which.
        to: PermissionMode,
    },
    /// Something a person should know.
    Notice {
        /// How grave.
        level: NoticeLevel,
        /// In words.
        text: String,
    },
    /// The run ended or parked; always the last event.
    RunEnded {
        /// How.
        outcome: RunOutcome,
        /// More words, where there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The final text.
        text: String,
        /// Model calls made.
        steps: u32,
        /// Tokens of the whole run.
        usage: Usage,
        /// Cost of the whole run; absent when any part is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Usd>,
    },
}

/// How a question was answered before there were other ways to say yes.
fn approve() -> DecisionKind {
    DecisionKind::Approve
}

impl EventKind {
    /// The same event without any secret that `redactor` knows. Arguments and what a person said
    /// are as they are: they come from the journal, where no secret is. A secret whose pieces come
    /// in two deltas is not seen.
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact_owned(text);
        match self {
            Self::TextDelta { text } => Self::TextDelta { text: clean(text) },
            Self::ThinkingDelta { text } => Self::ThinkingDelta { text: clean(text) },
            Self::ToolArgsDelta { index, json } => Self::ToolArgsDelta {
                index,
                json: clean(json),
            },
            Self::ToolOutputDelta { id, text } => Self::ToolOutputDelta {
                id,
                text: clean(text),
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
            | Self::ToolCallStarted { .. }
            | Self::ModelEnded { .. }
            | Self::CompactionStarted { .. }
            | Self::ToolStarted { .. }
            | Self::ToolEnded { .. }
            | Self::AgentSwitched { .. }
            | Self::Steered { .. }
            | Self::Ask { .. }
            | Self::Decision { .. }
            | Self::Todos { .. }
            | Self::Plan { .. }
            | Self::Mode { .. }
            | Self::RunEnded { .. } => self,
        }
    }

    /// What listeners are told of a change of how a session goes on, as it is on record.
    pub fn from_change(change: &SessionChange) -> Option<Self> {
        match change.clone() {
            SessionChange::Todos { todos } => Some(Self::Todos { todos }),
            SessionChange::Plan { plan } => Some(Self::Plan { stage: plan }),
            SessionChange::Mode { to } => Some(Self::Mode { to }),
            SessionChange::Agent { .. } | SessionChange::Ceiling(_) => None,
        }
    }
}

/// How grave a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something was not as it should be, and was handled.
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
            EventKind::ToolOutputDelta {
                id: "c1".into(),
                text: text(),
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
            (SessionChange::Mode { to: PermissionMode::Explore }, r#"{"type":"mode","to":"explore"}"#),
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
