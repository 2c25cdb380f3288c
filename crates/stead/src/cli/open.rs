//! From flags and files to an agent.

use super::args::{Approve, Common, TurnArgs};
use super::env::Env;
use super::error::CliError;
use super::locate::{layout_by_place, open_options, working_folder, workspace_dir};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stead::agent::{Agent, AgentParts, Answer, Approvals, Approver, Question};
use stead::core::{Owner, Price, Redactor, SessionId, UserId};
use stead::model::{Delta, Model, ModelError, ModelSettings, Params, Request, connect, secrets};
use stead::store::{OsDisk, Store, Wait};
use stead::vfs::{LocalVfs, VPath};
use stead::workspace::{
    Attached, EphemeralPlace, LocalPlace, Mode, OpenOptions, PROJECT, Place, Project, StorePlace, Switch, Workspace,
};

/// Whether a command talks to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Model,
    FilesOnly,
}

/// Opens the workspace and puts the agent together.
pub(crate) async fn open_agent(common: &Common, env: &Env, needs: Needs) -> Result<Arc<Agent>, CliError> {
    let dir = workspace_dir(common, env)?;
    let workspace = open_workspace(&dir, open_options(common, env)?, env).await?;
    let lookup = |name: &str| variable(&workspace, env, name);
    // Every key that is known is kept out of journals, whichever model is asked.
    let mut known = workspace.config().secrets.clone();
    known.extend(workspace.config().model.iter().flat_map(|settings| secrets(settings, &lookup)));
    let (model, params): (Arc<dyn Model>, Params) = match needs {
        Needs::FilesOnly => (Arc::new(NoModel), Params::default()),
        Needs::Model => {
            let settings = model_settings(common, env, &dir, &workspace)?;
            known.extend(secrets(&settings, &lookup));
            (connect(&settings, &lookup)?, settings.params())
        }
    };
    let parts = Made { model, params, secrets: known, owner: owner(common)?, folder: working_folder(&dir, env) };
    assemble(&dir, workspace, parts).await
}

/// A variable: of the workspace's own `.env`, or else of the process.
pub(crate) fn variable(workspace: &Workspace, env: &Env, name: &str) -> Option<String> {
    workspace.config().variables.get(name).cloned().or_else(|| env.get(name))
}

/// Whose sessions and files the command is about.
pub(crate) fn owner(common: &Common) -> Result<Owner, CliError> {
    match &common.user {
        None => Ok(Owner::default()),
        Some(name) => {
            if UserId::default().as_str() == name {
                return Err(CliError::usage(format!(
                    "-u {name}: this is the user of those who give no name; leave -u out"
                )));
            }
            let user = UserId::new(name).map_err(|error| CliError::usage(format!("-u {name:?}: {error}")))?;
            Ok(Owner { user, ..Owner::default() })
        }
    }
}

/// Opens the files and settings of a folder.
pub(crate) async fn open_workspace(dir: &Path, options: OpenOptions, env: &Env) -> Result<Workspace, CliError> {
    let files = LocalVfs::open(dir, Arc::new(OsDisk)).map_err(|error| CliError::usage(error.to_string()))?;
    let options = OpenOptions { layout: options.layout.or_else(|| layout_by_place(dir)), ..options };
    Ok(Workspace::open(Arc::new(files), &options, &|name| env.get(name)).await?)
}

/// Where the tree and the sessions of the workspace in `dir` lie; no journal ever holds any of `secrets`.
pub(crate) async fn open_place(
    dir: &Path,
    workspace: &Workspace,
    secrets: Vec<String>,
) -> Result<Arc<dyn Place>, CliError> {
    let (settings, agent) = (&workspace.config().filesystem, workspace.config().agent());
    let redactor = Redactor::new(secrets);
    let place: Arc<dyn Place> = match settings.mode {
        Mode::Local => Arc::new(local_place(dir, workspace, redactor.clone())?),
        Mode::Store => Arc::new(store_place(dir, workspace, redactor.clone()).await?),
    };
    if workspace.config().disable.has(Switch::SessionPersistence) {
        return Ok(Arc::new(EphemeralPlace::new(place, agent, redactor)));
    }
    Ok(place)
}

/// The folder itself, with the project that is attached to it.
fn local_place(dir: &Path, workspace: &Workspace, redactor: Redactor) -> Result<LocalPlace, CliError> {
    let (settings, tree) = (&workspace.config().filesystem, &workspace.definition.tree);
    let place = LocalPlace::open(dir, workspace.config().agent(), Arc::new(OsDisk), redactor);
    let place = place.map_err(|error| CliError::usage(error.to_string()))?;
    let place = place.with_scope(settings.scope).with_runtime(&tree.runtime);
    let Some(project) = settings.project.as_ref().map(Project::settings) else { return Ok(place) };
    let attached = if project.writable { Attached::Writable } else { Attached::ReadOnly };
    let folder = dir.join(&project.path);
    refuse_overlap(dir, &folder)?;
    place
        .with_project(&folder, attached)
        .map_err(|error| CliError::usage(format!("filesystem.project: {} cannot be opened: {error}", folder.display())))
}

