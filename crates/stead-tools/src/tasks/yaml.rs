//! YAML that keeps the order of its keys and is written so that all parsers agree on it.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write};

/// A value of a YAML file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TaskYaml {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// Plain words that some parsers do not read as text.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

impl TaskYaml {
    /// Reads a file that is one map. An empty file is an empty map.
    pub(super) fn parse(text: &str) -> Result<Vec<(String, Self)>, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        {
            return Ok(Vec::new());
        }
        match serde_saphyr::from_str::<Self>(text) {
            Ok(Self::Map(map)) => Ok(map),
            Ok(Self::Null) => Ok(Vec::new()),
            Ok(_) => Err("it is no map".to_owned()),
            Err(error) => {
                let at = error
                    .location()
                    .map_or(String::new(), |at| format!("line {}: ", at.line()));
                let message = error.without_snippet().to_string();
                Err(format!(
                    "{at}{}",
                    message.lines().next().unwrap_or("it is not YAML")
                ))
            }
        }
    }

    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::List(_)
            | Self::Map(_) => None,
        }
    }

    fn scalar(&self) -> Option<String> {
        Some(match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => float(*value),
            Self::Text(text) => quoted(text),
            Self::List(items) if items.is_empty() => "[]".to_owned(),
            Self::Map(map) if map.is_empty() => "{}".to_owned(),
            Self::List(_) | Self::Map(_) => return None,
        })
    }
}

impl From<&serde_json::Value> for TaskYaml {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Self::Int(int),
                (None, float) => Self::Float(float.unwrap_or(0.0)),
            },
            Value::String(text) => Self::text(text),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(
                map.iter()
                    .map(|(key, value)| (key.clone(), value.into()))
                    .collect(),
            ),
        }
    }
}

/// Formats a map as a block of lines.
pub(super) fn to_yaml(map: &[(String, TaskYaml)]) -> String {
    let mut out = String::new();
    write_map(&mut out, map, 0, 0);
    out
}

/// Writes `map` with `indent` spaces before each line but the first `skip`.
fn write_map(out: &mut String, map: &[(String, TaskYaml)], indent: usize, skip: usize) {
    for (at, (key, value)) in map.iter().enumerate() {
        let blank = if at < skip { 0 } else { indent };
        let _ = write!(out, "{:blank$}{}:", "", quoted(key));
        match (value.scalar(), value) {
            (Some(scalar), _) => {
                let _ = writeln!(out, " {scalar}");
            }
            (None, TaskYaml::List(items)) => {
                out.push('\n');
                write_list(out, items, indent);
            }
            (None, TaskYaml::Map(map)) => {
                out.push('\n');
                write_map(out, map, indent + 2, 0);
            }
            (
                None,
                TaskYaml::Null
                | TaskYaml::Bool(_)
                | TaskYaml::Int(_)
                | TaskYaml::Float(_)
                | TaskYaml::Text(_),
            ) => out.push('\n'),
        }
    }
}

fn write_list(out: &mut String, items: &[TaskYaml], indent: usize) {
    for item in items {
        let _ = write!(out, "{:indent$}-", "");
        match (item.scalar(), item) {
            (Some(scalar), _) => {
                let _ = writeln!(out, " {scalar}");
            }
            (None, TaskYaml::Map(map)) => {
                out.push(' ');
                write_map(out, map, indent + 2, 1);
            }
            (None, TaskYaml::List(items)) => {
                out.push('\n');
                write_list(out, items, indent + 2);
            }
            (
                None,
                TaskYaml::Null
                | TaskYaml::Bool(_)
                | TaskYaml::Int(_)
                | TaskYaml::Float(_)
                | TaskYaml::Text(_),
            ) => out.push('\n'),
        }
    }
}

/// Formats a text, in quotes if a parser could read it as something else, such as a date.
fn quoted(text: &str) -> String {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if first && !word && !text.ends_with(' ') && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Line ends and other characters that cannot be printed.
            c if c.is_control()
                || matches!(
                    c,
                    '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
                ) =>
            {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats a number with its decimal point, without which some parsers read `1e20` as text.
fn float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let digits = if digits.contains('.') {
                digits.to_owned()
            } else {
                format!("{digits}.0")
            };
            let sign = if power.starts_with('-') { "" } else { "+" };
            format!("{digits}e{sign}{power}")
        }
        None => text,
    }
}

