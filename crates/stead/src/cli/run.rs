//! `stead run`: one input worked to its end.

use super::args::{Common, RunArgs};
use super::attach::attach;
use super::env::Env;
use super::error::CliError;
use super::open::{Needs, open_agent, session_id};
use super::render::Renderer;
use super::signals::Signals;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{RunOptions, RunReport};
use stead::core::Outcome;

pub(crate) async fn run(common: &Common, env: &Env, args: RunArgs) -> Result<ExitCode, CliError> {
    let input = if args.resume { None } else { Some(read_input(env, args.input.as_deref())?) };
    let agent = open_agent(common, env, Needs::Model).await?;
    let signals = Signals::watch()?;
    let renderer = Arc::new(Renderer::new(env, args.output));
    let options = RunOptions {
        listener: renderer.listener(),
        cancel: signals.cancel.clone(),
        approvals: args.turn.approve.approvals(env),
        wait: args.turn.wait(),
    };
    let mut session = agent.session(session_id(args.session.as_deref())?);
    let report = match input {
        Some(text) => session.run(attach(&*agent.workspace().files, &text).await, options).await,
        None => session.resume(options).await,
    };
    agent.journals().flush().await;
    let report = report?;
    renderer.finish(&report)?;
    Ok(exit_code(report.outcome))
}

/// The exit code that tells how a run ended.
pub(crate) fn exit_code(outcome: Outcome) -> ExitCode {
    ExitCode::from(match outcome {
        Outcome::Completed => 0,
        Outcome::Failed => 1,
        Outcome::Parked => 3,
        Outcome::StepLimit | Outcome::Budget | Outcome::TimedOut => 4,
        Outcome::Cancelled => 130,
    })
}

fn read_input(env: &Env, argument: Option<&str>) -> Result<String, CliError> {
    let text = match argument {
        Some("-") | None if env.stdin_is_terminal => {
            return Err(CliError::usage("say what to do: stead run \"…\", or pipe it in"));
        }
        Some("-") | None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        Some(text) => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(CliError::usage("the input is empty"));
    }
    Ok(text)
}

/// What a person is told after a run that did not simply complete.
pub(crate) fn afterword(report: &RunReport) -> Option<String> {
    let reason = report.reason.as_deref().unwrap_or("");
    let session = &report.session;
    match report.outcome {
        Outcome::Completed => report.reason.clone(),
        Outcome::Parked => {
            Some(format!("parked: {reason}. Answer with: stead run -s {session} --resume --approve all (or none)"))
        }
        Outcome::StepLimit | Outcome::Budget | Outcome::TimedOut | Outcome::Cancelled | Outcome::Failed => {
            let name = report.outcome.as_str();
            Some(format!("{name}: {reason}. Go on with: stead run -s {session} --resume"))
        }
    }
}
