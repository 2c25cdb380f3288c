//! Nested calls: calls that a running tool call makes.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most levels of nested calls below a call of the model.
pub const MAX_NESTED_DEPTH: usize = 3;

/// What a nested call is. No answer of a model has its name and arguments, so the first entry about
/// it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedCall {
    /// The id of the call that made it.
    pub parent: String,
    /// The name of the tool, as the calling tool gave it.
    pub name: String,
    /// The arguments that the calling tool gave.
    pub args: Value,
}

/// The id of a nested call in its parts: `c1/2` is the second call that `c1` made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NestedId<'a> {
    /// The id of the call that made it.
    pub parent: &'a str,
    /// The position among the calls that the same call made, from 1, in the order they were started.
    pub ordinal: u32,
}

impl<'a> NestedId<'a> {
    /// Parses the id of a nested call. `None` for a call of a model.
    pub fn parse(id: &'a str) -> Option<Self> {
        let (parent, digits) = id.rsplit_once('/')?;
        // One call has one id: no signs and no leading zeros.
        let canonical = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        let ordinal = digits.parse().ok().filter(|_| canonical)?;
        Some(Self { parent, ordinal })
    }

    /// Parses the id of a nested call that is not too deep.
    pub(crate) fn within_limit(id: &'a str) -> Option<Self> {
        Self::parse(id).filter(|_| Self::depth_of(id) <= MAX_NESTED_DEPTH)
    }

    /// Returns how many levels below a call of the model a call is; 0 for a call of the model.
    pub fn depth_of(id: &str) -> usize {
        id.bytes().filter(|byte| *byte == b'/').count()
    }

    /// Returns the id of the call of the model that a nested call belongs to.
    pub fn top_of(id: &str) -> &str {
        id.split('/').next().unwrap_or(id)
    }
}

impl std::fmt::Display for NestedId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.parent, self.ordinal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_form_and_names_its_parent() {
        let table = [
            ("c1/2", Some(("c1", 2))),
            ("c1/2/10", Some(("c1/2", 10))),
            ("c1", None),
            ("c1/", None),
            ("c1/0", None),
            ("c1/02", None),
            ("c1/+2", None),
            ("c1/-2", None),
            ("c1/x", None),
            ("c1/4294967296", None),
        ];
        for (id, parts) in table {
            let parsed = NestedId::parse(id);
            let expected = parts.map(|(parent, ordinal)| NestedId { parent, ordinal });
            assert_eq!(parsed, expected, "{id}");
            if let Some(parsed) = parsed {
                assert_eq!(parsed.to_string(), id);
            }
        }
        assert_eq!(NestedId::depth_of("c1"), 0);
        assert_eq!(NestedId::depth_of("c1/2/1"), 2);
        assert_eq!(NestedId::top_of("c1/2/1"), "c1");
    }
}
