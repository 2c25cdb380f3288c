//! What a hook says: one JSON object, in our words or in those of other systems.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

/// What a hook said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HookAnswer {
    /// `continue: false`: not only this, but the run is to end.
    pub(super) stops_run: bool,
    pub(super) decision: Option<HookDecision>,
    pub(super) reason: Option<String>,
    /// For people.
    pub(super) message: Option<String>,
    /// For the model.
    pub(super) context: Option<String>,
    pub(super) suppress_output: bool,
    pub(super) patch: HookPatch,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookDecision {
    #[serde(alias = "deny")]
    Block,
    #[serde(alias = "approve")]
    Allow,
}

/// What is to be changed.
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

/// What is to be changed of how a model is asked.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RequestPatch {
    /// Said last in the system prompt of this request.
    pub(crate) system: Option<String>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) thinking_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
}

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

/// A text, or `{text: …}`, or any JSON as its text.
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

/// What `output` says; nothing is a yes. An error tells what is wrong with it.
pub(super) fn parse_answer(output: &str) -> Result<HookAnswer, String> {
    let output = output.trim();
    if output.is_empty() {
        return Ok(HookAnswer::default());
    }
    let said: RawHookAnswer = serde_json::from_str(output)
        .map_err(|error| format!("its answer is not the JSON that hooks answer with: {error}"))?;
    let specific = said.hook_specific_output.unwrap_or_default();
    let mut patch = said.patch.or(specific.patch).unwrap_or_default();
    patch.tool_args = patch.tool_args.or(specific.updated_input);
    let stops = said.continues == Some(false);
    let reason = said.reason.or(specific.reason);
    Ok(HookAnswer {
        stops_run: stops,
        // Whoever says no in one place does not say yes by another.
        decision: match (said.decision, specific.decision) {
            (Some(HookDecision::Block), _) | (_, Some(HookDecision::Block)) => {
                Some(HookDecision::Block)
            }
            (said, specific) => said.or(specific),
        },
        reason: if stops {
            said.stop_reason.or(reason)
        } else {
            reason.or(said.stop_reason)
        },
        message: said.system_message,
        context: said.additional_context.or(specific.additional_context),
        suppress_output: said.suppress_output,
        patch,
    })
}

/// The JSON object in the words of a model, which may stand between others or in a fence.
pub(super) fn json_in_text(words: &str) -> Result<&str, String> {
    match (words.find('{'), words.rfind('}')) {
        (Some(first), Some(last)) if first < last => Ok(&words[first..=last]),
        _ => Err("its answer has no JSON object in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_say_the_same_and_nothing_says_yes() {
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
        for said in [ours, theirs, others] {
            assert_eq!(
                parse_answer(&said.to_string()).as_ref(),
                Ok(&full),
                "{said}"
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
    fn garbage_and_words_that_nobody_knows_are_no_answer() {
        for (said, told) in [
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
            let error = parse_answer(said).unwrap_err();
            assert!(error.contains(told), "{said}: {error}");
        }
        assert_eq!(
            json_in_text("So:\n```json\n{\"a\": 1}\n```"),
            Ok("{\"a\": 1}")
        );
        assert!(json_in_text("no").is_err());
    }
}
