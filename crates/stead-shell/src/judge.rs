//! The verdict on a command line.
//!
//! Effects: none.

use super::judge_part::{CommandBasis, LineJudge};
use super::line::{ShellLine, folder_of_parts, leading_cd};
use super::pattern::CommandPattern;
use super::read_only::{ReadDepth, ReadOnlyCheck, check_read_only};
use super::rules::CommandRules;
use super::script::{CommandPart, Invocation, ShellScript};
use super::{PatternError, parse};
use stead_core::{RuleId, VerdictKind};

/// The verdict of the rules on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandVerdict {
    /// The strictest decision of all parts. An ambiguous line is at least asked about.
    pub kind: VerdictKind,
    /// The rules that decided; empty if no rule covers the line.
    pub rules: Vec<RuleId>,
    /// A sentence that explains the decision.
    pub reason: String,
    /// The verdicts on the parts.
    pub parts: Vec<PartVerdict>,
    /// The paths that the command reads, if it certainly only reads.
    pub reads: Option<Vec<String>>,
    /// The folder of the workspace in which its parts run; none if that is not certain.
    pub folder: Option<String>,
}

/// The verdict of the rules on one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartVerdict {
    /// The part as it is written.
    pub command: String,
    /// The decision.
    pub kind: VerdictKind,
    /// Why the part is allowed.
    pub basis: AllowBasis,
    /// The rule that decided; none if no rule covers the part.
    pub rule: Option<RuleId>,
    /// A sentence that explains the decision.
    pub reason: String,
    /// The paths that the part reads, if it certainly only reads. The caller checks them against
    /// the file rules.
    pub reads: Vec<String>,
    /// How deep the part reads into folders.
    pub depth: ReadDepth,
}

/// Why a part is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowBasis {
    /// It is not allowed, or other parts are judged in its place.
    None,
    /// It only reads. This holds only if the file rules allow what it reads.
    Reads,
    /// A rule names exactly this command. This holds only if the program it runs is the one that
    /// was seen.
    Exact,
    /// A rule with a wildcard covers it, and a sandbox limits what it can do.
    Sandboxed,
}

impl PartVerdict {
    /// Whether it was allowed because it only reads.
    pub fn is_allowed_as_read_only(&self) -> bool {
        self.kind == VerdictKind::Allow && self.basis == AllowBasis::Reads
    }

    /// Whether it was allowed because a rule names exactly this command.
    pub fn is_allowed_exactly(&self) -> bool {
        self.kind == VerdictKind::Allow && self.basis == AllowBasis::Exact
    }
}

/// Judges a command line by the rules.
pub fn judge<'a>(rules: &CommandRules, line: impl Into<ShellLine<'a>>) -> CommandVerdict {
    let line = line.into();
    let script = parse(line.text);
    let reads = reads_of(&script);
    let judge = LineJudge {
        rules,
        folder: folder_of_parts(line, &script),
        confinement: line.confinement,
        is_single: script.parts.iter().filter(|part| is_written(part)).count() < 2,
    };
    let mut parts: Vec<PartVerdict> = Vec::with_capacity(script.parts.len());
    let mut seen = None;
    for part in &script.parts {
        if is_written(part) {
            seen = None;
        }
        let verdict = judge.part(part, seen.as_ref());
        if is_written(part) && verdict.is_allowed_exactly() {
            seen = verdict.rule.clone();
        }
        parts.push(verdict);
    }
    if judge.folder.is_some() && leading_cd(line.text, &script).is_some() {
        parts.first_mut().into_iter().for_each(allow_cd);
    }
    let (kind, CommandBasis { rule, reason }) = verdict(rules, &script, &parts);
    let mut deciding: Vec<RuleId> = Vec::new();
    let of_parts = parts.iter().filter(|part| part.kind == kind);
    for rule in rule
        .iter()
        .chain(of_parts.filter_map(|part| part.rule.as_ref()))
    {
        if !deciding.contains(rule) {
            deciding.push(rule.clone());
        }
    }
    CommandVerdict {
        kind,
        rules: deciding,
        reason,
        parts,
        reads,
        folder: judge.folder,
    }
}

/// Allows a leading `cd FOLDER`, unless a rule says something about it.
fn allow_cd(part: &mut PartVerdict) {
    if part.rule.is_none() && part.kind == VerdictKind::Ask {
        part.kind = VerdictKind::Allow;
        part.reason = "the rest is judged in the folder it leads to".to_owned();
    }
}

/// Whether a part is written in the line itself, and not run by another part.
fn is_written(part: &CommandPart) -> bool {
    match part.invocation {
        Invocation::Direct => true,
        Invocation::Wrapped | Invocation::BehindCommand => false,
    }
}

/// Whether a command line would be allowed if these patterns were the only rules. Invalid patterns
/// allow nothing.
pub fn allows<'a>(patterns: &[String], line: impl Into<ShellLine<'a>>) -> bool {
    let allow: Result<Vec<CommandPattern>, PatternError> = patterns
        .iter()
        .map(|text| CommandPattern::new(text))
        .collect();
    allow.is_ok_and(|allow| {
        let rules = CommandRules {
            allow,
            ..CommandRules::default()
        };
        judge(&rules, line).kind == VerdictKind::Allow
    })
}

fn verdict(
    rules: &CommandRules,
    script: &ShellScript,
    parts: &[PartVerdict],
) -> (VerdictKind, CommandBasis) {
    let strictest = parts.iter().map(|part| part.kind).max();
    let of_kind = |kind| {
        let of_kind = || parts.iter().filter(|part| part.kind == kind);
        // A part that a rule decides comes first: permission modes never override a rule.
        let part = of_kind()
            .find(|part| part.rule.is_some())
            .or_else(|| of_kind().next());
        CommandBasis {
            rule: part.and_then(|part| part.rule.clone()),
            reason: part.map(|part| part.reason.clone()).unwrap_or_default(),
        }
    };
    let everything = rules.deny.iter().find(|pattern| pattern.is_everything());
    match (strictest, &script.ambiguity, everything) {
        (Some(VerdictKind::Deny), _, _) => (VerdictKind::Deny, of_kind(VerdictKind::Deny)),
        (_, _, Some(pattern)) => (VerdictKind::Deny, CommandBasis::pattern("deny", pattern)),
        (_, Some(unclear), None) => (
            VerdictKind::Ask,
            CommandBasis::no_rule(format!("cannot be read for certain: {unclear}")),
        ),
        (None, None, None) => (
            VerdictKind::Ask,
            CommandBasis::no_rule("there is nothing to run"),
        ),
        (Some(kind), None, None) => (kind, of_kind(kind)),
    }
}

fn reads_of(script: &ShellScript) -> Option<Vec<String>> {
    if script.ambiguity.is_some() || script.parts.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    for part in &script.parts {
        match check_read_only(part) {
            ReadOnlyCheck::Yes { paths, .. } => all.extend(paths),
            ReadOnlyCheck::No { .. } | ReadOnlyCheck::Unclear { .. } => return None,
        }
    }
    all.sort();
    all.dedup();
    Some(all)
}
