//! Hooks before a run: about a session that this process begins to use, and about the input.
//!
//! Effects: the clock, randomness, the store (writes), the journal (writes), hooks.

use super::super::ask::HookContext;
use super::super::effect::HookChange;
use super::super::engine::{HookResults, HookVerdict};
use super::{HookText, LONGER_THAN_ANY_HOOK, context_entry, session_input};
use crate::run::{RunSignals, RunStop, RunTrigger};
use crate::session::{IfMissing, SessionWriter};
use crate::{AgentError, RunOptions, Session};
use std::time::Duration;
use stead_core::{Block, Entry, HookRun, NoticeLevel, RunId, SetEntry};
use stead_store::{LockWait, StoreError};
use stead_workspace::HookEvent;
use tokio_util::sync::CancellationToken;

/// What hooks said before anything of the run was on record.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    runs: Vec<HookRun>,
    pub(super) context: Vec<HookText>,
    pub(super) notices: Vec<(NoticeLevel, String)>,
}

/// Asks hooks about the session, if this process has not used it yet, and about the input. Returns
/// the trigger, perhaps with another text. An error if a hook refuses the input.
pub(crate) async fn submit(
    session: &mut Session,
    trigger: RunTrigger,
    run: &RunId,
    options: &RunOptions,
) -> Result<(RunTrigger, Submission), AgentError> {
    let mut submission = Submission::default();
    load_permissions(session).await?;
    let limit = Duration::from_secs(session.agent().policy().run_timeout_seconds);
    let signals = RunSignals::new(options.cancel.clone(), limit, CancellationToken::new());
    let announced = session.set_announced(true);
    let listens = |session: &Session, event| session.agent().hooks.has_listener(event);
    if !announced && listens(session, HookEvent::SessionStart) {
        let exists = session.journals().read(session.id()).await.is_ok();
        let kind = match !matches!(trigger, RunTrigger::Input(_)) || exists {
            true => "resume",
            false => "new",
        };
        let input = session_input(session, HookEvent::SessionStart, Some(run.clone()))
            .with_subjects([kind])
            .with_fact("trigger", kind.into());
        let context = context(session, &options.settings, Some(&signals));
        submission.accept(session.agent().hooks.fire(input, &context).await)?;
    }
    let RunTrigger::Input(mut content) = trigger else {
        return Ok((trigger, submission));
    };
    if listens(session, HookEvent::PromptSubmit) {
        let text = first_text(&content);
        let input = session_input(session, HookEvent::PromptSubmit, Some(run.clone()))
            .with_subjects([text.clone()])
            .with_fact("prompt", text.into());
        let context = context(session, &options.settings, Some(&signals));
        let results = session.agent().hooks.fire(input, &context).await;
        for change in submission.accept(results)? {
            if let HookChange::Prompt(text) = change {
                replace_first_text(&mut content, text);
            }
        }
    }
    Ok((RunTrigger::Input(content), submission))
}

impl Session {
    /// Tells memory and hooks that this process is done with the session, and why. Hooks are told
    /// nothing if none listens, or if nothing was run here.
    pub async fn finish(&mut self, reason: &str) -> Result<(), AgentError> {
        // If it is not noted, the session is looked through once it is idle.
        let memory = self.agent().memory();
        let _ = memory.session_ended(self.owner(), self.id()).await;
        if !self.is_announced() || !self.agent().hooks.has_listener(HookEvent::SessionEnd) {
            return Ok(());
        }
        let mut writer = match SessionWriter::open(self, LockWait::No, IfMissing::Fail).await {
            Ok(writer) => writer,
            Err(AgentError::Store(StoreError::NotFound(_))) => return Ok(()),
            Err(error) => return Err(error),
        };
        let session = writer.session();
        let input = session_input(session, HookEvent::SessionEnd, None)
            .with_subjects([reason])
            .with_fact("trigger", reason.into());
        let context = context(session, &[], None);
        let results = session.agent().hooks.fire(input, &context).await;
        let entries: Vec<Entry> = results.runs.into_iter().map(Entry::Hook).collect();
        if !entries.is_empty() {
            writer.record(entries).await?;
        }
        writer.close().await;
        self.set_announced(false);
        Ok(())
    }
}

/// Loads the session if a hook is asked before the run: the session's permissions bind agents that
/// are hooks, too.
async fn load_permissions(session: &mut Session) -> Result<(), AgentError> {
    let hooks = &session.agent().hooks;
    let listens =
        hooks.has_listener(HookEvent::SessionStart) || hooks.has_listener(HookEvent::PromptSubmit);
    if session.is_loaded() || !listens {
        return Ok(());
    }
    match session.load().await {
        Ok(()) | Err(AgentError::Store(StoreError::NotFound(_))) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The context of hooks outside a run, in which `settings` are about to be made.
fn context<'a>(
    session: &'a Session,
    settings: &[SetEntry],
    signals: Option<&'a RunSignals>,
) -> HookContext<'a> {
    HookContext {
        agent: session.agent(),
        owner: session.owner(),
        session: session.id(),
        bounds: session.delegation_bounds().with_settings(settings),
        budget: session.agent().budget(session.owner()),
        signals,
        max_wait: LONGER_THAN_ANY_HOOK,
    }
}

/// Returns the text of an input, without attached files.
pub(super) fn first_text(content: &[Block]) -> String {
    let text = content.iter().find_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    text.unwrap_or_default()
}

/// Replaces the text of an input, without attached files.
pub(super) fn replace_first_text(content: &mut Vec<Block>, text: String) {
    let first = content
        .iter_mut()
        .find(|block| matches!(block, Block::Text { .. }));
    match first {
        Some(block) => *block = Block::text(text),
        None => content.insert(0, Block::text(text)),
    }
}

impl Submission {
    fn accept(&mut self, results: HookResults) -> Result<Vec<HookChange>, AgentError> {
        match results.verdict {
            HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } => {
                return Err(AgentError::InputBlocked { hook, reason });
            }
            HookVerdict::Halted(reason) => return Err(RunStop::Halted(reason).into()),
            HookVerdict::Pass | HookVerdict::Approve(_) => {}
        }
        self.runs.extend(results.runs);
        self.context.extend(results.context);
        self.notices.extend(results.notices);
        Ok(results.changes)
    }

    /// Returns the entries to record with those that open `run`. Texts follow an input; if the run
    /// has none, they wait for the next request.
    pub(crate) fn take_entries(&mut self, run: &RunId, opening: &[Entry]) -> Vec<Entry> {
        let hook = |hook: HookRun| {
            Entry::Hook(HookRun {
                run: Some(run.clone()),
                ..hook
            })
        };
        let hooks = std::mem::take(&mut self.runs).into_iter().map(hook);
        let is_input =
            |entry: &Entry| matches!(entry, Entry::User(input) if !input.content.is_empty());
        let texts = match opening.iter().any(is_input) {
            true => std::mem::take(&mut self.context),
            false => Vec::new(),
        };
        let texts = texts.iter().map(|text| context_entry(run, text));
        hooks.chain(texts).collect()
    }
}
