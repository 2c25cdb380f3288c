//! The start of a run: checks before anything is recorded, then the entries that open the run.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (reads), the journal (writes), hooks.

use super::conversation::Conversation;
use super::journal::RunJournal;
use super::{RunOptions, TurnSetup};
use crate::answer_schema_problem;
use crate::approvals::CallName;
use crate::hooks::{Submission, submit};
use crate::session::RunFiles;
use crate::session::{IfMissing, SessionWriter, with_reminders};
use crate::{AgentError, Session, budget};
use stead_core::{
    Block, Entry, EventKind, JournalLine, Message, Notice, NoticeKind, NoticeLevel, Origin,
    OriginKind, Pin, Pinned, RunCause, RunId, RunOutcome, SetEntry, SpendAmount, UserInput,
};

/// What starts a run.
#[derive(Debug)]
pub enum RunTrigger {
    /// An input.
    Input(Vec<Block>),
    /// The open run is continued.
    Resume {
        /// How much more it may spend.
        raise: SpendAmount,
    },
    /// Background tasks have ended, and the model has not been told yet.
    Wake,
}

/// A run that may begin. Nothing of it is recorded yet.
pub(super) struct PreparedRun {
    trigger: RunTrigger,
    /// The id of the run, unless an open one is continued.
    new_run: RunId,
    setup: TurnSetup,
    /// Whether `setup` is one for plan mode.
    is_planning: bool,
    submission: Submission,
}

/// A run whose first entries are recorded.
pub(super) struct OpenedRun<'a> {
    pub(super) journal: RunJournal<'a>,
    pub(super) conversation: Conversation,
    pub(super) files: RunFiles,
    pub(super) submission: Submission,
    pub(super) cause: RunCause,
}

impl PreparedRun {
    /// The budget that a person adds.
    pub(super) fn raise(&self) -> SpendAmount {
        match self.trigger {
            RunTrigger::Input(_) | RunTrigger::Wake => SpendAmount::default(),
            RunTrigger::Resume { raise } => raise,
        }
    }
}

/// Checks what can be refused before anything is recorded: prices, the workspace's files, the chosen
/// agent, and hooks.
pub(super) async fn prepare(
    session: &mut Session,
    trigger: RunTrigger,
    options: &RunOptions,
) -> Result<PreparedRun, AgentError> {
    let agent = session.agent();
    if agent
        .workspace()
        .config()
        .budget
        .first_money_limit()
        .is_some()
    {
        budget::check_prices(&agent.parts)?;
    }
    let schema = options.output_schema.as_ref();
    if let Some(problem) = schema.and_then(answer_schema_problem) {
        return Err(AgentError::OutputSchema(problem));
    }
    let setup = TurnSetup::compose(session, None).await?;
    let is_planning = session.state().is_planning();
    if !options.settings.is_empty() {
        session.check_settings(&options.settings).await?;
    }
    session.load_grants().await?;
    let new_run = RunId::fresh();
    let (trigger, submission) = match session.agent().hooks.is_empty() {
        true => (trigger, Submission::default()),
        false => submit(session, trigger, &new_run, options).await?,
    };
    Ok(PreparedRun {
        trigger,
        new_run,
        setup,
        is_planning,
        submission,
    })
}

