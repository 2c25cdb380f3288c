//! The verdict on a command line.

use super::line::{Confinement, ShellLine, folder_of_parts, leading_cd};
use super::options::OptionSpec;
use super::pattern::{CommandPattern, PatternMatch, RuleEffect};
use super::read_only::{ReadDepth, ReadOnlyCheck, check_read_only};
use super::rules::{CommandRules, ReadPolicy};
use super::script::{CommandPart, Invocation, RedirectKind, ShellScript, ShellWord, WordValue};
use super::wrappers::base_name;
use super::{PatternError, parse};
use stead_core::{RuleId, RuleSource, VerdictKind};

/// Commands that change the shell for what follows them in the same line. A rule allows them only
/// alone.
const SHELL_STATE: [&str; 25] = [
    "set",
    "shopt",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "enable",
    "hash",
    "source",
    ".",
    "trap",
    "exec",
    "eval",
    "umask",
    "ulimit",
    "bind",
];

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

/// Returns the id of the rule that allows commands which only read.
fn read_only_rule() -> RuleId {
    RuleId::new(RuleSource::CommandReads, "allow")
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

/// What is known about all parts of a line.
struct LineJudge<'r> {
    rules: &'r CommandRules,
    /// The folder in which the parts run, if that is certain.
    folder: Option<String>,
    confinement: Confinement,
    /// Whether the line consists of one command.
    is_single: bool,
}

