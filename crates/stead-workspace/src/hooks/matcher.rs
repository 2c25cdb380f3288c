//! Which of an event's occasions a hook is asked about.

use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// A regular expression as JavaScript reads them, found anywhere in a text.
#[derive(Clone)]
pub struct Matcher {
    pattern: String,
    // A validator of schemas has such expressions, and they are bounded.
    validator: Arc<jsonschema::Validator>,
}

impl Matcher {
    /// None if `pattern` is no regular expression.
    pub fn new(pattern: &str) -> Option<Self> {
        let found = jsonschema::validator_for(&json!({"pattern": pattern})).ok()?;
        Some(Self {
            pattern: pattern.to_owned(),
            validator: Arc::new(found),
        })
    }

    /// Whether it is found in `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.validator.is_valid(&Value::String(text.to_owned()))
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Matcher").field(&self.pattern).finish()
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}
