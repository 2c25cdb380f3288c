//! The hooks of an agent, asked one after another about an event.
//!
//! Collects results and records nothing: the caller appends [`HookResults::runs`] to the journal.
//!
//! Effects: the clock, hooks.

use super::ask::{HookContext, HookFailure, ask_hook};
use super::effect::{
    HookChange, HookEffect, HookText, HookVote, MAX_REASON_CHARS, resolve_effect, truncate_chars,
};
use super::input::HookInput;
use super::runtime::{Delegate, HookRuntime};
use crate::run::{HaltReason, RunSignals};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stead_core::{HookOutcome, HookRun, NoticeLevel};
use stead_workspace::{HookEvent, HookSpec, OnFailure};

/// The hooks of an agent.
pub struct Hooks {
    specs: Vec<HookSpec>,
    /// Set once, when the agent is built.
    runtime: OnceLock<HookRuntime>,
    delegate: OnceLock<Arc<dyn Delegate>>,
    /// The delegate that is used if none was set.
    default_delegate: OnceLock<Arc<dyn Delegate>>,
}

/// The results of all hooks that were asked about an event.
#[derive(Debug, Default)]
pub(crate) struct HookResults {
    /// The hook runs to record in the journal, in order.
    pub(crate) runs: Vec<HookRun>,
    pub(crate) verdict: HookVerdict,
    /// The changes, in the order in which they are to be made.
    pub(crate) changes: Vec<HookChange>,
    /// The texts for the model, each with its hook.
    pub(crate) context: Vec<HookText>,
    /// The notices for people.
    pub(crate) notices: Vec<(NoticeLevel, String)>,
    /// Whether a hook asked not to show the output.
    pub(crate) suppressed: bool,
}

/// The verdict of all hooks together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HookVerdict {
    /// No hook objected.
    #[default]
    Pass,
    /// This hook approved the call in place of a person.
    Approve(String),
    /// This hook refused.
    Block { hook: String, reason: String },
    /// This hook asked for the end of the run.
    StopRun { hook: String, reason: String },
    /// The run was stopped while hooks were asked.
    Halted(HaltReason),
}

impl Hooks {
    /// Creates the hooks of an agent. They are asked in this order.
    pub fn new(specs: Vec<HookSpec>) -> Self {
        Self {
            specs,
            runtime: OnceLock::new(),
            delegate: OnceLock::new(),
            default_delegate: OnceLock::new(),
        }
    }

    /// Sets the root folder, the environment and the models that hooks use. Only the first call has an effect.
    pub(crate) fn init(&self, runtime: HookRuntime) {
        let _ = self.runtime.set(runtime);
    }

    /// Sets the delegate, which runs the tasks of agent hooks. Only the first call has an effect.
    pub fn set_delegate(&self, delegate: Arc<dyn Delegate>) {
        let _ = self.delegate.set(delegate);
    }

    /// Sets the delegate that is used if none is set with [`set_delegate`](Self::set_delegate).
    pub(crate) fn set_default_delegate(&self, delegate: Arc<dyn Delegate>) {
        let _ = self.default_delegate.set(delegate);
    }

    /// Returns the definitions of the hooks.
    pub fn specs(&self) -> &[HookSpec] {
        &self.specs
    }

    /// Whether there are no hooks.
    pub(crate) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Whether any hook listens to `event`, whatever its matcher.
    pub(crate) fn has_listener(&self, event: HookEvent) -> bool {
        self.specs
            .iter()
            .any(|spec| spec.events.iter().any(|on| on.event == event))
    }

    /// Asks all hooks that listen to `input`, in order. Each sees the changes of those before it.
    /// A refusal, a request to stop the run, or the run's halt ends the round.
    pub(crate) async fn fire(&self, mut input: HookInput, cx: &HookContext<'_>) -> HookResults {
        let mut results = HookResults::default();
        let empty = HookRuntime::default();
        let runtime = self.runtime.get().unwrap_or(&empty);
        let cwd = runtime
            .root()
            .map_or(".".into(), |root| root.to_string_lossy());
        let subjects = input.subjects.clone();
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        let event = input.event;
        let outcome = input.outcome;
        for spec in self
            .specs
            .iter()
            .filter(|spec| spec.matches(event, &subjects, outcome))
        {
            let started = Instant::now();
            let json = input.json(&cwd);
            let answer = tokio::select! {
                biased;
                halted = wait_for_halt(cx.signals) => {
                    results.push_run(spec, &input, started, HookOutcome::Failed, Some("the run was stopped".to_owned()));
                    results.verdict = HookVerdict::Halted(halted);
                    return results;
                }
                // Boxed: a process holds thousands of runs, and few of them wait for a hook.
                answer = Box::pin(ask_hook(spec, (runtime, self.delegate.get().or(self.default_delegate.get())), &json, cx)) => answer,
            };
            match answer
                .and_then(|answer| resolve_effect(spec, event, answer).map_err(HookFailure::Failed))
            {
                Ok(effect) => results.apply_effect(spec, &mut input, started, effect),
                Err(failure) => results.apply_failure(spec, &input, started, failure),
            }
            match results.verdict {
                HookVerdict::Block { .. }
                | HookVerdict::StopRun { .. }
                | HookVerdict::Halted(_) => break,
                HookVerdict::Pass | HookVerdict::Approve(_) => {}
            }
        }
        results
    }
}

