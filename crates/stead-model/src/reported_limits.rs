//! Model limits as reported by endpoints, in the format of each.
//!
//! Effects: none.

use crate::providers::WireKind;
use serde_json::{Value, json};

/// The limits of a model as reported by its endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportedLimits {
    /// The number of tokens that fit into one request including its answer.
    pub context_window: Option<u64>,
    /// The maximum length of an answer in tokens.
    pub max_output_tokens: Option<u64>,
}

/// A request to an endpoint for the limits of a model.
#[derive(Debug)]
pub(crate) struct LimitsQuery {
    pub(crate) url_base: UrlBase,
    pub(crate) path: String,
    /// The body of a POST request; `None` for a GET request.
    pub(crate) body: Option<Value>,
    /// Parses the response.
    pub(crate) parse: fn(&Value, &str) -> ReportedLimits,
}

/// The start of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlBase {
    /// The base URL.
    Base,
    /// The root of the server.
    Server,
}

/// Returns the requests to send, in order, until a response gives the window.
pub(crate) fn limits_queries(kind: WireKind, model: &str) -> Vec<LimitsQuery> {
    let get = |below, path: String, read| LimitsQuery {
        url_base: below,
        path,
        body: None,
        parse: read,
    };
    let list = || get(UrlBase::Base, "models".to_owned(), parse_model_list);
    let props = || get(UrlBase::Server, "props".to_owned(), parse_llama_props);
    let show = || LimitsQuery {
        url_base: UrlBase::Server,
        path: "api/show".to_owned(),
        body: Some(json!({"model": model})),
        parse: parse_ollama_show,
    };
    match kind {
        WireKind::Anthropic => vec![get(
            UrlBase::Base,
            format!("v1/models/{model}"),
            parse_model,
        )],
        WireKind::Gemini => vec![get(UrlBase::Base, format!("models/{model}"), parse_model)],
        WireKind::Responses => vec![list()],
        WireKind::OpenAi(dialect) => match dialect.name {
            "ollama" => vec![show()],
            // `/props` reports the window that is served; the list only reports the one the model
            // was trained for.
            "llamacpp" => vec![props(), list()],
            "openai-compatible" => vec![list(), props(), show()],
            _ => vec![list()],
        },
    }
}

/// The names of the window; the served one comes before the possible one.
const WINDOWS: [&str; 10] = [
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "context_window",
    "max_context_length",
    "max_context_window",
    "max_input_tokens",
    "inputTokenLimit",
    "n_ctx",
    "n_ctx_train",
];
const ANSWERS: [&str; 5] = [
    "max_output_tokens",
    "max_completion_tokens",
    "max_output_length",
    "outputTokenLimit",
    "max_tokens",
];

/// Parses a model as most endpoints describe it: numbers under one of many names, at the top level
/// or one below.
fn parse_model(model: &Value, _: &str) -> ReportedLimits {
    const INNER: [&str; 4] = ["meta", "limits", "top_provider", "capabilities"];
    let places = || std::iter::once(model).chain(INNER.iter().filter_map(|key| model.get(key)));
    let first = |names: &[&str]| {
        places().find_map(|place| names.iter().find_map(|name| token_count(place.get(name)?)))
    };
    ReportedLimits {
        context_window: first(&WINDOWS),
        max_output_tokens: first(&ANSWERS),
    }
}

/// Parses a list of models that contains ours.
fn parse_model_list(list: &Value, model: &str) -> ReportedLimits {
    let models = [list.get("data"), list.get("models"), Some(list)]
        .into_iter()
        .flatten()
        .find_map(Value::as_array);
    let is_ours = |entry: &&Value| {
        ["id", "name", "model"]
            .iter()
            .any(|key| entry.get(key).is_some_and(|id| id == model))
    };
    let found = models.and_then(|models| match models.as_slice() {
        // A server with one model accepts any name.
        [only] => Some(only),
        many => many.iter().find(is_ours),
    });
    found.map_or_else(ReportedLimits::default, |entry| parse_model(entry, model))
}

