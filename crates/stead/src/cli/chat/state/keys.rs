//! Applying keys and pasted text to the state of `stead chat`.
//!
//! Effects: the clock.

use super::super::complete::{self, CompletionKind, CompletionPopup};
use super::super::editor::{CursorMove, Editor};
use super::super::slash::{self, ParsedInput};
use super::super::transcript::{ChatItem, Details, ItemBody, Tone};
use super::{Activity, Chat, ChatCommand, ChatPhase};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use stead::core::PermissionMode;

impl Chat {
    pub(in crate::cli::chat) fn on_paste(&mut self, text: &str) -> Vec<ChatCommand> {
        let shown = self.pasted.shown(text);
        self.editor.insert(&shown);
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
        if let Some(commands) = self.on_picker_key(key) {
            return commands;
        }
        if let Some(commands) = self.on_search_key(key) {
            return commands;
        }
        if let (KeyCode::Char('c'), true) = (key.code, ctrl) {
            return self.interrupt();
        }
        if std::mem::take(&mut self.ctrl_x) && ctrl && key.code == KeyCode::Char('e') {
            return vec![ChatCommand::EditInput];
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
            KeyCode::Esc => return self.stop_run(),
            KeyCode::BackTab => return self.next_mode(),
            KeyCode::Char('x') if ctrl => {
                self.ctrl_x = true;
                return Vec::new();
            }
            KeyCode::Char('g') if ctrl => return vec![ChatCommand::EditInput],
            KeyCode::Char('r') if ctrl => {
                self.popup = None;
                self.search_history();
                return Vec::new();
            }
            KeyCode::PageUp => self.scroll += self.page,
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::Char('o') if ctrl => self.toggle_details(),
            KeyCode::Up if ctrl => self.select_call(SelectionStep::Back),
            KeyCode::Down if ctrl => self.select_call(SelectionStep::Forward),
            KeyCode::Up => self.recall(Editor::up),
            KeyCode::Down => self.recall(Editor::down),
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
            KeyCode::Backspace => self.remove_left(),
            KeyCode::Char('d') if ctrl => self.editor.kill(CursorMove::Right),
            KeyCode::Delete => self.editor.kill(CursorMove::Right),
            KeyCode::Char(letter) if !ctrl && !alt => {
                self.editor.insert(letter.encode_utf8(&mut [0; 4]))
            }
            _ => return Vec::new(),
        }
        self.update_popup()
    }

    /// Returns the input that a command of the workspace stands for. Commands of the chat go before.
    fn custom_input(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if slash::is_command(name) {
            return None;
        }
        let command = self.custom.iter().find(|command| command.name == name)?;
        Some(command.expanded(arguments))
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
            ChatPhase::Idle if self.own_commands > 0 => vec![ChatCommand::StopOwnCommands],
            ChatPhase::Idle if self.editor.is_empty() => vec![ChatCommand::Quit],
            ChatPhase::Idle => {
                self.editor.clear();
                Vec::new()
            }
        }
    }

    /// Stops the run, or the commands of the person.
    fn stop_run(&mut self) -> Vec<ChatCommand> {
        match &self.phase {
            ChatPhase::Running(run) if run.activity != Activity::Cancelling => self.interrupt(),
            ChatPhase::Idle if self.own_commands > 0 => vec![ChatCommand::StopOwnCommands],
            ChatPhase::Running(_) | ChatPhase::Idle => Vec::new(),
        }
    }

    /// Changes to the next permission mode that a key reaches. Others are set with /mode.
    fn next_mode(&mut self) -> Vec<ChatCommand> {
        let next = match self.info.mode {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Explore,
            PermissionMode::Explore | PermissionMode::DontAsk | PermissionMode::Bypass => {
                PermissionMode::Default
            }
        };
        match self.phase {
            ChatPhase::Idle => vec![ChatCommand::Mode(Some(next))],
            ChatPhase::Running(_) => {
                let text = "the mode is changed between runs; Esc stops this one";
                self.note(Tone::Warning, text);
                Vec::new()
            }
        }
    }

    /// Removes what is left of the cursor: a label that stands for a long text goes whole.
    fn remove_left(&mut self) {
        let before = &self.editor.text()[..self.editor.cursor()];
        match self.pasted.label_before(before) {
            Some(bytes) => self.editor.remove_before(bytes),
            None => self.editor.kill(CursorMove::Left),
        }
    }

    /// Moves through the input and the history. A long input of the history is shown as a label.
    fn recall(&mut self, step: fn(&mut Editor)) {
        let before = self.editor.text().to_owned();
        step(&mut self.editor);
        if self.editor.text() == before {
            return;
        }
        let found = self.editor.text().to_owned();
        let shown = self.pasted.shown(&found);
        if shown != found {
            self.editor.show_instead(shown);
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
                    complete::complete_command(&self.editor.text()[range], &self.custom),
                );
                Vec::new()
            }
            Some((range, CompletionKind::Argument(command))) => {
                let choices = complete::complete_argument(
                    command,
                    &self.editor.text()[range.clone()],
                    &self.agents,
                    &self.session_ids,
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
        let pasted = &self.pasted;
        let text = self.editor.take(|typed| pasted.expanded(typed));
        self.submitted.push(text.clone());
        self.scroll = 0;
        self.submit_input(text)
    }

    fn submit_input(&mut self, text: String) -> Vec<ChatCommand> {
        let text = match self.custom_input(&text) {
            Some(expanded) => expanded,
            None => text,
        };
        match (slash::parse_input(&text), &self.phase) {
            (ParsedInput::Input, ChatPhase::Idle) if self.queue.is_empty() => {
                self.submit_text(text)
            }
            // Messages that wait for a pause are sent together with it.
            (ParsedInput::Input, ChatPhase::Idle | ChatPhase::Running(_)) => {
                vec![ChatCommand::SendToRun(text)]
            }
            (ParsedInput::Queue(mode), _) => self.set_queue_mode(mode),
            (ParsedInput::Help, _) => self.show_info(slash::help(&self.custom)),
            (ParsedInput::Status, _) => self.show_info(self.status()),
            (ParsedInput::Run(command @ ChatCommand::Look(_)), _) => vec![command],
            (ParsedInput::Invalid(why), _) => {
                self.note(Tone::Warning, why);
                Vec::new()
            }
            (ParsedInput::Run(ChatCommand::Quit), _) => vec![ChatCommand::Quit],
            (ParsedInput::Run(_), ChatPhase::Running(_)) => {
                self.note(
                    Tone::Warning,
                    format!(
                        "{} waits until the run has ended; Esc stops it",
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
