//! The interface of `stead chat` as a state machine: keys and events go in, commands come out.
//!
//! Effects: the clock.

mod entries;
mod events;
mod keys;
mod picker;
mod question;
mod search;

pub(super) use entries::VIA_CHAT;
pub(super) use picker::{PickRow, SessionPicker};
pub(super) use question::{AnswerStage, Answering};

use super::complete::{self, CompletionKind, CompletionPopup};
use super::custom_commands::CustomCommand;
use super::editor::Editor;
use super::pasted::PastedTexts;
use super::transcript::{self, CallStage, ChatItem, ItemBody, Tone};
use crossterm::event::KeyCode;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use stead::agent::{MessageQueue, SideTotal};
use stead::core::{
    ApprovalQuestion, ApprovalReply, Block, PermissionMode, RunOutcome, SessionId, SessionState,
    SpendAmount, Todo, ToolCall, Usage, Usd,
};
use stead::tools::builtin::EXECUTE;
use stead::workspace::QueueMode;

/// A command to the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatCommand {
    /// Start a run with this input.
    Send(String),
    /// Send this message to the active run.
    SendToRun(String),
    /// Resume the run that was interrupted or parked.
    Resume,
    /// Resume the run that used up its budget, with this much more to spend.
    Raise(SpendAmount),
    /// Stop the run.
    Cancel,
    /// Answer a question of a session.
    Answer {
        session: SessionId,
        reply: ApprovalReply,
    },
    /// Find paths that start with this text, and pass them to [`Chat::offer_paths`].
    FindPaths(String),
    /// Start a new session.
    New,
    /// Use another model, or show the current one.
    Model(Option<String>),
    /// Switch to a session, or list the sessions.
    Sessions(Option<String>),
    /// Rewind to the point before a turn, or list the turns.
    Rewind(Option<usize>),
    /// Change the permission mode, or show it.
    Mode(Option<PermissionMode>),
    /// Switch to another agent, or list the agents.
    Agent(Option<String>),
    /// Turn plan mode on or off.
    Plan(PlanModeSwitch),
    /// Compact the context, with this focus for the summary.
    Compact(Option<String>),
    /// Pin the input of a turn, or the newest.
    Pin(Option<usize>),
    /// Unpin the input of a turn.
    Unpin(usize),
    /// Run a command of the person, whose output goes with the next input.
    OwnCommand(String),
    /// Stop the commands of the person.
    StopOwnCommands,
    /// Open the input in the person's editor.
    EditInput,
    /// Show something.
    Look(Looked),
    /// Undo the newest run of the session, or show what that would do.
    Undo(UndoStage),
    /// Leave; an active run is cancelled.
    Quit,
}

/// What can be shown in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    Usage,
    Memory,
    Skills,
    Approvals,
    Servers,
    /// What the runs of the session have changed in files.
    Changes,
}

/// Whether an undo is shown or carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UndoStage {
    Shown,
    Confirmed,
}

/// Whether plan mode is turned on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanModeSwitch {
    On,
    Off,
}

/// The facts about the session that the footer and /status show.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SessionInfo {
    pub(super) session: SessionId,
    /// The name of the current agent.
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) journal: String,
    pub(super) turns: usize,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
    /// The number of tokens in the context, and the size of the window.
    pub(super) context: Option<(u64, Option<u64>)>,
    pub(super) mode: PermissionMode,
    /// The file of the current plan, in plan mode.
    pub(super) planning: Option<String>,
    pub(super) todos: Vec<Todo>,
}

/// Whether a run is active.
#[derive(Debug, PartialEq)]
pub(super) enum ChatPhase {
    Idle,
    Running(RunningState),
}

#[derive(Debug, PartialEq)]
pub(super) struct RunningState {
    pub(super) elapsed: Duration,
    pub(super) step: u32,
    pub(super) activity: Activity,
}

