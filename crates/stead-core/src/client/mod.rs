//! The contract between a session and those who talk to it.
//!
//! A [`Client`] sends [`Command`]s to sessions and subscribes to their [`SessionEvent`]s. It is
//! implemented in process by `stead-host`; a front end needs nothing else.
//!
//! - A command is acknowledged by a [`Receipt`] once it is durable. The session may be run by
//!   another process; the command then waits in the session's inbox.
//! - A subscription is gap-free: every journal entry after its [`Cursor`] arrives once, in order.
//!   Live events come in between and may be lost; the next entry replaces those since the one
//!   before.
//!
//! Effects: none.

mod command;
mod error;
mod event;
mod report;

pub use command::{AnswerCommand, AnswerPolicy, Command, InputCommand, Pinned, QueueMode, Receipt};
pub use error::ClientError;
pub use event::{Cursor, EventId, EventIdError, SessionEvent, SessionEventBody};
pub use report::{RunReport, WaitingTask};

use crate::{InputId, Owner, SessionId};
use std::pin::Pin;

/// A future of a client.
pub type ClientFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

/// The address of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionAddress {
    /// The owner of the session.
    pub owner: Owner,
    /// The agent, as the host's registry names it.
    pub agent: String,
    /// The session.
    pub session: SessionId,
}

/// Sends commands to sessions and tells what happens in them.
pub trait Client: Send + Sync {
    /// Sends a command. On return it is durable, or carried out: a cancellation that reaches its run
    /// leaves nothing to record.
    ///
    /// A `key` makes the command safe to repeat: the same key with the same command gives the same
    /// receipt, and with another one [`ClientError::KeyConflict`].
    fn send<'a>(
        &'a self,
        to: &'a SessionAddress,
        command: Command,
        key: Option<&'a str>,
    ) -> ClientFuture<'a, Receipt>;

    /// Returns what happens in a session after `cursor`, whichever process runs it. While somebody
    /// who answers is subscribed, questions wait for them instead of parking the run.
    fn subscribe<'a>(
        &'a self,
        to: &'a SessionAddress,
        cursor: Cursor,
        presence: Presence,
    ) -> ClientFuture<'a, Box<dyn Subscription>>;

    /// Returns which process runs the session at this moment, in words, if one does.
    fn holder<'a>(&'a self, to: &'a SessionAddress) -> ClientFuture<'a, Option<String>>;

    /// Returns what became of a command, or `None` if it is unknown or forgotten.
    fn status<'a>(
        &'a self,
        to: &'a SessionAddress,
        input: &'a InputId,
    ) -> ClientFuture<'a, Option<InputStatus>>;
}

/// Whether a subscriber answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Only watches.
    Watches,
    /// Is there to be asked.
    Answers,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum InputStatus {
    /// It waits for the process that runs the session.
    Waiting,
    /// It is in the journal.
    Recorded {
        /// The number of its entry.
        seq: u64,
    },
    /// It was carried out, and the journal says nothing of it.
    Done,
    /// It was refused.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// A running subscription.
pub trait Subscription: Send {
    /// Returns the next event. It ends with an error only. Dropping the future loses nothing.
    fn next(&mut self) -> ClientFuture<'_, SessionEvent>;
}
