//! The loop: it carries keys and events to the state, and does what the state commands.

mod settings;

use super::ask::{Asked, Person};
use super::complete;
use super::inbox::Inbox;
use super::state::{Chat, Command, Info, Phase};
use super::terminal::{Screen, keys};
use super::transcript::Tone;
use super::view::{Colours, View};
use crate::cli::approvals::answerer;
use crate::cli::args::{Approve, ChatArgs, Common};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::memory::background;
use crate::cli::open::{Needs, open_agent, session_id};
use crate::cli::print::{errln, outln};
use crate::cli::render::tokens;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead::agent::{Agent, AgentError, Answer, Approvals, ArchiveTag, Background, Pinned, RunOptions, Session};
use stead::core::{Allowance, Block, Outcome, PlanStage, SessionId, Set};
use stead::store::StoreError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// How long a run may take to wind up once the person has left.
const FAREWELL: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(100);
/// The exit code of an interface that was left while a run went on, or by a signal.
const INTERRUPTED: u8 = 130;
const SESSIONS_SHOWN: usize = 20;

/// What begins a run.
enum Begin {
    Input(Vec<Block>),
    Resume {
        raise: Allowance,
    },
    /// No run: only the context is made smaller.
    Compact(Option<String>),
}

/// A run that has given its session back.
struct Finished {
    session: Session,
    report: Result<Done, AgentError>,
}

/// What came to its end.
enum Done {
    Run(Outcome),
    Compacted,
    NothingToCompact,
}

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
    inbox: Arc<Inbox>,
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
}

