//! The prompt texts of the openharness layout, in addition to an agent's own prompt:
//! `.openharness/prompts.yaml`, or `system_prompt:` of the settings.
//!
//! Effects: workspace files (reads).

use super::common::{TextOr, first_duplicate, suggestion};
use super::models::ResolvedModel;
use super::settings::OpenharnessSettings;
use crate::layout::{Draft, SettingsRoot};
use crate::{FixedText, SettingsDocument, Severity, section_order};
use serde::Deserialize;
use std::collections::BTreeMap;
use stead_core::VariableSyntax;
use stead_model::providers;

const PROMPTS_FILE: &str = ".openharness/prompts.yaml";

#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PromptsFile {
    base: Option<TextSource>,
    llm_optimized: Option<OptimizedPrompts>,
    compose: Option<PromptComposition>,
}

/// A text, inline or in a file.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TextSource {
    inline: Option<String>,
    file: Option<String>,
}

#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OptimizedPrompts {
    providers: BTreeMap<String, TextSource>,
    models: BTreeMap<String, TextSource>,
}

#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PromptComposition {
    order: Option<Vec<PromptSegment>>,
    include_environment: Option<bool>,
}

/// A segment of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PromptSegment {
    Base,
    LlmOptimized,
    Agent,
    Actions,
    ProjectAgentsMd,
    Skills,
    AgentSwitches,
    Subagents,
    Environment,
}

impl PromptSegment {
    /// Returns the default position of the segment.
    fn default_order(self) -> u16 {
        match self {
            Self::Base => section_order::BASE,
            Self::LlmOptimized => section_order::BASE + 1,
            Self::Agent => section_order::PERSONA,
            Self::ProjectAgentsMd => section_order::CONTEXT,
            Self::Skills => section_order::SKILLS,
            Self::Actions => section_order::ACTIONS,
            Self::AgentSwitches => section_order::SWITCHES,
            Self::Subagents => section_order::SUBAGENTS,
            Self::Environment => section_order::SESSION,
        }
    }
}

/// The agent and the model that decide which texts are used.
pub(super) struct PromptTarget<'a> {
    /// The agent's own prompt.
    pub(super) agent: FixedText,
    /// The model that the agent names.
    pub(super) model: Option<&'a ResolvedModel>,
}

/// The settings of prompts, with the key they are below.
struct LocatedPrompts {
    prompts: PromptsFile,
    document: SettingsDocument,
    key_prefix: &'static str,
}

/// Adds the prompt texts to the draft.
pub(super) async fn load_prompts(
    draft: &mut Draft<'_>,
    settings: Option<&OpenharnessSettings>,
    speaker: PromptTarget<'_>,
) {
    let own = draft
        .load_yaml_in(SettingsRoot::Workspace, PROMPTS_FILE, VariableSyntax::Env)
        .await;
    let own = own.and_then(|document| {
        Some((
            draft.ok_or_note(document.deserialize_into::<PromptsFile>())?,
            document,
        ))
    });
    let of_settings =
        settings.and_then(|settings| Some((settings.system_prompt.clone()?, settings)));
    let written = match (own, of_settings) {
        (Some(_), Some((_, settings))) => {
            let message = format!(
                "system_prompt: prompts are written in {PROMPTS_FILE} too; keep one of them"
            );
            return draft.note(settings.document.error("system_prompt", message));
        }
        (Some((prompts, document)), None) => LocatedPrompts {
            prompts,
            document,
            key_prefix: "",
        },
        (None, Some((TextOr::Settings(prompts), settings))) => LocatedPrompts {
            prompts,
            document: settings.document.clone(),
            key_prefix: "system_prompt.",
        },
        (None, Some((TextOr::Text(text), settings))) => {
            let base = Some(TextSource {
                inline: Some(text),
                file: None,
            });
            let prompts = PromptsFile {
                base,
                ..PromptsFile::default()
            };
            LocatedPrompts {
                prompts,
                document: settings.document.clone(),
                key_prefix: "system_prompt.",
            }
        }
        (None, None) => return draft.texts.push(speaker.agent),
    };
    written.apply(draft, speaker).await;
}

