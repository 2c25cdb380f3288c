//! The driver: it carries out what the pure run machine of `stead-core` decides, and records the
//! results.
//!
//! An [`Agent`] is shared by all its sessions and holds the state of none. A [`Session`] is owned
//! by one task at a time; between runs it keeps the conversation in memory and nothing open.
//!
//! Effects: none.

mod admission;
mod agent;
mod answer_schema;
mod approvals;
mod approver;
mod archive;
mod budget;
mod builder;
mod clock;
mod commands;
mod error;
mod features;
mod gc;
mod hooks;
mod lookup;
mod memory;
mod message_queue;
mod metered_model;
mod model_facts;
mod offload;
mod run;
mod session;
mod session_models;
mod shared_document;
mod side_spending;
mod subagents;
mod taint;
mod undo;
mod usage;
mod workspace_agents;

pub use agent::Agent;
pub(crate) use agent::AgentParts;
pub use answer_schema::answer_schema_problem;
pub use approvals::{
    ApprovalError, ApprovalOutcome, GrantKey, GrantKeys, GrantStore, NewGrant, OpenQuestion,
    OpenQuestions, SessionSeals,
};
pub use approver::{ApprovalPolicy, Approver, SignedAnswer};
pub use archive::{ArchiveTag, ConversationArchive};
pub use budget::{Budget, BudgetError, Reservation};
pub use builder::{
    AgentBuilder, BuildError, DEFAULT_MODEL_VARIABLE, DEFAULT_MODELS, choose_model, inspect_folder,
    open_folder, resolve_model_files,
};
pub use clock::Clock;
pub use error::{AgentError, HookAction, HookStop, StopCause};
pub use features::{Contribution, Feature, TurnCx, inspect_user_folder, user_folder};
pub use gc::{ApplyMode, GarbageCollector, GcReport};
pub(crate) use hooks::HookRuntime;
pub use hooks::{Delegate, HookTask, Hooks};
pub use lookup::{
    EntryText, Lookup, LookupError, LookupResult, MemoryFiles, entry_text, parse_since, parse_until,
};
pub use message_queue::{IncomingMessage, MessageQueue, QueuedMessage, SendOutcome};
pub use model_facts::UNKNOWN_WINDOW_TOKENS;
pub use offload::copy_offloaded;
pub use run::{
    BackgroundTaskPolicy, EntryListener, INTERRUPTED, Listener, RunOptions, RunTrigger,
    Sessionless, SessionlessResult, TurnSetup, run_session,
};
pub use session::{PreparedInput, RewindPoint, Session};
pub use session_models::NoModelReason;
pub(crate) use side_spending::SideSpending;
pub use side_spending::SideTotal;
pub use stead_core::{
    AfterAnswer, ApprovalAnswer, ApprovalQuestion, ApprovalReply, Pinned, RunReport, WaitingTask,
};
pub use stead_gate::{
    CallFacts, CommandFacts, ExactLine, GateRules, Grant, GrantScope, ReadOnlyStatus, RuleMatch,
    SessionPermissions, SessionTaint, judge,
};
pub use stead_memory::{
    BlameLine, ConsolidationReport, DeadJob, Fact, FactDocument, FactSelection, FactSource,
    FailedFlush, FlushReport, ForgetResult, LocatedFact, MAX_FACT_CHARS, Memory, MemoryError,
    MemoryStatus, MemoryWorker, MergeDiff, MergeRecord, NewPart, PendingSession, ReviewDecision,
    WorkerOptions, WorkerReport, without_sources,
};
pub use subagents::{
    DelegationBounds, Subagents, TaskRecord, TaskRecordError, TaskRequest, TaskStatus, TaskWait,
};
pub use undo::{UndoAction, UndoHistory, UndoObstacle, UndoPlan, UndoStep};
pub use usage::{
    LoggedUsage, Purpose, RebuildReport, UsageGrouping, UsageLog, UsagePeriod, UsageRecord,
    UsageRow, report as usage_report,
};
pub use workspace_agents::{ModelConnector, WorkspaceAgents};
