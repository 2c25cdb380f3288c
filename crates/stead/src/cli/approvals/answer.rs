//! Answers, and the run that goes on once the last question is answered.

use super::args::AnswerArgs;
use super::{Which, answerer, json, open_questions, pick};
use crate::cli::args::Common;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::open::{Needs, open_agent};
use crate::cli::print::{errln, outln};
use crate::cli::run::{Way, exit_code, resume_command, take_up};
use crate::cli::style::Style;
use serde_json::json;
use std::process::ExitCode;
use stead::agent::{Answer, Answered, OpenQuestion, Reply};
use stead::core::{Change, SessionId};

/// Gives one answer to all questions that are meant, which must be of one session, and goes on if
/// none is left.
pub(super) async fn answer(
    common: &Common,
    env: &Env,
    which: &Which,
    answer: &Answer,
    args: AnswerArgs,
) -> Result<ExitCode, CliError> {
    let common = &common
        .with_model(args.turn.model.as_ref())
        .with_agent(args.turn.agent.as_ref());
    // The answer must not depend on a model that can be asked.
    let agent = open_agent(common, env, Needs::FilesOnly).await?;
    let open = open_questions(&agent, args.session.as_deref()).await?;
    let (session, meant) = meant(&open, which)?;
    let replies: Vec<Reply> = meant
        .iter()
        .map(|question| reply(question, answer, args.hash.as_ref()))
        .collect();
    let by = answerer(common, env, args.by.as_ref());
    let mut session = agent.session(session);
    let answered = session.answer(&replies, &by, args.turn.wait()).await?;
    agent.sessions().flush().await;
    let goes_on = answered.open.is_empty() && !args.no_resume;
    if !args.json {
        tell(&answered, session.id(), &by, Style::stderr(env));
        if answered.open.is_empty() && !goes_on {
            errln!(
                "all is answered. Go on with: {}",
                resume_command(session.id(), common)
            );
        }
    }
    if !goes_on {
        if args.json {
            outln!("{}", json(&summary(&answered, None))?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let id = session.id().clone();
    drop((session, agent));
    let agent = open_agent(common, env, Needs::Model).await?;
    // Whoever answers does not choose who acts: the question may be that of a subagent.
    let set = args
        .turn
        .set()
        .into_iter()
        .filter(|set| !matches!(set.change, Change::Agent { .. }))
        .collect();
    let way = Way {
        turn: args.turn,
        output: if args.json { None } else { Some(args.output) },
        set,
    };
    let report = take_up(common, env, &agent, id, way).await?;
    if args.json {
        let report = serde_json::to_value(&report).map_err(anyhow::Error::from)?;
        outln!("{}", json(&summary(&answered, Some(report)))?);
    }
    Ok(exit_code(&report))
}

fn reply(question: &OpenQuestion, answer: &Answer, hash: Option<&String>) -> Reply {
    let args_hash = hash.unwrap_or(&question.args_hash).clone();
    Reply {
        id: question.id.clone(),
        args_hash,
        answer: answer.clone(),
    }
}

/// The questions that are meant, and their session.
fn meant(open: &[OpenQuestion], which: &Which) -> Result<(SessionId, Vec<OpenQuestion>), CliError> {
    let meant = match which {
        Which::All => open.to_vec(),
        Which::These(ids) => ids
            .iter()
            .map(|id| pick(open, id))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let Some(first) = meant.first() else {
        return Err(CliError::usage(
            "nothing waits there; `stead approvals list` shows what does",
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

fn tell(answered: &Answered, session: &SessionId, by: &str, style: Style) {
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
    for grant in &answered.granted {
        let text = format!(
            "allowed from now on: {grant}; `stead approvals revoke {}` takes it back",
            grant.id
        );
        errln!("{}", style.safe(&text));
    }
    match answered.open.len() {
        0 => {}
        1 => errln!(
            "1 more question of session {session} waits; the run goes on when it is answered"
        ),
        n => errln!(
            "{n} more questions of session {session} wait; the run goes on when all are answered"
        ),
    }
}

fn summary(answered: &Answered, run: Option<serde_json::Value>) -> serde_json::Value {
    let decided = answered.decisions.iter().map(|decision| {
        json!({"id": decision.id, "decision": decision.kind(), "by": decision.by, "args_hash": decision.args_hash})
    });
    json!({
        "answered": decided.collect::<Vec<_>>(),
        "granted": answered.granted,
        "waiting": answered.open,
        "run": run,
    })
}
