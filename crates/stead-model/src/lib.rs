//! Talking to models: one trait, four wires, and models that need no network.

mod catalogue;
mod error;
mod files;
mod local;
mod model;
mod pieces;
mod scripted;
mod settings;
mod tape;
mod wire;

pub use catalogue::{ModelInfo, lookup};
pub use error::ModelError;
pub use model::{Delta, Encoded, Model, Params, Reply, Request, SystemPart, ToolChoice};
pub use scripted::ScriptedModel;
pub use settings::{ModelSettings, Timeouts};
pub use tape::{Recorder, Replay};
