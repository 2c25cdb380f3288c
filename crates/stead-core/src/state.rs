//! The fold: a session's state as the sum of its journal's entries.

use crate::change::{Changes, Maker};
use crate::context::{Shown, message_tokens};
use crate::{
    Activation, AgentId, Allowance, Ask, CallResult, CallState, Change, Decision, DecisionKind, Entry, Fork, HookRun,
    Kind, Limits, Message, ModelReply, Next, Notice, Outcome, Pending, PermissionMode, PlanStage, Run, RunEnd, RunId,
    SessionId, SessionStart, Spawned, Steer, Todo, ToolCall, ToolResult, Usage, Usd, UserInput,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, OnceLock};

/// A message with the sequence number of the entry that completed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Where in the journal.
    pub seq: u64,
    /// The message; shared with requests in flight.
    pub message: Arc<Message>,
    /// The run that began here, if this is a person's input.
    pub opens: Option<RunId>,
    /// Whether a person said it to the run that was going on.
    pub steers: bool,
    /// An estimate of its tokens, made when first asked for.
    tokens: Tokens,
}

impl Turn {
    /// Whether a person said it: what begins a run, or what was said while one went on.
    pub fn is_of_person(&self) -> bool {
        self.opens.is_some() || self.steers
    }

    /// An estimate of its tokens.
    pub fn tokens(&self) -> u64 {
        *self.tokens.0.get_or_init(|| message_tokens(&self.message))
    }
}

/// An estimate that may not have been made yet. It follows from the message, so it tells no two turns apart.
#[derive(Debug, Clone, Default)]
struct Tokens(OnceLock<u64>);

impl PartialEq for Tokens {
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
pub(crate) struct Counted {
    pub(crate) tokens: u64,
    pub(crate) turns: usize,
}

/// All that is known about a session, derived from its journal and nothing else.
///
/// Serialised without the messages it is the snapshot `agent_state.json`: small, and safe to delete.
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
    pub spawned: Option<Spawned>,
    /// The newest entry's sequence number.
    pub seq: u64,
    /// The conversation, oldest first.
    #[serde(skip)]
    pub turns: Vec<Turn>,
    /// The open run, if any.
    pub run: Option<Run>,
    /// How the last closed run ended.
    pub last_outcome: Option<Outcome>,
    /// The last closed run.
    pub last_run: Option<Run>,
    /// Runs begun.
    pub runs: u64,
    /// Tokens used in all, rewound parts included.
    pub usage: Usage,
    /// Money spent in all; absent before the first answer, and once any part is not known.
    pub cost: Option<Usd>,
    /// What people added to its budgets in all.
    #[serde(default, skip_serializing_if = "Allowance::is_zero")]
    pub raised: Allowance,
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
    pub(crate) views: Vec<Shown>,
    /// What the newest answer's provider counted; none once the context became another.
    #[serde(skip)]
    pub(crate) counted: Option<Counted>,
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
    pub kind: Kind,
    /// Why.
    pub reason: String,
}

/// Longest title, in characters.
const TITLE_CHARS: usize = 72;

impl SessionState {
    /// What to do now.
    pub fn next(&self, limits: &Limits) -> Next {
        self.run.as_ref().map_or(Next::Idle, |run| run.next(limits))
    }

    /// Takes in one entry. On an error the state is unchanged.
    pub fn apply(&mut self, seq: u64, entry: &Entry) -> Result<(), FoldError> {
        let fold = match entry {
            Entry::Session(start) => self.start(seq, start),
            Entry::User(input) => self.input(seq, input),
            Entry::Model(reply) => self.reply(seq, reply),
            Entry::Call(intent) => {
                let repeatable = intent.repeatable;
                self.advance(&intent.run, &intent.id, |state| match state {
                    CallState::New | CallState::Approved { .. } => Ok(CallState::Begun { repeatable }),
                    CallState::Begun { repeatable: true } => Ok(CallState::Begun { repeatable }),
                    CallState::Begun { repeatable: false } => Err("the call was begun before and must not run twice"),
                    CallState::Asked { .. } => Err("the call waits for a decision"),
                    CallState::Rejected { .. } | CallState::Responded { .. } => Err("the call was not to run"),
                    CallState::Done { .. } => Err("the call has a result"),
                })
            }
            Entry::Result(result) => self.result(seq, result),
            Entry::Ask(ask) => self.advance(&ask.run, &ask.id, |state| match state {
                // Approved again means that the arguments' hash no longer matched.
                CallState::New | CallState::Approved { .. } => {
                    let Ask { args_hash, rule, terms, .. } = ask.clone();
                    Ok(CallState::Asked { args_hash, rule, terms })
                }
                CallState::Asked { .. }
                | CallState::Rejected { .. }
                | CallState::Responded { .. }
                | CallState::Begun { .. }
                | CallState::Done { .. } => Err("the call is past asking"),
            }),
            Entry::Decision(decision) => self.decide(decision),
            Entry::Notice(notice) => self.notice(seq, notice),
            Entry::Steer(steer) => self.steer(seq, steer),
            Entry::Set(set) => {
                self.change(seq, &set.change, Maker::Person);
                Ok(())
            }
            Entry::Pin(pin) => self.pin(pin),
            Entry::Compaction(compaction) => self.compact(seq, compaction),
            Entry::Hook(hook) => self.hook(hook),
            Entry::Rewind(rewind) => self.rewind(rewind.to),
            Entry::End(end) => self.end(end),
        };
        fold.map_err(|reason| FoldError { seq, kind: entry.kind(), reason: reason.to_owned() })?;
        self.seq = seq;
        Ok(())
    }

