//! The beginning and the end of sessions and runs.

use super::super::ask::HookContext;
use super::super::effect::HookChange;
use super::super::engine::{HookResults, HookVerdict};
use super::super::input::HookInput;
use super::render_context;
use crate::active_run::{ActiveRun, RunStop};
use crate::driver::RunEnding;
use crate::halt::Halt;
use crate::run_trigger::RunTrigger;
use crate::session::IfMissing;
use crate::{AgentError, RunOptions, Session};
use serde_json::{Value, json};
use std::time::Duration;
use stead_core::{
    Block, Entry, EventKind, HookRun, Notice, NoticeLevel, RunId, RunOutcome, SetEntry,
};
use stead_store::{LockWait, StoreError};
use stead_workspace::HookEvent;
use tokio_util::sync::CancellationToken;

/// How long each hook may take once its run was stopped.
const STOPPED_GRACE: Duration = Duration::from_secs(2);

/// What hooks said before anything was on record.
#[derive(Debug, Default)]
pub(crate) struct SubmitResults {
    runs: Vec<HookRun>,
    context: Vec<(String, String)>,
    notices: Vec<(NoticeLevel, String)>,
}

impl Session {
    /// Asks about a session that is taken up, and about what a person says. An error if it is not
    /// to be taken.
    pub(crate) async fn submit(
        &mut self,
        begin: RunTrigger,
        run: &RunId,
        options: &RunOptions,
    ) -> Result<(RunTrigger, SubmitResults), AgentError> {
        let mut submitted = SubmitResults::default();
        self.load_permissions().await?;
        let limit = Duration::from_secs(self.agent.policy().run_timeout_seconds);
        let halt = Halt::new(options.cancel.clone(), limit, CancellationToken::new());
        if !std::mem::replace(&mut self.start_announced, true)
            && self.agent.hooks.has_listener(HookEvent::SessionStart)
        {
            let resumes = !matches!(begin, RunTrigger::Input(_))
                || self.sessions.read(&self.id).await.is_ok();
            let trigger = if resumes { "resume" } else { "new" };
            let input = self.hook_input(HookEvent::SessionStart, Some(run.clone()));
            let input = input
                .with_subjects([trigger])
                .with_fact("trigger", trigger.into());
            let fired = self
                .agent
                .hooks
                .fire(input, &self.hook_context_with(&options.settings, &halt))
                .await;
            submitted.accept(fired)?;
        }
        let RunTrigger::Input(mut content) = begin else {
            return Ok((begin, submitted));
        };
        if self.agent.hooks.has_listener(HookEvent::PromptSubmit) {
            let said = first_text(&content);
            let input = self.hook_input(HookEvent::PromptSubmit, Some(run.clone()));
            let input = input
                .with_subjects([said.clone()])
                .with_fact("prompt", said.into());
            let fired = self
                .agent
                .hooks
                .fire(input, &self.hook_context_with(&options.settings, &halt))
                .await;
            for change in submitted.accept(fired)? {
                if let HookChange::Prompt(text) = change {
                    replace_first_text(&mut content, text);
                }
            }
        }
        Ok((RunTrigger::Input(content), submitted))
    }

