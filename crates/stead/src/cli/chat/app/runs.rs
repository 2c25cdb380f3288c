//! Starting runs, sending messages to them, and ending them.

use super::super::state::ChatPhase;
use super::super::transcript::Tone;
use super::sessions::{load_session, session_info};
use super::{App, ExitState};
use crate::cli::args::ApproveMode;
use crate::cli::error::with_hint;
use std::time::Instant;
use stead::agent::{
    AgentError, ApprovalPolicy, BackgroundTaskPolicy, MemoryWorker, RunOptions, SendOutcome,
    Session,
};
use stead::core::{Block, RunOutcome, SpendAmount};
use stead::workspace::{DropPolicy, QueueSettings};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// The start of a run.
pub(super) enum ChatRunStart {
    Input(Vec<Block>),
    Resume {
        raise: SpendAmount,
    },
    /// Background tasks have ended.
    Wake,
    /// The context is compacted, without a run.
    Compact(Option<String>),
}

/// A run that has returned its session.
pub(super) struct FinishedRun {
    session: Session,
    report: Result<FinishedWork, AgentError>,
}

/// The outcome of a run.
enum FinishedWork {
    Run(RunOutcome),
    Compacted,
    NothingToCompact,
}

impl App<'_> {
    /// Starts a run with an input, or resumes the last one. The run owns the session until its end.
    pub(super) fn start_run(&mut self, begin: ChatRunStart) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        self.cancel = CancellationToken::new();
        self.started = Instant::now();
        let approvals = match self.args.turn.approve {
            ApproveMode::All => ApprovalPolicy::ApproveAll,
            ApproveMode::None => ApprovalPolicy::DenyAll,
            ApproveMode::Ask => ApprovalPolicy::Ask(self.approver.clone()),
        };
        let options = RunOptions {
            listener: self.feed.listener(),
            cancel: self.cancel.clone(),
            approvals,
            wait: self.args.turn.wait(),
            settings: std::mem::take(&mut self.session_changes),
            inbox: Some(self.chat.inbox.clone()),
            // They continue after the run; their end wakes the session.
            background_tasks: BackgroundTaskPolicy::Detach,
            ..RunOptions::default()
        };
        self.runs.spawn(async move {
            let report = match begin {
                ChatRunStart::Input(content) => session
                    .run(content, options)
                    .await
                    .map(|report| FinishedWork::Run(report.outcome)),
                ChatRunStart::Resume { raise } => session
                    .resume_with(raise, options)
                    .await
                    .map(|report| FinishedWork::Run(report.outcome)),
                ChatRunStart::Wake => session
                    .wake(options)
                    .await
                    .map(|report| FinishedWork::Run(report.outcome)),
                ChatRunStart::Compact(focus) => {
                    session
                        .compact(focus, options)
                        .await
                        .map(|made| match made {
                            Some(_) => FinishedWork::Compacted,
                            None => FinishedWork::NothingToCompact,
                        })
                }
            };
            FinishedRun { session, report }
        });
    }

    pub(super) async fn on_finished(&mut self, finished: Result<FinishedRun, JoinError>) {
        self.drain_events();
        self.memory.iter().for_each(MemoryWorker::wake);
        let outcome = match finished {
            Ok(FinishedRun { session, report }) => {
                self.session = Some(session);
                match report {
                    Ok(FinishedWork::Run(outcome)) => Some(outcome),
                    Ok(FinishedWork::Compacted) => Some(RunOutcome::Completed),
                    Ok(FinishedWork::NothingToCompact) => {
                        self.chat.note(Tone::Info, "there is nothing to compact");
                        Some(RunOutcome::Completed)
                    }
                    Err(error) => {
                        let message = with_hint(&error, error.hint());
                        self.chat.note(Tone::Error, message);
                        None
                    }
                }
            }
            // The session was lost with its run; the journal has all of it.
            Err(_) => {
                self.chat
                    .note(Tone::Error, "the run was interrupted; /resume resumes it");
                if let Ok(session) = load_session(&self.agent, &self.id).await {
                    self.attach_session(session).await;
                }
                None
            }
        };
        if let Some(session) = &self.session {
            self.chat.info = session_info(&self.agent, session);
            self.chat.info.model = session.model().to_owned();
        }
        match self.leaving {
            ExitState::Open => {
                self.chat.on_run_ended(outcome);
                self.wake_for_finished_tasks(outcome);
            }
            ExitState::Exiting { .. } => self.chat.phase = ChatPhase::Idle,
        }
    }

    /// Wakes the session if tasks ended during the run without a report to it. Tasks of a run that
    /// did not complete were stopped with it, so they are not reported.
    fn wake_for_finished_tasks(&mut self, outcome: Option<RunOutcome>) {
        match outcome {
            Some(RunOutcome::Completed) => self.on_task_end(),
            Some(_) | None => self.task_ends.mark_unchanged(),
        }
    }

    /// Wakes the session for tasks that have ended, unless a queued message starts a run anyway.
    pub(super) fn on_task_end(&mut self) {
        let has_news = self
            .session
            .as_ref()
            .is_some_and(Session::has_finished_tasks);
        if has_news && self.runs.is_empty() && self.chat.inbox.is_empty() {
            self.chat.show_wake_run();
            self.start_run(ChatRunStart::Wake);
        }
    }

    /// Starts a run with the queued messages.
    pub(super) fn start_queued_run(&mut self, content: Vec<Block>) {
        self.chat.show_queued_run(&content);
        self.start_run(ChatRunStart::Input(content));
    }

    /// Sends a message to the active run, and shows how it is handled.
    pub(super) async fn send_to_run(&mut self, text: String) {
        let content = self.agent.session(self.id.clone()).input(&text).await;
        let QueueSettings { cap, drop, .. } = self.chat.inbox.settings();
        let full = |what: &str| format!("the queue is full (queue.cap: {cap}): {what}");
        match (self.chat.inbox.send(content), drop) {
            (SendOutcome::Queued, _) => {}
            (SendOutcome::ReplacedOldest, DropPolicy::Summarize) => {
                self.chat.note(
                    Tone::Warning,
                    full("the oldest was dropped, and one line of it is kept"),
                );
            }
            (SendOutcome::ReplacedOldest, DropPolicy::Old | DropPolicy::New) => {
                self.chat
                    .note(Tone::Warning, full("the oldest was dropped"));
            }
            (SendOutcome::Refused, _) => {
                self.chat.note(Tone::Warning, full("this one was refused"));
                self.chat.restore_input(&text);
            }
        }
    }
}
