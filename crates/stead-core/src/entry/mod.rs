//! The journal's entry kinds: all that can ever have happened in a session.
//!
//! | kind | says | durable before going on |
//! |---|---|---|
//! | `session` | the journal's format, session and agent; always the first line | with the next durable entry |
//! | `user` | an input was accepted; a run begins. With no content: the last run is taken up again | yes |
//! | `model` | the model answered, whole | with the next durable entry |
//! | `call` | a tool call is about to run (intent, bound to a hash of its arguments) | if it can change anything |
//! | `result` | what came of a call | with the next durable entry; until then its `call` says that it may have run |
//! | `ask` | a call waits for a person; the run is parked | yes |
//! | `decision` | a person's answer | yes |
//! | `notice` | the harness told the model something | with the next durable entry |
//! | `steer` | a person said something to a run that was going on | yes |
//! | `set` | a person changed how the session goes on: its agent, its permission mode, plan mode | yes |
//! | `pin` | a message is to be kept word for word whatever else is left out of the context, or no longer | yes |
//! | `compaction` | the model is shown less from here on: which part, and what stands for it; nothing is erased | with the next durable entry |
//! | `hook` | a hook was asked, what came of it, and the arguments it gave a call that had not begun | with the next durable entry |
//! | `rewind` | the conversation continues from an earlier point; nothing is erased | yes |
//! | `end` | how the run ended | yes |

mod call;
mod compaction;
mod hook;
mod run_end;

pub use call::{CallIntent, CallResult, ResultStatus, SkillActivation};
pub use compaction::{Compaction, CompactionCause, DroppedCounts};
pub use hook::{HookOutcome, HookRun};
pub use run_end::{RunEnd, RunOutcome};

use crate::{
    AgentId, Ask, Block, Decision, RunId, SessionChange, SessionId, SessionOrigin, SpendAmount,
    StopReason, SubagentOrigin, Usage, Usd,
};
use serde::{Deserialize, Serialize};

/// Version of the journal format written today; readers accept this and all before it.
pub const FORMAT_VERSION: u32 = 1;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The first line.
    Session(SessionStart),
    /// An input was accepted.
    User(UserInput),
    /// The model answered.
    Model(ModelReply),
    /// A call is about to run.
    Call(CallIntent),
    /// A call ended.
    Result(CallResult),
    /// A call waits for a person.
    Ask(Ask),
    /// A person answered.
    Decision(Decision),
    /// The harness told the model something.
    Notice(Notice),
    /// A person said something to a run that was going on.
    Steer(Steer),
    /// A person changed how the session goes on.
    Set(SetEntry),
    /// A message is pinned, or no longer.
    Pin(Pin),
    /// The model is shown less from here on.
    Compaction(Compaction),
    /// A hook was asked.
    Hook(HookRun),
    /// The conversation goes on from an earlier point.
    Rewind(Rewind),
    /// The run ended.
    End(RunEnd),
}

/// The name of an entry kind, as it stands in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is documented on its `Entry` variant")]
pub enum EntryKind {
    Session,
    User,
    Model,
    Call,
    Result,
    Ask,
    Decision,
    Notice,
    Steer,
    Set,
    Pin,
    Compaction,
    Hook,
    Rewind,
    End,
}

impl Entry {
    /// This entry's kind.
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Session(_) => EntryKind::Session,
            Self::User(_) => EntryKind::User,
            Self::Model(_) => EntryKind::Model,
            Self::Call(_) => EntryKind::Call,
            Self::Result(_) => EntryKind::Result,
            Self::Ask(_) => EntryKind::Ask,
            Self::Decision(_) => EntryKind::Decision,
            Self::Notice(_) => EntryKind::Notice,
            Self::Steer(_) => EntryKind::Steer,
            Self::Set(_) => EntryKind::Set,
            Self::Pin(_) => EntryKind::Pin,
            Self::Compaction(_) => EntryKind::Compaction,
            Self::Hook(_) => EntryKind::Hook,
            Self::Rewind(_) => EntryKind::Rewind,
            Self::End(_) => EntryKind::End,
        }
    }

    /// Whether the journal must be on stable storage before the driver goes on.
    pub fn must_be_durable(&self) -> bool {
        match self {
            // The session that handed it over has it on record.
            Self::User(input) => !input.handed,
            Self::Ask(_)
            | Self::Decision(_)
            | Self::Steer(_)
            | Self::Set(_)
            | Self::Pin(_)
            | Self::Rewind(_)
            | Self::End(_) => true,
            Self::Call(intent) => intent.changes,
            Self::Session(_)
            | Self::Model(_)
            | Self::Result(_)
            | Self::Notice(_)
            | Self::Compaction(_)
            | Self::Hook(_) => false,
        }
    }
}

