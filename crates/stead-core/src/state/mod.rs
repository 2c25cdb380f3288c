//! The fold: a session's state as the sum of its journal's entries.

mod fold;

use crate::context::{RenderedView, message_tokens};
use crate::session_change::Changes;
use crate::{
    AgentId, CallState, Entry, EntryKind, Fork, Message, NextAction, PermissionCeiling,
    PermissionMode, PlanStage, Run, RunEnd, RunId, RunLimits, RunOutcome, SessionId, SpendAmount,
    SubagentOrigin, Todo, Usage, Usd,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

/// A message with the sequence number of the entry that completed it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnMessage {
    /// Where in the journal.
    pub seq: u64,
    /// The message; shared with requests in flight.
    pub message: Arc<Message>,
    /// The run that began here, if this is a person's input.
    pub starts_run: Option<RunId>,
    /// Whether a person said it to the run that was going on.
    pub is_steering: bool,
    /// The ids of its tool calls that were begun and can change something.
    changing_calls: BTreeSet<String>,
    /// An estimate of its tokens, made when first asked for.
    tokens: CachedTokenEstimate,
}

impl TurnMessage {
    /// Whether a person said it: what begins a run, or what was said while one went on.
    pub fn is_user_input(&self) -> bool {
        self.starts_run.is_some() || self.is_steering
    }

    /// Whether the tool call `id` of this message was begun and can change something, as the journal
    /// recorded it.
    pub fn has_changing_call(&self, id: &str) -> bool {
        self.changing_calls.contains(id)
    }

    /// An estimate of its tokens.
    pub fn tokens(&self) -> u64 {
        *self.tokens.0.get_or_init(|| message_tokens(&self.message))
    }
}

/// An estimate that may not have been made yet. It follows from the message, so it tells no two
/// turns apart.
#[derive(Debug, Clone, Default)]
struct CachedTokenEstimate(OnceLock<u64>);

impl PartialEq for CachedTokenEstimate {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A skill that is part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSkill {
    /// SHA-256 of its SKILL.md.
    pub version: String,
    /// The entry of the result that holds its body.
    pub seq: u64,
    /// The call that it is the result of.
    #[serde(default)]
    pub call: String,
}

/// What a provider counted, and how many turns there were then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProviderTokenCount {
    pub(crate) tokens: u64,
    pub(crate) turns: usize,
}

/// All that is known about a session, derived from its journal and nothing else.
///
/// Serialised without the messages it is the snapshot `agent_state.json`: small, and safe to
/// delete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The session, once its first line is read.
    pub session: Option<SessionId>,
    /// The agent.
    pub agent: Option<AgentId>,
    /// Where it was forked from.
    pub parent: Option<Fork>,
    /// Who handed it its work, if it is that of a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned: Option<SubagentOrigin>,
    /// The newest entry's sequence number.
    pub seq: u64,
    /// The conversation, oldest first.
    #[serde(skip)]
    pub turns: Vec<TurnMessage>,
    /// The open run, if any.
    pub run: Option<Run>,
    /// How the last closed run ended.
    pub last_outcome: Option<RunOutcome>,
    /// The last closed run.
    pub last_run: Option<Run>,
    /// Runs begun.
    pub runs: u64,
    /// Tokens used in all, rewound parts included.
    pub usage: Usage,
    /// Money spent in all; absent before the first answer, and once any part is not known.
    pub cost: Option<Usd>,
    /// What people added to its budgets in all.
    #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
    pub raised: SpendAmount,
    /// The first words said, for listings.
    pub title: String,
    /// The model that answered last.
    pub model: Option<String>,
    /// Newest known versions of files read or written, by path.
    pub seen: BTreeMap<String, String>,
    /// Skills whose bodies are part of the conversation, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, ActiveSkill>,
    /// Messages that are kept word for word, by entry.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pins: BTreeSet<u64>,
    /// The first result that brought in words of people or machines that nobody here vouches for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted: Option<u64>,
    /// The window that a provider's refusal told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The agent of the workspace that acts, where it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting: Option<String>,
    /// Whether the agent that acts was changed, and nobody reminded it of what it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminder_due: bool,
    /// The permission mode, where it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Things to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// The plan that is being made or was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStage>,
    /// Tasks of subagents whose end was told.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub told: BTreeSet<String>,
    /// All changes that a rewind may return to.
    #[serde(skip)]
    pub(crate) changes: Changes,
    /// The entry of the newest input.
    #[serde(skip)]
    pub(crate) newest_input: u64,
    /// How the conversation is shown, newest last; with none, as it is.
    #[serde(skip)]
    pub(crate) views: Vec<RenderedView>,
    /// What the newest answer's provider counted; none once the context became another.
    #[serde(skip)]
    pub(crate) counted: Option<ProviderTokenCount>,
    /// Ids of all calls, so that none is given twice.
    #[serde(skip)]
    call_ids: HashSet<Box<str>>,
}

