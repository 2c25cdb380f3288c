//! The gate: the function that decides Allow, Ask or Deny for a call, with a reason.
//!
//! [`judge`] decides for all callers: models, subagents, hooks and the command line. It applies
//! layers in order, and each can only narrow: the ceiling of the session, the tool lists, the file
//! rules, the command rules, approvals, and finally the permission mode, which decides where no
//! rule does. The verdict names the deciding rules.
//!
//! Effects: none.

mod grant;
mod mode;
mod taint;
#[cfg(test)]
mod tests;

pub use grant::{Grant, GrantScope, confinement};
pub use taint::SessionTaint;

use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::{
    PermissionCeiling, PermissionMode, RuleId, RuleSource, ToolEffect, ToolKind, Verdict,
    VerdictKind, args_hash,
};
use stead_place::ProjectAccess;
use stead_sandbox::Isolation;
use stead_vfs::VPath;
use stead_workspace::{Approval, ToolLists};
use taint::TaintSink;

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
    /// The resolved paths of everything that the call touches.
    pub resolved_paths: Vec<VPath>,
    /// The facts about the command, if the call runs one.
    pub command: Option<CommandFacts>,
    /// The access to the attached project, if the call would change something in it.
    pub project: Option<ProjectAccess>,
    /// The walls that commands of the agent run behind.
    pub sandbox: Isolation,
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

/// Judges a call. The function is pure: the same call, rules and permissions give the same verdict
/// for every caller.
pub fn judge(rules: &GateRules, permissions: &SessionPermissions, call: &CallFacts) -> Verdict {
    let sinks = taint::sinks(call);
    let tainted = taint::verdicts(call, &sinks);
    let flagged = call
        .always_asks
        .as_ref()
        .map(|why| Verdict::ask(RuleId::new(RuleSource::Tool, &call.tool), why));
    let can_be_granted = flagged.is_none() && sinks.iter().all(TaintSink::can_be_granted);
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
        call.project.and_then(project_verdict),
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
    let by_mode = modes().map(|mode| Some(mode::mode_verdict(mode, call)));
    let flagged = tainted.into_iter().map(Some).chain([flagged]);
    let verdict = strictest(ruled.into_iter().chain(flagged).chain(by_mode).flatten());
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
        return Verdict::deny(mode::rule(PermissionMode::DontAsk), reason);
    }
    verdict
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
            project: None,
            sandbox: Isolation::NONE,
            taint: None,
            prompt_source: None,
            always_asks: None,
        }
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

impl CommandFacts {
    /// Returns the verdict of a rule that narrows.
    fn rule_verdict(&self) -> Option<Verdict> {
        match &self.rule_match {
            RuleMatch::Matched(verdict) => Some(verdict.clone()),
            RuleMatch::NoMatch(_) => None,
        }
    }
}
