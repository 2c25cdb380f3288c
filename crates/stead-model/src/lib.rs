//! Talking to models: one trait, four wires, and models that need no network.

mod catalogue;
mod classify;
mod connect;
mod error;
mod files;
mod http;
mod local;
mod model;
mod providers;
mod retry;
mod scripted;
mod settings;
mod sse;
mod tape;
mod wire;

pub use catalogue::{ModelInfo, known_models, lookup};
pub use connect::{Env, ModelName, connect, secrets};
pub use error::ModelError;
pub use model::{Delta, Encoded, Model, Params, Reply, Request, SystemPart, ToolChoice};
pub use providers::{KeyNeed, Provider, providers};
pub use scripted::ScriptedModel;
pub use settings::{ModelSettings, Timeouts};
pub use tape::{Recorder, Replay};
