//! The loop: it carries keys and events to the state, and does what the state commands.

mod runs;
mod sessions;
mod settings;
mod signals;

use super::ask::{Asked, Person};
use super::complete;
use super::feed::Feed;
use super::state::{Chat, Command};
use super::terminal::{Screen, keys};
use super::transcript::Tone;
use super::view::{Colours, View};
use crate::cli::approvals::answerer;
use crate::cli::args::{ChatArgs, Common};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::memory::background;
use crate::cli::open::{Needs, of_session, open_agent, session_id};
use crate::cli::print::{errln, outln};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use runs::{Begin, Finished};
use sessions::{info, load};
use signals::{Signalled, Signals};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead::agent::{Agent, Answer, Background, Crew, Inbox, Pinned, Session};
use stead::core::{Allowance, SessionId, Set};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a run may take to wind up once the person has left.
const FAREWELL: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(100);
/// The exit code of an interface that was left while a run went on, or by a signal.
const INTERRUPTED: u8 = 130;
const SESSIONS_SHOWN: usize = 20;

/// Whether and how the interface is being left.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    No,
    Since { since: Instant, code: u8 },
}

pub(super) struct App<'a> {
    common: Common,
    args: ChatArgs,
    env: &'a Env,
    agent: Arc<Agent>,
    /// The session, while no run has it.
    session: Option<Session>,
    id: SessionId,
    chat: Chat,
    /// Events on their way to the screen.
    feed: Arc<Feed>,
    runs: JoinSet<Finished>,
    started: Instant,
    cancel: CancellationToken,
    lookups: JoinSet<(String, Vec<String>)>,
    person: Arc<Person>,
    asks: mpsc::Receiver<Asked>,
    reply: Option<oneshot::Sender<Answer>>,
    leaving: Leaving,
    /// Looks through what was said, beside the conversation.
    memory: Option<Background>,
    /// What the next run changes of how the session goes on.
    set: Vec<Set>,
    /// Those who work for the session, also while a run has it.
    crew: Arc<Crew>,
    /// Tells when one of them is done.
    ends: watch::Receiver<u64>,
}

impl<'a> App<'a> {
    /// Opens agent and session. The earlier conversation of the session, if there is one, is shown.
    pub(super) async fn open(
        common: &Common,
        env: &'a Env,
        args: ChatArgs,
    ) -> Result<Self, CliError> {
        let common = &of_session(common.clone(), env).await?;
        let agent = open_agent(common, env, Needs::Model).await?;
        let id = session_id(args.session.as_deref())?;
        let session = load(&agent, &id).await?;
        let (person, asks) = Person::new(answerer(common, env, None));
        let crew = session.crew().clone();
        let inbox = Inbox::new(agent.workspace().config().queue.clone());
        let mut app = Self {
            chat: Chat::new(info(&agent, &session), Arc::new(inbox)),
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
            person: Arc::new(person),
            asks,
            reply: None,
            leaving: Leaving::No,
            memory: None,
            set: Vec::new(),
            ends: crew.ends(),
            crew,
        };
        app.remember_beside();
        app.sit(session).await;
        if app.chat.items().is_empty() {
            app.chat.note(
                Tone::Info,
                "Say what to do. /help lists commands and keys, @path attaches a file.",
            );
        }
        Ok(app)
    }

    /// Begins to work on memory beside the conversation, if there is anything to do for it.
    fn remember_beside(&mut self) {
        let wanted = background::is_wanted(self.env) && self.agent.flushes();
        self.memory = wanted.then(|| self.agent.background(self.agent.owner().clone()));
    }

