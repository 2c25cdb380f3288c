//! The message queue of a session: messages that arrive during a run, and how they are handled.
//!
//! Effects: the clock.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stead_core::{Block, InputId, Message, Origin, QueueMode};
use stead_workspace::{DropPolicy, QueueSettings};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// Takes messages for a session during a run. The caller gives it to the run
/// ([`RunOptions::queue`](crate::RunOptions)) and asks it for the next input afterwards.
#[derive(Debug)]
pub struct MessageQueue {
    state: Mutex<QueueState>,
    arrived: Notify,
}

#[derive(Debug)]
struct QueueState {
    settings: QueueSettings,
    /// Messages that were not taken yet, oldest first.
    waiting: VecDeque<IncomingMessage>,
    /// Messages that a run has already seen and that become inputs of their own afterwards, oldest
    /// first.
    backlog: VecDeque<IncomingMessage>,
    /// The rows that are in the journal already, with their entries.
    recorded: HashMap<InputId, u64>,
    /// The rows of messages that were removed because they are in the journal, or a part of them.
    removed_rows: Vec<InputId>,
    /// The rows of messages that a hook refused.
    refused_rows: Vec<InputId>,
    /// The rows of dropped messages that no entry names yet.
    dropped_rows: Vec<InputId>,
    /// One line for each dropped message, oldest first.
    digest: VecDeque<String>,
    /// The number of dropped messages without a line.
    dropped_without_line: usize,
    /// The time at which the newest message arrived.
    last_arrival: Option<Instant>,
}

/// A message to a session, or several joined into one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IncomingMessage {
    /// The content.
    pub content: Vec<Block>,
    /// Who sent it, if that is known.
    pub origin: Option<Origin>,
    /// The rows of the durable inbox that it is made of.
    pub rows: Vec<InputId>,
    /// What becomes of it during a run, if the settings do not decide.
    pub mode: Option<QueueMode>,
}

impl From<Vec<Block>> for IncomingMessage {
    fn from(content: Vec<Block>) -> Self {
        Self {
            content,
            ..Self::default()
        }
    }
}

/// A message in the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// The content.
    pub content: Vec<Block>,
    /// Whether a run has already seen it; it still becomes an input of its own afterwards.
    pub already_shown: bool,
}

/// What happened to a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// It was added.
    Queued,
    /// It was added, and the oldest message was dropped.
    ReplacedOldest,
    /// It was refused, because the queue is full or the message is empty.
    Refused,
}

/// The most characters of a dropped message in its line.
const DIGEST_CHARS: usize = 120;
/// The most lines for dropped messages.
const MAX_DIGEST: usize = 50;

impl MessageQueue {
    /// Creates an empty queue.
    pub fn new(settings: QueueSettings) -> Self {
        let state = QueueState {
            settings,
            waiting: VecDeque::new(),
            backlog: VecDeque::new(),
            recorded: HashMap::new(),
            removed_rows: Vec::new(),
            refused_rows: Vec::new(),
            dropped_rows: Vec::new(),
            digest: VecDeque::new(),
            dropped_without_line: 0,
            last_arrival: None,
        };
        Self {
            state: Mutex::new(state),
            arrived: Notify::new(),
        }
    }

    /// Returns how messages are handled.
    pub fn mode(&self) -> QueueMode {
        self.lock().settings.mode
    }

    /// Changes how messages are handled.
    pub fn set_mode(&self, mode: QueueMode) {
        self.lock().settings.mode = mode;
        self.arrived.notify_waiters();
    }

    /// Returns the settings.
    pub fn settings(&self) -> QueueSettings {
        self.lock().settings.clone()
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns a future that is ready when a message has arrived. To miss none, call
    /// [`enable`](Notified::enable) on it before looking at the queue.
    pub fn arrival(&self) -> Notified<'_> {
        self.arrived.notified()
    }

