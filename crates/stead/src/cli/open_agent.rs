//! Opening agents and workspaces according to the flags.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes), the network.

use super::args::GlobalArgs;
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::{open_options, working_folder, workspace_dir};
use super::personal::PersonalFolder;
use super::print::errln;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead::agent::{Agent, BuildError, DEFAULT_MODELS, choose_model, open_folder};
use stead::core::{Owner, PermissionMode, Redactor, SessionId, UserId, counted};
use stead::model::ModelSettings;
use stead::place::{Place, StorePathBase};
use stead::store::{OsDisk, Store};
use stead::vfs::{LocalVfs, VPath};
use stead::workspace::{AgentChoice, ModelUse, OpenOptions, Workspace, detect_layout};

/// The time after which a message tells that opening takes long.
const SLOW_OPENING: Duration = Duration::from_secs(1);

/// Builds the agent of the workspace that the flags name.
pub(crate) async fn open_agent(
    common: &GlobalArgs,
    env: &ProcessEnv,
    model_use: ModelUse,
) -> Result<Arc<Agent>, CliError> {
    let dir = workspace_dir(common, env)?;
    let options = OpenOptions {
        model_use,
        ..open_options(common, env, &dir)?
    };
    let mode = common.mode;
    let secrets = env.secrets();
    let builder = Agent::builder()
        .working_folder(working_folder(&dir, env))
        .workspace(dir)
        .open_options(options)
        .owner(owner(common)?)
        .variables(env.lookup())
        .grant_keys(Arc::new(PersonalFolder::new(env)))
        .configure(move |config| {
            config.permission_mode = mode.unwrap_or(config.permission_mode);
            config.secrets.extend(secrets);
        });
    let agent = announce_if_slow(builder.build()).await?;
    refuse_wider_mode(&agent, mode)?;
    tell_restriction(&agent);
    print_notices(&**agent.place());
    warn_of_home_folder(&agent, env);
    tracing::info!(
        place = %agent.place().describe(),
        layout = %agent.workspace().definition.layout,
        model = agent.model().name(),
        "workspace opened"
    );
    Ok(agent)
}

/// Prints that a folder that is not trusted was opened for reading alone.
fn tell_restriction(agent: &Agent) {
    let trust = &agent.workspace().trust;
    if let Some(request) = trust.request().filter(|_| trust.is_restricted()) {
        let parts = counted(request.parts.len(), "part");
        errln!(
            "the folder is not trusted, so it is opened read only, without {parts} that would act \
             (`stead trust show`)"
        );
    }
}

