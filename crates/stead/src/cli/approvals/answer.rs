//! Answering questions, and resuming the run after the last one.

use super::args::AnswerArgs;
use super::{QuestionSelection, answerer, find_question, open_questions};
use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::open_agent::open_agent;
use crate::cli::print::{errln, outln, to_json};
use crate::cli::run::{RunRequest, exit_code, resume_command, resume_session};
use crate::cli::style::Style;
use serde_json::json;
use std::process::ExitCode;
use stead::agent::{AfterAnswer, ApprovalAnswer, ApprovalOutcome, ApprovalReply, OpenQuestion};
use stead::core::{SessionChange, SessionId};
use stead::workspace::ModelUse;

/// Gives one answer to all selected questions, which must be of one session, and resumes the run if
/// none is left.
pub(super) async fn answer(
    common: &GlobalArgs,
    env: &ProcessEnv,
    which: &QuestionSelection,
    answer: &ApprovalAnswer,
    args: AnswerArgs,
) -> Result<ExitCode, CliError> {
    let common = &common
        .with_model(args.turn.model.as_ref())
        .with_agent(args.turn.agent.as_ref());
    let after = match args.no_resume {
        true => AfterAnswer::Leave,
        false => AfterAnswer::Resume,
    };
    let model_use = match after {
        AfterAnswer::Leave => ModelUse::NotNeeded,
        AfterAnswer::Resume => ModelUse::UnlessRecorded,
    };
    let agent = open_agent(common, env, model_use).await?;
    let open = open_questions(&agent, args.session.as_deref()).await?;
    let (session, meant) = select_questions(&open, which)?;
    let replies: Vec<ApprovalReply> = meant
        .iter()
        .map(|question| build_reply(question, answer, args.hash.as_ref()))
        .collect();
    let by = answerer(common, env, args.by.as_ref());
    let mut session = agent.session(session);
    let answered = session
        .answer(&replies, &by, after, args.turn.wait())
        .await?;
    agent.sessions().flush().await;
    let goes_on = answered.still_open.is_empty() && after == AfterAnswer::Resume;
    if !args.json {
        print_answered(&answered, session.id(), &by, Style::stderr(env));
        if answered.still_open.is_empty() && !goes_on {
            errln!(
                "all questions are answered. Resume with: {}",
                resume_command(session.id(), common)
            );
        }
    }
    if !goes_on {
        if args.json {
            outln!("{}", to_json(&summary(&answered, None))?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let id = session.id().clone();
    // The session decides which agent acts: the question may be a subagent's.
    let set = args
        .turn
        .session_changes()
        .into_iter()
        .filter(|set| !matches!(set.change, SessionChange::Agent { .. }))
        .collect();
    let request = RunRequest {
        turn: args.turn,
        output: if args.json { None } else { Some(args.output) },
        session_changes: set,
    };
    let report = resume_session(common, env, &agent, id, request).await?;
    if args.json {
        let report = serde_json::to_value(&report).map_err(anyhow::Error::from)?;
        outln!("{}", to_json(&summary(&answered, Some(report)))?);
    }
    Ok(exit_code(&report))
}

fn build_reply(
    question: &OpenQuestion,
    answer: &ApprovalAnswer,
    hash: Option<&String>,
) -> ApprovalReply {
    let args_hash = hash.unwrap_or(&question.args_hash).clone();
    ApprovalReply {
        id: question.id.clone(),
        args_hash,
        answer: answer.clone(),
    }
}

/// Returns the selected questions, and their session.
fn select_questions(
    open: &[OpenQuestion],
    which: &QuestionSelection,
) -> Result<(SessionId, Vec<OpenQuestion>), CliError> {
    let meant = match which {
        QuestionSelection::All => open.to_vec(),
        QuestionSelection::Ids(ids) => ids
            .iter()
            .map(|id| find_question(open, id))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let Some(first) = meant.first() else {
        return Err(CliError::usage(
            "no question is open there; `stead approvals list` shows the open ones",
        ));
    };
    if let Some(other) = meant
        .iter()
        .find(|question| question.session != first.session)
    {
        return Err(CliError::usage(format!(
            "{} is of session {}, {} of session {}; answer one session at a time",
            first.id, first.session, other.id, other.session
        )));
    }
    Ok((first.session.clone(), meant))
}

fn print_answered(answered: &ApprovalOutcome, session: &SessionId, by: &str, style: Style) {
    for decision in &answered.decisions {
        errln!(
            "{}",
            style.dim(&format!(
                "{}: {} by {by}",
                decision.id,
                decision.kind().as_str()
            ))
        );
    }
    for grant in &answered.grants {
        let text = format!(
            "allowed from now on: {grant}; `stead approvals revoke {}` revokes it",
            grant.id
        );
        errln!("{}", text);
    }
    match answered.still_open.len() {
        0 => {}
        1 => errln!(
            "1 more question of session {session} waits; the run resumes when it is answered"
        ),
        n => errln!(
            "{n} more questions of session {session} wait; the run resumes when all are answered"
        ),
    }
}

fn summary(answered: &ApprovalOutcome, run: Option<serde_json::Value>) -> serde_json::Value {
    let decided = answered.decisions.iter().map(|decision| {
        json!({"id": decision.id, "decision": decision.kind(), "by": decision.by, "args_hash": decision.args_hash})
    });
    json!({
        "answered": decided.collect::<Vec<_>>(),
        "granted": answered.grants,
        "waiting": answered.still_open,
        "run": run,
    })
}
