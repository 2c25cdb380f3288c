//! Where in a run hooks are asked. Each place in the driver is one line that calls one of these.

mod calls;
mod context;
mod life;
mod outside;

pub(crate) use context::Seen;
pub(crate) use outside::Outside;

use super::ask::Asking;
use super::engine::{Fired, Verdict};
use super::input::HookInput;
use crate::AgentError;
use crate::live::{Live, Stop};
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
pub(crate) struct Hooked {
    /// Words for the model that go into the next request.
    waiting: Vec<(String, String)>,
    /// Words that go with the result of a call.
    of_calls: BTreeMap<String, Vec<(String, String)>>,
    /// Calls whose results people are not shown.
    suppressed: BTreeSet<String>,
    /// What is said last in the system prompt of the next request.
    context: Vec<String>,
    /// What people were warned of and hooks were not yet told.
    warnings: Vec<String>,
}

impl Hooked {
    /// Whether people are not to be shown the result of this call. Asked once.
    pub(crate) fn hides(&mut self, call: &str) -> bool {
        self.suppressed.remove(call)
    }
}

/// Words of a hook as a model is told them.
fn worded((hook, text): &(String, String)) -> String {
    enclose("hook_context", &format!("{hook}: {text}"))
}

impl Live<'_> {
    fn hooks_listen(&self, event: HookEvent) -> bool {
        self.session.agent.hooks.listen(event)
    }

    /// What every hook is told about this run.
    fn happens(&self, event: HookEvent) -> HookInput {
        self.session.happens(
            event,
            self.session.state.run.as_ref().map(|run| run.id.clone()),
        )
    }

    fn asking(&self) -> Asking<'_> {
        let agent = &*self.session.agent;
        let owner = &self.session.owner;
        let session = &self.session.id;
        let bound = self.session.bound();
        let budget = self.budget.clone();
        Asking {
            agent,
            owner,
            session,
            bound,
            budget,
            halt: Some(&self.halt),
            at_most: NO_LIMIT,
        }
    }

    /// Asks, and puts on record what came of it.
    async fn ask_hooks(&mut self, input: HookInput) -> Result<Fired, Stop> {
        let fired = self.session.agent.hooks.fire(input, &self.asking()).await;
        self.settle(fired).await
    }

    /// Tells people and records. An error if the run is to end.
    async fn settle(&mut self, mut fired: Fired) -> Result<Fired, Stop> {
        for (level, text) in fired.told.drain(..) {
            self.tell(EventKind::Notice { level, text });
        }
        let entries: Vec<Entry> = fired.runs.drain(..).map(Entry::Hook).collect();
        if !entries.is_empty() {
            self.record(entries).await?;
        }
        match &fired.verdict {
            Verdict::Halted(halted) => Err((*halted).into()),
            Verdict::End { hook, reason } => {
                Err(Stop::Hook(format!("hook {hook} ended the run: {reason}")))
            }
            Verdict::Pass | Verdict::Yes(_) | Verdict::No { .. } => Ok(fired),
        }
    }

    /// Records the words that wait, where a message can stand.
    async fn say_waiting(&mut self) -> Result<(), AgentError> {
        let run = &self.run;
        let waiting = std::mem::take(&mut self.hooked.waiting);
        let said =
            |words: &(String, String)| Entry::Notice(Notice::new(run.clone(), worded(words)));
        let entries: Vec<Entry> = waiting.iter().map(said).collect();
        if !entries.is_empty() {
            self.record(entries).await?;
        }
        Ok(())
    }

    /// Keeps a warning for hooks that want to know.
    pub(crate) fn note_warning(&mut self, text: &str) {
        if self.hooks_listen(HookEvent::Notification) && self.hooked.warnings.len() < MAX_WARNINGS {
            self.hooked.warnings.push(text.to_owned());
        }
    }
}

impl crate::Session {
    /// What every hook is told about this session.
    fn happens(&self, event: HookEvent, run: Option<RunId>) -> HookInput {
        self.agent.happens(event, (&self.owner, &self.id), run)
    }
}

impl crate::Agent {
    /// What every hook is told about a session of `owner`.
    fn happens(
        &self,
        event: HookEvent,
        (owner, session): (&Owner, &SessionId),
        run: Option<RunId>,
    ) -> HookInput {
        HookInput {
            event,
            session: session.clone(),
            run,
            agent: self.acting(),
            user: owner.user.to_string(),
            subjects: Vec::new(),
            outcome: None,
            call: None,
            facts: Map::new(),
        }
    }
}
