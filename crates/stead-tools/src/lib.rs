//! What an agent can do.
//!
//! A [`Tool`] is its spec plus its executor plus its risk, and always gets a context. A
//! [`Registry`] holds tools under their names and makes a model's arguments valid, or says what is
//! wrong with them.
//!
//! ```
//! use serde_json::json;
//! use stead_tools::{Registry, file_tools};
//!
//! let tools = Registry::new(file_tools())?;
//! let (tool, args) = tools.prepare("Read", json!({"path": "notes.md", "limit": "10"})).unwrap();
//! assert_eq!(tool.spec().name, "read_file");
//! assert_eq!(args, json!({"file_path": "notes.md", "limit": 10}));
//! let refused = tools.prepare("read_fil", json!({})).err().unwrap();
//! assert!(refused.contains("did you mean `read_file`?"));
//! # Ok::<(), stead_tools::RegistryError>(())
//! ```
//!
//! Output that may be longer than memory should hold goes through a [`Spill`], which takes that of
//! commands, too.
//!
//!
//! To add a tool, implement [`TypedTool`] and wrap it with [`typed`]: the schema comes from the
//! type of its arguments.

mod arguments;
mod client;
mod execute;
mod files;
mod function;
mod known_tools;
mod plan;
mod preview;
mod registry;
mod schema;
mod similarity;
mod spill;
mod surface;
mod tasks;
mod title;
mod todos;
mod tool;
mod typed;

pub use client::client_tool;
pub use execute::{FolderResolver, execute_tool};
pub use files::file_tools;
pub use function::function_tool;
pub use known_tools::{
    Availability, KnownTool, known_names, known_tool, known_tools, rules_follow,
};
pub use plan::plan_tools;
pub use preview::{Preview, PreviewKind, ReadTools};
pub use registry::{Registry, RegistryError};
pub use schema::validate_json;
pub use similarity::{closest_name, line_diff};
pub use spill::{Quota, Spill, SpillFactory, SpillSite};
pub use stead_sandbox::SinkState;
pub use surface::Surface;
pub use tasks::task_tools;
pub use title::{TitleForm, TypedTitleForm};
pub use todos::{checklist, todo_tools};
pub use tool::{
    ActiveSkills, ArgumentAliases, CallOrigin, Executor, FileVersions, Output, OutputLength,
    SessionView, Tool, ToolCx, ToolError,
};
pub use typed::{TypedTool, typed_tool};