/// An entry that does not fit what came before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq} ({kind:?}) does not fit the journal before it: {reason}")]
pub struct FoldError {
    /// The entry.
    pub seq: u64,
    /// Its kind.
    pub kind: EntryKind,
    /// Why.
    pub reason: String,
}

impl SessionState {
    /// What to do now.
    pub fn next(&self, limits: &RunLimits) -> NextAction {
        self.run
            .as_ref()
            .map_or(NextAction::Idle, |run| run.next(limits))
    }

    /// What binds it from above, if it is the session of a subagent.
    pub fn ceiling(&self) -> Option<&PermissionCeiling> {
        let spawned = self.spawned.as_ref()?;
        Some(self.changes.ceiling().unwrap_or(&spawned.ceiling))
    }

    /// The entries that make an interrupted session whole: calls that were begun and cannot be run
    /// again get a result that says so. With nothing to repair, none.
    pub fn repair(&self) -> Vec<Entry> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let lost = run
            .pending
            .iter()
            .filter(|p| p.state == CallState::Begun { repeatable: false });
        lost.map(|p| Entry::Result(run.interrupted_result(p)))
            .collect()
    }

    /// The entries that close an open run so that a new input may follow: every call gets a result.
    pub fn close(&self, outcome: RunOutcome, reason: &str) -> Vec<Entry> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let open = run
            .pending
            .iter()
            .filter(|p| !matches!(p.state, CallState::Done { .. }));
        let end = RunEnd {
            run: run.id.clone(),
            outcome,
            reason: Some(reason.to_owned()),
        };
        open.map(|p| Entry::Result(run.interrupted_result(p)))
            .chain([Entry::End(end)])
            .collect()
    }

    /// Whether the model still owes an answer: an open run, or one that ended before its answer, or
    /// before the end of it.
    pub fn is_resumable(&self) -> bool {
        self.run.is_some()
            || self.last_outcome == Some(RunOutcome::Budget)
            || self.turns.last().is_some_and(|turn| match &*turn.message {
                Message::User { .. } | Message::Tool { .. } => true,
                Message::Assistant { .. } => false,
            })
    }

    /// Gives every call of an answer an id that no other call of the session has and every provider
    /// takes.
    pub fn with_unique_ids(&self, mut content: Vec<crate::Block>) -> Vec<crate::Block> {
        let mut given: HashSet<Box<str>> = HashSet::new();
        for block in &mut content {
            let crate::Block::ToolCall(call) = block else {
                continue;
            };
            let taken = |id: &str| self.call_ids.contains(id) || given.contains(id);
            if !is_portable_call_id(&call.id) || taken(&call.id) {
                let mut n = self.call_ids.len() + given.len() + 1;
                while taken(&format!("call_{n}")) {
                    n += 1;
                }
                call.id = format!("call_{n}");
            }
            given.insert(call.id.as_str().into());
        }
        // It is kept as long as the session lives.
        content.shrink_to_fit();
        content
    }

    /// The text of the newest answer.
    pub fn final_text(&self) -> String {
        match self.turns.last().map(|turn| &*turn.message) {
            Some(message @ Message::Assistant { .. }) => message.text(),
            Some(Message::User { .. } | Message::Tool { .. }) | None => String::new(),
        }
    }
}

/// Whether every provider takes this id as it is.
fn is_portable_call_id(id: &str) -> bool {
    const MAX_ID_BYTES: usize = 64;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain)
}

pub(crate) fn add_cost(total: Option<Usd>, part: Option<Usd>) -> Option<Usd> {
    let mut total = total?;
    let part = part?;
    total += part;
    Some(total)
}
