//! `${VAR}` and `${VAR:-default}` in settings.

use serde_json::Value;

/// Looks a variable up; the environment is read by the binary alone.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What substitution found on its way.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Variables that are not set and have no default.
    pub(crate) missing: Vec<String>,
    /// Values that came from variables: secrets, as far as we know.
    pub(crate) values: Vec<String>,
}

/// Replaces variables in every string of `value`.
pub(crate) fn substitute(value: &mut Value, lookup: Lookup<'_>, found: &mut Found) {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                *text = expand(text, lookup, found);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, lookup, found)),
        Value::Object(fields) => {
            for (key, field) in fields {
                let before = found.values.len();
                substitute(field, lookup, found);
                // An address or a name is not a secret; hiding it would garble ordinary text.
                if matches!(key.as_str(), "name" | "base_url" | "description" | "fallbacks") {
                    found.values.truncate(before);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expand(text: &str, lookup: Lookup<'_>, found: &mut Found) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        out.push_str(&rest[..start]);
        let inner = &rest[start + 2..start + length];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match (lookup(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => {
                out.push_str(&value);
                found.values.push(value);
            }
            (None, Some(default)) => out.push_str(default),
            (None, None) => found.missing.push(name.to_owned()),
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_defaulted_or_reported() {
        let lookup = |name: &str| (name == "KEY").then(|| "v1".to_owned());
        let mut found = Found::default();
        let mut value = serde_json::json!({"a": "x${KEY}y", "b": ["${NO:-d}", "${GONE}", "${open"], "c": 1});
        substitute(&mut value, &lookup, &mut found);
        assert_eq!(value, serde_json::json!({"a": "xv1y", "b": ["d", "", "${open"], "c": 1}));
        assert_eq!((found.missing, found.values), (vec!["GONE".to_owned()], vec!["v1".to_owned()]));
    }
}
