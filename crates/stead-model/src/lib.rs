//! Talking to models: one trait, four wires, and models that need no network.

mod classify;
mod error;
mod model;
mod settings;
mod sse;
mod wire;

pub use error::ModelError;
pub use model::{Delta, Encoded, Model, Params, Reply, Request, SystemPart, ToolChoice};
pub use settings::{ModelSettings, Timeouts};
