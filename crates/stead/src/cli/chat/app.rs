//! The main loop of `stead chat`: it passes keys and events to the state, and executes the commands
//! of the state. What they ask of the session is sent to it as a client does.
//!
//! Effects: all.

mod look;
mod person_commands;
mod runs;
mod sessions;
mod settings;
mod signals;

use super::complete;
use super::input_history::InputHistory;
use super::notify::{self, ChatMoment, Focus, Notifier};
use super::state::{Chat, ChatCommand, ChatPhase};
use super::terminal::{KeyReader, Screen};
use super::transcript::Tone;
use super::view::{ChatView, Colours};
use crate::cli::approvals::answerer;
use crate::cli::args::{ApproveMode, ChatArgs, GlobalArgs};
use crate::cli::choose_session::find_session;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::memory::background;
use crate::cli::open_agent::{open_agent, refuse_wider_mode, without_agent_if_session_chooses};
use crate::cli::passed_over::passed_over;
use crate::cli::print::{errln, outln};
use crate::cli::run_client::AGENT;
use crate::cli::sessions_elsewhere::look_for_hidden_sessions;
use crate::cli::trust::UntrustedFolder;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use person_commands::EndedCommand;
use runs::{SendPurpose, SentCommand};
use sessions::{load_session, session_info};
use signals::{ChatSignal, ChatSignals};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead::agent::{Agent, BackgroundTaskPolicy, MemoryWorker, Session};
use stead::core::{
    Block, Command, Cursor, EventId, InputId, Owner, Pinned, Presence, Redactor, RunId, SessionId,
    SetEntry, SpendAmount,
};
use stead::host::{Host, QueuePolicy, SessionHandle, SessionOptions, SessionSubscription};
use stead::vfs::Unlisted;
use stead::workspace::ModelUse;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The time that a run has to end after the person has left.
const EXIT_GRACE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(100);
/// The exit code of an interface that was left during a run, or by a signal.
const EXIT_CODE_INTERRUPTED: u8 = 130;
const SESSIONS_SHOWN: usize = 200;

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
    host: Arc<Host>,
    session: SessionHandle,
    events: SessionSubscription,
    /// The session as its journal says, to be shown.
    view: Session,
    /// The run on the screen, once it is known which one it is.
    run: Option<RunId>,
    chat: Chat,
    /// The commands that wait to be acknowledged.
    sends: JoinSet<SentCommand>,
    /// The inputs that wait for a run, as far as they were typed here.
    waiting_inputs: Vec<InputId>,
    started: Instant,
    lookups: JoinSet<(String, Vec<String>)>,
    leaving: ExitState,
    /// The background worker that extracts and merges memory.
    memory: Option<MemoryWorker>,
    /// The session settings that the next run changes.
    session_changes: Vec<SetEntry>,
    /// Sessions that were left and are being closed.
    closing: JoinSet<()>,
    notifier: Notifier,
    opened: Instant,
    /// Where inputs are kept for later chats.
    history: InputHistory,
    /// Whether a failure to write it was told.
    history_failed: bool,
    /// The commands of the person that run.
    own_commands: JoinSet<EndedCommand>,
    own_command_count: u32,
    own_command_cancel: CancellationToken,
    /// The results of commands of the person, for the next input.
    own_results: Vec<Block>,
    /// Whether the input is to be opened in the person's editor.
    wants_editor: bool,
}

