//! The loop of a run. It decides nothing: the fold says what is next
//! ([`SessionState::next`](stead_core::SessionState::next)), the loop does it and records the result.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use super::BackgroundTaskPolicy;
use super::caller::ToolCaller;
use super::compaction::Compactor;
use super::conversation::Conversation;
use super::further_tools::changed_tools_notice;
use super::journal::RunJournal;
use super::model_call::ModelCaller;
use super::prompt_files::{PromptFiles, change_notice};
use super::signals::{HaltReason, RunSignals};
use super::spending::RunSpending;
use super::steering::INTERRUPTED;
use super::stop::{RunEnding, RunStop};
use crate::answer_schema::{AnswerCheck, check_answer};
use crate::approvals::Asker;
use crate::hooks::RunHooks;
use crate::session::RunFiles;
use crate::subagents::DelegationContext;
use crate::{AgentError, ApprovalPolicy};
use stead_core::{Entry, EventKind, NextAction, Notice, NoticeKind, RunEnd, RunOutcome};
use stead_model::ModelError;
use stead_store::StoreError;

/// A run while it is carried out.
pub(crate) struct ActiveRun<'a> {
    pub(super) journal: RunJournal<'a>,
    pub(super) conversation: Conversation,
    pub(super) spending: RunSpending,
    /// The hooks; none if the agent has no hooks.
    pub(super) hooks: Option<RunHooks>,
    pub(super) files: RunFiles,
    pub(super) prompt_files: PromptFiles,
    pub(super) signals: RunSignals,
    pub(super) approvals: ApprovalPolicy,
    pub(super) background_tasks: BackgroundTaskPolicy,
}

impl<'a> ActiveRun<'a> {
    /// Drives the run until it ends or parks.
    pub(super) async fn drive(&mut self) -> Result<RunEnding, RunStop> {
        loop {
            let limits = self.journal.agent().policy().limits();
            let next = self.journal.state().next(&limits);
            match self.signals.check() {
                // A message that arrives after the last answer is the next input.
                Err(HaltReason::Interrupted) if matches!(next, NextAction::Done(..)) => {}
                checked => checked?,
            }
            if let Some(hooks) = &mut self.hooks {
                hooks.warnings(&mut self.journal).await?;
            }
            match next {
                NextAction::CallModel => {
                    if self.signals.has_steering() {
                        self.steer().await?;
                    }
                    self.refresh_turn().await?;
                    self.compactor().compact_if_needed().await?;
                    match self.model_caller().call().await {
                        Err(RunStop::Model(ModelError::ContextOverflow(message))) => {
                            Box::pin(self.compactor().recover_from_overflow(message)).await?;
                            self.model_caller().call().await?;
                        }
                        called => called?,
                    }
                }
                NextAction::RunTools(calls) => {
                    if calls
                        .iter()
                        .any(|call| self.conversation.can_change(&call.call))
                    {
                        self.prompt_files.mark_stale();
                    }
                    self.tool_caller().run_tools(calls).await?;
                }
                NextAction::Nudge(text) => {
                    let notice =
                        Notice::new(self.journal.run().clone(), NoticeKind::Repetition, text);
                    self.journal.record(vec![Entry::Notice(notice)]).await?;
                }
                NextAction::AwaitDecision(calls) => {
                    if !self.asker().ask(calls).await? {
                        return Ok(RunEnding {
                            outcome: RunOutcome::Parked,
                            reason: Some("a call waits for a decision".to_owned()),
                        });
                    }
                }
                NextAction::Done(RunOutcome::Completed, _) if self.wait_for_more_work().await? => {}
                NextAction::Done(RunOutcome::Completed, reason) => match self.check_answer() {
                    AnswerCheck::Conforms => {
                        return self.end(RunOutcome::Completed, reason).await;
                    }
                    AnswerCheck::Correct(text) => {
                        let run = self.journal.run().clone();
                        let notice = Notice::new(run, NoticeKind::Correction, text);
                        self.journal.record(vec![Entry::Notice(notice)]).await?;
                    }
                    AnswerCheck::GiveUp(reason) => {
                        return self.end(RunOutcome::Failed, Some(reason)).await;
                    }
                },
                NextAction::Done(outcome, reason) => return self.end(outcome, reason).await,
                NextAction::Idle => {
                    return Ok(RunEnding {
                        outcome: RunOutcome::Completed,
                        reason: None,
                    });
                }
            }
        }
    }

