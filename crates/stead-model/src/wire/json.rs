//! Writing JSON into a request body.
//!
//! Effects: none.

use serde::Serialize;

/// Appends `value`. Writing to a byte vector cannot fail, and request bodies have only string keys.
pub(crate) fn append(out: &mut Vec<u8>, value: &impl Serialize) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "a request body is always valid JSON");
}

/// Appends the fields of `head` as an object that is left open at the array `last`.
pub(crate) fn append_open(out: &mut Vec<u8>, head: &impl Serialize, last: &str) {
    append(out, head);
    let closed = out.pop();
    debug_assert_eq!(closed, Some(b'}'), "the head of a body is an object");
    if !out.ends_with(b"{") {
        out.push(b',');
    }
    append(out, &last);
    out.extend_from_slice(b":[");
}

/// Appends `values` joined by commas.
pub(crate) fn append_joined<T: Serialize>(out: &mut Vec<u8>, values: &[T]) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        append(out, value);
    }
}

/// Deserialises an optional part of an answer: if it is invalid, it is left out instead of failing
/// the answer.
pub(crate) fn or_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
