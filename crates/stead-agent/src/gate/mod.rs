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

pub use grant::{Grant, Granted};

use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::{Ceiling, Effect, PermissionMode, Verdict, VerdictKind};
use stead_tools::counts_as;
use stead_vfs::VPath;
use stead_workspace::{Approval, Attached, ToolLists};

/// What is judged: a call, and what the rules for files and commands say about all it would touch.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The tool's canonical name.
    pub tool: String,
    /// The strongest thing it can do.
    pub effect: Effect,
    /// Its arguments.
    pub args: Value,
    /// Whether the lists of tools leave it out.
    pub unlisted: bool,
    /// Why it may never be called by the model that is asked, if so.
    pub excluded: Option<String>,
    /// The file rules' verdict ([`stead_vfs::judge`]); none if it touches no files.
    pub files: Option<Verdict>,
    /// Where the paths that it names really lie, links followed.
    pub lies: Vec<VPath>,
    /// What the rules for commands say, if it runs one.
    pub command: Option<Command>,
    /// What may be done to an attached project, if the call would change something in it.
    pub project: Option<Attached>,
    /// What later prompts are made from and the call would change, if its session took in words
    /// from outside.
    pub tainted: Option<Tainted>,
    /// Why it always asks, whatever the mode, if it does.
    pub flagged: Option<String>,
}

/// What the rules for commands say about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// As it was written.
    pub text: String,
    /// What decided: a rule, or none.
    pub ruled: Ruled,
    /// Whether all of it only reads, for certain.
    pub reads: Reads,
}

/// Whether a rule decides about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruled {
    /// One does.
    By(Verdict),
    /// None does, and this is why: a part that no rule covers, or one that cannot be read.
    Unruled(String),
}

/// Whether something only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// Nothing else.
    Only,
    /// Perhaps, and perhaps not.
    NotOnly,
}

/// A change that would let words from outside speak to later sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tainted {
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
pub struct Terms {
    /// Its permission mode.
    pub mode: PermissionMode,
    /// What binds it from above.
    pub ceiling: Ceiling,
    /// What people allowed for good.
    pub granted: Vec<Grant>,
    /// Tools that its own lists deny, and so to those who work for it.
    pub denied: Vec<String>,
}

impl Terms {
    /// What binds those who work for it.
    pub(crate) fn below(&self) -> Ceiling {
        let modes = std::iter::once(self.mode)
            .chain(self.ceiling.modes.iter().copied())
            .collect();
        let denied = self
            .denied
            .iter()
            .chain(&self.ceiling.denied)
            .cloned()
            .collect();
        Ceiling {
            modes,
            denied,
            ..self.ceiling.clone()
        }
    }
}

/// Tools that plan mode is made of.
const PLANNING: [&str; 4] = ["plan_enter", "plan_write", "plan_exit", "write_todos"];

/// Judges a call. Pure: the same call, rules and terms give the same verdict, whoever asks.
pub fn judge(rules: &GateRules, terms: &Terms, call: &Judged) -> Verdict {
    let flagged = [
        call.tainted.as_ref().map(tainted),
        call.flagged.as_ref().map(Verdict::ask),
    ];
    let is_flagged = flagged.iter().flatten().next().is_some();
    let ruled = [
        terms
            .ceiling
            .planning
            .as_deref()
            .and_then(|file| planning(file, call)),
        denied_above(&terms.ceiling, call),
        call.unlisted
            .then(|| Verdict::deny(format!("the lists of tools leave {} out", call.tool))),
        call.excluded.as_ref().map(Verdict::deny),
        call.files.clone(),
        call.command.as_ref().and_then(Command::ruled),
        call.project.and_then(read_only),
        approval(rules, call),
    ];
    let modes = || std::iter::once(terms.mode).chain(terms.ceiling.modes.iter().copied());
    let asked: Vec<Verdict> = ruled
        .iter()
        .flatten()
        .filter(|verdict| verdict.kind == VerdictKind::Ask)
        .cloned()
        .collect();
    let by_mode = modes().map(|mode| Some(mode::judge(mode, call)));
    let verdict = strictest(ruled.into_iter().chain(flagged).chain(by_mode).flatten());
    if verdict.kind != VerdictKind::Ask {
        return verdict;
    }
    let frees = |grant: &&Grant| grant.covers(call) && grant.ends(&asked);
    if !is_flagged && let Some(grant) = terms.granted.iter().find(frees) {
        return Verdict::allow(format!("granted: {grant}"));
    }
    if modes().any(|mode| mode == PermissionMode::DontAsk) {
        return Verdict::deny(format!(
            "mode dont_ask: what would ask is denied ({})",
            verdict.rule
        ));
    }
    verdict
}

