//! Hints of the `edit_file` tool about a text that was not found.
//!
//! Effects: none.

use crate::similarity::similarity;
use std::collections::HashSet;

/// How much of a file is searched for similar lines.
const MAX_SEARCHED_BYTES: usize = 4 * 1024 * 1024;
/// The most lines that are compared character by character, after a comparison by words.
const MAX_COMPARED_LINES: usize = 40;
/// Of longer lines only the beginning is compared.
const MAX_COMPARED_CHARS: usize = 300;
/// The most lines that are shown.
const MAX_SHOWN_LINES: usize = 12;
/// The least similarity of a line that is shown.
const MIN_SIMILARITY: f32 = 0.5;

/// Explains to the model why `old` is not in `content`, and what is there instead.
pub(super) fn missing_text_hint(content: &[u8], old: &str) -> String {
    let content = &content[..content.len().min(MAX_SEARCHED_BYTES)];
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().collect();
    if let Some(at) = find_sequence(&lines, &without_numbers(&wanted), |a, b| a == b) {
        return format!(
            "old_string was not found, but it is at line {} without line numbers; leave them out",
            at + 1
        );
    }
    if let Some(at) = find_sequence(&lines, &wanted, |a, b| a == b) {
        let end = at + wanted.len();
        return format!(
            "old_string was not found: line {end} does not end as it does in old_string (mind the last line end)"
        );
    }
    if let Some(at) = find_sequence(&lines, &wanted, |a, b| {
        a.split_whitespace().eq(b.split_whitespace())
    }) {
        let shown = show(&lines, at, wanted.len());
        return format!(
            "old_string was not found, but these lines differ from it in white space only:\n{shown}"
        );
    }
    match closest_line(&lines, &wanted) {
        Some((at, offset)) => {
            let shown = show(&lines, at.saturating_sub(offset), wanted.len());
            format!("old_string was not found; the closest lines are:\n{shown}")
        }
        None => "old_string was not found, and nothing in the file is like it; read the file again"
            .to_owned(),
    }
}

/// Returns where all lines of `wanted` follow each other.
fn find_sequence(
    lines: &[&str],
    wanted: &[impl AsRef<str>],
    same: impl Fn(&str, &str) -> bool,
) -> Option<usize> {
    if wanted.iter().all(|line| line.as_ref().trim().is_empty()) {
        return None;
    }
    lines.windows(wanted.len()).position(|window| {
        window
            .iter()
            .zip(wanted)
            .all(|(line, want)| same(line, want.as_ref()))
    })
}

/// Returns the lines without the numbers that `read_file` adds, or nothing if a line has none.
fn without_numbers(wanted: &[&str]) -> Vec<String> {
    let strip = |line: &&str| {
        let rest = line.trim_start();
        let text = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let text = if text.len() < rest.len() {
            text
        } else {
            return None;
        };
        text.strip_prefix("  ")
            .or_else(|| text.strip_prefix('\t'))
            .map(str::to_owned)
    };
    wanted
        .iter()
        .map(strip)
        .collect::<Option<Vec<_>>>()
        .unwrap_or_default()
}

/// Returns the line that is most similar to the most distinctive line of `wanted`, and which of them
/// that is.
fn closest_line(lines: &[&str], wanted: &[&str]) -> Option<(usize, usize)> {
    let (offset, telling) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let telling = clip(telling.trim());
    let words: HashSet<&str> = words(telling).collect();
    let shared = |line: &str| {
        self::words(line)
            .filter(|word| words.contains(word))
            .count()
    };
    let mut candidates: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (shared(line), at))
        .filter(|(shared, _)| *shared > 0)
        .collect();
    candidates.sort_unstable_by_key(|&(shared, at)| (std::cmp::Reverse(shared), at));
    let compared = candidates.into_iter().take(MAX_COMPARED_LINES);
    let rated = compared.map(|(_, at)| (similarity(telling, clip(lines[at].trim())), at));
    let best = rated
        .filter(|(ratio, _)| *ratio >= MIN_SIMILARITY)
        .max_by(|(a, i), (b, j)| a.total_cmp(b).then(j.cmp(i)))?;
    Some((best.1, offset))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn clip(line: &str) -> &str {
    line.char_indices()
        .nth(MAX_COMPARED_CHARS)
        .map_or(line, |(end, _)| &line[..end])
}

fn show(lines: &[&str], at: usize, count: usize) -> String {
    let shown = lines
        .iter()
        .enumerate()
        .skip(at)
        .take(count.clamp(1, MAX_SHOWN_LINES));
    shown
        .map(|(i, line)| format!("{:>6}  {}", i + 1, clip(line)))
        .collect::<Vec<_>>()
        .join("\n")
}
