//! Parsing a YAML document.
//!
//! Effects: none.

use super::YamlValue;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;

/// A line and a column of a file, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourcePosition {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl SourcePosition {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// Why a text is not a YAML document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}: {message}", .position.line)]
pub struct YamlError {
    /// What is wrong, on one line.
    pub message: String,
    /// Where it is.
    pub position: SourcePosition,
    /// Which kind of error it is.
    pub kind: YamlErrorKind,
}

/// The kinds of [`YamlError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YamlErrorKind {
    /// The text does not follow the rules of YAML.
    Syntax,
    /// A map has the same key twice.
    DuplicateKey,
}

/// A YAML document: its value, and the position of every key and item in it.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlDocument {
    /// The value of the whole document.
    pub value: YamlValue,
    /// The positions by key path, such as `policy.max_steps` or `permissions[1].mode`.
    pub positions: BTreeMap<String, SourcePosition>,
}

impl FromStr for YamlDocument {
    type Err = YamlError;

    /// Parses a document. One without any content is an empty map.
    fn from_str(text: &str) -> Result<Self, YamlError> {
        let mut positions = BTreeMap::new();
        let value = match parse_tree(text)? {
            Some(tree) => tree.into_value_at(String::new(), &mut positions),
            None => YamlValue::Map(Vec::new()),
        };
        Ok(Self { value, positions })
    }
}

impl FromStr for YamlValue {
    type Err = YamlError;

    /// Parses a document without its positions. One without any content is an empty map.
    fn from_str(text: &str) -> Result<Self, YamlError> {
        let tree = parse_tree(text)?;
        Ok(tree.map_or(Self::Map(Vec::new()), YamlTree::into_value))
    }
}

/// Returns the tree of a document, or none if there are only blanks and comments.
fn parse_tree(text: &str) -> Result<Option<YamlTree>, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_empty = text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    if is_empty {
        return Ok(None);
    }
    let tree: Spanned<YamlTree> = serde_saphyr::from_str(text).map_err(|error| to_error(&error))?;
    Ok(Some(tree.value))
}

fn to_error(error: &serde_saphyr::Error) -> YamlError {
    let message = error.without_snippet().to_string();
    // The parser appends the position, which is a field of its own here.
    let message = message.split(" at line ").next().unwrap_or(&message);
    YamlError {
        message: message
            .lines()
            .next()
            .unwrap_or("this is not YAML")
            .to_owned(),
        position: error
            .location()
            .map_or(SourcePosition::START, |at| SourcePosition {
                line: at.line(),
                column: at.column(),
            }),
        kind: if message.contains("duplicate") {
            YamlErrorKind::DuplicateKey
        } else {
            YamlErrorKind::Syntax
        },
    }
}

/// A value as the parser returns it: every key and value has its position.
enum YamlTree {
    Scalar(YamlValue),
    List(Vec<Spanned<YamlTree>>),
    Map(Vec<(Spanned<String>, Spanned<YamlTree>)>),
}

impl YamlTree {
    fn into_value(self) -> YamlValue {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => {
                let items = items.into_iter().map(|item| item.value.into_value());
                YamlValue::List(items.collect())
            }
            Self::Map(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|(key, value)| (key.value, value.value.into_value()));
                YamlValue::Map(fields.collect())
            }
        }
    }

    /// Returns the value of the tree at `path`, and adds the positions of all that is in it.
    fn into_value_at(
        self,
        path: String,
        positions: &mut BTreeMap<String, SourcePosition>,
    ) -> YamlValue {
        match self {
            Self::Scalar(value) => value,
            Self::List(items) => {
                let item = |(i, item): (usize, Spanned<Self>)| {
                    let at = format!("{path}[{i}]");
                    positions.insert(at.clone(), position_of(&item));
                    item.value.into_value_at(at, positions)
                };
                YamlValue::List(items.into_iter().enumerate().map(item).collect())
            }
            Self::Map(fields) => {
                let field = |(key, value): (Spanned<String>, Spanned<Self>)| {
                    let at = if path.is_empty() {
                        key.value.clone()
                    } else {
                        format!("{path}.{}", key.value)
                    };
                    positions.insert(at.clone(), position_of(&key));
                    (key.value, value.value.into_value_at(at, positions))
                };
                YamlValue::Map(fields.into_iter().map(field).collect())
            }
        }
    }
}

fn position_of<T>(at: &Spanned<T>) -> SourcePosition {
    SourcePosition {
        line: at.referenced.line().max(1),
        column: at.referenced.column().max(1),
    }
}

impl<'de> Deserialize<'de> for YamlTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlTreeVisitor)
    }
}

struct YamlTreeVisitor;

impl<'de> Visitor<'de> for YamlTreeVisitor {
    type Value = YamlTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::Null))
    }

    fn visit_none<E>(self) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlTree, D::Error> {
        YamlTree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::Int(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::Float(value)))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlTree, E> {
        Ok(YamlTree::Scalar(YamlValue::text(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlTree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(YamlTree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlTree, A::Error> {
        let mut fields: Vec<(Spanned<String>, Spanned<YamlTree>)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, _>()? {
            // The parser compares keys as YAML values, for which `1` and `"1"` are two keys.
            if !seen.insert(key.value.clone()) {
                let message = format!("duplicate mapping key: {}", key.value);
                return Err(serde::de::Error::custom(message));
            }
            fields.push((key, value));
        }
        Ok(YamlTree::Map(fields))
    }
}
