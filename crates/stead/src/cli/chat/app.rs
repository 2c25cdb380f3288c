//! The main loop: it passes keys and events to the state, and executes the commands of the state.

mod runs;
mod sessions;
mod settings;
mod signals;

use super::approver::{ChatApprover, PendingQuestion};
use super::complete;
use super::event_buffer::EventBuffer;
use super::state::{Chat, ChatCommand};
use super::terminal::{Screen, read_keys};
use super::transcript::Tone;
use super::view::{ChatView, Colours};
use crate::cli::approvals::answerer;
use crate::cli::args::{ChatArgs, GlobalArgs};
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::memory::background;
use crate::cli::open_agent::{open_agent, session_id, with_session_agent};
use crate::cli::passed_over::passed_over;
use crate::cli::print::{errln, outln};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use runs::{ChatRunStart, FinishedRun};
use sessions::{load_session, session_info};
use signals::{ChatSignal, ChatSignals};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead::agent::{Agent, ApprovalAnswer, MemoryWorker, MessageQueue, Pinned, Session, Subagents};
use stead::core::{SessionId, SetEntry, SpendAmount};
use stead::workspace::ModelUse;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The time that a run has to end after the person has left.
const EXIT_GRACE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(100);
/// The exit code of an interface that was left during a run, or by a signal.
const EXIT_CODE_INTERRUPTED: u8 = 130;
const SESSIONS_SHOWN: usize = 20;

/// Whether and how the interface is being left.
#[derive(Debug, Clone, Copy)]
enum ExitState {
    Open,
    Exiting { since: Instant, code: u8 },
}

pub(super) struct App<'a> {
    common: GlobalArgs,
    args: ChatArgs,
    env: &'a ProcessEnv,
    agent: Arc<Agent>,
    /// The session, while no run owns it.
    session: Option<Session>,
    id: SessionId,
    chat: Chat,
    /// The events that the screen has not shown yet.
    feed: Arc<EventBuffer>,
    runs: JoinSet<FinishedRun>,
    started: Instant,
    cancel: CancellationToken,
    lookups: JoinSet<(String, Vec<String>)>,
    approver: Arc<ChatApprover>,
    questions: mpsc::Receiver<PendingQuestion>,
    reply: Option<oneshot::Sender<ApprovalAnswer>>,
    leaving: ExitState,
    /// The background worker that extracts and merges memory.
    memory: Option<MemoryWorker>,
    /// The session settings that the next run changes.
    session_changes: Vec<SetEntry>,
    /// The subagents of the session, also while a run owns it.
    subagents: Arc<Subagents>,
    /// The notification that a subagent has ended.
    task_ends: watch::Receiver<u64>,
}

impl<'a> App<'a> {
    /// Opens the agent and the session, and shows the earlier conversation of the session.
    pub(super) async fn open(
        common: &GlobalArgs,
        env: &'a ProcessEnv,
        args: ChatArgs,
    ) -> Result<Self, CliError> {
        let common = &match common.agent {
            Some(_) => with_session_agent(common.clone(), env).await?,
            None => common.clone(),
        };
        let model_use = match args.session {
            Some(_) => ModelUse::UnlessRecorded,
            None => ModelUse::Required,
        };
        let agent = open_agent(common, env, model_use).await?;
        let id = session_id(args.session.as_deref())?;
        let session = load_session(&agent, &id).await?;
        if session.state().session.is_none() {
            agent.check_model()?;
        }
        let (person, asks) = ChatApprover::new(answerer(common, env, None));
        let crew = session.subagents().clone();
        let inbox = MessageQueue::new(agent.workspace().config().queue.clone());
        let mut app = Self {
            chat: Chat::new(session_info(&agent, &session), Arc::new(inbox)),
            common: common.clone(),
            args,
            env,
            agent,
            session: None,
            id,
            feed: Arc::default(),
            runs: JoinSet::new(),
            started: Instant::now(),
            cancel: CancellationToken::new(),
            lookups: JoinSet::new(),
            approver: Arc::new(person),
            questions: asks,
            reply: None,
            leaving: ExitState::Open,
            memory: None,
            session_changes: Vec::new(),
            task_ends: crew.watch_finished(),
            subagents: crew,
        };
        app.start_memory_worker();
        app.switch_session(session).await;
        if let Some(line) = passed_over(&app.agent) {
            app.chat.note(Tone::Warning, &line);
        }
        if app.chat.items().is_empty() {
            app.chat.note(
                Tone::Info,
                "Say what to do. /help lists commands and keys, @path attaches a file.",
            );
        }
        Ok(app)
    }

