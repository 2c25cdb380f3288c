//! The gate: the one function that says Allow, Ask or Deny for a call, and why.
//!
//! Whoever calls (a model, a subagent, a hook, the command line), [`judge`] decides. It goes
//! through the layers in order, and each can only narrow: what binds from above, the lists of
//! tools, the rules for files, those for commands, approvals, and last the permission mode, which
//! speaks where no rule does. The verdict names whatever decided.

mod grant;
mod mode;
#[cfg(test)]
mod tests;

pub use grant::{Grant, GrantScope};

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

/// What is judged: a call, and what the rules for files and commands say about all it would touch.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFacts {
    /// The tool's canonical name.
    pub tool: String,
    /// What the tool is to the harness.
    pub kind: ToolKind,
    /// The canonical name of a tool whose rules hold for this one too.
    pub follows_rules_of: Option<String>,
    /// The strongest thing it can do.
    pub effect: ToolEffect,
    /// Its arguments.
    pub args: Value,
    /// Whether the lists of tools leave it out.
    pub unlisted: bool,
    /// Why it may never be called by the model that is asked, if so.
    pub excluded: Option<String>,
    /// The file rules' verdict ([`stead_vfs::judge`]); none if it touches no files.
    pub file_verdict: Option<Verdict>,
    /// The paths that its arguments name.
    pub named_paths: Vec<String>,
    /// The resolved paths of all it touches.
    pub resolved_paths: Vec<VPath>,
    /// What the rules for commands say, if it runs one.
    pub command: Option<CommandFacts>,
    /// What may be done to an attached project, if the call would change something in it.
    pub project: Option<ProjectAccess>,
    /// What later prompts are made from and the call would change, if its session took in words
    /// from outside.
    pub tainted_write: Option<TaintedWrite>,
    /// Why it always asks, whatever the mode, if it does.
    pub always_asks: Option<String>,
}

/// What the rules for commands say about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFacts {
    /// As it was written.
    pub text: String,
    /// What decided: a rule, or none.
    pub rule_match: RuleMatch,
    /// The walls it would run behind.
    pub isolation: Isolation,
    /// Whether all of it only reads, for certain.
    pub read_only: ReadOnlyStatus,
}

/// Whether a rule decides about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleMatch {
    /// One does.
    Matched(Verdict),
    /// None does, and this is why: a part that no rule covers, or one that cannot be read.
    NoMatch(String),
}

/// Whether something only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOnlyStatus {
    /// Nothing else.
    Yes,
    /// Perhaps, and perhaps not.
    Unknown,
}

/// A change that would let words from outside speak to later sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaintedWrite {
    /// The result that first brought them in.
    pub seq: u64,
    /// What would be changed, as the call names it.
    pub path: String,
}

/// The rules of an agent that are about tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateRules {
    /// Tools whose calls wait for a person, by canonical name.
    pub approvals: BTreeMap<String, Approval>,
}

/// What binds one session beside the rules of its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPermissions {
    /// Its permission mode.
    pub mode: PermissionMode,
    /// What binds it from above.
    pub ceiling: PermissionCeiling,
    /// What people allowed for good.
    pub grants: Vec<Grant>,
    /// Tools that its own lists deny, and so to those who work for it.
    pub denied_tools: Vec<String>,
}

impl SessionPermissions {
    /// What binds those who work for it.
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

/// Judges a call. Pure: the same call, rules and terms give the same verdict, whoever asks.
pub fn judge(rules: &GateRules, terms: &SessionPermissions, call: &CallFacts) -> Verdict {
    let flagged = [
        call.tainted_write.as_ref().map(tainted_write_verdict),
        call.always_asks
            .as_ref()
            .map(|why| Verdict::ask(RuleId::new(RuleSource::Tool, &call.tool), why)),
    ];
    let is_flagged = flagged.iter().flatten().next().is_some();
    let ruled = [
        terms
            .ceiling
            .planning
            .as_deref()
            .and_then(|file| plan_mode_verdict(file, call)),
        ceiling_verdict(&terms.ceiling, call),
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
    let modes = || std::iter::once(terms.mode).chain(terms.ceiling.modes.iter().copied());
    let asking: Vec<RuleId> = ruled
        .iter()
        .flatten()
        .filter(|verdict| verdict.kind == VerdictKind::Ask)
        .flat_map(|verdict| verdict.rules.iter().cloned())
        .collect();
    let by_mode = modes().map(|mode| Some(mode::mode_verdict(mode, call)));
    let verdict = strictest(ruled.into_iter().chain(flagged).chain(by_mode).flatten());
    if verdict.kind != VerdictKind::Ask {
        return verdict;
    }
    let frees = |grant: &&Grant| grant.covers(call) && grant.answers(&asking);
    if !is_flagged && let Some(grant) = terms.grants.iter().find(frees) {
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

/// The strictest verdict, with the rules and reasons of all verdicts that agree with it. Without
/// any verdict nothing is allowed.
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

/// What plan mode says, where it refuses.
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

/// What is denied to those above is denied below them.
fn ceiling_verdict(ceiling: &PermissionCeiling, call: &CallFacts) -> Option<Verdict> {
    let lists = ToolLists {
        allow: None,
        deny: ceiling.denied.clone(),
    };
    (!lists.allows(&call.tool)).then(|| {
        Verdict::deny(
            RuleId::new(RuleSource::Ceiling, &call.tool),
            format!("{} is denied to who handed the work over", call.tool),
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

/// The id of an approval: all of its settings are part of it, so that a grant given under other
/// conditions, or by another person than is now required, does not answer it.
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

fn tainted_write_verdict(TaintedWrite { seq, path }: &TaintedWrite) -> Verdict {
    Verdict::ask(
        RuleId::new(RuleSource::Taint, path),
        format!(
            "tainted: entry {seq} brought in words from outside, and later prompts are made from {path:?}"
        ),
    )
}

impl CallFacts {
    /// A call of what is not here and may never be called.
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
            tainted_write: None,
            always_asks: None,
        }
    }
}

impl GateRules {
    /// How a question about a call is to be answered.
    pub fn approval(&self, call: &CallFacts) -> Option<&Approval> {
        self.matching_approval(call).map(|(_, approval)| approval)
    }

    /// The entry that asks about a call, and the tool it is for.
    fn matching_approval<'a, 'c>(&'a self, call: &'c CallFacts) -> Option<(&'c str, &'a Approval)> {
        let names = [Some(call.tool.as_str()), call.follows_rules_of.as_deref()]
            .into_iter()
            .flatten();
        let mut entries = names.filter_map(|name| Some((name, self.approvals.get(name)?)));
        entries.find(|(_, approval)| approval.covers(&call.args, &call.resolved_paths))
    }
}

impl CommandFacts {
    /// The verdict of a rule that narrows.
    fn rule_verdict(&self) -> Option<Verdict> {
        match &self.rule_match {
            RuleMatch::Matched(verdict) => Some(verdict.clone()),
            RuleMatch::NoMatch(_) => None,
        }
    }
}
