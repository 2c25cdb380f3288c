//! The command line: parsing, and one module per command.
//!
//! Effects: all.

mod approvals;
mod args;
mod auth;
mod call_arguments;
mod changes;
mod chat;
mod check;
mod choose_session;
mod demo;
mod env;
mod error;
mod explain;
mod external_editor;
mod followed_run;
mod gc;
mod init;
mod list;
mod live_output;
mod locate;
mod logging;
mod memory;
mod models;
mod nested_lines;
mod open_agent;
mod output_schema;
mod passed_over;
mod personal;
mod print;
mod prompt;
mod read_input;
mod render;
mod run;
mod run_client;
mod schema;
mod sessions;
mod sessions_elsewhere;
mod signals;
mod skills;
mod style;
mod tool;
mod transcript;
mod trust;
mod undo;
mod usage;
mod workspace;

use args::{ChatArgs, Cli, CliCommand, GlobalArgs};
use clap::{CommandFactory, Parser};
use env::ProcessEnv;
use error::CliError;
use logging::LogDestination;
use memory::args::MemoryCommand;
use personal::PersonalFolder;
use std::process::ExitCode;
use trust::UntrustedFolder;

/// The maximum number of threads for blocking work (syncs, file reads). More would only grow the
/// process: there is one disk.
const MAX_BLOCKING_THREADS: usize = 16;

/// Keeps other processes of the user, such as the commands of agents, from reading the environment
/// and the memory of this one. Where that is not possible, nothing is lost but this.
fn hide_process() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Parses the command line and runs the command.
pub(crate) fn main() -> ExitCode {
    hide_process();
    let env = ProcessEnv::from_process();
    let (common, command) = match parse(&env) {
        Ok(parsed) => parsed,
        Err(error) => return print_parse_error(&error),
    };
    let destination = if matches!(command, CliCommand::Chat(_)) {
        LogDestination::File
    } else {
        LogDestination::Stderr
    };
    if let Err(error) = logging::start(common.verbose, &env, destination) {
        return print_error(&error, &env);
    }
    // One conversation runs fastest on one thread: nothing is handed over and back.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => {
            {
                let _context = runtime.enter();
                signals::survive_file_size_limit();
            }
            let outcome = runtime.block_on(dispatch(common, command, &env));
            // Nothing waits for blocking work that is still running.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(CliError::Failed(error.into())),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => print_error(&error, &env),
    }
}

/// Parses the command line. Without a command a terminal gets a chat, and anything else the help.
fn parse(env: &ProcessEnv) -> Result<(GlobalArgs, CliCommand), clap::Error> {
    let Cli { common, command } = Cli::try_parse()?;
    match command {
        Some(command) => Ok((common, command)),
        None if env.stdin_is_terminal && env.stdout_is_terminal => Ok((
            common,
            CliCommand::Chat(ChatArgs::try_parse_from_nothing()?),
        )),
        None => Err(Cli::command().error(
            clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            Cli::command().render_help(),
        )),
    }
}

fn print_error(error: &CliError, env: &ProcessEnv) -> ExitCode {
    print::errln!("{}: {error}", style::Style::stderr(env).bad("stead"));
    error.exit_code()
}

/// Prints help and version as they are; an error may quote arguments, so it goes through the sink.
fn print_parse_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        print::err(format_args!("{}", error.render()));
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Returns what a command does with a folder that acts and that nobody decided about: what only
/// shows something opens it without the parts that act, and everything else asks.
fn untrusted_folder(command: &CliCommand) -> UntrustedFolder {
    let only_shows = match command {
        CliCommand::Check(_)
        | CliCommand::Explain(_)
        | CliCommand::List(_)
        | CliCommand::Models(_)
        | CliCommand::Prompt(_)
        | CliCommand::Trust(_) => true,
        CliCommand::Usage(args) => !args.rebuild,
        CliCommand::Tool(args) => args.name.is_none() || args.explain,
        CliCommand::Sessions(args) => args.command.only_shows(),
        CliCommand::Approvals(args) => args.command.only_shows(),
        CliCommand::Skills(args) => args.command.only_shows(),
        CliCommand::Memory(args) => match args.command {
            // Nobody sees a question of the background worker.
            MemoryCommand::Work { .. } => return UntrustedFolder::Refuse,
            _ => args.command.only_shows(),
        },
        CliCommand::Init(_)
        | CliCommand::Run(_)
        | CliCommand::Chat(_)
        | CliCommand::Demo(_)
        | CliCommand::Schema(_)
        | CliCommand::Workspace(_)
        | CliCommand::Auth(_)
        | CliCommand::Gc(_)
        | CliCommand::Completions { .. } => false,
    };
    match only_shows {
        true => UntrustedFolder::Restrict,
        false => UntrustedFolder::Ask,
    }
}

