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
mod filesystem;
mod place;
mod prompt;
mod scaffold;
pub mod skills;
mod variables;
mod workspace;

pub use config::{AgentConfig, ConfigError, Policy, UndoSettings};
pub use filesystem::{Filesystem, IsolationScope, Mode, Project, ProjectSettings, SessionSettings};
pub use place::{Attached, LocalPlace, PROJECT, Place, PlaceError, StorePlace};
pub use prompt::{Prompt, Section, SessionFacts};
pub use scaffold::{ScaffoldFile, scaffold};
pub use workspace::{Workspace, WorkspaceError};
