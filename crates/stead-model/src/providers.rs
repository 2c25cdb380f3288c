//! The table of model providers: their names, addresses, key variables and wires.
//!
//! Effects: none.

use crate::wire::openai::{ChatDialect, EffortField, LimitField};

/// A provider, named before the colon of `provider:model`.
#[derive(Debug)]
pub struct Provider {
    /// The name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The default endpoint, or `None` if it must be configured.
    pub base_url: Option<&'static str>,
    /// The environment variable for another endpoint.
    pub base_url_variable: &'static str,
    /// The environment variables that may hold the key, in order of precedence.
    pub key_variables: &'static [&'static str],
    /// Whether its default endpoint needs a key.
    pub key: KeyNeed,
    pub(crate) wire: WireKind,
}

/// Whether a provider needs a key. An endpoint on a loopback address never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyNeed {
    /// The key is required.
    Required,
    /// The key is sent if there is one.
    Optional,
}

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireKind {
    Anthropic,
    OpenAi(ChatDialect),
    Responses,
    Gemini,
}

/// Returns every provider that is reached over the network.
pub fn providers() -> &'static [Provider] {
    PROVIDERS
}

/// Returns the provider with that name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Provider> {
    PROVIDERS
        .iter()
        .find(|provider| provider.name == name || provider.aliases.contains(&name))
}

const fn openai_compatible(name: &'static str, thinking_back: Option<&'static str>) -> WireKind {
    let limit = LimitField::MaxTokens;
    let effort = EffortField::Grade;
    WireKind::OpenAi(ChatDialect {
        name,
        limit,
        effort,
        thinking_back,
    })
}

const REASONING_CONTENT: Option<&str> = Some("reasoning_content");