    fn compactor(&mut self) -> Compactor<'_, 'a> {
        Compactor {
            journal: &mut self.journal,
            conversation: &mut self.conversation,
            spending: &mut self.spending,
            hooks: self.hooks.as_mut(),
            signals: &self.signals,
        }
    }

    fn model_caller(&mut self) -> ModelCaller<'_, 'a> {
        ModelCaller {
            journal: &mut self.journal,
            conversation: &mut self.conversation,
            spending: &mut self.spending,
            hooks: self.hooks.as_mut(),
            signals: &self.signals,
        }
    }

    pub(super) fn tool_caller(&mut self) -> ToolCaller<'_, 'a> {
        ToolCaller {
            journal: &mut self.journal,
            hooks: self.hooks.as_mut(),
            conversation: &self.conversation,
            files: &self.files,
            signals: &self.signals,
        }
    }

    pub(super) fn asker(&mut self) -> Asker<'_, 'a> {
        let approvals = self.approvals.clone();
        Asker::new(self.tool_caller(), approvals)
    }

    /// Prepares the next call of the model: the acting agent gets its own prompt and tools, and the
    /// model its due reminder and the results of background tasks.
    async fn refresh_turn(&mut self) -> Result<(), RunStop> {
        let from = self.journal.agent().agents().own_name();
        if let Some(setup) = self.journal.switch_to_recorded_agent().await? {
            let session = self.journal.session();
            self.conversation.change_setup(session, setup);
            self.prompt_files.reset();
            let to = session.agent().agents().own_name();
            let model = session.model().to_owned();
            self.journal
                .emit(EventKind::AgentSwitched { from, to, model });
        }
        let session = self.journal.session();
        if let Some(text) = session.agents().due_reminder(session.state()) {
            let notice = Notice::new(self.journal.run().clone(), NoticeKind::Reminder, text);
            self.journal.record(vec![Entry::Notice(notice)]).await?;
        }
        self.journal.session().update_subagent_permissions();
        self.record_changed_tools().await?;
        self.record_changed_prompt_files().await?;
        self.record_finished_tasks().await?;
        Ok(())
    }

    /// Tells the model of a changed list of tools that it is not shown.
    async fn record_changed_tools(&mut self) -> Result<(), RunStop> {
        let tools = self.conversation.tools();
        let notice = changed_tools_notice(tools, self.journal.state(), self.journal.run());
        if let Some(notice) = notice {
            self.journal.record(vec![Entry::Notice(notice)]).await?;
        }
        Ok(())
    }

    /// Tells the model of files of its prompt that changed.
    async fn record_changed_prompt_files(&mut self) -> Result<(), RunStop> {
        if !self.prompt_files.is_due() {
            return Ok(());
        }
        let workspace = self.journal.agent().workspace();
        let files = workspace.prompt_files(&self.files.unguarded);
        let context = &workspace.definition.paths.context;
        let changed = self.prompt_files.look(context, &*files).await;
        if changed.is_empty() {
            return Ok(());
        }
        let run = self.journal.run().clone();
        let notice = Notice::new(run, NoticeKind::Context, change_notice(&changed));
        self.journal.record(vec![Entry::Notice(notice)]).await?;
        Ok(())
    }

    /// Tells the model of background tasks that have ended. Returns whether there were any.
    async fn record_finished_tasks(&mut self) -> Result<bool, RunStop> {
        let told = &self.journal.state().told;
        let Some(finished) = self.journal.session().subagents().finished_since(told) else {
            return Ok(false);
        };
        let notice = finished.into_notice(self.journal.run().clone());
        self.journal.record(vec![Entry::Notice(notice)]).await?;
        Ok(true)
    }

    /// Waits for steering messages and background tasks after the model is done. Returns whether
    /// there is more for the model to do.
    async fn wait_for_more_work(&mut self) -> Result<bool, RunStop> {
        // Without steps left, a message becomes the next input.
        let can_steer = self.has_steps_left();
        loop {
            let subagents = self.journal.session().subagents();
            // Subscribed before looking, so that no end is missed.
            let mut ends = subagents.watch_finished();
            let is_working = subagents.running_count() > 0;
            if can_steer && self.steer().await? {
                return Ok(true);
            }
            if self.background_tasks == BackgroundTaskPolicy::Detach {
                return Ok(false);
            }
            if self.record_finished_tasks().await? {
                return Ok(true);
            }
            if !is_working {
                return Ok(false);
            }
            tokio::select! {
                biased;
                halted = self.signals.wait() => return Err(halted.into()),
                () = self.signals.wait_for_steering(), if can_steer => {}
                _ = ends.changed() => {}
            }
        }
    }

