//! How much of a conversation a model is shown, and how much room that takes. Pure: plans are made
//! here, and carried out by the driver.

mod estimate;
mod plan;
mod session;
mod show;
#[cfg(test)]
mod tests;

pub use estimate::{media_tokens, message_tokens, spec_tokens, text_tokens};
pub use plan::{CompactionPlan, ContextBudget};
pub use show::{ContextView, VerbatimSection};
pub(crate) use show::{RenderedView, VerbatimContent, render_view};
