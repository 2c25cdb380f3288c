//! How much of a conversation a model is shown, and how much room that takes. Pure: plans are made
//! here, and carried out by the driver.

mod compaction_plan;
mod estimate;
mod session_context;
#[cfg(test)]
mod tests;
mod view;

pub use compaction_plan::{CompactionPlan, ContextBudget};
pub use estimate::{media_tokens, message_tokens, spec_tokens, text_tokens};
pub use view::{ContextView, VerbatimSection};
pub(crate) use view::{RenderedView, VerbatimContent, render_view};
