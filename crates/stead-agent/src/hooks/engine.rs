//! Asking all hooks that listen, one after another.

use super::ask::{HookContext, HookFailure, ask_hook};
use super::effect::{
    HookChange, HookEffect, HookVote, MAX_REASON_CHARS, resolve_effect, truncate_chars,
};
use super::input::HookInput;
use super::runtime::{Delegate, HookRuntime};
use crate::halt::{Halt, HaltReason};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stead_core::{HookOutcome, HookRun, NoticeLevel};
use stead_workspace::{HookEvent, HookSpec, OnFailure};

/// The hooks of an agent.
pub struct Hooks {
    specs: Vec<HookSpec>,
    runtime: OnceLock<HookRuntime>,
    delegate: OnceLock<Arc<dyn Delegate>>,
    /// Who is asked where nobody else was named.
    default_delegate: OnceLock<Arc<dyn Delegate>>,
}

/// What asking hooks came to.
#[derive(Debug, Default)]
pub(crate) struct HookResults {
    /// For the journal, in order.
    pub(crate) runs: Vec<HookRun>,
    pub(crate) verdict: HookVerdict,
    /// In the order in which they are to be made.
    pub(crate) changes: Vec<HookChange>,
    /// For the model, each with the hook it is from.
    pub(crate) context: Vec<(String, String)>,
    /// For people.
    pub(crate) notices: Vec<(NoticeLevel, String)>,
    /// Whether people are to be shown less.
    pub(crate) suppressed: bool,
}

/// What all hooks together said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum HookVerdict {
    /// Nobody objected.
    #[default]
    Pass,
    /// This hook said yes in the place of a person.
    Approve(String),
    /// This hook said no.
    Block { hook: String, reason: String },
    /// This hook wants the run to end.
    StopRun { hook: String, reason: String },
    /// The run was stopped while they were asked.
    Halted(HaltReason),
}

impl Hooks {
    /// These hooks, asked in their order.
    pub fn new(specs: Vec<HookSpec>) -> Self {
        Self {
            specs,
            runtime: OnceLock::new(),
            delegate: OnceLock::new(),
            default_delegate: OnceLock::new(),
        }
    }

    /// Sets what hooks need from this process. Only the first call has an effect.
    pub(crate) fn init(&self, runtime: HookRuntime) {
        let _ = self.runtime.set(runtime);
    }

    /// Gives them someone who hands tasks to agents; the first time counts.
    pub fn set_delegate(&self, delegate: Arc<dyn Delegate>) {
        let _ = self.delegate.set(delegate);
    }

    /// Asks agents through `delegate` unless another was named.
    pub(crate) fn set_default_delegate(&self, delegate: Arc<dyn Delegate>) {
        let _ = self.default_delegate.set(delegate);
    }

    /// What they are.
    pub fn specs(&self) -> &[HookSpec] {
        &self.specs
    }

    /// Whether any is asked about `event`, whatever the occasion.
    pub(crate) fn has_listener(&self, event: HookEvent) -> bool {
        self.specs
            .iter()
            .any(|spec| spec.events.iter().any(|on| on.event == event))
    }

    /// Asks all that listen to `input`. Each is told what those before it changed; a no ends it.
    pub(crate) async fn fire(&self, mut input: HookInput, asking: &HookContext<'_>) -> HookResults {
        let mut fired = HookResults::default();
        let unequipped = HookRuntime::default();
        let gear = self.runtime.get().unwrap_or(&unequipped);
        let cwd = gear
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
            let begun = Instant::now();
            let told = input.json(&cwd);
            let answered = tokio::select! {
                biased;
                halted = wait_for_halt(asking.halt) => {
                    fired.record_run(spec, &input, begun, HookOutcome::Failed, Some("the run was stopped".to_owned()));
                    fired.verdict = HookVerdict::Halted(halted);
                    return fired;
                }
                answered = ask_hook(spec, (gear, self.delegate.get().or(self.default_delegate.get())), &told, asking) => answered,
            };
            match answered
                .and_then(|answer| resolve_effect(spec, event, answer).map_err(HookFailure::Failed))
            {
                Ok(effect) => fired.apply_effect(spec, &mut input, begun, effect),
                Err(missed) => fired.apply_failure(spec, &input, begun, missed),
            }
            match fired.verdict {
                HookVerdict::Block { .. }
                | HookVerdict::StopRun { .. }
                | HookVerdict::Halted(_) => break,
                HookVerdict::Pass | HookVerdict::Approve(_) => {}
            }
        }
        fired
    }
}

