//! Asking all hooks that listen, one after another.

use super::ask::{Asking, Missed, ask};
use super::effect::{Change, Effect, MAX_REASON_CHARS, Says, cut, judge};
use super::gear::{Delegate, HookGear};
use super::input::HookInput;
use crate::halt::{Halt, Halted};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use stead_core::{HookOutcome, HookRun, Level};
use stead_workspace::{HookEvent, HookSpec, OnFailure};

/// The hooks of an agent.
pub struct Hooks {
    specs: Vec<HookSpec>,
    gear: OnceLock<HookGear>,
    delegate: OnceLock<Arc<dyn Delegate>>,
    /// Who is asked where nobody else was named.
    usual: OnceLock<Arc<dyn Delegate>>,
}

/// What asking hooks came to.
#[derive(Debug, Default)]
pub(crate) struct Fired {
    /// For the journal, in order.
    pub(crate) runs: Vec<HookRun>,
    pub(crate) verdict: Verdict,
    /// In the order in which they are to be made.
    pub(crate) changes: Vec<Change>,
    /// For the model, each with the hook it is from.
    pub(crate) words: Vec<(String, String)>,
    /// For people.
    pub(crate) told: Vec<(Level, String)>,
    /// Whether people are to be shown less.
    pub(crate) suppressed: bool,
}

/// What all hooks together said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nobody objected.
    #[default]
    Pass,
    /// This hook said yes in the place of a person.
    Yes(String),
    /// This hook said no.
    No { hook: String, reason: String },
    /// This hook wants the run to end.
    End { hook: String, reason: String },
    /// The run was stopped while they were asked.
    Halted(Halted),
}

impl Hooks {
    /// These hooks, asked in their order.
    pub fn new(specs: Vec<HookSpec>) -> Self {
        Self {
            specs,
            gear: OnceLock::new(),
            delegate: OnceLock::new(),
            usual: OnceLock::new(),
        }
    }

    /// Gives them what they need of this process; the first time counts.
    pub fn equip(&self, gear: HookGear) {
        let _ = self.gear.set(gear);
    }

    /// Gives them someone who hands tasks to agents; the first time counts.
    pub fn delegate_to(&self, delegate: Arc<dyn Delegate>) {
        let _ = self.delegate.set(delegate);
    }

    /// Asks agents through `delegate` unless another was named.
    pub(crate) fn usually_delegate_to(&self, delegate: Arc<dyn Delegate>) {
        let _ = self.usual.set(delegate);
    }

    /// What they are.
    pub fn specs(&self) -> &[HookSpec] {
        &self.specs
    }

    /// Whether any is asked about `event`, whatever the occasion.
    pub(crate) fn listen(&self, event: HookEvent) -> bool {
        self.specs
            .iter()
            .any(|spec| spec.events.iter().any(|on| on.event == event))
    }

    /// Asks all that listen to `input`. Each is told what those before it changed; a no ends it.
    pub(crate) async fn fire(&self, mut input: HookInput, asking: &Asking<'_>) -> Fired {
        let mut fired = Fired::default();
        let unequipped = HookGear::default();
        let gear = self.gear.get().unwrap_or(&unequipped);
        let cwd = gear
            .root
            .as_ref()
            .map_or(".".into(), |root| root.to_string_lossy());
        let subjects = input.subjects.clone();
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        let event = input.event;
        let outcome = input.outcome;
        for spec in self
            .specs
            .iter()
            .filter(|spec| spec.listens(event, &subjects, outcome))
        {
            let begun = Instant::now();
            let told = input.json(&cwd);
            let answered = tokio::select! {
                biased;
                halted = stopped(asking.halt) => {
                    fired.note(spec, &input, begun, HookOutcome::Failed, Some("the run was stopped".to_owned()));
                    fired.verdict = Verdict::Halted(halted);
                    return fired;
                }
                answered = ask(spec, (gear, self.delegate.get().or(self.usual.get())), &told, asking) => answered,
            };
            match answered.and_then(|answer| judge(spec, event, answer).map_err(Missed::Failed)) {
                Ok(effect) => fired.take(spec, &mut input, begun, effect),
                Err(missed) => fired.fail(spec, &input, begun, missed),
            }
            match fired.verdict {
                Verdict::No { .. } | Verdict::End { .. } | Verdict::Halted(_) => break,
                Verdict::Pass | Verdict::Yes(_) => {}
            }
        }
        fired
    }
}

async fn stopped(halt: Option<&Halt>) -> Halted {
    match halt {
        Some(halt) => halt.wait().await,
        None => std::future::pending().await,
    }
}

impl Fired {
    fn take(&mut self, spec: &HookSpec, input: &mut HookInput, begun: Instant, effect: Effect) {
        let hook = spec.name.clone();
        if let Some(message) = effect.message.filter(|_| !effect.suppresses) {
            self.told
                .push((Level::Info, format!("hook {hook}: {message}")));
        }
        self.suppressed |= effect.suppresses;
        let (verdict, outcome, detail) = match effect.says {
            Says::No(reason) => (
                Some(Verdict::No {
                    hook,
                    reason: reason.clone(),
                }),
                HookOutcome::Blocked,
                Some(reason),
            ),
            Says::End(reason) => (
                Some(Verdict::End {
                    hook,
                    reason: reason.clone(),
                }),
                HookOutcome::Blocked,
                Some(reason),
            ),
            Says::Yes => (
                Some(Verdict::Yes(hook)),
                HookOutcome::Passed,
                Some("answered yes".to_owned()),
            ),
            Says::Nothing => (None, HookOutcome::Passed, None),
        };
        if outcome == HookOutcome::Blocked {
            self.note(spec, input, begun, outcome, detail);
            self.verdict = verdict.unwrap_or_default();
            return;
        }
        self.verdict = verdict.unwrap_or(std::mem::take(&mut self.verdict));
        let said = effect.words.is_some().then(|| "added context".to_owned());
        self.words
            .extend(effect.words.map(|words| (spec.name.clone(), words)));
        match effect.change {
            None => self.note(spec, input, begun, outcome, detail.or(said)),
            Some(change) => {
                let changed = format!("changed {}", change.key());
                self.note(spec, input, begun, HookOutcome::Rewrote, Some(changed));
                if let (Change::ToolArgs(args), Some(run)) = (&change, self.runs.last_mut()) {
                    run.args = Some(args.clone());
                }
                input.apply(&change);
                self.changes.push(change);
            }
        }
    }

    /// No answer counts as a no where the hook is a guard.
    fn fail(&mut self, spec: &HookSpec, input: &HookInput, begun: Instant, missed: Missed) {
        let (outcome, reason) = match missed {
            Missed::TimedOut(reason) => (HookOutcome::TimedOut, reason),
            Missed::Failed(reason) => (HookOutcome::Failed, reason),
        };
        let reason = cut(&reason, MAX_REASON_CHARS);
        let hook = &spec.name;
        let at = input.event.as_str();
        self.note(spec, input, begun, outcome, Some(reason.clone()));
        let closed = spec.fails(input.event) == OnFailure::Closed && input.event.can_be_blocked();
        let means = match closed {
            true => "it counts as a no (on_failure: closed)",
            false => "things go on without it (on_failure: open)",
        };
        self.told.push((
            Level::Warning,
            format!("hook {hook} failed at {at}: {reason}; {means}"),
        ));
        if closed {
            self.verdict = Verdict::No {
                hook: hook.clone(),
                reason: format!("the hook failed: {reason}"),
            };
        }
    }

    fn note(
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
            .field("gear", &self.gear)
            .finish_non_exhaustive()
    }
}
