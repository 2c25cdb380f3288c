//! Differences and similarity of texts.
//!
//! Effects: the clock.

use similar::TextDiff;
use std::time::Duration;

/// The least similarity at which one name is suggested for another.
const MIN_SIMILARITY: f32 = 0.6;
/// The time limit of a comparison. When it is reached the result is coarser, not wrong.
const MAX_TIME: Duration = Duration::from_millis(200);

/// Returns the name that is most similar to `name`, if one is similar enough.
pub fn closest_name<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    similar::get_close_matches(name, names, 1, MIN_SIMILARITY)
        .first()
        .copied()
}

/// Returns the similarity of two texts, compared character by character: 1 if they are equal.
pub(crate) fn similarity(one: &str, other: &str) -> f32 {
    TextDiff::from_chars(one, other).ratio()
}

/// Returns a unified diff with `context_lines` lines around each change, and with a header if there
/// are names.
pub fn line_diff(
    before: &str,
    after: &str,
    context_lines: usize,
    names: Option<(&str, &str)>,
) -> String {
    let compared = TextDiff::configure()
        .timeout(MAX_TIME)
        .diff_lines(before, after);
    let mut diff = compared.unified_diff();
    diff.context_radius(context_lines);
    if let Some((old, new)) = names {
        diff.header(old, new);
    }
    diff.to_string()
}
