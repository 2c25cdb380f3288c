//! A settings file, YAML or JSON, as values that know their position.
//!
//! Effects: none.

use crate::finding::{Finding, Severity};
use crate::strict_value::StrictValue;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};
use std::collections::BTreeMap;
use stead_core::{
    SourcePosition, Substitution, UnsetVariable, VariableSyntax, YamlDocument, YamlError,
    YamlErrorKind, substitute,
};

/// The maximum number of unknown keys that are removed from a document.
const MAX_UNKNOWN_KEYS: usize = 100;

/// Keys that restrict an agent. What may be a misspelled one of them is never ignored.
const RESTRICTING_KEYS: [&str; 7] = [
    "allow",
    "deny",
    "tools",
    "native",
    "disallowed",
    "permissions",
    "approval_gates",
];

/// A settings file: its values, and where each of them stands.
///
/// Keys are written as paths: `policy.max_steps`, `permissions[1].mode`.
#[derive(Debug, Clone)]
pub struct SettingsDocument {
    file: String,
    value: Value,
    positions: BTreeMap<String, SourcePosition>,
}

impl SettingsDocument {
    /// Reads YAML. An empty file is an empty map.
    pub fn parse_yaml(file: &str, text: &str) -> Result<Self, Finding> {
        Self::parse_yaml_at(file, text, 1)
    }

    /// Reads YAML that begins at line `first` of its file, such as front matter.
    pub fn parse_yaml_at(file: &str, text: &str, first: u64) -> Result<Self, Finding> {
        let in_file = |position: SourcePosition| SourcePosition {
            line: position.line + first - 1,
            ..position
        };
        let mut document: YamlDocument = text.parse().map_err(|error: YamlError| {
            Finding::error(file, simplify_parser_message(error.message))
                .with_position(in_file(error.position))
        })?;
        for position in document.positions.values_mut() {
            *position = in_file(*position);
        }
        Ok(Self {
            file: file.to_owned(),
            value: document.value.into(),
            positions: document.positions,
        })
    }

    /// Reads JSON in which comments and trailing commas are allowed.
    pub fn parse_json(file: &str, text: &str) -> Result<Self, Finding> {
        let plain = blank_out_comments(text.strip_prefix('\u{feff}').unwrap_or(text));
        let Some(plain) = plain else {
            return Err(Finding::error(
                file,
                "a comment is not closed: `*/` is missing",
            ));
        };
        let value = match plain.trim() {
            "" => Value::Object(Map::new()),
            _ => serde_json::from_str(&plain).map_err(|error: serde_json::Error| {
                let message = error.to_string();
                let message = message
                    .split(" at line ")
                    .next()
                    .unwrap_or(&message)
                    .to_owned();
                let spot = SourcePosition {
                    line: error.line().max(1) as u64,
                    column: error.column().max(1) as u64,
                };
                Finding::error(file, format!("not JSON: {message}")).with_position(spot)
            })?,
        };
        // JSON is YAML, whose parser knows positions and finds duplicate keys. Where it refuses the
        // text for another reason, there are no positions.
        let positions = match plain.parse::<YamlDocument>() {
            Ok(document) => document.positions,
            Err(error) => match error.kind {
                YamlErrorKind::DuplicateKey => {
                    return Err(Finding::error(file, "this key stands here twice")
                        .with_position(error.position));
                }
                YamlErrorKind::Syntax => BTreeMap::new(),
            },
        };
        Ok(Self {
            file: file.to_owned(),
            value,
            positions,
        })
    }

    /// The file it was read from.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Its values.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Every key with its place, in order of keys.
    pub fn keys(&self) -> impl Iterator<Item = (&str, SourcePosition)> {
        self.positions
            .iter()
            .map(|(key, spot)| (key.as_str(), *spot))
    }

    /// Where `key` stands, or else the nearest that holds it.
    pub fn position(&self, key: &str) -> SourcePosition {
        let mut key = key;
        loop {
            if let Some(spot) = self.positions.get(key) {
                return *spot;
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return SourcePosition::START,
            }
        }
    }

    /// A finding about `key`.
    pub fn finding(&self, severity: Severity, key: &str, message: impl Into<String>) -> Finding {
        Finding::new(severity, &self.file, message).with_position(self.position(key))
    }

    /// An error about `key`.
    pub fn error(&self, key: &str, message: impl Into<String>) -> Finding {
        self.finding(Severity::Error, key, message)
    }

