//! The state of a session: the fold of its journal's entries.
//!
//! Effects: none.

mod fold;

use crate::context::{RenderedView, message_tokens};
use crate::session_change::Changes;
use crate::taint::TaintHistory;
use crate::{
    AgentId, CallState, Entry, EntryKind, Fork, InputId, Message, PermissionCeiling,
    PermissionMode, PlanStage, Run, RunEnd, RunId, RunOutcome, SessionId, SessionModel,
    SpendAmount, SubagentOrigin, TaintOrigins, Todo, Usage, Usd,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

/// Models that are files. Their names in answers do not say where the file lies.
const FILE_MODELS: [&str; 3] = ["scripted", "replay", "record"];

/// The number of inbox rows that are remembered: twice as many as an inbox can hold.
const MAX_RECORDED_INPUTS: usize = 2_000;

/// A message with the sequence number of the entry that completed it.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnMessage {
    /// The sequence number in the journal.
    pub seq: u64,
    /// The message, shared with requests in flight.
    pub message: Arc<Message>,
    /// The run that began here, if this is an input.
    pub starts_run: Option<RunId>,
    /// Whether this is a steering message.
    pub is_steering: bool,
    /// The ids of its tool calls that were begun and can change something.
    changing_calls: BTreeSet<String>,
    /// The estimated tokens, computed on first use.
    tokens: CachedTokenEstimate,
}

impl TurnMessage {
    /// Returns whether a person wrote it: an input or a steering message.
    pub fn is_user_input(&self) -> bool {
        self.starts_run.is_some() || self.is_steering
    }

    /// Whether the tool call `id` of this message was begun and can change something, as the journal
    /// recorded it.
    pub fn has_changing_call(&self, id: &str) -> bool {
        self.changing_calls.contains(id)
    }

    /// Returns the estimated tokens.
    pub fn tokens(&self) -> u64 {
        *self.tokens.0.get_or_init(|| message_tokens(&self.message))
    }
}

/// A lazily computed estimate. It is derived from the message, so it is ignored in comparisons.
#[derive(Debug, Clone, Default)]
struct CachedTokenEstimate(OnceLock<u64>);

impl PartialEq for CachedTokenEstimate {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A skill whose body is part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSkill {
    /// The SHA-256 hash of its SKILL.md.
    pub version: String,
    /// The entry of the result that contains its body.
    pub seq: u64,
    /// The call of that result.
    #[serde(default)]
    pub call: String,
}

/// A provider's token count, and the number of turns at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProviderTokenCount {
    pub(crate) tokens: u64,
    pub(crate) turns: usize,
}

/// The state of a session, derived only from its journal.
///
/// Serialised without the messages it is the snapshot `agent_state.json`: small, and safe to
/// delete.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The session; absent before the first line.
    pub session: Option<SessionId>,
    /// The agent.
    pub agent: Option<AgentId>,
    /// The session and position that it was forked from.
    pub parent: Option<Fork>,
    /// The origin of a subagent's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned: Option<SubagentOrigin>,
    /// The sequence number of the newest entry.
    pub seq: u64,
    /// The conversation, oldest first.
    #[serde(skip)]
    pub turns: Vec<TurnMessage>,
    /// The open run, if any.
    pub run: Option<Run>,
    /// The outcome of the last closed run.
    pub last_outcome: Option<RunOutcome>,
    /// The last closed run.
    pub last_run: Option<Run>,
    /// The number of runs.
    pub runs: u64,
    /// The total token usage, including rewound parts.
    pub usage: Usage,
    /// The total cost; absent before the first answer, and once any part is unknown.
    pub cost: Option<Usd>,
    /// The total amount that people added to its budgets.
    #[serde(default, skip_serializing_if = "SpendAmount::is_zero")]
    pub raised: SpendAmount,
    /// The title for listings: the one that a person gave, or the beginning of the first input.
    pub title: String,
    /// The model that gave the last answer.
    pub model: Option<String>,
    /// The model that the session runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_model: Option<SessionModel>,
    /// The newest known versions of files that were read or written, by path.
    pub seen: BTreeMap<String, String>,
    /// The skills whose bodies are part of the conversation, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skills: BTreeMap<String, ActiveSkill>,
    /// The entries of pinned messages.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub pins: BTreeSet<u64>,
    /// The first entry with untrusted content, if the session is tainted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted: Option<u64>,
    /// The context window, if a provider's refusal revealed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The acting agent, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting: Option<String>,
    /// Whether the acting agent was changed and has not been reminded of its role.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminder_due: bool,
    /// The permission mode, if it was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Proves that the person chose the permission mode on this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_seal: Option<String>,
    /// The todos.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// The plan that is being made or was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStage>,
    /// The subagent tasks whose end was reported.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub told: BTreeSet<String>,
    /// The tools that the model was last told are found with `tool_search`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_tools: Option<Vec<String>>,
    /// What has tainted the session, and the words of people that ended it.
    #[serde(skip)]
    pub(crate) taint: TaintHistory,
    /// All changes that a rewind may return to.
    #[serde(skip)]
    pub(crate) changes: Changes,
    /// The entry of the newest input.
    #[serde(skip)]
    pub(crate) newest_input: u64,
    /// The views of the conversation, newest last; empty if all of it is shown.
    #[serde(skip)]
    pub(crate) views: Vec<RenderedView>,
    /// The token count of the newest answer's provider; absent once the context has changed.
    #[serde(skip)]
    pub(crate) counted: Option<ProviderTokenCount>,
    /// The ids of all calls, so that none is used twice.
    #[serde(skip)]
    call_ids: HashSet<Box<str>>,
    /// The newest inbox rows that are part of the journal, with their entries.
    #[serde(skip)]
    recorded_inputs: VecDeque<(InputId, u64)>,
}