/// The current activity of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Activity {
    Waiting,
    Summarising,
    Thinking,
    Answering,
    /// Writing a call of this tool.
    Calling(String),
    Tools,
    Asking,
    Cancelling,
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Chat {
    items: Vec<ChatItem>,
    next_id: u64,
    /// The first item of the current step: a retry removes its text.
    step_start: usize,
    pub(super) editor: Editor,
    /// The long texts in the input.
    pub(super) pasted: PastedTexts,
    /// Inputs that are not kept for later chats yet.
    pub(super) submitted: Vec<String>,
    /// The search of earlier inputs, while it is typed.
    pub(super) search: Option<search::HistorySearch>,
    /// The list of sessions, while it is open.
    pub(super) picker: Option<SessionPicker>,
    /// The commands that the workspace defines.
    pub(super) custom: Vec<CustomCommand>,
    /// Whether Ctrl-X was pressed, which begins a longer key.
    ctrl_x: bool,
    /// The number of commands of the person that run.
    pub(super) own_commands: usize,
    pub(super) popup: Option<CompletionPopup>,
    /// Whether Tab was pressed before the paths were found.
    tab_pending: bool,
    pub(super) phase: ChatPhase,
    /// The messages sent while a run is active.
    pub(super) queue: Arc<MessageQueue>,
    /// The texts of inputs that are on the screen and not in the journal yet.
    pub(super) unrecorded: VecDeque<String>,
    /// The questions that are asked after the one on the screen.
    pub(super) next_questions: VecDeque<ApprovalQuestion>,
    /// The calls of the newest answer of the model, by id.
    step_calls: Vec<ToolCall>,
    /// The number of background tasks.
    pub(super) tasks: usize,
    /// What calls beside the answers of sessions cost so far.
    pub(super) side: SideTotal,
    /// The agents that a session can switch to.
    pub(super) agents: Vec<String>,
    /// The newest sessions, to be completed.
    pub(super) session_ids: Vec<String>,
    /// The subagents of the run, by session.
    children: BTreeMap<SessionId, String>,
    pub(super) question: Option<ApprovalQuestion>,
    /// The answer to it, as far as it is given.
    pub(super) answering: Answering,
    pub(super) info: SessionInfo,
    /// The number of rows between the end of the transcript and the end of the visible part.
    pub(super) scroll: usize,
    /// The number of rows of a page when it was last drawn.
    pub(super) page: usize,
    /// The call that Ctrl-O opens, if one was selected; otherwise the newest.
    pub(super) selected: Option<u64>,
}

impl Chat {
    pub(super) fn new(info: SessionInfo, queue: Arc<MessageQueue>) -> Self {
        Self {
            items: Vec::new(),
            next_id: 0,
            step_start: 0,
            editor: Editor::default(),
            pasted: PastedTexts::default(),
            submitted: Vec::new(),
            search: None,
            picker: None,
            custom: Vec::new(),
            ctrl_x: false,
            own_commands: 0,
            popup: None,
            tab_pending: false,
            phase: ChatPhase::Idle,
            queue,
            unrecorded: VecDeque::new(),
            next_questions: VecDeque::new(),
            step_calls: Vec::new(),
            tasks: 0,
            side: SideTotal::default(),
            agents: Vec::new(),
            session_ids: Vec::new(),
            children: BTreeMap::new(),
            question: None,
            answering: Answering::begin(),
            info,
            scroll: 0,
            page: 1,
            selected: None,
        }
    }

    pub(super) fn items(&self) -> &[ChatItem] {
        &self.items
    }

    /// Shows the conversation of another session.
    pub(super) fn show_session(&mut self, state: &SessionState) {
        self.items.clear();
        self.selected = None;
        self.scroll = 0;
        for body in transcript::session_items(state) {
            if let ItemBody::User { text, .. } = &body
                && !self.editor.has_in_history(text)
            {
                self.editor.push_history(text);
            }
            self.push(body);
        }
    }

    pub(super) fn note(&mut self, tone: Tone, text: impl Into<String>) {
        self.push(ItemBody::Note(tone, text.into()));
    }

    /// Shows which files are attached to the newest input.
    pub(super) fn note_attachments(&mut self, content: &[Block]) {
        let newest = self
            .items
            .iter_mut()
            .rev()
            .find(|item| matches!(item.body, ItemBody::User { .. }));
        if let Some(item) = newest {
            item.body = transcript::user_item(content);
            item.revision += 1;
        }
    }

