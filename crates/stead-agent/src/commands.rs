//! What the rules for commands say about a call that runs one.

use crate::Agent;
use crate::gate::{Command, Reads, Ruled};
use serde_json::Value;
use stead_core::{Access, AccessKind, Reach, Verdict, VerdictKind};
use stead_tools::shell::{self, Depth, Judgement};
use stead_vfs::{Rules, VPath, Vfs, VfsError};

/// What a command that only reads would look at.
#[derive(Default)]
pub(crate) struct Looks {
    /// What it names.
    pub(crate) named: Vec<Access>,
    /// Folders whose content it may show, where nothing but the reading was allowed.
    pub(crate) below: Vec<Access>,
}

impl Agent {
    /// Judges a command. What it reads is for the file rules.
    pub(crate) fn command(&self, text: &str, args: &Value) -> (Command, Looks) {
        let judgement = shell::judge(&self.parts.workspace.config().commands, text);
        let reads = if judgement.reads.is_some() {
            Reads::Only
        } else {
            Reads::NotOnly
        };
        let folder = args.get("cwd").and_then(Value::as_str).unwrap_or(".");
        let mut looks = Looks::default();
        let ruled = ruled(&judgement, folder, &mut looks);
        (
            Command {
                text: text.to_owned(),
                ruled,
                reads,
            },
            looks,
        )
    }
}

fn ruled(judgement: &Judgement, folder: &str, looks: &mut Looks) -> Ruled {
    let verdict = Verdict {
        kind: judgement.kind,
        rule: judgement.rule.clone(),
    };
    let ruled = match judgement.kind {
        VerdictKind::Deny => return Ruled::By(verdict),
        VerdictKind::Ask if judgement.rule.starts_with("commands.") => Ruled::By(verdict),
        VerdictKind::Ask => Ruled::Unruled(judgement.rule.clone()),
        VerdictKind::Allow => Ruled::By(verdict),
    };
    for (part, path) in judgement
        .parts
        .iter()
        .flat_map(|part| part.reads.iter().map(move |path| (part, path)))
    {
        let Some(inside) = inside(folder, path) else {
            match part.is_by_reads() && judgement.kind == VerdictKind::Allow {
                true => return Ruled::Unruled(format!("{path} is not in the workspace")),
                false => continue,
            }
        };
        let access = |reach| Access {
            path: inside.to_string(),
            kind: AccessKind::Read,
            reach,
        };
        looks.named.push(access(Reach::Content));
        match part.depth {
            Depth::Below if part.is_by_reads() => looks.below.push(access(Reach::Tree)),
            Depth::Below | Depth::Names | Depth::Repository => {}
        }
    }
    if judgement
        .parts
        .iter()
        .any(|part| part.is_by_reads() && part.depth == Depth::Repository)
    {
        let path = VPath::root().to_string();
        looks.below.push(Access {
            path,
            kind: AccessKind::Read,
            reach: Reach::Tree,
        });
    }
    ruled
}

impl Looks {
    /// What the file rules say of what lies below: a person may still let it be shown.
    pub(crate) async fn ask(
        &self,
        rules: &Rules,
        files: &dyn Vfs,
    ) -> Result<Option<Verdict>, VfsError> {
        let verdict = stead_vfs::judge(rules, files, &self.below).await?;
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
fn inside(folder: &str, path: &str) -> Option<VPath> {
    if path.starts_with('/') {
        return None;
    }
    let folder = VPath::parse(folder).ok()?;
    match folder.is_root() {
        true => VPath::parse(path).ok(),
        false => VPath::parse(&format!("{folder}/{path}")).ok(),
    }
}
