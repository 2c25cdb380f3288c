//! Numbers with their nouns, for messages: `1 step`, `2 steps`.
//!
//! Effects: none.

use std::fmt::Display;

/// Returns `number` with `noun` in the singular or plural: `1 step`, `2 steps`, `0 entries`.
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    if number == N::from(1) {
        return format!("{number} {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        Some(_) | None => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular_and_everything_else_plural() {
        let table = [
            (counted(1_u32, "step"), "1 step"),
            (counted(0_u64, "step"), "0 steps"),
            (counted(2_usize, "entry"), "2 entries"),
            (counted(2_u32, "day"), "2 days"),
            (counted(1_usize, "entry"), "1 entry"),
        ];
        for (text, expected) in table {
            assert_eq!(text, expected);
        }
    }
}
