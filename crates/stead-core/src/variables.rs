//! Substitution of variables, `${VAR}` and `${VAR:-default}`, in settings.
//!
//! Effects: none.

use serde_json::Value;

/// Looks up a variable by name. Only the binary reads the environment itself.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Which `${…}` of a text are variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VariableSyntax {
    /// Every `${X}`.
    #[default]
    All,
    /// Every `${X}`, and `${env.X}` means the same as `${X}`.
    AllOrEnv,
    /// Only `${env.X}`; other `${…}` are meant for a shell.
    Env,
}

impl VariableSyntax {
    /// Returns the name of the variable that is written as `written`, if it is one.
    fn variable_name(self, written: &str) -> Option<&str> {
        let from_env = written
            .strip_prefix("env.")
            .or_else(|| written.strip_prefix("secrets."));
        match self {
            Self::All => Some(written),
            Self::AllOrEnv => Some(from_env.unwrap_or(written)),
            Self::Env => from_env,
        }
    }
}

/// How to substitute variables, and what was found while doing so.
#[derive(Debug, Default)]
pub struct Substitution {
    /// Which `${…}` are variables.
    pub syntax: VariableSyntax,
    /// Variables that are not set and have no default.
    pub unset: Vec<UnsetVariable>,
    /// Values that came from variables. They may be secrets.
    pub values: Vec<String>,
    /// The variables that settings refer to, whether or not they are set.
    pub uses: Vec<VariableUse>,
}

/// A setting that refers to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse {
    /// The name of the variable.
    pub name: String,
    /// The key of the setting.
    pub key: String,
}

/// A variable that is not set.
#[derive(Debug, PartialEq, Eq)]
pub struct UnsetVariable {
    /// Its name.
    pub name: String,
    /// How it is written.
    pub reference: String,
    /// The key of the setting that refers to it.
    pub key: String,
}

/// Replaces variables in every string of `value`, the value of the setting `key`.
pub fn substitute(
    value: &mut Value,
    key: &str,
    lookup: VariableLookup<'_>,
    found: &mut Substitution,
) {
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
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                substitute(field, &key, lookup, found);
                // An address or a name is not a secret. Redacting it would garble ordinary text.
                let harmless = matches!(
                    name.as_str(),
                    "name" | "model" | "base_url" | "description" | "fallbacks"
                );
                if harmless && !field.is_object() {
                    found.values.truncate(before);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn expand(text: &str, key: &str, lookup: VariableLookup<'_>, found: &mut Substitution) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        out.push_str(&rest[..start]);
        let inner = &rest[start + 2..start + length];
        let (written, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let Some(name) = found.syntax.variable_name(written) else {
            out.push_str(&rest[start..=start + length]);
            rest = &rest[start + length + 1..];
            continue;
        };
        found.uses.push(VariableUse {
            name: name.to_owned(),
            key: key.to_owned(),
        });
        match (lookup(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => {
                out.push_str(&value);
                found.values.push(value);
            }
            (None, Some(default)) => out.push_str(default),
            (None, None) => {
                let name = name.to_owned();
                let written = written.to_owned();
                let key = key.to_owned();
                found.unset.push(UnsetVariable {
                    name,
                    reference: written,
                    key,
                });
            }
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
        let mut found = Substitution::default();
        let mut value =
            serde_json::json!({"a": "x${KEY}y", "b": ["${NO:-d}", "${GONE}", "${open"], "c": 1});
        substitute(&mut value, "", &lookup, &mut found);
        assert_eq!(
            value,
            serde_json::json!({"a": "xv1y", "b": ["d", "", "${open"], "c": 1})
        );
        let gone = UnsetVariable {
            name: "GONE".to_owned(),
            reference: "GONE".to_owned(),
            key: "b[1]".to_owned(),
        };
        assert_eq!(
            (found.unset, found.values),
            (vec![gone], vec!["v1".to_owned()])
        );
    }

    #[test]
    fn what_a_variable_looks_like_depends_on_the_file() {
        let lookup = |name: &str| (name == "KEY").then(|| "v1".to_owned());
        for (marks, expected) in [
            (VariableSyntax::All, "v1  d"),
            (VariableSyntax::AllOrEnv, "v1 v1 v1"),
            (VariableSyntax::Env, "${KEY} v1 v1"),
        ] {
            let mut found = Substitution {
                syntax: marks,
                ..Substitution::default()
            };
            let mut value = serde_json::json!("${KEY} ${env.KEY} ${env.KEY:-d}");
            substitute(&mut value, "", &lookup, &mut found);
            assert_eq!(value, serde_json::json!(expected), "{marks:?}");
        }
    }
}