    /// Puts the values of variables in. Gives the values, which are secrets, and a finding for each
    /// that is not set.
    pub fn resolve_variables(
        &mut self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> (Vec<String>, Vec<Finding>) {
        let Substitution { values, unset, .. } =
            self.resolve_variables_as(VariableSyntax::All, lookup);
        let missing = unset
            .iter()
            .map(|missing| self.unset_variable_finding(missing))
            .collect();
        (values, missing)
    }

    /// Replaces variables that are written as `marks` says, and returns what was found.
    pub(crate) fn resolve_variables_as(
        &mut self,
        marks: VariableSyntax,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Substitution {
        let mut found = Substitution {
            syntax: marks,
            ..Substitution::default()
        };
        substitute(&mut self.value, "", lookup, &mut found);
        found
    }

    /// An error about a variable that is not set.
    pub(crate) fn unset_variable_finding(
        &self,
        UnsetVariable {
            name,
            reference: written,
            key,
        }: &UnsetVariable,
    ) -> Finding {
        self.error(
            key,
            format!("the variable {name} is not set; set it, or write ${{{written}:-a default}}"),
        )
    }

    /// The values as settings of type `T`.
    pub fn deserialize_into<T: DeserializeOwned>(&self) -> Result<T, Finding> {
        self.deserialize_at("", &self.value)
    }

    /// Turns texts at these keys into lists: names between commas.
    pub(crate) fn split_text_lists(&mut self, keys: &[&str]) {
        for key in keys {
            if let Some(list @ Value::String(_)) = self.value.get_mut(*key) {
                let names = list.as_str().unwrap_or_default().split(',');
                let names = names.map(str::trim).filter(|name| !name.is_empty());
                *list = names.map(Value::from).collect();
            }
        }
    }

    /// Removes keys that begin with `//`, which people write as comments. Returns a warning if
    /// there are any.
    pub fn remove_comment_keys(&mut self) -> Option<Finding> {
        let removed = remove_comments(&mut self.value, "");
        let first = removed.first()?;
        let text = match removed.len() {
            1 => "a key that begins with `//` is a comment; it is ignored".to_owned(),
            count => format!("{count} keys that begin with `//` are comments; they are ignored"),
        };
        Some(self.finding(Severity::Warning, first, text))
    }

    /// Removes keys that settings of type `T` do not have, unless one may be a misspelled key that
    /// restricts the agent. Returns a non-fatal finding for each.
    pub fn remove_unknown_keys<T: DeserializeOwned>(&mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        while findings.len() < MAX_UNKNOWN_KEYS {
            let result = serde_path_to_error::deserialize::<_, T>(StrictValue(&self.value));
            let Some(error) = result.err().filter(|_| self.value.is_object()) else {
                break;
            };
            let message = error.inner().to_string();
            let Some(field) = unknown_field(&message)
                .filter(|field| !RESTRICTING_KEYS.iter().any(|key| is_misspelled(field, key)))
            else {
                break;
            };
            let finding = self.deserialize_error("", error.path(), &message);
            if !remove_key(&mut self.value, error.path(), field) {
                break;
            }
            findings.push(Finding {
                severity: Severity::NonFatal,
                message: format!("{}; it is ignored", finding.message),
                ..finding
            });
        }
        findings
    }

    /// A value that stands at `key`, as settings of type `T`.
    pub fn deserialize_at<T: DeserializeOwned>(
        &self,
        key: &str,
        value: &Value,
    ) -> Result<T, Finding> {
        if !value.is_object() {
            return Err(self.error(key, "`key: value` pairs are needed here"));
        }
        serde_path_to_error::deserialize(StrictValue(value))
            .map_err(|error| self.deserialize_error(key, error.path(), &error.inner().to_string()))
    }

    /// A finding about the value at `path` below `key`, which cannot be deserialized.
    fn deserialize_error(&self, key: &str, path: &Path, message: &str) -> Finding {
        let path = path.to_string();
        let path = match (key, path.as_str()) {
            (key, ".") => key.to_owned(),
            ("", path) => path.to_owned(),
            (key, path) => format!("{key}.{path}"),
        };
        let at = match unknown_field(message) {
            Some(field) if path.is_empty() => field.to_owned(),
            Some(field) if path.rsplit('.').next() != Some(field) => format!("{path}.{field}"),
            Some(_) | None => path.clone(),
        };
        let message = simplify_parser_message(with_suggestion(message.to_owned()));
        let message = if path.is_empty() {
            message
        } else {
            format!("{path}: {message}")
        };
        self.error(&at, message)
    }
}

/// Whether `written` is `key` in other case, or with one letter changed, missing or added, or two
/// swapped.
fn is_misspelled(written: &str, key: &str) -> bool {
    let written: Vec<char> = written.to_lowercase().chars().collect();
    let key: Vec<char> = key.chars().collect();
    let same = written.iter().zip(&key).take_while(|(a, b)| a == b).count();
    let (left, right) = (&written[same..], &key[same..]);
    match (left, right) {
        ([a, b, left @ ..], [c, d, right @ ..]) if a == d && b == c && left == right => true,
        ([_, left @ ..], [_, right @ ..]) if left == right => true,
        _ => left == right || left.get(1..) == Some(right) || Some(left) == right.get(1..),
    }
}

/// Removes keys that begin with `//` from the value at `parent`. Returns their paths.
fn remove_comments(value: &mut Value, parent: &str) -> Vec<String> {
    let Value::Object(map) = value else {
        return Vec::new();
    };
    let path = |key: &str| match parent {
        "" => key.to_owned(),
        parent => format!("{parent}.{key}"),
    };
    let comments = map.keys().filter(|key| key.starts_with("//"));
    let mut removed: Vec<String> = comments.map(|key| path(key)).collect();
    map.retain(|key, _| !key.starts_with("//"));
    for (key, inner) in map {
        removed.extend(remove_comments(inner, &path(key)));
    }
    removed
}

/// Removes the key `field` of the map at `path`. Returns whether it was there.
fn remove_key(value: &mut Value, path: &Path, field: &str) -> bool {
    let mut segments: Vec<&Segment> = path.iter().collect();
    // The path of an unknown field ends with the field itself.
    if matches!(segments.last(), Some(Segment::Map { key }) if key == field) {
        segments.pop();
    }
    let mut map = value;
    for segment in segments {
        let inner = match segment {
            Segment::Map { key } => map.get_mut(key),
            Segment::Seq { index } => map.get_mut(index),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        match inner {
            Some(inner) => map = inner,
            None => return false,
        }
    }
    map.as_object_mut()
        .is_some_and(|map| map.remove(field).is_some())
}

/// The same text with comments and trailing commas replaced by blanks, so that places stay; none if
/// a comment is not closed.
fn blank_out_comments(text: &str) -> Option<String> {
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                out.push(c);
                out.extend(chars.next());
            }
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            '/' if !in_string && chars.peek() == Some(&'/') => {
                out.push(' ');
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                    out.push(' ');
                }
            }
            '/' if !in_string && chars.peek() == Some(&'*') => {
                out.push(' ');
                // The star that opens it does not close it.
                chars.next();
                out.push(' ');
                let mut before = ' ';
                loop {
                    let next = chars.next()?;
                    out.push(if next == '\n' { next } else { ' ' });
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
            }
            ']' | '}' if !in_string => {
                let mut before = out
                    .iter()
                    .enumerate()
                    .rev()
                    .filter(|(_, c)| !c.is_whitespace());
                let last = before.next();
                let value = before.next();
                // A comma is trailing only behind a value.
                if let (Some((at, ',')), Some((_, end))) = (last, value)
                    && !matches!(end, '[' | '{' | ',' | ':')
                {
                    out[at] = ' ';
                }
                out.push(c);
            }
            other => out.push(other),
        }
    }
    Some(out.into_iter().collect())
}

