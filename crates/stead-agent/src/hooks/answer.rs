//! The answer of a hook: one JSON object, with Stead's field names or those of other harnesses.
//!
//! Effects: none.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

/// The answer of a hook, parsed but not yet checked.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HookAnswer {
    /// Whether the hook asks for the end of the run (`continue: false`).
    pub(super) stops_run: bool,
    pub(super) decision: Option<HookDecision>,
    pub(super) reason: Option<String>,
    /// The message that people are shown.
    pub(super) message: Option<String>,
    /// The text that is added to the conversation for the model.
    pub(super) context: Option<String>,
    pub(super) suppress_output: bool,
    pub(super) patch: HookPatch,
}

/// The decision in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookDecision {
    #[serde(alias = "deny")]
    Block,
    #[serde(alias = "approve")]
    Allow,
}

/// The changes that an answer asks for.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HookPatch {
    #[serde(alias = "tool_input")]
    pub(super) tool_args: Option<Value>,
    #[serde(alias = "tool_output", deserialize_with = "text")]
    pub(super) tool_result: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) context: Option<String>,
    pub(super) model_request: Option<RequestPatch>,
    #[serde(deserialize_with = "text")]
    pub(super) model_response: Option<String>,
}

/// The changes to a request to the model.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RequestPatch {
    /// The text that is added to the end of the system prompt of this request.
    pub(crate) system: Option<String>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) thinking_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
}

/// An answer as it is written, with both spellings of every field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHookAnswer {
    #[serde(rename = "continue")]
    continues: Option<bool>,
    decision: Option<HookDecision>,
    reason: Option<String>,
    #[serde(alias = "stopReason")]
    stop_reason: Option<String>,
    #[serde(alias = "systemMessage")]
    system_message: Option<String>,
    #[serde(alias = "additionalContext")]
    additional_context: Option<String>,
    #[serde(alias = "suppressOutput", default)]
    suppress_output: bool,
    patch: Option<HookPatch>,
    #[serde(alias = "hookSpecificOutput")]
    hook_specific_output: Option<HookSpecificOutput>,
}

/// The part of an answer that other harnesses nest in `hookSpecificOutput`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HookSpecificOutput {
    #[serde(rename = "hookEventName")]
    _event: Option<String>,
    #[serde(rename = "additionalContext")]
    additional_context: Option<String>,
    #[serde(rename = "permissionDecision")]
    decision: Option<HookDecision>,
    #[serde(rename = "permissionDecisionReason")]
    reason: Option<String>,
    #[serde(rename = "updatedInput")]
    updated_input: Option<Value>,
    patch: Option<HookPatch>,
}

/// Deserializes a text: a string, `{text: …}`, or any other JSON as its source text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(
        match Value::deserialize(deserializer).map_err(D::Error::custom)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Object(fields)
                if fields.len() == 1 && fields.get("text").is_some_and(Value::is_string) =>
            {
                fields
                    .get("text")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            }
            other => Some(other.to_string()),
        },
    )
}

/// Parses the output of a hook. Empty output is an answer without objections. The error describes
/// what is wrong with the output.
pub(super) fn parse_answer(output: &str) -> Result<HookAnswer, String> {
    let output = output.trim();
    if output.is_empty() {
        return Ok(HookAnswer::default());
    }
    let raw: RawHookAnswer = serde_json::from_str(output)
        .map_err(|error| format!("its answer is not the JSON that hooks answer with: {error}"))?;
    let specific = raw.hook_specific_output.unwrap_or_default();
    let mut patch = raw.patch.or(specific.patch).unwrap_or_default();
    patch.tool_args = patch.tool_args.or(specific.updated_input);
    let stops = raw.continues == Some(false);
    let reason = raw.reason.or(specific.reason);
    Ok(HookAnswer {
        stops_run: stops,
        // If the two fields contradict each other, the refusal counts.
        decision: match (raw.decision, specific.decision) {
            (Some(HookDecision::Block), _) | (_, Some(HookDecision::Block)) => {
                Some(HookDecision::Block)
            }
            (decision, specific) => decision.or(specific),
        },
        reason: if stops {
            raw.stop_reason.or(reason)
        } else {
            reason.or(raw.stop_reason)
        },
        message: raw.system_message,
        context: raw.additional_context.or(specific.additional_context),
        suppress_output: raw.suppress_output,
        patch,
    })
}