impl<'a> App<'a> {
    /// Opens the agent and the session, and shows the earlier conversation of the session.
    pub(super) async fn open(
        common: &GlobalArgs,
        env: &'a ProcessEnv,
        args: ChatArgs,
    ) -> Result<Self, CliError> {
        let common = &match common.agent {
            Some(_) => without_agent_if_session_chooses(common.clone(), env).await?,
            None => common.clone(),
        };
        let model_use = if args.session.may_continue() {
            ModelUse::RecordedOrConfigured
        } else {
            ModelUse::Required
        };
        let agent = open_agent(common, env, model_use).await?;
        refuse_wider_mode(&agent, args.turn.mode)?;
        let id = args.session.choose(&agent).await?;
        let named = args.session.may_continue().then_some(&id);
        look_for_hidden_sessions(common, env, &agent, named).await?;
        let view = load_session(&agent, id).await?;
        if view.state().session.is_none() {
            agent.check_model()?;
        }
        let ConnectedSession {
            host,
            session,
            events,
        } = connect(&agent, &view, &args).await?;
        let queue = session.queue().clone();
        let secrets = agent.workspace().config().secrets.clone();
        let journal = agent.sessions().locate(view.id());
        let folder = journal.rsplit_once('/').map_or("", |(folder, _)| folder);
        let history = InputHistory::new(env, folder.to_owned(), Redactor::new(secrets));
        let mut app = Self {
            chat: Chat::new(session_info(&agent, &view), queue),
            // Nothing can be asked once the screen is drawn.
            common: GlobalArgs {
                untrusted: UntrustedFolder::Refuse,
                ..common.clone()
            },
            args,
            env,
            agent,
            host,
            session,
            events,
            view,
            run: None,
            sends: JoinSet::new(),
            waiting_inputs: Vec::new(),
            started: Instant::now(),
            lookups: JoinSet::new(),
            leaving: ExitState::Open,
            memory: None,
            session_changes: Vec::new(),
            closing: JoinSet::new(),
            notifier: Notifier::new(env.get(notify::VARIABLE).as_deref()),
            opened: Instant::now(),
            history,
            history_failed: false,
            own_commands: JoinSet::new(),
            own_command_count: 0,
            own_command_cancel: CancellationToken::new(),
            own_results: Vec::new(),
            wants_editor: false,
        };
        for input in app.history.load() {
            app.chat.editor.push_history(&input);
        }
        app.start_memory_worker();
        app.show_session().await;
        app.load_custom_commands().await;
        if app.args.pick {
            app.pick_session().await?;
        }
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
        let wanted = background::is_enabled(self.env)
            && self.agent.memory().extracts_facts()
            && !self.agent.workspace().trust.is_restricted();
        let tenant = &self.agent.owner().tenant;
        self.memory = wanted.then(|| self.agent.memory().spawn_worker(tenant.clone()));
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
        let mut keys = KeyReader::start();
        let mut ticker = tokio::time::interval(TICK);
        let code = loop {
            let queue = self.chat.queue.clone();
            let arrival = queue.arrival();
            tokio::pin!(arrival);
            // Before the queue is drawn, so that no message is missed.
            arrival.as_mut().enable();
            self.chat.tasks = self.session.subagents().running_count();
            self.chat.side = self.agent.side_spending();
            let drawn = screen
                .terminal
                .draw(|frame| view.draw(frame, &mut self.chat))
                .map(|_| ());
            let is_running = matches!(self.chat.phase, ChatPhase::Running(_));
            let moment = match (is_running, &self.chat.question) {
                (false, _) => ChatMoment::Idle,
                (true, None) => ChatMoment::Runs,
                (true, Some(_)) => ChatMoment::Asks,
            };
            if let Some(words) = self.notifier.look(self.opened.elapsed(), moment) {
                screen.notify(words)?;
            }
            match self.leaving {
                ExitState::Exiting { since, code }
                    if !is_running || since.elapsed() > EXIT_GRACE =>
                {
                    break code;
                }
                ExitState::Exiting { .. } => {}
                ExitState::Open => drawn?,
            }
            tokio::select! {
                read = keys.recv(), if !keys.is_closed() => match read {
                    Some(Ok(Event::Resize(..))) => {
                        // A terminal that was resized no longer shows what was drawn.
                        let _ = screen.terminal.clear();
                    }
                    Some(Ok(event)) => self.on_terminal_event(event).await,
                    Some(Err(_)) | None => self.begin_exit(EXIT_CODE_INTERRUPTED),
                },
                event = self.events.next() => self.on_session_event(event?).await,
                () = arrival => {}
                Some(sent) = self.sends.join_next(), if !self.sends.is_empty() => {
                    self.on_sent(sent).await;
                }
                found = self.lookups.join_next(), if !self.lookups.is_empty() => {
                    // A lookup that a newer one replaced ends with an error, which is ignored.
                    if let Some(Ok((query, found))) = found {
                        let commands = self.chat.offer_paths(&query, found);
                        self.run_commands(commands).await;
                    }
                }
                Some(ended) = self.own_commands.join_next(), if !self.own_commands.is_empty() => {
                    if let Ok(ended) = ended {
                        self.on_own_command(ended);
                    }
                }
                _ = ticker.tick(), if is_running => self.chat.tick(self.started.elapsed()),
                signal = signals.next() => match signal {
                    ChatSignal::Interrupt => {
                        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
                        self.on_terminal_event(Event::Key(key)).await;
                    }
                    ChatSignal::Leave => self.begin_exit(EXIT_CODE_INTERRUPTED),
                },
            }
            if std::mem::take(&mut self.wants_editor)
                && let Err(error) = self.edit_input(&mut screen, &keys).await
            {
                self.chat.note(Tone::Error, error.to_string());
            }
        };
        drop(screen);
        self.finish().await;
        Ok(ExitCode::from(code))
    }

