//! Prompt caching: how long a provider keeps the beginning of a request.
//!
//! Effects: none.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use stead_core::Price;

/// How long a provider is asked to keep the beginning of a request, if it supports that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caching {
    /// No caching.
    Off,
    /// Five minutes after the last use.
    #[default]
    Minutes5,
    /// An hour after the last use.
    Hour,
}

impl Caching {
    const ALL: [Self; 3] = [Self::Off, Self::Minutes5, Self::Hour];

    /// Returns the name used in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minutes5 => "5m",
            Self::Hour => "1h",
        }
    }

    /// Adjusts a price that assumes five minutes: writing to a cache for an hour costs twice the
    /// input price.
    pub fn price(self, price: Price) -> Price {
        match self {
            Self::Off | Self::Minutes5 => price,
            Self::Hour => Price {
                cache_write: price.cache_write.map(|_| 2.0 * price.input),
                ..price
            },
        }
    }
}

impl Serialize for Caching {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Caching {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CachingVisitor;
        impl Visitor<'_> for CachingVisitor {
            type Value = Caching;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`off`, `5m` or `1h`")
            }
            // Some people write `off` as `false`, and some parsers read it so.
            fn visit_bool<E: Error>(self, on: bool) -> Result<Caching, E> {
                Ok(if on { Caching::default() } else { Caching::Off })
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Caching, E> {
                let known = Caching::ALL
                    .into_iter()
                    .find(|caching| caching.as_str() == name);
                known.ok_or_else(|| E::custom(format!("{name:?} is none of `off`, `5m` and `1h`")))
            }
        }
        deserializer.deserialize_any(CachingVisitor)
    }
}

impl JsonSchema for Caching {
    fn schema_name() -> Cow<'static, str> {
        "Caching".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": ["off", "5m", "1h", false, true]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_prices_of_each() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cache_read: Some(0.3),
            cache_write: Some(3.75),
        };
        for (written, caching, write) in [
            ("\"off\"", Caching::Off, 3.75),
            ("\"5m\"", Caching::Minutes5, 3.75),
            ("\"1h\"", Caching::Hour, 6.0),
        ] {
            assert_eq!(serde_json::from_str::<Caching>(written).unwrap(), caching);
            assert_eq!(serde_json::to_string(&caching).unwrap(), written);
            assert_eq!(
                caching.price(price),
                Price {
                    cache_write: Some(write),
                    ..price
                }
            );
        }
        assert_eq!(
            serde_json::from_str::<Caching>("false").unwrap(),
            Caching::Off
        );
        let error = serde_json::from_str::<Caching>("\"2h\"")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("\"2h\" is none of `off`, `5m` and `1h`"),
            "{error}"
        );
        let free = Price {
            cache_write: None,
            ..price
        };
        assert_eq!(Caching::Hour.price(free), free);
    }
}
