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
mod scaffold;
mod spec;
mod strict;
mod tool_lists;
mod variables;
mod workspace;

pub use config::{AgentConfig, Disabled, MemorySettings, Policy, SkillMode, SkillSettings, Switch, UndoSettings};
pub use definition::{ContextFile, Definition, FixedText, Nested, Origin, SkillFlavor, Tree};
pub use document::Document;
pub use dotenv::dotenv;
pub use filesystem::{Filesystem, IsolationScope, Mode, Project, ProjectSettings, SessionSettings};
pub use finding::{Finding, Severity, Spot};
pub use front_matter::FrontMatter;
pub use layout::{Layout, LoadCx, OpenOptions, detect};
pub use place::{Attached, LocalPlace, PROJECT, Place, PlaceError, StorePlace};
pub use prompt::{Prompt, Section, SessionFacts};
pub use scaffold::{ScaffoldFile, scaffold, scaffold_openharness};
pub use spec::{AgentMode, AgentSpec, Isolation, SpecPolicy};
pub use stead_tools::Surface;
use stead_tools::nearest;
pub use tool_lists::{EmptyAllow, McpServer, ToolLists, ToolsConfig, Transport};
pub use workspace::{Workspace, WorkspaceError};
