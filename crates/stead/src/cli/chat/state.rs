//! The interface as a pure machine: keys and events go in, commands come out.

use super::complete::{self, Popup, Wanted};
use super::editor::{Editor, Move};
use super::slash::{self, Typed};
use super::transcript::{self, Body, Call, Details, Item, Stage, Tone};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use stead::agent::{Answer, Question};
use stead::core::{Allowance, Block, Event, EventKind, Level, Outcome, SessionState, Usage, Usd};

/// What the application is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Begin a run with this input.
    Send(String),
    /// Take up the run that was interrupted or parked.
    Resume,
    /// Take up the run that used up its budget, with so much more to spend.
    Raise(Allowance),
    /// Stop the run.
    Cancel,
    /// Answer the open question.
    Answer(Answer),
    /// Find paths that begin like this, and hand them to [`Chat::offer_paths`].
    Lookup(String),
    /// Begin a new session.
    New,
    /// Ask another model, or say which one is asked.
    Model(Option<String>),
    /// Go to a session, or list them.
    Sessions(Option<String>),
    /// Continue before a turn, or list them.
    Rewind(Option<usize>),
    /// Leave; a run that goes on is cancelled.
    Quit,
}

/// The session in numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Info {
    pub(super) session: String,
    pub(super) model: String,
    pub(super) journal: String,
    pub(super) turns: usize,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
    /// Tokens of the context, and how many fit.
    pub(super) context: Option<(u64, Option<u64>)>,
}

/// Whether a run goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Phase {
    Idle,
    Running(Running),
}

#[derive(Debug, PartialEq)]
pub(super) struct Running {
    pub(super) elapsed: Duration,
    pub(super) step: u32,
    pub(super) doing: Doing,
}

/// What a run is busy with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Doing {
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

/// All that the screen shows.
#[derive(Debug)]
pub(super) struct Chat {
    items: Vec<Item>,
    next_id: u64,
    /// Where the items of the current step begin: a retry takes its text back.
    step_start: usize,
    pub(super) editor: Editor,
    pub(super) popup: Option<Popup>,
    /// Tab was pressed before the paths to complete with were found.
    tab_waits: bool,
    pub(super) phase: Phase,
    pub(super) queued: VecDeque<String>,
    pub(super) question: Option<Question>,
    pub(super) info: Info,
    /// Rows between the end of the transcript and the end of what is shown.
    pub(super) scroll: usize,
    /// Rows of a page, as last drawn.
    pub(super) page: usize,
    /// The call that Ctrl-O is about, if one was chosen; otherwise the newest.
    pub(super) chosen: Option<u64>,
}

