//! The `approvals:` settings of agent.yaml: tools with calls that wait for a person.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::DecisionKind;
use stead_shell::CommandPart;
use stead_vfs::VPath;

/// The rule by which the calls of a tool wait for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(with = "BoolOrApproval")]
pub struct Approval {
    /// Whether calls wait for a person.
    pub asks: bool,
    /// The decisions that a person may make; empty = approve and reject.
    pub decisions: Vec<DecisionKind>,
    /// The condition on the arguments; other calls do not ask.
    pub when: ApprovalCondition,
    /// The people who may decide; empty = everyone who can open the session.
    pub by: Vec<String>,
    /// The number of hours after which a question counts as rejected; none = never.
    pub expires_hours: Option<u32>,
}

/// Patterns by parameter that the arguments must all match: `file_path: src/*`. `*` matches any
/// text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApprovalCondition(pub BTreeMap<String, String>);

impl Approval {
    /// Returns an approval that asks about every call.
    pub fn always() -> Self {
        Self {
            asks: true,
            ..Self::default()
        }
    }

    /// Whether a call with these arguments waits for a person. `lies` are the resolved paths of the
    /// arguments.
    pub fn covers(&self, args: &Value, lies: &[VPath]) -> bool {
        self.asks && self.when.matches(args, lies)
    }

    /// Returns the first problem of the approval with the key it is about.
    pub(crate) fn problem(&self, tool: &str) -> Option<(String, String)> {
        let key = format!("approvals.{tool}");
        if self.expires_hours == Some(0) {
            return Some((
                format!("{key}.expires_hours"),
                format!("{key}.expires_hours must be at least 1"),
            ));
        }
        None
    }
}

/// Whether any command of a command line matches a pattern, independent of how the line is written.
fn command_matches(name: &str, pattern: &str, line: &str) -> bool {
    let part_is_like = |part: &CommandPart| {
        let words: Vec<&str> = part
            .words
            .iter()
            .map(|word| word.known().unwrap_or("*"))
            .collect();
        matches_wildcard(pattern, &words.join(" "))
    };
    COMMAND_PARAMETERS.contains(&name) && stead_shell::parse(line).parts.iter().any(part_is_like)
}

/// The parameters that contain a command line.
const COMMAND_PARAMETERS: [&str; 2] = ["command", "cmd"];

impl ApprovalCondition {
    /// Whether `args` match all patterns. A missing argument does not match; paths are compared
    /// after they are resolved.
    pub fn matches(&self, args: &Value, lies: &[VPath]) -> bool {
        self.0.iter().all(|(name, pattern)| {
            args.get(name).is_some_and(|value| match value {
                Value::String(text) => {
                    let path = VPath::parse(text).ok();
                    let bare = pattern.trim_start_matches("./").trim_start_matches('/');
                    let mut meant = path.iter().chain(lies).map(VPath::to_string);
                    matches_wildcard(pattern, text)
                        || meant.any(|path| matches_wildcard(bare, &path))
                        || command_matches(name, pattern, text)
                }
                value => matches_wildcard(pattern, &value.to_string()),
            })
        })
    }
}

/// Whether `text` matches `pattern`, in which `*` matches any text.
fn matches_wildcard(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut left) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let Some(last) = parts.pop() else { return true };
    for part in parts {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// An approval as the settings write it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum BoolOrApproval {
    /// All calls ask, or none.
    Yes(bool),
    /// The calls that ask, and how.
    Terms(ApprovalOptions),
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ApprovalOptions {
    /// The decisions that a person may make (default `approve` and `reject`).
    decisions: Vec<DecisionKind>,
    /// Only calls with arguments that match these patterns ask.
    when: ApprovalCondition,
    /// The people who may decide (default: everyone who can open the session).
    by: Vec<String>,
    /// The number of hours after which a question counts as rejected (default: never).
    expires_hours: Option<u32>,
}

impl<'de> Deserialize<'de> for Approval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ApprovalVisitor;
        impl<'de> serde::de::Visitor<'de> for ApprovalVisitor {
            type Value = Approval;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "`true`, `false`, or a map with `decisions`, `when`, `by` or `expires_hours`",
                )
            }
            fn visit_bool<E>(self, asks: bool) -> Result<Approval, E> {
                Ok(Approval {
                    asks,
                    ..Approval::default()
                })
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Approval, A::Error> {
                let terms = ApprovalOptions::deserialize(
                    serde::de::value::MapAccessDeserializer::new(map),
                )?;
                let ApprovalOptions {
                    decisions,
                    when,
                    by,
                    expires_hours,
                } = terms;
                Ok(Approval {
                    asks: true,
                    decisions,
                    when,
                    by,
                    expires_hours,
                })
            }
        }
        deserializer.deserialize_any(ApprovalVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_asks_if_all_its_arguments_are_like_the_patterns() {
        let approval: Approval =
            serde_json::from_value(json!({"when": {"file_path": "src/*.rs", "mode": "*"}}))
                .unwrap();
        #[rustfmt::skip]
        let table = [
            (json!({"file_path": "src/a/b.rs", "mode": "append"}), true),
            (json!({"file_path": "src/.rs", "mode": 3}), true),
            (json!({"file_path": "src/a.rs"}), false),
            (json!({"file_path": "./src/a.rs", "mode": "x"}), true),
            (json!({"file_path": "/src//a.rs", "mode": "x"}), true),
            (json!({"file_path": "lib/a.rs", "mode": "x"}), false),
            (json!({}), false),
        ];
        for (args, expected) in table {
            assert_eq!(approval.covers(&args, &[]), expected, "{args}");
        }
        let link = json!({"file_path": "link", "mode": "x"});
        assert!(
            approval.covers(&link, &[VPath::parse("src/a.rs").unwrap()]),
            "it is where a link leads"
        );
        let push: Approval =
            serde_json::from_value(json!({"when": {"command": "git push*"}})).unwrap();
        for command in [
            "git push",
            "git  push",
            " git push -f",
            "env git push",
            "cd . && git push",
            "'git' push",
        ] {
            assert!(push.covers(&json!({"command": command}), &[]), "{command}");
        }
        assert!(!push.covers(&json!({"command": "git pull"}), &[]));
        for (pattern, text, expected) in [
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*b*", "abc", true),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(
                matches_wildcard(pattern, text),
                expected,
                "{pattern} {text}"
            );
        }
        assert!(serde_json::from_value::<Approval>(json!({"wen": {}})).is_err());
        assert!(
            serde_json::from_value::<Approval>(json!(true))
                .unwrap()
                .covers(&json!({}), &[])
        );
        assert!(
            !serde_json::from_value::<Approval>(json!(false))
                .unwrap()
                .covers(&json!({}), &[])
        );
    }
}
