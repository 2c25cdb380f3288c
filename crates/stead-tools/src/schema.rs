//! JSON schemas of argument types, short and stable because they are part of every prompt.
//!
//! Effects: none.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The schemas that were generated, by type.
static SCHEMA_CACHE: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());

/// Returns the schema of `T`: inlined, and without `$schema`, titles, number formats, `null`s and the
/// description of the type itself. It is generated once, because tools are created for every turn.
pub(crate) fn schema_of<T: JsonSchema + 'static>() -> Arc<Value> {
    let made = || SCHEMA_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = made().get(&TypeId::of::<T>()) {
        return known.clone();
    }
    let schema = Arc::new(generate::<T>());
    made().insert(TypeId::of::<T>(), schema.clone());
    schema
}

fn generate<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema);
    // The tool has a description of its own.
    if let Value::Object(keywords) = &mut schema {
        keywords.remove("description");
    }
    schema
}

/// Returns a schema without what a model does not need to be told: that there are no other
/// parameters, defaults that go without saying, and limits, which errors tell.
pub(crate) fn short(schema: &Arc<Value>) -> Arc<Value> {
    let mut short = (**schema).clone();
    shorten(&mut short);
    match short == **schema {
        true => schema.clone(),
        false => Arc::new(short),
    }
}

fn shorten(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    keywords.retain(|keyword, value| match keyword.as_str() {
        "additionalProperties" => *value != false,
        "default" => !(*value == false || *value == "" || *value == 0 || *value == json!([])),
        "minimum" | "maximum" => false,
        _ => true,
    });
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            // Names of properties are not keywords.
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(shorten);
            }
            ("items", items) => shorten(items),
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(shorten);
            }
            _ => {}
        }
    }
}

/// Checks `value` against a JSON schema, and returns the first problem.
pub fn validate_json(schema: &Value, value: &Value) -> Result<(), String> {
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| format!("the schema is wrong: {error}"))?;
    match validator.iter_errors(value).next() {
        Some(error) => Err(format!(
            "{error} (at {:?})",
            error.instance_path().to_string()
        )),
        None => Ok(()),
    }
}

fn tidy(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    for noise in ["$schema", "title", "format"] {
        keywords.remove(noise);
    }
    if keywords.get("default").is_some_and(Value::is_null) {
        keywords.remove("default");
    }
    // Leaving a parameter out means the same as null, and every provider understands that.
    if let Some(Value::Array(types)) = keywords.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            keywords.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = keywords.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            keywords.remove("anyOf");
            for (keyword, value) in only {
                keywords.entry(keyword).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(values) = keywords.get("oneOf").and_then(constant_words) {
        keywords.remove("oneOf");
        keywords.insert("type".to_owned(), "string".into());
        keywords.insert("enum".to_owned(), values);
    }
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            // Names of properties are not keywords.
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(tidy),
            (_, Value::Array(schemas)) => schemas.iter_mut().for_each(tidy),
            (_, other) => tidy(other),
        }
    }
}

/// Returns the values of a choice between constant strings.
fn constant_words(choices: &Value) -> Option<Value> {
    choices
        .as_array()?
        .iter()
        .map(|choice| choice.get("const").filter(|word| word.is_string()).cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    /// Of the type.
    #[derive(schemars::JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Args {
        /// How far.
        status: Option<Status>,
    }

    #[derive(schemars::JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Status {
        /// Not yet.
        Pending,
        /// All of it.
        Done,
    }

    #[test]
    fn a_schema_is_as_short_as_it_can_be() {
        let status =
            json!({"description": "How far.", "type": "string", "enum": ["pending", "done"]});
        assert_eq!(
            *super::schema_of::<Args>(),
            json!({"type": "object", "additionalProperties": false, "properties": {"status": status}})
        );
    }
}
