//! The facts that the gate judges.
//!
//! Effects: none.

use crate::SessionTaint;
use serde_json::Value;
use stead_core::{ToolEffect, ToolKind, Verdict};
use stead_place::ProjectAccess;
use stead_sandbox::Isolation;
use stead_vfs::VPath;

/// The facts about a call, with the verdicts of the file and command rules on everything it would
/// touch.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFacts {
    /// The tool's canonical name.
    pub tool: String,
    /// The tool kind.
    pub kind: ToolKind,
    /// The canonical name of a tool whose rules also apply to this one.
    pub follows_rules_of: Option<String>,
    /// The strongest effect of the tool.
    pub effect: ToolEffect,
    /// The arguments.
    pub args: Value,
    /// Whether the tool lists leave the tool out.
    pub unlisted: bool,
    /// The reason why the tool may never be called for the current model, if there is one.
    pub excluded: Option<String>,
    /// The verdict of the file rules ([`stead_vfs::judge_accesses`]); none if the call touches no files.
    pub file_verdict: Option<Verdict>,
    /// The paths that the arguments name.
    pub named_paths: Vec<String>,
    /// The resolved paths of everything that the call touches. Empty if neither grants nor approvals
    /// look at paths.
    pub resolved_paths: Vec<VPath>,
    /// The facts about the command, if the call runs one.
    pub command: Option<CommandFacts>,
    /// The access to the attached project, if the call would change something in it.
    pub changed_project: Option<ProjectAccess>,
    /// The walls that commands of the agent run behind.
    pub isolation: Isolation,
    /// What the session has taken in, if it is tainted.
    pub taint: Option<SessionTaint>,
    /// The prompt source that the call would change, as the call names it. It is looked for only if
    /// the session is tainted.
    pub prompt_source: Option<String>,
    /// The reason why the call always asks, in any mode, if it does.
    pub always_asks: Option<String>,
}

/// The facts about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFacts {
    /// The command line as it was written.
    pub text: String,
    /// The folder of the workspace in which it starts.
    pub cwd: String,
    /// The deciding rule, if there is one.
    pub rule_match: RuleMatch,
    /// Whether the line still is what a person saw who allowed exactly this line.
    pub exact: ExactLine,
    /// The isolation that the command would run in.
    pub isolation: Isolation,
    /// Whether the command certainly only reads.
    pub read_only: ReadOnlyStatus,
    /// Whether the command plainly reaches other machines, if its walls let it.
    pub network: bool,
}

/// Whether a permission for exactly a command line holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExactLine {
    /// It holds.
    Holds,
    /// It does not, for this reason: the session wrote the program that the line runs, or it is not
    /// known which that is.
    Broken(String),
}

/// Whether a rule decides about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleMatch {
    /// A rule decides.
    Matched(Verdict),
    /// No rule decides, for this reason: a part that no rule covers, or one that cannot be parsed.
    NoMatch(String),
}

/// Whether something only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyStatus {
    /// It certainly only reads.
    Yes,
    /// It may do more.
    Unknown,
}

impl CallFacts {
    /// Returns the facts about a call of an excluded tool.
    pub fn of_excluded_tool(tool: &str, why: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            kind: ToolKind::Other,
            follows_rules_of: None,
            effect: ToolEffect::Reads,
            args: Value::Null,
            unlisted: false,
            excluded: Some(why.to_owned()),
            file_verdict: None,
            named_paths: Vec::new(),
            resolved_paths: Vec::new(),
            command: None,
            changed_project: None,
            isolation: Isolation::NONE,
            taint: None,
            prompt_source: None,
            always_asks: None,
        }
    }
}

impl CommandFacts {
    /// Returns the verdict of a rule that narrows.
    pub(crate) fn rule_verdict(&self) -> Option<Verdict> {
        match &self.rule_match {
            RuleMatch::Matched(verdict) => Some(verdict.clone()),
            RuleMatch::NoMatch(_) => None,
        }
    }
}
