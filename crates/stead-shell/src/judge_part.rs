//! The verdict on one command of a line.
//!
//! Effects: none.

use super::judge::{AllowBasis, PartVerdict};
use super::line::Confinement;
use super::options::OptionSpec;
use super::pattern::{CommandPattern, PatternMatch, RuleEffect};
use super::read_only::{ReadDepth, ReadOnlyCheck, check_read_only};
use super::rules::{CommandRules, ReadPolicy};
use super::script::{CommandPart, Invocation, RedirectKind, ShellWord, WordValue};
use super::wrappers::base_name;
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
/// Returns the id of the rule that allows commands which only read.
fn read_only_rule() -> RuleId {
    RuleId::new(RuleSource::CommandReads, "allow")
}

/// The basis of a decision: a rule, or the reason why there is none.
pub(super) struct CommandBasis {
    pub(super) rule: Option<RuleId>,
    pub(super) reason: String,
}

impl CommandBasis {
    /// Returns the basis for a pattern of one of the lists.
    pub(super) fn pattern(list: &str, pattern: &CommandPattern) -> Self {
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

    pub(super) fn no_rule(reason: impl Into<String>) -> Self {
        Self {
            rule: None,
            reason: reason.into(),
        }
    }
}

/// What is known about all parts of a line.
pub(super) struct LineJudge<'r> {
    pub(super) rules: &'r CommandRules,
    /// The folder in which the parts run, if that is certain.
    pub(super) folder: Option<String>,
    pub(super) confinement: Confinement,
    /// Whether the line consists of one command.
    pub(super) is_single: bool,
}

impl LineJudge<'_> {
    /// Judges a part. `seen` is the rule that names exactly the part that runs this one.
    pub(super) fn part(&self, part: &CommandPart, seen: Option<&RuleId>) -> PartVerdict {
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
