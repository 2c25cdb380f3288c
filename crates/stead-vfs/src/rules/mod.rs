//! Rules about reading and writing files: the protected paths first, then an agent's own rules.
//!
//! ```
//! use stead_core::{AccessKind, VerdictKind};
//! use stead_vfs::{Protected, Rule, Rules, VPath};
//!
//! let rule = Rule { operations: vec![AccessKind::Write], paths: vec!["docs/**".into()], mode: VerdictKind::Deny };
//! let rules = Rules::new(&[rule], Protected::workspace(""))?;
//! let verdict = rules.decide(AccessKind::Write, &VPath::parse("docs/a.md").unwrap());
//! assert_eq!(verdict.kind, VerdictKind::Deny);
//! assert_eq!(verdict.rules[0].as_str(), "permissions:deny write docs/**");
//! # Ok::<(), stead_vfs::RuleError>(())
//! ```
//!
//! - [`Protected`] paths come first, and no rule can open them.
//! - Then the first rule that names the operation and covers the path decides. If there is none,
//!   the access is allowed.
//! - A pattern is compared with the whole path from the root. `*`, `?` and `[…]` stay within a
//!   name, `**` spans directories, `{a,b}` matches either. Names that begin with a dot are names
//!   like any other, and case matters.
//! - A pattern covers what it matches and everything below: `docs`, `/docs/` and `docs/**` are the
//!   same.
//!
//! Effects: none.

mod path_patterns;
mod pattern;
mod protected;

pub use path_patterns::PathPatterns;
pub use protected::{Protected, is_secret};

use crate::VPath;
use pattern::PathPattern;
use protected::Protection;
use serde::{Deserialize, Serialize};
use std::fmt;
use stead_core::{AccessKind, RuleId, RuleSource, Verdict, VerdictKind};

/// One entry of `permissions:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The operations it applies to: `read`, `write`.
    pub operations: Vec<AccessKind>,
    /// Globs over whole paths from the root.
    pub paths: Vec<String>,
    /// The decision: `allow`, `ask` or `deny`.
    pub mode: VerdictKind,
}

/// A rule together with its compiled form, so that each rule is compiled once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Rule")]
pub struct CheckedRule {
    rule: Rule,
    compiled: CompiledRule,
}

impl CheckedRule {
    /// Compiles the rule at `index` of its list.
    pub fn new(index: usize, rule: Rule) -> Result<Self, RuleError> {
        let compiled = CompiledRule::new(index, &rule)?;
        Ok(Self { rule, compiled })
    }
}

impl std::ops::Deref for CheckedRule {
    type Target = Rule;

    fn deref(&self) -> &Rule {
        &self.rule
    }
}

impl From<CheckedRule> for Rule {
    fn from(checked: CheckedRule) -> Self {
        checked.rule
    }
}

/// Why a rule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A list of the rule is empty.
    #[error("permissions[{index}]: `{list}` is empty, so the rule would never hold")]
    Empty {
        /// The index of the rule, from 0.
        index: usize,
        /// The name of the list.
        list: &'static str,
    },
    /// A pattern is invalid.
    #[error("permissions[{index}]: {pattern:?} is not a pattern for paths: {reason}")]
    Pattern {
        /// The index of the rule, from 0.
        index: usize,
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: String,
    },
}

/// Compiled rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    protected: Protected,
    rules: Vec<CompiledRule>,
    /// Further lists, each of which can only narrow what the others allow.
    narrowing: Vec<Vec<CompiledRule>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CompiledRule {
    operations: Vec<AccessKind>,
    patterns: Vec<PathPattern>,
    mode: VerdictKind,
}

/// The rule or protection that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleDecision<'a> {
    Protected(Protection),
    /// The target of a protected link.
    LinkTarget(Protection),
    Rule {
        index: usize,
        pattern: &'a str,
        kind: AccessKind,
        mode: VerdictKind,
    },
    NoRule,
}

/// The targets of protected names that are links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProtectedLinks(pub(crate) Vec<(VPath, Protection)>);

