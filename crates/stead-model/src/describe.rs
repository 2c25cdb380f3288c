//! What endpoints say of their models, in the wording of each.

use crate::providers::WireKind;
use serde_json::{Value, json};

/// What an endpoint says of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reported {
    /// Tokens that fit into one request, its answer included.
    pub window: Option<u64>,
    /// The longest answer.
    pub longest_answer: Option<u64>,
}

/// One question to an endpoint about a model.
#[derive(Debug)]
pub(crate) struct Inquiry {
    pub(crate) below: Below,
    pub(crate) path: String,
    /// What is posted; none = it is a GET.
    pub(crate) body: Option<Value>,
    /// Understands the answer.
    pub(crate) read: fn(&Value, &str) -> Reported,
}

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// At the base URL.
    Base,
    /// At the root of the server.
    Server,
}

/// What to ask, in order, until one answer tells the window.
pub(crate) fn inquiries(kind: WireKind, model: &str) -> Vec<Inquiry> {
    let get = |below, path: String, read| Inquiry {
        below,
        path,
        body: None,
        read,
    };
    let list = || get(Below::Base, "models".to_owned(), of_list);
    let props = || get(Below::Server, "props".to_owned(), of_props);
    let show = || Inquiry {
        below: Below::Server,
        path: "api/show".to_owned(),
        body: Some(json!({"model": model})),
        read: of_show,
    };
    match kind {
        WireKind::Anthropic => vec![get(Below::Base, format!("v1/models/{model}"), of_model)],
        WireKind::Gemini => vec![get(Below::Base, format!("models/{model}"), of_model)],
        WireKind::Responses => vec![list()],
        WireKind::OpenAi(dialect) => match dialect.name {
            "ollama" => vec![show()],
            // What is served now is told by /props; the list only tells what the model was trained
            // for.
            "llamacpp" => vec![props(), list()],
            "openai-compatible" => vec![list(), props(), show()],
            _ => vec![list()],
        },
    }
}

/// Names of the window, what is served now before what would be possible.
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

/// A model as most endpoints describe it: numbers by one of many names, at the top or one level
/// below.
fn of_model(model: &Value, _: &str) -> Reported {
    const INNER: [&str; 4] = ["meta", "limits", "top_provider", "capabilities"];
    let places = || std::iter::once(model).chain(INNER.iter().filter_map(|key| model.get(key)));
    let first = |names: &[&str]| {
        places().find_map(|place| names.iter().find_map(|name| number(place.get(name)?)))
    };
    Reported {
        window: first(&WINDOWS),
        longest_answer: first(&ANSWERS),
    }
}

/// A list of models, of which ours is one.
fn of_list(list: &Value, model: &str) -> Reported {
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
        // A server of one model answers to any name.
        [only] => Some(only),
        many => many.iter().find(is_ours),
    });
    found.map_or_else(Reported::default, |entry| of_model(entry, model))
}

/// llama.cpp's `/props`.
fn of_props(props: &Value, _: &str) -> Reported {
    let window = props
        .pointer("/default_generation_settings/n_ctx")
        .or_else(|| props.get("n_ctx"))
        .and_then(number);
    Reported {
        window,
        longest_answer: None,
    }
}

/// Ollama's `/api/show`: `num_ctx` of the model's own settings, or what it was made for.
fn of_show(show: &Value, _: &str) -> Reported {
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
        keys.find_map(|(_, value)| number(value))
    };
    Reported {
        window: set.or_else(made_for),
        longest_answer: None,
    }
}

/// A sensible number of tokens, also where it is written as a text.
fn number(value: &Value) -> Option<u64> {
    let number = value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|tokens| (MIN_TOKENS..=MAX_TOKENS).contains(tokens))
}

/// What is outside these bounds is no window but a mistake, or "no limit".
const MIN_TOKENS: u64 = 256;
const MAX_TOKENS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_is_understood() {
        let reported = |window: u64| Reported {
            window: Some(window),
            longest_answer: None,
        };
        type Read = fn(&Value, &str) -> Reported;
        let table: [(Read, Value, Reported); 14] = [
            (
                of_list,
                json!({"data": [{"id": "m", "max_model_len": 32768}]}),
                reported(32768),
            ),
            (
                of_list,
                json!({"data": [{"id": "x", "context_length": 1000}, {"id": "m", "context_length": 2000}]}),
                reported(2000),
            ),
            (
                of_list,
                json!({"data": [{"id": "x", "context_length": 1000}, {"id": "y"}]}),
                Reported::default(),
            ),
            (
                of_list,
                json!({"data": [{"id": "any", "context_window": 8192}]}),
                reported(8192),
            ),
            (
                of_list,
                json!([{"name": "m", "max_context_length": "4096"}, {"name": "n"}]),
                reported(4096),
            ),
            (
                of_list,
                json!({"data": [{"id": "m", "context_length": 9000, "top_provider": {"max_completion_tokens": 700}}]}),
                Reported {
                    window: Some(9000),
                    longest_answer: Some(700),
                },
            ),
            (
                of_list,
                json!({"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]}),
                reported(131072),
            ),
            (
                of_list,
                json!({"data": [{"id": "m", "max_model_len": -1}]}),
                Reported::default(),
            ),
            (
                of_props,
                json!({"default_generation_settings": {"n_ctx": 16384}}),
                reported(16384),
            ),
            (
                of_show,
                json!({"model_info": {"llama.context_length": 131072}}),
                reported(131072),
            ),
            (
                of_show,
                json!({"parameters": "stop \"x\"\nnum_ctx        8192", "model_info": {"llama.context_length": 131072}}),
                reported(8192),
            ),
            (
                of_model,
                json!({"name": "models/m", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}),
                Reported {
                    window: Some(1048576),
                    longest_answer: Some(65536),
                },
            ),
            (
                of_model,
                json!({"id": "m", "max_input_tokens": 200000, "max_tokens": 64000}),
                Reported {
                    window: Some(200000),
                    longest_answer: Some(64000),
                },
            ),
            (of_model, json!("what?"), Reported::default()),
        ];
        for (read, answer, want) in table {
            assert_eq!(read(&answer, "m"), want, "{answer}");
        }
    }
}
