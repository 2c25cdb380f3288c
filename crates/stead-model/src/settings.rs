//! How a model is reached, as `agent.yaml` and the command line give it.

use crate::{Ability, Caching, Params, ToolChoice};
use serde::{Deserialize, Serialize};
use stead_core::Price;

/// Settings of one model. All but the name have sensible defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// `provider:model`, for example `anthropic:claude-sonnet-4-5` or `scripted:demo.yaml`.
    pub name: String,
    /// What it is called in the workspace, where that names its models: `platform/fast`.
    #[serde(skip)]
    pub reference: Option<String>,
    /// The provider, where `model` is given apart from it instead of `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model, where `provider` is given apart from it instead of `name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Endpoint, where it is not the provider's own.
    pub base_url: Option<String>,
    /// Key, where it is not in the provider's usual variable.
    pub api_key: Option<String>,
    /// Tokens that fit into one request, its answer included, where the built-in table is wrong or
    /// silent.
    pub context_window: Option<u32>,
    /// What it can take and do, where the built-in table is wrong or silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abilities: Option<Vec<Ability>>,
    /// Longest answer in tokens.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Tokens the model may spend on thinking.
    pub thinking_tokens: Option<u32>,
    /// Dollars per million tokens, where the built-in table is wrong or silent.
    pub price: Option<Price>,
    /// `false` asks for whole answers instead of streams.
    pub stream: Option<bool>,
    /// How often a failed request is tried again (default 4).
    pub max_retries: Option<u32>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Models to try, in order, when this one stays unavailable.
    pub fallbacks: Vec<String>,
}

impl ModelSettings {
    /// The same with `provider` and `model` put together as `name`; or what is wrong, and with
    /// which key.
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

    /// The part of the settings that goes with every request.
    pub fn params(&self) -> Params {
        Params {
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature,
            thinking_tokens: self.thinking_tokens,
            caching: Caching::default(),
            tool_choice: ToolChoice::Auto,
        }
    }
}

/// Time limits of a request, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Until connected.
    pub connect_seconds: f64,
    /// Between two pieces of a streamed answer, and until the first.
    pub idle_seconds: f64,
    /// Whole answer, retries not included.
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
