//! The run that goes on: what begins it, what is said meanwhile, what comes after it.

use super::super::state::Phase;
use super::super::transcript::Tone;
use super::sessions::{info, load};
use super::{App, Leaving};
use crate::cli::args::Approve;
use std::time::Instant;
use stead::agent::{AgentError, Approvals, Background, Leftover, RunOptions, Sent, Session};
use stead::core::{Allowance, Block, Outcome};
use stead::workspace::{DropPolicy, QueueSettings};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// What begins a run.
pub(super) enum Begin {
    Input(Vec<Block>),
    Resume {
        raise: Allowance,
    },
    /// Tasks in the background have ended.
    Wake,
    /// No run: only the context is made smaller.
    Compact(Option<String>),
}

/// A run that has given its session back.
pub(super) struct Finished {
    session: Session,
    report: Result<Done, AgentError>,
}

/// What came to its end.
enum Done {
    Run(Outcome),
    Compacted,
    NothingToCompact,
}

impl App<'_> {
    /// Begins a run with an input, or takes the last one up. The run owns the session until its
    /// end.
    pub(super) fn start(&mut self, begin: Begin) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        self.cancel = CancellationToken::new();
        self.started = Instant::now();
        let approvals = match self.args.turn.approve {
            Approve::All => Approvals::All,
            Approve::None => Approvals::None,
            Approve::Ask => Approvals::Person(self.person.clone()),
        };
        let options = RunOptions {
            listener: self.feed.listener(),
            cancel: self.cancel.clone(),
            approvals,
            wait: self.args.turn.wait(),
            set: std::mem::take(&mut self.set),
            inbox: Some(self.chat.inbox.clone()),
            // They go on while the person does; their end wakes the session.
            leftover: Leftover::Leave,
            ..RunOptions::default()
        };
        self.runs.spawn(async move {
            let report = match begin {
                Begin::Input(content) => session
                    .run(content, options)
                    .await
                    .map(|report| Done::Run(report.outcome)),
                Begin::Resume { raise } => session
                    .resume_with(raise, options)
                    .await
                    .map(|report| Done::Run(report.outcome)),
                Begin::Wake => session
                    .wake(options)
                    .await
                    .map(|report| Done::Run(report.outcome)),
                Begin::Compact(focus) => {
                    session
                        .compact(focus, options)
                        .await
                        .map(|made| match made {
                            Some(_) => Done::Compacted,
                            None => Done::NothingToCompact,
                        })
                }
            };
            Finished { session, report }
        });
    }

    pub(super) async fn on_finished(&mut self, finished: Result<Finished, JoinError>) {
        self.take_events();
        self.memory.iter().for_each(Background::wake);
        let outcome = match finished {
            Ok(Finished { session, report }) => {
                self.session = Some(session);
                match report {
                    Ok(Done::Run(outcome)) => Some(outcome),
                    Ok(Done::Compacted) => Some(Outcome::Completed),
                    Ok(Done::NothingToCompact) => {
                        self.chat
                            .note(Tone::Info, "there is nothing that could be left out");
                        Some(Outcome::Completed)
                    }
                    Err(error) => {
                        self.chat.note(Tone::Bad, error.to_string());
                        None
                    }
                }
            }
            // The session went down with its run; the journal has all of it.
            Err(_) => {
                self.chat
                    .note(Tone::Bad, "the run broke off; /resume goes on");
                if let Ok(session) = load(&self.agent, &self.id).await {
                    self.seat(session).await;
                }
                None
            }
        };
        if let Some(session) = &self.session {
            self.chat.info = info(&self.agent, session);
            self.chat.info.model = session.model().to_owned();
        }
        match self.leaving {
            Leaving::No => {
                self.chat.ended(outcome);
                self.see_news(outcome);
            }
            Leaving::Since { .. } => self.chat.phase = Phase::Idle,
        }
    }

    /// Wakes the session if tasks ended during the run that nobody told it of. Those of a run that
    /// did not complete were stopped with it, which is no news.
    fn see_news(&mut self, outcome: Option<Outcome>) {
        match outcome {
            Some(Outcome::Completed) => self.on_task_end(),
            Some(_) | None => self.ends.mark_unchanged(),
        }
    }

    /// Tells the session of tasks that have ended, unless it hears of them with what waits.
    pub(super) fn on_task_end(&mut self) {
        let has_news = self.session.as_ref().is_some_and(Session::has_news);
        if has_news && self.runs.is_empty() && self.chat.inbox.is_empty() {
            self.chat.wake();
            self.start(Begin::Wake);
        }
    }

    /// Begins a run with what waited.
    pub(super) fn say_queued(&mut self, content: Vec<Block>) {
        self.chat.begin_queued(&content);
        self.start(Begin::Input(content));
    }

    /// Hands a message to the run that goes on, and says what became of it.
    pub(super) async fn tell(&mut self, text: String) {
        let content = self.agent.session(self.id.clone()).input(&text).await;
        let QueueSettings { cap, drop, .. } = self.chat.inbox.settings();
        let full = |what: &str| format!("no more messages may wait than {cap} (queue.cap): {what}");
        match (self.chat.inbox.send(content), drop) {
            (Sent::Waits, _) => {}
            (Sent::InPlaceOfTheOldest, DropPolicy::Summarize) => {
                self.chat
                    .note(Tone::Warning, full("of the oldest, a line is kept"));
            }
            (Sent::InPlaceOfTheOldest, DropPolicy::Old | DropPolicy::New) => {
                self.chat
                    .note(Tone::Warning, full("the oldest was dropped"));
            }
            (Sent::Refused, _) => {
                self.chat
                    .note(Tone::Warning, full("this one was not taken"));
                self.chat.give_back(&text);
            }
        }
    }
}
