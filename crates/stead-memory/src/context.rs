//! The memory context: what long-term memory needs from the agent that it belongs to.
//!
//! Effects: the clock.

use crate::MemoryError;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, SessionId, SessionModel, TenantId};
use stead_place::OwnerState;
use stead_store::Sessions;
use stead_vfs::Vfs;
use stead_workspace::Definition;

/// The agent that a memory belongs to: its settings, files, sessions, durable state and model.
pub trait MemoryContext: Debug + Send + Sync {
    /// The settings and paths of the workspace.
    fn definition(&self) -> &Definition;

    /// The tree as a session of `owner` sees it, without file rules.
    fn files(&self, owner: &Owner, session: &SessionId) -> Arc<dyn Vfs>;

    /// The documents of `owner`.
    fn state(&self, owner: &Owner) -> OwnerState;

    /// The state that all users of `tenant` share: the queue of jobs.
    fn tenant_state(&self, tenant: &TenantId) -> OwnerState;

    /// The sessions of `owner`.
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions>;

    /// Whether there is a model to ask.
    fn has_model(&self) -> bool;

    /// The model that extracts and merges facts; `None` if there is none to ask.
    fn model(&self) -> Option<MemoryModel>;

    /// Returns the context with which facts of a session are extracted that ran with `used`: its
    /// conversation goes only to a provider that it was sent to before, or that the settings name
    /// for memory. `None` if this context is such a one.
    fn for_session_model(
        &self,
        used: &SessionModel,
    ) -> Result<Option<Arc<dyn MemoryContext>>, MemoryError>;

    /// Asks that model a question and returns the text of its answer. What it costs is taken from
    /// the budget of the question's owner and logged as usage.
    fn ask<'a>(
        &'a self,
        question: MemoryQuestion<'a>,
    ) -> BoxFuture<'a, Result<String, MemoryError>>;

    /// The current time.
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// What memory must know about the model it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryModel {
    /// The name, as `provider:model`.
    pub name: String,
    /// The context window in tokens, or an assumption if it is not known.
    pub window_tokens: u64,
}

/// One question to the model.
#[derive(Debug, Clone)]
pub struct MemoryQuestion<'a> {
    /// The owner who pays for it.
    pub owner: &'a Owner,
    /// The session that it is about.
    pub session: &'a SessionId,
    /// The system prompt.
    pub system: &'a str,
    /// The message.
    pub text: String,
    /// The most tokens that the answer may have.
    pub max_answer_tokens: u64,
    /// The longest wait for the answer.
    pub timeout: Duration,
}
