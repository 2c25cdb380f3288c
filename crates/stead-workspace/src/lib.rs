//! A directory becomes an agent: its settings and its prompt, read from plain files.
//!
//! ```
//! use stead_workspace::AgentConfig;
//!
//! let config = AgentConfig::parse("model: anthropic:claude-sonnet-4-5\npolicy: {max_steps: 20}", &|_| None).unwrap();
//! assert_eq!(config.model.unwrap().name, "anthropic:claude-sonnet-4-5");
//! assert_eq!(config.policy.max_steps, 20);
//! ```

mod config;
mod definition;
mod document;
mod dotenv;
mod filesystem;
mod finding;
mod front_matter;
mod layout;
pub mod order;
mod place;
mod prompt;
mod reader;
mod scaffold;
mod scaffold_foreign;
mod schedule;
mod schema;
pub mod skills;
mod spec;
mod strict;
mod tool_lists;
mod variables;
mod workspace;

pub use config::{AgentConfig, Disabled, MemorySettings, Policy, SkillMode, SkillSettings, Switch, UndoSettings};
pub use definition::{ContextFile, Definition, FixedText, Nested, Origin, Shown, Tree};
pub use document::Document;
pub use dotenv::dotenv;
pub use filesystem::{Filesystem, IsolationScope, Mode, Project, ProjectSettings, SessionSettings};
pub use finding::{Finding, Severity, Spot};
pub use front_matter::FrontMatter;
pub use layout::{Layout, LoadCx, OpenOptions, WorkspaceNameError, detect, recognise, workspace_name};
pub use place::{
    Attached, Base, EphemeralPlace, LocalPlace, PROJECT, Place, PlaceError, PlaceKind, StorePlace, connect_store,
    open_place, open_store_place,
};
pub use prompt::{Cut, Prompt, Section, Within, element, enclose, escaped};
pub use reader::{Excerpt, Reader, Window};
pub use scaffold::{ScaffoldFile, scaffold};
pub use schema::{agent_schema, tools_schema};
pub use spec::{AgentMode, AgentSpec, Isolation, SpecPolicy};
pub use stead_tools::Surface;
use stead_tools::nearest;
pub use tool_lists::{EmptyAllow, McpServer, ToolLists, ToolsConfig, Transport};
pub use workspace::{SkillTrees, Workspace, WorkspaceError};
