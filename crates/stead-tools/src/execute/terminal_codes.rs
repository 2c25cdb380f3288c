//! Removes terminal codes from the output of programs.
//!
//! Effects: none.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// Returns `text` without terminal codes: colours and titles are left out, a carriage return ends a
/// line, and other control characters are written as `\x07`.
pub(super) fn strip_terminal_codes(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control_character) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ESCAPE => skip_sequence(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            char if is_control_character(char) => {
                out.push_str(&format!("\\x{:02x}", u32::from(char)))
            }
            char => out.push(char),
        }
    }
    Cow::Owned(out)
}

fn is_control_character(char: char) -> bool {
    char.is_control() && !matches!(char, '\n' | '\t')
}

/// Skips the rest of an escape sequence (ECMA-48): `[ … letter`, `] … bell`, or one character. A
/// sequence that does not end stops at the end of the line.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            while chars.next_if(|char| matches!(char, ' '..='?')).is_some() {}
            chars.next_if(|char| matches!(char, '@'..='~'));
        }
        Some(']' | 'P' | '^' | '_' | 'X') => {
            chars.next();
            while let Some(char) = chars.next_if(|char| *char != '\n') {
                match char {
                    BELL => return,
                    ESCAPE => {
                        chars.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some('(' | ')' | '#' | '%') => {
            chars.next();
            chars.next_if(|char| matches!(char, '0'..='~'));
        }
        Some('0'..='~') => drop(chars.next()),
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_for_a_terminal_becomes_text() {
        let table = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;31mred\u{1b}[0m and \u{1b}[Kmore", "red and more"),
            (
                "\u{1b}]0;a title\u{7}after \u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\",
                "after link",
            ),
            ("a\r\nb\r\n", "a\nb\n"),
            ("10%\r20%\rdone\n", "10%\n20%\ndone\n"),
            (
                "bell\u{7} nul\0 del\u{7f} c1\u{9b}",
                "bell\\x07 nul\\x00 del\\x7f c1\\x9b",
            ),
            ("\u{1b}(Bascii \u{1b}7saved", "ascii saved"),
            ("cut \u{1b}", "cut "),
            ("cut \u{1b}[1;", "cut "),
            ("\u{1b}]no end\nnext line", "\nnext line"),
            ("é 日本 \u{fffd}", "é 日本 \u{fffd}"),
        ];
        for (text, expected) in table {
            assert_eq!(strip_terminal_codes(text), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_strange_is_left_and_no_line_is_lost(text in "[a-c\\[\\]0-9;m\u{1b}\u{7}\0\r\n\t\\\\]{0,60}") {
            let cleaned = strip_terminal_codes(&text);
            prop_assert!(!cleaned.contains(is_control_character), "{cleaned:?}");
            prop_assert!(cleaned.matches('\n').count() >= text.matches('\n').count(), "{cleaned:?}");
            prop_assert_eq!(strip_terminal_codes(&cleaned).into_owned(), cleaned.into_owned());
        }
    }
}
