//! Markdown code blocks, with a fence that their text cannot close.
//!
//! Effects: none.

/// Returns `text` as a code block. Its fence is longer than any in the text, so that the text cannot
/// close it.
pub fn fenced(language: &str, text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.chars().take_while(|&c| c == '`').count())
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}
