//! What an agent can do.
//!
//! A [`Tool`] is its spec plus its executor plus its risk, and always gets a context.

mod tool;

pub use tool::{Output, Seen, Tool, ToolCx, ToolError};
