//! A deserializer of settings that never reads a list as a struct.
//!
//! Serde's own deserializer fills the fields of a struct from a list in the order of declaration:
//! `policy: [3]` would set a limit that the settings do not name.
//!
//! Effects: none.

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Value};

/// A value that is deserialized strictly, at every level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StrictValue<'a>(pub(crate) &'a Value);

impl<'de> IntoDeserializer<'de, Error> for StrictValue<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for StrictValue<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(items) => {
                let mut list = SeqDeserializer::new(items.iter().map(StrictValue));
                let value = visitor.visit_seq(&mut list)?;
                list.end().map(|()| value)
            }
            Value::Object(fields) => {
                let named = fields
                    .iter()
                    .map(|(name, value)| (BorrowedStrDeserializer::new(name), StrictValue(value)));
                let mut map = MapDeserializer::new(named);
                let value = visitor.visit_map(&mut map)?;
                map.end().map(|()| value)
            }
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                scalar.deserialize_any(visitor)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.0.is_array() {
            return Err(Error::invalid_type(Unexpected::Seq, &visitor));
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Outer {
        inner: Option<Inner>,
        list: Vec<Inner>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Inner {
        number: f64,
        text: Option<String>,
    }

    #[test]
    fn a_list_is_no_struct_at_any_depth_and_all_else_is_as_usual() {
        let value = json!({"inner": {"number": 1, "text": null}, "list": [{"text": "x"}]});
        assert_eq!(
            Outer::deserialize(StrictValue(&value)).unwrap(),
            Outer::deserialize(&value).unwrap()
        );
        for value in [json!([]), json!({"inner": [1]}), json!({"list": [[1]]})] {
            assert!(
                Outer::deserialize(&value).is_ok(),
                "serde itself takes {value}"
            );
            let error = Outer::deserialize(StrictValue(&value))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("invalid type: sequence, expected struct"),
                "{value}: {error}"
            );
        }
    }
}
