//! Messages that come while a run goes on, and what becomes of them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stead_core::{Block, Message};
use stead_workspace::{DropPolicy, QueueMode, QueueSettings};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Takes messages for a session while a run of it goes on. Whoever runs the session gives it to the run
/// ([`RunOptions::inbox`](crate::RunOptions)) and asks it for the next input afterwards.
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
    /// What a run was told already and is an input of its own afterwards.
    backlog: VecDeque<Vec<Block>>,
    /// A line of each message that was dropped.
    digest: Vec<String>,
    /// When the newest came.
    newest: Option<Instant>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It waits.
    Waits,
    /// It waits, and the oldest one no longer does.
    InPlaceOfTheOldest,
    /// It was refused: too many wait.
    Refused,
}

/// Characters of a dropped message that are kept.
const DIGEST_CHARS: usize = 120;
/// Dropped messages of which a line is kept.
const MAX_DIGEST: usize = 50;

impl Inbox {
    /// An empty one.
    pub fn new(settings: QueueSettings) -> Self {
        let held =
            Held { settings, waiting: VecDeque::new(), backlog: VecDeque::new(), digest: Vec::new(), newest: None };
        Self { held: Mutex::new(held), came: Notify::new() }
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

    /// How many messages wait.
    pub fn len(&self) -> usize {
        let held = self.held();
        held.waiting.len() + held.backlog.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a message in.
    pub fn send(&self, content: Vec<Block>) -> Sent {
        let sent = self.held().take_in(content);
        if sent != Sent::Refused {
            self.came.notify_waiters();
        }
        sent
    }

    /// The next input, once a run is over; none if nothing waits. Messages that are collected are waited for until nobody
    /// said anything for a moment.
    pub async fn next_input(&self) -> Option<Vec<Block>> {
        loop {
            let until = match self.held().next_input() {
                Next::Input(content) => return Some(content),
                Next::Nothing => return None,
                Next::At(until) => until,
            };
            tokio::time::sleep_until(until).await;
        }
    }

    /// Whether a message waits that goes into the run.
    pub(crate) fn steers(&self) -> bool {
        let held = self.held();
        match held.settings.mode {
            QueueMode::Steer | QueueMode::SteerBacklog => !held.waiting.is_empty(),
            QueueMode::Collect | QueueMode::Followup | QueueMode::Interrupt => false,
        }
    }

    /// What goes into the run.
    pub(crate) fn take_steering(&self) -> Option<Vec<Block>> {
        if !self.steers() {
            return None;
        }
        let mut held = self.held();
        let all: Vec<Vec<Block>> = held.waiting.drain(..).collect();
        if held.settings.mode == QueueMode::SteerBacklog {
            held.backlog.extend(all.iter().cloned());
        }
        let digest = std::mem::take(&mut held.digest);
        Some(joined(digest, all))
    }

    /// Whether a message waits that ends the run.
    pub(crate) fn interrupts(&self) -> bool {
        let held = self.held();
        held.settings.mode == QueueMode::Interrupt && !held.waiting.is_empty()
    }

    /// Returns when a message came that ends the run.
    pub(crate) async fn interrupted(&self) {
        loop {
            let came = self.came.notified();
            tokio::pin!(came);
            // Registered before the look, or a message between the two would be missed.
            came.as_mut().enable();
            if self.interrupts() {
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
    fn take_in(&mut self, content: Vec<Block>) -> Sent {
        let full = self.waiting.len() >= self.settings.cap as usize;
        if full && self.settings.drop == DropPolicy::New {
            return Sent::Refused;
        }
        self.newest = Some(Instant::now());
        self.waiting.push_back(content);
        if !full {
            return Sent::Waits;
        }
        if let Some(oldest) = self.waiting.pop_front()
            && self.settings.drop == DropPolicy::Summarize
            && self.digest.len() < MAX_DIGEST
        {
            self.digest.push(line_of(&oldest));
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
                let until = self.newest.map_or_else(Instant::now, |newest| newest + pause);
                if Instant::now() < until {
                    return Next::At(until);
                }
                self.waiting.len()
            }
            QueueMode::Followup => 1,
            // One left behind would steer or end the very run that the other begins.
            QueueMode::Steer | QueueMode::SteerBacklog | QueueMode::Interrupt => self.waiting.len(),
        };
        let taken = self.waiting.drain(..taken).collect();
        Next::Input(joined(std::mem::take(&mut self.digest), taken))
    }
}

/// Messages as one, after a line of each that was dropped.
fn joined(digest: Vec<String>, all: Vec<Vec<Block>>) -> Vec<Block> {
    let lines: Vec<String> = digest.iter().map(|line| format!("- {line}")).collect();
    let dropped = (!lines.is_empty())
        .then(|| Block::text(format!("[{} earlier messages were left out:]\n{}", lines.len(), lines.join("\n"))));
    dropped.into_iter().chain(all.into_iter().flatten()).collect()
}

fn line_of(content: &[Block]) -> String {
    let text = Message::User { content: content.to_vec() }.text();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(DIGEST_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
