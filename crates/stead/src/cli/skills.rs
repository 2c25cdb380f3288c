//! `stead skills`: installing, listing, publishing and checking skills.

mod layers;
mod list;
mod watch;

use super::args::{Common, SkillsCommand};
use super::env::Env;
use super::error::CliError;
use super::print::{errln, outln};
use super::style::Style;
pub(crate) use layers::Places;
use std::path::Path;
use std::process::ExitCode;
use stead::workspace::skills::{
    Fetched, Installation, Installed, InstalledSource, Layer, Progress, Source, SourceError,
    publish,
};
use watch::watched;

pub(crate) async fn skills(
    common: &Common,
    env: &Env,
    command: SkillsCommand,
) -> Result<ExitCode, CliError> {
    match command {
        SkillsCommand::Add { source, name } => add(common, env, &source, name).await,
        SkillsCommand::List { json } => list::list(common, env, Form::of(json)).await,
        SkillsCommand::Remove { name } => remove(common, env, &name).await,
        SkillsCommand::Update { name } => update(common, env, name.as_deref()).await,
        SkillsCommand::Publish { dir, store } => publish_to(common, env, &dir, &store).await,
        SkillsCommand::Check { json } => list::check(common, env, Form::of(json)).await,
    }
}

/// How something is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Form {
    /// What the flag `--json` says.
    fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

async fn add(
    common: &Common,
    env: &Env,
    text: &str,
    name: Option<String>,
) -> Result<ExitCode, CliError> {
    let source = Source::parse(text, &here()?)?;
    let name = name.unwrap_or_else(|| source.default_name());
    let places = Places::open(common, env).await?;
    let mut installation = Installation::open(places.installed.clone()).await?;
    installation.check_new(&name)?;
    let progress = Progress::default();
    let lookup = |name: &str| places.variable(env, name);
    let work = async {
        let fetched = source.fetch(&name, &lookup, &progress).await?;
        let installed = installation.install(&name, &fetched, &progress).await?;
        Ok::<_, SourceError>((fetched, installed))
    };
    let Some(done) = watched(env, &progress, work).await? else {
        return Ok(ExitCode::from(130));
    };
    let (fetched, installed) = done?;
    tell(env, installation.source(&name)?, &fetched, installed);
    Ok(ExitCode::SUCCESS)
}

async fn remove(common: &Common, env: &Env, name: &str) -> Result<ExitCode, CliError> {
    let places = Places::open(common, env).await?;
    let removed = Installation::open(places.installed.clone())
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

async fn update(common: &Common, env: &Env, name: Option<&str>) -> Result<ExitCode, CliError> {
    let places = Places::open(common, env).await?;
    let mut installation = Installation::open(places.installed.clone()).await?;
    let sources: Vec<InstalledSource> = match name {
        Some(name) => vec![installation.source(name)?.clone()],
        None => installation.sources().to_vec(),
    };
    if sources.is_empty() {
        outln!("nothing is installed; `stead skills add` does that");
    }
    let lookup = |name: &str| places.variable(env, name);
    let mut failed = 0;
    for known in sources {
        let progress = Progress::default();
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
        match watched(env, &progress, work).await? {
            None => return Ok(ExitCode::from(130)),
            Some(Ok((fetched, installed))) => {
                tell(env, installation.source(&known.name)?, &fetched, installed)
            }
            // The others may still be fetched.
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
    common: &Common,
    env: &Env,
    dir: &Path,
    store: &str,
) -> Result<ExitCode, CliError> {
    if common.workspace.is_some() || common.user.is_some() {
        return Err(CliError::usage(
            "publish takes a directory, no workspace: leave -C and -u out",
        ));
    }
    let dir = dir
        .to_str()
        .ok_or_else(|| CliError::usage("the directory's name is not UTF-8"))?;
    if !Path::new(dir).is_dir() {
        return Err(CliError::usage(format!("there is no directory {dir}")));
    }
    let store = Source::parse(store, &here()?)?;
    let progress = Progress::default();
    let lookup = |name: &str| env.get(name);
    let work = async {
        let to = store.open_store(&lookup).await?;
        publish(dir, &to, &progress).await
    };
    let Some(published) = watched(env, &progress, work).await? else {
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
        quoted(&store.from)
    );
    Ok(ExitCode::SUCCESS)
}

/// The directory the command was typed in.
fn here() -> Result<String, CliError> {
    let dir = std::path::absolute(".")?;
    let text = dir
        .to_str()
        .map(|text| text.trim_end_matches("/.").to_owned());
    text.ok_or_else(|| CliError::usage("the name of the current directory is not UTF-8"))
}

fn tell(env: &Env, source: &InstalledSource, fetched: &Fetched, installed: Installed) {
    let style = Style::stdout(env);
    let word = match installed {
        Installed::New => style.good("installed"),
        Installed::Renewed => style.good("updated"),
        Installed::Unchanged => style.dim("unchanged"),
    };
    let names: Vec<&str> = source
        .skills
        .iter()
        .map(|skill| skill.name.as_str())
        .collect();
    outln!(
        "{word} {} at {}: {}",
        source.name,
        short(&source.pinned),
        style.safe(&names.join(", "))
    );
    for problem in fetched.left_out() {
        errln!(
            "{} {}",
            Style::stderr(env).warn("left out"),
            Style::stderr(env).safe(&problem)
        );
    }
}

/// Enough of a commit or hash to tell it from others.
fn short(pinned: &str) -> String {
    let (kind, hash) = pinned
        .split_once(':')
        .map_or(("", pinned), |(_, hash)| ("sha256:", hash));
    format!("{kind}{}", hash.chars().take(12).collect::<String>())
}

/// `1 skill`, `2 skills`.
fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// As a shell takes it: variables are for us to fill in.
fn quoted(text: &str) -> String {
    if text.contains(['$', ' ', '#', '?', '&', '*']) {
        format!("'{text}'")
    } else {
        text.to_owned()
    }
}

/// Whether what is wrong in a layer is for the workspace's owner to put right.
fn is_own(layer: &Layer) -> bool {
    match layer {
        Layer::Workspace | Layer::User => true,
        Layer::Global | Layer::Repository(_) => false,
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
            | SourceError::Manifest { .. } => Self::usage(error.to_string()),
            SourceError::Git(_) | SourceError::Files(_) | SourceError::Store(_) => {
                Self::Failed(error.into())
            }
        }
    }
}