/// Refuses a permission mode that allows more than reading in a folder that is not trusted.
pub(crate) fn refuse_wider_mode(
    agent: &Agent,
    mode: Option<PermissionMode>,
) -> Result<(), CliError> {
    match mode.filter(|mode| *mode != PermissionMode::Explore) {
        Some(mode) if agent.workspace().trust.is_restricted() => Err(CliError::usage(format!(
            "the folder is not trusted, so it is opened read only; --mode {mode} needs --trust"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Returns flags that name an agent for a command with a session: where the layout does not choose
/// among agents, the session does.
pub(crate) async fn without_agent_if_session_chooses(
    common: GlobalArgs,
    env: &ProcessEnv,
) -> Result<GlobalArgs, CliError> {
    let layout = match common.layout {
        Some(layout) => layout,
        None => {
            let dir = workspace_dir(&common, env)?;
            let files = LocalVfs::open(&dir, Arc::new(OsDisk))
                .map_err(|error| CliError::usage(error.to_string()))?;
            detect_layout(&files).await
        }
    };
    match layout.def().agent_choice {
        AgentChoice::ByWorkspace => Ok(common),
        AgentChoice::BySession => Ok(common.with_agent(None)),
    }
}

/// Returns `options` for a command that uses no model: a model that cannot be found is then not an
/// error.
pub(crate) fn without_model(options: OpenOptions) -> OpenOptions {
    OpenOptions {
        model_use: ModelUse::NotNeeded,
        ..options
    }
}

/// Returns a variable of the workspace's own `.env`, or of the process.
pub(crate) fn variable(workspace: &Workspace, env: &ProcessEnv, name: &str) -> Option<String> {
    workspace
        .config()
        .variables
        .get(name)
        .cloned()
        .or_else(|| env.get(name))
}

/// Returns the owner of the sessions and files that the command uses.
pub(crate) fn owner(common: &GlobalArgs) -> Result<Owner, CliError> {
    match &common.user {
        None => Ok(Owner::default()),
        Some(name) => {
            if UserId::default().as_str() == name {
                return Err(CliError::usage(format!(
                    "-u {name}: this name stands for no user; omit -u"
                )));
            }
            let user = UserId::new(name)
                .map_err(|error| CliError::usage(format!("-u {name:?}: {error}")))?;
            Ok(Owner {
                user,
                ..Owner::default()
            })
        }
    }
}

/// Opens the files and settings of a folder.
pub(crate) async fn open_workspace(
    dir: &Path,
    options: OpenOptions,
    env: &ProcessEnv,
) -> Result<Workspace, BuildError> {
    open_folder(dir, options, &|name| env.get(name)).await
}

/// Returns the settings of the model that a run would use.
pub(crate) fn configured_model(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
    workspace: &Workspace,
) -> Option<ModelSettings> {
    choose_model(common.model.as_deref(), workspace, dir, &|name| {
        env.get(name)
    })
}

/// Opens the place of the workspace in `dir`. Journals redact `secrets`. Prints a message if
/// opening takes long.
pub(crate) async fn open_place(
    dir: &Path,
    workspace: &Workspace,
    secrets: Vec<String>,
) -> Result<Arc<dyn Place>, CliError> {
    let settings = workspace.place_settings(dir);
    let opening = stead::place::open_place(&settings, Redactor::new(secrets));
    let place = announce_if_slow(opening).await?;
    print_notices(&*place);
    Ok(place)
}

fn print_notices(place: &dyn Place) {
    for notice in place.notices() {
        errln!("{notice}");
    }
}

/// Says where the agent works if an ordinary project is the person's home folder, or the root of all
/// files: few people want an agent to work there.
fn warn_of_home_folder(agent: &Agent, env: &ProcessEnv) {
    let agent_dir = agent.workspace().definition.home();
    let here =
        agent
            .place()
            .local_dir(&Owner::default(), &SessionId::sessionless(), &VPath::root());
    let Some(here) = here.filter(|_| !agent_dir.is_root()) else {
        return;
    };
    let user_home = env.home().and_then(|home| home.canonicalize().ok());
    if user_home.as_ref() == Some(&here) || here.parent().is_none() {
        let here = here.display();
        errln!(
            "the agent works in {here}, can read and change everything in it, and keeps its state in {agent_dir}/; \
             to work elsewhere, run this in a project, or name one with -C DIR"
        );
    }
}

/// Connects to a store. Prints a message if that takes long.
pub(crate) async fn connect_store(
    base: StorePathBase<'_>,
    url: &str,
) -> Result<Arc<dyn Store>, CliError> {
    Ok(announce_if_slow(stead::place::connect_store(base, url)).await?)
}

/// Waits for a workspace or store, with a message if that takes long.
async fn announce_if_slow<T>(opening: impl Future<Output = T>) -> T {
    let mut opening = Box::pin(opening);
    if let Ok(opened) = tokio::time::timeout(SLOW_OPENING, &mut opening).await {
        return opened;
    }
    errln!("still opening the workspace");
    opening.await
}

/// Returns the message of a command that needs a model and has none.
pub(crate) fn no_model_message() -> String {
    let mut lines = vec!["no model is set. Do one of these:".to_owned()];
    for (key, model) in DEFAULT_MODELS {
        lines.push(format!(
            "  {:<30} then {model} is used",
            format!("export {key}=…")
        ));
    }
    let ollama = std::net::SocketAddr::from(([127, 0, 0, 1], 11434));
    if std::net::TcpStream::connect_timeout(&ollama, Duration::from_millis(200)).is_ok() {
        lines.push(
            "  -m ollama:MODEL                a local endpoint answers at http://127.0.0.1:11434"
                .to_owned(),
        );
    }
    lines.push("  stead auth add PROVIDER        stores a key".to_owned());
    lines.push(
        "  -m provider:model              any other; `stead models` lists providers".to_owned(),
    );
    lines.push(
        "  model: provider:model          the same, in agent.yaml (of a project: .stead/agent.yaml)"
            .to_owned(),
    );
    lines
        .push("  stead demo                     watch an agent work with no key at all".to_owned());
    lines.join("\n")
}

#[cfg(test)]
mod tests;