/// Opens a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    /// The format's version.
    pub version: u32,
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: AgentId,
    /// Where it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Fork>,
    /// Who handed it its work, if it is that of a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned: Option<SubagentOrigin>,
}

impl SessionStart {
    /// The first line of a journal of today's format.
    pub fn new(session: SessionId, agent: AgentId, from: Option<SessionOrigin>) -> Self {
        let (parent, spawned) = match from {
            None => (None, None),
            Some(SessionOrigin::Fork(fork)) => (Some(fork), None),
            Some(SessionOrigin::Spawned(spawned)) => (None, Some(*spawned)),
        };
        Self {
            version: FORMAT_VERSION,
            session,
            agent,
            parent,
            spawned,
        }
    }
}

/// The origin of a forked session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The session it was copied from.
    pub session: SessionId,
    /// The last sequence number that was copied.
    pub seq: u64,
}

/// An accepted input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserInput {
    /// The run it begins.
    pub run: RunId,
    /// What was said; empty when the last run is only taken up again, or tasks wake the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Block>,
    /// What a person added to the budget of a run that had used it up.
    #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
    pub raise: SpendAmount,
    /// Whether nobody said anything: tasks of subagents have ended, and a notice tells of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakes: bool,
    /// Whether it is a task that another session handed over, in whose journal it is, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub handed: bool,
}

impl UserInput {
    /// An input.
    pub fn new(run: RunId, content: Vec<Block>) -> Self {
        Self {
            run,
            content,
            raise: SpendAmount::default(),
            wakes: false,
            handed: false,
        }
    }

    /// No input: the run begins because tasks of subagents have ended.
    pub fn wake(run: RunId) -> Self {
        Self {
            wakes: true,
            ..Self::new(run, Vec::new())
        }
    }

    /// An input of one text.
    pub fn text(run: RunId, text: impl Into<String>) -> Self {
        Self::new(run, vec![Block::text(text)])
    }
}

/// A whole answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The run.
    pub run: RunId,
    /// The model that answered, as `provider:model`.
    pub model: String,
    /// Its content.
    pub content: Vec<Block>,
    /// Tokens used.
    pub usage: Usage,
    /// What it cost; absent when the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// Why it stopped.
    pub stop: StopReason,
}

/// A word from the harness to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The run.
    pub run: RunId,
    /// What the model is told.
    pub text: String,
    /// Why the model is told.
    #[serde(default, skip_serializing_if = "NoticeKind::is_general")]
    pub kind: NoticeKind,
    /// The tasks of subagents whose end it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Whether it reminds an agent that was switched to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminds: bool,
    /// Whether it brings in words of people or machines that nobody here vouches for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// Why a model is sent a notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Context, reminders, results of tasks.
    #[default]
    General,
    /// The run repeats the same steps. The model is told once for each repetition.
    Repetition,
}

impl NoticeKind {
    fn is_general(&self) -> bool {
        *self == Self::General
    }
}

impl Notice {
    /// The notice that a run repeats the same steps.
    pub fn repetition(run: RunId, text: impl Into<String>) -> Self {
        Self {
            kind: NoticeKind::Repetition,
            ..Self::new(run, text)
        }
    }

    /// A notice that tells `text`.
    pub fn new(run: RunId, text: impl Into<String>) -> Self {
        Self {
            run,
            text: text.into(),
            kind: NoticeKind::General,
            tasks: Vec::new(),
            reminds: false,
            untrusted: false,
        }
    }
}

/// What a person said to a run that was going on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steer {
    /// The run.
    pub run: RunId,
    /// What was said.
    pub content: Vec<Block>,
}

/// A change by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetEntry {
    /// What changes.
    #[serde(flatten)]
    pub change: SessionChange,
    /// Who wanted it.
    pub by: String,
}

/// A message that is kept word for word, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The entry of the message.
    pub seq: u64,
    /// Whether it is pinned from now on.
    pub pinned: bool,
}

/// A return to an earlier point of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// The last sequence number that still counts.
    pub to: u64,
}
