//! Stead: a folder of plain files becomes an agent.
//!
//! This crate re-exports the libraries of Stead under one name. The binary `stead` is a thin layer
//! over it.
//!
//! ```
//! use stead::{Agent, Output, Risk, RunOptions, SessionId, ToolCx, ToolError, function_tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Words {
//!     /// The text to count in.
//!     text: String,
//! }
//!
//! async fn count(_: ToolCx, args: Words) -> Result<Output, ToolError> {
//!     Ok(Output::text(args.text.split_whitespace().count().to_string()))
//! }
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let folder = dir.path();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! std::fs::write(folder.join("AGENTS.md"), "You are a careful librarian.").unwrap();
//! let script = "- calls: [{tool: count_words, args: {text: a b c}}]\n- text: Three.";
//! let agent = Agent::builder()
//!     .workspace(folder)
//!     .model_of(stead::model::ScriptedModel::parse("demo", script).unwrap())
//!     .tool(function_tool("count_words", "Counts the words of a text.", Risk::READS, count))
//!     .build()
//!     .await
//!     .unwrap();
//!
//! let mut session = agent.session(SessionId::new("first").unwrap());
//! let input = session.input("How many words are in `a b c`?").await.blocks;
//! let report = session.run(input, RunOptions::default()).await.unwrap();
//! assert_eq!(report.text, "Three.");
//! # });
//! ```
//!
//! The crate's `examples/` show more.
//!
//! Effects: none.

pub use stead_agent as agent;
pub use stead_core as core;
pub use stead_host as host;
pub use stead_model as model;
pub use stead_place as place;
pub use stead_sandbox as sandbox;
pub use stead_search as search;
pub use stead_skills as skills;
pub use stead_store as store;
pub use stead_tools as tools;
pub use stead_vfs as vfs;
pub use stead_workspace as workspace;

pub use stead_agent::{Agent, AgentBuilder, BuildError, RunOptions, RunReport, Session};
pub use stead_core::{Block, Owner, Risk, SessionId};
pub use stead_tools::{Output, Tool, ToolCx, ToolError, function_tool};
pub use stead_workspace::{FeatureSwitch, Layout};