/// Opens the journal, and records settings and the entries that open the run.
pub(super) async fn open<'a>(
    session: &'a mut Session,
    prepared: PreparedRun,
    options: &mut RunOptions,
) -> Result<OpenedRun<'a>, AgentError> {
    let is_input = matches!(prepared.trigger, RunTrigger::Input(_));
    let missing = match is_input {
        true => IfMissing::Create,
        false => IfMissing::Fail,
    };
    let mut writer = SessionWriter::open(session, options.wait, missing).await?;
    let recorded = writer.state().recorded_inputs(&options.inbox_rows);
    if !recorded.is_empty() {
        return Err(AgentError::InputsRecorded(recorded));
    }
    if let Some(queue) = &options.queue {
        // What another process has recorded meanwhile must not reach this run a second time.
        let recorded = writer.state().newest_recorded_inputs().cloned();
        queue.set_recorded(recorded.collect());
    }
    let torn = writer.torn_warning();
    let supersedes = is_input && writer.state().run.is_some();
    let settings = std::mem::take(&mut options.settings);
    let reconciled = match writer.is_new() && settings.is_empty() {
        true => Reconciled::default(),
        false => reconcile(&mut writer, settings).await?,
    };
    writer.session().agent().check_model()?;
    let is_outdated = reconciled.switched || writer.state().is_planning() != prepared.is_planning;
    let setup = match is_outdated {
        true => writer.turn_setup().await?,
        false => prepared.setup,
    };
    let files = writer.files();
    let conversation = Conversation::new(writer.session(), files.clone(), setup);
    let trigger = match prepared.trigger {
        RunTrigger::Input(content) => {
            let name = format!("input-{}.md", prepared.new_run);
            let window = writer.session().window();
            let content = conversation.offload_message(&name, content, window).await;
            RunTrigger::Input(with_reminders(writer.session(), content))
        }
        other @ (RunTrigger::Resume { .. } | RunTrigger::Wake) => other,
    };
    let RunOpening {
        run,
        mut entries,
        cause,
    } = opening_entries(writer.session(), trigger, prepared.new_run)?;
    name_sender(&mut entries, options);
    if options.pin == Pinned::Yes && cause == RunCause::Input {
        let seq = writer.state().seq + entries.len() as u64;
        entries.push(Entry::Pin(Pin { seq, pinned: true }));
    }
    let mut submission = prepared.submission;
    entries.extend(submission.take_entries(&run, &entries));
    let files = RunFiles::new(writer.session(), files, Some(&run));
    writer.set_entry_listener(options.entries.clone());
    writer.record(entries).await?;
    let mut journal = RunJournal::new(writer, run, options.listener.clone());
    let session = journal.session().id().clone();
    let model = journal.session().model().to_owned();
    journal.emit(EventKind::RunStarted {
        session,
        model: model.clone(),
        resumed: cause != RunCause::Input,
    });
    journal.emit_setting_changes(&reconciled.settings);
    if let Some(before) = reconciled.model_before {
        let text = format!("the session ran with {before} before; it runs with {model} now");
        journal.emit(EventKind::Notice {
            level: NoticeLevel::Info,
            text,
        });
    }
    if let Some(configured) = journal.session().agents().unused_model() {
        let text = format!("the session goes on with {model}; the settings name {configured}");
        journal.emit(EventKind::Notice {
            level: NoticeLevel::Info,
            text,
        });
    }
    if let Some(from) = reconciled.chosen_over {
        let to = journal.agent().agents().own_name();
        journal.emit(EventKind::AgentSwitched { from, to, model });
    }
    if supersedes {
        journal.warn("the run before was still open; it is closed, and its open calls are skipped");
    }
    if let Some(torn) = torn {
        journal.warn(torn);
    }
    for text in unsealed_warnings(journal.session()) {
        journal.warn(text);
    }
    Ok(OpenedRun {
        journal,
        conversation,
        files,
        submission,
        cause,
    })
}

/// Returns what the journal of a session allows and the person did not.
fn unsealed_warnings(session: &Session) -> Vec<String> {
    let mode = session.unsealed_mode().map(|mode| {
        format!(
            "the permission mode {mode} of this session was not chosen on this account: it runs in \
             {}; --mode {mode} chooses it",
            session.permission_mode()
        )
    });
    let run = session.state().run.as_ref();
    let foreign = run.into_iter().flat_map(|run| {
        let calls = run.pending.all().into_iter();
        calls.filter(|pending| {
            let name = CallName {
                run: run.id.as_str(),
                id: &pending.call.id,
                tool: &pending.call.name,
            };
            !session.seals().approval_counts(name, &pending.state)
        })
    });
    let asked_again = foreign.map(|pending| {
        format!(
            "the approval of {} in this session was not given on this account: it is asked again",
            pending.call.id
        )
    });
    mode.into_iter().chain(asked_again).collect()
}

/// Adds to the entry of an input who gave it, the rows of the inbox that it is made of, and the schema
/// of its answer.
fn name_sender(entries: &mut [Entry], options: &mut RunOptions) {
    for entry in entries {
        if let Entry::User(input) = entry {
            input.inbox_rows = std::mem::take(&mut options.inbox_rows);
            if input.cause == RunCause::Input {
                input.output_schema = options.output_schema.take();
            }
            if input.cause == RunCause::Input && input.origin.kind == OriginKind::Person {
                input.origin = options.origin.clone();
            }
        }
    }
}

/// What changed in an existing session since it was last used here.
#[derive(Default)]
struct Reconciled {
    /// Whether another agent acts.
    switched: bool,
    /// The agent that a person chose another one over.
    chosen_over: Option<String>,
    /// The settings that were recorded.
    settings: Vec<JournalLine>,
    /// The model before, if another was chosen.
    model_before: Option<String>,
}