    /// Sets the elapsed time of the run.
    pub(super) fn tick(&mut self, so_far: Duration) {
        if let ChatPhase::Running(run) = &mut self.phase {
            run.elapsed = so_far;
        }
    }

    /// Asks questions, one after another.
    pub(super) fn ask_all(&mut self, questions: &[ApprovalQuestion]) {
        self.next_questions.extend(questions.iter().cloned());
        self.ask_next();
    }

    /// Shows the next question, if none is on the screen.
    pub(super) fn ask_next(&mut self) {
        if self.question.is_none()
            && let Some(question) = self.next_questions.pop_front()
        {
            self.ask(question);
        }
    }

    /// Forgets a question that was answered elsewhere, or is no longer asked.
    pub(super) fn forget_question(&mut self, session: &SessionId, id: &str) {
        let is_meant =
            |question: &ApprovalQuestion| question.session == *session && question.id == id;
        self.next_questions.retain(|question| !is_meant(question));
        if self.question.as_ref().is_some_and(is_meant) {
            self.question = None;
            self.ask_next();
        }
    }

    /// Forgets all questions.
    pub(super) fn forget_questions(&mut self) {
        self.next_questions.clear();
        self.question = None;
    }

    /// Shows the question about a call.
    pub(super) fn ask(&mut self, question: ApprovalQuestion) {
        let stage = CallStage::AwaitingApproval {
            rule: question.rule.clone(),
            preview: question.terms.preview.clone(),
        };
        let who = self.asker(&question);
        let item = match &who {
            Some(who) => events::child_call(who, &question.id),
            None => question.id.clone(),
        };
        self.update_call(&item, &question.tool, &question.args, stage);
        if let Some(who) = who {
            self.name_caller(&item, &who);
        }
        self.set_activity(Activity::Asking);
        self.question = Some(question);
        self.answering = Answering::begin();
        self.scroll = 0;
    }

    /// Returns the subagent that asks a question, if it is one.
    pub(super) fn asker(&self, question: &ApprovalQuestion) -> Option<String> {
        self.children.get(&question.session).cloned()
    }

    /// Ends the run. Returns whether queued messages go back into the input, for the person to
    /// decide: they are sent next only if the run completed, or if they were meant to interrupt it.
    pub(super) fn on_run_ended(&mut self, outcome: Option<RunOutcome>) -> bool {
        self.phase = ChatPhase::Idle;
        self.forget_questions();
        let goes_on =
            outcome == Some(RunOutcome::Completed) || self.queue.mode() == QueueMode::Interrupt;
        !goes_on && !self.queue.is_empty()
    }

    /// Moves queued messages back into the input, before its current text.
    pub(super) fn restore_queued_input(&mut self) {
        let texts: Vec<String> = self
            .queue
            .queued()
            .iter()
            .map(|waiting| typed_text(&waiting.content))
            .collect();
        if !texts.is_empty() {
            self.restore_input(&texts.join("\n"));
        }
    }

    /// Moves a text back into the input, before its current text.
    pub(super) fn restore_input(&mut self, text: &str) {
        let all = format!("{}\n{}", self.pasted.shown(text), self.editor.text());
        self.editor.clear();
        self.editor.insert(all.trim_end());
    }

    /// Returns the input with the long texts that labels stand for.
    pub(super) fn whole_input(&self) -> String {
        self.pasted.expanded(self.editor.text())
    }

    /// Puts another text into the input.
    pub(super) fn replace_input(&mut self, text: &str) {
        let shown = self.pasted.shown(text);
        self.editor.clear();
        self.editor.insert(&shown);
    }

    /// Shows a command of the person.
    pub(super) fn show_own_command(&mut self, id: &str, args: &Value, stage: CallStage) {
        self.update_call(id, EXECUTE.name, args, stage);
        self.name_caller(id, "you");
    }

    /// Shows or changes how messages during a run are handled.
    fn set_queue_mode(&mut self, mode: Option<QueueMode>) -> Vec<ChatCommand> {
        let Some(mode) = mode else {
            let all = QueueMode::ALL.map(QueueMode::as_str).join(", ");
            let text = format!(
                "queue {}, {} waiting; /queue MODE changes it: {all}",
                self.queue.mode(),
                self.queue.len()
            );
            return self.show_info(text);
        };
        self.queue.set_mode(mode);
        self.show_info(format!("queue {mode}: {}", describe_queue_mode(mode)))
    }

