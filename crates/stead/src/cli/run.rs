//! `stead run`: one input worked to its end.

use super::args::{Common, Output, RunArgs, TurnArgs};
use super::env::Env;
use super::error::CliError;
use super::memory::background;
use super::open::{Needs, of_session, open_agent, session_id};
use super::print::errln;
use super::render::Renderer;
use super::signals::Signals;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, AgentError, Pinned, RunOptions, RunReport, Session};
use stead::core::{Allowance, Outcome, SessionId, Set};
use stead::store::StoreError;
use stead::workspace::Severity;

pub(crate) async fn run(common: &Common, env: &Env, args: RunArgs) -> Result<ExitCode, CliError> {
    // The parser does not say it where an input stands in the way of --resume.
    if args.raise.is_some() && !args.resume {
        return Err(CliError::usage(
            "--raise adds to the budget of a run that is taken up again: give --resume, too",
        ));
    }
    let input = if args.resume {
        None
    } else {
        Some(read_input(env, args.input.as_deref())?)
    };
    let id = session_id(args.session.as_deref())?;
    let common = common
        .with_model(args.turn.model.as_ref())
        .with_agent(args.turn.agent.as_ref());
    let common = &of_session(common, env).await?;
    let agent = open_agent(common, env, Needs::Model).await?;
    tell_inactive(&agent);
    let begin = match input {
        Some(text) => Begin::Input {
            text,
            pin: if args.pin { Pinned::Yes } else { Pinned::No },
        },
        None => Begin::Resume(args.raise.unwrap_or_default()),
    };
    let session = agent.session(id);
    let mut set = args.turn.set();
    if args.plan {
        set.push(Set {
            change: session.planning(),
            by: "--plan".to_owned(),
        });
    }
    let way = Way {
        turn: args.turn,
        output: Some(args.output),
        set,
    };
    let report = carry_out(common, env, session, begin, way).await?;
    if !args.no_background {
        background::start(common, env, &agent);
    }
    Ok(exit_code(&report))
}

/// What a run begins with.
enum Begin {
    Input { text: String, pin: Pinned },
    Resume(Allowance),
}

/// How a run is carried out and shown.
pub(crate) struct Way {
    pub(crate) turn: TurnArgs,
    /// What is printed; none = nothing.
    pub(crate) output: Option<Output>,
    /// What the person changes of how the session goes on.
    pub(crate) set: Vec<Set>,
}

/// Goes on with a session that was parked, as `stead run --resume` does.
pub(crate) async fn take_up(
    common: &Common,
    env: &Env,
    agent: &Arc<Agent>,
    id: SessionId,
    way: Way,
) -> Result<RunReport, CliError> {
    let report = carry_out(
        common,
        env,
        agent.session(id),
        Begin::Resume(Allowance::default()),
        way,
    )
    .await?;
    background::start(common, env, agent);
    Ok(report)
}

async fn carry_out(
    common: &Common,
    env: &Env,
    mut session: Session,
    begin: Begin,
    way: Way,
) -> Result<RunReport, CliError> {
    let signals = Signals::watch()?;
    let renderer = way
        .output
        .map(|output| Arc::new(Renderer::new(env, output, signals.cancel.clone())));
    let options = RunOptions {
        listener: renderer
            .as_ref()
            .map_or_else(|| RunOptions::default().listener, Renderer::listener),
        cancel: signals.cancel.clone(),
        approvals: way.turn.approve.approvals(common, env),
        wait: way.turn.wait(),
        pin: match &begin {
            Begin::Input { pin, .. } => *pin,
            Begin::Resume(_) => Pinned::No,
        },
        set: way.set,
        ..RunOptions::default()
    };
    let report = match begin {
        Begin::Input { text, .. } => {
            let input = session.input(&text).await;
            session.run(input, options).await
        }
        Begin::Resume(raise) => session.resume_with(raise, options).await,
    };
    if let Err(error) = session.finish("exit").await {
        errln!("hooks were not told that the session is left: {error}");
    }
    session.flush().await;
    if let Err(AgentError::Store(StoreError::Unavailable { .. } | StoreError::Corrupt { .. })) =
        &report
    {
        errln!("Go on with: {}", resume_command(session.id(), common));
    }
    let report = report?;
    tell_waiting(&report, common);
    if let Some(renderer) = renderer {
        renderer.finish(&report, common, &session.open_questions())?;
    }
    Ok(report)
}

/// Says that subagents wait for a person, which their parent need not know.
fn tell_waiting(report: &RunReport, common: &Common) {
    let count = report.waiting.len();
    if let Some(first) = report.waiting.first() {
        let what = if count == 1 {
            "task waits"
        } else {
            "tasks wait"
        };
        let go_on = resume_command(&first.session, common);
        errln!(
            "{count} {what} for your decision: `stead approvals list` shows what is asked; then go on with: {go_on}"
        );
    }
}

/// Says that settings have no effect yet: one of them may be a guard that someone relies on.
fn tell_inactive(agent: &Agent) {
    let findings = &agent.workspace().definition.findings;
    let count = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Inactive)
        .count();
    if count > 0 {
        errln!(
            "{count} settings of this workspace have no effect in this version; `stead check` lists them"
        );
    }
}

/// The exit code that tells how a run ended, or that a decision is waited for, be it in a task that
/// was handed over.
pub(crate) fn exit_code(report: &RunReport) -> ExitCode {
    ExitCode::from(match report.outcome {
        Outcome::Completed if !report.waiting.is_empty() => 3,
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
            return Err(CliError::usage(
                "say what to do: stead run \"…\", or pipe it in",
            ));
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
        Outcome::Parked => Some(format!(
            "parked: {reason}. Answer as below, or all with: {command} --approve all (or none)"
        )),
        Outcome::Cancelled => Some(format!("cancelled. Go on with: {command}")),
        Outcome::StepLimit | Outcome::TimedOut => Some(format!("{reason}. Go on with: {command}")),
        Outcome::Budget => Some(format!("{reason}. Go on with: {command} --raise AMOUNT")),
        Outcome::Failed => Some(format!("failed: {reason}. Try again with: {command}")),
    }
}

/// The command that goes on with a session.
pub(crate) fn resume_command(session: &SessionId, common: &Common) -> String {
    format!("stead run -s {session} --resume{}", flags(common))
}

/// The flags that lead another command to the same agent.
pub(crate) fn flags(common: &Common) -> String {
    let mut command = String::new();
    let dir = common
        .workspace
        .as_ref()
        .map(|dir| dir.to_string_lossy().into_owned());
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