impl Rules {
    /// Compiles the rules of an agent whose layout protects `protected`.
    pub fn new(rules: &[Rule], protected: Protected) -> Result<Self, RuleError> {
        let rules = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| CompiledRule::new(index, rule));
        Ok(Self {
            protected,
            rules: rules.collect::<Result<_, _>>()?,
            narrowing: Vec::new(),
        })
    }

    /// Returns the rules of an agent whose layout protects `protected`, compiled already.
    pub fn from_checked(rules: &[CheckedRule], protected: Protected) -> Self {
        Self {
            protected,
            rules: rules.iter().map(|rule| rule.compiled.clone()).collect(),
            narrowing: Vec::new(),
        }
    }

    /// Returns the rules with a further list, which can only narrow them: the strictest of the
    /// decisions of all lists holds.
    pub fn narrowed_by(&self, rules: &[CheckedRule]) -> Self {
        let mut narrowed = self.clone();
        if !rules.is_empty() {
            let rules = rules.iter().map(|rule| rule.compiled.clone());
            narrowed.narrowing.push(rules.collect());
        }
        narrowed
    }

    /// Returns the rules for where nobody can be asked: what would ask is denied.
    pub fn without_asking(&self) -> Self {
        let mut rules = self.clone();
        let further = rules.narrowing.iter_mut().flatten();
        for rule in rules.rules.iter_mut().chain(further) {
            rule.mode = match rule.mode {
                VerdictKind::Ask | VerdictKind::Deny => VerdictKind::Deny,
                VerdictKind::Allow => VerdictKind::Allow,
            };
        }
        rules
    }

    /// Returns the rules for paths that the arguments of a call name, if they differ: such a call
    /// cannot change files that tools keep for the agent.
    pub(crate) fn for_named_paths(&self) -> Option<Self> {
        let protected = self.protected.for_named_paths()?;
        Some(Self {
            protected,
            ..self.clone()
        })
    }

    /// Returns whether `path` may be read or written, and the rule that decides. Only the name of
    /// the path is considered; a [`Guarded`](crate::Guarded) file system also considers its target.
    pub fn decide(&self, kind: AccessKind, path: &VPath) -> Verdict {
        self.decide_with_links(kind, path.as_str(), &ProtectedLinks::default())
            .verdict()
    }

    /// Describes the rules, in order.
    pub fn describe(&self) -> Vec<String> {
        self.rules
            .iter()
            .enumerate()
            .map(|(index, rule)| format!("permissions[{index}]: {rule}"))
            .collect()
    }

    /// Returns descriptions of rules that never decide anything, each with the reason. Only what
    /// the texts of the patterns show is found.
    pub fn ineffective_rules(&self) -> Vec<String> {
        let mut idle = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            for (kind, pattern) in rule
                .operations
                .iter()
                .flat_map(|kind| rule.patterns.iter().map(move |p| (kind, p)))
            {
                let about = format!(
                    "permissions[{index}]: {} {} never decides",
                    operation(*kind),
                    pattern.text()
                );
                if let Some(earlier) = self.covering(index, *kind, pattern) {
                    idle.push(format!("{about}: permissions[{earlier}] covers it"));
                } else if let Some(protection) = self.protection(*kind, pattern) {
                    idle.push(format!("{about}: {}", protection.describe()));
                }
            }
        }
        idle
    }

    /// Returns the paths that rules name without wildcards, each with a description of the rule.
    pub fn literal_paths(&self) -> Vec<(VPath, String)> {
        let sentences = self.describe();
        let named = self
            .rules
            .iter()
            .zip(&sentences)
            .flat_map(|(rule, sentence)| {
                rule.patterns
                    .iter()
                    .filter_map(|pattern| Some((pattern.literal()?, sentence.clone())))
            });
        named
            .filter_map(|(path, sentence)| Some((VPath::parse(&path).ok()?, sentence)))
            .collect()
    }

    pub(crate) fn decide_with_links(
        &self,
        kind: AccessKind,
        path: &str,
        links: &ProtectedLinks,
    ) -> RuleDecision<'_> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        if let Some(protection) = self.protected.protection_for(kind, &names) {
            return RuleDecision::Protected(protection);
        }
        if let Some(protection) = links.protection_for(kind, path) {
            return RuleDecision::LinkTarget(protection);
        }
        let mut strictest = decide_by_list(&self.rules, kind, &names);
        for list in &self.narrowing {
            let decided = decide_by_list(list, kind, &names);
            if strictness(decided.kind()) > strictness(strictest.kind()) {
                strictest = decided;
            }
        }
        strictest
    }

    /// Returns the names at the root whose targets are protected if they are links.
    pub(crate) fn protected_roots(
        &self,
        kind: AccessKind,
    ) -> impl Iterator<Item = (VPath, Protection)> {
        self.protected
            .link_roots(kind)
            .filter_map(|(name, protection)| Some((VPath::parse(&name).ok()?, protection)))
    }

    /// Returns the first rule before `index` with which `pattern` is completely covered.
    fn covering(&self, index: usize, kind: AccessKind, pattern: &PathPattern) -> Option<usize> {
        let earlier = |end: usize| {
            let rules = self.rules[..end]
                .iter()
                .filter(|rule| rule.operations.contains(&kind));
            rules.flat_map(|rule| &rule.patterns).collect::<Vec<_>>()
        };
        (0..index).find(|at| pattern.is_covered_by(&earlier(at + 1)))
    }

    fn protection(&self, kind: AccessKind, pattern: &PathPattern) -> Option<Protection> {
        let path = pattern.literal()?;
        self.protected
            .protection_for(kind, &path.split('/').collect::<Vec<_>>())
    }
}

