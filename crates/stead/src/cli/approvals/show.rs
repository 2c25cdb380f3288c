//! Printing questions that wait for a person.
//!
//! Effects: the clock, the environment, the terminal, workspace files (reads), the local disk
//! (reads), the store (reads), the journal (reads).

use crate::cli::args::GlobalArgs;
use crate::cli::error::CliError;
use crate::cli::print::{outln, to_json};
use crate::cli::render::call_line;
use crate::cli::run::agent_flags;
use crate::cli::style::Style;
use serde_json::Value;
use std::sync::Arc;
use stead::agent::{Agent, OpenQuestion};
use stead::core::DecisionKind;

/// Prints a question on two lines.
pub(super) fn print_question_line(question: &OpenQuestion, style: Style) {
    let call = call_line(&question.tool, &question.args);
    let session = format!("session {}", question.session);
    outln!(
        "{}  {}  {}",
        style.accent(&question.id),
        call,
        style.dim(&session)
    );
    let takes = allowed_answers(question);
    outln!(
        "  {}",
        style.dim(&format!(
            "{} · {takes}{}",
            question.rule,
            answer_limits(question)
        ))
    );
    if let Some(tool) = &question.called_by {
        outln!("  {}", style.dim(&format!("a nested call of {tool}")));
    }
}

/// Returns the kinds of answers that a question accepts.
fn allowed_answers(question: &OpenQuestion) -> String {
    question
        .terms
        .allowed()
        .iter()
        .map(|kind| kind.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns who may answer, and until when.
fn answer_limits(question: &OpenQuestion) -> String {
    let by = match question.terms.answerers.as_slice() {
        [] => String::new(),
        names => format!(" · by {}", names.join(", ")),
    };
    let now = jiff::Timestamp::now();
    let until = match question.terms.expires {
        None => String::new(),
        Some(at) if at <= now => format!(" · expired at {at:.0}"),
        Some(at) => format!(" · until {at:.0}"),
    };
    format!("{by}{until}")
}

/// Prints a whole question.
pub(super) async fn show(
    agent: &Arc<Agent>,
    question: &OpenQuestion,
    as_json: bool,
    style: Style,
) -> Result<(), CliError> {
    let mut session = agent.session(question.session.clone());
    session.load().await?;
    let always = session.always_scope(&question.id).await?;
    if as_json {
        let mut value = serde_json::to_value(question).map_err(anyhow::Error::from)?;
        if let (Value::Object(fields), Some(always)) = (&mut value, &always) {
            fields.insert(
                "always".to_owned(),
                serde_json::to_value(always).map_err(anyhow::Error::from)?,
            );
        }
        outln!("{}", to_json(&value)?);
        return Ok(());
    }
    print_question_line(question, style);
    if let Some(parent) = &question.parent {
        outln!(
            "  {}",
            style.dim(&format!("a subagent of session {parent} asks"))
        );
    }
    let args = serde_json::to_string_pretty(&question.args).map_err(anyhow::Error::from)?;
    outln!("\n{}", args);
    if let Some(preview) = &question.terms.preview {
        outln!("\n{}", colour_diff(preview, style).trim_end());
    }
    if let Some(always) = always {
        outln!(
            "\n{}",
            style.dim(&format!("--always would allow {} {always}", question.tool))
        );
    }
    Ok(())
}

/// Returns a preview in the colours of a diff.
pub(crate) fn colour_diff(preview: &str, style: Style) -> String {
    let paint = |line: &str| match line.as_bytes().first() {
        Some(b'+') => style.good(line),
        Some(b'-') => style.bad(line),
        Some(b'@') => style.accent(line),
        Some(_) | None => line.to_owned(),
    };
    preview
        .lines()
        .map(|line| format!("{}\n", paint(line)))
        .collect()
}

/// Returns the pending questions after a run has parked, with the commands that answer them.
pub(crate) fn waiting_summary(open: &[OpenQuestion], common: &GlobalArgs) -> String {
    /// The maximum number of questions shown; more would hide the other output.
    const MAX_SHOWN: usize = 10;
    let mut text = String::new();
    let flags = agent_flags(common);
    for question in open.iter().take(MAX_SHOWN) {
        let call = call_line(&question.tool, &question.args);
        text.push_str(&format!("waits: {} {}\n", question.id, call));
        for kind in question.terms.allowed() {
            let rest = match kind {
                DecisionKind::Approve | DecisionKind::Reject => "",
                DecisionKind::Edit => " 'JSON'",
                DecisionKind::Respond => " 'RESULT'",
            };
            let kind = kind.as_str();
            let id = &question.id;
            let session = &question.session;
            text.push_str(&format!(
                "  stead approvals {kind} {id}{rest} -s {session}{flags}\n"
            ));
        }
    }
    if open.len() > MAX_SHOWN {
        text.push_str(&format!(
            "and {} more: stead approvals list{flags}\n",
            open.len() - MAX_SHOWN
        ));
    }
    text
}
