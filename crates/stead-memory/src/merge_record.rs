//! The record of a merge, for people to review.
//!
//! Effects: none.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The number of lines around a change that are kept.
const CONTEXT_LINES: usize = 3;
/// The most bytes of each side that are kept.
const MAX_SHOWN_BYTES: usize = 256 * 1024;

/// One merge into curated memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRecord {
    /// The time.
    pub at: Timestamp,
    /// The ids of the facts.
    pub facts: Vec<String>,
    /// The model that decided, or why none did.
    pub by: Result<String, String>,
    /// What changed.
    pub shown: MergeDiff,
}

/// The part of a file that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeDiff {
    /// The number of lines before it.
    pub skipped: usize,
    /// The text before the merge.
    pub before: String,
    /// The text after the merge.
    pub after: String,
}

impl MergeDiff {
    /// Returns the part in which two texts differ, with a few lines around it.
    pub(crate) fn new(before: &str, after: &str) -> Self {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let new: Vec<&str> = after.split_inclusive('\n').collect();
        let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let tail = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let tail = tail.min(old.len().min(new.len()) - same);
        let first = same.saturating_sub(CONTEXT_LINES);
        let last = tail.saturating_sub(CONTEXT_LINES);
        let part = |lines: &[&str]| bounded(lines[first..lines.len() - last].concat());
        Self {
            skipped: first,
            before: part(&old),
            after: part(&new),
        }
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MAX_SHOWN_BYTES {
        text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES));
        text.push_str(" […]\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_kept_with_a_few_lines_around_it() {
        let lines =
            |range: std::ops::Range<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
        let before = lines(0..20);
        let after = format!("{}new\n{}", lines(0..10), lines(11..20));
        let want = MergeDiff {
            skipped: 7,
            before: lines(7..14),
            after: format!("{}new\n{}", lines(7..10), lines(11..14)),
        };
        assert_eq!(MergeDiff::new(&before, &after), want);
        let table = [
            ("", ""),
            ("", "a\n"),
            ("a\n", ""),
            ("a\n", "a\na\n"),
            ("a\na\n", "a\n"),
            ("a", "a\nb"),
        ];
        for (before, after) in table {
            let shown = MergeDiff::new(before, after);
            assert_eq!(
                (shown.before.as_str(), shown.after.as_str()),
                (before, after)
            );
        }
    }
}