async fn dispatch(
    mut common: GlobalArgs,
    command: CliCommand,
    env: &ProcessEnv,
) -> Result<ExitCode, CliError> {
    common.untrusted = untrusted_folder(&command);
    // These commands use no workspace, so the flag for one is refused rather than ignored.
    let uses_no_workspace = match &command {
        CliCommand::Demo(_)
        | CliCommand::List(_)
        | CliCommand::Schema(_)
        | CliCommand::Auth(_)
        | CliCommand::Completions { .. } => true,
        CliCommand::Models(args) => args.name.is_none(),
        _ => false,
    };
    if uses_no_workspace && common.workspace.is_some() {
        return Err(CliError::usage(
            "-C has no meaning for this command (`demo` takes --dir, `list` a folder)",
        ));
    }
    if (uses_no_workspace || matches!(command, CliCommand::Init(_))) && common.user.is_some() {
        return Err(CliError::usage("-u has no meaning for this command"));
    }
    let given = !common.context_files.is_empty() || !common.skills.is_empty();
    let opens_no_workspace = uses_no_workspace || matches!(command, CliCommand::Init(_));
    if opens_no_workspace && given || uses_no_workspace && common.layout.is_some() {
        return Err(CliError::usage(
            "--layout, --context-file and --skills have no meaning for this command",
        ));
    }
    let is_trust = matches!(command, CliCommand::Trust(_));
    if (opens_no_workspace || is_trust) && common.trust {
        return Err(CliError::usage(
            "--trust has no meaning for this command (`stead trust add` trusts a folder)",
        ));
    }
    let personal;
    let env = match &command {
        // These work even if the person's own settings are wrong.
        CliCommand::Demo(_)
        | CliCommand::Schema(_)
        | CliCommand::Completions { .. }
        | CliCommand::Auth(_) => env,
        _ => {
            let folder = PersonalFolder::new(env);
            personal = env.with_personal(folder.settings(env)?, folder.keys()?);
            &personal
        }
    };
    match command {
        CliCommand::Init(args) => init::init(&common, env, &args).await,
        CliCommand::Run(args) => run::run(&common, env, args).await,
        CliCommand::Chat(args) => {
            chat::chat(
                &common
                    .with_model(args.turn.model.as_ref())
                    .with_agent(args.turn.agent.as_ref()),
                env,
                args,
            )
            .await
        }
        CliCommand::Demo(args) => demo::demo(env, &args).await,
        CliCommand::Tool(args) => {
            let common = common
                .with_model(args.model.as_ref())
                .with_agent(args.agent.as_ref());
            Box::pin(tool::tool(&common, env, args)).await
        }
        CliCommand::Prompt(args) => {
            prompt::prompt(
                &common
                    .with_model(args.model.as_ref())
                    .with_agent(args.agent.as_ref()),
                env,
                &args,
            )
            .await
        }
        CliCommand::Check(args) => check::check(&common, env, &args).await,
        CliCommand::Explain(args) => {
            explain::explain(&common.with_model(args.model.as_ref()), env, &args).await
        }
        CliCommand::Schema(args) => Ok(schema::schema(&args)),
        CliCommand::Sessions(args) => {
            Box::pin(sessions::sessions(&common, env, args.command)).await
        }
        CliCommand::Workspace(args) => workspace::workspace(&common, env, args.command).await,
        CliCommand::Skills(args) => skills::skills(&common, env, args.command).await,
        CliCommand::Memory(args) => memory::memory(&common, env, args.command).await,
        CliCommand::Approvals(args) => approvals::approvals(&common, env, args.command).await,
        CliCommand::Trust(args) => trust::trust(&common, env, args).await,
        CliCommand::Auth(args) => auth::auth(env, args),
        CliCommand::Gc(args) => gc::gc(&common, env, &args).await,
        CliCommand::List(args) => list::list(&common, env, &args).await,
        CliCommand::Models(args) => models::models(&common, env, &args).await,
        CliCommand::Usage(args) => usage::usage(&common, env, &args).await,
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "stead", &mut script);
            print::out(format_args!("{}", String::from_utf8_lossy(&script)));
            Ok(ExitCode::SUCCESS)
        }
    }
}