/// Returns the decision of the first rule of a list that covers the path.
fn decide_by_list<'a>(
    rules: &'a [CompiledRule],
    kind: AccessKind,
    names: &[&str],
) -> RuleDecision<'a> {
    let of_kind = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.operations.contains(&kind));
    for (index, rule) in of_kind {
        if let Some(pattern) = rule.patterns.iter().find(|pattern| pattern.covers(names)) {
            return RuleDecision::Rule {
                index,
                pattern: pattern.text(),
                kind,
                mode: rule.mode,
            };
        }
    }
    RuleDecision::NoRule
}

/// Orders verdicts by how much they restrict.
fn strictness(kind: VerdictKind) -> u8 {
    match kind {
        VerdictKind::Allow => 0,
        VerdictKind::Ask => 1,
        VerdictKind::Deny => 2,
    }
}

impl CompiledRule {
    fn new(index: usize, rule: &Rule) -> Result<Self, RuleError> {
        for (list, is_empty) in [
            ("operations", rule.operations.is_empty()),
            ("paths", rule.paths.is_empty()),
        ] {
            if is_empty {
                return Err(RuleError::Empty { index, list });
            }
        }
        let wrong = |pattern: &str, reason| RuleError::Pattern {
            index,
            pattern: pattern.to_owned(),
            reason,
        };
        let patterns = rule
            .paths
            .iter()
            .map(|text| PathPattern::new(text).map_err(|reason| wrong(text, reason)));
        let mut operations = rule.operations.clone();
        operations.sort_unstable();
        operations.dedup();
        Ok(Self {
            operations,
            patterns: patterns.collect::<Result<_, _>>()?,
            mode: rule.mode,
        })
    }
}

impl fmt::Display for CompiledRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<&str> = self
            .operations
            .iter()
            .map(|kind| operation(*kind))
            .collect();
        let patterns: Vec<&str> = self.patterns.iter().map(PathPattern::text).collect();
        write!(
            f,
            "{} {} {}",
            mode(self.mode),
            operations.join(", "),
            patterns.join(", ")
        )
    }
}

impl RuleDecision<'_> {
    pub(crate) fn kind(&self) -> VerdictKind {
        match self {
            Self::Protected(_) | Self::LinkTarget(_) => VerdictKind::Deny,
            Self::Rule { mode, .. } => *mode,
            Self::NoRule => VerdictKind::Allow,
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let reason = match self {
            Self::Protected(protection) => protection.describe(),
            Self::LinkTarget(protection) => {
                format!("{}, and this is where it leads", protection.describe())
            }
            Self::Rule { index, .. } => format!("permissions[{index}]: {}", self.content()),
            Self::NoRule => "no rule matches".to_owned(),
        };
        Verdict::new(
            self.kind(),
            RuleId::new(self.source(), self.content()),
            reason,
        )
    }

    /// Returns the id of the rule without its content, which may name a hidden file.
    pub(crate) fn hidden_rule(&self) -> RuleId {
        RuleId::hidden(self.source(), self.content())
    }

    fn source(&self) -> RuleSource {
        match self {
            Self::Protected(_) | Self::LinkTarget(_) => RuleSource::Protected,
            Self::Rule { .. } | Self::NoRule => RuleSource::Permissions,
        }
    }

    /// Returns the content of the rule, independent of its position.
    fn content(&self) -> String {
        match self {
            Self::Protected(protection) | Self::LinkTarget(protection) => {
                protection.id().to_owned()
            }
            Self::Rule {
                pattern,
                kind,
                mode: m,
                ..
            } => format!("{} {} {pattern}", mode(*m), operation(*kind)),
            Self::NoRule => "none".to_owned(),
        }
    }
}

impl ProtectedLinks {
    /// Returns the reason why a path is protected as the target of a protected name.
    fn protection_for(&self, kind: AccessKind, path: &str) -> Option<Protection> {
        let within = |outer: &str, inner: &str| {
            outer.is_empty()
                || inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let holds = |(led, protection): &&(VPath, Protection)| match (kind, protection) {
            (
                AccessKind::Read,
                Protection::Root
                | Protection::Fixed(_)
                | Protection::Users
                | Protection::Undo
                | Protection::Git,
            ) => false,
            (AccessKind::Read, Protection::Secret(_) | Protection::Quarantine) => {
                within(led.as_str(), path)
            }
            // Directories above it cannot be moved either, or the name would lead elsewhere.
            (AccessKind::Write, _) => within(led.as_str(), path) || within(path, led.as_str()),
        };
        self.0.iter().find(holds).map(|(_, protection)| *protection)
    }
}

/// Returns the name in `operations:`.
fn operation(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
    }
}

/// Returns the name in `mode:`.
fn mode(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Allow => "allow",
        VerdictKind::Ask => "ask",
        VerdictKind::Deny => "deny",
    }
}

#[cfg(test)]
mod tests;
