//! The rules for commands: `commands:` in agent.yaml.
//!
//! Effects: none.

use super::pattern::CommandPattern;
use serde::{Deserialize, Serialize};

/// The rules for commands: which run without asking, which ask, and which are refused. Deny
/// overrides ask, ask overrides allow, and a command that no rule allows asks. A command line is
/// allowed only if each command in it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommandRules {
    /// Whether commands that only read run without asking.
    pub reads: ReadPolicy,
    /// Commands that run without asking: `git status *`, `npm test`.
    pub allow: Vec<CommandPattern>,
    /// Commands that ask, even if `allow` lists them.
    pub ask: Vec<CommandPattern>,
    /// Commands that are refused, also inside `sh -c`, `timeout`, `xargs` and similar wrappers.
    pub deny: Vec<CommandPattern>,
}

/// The treatment of commands that only read.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReadPolicy {
    /// They ask like any other command.
    #[default]
    Ask,
    /// They run without asking, if the file rules allow reading the files they read.
    Allow,
}
