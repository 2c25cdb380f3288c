//! Names and ids in a form that providers accept. History may come from another wire, or from a
//! model that invented a tool, and one invalid character would make the provider refuse the whole
//! request.
//!
//! Effects: none.

use std::borrow::Cow;
use std::fmt::Write;

/// The maximum length of a name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;

/// Returns `name` with every character outside `[A-Za-z0-9_-]` replaced by `_` and its hexadecimal
/// number, so that different ids stay different.
pub(super) fn sanitize(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(plain) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if plain(c) {
            out.push(c);
        } else {
            let _ = write!(out, "_{:x}", u32::from(c));
        }
    }
    // The end of an id is more distinctive than its beginning.
    let start = out.len().saturating_sub(MAX_NAME_BYTES);
    Cow::Owned(if out.is_empty() {
        "unnamed".to_owned()
    } else {
        out.split_off(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_stay_apart() {
        let long = "x".repeat(100);
        let cases = [
            ("read_file-2", "read_file-2"),
            ("", "unnamed"),
            ("functions.read:0", "functions_2eread_3a0"),
            ("é", "_e9"),
            (&long, &long[36..]),
        ];
        for (name, want) in cases {
            assert_eq!(sanitize(name), want);
        }
    }
}