/// The strictest verdict; those who agree give the reason together. Where nobody speaks, nothing is
/// allowed.
fn strictest(all: impl Iterator<Item = Verdict>) -> Verdict {
    let all: Vec<Verdict> = all.collect();
    let kind = all
        .iter()
        .map(|verdict| verdict.kind)
        .max()
        .unwrap_or(VerdictKind::Deny);
    let mut rules: Vec<String> = Vec::new();
    for verdict in all.into_iter().filter(|verdict| verdict.kind == kind) {
        if !rules.contains(&verdict.rule) {
            rules.push(verdict.rule);
        }
    }
    Verdict {
        kind,
        rule: rules.join("; "),
    }
}

/// What plan mode says, where it refuses.
fn planning(file: &str, call: &Judged) -> Option<Verdict> {
    let reads = match (&call.command, call.effect) {
        (Some(command), _) => command.reads == Reads::Only,
        (None, effect) => effect == Effect::Reads,
    };
    (!reads && !PLANNING.contains(&call.tool.as_str())).then(|| {
        Verdict::deny(format!(
            "plan mode: until a person agrees to the plan in {file}, nothing but reading is allowed"
        ))
    })
}

/// What is denied to those above is denied below them.
fn denied_above(ceiling: &Ceiling, call: &Judged) -> Option<Verdict> {
    let lists = ToolLists {
        allow: None,
        deny: ceiling.denied.clone(),
    };
    (!lists.allow(&call.tool)).then(|| {
        Verdict::deny(format!(
            "{} is denied to who handed the work over",
            call.tool
        ))
    })
}

fn approval(rules: &GateRules, call: &Judged) -> Option<Verdict> {
    let (name, approval) = rules.asking(call)?;
    Some(Verdict::ask(match approval.when.0.is_empty() {
        true => format!("approvals: {name}: true"),
        false => format!("approvals: {name}: when"),
    }))
}

fn read_only(attached: Attached) -> Option<Verdict> {
    match attached {
        Attached::ReadOnly => Some(Verdict::deny(
            "the project is attached read-only (filesystem.project.writable)",
        )),
        Attached::Writable => None,
    }
}

fn tainted(Tainted { seq, path }: &Tainted) -> Verdict {
    Verdict::ask(format!(
        "tainted: entry {seq} brought in words from outside, and later prompts are made from {path:?}"
    ))
}

impl Judged {
    /// A call of what is not here and may never be called.
    pub(crate) fn excluded(tool: &str, why: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            effect: Effect::Reads,
            args: Value::Null,
            unlisted: false,
            excluded: Some(why.to_owned()),
            files: None,
            lies: Vec::new(),
            command: None,
            project: None,
            tainted: None,
            flagged: None,
        }
    }
}

impl GateRules {
    /// How a question about a call is to be answered.
    pub fn approval(&self, call: &Judged) -> Option<&Approval> {
        self.asking(call).map(|(_, approval)| approval)
    }

    /// The entry that asks about a call, and the tool it is for.
    fn asking<'a, 'c>(&'a self, call: &'c Judged) -> Option<(&'c str, &'a Approval)> {
        let names = [Some(call.tool.as_str()), counts_as(&call.tool)]
            .into_iter()
            .flatten();
        let mut entries = names.filter_map(|name| Some((name, self.approvals.get(name)?)));
        entries.find(|(_, approval)| approval.covers(&call.args, &call.lies))
    }
}

impl Command {
    /// The verdict of a rule that narrows.
    fn ruled(&self) -> Option<Verdict> {
        match &self.ruled {
            Ruled::By(verdict) => Some(verdict.clone()),
            Ruled::Unruled(_) => None,
        }
    }
}

/// Whether the verdict lets the call run without asking.
pub(crate) fn is_allowed(verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::Allow
}