/// The parser's own words, where a person could not act on them.
fn simplify_parser_message(message: String) -> String {
    let plain = [
        ("expected u32", "a whole number, 0 or more, is needed here"),
        ("expected i64", "a whole number is needed here"),
        ("expected u64", "a whole number, 0 or more, is needed here"),
        (
            "expected usize",
            "a whole number, 0 or more, is needed here",
        ),
        ("expected f64", "a number is needed here"),
        ("expected a boolean", "true or false is needed here"),
        (
            "expected a string",
            "a text is needed here; put it in quotes if it is one",
        ),
        ("expected a sequence", "a list is needed here"),
        ("expected a map", "`key: value` pairs are needed here"),
        ("expected struct", "`key: value` pairs are needed here"),
        (
            "mapping values are not allowed",
            "the indentation is wrong, or a text with `: ` in it is not quoted",
        ),
        ("tabs disallowed", "indent with spaces, not with tabs"),
        (
            "invalid indentation in multiline quoted scalar",
            "a quote before this is not closed",
        ),
        ("duplicate mapping key", "this key stands here twice"),
        (
            "multiple YAML documents",
            "only one document is allowed: remove the `---` lines",
        ),
    ];
    let known = plain.iter().find(|(theirs, _)| message.contains(theirs));
    known.map_or(message, |(_, ours)| (*ours).to_owned())
}

