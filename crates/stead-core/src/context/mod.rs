//! The context: which messages a model is sent, and how many tokens they take. Pure: the driver
//! carries out the plans made here.
//!
//! Effects: none.

mod compaction_plan;
mod estimate;
mod session_context;
#[cfg(test)]
mod tests;
mod view;

pub use compaction_plan::{CompactionPlan, ContextBudget};
pub use estimate::{media_tokens, message_tokens, spec_bytes, spec_tokens, text_tokens};
pub use view::{ContextView, VerbatimSection};
pub(crate) use view::{RenderedView, VerbatimContent, render_view};
