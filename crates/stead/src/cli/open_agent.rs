//! From flags and files to an agent.

use super::approvals::{TerminalApprover, answerer};
use super::args::{ApproveMode, GlobalArgs, RunFlags};
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::{open_options, with_folder, working_folder, workspace_dir};
use super::style::Style;
use futures_util::stream::BoxStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead::agent::{
    Agent, AgentParts, ApprovalPolicy, HookRuntime, ModelConnector, hook_model, side_model,
};
use stead::core::{Owner, Redactor, SessionId, UserId};
use stead::model::{
    Delta, Model, ModelError, ModelFacts, ModelSettings, Params, Request, connect, secrets,
};
use stead::place::{Place, StorePathBase};
use stead::sandbox::{Host, Sandbox};
use stead::store::{LockWait, OsDisk, Store};
use stead::vfs::{LocalVfs, VPath};
use stead::workspace::{AgentChoice, ModelUse, OpenOptions, Workspace, detect_layout};

/// Whether a command talks to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandModelUse {
    Required,
    NotNeeded,
}

/// Opens the workspace and puts the agent together.
pub(crate) async fn open_agent(
    common: &GlobalArgs,
    env: &ProcessEnv,
    needs: CommandModelUse,
) -> Result<Arc<Agent>, CliError> {
    let dir = workspace_dir(common, env)?;
    let mut options = open_options(common, env)?;
    if needs == CommandModelUse::NotNeeded {
        options = without_model(options);
    }
    let mut workspace = open_workspace(&dir, options, env).await?;
    let config = &mut workspace.definition.config;
    config.permission_mode = common.mode.unwrap_or(config.permission_mode);
    let lookup = |name: &str| variable(&workspace, env, name);
    // Every key that is known is kept out of journals, whichever model is asked.
    let mut known = workspace.config().secrets.clone();
    let others = workspace
        .definition
        .agents
        .values()
        .filter_map(|spec| spec.model.as_ref());
    known.extend(
        workspace
            .config()
            .model
            .iter()
            .chain(others)
            .flat_map(|settings| secrets(settings, &lookup)),
    );
    let (model, params, compactor): (Arc<dyn Model>, Params, _) = match needs {
        CommandModelUse::NotNeeded => (
            Arc::new(NoModel::for_configured_model(common, env, &dir, &workspace)),
            Params::default(),
            None,
        ),
        CommandModelUse::Required => {
            let settings = model_settings(common, env, &dir, &workspace)?;
            known.extend(secrets(&settings, &lookup));
            let side = workspace
                .config()
                .compaction
                .model
                .as_ref()
                .map(|name| side_model(name, Some(&settings)));
            let side = side
                .map(|settings| connect(&resolve_model_files(settings, &dir), &lookup))
                .transpose()?;
            (connect(&settings, &lookup)?, settings.params(), side)
        }
    };
    let memory_model = match (needs, &workspace.config().memory.model) {
        (CommandModelUse::Required, Some(name)) => {
            let settings = side_model(name, workspace.config().model.as_ref());
            Some(connect(&resolve_model_files(settings, &dir), &lookup)?)
        }
        (CommandModelUse::Required, None) | (CommandModelUse::NotNeeded, _) => None,
    };
    known.extend(workspace.config().execute.secrets(&lookup));
    let owner = owner(common)?;
    let folder = working_folder(&dir, env);
    let gear = hook_runtime(&dir, env, &workspace, needs)?;
    let models = other_agent_models(common, env, &dir, &workspace, &model);
    let sandbox = Some(build_sandbox(&workspace, env));
    let parts = AgentInputs {
        model,
        memory_model,
        params,
        compactor,
        secrets: known,
        owner,
        sandbox,
        folder,
        models,
    };
    let agent = build_agent(&dir, workspace, parts).await?;
    agent.hooks().init(gear);
    Ok(agent)
}

/// The flags for a command that has a session: where the layout does not choose among agents, the
/// session does.
pub(crate) async fn with_session_agent(
    common: GlobalArgs,
    env: &ProcessEnv,
) -> Result<GlobalArgs, CliError> {
    if common.agent.is_none() {
        return Ok(common);
    }
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

/// Variables of this process that commands of hooks are given.
const HOOK_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"];

/// What hooks need of this process.
fn hook_runtime(
    dir: &Path,
    env: &ProcessEnv,
    workspace: &Workspace,
    needs: CommandModelUse,
) -> Result<HookRuntime, CliError> {
    let mut gear = HookRuntime::new(dir.canonicalize().ok());
    gear.env = HOOK_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), env.get(name)?)))
        .collect();
    if needs == CommandModelUse::NotNeeded {
        return Ok(gear);
    }
    let lookup = |name: &str| variable(workspace, env, name);
    let main = workspace.config().model.as_ref();
    let connected = gear.connect_models(&workspace.definition.hooks, |settings| {
        connect(
            &resolve_model_files(hook_model(settings, main), dir),
            &lookup,
        )
    });
    Ok(connected?)
}

