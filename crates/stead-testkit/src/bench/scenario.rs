//! The scenario of a benchmark request, found by searching its bytes.
//!
//! Effects: test support.

use crate::{FakeAnswer, FakeWire, ResponseMode, reply};
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use stead_core::Usage;

const OPEN: &[u8] = b"[[bench ";
const CLOSE: &[u8] = b"/bench]]";
const ID_PREFIX: &[u8] = b"call_b";
const ID_DIGITS: usize = 7;

/// A scenario as the first user message carries it.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(super) struct Scenario {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    n: usize,
    #[serde(default)]
    calls: Vec<ScenarioCall>,
    #[serde(default, rename = "final")]
    last_text: Option<String>,
    #[serde(default)]
    tokens: usize,
    #[serde(default)]
    pub(super) delay_ms: u64,
    #[serde(default)]
    usage_in: Option<u64>,
    #[serde(default)]
    pub(super) nolog: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
struct ScenarioCall {
    name: String,
    args: Value,
}

/// Returns the bytes between the marks.
pub(super) fn marked(body: &[u8]) -> Option<&[u8]> {
    let from = memmem::find(body, OPEN)? + OPEN.len();
    let len = memmem::find(&body[from..], CLOSE)?;
    Some(&body[from..from + len])
}

impl Scenario {
    /// Parses the bytes between the marks, which are the inside of a JSON string.
    pub(super) fn parse(raw: &[u8]) -> serde_json::Result<Self> {
        let text: String = serde_json::from_slice(&[b"\"", raw, b"\""].concat())?;
        serde_json::from_str(&text)
    }

    pub(super) fn answer(&self, step: usize) -> FakeAnswer {
        let answer = match self.calls.get(step % self.calls.len().max(1)) {
            Some(call) if step < self.n => {
                let args = self.filled(&call.args, step);
                reply().call_with_id(&format!("call_b{step:07}"), &call.name, args)
            }
            Some(_) | None if self.tokens > 0 => reply().text("tok ".repeat(self.tokens)),
            Some(_) | None => reply().text(self.last_text.as_deref().unwrap_or("done")),
        };
        match self.usage_in {
            Some(input_tokens) => answer.usage(Usage {
                input_tokens,
                output_tokens: 1,
                ..Usage::default()
            }),
            None => answer,
        }
    }

    fn filled(&self, args: &Value, step: usize) -> Value {
        match args {
            Value::String(text) if text.contains("{i") => Value::String(
                text.replace("{i}", &step.to_string())
                    .replace("{id}", &self.id),
            ),
            Value::Object(fields) => fields
                .iter()
                .map(|(k, v)| (k.clone(), self.filled(v, step)))
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.filled(item, step)).collect(),
            other => other.clone(),
        }
    }
}

/// Returns the step of a request: one more than the number in its last id, which survives
/// compaction; without ids, the number of its tool results.
pub(super) fn step(body: &[u8]) -> usize {
    let number = memmem::rfind(body, ID_PREFIX).and_then(|at| {
        let digits = body.get(at + ID_PREFIX.len()..at + ID_PREFIX.len() + ID_DIGITS)?;
        std::str::from_utf8(digits).ok()?.parse::<usize>().ok()
    });
    let results: [&[u8]; 4] = [
        br#""role":"tool""#,
        br#""type":"tool_result""#,
        br#""type":"function_call_output""#,
        br#""functionResponse""#,
    ];
    number.map_or_else(
        || {
            results
                .iter()
                .map(|key| memmem::find_iter(body, key).count())
                .sum()
        },
        |n| n + 1,
    )
}

