//! YAML that keeps the order of its keys, and is written so that every parser reads the same from
//! it.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt::{self, Write};

/// A value of a YAML file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// What other parsers take for something else than a text.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

impl Node {
    /// Reads a file that is one map; an empty file is an empty one.
    pub(super) fn read(text: &str) -> Result<Vec<(String, Self)>, String> {
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

impl From<&serde_json::Value> for Node {
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

/// A map as a block of lines.
pub(super) fn write(map: &[(String, Node)]) -> String {
    let mut out = String::new();
    write_map(&mut out, map, 0, 0);
    out
}

/// Writes `map` with `indent` spaces before each line but the first `skip`.
fn write_map(out: &mut String, map: &[(String, Node)], indent: usize, skip: usize) {
    for (at, (key, value)) in map.iter().enumerate() {
        let blank = if at < skip { 0 } else { indent };
        let _ = write!(out, "{:blank$}{}:", "", quoted(key));
        match (value.scalar(), value) {
            (Some(scalar), _) => {
                let _ = writeln!(out, " {scalar}");
            }
            (None, Node::List(items)) => {
                out.push('\n');
                write_list(out, items, indent);
            }
            (None, Node::Map(map)) => {
                out.push('\n');
                write_map(out, map, indent + 2, 0);
            }
            (None, Node::Null | Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Text(_)) => {
                out.push('\n')
            }
        }
    }
}

fn write_list(out: &mut String, items: &[Node], indent: usize) {
    for item in items {
        let _ = write!(out, "{:indent$}-", "");
        match (item.scalar(), item) {
            (Some(scalar), _) => {
                let _ = writeln!(out, " {scalar}");
            }
            (None, Node::Map(map)) => {
                out.push(' ');
                write_map(out, map, indent + 2, 1);
            }
            (None, Node::List(items)) => {
                out.push('\n');
                write_list(out, items, indent + 2);
            }
            (None, Node::Null | Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Text(_)) => {
                out.push('\n')
            }
        }
    }
}

/// A text as it is where no parser takes it for anything else, and in quotes otherwise: a date
/// without them would be a date to some.
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
            // Line ends and other things that are not printed.
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

/// A number that keeps its point, without which some parsers take `1e20` for a text.
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

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Node;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
                Node::deserialize(deserializer)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Int(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<Node, E> {
                i64::try_from(value)
                    .map(Node::Int)
                    .map_err(|_| E::custom(format!("{value} is too large a number")))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Float(value))
            }
            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::text(text))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
                let mut map: Vec<(String, Node)> = Vec::new();
                while let Some((key, value)) = entries.next_entry::<String, Node>()? {
                    if map.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format!(
                            "the key {key} stands there twice"
                        )));
                    }
                    map.push((key, value));
                }
                Ok(Node::Map(map))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_only_plain_words_go_without_quotes() {
        let table = [
            (Node::Null, "null"),
            (Node::Int(-3), "-3"),
            (Node::Float(1e20), "1.0e+20"),
            (Node::Float(0.5), "0.5"),
            (Node::text("research"), "research"),
            (Node::text("output/report.md"), "output/report.md"),
            (Node::text("Yes"), "\"Yes\""),
            (
                Node::text("2026-02-01T10:00:00+00:00"),
                "\"2026-02-01T10:00:00+00:00\"",
            ),
            (Node::text("12"), "\"12\""),
            (Node::text("a: b # c"), "\"a: b # c\""),
            (Node::text(""), "\"\""),
            (
                Node::text("zwei\nZeilen \"ü\" \u{85}\u{2028}"),
                "\"zwei\\nZeilen \\\"ü\\\" \\u0085\\u2028\"",
            ),
            (Node::List(vec![]), "[]"),
            (Node::Map(vec![]), "{}"),
        ];
        for (node, text) in table {
            let map = vec![("key".to_owned(), node)];
            assert_eq!(write(&map), format!("key: {text}\n"));
            assert_eq!(Node::read(&write(&map)).unwrap(), map);
        }
        let nested = vec![
            (
                "b".to_owned(),
                Node::List(vec![Node::Map(vec![
                    ("x".to_owned(), Node::Int(1)),
                    ("no".to_owned(), Node::Null),
                ])]),
            ),
            (
                "a".to_owned(),
                Node::Map(vec![(
                    "l".to_owned(),
                    Node::List(vec![Node::List(vec![Node::Bool(true)])]),
                )]),
            ),
        ];
        assert_eq!(
            write(&nested),
            "b:\n- x: 1\n  \"no\": null\na:\n  l:\n  -\n    - true\n"
        );
        assert_eq!(Node::read(&write(&nested)).unwrap(), nested);
    }

    #[test]
    fn what_is_no_map_is_told() {
        for (text, message) in [
            ("- a\n", "it is no map"),
            ("a: [", "line 1: "),
            ("a: 1\na: 2\n", "line "),
        ] {
            let told = Node::read(text).unwrap_err();
            assert!(told.starts_with(message), "{text:?}: {told}");
        }
        assert_eq!(Node::read("# nothing yet\n"), Ok(Vec::new()));
    }
}
