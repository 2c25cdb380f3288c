//! Asking questions of a run on the terminal, each answered by one line.
//!
//! Effects: the terminal.

use crate::cli::print::{err, errln};
use std::collections::VecDeque;
use std::io::BufRead;
use stead::core::{
    ApprovalAnswer, ApprovalQuestion, ApprovalReply, DecisionKind, Event, EventKind, SessionId,
};
use tokio::sync::mpsc;

/// The lines that wait to be read as answers.
const LINES_CAPACITY: usize = 16;

/// Asks the person at the terminal, one question after another.
#[derive(Default)]
pub(crate) struct TerminalQuestions {
    /// The questions that wait for an answer; the first is on the screen.
    open: VecDeque<ApprovalQuestion>,
    /// The lines that the person types, from the first question on.
    lines: Option<mpsc::Receiver<String>>,
}

/// Answers to a question of a session.
pub(crate) struct TypedAnswer {
    pub(crate) session: SessionId,
    pub(crate) reply: ApprovalReply,
}

impl TerminalQuestions {
    /// Asks the questions that a run waits for, and forgets those that were answered elsewhere. `own`
    /// is the session of the run.
    pub(crate) fn on_event(&mut self, own: &SessionId, event: &Event) {
        let asking = event.child.as_ref().map_or(own, |child| &child.session);
        match &event.kind {
            EventKind::Awaiting { questions } => self.ask(questions.clone()),
            EventKind::Decision { id, .. } | EventKind::ToolEnded { id, .. } => {
                self.forget(asking, id);
            }
            _ => {}
        }
    }

    /// Asks questions, after those that are open.
    pub(crate) fn ask(&mut self, questions: Vec<ApprovalQuestion>) {
        let was_idle = self.open.is_empty();
        self.open.extend(questions);
        if was_idle {
            self.show_first();
        }
    }

    /// Forgets a question that was answered elsewhere, or is no longer asked.
    fn forget(&mut self, session: &SessionId, id: &str) {
        let is_meant =
            |question: &ApprovalQuestion| question.session == *session && question.id == id;
        let is_shown = self.open.front().is_some_and(is_meant);
        self.open.retain(|question| !is_meant(question));
        if is_shown {
            errln!("\n(answered elsewhere)");
            self.show_first();
        }
    }

    /// Waits for the answer to the question on the screen; forever if there is none. Dropping the
    /// future loses nothing.
    pub(crate) async fn answer(&mut self) -> TypedAnswer {
        loop {
            if self.open.is_empty() {
                return std::future::pending().await;
            }
            let lines = self.lines.get_or_insert_with(read_lines);
            let line = lines.recv().await;
            // At the end of the input nobody answers any more.
            let answer = match line
                .as_deref()
                .map_or(Ok(ApprovalAnswer::Later), parse_answer)
            {
                Ok(answer) => answer,
                Err(why) => {
                    errln!("{why}");
                    self.show_first();
                    continue;
                }
            };
            let Some(question) = self.open.pop_front() else {
                continue;
            };
            self.show_first();
            return TypedAnswer {
                reply: question.reply(answer),
                session: question.session,
            };
        }
    }

    fn show_first(&self) {
        if let Some(question) = self.open.front() {
            err(format_args!("{}", question_prompt(question)));
        }
    }
}

/// Reads lines of standard input in a thread of its own, which ends with the process: a read cannot
/// be given up.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES_CAPACITY);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn question_prompt(question: &ApprovalQuestion) -> String {
    let mut ways: Vec<&str> = Vec::new();
    for kind in question.terms.allowed() {
        ways.push(match kind {
            DecisionKind::Approve => "[y]es",
            DecisionKind::Reject => "[n]o [why]",
            DecisionKind::Edit => "[e]dit JSON",
            DecisionKind::Respond => "[r]espond RESULT",
        });
    }
    let always = question
        .always_scope
        .as_ref()
        .map(|always| format!("[a]lways ({always})"));
    let ways: Vec<&str> = ways
        .into_iter()
        .chain(always.as_deref())
        .chain(["[l]ater"])
        .collect();
    let by = question.called_by.as_ref();
    let by = by.map_or(String::new(), |tool| format!("{tool} calls: "));
    format!(
        "\n{by}{} {}\n  ({})\nallow? {}: ",
        question.tool,
        question.args,
        question.rule,
        ways.join(" / ")
    )
}

/// Parses a line as an answer, or returns what is wrong with it.
fn parse_answer(line: &str) -> Result<ApprovalAnswer, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let alone = |answer: ApprovalAnswer| match rest.is_empty() {
        true => Ok(answer),
        false => Err(format!("{word:?} takes no text after it")),
    };
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => alone(ApprovalAnswer::Yes),
        "a" | "always" => alone(ApprovalAnswer::Always),
        "l" | "later" | "" => alone(ApprovalAnswer::Later),
        "n" | "no" => Ok(ApprovalAnswer::No {
            reason: (!rest.is_empty()).then(|| rest.to_owned()),
        }),
        "e" | "edit" => serde_json::from_str(rest)
            .map(ApprovalAnswer::Edit)
            .map_err(|error| format!("no JSON: {error}")),
        "r" | "respond" if !rest.is_empty() => Ok(ApprovalAnswer::Respond(rest.to_owned())),
        "r" | "respond" => Err("add the result: r RESULT".to_owned()),
        _ => Err(format!("{word:?} is not an answer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_is_one_answer() {
        let words = |text: &str| ApprovalAnswer::No {
            reason: Some(text.to_owned()),
        };
        #[rustfmt::skip]
        let table = [
            ("y\n", Ok(ApprovalAnswer::Yes)), ("YES", Ok(ApprovalAnswer::Yes)), ("n", Ok(ApprovalAnswer::no())),
            ("no not there ", Ok(words("not there"))), ("a", Ok(ApprovalAnswer::Always)), ("", Ok(ApprovalAnswer::Later)),
            ("l", Ok(ApprovalAnswer::Later)), ("e {\"a\": 1}", Ok(ApprovalAnswer::Edit(json!({"a": 1})))),
            ("r it is done", Ok(ApprovalAnswer::Respond("it is done".to_owned()))),
            ("y but later", Err("\"y\" takes no text after it".to_owned())),
            ("r", Err("add the result: r RESULT".to_owned())),
            ("yep", Err("\"yep\" is not an answer".to_owned())),
        ];
        for (line, expected) in table {
            assert_eq!(parse_answer(line), expected, "{line:?}");
        }
        assert!(parse_answer("e {").is_err());
    }
}
