//! `stead run`: one input worked to its end.

use super::args::{Common, RunArgs};
use super::env::Env;
use super::error::CliError;
use super::memory::background;
use super::open::{Needs, open_agent, session_id};
use super::print::errln;
use super::render::Renderer;
use super::signals::Signals;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, AgentError, Pinned, RunOptions, RunReport};
use stead::core::{Outcome, SessionId, Set};
use stead::store::StoreError;
use stead::workspace::Severity;

pub(crate) async fn run(common: &Common, env: &Env, args: RunArgs) -> Result<ExitCode, CliError> {
    // The parser does not say it where an input stands in the way of --resume.
    if args.raise.is_some() && !args.resume {
        return Err(CliError::usage("--raise adds to the budget of a run that is taken up again: give --resume, too"));
    }
    let input = if args.resume { None } else { Some(read_input(env, args.input.as_deref())?) };
    let id = session_id(args.session.as_deref())?;
    let common = &common.with_model(args.turn.model.as_ref()).with_agent(args.turn.agent.as_ref());
    let agent = open_agent(common, env, Needs::Model).await?;
    tell_inactive(&agent);
    let signals = Signals::watch()?;
    let renderer = Arc::new(Renderer::new(env, args.output, signals.cancel.clone()));
    let mut session = agent.session(id);
    let mut set = args.turn.set();
    if args.plan {
        set.push(Set { change: session.planning(), by: "--plan".to_owned() });
    }
    let options = RunOptions {
        listener: renderer.listener(),
        cancel: signals.cancel.clone(),
        approvals: args.turn.approve.approvals(env),
        wait: args.turn.wait(),
        pin: if args.pin { Pinned::Yes } else { Pinned::No },
        set,
        ..RunOptions::default()
    };
    let report = match input {
        Some(text) => {
            let input = session.input(&text).await;
            session.run(input, options).await
        }
        None => session.resume_with(args.raise.unwrap_or_default(), options).await,
    };
    if let Err(error) = session.finish("exit").await {
        errln!("hooks were not told that the session is left: {error}");
    }
    agent.sessions().flush().await;
    if let Err(AgentError::Store(StoreError::Unavailable { .. } | StoreError::Corrupt { .. })) = &report {
        errln!("Go on with: {}", resume_command(session.id(), common));
    }
    let report = report?;
    renderer.finish(&report, common)?;
    if !args.no_background {
        background::start(common, env, &agent);
    }
    Ok(exit_code(report.outcome))
}

/// Says that settings have no effect yet: one of them may be a guard that someone relies on.
fn tell_inactive(agent: &Agent) {
    let findings = &agent.workspace().definition.findings;
    let count = findings.iter().filter(|finding| finding.severity == Severity::Inactive).count();
    if count > 0 {
        errln!("{count} settings of this workspace have no effect in this version; `stead check` lists them");
    }
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

/// What a person is told after a run that did not simply complete, with a command that goes on.
pub(crate) fn afterword(report: &RunReport, common: &Common) -> Option<String> {
    let reason = report.reason.as_deref().unwrap_or("");
    let command = resume_command(&report.session, common);
    match report.outcome {
        Outcome::Completed => report.reason.clone(),
        Outcome::Parked => Some(format!("parked: {reason}. Answer with: {command} --approve all (or none)")),
        Outcome::Cancelled => Some(format!("cancelled. Go on with: {command}")),
        Outcome::StepLimit | Outcome::TimedOut => Some(format!("{reason}. Go on with: {command}")),
        Outcome::Budget => Some(format!("{reason}. Go on with: {command} --raise AMOUNT")),
        Outcome::Failed => Some(format!("failed: {reason}. Try again with: {command}")),
    }
}

/// The command that goes on with a session.
fn resume_command(session: &SessionId, common: &Common) -> String {
    let mut command = format!("stead run -s {session} --resume");
    let dir = common.workspace.as_ref().map(|dir| dir.to_string_lossy().into_owned());
    let layout = common.layout.map(|layout| layout.to_string());
    for (flag, value) in [
        ("-C", dir.as_ref()),
        ("--layout", layout.as_ref()),
        ("-u", common.user.as_ref()),
        ("-m", common.model.as_ref()),
        ("-a", common.agent.as_ref()),
    ] {
        command.extend(value.map(|value| format!(" {flag} {}", quoted(value))));
    }
    command
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