    /// Starts the memory worker, if the agent has a memory.
    fn start_memory_worker(&mut self) {
        let wanted = background::is_enabled(self.env) && self.agent.memory().extracts_facts();
        self.memory = wanted.then(|| self.agent.memory().spawn_worker(self.agent.owner().clone()));
    }

    /// Runs until the person leaves.
    pub(super) async fn run(mut self) -> Result<ExitCode, CliError> {
        let mut signals = ChatSignals::watch()?;
        let colours = if self.env.get("NO_COLOR").is_none() {
            Colours::On
        } else {
            Colours::Off
        };
        let mut view = ChatView::new(colours);
        let mut screen = Screen::open()?;
        let mut keys = read_keys();
        let mut ticker = tokio::time::interval(TICK);
        let code = loop {
            self.chat.tasks = self.subagents.running_count();
            let drawn = screen
                .terminal
                .draw(|frame| view.draw(frame, &mut self.chat))
                .map(|_| ());
            match self.leaving {
                ExitState::Exiting { since, code }
                    if self.runs.is_empty() || since.elapsed() > EXIT_GRACE =>
                {
                    break code;
                }
                ExitState::Exiting { .. } => {}
                ExitState::Open => drawn?,
            }
            let waiting = !self.runs.is_empty();
            let idle = !waiting && matches!(self.leaving, ExitState::Open);
            tokio::select! {
                read = keys.recv(), if !keys.is_closed() => match read {
                    Some(Ok(Event::Resize(..))) => {
                        // A terminal that was resized no longer shows what was drawn.
                        let _ = screen.terminal.clear();
                    }
                    Some(Ok(event)) => self.on_terminal_event(event).await,
                    Some(Err(_)) | None => self.begin_exit(EXIT_CODE_INTERRUPTED),
                },
                () = self.feed.filled() => self.drain_events(),
                Some(asked) = self.questions.recv(), if self.reply.is_none() => {
                    self.drain_events();
                    // The run may have continued without an answer.
                    if !asked.reply.is_closed() {
                        self.reply = Some(asked.reply);
                        self.chat.ask(asked.question);
                    }
                }
                Some(content) = self.chat.inbox.next_input(), if idle && !self.chat.inbox.is_empty() => {
                    self.start_queued_run(content.content);
                }
                Ok(()) = self.task_ends.changed(), if idle => self.on_task_end(),
                Some(finished) = self.runs.join_next(), if waiting => self.on_finished(finished).await,
                found = self.lookups.join_next(), if !self.lookups.is_empty() => {
                    // A lookup that a newer one replaced ends with an error, which is ignored.
                    if let Some(Ok((query, found))) = found {
                        let commands = self.chat.offer_paths(&query, found);
                        self.run_commands(commands).await;
                    }
                }
                _ = ticker.tick(), if waiting => self.chat.tick(self.started.elapsed()),
                signal = signals.next() => match signal {
                    ChatSignal::Interrupt => {
                        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
                        self.on_terminal_event(Event::Key(key)).await;
                    }
                    ChatSignal::Leave => self.begin_exit(EXIT_CODE_INTERRUPTED),
                },
            }
        };
        drop(screen);
        if let Some(words) = self.stop_tasks().await {
            errln!("{words}");
        }
        if let Some(session) = &mut self.session
            && let Err(error) = session.finish("exit").await
        {
            errln!("the hooks at the end of the session failed: {error}");
        }
        self.agent.sessions().flush().await;
        // Unfinished memory work continues in a process of its own.
        if self.memory.take().is_some() && self.chat.info.turns > 0 {
            background::start_worker(&self.common, self.env, &self.agent);
        }
        if self.chat.info.turns > 0 {
            outln!("session {0} · resume with: stead chat -s {0}", self.id);
        }
        Ok(ExitCode::from(code))
    }

