//! Messages that come while a run goes on, and what becomes of them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stead_core::{Block, Message};
use stead_workspace::{DropPolicy, QueueMode, QueueSettings};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Takes messages for a session while a run of it goes on. Whoever runs the session gives it to the
/// run ([`RunOptions::inbox`](crate::RunOptions)) and asks it for the next input afterwards.
#[derive(Debug)]
pub struct Inbox {
    state: Mutex<InboxState>,
    arrived: Notify,
}

#[derive(Debug)]
struct InboxState {
    settings: QueueSettings,
    /// What came and was not taken, oldest first.
    waiting: VecDeque<Vec<Block>>,
    /// What a run was told already and is an input of its own afterwards, oldest first.
    backlog: VecDeque<Vec<Block>>,
    /// A line of each message that was dropped, oldest first.
    digest: VecDeque<String>,
    /// How many more were dropped of which there is no line.
    dropped_without_line: usize,
    /// When the newest came.
    last_arrival: Option<Instant>,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// What was said.
    pub content: Vec<Block>,
    /// Whether a run was told already, and it is an input of its own afterwards.
    pub already_shown: bool,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// It waits.
    Queued,
    /// It waits, and the oldest one no longer does.
    ReplacedOldest,
    /// It was refused: too many wait, or nothing was said.
    Refused,
}

/// Characters of a dropped message that are kept.
const DIGEST_CHARS: usize = 120;
/// Dropped messages of which a line is kept.
const MAX_DIGEST: usize = 50;

impl Inbox {
    /// An empty one.
    pub fn new(settings: QueueSettings) -> Self {
        let held = InboxState {
            settings,
            waiting: VecDeque::new(),
            backlog: VecDeque::new(),
            digest: VecDeque::new(),
            dropped_without_line: 0,
            last_arrival: None,
        };
        Self {
            state: Mutex::new(held),
            arrived: Notify::new(),
        }
    }

    /// How messages are handled.
    pub fn mode(&self) -> QueueMode {
        self.lock().settings.mode
    }

    /// Handles messages otherwise from here on.
    pub fn set_mode(&self, mode: QueueMode) {
        self.lock().settings.mode = mode;
        self.arrived.notify_waiters();
    }