    /// The entries that make an interrupted session whole: calls that were begun and cannot be run
    /// again get a result that says so. With nothing to repair, none.
    pub fn repair(&self) -> Vec<Entry> {
        let Some(run) = &self.run else { return Vec::new() };
        let lost = run.pending.iter().filter(|p| p.state == CallState::Begun { repeatable: false });
        lost.map(|p| Entry::Result(run.lost_call(p))).collect()
    }

    /// The entries that close an open run so that a new input may follow: every call gets a result.
    pub fn close(&self, outcome: Outcome, reason: &str) -> Vec<Entry> {
        let Some(run) = &self.run else { return Vec::new() };
        let open = run.pending.iter().filter(|p| !matches!(p.state, CallState::Done { .. }));
        let end = RunEnd { run: run.id.clone(), outcome, reason: Some(reason.to_owned()) };
        open.map(|p| Entry::Result(run.lost_call(p))).chain([Entry::End(end)]).collect()
    }

    /// Whether the model still owes an answer: an open run, or one that ended before its answer, or before the end
    /// of it.
    pub fn is_resumable(&self) -> bool {
        self.run.is_some()
            || self.last_outcome == Some(Outcome::Budget)
            || self.turns.last().is_some_and(|turn| match &*turn.message {
                Message::User { .. } | Message::Tool { .. } => true,
                Message::Assistant { .. } => false,
            })
    }

    /// Gives every call of an answer an id that no other call of the session has and every provider takes.
    pub fn with_unique_ids(&self, mut content: Vec<crate::Block>) -> Vec<crate::Block> {
        let mut given: HashSet<Box<str>> = HashSet::new();
        for block in &mut content {
            let crate::Block::ToolCall(call) = block else { continue };
            let taken = |id: &str| self.call_ids.contains(id) || given.contains(id);
            if !is_plain(&call.id) || taken(&call.id) {
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

    fn start(&mut self, seq: u64, start: &SessionStart) -> Result<(), &'static str> {
        if seq != 1 || self.session.is_some() {
            return Err("only the first line opens a session");
        }
        if start.version > crate::FORMAT_VERSION {
            return Err("this journal was written by a newer version of stead; use that version");
        }
        self.session = Some(start.session.clone());
        self.agent = Some(start.agent.clone());
        self.parent = start.parent.clone();
        self.spawned = start.spawned.clone();
        Ok(())
    }

    fn input(&mut self, seq: u64, input: &UserInput) -> Result<(), &'static str> {
        if self.run.is_some() {
            return Err("the run before it was not ended");
        }
        if input.content.is_empty() && !input.wakes && !self.is_resumable() {
            return Err("there is nothing to resume");
        }
        if !input.content.is_empty() {
            let message = Message::User { content: input.content.clone() };
            if self.title.is_empty() {
                // Of what was said, not of what was attached to it.
                let said = Message::User { content: input.content.iter().take(1).cloned().collect() };
                self.title = title_of(&said.text());
            }
            self.say(seq, message, Some(input.run.clone()));
            self.newest_input = seq;
            self.reminder_due = false;
        }
        let run = Run::new(input.run.clone());
        self.run = Some(match &self.last_run {
            // Whoever takes a run up again goes on with its budget.
            Some(before) if input.content.is_empty() && !input.wakes => run.after(before, input.raise),
            Some(_) | None => run,
        });
        self.runs += 1;
        self.raised += input.raise;
        Ok(())
    }

    fn reply(&mut self, seq: u64, reply: &ModelReply) -> Result<(), &'static str> {
        let run = self.open_run(&reply.run)?;
        if !run.pending.is_empty() {
            return Err("calls of the step before are open");
        }
        let message = Message::Assistant { content: reply.content.clone() };
        let calls: Vec<ToolCall> = message.calls().cloned().collect();
        let first = run.has_spent_nothing();
        run.steps += 1;
        run.answered = calls.is_empty().then(|| reply.stop.clone());
        run.usage += reply.usage;
        run.cost = if first { reply.cost } else { sum(run.cost, reply.cost) };
        run.pending = calls.into_iter().map(|call| Pending { call, state: CallState::New }).collect();
        self.usage += reply.usage;
        self.cost = if self.model.is_none() { reply.cost } else { sum(self.cost, reply.cost) };
        self.model = Some(reply.model.clone());
        self.call_ids.extend(message.calls().map(|call| Box::from(call.id.as_str())));
        // An empty answer ends the run but is not said: no provider accepts an empty message back.
        if !reply.content.is_empty() {
            self.say(seq, message, None);
        }
        let tokens = reply.usage.total_tokens();
        self.counted = (reply.usage.input_tokens > 0).then_some(Counted { tokens, turns: self.turns.len() });
        Ok(())
    }

