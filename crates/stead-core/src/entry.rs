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

use crate::{
    AgentId, Ask, Beginning, Block, Change, Decision, RunId, SessionId, Spawned, StopReason, Usage, Usd, View,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

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
    Set(Set),
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
pub enum Kind {
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
    pub fn kind(&self) -> Kind {
        match self {
            Self::Session(_) => Kind::Session,
            Self::User(_) => Kind::User,
            Self::Model(_) => Kind::Model,
            Self::Call(_) => Kind::Call,
            Self::Result(_) => Kind::Result,
            Self::Ask(_) => Kind::Ask,
            Self::Decision(_) => Kind::Decision,
            Self::Notice(_) => Kind::Notice,
            Self::Steer(_) => Kind::Steer,
            Self::Set(_) => Kind::Set,
            Self::Pin(_) => Kind::Pin,
            Self::Compaction(_) => Kind::Compaction,
            Self::Hook(_) => Kind::Hook,
            Self::Rewind(_) => Kind::Rewind,
            Self::End(_) => Kind::End,
        }
    }

    /// Whether the journal must be on stable storage before the driver goes on.
    pub fn must_be_durable(&self) -> bool {
        match self {
            Self::User(_)
            | Self::Ask(_)
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
    pub spawned: Option<Spawned>,
}

impl SessionStart {
    /// The first line of a journal of today's format.
    pub fn new(session: SessionId, agent: AgentId, from: Option<Beginning>) -> Self {
        let (parent, spawned) = match from {
            None => (None, None),
            Some(Beginning::Fork(fork)) => (Some(fork), None),
            Some(Beginning::Spawned(spawned)) => (None, Some(*spawned)),
        };
        Self { version: FORMAT_VERSION, session, agent, parent, spawned }
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
    #[serde(default, skip_serializing_if = "Allowance::is_zero")]
    pub raise: Allowance,
    /// Whether nobody said anything: tasks of subagents have ended, and a notice tells of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakes: bool,
}

impl UserInput {
    /// An input.
    pub fn new(run: RunId, content: Vec<Block>) -> Self {
        Self { run, content, raise: Allowance::default(), wakes: false }
    }

    /// No input: the run begins because tasks of subagents have ended.
    pub fn wake(run: RunId) -> Self {
        Self { wakes: true, ..Self::new(run, Vec::new()) }
    }

    /// An input of one text.
    pub fn text(run: RunId, text: impl Into<String>) -> Self {
        Self::new(run, vec![Block::text(text)])
    }
}

/// Money and tokens that may be spent beyond a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Money.
    #[serde(default)]
    pub usd: Usd,
    /// Tokens.
    #[serde(default)]
    pub tokens: u64,
}

impl Allowance {
    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// The rest after `other` is taken away, and never less than nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self { usd: self.usd.saturating_sub(other.usd), tokens: self.tokens.saturating_sub(other.tokens) }
    }
}

impl std::ops::Add for Allowance {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::ops::AddAssign for Allowance {
    fn add_assign(&mut self, other: Self) {
        self.usd += other.usd;
        self.tokens = self.tokens.saturating_add(other.tokens);
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

/// The intent to run a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallIntent {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// The tool's canonical name.
    pub tool: String,
    /// Hash of the arguments.
    pub args_hash: String,
    /// Whether it can change anything.
    pub changes: bool,
    /// Whether it may be run again if interrupted.
    pub repeatable: bool,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// How it ended.
    pub status: ResultStatus,
    /// What the model is told.
    pub content: Vec<Block>,
    /// Versions of files this call read or wrote, by path: the base of the changed-since-read check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, String>,
    /// The skill whose body this result brought into the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activates: Option<Activation>,
    /// Whether it brought in words of people or machines that nobody here vouches for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// How the session goes on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// Tasks of subagents whose end it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
}

impl CallResult {
    /// A result that says `content` and brings nothing else.
    pub fn new(run: RunId, id: impl Into<String>, status: ResultStatus, content: Vec<Block>) -> Self {
        Self {
            run,
            id: id.into(),
            status,
            content,
            seen: BTreeMap::new(),
            activates: None,
            untrusted: false,
            change: None,
            tasks: Vec::new(),
            ms: 0,
        }
    }
}

/// A skill that became part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// Its name.
    pub skill: String,
    /// SHA-256 of its SKILL.md, so that another text under the same name counts as another skill.
    pub version: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It did what was asked.
    Ok,
    /// It failed; the content says why.
    Error,
    /// The gate or a person refused it; it did not run.
    Denied,
    /// It was cancelled, and may have run in part.
    Cancelled,
    /// The process died during it; it may have run.
    Interrupted,
    /// It was never begun.
    Skipped,
}

impl ResultStatus {
    /// The name used in journals, events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
        }
    }

    /// Whether a model should be told that this is an error.
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

/// A word from the harness to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The run.
    pub run: RunId,
    /// What the model is told.
    pub text: String,
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

impl Notice {
    /// A word to the model.
    pub fn new(run: RunId, text: impl Into<String>) -> Self {
        Self { run, text: text.into(), tasks: Vec::new(), reminds: false, untrusted: false }
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
pub struct Set {
    /// What changes.
    #[serde(flatten)]
    pub change: Change,
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

/// The model is shown less of the conversation from here on. The conversation itself stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The open run, if it happened during one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Why.
    pub cause: Cause,
    /// What is shown now.
    #[serde(flatten)]
    pub view: View,
    /// What is no longer shown.
    pub dropped: Dropped,
    /// Tokens of the context before, as far as known.
    pub before_tokens: u64,
    /// An estimate of them after.
    pub after_tokens: u64,
    /// The window that a provider's refusal told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What a person wanted kept above all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Why there is no summary by a model though one was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The model that wrote the summary, as `provider:model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens used for the summary.
    #[serde(default)]
    pub usage: Usage,
    /// What it cost; absent when not known, or when nothing was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
}

/// Why a context was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It had reached its limit.
    Limit,
    /// A provider said that it does not fit.
    Overflow,
    /// A person wanted it.
    Manual,
}

/// What a compaction leaves out of the context, beside what earlier ones did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Messages for which the summary stands.
    pub messages: u64,
    /// Results that are shown shortened.
    pub results: u64,
    /// Calls whose long arguments are shown shortened.
    pub calls: u64,
}

impl Dropped {
    /// In words: `12 messages summarised, 3 results shortened`.
    pub fn in_words(&self) -> String {
        let counted = |n: u64, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let parts = [
            counted(self.messages, "message summarised", "messages summarised"),
            counted(self.results, "result shortened", "results shortened"),
            counted(self.calls, "call shortened", "calls shortened"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "nothing left out".to_owned() } else { parts.join(", ") }
    }
}

/// What came of asking a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    /// The run during which it was asked, or which had just ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What happened, by the event's canonical name.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// What came of it.
    pub outcome: HookOutcome,
    /// The call it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Why it blocked or failed, or what it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The arguments with which the call goes on from here; its answer is on record as the model gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
}

/// What came of asking a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// It let things go on, perhaps with a word to the model.
    Passed,
    /// It said no.
    Blocked,
    /// It changed what goes on.
    Rewrote,
    /// It gave no answer that counts.
    Failed,
    /// It gave none in time.
    TimedOut,
}

impl HookOutcome {
    /// The name used in journals and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Blocked => "blocked",
            Self::Rewrote => "rewrote",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
        }
    }
}

/// A return to an earlier point of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// The last sequence number that still counts.
    pub to: u64,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub outcome: Outcome,
    /// More words, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a run ended, or stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model said all it wanted.
    Completed,
    /// The step limit was reached.
    StepLimit,
    /// The money or token limit was reached.
    Budget,
    /// The time limit was reached.
    TimedOut,
    /// A person or a signal stopped it.
    Cancelled,
    /// It could not go on.
    Failed,
    /// It waits for a person's decision.
    Parked,
}

impl Outcome {
    /// The name used in journals, events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::StepLimit => "step_limit",
            Self::Budget => "budget",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Parked => "parked",
        }
    }
}
