//! `stead skills`: installing, listing, publishing and checking skills.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the network, processes.

mod context;
mod list;
mod progress;

use super::args::{GlobalArgs, SkillsCommand};
use super::env::ProcessEnv;
use super::error::{CliError, with_hint};
use super::print::{errln, outln};
use super::run::shell_quote;
use super::style::Style;
pub(crate) use context::SkillContext;
use progress::with_progress;
use std::path::Path;
use std::process::ExitCode;
use stead::core::counted;
use stead::skills::{
    FetchedSkills, InstallOutcome, Installation, InstalledSource, SkillOrigin, SkillProgress,
    SkillSource, SourceError, publish,
};

pub(crate) async fn skills(
    common: &GlobalArgs,
    env: &ProcessEnv,
    command: SkillsCommand,
) -> Result<ExitCode, CliError> {
    match command {
        SkillsCommand::Add { source, name } => add(common, env, &source, name).await,
        SkillsCommand::List { json } => list::list(common, env, SkillsFormat::of(json)).await,
        SkillsCommand::Remove { name } => remove(common, env, &name).await,
        SkillsCommand::Update { name } => update(common, env, name.as_deref()).await,
        SkillsCommand::Publish { dir, store } => publish_to(common, env, &dir, &store).await,
        SkillsCommand::Check { json } => list::check(common, env, SkillsFormat::of(json)).await,
    }
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillsFormat {
    Text,
    Json,
}

impl SkillsFormat {
    /// Returns the form that `--json` chooses.
    fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

async fn add(
    common: &GlobalArgs,
    env: &ProcessEnv,
    text: &str,
    name: Option<String>,
) -> Result<ExitCode, CliError> {
    let source = SkillSource::parse(text, &current_dir()?)?;
    let name = name.unwrap_or_else(|| source.default_name());
    let places = SkillContext::open(common, env).await?;
    let mut installation = Installation::open(places.installed_files.clone()).await?;
    installation.check_new(&name)?;
    let progress = SkillProgress::default();
    let lookup = |name: &str| places.variable(env, name);
    let work = async {
        let fetched = source.fetch(&name, &lookup, &progress).await?;
        let installed = installation.install(&name, &fetched, &progress).await?;
        Ok::<_, SourceError>((fetched, installed))
    };
    let Some(done) = with_progress(env, &progress, work).await? else {
        return Ok(ExitCode::from(130));
    };
    let (fetched, installed) = done?;
    print_installed(env, installation.source(&name)?, &fetched, installed);
    Ok(ExitCode::SUCCESS)
}

async fn remove(common: &GlobalArgs, env: &ProcessEnv, name: &str) -> Result<ExitCode, CliError> {
    let places = SkillContext::open(common, env).await?;
    let removed = Installation::open(places.installed_files.clone())
        .await?
        .remove(name)
        .await?;
    outln!(
        "removed {}: {}",
        removed.name,
        counted(removed.skills.len(), "skill")
    );
    Ok(ExitCode::SUCCESS)
}

async fn update(
    common: &GlobalArgs,
    env: &ProcessEnv,
    name: Option<&str>,
) -> Result<ExitCode, CliError> {
    let places = SkillContext::open(common, env).await?;
    let mut installation = Installation::open(places.installed_files.clone()).await?;
    let sources: Vec<InstalledSource> = match name {
        Some(name) => vec![installation.source(name)?.clone()],
        None => installation.sources().to_vec(),
    };
    if sources.is_empty() {
        outln!("no source is installed; `stead skills add` installs one");
    }
    let lookup = |name: &str| places.variable(env, name);
    let mut failed = 0;
    for known in sources {
        let progress = SkillProgress::default();
        let work = async {
            let fetched = known
                .source()
                .fetch(&known.name, &lookup, &progress)
                .await?;
            let installed = installation
                .install(&known.name, &fetched, &progress)
                .await?;
            Ok::<_, SourceError>((fetched, installed))
        };
        match with_progress(env, &progress, work).await? {
            None => return Ok(ExitCode::from(130)),
            Some(Ok((fetched, installed))) => {
                print_installed(env, installation.source(&known.name)?, &fetched, installed)
            }
            // Other sources may still be fetched.
            Some(Err(error)) => {
                failed += 1;
                errln!(
                    "{} {}: {error}",
                    Style::stderr(env).bad("failed"),
                    known.name
                );
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}

async fn publish_to(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
    store: &str,
) -> Result<ExitCode, CliError> {
    if common.workspace.is_some() || common.user.is_some() {
        return Err(CliError::usage(
            "publish takes a directory, not a workspace: omit -C and -u",
        ));
    }
    let dir = dir
        .to_str()
        .ok_or_else(|| CliError::usage("the directory's name is not UTF-8"))?;
    if !Path::new(dir).is_dir() {
        return Err(CliError::usage(format!("there is no directory {dir}")));
    }
    let store = SkillSource::parse(store, &current_dir()?)?;
    let progress = SkillProgress::default();
    let lookup = |name: &str| env.get(name);
    let work = async {
        let to = store.open_store(&lookup).await?;
        publish(dir, &to, &progress).await
    };
    let Some(published) = with_progress(env, &progress, work).await? else {
        return Ok(ExitCode::from(130));
    };
    let published = published?;
    outln!(
        "published {}: {}",
        counted(published.len(), "skill"),
        published.join(", ")
    );
    outln!(
        "add them elsewhere with: stead skills add {}",
        shell_quote(&store.from)
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the current folder as text.
fn current_dir() -> Result<String, CliError> {
    let dir = std::path::absolute(".")?;
    let text = dir
        .to_str()
        .map(|text| text.trim_end_matches("/.").to_owned());
    text.ok_or_else(|| CliError::usage("the name of the current directory is not UTF-8"))
}

fn print_installed(
    env: &ProcessEnv,
    source: &InstalledSource,
    fetched: &FetchedSkills,
    installed: InstallOutcome,
) {
    let style = Style::stdout(env);
    let word = match installed {
        InstallOutcome::New => style.good("installed"),
        InstallOutcome::Updated => style.good("updated"),
        InstallOutcome::Unchanged => style.dim("unchanged"),
    };
    let names: Vec<&str> = source
        .skills
        .iter()
        .map(|skill| skill.name.as_str())
        .collect();
    outln!(
        "{word} {} at {}: {}",
        source.name,
        short_pin(&source.pinned),
        names.join(", ")
    );
    for problem in fetched.broken_skills() {
        errln!("{} {}", Style::stderr(env).warn("left out"), problem);
    }
}

/// Returns the first characters of a commit or hash.
fn short_pin(pinned: &str) -> String {
    let (kind, hash) = pinned
        .split_once(':')
        .map_or(("", pinned), |(_, hash)| ("sha256:", hash));
    format!("{kind}{}", hash.chars().take(12).collect::<String>())
}

/// Whether the workspace's owner can correct problems in a layer.
fn is_workspace_owned(layer: &SkillOrigin) -> bool {
    match layer {
        SkillOrigin::Workspace | SkillOrigin::User => true,
        SkillOrigin::Global | SkillOrigin::Repository(_) => false,
    }
}

impl From<SourceError> for CliError {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Address(_)
            | SourceError::Credentials(_)
            | SourceError::Variables(_)
            | SourceError::Archive(_)
            | SourceError::NoSkills(..)
            | SourceError::Content { .. }
            | SourceError::Name(_)
            | SourceError::Exists(_)
            | SourceError::Unknown { .. }
            | SourceError::Manifest { .. } => Self::usage(with_hint(&error, error.hint())),
            SourceError::Git(_) | SourceError::Files(_) | SourceError::Store(_) => {
                Self::Failed(error.into())
            }
        }
    }
}

/// Returns the skills of the workspace, a line each.
pub(crate) async fn skill_lines(
    common: &GlobalArgs,
    env: &ProcessEnv,
) -> Result<Vec<String>, CliError> {
    let places = SkillContext::open(common, env).await?;
    let catalogue = places.library().catalogue(&places.layers().await?).await;
    let mut lines: Vec<String> = catalogue
        .skills()
        .map(|skill| format!("{}  {}", skill.name(), skill.header.description))
        .collect();
    if lines.is_empty() {
        lines.push("there are no skills; `stead skills add` installs some".to_owned());
    }
    Ok(lines)
}
