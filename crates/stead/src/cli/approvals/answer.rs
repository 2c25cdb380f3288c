//! Answering questions of `stead approvals`, and resuming the run after the last one.
//!
//! Effects: all.

use super::args::AnswerArgs;
use super::{QuestionSelection, answerer, find_question, open_questions};
use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::followed_run::FollowedRun;
use crate::cli::memory::background;
use crate::cli::open_agent::{open_agent, refuse_wider_mode};
use crate::cli::print::{errln, outln, to_json};
use crate::cli::run::{exit_code, resume_command};
use crate::cli::run_client::{ClientSession, RunClient};
use crate::cli::style::Style;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use stead::agent::{Grant, OpenQuestion};
use stead::core::{
    AfterAnswer, AnswerCommand, ApprovalAnswer, ApprovalReply, Command, DecisionKind, InputStatus,
    Receipt, SessionChange, SessionId,
};
use stead::workspace::ModelUse;
use tokio::time::Instant;

/// How long the process that runs a session is waited for.
const HOLDER_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is asked whether that process has taken an answer.
const HOLDER_POLL: Duration = Duration::from_millis(50);

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
        AfterAnswer::Resume => ModelUse::RecordedOrConfigured,
    };
    let agent = open_agent(common, env, model_use).await?;
    refuse_wider_mode(&agent, args.turn.mode)?;
    let open = open_questions(&agent, args.session.as_deref()).await?;
    let (session_id, meant) = select_questions(&open, which)?;
    let replies: Vec<ApprovalReply> = meant
        .iter()
        .map(|question| build_reply(question, answer, args.hash.as_ref()))
        .collect();
    let by = answerer(common, env, args.by.as_ref());
    // The session decides which agent acts: the question may be a subagent's.
    let changes = args
        .turn
        .session_changes()
        .into_iter()
        .filter(|set| !matches!(set.change, SessionChange::Agent { .. }))
        .collect();
    let command = AnswerCommand {
        replies: replies.clone(),
        by: by.clone(),
        then: after,
        subagent: None,
        answers: args.turn.approve.answers(),
        changes,
    };
    let client = RunClient {
        common,
        env,
        agent: &agent,
        flags: &args.turn,
        output: if args.json { None } else { Some(args.output) },
    };
    let granted_before = agent.grants(agent.owner()).list().await?;
    let mut session = client.open(session_id.clone()).await?;
    let sent = match session.handle.send(Command::Answer(command)).await {
        Ok(receipt) => wait_until_taken(&session, receipt).await,
        Err(error) => Err(error.into()),
    };
    let taken = match sent {
        Ok(taken) => taken,
        Err(error) => {
            session.close_idle().await;
            return Err(error);
        }
    };
    let granted = agent.grants(agent.owner()).list().await?;
    let is_answered = |question: &OpenQuestion| meant.iter().any(|known| known.id == question.id);
    let answered = AnsweredQuestions {
        granted: granted
            .into_iter()
            .filter(|grant| !granted_before.contains(grant))
            .collect(),
        still_open: open
            .into_iter()
            .filter(|question| question.session == session_id && !is_answered(question))
            .collect(),
        replies,
        by,
    };
    let is_last = answered.still_open.is_empty();
    if !args.json {
        answered.print(&session_id, Style::stderr(env));
        match (&taken, after) {
            (TakenAnswer::Here(_), AfterAnswer::Leave) if is_last => errln!(
                "all questions are answered. Resume with: {}",
                resume_command(&session_id, common)
            ),
            (TakenAnswer::Here(_), _) => {}
            (TakenAnswer::Elsewhere, _) => {
                errln!("the run continues in the process that runs session {session_id}");
            }
            (TakenAnswer::NotYet, _) => errln!(
                "the process that runs session {session_id} has not taken the answer yet; it waits there"
            ),
        }
    }
    let receipt = match (taken, after) {
        (TakenAnswer::Here(receipt), AfterAnswer::Resume) if is_last => receipt,
        (TakenAnswer::Here(_) | TakenAnswer::Elsewhere | TakenAnswer::NotYet, _) => {
            session.close_idle().await;
            if args.json {
                outln!("{}", to_json(&answered.summary(None))?);
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    let run = meant.first().map(|question| question.run.clone());
    let receipt = Receipt { run, ..receipt };
    let run = FollowedRun::of_input(session_id, &receipt);
    let ran = session.follow(&receipt, run).await;
    let report = session.close(ran).await?;
    background::start_worker(common, env, &agent).await;
    if args.json {
        let report = serde_json::to_value(&report).map_err(anyhow::Error::from)?;
        outln!("{}", to_json(&answered.summary(Some(report)))?);
    }
    Ok(exit_code(&report))
}

/// Where answers were taken.
enum TakenAnswer {
    /// In this process, with this receipt.
    Here(Receipt),
    /// In the process that runs the session.
    Elsewhere,
    /// They wait for the process that runs the session.
    NotYet,
}

/// Waits a moment for answers that are left to the process that runs the session.
async fn wait_until_taken(
    session: &ClientSession<'_>,
    receipt: Receipt,
) -> Result<TakenAnswer, CliError> {
    if receipt.seq.is_some() {
        return Ok(TakenAnswer::Here(receipt));
    }
    let until = Instant::now() + HOLDER_PATIENCE;
    loop {
        match session.status(&receipt).await? {
            Some(InputStatus::Recorded { .. } | InputStatus::Done) => {
                return Ok(TakenAnswer::Elsewhere);
            }
            Some(InputStatus::Refused { reason }) => return Err(CliError::usage(reason)),
            Some(InputStatus::Waiting) | None if Instant::now() > until => {
                return Ok(TakenAnswer::NotYet);
            }
            Some(InputStatus::Waiting) | None => tokio::time::sleep(HOLDER_POLL).await,
        }
    }
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

/// Questions that were answered.
struct AnsweredQuestions {
    replies: Vec<ApprovalReply>,
    by: String,
    /// The grants that "always" gave.
    granted: Vec<Grant>,
    still_open: Vec<OpenQuestion>,
}

impl AnsweredQuestions {
    fn print(&self, session: &SessionId, style: Style) {
        for reply in &self.replies {
            let kind = reply.answer.kind();
            let kind = kind.map_or("later", DecisionKind::as_str);
            let line = format!("{}: {kind} by {}", reply.id, self.by);
            errln!("{}", style.dim(&line));
        }
        for grant in &self.granted {
            let text = format!(
                "allowed from now on: {grant}; `stead approvals revoke {}` revokes it",
                grant.id
            );
            errln!("{}", text);
        }
        match self.still_open.len() {
            0 => {}
            1 => errln!(
                "1 more question of session {session} waits; the run resumes when it is answered"
            ),
            n => errln!(
                "{n} more questions of session {session} wait; the run resumes when all are answered"
            ),
        }
    }

    fn summary(&self, run: Option<serde_json::Value>) -> serde_json::Value {
        let decided = self.replies.iter().map(|reply| {
            json!({"id": reply.id, "decision": reply.answer.kind(), "by": self.by, "args_hash": reply.args_hash})
        });
        json!({
            "answered": decided.collect::<Vec<_>>(),
            "granted": self.granted,
            "waiting": self.still_open,
            "run": run,
        })
    }
}