impl Chat {
    pub(super) fn new(info: Info) -> Self {
        Self {
            items: Vec::new(),
            next_id: 0,
            step_start: 0,
            editor: Editor::default(),
            popup: None,
            tab_waits: false,
            phase: Phase::Idle,
            queued: VecDeque::new(),
            question: None,
            info,
            scroll: 0,
            page: 1,
            chosen: None,
        }
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Shows another conversation.
    pub(super) fn show_session(&mut self, state: &SessionState) {
        self.items.clear();
        self.chosen = None;
        self.scroll = 0;
        for body in transcript::of_session(state) {
            if let Body::User { text, .. } = &body {
                self.editor.remember(text);
            }
            self.push(body);
        }
    }

    pub(super) fn note(&mut self, tone: Tone, text: impl Into<String>) {
        self.push(Body::Note(tone, text.into()));
    }

    /// Says what the files attached to the newest input are.
    pub(super) fn attached(&mut self, content: &[Block]) {
        let newest = self.items.iter_mut().rev().find(|item| matches!(item.body, Body::User { .. }));
        if let Some(item) = newest {
            item.body = transcript::user(content);
            item.revision += 1;
        }
    }

    /// A run has gone on for this long.
    pub(super) fn tick(&mut self, so_far: Duration) {
        if let Phase::Running(run) = &mut self.phase {
            run.elapsed = so_far;
        }
    }

    /// A call waits for the person.
    pub(super) fn ask(&mut self, question: Question) {
        let stage = Stage::Asked(question.rule.clone());
        self.call(&question.id, &question.tool, &question.args, stage);
        self.doing(Doing::Asking);
        self.question = Some(question);
        self.scroll = 0;
    }

    /// The session is back from its run. What was queued is sent if all went well; otherwise it goes
    /// back into the input, for the person to judge.
    pub(super) fn ended(&mut self, outcome: Option<Outcome>) -> Vec<Command> {
        self.phase = Phase::Idle;
        self.question = None;
        match outcome {
            Some(Outcome::Completed) => match self.queued.pop_front() {
                Some(next) => self.begin(next),
                None => Vec::new(),
            },
            Some(
                Outcome::StepLimit
                | Outcome::Budget
                | Outcome::TimedOut
                | Outcome::Cancelled
                | Outcome::Failed
                | Outcome::Parked,
            )
            | None => {
                let mut parts: Vec<String> = self.queued.drain(..).collect();
                if !parts.is_empty() {
                    parts.push(self.editor.text().to_owned());
                    self.editor.clear();
                    self.editor.insert(parts.join("\n").trim_end());
                }
                Vec::new()
            }
        }
    }

    /// Paths that were looked up. They come late: they count only if they are still what is wanted.
    pub(super) fn offer_paths(&mut self, query: &str, found: Vec<String>) -> Vec<Command> {
        if let Some((range, Wanted::Path(wanted))) = complete::target(self.editor.text(), self.editor.cursor())
            && wanted == query
            && self.popup.as_ref().is_none_or(|popup| !popup.cycling)
        {
            self.popup = Popup::new(range.start, complete::paths(found));
            if std::mem::take(&mut self.tab_waits) {
                return self.on_popup_key(KeyCode::Tab).unwrap_or_default();
            }
        }
        Vec::new()
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { model, resumed, .. } => {
                self.info.model.clone_from(model);
                if !resumed {
                    self.info.turns += 1;
                }
            }
            EventKind::ModelStarted { step } => {
                self.step_start = self.items.len();
                if let Phase::Running(run) = &mut self.phase {
                    run.step = *step;
                }
                self.doing(Doing::Waiting);
            }
            EventKind::TextDelta { text } => {
                self.doing(Doing::Answering);
                self.say(text);
            }
            EventKind::ThinkingDelta { .. } => self.doing(Doing::Thinking),
            EventKind::ToolCallStarted { name, .. } => self.doing(Doing::Calling(name.clone())),
            EventKind::ToolArgsDelta { .. } => {}
            EventKind::ModelRetry { attempt, wait_ms, reason } => {
                let step_start = self.step_start;
                let mut at = 0;
                self.items.retain(|item| {
                    at += 1;
                    at <= step_start || !matches!(item.body, Body::Answer(_))
                });
                let seconds = *wait_ms as f64 / 1000.0;
                self.note(Tone::Warning, format!("attempt {attempt} in {seconds:.1} s: {reason}"));
                self.doing(Doing::Waiting);
            }
            EventKind::ModelEnded { usage, cost, context_tokens, context_window, .. } => {
                self.info.context = context_tokens.map(|used| (used, *context_window));
                self.info.usage += *usage;
                self.info.cost = match (self.info.cost, cost) {
                    (Some(mut total), Some(part)) => {
                        total += *part;
                        Some(total)
                    }
                    (Some(_) | None, None) | (None, Some(_)) => None,
                };
            }
            EventKind::ToolStarted { id, name, args } => {
                self.doing(Doing::Tools);
                self.call(id, name, args, Stage::Running(String::new()));
            }
            EventKind::ToolOutputDelta { id, text } => self.output(id, text),
            EventKind::ToolEnded { id, name, status, preview, ms } => {
                let ended = Stage::Ended { status: *status, preview: preview.clone(), ms: Some(*ms) };
                self.call(id, name, &Value::Null, ended);
            }
            EventKind::Ask { id, name, args, rule } => self.call(id, name, args, Stage::Asked(rule.clone())),
            EventKind::Decision { id, .. } => {
                if self.question.as_ref().is_some_and(|question| question.id == *id) {
                    self.question = None;
                }
            }
            EventKind::Notice { level, text } => {
                let tone = match level {
                    Level::Info => Tone::Info,
                    Level::Warning => Tone::Warning,
                };
                self.note(tone, text.clone());
            }
            EventKind::CompactionStarted { .. } => self.doing(Doing::Summarising),
            EventKind::Compacted { dropped, before_tokens, after_tokens, fallback, .. } => {
                let why = fallback.as_ref().map_or(String::new(), |why| format!("; no summary by a model: {why}"));
                let text = format!("context {before_tokens} → {after_tokens} tokens: {}{why}", dropped.in_words());
                self.note(Tone::Info, text);
                self.info.context = Some((*after_tokens, self.info.context.and_then(|(_, window)| window)));
            }
            EventKind::RunEnded { outcome, reason, .. } => self.run_ended(*outcome, reason.as_deref()),
        }
    }