    /// Ends what goes on in the background, and says how to return.
    async fn finish(mut self) {
        if let Some(words) = self.stop_tasks().await {
            errln!("{words}");
        }
        // A command that was not acknowledged is not waited for.
        self.sends.shutdown().await;
        drop(self.events);
        let id = self.session.address().session.clone();
        let closing = self.host.finish(self.session, "exit");
        let closed = tokio::time::timeout(EXIT_GRACE, closing).await;
        if let Ok(Err(error)) = closed {
            errln!("the hooks at the end of the session failed: {error}");
        }
        self.agent.sessions().flush().await;
        if self.chat.info.turns == 0 {
            return;
        }
        // Unfinished memory work continues in a process of its own.
        if self.memory.take().is_some() {
            background::start_worker(&self.common, self.env, &self.agent).await;
        }
        outln!("session {id} · resume with: stead chat -s {id}");
    }

    async fn on_terminal_event(&mut self, event: Event) {
        let commands = match event {
            Event::Key(key) => self.chat.on_key(key),
            Event::Paste(text) => self.chat.on_paste(&text),
            Event::FocusGained => {
                self.notifier.focus = Focus::Here;
                Vec::new()
            }
            Event::FocusLost => {
                self.notifier.focus = Focus::Elsewhere;
                Vec::new()
            }
            Event::Mouse(_) | Event::Resize(..) => Vec::new(),
        };
        for input in std::mem::take(&mut self.chat.submitted) {
            self.remember_input(&input);
        }
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
            ChatCommand::Send(text) => self.send_input(text).await,
            ChatCommand::SendToRun(text) => self.send_to_run(text).await,
            ChatCommand::Resume => self.resume(SpendAmount::default()),
            ChatCommand::Raise(raise) => self.resume(raise),
            ChatCommand::Cancel => self.cancel(),
            ChatCommand::Answer { session, reply } => self.answer(session, reply),
            ChatCommand::FindPaths(query) => {
                self.lookups.abort_all();
                let workspace = self.agent.workspace();
                let state = workspace.definition.running_state(&Owner::default());
                let files = Unlisted::new(workspace.files.clone(), state);
                self.lookups.spawn(async move {
                    let found = complete::find_paths(&files, &query).await;
                    (query, found)
                });
            }
            ChatCommand::New => {
                let archived = self.archive().await?;
                let fresh = self.agent.session(SessionId::fresh());
                self.switch_session(fresh).await?;
                let id = self.view.id();
                self.chat
                    .note(Tone::Info, format!("new session {id}{archived}"));
            }
            ChatCommand::Model(None) => {
                let name = self.chat.info.model.clone();
                self.chat.note(
                    Tone::Info,
                    format!("the model is {name}; /model NAME changes it"),
                );
            }
            ChatCommand::Model(Some(name)) => self.change_model(name).await?,
            ChatCommand::Sessions(None) => self.pick_session().await?,
            ChatCommand::Sessions(Some(id)) => {
                let id = find_session(&self.agent, &id).await?;
                let mut session = self.agent.session(id);
                session.load().await?;
                self.switch_session(session).await?;
            }
            ChatCommand::Mode(mode) => self.set_mode(mode).await?,
            ChatCommand::Agent(name) => self.set_agent(name).await?,
            ChatCommand::Plan(planning) => self.set_plan_mode(planning).await?,
            ChatCommand::Compact(focus) => {
                self.started = Instant::now();
                self.send(SendPurpose::Compact, Command::Compact { focus });
            }
            ChatCommand::Pin(turn) => {
                let newest = self.view.rewind_points().len();
                self.pin(turn.unwrap_or(newest), Pinned::Yes).await?;
            }
            ChatCommand::Unpin(turn) => self.pin(turn, Pinned::No).await?,
            ChatCommand::Rewind(None) => self.list_turns(),
            ChatCommand::Rewind(Some(turn)) => self.rewind(turn).await?,
            ChatCommand::Look(what) => self.look(what).await?,
            ChatCommand::Undo(stage) => self.undo_newest(stage).await?,
            ChatCommand::OwnCommand(line) => self.run_own_command(line),
            ChatCommand::StopOwnCommands => self.stop_own_commands(),
            ChatCommand::EditInput => self.wants_editor = true,
            ChatCommand::Quit => match self.chat.phase {
                ChatPhase::Idle => self.begin_exit(0),
                ChatPhase::Running(_) => self.begin_exit(EXIT_CODE_INTERRUPTED),
            },
        }
        Ok(())
    }

    /// Returns the name of the person.
    fn by(&self) -> String {
        answerer(&self.common, self.env, None)
    }

    /// Leaves. A run of this process is cancelled; one of another process goes on.
    fn begin_exit(&mut self, code: u8) {
        self.chat.forget_questions();
        if let ExitState::Open = self.leaving {
            self.leaving = ExitState::Exiting {
                since: Instant::now(),
                code,
            };
            // A run may be about to begin.
            if self.runs_here() || !self.sends.is_empty() {
                self.cancel();
            } else {
                self.chat.phase = ChatPhase::Idle;
            }
        }
    }
}

