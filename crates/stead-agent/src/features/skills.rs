//! Skills: instructions that the agent loads when it needs them.
//!
//! Effects: workspace files (reads).

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::Owner;
use stead_skills::{Catalogue, SkillPrompt, load_skill};
use stead_tools::{ToolIdentity, builtin};
use stead_vfs::VPath;
use stead_workspace::{
    FeatureSwitch, Section, SectionCut, SkillMode, SkillTrees, WorkspaceError, section_order,
};

/// The most bytes of the catalogue in the prompt.
const MAX_CATALOGUE_BYTES: usize = 32 * 1024;
/// The most bytes of whole skills in the prompt.
const MAX_FULL_BYTES: usize = 256 * 1024;
/// The most owners whose skills are frozen.
const MAX_FROZEN: usize = 1000;

/// The section about skills, and the tool that loads one.
#[derive(Debug, Default)]
pub(super) struct SkillsFeature {
    /// The catalogue of each owner's first turn, if skills do not change during the life of the
    /// agent.
    frozen: Mutex<HashMap<Owner, Arc<Catalogue>>>,
}

impl Feature for SkillsFeature {
    fn name(&self) -> &'static str {
        "skills"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[builtin::LOAD_SKILL]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let catalogue = self.catalogue(cx).await?;
            let mode = cx.definition().config.skills.mode.unwrap_or_default();
            let prompt = match mode {
                SkillMode::Full => {
                    cx.workspace
                        .library
                        .full_skills(&catalogue, MAX_FULL_BYTES)
                        .await
                }
                // Without the tool, the model could not use the catalogue.
                SkillMode::Catalogue if !cx.allows_tool(&builtin::LOAD_SKILL) => None,
                SkillMode::Catalogue => {
                    let tool = cx.name_of(&builtin::LOAD_SKILL);
                    catalogue.available_skills_via(tool, MAX_CATALOGUE_BYTES)
                }
            };
            let sections = prompt
                .map(|prompt| self.section(&catalogue, prompt))
                .into_iter()
                .collect();
            Ok(Contribution {
                sections,
                tools: load_skill(catalogue).into_iter().collect(),
            })
        })
    }
}

impl SkillsFeature {
    /// Returns the skills that the acting agent may use.
    async fn catalogue(&self, cx: &TurnCx<'_>) -> Result<Arc<Catalogue>, WorkspaceError> {
        let freezes = cx
            .definition()
            .config
            .disable
            .contains(FeatureSwitch::DynamicSkills);
        if let Some(known) = self.lock().get(cx.owner).filter(|_| freezes) {
            return Ok(known.clone());
        }
        let own = VPath::parse("skills")
            .ok()
            .and_then(|folder| cx.user_version(&folder));
        let own = own
            .map(|folder| (cx.files.clone(), folder))
            .into_iter()
            .collect();
        let trees = SkillTrees {
            shared: cx.files,
            installed: cx.files,
            owner_dirs: own,
        };
        let layers = cx.workspace.skill_layers(trees).await?;
        let mut catalogue = cx.workspace.library.catalogue(&layers).await;
        if let Some(allowed) = cx
            .definition()
            .active_spec()
            .and_then(|spec| spec.skills.as_ref())
        {
            catalogue.retain(|skill| allowed.iter().any(|name| name == skill.name()));
        }
        let catalogue = Arc::new(catalogue);
        if freezes {
            let mut frozen = self.lock();
            if frozen.len() < MAX_FROZEN {
                frozen.insert(cx.owner.clone(), catalogue.clone());
            }
        }
        Ok(catalogue)
    }

    fn section(&self, catalogue: &Catalogue, prompt: SkillPrompt) -> Section {
        let cut = prompt.cut.map(|what| SectionCut {
            source: "skills".to_owned(),
            what,
        });
        let section =
            Section::new("skills", self.name(), section_order::SKILLS, prompt.text).with_cuts(cut);
        catalogue.skills().fold(section, |section, skill| {
            section.with_source(skill.file().to_string())
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Owner, Arc<Catalogue>>> {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
