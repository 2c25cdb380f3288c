//! The commands that clients send to a session, and their receipts.
//!
//! Effects: the clock, randomness.

use crate::{
    AfterAnswer, ApprovalReply, Block, InputId, Origin, RunId, SessionChange, SessionId, SetEntry,
    SpendAmount,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A command to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// An input. If a run is going on, its queue mode says what becomes of it.
    Input(InputCommand),
    /// A message for the run that is going on, before its next step. An input if none is.
    Steer {
        /// The message.
        content: Vec<Block>,
        /// Who sent it.
        #[serde(default)]
        origin: Origin,
    },
    /// Answers to questions. The run continues once the last question of its step is answered.
    Answer(AnswerCommand),
    /// Takes back inputs that no run has begun with. Those that are in the journal stay.
    Withdraw {
        /// The inputs, as their receipts name them.
        inputs: Vec<InputId>,
    },
    /// Stops the run that is going on.
    Cancel {
        /// The run that is meant. The command is refused if another one is going on, or none;
        /// without a name it stops whichever run is going on when the command arrives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// The person.
        by: String,
    },
    /// Changes settings of the session, after the run that is going on.
    Set {
        /// The changes.
        changes: Vec<SessionChange>,
        /// The person.
        by: String,
    },
    /// Pins an input, or unpins it, after the run that is going on.
    Pin {
        /// The input, counted from 1.
        turn: usize,
        /// Whether it is shown word for word from now on.
        pinned: Pinned,
    },
    /// Compacts the context, after the run that is going on.
    Compact {
        /// The subject to keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        focus: Option<String>,
    },
    /// Returns to the point before an input.
    Rewind {
        /// The input, counted from 1.
        turn: usize,
    },
    /// Copies the session.
    Fork {
        /// The new session.
        to: SessionId,
        /// The input before which the copy ends, counted from 1; none copies all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<usize>,
    },
    /// Takes back what a run did to files.
    Undo {
        /// The run.
        run: RunId,
    },
    /// Continues a run that was interrupted, parked or stopped.
    Resume {
        /// What a person adds to its budget.
        #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
        raise: SpendAmount,
        /// How questions are answered.
        #[serde(default, skip_serializing_if = "AnswerPolicy::is_default")]
        answers: AnswerPolicy,
        /// Settings that change first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<SetEntry>,
    },
    /// Begins a run if tasks of subagents have ended.
    Wake,
}

/// An input to a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InputCommand {
    /// The content.
    pub content: Vec<Block>,
    /// Who sent it, and how.
    #[serde(default)]
    pub origin: Origin,
    /// What becomes of it if a run is going on; none leaves it to the session's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<QueueMode>,
    /// How questions of its run are answered.
    #[serde(default, skip_serializing_if = "AnswerPolicy::is_default")]
    pub answers: AnswerPolicy,
    /// Settings that change before its run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SetEntry>,
    /// Whether it is always shown verbatim.
    #[serde(default, skip_serializing_if = "Pinned::is_no")]
    pub pinned: Pinned,
    /// The JSON schema that the answer must conform to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl InputCommand {
    /// Returns an input with nothing but content.
    pub fn new(content: Vec<Block>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }
}

/// Answers to questions of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerCommand {
    /// The answers.
    pub replies: Vec<ApprovalReply>,
    /// The person.
    pub by: String,
    /// What happens to a parked run when its last question is answered.
    #[serde(default)]
    pub then: AfterAnswer,
    /// The session of the subagent that asks; none if the addressed session asks itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SessionId>,
    /// How further questions of a parked run are answered.
    #[serde(default, skip_serializing_if = "AnswerPolicy::is_default")]
    pub answers: AnswerPolicy,
    /// Settings that change before a parked run continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<SetEntry>,
}

/// Whether an input is shown word for word, whatever else compaction leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pinned {
    /// It is.
    Yes,
    /// It is not.
    #[default]
    No,
}

impl Pinned {
    fn is_no(&self) -> bool {
        *self == Self::No
    }
}

/// How the questions of one run are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPolicy {
    /// People are asked: those who listen, or the run parks.
    #[default]
    Ask,
    /// Every question is answered with yes.
    ApproveAll,
    /// Every question is answered with no.
    DenyAll,
}

impl AnswerPolicy {
    fn is_default(&self) -> bool {
        *self == Self::Ask
    }
}

/// The acknowledgement of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The command.
    pub input_id: InputId,
    /// The journal entry of the command, if it is recorded already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The run that the command began or continued, if it did so at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The session whose inbox has the command, if that is not the addressed one: questions of a
    /// subagent are answered where the session runs that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_of: Option<SessionId>,
}

impl Receipt {
    /// Returns the receipt of a command that was carried out and left no journal entry.
    pub fn done() -> Self {
        Self::waiting(InputId::fresh())
    }

    /// Returns the receipt of a command that waits for the process which runs the session.
    pub fn waiting(input_id: InputId) -> Self {
        Self {
            input_id,
            seq: None,
            run: None,
            inbox_of: None,
        }
    }

    /// Returns the receipt of a command that is in the journal.
    pub fn recorded(input_id: InputId, seq: u64) -> Self {
        Self {
            seq: Some(seq),
            ..Self::waiting(input_id)
        }
    }
}

/// How a message that arrives during a run is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// All messages become one input after the run, once no more arrive for a moment.
    #[default]
    Collect,
    /// Each message becomes an input of its own, one after another.
    Followup,
    /// The message goes into the next step of the run; calls of this step that were not started are
    /// skipped.
    Steer,
    /// Like `Steer`, and the message is an input of its own afterwards.
    SteerBacklog,
    /// The model call and the tools are cancelled at once, and the message is the next input.
    Interrupt,
}

impl QueueMode {
    /// All modes.
    pub const ALL: [Self; 5] = [
        Self::Collect,
        Self::Followup,
        Self::Steer,
        Self::SteerBacklog,
        Self::Interrupt,
    ];

    /// Returns the name used in settings and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Followup => "followup",
            Self::Steer => "steer",
            Self::SteerBacklog => "steer-backlog",
            Self::Interrupt => "interrupt",
        }
    }

    /// Returns whether messages go into the run that is going on.
    pub fn is_steering(self) -> bool {
        match self {
            Self::Steer | Self::SteerBacklog => true,
            Self::Collect | Self::Followup | Self::Interrupt => false,
        }
    }
}

impl fmt::Display for QueueMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for QueueMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let named = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        named.ok_or_else(|| format!("{text:?} is no mode of the queue; they are: {}", known()))
    }
}
