//! Answers that conform to a JSON schema: checking the schema, telling the model, checking the answer.
//!
//! Effects: none.

use jsonschema::Validator;
use serde_json::Value;

/// The most errors that the model is told at once.
const MAX_ERRORS: usize = 8;
/// How often the model is told that its answer does not conform.
const MAX_CORRECTIONS: u32 = 1;

/// Returns why `schema` is not a JSON schema.
pub fn answer_schema_problem(schema: &Value) -> Option<String> {
    match jsonschema::validator_for(schema) {
        Ok(_) => None,
        Err(error) => Some(located(error.instance_path().as_str(), &error.to_string())),
    }
}

/// Returns the part of the prompt that asks for an answer that conforms.
pub(crate) fn answer_format_prompt(schema: &Value) -> String {
    format!(
        "## Answer format\nA program reads your final answer. When the work is done, answer with one JSON value that \
         conforms to this JSON schema, and with nothing else: no text before or after it, no code fence.\n{schema}"
    )
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerCheck {
    Conforms,
    /// The model is told this, and answers again.
    Correct(String),
    /// The run fails for this reason.
    GiveUp(String),
}

/// Checks an answer after so many corrections.
pub(crate) fn check_answer(schema: &Value, text: &str, corrections: u32) -> AnswerCheck {
    let errors = match answer_errors(schema, text) {
        errors if errors.is_empty() => return AnswerCheck::Conforms,
        errors => errors,
    };
    if corrections >= MAX_CORRECTIONS {
        let reason = format!(
            "the answer does not conform to the output schema: {}",
            errors.join("; ")
        );
        return AnswerCheck::GiveUp(reason);
    }
    AnswerCheck::Correct(format!(
        "Your answer does not conform to the schema:\n- {}\nAnswer again with the corrected JSON value and nothing else.",
        errors.join("\n- ")
    ))
}

/// Returns how an answer differs from the schema.
fn answer_errors(schema: &Value, text: &str) -> Vec<String> {
    let value: Value = match serde_json::from_str(text.trim()) {
        Ok(value) => value,
        Err(error) => return vec![format!("it is not one JSON value: {error}")],
    };
    let validator: Validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => return vec![format!("the schema itself is broken: {error}")],
    };
    let errors = validator.iter_errors(&value);
    let errors = errors.map(|error| located(error.instance_path().as_str(), &error.to_string()));
    errors.take(MAX_ERRORS).collect()
}

fn located(path: &str, message: &str) -> String {
    match path {
        "" => message.to_owned(),
        path => format!("{path}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
            "required": ["name"],
            "additionalProperties": false
        })
    }

    #[test]
    fn an_answer_is_corrected_once_and_then_given_up() {
        let table = [
            (r#"{"name": "Ann", "age": 3}"#, None),
            (" {\"name\": \"Ann\"}\n", None),
            ("Ann", Some("it is not one JSON value")),
            (
                "```json\n{\"name\": \"Ann\"}\n```",
                Some("it is not one JSON value"),
            ),
            ("", Some("it is not one JSON value")),
            ("[]", Some("object")),
            (r#"{"age": 3}"#, Some("name")),
            (r#"{"name": "Ann", "age": -1}"#, Some("/age: ")),
            (r#"{"name": 3}"#, Some("/name: ")),
        ];
        for (text, problem) in table {
            let first = check_answer(&schema(), text, 0);
            let second = check_answer(&schema(), text, 1);
            match (problem, first, second) {
                (None, AnswerCheck::Conforms, AnswerCheck::Conforms) => {}
                (Some(said), AnswerCheck::Correct(told), AnswerCheck::GiveUp(reason)) => {
                    assert!(
                        told.contains(said) && reason.contains(said),
                        "{told} {reason}"
                    );
                }
                (_, first, second) => panic!("{text}: {first:?} {second:?}"),
            }
        }
    }

    #[test]
    fn a_broken_schema_is_told_with_its_place() {
        assert_eq!(answer_schema_problem(&schema()), None);
        assert_eq!(answer_schema_problem(&json!(true)), None);
        let broken = json!({"type": "object", "properties": {"a": {"type": "strin"}}});
        let problem = answer_schema_problem(&broken).unwrap();
        assert!(problem.starts_with("/properties/a/type: "), "{problem}");
    }
}
