//! Small pieces that every file of the layout is checked with.

use crate::layout::Draft;
use crate::{Document, Severity};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// Names that are told at most when none of them is near.
const MAX_TOLD: usize = 20;

/// A text, or settings in its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextOr<T> {
    Text(String),
    Settings(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Given<T>(PhantomData<T>);
        // Not `untagged`, which forgets where in the settings a mistake is.
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Given<T> {
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
        deserializer.deserialize_any(Given(PhantomData))
    }
}

/// What to write instead of `name`: the nearest of `known`, or else all of them.
pub(crate) fn instead<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    if let Some(near) = crate::nearest(name, &known) {
        return format!("; did you mean `{near}`?");
    }
    let more = if known.len() > MAX_TOLD { ", …" } else { "" };
    known.truncate(MAX_TOLD);
    if known.is_empty() {
        "; there is none".to_owned()
    } else {
        format!("; there are: {}{more}", known.join(", "))
    }
}

/// Whether an action or a hook may be called so.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// The first thing that stands in a list twice, with its key.
pub(crate) fn twice<T: PartialEq + Copy>(key: &str, list: &[T]) -> Option<(String, T)> {
    let again = list
        .iter()
        .enumerate()
        .find(|(i, item)| list[..*i].contains(item));
    again.map(|(i, item)| (format!("{key}[{i}]"), *item))
}

/// Notes that what stands below these names is understood and has no effect yet, if it is there.
pub(super) fn later(draft: &mut Draft<'_>, document: &Document, names: &[&str], what: &str) {
    let value = names
        .iter()
        .try_fold(document.value(), |value, name| value.get(name));
    if value.is_some_and(|value| !value.is_null()) {
        let key = names.join(".");
        draft.note(document.finding(Severity::Inactive, &key, format!("{key}: {what}")));
    }
}
