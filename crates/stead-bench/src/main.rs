//! The adapter through which `bench/` measures Stead the way it measures other harnesses.
//!
//! Effects: all.

mod agent;
mod args;
mod day;
mod journal;
mod listing;
mod place;
mod print;
mod runs;
mod search;
mod subagents;

use args::{BenchArgs, BenchCommand};
use clap::Parser;
use print::print_line;
use std::process::ExitCode;

/// Threads for blocking work, as in the `stead` command.
const MAX_BLOCKING_THREADS: usize = 16;

fn main() -> anyhow::Result<ExitCode> {
    let command = BenchArgs::parse().command;
    // The same runtimes as the `stead` command: one conversation runs on one thread.
    let mut builder = if command.is_concurrent() {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build()?;
    raise_file_limit();
    let outcome = runtime.block_on(dispatch(command));
    // Nothing waits for blocking work that is still running.
    runtime.shutdown_background();
    outcome
}

async fn dispatch(command: BenchCommand) -> anyhow::Result<ExitCode> {
    match command {
        BenchCommand::Run { common, prompt } => return runs::run(&common, prompt).await,
        BenchCommand::Dump {
            common,
            prompt,
            clip,
        } => runs::dump(&common, prompt, clip).await?,
        BenchCommand::Many {
            common,
            prompts_file,
        } => runs::many(&common, &prompts_file).await?,
        BenchCommand::Hold {
            common,
            prompts_file,
        } => runs::hold(&common, prompts_file.as_deref()).await?,
        BenchCommand::Save {
            common: _,
            dir,
            messages,
        } => print_line(&journal::save(&dir, messages).await?),
        BenchCommand::Restore { common: _, dir } => print_line(&journal::restore(&dir).await?),
        BenchCommand::Turn { workdir, rounds } => {
            print_line(&runs::measure_turns(&workdir, rounds).await?);
        }
        BenchCommand::Search {
            workdir,
            lines,
            rounds,
        } => print_line(&search::measure(&workdir, lines, rounds).await?),
        BenchCommand::Children {
            workdir,
            waves,
            width,
        } => print_line(&subagents::measure(&workdir, waves, width).await?),
        BenchCommand::Day { workdir, after } => {
            print_line(&day::measure(&workdir, after.into()).await?);
        }
        BenchCommand::MakeSessions { workdir, sessions } => {
            print_line(&listing::make(&workdir, sessions).await?);
        }
        BenchCommand::Follow { workdir, sessions } => {
            print_line(&listing::measure(&workdir, sessions).await?);
        }
        BenchCommand::Place(args) => print_line(&place::measure(&args).await?),
    }
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit on open files: a thousand sessions need more than the usual 1,024.
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