impl LineJudge<'_> {
    /// Judges a part. `seen` is the rule that names exactly the part that runs this one.
    fn part(&self, part: &CommandPart, seen: Option<&RuleId>) -> PartVerdict {
        let check = check_read_only(part);
        let (reads, depth) = match &check {
            ReadOnlyCheck::Yes { paths, depth } => (paths.clone(), *depth),
            ReadOnlyCheck::No { .. } | ReadOnlyCheck::Unclear { .. } => {
                (Vec::new(), ReadDepth::Names)
            }
        };
        let said = |kind, allow: AllowBasis, basis: CommandBasis| PartVerdict {
            command: part.source.clone(),
            kind,
            basis: allow,
            rule: basis.rule,
            reason: basis.reason,
            reads: reads.clone(),
            depth,
        };
        let asks = |basis| said(VerdictKind::Ask, AllowBasis::None, basis);
        let plain = without_git_options(part);
        let find = |patterns: &[CommandPattern], wanted| {
            let is_about = |pattern: &&CommandPattern| {
                let mut seen = std::iter::once(part).chain(&plain);
                pattern.restricts_in(self.folder.as_deref())
                    && seen.any(|part| pattern.matches(part, RuleEffect::Restricts) == wanted)
            };
            patterns.iter().find(is_about).cloned()
        };
        if let Some(pattern) = find(&self.rules.deny, PatternMatch::Yes) {
            let basis = CommandBasis::pattern("deny", &pattern);
            return said(VerdictKind::Deny, AllowBasis::None, basis);
        }
        if let Some(pattern) = find(&self.rules.ask, PatternMatch::Yes) {
            return asks(CommandBasis::pattern("ask", &pattern));
        }
        // A guess about what may run is no reason to ask: the part that would run it is judged itself.
        if part.invocation == Invocation::BehindCommand {
            let basis = CommandBasis::no_rule("judged with the command that runs it");
            return said(VerdictKind::Allow, AllowBasis::None, basis);
        }
        if let Some(pattern) = find(&self.rules.deny, PatternMatch::Maybe)
            .or(find(&self.rules.ask, PatternMatch::Maybe))
        {
            return asks(CommandBasis::no_rule(format!(
                "`{}` may come to what `{}` is about",
                part.source,
                pattern.text()
            )));
        }
        let is_known = part.words.iter().all(|word| word.known().is_some());
        if let Some(rule) = seen.filter(|_| is_known) {
            let basis = CommandBasis {
                rule: Some(rule.clone()),
                reason: "the rule names the command that runs it".to_owned(),
            };
            return said(VerdictKind::Allow, AllowBasis::Exact, basis);
        }
        let covering = |pattern: &CommandPattern| {
            let allow = self.basis(pattern, part, &check)?;
            let basis = CommandBasis::pattern("allow", pattern);
            Some(said(VerdictKind::Allow, allow, basis))
        };
        if let Some(verdict) = self.rules.allow.iter().find_map(covering) {
            return verdict;
        }
        match self.rules.reads {
            ReadPolicy::Allow if self.is_plain_read(part, &check) => said(
                VerdictKind::Allow,
                AllowBasis::Reads,
                CommandBasis::read_only(),
            ),
            ReadPolicy::Allow | ReadPolicy::Ask => {
                asks(CommandBasis::no_rule(self.denial_reason(part, &check)))
            }
        }
    }

    /// Whether a part certainly only reads, in a folder that is known.
    fn is_plain_read(&self, part: &CommandPart, check: &ReadOnlyCheck) -> bool {
        let reads = match check {
            ReadOnlyCheck::Yes { .. } => true,
            ReadOnlyCheck::No { .. } | ReadOnlyCheck::Unclear { .. } => false,
        };
        reads && part.invocation == Invocation::Direct && self.folder.is_some()
    }

    /// Returns on what basis an allow rule covers everything that a part does, beyond its words.
    fn basis(
        &self,
        pattern: &CommandPattern,
        part: &CommandPart,
        check: &ReadOnlyCheck,
    ) -> Option<AllowBasis> {
        let folder = self.folder.as_deref()?;
        if pattern.matches(part, RuleEffect::Allows) != PatternMatch::Yes
            || !pattern.applies_in(folder)
        {
            return None;
        }
        let is_bare = part.assignments.is_empty() && !part.writes();
        match (pattern.is_exact(), self.confinement) {
            (true, _) => {
                let is_covered = is_bare && !takes_input(part) && !self.changes_shell(part);
                is_covered.then_some(AllowBasis::Exact)
            }
            (false, Confinement::Host) => {
                self.is_plain_read(part, check).then_some(AllowBasis::Reads)
            }
            (false, Confinement::Sandbox) if pattern.is_everything() => {
                is_determined(part).then_some(AllowBasis::Sandboxed)
            }
            (false, Confinement::Sandbox) => is_bare.then_some(AllowBasis::Sandboxed),
        }
    }

    /// Whether a part changes the shell for other parts of the line.
    fn changes_shell(&self, part: &CommandPart) -> bool {
        let name = part.name().unwrap_or_default();
        !self.is_single && SHELL_STATE.contains(&name)
    }

    /// Returns why no rule allows a part.
    fn denial_reason(&self, part: &CommandPart, check: &ReadOnlyCheck) -> String {
        let Some(first) = part.words.first() else {
            return match part.assignments.first() {
                Some(assignment) => format!("no rule allows setting `{}`", assignment.name),
                None => format!("no rule allows the redirection `{}`", part.source),
            };
        };
        let Some(name) = first.known() else {
            return format!("which command `{}` is cannot be told", first.source);
        };
        let is_about = |pattern: &&CommandPattern| {
            pattern.matches(part, RuleEffect::Allows) == PatternMatch::Yes
        };
        let Some(rule) = self.rules.allow.iter().find(is_about) else {
            return format!("no rule allows `{name}`");
        };
        let text = rule.text();
        let Some(folder) = &self.folder else {
            return format!("`{text}` does not apply, because the line changes folders");
        };
        if !rule.applies_in(folder) {
            return format!(
                "`{text}` does not apply in {folder}; to allow this there, add the rule `(in {folder}) {}`",
                part.source
            );
        }
        match (part.assignments.first(), check) {
            (Some(assignment), _) => {
                format!("`{text}` does not cover setting `{}`", assignment.name)
            }
            (None, _) if part.writes() => format!("`{text}` does not cover writing to a file"),
            (None, _) if rule.is_exact() && takes_input(part) => {
                format!("`{text}` does not cover the input that `{name}` is given")
            }
            (None, _) if rule.is_exact() => {
                format!(
                    "`{name}` changes the shell for the rest of the line; it is allowed only alone"
                )
            }
            (None, ReadOnlyCheck::No { why } | ReadOnlyCheck::Unclear { why }) => format!(
                "`{text}` has a wildcard, which outside a sandbox allows only reads, and {why}; to allow this command, \
                 write its exact words as a rule, or run commands in a sandbox"
            ),
            (None, ReadOnlyCheck::Yes { .. }) => format!(
                "`{text}` has a wildcard, which outside a sandbox covers no command that another one runs"
            ),
        }
    }
}

/// Whether a part gets input that its words do not name.
fn takes_input(part: &CommandPart) -> bool {
    part.redirects.iter().any(|redirect| match redirect.kind {
        RedirectKind::Read => redirect.target.known() != Some("/dev/null"),
        RedirectKind::Heredoc(_) | RedirectKind::Text => true,
        RedirectKind::Write | RedirectKind::Duplicate => false,
    })
}

/// Whether everything that a part does is known before it runs.
fn is_determined(part: &CommandPart) -> bool {
    let values = part.assignments.iter().map(|assignment| &assignment.value);
    let targets = part.redirects.iter().map(|redirect| &redirect.target.value);
    let named = part
        .words
        .first()
        .is_none_or(|word: &ShellWord| word.known().is_some());
    named
        && values
            .chain(targets)
            .all(|value| matches!(value, WordValue::Known(_)))
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
