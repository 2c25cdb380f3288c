//! The verdict on a command line.

use super::escapes::find_escape;
use super::options::OptionSpec;
use super::pattern::{CommandPattern, NameComparison, PatternMatch};
use super::read_only::{ReadDepth, ReadOnlyCheck, check_read_only};
use super::rules::{CommandRules, ReadPolicy};
use super::script::{CommandPart, Invocation, ShellScript, WordValue};
use super::wrappers::base_name;
use super::{PatternError, parse};
use stead_core::{RuleId, RuleSource, VerdictKind};

/// The options of git before its subcommand.
const GIT: OptionSpec = OptionSpec {
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
}

/// The verdict of the rules on one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartVerdict {
    /// The part as it is written.
    pub command: String,
    /// The decision.
    pub kind: VerdictKind,
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

impl PartVerdict {
    /// Whether it was allowed because it only reads.
    pub fn is_allowed_as_read_only(&self) -> bool {
        self.rule.as_ref() == Some(&read_only_rule())
    }
}

/// Returns the id of the rule that allows commands which only read.
fn read_only_rule() -> RuleId {
    RuleId::new(RuleSource::CommandReads, "allow")
}

/// Judges a command line by the rules.
pub fn judge(rules: &CommandRules, command: &str) -> CommandVerdict {
    let script = parse(command);
    let reads = reads_of(&script);
    let policy = if stays_in_start_folder(&script) {
        rules.reads
    } else {
        ReadPolicy::Ask
    };
    let parts: Vec<PartVerdict> = script
        .parts
        .iter()
        .map(|part| judge_part(rules, policy, part))
        .collect();
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
    }
}

/// Whether a command line would be allowed if these patterns were the only rules. Invalid patterns
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

/// The basis of a decision: a rule, or the reason why there is none.
struct CommandBasis {
    rule: Option<RuleId>,
    reason: String,
}

impl CommandBasis {
    /// Returns the basis for a pattern of one of the lists.
    fn pattern(list: &str, pattern: &CommandPattern) -> Self {
        let text = pattern.text();
        Self {
            rule: Some(RuleId::new(
                RuleSource::Commands,
                format_args!("{list} {text}"),
            )),
            reason: format!("commands.{list}: {text}"),
        }
    }

    fn read_only() -> Self {
        Self {
            rule: Some(read_only_rule()),
            reason: "commands.reads: allow".to_owned(),
        }
    }

    fn no_rule(reason: impl Into<String>) -> Self {
        Self {
            rule: None,
            reason: reason.into(),
        }
    }
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

fn judge_part(rules: &CommandRules, policy: ReadPolicy, part: &CommandPart) -> PartVerdict {
    let (reads, depth) = match check_read_only(part) {
        ReadOnlyCheck::Yes { paths, depth } => (Some(paths), depth),
        ReadOnlyCheck::No { .. } | ReadOnlyCheck::Unclear { .. } => (None, ReadDepth::Names),
    };
    let said = |kind, basis: CommandBasis| PartVerdict {
        command: part.source.clone(),
        kind,
        rule: basis.rule,
        reason: basis.reason,
        reads: reads.clone().unwrap_or_default(),
        depth,
    };
    let plain = without_git_options(part);
    let find = |patterns: &[CommandPattern], wanted| {
        let is_about = |pattern: &&CommandPattern| {
            let mut seen = std::iter::once(part).chain(&plain);
            seen.any(|part| pattern.matches(part, NameComparison::Base) == wanted)
        };
        patterns.iter().find(is_about).cloned()
    };
    if let Some(pattern) = find(&rules.deny, PatternMatch::Yes) {
        return said(VerdictKind::Deny, CommandBasis::pattern("deny", &pattern));
    }
    if let Some(pattern) = find(&rules.ask, PatternMatch::Yes) {
        return said(VerdictKind::Ask, CommandBasis::pattern("ask", &pattern));
    }
    // A guess about what may run is no reason to ask: the part that would run it is judged itself.
    if part.invocation == Invocation::BehindCommand {
        return said(
            VerdictKind::Allow,
            CommandBasis::no_rule("judged with the command that runs it"),
        );
    }
    if let Some(pattern) =
        find(&rules.deny, PatternMatch::Maybe).or(find(&rules.ask, PatternMatch::Maybe))
    {
        return said(
            VerdictKind::Ask,
            CommandBasis::no_rule(format!(
                "`{}` may come to what `{}` is about",
                part.source,
                pattern.text()
            )),
        );
    }
    if let Some(pattern) = rules.allow.iter().find(|pattern| covers(pattern, part)) {
        return said(VerdictKind::Allow, CommandBasis::pattern("allow", pattern));
    }
    match (policy, part.invocation, &reads) {
        (ReadPolicy::Allow, Invocation::Direct, Some(_)) => {
            said(VerdictKind::Allow, CommandBasis::read_only())
        }
        _ => said(
            VerdictKind::Ask,
            CommandBasis::no_rule(denial_reason(rules, part)),
        ),
    }
}

/// Returns the part without git's options, so that `git -C x push` is a `git push` for rules that
/// deny or ask.
fn without_git_options(part: &CommandPart) -> Option<CommandPart> {
    let [name, arguments @ ..] = part.words.as_slice() else {
        return None;
    };
    let rest = GIT
        .operands(arguments)
        .filter(|rest| rest.len() < arguments.len())?;
    let is_git = name.known().is_some_and(|name| base_name(name) == "git");
    is_git.then(|| {
        CommandPart::new(
            std::iter::once(name).chain(rest).cloned().collect(),
            part.invocation,
        )
    })
}

/// Whether an allow rule covers everything that a part does, beyond its words.
fn covers(pattern: &CommandPattern, part: &CommandPart) -> bool {
    if pattern.is_everything() {
        let values = part.assignments.iter().map(|assignment| &assignment.value);
        let targets = part.redirects.iter().map(|redirect| &redirect.target.value);
        let named = part.words.is_empty() || part.name().is_some();
        return named
            && values
                .chain(targets)
                .all(|value| matches!(value, WordValue::Known(_)));
    }
    let is_about = pattern.matches(part, NameComparison::Exact) == PatternMatch::Yes;
    is_about
        && part.assignments.is_empty()
        && !part.writes()
        && find_escape(part, pattern.word_count()).is_none()
}

fn denial_reason(rules: &CommandRules, part: &CommandPart) -> String {
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
        .filter(|pattern| pattern.matches(part, NameComparison::Exact) == PatternMatch::Yes);
    let Some(rule) = about.next() else {
        return format!("no rule allows `{name}`");
    };
    match (
        part.assignments.first(),
        find_escape(part, rule.word_count()),
    ) {
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

/// Whether every part runs in the folder in which the command line starts: elsewhere a relative
/// path means another file.
fn stays_in_start_folder(script: &ShellScript) -> bool {
    let moves = |part: &CommandPart| {
        part.words
            .iter()
            .take(2)
            .filter_map(|word| word.known())
            .any(|word| matches!(base_name(word), "cd" | "pushd" | "popd" | "chdir"))
            || part
                .words
                .first()
                .is_some_and(|word| matches!(word.value, WordValue::Unknown(_)))
    };
    !script.parts.iter().any(moves)
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
