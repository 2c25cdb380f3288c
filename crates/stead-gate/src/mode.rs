//! The verdict of each permission mode where no rule decides.
//!
//! Effects: none.

use super::{CallFacts, CommandFacts, ReadOnlyStatus, RuleMatch};
use stead_core::{PermissionMode, RuleId, RuleSource, ToolEffect, Verdict, VerdictKind};
use stead_place::ProjectAccess;

/// The kinds of calls that permission modes treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallAction {
    Reads,
    Writes,
    WritesProject,
    Network,
    /// A command that a rule allows.
    AllowedCommand(ReadOnlyStatus),
    /// A command that can reach neither the machine nor the network.
    IsolatedCommand(ReadOnlyStatus),
    Command(ReadOnlyStatus),
}

/// Returns the rule id of a permission mode.
pub(super) fn rule(mode: PermissionMode) -> RuleId {
    RuleId::new(RuleSource::Mode, mode)
}

/// Returns the verdict of `mode` on a call.
pub(super) fn mode_verdict(mode: PermissionMode, call: &CallFacts) -> Verdict {
    use CallAction::{
        AllowedCommand, Command, IsolatedCommand, Network, Reads, Writes, WritesProject,
    };
    use PermissionMode::{AcceptEdits, Bypass, Default, DontAsk, Explore};
    use VerdictKind::{Allow, Ask, Deny};
    let (kind, why) = match (call_action(call), mode) {
        (_, Bypass) => (Allow, "what the mode alone would ask about is allowed"),
        (Writes | WritesProject | Network, Explore) => (Deny, "only reads are allowed"),
        (
            AllowedCommand(ReadOnlyStatus::Unknown)
            | IsolatedCommand(ReadOnlyStatus::Unknown)
            | Command(ReadOnlyStatus::Unknown),
            Explore,
        ) => (Deny, "only commands that read are allowed"),
        (Reads, Default | DontAsk | AcceptEdits | Explore) => (Allow, "reads are allowed"),
        (Writes, Default | DontAsk | AcceptEdits) => {
            (Allow, "writes inside the workspace are allowed")
        }
        (WritesProject, AcceptEdits) => (Allow, "changes to the attached project are allowed"),
        (WritesProject, Default | DontAsk) => {
            (Ask, "changes to the attached project need approval")
        }
        (Network, Default | DontAsk | AcceptEdits) => (Ask, "network access needs approval"),
        (AllowedCommand(_), Default | DontAsk | AcceptEdits | Explore) => {
            (Allow, "a rule allows the command")
        }
        (IsolatedCommand(_), Default | DontAsk | AcceptEdits | Explore) => {
            (Allow, "the command cannot leave its sandbox")
        }
        (Command(_), Default | DontAsk | AcceptEdits | Explore) => {
            (Ask, "commands outside a sandbox need approval")
        }
    };
    let why = match (&call.command, kind) {
        (
            Some(CommandFacts {
                rule_match: RuleMatch::NoMatch(reason),
                ..
            }),
            Ask,
        ) => format!("{why} ({reason})"),
        (Some(_) | None, _) => why.to_owned(),
    };
    Verdict::new(kind, rule(mode), format!("mode {mode}: {why}"))
}

fn call_action(call: &CallFacts) -> CallAction {
    if let Some(command) = &call.command {
        let allowed = matches!(&command.rule_match, RuleMatch::Matched(verdict) if verdict.kind == VerdictKind::Allow);
        return if allowed {
            CallAction::AllowedCommand(command.read_only)
        } else if command.isolation.is_complete() {
            CallAction::IsolatedCommand(command.read_only)
        } else {
            CallAction::Command(command.read_only)
        };
    }
    match (call.effect, call.project) {
        (ToolEffect::Executes, _) => CallAction::Command(ReadOnlyStatus::Unknown),
        (ToolEffect::Network, _) => CallAction::Network,
        (
            ToolEffect::Reads | ToolEffect::Writes,
            Some(ProjectAccess::Writable | ProjectAccess::ReadOnly),
        ) => CallAction::WritesProject,
        (ToolEffect::Writes, None) => CallAction::Writes,
        (ToolEffect::Reads, None) => CallAction::Reads,
    }
}