async fn wait_for_halt(halt: Option<&Halt>) -> HaltReason {
    match halt {
        Some(halt) => halt.wait().await,
        None => std::future::pending().await,
    }
}

impl HookResults {
    fn apply_effect(
        &mut self,
        spec: &HookSpec,
        input: &mut HookInput,
        begun: Instant,
        effect: HookEffect,
    ) {
        let hook = spec.name.clone();
        if let Some(message) = effect.message.filter(|_| !effect.suppress_output) {
            self.notices
                .push((NoticeLevel::Info, format!("hook {hook}: {message}")));
        }
        self.suppressed |= effect.suppress_output;
        let (verdict, outcome, detail) = match effect.vote {
            HookVote::Block(reason) => (
                Some(HookVerdict::Block {
                    hook,
                    reason: reason.clone(),
                }),
                HookOutcome::Blocked,
                Some(reason),
            ),
            HookVote::StopRun(reason) => (
                Some(HookVerdict::StopRun {
                    hook,
                    reason: reason.clone(),
                }),
                HookOutcome::Blocked,
                Some(reason),
            ),
            HookVote::Approve => (
                Some(HookVerdict::Approve(hook)),
                HookOutcome::Passed,
                Some("answered yes".to_owned()),
            ),
            HookVote::Abstain => (None, HookOutcome::Passed, None),
        };
        if outcome == HookOutcome::Blocked {
            self.record_run(spec, input, begun, outcome, detail);
            self.verdict = verdict.unwrap_or_default();
            return;
        }
        self.verdict = verdict.unwrap_or(std::mem::take(&mut self.verdict));
        let said = effect.context.is_some().then(|| "added context".to_owned());
        self.context
            .extend(effect.context.map(|words| (spec.name.clone(), words)));
        match effect.change {
            None => self.record_run(spec, input, begun, outcome, detail.or(said)),
            Some(change) => {
                let changed = format!("changed {}", change.key());
                self.record_run(spec, input, begun, HookOutcome::Rewrote, Some(changed));
                if let (HookChange::ToolArgs(args), Some(run)) = (&change, self.runs.last_mut()) {
                    run.args = Some(args.clone());
                }
                input.apply(&change);
                self.changes.push(change);
            }
        }
    }

    /// No answer counts as a no where the hook is a guard.
    fn apply_failure(
        &mut self,
        spec: &HookSpec,
        input: &HookInput,
        begun: Instant,
        missed: HookFailure,
    ) {
        let (outcome, reason) = match missed {
            HookFailure::TimedOut(reason) => (HookOutcome::TimedOut, reason),
            HookFailure::Failed(reason) => (HookOutcome::Failed, reason),
        };
        let reason = truncate_chars(&reason, MAX_REASON_CHARS);
        let hook = &spec.name;
        let at = input.event.as_str();
        self.record_run(spec, input, begun, outcome, Some(reason.clone()));
        let closed =
            spec.failure_policy(input.event) == OnFailure::Closed && input.event.can_be_blocked();
        let means = match closed {
            true => "it counts as a no (on_failure: closed)",
            false => "things go on without it (on_failure: open)",
        };
        self.notices.push((
            NoticeLevel::Warning,
            format!("hook {hook} failed at {at}: {reason}; {means}"),
        ));
        if closed {
            self.verdict = HookVerdict::Block {
                hook: hook.clone(),
                reason: format!("the hook failed: {reason}"),
            };
        }
    }

    fn record_run(
        &mut self,
        spec: &HookSpec,
        input: &HookInput,
        begun: Instant,
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
            ms: begun.elapsed().as_millis() as u64,
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