impl<'a> App<'a> {
    /// Opens agent and session. The earlier conversation of the session, if there is one, is shown.
    pub(super) async fn open(common: &Common, env: &'a Env, args: ChatArgs) -> Result<Self, CliError> {
        let agent = open_agent(common, env, Needs::Model).await?;
        let id = session_id(args.session.as_deref())?;
        let session = load(&agent, &id).await?;
        let (person, asks) = Person::new(answerer(common, env, None));
        let mut app = Self {
            chat: Chat::new(info(&agent, &session)),
            common: common.clone(),
            args,
            env,
            agent,
            session: None,
            id,
            inbox: Arc::default(),
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
        };
        app.remember_beside();
        app.sit(session);
        if app.chat.items().is_empty() {
            app.chat.note(Tone::Info, "Say what to do. /help lists commands and keys, @path attaches a file.");
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
        let colours = if self.env.get("NO_COLOR").is_none() { Colours::On } else { Colours::Off };
        let mut view = View::new(colours);
        let mut screen = Screen::open()?;
        let mut keys = keys();
        let mut ticker = tokio::time::interval(TICK);
        let code = loop {
            let drawn = screen.terminal.draw(|frame| view.draw(frame, &mut self.chat)).map(|_| ());
            match self.leaving {
                Leaving::Since { since, code } if self.runs.is_empty() || since.elapsed() > FAREWELL => break code,
                Leaving::Since { .. } => {}
                Leaving::No => drawn?,
            }
            let waiting = !self.runs.is_empty();
            tokio::select! {
                read = keys.recv(), if !keys.is_closed() => match read {
                    Some(Ok(Event::Resize(..))) => {
                        // A terminal that shrank and grew again has lost what we believe it shows.
                        let _ = screen.terminal.clear();
                    }
                    Some(Ok(event)) => self.on_terminal(event).await,
                    Some(Err(_)) | None => self.leave(INTERRUPTED),
                },
                () = self.inbox.filled() => self.take_events(),
                Some(asked) = self.asks.recv() => {
                    self.take_events();
                    self.reply = Some(asked.reply);
                    self.chat.ask(asked.question);
                }
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
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Resize(..) => Vec::new(),
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
            Command::Resume => self.start(Begin::Resume { raise: Allowance::default() }),
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
                self.sit(fresh);
                self.chat.note(Tone::Info, format!("new session {}{archived}", self.id));
            }
            Command::Model(None) => {
                let name = self.agent.model().name().to_owned();
                self.chat.note(Tone::Info, format!("{name} is asked; /model NAME changes it"));
            }
            Command::Model(Some(name)) => self.change_model(name).await?,
            Command::Sessions(None) => self.list_sessions().await?,
            Command::Sessions(Some(id)) => {
                let id = session_id(Some(&id))?;
                let mut session = self.agent.session(id);
                session.load().await?;
                self.sit(session);
            }
            Command::Mode(mode) => self.mode(mode).await?,
            Command::Plan(planning) => self.plan(planning).await?,
            Command::Compact(focus) => self.start(Begin::Compact(focus)),
            Command::Pin(turn) => {
                let newest = self.session.as_ref().map_or(0, |session| session.rewind_points().len());
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

    /// Archives the conversation, where the layout keeps conversations, and says where.
    async fn archive(&mut self) -> Result<String, CliError> {
        if self.chat.info.turns == 0 {
            return Ok(String::new());
        }
        let archived = self.agent.archive(self.agent.owner(), &self.id, ArchiveTag::Manual).await?;
        Ok(archived.map_or(String::new(), |path| format!("; the last one is archived in {path}")))
    }

    fn leave(&mut self, code: u8) {
        self.cancel.cancel();
        self.reply = None;
        if let Leaving::No = self.leaving {
            self.leaving = Leaving::Since { since: Instant::now(), code };
        }
    }

    /// Begins a run with an input, or takes the last one up. The run owns the session until its end.
    fn start(&mut self, begin: Begin) {
        let Some(mut session) = self.session.take() else { return };
        self.cancel = CancellationToken::new();
        self.started = Instant::now();
        let approvals = match self.args.turn.approve {
            Approve::All => Approvals::All,
            Approve::None => Approvals::None,
            Approve::Ask => Approvals::Person(self.person.clone()),
        };
        let options = RunOptions {
            listener: self.inbox.listener(),
            cancel: self.cancel.clone(),
            approvals,
            wait: self.args.turn.wait(),
            set: std::mem::take(&mut self.set),
            ..RunOptions::default()
        };
        self.runs.spawn(async move {
            let report = match begin {
                Begin::Input(content) => session.run(content, options).await.map(|report| Done::Run(report.outcome)),
                Begin::Resume { raise } => {
                    session.resume_with(raise, options).await.map(|report| Done::Run(report.outcome))
                }
                Begin::Compact(focus) => session.compact(focus, options).await.map(|made| match made {
                    Some(_) => Done::Compacted,
                    None => Done::NothingToCompact,
                }),
            };
            Finished { session, report }
        });
    }

    fn take_events(&mut self) {
        for event in self.inbox.take() {
            self.chat.on_event(&event);
        }
    }

    async fn on_finished(&mut self, finished: Result<Finished, JoinError>) {
        self.take_events();
        self.reply = None;
        self.memory.iter().for_each(Background::wake);
        let outcome = match finished {
            Ok(Finished { session, report }) => {
                self.session = Some(session);
                match report {
                    Ok(Done::Run(outcome)) => Some(outcome),
                    Ok(Done::Compacted) => Some(Outcome::Completed),
                    Ok(Done::NothingToCompact) => {
                        self.chat.note(Tone::Info, "there is nothing that could be left out");
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
                self.chat.note(Tone::Bad, "the run broke off; /resume goes on");
                self.session = load(&self.agent, &self.id).await.ok();
                None
            }
        };
        if let Some(session) = &self.session {
            self.chat.info = info(&self.agent, session);
        }
        match self.leaving {
            Leaving::No => {
                let commands = self.chat.ended(outcome);
                Box::pin(self.carry_out(commands)).await;
            }
            Leaving::Since { .. } => self.chat.phase = Phase::Idle,
        }
    }

    /// Makes a session the one that is talked to, and shows it.
    fn sit(&mut self, session: Session) {
        self.id = session.id().clone();
        self.set = self.args.turn.set();
        self.chat.info = info(&self.agent, &session);
        self.chat.info.mode = self.args.turn.mode.unwrap_or(self.chat.info.mode);
        self.chat.show_session(session.state());
        if session.state().is_resumable() {
            self.chat.note(Tone::Warning, "the last run did not come to its end; /resume goes on");
        }
        self.session = Some(session);
    }

    async fn change_model(&mut self, name: String) -> Result<(), CliError> {
        let common = Common { model: Some(name), ..self.common.clone() };
        let agent = open_agent(&common, self.env, Needs::Model).await?;
        let session = load(&agent, &self.id).await?;
        self.agent.sessions().flush().await;
        (self.common, self.agent) = (common, agent);
        self.remember_beside();
        self.chat.info = info(&self.agent, &session);
        self.session = Some(session);
        self.chat.note(Tone::Info, format!("{} is asked from now on", self.chat.info.model));
        Ok(())
    }

    async fn list_sessions(&mut self) -> Result<(), CliError> {
        let mut list = self.agent.sessions().list().await?;
        list.retain(|summary| summary.parent.is_none());
        let mut rows: Vec<String> = Vec::new();
        for summary in list.iter().take(SESSIONS_SHOWN) {
            let here = if summary.id == self.id { "*" } else { " " };
            let numbers = tokens(&summary.usage, summary.cost);
            rows.push(format!("{here} {}  {}\n    {} runs · {numbers}", summary.id, summary.title, summary.runs));
        }
        match list.len().checked_sub(SESSIONS_SHOWN) {
            None if list.is_empty() => rows.push("no sessions yet".to_owned()),
            None | Some(0) => {}
            Some(more) => rows.push(format!("and {more} more; `stead sessions list` shows all")),
        }
        self.chat.note(Tone::Info, rows.join("\n"));
        Ok(())
    }

    fn list_turns(&mut self) {
        let points = self.session.iter().flat_map(Session::rewind_points);
        let rows: Vec<String> = points.map(|point| format!("{:>3}  {}", point.turn, first_line(&point.text))).collect();
        let text = match rows.is_empty() {
            true => "nothing was said yet".to_owned(),
            false => format!("{}\n/rewind N continues before turn N; nothing is erased", rows.join("\n")),
        };
        self.chat.note(Tone::Info, text);
    }

    async fn pin(&mut self, turn: usize, pinned: Pinned) -> Result<(), CliError> {
        let Some(session) = &mut self.session else { return Ok(()) };
        session.pin(turn, pinned, self.args.turn.wait()).await?;
        let words = match pinned {
            Pinned::Yes => "is pinned: it is shown to the model word for word whatever else is left out",
            Pinned::No => "is no longer pinned",
        };
        self.chat.note(Tone::Info, format!("the input of turn {turn} {words}"));
        Ok(())
    }

    async fn rewind(&mut self, turn: usize) -> Result<(), CliError> {
        let Some(mut session) = self.session.take() else { return Ok(()) };
        let rewound = session.rewind(turn, self.args.turn.wait()).await;
        match rewound {
            Ok(point) => {
                self.sit(session);
                self.chat.note(Tone::Info, format!("continues before turn {turn}: {}", first_line(&point.text)));
                Ok(())
            }
            Err(error) => {
                self.session = Some(session);
                Err(error.into())
            }
        }
    }
}

/// A session with what its journal says; a new one if there is no journal yet.
async fn load(agent: &Arc<Agent>, id: &SessionId) -> Result<Session, AgentError> {
    let mut session = agent.session(id.clone());
    match session.load().await {
        Ok(()) | Err(AgentError::Store(StoreError::NotFound(_))) => Ok(session),
        Err(error) => Err(error),
    }
}

/// How full the context is, once something was said.
fn context_of(session: &Session) -> Option<(u64, Option<u64>)> {
    let used = session.state().used_tokens(0);
    (used > 0).then(|| (used, session.window()))
}

fn info(agent: &Arc<Agent>, session: &Session) -> Info {
    let state = session.state();
    Info {
        session: session.id().to_string(),
        model: agent.model().name().to_owned(),
        journal: agent.sessions().locate(session.id()),
        turns: session.rewind_points().len(),
        usage: state.usage,
        cost: state.cost,
        context: context_of(session),
        mode: session.permission_mode(),
        planning: state.plan.as_ref().and_then(PlanStage::making).map(str::to_owned),
        todos: state.todos.clone(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(60).collect()
}

enum Signalled {
    /// As Ctrl-C, from another process.
    Interrupt,
    /// Leave, after the run has wound up.
    Leave,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn watch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.interrupt.recv() => Signalled::Interrupt,
            _ = self.terminate.recv() => Signalled::Leave,
            _ = self.hangup.recv() => Signalled::Leave,
        }
    }
}
