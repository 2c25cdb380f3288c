//! Tools: what an agent can do.
//!
//! A [`Tool`] has three methods: `spec` (what it is), `plan` (what a call would do) and `call` (do
//! it). A [`Registry`] holds tools under their names and turns what a model asks for into a
//! [`PreparedCall`], or says what is wrong with it.
//!
//! ```
//! use serde_json::json;
//! use stead_tools::{Registry, file_tools};
//!
//! let tools = Registry::new(file_tools())?;
//! let call = tools.prepare("Read", json!({"path": "notes.md", "limit": "10"})).unwrap();
//! assert_eq!(call.spec().name, "read_file");
//! assert_eq!(call.args(), &json!({"file_path": "notes.md", "limit": 10}));
//! assert_eq!(call.plan().accesses()[0].path, "notes.md");
//! let refused = tools.prepare("read_fil", json!({})).unwrap_err();
//! assert!(refused.to_string().contains("did you mean `read_file`?"));
//! # Ok::<(), stead_tools::RegistryError>(())
//! ```
//!
//! To add a tool, implement [`TypedTool`] and wrap it with [`typed_tool`]: the schema comes from the
//! type of its arguments. A built-in tool also has an identity in [`builtin`], by which settings,
//! rules and old journals know it. This is a whole tool:
//!
//! ```
//! use stead_core::{Risk, ToolKind};
//! use stead_tools::{CallPlan, Output, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
//! use stead_tools::{Registry, typed_tool};
//! use stead_vfs::{ReadRange, VPath};
//!
//! struct CountWords;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct CountWordsArgs {
//!     /// The file to count in.
//!     file_path: String,
//! }
//!
//! impl TypedTool for CountWords {
//!     type Args = CountWordsArgs;
//!     const DEF: ToolDef = ToolDef::new(
//!         ToolIdentity::new("count_words", ToolKind::FileRead),
//!         Risk::READS,
//!         "Counts the words of a file.",
//!     )
//!     .bounded();
//!
//!     fn plan(&self, args: &CountWordsArgs) -> CallPlan {
//!         CallPlan::reads(&args.file_path)
//!     }
//!
//!     async fn call(&self, cx: &ToolCx, args: CountWordsArgs) -> Result<Output, ToolError> {
//!         let tell = |error: String| ToolError::RespondToModel(error);
//!         let path = VPath::parse(&args.file_path).map_err(|error| tell(error.to_string()))?;
//!         let range = ReadRange { offset: 0, len: 1 << 20 };
//!         let (bytes, _) =
//!             cx.vfs.read(&path, range).await.map_err(|error| tell(error.to_string()))?;
//!         let words = String::from_utf8_lossy(&bytes).split_whitespace().count();
//!         Ok(Output::text(words.to_string()))
//!     }
//! }
//!
//! let tools = Registry::new([typed_tool(CountWords)])?;
//! let call = tools.prepare("count_words", serde_json::json!({"file_path": "a.md"})).unwrap();
//! assert_eq!(call.plan().accesses()[0].path, "a.md");
//! # Ok::<(), stead_tools::RegistryError>(())
//! ```
//!
//! Output that may be longer than memory should hold goes through a [`Spill`], which takes the
//! output of commands too. A tool calls other tools with [`ToolCx::calls`]; see [`NestedCalls`] for
//! what such a tool must promise.
//!
//! Effects: none.

mod arguments;
pub mod builtin;
mod call_plan;
mod client;
mod definition;
mod execute;
mod files;
mod function;
mod nested;
mod plan;
mod presentation;
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

pub use builtin::{
    Availability, KnownTool, builtin_tool, builtin_tools, known_names, known_tool, known_tools,
    rules_follow,
};
pub use call_plan::{CallPlan, CommandLine, PlanView};
pub use client::client_tool;
pub use definition::{ToolDef, ToolIdentity};
pub use execute::{FolderResolver, execute_tool};
pub use files::file_tools;
pub use function::function_tool;
pub use nested::{CallTools, NestedCallError, NestedCalls, NestedOutput};
pub use plan::plan_tools;
pub use presentation::{ShownTools, ToolGroup, tool_group, tool_groups, usually_deferred};
pub use preview::{Preview, PreviewKind, ReadTools};
pub use registry::{PreparedCall, Registry, RegistryError};
pub use schema::validate_json;
pub use similarity::{closest_name, line_diff};
pub use spill::{Quota, Spill, SpillFactory, SpillSite};
pub use stead_core::{ArgumentAliases, Executor, OutputLength};
pub use stead_sandbox::SinkState;
pub use surface::Surface;
pub use tasks::task_tools;
pub use title::TypedTitleForm;
pub use todos::{checklist, todo_tools};
pub use tool::{
    ActiveSkills, CallOrigin, FileVersions, Output, PlanError, SessionView, Tool, ToolCx, ToolError,
};
pub use typed::{TypedTool, typed_tool};
