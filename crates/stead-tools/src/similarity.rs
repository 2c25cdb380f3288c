//! How texts differ, and how much they are alike.

use similar::TextDiff;
use std::time::Duration;

/// How alike two names must be to suggest one for the other.
const MIN_SIMILARITY: f32 = 0.6;
/// Time for a comparison; what comes out later is coarser, not wrong.
const MAX_TIME: Duration = Duration::from_millis(200);

/// The name most like `name`, if one is.
pub fn closest_name<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    similar::get_close_matches(name, names, 1, MIN_SIMILARITY)
        .first()
        .copied()
}

/// How alike two texts are, letter by letter: 1 if they are the same.
pub(crate) fn similarity(one: &str, other: &str) -> f32 {
    TextDiff::from_chars(one, other).ratio()
}

/// The lines that differ, as a unified diff with so many lines around each change, under a header
/// with two names if there are any.
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
