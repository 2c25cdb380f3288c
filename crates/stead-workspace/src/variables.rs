//! `${VAR}` and `${VAR:-default}` in settings.

use serde_json::Value;

/// Looks a variable up; the environment is read by the binary alone.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What substitution found on its way.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Variables that are not set and have no default, each with the key that wants it.
    pub(crate) missing: Vec<(String, String)>,
    /// Values that came from variables: secrets, as far as we know.
    pub(crate) values: Vec<String>,
}

/// Replaces variables in every string of `value`, which stands at `key`.
pub(crate) fn substitute(value: &mut Value, key: &str, lookup: Lookup<'_>, found: &mut Found) {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                *text = expand(text, key, lookup, found);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                substitute(item, &format!("{key}[{i}]"), lookup, found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let before = found.values.len();
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                substitute(field, &key, lookup, found);
                // An address or a name is not a secret; hiding it would garble ordinary text.
                let harmless = matches!(name.as_str(), "name" | "model" | "base_url" | "description" | "fallbacks");
                if harmless && !field.is_object() {
                    found.values.truncate(before);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expand(text: &str, key: &str, lookup: Lookup<'_>, found: &mut Found) -> String {
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
            (None, None) => found.missing.push((name.to_owned(), key.to_owned())),
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
        substitute(&mut value, "", &lookup, &mut found);
        assert_eq!(value, serde_json::json!({"a": "xv1y", "b": ["d", "", "${open"], "c": 1}));
        assert_eq!(
            (found.missing, found.values),
            (vec![("GONE".to_owned(), "b[1]".to_owned())], vec!["v1".to_owned()])
        );
    }
}
