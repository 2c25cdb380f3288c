//! The gate: the one function that says Allow, Ask or Deny for a call, and why.

use std::collections::BTreeMap;
use stead_core::{Effect, Verdict, VerdictKind};
use stead_workspace::Attached;

/// What is judged: a tool, and what the file rules say about all it would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The tool's canonical name.
    pub tool: String,
    /// The strongest thing it can do.
    pub effect: Effect,
    /// The file rules' verdict ([`stead_vfs::judge`]); none if it touches no files.
    pub files: Option<Verdict>,
    /// What may be done to an attached project, if the call would change something in it.
    pub project: Option<Attached>,
    /// What later prompts are made from and the call would change, if its session took in words from outside.
    pub tainted: Option<Tainted>,
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
    pub approvals: BTreeMap<String, bool>,
}

/// Judges a call. Pure: the same call and rules give the same verdict, whoever asks.
pub fn judge(rules: &GateRules, call: &Judged) -> Verdict {
    // To overwrite is to write: a question about the one is a question about the other.
    let covered = (call.tool == "overwrite_file").then_some("write_file");
    let asks = |tool: &&str| rules.approvals.get(*tool).copied().unwrap_or(false);
    let approvals = [Some(call.tool.as_str()), covered].into_iter().flatten().find(asks);
    let approvals = approvals.map(|tool| Verdict::ask(format!("approvals: {tool}: true")));
    let tainted = call.tainted.as_ref().map(tainted);
    let all = [call.files.clone(), call.project.map(project), tainted, approvals, Some(default_mode(call.effect))];
    // Every rule can only narrow: the strictest verdict holds, and those who agree give the reason together.
    let strictest = all.iter().flatten().map(|verdict| verdict.kind).max().unwrap_or(VerdictKind::Deny);
    let agree = all.into_iter().flatten().filter(|verdict| verdict.kind == strictest);
    Verdict { kind: strictest, rule: agree.map(|verdict| verdict.rule).collect::<Vec<_>>().join("; ") }
}

fn project(attached: Attached) -> Verdict {
    match attached {
        Attached::ReadOnly => Verdict::deny("the project is attached read-only (filesystem.project.writable)"),
        Attached::Writable => Verdict::ask("mode default: changes to the attached project ask"),
    }
}

fn tainted(Tainted { seq, path }: &Tainted) -> Verdict {
    Verdict::ask(format!(
        "tainted: entry {seq} brought in words from outside, and later prompts are made from {path:?}"
    ))
}

fn default_mode(effect: Effect) -> Verdict {
    match effect {
        Effect::Reads => Verdict::allow("mode default: reads are allowed"),
        Effect::Writes => Verdict::allow("mode default: writes inside the workspace are allowed"),
        Effect::Network => Verdict::ask("mode default: network access asks"),
        Effect::Executes => Verdict::ask("mode default: commands outside a sandbox ask"),
    }
}

/// Whether the verdict lets the call run without asking.
pub(crate) fn is_allowed(verdict: &Verdict) -> bool {
    verdict.kind == VerdictKind::Allow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_rule_decides_and_is_named() {
        let rules = GateRules { approvals: [("delete_file".to_owned(), true), ("ls".to_owned(), false)].into() };
        let none = || Verdict::allow("no rule matches");
        #[rustfmt::skip]
        let table = [
            ("ls", Effect::Reads, Some(none()), Verdict::allow("no rule matches; mode default: reads are allowed")),
            ("write_file", Effect::Writes, Some(Verdict::allow("permissions[0]: allow write a")),
                Verdict::allow("permissions[0]: allow write a; mode default: writes inside the workspace are allowed")),
            ("delete_file", Effect::Writes, Some(none()), Verdict::ask("approvals: delete_file: true")),
            ("delete_file", Effect::Writes, Some(Verdict::ask("permissions[1]: ask write a")),
                Verdict::ask("permissions[1]: ask write a; approvals: delete_file: true")),
            ("delete_file", Effect::Writes, Some(Verdict::deny("protected")), Verdict::deny("protected")),
            ("read_file", Effect::Reads, Some(Verdict::ask("permissions[0]")), Verdict::ask("permissions[0]")),
            ("execute", Effect::Executes, None, Verdict::ask("mode default: commands outside a sandbox ask")),
            ("fetch", Effect::Network, Some(none()), Verdict::ask("mode default: network access asks")),
            ("wait", Effect::Reads, None, Verdict::allow("mode default: reads are allowed")),
        ];
        for (tool, effect, files, expected) in table {
            let call = Judged { tool: tool.into(), effect, files, project: None, tainted: None };
            assert_eq!(judge(&rules, &call), expected, "{tool}");
        }
    }

    #[test]
    fn an_attached_project_is_changed_only_if_it_may_and_a_person_agrees() {
        let verdict = |project| {
            let call =
                Judged { tool: "write_file".into(), effect: Effect::Writes, files: None, project, tainted: None };
            judge(&GateRules::default(), &call).kind
        };
        assert_eq!(verdict(None), VerdictKind::Allow);
        assert_eq!(verdict(Some(Attached::Writable)), VerdictKind::Ask);
        assert_eq!(verdict(Some(Attached::ReadOnly)), VerdictKind::Deny);
    }

    #[test]
    fn what_later_prompts_are_made_from_is_changed_only_with_a_person_once_words_came_from_outside() {
        let verdict = |files: Verdict| {
            let tainted = Some(Tainted { seq: 7, path: "MEMORY.md".into() });
            let call = Judged {
                tool: "write_file".into(),
                effect: Effect::Writes,
                files: Some(files),
                project: None,
                tainted,
            };
            judge(&GateRules::default(), &call)
        };
        let rule = "tainted: entry 7 brought in words from outside, and later prompts are made from \"MEMORY.md\"";
        assert_eq!(verdict(Verdict::allow("permissions[0]: allow write MEMORY.md")), Verdict::ask(rule));
        assert_eq!(verdict(Verdict::deny("permissions[0]")), Verdict::deny("permissions[0]"));
    }
}
