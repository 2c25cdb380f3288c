//! Parsing the arguments of a tool call: limited in size, and strict.
//!
//! Effects: none.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The maximum length of arguments. `serde_json` itself limits their depth to 128.
const MAX_ARGS_BYTES: usize = 1024 * 1024;

/// Parses a call's arguments. If they are not a JSON object, the value is `{}`, and the second part
/// is an explanation for the model. Empty text means no arguments.
pub(crate) fn parse_args(text: &str) -> (Value, Option<String>) {
    match parse_object(text) {
        Ok(args) => (Value::Object(args), None),
        Err(reason) => (Value::Object(Map::new()), Some(reason)),
    }
}

fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    if text.len() > MAX_ARGS_BYTES {
        let size = text.len();
        return Err(format!(
            "the arguments have {size} bytes; at most {MAX_ARGS_BYTES} are accepted"
        ));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let value = UniqueKeyValue
        .deserialize(&mut json)
        .and_then(|value| json.end().map(|()| value));
    match value {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err("the arguments must be a JSON object".into()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// A JSON value in which no object has a duplicate key, because it would be unclear which one was
/// meant.
struct UniqueKeyValue;

impl<'de> DeserializeSeed<'de> for UniqueKeyValue {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(UniqueKeyValue)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key {key:?} is given twice"
                )));
            }
            let value = map.next_value_seed(UniqueKeyValue)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_one_object_or_an_explanation() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ARGS_BYTES));
        let cases: [(&str, Value, Option<&str>); 9] = [
            ("", json!({}), None),
            (" \n", json!({}), None),
            (
                r#"{"a":[1,-2,2.5,null,true,"é"],"b":{}}"#,
                json!({"a":[1,-2,2.5,null,true,"é"],"b":{}}),
                None,
            ),
            ("[1]", json!({}), Some("must be a JSON object")),
            (r#"{"a":1"#, json!({}), Some("not valid JSON: EOF")),
            (r#"{"a":1}{"#, json!({}), Some("trailing characters")),
            (
                r#"{"a":{"b":1,"b":2}}"#,
                json!({}),
                Some("\"b\" is given twice"),
            ),
            (&deep, json!({}), Some("recursion limit")),
            (&long, json!({}), Some("at most 1048576")),
        ];
        for (text, args, reason) in cases {
            let (got, invalid) = parse_args(text);
            assert_eq!(got, args);
            match (invalid, reason) {
                (None, None) => {}
                (Some(got), Some(want)) => assert!(got.contains(want), "{got:?} lacks {want:?}"),
                (got, want) => panic!("{got:?} instead of {want:?}"),
            }
        }
    }
}
