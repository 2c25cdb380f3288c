//! Choosing a session from a list: arrow keys, and letters that filter it.
//!
//! Effects: none.

use super::{Chat, ChatCommand};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stead::core::SessionId;

/// A session in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli::chat) struct PickRow {
    pub(in crate::cli::chat) id: SessionId,
    pub(in crate::cli::chat) title: String,
    /// When it was used and what it cost.
    pub(in crate::cli::chat) detail: String,
}

/// The list while it is open.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::cli::chat) struct SessionPicker {
    rows: Vec<PickRow>,
    pub(in crate::cli::chat) filter: String,
    selected: usize,
}

impl SessionPicker {
    pub(in crate::cli::chat) fn new(rows: Vec<PickRow>) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// Returns the rows that fit the filter: all its words, in the title or the id.
    pub(in crate::cli::chat) fn shown(&self) -> Vec<&PickRow> {
        let filter = self.filter.to_lowercase();
        let fits = |row: &&PickRow| {
            let text = format!("{} {}", row.title, row.id).to_lowercase();
            filter.split_whitespace().all(|word| text.contains(word))
        };
        self.rows.iter().filter(fits).collect()
    }

    /// Returns the position of the selected row among those that are shown.
    pub(in crate::cli::chat) fn selected(&self) -> usize {
        self.selected.min(self.shown().len().saturating_sub(1))
    }
}

impl Chat {
    /// Handles a key while the list is open. Returns none if it is not.
    pub(super) fn on_picker_key(&mut self, key: KeyEvent) -> Option<Vec<ChatCommand>> {
        let picker = self.picker.as_mut()?;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let at = picker.selected();
        match key.code {
            KeyCode::Esc => self.picker = None,
            KeyCode::Char('c' | 'd') if ctrl => self.picker = None,
            KeyCode::Up => picker.selected = at.saturating_sub(1),
            KeyCode::Down => picker.selected = at + 1,
            KeyCode::PageUp => picker.selected = at.saturating_sub(10),
            KeyCode::PageDown => picker.selected = at + 10,
            KeyCode::Backspace => {
                picker.filter.pop();
                picker.selected = 0;
            }
            KeyCode::Char(letter) if !ctrl => {
                picker.filter.push(letter);
                picker.selected = 0;
            }
            KeyCode::Enter => {
                let chosen = picker.shown().get(at).map(|row| row.id.to_string());
                if let Some(id) = chosen {
                    self.picker = None;
                    return Some(vec![ChatCommand::Sessions(Some(id))]);
                }
            }
            _ => {}
        }
        Some(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_filter_narrow_the_list_and_the_selection_stays_in_it() {
        let row = |id: &str, title: &str| PickRow {
            id: SessionId::new(id).unwrap(),
            title: title.to_owned(),
            detail: String::new(),
        };
        let mut picker = SessionPicker::new(vec![
            row("s1", "Move the notes"),
            row("s2", "Fix the tests"),
            row("s3", "Move the tests"),
        ]);
        picker.selected = 7;
        assert_eq!(picker.selected(), 2);
        for (filter, want) in [
            ("", &["s1", "s2", "s3"][..]),
            ("move tests", &["s3"]),
            ("S2", &["s2"]),
            ("nothing", &[]),
        ] {
            picker.filter = filter.to_owned();
            let ids: Vec<&str> = picker.shown().iter().map(|row| row.id.as_str()).collect();
            assert_eq!(ids, want, "{filter}");
        }
        assert_eq!(picker.selected(), 0);
    }
}
