//! The verdict of each permission mode where no rule decides.

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
    let action = call_action(call);
    let (kind, why) = match mode {
        PermissionMode::Default | PermissionMode::DontAsk => default_verdict(action),
        PermissionMode::AcceptEdits => match action {
            CallAction::WritesProject => (
                VerdictKind::Allow,
                "changes to the attached project are allowed",
            ),
            CallAction::Reads
            | CallAction::Writes
            | CallAction::Network
            | CallAction::AllowedCommand(_)
            | CallAction::IsolatedCommand(_)
            | CallAction::Command(_) => default_verdict(action),
        },
        PermissionMode::Explore => match action {
            CallAction::Reads
            | CallAction::AllowedCommand(ReadOnlyStatus::Yes)
            | CallAction::IsolatedCommand(ReadOnlyStatus::Yes)
            | CallAction::Command(ReadOnlyStatus::Yes) => default_verdict(action),
            CallAction::Writes | CallAction::WritesProject | CallAction::Network => {
                (VerdictKind::Deny, "only reads are allowed")
            }
            CallAction::AllowedCommand(ReadOnlyStatus::Unknown)
            | CallAction::IsolatedCommand(ReadOnlyStatus::Unknown)
            | CallAction::Command(ReadOnlyStatus::Unknown) => {
                (VerdictKind::Deny, "only commands that read are allowed")
            }
        },
        PermissionMode::Bypass => (
            VerdictKind::Allow,
            "what the mode alone would ask about is allowed",
        ),
    };
    let why = match (&call.command, kind) {
        (
            Some(CommandFacts {
                rule_match: RuleMatch::NoMatch(reason),
                ..
            }),
            VerdictKind::Ask,
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

fn default_verdict(action: CallAction) -> (VerdictKind, &'static str) {
    match action {
        CallAction::Reads => (VerdictKind::Allow, "reads are allowed"),
        CallAction::Writes => (
            VerdictKind::Allow,
            "writes inside the workspace are allowed",
        ),
        CallAction::WritesProject => (
            VerdictKind::Ask,
            "changes to the attached project need approval",
        ),
        CallAction::Network => (VerdictKind::Ask, "network access needs approval"),
        CallAction::AllowedCommand(_) => (VerdictKind::Allow, "a rule allows the command"),
        CallAction::IsolatedCommand(_) => {
            (VerdictKind::Allow, "the command cannot leave its sandbox")
        }
        CallAction::Command(_) => (VerdictKind::Ask, "commands outside a sandbox need approval"),
    }
}