    fn run_ended(&mut self, outcome: Outcome, reason: Option<&str>) {
        let reason = reason.unwrap_or("");
        match outcome {
            Outcome::Completed if reason.is_empty() => {}
            Outcome::Completed => self.note(Tone::Info, reason),
            Outcome::Cancelled => self.note(Tone::Warning, "cancelled; /resume goes on"),
            Outcome::Parked => self.note(Tone::Warning, format!("parked: {reason}; /resume asks again")),
            Outcome::StepLimit | Outcome::TimedOut => {
                self.note(Tone::Warning, format!("{}: {reason}; /resume goes on", outcome.as_str()));
            }
            Outcome::Budget => self.note(Tone::Warning, format!("budget: {reason}; /raise AMOUNT goes on")),
            Outcome::Failed => self.note(Tone::Bad, format!("failed: {reason}; /resume tries again")),
        }
    }

    pub(super) fn on_paste(&mut self, text: &str) -> Vec<Command> {
        self.editor.insert(text);
        self.suggest()
    }

    pub(super) fn on_key(&mut self, key: KeyEvent) -> Vec<Command> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.tab_waits = false;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        if let (KeyCode::Char('c'), true) = (key.code, ctrl) {
            return self.interrupt();
        }
        if let (KeyCode::Char('d'), true, true) = (key.code, ctrl, self.editor.is_empty()) {
            return vec![Command::Quit];
        }
        if let (KeyCode::Char(letter), false, false) = (key.code, ctrl, alt)
            && let Some(answer) = self.answer_for(letter)
        {
            self.question = None;
            return vec![Command::Answer(answer)];
        }
        if let Some(commands) = self.on_popup_key(key.code) {
            return commands;
        }
        match key.code {
            KeyCode::Enter if alt || shift || ctrl => self.editor.insert("\n"),
            KeyCode::Char('j') if ctrl => self.editor.insert("\n"),
            KeyCode::Enter => return self.submit(),
            KeyCode::Tab => {
                self.tab_waits = true;
                return Vec::new();
            }
            KeyCode::PageUp => self.scroll += self.page,
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::Char('o') if ctrl => self.toggle_details(),
            KeyCode::Up if ctrl => self.choose(Step::Back),
            KeyCode::Down if ctrl => self.choose(Step::On),
            KeyCode::Up => self.editor.up(),
            KeyCode::Down => self.editor.down(),
            KeyCode::Left if ctrl || alt => self.editor.go(Move::WordLeft),
            KeyCode::Right if ctrl || alt => self.editor.go(Move::WordRight),
            KeyCode::Char('b') if alt => self.editor.go(Move::WordLeft),
            KeyCode::Char('f') if alt => self.editor.go(Move::WordRight),
            KeyCode::Left => self.editor.go(Move::Left),
            KeyCode::Right => self.editor.go(Move::Right),
            KeyCode::Home => self.editor.go(Move::LineStart),
            KeyCode::End => self.editor.go(Move::LineEnd),
            KeyCode::Char('a') if ctrl => self.editor.go(Move::LineStart),
            KeyCode::Char('e') if ctrl => self.editor.go(Move::LineEnd),
            KeyCode::Char('u') if ctrl => self.editor.kill(Move::LineStart),
            KeyCode::Char('k') if ctrl => self.editor.kill(Move::LineEnd),
            KeyCode::Char('w') if ctrl => self.editor.kill(Move::WordLeft),
            KeyCode::Backspace if ctrl || alt => self.editor.kill(Move::WordLeft),
            KeyCode::Char('h') if ctrl => self.editor.kill(Move::Left),
            KeyCode::Backspace => self.editor.kill(Move::Left),
            KeyCode::Char('d') if ctrl => self.editor.kill(Move::Right),
            KeyCode::Delete => self.editor.kill(Move::Right),
            KeyCode::Char(letter) if !ctrl && !alt => self.editor.insert(letter.encode_utf8(&mut [0; 4])),
            _ => return Vec::new(),
        }
        self.suggest()
    }

    /// Ctrl-C: stops the run, then leaves; with nothing to stop it clears the input, then leaves.
    fn interrupt(&mut self) -> Vec<Command> {
        self.popup = None;
        match &mut self.phase {
            Phase::Running(run) if run.doing == Doing::Cancelling => vec![Command::Quit],
            Phase::Running(run) => {
                run.doing = Doing::Cancelling;
                self.question = None;
                vec![Command::Cancel]
            }
            Phase::Idle if self.editor.is_empty() => vec![Command::Quit],
            Phase::Idle => {
                self.editor.clear();
                Vec::new()
            }
        }
    }

    /// One key answers a question, but never a key that goes on with something half written.
    fn answer_for(&self, letter: char) -> Option<Answer> {
        self.question.as_ref().filter(|_| self.editor.is_empty())?;
        match letter.to_ascii_lowercase() {
            'y' => Some(Answer::Yes),
            'n' => Some(Answer::No),
            'l' => Some(Answer::Later),
            _ => None,
        }
    }

    /// Keys that the list of choices takes; none if it is closed or does not want this one.
    fn on_popup_key(&mut self, code: KeyCode) -> Option<Vec<Command>> {
        let popup = self.popup.as_mut()?;
        match code {
            KeyCode::Esc => self.popup = None,
            KeyCode::Up => popup.previous(),
            KeyCode::Down => popup.next(),
            KeyCode::Tab | KeyCode::BackTab if popup.choices.len() > 1 => {
                match (popup.cycling, code) {
                    (false, _) => {}
                    (true, KeyCode::BackTab) => popup.previous(),
                    (true, _) => popup.next(),
                }
                popup.cycling = true;
                let text = popup.choice().map(|choice| choice.text.clone()).unwrap_or_default();
                self.editor.replace(popup.start, &text);
            }
            KeyCode::Tab | KeyCode::BackTab => return Some(self.accept()),
            KeyCode::Enter => {
                let word = &self.editor.text()[popup.start..self.editor.cursor()];
                if !popup.cycling && popup.choice().is_some_and(|choice| choice.text == word) {
                    self.popup = None;
                    return None;
                }
                return Some(self.accept());
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn accept(&mut self) -> Vec<Command> {
        let Some(popup) = self.popup.take() else { return Vec::new() };
        let Some(choice) = popup.choice() else { return Vec::new() };
        self.editor.replace(popup.start, &format!("{}{}", choice.text, choice.after));
        // A directory can be gone into at once; anything else is complete.
        if choice.text.ends_with('/') { self.suggest() } else { Vec::new() }
    }

    /// Opens, renews or closes the list of choices after an edit.
    fn suggest(&mut self) -> Vec<Command> {
        match complete::target(self.editor.text(), self.editor.cursor()) {
            Some((range, Wanted::Command)) => {
                self.popup = Popup::new(range.start, complete::commands(&self.editor.text()[range]));
                Vec::new()
            }
            Some((range, Wanted::Path(query))) => {
                // Until the new paths are there, those of before that still fit are shown.
                let before = self.popup.take().filter(|popup| popup.start == range.start);
                self.popup = before.and_then(|popup| popup.narrowed(&query));
                vec![Command::Lookup(query)]
            }
            None => {
                self.popup = None;
                Vec::new()
            }
        }
    }

    fn submit(&mut self) -> Vec<Command> {
        self.popup = None;
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.editor.take();
        self.scroll = 0;
        match (slash::parse(&text), &self.phase) {
            (Typed::Input, Phase::Idle) => self.begin(text),
            (Typed::Input, Phase::Running(_)) => {
                self.queued.push_back(text);
                Vec::new()
            }
            (Typed::Help, _) => self.say_info(slash::help()),
            (Typed::Status, _) => self.say_info(self.status()),
            (Typed::Wrong(why), _) => {
                self.note(Tone::Warning, why);
                Vec::new()
            }
            (Typed::Do(Command::Quit), _) => vec![Command::Quit],
            (Typed::Do(_), Phase::Running(_)) => {
                self.note(Tone::Warning, format!("{} waits until the run has ended; Ctrl-C cancels it", text.trim()));
                Vec::new()
            }
            (Typed::Do(command @ (Command::Resume | Command::Raise(_))), Phase::Idle) => {
                self.run();
                vec![command]
            }
            (Typed::Do(command), Phase::Idle) => vec![command],
        }
    }

    fn say_info(&mut self, text: String) -> Vec<Command> {
        self.note(Tone::Info, text);
        Vec::new()
    }

    fn begin(&mut self, text: String) -> Vec<Command> {
        self.push(Body::User { text: text.clone(), attached: Vec::new() });
        self.run();
        vec![Command::Send(text)]
    }

    fn run(&mut self) {
        self.phase = Phase::Running(Running { elapsed: Duration::ZERO, step: 0, doing: Doing::Waiting });
    }

    fn status(&self) -> String {
        let Info { session, model, journal, turns, usage, cost, .. } = &self.info;
        let numbers = crate::cli::render::tokens(usage, *cost);
        let cache = self.cache_hits().map_or(String::new(), |percent| format!(" · {percent}% from cache"));
        let context = self.context().map_or(String::new(), |context| format!("context  {context}\n"));
        format!(
            "session  {session}\nmodel    {model}\nturns    {turns}\n{context}tokens   {numbers}{cache}\njournal  {journal}"
        )
    }

    /// How full the context is: `12,400 of 200,000 (6%)`.
    pub(super) fn context(&self) -> Option<String> {
        let (used, window) = self.info.context?;
        Some(match window {
            Some(window) => format!("{used}/{window} ({}%)", used * 100 / window.max(1)),
            None => format!("{used}"),
        })
    }

    /// Percentage of prompt tokens that came from the provider's cache, if any did.
    pub(super) fn cache_hits(&self) -> Option<u64> {
        let usage = &self.info.usage;
        (usage.cache_read_tokens > 0).then(|| usage.cache_read_tokens * 100 / usage.input_tokens.max(1))
    }

    fn doing(&mut self, now: Doing) {
        if let Phase::Running(run) = &mut self.phase
            && run.doing != Doing::Cancelling
        {
            run.doing = now;
        }
    }

    fn push(&mut self, body: Body) {
        self.next_id += 1;
        self.items.push(Item { id: self.next_id, revision: 0, body });
    }

    fn say(&mut self, text: &str) {
        let last = self.items.len().saturating_sub(1);
        if last >= self.step_start
            && let Some(item) = self.items.last_mut()
            && let Body::Answer(answer) = &mut item.body
        {
            answer.push_str(text);
            item.revision += 1;
            return;
        }
        self.push(Body::Answer(text.to_owned()));
    }

    /// Brings a call to a stage; one that is not on the screen yet is put there.
    fn call(&mut self, id: &str, name: &str, args: &Value, stage: Stage) {
        if let Some((item_revision, call)) = self.find_call(id) {
            *item_revision += 1;
            call.stage = stage;
            return;
        }
        let (id, name, args) = (id.to_owned(), name.to_owned(), args.clone());
        self.push(Body::Call(Call { id, name, args, stage, details: Details::Hidden }));
    }

    fn output(&mut self, id: &str, text: &str) {
        if let Some((item_revision, call)) = self.find_call(id)
            && let Stage::Running(output) = &mut call.stage
        {
            output.push_str(text);
            *item_revision += 1;
        }
    }

    fn find_call(&mut self, id: &str) -> Option<(&mut u64, &mut Call)> {
        self.items.iter_mut().rev().find_map(|item| match &mut item.body {
            Body::Call(call) if call.id == id => Some((&mut item.revision, call)),
            Body::Call(_) | Body::User { .. } | Body::Answer(_) | Body::Note(..) => None,
        })
    }

    fn toggle_details(&mut self) {
        let chosen = self.chosen;
        let wanted = |item: &&mut Item| matches!(item.body, Body::Call(_)) && chosen.is_none_or(|id| item.id == id);
        if let Some(item) = self.items.iter_mut().rev().find(wanted)
            && let Body::Call(call) = &mut item.body
        {
            item.revision += 1;
            call.details = match call.details {
                Details::Hidden => Details::Shown,
                Details::Shown => Details::Hidden,
            };
        }
    }

    /// Chooses the call before or after; after the newest, none is chosen.
    fn choose(&mut self, step: Step) {
        let calls = self.items.iter().filter(|item| matches!(item.body, Body::Call(_)));
        let ids: Vec<u64> = calls.map(|item| item.id).collect();
        let at = self.chosen.and_then(|id| ids.iter().position(|&call| call == id));
        let next = match (step, at) {
            (Step::Back, Some(at)) => Some(at.saturating_sub(1)),
            (Step::Back, None) => ids.len().checked_sub(1),
            (Step::On, Some(at)) => Some(at + 1),
            (Step::On, None) => None,
        };
        self.chosen = next.and_then(|at| ids.get(at).copied());
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Back,
    On,
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
