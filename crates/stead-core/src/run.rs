//! The run state machine: a pure decision about the next action.
//!
//! Effects: none.

use crate::{
    Block, CallResult, CallState, Message, NestedCall, NestedId, PendingCall, RepeatGuard, RunId,
    RunOutcome, SessionState, SpendAmount, StepCalls, StopReason, ToolResult, Usage, Usd, counted,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Limits of a run that the state machine enforces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// The maximum number of model calls.
    pub max_steps: u32,
    /// The number of rounds of a repeated cycle after which the model is told; 0 = never.
    pub repeat_nudge: u32,
    /// The number of rounds of a repeated cycle after which the run ends; 0 = never.
    pub repeat_end: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_steps: 200,
            repeat_nudge: 3,
            repeat_end: 6,
        }
    }
}

/// The next action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum NextAction {
    /// No run is open.
    Idle,
    /// Send the context to the model.
    CallModel,
    /// Put these calls through the gate and run those that it allows.
    RunTools(Vec<PendingCall>),
    /// Tell the model this, then call it again.
    Nudge(String),
    /// Wait for a person's decision about these calls.
    AwaitDecision(Vec<PendingCall>),
    /// Record the end of the run.
    Done(RunOutcome, Option<String>),
}

/// A run: one input worked to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The id.
    pub id: RunId,
    /// The number of model calls.
    pub steps: u32,
    /// Calls of the current step, in the model's order; empty between steps.
    pub pending: StepCalls,
    /// The reason why the newest answer stopped, if it had no calls.
    pub answered: Option<StopReason>,
    /// The token usage so far.
    pub usage: Usage,
    /// The cost so far; absent before the first answer, and once any part is unknown.
    pub cost: Option<Usd>,
    /// The amount spent by the run that this one resumes.
    #[serde(default)]
    pub carried: SpendAmount,
    /// The amount that a person added to the budget.
    #[serde(default)]
    pub raised: SpendAmount,
    /// The person who changed the arguments of a call of this step, by call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub edited: BTreeMap<String, String>,
    /// The JSON schema that the answer must conform to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How often the model was told that its answer does not conform.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrections: u32,
    /// Detects repetition.
    pub(crate) guard: RepeatGuard,
    /// Whether the model was told about the current repetition.
    pub(crate) nudged: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl SessionState {
    /// Returns the next action. A pure function of the recorded history.
    pub fn next(&self, limits: &RunLimits) -> NextAction {
        let Some(run) = &self.run else {
            return NextAction::Idle;
        };
        let asked = run.pending.asked();
        let open = run.pending.iter().filter(|p| match p.state {
            CallState::Begun { .. } if p.nesting.calls.is_empty() => true,
            // Answers take effect together, once the last question of the step is answered. Calls
            // that were not started wait for them, because they could change what people are asked
            // about. So do calls that made others: a question about one of these is a question about
            // how they continue.
            CallState::Begun { .. }
            | CallState::New
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. } => asked.is_empty(),
            CallState::Asked { .. } | CallState::Done { .. } => false,
        });
        let open: Vec<PendingCall> = open.map(PendingCall::alone).collect();
        if !open.is_empty() {
            return NextAction::RunTools(open);
        }
        if !asked.is_empty() {
            return NextAction::AwaitDecision(asked.into_iter().cloned().collect());
        }
        if let Some(stop) = &run.answered {
            return self.after_answer(run, stop);
        }
        let circle = run.guard.longest_repetition();
        if limits.repeat_end > 0 && circle.rounds >= limits.repeat_end {
            let reason = format!(
                "going in circles: the same {} gave the same results {} times",
                step_count(circle.period),
                circle.rounds
            );
            return NextAction::Done(RunOutcome::Failed, Some(reason));
        }
        if limits.repeat_nudge > 0 && circle.rounds >= limits.repeat_nudge && !run.nudged {
            return NextAction::Nudge(format!(
                "You have repeated the same {} {} times with the same results. Change your approach, or say what is missing.",
                step_count(circle.period),
                circle.rounds
            ));
        }
        if run.steps >= limits.max_steps {
            return NextAction::Done(
                RunOutcome::StepLimit,
                Some(format!(
                    "stopped after {} model calls (policy.max_steps)",
                    run.steps
                )),
            );
        }
        NextAction::CallModel
    }
}

