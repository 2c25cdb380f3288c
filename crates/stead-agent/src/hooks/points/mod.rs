//! Where in a run hooks are asked. Each place in the driver is one line that calls one of these.

mod calls;
mod lifecycle;
mod sessionless;
mod system_context;

pub(crate) use sessionless::SessionlessHooks;
pub(crate) use system_context::HookedReply;

use super::ask::HookContext;
use super::engine::{HookResults, HookVerdict};
use super::input::HookInput;
use crate::AgentError;
use crate::active_run::{ActiveRun, RunStop};
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stead_core::{Entry, EventKind, Notice, Owner, RunId, SessionId};
use stead_workspace::{HookEvent, enclose};

/// Longer than any hook may take.
const NO_LIMIT: Duration = Duration::from_secs(3600);
/// Most warnings that wait to be told to hooks; more are left out.
const MAX_WARNINGS: usize = 32;

/// What hooks said during a run that is needed later in it.
#[derive(Debug, Default)]
pub(crate) struct PendingHookOutput {
    /// Words for the model that go into the next request.
    pending_context: Vec<(String, String)>,
    /// Words that go with the result of a call.
    call_context: BTreeMap<String, Vec<(String, String)>>,
    /// Calls whose results people are not shown.
    suppressed: BTreeSet<String>,
    /// What is said last in the system prompt of the next request.
    context: Vec<String>,
    /// What people were warned of and hooks were not yet told.
    warnings: Vec<String>,
}

impl PendingHookOutput {
    /// Whether people are not to be shown the result of this call. Asked once.
    pub(crate) fn take_suppressed(&mut self, call: &str) -> bool {
        self.suppressed.remove(call)
    }
}

/// Words of a hook as a model is told them.
fn render_context((hook, text): &(String, String)) -> String {
    enclose("hook_context", &format!("{hook}: {text}"))
}

impl ActiveRun<'_> {
    fn hooks_listen(&self, event: HookEvent) -> bool {
        self.session.agent.hooks.has_listener(event)
    }

    /// What every hook is told about this run.
    fn hook_input(&self, event: HookEvent) -> HookInput {
        self.session.hook_input(
            event,
            self.session.state.run.as_ref().map(|run| run.id.clone()),
        )
    }

    fn hook_context(&self) -> HookContext<'_> {
        let agent = &*self.session.agent;
        let owner = &self.session.owner;
        let session = &self.session.id;
        let bound = self.session.delegation_bounds();
        let budget = self.budget.clone();
        HookContext {
            agent,
            owner,
            session,
            bounds: bound,
            budget,
            halt: Some(&self.halt),
            max_wait: NO_LIMIT,
        }
    }

    /// Asks, and puts on record what came of it.
    async fn ask_hooks(&mut self, input: HookInput) -> Result<HookResults, RunStop> {
        let fired = self
            .session
            .agent
            .hooks
            .fire(input, &self.hook_context())
            .await;
        self.record_hook_results(fired).await
    }

    /// Tells people and records. An error if the run is to end.
    async fn record_hook_results(
        &mut self,
        mut fired: HookResults,
    ) -> Result<HookResults, RunStop> {
        for (level, text) in fired.notices.drain(..) {
            self.notify_listener(EventKind::Notice { level, text });
        }
        let entries: Vec<Entry> = fired.runs.drain(..).map(Entry::Hook).collect();
        if !entries.is_empty() {
            self.record(entries).await?;
        }
        match &fired.verdict {
            HookVerdict::Halted(halted) => Err((*halted).into()),
            HookVerdict::StopRun { hook, reason } => Err(RunStop::Hook(format!(
                "hook {hook} ended the run: {reason}"
            ))),
            HookVerdict::Pass | HookVerdict::Approve(_) | HookVerdict::Block { .. } => Ok(fired),
        }
    }

    /// Records the words that wait, where a message can stand.
    async fn record_pending_context(&mut self) -> Result<(), AgentError> {
        let run = &self.run;
        let waiting = std::mem::take(&mut self.hook_output.pending_context);
        let said = |words: &(String, String)| {
            Entry::Notice(Notice::new(run.clone(), render_context(words)))
        };
        let entries: Vec<Entry> = waiting.iter().map(said).collect();
        if !entries.is_empty() {
            self.record(entries).await?;
        }
        Ok(())
    }

    /// Keeps a warning for hooks that want to know.
    pub(crate) fn note_warning(&mut self, text: &str) {
        if self.hooks_listen(HookEvent::Notification)
            && self.hook_output.warnings.len() < MAX_WARNINGS
        {
            self.hook_output.warnings.push(text.to_owned());
        }
    }
}

impl crate::Session {
    /// What every hook is told about this session.
    fn hook_input(&self, event: HookEvent, run: Option<RunId>) -> HookInput {
        hook_input(&self.agent, event, (&self.owner, &self.id), run)
    }
}

/// What every hook is told about a session of `owner`.
fn hook_input(
    agent: &crate::Agent,
    event: HookEvent,
    (owner, session): (&Owner, &SessionId),
    run: Option<RunId>,
) -> HookInput {
    HookInput {
        event,
        session: session.clone(),
        run,
        agent: agent.agents().own_name(),
        user: owner.user.to_string(),
        subjects: Vec::new(),
        outcome: None,
        call: None,
        facts: Map::new(),
    }
}
