//! The beginning and the end of sessions and runs.

use super::super::ask::Asking;
use super::super::effect::Change;
use super::super::engine::{Fired, Verdict};
use super::super::input::HookInput;
use super::worded;
use crate::begin::Begin;
use crate::driver::Ending;
use crate::halt::Halt;
use crate::live::{Live, Stop};
use crate::session::Missing;
use crate::{AgentError, RunOptions, Session};
use serde_json::{Value, json};
use std::time::Duration;
use stead_core::{Block, Entry, EventKind, HookRun, Level, Notice, Outcome, RunId, Set};
use stead_store::{StoreError, Wait};
use stead_workspace::HookEvent;
use tokio_util::sync::CancellationToken;

/// How long each hook may take once its run was stopped.
const STOPPED_GRACE: Duration = Duration::from_secs(2);

/// What hooks said before anything was on record.
#[derive(Debug, Default)]
pub(crate) struct Submitted {
    runs: Vec<HookRun>,
    words: Vec<(String, String)>,
    told: Vec<(Level, String)>,
}

impl Session {
    /// Asks about a session that is taken up, and about what a person says. An error if it is not
    /// to be taken.
    pub(crate) async fn submit(
        &mut self,
        begin: Begin,
        run: &RunId,
        options: &RunOptions,
    ) -> Result<(Begin, Submitted), AgentError> {
        let mut submitted = Submitted::default();
        self.know_what_binds().await?;
        let limit = Duration::from_secs(self.agent.policy().run_timeout_seconds);
        let halt = Halt::new(options.cancel.clone(), limit, CancellationToken::new());
        if !std::mem::replace(&mut self.taken_up, true)
            && self.agent.hooks.listen(HookEvent::SessionStart)
        {
            let resumes =
                !matches!(begin, Begin::Input(_)) || self.sessions.read(&self.id).await.is_ok();
            let trigger = if resumes { "resume" } else { "new" };
            let input = self.happens(HookEvent::SessionStart, Some(run.clone()));
            let input = input.about([trigger]).with("trigger", trigger.into());
            let fired = self
                .agent
                .hooks
                .fire(input, &self.asking_to(&options.set, &halt))
                .await;
            submitted.take(fired)?;
        }
        let Begin::Input(mut content) = begin else {
            return Ok((begin, submitted));
        };
        if self.agent.hooks.listen(HookEvent::PromptSubmit) {
            let said = said(&content);
            let input = self.happens(HookEvent::PromptSubmit, Some(run.clone()));
            let input = input.about([said.clone()]).with("prompt", said.into());
            let fired = self
                .agent
                .hooks
                .fire(input, &self.asking_to(&options.set, &halt))
                .await;
            for change in submitted.take(fired)? {
                if let Change::Prompt(text) = change {
                    reword(&mut content, text);
                }
            }
        }
        Ok((Begin::Input(content), submitted))
    }

    /// Loads the session if a hook is asked before it is taken up: what binds it binds agents that
    /// hooks ask, too.
    async fn know_what_binds(&mut self) -> Result<(), AgentError> {
        let listens = |event: HookEvent| self.agent.hooks.listen(event);
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
    fn asking_to<'a>(&'a self, set: &[Set], halt: &'a Halt) -> Asking<'a> {
        let asking = self.asking(Some(halt));
        Asking {
            bound: asking.bound.setting(set),
            ..asking
        }
    }

    fn asking<'a>(&'a self, halt: Option<&'a Halt>) -> Asking<'a> {
        let agent = &*self.agent;
        let owner = &self.owner;
        let session = &self.id;
        let budget = agent.budget(owner);
        let bound = self.bound();
        Asking {
            agent,
            owner,
            session,
            bound,
            budget,
            halt,
            at_most: super::NO_LIMIT,
        }
    }

    /// Tells hooks that this process is done with the session, and why. Nothing happens if none
    /// listens, or nothing was run here.
    pub async fn finish(&mut self, why: &str) -> Result<(), AgentError> {
        if !self.taken_up || !self.agent.hooks.listen(HookEvent::SessionEnd) {
            return Ok(());
        }
        let mut writer = match self.take(Wait::No, Missing::Fail).await {
            Ok((writer, _)) => writer,
            Err(AgentError::Store(StoreError::NotFound(_))) => return Ok(()),
            Err(error) => return Err(error),
        };
        let input = self
            .happens(HookEvent::SessionEnd, None)
            .about([why])
            .with("trigger", why.into());
        let fired = self.agent.hooks.fire(input, &self.asking(None)).await;
        let entries: Vec<Entry> = fired.runs.into_iter().map(Entry::Hook).collect();
        if !entries.is_empty() {
            self.write(&mut *writer, entries).await?;
        }
        self.sessions.derive(&self.state, writer.position()).await;
        writer.close().await;
        self.taken_up = false;
        Ok(())
    }
}

/// What was said, without what was attached to it.
fn said(content: &[Block]) -> String {
    let said = content.iter().find_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    said.unwrap_or_default()
}

/// Puts other words in the place of the first.
fn reword(content: &mut Vec<Block>, words: String) {
    let said = content
        .iter_mut()
        .find(|block| matches!(block, Block::Text { .. }));
    match said {
        Some(block) => *block = Block::text(words),
        None => content.insert(0, Block::text(words)),
    }
}

impl Submitted {
    fn take(&mut self, fired: Fired) -> Result<Vec<Change>, AgentError> {
        match fired.verdict {
            Verdict::No { hook, reason } | Verdict::End { hook, reason } => {
                return Err(AgentError::Blocked { hook, reason });
            }
            Verdict::Halted(halted) => return Err(Stop::Halted(halted).into()),
            Verdict::Pass | Verdict::Yes(_) => {}
        }
        self.runs.extend(fired.runs);
        self.words.extend(fired.words);
        self.told.extend(fired.told);
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
            true => std::mem::take(&mut self.words),
            false => Vec::new(),
        };
        let said = words
            .iter()
            .map(|words| Entry::Notice(Notice::new(run.clone(), worded(words))));
        hooks.chain(said).collect()
    }
}

