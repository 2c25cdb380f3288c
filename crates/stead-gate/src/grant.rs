//! What a person allowed for good: a narrow rule, made by answering a question with "always".

use super::CallFacts;
use serde::{Deserialize, Serialize};
use std::fmt;
use stead_core::{RuleId, ToolEffect};

use stead_vfs::VPath;

/// A call that need not be asked about any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// By which it is revoked.
    pub id: String,
    /// The tool, by canonical name.
    pub tool: String,
    /// Which of its calls.
    #[serde(flatten)]
    pub what: GrantScope,
    /// Why it was asked, for people who look through their grants.
    #[serde(default)]
    pub rule: String,
    /// The rules that asked. The grant answers no other rule; with none, only the permission mode.
    #[serde(default)]
    pub rules: Vec<RuleId>,
    /// Who allowed it.
    pub by: String,
    /// When.
    pub at: jiff::Timestamp,
}

/// Which calls of a tool are allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "allows", content = "only", rename_all = "snake_case")]
pub enum GrantScope {
    /// Commands whose parts are all like one of these patterns.
    Commands(Vec<String>),
    /// Those that name only what lies below this folder.
    Folder(String),
    /// Those that name only this file.
    File(String),
    /// All of them.
    Calls,
}

impl GrantScope {
    /// Whether a call of the tool is among those that are allowed.
    fn covers(&self, call: &CallFacts) -> bool {
        match self {
            Self::Commands(patterns) => call
                .command
                .as_ref()
                .is_some_and(|command| stead_shell::allows(patterns, &command.text)),
            Self::Folder(folder) => {
                call.command.is_none() && names_only(call, |path| is_strictly_below(folder, path))
            }
            Self::File(file) => {
                call.command.is_none() && names_only(call, |path| path.as_str() == file)
            }
            Self::Calls => call.command.is_none(),
        }
    }

    /// The narrowest rule that makes calls like this one free; none where no rule should: a person
    /// must see each.
    pub fn offer(call: &CallFacts) -> Option<Self> {
        if call.tainted_write.is_some() || call.always_asks.is_some() {
            return None;
        }
        if let Some(command) = &call.command {
            return Self::commands(&command.text);
        }
        // Nobody knows what it would run.
        if call.effect == ToolEffect::Executes {
            return None;
        }
        let named: Vec<VPath> = call
            .named_paths
            .iter()
            .map(|path| VPath::parse(path))
            .collect::<Result<_, _>>()
            .ok()?;
        let Some(first) = named.first() else {
            return Some(Self::Calls);
        };
        let offered = match first.parent()? {
            // A folder of the root would be the whole workspace.
            root if root.is_root() => Self::File(first.to_string()),
            folder => Self::Folder(folder.to_string()),
        };
        offered.covers(call).then_some(offered)
    }

    /// The rule for commands like this one: each of its parts by itself.
    fn commands(command: &str) -> Option<Self> {
        Some(stead_shell::suggest_rules(command))
            .filter(|patterns| !patterns.is_empty())
            .map(Self::Commands)
    }
}

impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(patterns) => write!(f, "commands like {}", patterns.join(", ")),
            Self::Folder(folder) => write!(f, "in {folder}/"),
            Self::File(file) => write!(f, "of {file}"),
            Self::Calls => f.write_str("every call"),
        }
    }
}

impl Grant {
    /// Whether a call is among those it allows.
    pub fn covers(&self, call: &CallFacts) -> bool {
        self.tool == call.tool && self.what.covers(call)
    }

    /// Whether it answers all of the rules that ask. Where none asks, the question is the permission
    /// mode's, which every grant answers.
    pub(super) fn answers(&self, asking: &[RuleId]) -> bool {
        asking.iter().all(|rule| self.rules.contains(rule))
    }
}

/// Whether a call names files, and only such as `fit`, by their names and by where they really lie.
fn names_only(call: &CallFacts, fit: impl Fn(&VPath) -> bool) -> bool {
    let named = &call.named_paths;
    let fits = |path: &String| VPath::parse(path).is_ok_and(|path| fit(&path));
    !named.is_empty() && named.iter().all(fits) && call.resolved_paths.iter().all(&fit)
}

/// Whether `path` lies in `folder`; the folder itself does not.
fn is_strictly_below(folder: &str, path: &VPath) -> bool {
    VPath::parse(folder).is_ok_and(|folder| folder.contains(path) && folder != *path)
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}: {}, allowed by {})",
            self.id, self.tool, self.what, self.by
        )
    }
}