const PROVIDERS: &[Provider] = &[
    Provider {
        name: "anthropic",
        aliases: &["claude"],
        base_url: Some("https://api.anthropic.com"),
        base_url_variable: "ANTHROPIC_BASE_URL",
        key_variables: &["ANTHROPIC_API_KEY"],
        key: KeyNeed::Required,
        wire: WireKind::Anthropic,
    },
    Provider {
        name: "openai",
        aliases: &["openai-chat"],
        base_url: Some("https://api.openai.com/v1"),
        base_url_variable: "OPENAI_BASE_URL",
        key_variables: &["OPENAI_API_KEY"],
        key: KeyNeed::Required,
        wire: WireKind::OpenAi(ChatDialect {
            name: "openai",
            limit: LimitField::MaxCompletionTokens,
            effort: EffortField::Grade,
            thinking_back: None,
        }),
    },
    Provider {
        name: "responses",
        aliases: &["openai-responses"],
        base_url: Some("https://api.openai.com/v1"),
        base_url_variable: "OPENAI_BASE_URL",
        key_variables: &["OPENAI_API_KEY"],
        key: KeyNeed::Required,
        wire: WireKind::Responses,
    },
    Provider {
        name: "gemini",
        aliases: &["google"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        base_url_variable: "GEMINI_BASE_URL",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        key: KeyNeed::Required,
        wire: WireKind::Gemini,
    },
    Provider {
        name: "openai-compatible",
        aliases: &["compatible"],
        base_url: None,
        base_url_variable: "OPENAI_COMPATIBLE_BASE_URL",
        key_variables: &["OPENAI_COMPATIBLE_API_KEY"],
        key: KeyNeed::Optional,
        wire: openai_compatible("openai-compatible", REASONING_CONTENT),
    },
    Provider {
        name: "ollama",
        aliases: &[],
        base_url: Some("http://127.0.0.1:11434/v1"),
        base_url_variable: "OLLAMA_BASE_URL",
        key_variables: &["OLLAMA_API_KEY"],
        key: KeyNeed::Optional,
        wire: openai_compatible("ollama", Some("reasoning")),
    },
    Provider {
        name: "vllm",
        aliases: &[],
        base_url: Some("http://127.0.0.1:8000/v1"),
        base_url_variable: "VLLM_BASE_URL",
        key_variables: &["VLLM_API_KEY"],
        key: KeyNeed::Optional,
        wire: openai_compatible("vllm", REASONING_CONTENT),
    },
    Provider {
        name: "llamacpp",
        aliases: &["llama.cpp"],
        base_url: Some("http://127.0.0.1:8080/v1"),
        base_url_variable: "LLAMACPP_BASE_URL",
        key_variables: &["LLAMACPP_API_KEY"],
        key: KeyNeed::Optional,
        wire: openai_compatible("llamacpp", REASONING_CONTENT),
    },
    Provider {
        name: "lmstudio",
        aliases: &[],
        base_url: Some("http://127.0.0.1:1234/v1"),
        base_url_variable: "LMSTUDIO_BASE_URL",
        key_variables: &["LMSTUDIO_API_KEY"],
        key: KeyNeed::Optional,
        wire: openai_compatible("lmstudio", None),
    },
    Provider {
        name: "deepseek",
        aliases: &[],
        base_url: Some("https://api.deepseek.com/v1"),
        base_url_variable: "DEEPSEEK_BASE_URL",
        key_variables: &["DEEPSEEK_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("deepseek", REASONING_CONTENT),
    },
    Provider {
        name: "openrouter",
        aliases: &[],
        base_url: Some("https://openrouter.ai/api/v1"),
        base_url_variable: "OPENROUTER_BASE_URL",
        key_variables: &["OPENROUTER_API_KEY"],
        key: KeyNeed::Required,
        wire: WireKind::OpenAi(ChatDialect {
            name: "openrouter",
            limit: LimitField::MaxTokens,
            effort: EffortField::Budget,
            thinking_back: Some("reasoning"),
        }),
    },
    Provider {
        name: "groq",
        aliases: &[],
        base_url: Some("https://api.groq.com/openai/v1"),
        base_url_variable: "GROQ_BASE_URL",
        key_variables: &["GROQ_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("groq", None),
    },
    Provider {
        name: "mistral",
        aliases: &[],
        base_url: Some("https://api.mistral.ai/v1"),
        base_url_variable: "MISTRAL_BASE_URL",
        key_variables: &["MISTRAL_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("mistral", None),
    },
    Provider {
        name: "xai",
        aliases: &["grok"],
        base_url: Some("https://api.x.ai/v1"),
        base_url_variable: "XAI_BASE_URL",
        key_variables: &["XAI_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("xai", None),
    },
    Provider {
        name: "together",
        aliases: &[],
        base_url: Some("https://api.together.xyz/v1"),
        base_url_variable: "TOGETHER_BASE_URL",
        key_variables: &["TOGETHER_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("together", None),
    },
    Provider {
        name: "fireworks",
        aliases: &[],
        base_url: Some("https://api.fireworks.ai/inference/v1"),
        base_url_variable: "FIREWORKS_BASE_URL",
        key_variables: &["FIREWORKS_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("fireworks", REASONING_CONTENT),
    },
    Provider {
        name: "cerebras",
        aliases: &[],
        base_url: Some("https://api.cerebras.ai/v1"),
        base_url_variable: "CEREBRAS_BASE_URL",
        key_variables: &["CEREBRAS_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("cerebras", None),
    },
    Provider {
        name: "moonshot",
        aliases: &["kimi"],
        base_url: Some("https://api.moonshot.ai/v1"),
        base_url_variable: "MOONSHOT_BASE_URL",
        key_variables: &["MOONSHOT_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("moonshot", REASONING_CONTENT),
    },
    Provider {
        name: "dashscope",
        aliases: &["qwen"],
        base_url: Some("https://dashscope.aliyuncs.com/compatible-mode/v1"),
        base_url_variable: "DASHSCOPE_BASE_URL",
        key_variables: &["DASHSCOPE_API_KEY"],
        key: KeyNeed::Required,
        wire: openai_compatible("dashscope", None),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_providers_share_a_name_and_no_base_url_ends_in_a_slash() {
        let mut seen = HashSet::new();
        for provider in providers() {
            for name in std::iter::once(&provider.name).chain(provider.aliases) {
                assert!(seen.insert(*name), "{name} is there twice");
                assert_eq!(find(name).map(|found| found.name), Some(provider.name));
            }
            assert!(
                provider.base_url.is_none_or(|url| !url.ends_with('/')),
                "{}",
                provider.name
            );
        }
    }
}
