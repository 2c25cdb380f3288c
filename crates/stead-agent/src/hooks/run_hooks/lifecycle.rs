//! Hooks at the start and the end of a run, about steering messages, and about warnings.
//!
//! Effects: the clock, the journal (writes), hooks.

use super::super::effect::HookChange;
use super::super::engine::HookVerdict;
use super::super::input::HookInput;
use super::submission::{Submission, first_text, replace_first_text};
use super::{RunHooks, listens, record_results, run_input};
use crate::run::{RunEnding, RunJournal, RunStop};
use crate::{HookAction, HookStop};
use serde_json::{Value, json};
use std::time::Duration;
use stead_core::{Block, EventKind, RunOutcome};
use stead_workspace::HookEvent;

/// How long each hook may take once its run was stopped.
const STOPPED_GRACE: Duration = Duration::from_secs(2);

impl RunHooks {
    /// Asks hooks whether the run may start. `trigger` is `input`, `resume` or `wake`; `submission`
    /// holds the results of `prompt_submit`.
    pub(crate) async fn run_start(
        &mut self,
        journal: &mut RunJournal<'_>,
        submission: Submission,
        trigger: &str,
    ) -> Result<(), RunStop> {
        for (level, text) in submission.notices {
            journal.emit(EventKind::Notice { level, text });
        }
        self.pending_context.extend(submission.context);
        if !listens(journal, HookEvent::RunStart) {
            return Ok(());
        }
        let input = run_input(journal, HookEvent::RunStart)
            // Matchers of OpenHarness know every run as `message`.
            .with_subjects([trigger, "message"])
            .with_fact("trigger", trigger.into());
        let results = self.ask(journal, input).await?;
        if let HookVerdict::Block { hook, reason } = results.verdict {
            return Err(RunStop::Hook(HookStop {
                hook,
                action: HookAction::RefusedStart,
                reason,
            }));
        }
        self.pending_context.extend(results.context);
        Ok(())
    }

    /// Asks hooks about a steering message. Returns the message, perhaps with another text, or
    /// `None` if a hook refuses it, which the listener is told.
    pub(crate) async fn steering(
        &mut self,
        journal: &mut RunJournal<'_>,
        mut content: Vec<Block>,
    ) -> Result<Option<Vec<Block>>, RunStop> {
        if !listens(journal, HookEvent::PromptSubmit) {
            return Ok(Some(content));
        }
        let text = first_text(&content);
        let input = run_input(journal, HookEvent::PromptSubmit)
            .with_subjects([text.clone()])
            .with_fact("prompt", text.into());
        let results = self.ask(journal, input).await?;
        if let HookVerdict::Block { hook, reason } = results.verdict {
            journal.warn(format!("hook {hook} refused a message: {reason}"));
            return Ok(None);
        }
        self.pending_context.extend(results.context);
        for change in results.changes {
            if let HookChange::Prompt(text) = change {
                replace_first_text(&mut content, text);
            }
        }
        Ok(Some(content))
    }

    /// Tells hooks the warnings that they were not told of yet.
    pub(crate) async fn warnings(&mut self, journal: &mut RunJournal<'_>) -> Result<(), RunStop> {
        for input in take_warnings(journal) {
            self.ask(journal, input).await?;
        }
        Ok(())
    }

    /// Tells hooks how the run ended, or that it is parked. The end is on record: hooks cannot
    /// change it.
    pub(crate) async fn run_end(&mut self, journal: &mut RunJournal<'_>, ending: &RunEnding) {
        let RunEnding { outcome, reason } = ending;
        let mut inputs = take_warnings(journal);
        if *outcome == RunOutcome::Parked {
            inputs.push(notification(journal, "permission", json!(reason)));
        } else {
            let text = journal.state().final_text();
            let mut input = run_input(journal, HookEvent::RunEnd)
                .with_subjects([outcome.as_str(), "message"])
                .with_fact("outcome", outcome.as_str().into())
                .with_fact("reason", json!(reason))
                .with_fact("text", text.into());
            input.outcome = Some(*outcome);
            inputs.push(input);
        }
        inputs.retain(|input| listens(journal, input.event));
        for mut input in inputs {
            // The end is recorded, so the fold no longer knows the run.
            input.run = Some(journal.run().clone());
            let mut context = self.context(journal);
            if self.signals.check().is_err() {
                context.signals = None;
                context.max_wait = STOPPED_GRACE;
            }
            let results = journal.agent().hooks.fire(input, &context).await;
            if let Err(RunStop::Fatal(error)) = record_results(journal, results).await {
                journal.warn(format!("the result of a hook was not recorded: {error}"));
            }
        }
    }
}

fn take_warnings(journal: &mut RunJournal<'_>) -> Vec<HookInput> {
    let warnings = journal.take_warnings();
    if !listens(journal, HookEvent::Notification) {
        return Vec::new();
    }
    let input = |text| notification(journal, "warning", json!(text));
    warnings.into_iter().map(input).collect()
}

fn notification(journal: &RunJournal<'_>, kind: &str, text: Value) -> HookInput {
    run_input(journal, HookEvent::Notification)
        .with_subjects([kind])
        .with_fact("notification", json!({"kind": kind, "text": text}))
}
