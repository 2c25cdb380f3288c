//! The hooks of a run: one method for each point at which hooks are asked.
//!
//! [`RunHooks`] owns the texts of hooks that wait for the next request. It asks the hooks through
//! [`Hooks`](super::Hooks), records that they ran, with their texts, in the journal, sends notices
//! to the listener, and changes the request before it is sent. It never ends the run: a method
//! returns a [`RunStop`] if the run must end, and the loop ends it.
//!
//! Effects: the clock, the journal (writes), hooks.

mod calls;
mod lifecycle;
mod model;
mod submission;

pub(crate) use calls::BeforeToolOutcome;
pub(crate) use model::HookedReply;
pub(crate) use submission::{Submission, submit};

use super::ask::HookContext;
use super::effect::HookText;
use super::engine::{HookResults, HookVerdict};
use super::input::HookInput;
use crate::run::{RunJournal, RunSignals, RunStop};
use crate::{Agent, AgentError, Budget, HookAction, HookStop, Session};
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stead_core::{Entry, EventKind, Notice, NoticeKind, RunId};
use stead_workspace::{HookEvent, enclose};

/// Longer than any hook may take.
const LONGER_THAN_ANY_HOOK: Duration = Duration::from_secs(3600);

/// Asks the hooks of a run, and keeps what they said until it is needed.
#[derive(Debug)]
pub(crate) struct RunHooks {
    budget: Budget,
    signals: RunSignals,
    /// Texts for the conversation that go into the next request.
    pending_context: Vec<HookText>,
    /// Texts that go with the result of a call, by the id of the call.
    call_context: BTreeMap<String, Vec<HookText>>,
    /// Calls whose results the listener is not shown.
    suppressed: BTreeSet<String>,
    /// Texts for the end of the system prompt of the next request.
    system_context: Vec<String>,
}

impl RunHooks {
    /// Returns the hooks of a run of `agent`, or `None` if it has no hooks. Models that they ask are
    /// paid from `budget`, and `signals` end them.
    pub(crate) fn new(agent: &Agent, budget: Budget, signals: RunSignals) -> Option<Self> {
        if agent.hooks.is_empty() {
            return None;
        }
        Some(Self {
            budget,
            signals,
            pending_context: Vec::new(),
            call_context: BTreeMap::new(),
            suppressed: BTreeSet::new(),
            system_context: Vec::new(),
        })
    }

    /// Takes the mark that hides the result of this call from the listener; it is there once.
    pub(crate) fn take_suppressed(&mut self, call: &str) -> bool {
        self.suppressed.remove(call)
    }

    fn context<'s>(&'s self, journal: &'s RunJournal<'_>) -> HookContext<'s> {
        let session = journal.session();
        HookContext {
            agent: session.agent(),
            owner: session.owner(),
            session: session.id(),
            bounds: session.delegation_bounds(),
            budget: self.budget.clone(),
            signals: Some(&self.signals),
            max_wait: LONGER_THAN_ANY_HOOK,
        }
    }

    /// Asks hooks, and records that they ran.
    async fn ask(
        &mut self,
        journal: &mut RunJournal<'_>,
        input: HookInput,
    ) -> Result<HookResults, RunStop> {
        let hooks = &journal.agent().hooks;
        let results = hooks.fire(input, &self.context(journal)).await;
        record_results(journal, results).await
    }

    /// Records texts for the conversation that wait, where a message may stand.
    async fn record_pending_context(
        &mut self,
        journal: &mut RunJournal<'_>,
    ) -> Result<(), AgentError> {
        let waiting = std::mem::take(&mut self.pending_context);
        let run = journal.run();
        let entries: Vec<Entry> = waiting
            .iter()
            .map(|text| context_entry(run, text))
            .collect();
        if !entries.is_empty() {
            journal.record(entries).await?;
        }
        Ok(())
    }
}

/// Sends the notices of hooks to the listener, and records that the hooks ran. An error if the run
/// is to end.
async fn record_results(
    journal: &mut RunJournal<'_>,
    mut results: HookResults,
) -> Result<HookResults, RunStop> {
    for (level, text) in results.notices.drain(..) {
        journal.emit(EventKind::Notice { level, text });
    }
    let entries: Vec<Entry> = results.runs.drain(..).map(Entry::Hook).collect();
    if !entries.is_empty() {
        journal.record(entries).await?;
    }
    match &results.verdict {
        HookVerdict::Halted(reason) => Err((*reason).into()),
        HookVerdict::StopRun { hook, reason } => Err(RunStop::Hook(HookStop {
            hook: hook.clone(),
            action: HookAction::EndedRun,
            reason: reason.clone(),
        })),
        HookVerdict::Pass | HookVerdict::Approve(_) | HookVerdict::Block { .. } => Ok(results),
    }
}

/// Whether any hook listens to `event`.
fn listens(journal: &RunJournal<'_>, event: HookEvent) -> bool {
    journal.agent().hooks.has_listener(event)
}

/// The facts about the open run that every hook is told.
fn run_input(journal: &RunJournal<'_>, event: HookEvent) -> HookInput {
    let run = journal.state().run.as_ref().map(|run| run.id.clone());
    session_input(journal.session(), event, run)
}

/// The facts about a session that every hook is told.
fn session_input(session: &Session, event: HookEvent, run: Option<RunId>) -> HookInput {
    HookInput {
        event,
        session: session.id().clone(),
        run,
        agent: session.agent().agents().own_name(),
        user: session.owner().user.to_string(),
        subjects: Vec::new(),
        outcome: None,
        call: None,
        facts: Map::new(),
    }
}

/// The entry for a text of a hook in the conversation.
fn context_entry(run: &RunId, text: &HookText) -> Entry {
    Entry::Notice(Notice::new(
        run.clone(),
        NoticeKind::Context,
        render_context(text),
    ))
}

/// A text of a hook as the model reads it.
fn render_context(HookText { hook, text }: &HookText) -> String {
    enclose("hook_context", &format!("{hook}: {text}"))
}
