//! The form in which OpenAI's wires are told of the schema of an answer.
//!
//! Effects: none.

use serde::Serialize;
use serde_json::Value;

/// The name of the schema, which these wires want.
const NAME: &str = "answer";

/// A schema with its name.
#[derive(Debug, Serialize)]
pub(super) struct NamedSchema<'a> {
    name: &'static str,
    schema: &'a Value,
    /// Whether the provider guarantees that the answer conforms, which it does for some schemas.
    strict: bool,
}

impl<'a> NamedSchema<'a> {
    pub(super) fn new(schema: &'a Value) -> Self {
        Self {
            name: NAME,
            schema,
            strict: is_strict(schema) && schema.get("type").is_some_and(|kind| kind == "object"),
        }
    }
}

/// Whether every object in a schema names all its properties and requires each: the provider refuses
/// others in its strict mode.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_closed = match fields.get("properties").and_then(Value::as_object) {
                None => fields.get("type").is_none_or(|kind| kind != "object"),
                Some(properties) => {
                    let required = fields.get("required").and_then(Value::as_array);
                    let is_required = |name: &String| {
                        required.is_some_and(|all| all.contains(&Value::from(&**name)))
                    };
                    fields.get("additionalProperties") == Some(&Value::Bool(false))
                        && properties.keys().all(is_required)
                }
            };
            is_closed && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_closed_schemas_are_sent_as_strict() {
        let closed = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "additionalProperties": false
        });
        let table = [
            (closed.clone(), true),
            (json!({"type": "object"}), false),
            (json!({"type": "array", "items": closed}), false),
            (
                json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
                false,
            ),
            (
                json!({
                    "type": "object",
                    "properties": {"a": {"type": "object", "properties": {"b": {}}}},
                    "required": ["a"],
                    "additionalProperties": false
                }),
                false,
            ),
        ];
        for (schema, strict) in table {
            assert_eq!(NamedSchema::new(&schema).strict, strict, "{schema}");
        }
    }
}
