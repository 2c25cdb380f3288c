//! Breaking styled text into rows of the screen of `stead chat`.
//!
//! Effects: none.

use crate::cli::print::is_unsafe_char;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The replacement of a tab: a grid of cells has no tabs.
const TAB: &str = "    ";

/// A piece of text in one style.
pub(super) type StyledText = (String, Style);

/// The positions at which a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineBreak {
    /// Between words; a word longer than the row is broken anywhere.
    Words,
    /// Anywhere, keeping every space: for code.
    Anywhere,
}

/// Breaks pieces into rows of at most `width` columns. A newline in a piece ends a row. There is
/// always at least one row, and only spaces at a break between words are removed.
pub(super) fn wrap(pieces: &[StyledText], width: usize, at: LineBreak) -> Vec<Line<'static>> {
    let mut rows = RowBuilder {
        width: width.max(1),
        at,
        done: Vec::new(),
        row: Vec::new(),
        row_width: 0,
        word: Vec::new(),
    };
    for (text, style) in pieces {
        for grapheme in text.graphemes(true) {
            rows.push(grapheme, *style);
        }
    }
    rows.finish()
}

/// Breaks plain text in one style between words.
pub(super) fn wrap_text(text: &str, style: Style, width: usize) -> Vec<Line<'static>> {
    wrap(&[(text.to_owned(), style)], width, LineBreak::Words)
}

/// Returns the first `width` columns of a text on one row, with `…` in place of the rest.
pub(super) fn clip(text: &str, width: usize) -> String {
    let text = text
        .replace('\n', "⏎")
        .replace('\t', " ")
        .replace(is_unsafe_char, "\u{fffd}");
    if text.width() <= width {
        return text;
    }
    let mut out = String::new();
    let mut used = 1;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used > width {
            break;
        }
        out.push_str(grapheme);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

struct RowBuilder {
    width: usize,
    at: LineBreak,
    done: Vec<Line<'static>>,
    row: Vec<StyledText>,
    row_width: usize,
    /// The graphemes of a word that may still have to move to the next row.
    word: Vec<StyledText>,
}

impl RowBuilder {
    fn push(&mut self, grapheme: &str, style: Style) {
        match (grapheme, self.at) {
            ("\n" | "\r\n", _) => {
                self.flush_word();
                self.end_row();
            }
            ("\t", _) => TAB
                .graphemes(true)
                .for_each(|space| self.push(space, style)),
            (" ", LineBreak::Words) => {
                self.flush_word();
                if self.row_width < self.width {
                    self.place(grapheme, style);
                }
            }
            // Control characters have no width, and a terminal would obey them.
            (deceiving, _) if deceiving.contains(is_unsafe_char) => {}
            (_, LineBreak::Words) => self.word.push((grapheme.to_owned(), style)),
            (_, LineBreak::Anywhere) => self.place(grapheme, style),
        }
    }

    fn flush_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let word_width: usize = word.iter().map(|(grapheme, _)| grapheme.width()).sum();
        if self.row_width > 0 && self.row_width + word_width > self.width {
            self.end_row();
        }
        word.iter()
            .for_each(|(grapheme, style)| self.place(grapheme, *style));
    }

    fn place(&mut self, grapheme: &str, style: Style) {
        let grapheme_width = grapheme.width();
        if self.row_width + grapheme_width > self.width && self.row_width > 0 {
            self.end_row();
        }
        self.row_width += grapheme_width;
        match self.row.last_mut() {
            Some((text, last)) if *last == style => text.push_str(grapheme),
            Some(_) | None => self.row.push((grapheme.to_owned(), style)),
        }
    }

    fn end_row(&mut self) {
        self.row_width = 0;
        let mut row = std::mem::take(&mut self.row);
        if let (LineBreak::Words, Some((text, _))) = (self.at, row.last_mut()) {
            text.truncate(text.trim_end_matches(' ').len());
        }
        self.done.push(Line::from_iter(
            row.into_iter()
                .map(|(text, style)| Span::styled(text, style)),
        ));
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.flush_word();
        if self.row_width > 0 || self.done.is_empty() {
            self.end_row();
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_break_between_words_and_long_words_break_anywhere() {
        let cases: [(&str, usize, LineBreak, &[&str]); 10] = [
            ("", 5, LineBreak::Words, &[""]),
            ("one two three", 7, LineBreak::Words, &["one two", "three"]),
            ("one  two", 4, LineBreak::Words, &["one", "two"]),
            ("abcdefgh", 3, LineBreak::Words, &["abc", "def", "gh"]),
            ("a\n\nb\n", 9, LineBreak::Words, &["a", "", "b"]),
            ("漢字漢字", 5, LineBreak::Words, &["漢字", "漢字"]),
            ("漢", 1, LineBreak::Words, &["漢"]),
            ("a  b c", 4, LineBreak::Anywhere, &["a  b", " c"]),
            ("a\u{1b}[31mb\u{7}", 9, LineBreak::Words, &["a[31mb"]),
            ("\tx", 9, LineBreak::Anywhere, &["    x"]),
        ];
        for (text, width, at, rows) in cases {
            let got: Vec<String> = wrap(&[(text.to_owned(), Style::new())], width, at)
                .iter()
                .map(Line::to_string)
                .collect();
            assert_eq!(got, rows, "{text:?} at {width}");
        }
    }

    #[test]
    fn a_clipped_text_never_exceeds_its_width() {
        #[rustfmt::skip]
        let cases = [
            ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字漢", 4, "漢…"), ("abc", 0, ""), ("abc", 1, "…"),
            ("a\nb\u{9b}\u{202e}", 9, "a⏎b\u{fffd}\u{fffd}"),
        ];
        for (text, width, want) in cases {
            assert_eq!(clip(text, width), want);
        }
    }
}
