//! Questions on a terminal, one line each.

use futures_util::future::BoxFuture;
use stead::agent::{ApprovalAnswer, ApprovalQuestion, Approver};
use stead::core::DecisionKind;

/// The person at the terminal.
pub(crate) struct TerminalApprover {
    name: String,
}

impl TerminalApprover {
    pub(crate) fn new(name: String) -> Self {
        Self { name }
    }
}

impl Approver for TerminalApprover {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            loop {
                let prompt = question_prompt(question);
                let read = move || {
                    crate::cli::print::err(format_args!("{prompt}"));
                    let mut line = String::new();
                    std::io::stdin()
                        .read_line(&mut line)
                        .map(|bytes| (bytes > 0).then_some(line))
                };
                let Ok(Ok(Some(line))) = tokio::task::spawn_blocking(read).await else {
                    return ApprovalAnswer::Later;
                };
                match parse_answer(&line) {
                    Ok(answer) => return answer,
                    Err(why) => crate::cli::print::errln!("{why}"),
                }
            }
        })
    }
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
