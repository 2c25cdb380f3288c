//! `stead demo`: a tour with a scripted model; everything else is real.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), hooks, tools, the model, the
//! network.

use super::args::{DemoArgs, GlobalArgs, OutputFormat};
use super::env::ProcessEnv;
use super::error::CliError;
use super::print::outln;
use super::render::Renderer;
use super::style::Style;
use super::trust::folder_judge;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, RunOptions, RunReport, Session};
use stead::core::{Block, Event, EventKind, RunOutcome, SessionId};
use stead::model::ScriptedModel;
use stead::workspace::{FeatureSwitch, OpenOptions};
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = include_str!("../demo/script.yaml");
/// The delay between deltas in milliseconds, about reading speed.
const READING_SPEED_MS: &str = "18";

/// The demo's workspace.
const FILES: [(&str, &str); 5] = [
    (
        "AGENTS.md",
        "# House-keeper\n\nYou keep a household's notes in order. Short answers, no decoration.\n",
    ),
    ("agent.yaml", "policy:\n  max_steps: 20\n"),
    (
        "notes/monday.md",
        "Rain again.\nThe roof leaks: call the roofer.\n",
    ),
    (
        "notes/tuesday.md",
        "Library card runs out this week, renew it.\n",
    ),
    (
        "notes/friday.md",
        "Catalogue came. Order seeds for spring.\n",
    ),
];

pub(crate) async fn demo(env: &ProcessEnv, args: &DemoArgs) -> Result<ExitCode, CliError> {
    let style = Style::stdout(env);
    let place = DemoWorkspace::create(args)?;
    let dir = place.dir();
    for (path, content) in FILES {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
        std::fs::write(path, content)?;
    }
    title(style, "A folder of plain files");
    show_tree(dir, style);

    let script = SCRIPT.replace("DELAY", if args.fast { "0" } else { READING_SPEED_MS });
    let model = Arc::new(ScriptedModel::parse("demo", &script)?);
    let agent = Agent::builder()
        .workspace(dir)
        .open_options(OpenOptions {
            trust: Some(folder_judge(&GlobalArgs::default(), env, dir)),
            ..OpenOptions::default()
        })
        .model_arc(model)
        .variables(env.lookup())
        .disable(FeatureSwitch::Shell)
        .build()
        .await?;
    let mut session = agent.session(SessionId::new("demo").map_err(anyhow::Error::from)?);

    title(style, "becomes an agent");
    print_narration(
        style,
        "Collect what is still to do from my notes into TODO.md",
    );
    let first = run(
        env,
        &mut session,
        "Collect what is still to do from my notes into TODO.md",
    )
    .await?;

    title(style, "It is stopped in the middle of a run …");
    print_narration(style, "The roofer came today.");
    let cut = run_until_first_call(env, &mut session, "The roofer came today.").await?;
    outln!(
        "{}",
        style.warn(&format!(
            "the run was {}; the journal has every step so far",
            cut.outcome.as_str()
        ))
    );

    title(
        style,
        "… and goes on where it was, in a new process just as well",
    );
    drop(session);
    let last = resume(env, &agent).await?;

    title(style, "What is left: files");
    show_tree(dir, style);
    outln!("\n{}", style.bold("TODO.md"));
    super::print::out(format_args!(
        "{}",
        std::fs::read_to_string(dir.join("TODO.md"))?
    ));
    outln!();
    place.print_goodbye(style);
    let all_well = first.outcome == RunOutcome::Completed && last.outcome == RunOutcome::Completed;
    Ok(ExitCode::from(u8::from(!all_well)))
}

async fn run(env: &ProcessEnv, session: &mut Session, input: &str) -> Result<RunReport, CliError> {
    let renderer = Arc::new(Renderer::new(
        env,
        OutputFormat::Text,
        CancellationToken::new(),
    ));
    let options = RunOptions {
        listener: renderer.listener(),
        ..RunOptions::default()
    };
    let report = session.run(vec![Block::text(input)], options).await?;
    renderer.finish(&report, &GlobalArgs::default(), &[])?;
    Ok(report)
}

/// Runs until a tool is about to be called, then cancels as Ctrl-C would.
async fn run_until_first_call(
    env: &ProcessEnv,
    session: &mut Session,
    input: &str,
) -> Result<RunReport, CliError> {
    let renderer = Arc::new(Renderer::new(
        env,
        OutputFormat::Text,
        CancellationToken::new(),
    ));
    let show = renderer.listener();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let listener = Arc::new(move |event: &Event| {
        if let EventKind::ModelEnded { .. } = event.kind {
            stop.cancel();
        }
        show(event);
    });
    let options = RunOptions {
        listener,
        cancel,
        ..RunOptions::default()
    };
    let report = session.run(vec![Block::text(input)], options).await?;
    outln!();
    Ok(report)
}

async fn resume(env: &ProcessEnv, agent: &Arc<Agent>) -> Result<RunReport, CliError> {
    let renderer = Arc::new(Renderer::new(
        env,
        OutputFormat::Text,
        CancellationToken::new(),
    ));
    let mut session = agent.session(SessionId::new("demo").map_err(anyhow::Error::from)?);
    let options = RunOptions {
        listener: renderer.listener(),
        ..RunOptions::default()
    };
    let report = session.resume(options).await?;
    agent.sessions().flush().await;
    renderer.finish(&report, &GlobalArgs::default(), &[])?;
    Ok(report)
}

fn title(style: Style, text: &str) {
    outln!("\n{}", style.bold(&format!("── {text}")));
}

fn print_narration(style: Style, text: &str) {
    outln!("{} {text}\n", style.accent("you:"));
}

/// Prints all files of the folder, including journals.
fn show_tree(dir: &Path, style: Style) {
    fn walk(dir: &Path, depth: usize, style: Style) {
        let mut entries: Vec<_> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let indent = "  ".repeat(depth);
            if entry.path().is_dir() {
                outln!("{indent}{}/", style.accent(&name));
                walk(&entry.path(), depth + 1, style);
            } else {
                outln!("{indent}{name}");
            }
        }
    }
    walk(dir, 0, style);
}

/// The folder of the demo's workspace: a named one that is kept, or a temporary one.
enum DemoWorkspace {
    UserFolder(PathBuf),
    Temporary(PathBuf),
}

impl DemoWorkspace {
    fn create(args: &DemoArgs) -> Result<Self, CliError> {
        match &args.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                if std::fs::read_dir(dir)?.next().is_some() {
                    return Err(CliError::usage(format!(
                        "{} is not empty; name a new folder",
                        dir.display()
                    )));
                }
                Ok(Self::UserFolder(dir.clone()))
            }
            None => {
                let dir = std::env::temp_dir().join(format!("stead-demo-{}", SessionId::fresh()));
                std::fs::create_dir_all(&dir)?;
                Ok(Self::Temporary(dir))
            }
        }
    }

    fn dir(&self) -> &Path {
        match self {
            Self::UserFolder(dir) | Self::Temporary(dir) => dir,
        }
    }

    fn print_goodbye(&self, style: Style) {
        let next = match self {
            Self::UserFolder(dir) => {
                format!(
                    "The workspace stays in {0}. Look around:\n  stead sessions show demo -C {0}",
                    dir.display()
                )
            }
            Self::Temporary(_) => {
                "Keep the workspace next time with: stead demo --dir my-demo".to_owned()
            }
        };
        outln!(
            "{next}\nThen make your own: {}",
            style.bold("stead init my-agent")
        );
    }
}

impl Drop for DemoWorkspace {
    fn drop(&mut self) {
        if let Self::Temporary(dir) = self {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
