//! The verdict on a command line.

use super::escapes::escape;
use super::options::Spec;
use super::pattern::{CommandPattern, Match, Name};
use super::reads::{Depth, Reads, reads_only};
use super::rules::{CommandRules, ReadPolicy};
use super::script::{Part, Reach, Script, Value};
use super::wrappers::base_name;
use super::{PatternError, parse};
use stead_core::VerdictKind;

/// What may stand before the command of git.
const GIT: Spec = Spec {
    flags: "pP",
    valued: "Cc",
    long: &[
        "no-pager",
        "paginate",
        "bare",
        "no-optional-locks",
        "no-replace-objects",
        "literal-pathspecs",
        "no-lazy-fetch",
    ],
    long_valued: &[
        "git-dir",
        "work-tree",
        "namespace",
        "exec-path",
        "config-env",
        "attr-source",
    ],
};

/// What the rules say of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The strictest of its parts; what is unclear is at least asked.
    pub kind: VerdictKind,
    /// What decided: the rule (`commands.deny: rm *`), or why none allows it.
    pub rule: String,
    /// Each part and what was said of it.
    pub parts: Vec<PartJudgement>,
    /// What it reads, if all it does for certain is read.
    pub reads: Option<Vec<String>>,
}

/// What the rules say of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartJudgement {
    /// As it is written.
    pub command: String,
    /// The decision.
    pub kind: VerdictKind,
    /// What decided.
    pub rule: String,
    /// What it reads, if all it does for certain is read: the caller puts these to the file rules.
    pub reads: Vec<String>,
    /// How far it looks into folders.
    pub depth: Depth,
}

impl PartJudgement {
    /// Whether it was allowed because it only reads.
    pub fn is_by_reads(&self) -> bool {
        self.kind == VerdictKind::Allow && self.rule == BY_READS
    }
}

/// The rule by which commands that only read are allowed.
const BY_READS: &str = "commands.reads: allow";

/// Puts a command line to the rules.
pub fn judge(rules: &CommandRules, command: &str) -> Judgement {
    let script = parse(command);
    let reads = reads_of(&script);
    let policy = if stays(&script) {
        rules.reads
    } else {
        ReadPolicy::Ask
    };
    let parts: Vec<PartJudgement> = script
        .parts
        .iter()
        .map(|part| judge_part(rules, policy, part))
        .collect();
    let (kind, rule) = verdict(rules, &script, &parts);
    Judgement {
        kind,
        rule,
        parts,
        reads,
    }
}

/// Whether a command line would be allowed if these patterns were the only rules. Bad patterns
/// allow nothing.
pub fn allows(patterns: &[String], command: &str) -> bool {
    let allow: Result<Vec<CommandPattern>, PatternError> = patterns
        .iter()
        .map(|text| CommandPattern::new(text))
        .collect();
    allow.is_ok_and(|allow| {
        let rules = CommandRules {
            allow,
            ..CommandRules::default()
        };
        judge(&rules, command).kind == VerdictKind::Allow
    })
}

fn verdict(
    rules: &CommandRules,
    script: &Script,
    parts: &[PartJudgement],
) -> (VerdictKind, String) {
    let strictest = parts.iter().map(|part| part.kind).max();
    let of_kind = |kind| {
        parts
            .iter()
            .find(|part| part.kind == kind)
            .map(|part| part.rule.clone())
            .unwrap_or_default()
    };
    let everything = rules.deny.iter().find(|pattern| pattern.is_everything());
    match (strictest, &script.unclear, everything) {
        (Some(VerdictKind::Deny), _, _) => (VerdictKind::Deny, of_kind(VerdictKind::Deny)),
        (_, _, Some(pattern)) => (VerdictKind::Deny, named("deny", pattern)),
        (_, Some(unclear), None) => (
            VerdictKind::Ask,
            format!("cannot be read for certain: {unclear}"),
        ),
        (None, None, None) => (VerdictKind::Ask, "there is nothing to run".to_owned()),
        (Some(kind), None, None) => (kind, of_kind(kind)),
    }
}

