//! YAML as a tree of values: parsing with positions, and printing.
//!
//! Settings files and task lists use this tree. The front matter of skills has a dialect of its own
//! in `stead-skills`, in which every scalar is a text.
//!
//! Effects: none.

mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::{SourcePosition, YamlDocument, YamlError, YamlErrorKind};

/// A value of a YAML document. Maps keep the order of their keys.
///
/// ```
/// use stead_core::YamlValue;
///
/// let value: YamlValue = "b: [1, 2]\na: x".parse()?;
/// assert_eq!(value.to_string(), "b:\n- 1\n- 2\na: x\n");
/// # Ok::<(), stead_core::YamlError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum YamlValue {
    /// `null`, or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits into 64 bits, with or without a sign.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// A map, in which every key occurs once.
    Map(Vec<(String, Self)>),
}

impl YamlValue {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
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
}

impl From<&serde_json::Value> for YamlValue {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i128(), number.as_f64()) {
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

/// The JSON of a value. Infinity and NaN, which JSON does not have, become `null`.
impl From<YamlValue> for serde_json::Value {
    fn from(value: YamlValue) -> Self {
        match value {
            YamlValue::Null => Self::Null,
            YamlValue::Bool(value) => value.into(),
            YamlValue::Int(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(int), _) => int.into(),
                (Err(_), Ok(int)) => int.into(),
                // As a JSON parser reads a number that is too large.
                (Err(_), Err(_)) => (value as f64).into(),
            },
            YamlValue::Float(value) => value.into(),
            YamlValue::Text(text) => text.into(),
            YamlValue::List(items) => items.into_iter().map(Self::from).collect(),
            YamlValue::Map(map) => map
                .into_iter()
                .map(|(key, value)| (key, Self::from(value)))
                .collect(),
        }
    }
}
