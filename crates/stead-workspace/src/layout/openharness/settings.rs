//! `.openharness/settings.yaml`.

use super::models::Alias;
use super::prompts::Prompts;
use super::words::TextOr;
use crate::layout::{Draft, Side};
use crate::variables::Marks;
use crate::{Document, Switch};
use serde::Deserialize;
use std::collections::BTreeMap;
use stead_vfs::{FileKind, VPath};

pub(super) const FILE: &str = ".openharness/settings.yaml";

/// The settings, and where each stands.
pub(super) struct Settings {
    pub(super) document: Document,
    pub(super) default_agent: Option<String>,
    pub(super) kind: Kind,
    pub(super) models: BTreeMap<String, TextOr<Alias>>,
    pub(super) system_prompt: Option<TextOr<Prompts>>,
}

/// What a workspace is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Work on files.
    #[default]
    Project,
    /// Talk only: no tools, no skills, no other agents.
    Chat,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    default_agent: Option<String>,
    kind: Option<Kind>,
    #[serde(rename = "runtime", alias = "blueprint")]
    _runtime: Option<String>,
    models: Option<BTreeMap<String, TextOr<Alias>>>,
    skill_dirs: Option<Vec<String>>,
    engine: Option<Engine>,
    #[serde(rename = "imports")]
    _imports: Option<Imports>,
    system_prompt: Option<TextOr<Prompts>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Engine {
    compact: Option<Part>,
    session_memory: Option<Part>,
    workspace_memory: Option<Part>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Part {
    enabled: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Imports {
    #[serde(rename = "tools")]
    _tools: Option<Vec<String>>,
    #[serde(rename = "skills")]
    _skills: Option<Vec<String>>,
}

/// Reads the settings, and takes in those that are about the folder as a whole. None if there are
/// none.
pub(super) async fn read(draft: &mut Draft<'_>) -> Option<Settings> {
    let document = draft.yaml_in(Side::Folder, FILE, Marks::Env).await?;
    draft.came_from(&document, |key| {
        (key == "default_agent").then(|| "agent".to_owned())
    });
    let written: Written = draft.take(document.typed())?;
    draft.inactive(
        &document,
        &[
            ("runtime", "templates of workspaces come in a later version"),
            (
                "blueprint",
                "templates of workspaces come in a later version",
            ),
            ("imports", "templates of workspaces come in a later version"),
        ],
    );
    engine(draft, &written.engine.unwrap_or_default());
    skill_dirs(draft, &document, &written.skill_dirs.unwrap_or_default()).await;
    Some(Settings {
        default_agent: written.default_agent,
        kind: written.kind.unwrap_or_default(),
        models: written.models.unwrap_or_default(),
        system_prompt: written.system_prompt,
        document,
    })
}

fn engine(draft: &mut Draft<'_>, engine: &Engine) {
    let is = |part: &Option<Part>, wanted: bool| {
        part.as_ref()
            .is_some_and(|part| part.enabled == Some(wanted))
    };
    if is(&engine.compact, false) {
        draft.config.disable.0.insert(Switch::Compaction);
    }
    if is(&engine.workspace_memory, true) || is(&engine.session_memory, true) {
        draft.config.memory.flush = Some(true);
    }
    if is(&engine.workspace_memory, false) {
        draft.tree.memory = None;
        draft
            .config
            .disable
            .0
            .extend([Switch::MemoryHooks, Switch::MemoryTools]);
    }
}

/// Adds folders of skills. The layout's own goes before them, and earlier ones before later ones.
async fn skill_dirs(draft: &mut Draft<'_>, document: &Document, folders: &[String]) {
    for (i, folder) in folders.iter().enumerate() {
        let key = format!("skill_dirs[{i}]");
        match VPath::parse(folder) {
            Err(error) => draft.note(document.error(&key, format!("skill_dirs: {error}"))),
            Ok(path) if draft.tree.skills.contains(&path) => {
                draft.note(document.error(&key, format!("skill_dirs: {folder} is listed twice")));
            }
            Ok(path) => {
                if !is_folder(draft, &path).await {
                    let message =
                        format!("skill_dirs: there is no folder {folder} in the workspace");
                    draft.note(document.finding(crate::Severity::Warning, &key, message));
                }
                draft.tree.skills.insert(0, path);
            }
        }
    }
}

async fn is_folder(draft: &mut Draft<'_>, path: &VPath) -> bool {
    let Some(parent) = path.parent() else {
        return true;
    };
    let names = draft.names(parent.as_str()).await;
    names
        .iter()
        .any(|(name, kind)| name == path.name() && *kind == FileKind::Directory)
}