/// Waits until the run is stopped; forever without signals.
async fn wait_for_halt(signals: Option<&RunSignals>) -> HaltReason {
    match signals {
        Some(signals) => signals.wait().await,
        None => std::future::pending().await,
    }
}

impl HookResults {
    /// Applies the effect of one hook, and adds its run to `runs`.
    fn apply_effect(
        &mut self,
        spec: &HookSpec,
        input: &mut HookInput,
        started: Instant,
        effect: HookEffect,
    ) {
        let hook = spec.name.clone();
        if let Some(message) = effect.message.filter(|_| !effect.suppress_output) {
            self.notices
                .push((NoticeLevel::Info, format!("hook {hook}: {message}")));
        }
        self.suppressed |= effect.suppress_output;
        let mut detail = None;
        match effect.vote {
            HookVote::Block(reason) => {
                let detail = Some(reason.clone());
                self.push_run(spec, input, started, HookOutcome::Blocked, detail);
                self.verdict = HookVerdict::Block { hook, reason };
                return;
            }
            HookVote::StopRun(reason) => {
                let detail = Some(reason.clone());
                self.push_run(spec, input, started, HookOutcome::Blocked, detail);
                self.verdict = HookVerdict::StopRun { hook, reason };
                return;
            }
            HookVote::Approve => {
                self.verdict = HookVerdict::Approve(hook);
                detail = Some("answered yes".to_owned());
            }
            HookVote::Abstain => {}
        }
        if let Some(text) = effect.context {
            detail = detail.or(Some("added context".to_owned()));
            let hook = spec.name.clone();
            self.context.push(HookText { hook, text });
        }
        match effect.change {
            None => self.push_run(spec, input, started, HookOutcome::Passed, detail),
            Some(change) => {
                let changed = format!("changed {}", change.key());
                self.push_run(spec, input, started, HookOutcome::Rewrote, Some(changed));
                if let (HookChange::ToolArgs(args), Some(run)) = (&change, self.runs.last_mut()) {
                    run.args = Some(args.clone());
                }
                input.apply(&change);
                self.changes.push(change);
            }
        }
    }

    /// Adds a failed run to `runs`. If the hook fails closed and the event can be blocked, the failure counts
    /// as a refusal.
    fn apply_failure(
        &mut self,
        spec: &HookSpec,
        input: &HookInput,
        started: Instant,
        failure: HookFailure,
    ) {
        let (outcome, reason) = match failure {
            HookFailure::TimedOut(reason) => (HookOutcome::TimedOut, reason),
            HookFailure::Failed(reason) => (HookOutcome::Failed, reason),
        };
        let reason = truncate_chars(&reason, MAX_REASON_CHARS);
        let hook = &spec.name;
        let at = input.event.as_str();
        self.push_run(spec, input, started, outcome, Some(reason.clone()));
        let fails_closed =
            spec.failure_policy(input.event) == OnFailure::Closed && input.event.can_be_blocked();
        let consequence = match fails_closed {
            true => "it counts as a no (on_failure: closed)",
            false => "the run continues without it (on_failure: open)",
        };
        self.notices.push((
            NoticeLevel::Warning,
            format!("hook {hook} failed at {at}: {reason}; {consequence}"),
        ));
        if fails_closed {
            self.verdict = HookVerdict::Block {
                hook: hook.clone(),
                reason: format!("the hook failed: {reason}"),
            };
        }
    }

    /// Adds to `runs`.
    fn push_run(
        &mut self,
        spec: &HookSpec,
        input: &HookInput,
        started: Instant,
        outcome: HookOutcome,
        detail: Option<String>,
    ) {
        self.runs.push(HookRun {
            run: input.run.clone(),
            event: input.event.as_str().to_owned(),
            hook: spec.name.clone(),
            outcome,
            call: input.call.clone(),
            detail,
            args: None,
            nested: None,
            ms: started.elapsed().as_millis() as u64,
        });
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("specs", &self.specs)
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}
