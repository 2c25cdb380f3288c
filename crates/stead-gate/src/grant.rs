//! Grants: narrow permissions that a person gave for good by answering a question with "always".
//!
//! Effects: none.

use super::taint::{TaintSink, sinks};
use super::{CallFacts, CommandFacts, ExactLine};
use serde::{Deserialize, Serialize};
use std::fmt;
use stead_core::{RuleId, ToolEffect};
use stead_sandbox::Isolation;
use stead_shell::{Confinement, ShellLine};
use stead_vfs::VPath;

/// A permission for calls that would otherwise ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The id by which the grant is revoked.
    pub id: String,
    /// The tool, by canonical name.
    pub tool: String,
    /// The calls that the grant allows.
    #[serde(flatten)]
    pub what: GrantScope,
    /// The reason why the call asked, for people who review their grants.
    #[serde(default)]
    pub rule: String,
    /// The rules that asked. The grant answers no other rule; with none, only the permission mode.
    #[serde(default)]
    pub rules: Vec<RuleId>,
    /// The person who gave the grant.
    pub by: String,
    /// The time at which it was given.
    pub at: jiff::Timestamp,
}

/// The calls of a tool that a grant allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "allows", content = "only", rename_all = "snake_case")]
pub enum GrantScope {
    /// Exactly this command line.
    Command {
        /// The command line.
        line: String,
        /// The folder of the workspace in which it starts.
        cwd: String,
    },
    /// Command lines with parts that each match one of these patterns. Grants of earlier versions
    /// have this form. Like rules, patterns with wildcards allow only reads outside a sandbox.
    Commands(Vec<String>),
    /// Calls that name only paths below this folder.
    Folder(String),
    /// Calls that name only this file.
    File(String),
    /// All calls.
    Calls,
}

impl GrantScope {
    /// Whether the scope includes a call.
    fn covers(&self, call: &CallFacts) -> bool {
        match self {
            Self::Command { line, cwd } => call.command.as_ref().is_some_and(|command| {
                command.exact == ExactLine::Holds && command.text == *line && command.cwd == *cwd
            }),
            Self::Commands(patterns) => call.command.as_ref().is_some_and(|command| {
                let line = ShellLine::on_host(&command.text)
                    .in_folder(&command.cwd)
                    .confined(confinement(command.isolation));
                command.exact == ExactLine::Holds && stead_shell::allows(patterns, line)
            }),
            Self::Folder(folder) => {
                call.command.is_none() && names_only(call, |path| is_strictly_below(folder, path))
            }
            Self::File(file) => {
                call.command.is_none() && names_only(call, |path| path.as_str() == file)
            }
            Self::Calls => call.command.is_none(),
        }
    }

    /// Returns the narrowest scope that includes calls like this one; none if a person must see
    /// each of them.
    pub fn offer(call: &CallFacts) -> Option<Self> {
        let must_be_seen = |sink: &TaintSink<'_>| !sink.can_be_granted();
        if sinks(call).iter().any(must_be_seen) || call.always_asks.is_some() {
            return None;
        }
        if let Some(command) = &call.command {
            return Self::command(command);
        }
        // It is unknown what the call would run.
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
            // The folder of a file at the root would be the whole workspace.
            root if root.is_root() => Self::File(first.to_string()),
            folder => Self::Folder(folder.to_string()),
        };
        offered.covers(call).then_some(offered)
    }

    /// Returns the scope for exactly this command; none if the same line may do something else
    /// the next time.
    fn command(command: &CommandFacts) -> Option<Self> {
        let is_same_again =
            command.exact == ExactLine::Holds && stead_shell::parse(&command.text).is_determined();
        is_same_again.then(|| Self::Command {
            line: command.text.clone(),
            cwd: command.cwd.clone(),
        })
    }
}

/// Returns what limits the processes of a command with this isolation.
pub fn confinement(isolation: Isolation) -> Confinement {
    match isolation.is_complete() {
        true => Confinement::Sandbox,
        false => Confinement::Host,
    }
}

impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { line, cwd } if cwd == "." => write!(f, "exactly {line}"),
            Self::Command { line, cwd } => write!(f, "exactly {line} in {cwd}/"),
            Self::Commands(patterns) => write!(f, "commands like {}", patterns.join(", ")),
            Self::Folder(folder) => write!(f, "in {folder}/"),
            Self::File(file) => write!(f, "of {file}"),
            Self::Calls => f.write_str("every call"),
        }
    }
}

impl Grant {
    /// Whether the grant allows a call.
    pub fn covers(&self, call: &CallFacts) -> bool {
        self.tool == call.tool && self.what.covers(call)
    }

    /// Whether the grant answers all rules that ask. Without such rules the permission mode asks,
    /// which every grant answers.
    pub(super) fn answers(&self, asking: &[RuleId]) -> bool {
        asking.iter().all(|rule| self.rules.contains(rule))
    }
}

/// Whether a call names files, and all of them satisfy `fit`, by their names and by their resolved
/// paths.
fn names_only(call: &CallFacts, fit: impl Fn(&VPath) -> bool) -> bool {
    let named = &call.named_paths;
    let fits = |path: &String| VPath::parse(path).is_ok_and(|path| fit(&path));
    !named.is_empty() && named.iter().all(fits) && call.resolved_paths.iter().all(&fit)
}

/// Whether `path` is below `folder`. The folder itself is not.
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
