//! Answering questions with keys.
//!
//! Effects: the clock.

use super::super::transcript::Tone;
use super::{Chat, ChatCommand};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};
use stead::agent::ApprovalAnswer;
use stead::core::DecisionKind;

/// The time after a question has appeared in which keys are text: the person was typing, and has not
/// read it yet.
pub(in crate::cli::chat) const READING_TIME: Duration = Duration::from_millis(500);

/// How far the answer to the question on the screen is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli::chat) enum AnswerStage {
    /// No key of it was pressed.
    #[default]
    Choosing,
    /// The next key confirms or drops a permission for good.
    ConfirmingAlways,
    /// The input is the reason of a no.
    GivingReason,
}

/// The answer to the question on the screen.
#[derive(Debug)]
pub(in crate::cli::chat) struct Answering {
    pub(in crate::cli::chat) stage: AnswerStage,
    asked_at: Instant,
}

impl Answering {
    /// Begins with a question that appears now.
    pub(super) fn begin() -> Self {
        Self {
            stage: AnswerStage::default(),
            asked_at: Instant::now(),
        }
    }

    /// Begins with a question that appeared long ago.
    #[cfg(test)]
    pub(in crate::cli::chat) fn of_old_question() -> Self {
        Self {
            asked_at: Instant::now() - READING_TIME,
            ..Self::begin()
        }
    }
}

impl Chat {
    /// Handles a key of the question on the screen. Returns none if the key is meant for the input.
    pub(super) fn on_question_key(&mut self, key: KeyEvent) -> Option<Vec<ChatCommand>> {
        self.question.as_ref()?;
        let is_plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match self.answering.stage {
            AnswerStage::Choosing => match key.code {
                KeyCode::Char(letter) if is_plain => self.choose_answer(letter),
                _ => None,
            },
            AnswerStage::ConfirmingAlways => {
                self.answering.stage = AnswerStage::Choosing;
                match key.code {
                    KeyCode::Char('y' | 'Y') if is_plain => self.answer(ApprovalAnswer::Always),
                    _ => Some(Vec::new()),
                }
            }
            AnswerStage::GivingReason => match key.code {
                KeyCode::Enter if is_plain && !key.modifiers.contains(KeyModifiers::SHIFT) => {
                    self.popup = None;
                    let reason = self.whole_input().trim().to_owned();
                    self.editor.clear();
                    let reason = (!reason.is_empty()).then_some(reason);
                    self.answer(ApprovalAnswer::No { reason })
                }
                KeyCode::Esc => {
                    self.answering.stage = AnswerStage::Choosing;
                    self.editor.clear();
                    Some(Vec::new())
                }
                KeyCode::Backspace if self.editor.is_empty() => {
                    self.answering.stage = AnswerStage::Choosing;
                    Some(Vec::new())
                }
                _ => None,
            },
        }
    }

    /// Handles a letter while an answer is chosen. A letter that continues a partial input is no
    /// answer.
    fn choose_answer(&mut self, letter: char) -> Option<Vec<ChatCommand>> {
        let question = self.question.as_ref()?;
        if !self.editor.is_empty() || self.answering.asked_at.elapsed() < READING_TIME {
            return None;
        }
        let takes = |kind| question.terms.accepts(kind);
        match letter {
            'y' | 'Y' if takes(DecisionKind::Approve) => self.answer(ApprovalAnswer::Yes),
            'n' | 'N' if takes(DecisionKind::Reject) => {
                self.answering.stage = AnswerStage::GivingReason;
                Some(Vec::new())
            }
            // Small letters begin sentences.
            'A' if takes(DecisionKind::Approve) && question.always_scope.is_some() => {
                self.answering.stage = AnswerStage::ConfirmingAlways;
                Some(Vec::new())
            }
            // Arguments are edited, and results given, where there is room for them: in `stead
            // approvals`.
            'l' | 'L' | 'e' | 'E' => self.answer(ApprovalAnswer::Later),
            _ => None,
        }
    }

    fn answer(&mut self, answer: ApprovalAnswer) -> Option<Vec<ChatCommand>> {
        let question = self.question.take()?;
        if let ApprovalAnswer::No {
            reason: Some(reason),
        } = &answer
        {
            self.note(Tone::Info, format!("no: {reason}"));
        }
        self.ask_next();
        let reply = question.reply(answer);
        let session = question.session;
        Some(vec![ChatCommand::Answer { session, reply }])
    }
}