/// A project that holds the workspace, or lies in it, would open by another name what the rules protect.
fn refuse_overlap(dir: &Path, project: &Path) -> Result<(), CliError> {
    if dir.join(PROJECT).exists() {
        return Err(CliError::usage(format!(
            "filesystem.project would hide the folder {PROJECT}/ of the workspace; rename that folder"
        )));
    }
    let (Ok(dir), Ok(real)) = (dir.canonicalize(), project.canonicalize()) else {
        let text = format!("filesystem.project: there is no folder {}", project.display());
        return Err(CliError::usage(text));
    };
    if real.starts_with(&dir) || dir.starts_with(&real) {
        return Err(CliError::usage(format!(
            "filesystem.project: {} overlaps the workspace; attach a folder beside it",
            project.display()
        )));
    }
    Ok(())
}

/// The store that the workspace's settings name.
pub(crate) async fn store_place(dir: &Path, workspace: &Workspace, redactor: Redactor) -> Result<StorePlace, CliError> {
    let settings = &workspace.config().filesystem;
    let store = connect_store(Base::Workspace(dir), settings.url.as_deref().unwrap_or_default()).await?;
    let sessions = match &workspace.config().sessions.url {
        Some(url) => connect_store(Base::Workspace(dir), url).await?,
        None => store.clone(),
    };
    StorePlace::new(store, sessions, workspace.files.clone(), workspace.config().agent(), settings, redactor)
        .map_err(|error| CliError::usage(error.to_string()))
}

/// Where a store that is a file begins, if its path is relative.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Base<'a> {
    /// Where the command is typed.
    Here,
    /// In the workspace, out of the agent's reach.
    Workspace(&'a Path),
}

impl Base<'_> {
    /// The file that `url` names, if it names one.
    pub(crate) fn file(self, url: &str) -> Option<PathBuf> {
        let (_, rest) = url.split_once(':').filter(|(scheme, _)| matches!(*scheme, "sqlite" | "file"))?;
        let path = Path::new(rest.strip_prefix("//").unwrap_or(rest));
        let is_file = !path.as_os_str().is_empty() && rest != ":memory:";
        is_file.then(|| match self {
            Self::Here => path.to_owned(),
            Self::Workspace(dir) => dir.join(path),
        })
    }
}

/// Connects to a store, saying so if that takes long.
pub(crate) async fn connect_store(base: Base<'_>, url: &str) -> Result<Arc<dyn Store>, CliError> {
    let mut connecting = Box::pin(connect_quietly(base, url));
    if let Ok(connected) = tokio::time::timeout(Duration::from_secs(1), &mut connecting).await {
        return connected;
    }
    super::print::errln!("still connecting to the store");
    connecting.await
}

async fn connect_quietly(base: Base<'_>, url: &str) -> Result<Arc<dyn Store>, CliError> {
    let Some(file) = base.file(url) else { return Ok(stead::store::connect(url).await?) };
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    if let Base::Workspace(dir) = base
        && let Some(below) = within(dir, &file)
        && (!below.starts_with("agents") || below.components().count() < 2)
    {
        let hint = format!("{scheme}:agents/{}", file.file_name().unwrap_or_default().display());
        return Err(CliError::usage(format!(
            "{url}: a store inside the workspace must lie under agents/, where the agent cannot change it; use {hint}"
        )));
    }
    Ok(stead::store::connect(&format!("{scheme}:{}", file.display())).await?)
}

/// The path of `file` from `dir`, if it lies in it, whatever links and dots are on the way.
fn within(dir: &Path, file: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir.canonicalize().ok()?).ok()?;
    let mut plain = PathBuf::new();
    for part in std::path::absolute(file).ok()?.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    // The part that exists tells where the rest will be.
    let there = plain.ancestors().find(|above| above.exists())?;
    let real = there.canonicalize().ok()?.join(plain.strip_prefix(there).ok()?);
    real.strip_prefix(dir).ok().map(Path::to_owned)
}

/// What an agent is made of beside its workspace.
pub(crate) struct Made {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) params: Params,
    /// No journal ever holds any of these.
    pub(crate) secrets: Vec<String>,
    pub(crate) owner: Owner,
    /// The folder of the workspace that is worked in.
    pub(crate) folder: VPath,
}

impl Made {
    /// A model, and nothing special.
    pub(crate) fn of(model: Arc<dyn Model>) -> Self {
        let (params, owner, folder) = (Params::default(), Owner::default(), VPath::root());
        Self { model, params, secrets: Vec::new(), owner, folder }
    }
}