/// Returns the JSON object in an answer of a model, which may be surrounded by text or a code
/// fence.
pub(super) fn json_in_text(text: &str) -> Result<&str, String> {
    match (text.find('{'), text.rfind('}')) {
        (Some(first), Some(last)) if first < last => Ok(&text[first..=last]),
        _ => Err("its answer has no JSON object in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_parse_alike_in_both_spellings_and_empty_output_does_not_object() {
        let patch = HookPatch {
            tool_args: Some(json!({"a": 1})),
            ..HookPatch::default()
        };
        let full = HookAnswer {
            stops_run: false,
            decision: Some(HookDecision::Block),
            reason: Some("r".to_owned()),
            message: Some("m".to_owned()),
            context: Some("c".to_owned()),
            suppress_output: true,
            patch,
        };
        let ours = json!({"continue": true, "decision": "block", "reason": "r", "system_message": "m",
            "additional_context": "c", "suppress_output": true, "patch": {"tool_args": {"a": 1}}});
        let theirs = json!({"decision": "block", "reason": "r", "systemMessage": "m", "suppressOutput": true,
            "hookSpecificOutput": {"additionalContext": "c", "patch": {"tool_input": {"a": 1}}}});
        let others = json!({"systemMessage": "m", "suppressOutput": true, "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "r",
            "additionalContext": "c", "updatedInput": {"a": 1}}});
        for answer in [ours, theirs, others] {
            assert_eq!(
                parse_answer(&answer.to_string()).as_ref(),
                Ok(&full),
                "{answer}"
            );
        }
        let both =
            json!({"decision": "allow", "hookSpecificOutput": {"permissionDecision": "deny"}});
        assert_eq!(
            parse_answer(&both.to_string()).unwrap().decision,
            Some(HookDecision::Block),
            "no goes before yes"
        );
        for nothing in ["", " \n", "{}"] {
            assert_eq!(
                parse_answer(nothing),
                Ok(HookAnswer::default()),
                "{nothing:?}"
            );
        }
        let stop = HookAnswer {
            stops_run: true,
            reason: Some("s".to_owned()),
            ..HookAnswer::default()
        };
        assert_eq!(
            parse_answer(r#"{"continue": false, "stopReason": "s"}"#),
            Ok(stop)
        );
        for (patch, want) in [
            (json!({"tool_output": "x"}), "x"),
            (json!({"tool_result": {"text": "y"}}), "y"),
            (
                json!({"tool_result": {"text": "y", "n": 1}}),
                r#"{"n":1,"text":"y"}"#,
            ),
        ] {
            let read = parse_answer(&json!({"patch": patch}).to_string()).unwrap();
            assert_eq!(
                read.patch,
                HookPatch {
                    tool_result: Some(want.to_owned()),
                    ..HookPatch::default()
                }
            );
        }
    }

    #[test]
    fn answers_with_unknown_fields_or_invalid_json_are_refused() {
        for (output, expected) in [
            ("ok", "not the JSON"),
            ("[]", "not the JSON"),
            ("{\"desicion\": \"block\"}", "unknown field `desicion`"),
            ("{\"decision\": \"maybe\"}", "unknown variant `maybe`"),
            ("{\"patch\": {\"files\": 1}}", "unknown field `files`"),
            (
                "{\"patch\": {\"model_request\": {\"tools\": []}}}",
                "unknown field `tools`",
            ),
            ("{} {}", "trailing"),
        ] {
            let error = parse_answer(output).unwrap_err();
            assert!(error.contains(expected), "{output}: {error}");
        }
        assert_eq!(
            json_in_text("So:\n```json\n{\"a\": 1}\n```"),
            Ok("{\"a\": 1}")
        );
        assert!(json_in_text("no").is_err());
    }
}