    async fn on_terminal_event(&mut self, event: Event) {
        let commands = match event {
            Event::Key(key) => self.chat.on_key(key),
            Event::Paste(text) => self.chat.on_paste(&text),
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Resize(..) => {
                Vec::new()
            }
        };
        self.run_commands(commands).await;
    }

    async fn run_commands(&mut self, commands: Vec<ChatCommand>) {
        for command in commands {
            if let Err(error) = self.run_command(command).await {
                self.chat.note(Tone::Error, error.to_string());
            }
        }
    }

    async fn run_command(&mut self, command: ChatCommand) -> Result<(), CliError> {
        match command {
            ChatCommand::Send(text) => {
                let content = self.agent.session(self.id.clone()).input(&text).await;
                self.chat.note_attachments(&content);
                self.start_run(ChatRunStart::Input(content));
            }
            ChatCommand::SendToRun(text) => self.send_to_run(text).await,
            ChatCommand::Resume => self.start_run(ChatRunStart::Resume {
                raise: SpendAmount::default(),
            }),
            ChatCommand::Raise(raise) => self.start_run(ChatRunStart::Resume { raise }),
            ChatCommand::Cancel => {
                self.reply = None;
                self.cancel.cancel();
            }
            ChatCommand::Answer(answer) => {
                if let Some(reply) = self.reply.take() {
                    // A run that has ended meanwhile no longer asks.
                    let _ = reply.send(answer);
                }
            }
            ChatCommand::FindPaths(query) => {
                self.lookups.abort_all();
                let files = self.agent.workspace().files.clone();
                self.lookups.spawn(async move {
                    let found = complete::find_paths(&*files, &query).await;
                    (query, found)
                });
            }
            ChatCommand::New => {
                let archived = self.archive().await?;
                let fresh = self.agent.session(SessionId::fresh());
                self.switch_session(fresh).await;
                self.chat
                    .note(Tone::Info, format!("new session {}{archived}", self.id));
            }
            ChatCommand::Model(None) => {
                let name = self.chat.info.model.clone();
                self.chat.note(
                    Tone::Info,
                    format!("the model is {name}; /model NAME changes it"),
                );
            }
            ChatCommand::Model(Some(name)) => self.change_model(name).await?,
            ChatCommand::Sessions(None) => self.list_sessions().await?,
            ChatCommand::Sessions(Some(id)) => {
                let id = session_id(Some(&id))?;
                let mut session = self.agent.session(id);
                session.load().await?;
                self.switch_session(session).await;
            }
            ChatCommand::Mode(mode) => self.set_mode(mode).await?,
            ChatCommand::Agent(name) => self.set_agent(name).await?,
            ChatCommand::Plan(planning) => self.set_plan_mode(planning).await?,
            ChatCommand::Compact(focus) => self.start_run(ChatRunStart::Compact(focus)),
            ChatCommand::Pin(turn) => {
                let newest = self
                    .session
                    .as_ref()
                    .map_or(0, |session| session.rewind_points().len());
                self.pin(turn.unwrap_or(newest), Pinned::Yes).await?;
            }
            ChatCommand::Unpin(turn) => self.pin(turn, Pinned::No).await?,
            ChatCommand::Rewind(None) => self.list_turns(),
            ChatCommand::Rewind(Some(turn)) => self.rewind(turn).await?,
            ChatCommand::Quit if self.runs.is_empty() => self.begin_exit(0),
            ChatCommand::Quit => self.begin_exit(EXIT_CODE_INTERRUPTED),
        }
        Ok(())
    }

    fn begin_exit(&mut self, code: u8) {
        self.cancel.cancel();
        self.reply = None;
        if let ExitState::Open = self.leaving {
            self.leaving = ExitState::Exiting {
                since: Instant::now(),
                code,
            };
        }
    }

    fn drain_events(&mut self) {
        for event in self.feed.take() {
            self.chat.on_event(&event);
        }
        // The run continues without an answer: another message came, or the run ended.
        if self.reply.as_ref().is_some_and(oneshot::Sender::is_closed) {
            self.reply = None;
            self.chat.question = None;
        }
    }
}