impl LocatedPrompts {
    async fn apply(self, draft: &mut Draft<'_>, speaker: PromptTarget<'_>) {
        let base_key = self.key("base");
        let base = match &self.prompts.base {
            Some(source) => source.load(draft, &self.document, &base_key).await,
            None => None,
        };
        let optimized = self.optimized_text(draft, speaker.model).await;
        let text = |title: &str, text: String| FixedText {
            title: title.to_owned(),
            order: 0,
            source: self.document.file().to_owned(),
            text,
            tag: None,
        };
        let mut texts = vec![(PromptSegment::Agent, speaker.agent)];
        texts.extend(base.map(|base| (PromptSegment::Base, text("base", base))));
        texts.extend(optimized.map(|optimized| {
            (
                PromptSegment::LlmOptimized,
                text("for this model", optimized),
            )
        }));
        let orders = self.segment_orders(draft);
        for (segment, text) in texts {
            if let Some(order) = orders(segment) {
                draft.texts.push(FixedText { order, ..text });
            }
        }
        draft.texts.sort_by_key(|text| text.order);
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.key_prefix)
    }

    /// Returns the text for the agent's model, or for its provider. All texts are checked.
    async fn optimized_text(
        &self,
        draft: &mut Draft<'_>,
        model: Option<&ResolvedModel>,
    ) -> Option<String> {
        let optimized = self.prompts.llm_optimized.as_ref()?;
        let given = draft.options().model.as_deref();
        let reference = model
            .filter(|_| given.is_none())
            .map(|model| model.reference.as_str());
        let name = given.or_else(|| model.map(|model| model.settings.name.as_str()));
        let provider = name.and_then(|name| name.split(':').next());
        let mut chosen = (None, None);
        for (name, source) in &optimized.models {
            let key = self.key(&format!("llm_optimized.models.{name}"));
            if !name.starts_with("platform/") && !name.starts_with("workspace/") {
                let message = format!("{key}: a model is named platform/… or workspace/… here");
                draft.note(self.document.error(&key, message));
            }
            let text = source.load(draft, &self.document, &key).await;
            chosen.0 = if reference == Some(name) {
                text
            } else {
                chosen.0
            };
        }
        for (name, source) in &optimized.providers {
            let key = self.key(&format!("llm_optimized.providers.{name}"));
            let known: Vec<&str> = providers()
                .iter()
                .flat_map(|known| known.aliases.iter().copied().chain([known.name]))
                .collect();
            if !known.contains(&name.as_str()) {
                let message = format!(
                    "{key}: there is no provider `{name}`{}",
                    suggestion(name, known)
                );
                draft.note(self.document.finding(Severity::Warning, &key, message));
            }
            let text = source.load(draft, &self.document, &key).await;
            chosen.1 = if provider == Some(name) {
                text
            } else {
                chosen.1
            };
        }
        chosen.0.or(chosen.1)
    }

    /// Returns the position of each segment; none = the segment is left out.
    fn segment_orders(
        &self,
        draft: &mut Draft<'_>,
    ) -> impl Fn(PromptSegment) -> Option<u16> + use<> {
        let compose = self.prompts.compose.clone().unwrap_or_default();
        if compose.include_environment == Some(false) {
            let key = self.key("compose.include_environment");
            let message = format!("{key}: the date and the session are always told, last");
            draft.note(self.document.finding(Severity::Inactive, &key, message));
        }
        let list = compose.order;
        let key = self.key("compose.order");
        if let Some((at, _)) = list.as_deref().and_then(|list| first_duplicate(&key, list)) {
            draft.note(self.document.error(&at, format!("{at}: is listed twice")));
        }
        let mut placed: Vec<(PromptSegment, u16)> = Vec::new();
        let mut next = section_order::BASE;
        for (i, segment) in list.iter().flatten().enumerate() {
            match segment {
                PromptSegment::Base | PromptSegment::LlmOptimized | PromptSegment::Agent => {
                    placed.push((*segment, next));
                    next += 1;
                }
                // No actions are shown in this version.
                PromptSegment::Actions => {}
                PromptSegment::ProjectAgentsMd
                | PromptSegment::Skills
                | PromptSegment::AgentSwitches
                | PromptSegment::Subagents
                | PromptSegment::Environment => {
                    if segment.default_order() < next {
                        let at = format!("{key}[{i}]");
                        let message = format!("{at}: this part stays in its usual place");
                        draft.note(self.document.finding(Severity::Inactive, &at, message));
                    }
                    next = next.max(segment.default_order() + 1);
                }
            }
        }
        if let Some(list) = &list {
            self.note_omitted_segments(draft, list);
        }
        let ordered = list.is_some();
        move |segment| {
            let place = placed
                .iter()
                .find(|(known, _)| *known == segment)
                .map(|(_, order)| *order);
            if ordered {
                place
            } else {
                Some(segment.default_order())
            }
        }
    }

    /// Notes texts of segments that the order does not name: they are not used.
    fn note_omitted_segments(&self, draft: &mut Draft<'_>, list: &[PromptSegment]) {
        let key = self.key("compose.order");
        if !list.contains(&PromptSegment::Agent) {
            let message =
                format!("{key}: `agent` is not listed, so the agent's own prompt is not used");
            draft.note(self.document.finding(Severity::Warning, &key, message));
        }
        if !list.contains(&PromptSegment::ProjectAgentsMd) {
            draft
                .paths
                .context
                .retain(|file| file.path.as_str() != "AGENTS.md");
        }
        if !list.contains(&PromptSegment::Skills) {
            let message = format!("{key}: skills are listed all the same, if the agent has any");
            draft.note(self.document.finding(Severity::Inactive, &key, message));
        }
    }
}

impl TextSource {
    /// Returns the file that the text is in, if it is in one.
    pub(crate) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Loads the text. Notes a finding if it cannot be read.
    pub(crate) async fn load(
        &self,
        draft: &mut Draft<'_>,
        document: &SettingsDocument,
        key: &str,
    ) -> Option<String> {
        match (&self.inline, &self.file) {
            (Some(_), Some(_)) => {
                draft.note(document.error(
                    key,
                    format!("{key}: has both `inline` and `file`; keep one"),
                ));
                None
            }
            (None, None) => {
                draft.note(document.error(key, format!("{key}: needs `inline` or `file`")));
                None
            }
            (Some(text), None) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            (None, Some(file)) => match draft.read_file(file).await {
                Some(read) => Some(read.text.trim().to_owned()).filter(|text| !text.is_empty()),
                None => {
                    let message = format!(
                        "{key}.file: {file} cannot be read; paths begin at the workspace's root"
                    );
                    draft.note(document.error(&format!("{key}.file"), message));
                    None
                }
            },
        }
    }
}