/// Brings an existing session up to date with its journal and the settings that a person made.
async fn reconcile(
    writer: &mut SessionWriter<'_>,
    settings: Vec<SetEntry>,
) -> Result<Reconciled, AgentError> {
    let mut switched = writer.switch_to_recorded_agent().await?;
    let model_before = match writer.is_new() {
        true => None,
        false => {
            writer.session().agent().check_model()?;
            writer.record_model().await?
        }
    };
    let recovered = writer.session().subagents().recover_tasks().await;
    recovered.map_err(AgentError::TaskRecords)?;
    let before = writer.session().agents().name_or_default(writer.state());
    let settings = writer.record_settings(settings).await?;
    switched |= writer.switch_to_recorded_agent().await?;
    let after = writer.session().agents().name_or_default(writer.state());
    let chosen = writer.state().runs > 0 && after != before;
    Ok(Reconciled {
        switched,
        chosen_over: chosen.then_some(before),
        settings,
        model_before,
    })
}

/// The message to a model whose answer was cut off by a limit that was raised since.
const CONTINUE_PROMPT: &str =
    "Your last answer was cut off by a limit. Go on exactly where it ended.";

/// The entries with which a run begins or continues.
struct RunOpening {
    run: RunId,
    entries: Vec<Entry>,
    cause: RunCause,
}

/// Returns the entries that open a run with the id `new_run`, or that repair the open run.
fn opening_entries(
    session: &Session,
    trigger: RunTrigger,
    new_run: RunId,
) -> Result<RunOpening, AgentError> {
    let state = session.state();
    let id = || session.id().clone();
    match trigger {
        RunTrigger::Input(content) => {
            let mut entries = state.close(
                RunOutcome::Cancelled,
                "a new input came before this run was done",
            );
            let mut input = UserInput::new(new_run.clone(), content);
            if let Some(spawned) = &state.spawned
                && session.is_delegated()
            {
                input.origin = Origin {
                    kind: OriginKind::Task,
                    by: Some(spawned.by.to_string()),
                    ..Origin::default()
                };
            }
            entries.push(Entry::User(input));
            Ok(RunOpening {
                run: new_run,
                entries,
                cause: RunCause::Input,
            })
        }
        RunTrigger::Resume { raise } => {
            let budget = session.agent().workspace().config().budget;
            if !budget.accepts_raise(raise) {
                return Err(AgentError::NoBudget);
            }
            if let Some(run) = &state.run {
                return match raise.is_zero() {
                    true => Ok(RunOpening {
                        run: run.id.clone(),
                        entries: state.repair(),
                        cause: RunCause::Resume,
                    }),
                    false => Err(AgentError::RunStillOpen(id())),
                };
            }
            if state.is_resumable() {
                return Ok(RunOpening {
                    entries: resuming_entries(session, new_run.clone(), raise),
                    run: new_run,
                    cause: RunCause::Resume,
                });
            }
            // Tasks that have ended since the last answer are a reason to go on.
            match raise.is_zero() && session.has_finished_tasks() {
                true => opening_entries(session, RunTrigger::Wake, new_run),
                false => Err(AgentError::NothingToResume(id())),
            }
        }
        RunTrigger::Wake => {
            if state.run.is_some() {
                return Err(AgentError::RunStillOpen(id()));
            }
            let Some(finished) = session.subagents().finished_since(&state.told) else {
                return Err(AgentError::NoFinishedTasks(id()));
            };
            let notice = finished.into_notice(new_run.clone());
            let input = UserInput::wake(new_run.clone());
            Ok(RunOpening {
                run: new_run,
                entries: vec![Entry::User(input), Entry::Notice(notice)],
                cause: RunCause::Wake,
            })
        }
    }
}

/// Returns the entries that continue a session whose last run was stopped.
fn resuming_entries(session: &Session, run: RunId, raise: SpendAmount) -> Vec<Entry> {
    let before = session.state().last_run.as_ref();
    let mut entries = vec![Entry::User(UserInput {
        output_schema: before.and_then(|run| run.output_schema.clone()),
        ..UserInput::resume(run.clone(), raise)
    })];
    // Providers do not continue an answer without a message after it.
    let last = session.state().turns.last().map(|turn| &*turn.message);
    if matches!(last, Some(Message::Assistant { .. })) {
        entries.push(Entry::Notice(Notice::new(
            run,
            NoticeKind::Continuation,
            CONTINUE_PROMPT,
        )));
    }
    entries
}
