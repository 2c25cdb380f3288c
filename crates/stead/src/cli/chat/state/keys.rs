//! What keys and pasted text change, and what they command.

use super::super::complete::{self, Popup, Wanted};
use super::super::editor::Move;
use super::super::slash::{self, Typed};
use super::super::transcript::{Body, Details, Item, Tone};
use super::{Chat, Command, Doing, Phase};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use stead::agent::Answer;
use stead::core::DecisionKind;

impl Chat {
    pub(in crate::cli::chat) fn on_paste(&mut self, text: &str) -> Vec<Command> {
        self.editor.insert(text);
        self.suggest()
    }

    pub(in crate::cli::chat) fn on_key(&mut self, key: KeyEvent) -> Vec<Command> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        self.tab_waits = false;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        if let (KeyCode::Char('c'), true) = (key.code, ctrl) {
            return self.interrupt();
        }
        if let (KeyCode::Char('d'), true, true) = (key.code, ctrl, self.editor.is_empty()) {
            return vec![Command::Quit];
        }
        if let (KeyCode::Char(letter), false, false) = (key.code, ctrl, alt)
            && let Some(answer) = self.answer_for(letter)
        {
            self.question = None;
            return vec![Command::Answer(answer)];
        }
        if let Some(commands) = self.on_popup_key(key.code) {
            return commands;
        }
        match key.code {
            KeyCode::Enter if alt || shift || ctrl => self.editor.insert("\n"),
            KeyCode::Char('j') if ctrl => self.editor.insert("\n"),
            KeyCode::Enter => return self.submit(),
            KeyCode::Tab => {
                self.tab_waits = true;
                return Vec::new();
            }
            KeyCode::PageUp => self.scroll += self.page,
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::Char('o') if ctrl => self.toggle_details(),
            KeyCode::Up if ctrl => self.choose(Step::Back),
            KeyCode::Down if ctrl => self.choose(Step::On),
            KeyCode::Up => self.editor.up(),
            KeyCode::Down => self.editor.down(),
            KeyCode::Left if ctrl || alt => self.editor.go(Move::WordLeft),
            KeyCode::Right if ctrl || alt => self.editor.go(Move::WordRight),
            KeyCode::Char('b') if alt => self.editor.go(Move::WordLeft),
            KeyCode::Char('f') if alt => self.editor.go(Move::WordRight),
            KeyCode::Left => self.editor.go(Move::Left),
            KeyCode::Right => self.editor.go(Move::Right),
            KeyCode::Home => self.editor.go(Move::LineStart),
            KeyCode::End => self.editor.go(Move::LineEnd),
            KeyCode::Char('a') if ctrl => self.editor.go(Move::LineStart),
            KeyCode::Char('e') if ctrl => self.editor.go(Move::LineEnd),
            KeyCode::Char('u') if ctrl => self.editor.kill(Move::LineStart),
            KeyCode::Char('k') if ctrl => self.editor.kill(Move::LineEnd),
            KeyCode::Char('w') if ctrl => self.editor.kill(Move::WordLeft),
            KeyCode::Backspace if ctrl || alt => self.editor.kill(Move::WordLeft),
            KeyCode::Char('h') if ctrl => self.editor.kill(Move::Left),
            KeyCode::Backspace => self.editor.kill(Move::Left),
            KeyCode::Char('d') if ctrl => self.editor.kill(Move::Right),
            KeyCode::Delete => self.editor.kill(Move::Right),
            KeyCode::Char(letter) if !ctrl && !alt => {
                self.editor.insert(letter.encode_utf8(&mut [0; 4]))
            }
            _ => return Vec::new(),
        }
        self.suggest()
    }

    /// Ctrl-C: stops the run, then leaves; with nothing to stop it clears the input, then leaves.
    pub(super) fn interrupt(&mut self) -> Vec<Command> {
        self.popup = None;
        match &mut self.phase {
            Phase::Running(run) if run.doing == Doing::Cancelling => vec![Command::Quit],
            Phase::Running(run) => {
                run.doing = Doing::Cancelling;
                self.question = None;
                vec![Command::Cancel]
            }
            Phase::Idle if self.editor.is_empty() => vec![Command::Quit],
            Phase::Idle => {
                self.editor.clear();
                Vec::new()
            }
        }
    }

    /// One key answers a question, but never a key that goes on with something half written.
    pub(super) fn answer_for(&self, letter: char) -> Option<Answer> {
        let question = self.question.as_ref().filter(|_| self.editor.is_empty())?;
        let takes = |kind| question.terms.takes(kind);
        match letter.to_ascii_lowercase() {
            'y' => takes(DecisionKind::Approve).then_some(Answer::Yes),
            'n' => takes(DecisionKind::Reject).then_some(Answer::no()),
            'a' => (takes(DecisionKind::Approve) && question.always.is_some())
                .then_some(Answer::Always),
            // Arguments are changed, and results given, where there is room for them: `stead
            // approvals`.
            'l' | 'e' => Some(Answer::Later),
            _ => None,
        }
    }

    /// Keys that the list of choices takes; none if it is closed or does not want this one.
    pub(super) fn on_popup_key(&mut self, code: KeyCode) -> Option<Vec<Command>> {
        let popup = self.popup.as_mut()?;
        match code {
            KeyCode::Esc => self.popup = None,
            KeyCode::Up => popup.previous(),
            KeyCode::Down => popup.next(),
            KeyCode::Tab | KeyCode::BackTab if popup.choices.len() > 1 => {
                match (popup.cycling, code) {
                    (false, _) => {}
                    (true, KeyCode::BackTab) => popup.previous(),
                    (true, _) => popup.next(),
                }
                popup.cycling = true;
                let text = popup
                    .choice()
                    .map(|choice| choice.text.clone())
                    .unwrap_or_default();
                self.editor.replace(popup.start, &text);
            }
            KeyCode::Tab | KeyCode::BackTab => return Some(self.accept()),
            KeyCode::Enter => {
                let word = &self.editor.text()[popup.start..self.editor.cursor()];
                if !popup.cycling && popup.choice().is_some_and(|choice| choice.text == word) {
                    self.popup = None;
                    return None;
                }
                return Some(self.accept());
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    pub(super) fn accept(&mut self) -> Vec<Command> {
        let Some(popup) = self.popup.take() else {
            return Vec::new();
        };
        let Some(choice) = popup.choice() else {
            return Vec::new();
        };
        self.editor
            .replace(popup.start, &format!("{}{}", choice.text, choice.after));
        // A directory can be gone into at once; anything else is complete.
        if choice.text.ends_with('/') {
            self.suggest()
        } else {
            Vec::new()
        }
    }

    /// Opens, renews or closes the list of choices after an edit.
    pub(super) fn suggest(&mut self) -> Vec<Command> {
        match complete::target(self.editor.text(), self.editor.cursor()) {
            Some((range, Wanted::Command)) => {
                self.popup =
                    Popup::new(range.start, complete::commands(&self.editor.text()[range]));
                Vec::new()
            }
            Some((range, Wanted::Argument(command))) => {
                let choices =
                    complete::arguments(command, &self.editor.text()[range.clone()], &self.agents);
                self.popup = Popup::new(range.start, choices);
                Vec::new()
            }
            Some((range, Wanted::Path(query))) => {
                // Until the new paths are there, those of before that still fit are shown.
                let before = self.popup.take().filter(|popup| popup.start == range.start);
                self.popup = before.and_then(|popup| popup.narrowed(&query));
                vec![Command::Lookup(query)]
            }
            None => {
                self.popup = None;
                Vec::new()
            }
        }
    }

    fn toggle_details(&mut self) {
        let chosen = self.chosen;
        let wanted = |item: &&mut Item| {
            matches!(item.body, Body::Call(_)) && chosen.is_none_or(|id| item.id == id)
        };
        if let Some(item) = self.items.iter_mut().rev().find(wanted)
            && let Body::Call(call) = &mut item.body
        {
            item.revision += 1;
            call.details = match call.details {
                Details::Hidden => Details::Shown,
                Details::Shown => Details::Hidden,
            };
        }
    }

    /// Chooses the call before or after; after the newest, none is chosen.
    fn choose(&mut self, step: Step) {
        let calls = self
            .items
            .iter()
            .filter(|item| matches!(item.body, Body::Call(_)));
        let ids: Vec<u64> = calls.map(|item| item.id).collect();
        let at = self
            .chosen
            .and_then(|id| ids.iter().position(|&call| call == id));
        let next = match (step, at) {
            (Step::Back, Some(at)) => Some(at.saturating_sub(1)),
            (Step::Back, None) => ids.len().checked_sub(1),
            (Step::On, Some(at)) => Some(at + 1),
            (Step::On, None) => None,
        };
        self.chosen = next.and_then(|at| ids.get(at).copied());
    }

    pub(super) fn submit(&mut self) -> Vec<Command> {
        self.popup = None;
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let text = self.editor.take();
        self.scroll = 0;
        match (slash::parse(&text), &self.phase) {
            (Typed::Input, Phase::Idle) if self.inbox.is_empty() => self.begin(text),
            // What waits for a moment of silence is said together with it.
            (Typed::Input, Phase::Idle | Phase::Running(_)) => vec![Command::Tell(text)],
            (Typed::Queue(mode), _) => self.queue(mode),
            (Typed::Help, _) => self.say_info(slash::help()),
            (Typed::Status, _) => self.say_info(self.status()),
            (Typed::Wrong(why), _) => {
                self.note(Tone::Warning, why);
                Vec::new()
            }
            (Typed::Do(Command::Quit), _) => vec![Command::Quit],
            (Typed::Do(_), Phase::Running(_)) => {
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
                Typed::Do(command @ (Command::Resume | Command::Raise(_) | Command::Compact(_))),
                Phase::Idle,
            ) => {
                self.run();
                vec![command]
            }
            (Typed::Do(command), Phase::Idle) => vec![command],
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Back,
    On,
}
