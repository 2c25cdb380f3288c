//! `commands:` in agent.yaml.

use super::pattern::CommandPattern;
use serde::{Deserialize, Serialize};

/// Which commands run unasked, which ask, which are refused. Deny beats ask, ask beats allow, and
/// what no rule allows asks. A command line is allowed only if each command in it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommandRules {
    /// Whether commands that only read run unasked.
    pub reads: ReadPolicy,
    /// These run unasked: `git status *`, `npm test`.
    pub allow: Vec<CommandPattern>,
    /// These ask, whatever `allow` says.
    pub ask: Vec<CommandPattern>,
    /// These are refused, also inside of `sh -c`, `timeout`, `xargs` and the like.
    pub deny: Vec<CommandPattern>,
}

/// What becomes of commands that only read.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReadPolicy {
    /// They ask like any other.
    #[default]
    Ask,
    /// They run unasked, if the file rules let what they read be read.
    Allow,
}
