//! The settings of places: `filesystem:` and `sessions:` in agent.yaml.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The place of the workspace's tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FilesystemSettings {
    /// `local` (default) or `store`.
    pub mode: FilesystemMode,
    /// With `local`: a folder that is attached as `project/`.
    pub project: Option<Project>,
    /// With `store`: where, as `postgres://…`, `mysql://…`, `redis://…` or `sqlite:FILE`.
    pub url: Option<String>,
    /// The scope in which written files are shared (default `user`).
    pub scope: IsolationScope,
    /// With `store`: keeps several installations of one agent apart.
    pub namespace: Option<String>,
}

/// The kinds of places that settings can name.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FilesystemMode {
    /// The folder itself.
    #[default]
    Local,
    /// A store, laid over the folder as a template.
    Store,
}

/// A folder that is attached as `project/`: its path, or a map with `path:` and `writable:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "a folder, or `path:` and `writable: true|false`"
)]
pub enum Project {
    /// Read-only.
    Path(PathBuf),
    /// With settings.
    Settings(ProjectSettings),
}

/// A folder that is attached as `project/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectSettings {
    /// The folder; a relative path begins at the workspace.
    pub path: PathBuf,
    /// Whether the agent may change it, asking each time (default false).
    #[serde(default)]
    pub writable: bool,
}

impl Project {
    /// Returns the folder and whether it may be changed.
    pub fn settings(&self) -> ProjectSettings {
        match self {
            Self::Path(path) => ProjectSettings {
                path: path.clone(),
                writable: false,
            },
            Self::Settings(settings) => settings.clone(),
        }
    }
}

/// The scope in which the files that an agent writes are shared.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum IsolationScope {
    /// One session: each session has its own files.
    Session,
    /// The sessions of one user.
    #[default]
    User,
    /// All users of the agent.
    Agent,
    /// All users of all agents.
    Global,
}

/// The place of sessions, if they are not stored with the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// The store; by default that of `filesystem`.
    pub url: Option<String>,
}

impl FilesystemSettings {
    /// Returns the first invalid key and what is wrong with it.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let not_for = |key: &'static str, mode: &str| {
            Some((key, format!("{key} has no meaning with mode: {mode}")))
        };
        match self.mode {
            FilesystemMode::Local if self.url.is_some() => Some((
                "filesystem.url",
                "filesystem.url has no meaning with mode: local; did you mean mode: store?".to_owned(),
            )),
            FilesystemMode::Local if self.namespace.is_some() => not_for("filesystem.namespace", "local"),
            FilesystemMode::Store if self.project.is_some() => not_for("filesystem.project", "store"),
            FilesystemMode::Store if self.url.as_deref().unwrap_or("").is_empty() => Some((
                "filesystem.mode",
                "filesystem.url is missing: mode: store needs one, such as postgres://host/database".to_owned(),
            )),
            FilesystemMode::Local | FilesystemMode::Store => None,
        }
    }
}