impl SessionState {
    /// Returns how a run ends whose newest answer had no calls.
    fn after_answer(&self, run: &Run, stop: &StopReason) -> NextAction {
        let reason = cut_short_reason(stop);
        if self.has_answer() {
            return NextAction::Done(RunOutcome::Completed, reason);
        }
        match reason {
            Some(reason) => NextAction::Done(RunOutcome::Failed, Some(reason)),
            // What its calls did is done; some models say nothing afterwards.
            None if run.steps > 1 => {
                let reason = "the model ended without saying anything".to_owned();
                NextAction::Done(RunOutcome::Completed, Some(reason))
            }
            None => {
                let reason = "the model gave an empty answer".to_owned();
                NextAction::Done(RunOutcome::Failed, Some(reason))
            }
        }
    }

    /// Whether the newest message is an answer that says or shows something.
    fn has_answer(&self) -> bool {
        let Some(Message::Assistant { content }) = self.turns.last().map(|turn| &*turn.message)
        else {
            return false;
        };
        content.iter().any(|block| match block {
            Block::Text { text } => !text.trim().is_empty(),
            Block::Media(_) => true,
            Block::Thinking(_) | Block::ToolCall(_) => false,
        })
    }
}

impl Run {
    /// Returns a run that has just begun.
    pub fn new(id: RunId) -> Self {
        Self {
            id,
            steps: 0,
            pending: StepCalls::default(),
            answered: None,
            usage: Usage::default(),
            cost: None,
            carried: SpendAmount::default(),
            raised: SpendAmount::default(),
            edited: BTreeMap::new(),
            output_schema: None,
            corrections: 0,
            guard: RepeatGuard::default(),
            nudged: false,
        }
    }

    /// Returns this run as one that resumes `before`, with `raise` more to spend.
    pub(crate) fn resuming(self, before: &Self, raise: SpendAmount) -> Self {
        let carried = before.spent();
        let mut raised = before.raised;
        raised += raise;
        Self {
            carried,
            raised,
            ..self
        }
    }

    /// Returns whether no model was called yet, neither for an answer nor for a summary.
    pub(crate) fn has_spent_nothing(&self) -> bool {
        self.steps == 0 && self.usage == Usage::default()
    }

    /// Returns the amount spent on this run and those it resumes, as far as known.
    pub fn spent(&self) -> SpendAmount {
        let SpendAmount { mut usd, tokens } = self.carried;
        usd += self.cost.unwrap_or_default();
        SpendAmount {
            usd,
            tokens: tokens.saturating_add(self.usage.total_tokens()),
        }
    }