/// How models are reached that other agents of the workspace name: a flag goes before them all.
fn other_agent_models(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
    workspace: &Workspace,
    main: &Arc<dyn Model>,
) -> ModelConnector {
    if common.model.is_some() {
        let main = main.clone();
        return ModelConnector::new(move |_| Ok(main.clone()));
    }
    let own = workspace.config().variables.clone();
    let env = env.clone();
    let dir = dir.to_owned();
    let lookup = move |name: &str| own.get(name).cloned().or_else(|| env.get(name));
    ModelConnector::new(move |settings| {
        connect(&resolve_model_files(settings.clone(), &dir), &lookup)
    })
}

/// The same for a command that asks no model: one that cannot be found is no reason to refuse.
pub(crate) fn without_model(options: OpenOptions) -> OpenOptions {
    OpenOptions {
        model_use: ModelUse::NotNeeded,
        ..options
    }
}

/// A variable: of the workspace's own `.env`, or else of the process.
pub(crate) fn variable(workspace: &Workspace, env: &ProcessEnv, name: &str) -> Option<String> {
    workspace
        .config()
        .variables
        .get(name)
        .cloned()
        .or_else(|| env.get(name))
}

/// Where the workspace's commands run: they see none of our own variables but those that are
/// harmless or passed.
pub(crate) fn build_sandbox(workspace: &Workspace, env: &ProcessEnv) -> Arc<dyn Sandbox> {
    let process = |name: &str| env.get(name);
    let lookup = |name: &str| variable(workspace, env, name);
    Arc::new(Host::new(workspace.config().execute.environment(
        &Host::INHERITED_VARIABLES,
        &process,
        &lookup,
    )))
}

