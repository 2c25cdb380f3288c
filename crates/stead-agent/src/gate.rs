//! The gate: the one function that says Allow, Ask or Deny for a call, and why.

use std::collections::BTreeMap;
use stead_core::{AccessKind, Effect, Verdict, VerdictKind};
use stead_vfs::VPath;

/// What is judged: a tool and what it would touch, links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The tool's canonical name.
    pub tool: String,
    /// The strongest thing it can do.
    pub effect: Effect,
    /// The paths, as named and as resolved.
    pub accesses: Vec<(VPath, AccessKind)>,
    /// Where protected names lead, if they are links.
    pub protected: Vec<VPath>,
}

/// The rules of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateRules {
    /// Tools whose calls wait for a person, by canonical name.
    pub approvals: BTreeMap<String, bool>,
}

/// Files of a workspace that say what the agent is and may do: it cannot change them.
pub(crate) const UNWRITABLE: [&str; 5] = ["agent.yaml", "tools.json", "hooks", "crons", "agents"];

/// Judges a call. Pure: the same call and rules give the same verdict, whoever asks.
pub fn judge(rules: &GateRules, call: &Judged) -> Verdict {
    let protected = call.accesses.iter().filter_map(|(path, kind)| protection(path, *kind, &call.protected));
    let asked = rules.approvals.get(&call.tool).copied().unwrap_or(false);
    let verdicts = protected
        .chain(asked.then(|| Verdict::ask(format!("approvals: {}: true", call.tool))))
        .chain([default_mode(call.effect)]);
    // Every rule can only narrow: the strictest verdict holds, the first of its kind gives the reason.
    verdicts.reduce(|a, b| if b.kind > a.kind { b } else { a }).unwrap_or_else(|| Verdict::deny("no rule"))
}

fn default_mode(effect: Effect) -> Verdict {
    match effect {
        Effect::Reads => Verdict::allow("mode default: reads are allowed"),
        Effect::Writes => Verdict::allow("mode default: writes inside the workspace are allowed"),
        Effect::Network => Verdict::ask("mode default: network access asks"),
        Effect::Executes => Verdict::ask("mode default: commands outside a sandbox ask"),
    }
}

fn protection(path: &VPath, kind: AccessKind, led_to: &[VPath]) -> Option<Verdict> {
    if path.parts().any(|part| part.to_ascii_lowercase().starts_with(".env")) {
        return Some(Verdict::deny(format!("protected: {path} holds secrets")));
    }
    let first = path.parts().next().unwrap_or("");
    let covers_all = path.is_root() || led_to.iter().any(|root| root.contains(path) || path.contains(root));
    match kind {
        AccessKind::Read => None,
        AccessKind::Write if covers_all || UNWRITABLE.contains(&first) => {
            Some(Verdict::deny(format!("protected: {path} cannot be changed by the agent")))
        }
        AccessKind::Write => None,
    }
}

/// Whether the verdict lets the call run without asking.
pub(crate) fn is_allowed(verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::Allow
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(tool: &str, effect: Effect, path: &str, kind: AccessKind) -> (VerdictKind, String) {
        let rules = GateRules { approvals: [("delete_file".to_owned(), true), ("ls".to_owned(), false)].into() };
        let accesses = vec![(VPath::parse(path).unwrap(), kind)];
        let verdict = judge(
            &rules,
            &Judged { tool: tool.into(), effect, accesses, protected: vec![VPath::parse("data").unwrap()] },
        );
        (verdict.kind, verdict.rule)
    }

    #[test]
    fn the_strictest_rule_decides_and_is_named() {
        use AccessKind::{Read, Write};
        let table = [
            (("read_file", Effect::Reads, "src/a.rs", Read), VerdictKind::Allow, "reads"),
            (("ls", Effect::Reads, "", Read), VerdictKind::Allow, "reads"),
            (("write_file", Effect::Writes, "notes.md", Write), VerdictKind::Allow, "inside the workspace"),
            (("delete_file", Effect::Writes, "notes.md", Write), VerdictKind::Ask, "approvals: delete_file"),
            (("delete_file", Effect::Writes, "agents/main", Write), VerdictKind::Deny, "protected: agents/main"),
            (("read_file", Effect::Reads, "agents/main/sessions/s.log.jsonl", Read), VerdictKind::Allow, "reads"),
            (("write_file", Effect::Writes, "agent.yaml", Write), VerdictKind::Deny, "protected"),
            (("delete_file", Effect::Writes, "", Write), VerdictKind::Deny, "protected"),
            (("read_file", Effect::Reads, "sub/.env.local", Read), VerdictKind::Deny, "secrets"),
            // `agents` is a link to `data` here.
            (("write_file", Effect::Writes, "data/main/x", Write), VerdictKind::Deny, "protected"),
            (("read_file", Effect::Reads, "data/main/x", Read), VerdictKind::Allow, "reads"),
            (("execute", Effect::Executes, "x", Read), VerdictKind::Ask, "commands"),
            (("fetch", Effect::Network, "x", Read), VerdictKind::Ask, "network"),
        ];
        for ((tool, effect, path, kind), expected, reason) in table {
            let (verdict, rule) = verdict(tool, effect, path, kind);
            assert!(verdict == expected && rule.contains(reason), "{tool} {path}: {verdict:?} {rule}");
        }
    }
}
