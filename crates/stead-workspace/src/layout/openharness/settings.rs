//! The settings of the openharness layout: `.openharness/settings.yaml`.
//!
//! Effects: workspace files (reads).

use super::common::TextOr;
use super::models::ModelAlias;
use super::prompts::PromptsFile;
use crate::layout::{Draft, SettingsRoot};
use crate::{FeatureSwitch, SettingsDocument};
use serde::Deserialize;
use std::collections::BTreeMap;
use stead_core::VariableSyntax;
use stead_vfs::{FileKind, VPath};

pub(super) const SETTINGS_FILE: &str = ".openharness/settings.yaml";

/// The settings with their document.
pub(super) struct OpenharnessSettings {
    pub(super) document: SettingsDocument,
    pub(super) default_agent: Option<String>,
    pub(super) kind: WorkspaceKind,
    pub(super) models: BTreeMap<String, TextOr<ModelAlias>>,
    pub(super) system_prompt: Option<TextOr<PromptsFile>>,
}

/// The purpose of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkspaceKind {
    /// Working on files.
    #[default]
    Project,
    /// Talking only: no tools, no skills, no other agents.
    Chat,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OpenharnessSettingsFile {
    default_agent: Option<String>,
    kind: Option<WorkspaceKind>,
    #[serde(rename = "runtime", alias = "blueprint")]
    _runtime: Option<String>,
    models: Option<BTreeMap<String, TextOr<ModelAlias>>>,
    skill_dirs: Option<Vec<String>>,
    engine: Option<EngineSettings>,
    #[serde(rename = "imports")]
    _imports: Option<Imports>,
    system_prompt: Option<TextOr<PromptsFile>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EngineSettings {
    compact: Option<EngineFeature>,
    session_memory: Option<EngineFeature>,
    workspace_memory: Option<EngineFeature>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EngineFeature {
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

/// Loads the settings and applies those about the folder as a whole. Returns none if there is no
/// such file.
pub(super) async fn load_settings(draft: &mut Draft<'_>) -> Option<OpenharnessSettings> {
    let document = draft
        .load_yaml_in(SettingsRoot::Workspace, SETTINGS_FILE, VariableSyntax::Env)
        .await?;
    draft.record_origins(&document, |key| {
        (key == "default_agent").then(|| "agent".to_owned())
    });
    let written: OpenharnessSettingsFile = draft.ok_or_note(document.deserialize_into())?;
    draft.note_inactive_keys(
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
    apply_engine_settings(draft, &written.engine.unwrap_or_default());
    add_skill_dirs(draft, &document, &written.skill_dirs.unwrap_or_default()).await;
    Some(OpenharnessSettings {
        default_agent: written.default_agent,
        kind: written.kind.unwrap_or_default(),
        models: written.models.unwrap_or_default(),
        system_prompt: written.system_prompt,
        document,
    })
}

fn apply_engine_settings(draft: &mut Draft<'_>, engine: &EngineSettings) {
    let is = |part: &Option<EngineFeature>, wanted: bool| {
        part.as_ref()
            .is_some_and(|part| part.enabled == Some(wanted))
    };
    if is(&engine.compact, false) {
        draft.config.disable.0.insert(FeatureSwitch::Compaction);
    }
    if is(&engine.workspace_memory, true) || is(&engine.session_memory, true) {
        draft.config.memory.flush = Some(true);
    }
    if is(&engine.workspace_memory, false) {
        draft.paths.memory = None;
        draft
            .config
            .disable
            .0
            .extend([FeatureSwitch::MemoryHooks, FeatureSwitch::MemoryTools]);
    }
}

/// Adds folders of skills. The layout's own folder overrides them, and earlier ones override later
/// ones.
async fn add_skill_dirs(draft: &mut Draft<'_>, document: &SettingsDocument, folders: &[String]) {
    for (i, folder) in folders.iter().enumerate() {
        let key = format!("skill_dirs[{i}]");
        match VPath::parse(folder) {
            Err(error) => draft.note(document.error(&key, format!("skill_dirs: {error}"))),
            Ok(path) if draft.paths.skills.contains(&path) => {
                draft.note(document.error(&key, format!("skill_dirs: {folder} is listed twice")));
            }
            Ok(path) => {
                if !is_folder(draft, &path).await {
                    let message =
                        format!("skill_dirs: there is no folder {folder} in the workspace");
                    draft.note(document.finding(crate::Severity::Warning, &key, message));
                }
                draft.paths.skills.insert(0, path);
            }
        }
    }
}

async fn is_folder(draft: &mut Draft<'_>, path: &VPath) -> bool {
    let Some(parent) = path.parent() else {
        return true;
    };
    let names = draft.list_dir(parent.as_str()).await;
    names
        .iter()
        .any(|(name, kind)| name == path.name() && *kind == FileKind::Directory)
}
