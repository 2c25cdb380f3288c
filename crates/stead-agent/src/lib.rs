//! The driver: it does what the pure Run machine says, and records what came of it.
//!
//! An [`Agent`] is shared by all its sessions and holds nothing of any of them. A [`Session`] is
//! owned by one task at a time; between runs it keeps the conversation in memory and nothing open.

mod agent;
mod approve;
mod attach;
mod builder;
mod collect;
mod compact;
mod driver;
mod error;
mod features;
mod gate;
mod halt;
mod live;
mod lookup;
mod model_call;
mod offload;
mod session;
mod tool_calls;
mod turn;
mod undo;

pub use agent::{Agent, AgentParts};
pub use approve::{Answer, Approvals, Approver, Question};
pub use attach::{attach, fenced};
pub use builder::{AgentBuilder, BuildError, side_model};
pub use collect::{Collected, Really};
pub use compact::Pinned;
pub use error::AgentError;
pub use features::{Contribution, Feature, TurnCx, own_folder};
pub use gate::{GateRules, Judged, judge};
pub use live::{Listener, RunOptions, RunReport};
pub use lookup::{Looked, Lookup, LookupError, MemoryFiles, Said, said, since, until};
pub use offload::copy_offloaded;
pub use session::{RewindPoint, Session};
pub use tool_calls::Called;
pub use turn::Turn;
pub use undo::{Obstacle, Undo, UndoAction, UndoPlan, UndoStep};
