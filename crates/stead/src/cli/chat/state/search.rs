//! Searching the earlier inputs (Ctrl-R).
//!
//! Effects: none.

use super::{Chat, ChatCommand};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A search of the history while it is typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::cli::chat) struct HistorySearch {
    pub(in crate::cli::chat) query: String,
    /// The number of matches that were passed over.
    skipped: usize,
}

impl Chat {
    /// Begins a search, or goes on to an older match.
    pub(super) fn search_history(&mut self) {
        match &mut self.search {
            None => self.search = Some(HistorySearch::default()),
            Some(search) => search.skipped += 1,
        }
        // Past the oldest match, that one stays.
        if let Some(search) = &self.search
            && search.skipped > 0
            && self.search_match().is_none()
            && let Some(search) = &mut self.search
        {
            search.skipped -= 1;
        }
    }

    /// Returns the input that the search has found.
    pub(in crate::cli::chat) fn search_match(&self) -> Option<&str> {
        let search = self.search.as_ref()?;
        self.editor.find_in_history(&search.query, search.skipped)
    }

    /// Handles a key during a search. Returns none if the key ends the search and is then handled as
    /// usual.
    pub(super) fn on_search_key(&mut self, key: KeyEvent) -> Option<Vec<ChatCommand>> {
        let search = self.search.as_mut()?;
        let is_plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('r') if !is_plain => self.search_history(),
            KeyCode::Char('g' | 'c') if !is_plain => self.search = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Backspace => {
                search.query.pop();
                search.skipped = 0;
            }
            KeyCode::Char(letter) if is_plain => {
                search.query.push(letter);
                search.skipped = 0;
            }
            KeyCode::Enter => self.take_search_match(),
            _ => {
                self.take_search_match();
                return None;
            }
        }
        Some(Vec::new())
    }

    /// Ends the search with its match as the input.
    fn take_search_match(&mut self) {
        let found = self.search_match().map(str::to_owned);
        self.search = None;
        if let Some(found) = found {
            let shown = self.pasted.shown(&found);
            self.editor.clear();
            self.editor.insert(&shown);
        }
    }
}
