//! The input of `stead chat`: text of several lines with a cursor and a history.
//!
//! Effects: none.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};
use unicode_width::UnicodeWidthStr;

/// A movement of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CursorMove {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
}

/// An input that is being edited. The cursor is always between graphemes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Editor {
    text: String,
    cursor: usize,
    history: Vec<String>,
    recalled: Option<RecalledInput>,
}

/// An entry of the history shown instead of the draft, which returns after the newest entry.
#[derive(Debug, PartialEq, Eq)]
struct RecalledInput {
    at: usize,
    draft: String,
}

impl Editor {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds an earlier input to the history.
    pub(super) fn push_history(&mut self, input: &str) {
        if !input.trim().is_empty() && self.history.last().is_none_or(|last| last != input) {
            self.history.push(input.to_owned());
        }
    }

    /// Returns the newest input in the history that contains `query`, after passing over some.
    pub(super) fn find_in_history(&self, query: &str, skipped: usize) -> Option<&str> {
        let matches = self
            .history
            .iter()
            .rev()
            .filter(|text| text.contains(query));
        matches.map(String::as_str).nth(skipped)
    }

    /// Whether an input is in the history.
    pub(super) fn has_in_history(&self, input: &str) -> bool {
        self.history.iter().any(|text| text == input)
    }

    /// Clears the input and returns what it stands for, which becomes part of the history.
    pub(super) fn take(&mut self, expand: impl FnOnce(&str) -> String) -> String {
        let text = expand(&self.text);
        self.clear();
        self.push_history(&text);
        text
    }

    /// Removes this many bytes before the cursor.
    pub(super) fn remove_before(&mut self, bytes: usize) {
        self.replace(self.cursor.saturating_sub(bytes), "");
    }

    /// Discards the input.
    pub(super) fn clear(&mut self) {
        self.set(String::new());
        self.recalled = None;
    }

