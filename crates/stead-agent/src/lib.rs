//! The driver: it does what the pure Run machine says, and records what came of it.
//!
//! An [`Agent`] is shared by all its sessions and holds nothing of any of them. A [`Session`] is
//! owned by one task at a time; between runs it keeps the conversation in memory and nothing open.

mod acting;
mod admission;
mod agent;
mod approvals;
mod approve;
mod archive;
mod attach;
mod begin;
mod budget;
mod builder;
mod collect;
mod commands;
mod compact;
mod crew;
mod driver;
mod error;
mod facts;
mod features;
mod gate;
mod halt;
mod hooks;
mod inbox;
mod live;
mod lookup;
mod memory;
mod model_call;
mod offload;
mod outside;
mod records;
mod role;
mod session;
mod setting;
mod standing;
mod steering;
mod tool_calls;
mod turn;
mod undo;
mod usage;

pub use acting::BackgroundTaskPolicy;
pub use agent::{Agent, AgentParts};
pub use approvals::{ApprovalError, ApprovalOutcome, ApprovalReply, OpenQuestion};
pub use approve::{ApprovalAnswer, ApprovalPolicy, ApprovalQuestion, Approver};
pub use archive::ArchiveTag;
pub use attach::{attach, fenced};
pub use budget::{Budget, BudgetError, Reservation};
pub use builder::{AgentBuilder, BuildError, hook_model, side_model};
pub use collect::{GcMode, GcReport};
pub use compact::Pinned;
pub use crew::{
    DelegationBounds, Subagents, TaskRecord, TaskRequest, TaskStatus, TaskWait, WaitingTask,
};
pub use error::AgentError;
pub use facts::UNKNOWN_WINDOW_TOKENS;
pub use features::{Contribution, Feature, TurnCx, user_folder};
pub use gate::{
    CallFacts, CommandFacts, GateRules, Grant, GrantScope, ReadOnlyStatus, RuleMatch,
    SessionPermissions, TaintedWrite, judge,
};
pub use hooks::{Delegate, HookRuntime, Hooks};
pub use inbox::{Inbox, QueuedMessage, SendOutcome};
pub use live::{Listener, RunOptions, RunReport};
pub use lookup::{
    EntryText, Lookup, LookupError, LookupResult, MemoryFiles, entry_text, parse_since, parse_until,
};
pub use memory::{
    BlameLine, ConsolidationReport, DeadJob, Fact, FactDocument, FactSelection, FactSource,
    FlushReport, ForgetResult, LocatedFact, MAX_FACT_CHARS, MemoryError, MemoryJob, MemoryStatus,
    MemoryWorker, MergeDiff, MergeRecord, ReviewDecision, WorkerOptions, WorkerReport,
    without_sources,
};
pub use offload::copy_offloaded;
pub use outside::SessionlessResult;
pub use role::ModelConnector;
pub use session::{RewindPoint, Session};
pub use steering::INTERRUPTED;
pub use turn::TurnSetup;
pub use undo::{Undo, UndoAction, UndoObstacle, UndoPlan, UndoStep};
pub use usage::{
    Purpose, RebuildReport, UsageGrouping, UsageLog, UsagePeriod, UsageRecord, UsageRow,
    report as usage_report,
};
