//! The gate: the function that decides Allow, Ask or Deny for a call, with a reason.
//!
//! [`judge`] decides for all callers: models, subagents, hooks and the command line. It applies
//! layers in order, and each can only narrow: the ceiling of the session, the tool lists, the file
//! rules, the command rules, approvals, and finally the permission mode, which decides where no
//! rule does. The verdict names the deciding rules.
//!
//! Effects: none.

mod facts;
mod grant;
mod taint;
#[cfg(test)]
mod tests;

pub use facts::{CallFacts, CommandFacts, ExactLine, ReadOnlyStatus, RuleMatch};
pub use grant::{Grant, GrantScope, confinement};
pub use taint::SessionTaint;

use std::collections::BTreeMap;
use stead_core::{
    PermissionCeiling, PermissionMode, RuleId, RuleSource, ToolEffect, Verdict, VerdictKind,
    args_hash,
};
use stead_place::ProjectAccess;
use stead_workspace::{Approval, ToolLists};
use taint::TaintSink;

/// The rules of an agent about tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateRules {
    /// The approvals by canonical tool name.
    pub approvals: BTreeMap<String, Approval>,
}

/// The permissions of one session, in addition to the rules of its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPermissions {
    /// The permission mode.
    pub mode: PermissionMode,
    /// The restrictions inherited from the parent.
    pub ceiling: PermissionCeiling,
    /// The grants.
    pub grants: Vec<Grant>,
    /// The tools that the agent's own lists deny, and thereby also to its subagents.
    pub denied_tools: Vec<String>,
}

impl SessionPermissions {
    /// Returns the ceiling of the session's subagents.
    pub fn ceiling_for_subagents(&self) -> PermissionCeiling {
        let modes = std::iter::once(self.mode)
            .chain(self.ceiling.modes.iter().copied())
            .collect();
        let denied = self
            .denied_tools
            .iter()
            .chain(&self.ceiling.denied)
            .cloned()
            .collect();
        PermissionCeiling {
            modes,
            denied,
            ..self.ceiling.clone()
        }
    }
}

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

/// Judges a call. The function is pure: the same call, rules and permissions give the same verdict
/// for every caller.
pub fn judge(rules: &GateRules, permissions: &SessionPermissions, call: &CallFacts) -> Verdict {
    let sinks = taint::sinks(call);
    let tainted = taint::verdicts(call, &sinks);
    let by_tool = call
        .always_asks
        .as_ref()
        .map(|why| Verdict::ask(RuleId::new(RuleSource::Tool, &call.tool), why));
    let can_be_granted = by_tool.is_none() && sinks.iter().all(TaintSink::can_be_granted);
    let ruled = [
        permissions
            .ceiling
            .planning
            .as_deref()
            .and_then(|file| plan_mode_verdict(file, call)),
        ceiling_verdict(&permissions.ceiling, call),
        call.unlisted.then(|| {
            Verdict::deny(
                RuleId::new(RuleSource::ToolLists, &call.tool),
                format!("the lists of tools leave {} out", call.tool),
            )
        }),
        call.excluded
            .as_ref()
            .map(|why| Verdict::deny(RuleId::new(RuleSource::Profile, &call.tool), why)),
        call.file_verdict.clone(),
        call.command.as_ref().and_then(CommandFacts::rule_verdict),
        call.changed_project.and_then(project_verdict),
        approval_verdict(rules, call),
    ];
    let modes =
        || std::iter::once(permissions.mode).chain(permissions.ceiling.modes.iter().copied());
    let asking: Vec<RuleId> = ruled
        .iter()
        .flatten()
        .chain(&tainted)
        .filter(|verdict| verdict.kind == VerdictKind::Ask)
        .flat_map(|verdict| verdict.rules.iter().cloned())
        .collect();
    let by_mode = modes().map(|mode| Some(mode_verdict(mode, call)));
    let raised = tainted.into_iter().map(Some).chain([by_tool]);
    let verdict = strictest(ruled.into_iter().chain(raised).chain(by_mode).flatten());
    if verdict.kind != VerdictKind::Ask {
        return verdict;
    }
    let frees = |grant: &&Grant| grant.covers(call) && grant.answers(&asking);
    if can_be_granted && let Some(grant) = permissions.grants.iter().find(frees) {
        return Verdict::allow(
            RuleId::new(RuleSource::Grant, &grant.id),
            format!("granted: {grant}"),
        );
    }
    if modes().any(|mode| mode == PermissionMode::DontAsk) {
        let reason = format!(
            "mode dont_ask: what would ask is denied ({})",
            verdict.reason
        );
        return Verdict::deny(mode_rule(PermissionMode::DontAsk), reason);
    }
    verdict
}