    /// Loads the session if a hook is asked before it is taken up: what binds it binds agents that
    /// hooks ask, too.
    async fn load_permissions(&mut self) -> Result<(), AgentError> {
        let listens = |event: HookEvent| self.agent.hooks.has_listener(event);
        if self.position.is_some()
            || !(listens(HookEvent::SessionStart) || listens(HookEvent::PromptSubmit))
        {
            return Ok(());
        }
        match self.load().await {
            Ok(()) | Err(AgentError::Store(StoreError::NotFound(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Who asks before a run in which this is set.
    fn hook_context_with<'a>(&'a self, set: &[SetEntry], halt: &'a Halt) -> HookContext<'a> {
        let asking = self.hook_context(Some(halt));
        HookContext {
            bounds: asking.bounds.with_settings(set),
            ..asking
        }
    }

    fn hook_context<'a>(&'a self, halt: Option<&'a Halt>) -> HookContext<'a> {
        let agent = &*self.agent;
        let owner = &self.owner;
        let session = &self.id;
        let budget = agent.budget(owner);
        let bound = self.delegation_bounds();
        HookContext {
            agent,
            owner,
            session,
            bounds: bound,
            budget,
            halt,
            max_wait: super::NO_LIMIT,
        }
    }

    /// Tells hooks that this process is done with the session, and why. Nothing happens if none
    /// listens, or nothing was run here.
    pub async fn finish(&mut self, why: &str) -> Result<(), AgentError> {
        if !self.start_announced || !self.agent.hooks.has_listener(HookEvent::SessionEnd) {
            return Ok(());
        }
        let mut writer = match self.open_for_writing(LockWait::No, IfMissing::Fail).await {
            Ok((writer, _)) => writer,
            Err(AgentError::Store(StoreError::NotFound(_))) => return Ok(()),
            Err(error) => return Err(error),
        };
        let input = self
            .hook_input(HookEvent::SessionEnd, None)
            .with_subjects([why])
            .with_fact("trigger", why.into());
        let fired = self.agent.hooks.fire(input, &self.hook_context(None)).await;
        let entries: Vec<Entry> = fired.runs.into_iter().map(Entry::Hook).collect();
        if !entries.is_empty() {
            self.append(&mut *writer, entries).await?;
        }
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        self.start_announced = false;
        Ok(())
    }
}

/// What was said, without what was attached to it.
fn first_text(content: &[Block]) -> String {
    let said = content.iter().find_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    said.unwrap_or_default()
}

/// Puts other words in the place of the first.
fn replace_first_text(content: &mut Vec<Block>, words: String) {
    let said = content
        .iter_mut()
        .find(|block| matches!(block, Block::Text { .. }));
    match said {
        Some(block) => *block = Block::text(words),
        None => content.insert(0, Block::text(words)),
    }
}

impl SubmitResults {
    fn accept(&mut self, fired: HookResults) -> Result<Vec<HookChange>, AgentError> {
        match fired.verdict {
            HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } => {
                return Err(AgentError::InputBlocked { hook, reason });
            }
            HookVerdict::Halted(halted) => return Err(RunStop::Halted(halted).into()),
            HookVerdict::Pass | HookVerdict::Approve(_) => {}
        }
        self.runs.extend(fired.runs);
        self.context.extend(fired.context);
        self.notices.extend(fired.notices);
        Ok(fired.changes)
    }

    /// What goes on record with what opens `run`. Words can stand behind an input; where a run is
    /// taken up again, they wait for the next request.
    pub(crate) fn entries(&mut self, run: &RunId, opening: &[Entry]) -> Vec<Entry> {
        let hook = |hook: HookRun| {
            Entry::Hook(HookRun {
                run: Some(run.clone()),
                ..hook
            })
        };
        let hooks = std::mem::take(&mut self.runs).into_iter().map(hook);
        let is_input =
            |entry: &Entry| matches!(entry, Entry::User(input) if !input.content.is_empty());
        let words = match opening.iter().any(is_input) {
            true => std::mem::take(&mut self.context),
            false => Vec::new(),
        };
        let said = words
            .iter()
            .map(|words| Entry::Notice(Notice::new(run.clone(), render_context(words))));
        hooks.chain(said).collect()
    }
}

impl ActiveRun<'_> {
    /// Drives the run after hooks were asked whether it may begin.
    pub(crate) async fn begin_with_hooks(
        &mut self,
        submitted: SubmitResults,
        trigger: &str,
    ) -> Result<RunEnding, RunStop> {
        for (level, text) in submitted.notices {
            self.notify_listener(EventKind::Notice { level, text });
        }
        self.hook_output.pending_context.extend(submitted.context);
        if self.hooks_listen(HookEvent::RunStart) {
            let input = self
                .hook_input(HookEvent::RunStart)
                .with_subjects([trigger, "message"])
                .with_fact("trigger", trigger.into());
            let fired = self.ask_hooks(input).await?;
            if let HookVerdict::Block { hook, reason } = fired.verdict {
                return Err(RunStop::Hook(format!(
                    "hook {hook} refused to begin: {reason}"
                )));
            }
            self.hook_output.pending_context.extend(fired.context);
        }
        self.drive().await
    }

    /// Asks about what a person says while the run goes on. None if it is not to be taken, which
    /// people are told.
    pub(crate) async fn submit_steer(
        &mut self,
        mut content: Vec<Block>,
    ) -> Result<Option<Vec<Block>>, RunStop> {
        if !self.hooks_listen(HookEvent::PromptSubmit) {
            return Ok(Some(content));
        }
        let said = first_text(&content);
        let input = self
            .hook_input(HookEvent::PromptSubmit)
            .with_subjects([said.clone()])
            .with_fact("prompt", said.into());
        let fired = self.ask_hooks(input).await?;
        if let HookVerdict::Block { hook, reason } = fired.verdict {
            let text = format!("hook {hook} refused what was said: {reason}");
            self.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
            return Ok(None);
        }
        self.hook_output.pending_context.extend(fired.context);
        for change in fired.changes {
            if let HookChange::Prompt(text) = change {
                replace_first_text(&mut content, text);
            }
        }
        Ok(Some(content))
    }

    /// Tells hooks what people were warned of.
    pub(crate) async fn notify(&mut self) -> Result<(), RunStop> {
        for input in self.take_warnings() {
            self.ask_hooks(input).await?;
        }
        Ok(())
    }

    fn take_warnings(&mut self) -> Vec<HookInput> {
        let warnings = std::mem::take(&mut self.hook_output.warnings);
        warnings
            .into_iter()
            .map(|text| self.notification("warning", json!(text)))
            .collect()
    }

    fn notification(&self, kind: &str, text: Value) -> HookInput {
        let told = json!({"kind": kind, "text": text});
        self.hook_input(HookEvent::Notification)
            .with_subjects([kind])
            .with_fact("notification", told)
    }

    /// Tells hooks how the run ended, which is on record, or that it waits. Nothing that they do
    /// changes that.
    pub(crate) async fn run_end_hooks(&mut self, ending: &RunEnding) {
        let RunEnding { outcome, reason } = ending;
        let mut inputs = self.take_warnings();
        if *outcome == RunOutcome::Parked {
            inputs.push(self.notification("permission", json!(reason)));
        } else {
            let input = self
                .hook_input(HookEvent::RunEnd)
                .with_subjects([outcome.as_str(), "message"]);
            let text = self.session.state.final_text();
            let mut input = input
                .with_fact("outcome", outcome.as_str().into())
                .with_fact("reason", json!(reason));
            input = input.with_fact("text", text.into());
            input.outcome = Some(*outcome);
            inputs.push(input);
        }
        inputs.retain(|input| self.session.agent.hooks.has_listener(input.event));
        for mut input in inputs {
            input.run = Some(self.run.clone());
            let stopped = self.halt.check().is_err();
            let mut asking = self.hook_context();
            if stopped {
                (asking.halt, asking.max_wait) = (None, STOPPED_GRACE);
            }
            let fired = self.session.agent.hooks.fire(input, &asking).await;
            if let Err(RunStop::Journal(error)) = self.record_hook_results(fired).await {
                let text = format!("what came of a hook was not recorded: {error}");
                self.notify_listener(EventKind::Notice {
                    level: NoticeLevel::Warning,
                    text,
                });
            }
        }
    }
}