fn unknown_field(message: &str) -> Option<&str> {
    Some(message.strip_prefix("unknown field `")?.split_once('`')?.0)
}

/// Adds the nearest of the expected names to a message about an unknown field or value.
fn with_suggestion(message: String) -> String {
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"));
    let Some((unknown, expected)) = rest.and_then(|rest| rest.split_once("`, expected ")) else {
        return message;
    };
    let known = expected
        .trim_start_matches("one of ")
        .split([',', ' '])
        .map(|name| name.trim_matches('`'));
    let known: Vec<&str> = known
        .filter(|name| !name.is_empty() && *name != "or")
        .collect();
    match crate::closest_name(unknown, &known) {
        Some(name) => {
            let kind = if message.starts_with("unknown field") {
                "unknown field"
            } else {
                "unknown value"
            };
            format!(
                "{kind} `{unknown}`; did you mean `{name}`? (known: {})",
                known.join(", ")
            )
        }
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u64, column: u64) -> SourcePosition {
        SourcePosition { line, column }
    }

    #[test]
    fn every_value_knows_its_place() {
        let text = "# settings\npolicy:\n  max_steps: 3\nlist:\n- a\n- {b: 1}\n7: seven\n";
        let document = SettingsDocument::parse_yaml("x.yaml", text).unwrap();
        for (key, spot) in [
            ("policy", at(2, 1)),
            ("policy.max_steps", at(3, 3)),
            ("policy.none", at(2, 1)),
            ("list[1].b", at(6, 4)),
            ("7", at(7, 1)),
            ("missing", at(1, 1)),
        ] {
            assert_eq!(document.position(key), spot, "{key}");
        }
        let json = "{\n  // why\n  \"a\": [1, 2,],\n\t\"b\": {\"c\": \"//x\"}, /* so */\n}";
        let document = SettingsDocument::parse_json("x.json", json).unwrap();
        assert_eq!(
            document.value(),
            &serde_json::json!({"a": [1, 2], "b": {"c": "//x"}})
        );
        assert_eq!(
            (document.position("a"), document.position("a[1]")),
            (at(3, 3), at(3, 12))
        );
    }

    #[test]
    fn a_misspelled_key_is_one_slip_away() {
        for slip in ["deny", "Deny", "deni", "dney", "den", "denyy", "xdeny"] {
            assert!(is_misspelled(slip, "deny"), "{slip}");
        }
        for other in ["name", "denies", "dyne", "d", "", "eden"] {
            assert!(!is_misspelled(other, "deny"), "{other}");
        }
    }

    #[test]
    fn unknown_keys_are_removed_at_every_level_and_told() {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Inner {
            #[serde(rename = "x")]
            _x: u32,
        }
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Outer {
            #[serde(rename = "list")]
            _list: Vec<Inner>,
        }
        let text = "title: t\nlist:\n- {x: 1, y: 2}\n- {x: 1, y: {y: 3}}\n";
        let mut document = SettingsDocument::parse_yaml("x.yaml", text).unwrap();
        let findings = document.remove_unknown_keys::<Outer>();
        assert_eq!(
            document.value(),
            &serde_json::json!({"list": [{"x": 1}, {"x": 1}]})
        );
        let lines: Vec<u64> = findings.iter().map(|finding| finding.place.line).collect();
        assert_eq!(lines, [3, 4, 1]);
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity == Severity::NonFatal)
        );
    }

    #[test]
    fn what_is_no_document_is_told_with_its_place() {
        for (text, line) in [
            ("a: [1", 1),
            ("a: 1\nb: 'x", 2),
            ("a: 1\na: 2", 2),
            ("a: 1\n---\nb: 2", 2),
        ] {
            let error = SettingsDocument::parse_yaml("x.yaml", text).unwrap_err();
            assert!(error.place.line >= line, "{text:?}: {error}");
        }
        let error = SettingsDocument::parse_json("x.json", "{\n \"a\": }").unwrap_err();
        assert_eq!((error.place.line, error.source.file()), (2, Some("x.json")));
    }
}
