//! Profiles: settings for some models.
//!
//! A [`Profile`] belongs to a provider, a family of models, or one model ([`ProfileKey`]). Several
//! may apply to a model: built-in profiles, then those of the workspace, then those given by the
//! program; within each group, the most specific comes last. They are merged by [`merge`]: of
//! single values the later wins, maps merge by key, and lists of excluded tools are united.
//!
//! Effects: none.

mod file;
mod key;
mod merge;
mod resolved;

pub use file::ProfileFile;
pub(crate) use file::{ParsedProfile, built_in_profiles};
pub use key::{ProfileKey, ProfileKeyError};
pub use merge::merge;
pub use resolved::{ProfileLayer, ProfileSetting, ProfileSource, ResolvedProfile};

use crate::{Surface, ToolLists};
use std::collections::{BTreeMap, BTreeSet};
use stead_model::{Caching, Params};
use stead_tools::ShownTools;

/// Settings for some models. A field that is none changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The last text of the system prompt.
    pub prompt_suffix: Option<String>,
    /// Descriptions of tools in place of their own, by any of their names.
    pub descriptions: BTreeMap<String, String>,
    /// The tools that the model is not shown and cannot call, by any of their names.
    pub exclude: BTreeSet<String>,
    /// The names under which tools are shown.
    pub surface: Option<Surface>,
    /// How many tools the model is shown.
    pub shown_tools: Option<ShownTools>,
    /// The sampling temperature, where the agent sets none.
    pub temperature: Option<f64>,
    /// The maximum number of thinking tokens, where the agent sets none.
    pub thinking_tokens: Option<u32>,
    /// How long the provider caches the start of a request.
    pub caching: Option<Caching>,
    /// The settings of the built-in subagent.
    pub general_purpose: GeneralPurpose,
}

/// The settings of the built-in subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneralPurpose {
    /// Whether the subagent exists.
    pub enabled: Option<bool>,
    /// The description for agents that may delegate to the subagent.
    pub description: Option<String>,
    /// The subagent's prompt, if this is the profile of the model it runs on.
    pub prompt: Option<String>,
}

impl Profile {
    /// Whether the tool with this canonical name is excluded.
    pub fn excludes(&self, tool: &str) -> bool {
        self.exclude.iter().any(|name| excluded_by(name, tool))
    }

    /// Returns the parameters of a request: the agent's, and the profile's where the agent sets
    /// none.
    pub fn params(&self, own: &Params) -> Params {
        Params {
            temperature: own.temperature.or(self.temperature),
            thinking_tokens: own.thinking_tokens.or(self.thinking_tokens),
            caching: self.caching.unwrap_or(own.caching),
            ..own.clone()
        }
    }
}

/// Whether excluding `name` excludes the tool with this canonical name. The rule is that of `deny`
/// lists.
fn excluded_by(name: &str, tool: &str) -> bool {
    !ToolLists {
        allow: None,
        deny: vec![name.to_owned()],
    }
    .allows(tool)
}
