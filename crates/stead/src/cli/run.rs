//! `stead run`: running one input to its end.
//!
//! Effects: all.

use super::args::{GlobalArgs, RunArgs};
use super::choose_session::newest_session;
use super::env::ProcessEnv;
use super::error::CliError;
use super::memory::background;
use super::open_agent::{open_agent, refuse_wider_mode, without_agent_if_session_chooses};
use super::output_schema::read_output_schema;
use super::passed_over::warn_passed_over;
use super::print::errln;
use super::read_input::RunInput;
use super::run_client::RunClient;
use super::sessions_elsewhere::look_for_hidden_sessions;
use std::process::ExitCode;
use stead::core::{
    Command, InputCommand, Origin, Pinned, RunOutcome, RunReport, SessionId, SetEntry,
};
use stead::workspace::ModelUse;

pub(crate) async fn run(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: RunArgs,
) -> Result<ExitCode, CliError> {
    // clap does not report this if an input conflicts with --resume.
    if args.raise.is_some() && !args.resume {
        return Err(CliError::usage(
            "--raise adds to the budget of a resumed run: give --resume, too",
        ));
    }
    let input = if args.resume {
        None
    } else {
        Some(RunInput::read(env, args.input.as_deref())?)
    };
    let output_schema = match &args.output_schema {
        Some(file) => Some(read_output_schema(&env.folder, file)?),
        None => None,
    };
    let mut common = common
        .with_model(args.turn.model.as_ref())
        .with_agent(args.turn.agent.as_ref());
    if common.agent.is_some() {
        common = without_agent_if_session_chooses(common, env).await?;
    }
    let common = &common;
    let may_continue = args.resume || args.session.may_continue();
    let model_use = if may_continue {
        ModelUse::RecordedOrConfigured
    } else {
        ModelUse::Required
    };
    let agent = open_agent(common, env, model_use).await?;
    refuse_wider_mode(&agent, args.turn.mode)?;
    warn_passed_over(&agent);
    let id = if args.resume && !args.session.may_continue() {
        let open = newest_session(&agent, |one| one.runs > 0 && one.outcome.is_none()).await?;
        open.ok_or_else(|| CliError::usage("no session has an open run to resume"))?
    } else {
        args.session.choose(&agent).await?
    };
    look_for_hidden_sessions(common, env, &agent, may_continue.then_some(&id)).await?;
    let mut changes = args.turn.session_changes();
    if args.plan {
        changes.push(SetEntry {
            change: agent.session(id.clone()).plan_mode_change(),
            by: "--plan".to_owned(),
        });
    }
    let answers = args.turn.approve.answers();
    let command = match input {
        Some(RunInput { prompt, attachment }) => {
            let prepared = agent.session(id.clone()).input(&prompt).await;
            for reason in prepared.not_attached {
                errln!("{reason}");
            }
            let mut blocks = prepared.blocks;
            blocks.extend(attachment);
            Command::Input(InputCommand {
                origin: Origin {
                    via: Some("run".to_owned()),
                    ..Origin::default()
                },
                answers,
                changes,
                pinned: if args.pin { Pinned::Yes } else { Pinned::No },
                output_schema,
                ..InputCommand::new(blocks)
            })
        }
        None => Command::Resume {
            raise: args.raise.unwrap_or_default(),
            answers,
            changes,
        },
    };
    let client = RunClient {
        common,
        env,
        agent: &agent,
        flags: &args.turn,
        output: Some(args.output),
    };
    let report = client.run(id, command).await?;
    if !args.no_background {
        background::start_worker(common, env, &agent).await;
    }
    Ok(exit_code(&report))
}

/// Prints that subagents wait for a decision. Their parent may not know.
pub(crate) fn print_waiting_subagents(report: &RunReport, common: &GlobalArgs) {
    let count = report.waiting.len();
    if let Some(first) = report.waiting.first() {
        let what = if count == 1 {
            "task waits"
        } else {
            "tasks wait"
        };
        let go_on = resume_command(&first.session, common);
        errln!(
            "{count} {what} for your decision: `stead approvals list` shows what is asked; then resume with: {go_on}"
        );
    }
}

/// Returns the exit code for the outcome of a run. A pending decision, also of a subagent, has its
/// own code.
pub(crate) fn exit_code(report: &RunReport) -> ExitCode {
    ExitCode::from(match report.outcome {
        RunOutcome::Completed if !report.waiting.is_empty() => 3,
        RunOutcome::Completed => 0,
        RunOutcome::Failed => 1,
        RunOutcome::Parked => 3,
        RunOutcome::StepLimit | RunOutcome::Budget | RunOutcome::TimedOut => 4,
        RunOutcome::Cancelled => 130,
    })
}

/// Returns the message after a run that did not complete, with the command that resumes it.
pub(crate) fn closing_note(report: &RunReport, common: &GlobalArgs) -> Option<String> {
    let reason = report.reason.as_deref().unwrap_or("");
    let command = resume_command(&report.session, common);
    match report.outcome {
        RunOutcome::Completed => report.reason.clone(),
        RunOutcome::Parked => Some(format!(
            "parked: {reason}. Answer as below, or all with: {command} --approve all (or none)"
        )),
        RunOutcome::Cancelled => Some(format!("cancelled. Resume with: {command}")),
        RunOutcome::StepLimit | RunOutcome::TimedOut => {
            let reason = as_sentence(reason);
            Some(format!("{reason} Resume with: {command}"))
        }
        RunOutcome::Budget => Some(format!(
            "{reason}. Resume with: {command} --raise AMOUNT (0.50 is dollars, 50000t tokens)"
        )),
        RunOutcome::Failed => {
            let reason = as_sentence(reason);
            Some(format!("failed: {reason} Try again with: {command}"))
        }
    }
}

/// Returns a text that ends like a sentence.
fn as_sentence(text: &str) -> String {
    if text.ends_with(['.', '?', '!', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// Returns the command that resumes a session.
pub(crate) fn resume_command(session: &SessionId, common: &GlobalArgs) -> String {
    format!("stead run -s {session} --resume{}", agent_flags(common))
}

/// Returns the flags that make another command use the same agent.
pub(crate) fn agent_flags(common: &GlobalArgs) -> String {
    let words = common.agent_args().into_iter();
    words
        .map(|word| format!(" {}", shell_quote(&word.to_string_lossy())))
        .collect()
}

/// Quotes a word for a shell.
pub(crate) fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_ends_like_one_sentence() {
        for (reason, want) in [
            ("is the address right?", "is the address right?"),
            ("no luck", "no luck."),
            ("stopped.", "stopped."),
        ] {
            assert_eq!(as_sentence(reason), want);
        }
    }

    #[test]
    fn the_printed_command_uses_the_same_agent() {
        let common = GlobalArgs {
            workspace: Some("my agent".into()),
            user: Some("ann".to_owned()),
            context_files: vec!["a.md".to_owned(), "b c.md".to_owned()],
            skills: vec!["extra".to_owned()],
            model: Some("ollama:qwen3".to_owned()),
            agent: Some("build".to_owned()),
            ..GlobalArgs::default()
        };
        assert_eq!(
            resume_command(&SessionId::new("s").unwrap(), &common),
            "stead run -s s --resume -C 'my agent' -u ann -m ollama:qwen3 -a build \
             --context-file a.md --context-file 'b c.md' --skills extra"
        );
    }
}
