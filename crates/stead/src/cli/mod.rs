//! The command line: parsing, and one module per command.

mod approvals;
mod args;
mod bench;
mod bench_children;
mod bench_place;
mod bench_search;
mod chat;
mod check;
mod demo;
mod env;
mod error;
mod explain;
mod gc;
mod init;
mod list;
mod locate;
mod memory;
mod models;
mod open;
mod print;
mod prompt;
mod render;
mod run;
mod schema;
mod sessions;
mod signals;
mod skills;
mod style;
mod tool;
mod transcript;
mod undo;
mod usage;
mod workspace;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use env::Env;
use error::CliError;
use std::process::ExitCode;

/// Threads for blocking work (syncs, file reads). More would only grow the process: the disk is
/// one.
const MAX_BLOCKING_THREADS: usize = 16;

/// Parses the command line and carries it out.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let env = Env::of_process();
    // One conversation runs fastest on one thread: nothing is handed over and back. Many share all
    // cores.
    let mut builder = match &cli.command {
        Command::Bench(args) if args.command.is_crowd() => {
            tokio::runtime::Builder::new_multi_thread()
        }
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(dispatch(cli, &env));
            // Blocking work that is still going on has nobody left to tell.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(CliError::Failed(error.into())),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            print::errln!("{}: {error}", style::Style::stderr(&env).bad("stead"));
            error.exit_code()
        }
    }
}

async fn dispatch(cli: Cli, env: &Env) -> Result<ExitCode, CliError> {
    let common = cli.common;
    // These work on no workspace; to take one and ignore it would be a lie.
    let placeless = match &cli.command {
        Command::Demo(_) | Command::List(_) | Command::Schema(_) | Command::Completions { .. } => {
            true
        }
        Command::Models(args) => args.name.is_none(),
        _ => false,
    };
    if placeless && common.workspace.is_some() {
        return Err(CliError::usage(
            "-C has no meaning for this command (`demo` takes --dir, `list` a folder)",
        ));
    }
    if (placeless || matches!(cli.command, Command::Init(_) | Command::Bench(_)))
        && common.user.is_some()
    {
        return Err(CliError::usage("-u has no meaning for this command"));
    }
    let given = !common.memory.is_empty() || !common.skills.is_empty();
    let unopened = placeless || matches!(cli.command, Command::Init(_) | Command::Bench(_));
    if unopened && given || placeless && common.layout.is_some() {
        return Err(CliError::usage(
            "--layout, --memory and --skills have no meaning for this command",
        ));
    }
    match cli.command {
        Command::Init(args) => init::init(&common, env, &args).await,
        Command::Run(args) => run::run(&common, env, args).await,
        Command::Chat(args) => {
            chat::chat(
                &common
                    .with_model(args.turn.model.as_ref())
                    .with_agent(args.turn.agent.as_ref()),
                env,
                args,
            )
            .await
        }
        Command::Demo(args) => demo::demo(env, &args).await,
        Command::Tool(args) => {
            tool::tool(
                &common
                    .with_model(args.model.as_ref())
                    .with_agent(args.agent.as_ref()),
                env,
                args,
            )
            .await
        }
        Command::Prompt(args) => {
            prompt::prompt(
                &common
                    .with_model(args.model.as_ref())
                    .with_agent(args.agent.as_ref()),
                env,
                &args,
            )
            .await
        }
        Command::Check(args) => check::check(&common, env, &args).await,
        Command::Explain(args) => {
            explain::explain(&common.with_model(args.model.as_ref()), env, &args).await
        }
        Command::Schema(args) => Ok(schema::schema(&args)),
        Command::Sessions(args) => Box::pin(sessions::sessions(&common, env, args.command)).await,
        Command::Workspace(args) => workspace::workspace(&common, env, args.command).await,
        Command::Skills(args) => skills::skills(&common, env, args.command).await,
        Command::Memory(args) => memory::memory(&common, env, args.command).await,
        Command::Approvals(args) => approvals::approvals(&common, env, args.command).await,
        Command::Gc(args) => gc::gc(&common, env, &args).await,
        Command::List(args) => list::list(env, &args).await,
        Command::Models(args) => models::models(&common, env, &args).await,
        Command::Usage(args) => usage::usage(&common, env, &args).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "stead", &mut script);
            print::out(format_args!("{}", String::from_utf8_lossy(&script)));
            Ok(ExitCode::SUCCESS)
        }
        Command::Bench(args) => bench::bench(env, args.command).await,
    }
}
