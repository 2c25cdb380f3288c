//! The command rules, applied to a call that runs a command.

use crate::admission::CallGate;
use stead_core::{AccessKind, PathAccess, PathScope, Verdict, VerdictKind};
use stead_gate::{CommandFacts, ReadOnlyStatus, RuleMatch};
use stead_sandbox::Isolation;
use stead_shell::{CommandVerdict, ReadDepth};
use stead_tools::CommandLine;
use stead_vfs::{Rules, VPath, Vfs, VfsError};

/// The paths that a read-only command would read.
#[derive(Default)]
pub(crate) struct CommandReads {
    /// The paths that it names.
    pub(crate) named_paths: Vec<PathAccess>,
    /// The folders whose content it may show, if it is allowed only because it is read-only.
    pub(crate) folders: Vec<PathAccess>,
}

impl CallGate<'_> {
    /// Returns the isolation of commands.
    pub(crate) fn isolation(&self) -> Isolation {
        let sandbox = self.parts.sandbox.as_ref();
        sandbox.map_or(Isolation::NONE, |sandbox| sandbox.isolation())
    }

    /// Judges a command. The paths that it reads are left to the file rules.
    pub(crate) fn judge_command(&self, line: &CommandLine) -> (CommandFacts, CommandReads) {
        let judgement = stead_shell::judge(&self.parts.workspace.config().commands, &line.text);
        let read_only = if judgement.reads.is_some() {
            ReadOnlyStatus::Yes
        } else {
            ReadOnlyStatus::Unknown
        };
        let mut paths = CommandReads::default();
        let rule_match = match_rules(&judgement, &line.cwd, &mut paths);
        (
            CommandFacts {
                text: line.text.clone(),
                rule_match,
                isolation: self.isolation(),
                read_only,
                network: false,
            },
            paths,
        )
    }
}

/// Returns what the rules say about a command, and adds the paths that it would read to `paths`.
fn match_rules(judgement: &CommandVerdict, folder: &str, paths: &mut CommandReads) -> RuleMatch {
    let verdict = Verdict {
        kind: judgement.kind,
        rules: judgement.rules.clone(),
        reason: judgement.reason.clone(),
    };
    let rule_match = match judgement.kind {
        VerdictKind::Deny => return RuleMatch::Matched(verdict),
        VerdictKind::Ask if !judgement.rules.is_empty() => RuleMatch::Matched(verdict),
        VerdictKind::Ask => RuleMatch::NoMatch(judgement.reason.clone()),
        VerdictKind::Allow => RuleMatch::Matched(verdict),
    };
    for (part, path) in judgement
        .parts
        .iter()
        .flat_map(|part| part.reads.iter().map(move |path| (part, path)))
    {
        let Some(inside) = workspace_path(folder, path) else {
            match part.is_allowed_as_read_only() && judgement.kind == VerdictKind::Allow {
                true => return RuleMatch::NoMatch(format!("{path} is not in the workspace")),
                false => continue,
            }
        };
        let access = |scope| PathAccess {
            path: inside.to_string(),
            kind: AccessKind::Read,
            scope,
        };
        paths.named_paths.push(access(PathScope::Content));
        match part.depth {
            ReadDepth::Below if part.is_allowed_as_read_only() => {
                paths.folders.push(access(PathScope::Tree))
            }
            ReadDepth::Below | ReadDepth::Names | ReadDepth::Repository => {}
        }
    }
    if judgement
        .parts
        .iter()
        .any(|part| part.is_allowed_as_read_only() && part.depth == ReadDepth::Repository)
    {
        let path = VPath::root().to_string();
        paths.folders.push(PathAccess {
            path,
            kind: AccessKind::Read,
            scope: PathScope::Tree,
        });
    }
    rule_match
}

impl CommandReads {
    /// Applies the file rules to everything in the folders. A refusal becomes a question, which a
    /// person may allow.
    pub(crate) async fn ask_about_folders(
        &self,
        rules: &Rules,
        files: &dyn Vfs,
    ) -> Result<Option<Verdict>, VfsError> {
        let verdict = stead_vfs::judge_accesses(rules, files, &self.folders).await?;
        Ok(verdict
            .filter(|verdict| verdict.kind != VerdictKind::Allow)
            .map(|verdict| {
                let reason = format!(
                    "commands.reads: {}; name the files or folders to look at",
                    verdict.reason
                );
                Verdict {
                    kind: VerdictKind::Ask,
                    rules: verdict.rules,
                    reason,
                }
            }))
    }
}

/// Returns a path of a command as a path of the workspace; `None` if it is outside.
pub(crate) fn workspace_path(folder: &str, path: &str) -> Option<VPath> {
    if path.starts_with('/') {
        return None;
    }
    let folder = VPath::parse(folder).ok()?;
    match folder.is_root() {
        true => VPath::parse(path).ok(),
        false => VPath::parse(&format!("{folder}/{path}")).ok(),
    }
}
