//! Talking to models: one trait, four wires, and models that need no network.

mod error;
mod model;
mod settings;
mod wire;

pub use error::ModelError;
pub use model::{Delta, Encoded, Model, Params, Reply, Request, SystemPart, ToolChoice};
pub use settings::{ModelSettings, Timeouts};
