//! Patterns that select the occasions at which a hook is asked.
//!
//! Effects: none.

use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// A JavaScript regular expression that may match anywhere in a text.
#[derive(Clone)]
pub struct Matcher {
    pattern: String,
    // The schema validator has an engine for such expressions, with bounded run time.
    validator: Arc<jsonschema::Validator>,
}

impl Matcher {
    /// Creates a matcher. Returns none if `pattern` is not a regular expression.
    pub fn new(pattern: &str) -> Option<Self> {
        let found = jsonschema::validator_for(&json!({"pattern": pattern})).ok()?;
        Some(Self {
            pattern: pattern.to_owned(),
            validator: Arc::new(found),
        })
    }

    /// Whether the expression matches anywhere in `text`.
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
