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
    held: Mutex<Held>,
    came: Notify,
}

#[derive(Debug)]
struct Held {
    settings: QueueSettings,
    /// What came and was not taken, oldest first.
    waiting: VecDeque<Vec<Block>>,
    /// What a run was told already and is an input of its own afterwards, oldest first.
    backlog: VecDeque<Vec<Block>>,
    /// A line of each message that was dropped, oldest first.
    digest: VecDeque<String>,
    /// How many more were dropped of which there is no line.
    forgotten: usize,
    /// When the newest came.
    newest: Option<Instant>,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// What was said.
    pub content: Vec<Block>,
    /// Whether a run was told already, and it is an input of its own afterwards.
    pub told: bool,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It waits.
    Waits,
    /// It waits, and the oldest one no longer does.
    InPlaceOfTheOldest,
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
        let held = Held {
            settings,
            waiting: VecDeque::new(),
            backlog: VecDeque::new(),
            digest: VecDeque::new(),
            forgotten: 0,
            newest: None,
        };
        Self {
            held: Mutex::new(held),
            came: Notify::new(),
        }
    }

    /// How messages are handled.
    pub fn mode(&self) -> QueueMode {
        self.held().settings.mode
    }

    /// Handles messages otherwise from here on.
    pub fn set_mode(&self, mode: QueueMode) {
        self.held().settings.mode = mode;
        self.came.notify_waiters();
    }

    /// How messages are handled, and how many may wait.
    pub fn settings(&self) -> QueueSettings {
        self.held().settings.clone()
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.held().len()
    }

    /// What waits, oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        let held = self.held();
        let told = held.backlog.iter().map(|content| Waiting {
            content: content.clone(),
            told: true,
        });
        told.chain(held.waiting.iter().map(|content| Waiting {
            content: content.clone(),
            told: false,
        }))
        .collect()
    }

    /// Takes back all that waits, oldest first: nobody will be told of it. Lines of messages that
    /// were dropped before are forgotten.
    pub fn take_back(&self) -> Vec<Waiting> {
        let mut held = self.held();
        held.dropped();
        let told = std::mem::take(&mut held.backlog)
            .into_iter()
            .map(|content| Waiting {
                content,
                told: true,
            });
        let rest = std::mem::take(&mut held.waiting)
            .into_iter()
            .map(|content| Waiting {
                content,
                told: false,
            });
        told.chain(rest).collect()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a message in.
    pub fn send(&self, content: Vec<Block>) -> Sent {
        if content.is_empty() {
            return Sent::Refused;
        }
        let sent = self.held().take_in(content);
        if sent != Sent::Refused {
            self.came.notify_waiters();
        }
        sent
    }

    /// The next input, once a run is over; none if nothing waits. Messages that are collected are
    /// waited for until nobody said anything for a moment.
    pub async fn next_input(&self) -> Option<Vec<Block>> {
        loop {
            let came = self.came.notified();
            tokio::pin!(came);
            // Registered before the look, as below.
            came.as_mut().enable();
            let until = match self.held().next_input() {
                Next::Input(content) => return Some(content),
                Next::Nothing => return None,
                Next::At(until) => until,
            };
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                // It may be handled otherwise by now.
                () = came => {}
            }
        }
    }

    /// Whether a message waits that goes into the run.
    pub(crate) fn steers(&self) -> bool {
        self.held().steers()
    }

    /// Returns when a message came that goes into the run.
    pub(crate) async fn steered(&self) {
        self.until(Held::steers).await;
    }

    /// What goes into the run.
    pub(crate) fn take_steering(&self) -> Option<Vec<Block>> {
        let mut held = self.held();
        if !held.steers() {
            return None;
        }
        let all: Vec<Vec<Block>> = held.waiting.drain(..).collect();
        if held.settings.mode == QueueMode::SteerBacklog {
            held.backlog.extend(all.iter().cloned());
        }
        let dropped = held.dropped();
        Some(joined(dropped, all))
    }

    /// Takes back what went into a run and did not arrive there.
    pub(crate) fn put_back(&self, content: Vec<Block>) {
        let mut held = self.held();
        // What is an input of its own afterwards waits already.
        if held.settings.mode != QueueMode::SteerBacklog {
            held.waiting.push_front(content);
        }
    }

    /// Whether a message waits that ends the run.
    pub(crate) fn interrupts(&self) -> bool {
        self.held().interrupts()
    }

    /// Returns when a message came that ends the run.
    pub(crate) async fn interrupted(&self) {
        self.until(Held::interrupts).await;
    }

    async fn until(&self, so: impl Fn(&Held) -> bool) {
        loop {
            let came = self.came.notified();
            tokio::pin!(came);
            // Registered before the look, or a message between the two would be missed.
            came.as_mut().enable();
            if so(&self.held()) {
                return;
            }
            came.await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What comes after a run.
enum Next {
    Input(Vec<Block>),
    At(Instant),
    Nothing,
}

impl Held {
    fn len(&self) -> usize {
        self.waiting.len() + self.backlog.len()
    }

    fn steers(&self) -> bool {
        match self.settings.mode {
            QueueMode::Steer | QueueMode::SteerBacklog => !self.waiting.is_empty(),
            QueueMode::Collect | QueueMode::Followup | QueueMode::Interrupt => false,
        }
    }

    fn interrupts(&self) -> bool {
        self.settings.mode == QueueMode::Interrupt && !self.waiting.is_empty()
    }

    fn take_in(&mut self, content: Vec<Block>) -> Sent {
        let full = self.len() >= self.settings.cap as usize;
        if full && self.settings.drop == DropPolicy::New {
            return Sent::Refused;
        }
        self.newest = Some(Instant::now());
        self.waiting.push_back(content);
        if !full {
            return Sent::Waits;
        }
        // What a run was told already need not be summed up.
        if self.backlog.pop_front().is_none()
            && let Some(oldest) = self.waiting.pop_front()
            && self.settings.drop == DropPolicy::Summarize
        {
            self.digest.push_back(line_of(&oldest));
            if self.digest.len() > MAX_DIGEST {
                self.digest.pop_front();
                self.forgotten += 1;
            }
        }
        Sent::InPlaceOfTheOldest
    }

    fn next_input(&mut self) -> Next {
        if let Some(content) = self.backlog.pop_front() {
            return Next::Input(content);
        }
        if self.waiting.is_empty() {
            return Next::Nothing;
        }
        let taken = match self.settings.mode {
            QueueMode::Collect => {
                let pause = Duration::from_millis(self.settings.debounce_ms);
                let until = self.newest.and_then(|newest| newest.checked_add(pause));
                if let Some(until) = until.filter(|until| Instant::now() < *until) {
                    return Next::At(until);
                }
                self.waiting.len()
            }
            QueueMode::Followup => 1,
            // One left behind would steer or end the very run that the other begins.
            QueueMode::Steer | QueueMode::SteerBacklog | QueueMode::Interrupt => self.waiting.len(),
        };
        let taken = self.waiting.drain(..taken).collect();
        Next::Input(joined(self.dropped(), taken))
    }

    /// What is said of messages that were dropped; none if none was. It is said once.
    fn dropped(&mut self) -> Option<String> {
        let lines = std::mem::take(&mut self.digest);
        let forgotten = std::mem::take(&mut self.forgotten);
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
fn joined(dropped: Option<String>, all: Vec<Vec<Block>>) -> Vec<Block> {
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

fn line_of(content: &[Block]) -> String {
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