/// Returns the verdict of `mode` on a call, where no rule decides.
fn mode_verdict(mode: PermissionMode, call: &CallFacts) -> Verdict {
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
    Verdict::new(kind, mode_rule(mode), format!("mode {mode}: {why}"))
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
    match (call.effect, call.changed_project) {
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

/// Returns the rule id of a permission mode.
fn mode_rule(mode: PermissionMode) -> RuleId {
    RuleId::new(RuleSource::Mode, mode)
}

/// Returns the strictest verdict, with the rules and reasons of all verdicts that agree with it.
/// Without any verdict the call is denied.
fn strictest(all: impl Iterator<Item = Verdict>) -> Verdict {
    let all: Vec<Verdict> = all.collect();
    let kind = all
        .iter()
        .map(|verdict| verdict.kind)
        .max()
        .unwrap_or(VerdictKind::Deny);
    let mut rules: Vec<RuleId> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for verdict in all.into_iter().filter(|verdict| verdict.kind == kind) {
        for rule in verdict.rules {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        if !reasons.contains(&verdict.reason) {
            reasons.push(verdict.reason);
        }
    }
    Verdict {
        kind,
        rules,
        reason: reasons.join("; "),
    }
}

/// Returns the verdict of plan mode, if it refuses.
fn plan_mode_verdict(file: &str, call: &CallFacts) -> Option<Verdict> {
    let reads = match (&call.command, call.effect) {
        (Some(command), _) => command.read_only == ReadOnlyStatus::Yes,
        (None, effect) => effect == ToolEffect::Reads,
    };
    (!reads && !call.kind.is_part_of_planning()).then(|| {
        Verdict::deny(
            RuleId::new(RuleSource::PlanMode, file),
            format!(
                "plan mode: until a person agrees to the plan in {file}, nothing but reading is allowed"
            ),
        )
    })
}

/// Returns the verdict of the ceiling: tools that are denied to the parent are denied to its
/// subagents.
fn ceiling_verdict(ceiling: &PermissionCeiling, call: &CallFacts) -> Option<Verdict> {
    let lists = ToolLists {
        allow: None,
        deny: ceiling.denied.clone(),
    };
    (!lists.allows(&call.tool)).then(|| {
        Verdict::deny(
            RuleId::new(RuleSource::Ceiling, &call.tool),
            format!("{} is denied to the parent agent", call.tool),
        )
    })
}

fn approval_verdict(rules: &GateRules, call: &CallFacts) -> Option<Verdict> {
    let (name, approval) = rules.matching_approval(call)?;
    let reason = match approval.when.0.is_empty() {
        true => format!("approvals: {name}: true"),
        false => format!("approvals: {name}: when"),
    };
    Some(Verdict::ask(approval_rule(name, approval), reason))
}

/// Returns the id of an approval. All of its settings are part of the id, so that a grant that was
/// given under other conditions, or by another person than is now required, does not answer it.
fn approval_rule(tool: &str, approval: &Approval) -> RuleId {
    let settings = serde_json::to_value(approval).unwrap_or_default();
    RuleId::new(
        RuleSource::Approvals,
        format_args!("{tool} {}", args_hash(&settings)),
    )
}

fn project_verdict(attached: ProjectAccess) -> Option<Verdict> {
    match attached {
        ProjectAccess::ReadOnly => Some(Verdict::deny(
            RuleId::new(RuleSource::Project, "read-only"),
            "the project is attached read-only (filesystem.project.writable)",
        )),
        ProjectAccess::Writable => None,
    }
}

impl GateRules {
    /// Returns the approval that applies to a call.
    pub fn approval(&self, call: &CallFacts) -> Option<&Approval> {
        self.matching_approval(call).map(|(_, approval)| approval)
    }

    /// Returns the approval that asks about a call, and the tool it is for.
    fn matching_approval<'a, 'c>(&'a self, call: &'c CallFacts) -> Option<(&'c str, &'a Approval)> {
        let names = [Some(call.tool.as_str()), call.follows_rules_of.as_deref()]
            .into_iter()
            .flatten();
        let mut entries = names.filter_map(|name| Some((name, self.approvals.get(name)?)));
        entries.find(|(_, approval)| approval.covers(&call.args, &call.resolved_paths))
    }
}