    /// Adds the nested call `id`, if the first entry about it says what it is.
    pub(crate) fn introduce(
        &mut self,
        id: &str,
        nested: Option<&NestedCall>,
    ) -> Result<(), &'static str> {
        match nested {
            Some(nested) => self.pending.introduce(id, nested),
            None => Ok(()),
        }
    }

    /// Returns the call that made the nested call `id`.
    pub fn caller_of(&self, id: &str) -> Option<&PendingCall> {
        self.pending.find(NestedId::parse(id)?.parent)
    }

    /// Ends the step if every call has its result. Returns the results and records the step for
    /// repetition detection.
    pub(crate) fn take_results(&mut self) -> Option<Vec<ToolResult>> {
        if !self.pending.are_done() {
            return None;
        }
        self.edited.clear();
        let mut hasher = Sha256::new();
        let mut results = Vec::with_capacity(self.pending.len());
        // Not `drain`: a session that waits should not keep room for calls.
        for PendingCall { call, state, .. } in std::mem::take(&mut self.pending).into_calls() {
            let CallState::Done { result } = state else {
                continue;
            };
            hasher.update(call.name.as_bytes());
            hasher.update(call.args.to_string().as_bytes());
            for block in &result.content {
                match block {
                    Block::Text { text } => hasher.update(text.as_bytes()),
                    // The same screenshot twice is the same result.
                    Block::Media(media) => hasher.update(media.data.as_bytes()),
                    Block::Thinking(_) | Block::ToolCall(_) => {}
                }
                hasher.update([0]);
            }
            results.push(result);
        }
        let digest = hasher.finalize();
        let hash = digest
            .iter()
            .take(8)
            .fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        self.guard.record(hash, MAX_ROUNDS_KEPT);
        if self.guard.longest_repetition().rounds <= 1 {
            self.nudged = false;
        }
        Some(results)
    }

    /// Returns the result, for the model, of a call that will never be finished.
    pub fn interrupted_result(&self, pending: &PendingCall) -> CallResult {
        use crate::ResultStatus;
        let (status, text) = match pending.state {
            CallState::Begun { .. } => (
                ResultStatus::Interrupted,
                "interrupted: may have run. The process ended before this call was done; check its effects before repeating it.",
            ),
            CallState::New
            | CallState::Asked { .. }
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Done { .. } => (ResultStatus::Skipped, skipped_text(&pending.call.id)),
        };
        let notes = self.edit_notes(&pending.call.id);
        let notes = notes.into_iter().map(Block::text);
        let content = notes.chain([Block::text(text)]).collect();
        let mut result = CallResult::new(self.id.clone(), pending.call.id.clone(), status, content);
        // What it took in is not in this result, but the journal says what its caller took in.
        result.untrusted = pending.nesting.untrusted;
        result
    }

    /// Returns the results of calls that the call `id` made and that will never be finished, because
    /// it ends itself.
    pub fn unfinished_results(&self, id: &str) -> Vec<CallResult> {
        let Some(caller) = self.pending.find(id) else {
            return Vec::new();
        };
        let mut open = Vec::new();
        for nested in caller.nesting.calls.values() {
            nested.collect_open(&mut open);
        }
        let open = open.into_iter();
        open.map(|call| self.interrupted_result(call)).collect()
    }

    /// Returns the notes for the model about arguments that people changed: those of the call `id`,
    /// or of calls that it made. A nested call has none, because the calling tool reads its result.
    pub fn edit_notes(&self, id: &str) -> Vec<String> {
        if self.edited.is_empty() || NestedId::parse(id).is_some() {
            return Vec::new();
        }
        let below = format!("{id}/");
        let edited = self.edited.iter();
        edited
            .filter(|(edited, _)| *edited == id || edited.starts_with(&below))
            .map(|(id, by)| self.edit_note(id, by))
            .collect()
    }

    /// Returns the note for the model about the call `id`, whose arguments `by` changed.
    fn edit_note(&self, id: &str, by: &str) -> String {
        let call = self.pending.find(id).map(|pending| &pending.call);
        let which = match (NestedId::parse(id), call) {
            (None, _) => "this call".to_owned(),
            (Some(_), Some(call)) => format!("the nested call {id} ({})", call.name),
            (Some(_), None) => format!("the nested call {id}"),
        };
        let args = call.map(|call| call.args.to_string()).unwrap_or_default();
        let shown: String = args.chars().take(MAX_NOTED_CHARS).collect();
        let dots = if shown.len() < args.len() { "…" } else { "" };
        let about = match call {
            Some(_) => format!("; it is about: {shown}{dots}"),
            // The call that made it has ended since.
            None => String::new(),
        };
        format!("[{by} changed the arguments of {which}{about}]")
    }
}

/// The maximum length of changed arguments in the note.
const MAX_NOTED_CHARS: usize = 2_000;

/// Enough rounds for any sensible `repeat_end`.
const MAX_ROUNDS_KEPT: u32 = 16;

/// The result of a call that was never begun.
fn skipped_text(id: &str) -> &'static str {
    match NestedId::parse(id) {
        None => "skipped: the run ended before this call was begun; it had no effect.",
        Some(_) => "skipped: the call that made it ended before it was begun; it had no effect.",
    }
}

fn step_count(n: usize) -> String {
    match n {
        1 => "step".to_owned(),
        n => counted(n, "step"),
    }
}

fn cut_short_reason(stop: &StopReason) -> Option<String> {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => None,
        StopReason::MaxTokens => Some("the answer was cut at the model's output limit".to_owned()),
        StopReason::Refusal => Some("the model declined to answer".to_owned()),
        StopReason::ContentFilter => {
            Some("the provider's content filter stopped the answer".to_owned())
        }
        StopReason::CutOff => Some("the answer was cut off".to_owned()),
        StopReason::Other(reason) => Some(format!("the model stopped: {reason}")),
    }
}
