//! What the rules for commands say about a call that runs one.

use crate::Agent;
use crate::gate::{Command, Reads, Ruled};
use serde_json::Value;
use stead_core::{Access, AccessKind, Reach, Verdict, VerdictKind};
use stead_tools::shell::{self, Judgement};
use stead_vfs::VPath;

impl Agent {
    /// Judges a command. What it may run because it only reads is put to the file rules, too: see `accesses`.
    pub(crate) fn command(&self, text: &str, args: &Value, accesses: &mut Vec<Access>) -> Command {
        let judgement = shell::judge(&self.parts.workspace.config().commands, text);
        let reads = if judgement.reads.is_some() { Reads::Only } else { Reads::NotOnly };
        let folder = args.get("cwd").and_then(Value::as_str).unwrap_or(".");
        let ruled = ruled(&judgement, folder, accesses);
        Command { text: text.to_owned(), ruled, reads }
    }
}

fn ruled(judgement: &Judgement, folder: &str, accesses: &mut Vec<Access>) -> Ruled {
    let verdict = Verdict { kind: judgement.kind, rule: judgement.rule.clone() };
    match judgement.kind {
        VerdictKind::Deny => Ruled::By(verdict),
        VerdictKind::Ask if judgement.rule.starts_with("commands.") => Ruled::By(verdict),
        VerdictKind::Ask => Ruled::Unruled(judgement.rule.clone()),
        VerdictKind::Allow => {
            for path in judgement.parts.iter().flat_map(|part| &part.reads) {
                match inside(folder, path) {
                    Some(path) => {
                        accesses.push(Access { path: path.to_string(), kind: AccessKind::Read, reach: Reach::Tree });
                    }
                    None => return Ruled::Unruled(format!("{path} is not in the workspace")),
                }
            }
            Ruled::By(verdict)
        }
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