/// Returns whether a request asks for a stream.
pub(super) fn mode(wire: FakeWire, target: &str, body: &[u8]) -> ResponseMode {
    match wire {
        FakeWire::Gemini if target.contains(":stream") => ResponseMode::Stream,
        FakeWire::Gemini => ResponseMode::Whole,
        FakeWire::Chat if is_set(body, br#""stream":"#) && is_set(body, br#""include_usage":"#) => {
            ResponseMode::StreamWithUsage
        }
        FakeWire::Chat | FakeWire::Messages | FakeWire::Responses
            if is_set(body, br#""stream":"#) =>
        {
            ResponseMode::Stream
        }
        FakeWire::Chat | FakeWire::Messages | FakeWire::Responses => ResponseMode::Whole,
    }
}

/// Whether this setting is `true`. Settings come before or after the messages, so only the two ends
/// of a body are searched; they are longer than any list of tools.
fn is_set(body: &[u8], key: &[u8]) -> bool {
    const END_BYTES: usize = 64 * 1024;
    let head = &body[..body.len().min(END_BYTES)];
    let tail = &body[body.len().saturating_sub(END_BYTES)..];
    let value = |part: &[u8]| {
        memmem::find(part, key).map(|at| {
            part[at + key.len()..]
                .trim_ascii_start()
                .starts_with(b"true")
        })
    };
    value(tail).or_else(|| value(head)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scenario(value: &Value) -> Scenario {
        let text = format!("Please. [[bench {value}/bench]]");
        let body = json!({"messages": [{"role": "user", "content": text}]}).to_string();
        Scenario::parse(marked(body.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_scenario_is_found_inside_a_json_string() {
        let found = scenario(
            &json!({"id": "s1", "n": 2, "calls": [{"name": "ls", "args": {"path": "a\nb"}}]}),
        );
        let calls = vec![ScenarioCall {
            name: "ls".into(),
            args: json!({"path": "a\nb"}),
        }];
        assert_eq!(
            found,
            Scenario {
                id: "s1".into(),
                n: 2,
                calls,
                ..Scenario::default()
            }
        );
        assert_eq!(marked(b"{\"messages\":[]}"), None);
    }

    #[test]
    fn steps_take_turns_with_the_calls_and_end_with_the_text() {
        let args = json!({"path": "f{i}-{id}", "k": 1});
        let calls = json!([{"name": "a", "args": args}, {"name": "b", "args": {}}]);
        let scenario = scenario(&json!({"id": "s", "n": 3, "calls": calls, "tokens": 2}));
        let said = |step| render_text(&scenario.answer(step));
        assert!(said(0).contains("call_b0000000") && said(0).contains("f0-s"));
        assert!(said(1).contains("\"b\""));
        assert!(said(2).contains("f2-s"));
        assert!(said(3).contains("tok tok "));
    }

    fn render_text(answer: &FakeAnswer) -> String {
        crate::render(answer, FakeWire::Messages, ResponseMode::Whole, 0, 0)
    }

    #[test]
    fn a_setting_is_found_before_and_after_long_messages() {
        let long = "x".repeat(500_000);
        let cases = [
            (
                FakeWire::Chat,
                format!(r#"{{"stream": true,"messages":"{long}"}}"#),
                ResponseMode::Stream,
            ),
            (
                FakeWire::Chat,
                format!(r#"{{"messages":"{long}","stream":false}}"#),
                ResponseMode::Whole,
            ),
            (
                FakeWire::Chat,
                format!(
                    r#"{{"messages":"{long}","stream":true,"stream_options":{{"include_usage":true}}}}"#
                ),
                ResponseMode::StreamWithUsage,
            ),
            (
                FakeWire::Messages,
                format!(r#"{{"messages":"{long}","stream":true}}"#),
                ResponseMode::Stream,
            ),
            (
                FakeWire::Responses,
                format!(r#"{{"input":"{long}"}}"#),
                ResponseMode::Whole,
            ),
        ];
        for (wire, body, expected) in cases {
            assert_eq!(mode(wire, "/", body.as_bytes()), expected, "{wire:?}");
        }
    }

    #[test]
    fn the_step_is_read_from_the_last_id_or_counted() {
        let cases: [(&[u8], usize); 4] = [
            (b"{}", 0),
            (b"call_b0000004 .. call_b0000011 ..", 12),
            (br#"{"role":"tool"},{"role":"tool"}"#, 2),
            (b"call_bxx", 0),
        ];
        for (body, expected) in cases {
            assert_eq!(step(body), expected, "{}", String::from_utf8_lossy(body));
        }
    }
}