    /// Offers the paths that were found. They are ignored if the input has changed meanwhile.
    pub(super) fn offer_paths(&mut self, query: &str, found: Vec<String>) -> Vec<ChatCommand> {
        if let Some((range, CompletionKind::Path(wanted))) =
            complete::completion_target(self.editor.text(), self.editor.cursor())
            && wanted == query
            && self.popup.as_ref().is_none_or(|popup| !popup.cycling)
        {
            self.popup = CompletionPopup::new(range.start, complete::path_completions(found));
            if std::mem::take(&mut self.tab_pending) {
                return self.on_popup_key(KeyCode::Tab).unwrap_or_default();
            }
        }
        Vec::new()
    }

    fn show_info(&mut self, text: String) -> Vec<ChatCommand> {
        self.note(Tone::Info, text);
        Vec::new()
    }

    fn submit_text(&mut self, text: String) -> Vec<ChatCommand> {
        self.push(ItemBody::User {
            text: text.clone(),
            attached: Vec::new(),
        });
        self.unrecorded.push_back(text.clone());
        self.enter_running();
        vec![ChatCommand::Send(text)]
    }

    pub(super) fn enter_running(&mut self) {
        self.phase = ChatPhase::Running(RunningState {
            elapsed: Duration::ZERO,
            step: 0,
            activity: Activity::Waiting,
        });
    }

    fn status(&self) -> String {
        let SessionInfo {
            session,
            agent,
            model,
            journal,
            turns,
            usage,
            cost,
            mode,
            planning,
            ..
        } = &self.info;
        let queue = self.queue.mode();
        let numbers = crate::cli::render::tokens_line(usage, *cost);
        let cache = self
            .cache_hits()
            .map_or(String::new(), |percent| format!(" · {percent}% from cache"));
        let context = self
            .context()
            .map_or(String::new(), |context| format!("context  {context}\n"));
        let plan = planning.as_ref().map_or(String::new(), |file| {
            format!("plan     being made in {file}\n")
        });
        format!(
            "session  {session}\nagent    {agent}\nmodel    {model}\nmode     {mode}\nqueue    {queue}\n{plan}turns    {turns}\n{context}tokens   {numbers}{cache}\njournal  {journal}"
        )
    }

    /// Returns how full the context is: `12,400 of 200,000 (6%)`.
    pub(super) fn context(&self) -> Option<String> {
        let (used, window) = self.info.context?;
        Some(match window {
            Some(window) => format!("{used}/{window} ({}%)", used * 100 / window.max(1)),
            None => format!("{used}"),
        })
    }

    /// Returns the percentage of prompt tokens that came from the provider's cache, if any did.
    pub(super) fn cache_hits(&self) -> Option<u64> {
        let usage = &self.info.usage;
        (usage.cache_read_tokens > 0)
            .then(|| usage.cache_read_tokens * 100 / usage.input_tokens.max(1))
    }

    fn push(&mut self, body: ItemBody) {
        self.next_id += 1;
        self.items.push(ChatItem {
            id: self.next_id,
            revision: 0,
            body,
        });
    }
}

/// Returns the part of a message that the person typed.
pub(super) fn typed_text(content: &[Block]) -> String {
    match transcript::user_item(content) {
        ItemBody::User { text, .. } => text,
        ItemBody::Answer(_) | ItemBody::Call(_) | ItemBody::Note(..) => String::new(),
    }
}

/// Returns how a message is handled in this mode.
fn describe_queue_mode(mode: QueueMode) -> &'static str {
    match mode {
        QueueMode::Collect => "messages during a run become one input after it",
        QueueMode::Followup => "messages during a run become inputs after it, one by one",
        QueueMode::Steer => "a message goes into the next step; calls not started are skipped",
        QueueMode::SteerBacklog => {
            "a message goes into the next step, and is an input after the run as well"
        }
        QueueMode::Interrupt => "a message ends the run and is the next input",
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