/// Parses llama.cpp's `/props`.
fn parse_llama_props(props: &Value, _: &str) -> ReportedLimits {
    let window = props
        .pointer("/default_generation_settings/n_ctx")
        .or_else(|| props.get("n_ctx"))
        .and_then(token_count);
    ReportedLimits {
        context_window: window,
        max_output_tokens: None,
    }
}

/// Parses Ollama's `/api/show`: `num_ctx` of the model's own settings, or the context length it was
/// trained for.
fn parse_ollama_show(show: &Value, _: &str) -> ReportedLimits {
    let parameters = show
        .get("parameters")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let set = parameters
        .lines()
        .find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
    let info = show.get("model_info").and_then(Value::as_object);
    let made_for = || {
        let mut keys = info?
            .iter()
            .filter(|(key, _)| key.ends_with(".context_length"));
        keys.find_map(|(_, value)| token_count(value))
    };
    ReportedLimits {
        context_window: set.or_else(made_for),
        max_output_tokens: None,
    }
}

/// Parses a plausible number of tokens, also if it is written as text.
fn token_count(value: &Value) -> Option<u64> {
    let number = value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|tokens| (MIN_TOKENS..=MAX_TOKENS).contains(tokens))
}

/// A number outside these bounds is not a window but a mistake, or "no limit".
const MIN_TOKENS: u64 = 256;
const MAX_TOKENS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_is_understood() {
        let reported = |window: u64| ReportedLimits {
            context_window: Some(window),
            max_output_tokens: None,
        };
        type Read = fn(&Value, &str) -> ReportedLimits;
        let table: [(Read, Value, ReportedLimits); 14] = [
            (
                parse_model_list,
                json!({"data": [{"id": "m", "max_model_len": 32768}]}),
                reported(32768),
            ),
            (
                parse_model_list,
                json!({"data": [{"id": "x", "context_length": 1000}, {"id": "m", "context_length": 2000}]}),
                reported(2000),
            ),
            (
                parse_model_list,
                json!({"data": [{"id": "x", "context_length": 1000}, {"id": "y"}]}),
                ReportedLimits::default(),
            ),
            (
                parse_model_list,
                json!({"data": [{"id": "any", "context_window": 8192}]}),
                reported(8192),
            ),
            (
                parse_model_list,
                json!([{"name": "m", "max_context_length": "4096"}, {"name": "n"}]),
                reported(4096),
            ),
            (
                parse_model_list,
                json!({"data": [{"id": "m", "context_length": 9000, "top_provider": {"max_completion_tokens": 700}}]}),
                ReportedLimits {
                    context_window: Some(9000),
                    max_output_tokens: Some(700),
                },
            ),
            (
                parse_model_list,
                json!({"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]}),
                reported(131072),
            ),
            (
                parse_model_list,
                json!({"data": [{"id": "m", "max_model_len": -1}]}),
                ReportedLimits::default(),
            ),
            (
                parse_llama_props,
                json!({"default_generation_settings": {"n_ctx": 16384}}),
                reported(16384),
            ),
            (
                parse_ollama_show,
                json!({"model_info": {"llama.context_length": 131072}}),
                reported(131072),
            ),
            (
                parse_ollama_show,
                json!({"parameters": "stop \"x\"\nnum_ctx        8192", "model_info": {"llama.context_length": 131072}}),
                reported(8192),
            ),
            (
                parse_model,
                json!({"name": "models/m", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}),
                ReportedLimits {
                    context_window: Some(1048576),
                    max_output_tokens: Some(65536),
                },
            ),
            (
                parse_model,
                json!({"id": "m", "max_input_tokens": 200000, "max_tokens": 64000}),
                ReportedLimits {
                    context_window: Some(200000),
                    max_output_tokens: Some(64000),
                },
            ),
            (parse_model, json!("what?"), ReportedLimits::default()),
        ];
        for (read, answer, want) in table {
            assert_eq!(read(&answer, "m"), want, "{answer}");
        }
    }
}
