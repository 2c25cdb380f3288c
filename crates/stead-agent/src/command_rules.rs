//! What the rules for commands say about a call that runs one.

use crate::admission::CallGate;
use serde_json::Value;
use stead_core::{AccessKind, PathAccess, PathScope, Verdict, VerdictKind};
use stead_gate::{CommandFacts, ReadOnlyStatus, RuleMatch};
use stead_shell::{CommandVerdict, ReadDepth};
use stead_vfs::{Rules, VPath, Vfs, VfsError};

/// What a command that only reads would look at.
#[derive(Default)]
pub(crate) struct CommandReads {
    /// What it names.
    pub(crate) named_paths: Vec<PathAccess>,
    /// Folders whose content it may show, where nothing but the reading was allowed.
    pub(crate) folders: Vec<PathAccess>,
}

impl CallGate<'_> {
    /// Judges a command. What it reads is for the file rules.
    pub(crate) fn judge_command(&self, text: &str, args: &Value) -> (CommandFacts, CommandReads) {
        let judgement = stead_shell::judge(&self.parts.workspace.config().commands, text);
        let reads = if judgement.reads.is_some() {
            ReadOnlyStatus::Yes
        } else {
            ReadOnlyStatus::Unknown
        };
        let folder = args.get("cwd").and_then(Value::as_str).unwrap_or(".");
        let mut looks = CommandReads::default();
        let ruled = match_rules(&judgement, folder, &mut looks);
        (
            CommandFacts {
                text: text.to_owned(),
                rule_match: ruled,
                read_only: reads,
            },
            looks,
        )
    }
}

fn match_rules(judgement: &CommandVerdict, folder: &str, looks: &mut CommandReads) -> RuleMatch {
    let verdict = Verdict {
        kind: judgement.kind,
        rule: judgement.rule.clone(),
    };
    let ruled = match judgement.kind {
        VerdictKind::Deny => return RuleMatch::Matched(verdict),
        VerdictKind::Ask if judgement.rule.starts_with("commands.") => RuleMatch::Matched(verdict),
        VerdictKind::Ask => RuleMatch::NoMatch(judgement.rule.clone()),
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
                Verdict::ask(format!(
                    "commands.reads: {}; name the files or folders to look at",
                    verdict.rule
                ))
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