    /// Returns the messages, oldest first.
    pub fn queued(&self) -> Vec<QueuedMessage> {
        let state = self.lock();
        let seen = state.backlog.iter().map(|message| QueuedMessage {
            content: message.content.clone(),
            already_shown: true,
        });
        seen.chain(state.waiting.iter().map(|message| QueuedMessage {
            content: message.content.clone(),
            already_shown: false,
        }))
        .collect()
    }

    /// Removes and returns all messages, oldest first. The lines of dropped messages are discarded.
    pub fn drain(&self) -> Vec<QueuedMessage> {
        let mut state = self.lock();
        state.take_dropped_notice();
        let seen = std::mem::take(&mut state.backlog)
            .into_iter()
            .map(|message| QueuedMessage {
                content: message.content,
                already_shown: true,
            });
        let rest = std::mem::take(&mut state.waiting)
            .into_iter()
            .map(|message| QueuedMessage {
                content: message.content,
                already_shown: false,
            });
        seen.chain(rest).collect()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a message.
    pub fn send(&self, message: impl Into<IncomingMessage>) -> SendOutcome {
        let message = message.into();
        if message.content.is_empty() {
            return SendOutcome::Refused;
        }
        let outcome = self.lock().enqueue(message);
        if outcome != SendOutcome::Refused {
            self.arrived.notify_waiters();
        }
        outcome
    }

    /// Returns the next input after a run; `None` if there are no messages. In `collect` mode it
    /// waits until no message arrived for the configured pause.
    pub async fn next_input(&self) -> Option<IncomingMessage> {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            // Registered before the state is checked, as in `wait_until`.
            arrived.as_mut().enable();
            let until = match self.lock().next_input() {
                NextInput::Input(message) => return Some(message),
                NextInput::Nothing => return None,
                NextInput::WaitUntil(until) => until,
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                // The mode may have changed.
                () = arrived => {}
            }
        }
    }

    /// Returns an input that was taken and could not be given to a run.
    pub fn return_input(&self, message: IncomingMessage) {
        self.lock().waiting.push_front(message);
    }

    /// Removes the messages that are made of rows of the durable inbox, and returns the rows: they
    /// still wait there, for whichever process runs the session.
    pub fn take_rows(&self) -> Vec<InputId> {
        self.lock().remove_rows(|_| true)
    }

    /// Removes the messages that are made of these rows, and returns the rows that were found.
    pub fn withdraw(&self, rows: &[InputId]) -> Vec<InputId> {
        self.lock().remove_rows(|row| rows.contains(row))
    }

    /// Returns the entry of a row that was in the journal when the newest run began.
    pub fn recorded_entry(&self, row: &InputId) -> Option<u64> {
        self.lock().recorded.get(row).copied()
    }

    /// Returns the rows of messages that were removed when the newest run began, because another
    /// process had recorded them or a part of them.
    pub fn take_removed_rows(&self) -> Vec<InputId> {
        std::mem::take(&mut self.lock().removed_rows)
    }

    /// Returns the rows of messages that a hook refused.
    pub fn take_refused_rows(&self) -> Vec<InputId> {
        std::mem::take(&mut self.lock().refused_rows)
    }

    /// A hook refused the message of these rows.
    pub(crate) fn refuse_rows(&self, rows: Vec<InputId>) {
        self.lock().refused_rows.extend(rows);
    }

    /// Sets which rows are in the journal, and removes the messages that have one of them.
    pub(crate) fn set_recorded(&self, recorded: HashMap<InputId, u64>) {
        let mut state = self.lock();
        let removed = state.remove_rows(|row| recorded.contains_key(row));
        state.removed_rows.extend(removed);
        state.recorded = recorded;
    }

    /// Whether there are steering messages for the run.
    pub(crate) fn has_steering(&self) -> bool {
        self.lock().has_steering()
    }

    /// Waits until there are steering messages.
    pub(crate) async fn wait_for_steering(&self) {
        self.wait_until(QueueState::has_steering).await;
    }

