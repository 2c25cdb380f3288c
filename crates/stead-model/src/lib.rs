//! Talking to models: one trait, four wires, and models that need no network.

mod classify;
mod connect;
mod error;
mod http;
mod model;
mod providers;
mod retry;
mod settings;
mod sse;
mod wire;

pub use connect::{Env, ModelName, connect, secrets};
pub use error::ModelError;
pub use model::{Delta, Encoded, Model, Params, Reply, Request, SystemPart, ToolChoice};
pub use providers::{KeyNeed, Provider, providers};
pub use settings::{ModelSettings, Timeouts};
