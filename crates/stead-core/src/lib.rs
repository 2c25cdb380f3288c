//! The types of Stead, and the pure state machine that decides what a run does next.
//!
//! This crate performs no I/O and has no async code. The driver in `stead-agent` does what
//! [`SessionState::next`] says, records the outcome as a journal [`Entry`], and applies that entry to the
//! [`SessionState`]. Every change of state is an entry, so loading a journal and running a session
//! use the same code, which makes resume, replay and property tests possible.
//!
//! ```
//! use stead_core::{Entry, NextAction, RunId, RunLimits, SessionState, UserInput};
//!
//! let mut state = SessionState::default();
//! let run = RunId::new("r1").unwrap();
//! state.apply(1, &Entry::User(UserInput::text(run, "hello"))).unwrap();
//! assert_eq!(state.next(&RunLimits::default()), NextAction::CallModel);
//! ```
//!
//! - [`Message`], [`Block`], [`ToolCall`], [`ToolSpec`]: the conversation and its tools.
//! - [`Entry`], [`JournalLine`], [`Redactor`]: the journal, its lines and redaction.
//! - [`SessionState`], [`Run`], [`NextAction`]: the fold and the state machine.
//! - [`Ask`], [`Decision`], [`Verdict`], [`PermissionMode`]: approvals and permissions.
//! - [`ContextView`], [`ContextBudget`], [`CompactionPlan`]: the context and its compaction.
//! - [`BudgetAccount`], [`CallEstimate`], [`Usage`], [`Price`], [`Usd`]: usage, cost and budgets.
//! - [`Event`]: what listeners are told while a run goes on.
//! - [`Client`], [`Command`], [`SessionEvent`]: how front ends talk to sessions.
//! - [`YamlValue`], [`YamlDocument`]: YAML with the order and the positions of its keys.
//! - [`SessionId`], [`AgentId`], [`RunId`], [`InputId`], [`Owner`]: identifiers that are safe in paths and keys.
//!
//! Effects: none.

mod ask;
mod budget;
mod client;
mod context;
mod count;
mod entry;
mod event;
mod hint;
mod ids;
mod journal_line;
mod markdown;
mod message;
mod permission_mode;
mod redact;
mod repeat;
mod run;
mod session_change;
mod session_model;
mod session_origin;
mod state;
mod step_calls;
mod taint;
mod tool;
mod usage;
mod variables;
mod verdict;
mod yaml;

pub use ask::{
    AfterAnswer, ApprovalAnswer, ApprovalQuestion, ApprovalReply, Ask, AskTerms, Decision,
    DecisionKind,
};
pub use budget::{
    BudgetAccount, BudgetExhausted, BudgetScope, BudgetUnit, CallEstimate, CallReservation,
    MIN_ANSWER_TOKENS, SpendAmount, SpendLimit, budget_setting_name,
};
pub use client::{
    AnswerCommand, AnswerPolicy, Client, ClientError, ClientFuture, Command, Cursor, EventId,
    EventIdError, InputCommand, InputStatus, Pinned, Presence, QueueMode, Receipt, RunReport,
    SessionAddress, SessionEvent, SessionEventBody, Subscription, WaitingTask,
};
pub use context::{
    CompactionPlan, ContextBudget, ContextView, VerbatimSection, media_tokens, message_tokens,
    spec_bytes, spec_tokens, text_tokens,
};
pub use count::counted;
pub use entry::{
    CallIntent, CallResult, Compaction, CompactionCause, DeliveryOutcome, DroppedCounts, Entry,
    EntryKind, FORMAT_VERSION, Fork, HookOutcome, HookRun, MAX_NESTED_DEPTH, ModelReply,
    NestedCall, NestedId, Notice, NoticeKind, Origin, OriginKind, Pin, ResultStatus, Rewind,
    RunCause, RunEnd, RunOutcome, SentMessage, SessionStart, SetEntry, ShownEnd, SkillActivation,
    Steer, UserInput,
};
pub use event::{ChildPosition, Event, EventKind, NoticeLevel};
pub use hint::Hint;
pub use ids::{AgentId, IdError, InputId, NameError, Owner, RunId, SessionId, TenantId, UserId};
pub use journal_line::{ChainSum, JournalLine, LineError, decode_line, encode_line};
pub use markdown::fenced;
pub use message::{Block, Media, Message, Thinking, ToolCall, ToolResult};
pub use permission_mode::PermissionMode;
pub use redact::{RedactStream, Redactor};
pub use repeat::{RepeatGuard, Repetition};
pub use run::{NextAction, Run, RunLimits};
pub use session_change::{PlanModeChange, PlanStage, SessionChange, Todo, TodoStatus};
pub use session_model::{ModelScope, SessionModel};
pub use session_origin::{
    ChildFiles, NewSession, PermissionCeiling, SessionOrigin, SubagentOrigin,
};
pub use state::{ActiveSkill, FoldError, SessionState, TurnMessage};
pub use step_calls::{CallState, Nesting, PendingCall, StepCalls};
pub use taint::{MAX_TAINT_ORIGINS, TaintOrigin, TaintOrigins, recorded_taint};
pub use tool::{
    AccessKind, ArgumentAliases, Executor, Exposure, ItemAliases, OutputLength, PathAccess,
    PathScope, ResultContent, Risk, TitleForm, ToolEffect, ToolKind, ToolSpec, args_hash,
};
pub use usage::{Price, StopReason, Usage, Usd};
pub use variables::{Substitution, UnsetVariable, VariableLookup, VariableSyntax, substitute};
pub use verdict::{RuleId, RuleSource, Verdict, VerdictKind};
pub use yaml::{SourcePosition, YamlDocument, YamlError, YamlErrorKind, YamlValue};