    /// Takes the steering messages, joined into one.
    pub(crate) fn take_steering(&self) -> Option<IncomingMessage> {
        let mut state = self.lock();
        if !state.has_steering() {
            return None;
        }
        let default = state.settings.mode;
        let waiting = std::mem::take(&mut state.waiting);
        let (steering, rest): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|message| message.mode.unwrap_or(default).is_steering());
        state.waiting = rest.into();
        let shown_again = steering
            .iter()
            .filter(|message| message.mode.unwrap_or(default) == QueueMode::SteerBacklog)
            // The steering entry names their rows.
            .map(|message| IncomingMessage {
                rows: Vec::new(),
                ..message.clone()
            });
        let shown_again: Vec<IncomingMessage> = shown_again.collect();
        state.backlog.extend(shown_again);
        Some(state.join(steering))
    }

    /// Returns messages that the run took but could not record.
    pub(crate) fn return_steering(&self, message: IncomingMessage) {
        let mut state = self.lock();
        if state.mode_of(&message) == QueueMode::SteerBacklog
            && let Some(shown) = state.backlog.back_mut()
        {
            // In this mode the messages are in the backlog already; no entry names their rows yet.
            shown.rows.extend(message.rows);
            return;
        }
        let mode = message.mode.or(Some(QueueMode::Steer));
        let returned = IncomingMessage { mode, ..message };
        state.waiting.push_front(returned);
    }

    /// Whether there is a message that ends the run.
    pub fn has_interrupt(&self) -> bool {
        self.lock().has_interrupt()
    }

    /// Waits until there is a message that ends the run.
    pub(crate) async fn wait_for_interrupt(&self) {
        self.wait_until(QueueState::has_interrupt).await;
    }

    async fn wait_until(&self, condition: impl Fn(&QueueState) -> bool) {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            // Registered before the state is checked: a message in between would be missed
            // otherwise.
            arrived.as_mut().enable();
            if condition(&self.lock()) {
                return;
            }
            arrived.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What follows a run.
enum NextInput {
    Input(IncomingMessage),
    WaitUntil(Instant),
    Nothing,
}

impl QueueState {
    fn len(&self) -> usize {
        self.waiting.len() + self.backlog.len()
    }

    fn has_steering(&self) -> bool {
        self.waiting
            .iter()
            .any(|message| self.mode_of(message).is_steering())
    }

    fn has_interrupt(&self) -> bool {
        self.waiting
            .iter()
            .any(|message| self.mode_of(message) == QueueMode::Interrupt)
    }

    /// Returns what becomes of a message.
    fn mode_of(&self, message: &IncomingMessage) -> QueueMode {
        message.mode.unwrap_or(self.settings.mode)
    }

    fn enqueue(&mut self, message: IncomingMessage) -> SendOutcome {
        let full = self.len() >= self.settings.cap as usize;
        if full && self.settings.drop == DropPolicy::New {
            return SendOutcome::Refused;
        }
        self.last_arrival = Some(Instant::now());
        self.waiting.push_back(message);
        if !full {
            return SendOutcome::Queued;
        }
        // Messages that a run has already seen are dropped without a line.
        if let Some(shown) = self.backlog.pop_front() {
            self.dropped_rows.extend(shown.rows);
        } else if let Some(oldest) = self.waiting.pop_front() {
            self.dropped_rows.extend(oldest.rows.iter().cloned());
            if self.settings.drop == DropPolicy::Summarize {
                self.digest.push_back(digest_line(&oldest.content));
            }
            if self.digest.len() > MAX_DIGEST {
                self.digest.pop_front();
                self.dropped_without_line += 1;
            }
        }
        SendOutcome::ReplacedOldest
    }

    /// Removes the messages with a row that `is_meant`, and returns all their rows.
    fn remove_rows(&mut self, is_meant: impl Fn(&InputId) -> bool) -> Vec<InputId> {
        let mut removed = Vec::new();
        for queue in [&mut self.waiting, &mut self.backlog] {
            queue.retain(|message| {
                let stays = !message.rows.iter().any(&is_meant);
                if !stays {
                    removed.extend(message.rows.iter().cloned());
                }
                stays
            });
        }
        let dropped = std::mem::take(&mut self.dropped_rows);
        let (meant, rest) = dropped.into_iter().partition(is_meant);
        self.dropped_rows = rest;
        removed.extend::<Vec<InputId>>(meant);
        removed
    }

    fn next_input(&mut self) -> NextInput {
        if let Some(message) = self.backlog.pop_front() {
            return NextInput::Input(message);
        }
        let Some(first) = self.waiting.front() else {
            return NextInput::Nothing;
        };
        let mode = self.mode_of(first);
        let taken = match mode {
            QueueMode::Collect => {
                let pause = Duration::from_millis(self.settings.debounce_ms);
                let until = self
                    .last_arrival
                    .and_then(|newest| newest.checked_add(pause));
                if let Some(until) = until.filter(|until| Instant::now() < *until) {
                    return NextInput::WaitUntil(until);
                }
                let same = |message: &&IncomingMessage| self.mode_of(message) == mode;
                self.waiting.iter().take_while(same).count()
            }
            QueueMode::Followup => 1,
            // A remaining message would steer or end the run that this input starts.
            QueueMode::Steer | QueueMode::SteerBacklog | QueueMode::Interrupt => self.waiting.len(),
        };
        let taken = self.waiting.drain(..taken).collect();
        NextInput::Input(self.join(taken))
    }

    /// Joins messages into one, with the notice about dropped messages.
    fn join(&mut self, messages: Vec<IncomingMessage>) -> IncomingMessage {
        let dropped = self.take_dropped_notice();
        let mut rows = std::mem::take(&mut self.dropped_rows);
        rows.extend(
            messages
                .iter()
                .flat_map(|message| message.rows.iter().cloned()),
        );
        let origin = messages.iter().find_map(|message| message.origin.clone());
        let mode = messages.iter().find_map(|message| message.mode);
        let contents = messages.into_iter().map(|message| message.content);
        IncomingMessage {
            content: join_messages(dropped, contents.collect()),
            origin,
            rows,
            mode,
        }
    }

    /// Returns the notice about dropped messages, once; `None` if none was dropped.
    fn take_dropped_notice(&mut self) -> Option<String> {
        let lines = std::mem::take(&mut self.digest);
        let forgotten = std::mem::take(&mut self.dropped_without_line);
        if lines.is_empty() {
            return None;
        }
        let lines: Vec<String> = lines.iter().map(|line| format!("\n- {line}")).collect();
        let count = lines.len() + forgotten;
        let list = lines.concat();
        let summary = match count {
            1 => "1 earlier message was".to_owned(),
            _ => format!("{count} earlier messages were"),
        };
        let newest = if forgotten > 0 {
            format!(" The newest {} of them:", lines.len())
        } else {
            String::new()
        };
        Some(format!("[{summary} left out.{newest}]{list}"))
    }
}

/// Joins messages into one: the notice about dropped messages and all texts as one block, then all
/// attachments.
fn join_messages(dropped: Option<String>, messages: Vec<Vec<Block>>) -> Vec<Block> {
    let mut texts = Vec::from_iter(dropped);
    let mut attached = Vec::new();
    for content in messages {
        let mut blocks = content.into_iter();
        match blocks.next() {
            Some(Block::Text { text }) => texts.push(text),
            Some(other @ (Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_))) => {
                attached.push(other)
            }
            None => {}
        }
        attached.extend(blocks);
    }
    let text = (!texts.is_empty()).then(|| Block::text(texts.join("\n\n")));
    text.into_iter().chain(attached).collect()
}

/// Returns the line for a dropped message.
fn digest_line(content: &[Block]) -> String {
    let text = Message::User {
        content: content.to_vec(),
    }
    .text();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(DIGEST_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
