//! Applying keys and pasted text to the state of `stead chat`.
//!
//! Effects: in-process state.

use super::super::complete::{self, CompletionKind, CompletionPopup};
use super::super::editor::CursorMove;
use super::super::slash::{self, ParsedInput};
use super::super::transcript::{ChatItem, Details, ItemBody, Tone};
use super::{Activity, Chat, ChatCommand, ChatPhase};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

impl Chat {
    pub(in crate::cli::chat) fn on_paste(&mut self, text: &str) -> Vec<ChatCommand> {
        self.editor.insert(text);
        self.update_popup()
    }

    pub(in crate::cli::chat) fn on_key(&mut self, key: KeyEvent) -> Vec<ChatCommand> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.tab_pending = false;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        if let (KeyCode::Char('c'), true) = (key.code, ctrl) {
            return self.interrupt();
        }
        if let (KeyCode::Char('d'), true, true) = (key.code, ctrl, self.editor.is_empty()) {
            return vec![ChatCommand::Quit];
        }
        if let Some(commands) = self.on_question_key(key) {
            return commands;
        }
        if let Some(commands) = self.on_popup_key(key.code) {
            return commands;
        }
        match key.code {
            KeyCode::Enter if alt || shift || ctrl => self.editor.insert("\n"),
            KeyCode::Char('j') if ctrl => self.editor.insert("\n"),
            KeyCode::Enter => return self.submit(),
            KeyCode::Tab => {
                self.tab_pending = true;
                return Vec::new();
            }
            KeyCode::PageUp => self.scroll += self.page,
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::Char('o') if ctrl => self.toggle_details(),
            KeyCode::Up if ctrl => self.select_call(SelectionStep::Back),
            KeyCode::Down if ctrl => self.select_call(SelectionStep::Forward),
            KeyCode::Up => self.editor.up(),
            KeyCode::Down => self.editor.down(),
            KeyCode::Left if ctrl || alt => self.editor.move_cursor(CursorMove::WordLeft),
            KeyCode::Right if ctrl || alt => self.editor.move_cursor(CursorMove::WordRight),
            KeyCode::Char('b') if alt => self.editor.move_cursor(CursorMove::WordLeft),
            KeyCode::Char('f') if alt => self.editor.move_cursor(CursorMove::WordRight),
            KeyCode::Left => self.editor.move_cursor(CursorMove::Left),
            KeyCode::Right => self.editor.move_cursor(CursorMove::Right),
            KeyCode::Home => self.editor.move_cursor(CursorMove::LineStart),
            KeyCode::End => self.editor.move_cursor(CursorMove::LineEnd),
            KeyCode::Char('a') if ctrl => self.editor.move_cursor(CursorMove::LineStart),
            KeyCode::Char('e') if ctrl => self.editor.move_cursor(CursorMove::LineEnd),
            KeyCode::Char('u') if ctrl => self.editor.kill(CursorMove::LineStart),
            KeyCode::Char('k') if ctrl => self.editor.kill(CursorMove::LineEnd),
            KeyCode::Char('w') if ctrl => self.editor.kill(CursorMove::WordLeft),
            KeyCode::Backspace if ctrl || alt => self.editor.kill(CursorMove::WordLeft),
            KeyCode::Char('h') if ctrl => self.editor.kill(CursorMove::Left),
            KeyCode::Backspace => self.editor.kill(CursorMove::Left),
            KeyCode::Char('d') if ctrl => self.editor.kill(CursorMove::Right),
            KeyCode::Delete => self.editor.kill(CursorMove::Right),
            KeyCode::Char(letter) if !ctrl && !alt => {
                self.editor.insert(letter.encode_utf8(&mut [0; 4]))
            }
            _ => return Vec::new(),
        }
        self.update_popup()
    }

    /// Handles Ctrl-C: it stops the run, then leaves; without a run it clears the input, then
    /// leaves.
    pub(super) fn interrupt(&mut self) -> Vec<ChatCommand> {
        self.popup = None;
        match &mut self.phase {
            ChatPhase::Running(run) if run.activity == Activity::Cancelling => {
                vec![ChatCommand::Quit]
            }
            ChatPhase::Running(run) => {
                run.activity = Activity::Cancelling;
                self.forget_questions();
                vec![ChatCommand::Cancel]
            }
            ChatPhase::Idle if self.editor.is_empty() => vec![ChatCommand::Quit],
            ChatPhase::Idle => {
                self.editor.clear();
                Vec::new()
            }
        }
    }

    /// Handles a key of the completion list. Returns none if the list is closed or does not use
    /// this key.
    pub(super) fn on_popup_key(&mut self, code: KeyCode) -> Option<Vec<ChatCommand>> {
        let popup = self.popup.as_mut()?;
        match code {
            KeyCode::Esc => self.popup = None,
            KeyCode::Up => popup.previous(),
            KeyCode::Down => popup.next(),
            KeyCode::Tab | KeyCode::BackTab if popup.completions.len() > 1 => {
                match (popup.cycling, code) {
                    (false, _) => {}
                    (true, KeyCode::BackTab) => popup.previous(),
                    (true, _) => popup.next(),
                }
                popup.cycling = true;
                let text = popup
                    .selected_completion()
                    .map(|choice| choice.text.clone())
                    .unwrap_or_default();
                self.editor.replace(popup.start, &text);
            }
            KeyCode::Tab | KeyCode::BackTab => return Some(self.accept_completion()),
            KeyCode::Enter => {
                let word = &self.editor.text()[popup.start..self.editor.cursor()];
                if !popup.cycling
                    && popup
                        .selected_completion()
                        .is_some_and(|choice| choice.text == word)
                {
                    self.popup = None;
                    return None;
                }
                return Some(self.accept_completion());
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    pub(super) fn accept_completion(&mut self) -> Vec<ChatCommand> {
        let Some(popup) = self.popup.take() else {
            return Vec::new();
        };
        let Some(choice) = popup.selected_completion() else {
            return Vec::new();
        };
        self.editor
            .replace(popup.start, &format!("{}{}", choice.text, choice.suffix));
        // A directory can be continued at once; anything else is complete.
        if choice.text.ends_with('/') {
            self.update_popup()
        } else {
            Vec::new()
        }
    }

    /// Opens, updates or closes the completion list after an edit.
    pub(super) fn update_popup(&mut self) -> Vec<ChatCommand> {
        match complete::completion_target(self.editor.text(), self.editor.cursor()) {
            Some((range, CompletionKind::Command)) => {
                self.popup = CompletionPopup::new(
                    range.start,
                    complete::complete_command(&self.editor.text()[range]),
                );
                Vec::new()
            }
            Some((range, CompletionKind::Argument(command))) => {
                let choices = complete::complete_argument(
                    command,
                    &self.editor.text()[range.clone()],
                    &self.agents,
                );
                self.popup = CompletionPopup::new(range.start, choices);
                Vec::new()
            }
            Some((range, CompletionKind::Path(query))) => {
                // Until the new paths are found, earlier ones that still match are shown.
                let before = self.popup.take().filter(|popup| popup.start == range.start);
                self.popup = before.and_then(|popup| popup.narrowed(&query));
                vec![ChatCommand::FindPaths(query)]
            }
            None => {
                self.popup = None;
                Vec::new()
            }
        }
    }

    fn toggle_details(&mut self) {
        let chosen = self.selected;
        let wanted = |item: &&mut ChatItem| {
            matches!(item.body, ItemBody::Call(_)) && chosen.is_none_or(|id| item.id == id)
        };
        if let Some(item) = self.items.iter_mut().rev().find(wanted)
            && let ItemBody::Call(call) = &mut item.body
        {
            item.revision += 1;
            call.details = match call.details {
                Details::Hidden => Details::Shown,
                Details::Shown => Details::Hidden,
            };
        }
    }

    /// Selects the previous or next call; after the newest, none is selected.
    fn select_call(&mut self, step: SelectionStep) {
        let calls = self
            .items
            .iter()
            .filter(|item| matches!(item.body, ItemBody::Call(_)));
        let ids: Vec<u64> = calls.map(|item| item.id).collect();
        let at = self
            .selected
            .and_then(|id| ids.iter().position(|&call| call == id));
        let next = match (step, at) {
            (SelectionStep::Back, Some(at)) => Some(at.saturating_sub(1)),
            (SelectionStep::Back, None) => ids.len().checked_sub(1),
            (SelectionStep::Forward, Some(at)) => Some(at + 1),
            (SelectionStep::Forward, None) => None,
        };
        self.selected = next.and_then(|at| ids.get(at).copied());
    }

    pub(super) fn submit(&mut self) -> Vec<ChatCommand> {
        self.popup = None;
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.editor.take();
        self.scroll = 0;
        match (slash::parse_input(&text), &self.phase) {
            (ParsedInput::Input, ChatPhase::Idle) if self.queue.is_empty() => {
                self.submit_text(text)
            }
            // Messages that wait for a pause are sent together with it.
            (ParsedInput::Input, ChatPhase::Idle | ChatPhase::Running(_)) => {
                vec![ChatCommand::SendToRun(text)]
            }
            (ParsedInput::Queue(mode), _) => self.set_queue_mode(mode),
            (ParsedInput::Help, _) => self.show_info(slash::help()),
            (ParsedInput::Status, _) => self.show_info(self.status()),
            (ParsedInput::Invalid(why), _) => {
                self.note(Tone::Warning, why);
                Vec::new()
            }
            (ParsedInput::Run(ChatCommand::Quit), _) => vec![ChatCommand::Quit],
            (ParsedInput::Run(_), ChatPhase::Running(_)) => {
                self.note(
                    Tone::Warning,
                    format!(
                        "{} waits until the run has ended; Ctrl-C cancels it",
                        text.trim()
                    ),
                );
                Vec::new()
            }
            (
                ParsedInput::Run(
                    command @ (ChatCommand::Resume
                    | ChatCommand::Raise(_)
                    | ChatCommand::Compact(_)),
                ),
                ChatPhase::Idle,
            ) => {
                self.enter_running();
                vec![command]
            }
            (ParsedInput::Run(command), ChatPhase::Idle) => vec![command],
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum SelectionStep {
    Back,
    Forward,
}
