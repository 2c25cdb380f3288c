//! The adapter through which `bench/` measures this harness the way it measures the others.

use super::args::{BenchCommand, BenchCommon};
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::{AgentInputs, NoModel, build_agent, open_workspace};
use super::print::outln;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use stead::agent::{Agent, RunOptions, Session};
use stead::core::{
    Block, CallIntent, CallResult, Entry, Message, ModelReply, Redactor, ResultStatus, RunEnd,
    RunId, RunOutcome, SessionId, StopReason, ToolCall, Usage, UserInput,
};
use stead::model::{ModelSettings, connect};
use stead::store::{FileSessions, LockWait, OsDisk, Sessions};
use stead::workspace::{FeatureSwitch, OpenOptions};
use tokio::task::JoinSet;

pub(crate) async fn bench(env: &ProcessEnv, command: BenchCommand) -> Result<ExitCode, CliError> {
    raise_file_limit();
    match command {
        BenchCommand::Run { common, prompt } => {
            let agent = bench_agent(&common, env).await?;
            let mut session = agent.session(SessionId::fresh());
            let report = session
                .run(vec![Block::text(prompt)], RunOptions::default())
                .await?;
            outln!("{}", report.text);
            Ok(ExitCode::from(u8::from(
                report.outcome != RunOutcome::Completed,
            )))
        }
        BenchCommand::Dump {
            common,
            prompt,
            clip,
        } => {
            let agent = bench_agent(&common, env).await?;
            let mut session = agent.session(SessionId::fresh());
            session
                .run(vec![Block::text(prompt)], RunOptions::default())
                .await?;
            for turn in &session.state().turns {
                let text = match &*turn.message {
                    Message::Tool { .. } | Message::User { .. } => turn.message.text(),
                    Message::Assistant { .. } => {
                        format!(
                            "{:?}",
                            turn.message.calls().map(|c| &c.name).collect::<Vec<_>>()
                        )
                    }
                };
                let line: String = text.replace('\n', "\\n").chars().take(clip).collect();
                outln!("{line}");
            }
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::Many {
            common,
            prompts_file,
        } => {
            let agent = bench_agent(&common, env).await?;
            let started = Instant::now();
            let (sessions, errors) = run_all(&agent, &prompts_file).await?;
            let wall = started.elapsed().as_secs_f64();
            drop(sessions);
            outln!("{}", json!({"wall_s": wall, "errors": errors}));
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::Hold {
            common,
            prompts_file,
        } => {
            let agent = bench_agent(&common, env).await?;
            let (sessions, errors) = match &prompts_file {
                Some(file) => run_all(&agent, file).await?,
                None => (Vec::new(), 0),
            };
            outln!("READY {errors} {}", std::process::id());
            let mut line = String::new();
            std::io::stdin().read_line(&mut line)?;
            drop(sessions);
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::Save {
            common: _,
            dir,
            messages,
        } => save_journal(&dir, messages).await,
        BenchCommand::Restore { common: _, dir } => {
            let journals = open_journals(&dir);
            let started = Instant::now();
            let opened = journals
                .open(
                    &SessionId::new("bench").map_err(anyhow::Error::from)?,
                    None,
                    LockWait::No,
                )
                .await?;
            let seconds = started.elapsed().as_secs_f64();
            let messages = opened.state.map_or(0, |state| state.turns.len());
            outln!("{}", json!({"restore_s": seconds, "messages": messages}));
            Ok(ExitCode::SUCCESS)
        }
        BenchCommand::Turn { workdir, rounds } => bench_turns(&workdir, rounds, env).await,
        BenchCommand::Search {
            workdir,
            lines,
            rounds,
        } => super::search::bench_search(&workdir, lines, rounds).await,
        BenchCommand::Children {
            workdir,
            waves,
            width,
        } => super::subagents::bench_children(env, &workdir, waves, width).await,
        BenchCommand::Place(args) => super::place::bench_place(env, &args).await,
    }
}

impl BenchCommand {
    /// Whether many work at once.
    pub(crate) fn is_concurrent(&self) -> bool {
        match self {
            Self::Many { .. } | Self::Hold { .. } => true,
            Self::Place(args) => args.clients > 1,
            Self::Run { .. }
            | Self::Dump { .. }
            | Self::Turn { .. }
            | Self::Search { .. }
            | Self::Children { .. }
            | Self::Save { .. }
            | Self::Restore { .. } => false,
        }
    }
}

/// The first turn of a process, and the median of those that follow it.
async fn bench_turns(
    workdir: &Path,
    rounds: usize,
    env: &ProcessEnv,
) -> Result<ExitCode, CliError> {
    let workspace = open_workspace(workdir, OpenOptions::default(), env).await?;
    let agent = build_agent(
        workdir,
        workspace,
        AgentInputs::with_model(Arc::new(NoModel::default())),
    )
    .await?;
    let started = Instant::now();
    let first = agent.sessionless().turn().await?;
    let cold_ms = started.elapsed().as_secs_f64() * 1000.0;
    let mut warm_ms = Vec::with_capacity(rounds);
    for _ in 0..rounds.max(1) {
        let started = Instant::now();
        agent.sessionless().turn().await?;
        warm_ms.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    warm_ms.sort_by(f64::total_cmp);
    let bytes: usize = first
        .prompt
        .parts()
        .iter()
        .map(|part| part.text.len())
        .sum();
    outln!(
        "{}",
        json!({"bytes": bytes, "cold_ms": cold_ms, "warm_ms": warm_ms[warm_ms.len() / 2]})
    );
    Ok(ExitCode::SUCCESS)
}

/// An agent as a user would have it, but for what the benchmark's rules ask: no retries, and the
/// guard against circles off, since the work measured is the same call again and again.
async fn bench_agent(common: &BenchCommon, env: &ProcessEnv) -> Result<Arc<Agent>, CliError> {
    let mut workspace = open_workspace(&common.workdir, OpenOptions::default(), env).await?;
    workspace.definition.config.policy.max_steps = u32::MAX;
    workspace.definition.config.policy.repeat_nudge = 0;
    workspace.definition.config.policy.repeat_end = 0;
    // The peers remember nothing after a run.
    workspace
        .definition
        .config
        .disable
        .0
        .insert(FeatureSwitch::MemoryHooks);
    let Some(base) = &common.base_url else {
        return Err(CliError::usage("--base-url is needed"));
    };
    let base_url = if common.api == "anthropic" {
        base.clone()
    } else {
        format!("{base}/v1")
    };
    let settings = ModelSettings {
        name: format!("{}:fake", common.api),
        base_url: Some(base_url),
        api_key: Some("bench-key".to_owned()),
        stream: Some(common.stream),
        max_retries: Some(0),
        ..ModelSettings::default()
    };
    let model = connect(&settings, &|name| env.get(name))?;
    build_agent(&common.workdir, workspace, AgentInputs::with_model(model)).await
}

async fn run_all(
    agent: &Arc<Agent>,
    prompts_file: &Path,
) -> Result<(Vec<Session>, usize), CliError> {
    let text = std::fs::read_to_string(prompts_file)?;
    let prompts: Vec<String> = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
    let mut tasks = JoinSet::new();
    for prompt in prompts {
        let mut session = agent.session(SessionId::fresh());
        tasks.spawn(async move {
            let report = session
                .run(vec![Block::text(prompt)], RunOptions::default())
                .await;
            (
                session,
                report.is_ok_and(|report| report.outcome == RunOutcome::Completed),
            )
        });
    }
    let mut sessions = Vec::new();
    let mut errors = 0;
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok((session, true)) => sessions.push(session),
            Ok((_, false)) | Err(_) => errors += 1,
        }
    }
    agent.sessions().flush().await;
    Ok((sessions, errors))
}

fn open_journals(dir: &Path) -> FileSessions {
    let agent = stead::workspace::AgentConfig::default().agent_id();
    FileSessions::new(dir, agent, Arc::new(OsDisk), Redactor::default())
}

async fn save_journal(dir: &Path, messages: usize) -> Result<ExitCode, CliError> {
    let journals = open_journals(dir);
    let started = Instant::now();
    let mut opened = journals
        .create(&SessionId::new("bench").map_err(anyhow::Error::from)?, None)
        .await?;
    let mut entries = Vec::new();
    for turn in 0..messages.div_ceil(3) {
        entries.extend(exchange_entries(turn)?);
    }
    opened.writer.append(entries).await?;
    let saved = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let run = RunId::new("last").map_err(anyhow::Error::from)?;
    opened
        .writer
        .append(vec![Entry::User(UserInput::text(run, "one more"))])
        .await?;
    let appended = started.elapsed().as_secs_f64();
    outln!(
        "{}",
        json!({"save_s": saved, "append_s": appended, "bytes": opened.writer.position().bytes})
    );
    Ok(ExitCode::SUCCESS)
}

/// Three messages: a question, a call, a result.
fn exchange_entries(turn: usize) -> Result<Vec<Entry>, CliError> {
    let run = RunId::new(format!("run{turn}")).map_err(anyhow::Error::from)?;
    let id = format!("call_{turn}");
    let call = ToolCall {
        id: id.clone(),
        name: "read_file".to_owned(),
        args: json!({"file_path": format!("dir/file_{turn}.txt"), "note": "x".repeat(160)}),
        invalid: None,
        signature: None,
    };
    Ok(vec![
        Entry::User(UserInput::text(
            run.clone(),
            format!("message {turn} {}", "words and words ".repeat(16)),
        )),
        Entry::Model(ModelReply {
            run: run.clone(),
            model: "bench:fake".to_owned(),
            content: vec![Block::ToolCall(call)],
            usage: Usage::default(),
            cost: None,
            stop: StopReason::ToolUse,
        }),
        Entry::Call(CallIntent {
            run: run.clone(),
            id: id.clone(),
            tool: "read_file".to_owned(),
            args_hash: "0123456789abcdef".to_owned(),
            changes: false,
            repeatable: true,
        }),
        Entry::Result(CallResult {
            run: run.clone(),
            id,
            status: ResultStatus::Ok,
            content: vec![Block::text("line of a result\n".repeat(20))],
            seen: Default::default(),
            activates: None,
            untrusted: false,
            change: None,
            tasks: Vec::new(),
            ms: 1,
        }),
        Entry::End(RunEnd {
            run,
            outcome: RunOutcome::Cancelled,
            reason: None,
        }),
    ])
}

/// A thousand sessions at once need more than the usual 1,024 open files.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}