/// An agent over `workspace`.
pub(crate) async fn assemble(dir: &Path, workspace: Workspace, made: Made) -> Result<Arc<Agent>, CliError> {
    let Made { model, params, secrets, owner, folder } = made;
    let place = open_place(dir, &workspace, secrets).await?;
    Ok(Agent::new(AgentParts { workspace, model, params, place, owner, tools: Vec::new(), folder })?)
}

/// The model to use: the flag, the workspace's setting, or the first provider whose key is set.
fn model_settings(common: &Common, env: &Env, dir: &Path, workspace: &Workspace) -> Result<ModelSettings, CliError> {
    let configured = workspace.config().model.clone().map(|settings| in_workspace(settings, dir));
    let settings = match (&common.model, configured) {
        (Some(name), Some(settings)) if settings.name == *name => Some(settings),
        (Some(name), _) => Some(ModelSettings { name: name.clone(), ..ModelSettings::default() }),
        (None, configured) => configured.filter(|settings| !settings.name.is_empty()),
    };
    let by_key = || DEFAULTS.iter().find(|(key, _)| env.get(key).is_some()).map(|(_, name)| (*name).to_owned());
    let settings = settings.or_else(|| by_key().map(|name| ModelSettings { name, ..ModelSettings::default() }));
    settings.ok_or_else(|| CliError::usage(no_model_message()))
}

/// Files that the workspace's own settings name lie in the workspace; those of a flag, where it was typed.
pub(crate) fn in_workspace(settings: ModelSettings, dir: &Path) -> ModelSettings {
    let name = match settings.name.split_once(':') {
        Some((kind @ ("scripted" | "replay" | "record"), file)) => format!("{kind}:{}", dir.join(file).display()),
        Some(_) | None => settings.name,
    };
    ModelSettings { name, ..settings }
}

/// The model that is used when only a key is set.
const DEFAULTS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-5"),
    ("OPENAI_API_KEY", "openai:gpt-5-mini"),
    ("GEMINI_API_KEY", "gemini:gemini-2.5-flash"),
];

fn no_model_message() -> String {
    let mut lines = vec!["no model is set. Do one of these:".to_owned()];
    for (key, model) in DEFAULTS {
        lines.push(format!("  {:<30} then {model} is used", format!("export {key}=…")));
    }
    let ollama = std::net::SocketAddr::from(([127, 0, 0, 1], 11434));
    if std::net::TcpStream::connect_timeout(&ollama, Duration::from_millis(200)).is_ok() {
        lines.push("  -m ollama:MODEL                a local endpoint answers at http://127.0.0.1:11434".to_owned());
    }
    lines.push("  -m provider:model              any other; `stead models` lists providers".to_owned());
    lines.push("  model: provider:model          the same, in the workspace's agent.yaml".to_owned());
    lines.push("  stead demo                     watch an agent work with no key at all".to_owned());
    lines.join("\n")
}

/// The session a flag names, or a new one.
pub(crate) fn session_id(flag: Option<&str>) -> Result<SessionId, CliError> {
    match flag {
        Some(text) => SessionId::new(text).map_err(|error| CliError::usage(format!("session {text:?}: {error}"))),
        None => Ok(SessionId::fresh()),
    }
}

impl TurnArgs {
    pub(crate) fn wait(&self) -> Wait {
        self.wait.map_or(Wait::No, |seconds| Wait::AtMost(Duration::from_secs(seconds)))
    }
}

impl Approve {
    /// Who answers: on a terminal a person can.
    pub(crate) fn approvals(self, env: &Env) -> Approvals {
        match self {
            Self::All => Approvals::All,
            Self::None => Approvals::None,
            Self::Ask if env.stdin_is_terminal && env.stderr_is_terminal => Approvals::Person(Arc::new(Terminal)),
            Self::Ask => Approvals::Park,
        }
    }
}

/// Asks on the terminal, one line.
struct Terminal;

impl Approver for Terminal {
    fn name(&self) -> String {
        "the person at the terminal".to_owned()
    }

    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let prompt =
            format!("\n{} {}\n  ({})\nallow? [y]es / [n]o / [l]ater: ", question.tool, question.args, question.rule);
        Box::pin(async move {
            let read = move || {
                super::print::err(format_args!("{prompt}"));
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).map(|_| line)
            };
            match tokio::task::spawn_blocking(read).await {
                Ok(Ok(line)) if line.trim().eq_ignore_ascii_case("y") || line.trim().eq_ignore_ascii_case("yes") => {
                    Answer::Yes
                }
                Ok(Ok(line)) if line.trim().eq_ignore_ascii_case("n") || line.trim().eq_ignore_ascii_case("no") => {
                    Answer::No
                }
                Ok(_) | Err(_) => Answer::Later,
            }
        })
    }
}

/// Stands in where no model is asked.
#[derive(Debug)]
pub(crate) struct NoModel;

impl Model for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn stream<'a>(&'a self, _: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let error = ModelError::Config("this command asks no model".to_owned());
        Box::pin(futures_util::stream::iter([Err(error)]))
    }
}
