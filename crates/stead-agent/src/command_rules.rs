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
    /// The folders whose content it may show, where only the reading was allowed.
    pub(crate) folders: Vec<PathAccess>,
}

impl CallGate<'_> {
    /// The walls behind which its commands run.
    fn isolation(&self) -> Isolation {
        let sandbox = self.parts.sandbox.as_ref();
        sandbox.map_or(Isolation::NONE, |sandbox| sandbox.isolation())
    }

    /// Judges a command. The paths that it reads are left to the file rules.
    pub(crate) fn judge_command(&self, line: &CommandLine) -> (CommandFacts, CommandReads) {
        let judgement = stead_shell::judge(&self.parts.workspace.config().commands, &line.text);
        let reads = if judgement.reads.is_some() {
            ReadOnlyStatus::Yes
        } else {
            ReadOnlyStatus::Unknown
        };
        let mut looks = CommandReads::default();
        let ruled = match_rules(&judgement, &line.cwd, &mut looks);
        (
            CommandFacts {
                text: line.text.clone(),
                rule_match: ruled,
                isolation: self.isolation(),
                read_only: reads,
            },
            looks,
        )
    }
}

fn match_rules(judgement: &CommandVerdict, folder: &str, looks: &mut CommandReads) -> RuleMatch {
    let verdict = Verdict {
        kind: judgement.kind,
        rules: judgement.rules.clone(),
        reason: judgement.reason.clone(),
    };
    let ruled = match judgement.kind {
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
        let access = |reach| PathAccess {
            path: inside.to_string(),
            kind: AccessKind::Read,
            scope: reach,
        };
        looks.named_paths.push(access(PathScope::Content));
        match part.depth {
            ReadDepth::Below if part.is_allowed_as_read_only() => {
                looks.folders.push(access(PathScope::Tree))
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
        looks.folders.push(PathAccess {
            path,
            kind: AccessKind::Read,
            scope: PathScope::Tree,
        });
    }
    ruled
}

impl CommandReads {
    /// What the file rules say of what lies below: a person may still let it be shown.
    pub(crate) async fn ask_about_folders(
        &self,
        rules: &Rules,
        files: &dyn Vfs,
    ) -> Result<Option<Verdict>, VfsError> {
        let verdict = stead_vfs::judge(rules, files, &self.folders).await?;
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

/// A file that a command names, as a path of the workspace; none if it lies elsewhere.
fn workspace_path(folder: &str, path: &str) -> Option<VPath> {
    if path.starts_with('/') {
        return None;
    }
    let folder = VPath::parse(folder).ok()?;
    match folder.is_root() {
        true => VPath::parse(path).ok(),
        false => VPath::parse(&format!("{folder}/{path}")).ok(),
    }
}
