//! `stead approvals`: questions that wait for a person, answered from any process.
//!
//! Effects: all.

mod answer;
pub(crate) mod args;
mod show;
mod terminal_questions;

use super::args::{ApproveMode, GlobalArgs};
use super::choose_session::find_session;
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::open_agent;
use super::print::{outln, to_json};
use super::style::Style;
use args::{AgentScopeArgs, ApprovalsCommand, SessionScopeArgs};
pub(crate) use show::{colour_diff, waiting_summary};
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, ApprovalAnswer, OpenQuestion};
use stead::core::{AnswerPolicy, Presence};
use stead::workspace::ModelUse;
pub(crate) use terminal_questions::{TerminalQuestions, TypedAnswer};

pub(crate) async fn approvals(
    common: &GlobalArgs,
    env: &ProcessEnv,
    command: ApprovalsCommand,
) -> Result<ExitCode, CliError> {
    match command {
        ApprovalsCommand::List(place) => list(common, env, &place).await,
        ApprovalsCommand::Show { id, place } => {
            let agent = open_without_model(common, env, &place.of).await?;
            let question = find_question(
                &open_questions(&agent, place.session.as_deref()).await?,
                &id,
            )?;
            show::show(&agent, &question, place.of.json, Style::stdout(env)).await?;
            Ok(ExitCode::SUCCESS)
        }
        ApprovalsCommand::Approve {
            ids,
            all,
            always,
            answer,
        } => {
            let yes = if always {
                ApprovalAnswer::Always
            } else {
                ApprovalAnswer::Yes
            };
            answer::answer(common, env, &question_selection(ids, all), &yes, answer).await
        }
        ApprovalsCommand::Edit { id, args, answer } => {
            let text = read_text_argument(&args)?;
            let args = serde_json::from_str(&text)
                .map_err(|error| CliError::usage(format!("the arguments are not JSON: {error}")))?;
            answer::answer(
                common,
                env,
                &QuestionSelection::Ids(vec![id]),
                &ApprovalAnswer::Edit(args),
                answer,
            )
            .await
        }
        ApprovalsCommand::Reject {
            ids,
            all,
            reason,
            answer,
        } => {
            answer::answer(
                common,
                env,
                &question_selection(ids, all),
                &ApprovalAnswer::No { reason },
                answer,
            )
            .await
        }
        ApprovalsCommand::Respond { id, result, answer } => {
            let answered = ApprovalAnswer::Respond(read_text_argument(&result)?);
            answer::answer(
                common,
                env,
                &QuestionSelection::Ids(vec![id]),
                &answered,
                answer,
            )
            .await
        }
        ApprovalsCommand::Rules(of) => rules(common, env, &of).await,
        ApprovalsCommand::Revoke { id, of } => {
            let agent = open_without_model(common, env, &of).await?;
            let grant = agent.grants(agent.owner()).revoke(&id).await?;
            match of.json {
                true => outln!("{}", to_json(&grant)?),
                false => outln!("revoked {}", grant.to_string()),
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The questions to answer.
enum QuestionSelection {
    /// All questions of a session.
    All,
    /// The questions with these ids or prefixes of ids.
    Ids(Vec<String>),
}

fn question_selection(ids: Vec<String>, all: bool) -> QuestionSelection {
    if all {
        QuestionSelection::All
    } else {
        QuestionSelection::Ids(ids)
    }
}

/// Returns the name of the person who answers: the flag, the user of -u, or the login name.
pub(crate) fn answerer(common: &GlobalArgs, env: &ProcessEnv, by: Option<&String>) -> String {
    let login = || env.get("USER").or_else(|| env.get("LOGNAME"));
    by.or(common.user.as_ref())
        .cloned()
        .or_else(login)
        .unwrap_or_else(|| "person".to_owned())
}

async fn open_without_model(
    common: &GlobalArgs,
    env: &ProcessEnv,
    of: &AgentScopeArgs,
) -> Result<Arc<Agent>, CliError> {
    open_agent(
        &common.with_agent(of.agent.as_ref()),
        env,
        ModelUse::NotNeeded,
    )
    .await
}

/// Returns all open questions, or those of one session.
async fn open_questions(
    agent: &Arc<Agent>,
    session: Option<&str>,
) -> Result<Vec<OpenQuestion>, CliError> {
    match session {
        None => Ok(agent.open_questions(agent.owner()).list().await?),
        Some(text) => {
            let mut session = agent.session(find_session(agent, text).await?);
            session.load().await?;
            Ok(session.open_questions())
        }
    }
}

/// Returns the question with the id `text`, or with a unique id that starts with it.
fn find_question(open: &[OpenQuestion], text: &str) -> Result<OpenQuestion, CliError> {
    let exact: Vec<&OpenQuestion> = open.iter().filter(|question| question.id == text).collect();
    let found = match exact.is_empty() {
        true => open
            .iter()
            .filter(|question| !text.is_empty() && question.id.starts_with(text))
            .collect(),
        false => exact,
    };
    match found.as_slice() {
        [question] => Ok((*question).clone()),
        [] => Err(CliError::usage(format!(
            "no open question has the id {text:?} (it may have been answered); `stead approvals list` shows the open ones"
        ))),
        several => {
            let named: Vec<String> = several
                .iter()
                .map(|q| format!("{} of session {}", q.id, q.session))
                .collect();
            Err(CliError::usage(format!(
                "{text:?} may be {}; give more of the id, or -s",
                named.join(" or ")
            )))
        }
    }
}

async fn list(
    common: &GlobalArgs,
    env: &ProcessEnv,
    place: &SessionScopeArgs,
) -> Result<ExitCode, CliError> {
    let agent = open_without_model(common, env, &place.of).await?;
    let open = open_questions(&agent, place.session.as_deref()).await?;
    if place.of.json {
        outln!("{}", to_json(&open)?);
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    open.iter()
        .for_each(|question| show::print_question_line(question, style));
    if open.is_empty() {
        outln!("no open questions");
    }
    Ok(ExitCode::SUCCESS)
}

async fn rules(
    common: &GlobalArgs,
    env: &ProcessEnv,
    of: &AgentScopeArgs,
) -> Result<ExitCode, CliError> {
    let agent = open_without_model(common, env, of).await?;
    let grants = agent.grants(agent.owner()).list().await?;
    if of.json {
        outln!("{}", to_json(&grants)?);
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    for grant in &grants {
        let text = format!("{} {}", grant.tool, grant.what);
        let by = format!("allowed by {} at {:.0}", grant.by, grant.at);
        outln!("{}  {}  {}", style.accent(&grant.id), text, style.dim(&by));
    }
    if grants.is_empty() {
        outln!("no rules yet; `stead approvals approve ID --always` makes one");
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a text argument: the text itself, or standard input for `-`.
fn read_text_argument(text: &str) -> Result<String, CliError> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    /// The maximum length of an answer.
    const MAX_BYTES: u64 = 2 * 1024 * 1024;
    let mut read = String::new();
    std::io::stdin().take(MAX_BYTES).read_to_string(&mut read)?;
    Ok(read)
}
impl ApproveMode {
    /// Returns how the questions of a run are answered.
    pub(crate) fn answers(self) -> AnswerPolicy {
        match self {
            Self::Ask => AnswerPolicy::Ask,
            Self::All => AnswerPolicy::ApproveAll,
            Self::None => AnswerPolicy::DenyAll,
        }
    }

    /// Returns whether somebody at this terminal is there to be asked.
    pub(crate) fn presence(self, env: &ProcessEnv) -> Presence {
        match self {
            Self::Ask if env.stdin_is_terminal && env.stderr_is_terminal => Presence::Answers,
            Self::Ask | Self::All | Self::None => Presence::Watches,
        }
    }
}
