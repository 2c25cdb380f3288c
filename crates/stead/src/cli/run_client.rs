//! Running one command of a session as its client: sending it, showing the run, asking the person at
//! the terminal, until the run has ended.
//!
//! Effects: all.

use super::approvals::{TerminalQuestions, TypedAnswer, answerer};
use super::args::{GlobalArgs, OutputFormat, RunFlags};
use super::env::ProcessEnv;
use super::error::{CliError, with_hint};
use super::followed_run::{FollowStep, FollowedRun};
use super::print::errln;
use super::render::Renderer;
use super::run::print_waiting_subagents;
use super::signals::Signals;
use std::sync::Arc;
use std::time::Duration;
use stead::agent::{Agent, OpenQuestion};
use stead::core::{
    AnswerCommand, Command, Cursor, Hint, InputStatus, Receipt, RunId, RunOutcome, RunReport,
    SessionId, SpendAmount, Usage,
};
use stead::host::{Host, QueuePolicy, SessionHandle, SessionOptions, SessionSubscription};
use tokio::time::{Instant, sleep_until};

/// The name of the agent in the host of this process.
pub(crate) const AGENT: &str = "workspace";
/// How long the live end of a run is waited for after the journal says that another process has
/// ended it.
const END_GRACE: Duration = Duration::from_secs(2);
/// How long nothing may happen before it is checked whether another process still runs the session.
const QUIET: Duration = Duration::from_secs(2);
/// How long the process that runs the session has to give an input back.
const WITHDRAWAL_PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked what became of a command.
const STATUS_POLL: Duration = Duration::from_millis(20);

/// Runs commands of an agent's sessions, as the flags say.
pub(crate) struct RunClient<'a> {
    pub(crate) common: &'a GlobalArgs,
    pub(crate) env: &'a ProcessEnv,
    pub(crate) agent: &'a Arc<Agent>,
    pub(crate) flags: &'a RunFlags,
    /// The form of the output; `None` prints nothing.
    pub(crate) output: Option<OutputFormat>,
}

/// A session that is open to run a command of it.
pub(crate) struct ClientSession<'a> {
    client: &'a RunClient<'a>,
    host: Arc<Host>,
    pub(crate) handle: SessionHandle,
    events: SessionSubscription,
    questions: TerminalQuestions,
    renderer: Option<Arc<Renderer>>,
    signals: Signals,
}

impl RunClient<'_> {
    /// Sends a command that begins or continues a run, and follows the run to its end.
    pub(crate) async fn run(&self, id: SessionId, command: Command) -> Result<RunReport, CliError> {
        let mut session = self.open(id).await?;
        let resumes = matches!(command, Command::Resume { .. });
        let ran = match session.handle.send(command).await {
            Ok(receipt) => {
                let id = session.id().clone();
                let run = match resumes {
                    true => FollowedRun::of_resumption(id, &receipt),
                    false => FollowedRun::of_input(id, &receipt),
                };
                session.follow(&receipt, run).await
            }
            Err(error) => Err(error.into()),
        };
        session.close(ran).await
    }

    /// Opens a session, and listens to what happens in it from now on.
    pub(crate) async fn open(&self, id: SessionId) -> Result<ClientSession<'_>, CliError> {
        let signals = Signals::watch()?;
        let renderer = self
            .output
            .map(|output| Arc::new(Renderer::new(self.env, output, signals.cancel.clone())));
        let options = SessionOptions {
            queue: QueuePolicy::Leave,
            ..SessionOptions::default()
        };
        let host = Host::new();
        host.add_agent(AGENT, self.agent.clone());
        let address = host.address(AGENT, id).await?;
        let handle = host.open(&address, options).await?;
        let presence = self.flags.approve.presence(self.env);
        let events = handle.subscribe(Cursor::Now, presence).await?;
        Ok(ClientSession {
            client: self,
            host,
            handle,
            events,
            questions: TerminalQuestions::default(),
            renderer,
            signals,
        })
    }

    /// Returns the questions of a parked run.
    async fn open_questions(&self, id: &SessionId) -> Result<Vec<OpenQuestion>, CliError> {
        let mut session = self.agent.session(id.clone());
        session.load().await?;
        Ok(session.open_questions())
    }
}

