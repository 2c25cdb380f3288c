//! What the harness does differently for some models.
//!
//! A [`Profile`] belongs to a provider, a family of models, or one model ([`ProfileKey`]). Several
//! may apply: those that are built in, then those of the workspace, then those that the program
//! gives; among them, the closest last. They are merged by [`merge`]: of single values the later
//! wins, maps merge by key, lists of excluded tools unite.

mod file;
mod key;
mod merge;
mod resolved;

pub use file::ProfileFile;
pub(crate) use file::{ParsedProfile, built_in_profiles};
pub use key::ProfileKey;
pub use merge::merge;
pub use resolved::{ProfileLayer, ProfileSetting, ProfileSource, ResolvedProfile};

use crate::{Surface, ToolLists};
use std::collections::{BTreeMap, BTreeSet};
use stead_model::{Caching, Params};

/// What the harness does differently for some models. What is not set stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Said last in the system prompt.
    pub prompt_suffix: Option<String>,
    /// What the model is told about tools instead of their own descriptions, by any of their names.
    pub descriptions: BTreeMap<String, String>,
    /// Tools that are neither shown to the model nor callable, by any of their names.
    pub exclude: BTreeSet<String>,
    /// How tools are named.
    pub surface: Option<Surface>,
    /// Sampling temperature, where the agent sets none.
    pub temperature: Option<f64>,
    /// Tokens to spend on thinking, where the agent does not say.
    pub thinking_tokens: Option<u32>,
    /// How long the provider keeps the beginning of a request.
    pub caching: Option<Caching>,
    /// The built-in agent that work can be handed to.
    pub general_purpose: GeneralPurpose,
}

/// What is different about the built-in agent that work can be handed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GeneralPurpose {
    /// Whether there is one.
    pub enabled: Option<bool>,
    /// How it is described to whoever may hand work to it.
    pub description: Option<String>,
    /// What it is told, where this is the profile of the model it runs on.
    pub prompt: Option<String>,
}

impl Profile {
    /// Whether the tool of this canonical name is excluded.
    pub fn excludes(&self, tool: &str) -> bool {
        self.exclude.iter().any(|name| excluded_by(name, tool))
    }

    /// The settings of a request: those of the agent, and the profile's where it has none.
    pub fn params(&self, own: &Params) -> Params {
        Params {
            temperature: own.temperature.or(self.temperature),
            thinking_tokens: own.thinking_tokens.or(self.thinking_tokens),
            caching: self.caching.unwrap_or(own.caching),
            ..own.clone()
        }
    }
}

/// Whether excluding `name` excludes the tool of this canonical name: as denying it in a list would
/// deny it.
fn excluded_by(name: &str, tool: &str) -> bool {
    !ToolLists {
        allow: None,
        deny: vec![name.to_owned()],
    }
    .allows(tool)
}