    fn result(&mut self, seq: u64, result: &CallResult) -> Result<(), &'static str> {
        self.advance(&result.run, &result.id, |state| match state {
            CallState::Done { .. } => Err("the call has a result"),
            CallState::New
            | CallState::Asked { .. }
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. } => Ok(CallState::Begun { repeatable: true }),
        })?;
        self.seen.extend(result.seen.iter().map(|(path, version)| (path.clone(), version.clone())));
        if let Some(Activation { skill, version }) = &result.activates {
            let call = result.id.clone();
            self.skills.insert(skill.clone(), ActiveSkill { version: version.clone(), seq, call });
        }
        if result.untrusted {
            self.tainted.get_or_insert(seq);
        }
        if let Some(change) = &result.change {
            self.change(seq, change, Maker::Call);
        }
        self.told.extend(result.tasks.iter().cloned());
        let Some(run) = &mut self.run else { return Ok(()) };
        for pending in run.pending.iter_mut().filter(|p| p.call.id == result.id) {
            let (id, name) = (pending.call.id.clone(), pending.call.name.clone());
            let result = ToolResult { id, name, status: result.status, content: result.content.clone(), seq };
            pending.state = CallState::Done { result };
        }
        if let Some(results) = run.take_results() {
            self.say(seq, Message::Tool { results }, None);
        }
        Ok(())
    }

    fn decide(&mut self, decision: &Decision) -> Result<(), &'static str> {
        let run = self.open_run(&decision.run)?;
        let pending = run.pending.iter_mut().find(|p| p.call.id == decision.id).ok_or("no such call in this step")?;
        let CallState::Asked { args_hash, .. } = &pending.state else {
            return Err("no question is open for this call");
        };
        if *args_hash != decision.args_hash {
            return Err("the answer is about other arguments");
        }
        let by = decision.by.clone();
        pending.state = match decision.kind() {
            DecisionKind::Approve => CallState::Approved { args_hash: decision.args_hash.clone() },
            DecisionKind::Edit => {
                let args = decision.args.clone().unwrap_or_default();
                let args_hash = crate::args_hash(&args);
                pending.call.args = args;
                pending.call.invalid = None;
                run.edited.insert(decision.id.clone(), by);
                CallState::Approved { args_hash }
            }
            DecisionKind::Reject => CallState::Rejected { by, words: decision.words.clone() },
            DecisionKind::Respond => CallState::Responded { by, words: decision.words.clone().unwrap_or_default() },
        };
        Ok(())
    }

    fn notice(&mut self, seq: u64, notice: &Notice) -> Result<(), &'static str> {
        let run = self.open_run(&notice.run)?;
        match (notice.reminds, notice.tasks.is_empty()) {
            (true, _) => {}
            (false, true) => run.nudged = true,
            // News from a subagent may want an answer.
            (false, false) => run.answered = None,
        }
        self.reminder_due &= !notice.reminds;
        if notice.untrusted {
            self.tainted.get_or_insert(seq);
        }
        self.told.extend(notice.tasks.iter().cloned());
        self.say(seq, Message::user(notice.text.clone()), None);
        Ok(())
    }

    fn steer(&mut self, seq: u64, steer: &Steer) -> Result<(), &'static str> {
        let run = self.open_run(&steer.run)?;
        if !run.pending.is_empty() {
            return Err("calls are open");
        }
        // There is more to answer now.
        run.answered = None;
        self.say(seq, Message::User { content: steer.content.clone() }, None);
        if let Some(turn) = self.turns.last_mut() {
            turn.steers = true;
        }
        Ok(())
    }

    fn change(&mut self, seq: u64, change: &Change, by: Maker) {
        self.changes.push(seq, change.clone(), by, self.newest_input);
        // An agent that was chosen before anything was said did not take over from another.
        self.reminder_due |= matches!(change, Change::Agent { .. }) && self.runs > 0;
        self.derive_changes();
    }

    /// Takes over what the changes add up to.
    fn derive_changes(&mut self) {
        self.todos = self.changes.todos().to_vec();
        self.plan = self.changes.plan().cloned();
        self.acting = self.changes.agent().map(str::to_owned);
        self.mode = self.changes.mode();
    }

    /// A hook changes nothing but the arguments of a call that has not begun.
    fn hook(&mut self, hook: &HookRun) -> Result<(), &'static str> {
        let Some(args) = &hook.args else { return Ok(()) };
        let (Some(id), Some(call)) = (&hook.run, &hook.call) else { return Err("the arguments are of no call") };
        let run = self.open_run(id)?;
        let pending = run.pending.iter_mut().find(|p| p.call.id == *call).ok_or("no such call in this step")?;
        match pending.state {
            CallState::New => pending.call.args = args.clone(),
            // Someone was shown other arguments, or they are in use.
            CallState::Asked { .. }
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => return Err("the call is past being changed"),
        }
        Ok(())
    }

    fn rewind(&mut self, to: u64) -> Result<(), &'static str> {
        if self.run.is_some() {
            return Err("a run is open");
        }
        let keep = self.turns.partition_point(|turn| turn.seq <= to);
        if self.turns.get(keep).is_some_and(|turn| turn.opens.is_none()) {
            return Err("only the point before a person's input can be returned to");
        }
        self.turns.truncate(keep);
        self.skills.retain(|_, skill| skill.seq <= to);
        self.pins.retain(|seq| *seq <= to);
        self.tainted = self.tainted.filter(|seq| *seq <= to);
        self.changes.rewind(to);
        self.newest_input = self.turns.iter().rev().find(|turn| turn.opens.is_some()).map_or(0, |turn| turn.seq);
        self.derive_changes();
        self.views.retain(|shown| shown.seq <= to);
        self.counted = None;
        self.last_outcome = None;
        Ok(())
    }

    fn end(&mut self, end: &RunEnd) -> Result<(), &'static str> {
        let run = self.open_run(&end.run)?;
        if !run.pending.is_empty() {
            return Err("calls are open");
        }
        run.guard = crate::RepeatGuard::default();
        self.last_run = self.run.take();
        self.last_outcome = Some(end.outcome);
        Ok(())
    }

    fn say(&mut self, seq: u64, message: Message, opens: Option<RunId>) {
        self.turns.push(Turn { seq, message: Arc::new(message), opens, steers: false, tokens: Tokens::default() });
    }

    fn open_run(&mut self, id: &RunId) -> Result<&mut Run, &'static str> {
        match &mut self.run {
            Some(run) if run.id == *id => Ok(run),
            Some(_) => Err("another run is open"),
            None => Err("no run is open"),
        }
    }

    fn advance(
        &mut self,
        run: &RunId,
        id: &str,
        step: impl FnOnce(&CallState) -> Result<CallState, &'static str>,
    ) -> Result<(), &'static str> {
        let run = self.open_run(run)?;
        let pending = run.pending.iter_mut().find(|p| p.call.id == id).ok_or("no such call in this step")?;
        pending.state = step(&pending.state)?;
        Ok(())
    }
}

/// Whether every provider takes this id as it is.
fn is_plain(id: &str) -> bool {
    const MAX_ID_BYTES: usize = 64;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(plain)
}

pub(crate) fn sum(total: Option<Usd>, part: Option<Usd>) -> Option<Usd> {
    let (mut total, part) = (total?, part?);
    total += part;
    Some(total)
}

fn title_of(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
