//! The part of a text that is shown for a hit of a search.
//!
//! Effects: none.

use std::collections::BTreeSet;
use std::ops::Range;

/// The maximum length of the part.
const MAX_CHARS: usize = 240;
/// The number of characters shown before the first match.
const LEAD_CHARS: usize = 60;

/// Returns the part of `text` with the most different words of the query, on one line.
pub(crate) fn snippet(text: &str, matches: &[(usize, Range<usize>)]) -> String {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if starts.len() <= MAX_CHARS {
        return single_line(text);
    }
    let character = |byte: usize| starts.partition_point(|&start| start < byte);
    let window = |first: &Range<usize>| {
        let from = character(first.start)
            .saturating_sub(LEAD_CHARS)
            .min(starts.len() - MAX_CHARS);
        from..from + MAX_CHARS
    };
    let told = |window: &Range<usize>| {
        let inside = |span: &Range<usize>| {
            character(span.start) >= window.start && character(span.end) <= window.end
        };
        matches
            .iter()
            .filter(|(_, span)| inside(span))
            .map(|(at, _)| at)
            .collect::<BTreeSet<_>>()
            .len()
    };
    let mut best = (0, 0..MAX_CHARS);
    for (_, span) in matches {
        let window = window(span);
        let told = told(&window);
        if told > best.0 {
            best = (told, window);
        }
    }
    let Range { start, end } = best.1;
    let shown = &text[starts[start]..starts.get(end).copied().unwrap_or(text.len())];
    let before = if start > 0 { "…" } else { "" };
    let after = if end < starts.len() { "…" } else { "" };
    format!("{before}{}{after}", single_line(shown))
}

fn single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_with_most_of_the_query_is_shown() {
        let text = format!("one {} one two {}", "x ".repeat(300), "数".repeat(300));
        let first = text.find("one").unwrap();
        let second = text.rfind("one").unwrap();
        let two = text.find("two").unwrap();
        let shown = snippet(
            &text,
            &[
                (0, first..first + 3),
                (0, second..second + 3),
                (1, two..two + 3),
            ],
        );
        assert!(shown.contains("one two"), "{shown}");
        assert!(
            shown.starts_with('…')
                && shown.ends_with('…')
                && shown.chars().count() <= MAX_CHARS + 2,
            "{shown}"
        );
        assert_eq!(snippet("a\n\n b", &[]), "a b");
    }
}
