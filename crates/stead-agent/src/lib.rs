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

pub use acting::Leftover;
pub use agent::{Agent, AgentParts};
pub use approvals::{Answered, ApprovalError, OpenQuestion, Reply};
pub use approve::{Answer, Approvals, Approver, Question};
pub use archive::ArchiveTag;
pub use attach::{attach, fenced};
pub use budget::{Budget, BudgetError, Reservation};
pub use builder::{AgentBuilder, BuildError, hook_model, side_model};
pub use collect::{Collected, Really};
pub use compact::Pinned;
pub use crew::{Bound, Crew, Order, TaskRecord, TaskStatus, Wait as TaskWait, WaitingTask};
pub use error::AgentError;
pub use facts::UNKNOWN_WINDOW_TOKENS;
pub use features::{Contribution, Feature, TurnCx, own_folder};
pub use gate::{Command, GateRules, Grant, Granted, Judged, Reads, Ruled, Tainted, Terms, judge};
pub use hooks::{Delegate, HookGear, Hooks};
pub use inbox::{Inbox, Sent, Waiting};
pub use live::{Listener, RunOptions, RunReport};
pub use lookup::{Looked, Lookup, LookupError, MemoryFiles, Said, said, since, until};
pub use memory::{
    Background, Blamed, Consolidated, DeadJob, Fact, Flushed, Forgotten, Ledger, MAX_FACT_CHARS,
    MemoryError, MemoryJob, MemoryStatus, Placed, Record, Review, Shown, Source, Which,
    WorkOptions, Worked, without_sources,
};
pub use offload::copy_offloaded;
pub use outside::Called;
pub use role::Models;
pub use session::{RewindPoint, Session};
pub use steering::INTERRUPTED;
pub use turn::Turn;
pub use undo::{Obstacle, Undo, UndoAction, UndoPlan, UndoStep};
pub use usage::{
    By, Period, Purpose, Rebuilt, UsageLog, UsageRecord, UsageRow, report as usage_report,
};