/// An entry that does not fit the entries before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq} ({kind:?}) does not fit the journal before it: {reason}")]
pub struct FoldError {
    /// The entry.
    pub seq: u64,
    /// Its kind.
    pub kind: EntryKind,
    /// The reason.
    pub reason: String,
}

impl SessionState {
    /// Returns the restrictions that a subagent's session inherits.
    pub fn ceiling(&self) -> Option<&PermissionCeiling> {
        let spawned = self.spawned.as_ref()?;
        Some(self.changes.ceiling().unwrap_or(&spawned.ceiling))
    }

    /// Returns the model that the session runs with, as far as its journal says. Journals from
    /// before models were recorded name the model of each answer only.
    pub fn recorded_model(&self) -> Option<SessionModel> {
        let of_last_answer = || {
            let answered = self.model.as_ref().map(SessionModel::named);
            answered.filter(|model| !FILE_MODELS.contains(&model.provider()))
        };
        self.session_model.clone().or_else(of_last_answer)
    }

    /// Returns those of `inputs` that are part of the journal, with their entries. Only as many rows
    /// are remembered as an inbox can hold, because older ones are no longer in it.
    pub fn recorded_inputs(&self, inputs: &[InputId]) -> Vec<(InputId, u64)> {
        let is_asked = |recorded: &&(InputId, u64)| inputs.contains(&recorded.0);
        self.recorded_inputs
            .iter()
            .filter(is_asked)
            .cloned()
            .collect()
    }

    /// Returns the newest inbox rows that are part of the journal, with their entries.
    pub fn newest_recorded_inputs(&self) -> impl Iterator<Item = &(InputId, u64)> {
        self.recorded_inputs.iter()
    }

    fn remember_inputs(&mut self, seq: u64, inputs: &[InputId]) {
        self.recorded_inputs
            .extend(inputs.iter().map(|id| (id.clone(), seq)));
        let excess = self
            .recorded_inputs
            .len()
            .saturating_sub(MAX_RECORDED_INPUTS);
        self.recorded_inputs.drain(..excess);
    }

    /// Returns the origins of the untrusted content that the session has taken in and nobody
    /// vouched for.
    pub fn taint_origins(&self) -> TaintOrigins {
        self.taint.origins()
    }

    /// Returns the entries that repair an interrupted session: calls that were started and cannot
    /// be run again get a result that says so. Empty if nothing needs repair.
    pub fn repair(&self) -> Vec<Entry> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let lost = run.pending.all().into_iter();
        lost.filter(|p| p.state == CallState::Begun { repeatable: false })
            .map(|p| Entry::Result(run.interrupted_result(p)))
            .collect()
    }

    /// Returns the entries that close an open run so that a new input may follow: every call,
    /// nested or not, gets a result.
    pub fn close(&self, outcome: RunOutcome, reason: &str) -> Vec<Entry> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let open = run.pending.open().into_iter();
        let end = RunEnd {
            run: run.id.clone(),
            outcome,
            reason: Some(reason.to_owned()),
        };
        open.map(|p| Entry::Result(run.interrupted_result(p)))
            .chain([Entry::End(end)])
            .collect()
    }

    /// Returns whether the model still owes an answer: a run is open, or ended before its answer
    /// was complete.
    pub fn is_resumable(&self) -> bool {
        self.run.is_some()
            || self.last_outcome == Some(RunOutcome::Budget)
            || self.turns.last().is_some_and(|turn| match &*turn.message {
                Message::User { .. } | Message::Tool { .. } => true,
                Message::Assistant { .. } => false,
            })
    }

    /// Gives every call of an answer an id that is unique in the session and valid for every
    /// provider.
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
        // The content is kept as long as the session is loaded.
        content.shrink_to_fit();
        content
    }

    /// Returns the text of the newest answer.
    pub fn final_text(&self) -> String {
        match self.turns.last().map(|turn| &*turn.message) {
            Some(message @ Message::Assistant { .. }) => message.text(),
            Some(Message::User { .. } | Message::Tool { .. }) | None => String::new(),
        }
    }
}

/// Returns whether every provider accepts this id.
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