impl Live<'_> {
    /// Drives the run after hooks were asked whether it may begin.
    pub(crate) async fn begin(
        &mut self,
        submitted: Submitted,
        trigger: &str,
    ) -> Result<Ending, Stop> {
        for (level, text) in submitted.told {
            self.tell(EventKind::Notice { level, text });
        }
        self.hooked.waiting.extend(submitted.words);
        if self.hooks_listen(HookEvent::RunStart) {
            let input = self
                .happens(HookEvent::RunStart)
                .about([trigger, "message"])
                .with("trigger", trigger.into());
            let fired = self.ask_hooks(input).await?;
            if let Verdict::No { hook, reason } = fired.verdict {
                return Err(Stop::Hook(format!(
                    "hook {hook} refused to begin: {reason}"
                )));
            }
            self.hooked.waiting.extend(fired.words);
        }
        self.drive().await
    }

    /// Asks about what a person says while the run goes on. None if it is not to be taken, which
    /// people are told.
    pub(crate) async fn submit_steer(
        &mut self,
        mut content: Vec<Block>,
    ) -> Result<Option<Vec<Block>>, Stop> {
        if !self.hooks_listen(HookEvent::PromptSubmit) {
            return Ok(Some(content));
        }
        let said = said(&content);
        let input = self
            .happens(HookEvent::PromptSubmit)
            .about([said.clone()])
            .with("prompt", said.into());
        let fired = self.ask_hooks(input).await?;
        if let Verdict::No { hook, reason } = fired.verdict {
            let text = format!("hook {hook} refused what was said: {reason}");
            self.emit(EventKind::Notice {
                level: Level::Warning,
                text,
            });
            return Ok(None);
        }
        self.hooked.waiting.extend(fired.words);
        for change in fired.changes {
            if let Change::Prompt(text) = change {
                reword(&mut content, text);
            }
        }
        Ok(Some(content))
    }

    /// Tells hooks what people were warned of.
    pub(crate) async fn notify(&mut self) -> Result<(), Stop> {
        for input in self.warned() {
            self.ask_hooks(input).await?;
        }
        Ok(())
    }

    fn warned(&mut self) -> Vec<HookInput> {
        let warnings = std::mem::take(&mut self.hooked.warnings);
        warnings
            .into_iter()
            .map(|text| self.notification("warning", json!(text)))
            .collect()
    }

    fn notification(&self, kind: &str, text: Value) -> HookInput {
        let told = json!({"kind": kind, "text": text});
        self.happens(HookEvent::Notification)
            .about([kind])
            .with("notification", told)
    }

    /// Tells hooks how the run ended, which is on record, or that it waits. Nothing that they do
    /// changes that.
    pub(crate) async fn ended(&mut self, ending: &Ending) {
        let Ending { outcome, reason } = ending;
        let mut inputs = self.warned();
        if *outcome == Outcome::Parked {
            inputs.push(self.notification("permission", json!(reason)));
        } else {
            let input = self
                .happens(HookEvent::RunEnd)
                .about([outcome.as_str(), "message"]);
            let text = self.session.state.final_text();
            let mut input = input
                .with("outcome", outcome.as_str().into())
                .with("reason", json!(reason));
            input = input.with("text", text.into());
            input.outcome = Some(*outcome);
            inputs.push(input);
        }
        inputs.retain(|input| self.session.agent.hooks.listen(input.event));
        for mut input in inputs {
            input.run = Some(self.run.clone());
            let stopped = self.halt.check().is_err();
            let mut asking = self.asking();
            if stopped {
                (asking.halt, asking.at_most) = (None, STOPPED_GRACE);
            }
            let fired = self.session.agent.hooks.fire(input, &asking).await;
            if let Err(Stop::Journal(error)) = self.settle(fired).await {
                let text = format!("what came of a hook was not recorded: {error}");
                self.tell(EventKind::Notice {
                    level: Level::Warning,
                    text,
                });
            }
        }
    }
}
