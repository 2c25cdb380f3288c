//! Helpers for checking the files of the openharness layout.
//!
//! Effects: none.

use crate::layout::Draft;
use crate::{SettingsDocument, Severity};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// The maximum number of names in a suggestion.
const MAX_SUGGESTED_NAMES: usize = 20;

/// A text, or a map of settings in its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextOr<T> {
    Text(String),
    Settings(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrVisitor<T>(PhantomData<T>);
        // Not `untagged`, which loses the position of a mistake.
        impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
            type Value = TextOr<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or `key: value` pairs")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Settings)
            }
        }
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

/// Returns a suggestion for a wrong `name`: the nearest of `known`, or all of them.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    if let Some(near) = crate::closest_name(name, &known) {
        return format!("; did you mean `{near}`?");
    }
    let more = if known.len() > MAX_SUGGESTED_NAMES {
        ", …"
    } else {
        ""
    };
    known.truncate(MAX_SUGGESTED_NAMES);
    if known.is_empty() {
        "; there is none".to_owned()
    } else {
        format!("; there are: {}{more}", known.join(", "))
    }
}

/// Whether `text` is a valid name of an action or a hook.
pub(crate) fn is_valid_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Returns the first item that is in a list twice, with its key.
pub(crate) fn first_duplicate<T: PartialEq + Copy>(key: &str, list: &[T]) -> Option<(String, T)> {
    let again = list
        .iter()
        .enumerate()
        .find(|(i, item)| list[..*i].contains(item));
    again.map(|(i, item)| (format!("{key}[{i}]"), *item))
}

/// Notes that keys below these names have no effect yet, if there are any.
pub(super) fn note_inactive_under(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    names: &[&str],
    what: &str,
) {
    let value = names
        .iter()
        .try_fold(document.value(), |value, name| value.get(name));
    if value.is_some_and(|value| !value.is_null()) {
        let key = names.join(".");
        draft.note(document.finding(Severity::Inactive, &key, format!("{key}: {what}")));
        draft.forget_variables(document.file(), &key);
    }
}
