//! The vocabulary of Stead, and the pure machine that decides what a run does next.
//!
//! Nothing here performs I/O or awaits. The driver in `stead-agent` does what [`Run::next`] says,
//! records the outcome as a journal [`Entry`], and applies that entry to the [`SessionState`].
//! Because every change of state is an entry, loading a journal and living through it are the same
//! code, and resume, replay and property tests follow from it.
//!
//! ```
//! use stead_core::{Block, Entry, Limits, Next, RunId, SessionState, UserInput};
//!
//! let mut state = SessionState::default();
//! let run = RunId::new("r1").unwrap();
//! state.apply(1, &Entry::User(UserInput::text(run, "hello"))).unwrap();
//! assert_eq!(state.next(&Limits::default()), Next::CallModel);
//! ```
//!
//! - [`Message`], [`Block`], [`ToolCall`]: what is said. - [`Entry`], [`Line`]: what is recorded.
//! - [`SessionState`], [`Run`]: what it adds up to. - [`Event`]: what listeners see.

mod ask;
mod budget;
mod context;
mod entry;
mod event;
mod ids;
mod journal_line;
mod message;
mod permission_mode;
mod redact;
mod repeat;
mod run;
mod session_change;
mod session_origin;
mod state;
mod tool;
mod usage;
mod verdict;

pub use ask::{Ask, AskTerms, Decision, DecisionKind};
pub use budget::{
    BudgetAccount, BudgetExhausted, BudgetScope, BudgetUnit, CallEstimate, CallReservation,
    MIN_ANSWER_TOKENS, SpendAmount, SpendLimit, budget_setting_name,
};
pub use context::{
    CompactionPlan, ContextBudget, ContextView, VerbatimSection, media_tokens, message_tokens,
    spec_tokens, text_tokens,
};
pub use entry::{
    CallIntent, CallResult, Compaction, CompactionCause, DroppedCounts, Entry, EntryKind,
    FORMAT_VERSION, Fork, HookOutcome, HookRun, ModelReply, Notice, Pin, ResultStatus, Rewind,
    RunEnd, RunOutcome, SessionStart, SetEntry, SkillActivation, Steer, UserInput,
};
pub use event::{Event, EventKind, NoticeLevel};
pub use ids::{AgentId, IdError, NameError, Owner, RunId, SessionId, TenantId, UserId};
pub use journal_line::{ChainSum, JournalLine, LineError, decode_line, encode_line};
pub use message::{Block, Media, Message, Thinking, ToolCall, ToolResult};
pub use permission_mode::PermissionMode;
pub use redact::{RedactStream, Redactor};
pub use repeat::{RepeatGuard, Repetition};
pub use run::{CallState, NextAction, PendingCall, Run, RunLimits};
pub use session_change::{PlanModeChange, PlanStage, SessionChange, Todo, TodoStatus};
pub use session_origin::{ChildFiles, PermissionCeiling, SessionOrigin, SubagentOrigin};
pub use state::{ActiveSkill, FoldError, SessionState, TurnMessage};
pub use tool::{
    AccessKind, ArgumentAliases, Executor, OutputLength, PathAccess, PathScope, Risk, TitleForm,
    ToolEffect, ToolKind, ToolSpec, args_hash,
};
pub use usage::{Price, StopReason, Usage, Usd};
pub use verdict::{Verdict, VerdictKind};