impl ClientSession<'_> {
    /// Returns the id of the session.
    pub(crate) fn id(&self) -> &SessionId {
        &self.handle.address().session
    }

    /// Returns what became of a command.
    pub(crate) async fn status(&self, receipt: &Receipt) -> Result<Option<InputStatus>, CliError> {
        Ok(self.handle.status(receipt).await?)
    }

    /// Closes the session and shows how its run ended.
    pub(crate) async fn close(
        self,
        ran: Result<RunReport, CliError>,
    ) -> Result<RunReport, CliError> {
        let client = self.client;
        let renderer = self.renderer.clone();
        self.close_idle().await;
        let report = ran?;
        print_waiting_subagents(&report, client.common);
        if let Some(renderer) = renderer {
            if renderer.output_failed() && report.outcome == RunOutcome::Completed {
                let message = "standard output was closed before the end of the run";
                return Err(CliError::Failed(anyhow::Error::msg(message)));
            }
            let open = match report.outcome {
                RunOutcome::Parked => client.open_questions(&report.session).await?,
                RunOutcome::Completed
                | RunOutcome::StepLimit
                | RunOutcome::Budget
                | RunOutcome::TimedOut
                | RunOutcome::Cancelled
                | RunOutcome::Failed => Vec::new(),
            };
            renderer.finish(&report, client.common, &open)?;
        }
        Ok(report)
    }

    /// Closes the session without a run.
    pub(crate) async fn close_idle(self) {
        let Self {
            host,
            handle,
            events,
            ..
        } = self;
        drop(events);
        if let Err(error) = host.finish(handle, "exit").await {
            errln!("the hooks at the end of the session failed: {error}");
        }
    }

    /// Follows the run that a command began, here or in another process, to its end.
    pub(crate) async fn follow(
        &mut self,
        receipt: &Receipt,
        mut run: FollowedRun,
    ) -> Result<RunReport, CliError> {
        if !run.has_begun() {
            self.announce_wait().await?;
        }
        let is_local = receipt.run.is_some();
        let give_up = self.client.flags.wait;
        let give_up = give_up.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let cancel = self.signals.cancel.clone();
        let mut cancel_sent = false;
        let mut gave_up = false;
        let mut recorded: Option<(RunReport, Instant)> = None;
        let mut quiet_since = Instant::now();
        loop {
            let grace_ends = recorded.as_ref().map(|(_, until)| *until);
            let waits = !run.has_begun();
            tokio::select! {
                event = self.events.next() => {
                    quiet_since = Instant::now();
                    for step in run.on_event(&event?) {
                        match step {
                            FollowStep::Show(event) => {
                                let own = &self.handle.address().session;
                                self.questions.on_event(own, &event);
                                if let Some(renderer) = &self.renderer {
                                    renderer.show(&event);
                                }
                            }
                            FollowStep::Recorded(report) => {
                                recorded = Some((report, Instant::now() + END_GRACE));
                            }
                            FollowStep::Ended(report) => return Ok(report),
                        }
                    }
                }
                typed = self.questions.answer() => self.send_answer(typed).await?,
                () = cancel.cancelled(), if !cancel_sent => {
                    cancel_sent = true;
                    if waits && self.withdraw(receipt).await? {
                        return Err(CliError::Interrupted(
                            "cancelled before the input was taken".to_owned(),
                        ));
                    }
                    self.cancel(run.id()).await;
                }
                () = until(give_up), if waits && !gave_up => {
                    gave_up = true;
                    let holder = self.handle.holder().await;
                    let holder = holder.unwrap_or_else(|| "another process".to_owned());
                    let id = self.id();
                    let message = format!("session {id} is in use by {holder}");
                    if self.withdraw(receipt).await? {
                        let message = with_hint(message, Some(Hint::WaitForSession));
                        return Err(CliError::Failed(anyhow::Error::msg(message)));
                    }
                }
                () = until(grace_ends), if !is_local || !self.handle.is_running() => {
                    if let Some((report, _)) = recorded.take() {
                        return Ok(report);
                    }
                }
                () = sleep_until(quiet_since + QUIET), if waits => {
                    quiet_since = Instant::now();
                    match self.status(receipt).await? {
                        Some(InputStatus::Refused { reason }) => {
                            return Err(CliError::Failed(anyhow::Error::msg(reason)));
                        }
                        Some(InputStatus::Recorded { .. } | InputStatus::Done) => {
                            run.begin_unseen(self.newest_run().await?);
                        }
                        Some(InputStatus::Waiting) | None => {}
                    }
                }
                () = sleep_until(quiet_since + QUIET), if !is_local && !waits => {
                    quiet_since = Instant::now();
                    if let Some(report) = self.adopt_abandoned_run(&run).await? {
                        return Ok(report);
                    }
                }
            }
        }
    }

    /// Says that another process runs the session.
    async fn announce_wait(&self) -> Result<(), CliError> {
        let id = self.id();
        if let Some(holder) = self.handle.holder().await {
            errln!("session {id} is in use by {holder}; the input waits there for its turn");
        }
        Ok(())
    }

    async fn send_answer(&self, typed: TypedAnswer) -> Result<(), CliError> {
        let is_own = typed.session == *self.id();
        let answer = AnswerCommand {
            replies: vec![typed.reply],
            by: answerer(self.client.common, self.client.env, None),
            subagent: (!is_own).then_some(typed.session),
            ..AnswerCommand::default()
        };
        self.handle.send(Command::Answer(answer)).await?;
        Ok(())
    }

    /// Cancels the followed run; whichever run is going on if it is not known yet which that is.
    async fn cancel(&self, run: Option<&RunId>) {
        let run = run.cloned();
        let by = answerer(self.client.common, self.client.env, None);
        // A run that has just ended cannot be cancelled; its end is on the way.
        let _ = self.handle.send(Command::Cancel { run, by }).await;
    }

    /// Takes the input back. Returns false if a run has begun with it.
    async fn withdraw(&self, receipt: &Receipt) -> Result<bool, CliError> {
        let inputs = vec![receipt.input_id.clone()];
        self.handle.send(Command::Withdraw { inputs }).await?;
        let until = Instant::now() + WITHDRAWAL_PATIENCE;
        loop {
            match self.status(receipt).await? {
                Some(InputStatus::Refused { .. }) => return Ok(true),
                Some(InputStatus::Recorded { .. } | InputStatus::Done) => return Ok(false),
                // A holder that hangs takes nothing; what it finds later is withdrawn.
                Some(InputStatus::Waiting) | None if Instant::now() > until => return Ok(true),
                Some(InputStatus::Waiting) | None => tokio::time::sleep(STATUS_POLL).await,
            }
        }
    }

    /// Returns the run that the session had last.
    async fn newest_run(&self) -> Result<Option<RunId>, CliError> {
        let id = self.id().clone();
        let mut session = self.client.agent.session(id);
        session.load().await?;
        let state = session.state();
        let run = state.run.as_ref().or(state.last_run.as_ref());
        Ok(run.map(|run| run.id.clone()))
    }

    /// Resumes the followed run if the process that ran it has died. Returns its report if it waits
    /// for a decision, which this process may not have heard of.
    async fn adopt_abandoned_run(
        &mut self,
        followed: &FollowedRun,
    ) -> Result<Option<RunReport>, CliError> {
        if self.handle.holder().await.is_some() {
            return Ok(None);
        }
        let id = self.id();
        let mut session = self.client.agent.session(id.clone());
        session.load().await?;
        let Some(run) = &session.state().run else {
            return Ok(None);
        };
        if followed.id() != Some(&run.id) {
            return Ok(None);
        }
        if session.open_questions().is_empty() {
            let resume = Command::Resume {
                raise: SpendAmount::default(),
                answers: self.client.flags.approve.answers(),
                changes: Vec::new(),
            };
            // Another client may have resumed it first.
            let _ = self
                .handle
                .send_once(resume, &format!("resume {}", run.id))
                .await;
            return Ok(None);
        }
        Ok(Some(RunReport {
            session: id.clone(),
            run: run.id.clone(),
            outcome: RunOutcome::Parked,
            reason: Some("a call waits for a decision".to_owned()),
            text: session.state().final_text(),
            steps: run.steps,
            usage: Usage::default(),
            cost: None,
            value: None,
            waiting: Vec::new(),
        }))
    }
}

/// Waits until a time; forever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
