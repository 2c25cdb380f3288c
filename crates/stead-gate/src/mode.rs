//! What each permission mode says where no rule does.

use super::{CallFacts, CommandFacts, ReadOnlyStatus, RuleMatch};
use stead_core::{PermissionMode, ToolEffect, Verdict, VerdictKind};
use stead_place::ProjectAccess;

/// What a call does, as far as modes tell calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallAction {
    Reads,
    Writes,
    WritesProject,
    Network,
    /// A command that a rule allows.
    AllowedCommand(ReadOnlyStatus),
    Command(ReadOnlyStatus),
}

/// What `mode` says about a call.
pub(super) fn mode_verdict(mode: PermissionMode, call: &CallFacts) -> Verdict {
    let deed = call_action(call);
    let (kind, why) = match mode {
        PermissionMode::Default | PermissionMode::DontAsk => default_verdict(deed),
        PermissionMode::AcceptEdits => match deed {
            CallAction::WritesProject => (
                VerdictKind::Allow,
                "changes to the attached project are allowed",
            ),
            CallAction::Reads
            | CallAction::Writes
            | CallAction::Network
            | CallAction::AllowedCommand(_)
            | CallAction::Command(_) => default_verdict(deed),
        },
        PermissionMode::Explore => match deed {
            CallAction::Reads
            | CallAction::AllowedCommand(ReadOnlyStatus::Yes)
            | CallAction::Command(ReadOnlyStatus::Yes) => default_verdict(deed),
            CallAction::Writes | CallAction::WritesProject | CallAction::Network => {
                (VerdictKind::Deny, "only reads are allowed")
            }
            CallAction::AllowedCommand(ReadOnlyStatus::Unknown)
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
    Verdict {
        kind,
        rule: format!("mode {mode}: {why}"),
    }
}

fn call_action(call: &CallFacts) -> CallAction {
    if let Some(command) = &call.command {
        let allowed = matches!(&command.rule_match, RuleMatch::Matched(verdict) if verdict.kind == VerdictKind::Allow);
        return if allowed {
            CallAction::AllowedCommand(command.read_only)
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

fn default_verdict(deed: CallAction) -> (VerdictKind, &'static str) {
    match deed {
        CallAction::Reads => (VerdictKind::Allow, "reads are allowed"),
        CallAction::Writes => (
            VerdictKind::Allow,
            "writes inside the workspace are allowed",
        ),
        CallAction::WritesProject => (VerdictKind::Ask, "changes to the attached project ask"),
        CallAction::Network => (VerdictKind::Ask, "network access asks"),
        CallAction::AllowedCommand(_) => (VerdictKind::Allow, "a rule allows the command"),
        CallAction::Command(_) => (VerdictKind::Ask, "commands outside a sandbox ask"),
    }
}
