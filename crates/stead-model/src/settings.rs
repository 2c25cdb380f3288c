//! The settings of a model, as given in `agent.yaml` and on the command line.
//!
//! Effects: none.

use crate::{Ability, Caching, Params, ToolChoice};
use serde::{Deserialize, Serialize};
use stead_core::Price;

/// The settings of one model. All but the name have defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// `provider:model`, for example `anthropic:claude-sonnet-4-5` or `scripted:demo.yaml`.
    pub name: String,
    /// The name of the model in the workspace, if that names its models: `platform/fast`.
    #[serde(skip)]
    pub reference: Option<String>,
    /// The provider, given together with `model` instead of `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model, given together with `provider` instead of `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The endpoint, if it is not the provider's default.
    pub base_url: Option<String>,
    /// The key, if it is not in the provider's usual variable.
    pub api_key: Option<String>,
    /// The number of tokens that fit into one request including its answer. Overrides the built-in
    /// table.
    pub context_window: Option<u32>,
    /// The abilities of the model. Overrides the built-in table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abilities: Option<Vec<Ability>>,
    /// The maximum length of an answer in tokens.
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The number of tokens for thinking.
    pub thinking_tokens: Option<u32>,
    /// The price in dollars per million tokens. Overrides the built-in table.
    pub price: Option<Price>,
    /// `false` requests whole answers instead of streams.
    pub stream: Option<bool>,
    /// The number of retries of a failed request (default 4).
    pub max_retries: Option<u32>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Models to try, in order, when this one is unavailable.
    pub fallbacks: Vec<String>,
}

impl ModelSettings {
    /// Returns the settings with `provider` and `model` joined as `name`, or the problem with the
    /// key it concerns.
    pub fn with_joined_name(self) -> Result<Self, (&'static str, String)> {
        let refused = |key: &'static str, message: &str| Err((key, message.to_owned()));
        let Self {
            name,
            provider,
            model,
            ..
        } = &self;
        let (provider, model) = match (
            provider.as_deref().map(str::trim),
            model.as_deref().map(str::trim),
        ) {
            (None, None) => return Ok(self),
            (Some(_), _) if !name.is_empty() => {
                return refused("provider", "either `name`, or `provider` and `model`");
            }
            (None, Some(_)) if !name.is_empty() => {
                return refused("model", "either `name`, or `provider` and `model`");
            }
            (Some(""), _) => return refused("provider", "is empty"),
            (_, Some("")) => return refused("model", "is empty"),
            (Some(provider), None) => {
                return Err((
                    "provider",
                    format!("which model of {provider}? `model` is missing"),
                ));
            }
            (None, Some(model)) => {
                return Err((
                    "model",
                    format!("whose model is {model}? `provider` is missing"),
                ));
            }
            (Some(provider), Some(model)) => (provider, model),
        };
        Ok(Self {
            name: format!("{provider}:{model}"),
            provider: None,
            model: None,
            ..self
        })
    }

    /// Returns the settings that go with every request.
    pub fn params(&self) -> Params {
        Params {
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature,
            thinking_tokens: self.thinking_tokens,
            caching: Caching::default(),
            answer_room: None,
            tool_choice: ToolChoice::Auto,
            answer_schema: None,
        }
    }
}

/// Time limits of a request, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Until connected.
    pub connect_seconds: f64,
    /// Until the first and between two pieces of a streamed answer.
    pub idle_seconds: f64,
    /// For the whole answer, without retries.
    pub total_seconds: f64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_seconds: 10.0,
            idle_seconds: 120.0,
            total_seconds: 900.0,
        }
    }
}
