//! Language models: one trait, four wire protocols, and models that need no network.
//!
//! [`connect()`] turns a name such as `anthropic:claude-sonnet-4-5` into a [`Model`] with its
//! retries, fallbacks and price. A model takes a [`Request`] and returns a stream of [`Delta`]s
//! that ends with the whole [`Reply`]. Errors are [`ModelError`]s, classified by what helps:
//! waiting, another model, or a shorter conversation. [`ModelFacts`] tells the name, limits, price
//! and abilities of a model.
//!
//! `scripted:FILE` plays a script, `record:FILE=provider:model` records answers in a file, and
//! `replay:FILE` replays them. [`Embedder`] turns texts into vectors.
//!
//! ```
//! use stead_core::{Block, Message};
//! use stead_model::{Model, Request, ScriptedModel};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), stead_model::ModelError> {
//! let model = ScriptedModel::parse("greeting.yaml", "
//! - when: {user_contains: hello}
//!   text: Hello to you, too.
//! ")?;
//! let request = Request { messages: vec![Message::user("hello").into()], ..Request::default() };
//! let reply = model.complete(&request).await?;
//! assert_eq!(reply.content, [Block::text("Hello to you, too.")]);
//! # Ok(())
//! # }
//! ```
//!
//! Effects: none.

mod abilities;
mod caching;
mod catalogue;
mod classify;
mod connect;
mod embed;
mod error;
mod facts;
mod files;
mod http;
mod json_endpoint;
mod key_policy;
mod local;
mod model;
mod overrides;
mod providers;
mod reported_limits;
mod retry;
mod scripted;
mod session_model;
mod settings;
mod sse;
mod tape;
mod wire;

pub use abilities::{Abilities, Ability};
pub use caching::Caching;
pub use catalogue::{ModelInfo, cheap_model, known_models, lookup};
pub use connect::{
    EnvLookup, ModelName, SecretRules, check_name, connect, connect_with, provider_name, secrets,
    supports_caching,
};
pub use embed::{Embedder, EmbeddingSettings};
pub use error::ModelError;
pub use facts::{FallbackFacts, ModelFacts};
pub use json_endpoint::JsonEndpoint;
pub use key_policy::{KeyPolicy, endpoint_origin};
pub use model::{Delta, Encoded, Model, Params, Reply, Request, SystemPart, ToolChoice};
pub use providers::{KeyNeed, Provider, providers};
pub use reported_limits::ReportedLimits;
pub use scripted::ScriptedModel;
pub use settings::{ModelSettings, Timeouts};
pub use sse::{EventSink, SseParser};
pub use tape::{Recorder, Replay};