/// A session that is followed, and the host of this process that it is reached through.
struct ConnectedSession {
    host: Arc<Host>,
    session: SessionHandle,
    events: SessionSubscription,
}

/// Opens the session that `view` shows, and follows it from where `view` ends.
async fn connect(
    agent: &Arc<Agent>,
    view: &Session,
    args: &ChatArgs,
) -> Result<ConnectedSession, CliError> {
    let approve = args.turn.approve;
    let options = SessionOptions {
        // Tasks go on after the run; their end wakes the session.
        background_tasks: BackgroundTaskPolicy::Detach,
        queue: QueuePolicy::HoldIfStopped,
        answers: approve.answers(),
    };
    let host = Host::new();
    host.add_agent(AGENT, agent.clone());
    let address = host.address(AGENT, view.id().clone()).await?;
    let session = host.open(&address, options).await?;
    let cursor = match view.state().seq {
        0 => Cursor::Start,
        seq => Cursor::After(EventId::of_entry(seq)),
    };
    let presence = match approve {
        ApproveMode::Ask => Presence::Answers,
        ApproveMode::All | ApproveMode::None => Presence::Watches,
    };
    let events = session.subscribe(cursor, presence).await?;
    Ok(ConnectedSession {
        host,
        session,
        events,
    })
}