fn judge_part(rules: &CommandRules, policy: ReadPolicy, part: &Part) -> PartJudgement {
    let (reads, depth) = match reads_only(part) {
        Reads::Only { paths, depth } => (Some(paths), depth),
        Reads::No { .. } | Reads::Unclear { .. } => (None, Depth::Names),
    };
    let said = |kind, rule: String| PartJudgement {
        command: part.source.clone(),
        kind,
        rule,
        reads: reads.clone().unwrap_or_default(),
        depth,
    };
    let plain = without_git_options(part);
    let find = |patterns: &[CommandPattern], wanted| {
        let is_about = |pattern: &&CommandPattern| {
            let mut seen = std::iter::once(part).chain(&plain);
            seen.any(|part| pattern.matches(part, Name::Base) == wanted)
        };
        patterns.iter().find(is_about).cloned()
    };
    if let Some(pattern) = find(&rules.deny, Match::Yes) {
        return said(VerdictKind::Deny, named("deny", &pattern));
    }
    if let Some(pattern) = find(&rules.ask, Match::Yes) {
        return said(VerdictKind::Ask, named("ask", &pattern));
    }
    // A guess at what may run is no reason to ask: the part it stands behind is judged itself.
    if part.reach == Reach::Behind {
        return said(
            VerdictKind::Allow,
            "judged with the command that runs it".to_owned(),
        );
    }
    if let Some(pattern) = find(&rules.deny, Match::Maybe).or(find(&rules.ask, Match::Maybe)) {
        return said(
            VerdictKind::Ask,
            format!(
                "`{}` may come to what `{}` is about",
                part.source,
                pattern.text()
            ),
        );
    }
    if let Some(pattern) = rules.allow.iter().find(|pattern| covers(pattern, part)) {
        return said(VerdictKind::Allow, named("allow", pattern));
    }
    match (policy, part.reach, &reads) {
        (ReadPolicy::Allow, Reach::Direct, Some(_)) => {
            said(VerdictKind::Allow, BY_READS.to_owned())
        }
        _ => said(VerdictKind::Ask, why_not(rules, part)),
    }
}

/// `git -C x push` is a `git push` to rules that deny or ask.
fn without_git_options(part: &Part) -> Option<Part> {
    let [name, arguments @ ..] = part.words.as_slice() else {
        return None;
    };
    let rest = GIT
        .operands(arguments)
        .filter(|rest| rest.len() < arguments.len())?;
    let is_git = name.known().is_some_and(|name| base_name(name) == "git");
    is_git.then(|| {
        Part::new(
            std::iter::once(name).chain(rest).cloned().collect(),
            part.reach,
        )
    })
}

/// Whether an allow rule covers all that a part does, beyond its words.
fn covers(pattern: &CommandPattern, part: &Part) -> bool {
    if pattern.is_everything() {
        let values = part.assignments.iter().map(|assignment| &assignment.value);
        let targets = part.redirects.iter().map(|redirect| &redirect.target.value);
        let named = part.words.is_empty() || part.name().is_some();
        return named
            && values
                .chain(targets)
                .all(|value| matches!(value, Value::Known(_)));
    }
    let is_about = pattern.matches(part, Name::Exact) == Match::Yes;
    is_about
        && part.assignments.is_empty()
        && !part.writes()
        && escape(part, pattern.named()).is_none()
}

fn why_not(rules: &CommandRules, part: &Part) -> String {
    let Some(first) = part.words.first() else {
        return match part.assignments.first() {
            Some(assignment) => format!("no rule allows setting `{}`", assignment.name),
            None => format!("no rule allows the redirection `{}`", part.source),
        };
    };
    let Some(name) = first.known() else {
        return format!("which command `{}` is cannot be told", first.source);
    };
    let mut about = rules
        .allow
        .iter()
        .filter(|pattern| pattern.matches(part, Name::Exact) == Match::Yes);
    let Some(rule) = about.next() else {
        return format!("no rule allows `{name}`");
    };
    match (part.assignments.first(), escape(part, rule.named())) {
        (Some(assignment), _) => format!(
            "the rule for `{name}` does not cover setting `{}`",
            assignment.name
        ),
        (None, Some(word)) => format!(
            "the rule for `{name}` does not cover `{}`, which may run something else; to allow it, name it in the rule",
            word.source
        ),
        (None, None) => format!("the rule for `{name}` does not cover writing to a file"),
    }
}

fn named(list: &str, pattern: &CommandPattern) -> String {
    format!("commands.{list}: {}", pattern.text())
}

/// Whether every part runs in the folder where the command line began: elsewhere a relative path
/// means another file.
fn stays(script: &Script) -> bool {
    let moves = |part: &Part| {
        part.words
            .iter()
            .take(2)
            .filter_map(|word| word.known())
            .any(|word| matches!(base_name(word), "cd" | "pushd" | "popd" | "chdir"))
            || part
                .words
                .first()
                .is_some_and(|word| matches!(word.value, Value::Unknown(_)))
    };
    !script.parts.iter().any(moves)
}

fn reads_of(script: &Script) -> Option<Vec<String>> {
    if script.unclear.is_some() || script.parts.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    for part in &script.parts {
        match reads_only(part) {
            Reads::Only { paths, .. } => all.extend(paths),
            Reads::No { .. } | Reads::Unclear { .. } => return None,
        }
    }
    all.sort();
    all.dedup();
    Some(all)
}
