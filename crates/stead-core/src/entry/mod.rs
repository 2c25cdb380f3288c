//! The entry kinds of the journal: everything that can happen in a session.
//!
//! | kind | meaning | durable before the run continues |
//! |---|---|---|
//! | `session` | the journal's format, session and agent; always the first line | with the next durable entry |
//! | `user` | a run begins: an input was accepted, the last run is resumed, or tasks have ended | yes |
//! | `model` | a whole answer of the model | with the next durable entry |
//! | `call` | a tool call is about to run (intent, bound to a hash of its arguments) | if it can change anything |
//! | `result` | the result of a call | with the next durable entry; until then its `call` shows that it may have run |
//! | `ask` | a call waits for a person; the run is parked | yes |
//! | `decision` | a person's answer | yes |
//! | `notice` | a message from the harness to the model | with the next durable entry |
//! | `steer` | a message from a person to a running run | yes |
//! | `set` | a person changed the session: its agent, its permission mode, plan mode | yes |
//! | `pin` | a message is pinned, so that it is always shown verbatim, or unpinned | yes |
//! | `compaction` | the model is shown less from here on: which part, and its summary; nothing is erased | with the next durable entry |
//! | `hook` | a hook ran, its outcome, and the arguments it gave a call that had not started | with the next durable entry |
//! | `sent` | a message left the session through a channel, or its delivery ended | yes |
//! | `rewind` | the conversation continues from an earlier point; nothing is erased | yes |
//! | `end` | the outcome of the run | yes |
//!
//! A nested call (one that a running tool call makes) has the same entries as a call of the model. Its
//! name and arguments are in no answer, so its first entry (`call`, `ask`, `result`, or a `hook` that
//! changed its arguments) has them, with the call that made it: [`NestedCall`].
//!
//! Effects: none.

mod call;
mod compaction;
mod hook;
mod nested;
mod notice;
mod run_end;
mod sent;
mod user;

pub use call::{CallIntent, CallResult, ResultStatus, ShownEnd, SkillActivation};
pub use compaction::{Compaction, CompactionCause, DroppedCounts};
pub use hook::{HookOutcome, HookRun};
pub use nested::{MAX_NESTED_DEPTH, NestedCall, NestedId};
pub use notice::{Notice, NoticeKind};
pub use run_end::{RunEnd, RunOutcome};
pub use sent::{DeliveryOutcome, SentMessage};
pub use user::{Origin, OriginKind, RunCause, UserInput};

use crate::{
    AgentId, Ask, Block, Decision, InputId, NewSession, RunId, SessionChange, SessionId,
    SessionModel, SessionOrigin, StopReason, SubagentOrigin, Usage, Usd,
};
use serde::{Deserialize, Serialize};

/// The version of the journal format that is written; readers accept this and all earlier ones.
pub const FORMAT_VERSION: u32 = 1;

/// One record of the journal.
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
    /// A call waits for a person's decision.
    Ask(Ask),
    /// A person answered.
    Decision(Decision),
    /// The harness told the model something.
    Notice(Notice),
    /// A person sent a message to a running run.
    Steer(Steer),
    /// A person changed a setting of the session.
    Set(SetEntry),
    /// A message was pinned or unpinned.
    Pin(Pin),
    /// The model is shown less from here on.
    Compaction(Compaction),
    /// A hook ran.
    Hook(HookRun),
    /// A message left the session through a channel.
    Sent(SentMessage),
    /// The conversation continues from an earlier point.
    Rewind(Rewind),
    /// The run ended.
    End(RunEnd),
}

/// The kind of an entry, as written in the journal.
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
    Sent,
    Rewind,
    End,
}

impl Entry {
    /// Returns the kind of this entry.
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
            Self::Sent(_) => EntryKind::Sent,
            Self::Rewind(_) => EntryKind::Rewind,
            Self::End(_) => EntryKind::End,
        }
    }

    /// Returns whether the journal must be on stable storage before the driver continues.
    pub fn must_be_durable(&self) -> bool {
        match self {
            // The journal of the parent session has it too.
            Self::User(input) => !input.is_delegated_task(),
            Self::Ask(_)
            | Self::Decision(_)
            | Self::Steer(_)
            | Self::Set(_)
            | Self::Pin(_)
            | Self::Sent(_)
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

/// The first entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    /// The version of the format.
    pub version: u32,
    /// The session.
    pub session: SessionId,
    /// The agent.
    pub agent: AgentId,
    /// The session and position that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Fork>,
    /// The origin of a subagent's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned: Option<SubagentOrigin>,
    /// The model that the session runs with until a `set` entry changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<SessionModel>,
}

impl SessionStart {
    /// Returns the first entry of a journal in the current format.
    pub fn new(session: SessionId, agent: AgentId, new: NewSession) -> Self {
        let (parent, spawned) = match new.origin {
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
            model: new.model,
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

/// A whole answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The run.
    pub run: RunId,
    /// The model that answered, as `provider:model`.
    pub model: String,
    /// The content.
    pub content: Vec<Block>,
    /// The token usage.
    pub usage: Usage,
    /// The cost; absent if the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// The reason why the model stopped.
    pub stop: StopReason,
}

/// A steering message: sent by a person to a running run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steer {
    /// The run.
    pub run: RunId,
    /// The content.
    pub content: Vec<Block>,
    /// Who sent it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The rows of the session's inbox that it is made of.
    #[serde(default, rename = "inputs", skip_serializing_if = "Vec::is_empty")]
    pub inbox_rows: Vec<InputId>,
}

impl Steer {
    /// Returns a steering message to `run`.
    pub fn new(run: RunId, content: Vec<Block>) -> Self {
        Self {
            run,
            content,
            origin: None,
            inbox_rows: Vec::new(),
        }
    }
}

/// A change of the session by a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetEntry {
    /// The change.
    #[serde(flatten)]
    pub change: SessionChange,
    /// The person.
    pub by: String,
}

/// A message that is pinned or unpinned. A pinned message is always shown verbatim.
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