    /// How messages are handled, and how many may wait.
    pub fn settings(&self) -> QueueSettings {
        self.lock().settings.clone()
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// What waits, oldest first.
    pub fn queued(&self) -> Vec<QueuedMessage> {
        let held = self.lock();
        let told = held.backlog.iter().map(|content| QueuedMessage {
            content: content.clone(),
            already_shown: true,
        });
        told.chain(held.waiting.iter().map(|content| QueuedMessage {
            content: content.clone(),
            already_shown: false,
        }))
        .collect()
    }

    /// Takes back all that waits, oldest first: nobody will be told of it. Lines of messages that
    /// were dropped before are forgotten.
    pub fn drain(&self) -> Vec<QueuedMessage> {
        let mut held = self.lock();
        held.take_dropped_notice();
        let told = std::mem::take(&mut held.backlog)
            .into_iter()
            .map(|content| QueuedMessage {
                content,
                already_shown: true,
            });
        let rest = std::mem::take(&mut held.waiting)
            .into_iter()
            .map(|content| QueuedMessage {
                content,
                already_shown: false,
            });
        told.chain(rest).collect()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a message in.
    pub fn send(&self, content: Vec<Block>) -> SendOutcome {
        if content.is_empty() {
            return SendOutcome::Refused;
        }
        let sent = self.lock().enqueue(content);
        if sent != SendOutcome::Refused {
            self.arrived.notify_waiters();
        }
        sent
    }

    /// The next input, once a run is over; none if nothing waits. Messages that are collected are
    /// waited for until nobody said anything for a moment.
    pub async fn next_input(&self) -> Option<Vec<Block>> {
        loop {
            let came = self.arrived.notified();
            tokio::pin!(came);
            // Registered before the look, as below.
            came.as_mut().enable();
            let until = match self.lock().next_input() {
                NextInput::Input(content) => return Some(content),
                NextInput::Nothing => return None,
                NextInput::WaitUntil(until) => until,
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                // It may be handled otherwise by now.
                () = came => {}
            }
        }
    }

    /// Whether a message waits that goes into the run.
    pub(crate) fn has_steering(&self) -> bool {
        self.lock().has_steering()
    }

    /// Returns when a message came that goes into the run.
    pub(crate) async fn wait_for_steering(&self) {
        self.wait_until(InboxState::has_steering).await;
    }

    /// What goes into the run.
    pub(crate) fn take_steering(&self) -> Option<Vec<Block>> {
        let mut held = self.lock();
        if !held.has_steering() {
            return None;
        }
        let all: Vec<Vec<Block>> = held.waiting.drain(..).collect();
        if held.settings.mode == QueueMode::SteerBacklog {
            held.backlog.extend(all.iter().cloned());
        }
        let dropped = held.take_dropped_notice();
        Some(join_messages(dropped, all))
    }

    /// Takes back what went into a run and did not arrive there.
    pub(crate) fn return_steering(&self, content: Vec<Block>) {
        let mut held = self.lock();
        // What is an input of its own afterwards waits already.
        if held.settings.mode != QueueMode::SteerBacklog {
            held.waiting.push_front(content);
        }
    }

    /// Whether a message waits that ends the run.
    pub(crate) fn has_interrupt(&self) -> bool {
        self.lock().has_interrupt()
    }

    /// Returns when a message came that ends the run.
    pub(crate) async fn wait_for_interrupt(&self) {
        self.wait_until(InboxState::has_interrupt).await;
    }

    async fn wait_until(&self, so: impl Fn(&InboxState) -> bool) {
        loop {
            let came = self.arrived.notified();
            tokio::pin!(came);
            // Registered before the look, or a message between the two would be missed.
            came.as_mut().enable();
            if so(&self.lock()) {
                return;
            }
            came.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What comes after a run.
enum NextInput {
    Input(Vec<Block>),
    WaitUntil(Instant),
    Nothing,
}

impl InboxState {
    fn len(&self) -> usize {
        self.waiting.len() + self.backlog.len()
    }

    fn has_steering(&self) -> bool {
        match self.settings.mode {
            QueueMode::Steer | QueueMode::SteerBacklog => !self.waiting.is_empty(),
            QueueMode::Collect | QueueMode::Followup | QueueMode::Interrupt => false,
        }
    }

    fn has_interrupt(&self) -> bool {
        self.settings.mode == QueueMode::Interrupt && !self.waiting.is_empty()
    }

    fn enqueue(&mut self, content: Vec<Block>) -> SendOutcome {
        let full = self.len() >= self.settings.cap as usize;
        if full && self.settings.drop == DropPolicy::New {
            return SendOutcome::Refused;
        }
        self.last_arrival = Some(Instant::now());
        self.waiting.push_back(content);
        if !full {
            return SendOutcome::Queued;
        }
        // What a run was told already need not be summed up.
        if self.backlog.pop_front().is_none()
            && let Some(oldest) = self.waiting.pop_front()
            && self.settings.drop == DropPolicy::Summarize
        {
            self.digest.push_back(digest_line(&oldest));
            if self.digest.len() > MAX_DIGEST {
                self.digest.pop_front();
                self.dropped_without_line += 1;
            }
        }
        SendOutcome::ReplacedOldest
    }

    fn next_input(&mut self) -> NextInput {
        if let Some(content) = self.backlog.pop_front() {
            return NextInput::Input(content);
        }
        if self.waiting.is_empty() {
            return NextInput::Nothing;
        }
        let taken = match self.settings.mode {
            QueueMode::Collect => {
                let pause = Duration::from_millis(self.settings.debounce_ms);
                let until = self
                    .last_arrival
                    .and_then(|newest| newest.checked_add(pause));
                if let Some(until) = until.filter(|until| Instant::now() < *until) {
                    return NextInput::WaitUntil(until);
                }
                self.waiting.len()
            }
            QueueMode::Followup => 1,
            // One left behind would steer or end the very run that the other begins.
            QueueMode::Steer | QueueMode::SteerBacklog | QueueMode::Interrupt => self.waiting.len(),
        };
        let taken = self.waiting.drain(..taken).collect();
        NextInput::Input(join_messages(self.take_dropped_notice(), taken))
    }

    /// What is said of messages that were dropped; none if none was. It is said once.
    fn take_dropped_notice(&mut self) -> Option<String> {
        let lines = std::mem::take(&mut self.digest);
        let forgotten = std::mem::take(&mut self.dropped_without_line);
        if lines.is_empty() {
            return None;
        }
        let lines: Vec<String> = lines.iter().map(|line| format!("\n- {line}")).collect();
        let count = lines.len() + forgotten;
        let all = lines.concat();
        let what = match count {
            1 => "1 earlier message was".to_owned(),
            _ => format!("{count} earlier messages were"),
        };
        let newest = if forgotten > 0 {
            format!(" The newest {} of them:", lines.len())
        } else {
            String::new()
        };
        Some(format!("[{what} left out.{newest}]{all}"))
    }
}

/// Messages as one, in the form of one: first all that was said, and before it what is said of
/// those that were dropped; then what was attached.
fn join_messages(dropped: Option<String>, all: Vec<Vec<Block>>) -> Vec<Block> {
    let mut said = Vec::from_iter(dropped);
    let mut attached = Vec::new();
    for content in all {
        let mut blocks = content.into_iter();
        match blocks.next() {
            Some(Block::Text { text }) => said.push(text),
            Some(other @ (Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_))) => {
                attached.push(other)
            }
            None => {}
        }
        attached.extend(blocks);
    }
    let said = (!said.is_empty()).then(|| Block::text(said.join("\n\n")));
    said.into_iter().chain(attached).collect()
}

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