    /// Runs until the person leaves.
    pub(super) async fn run(mut self) -> Result<ExitCode, CliError> {
        let mut signals = Signals::watch()?;
        let colours = if self.env.get("NO_COLOR").is_none() {
            Colours::On
        } else {
            Colours::Off
        };
        let mut view = View::new(colours);
        let mut screen = Screen::open()?;
        let mut keys = keys();
        let mut ticker = tokio::time::interval(TICK);
        let code = loop {
            self.chat.tasks = self.crew.working();
            let drawn = screen
                .terminal
                .draw(|frame| view.draw(frame, &mut self.chat))
                .map(|_| ());
            match self.leaving {
                Leaving::Since { since, code }
                    if self.runs.is_empty() || since.elapsed() > FAREWELL =>
                {
                    break code;
                }
                Leaving::Since { .. } => {}
                Leaving::No => drawn?,
            }
            let waiting = !self.runs.is_empty();
            let idle = !waiting && matches!(self.leaving, Leaving::No);
            tokio::select! {
                read = keys.recv(), if !keys.is_closed() => match read {
                    Some(Ok(Event::Resize(..))) => {
                        // A terminal that shrank and grew again has lost what we believe it shows.
                        let _ = screen.terminal.clear();
                    }
                    Some(Ok(event)) => self.on_terminal(event).await,
                    Some(Err(_)) | None => self.leave(INTERRUPTED),
                },
                () = self.feed.filled() => self.take_events(),
                Some(asked) = self.asks.recv(), if self.reply.is_none() => {
                    self.take_events();
                    // Whoever asked may have gone on without an answer.
                    if !asked.reply.is_closed() {
                        self.reply = Some(asked.reply);
                        self.chat.ask(asked.question);
                    }
                }
                Some(content) = self.chat.inbox.next_input(), if idle && !self.chat.inbox.is_empty() => {
                    self.say_queued(content);
                }
                Ok(()) = self.ends.changed(), if idle => self.on_task_end(),
                Some(finished) = self.runs.join_next(), if waiting => self.on_finished(finished).await,
                found = self.lookups.join_next(), if !self.lookups.is_empty() => {
                    // One that was overtaken by another is an error, and of no interest.
                    if let Some(Ok((query, found))) = found {
                        let commands = self.chat.offer_paths(&query, found);
                        self.carry_out(commands).await;
                    }
                }
                _ = ticker.tick(), if waiting => self.chat.tick(self.started.elapsed()),
                signal = signals.next() => match signal {
                    Signalled::Interrupt => {
                        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
                        self.on_terminal(Event::Key(key)).await;
                    }
                    Signalled::Leave => self.leave(INTERRUPTED),
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
            errln!("hooks were not told that the session is left: {error}");
        }
        self.agent.sessions().flush().await;
        // What is not done yet goes on in a process of its own.
        if self.memory.take().is_some() && self.chat.info.turns > 0 {
            background::start(&self.common, self.env, &self.agent);
        }
        if self.chat.info.turns > 0 {
            outln!("session {0} · go on with: stead chat -s {0}", self.id);
        }
        Ok(ExitCode::from(code))
    }

    async fn on_terminal(&mut self, event: Event) {
        let commands = match event {
            Event::Key(key) => self.chat.on_key(key),
            Event::Paste(text) => self.chat.on_paste(&text),
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Resize(..) => {
                Vec::new()
            }
        };
        self.carry_out(commands).await;
    }

    async fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            if let Err(error) = self.obey(command).await {
                self.chat.note(Tone::Bad, error.to_string());
            }
        }
    }

    async fn obey(&mut self, command: Command) -> Result<(), CliError> {
        match command {
            Command::Send(text) => {
                let content = self.agent.session(self.id.clone()).input(&text).await;
                self.chat.attached(&content);
                self.start(Begin::Input(content));
            }
            Command::Tell(text) => self.tell(text).await,
            Command::Resume => self.start(Begin::Resume {
                raise: Allowance::default(),
            }),
            Command::Raise(raise) => self.start(Begin::Resume { raise }),
            Command::Cancel => {
                self.reply = None;
                self.cancel.cancel();
            }
            Command::Answer(answer) => {
                if let Some(reply) = self.reply.take() {
                    // A run that ended in the meantime asks no more.
                    let _ = reply.send(answer);
                }
            }
            Command::Lookup(query) => {
                self.lookups.abort_all();
                let files = self.agent.workspace().files.clone();
                self.lookups.spawn(async move {
                    let found = complete::lookup(&*files, &query).await;
                    (query, found)
                });
            }
            Command::New => {
                let archived = self.archive().await?;
                let fresh = self.agent.session(SessionId::fresh());
                self.sit(fresh).await;
                self.chat
                    .note(Tone::Info, format!("new session {}{archived}", self.id));
            }
            Command::Model(None) => {
                let name = self.agent.model().name().to_owned();
                self.chat.note(
                    Tone::Info,
                    format!("{name} is asked; /model NAME changes it"),
                );
            }
            Command::Model(Some(name)) => self.change_model(name).await?,
            Command::Sessions(None) => self.list_sessions().await?,
            Command::Sessions(Some(id)) => {
                let id = session_id(Some(&id))?;
                let mut session = self.agent.session(id);
                session.load().await?;
                self.sit(session).await;
            }
            Command::Mode(mode) => self.mode(mode).await?,
            Command::Agent(name) => self.choose_agent(name).await?,
            Command::Plan(planning) => self.plan(planning).await?,
            Command::Compact(focus) => self.start(Begin::Compact(focus)),
            Command::Pin(turn) => {
                let newest = self
                    .session
                    .as_ref()
                    .map_or(0, |session| session.rewind_points().len());
                self.pin(turn.unwrap_or(newest), Pinned::Yes).await?;
            }
            Command::Unpin(turn) => self.pin(turn, Pinned::No).await?,
            Command::Rewind(None) => self.list_turns(),
            Command::Rewind(Some(turn)) => self.rewind(turn).await?,
            Command::Quit if self.runs.is_empty() => self.leave(0),
            Command::Quit => self.leave(INTERRUPTED),
        }
        Ok(())
    }

    fn leave(&mut self, code: u8) {
        self.cancel.cancel();
        self.reply = None;
        if let Leaving::No = self.leaving {
            self.leaving = Leaving::Since {
                since: Instant::now(),
                code,
            };
        }
    }

    fn take_events(&mut self) {
        for event in self.feed.take() {
            self.chat.on_event(&event);
        }
        // Whoever asked goes on without an answer: something else was said, or the run is over.
        if self.reply.as_ref().is_some_and(oneshot::Sender::is_closed) {
            self.reply = None;
            self.chat.question = None;
        }
    }
}