    /// Inserts at the cursor. Line ends become `
    /// `; other control characters except tabs are removed.
    pub(super) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let clean: String = text
            .chars()
            .filter(|&c| c == '\n' || c == '\t' || !c.is_control())
            .collect();
        self.text.insert_str(self.cursor, &clean);
        self.cursor += clean.len();
        // The inserted text may join the grapheme after it.
        while !self.is_boundary(self.cursor) {
            self.cursor += 1;
        }
    }

    /// Replaces the text from `start` to the cursor.
    pub(super) fn replace(&mut self, start: usize, with: &str) {
        if self.text.get(start..self.cursor).is_some() {
            self.text.replace_range(start..self.cursor, "");
            self.cursor = start;
            self.insert(with);
        }
    }

    pub(super) fn move_cursor(&mut self, to: CursorMove) {
        self.cursor = self.move_target(to);
    }

    /// Removes the text from the cursor to the destination of this movement.
    pub(super) fn kill(&mut self, to: CursorMove) {
        let target = self.move_target(to);
        let start = target.min(self.cursor);
        let end = target.max(self.cursor);
        self.text.replace_range(start..end, "");
        self.cursor = start;
        while !self.is_boundary(self.cursor) {
            self.cursor += 1;
        }
    }

    /// Moves up a line, or on the first line to the previous input.
    pub(super) fn up(&mut self) {
        let start = self.move_target(CursorMove::LineStart);
        if start > 0 {
            let column = self.text[start..self.cursor].width();
            let above = self.text[..start - 1].rfind('\n').map_or(0, |end| end + 1);
            self.cursor = self.offset_at_column(above, column);
            return;
        }
        let at = self
            .recalled
            .as_ref()
            .map_or(self.history.len(), |recalled| recalled.at);
        let Some(before) = at.checked_sub(1) else {
            return;
        };
        let text = self.history[before].clone();
        let draft = match self.recalled.take() {
            Some(recalled) => recalled.draft,
            None => std::mem::take(&mut self.text),
        };
        self.recalled = Some(RecalledInput { at: before, draft });
        self.set(text);
    }

    /// Moves down a line, or on the last line to the next input and finally to the draft.
    pub(super) fn down(&mut self) {
        let end = self.move_target(CursorMove::LineEnd);
        if end < self.text.len() {
            let column = self.text[self.move_target(CursorMove::LineStart)..self.cursor].width();
            self.cursor = self.offset_at_column(end + 1, column);
            return;
        }
        let Some(recalled) = self.recalled.take() else {
            return;
        };
        match self.history.get(recalled.at + 1).cloned() {
            Some(text) => {
                self.recalled = Some(RecalledInput {
                    at: recalled.at + 1,
                    draft: recalled.draft,
                });
                self.set(text);
            }
            None => self.set(recalled.draft),
        }
    }

    /// Shows another text for the entry of the history that is on the screen.
    pub(super) fn show_instead(&mut self, text: String) {
        self.set(text);
    }

    /// Returns the rows of the text at a width, with the row and the column of the cursor.
    pub(super) fn rows(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut row = String::new();
        let mut column = 0;
        let mut cursor = (0, 0);
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let shown = if grapheme == "\t" { "    " } else { grapheme };
            let grapheme_width = if grapheme == "\n" { 0 } else { shown.width() };
            if column + grapheme_width > width && column > 0 {
                rows.push(std::mem::take(&mut row));
                column = 0;
            }
            if at == self.cursor {
                cursor = (rows.len(), column);
            }
            if grapheme == "\n" {
                rows.push(std::mem::take(&mut row));
                column = 0;
            } else {
                row.push_str(shown);
                column += grapheme_width;
            }
        }
        // After a full row, the cursor is on the next one.
        if column >= width {
            rows.push(std::mem::take(&mut row));
            column = 0;
        }
        if self.cursor == self.text.len() {
            cursor = (rows.len(), column);
        }
        rows.push(row);
        (rows, cursor)
    }

    fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    fn is_boundary(&self, at: usize) -> bool {
        at >= self.text.len()
            || (self.text.is_char_boundary(at)
                && GraphemeCursor::new(at, self.text.len(), true)
                    .is_boundary(&self.text, 0)
                    .unwrap_or(true))
    }

    fn move_target(&self, to: CursorMove) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        match to {
            CursorMove::Left => before
                .grapheme_indices(true)
                .next_back()
                .map_or(0, |(at, _)| at),
            CursorMove::Right => self.cursor + after.graphemes(true).next().map_or(0, str::len),
            CursorMove::WordLeft => {
                let words = before.trim_end_matches(|c: char| !c.is_alphanumeric());
                words.trim_end_matches(char::is_alphanumeric).len()
            }
            CursorMove::WordRight => {
                let words = after.trim_start_matches(|c: char| !c.is_alphanumeric());
                self.text.len() - words.trim_start_matches(char::is_alphanumeric).len()
            }
            CursorMove::LineStart => before.rfind('\n').map_or(0, |end| end + 1),
            CursorMove::LineEnd => self.cursor + after.find('\n').unwrap_or(after.len()),
        }
    }

    /// Returns the offset nearest to a column, on the line that starts at `start`.
    fn offset_at_column(&self, start: usize, column: usize) -> usize {
        let mut used = 0;
        for (at, grapheme) in self.text[start..].grapheme_indices(true) {
            if grapheme == "\n" || used + grapheme.width() > column {
                return start + at;
            }
            used += grapheme.width();
        }
        self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Creates an editor from a text in which `|` marks the cursor.
    fn editor(marked: &str) -> Editor {
        let cursor = marked.find('|').unwrap();
        Editor {
            text: marked.replacen('|', "", 1),
            cursor,
            ..Editor::default()
        }
    }

    fn marked(editor: &Editor) -> String {
        let mut text = editor.text.clone();
        text.insert(editor.cursor, '|');
        text
    }

    #[test]
    fn edits_go_by_grapheme_word_and_line() {
        type Edit = fn(&mut Editor);
        let cases: [(&str, Edit, &str); 16] = [
            ("a|b", |e| e.insert("x"), "ax|b"),
            ("|", |e| e.insert("a\r\nb\rc\x1b\x07"), "a\nb\nc|"),
            ("ae\u{301}|b", |e| e.kill(CursorMove::Left), "a|b"),
            ("a|👩‍👩‍👧b", |e| e.kill(CursorMove::Right), "a|b"),
            ("|", |e| e.kill(CursorMove::Left), "|"),
            ("x|", |e| e.kill(CursorMove::Right), "x|"),
            ("one two.|", |e| e.kill(CursorMove::WordLeft), "one |"),
            (
                "on|e two",
                |e| e.move_cursor(CursorMove::WordRight),
                "one| two",
            ),
            (
                "one| two",
                |e| e.move_cursor(CursorMove::WordRight),
                "one two|",
            ),
            (
                "one two|",
                |e| e.move_cursor(CursorMove::WordLeft),
                "one |two",
            ),
            ("a\nbc|d", |e| e.kill(CursorMove::LineStart), "a\n|d"),
            ("a\nb|cd\ne", |e| e.kill(CursorMove::LineEnd), "a\nb|\ne"),
            (
                "a\nbc|d",
                |e| e.move_cursor(CursorMove::LineStart),
                "a\n|bcd",
            ),
            ("abcd\nab|", Editor::up, "ab|cd\nab"),
            ("abc|d\na\nx", Editor::down, "abcd\na|\nx"),
            (
                "say @no|",
                |e| e.replace(4, "@notes.md "),
                "say @notes.md |",
            ),
        ];
        for (before, edit, after) in cases {
            let mut editor = editor(before);
            edit(&mut editor);
            assert_eq!(marked(&editor), after, "{before:?}");
        }
    }

    #[test]
    fn the_history_is_walked_at_the_edges_and_the_draft_comes_back() {
        let mut editor = Editor::default();
        for text in ["one", "two\nlines", "two\nlines"] {
            editor.insert(text);
            assert_eq!(editor.take(str::to_owned), text);
        }
        editor.insert("draft");
        let mut seen = Vec::new();
        for step in [
            Editor::up,
            Editor::up,
            Editor::up,
            Editor::up,
            Editor::down,
            Editor::down,
            Editor::down,
        ] {
            step(&mut editor);
            seen.push(marked(&editor));
        }
        let want = [
            "two\nlines|",
            "two|\nlines",
            "one|",
            "one|",
            "two\nlines|",
            "draft|",
            "draft|",
        ];
        assert_eq!(seen, want);
    }

    #[test]
    fn rows_wrap_and_place_the_cursor() {
        type Shown = (&'static [&'static str], (usize, usize));
        let cases: [(&str, Shown); 6] = [
            ("|", (&[""], (0, 0))),
            ("ab|c", (&["abc"], (0, 2))),
            ("abcd|", (&["abcd", ""], (1, 0))),
            ("abcd|e", (&["abcd", "e"], (1, 0))),
            ("a\n|\nb", (&["a", "", "b"], (1, 0))),
            ("abc漢|", (&["abc", "漢"], (1, 2))),
        ];
        for (text, (rows, cursor)) in cases {
            let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
            assert_eq!(editor(text).rows(4), (rows, cursor), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_sequence_of_edits_leaves_the_cursor_inside_a_grapheme(
            steps in prop::collection::vec((0..11_usize, "[ab \n漢\u{301}👩\u{200d}]{0,3}"), 0..40)
        ) {
            let mut editor = Editor::default();
            for (step, text) in steps {
                match step {
                    0..=3 => editor.insert(&text),
                    4 => editor.move_cursor(CursorMove::Left),
                    5 => editor.move_cursor(CursorMove::WordLeft),
                    6 => editor.kill(CursorMove::Left),
                    7 => editor.kill(CursorMove::WordLeft),
                    8 => editor.up(),
                    9 => editor.down(),
                    _ => editor.move_cursor(CursorMove::LineStart),
                }
                prop_assert!(editor.is_boundary(editor.cursor));
                prop_assert!(editor.text.is_char_boundary(editor.cursor));
                let (rows, (row, _)) = editor.rows(5);
                prop_assert!(row < rows.len());
            }
        }
    }
}