/// Whose sessions and files the command is about.
pub(crate) fn owner(common: &GlobalArgs) -> Result<Owner, CliError> {
    match &common.user {
        None => Ok(Owner::default()),
        Some(name) => {
            if UserId::default().as_str() == name {
                return Err(CliError::usage(format!(
                    "-u {name}: this is the user of those who give no name; leave -u out"
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
) -> Result<Workspace, CliError> {
    let files = LocalVfs::open(dir, Arc::new(OsDisk))
        .map_err(|error| CliError::usage(error.to_string()))?;
    Ok(
        Workspace::open(Arc::new(files), &with_folder(options, dir), &|name| {
            env.get(name)
        })
        .await?,
    )
}

/// Where the tree and the sessions of the workspace in `dir` lie; no journal ever holds any of
/// `secrets`. Says so if opening it takes long.
pub(crate) async fn open_place(
    dir: &Path,
    workspace: &Workspace,
    secrets: Vec<String>,
) -> Result<Arc<dyn Place>, CliError> {
    let settings = workspace.place_settings(dir);
    Ok(announce_if_slow(stead::place::open_place(&settings, Redactor::new(secrets))).await?)
}

/// Connects to a store, saying so if that takes long.
pub(crate) async fn connect_store(
    base: StorePathBase<'_>,
    url: &str,
) -> Result<Arc<dyn Store>, CliError> {
    Ok(announce_if_slow(stead::place::connect_store(base, url)).await?)
}

async fn announce_if_slow<T>(connecting: impl Future<Output = T>) -> T {
    let mut connecting = Box::pin(connecting);
    if let Ok(connected) = tokio::time::timeout(Duration::from_secs(1), &mut connecting).await {
        return connected;
    }
    super::print::errln!("still connecting to the store");
    connecting.await
}

/// What an agent is made of beside its workspace.
pub(crate) struct AgentInputs {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) memory_model: Option<Arc<dyn Model>>,
    pub(crate) params: Params,
    /// The model that writes summaries, if it is another.
    pub(crate) compactor: Option<Arc<dyn Model>>,
    /// No journal ever holds any of these.
    pub(crate) secrets: Vec<String>,
    pub(crate) owner: Owner,
    /// Where its commands run; none = it runs none.
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
    /// The folder of the workspace that is worked in.
    pub(crate) folder: VPath,
    /// How models are reached that other agents name.
    pub(crate) models: ModelConnector,
}

impl AgentInputs {
    /// A model, and nothing special.
    pub(crate) fn with_model(model: Arc<dyn Model>) -> Self {
        let params = Params::default();
        let owner = Owner::default();
        let folder = VPath::root();
        let secrets = Vec::new();
        let models = ModelConnector::default();
        Self {
            model,
            memory_model: None,
            params,
            compactor: None,
            secrets,
            owner,
            sandbox: None,
            folder,
            models,
        }
    }
}

/// An agent over `workspace`.
pub(crate) async fn build_agent(
    dir: &Path,
    workspace: Workspace,
    made: AgentInputs,
) -> Result<Arc<Agent>, CliError> {
    let AgentInputs {
        model,
        memory_model,
        params,
        compactor,
        secrets,
        owner,
        sandbox,
        folder,
        models,
    } = made;
    let place = open_place(dir, &workspace, secrets).await?;
    let tools = Vec::new();
    let parts = AgentParts {
        workspace,
        model,
        memory_model,
        params,
        summary_model: compactor,
        place,
        owner,
        sandbox,
        tools,
        working_folder: folder,
        model_connector: models,
    };
    Ok(Agent::new(parts)?)
}

/// The model to use: the flag, the workspace's setting, or the first provider whose key is set.
fn model_settings(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
    workspace: &Workspace,
) -> Result<ModelSettings, CliError> {
    configured_model(common, env, dir, workspace).ok_or_else(|| CliError::usage(no_model_message()))
}

fn configured_model(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
    workspace: &Workspace,
) -> Option<ModelSettings> {
    let configured = workspace
        .config()
        .model
        .clone()
        .map(|settings| resolve_model_files(settings, dir));
    let settings = match (&common.model, configured) {
        (Some(name), Some(settings)) if settings.name == *name => Some(settings),
        // Endpoint and key belong to the other model; how it is to answer belongs to the agent.
        (Some(name), settings) => {
            let ModelSettings {
                temperature,
                max_output_tokens,
                thinking_tokens,
                ..
            } = settings.unwrap_or_default();
            let name = name.clone();
            Some(ModelSettings {
                name,
                temperature,
                max_output_tokens,
                thinking_tokens,
                ..ModelSettings::default()
            })
        }
        (None, configured) => configured.filter(|settings| !settings.name.is_empty()),
    };
    let by_key = || {
        DEFAULT_MODELS
            .iter()
            .find(|(key, _)| env.get(key).is_some())
            .map(|(_, name)| (*name).to_owned())
    };
    let unnamed = workspace.config().model.clone().unwrap_or_default();
    settings.or_else(|| by_key().map(|name| ModelSettings { name, ..unnamed }))
}

/// Files that the workspace's own settings name lie in the workspace; those of a flag, where it was
/// typed.
pub(crate) fn resolve_model_files(settings: ModelSettings, dir: &Path) -> ModelSettings {
    let name = match settings.name.split_once(':') {
        Some((kind @ ("scripted" | "replay" | "record"), file)) => {
            format!("{kind}:{}", dir.join(file).display())
        }
        Some(_) | None => settings.name,
    };
    ModelSettings { name, ..settings }
}

/// The model that is used when only a key is set.
const DEFAULT_MODELS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-5"),
    ("OPENAI_API_KEY", "openai:gpt-5-mini"),
    ("GEMINI_API_KEY", "gemini:gemini-2.5-flash"),
];

fn no_model_message() -> String {
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
    lines.push(
        "  -m provider:model              any other; `stead models` lists providers".to_owned(),
    );
    lines.push(
        "  model: provider:model          the same, in the workspace's agent.yaml".to_owned(),
    );
    lines
        .push("  stead demo                     watch an agent work with no key at all".to_owned());
    lines.join("\n")
}

/// The session a flag names, or a new one.
pub(crate) fn session_id(flag: Option<&str>) -> Result<SessionId, CliError> {
    match flag {
        Some(text) => SessionId::new(text)
            .map_err(|error| CliError::usage(format!("session {text:?}: {error}"))),
        None => Ok(SessionId::fresh()),
    }
}

impl RunFlags {
    pub(crate) fn wait(&self) -> LockWait {
        self.wait.map_or(LockWait::No, |seconds| {
            LockWait::AtMost(Duration::from_secs(seconds))
        })
    }
}

impl ApproveMode {
    /// Who answers: on a terminal a person can.
    pub(crate) fn approvals(self, common: &GlobalArgs, env: &ProcessEnv) -> ApprovalPolicy {
        match self {
            Self::All => ApprovalPolicy::ApproveAll,
            Self::None => ApprovalPolicy::DenyAll,
            Self::Ask if env.stdin_is_terminal && env.stderr_is_terminal => {
                ApprovalPolicy::Ask(Arc::new(TerminalApprover::new(
                    answerer(common, env, None),
                    Style::stderr(env),
                )))
            }
            Self::Ask => ApprovalPolicy::Park,
        }
    }
}

/// A placeholder for commands that do not call a model.
#[derive(Debug)]
pub(crate) struct NoModel {
    /// The name of the model that a run would use: its profile applies. Every other fact stays
    /// unknown, so that nothing else depends on the model.
    facts: ModelFacts,
}

impl Default for NoModel {
    fn default() -> Self {
        Self {
            facts: ModelFacts::unknown("none".into()),
        }
    }
}

impl NoModel {
    /// Returns a placeholder with the name of the model that a run would use.
    pub(crate) fn for_configured_model(
        common: &GlobalArgs,
        env: &ProcessEnv,
        dir: &Path,
        workspace: &Workspace,
    ) -> Self {
        let settings = configured_model(common, env, dir, workspace);
        settings
            .map(|ModelSettings { name, .. }| Self {
                facts: ModelFacts::unknown(name.into()),
            })
            .unwrap_or_default()
    }
}

impl Model for NoModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, _: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let error = ModelError::Config("this command asks no model".to_owned());
        Box::pin(futures_util::stream::iter([Err(error)]))
    }
}