    /// Checks whether the answer conforms to the schema of the run, if it has one.
    fn check_answer(&self) -> AnswerCheck {
        let state = self.journal.state();
        let run = state.run.as_ref();
        match run.and_then(|run| Some((run, run.output_schema.as_ref()?))) {
            Some((run, schema)) => check_answer(schema, &state.final_text(), run.corrections),
            None => AnswerCheck::Conforms,
        }
    }

    /// Whether the model may be called once more.
    fn has_steps_left(&self) -> bool {
        let most = self.journal.agent().policy().limits().max_steps;
        let run = self.journal.state().run.as_ref();
        run.is_some_and(|run| run.steps < most)
    }

    /// Records the end of the run.
    async fn end(
        &mut self,
        outcome: RunOutcome,
        reason: Option<String>,
    ) -> Result<RunEnding, RunStop> {
        let cut = self.spending.take_cut_outcome();
        let (outcome, reason) = cut.unwrap_or((outcome, reason));
        let end = RunEnd {
            run: self.journal.run().clone(),
            outcome,
            reason: reason.clone(),
        };
        self.journal.record(vec![Entry::End(end)]).await?;
        Ok(RunEnding { outcome, reason })
    }

    /// Ends a run that could not go on: every open call gets a result, and the end is recorded. Only
    /// if the journal cannot be written does the run stay open, to be resumed later.
    pub(super) async fn close(&mut self, stop: RunStop) -> Result<RunEnding, AgentError> {
        let (outcome, reason) = match stop {
            // Another process writes the journal now.
            RunStop::Halted(HaltReason::TakenOver) => {
                let lease = format!("session {}", self.journal.session().id());
                return Err(StoreError::Fenced { lease }.into());
            }
            RunStop::Halted(HaltReason::Cancelled) => {
                (RunOutcome::Cancelled, "cancelled".to_owned())
            }
            RunStop::Halted(HaltReason::Interrupted) => {
                (RunOutcome::Cancelled, INTERRUPTED.to_owned())
            }
            RunStop::Halted(HaltReason::TimedOut) => {
                let seconds = self.journal.agent().policy().run_timeout_seconds;
                (
                    RunOutcome::TimedOut,
                    format!("stopped after {seconds} seconds (policy.run_timeout_seconds)"),
                )
            }
            RunStop::Model(error) => (RunOutcome::Failed, error.to_string()),
            RunStop::Tool(reason) => (RunOutcome::Failed, reason),
            RunStop::Hook(stop) => (RunOutcome::Failed, stop.to_string()),
            RunStop::Budget(exhausted) => (RunOutcome::Budget, exhausted.to_string()),
            RunStop::Fatal(error) => return Err(error),
        };
        let entries = self.journal.state().close(outcome, &reason);
        self.journal.record(entries).await?;
        Ok(RunEnding {
            outcome,
            reason: Some(reason),
        })
    }

    /// Lets the tools of this run delegate work.
    pub(super) fn start_subagents(&self) {
        let session = self.journal.session();
        let spawned = session.state().spawned.as_ref();
        session.subagents().set_run_context(DelegationContext {
            agent: session.agent().clone(),
            run: self.journal.run().clone(),
            permissions: session.permissions(),
            depth: spawned.map_or(0, |spawned| spawned.depth),
            tree: spawned.map_or_else(|| session.id().clone(), |spawned| spawned.tree.clone()),
            listener: self.journal.listener().clone(),
            approvals: self.approvals.clone(),
            cancel: self.signals.cancel().clone(),
            budget: self.spending.budget().clone(),
        });
    }

    /// Stops the subagents of the run, unless it completed and they may go on.
    pub(super) async fn stop_subagents(&self, driven: &Result<RunEnding, RunStop>) {
        let completed = matches!(driven, Ok(ending) if ending.outcome == RunOutcome::Completed);
        if !completed || self.background_tasks == BackgroundTaskPolicy::Wait {
            self.journal.session().subagents().stop().await;
        }
    }
}