impl<'de> Deserialize<'de> for TaskYaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TaskYamlVisitor;
        impl<'de> Visitor<'de> for TaskYamlVisitor {
            type Value = TaskYaml;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<TaskYaml, E> {
                Ok(TaskYaml::Null)
            }
            fn visit_none<E>(self) -> Result<TaskYaml, E> {
                Ok(TaskYaml::Null)
            }
            fn visit_some<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<TaskYaml, D::Error> {
                TaskYaml::deserialize(deserializer)
            }
            fn visit_bool<E>(self, value: bool) -> Result<TaskYaml, E> {
                Ok(TaskYaml::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<TaskYaml, E> {
                Ok(TaskYaml::Int(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<TaskYaml, E> {
                i64::try_from(value)
                    .map(TaskYaml::Int)
                    .map_err(|_| E::custom(format!("{value} is too large a number")))
            }
            fn visit_f64<E>(self, value: f64) -> Result<TaskYaml, E> {
                Ok(TaskYaml::Float(value))
            }
            fn visit_str<E>(self, text: &str) -> Result<TaskYaml, E> {
                Ok(TaskYaml::text(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TaskYaml, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(TaskYaml::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TaskYaml, A::Error> {
                let mut map: Vec<(String, TaskYaml)> = Vec::new();
                while let Some((key, value)) = entries.next_entry::<String, TaskYaml>()? {
                    if map.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!(
                            "the key {key} stands there twice"
                        )));
                    }
                    map.push((key, value));
                }
                Ok(TaskYaml::Map(map))
            }
        }
        deserializer.deserialize_any(TaskYamlVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_only_plain_words_go_without_quotes() {
        let table = [
            (TaskYaml::Null, "null"),
            (TaskYaml::Int(-3), "-3"),
            (TaskYaml::Float(1e20), "1.0e+20"),
            (TaskYaml::Float(0.5), "0.5"),
            (TaskYaml::text("research"), "research"),
            (TaskYaml::text("output/report.md"), "output/report.md"),
            (TaskYaml::text("Yes"), "\"Yes\""),
            (
                TaskYaml::text("2026-02-01T10:00:00+00:00"),
                "\"2026-02-01T10:00:00+00:00\"",
            ),
            (TaskYaml::text("12"), "\"12\""),
            (TaskYaml::text("a: b # c"), "\"a: b # c\""),
            (TaskYaml::text(""), "\"\""),
            (
                TaskYaml::text("zwei\nZeilen \"ü\" \u{85}\u{2028}"),
                "\"zwei\\nZeilen \\\"ü\\\" \\u0085\\u2028\"",
            ),
            (TaskYaml::List(vec![]), "[]"),
            (TaskYaml::Map(vec![]), "{}"),
        ];
        for (node, text) in table {
            let map = vec![("key".to_owned(), node)];
            assert_eq!(to_yaml(&map), format!("key: {text}\n"));
            assert_eq!(TaskYaml::parse(&to_yaml(&map)).unwrap(), map);
        }
        let nested = vec![
            (
                "b".to_owned(),
                TaskYaml::List(vec![TaskYaml::Map(vec![
                    ("x".to_owned(), TaskYaml::Int(1)),
                    ("no".to_owned(), TaskYaml::Null),
                ])]),
            ),
            (
                "a".to_owned(),
                TaskYaml::Map(vec![(
                    "l".to_owned(),
                    TaskYaml::List(vec![TaskYaml::List(vec![TaskYaml::Bool(true)])]),
                )]),
            ),
        ];
        assert_eq!(
            to_yaml(&nested),
            "b:\n- x: 1\n  \"no\": null\na:\n  l:\n  -\n    - true\n"
        );
        assert_eq!(TaskYaml::parse(&to_yaml(&nested)).unwrap(), nested);
    }

    #[test]
    fn what_is_no_map_is_told() {
        for (text, message) in [
            ("- a\n", "it is no map"),
            ("a: [", "line 1: "),
            ("a: 1\na: 2\n", "line "),
        ] {
            let told = TaskYaml::parse(text).unwrap_err();
            assert!(told.starts_with(message), "{text:?}: {told}");
        }
        assert_eq!(TaskYaml::parse("# nothing yet\n"), Ok(Vec::new()));
    }
}
