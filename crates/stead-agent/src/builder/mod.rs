//! `AgentBuilder`: builds an agent from the folder of a workspace, its models and its place.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (writes), the network.

mod error;
mod models;

pub use error::BuildError;
pub(crate) use models::side_model;
pub use models::{DEFAULT_MODEL_VARIABLE, DEFAULT_MODELS, choose_model, resolve_model_files};

use crate::approvals::PersonKey;
use crate::session_models::SharedVariables;
use crate::workspace_agents::SubagentDelegate;
use crate::{Agent, AgentParts, Clock, GrantKeys, HookRuntime, Hooks, ModelConnector};
use models::{AgentModels, GivenModel, ModelSources};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::{AgentId, Owner, Redactor};
use stead_model::{Model, ModelSettings, Params};
use stead_place::{FilesystemSettings, Place, open_place};
use stead_sandbox::{Host, Sandbox};
use stead_store::OsDisk;
use stead_tools::Tool;
use stead_vfs::{LocalVfs, VPath};
use stead_workspace::{
    AgentConfig, FeatureSwitch, Layout, ModelUse, OpenOptions, Profile, ProfileKey, ProfileLayer,
    ProfileSource, Surface, ToolLists, Workspace,
};

/// The variables of the process that hook commands are given.
const HOOK_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"];

/// Builds an agent from a folder and what a program adds to it. This is the only way to make an
/// agent: the command line uses it too.
///
/// What is set here takes precedence over the folder's own settings.
///
/// ```
/// use stead_agent::{Agent, RunOptions};
/// use stead_core::SessionId;
/// use stead_model::ScriptedModel;
/// use stead_workspace::FeatureSwitch;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let folder = dir.path();
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
/// std::fs::write(folder.join("AGENTS.md"), "You are a careful librarian.").unwrap();
/// std::fs::write(folder.join("SOUL.md"), "You like quiet.").unwrap();
/// let script = "- calls: [{tool: write_file, args: {file_path: a.txt, content: hello}}]\n- text: Done.";
/// let agent = Agent::builder()
///     .workspace(folder)
///     .name("librarian")
///     .model_of(ScriptedModel::parse("demo", script).unwrap())
///     .context_file("SOUL.md")
///     .memory_tokens(4000)
///     .disable(FeatureSwitch::Subagents)
///     .build()
///     .await
///     .unwrap();
///
/// let mut session = agent.session(SessionId::new("first").unwrap());
/// let input = session.input("Write hello to a.txt").await.blocks;
/// let report = session.run(input, RunOptions::default()).await.unwrap();
/// assert_eq!(report.text, "Done.");
/// assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "hello");
/// # });
/// ```
#[derive(Default)]
pub struct AgentBuilder {
    workspace: Option<PathBuf>,
    options: OpenOptions,
    model: GivenModel,
    model_connector: Option<ModelConnector>,
    params: Option<Params>,
    config_changes: Vec<ConfigChange>,
    name: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    profiles: Vec<ProfileLayer>,
    lists: Option<ToolLists>,
    owner: Owner,
    working_folder: Option<VPath>,
    variables: Option<SharedVariables>,
    grant_keys: Option<Arc<dyn GrantKeys>>,
    sandbox: Option<Arc<dyn Sandbox>>,
    place: Option<Arc<dyn Place>>,
    clock: Clock,
}

type ConfigChange = Box<dyn FnOnce(&mut AgentConfig) + Send>;

impl Agent {
    /// Returns a builder with nothing set.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }
}

impl AgentBuilder {
    /// Sets the folder that is the agent's workspace. Required.
    ///
    /// The folder is trusted: its hooks run, and its settings name endpoints and permissions. A
    /// program that opens folders of others sets a [`TrustJudge`](stead_workspace::TrustJudge) with
    /// [`AgentBuilder::open_options`].
    pub fn workspace(mut self, dir: impl AsRef<Path>) -> Self {
        self.workspace = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets how the folder is opened: its layout, which of its agents is the main one, the model,
    /// whether a model is asked at all, the platform's files, the person's own folder, the cache,
    /// who decides whether the folder may act ([`OpenOptions::trust`]), and which endpoints may be
    /// sent which keys ([`OpenOptions::keys`]). The name of the folder in it is ignored.
    pub fn open_options(mut self, options: OpenOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the layout of the folder. By default it is detected.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options.layout = Some(layout);
        self
    }

    /// Sets the agent's id. Its sessions are kept under `agents/<name>/`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Uses the model `provider:model` for every agent of the workspace, instead of those that its
    /// settings name. Files in the name are relative to the current folder.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.options.model = Some(name.into());
        self
    }

    /// Uses a model with exactly these settings. Agents of the workspace that name a model of their
    /// own keep it.
    pub fn model_settings(mut self, settings: ModelSettings) -> Self {
        self.model = GivenModel::Settings(Box::new(settings));
        self
    }

    /// Uses `model`. Agents of the workspace that name a model of their own keep it.
    pub fn model_of(self, model: impl Model + 'static) -> Self {
        self.model_arc(Arc::new(model))
    }

    /// Uses `model`, which may be shared with other agents.
    pub fn model_arc(mut self, model: Arc<dyn Model>) -> Self {
        self.model = GivenModel::Model(model);
        self
    }

    /// Connects to every model that settings name through `connector`.
    pub fn model_connector(mut self, connector: ModelConnector) -> Self {
        self.model_connector = Some(connector);
        self
    }

    /// Sets the parameters of requests, instead of those of the model's settings.
    pub fn params(mut self, params: Params) -> Self {
        self.params = Some(params);
        self
    }

    /// Changes settings of the workspace after they were read. Changes are made in the order in
    /// which they were given.
    pub fn configure(mut self, change: impl FnOnce(&mut AgentConfig) + Send + 'static) -> Self {
        self.config_changes.push(Box::new(change));
        self
    }

    /// Sets the names under which tools are shown to the model.
    pub fn surface(self, surface: Surface) -> Self {
        self.configure(move |config| config.surface = Some(surface))
    }

    /// Adds a profile for the models that `key` names. It goes before the profiles of files.
    pub fn profile(mut self, key: ProfileKey, profile: Profile) -> Self {
        self.profiles.push(ProfileLayer {
            key,
            source: ProfileSource::Code,
            profile,
        });
        self
    }

    /// Sets the text that begins the system prompt.
    pub fn system_prompt(self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.configure(move |config| config.system_prompt = Some(text))
    }

    /// Sets where the tree of the workspace is stored.
    pub fn filesystem(self, filesystem: FilesystemSettings) -> Self {
        self.configure(move |config| config.filesystem = filesystem)
    }

    /// Adds a file of the workspace that is shown whole in the prompt.
    pub fn context_file(mut self, path: impl Into<String>) -> Self {
        self.options.memory.push(path.into());
        self
    }

    /// Adds a folder of skills in the workspace.
    pub fn skills(mut self, path: impl Into<String>) -> Self {
        self.options.skills.push(path.into());
        self
    }

    /// Sets how many tokens of `MEMORY.md` the prompt shows.
    pub fn memory_tokens(self, tokens: u32) -> Self {
        self.configure(move |config| config.memory.max_tokens = tokens)
    }

    /// Adds a tool: see [`stead_tools::function_tool`], and [`stead_tools::client_tool`] for one
    /// that the program around the agent carries out.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Restricts the tools in addition to `tools.json`; both must allow a tool.
    pub fn tool_lists(mut self, lists: ToolLists) -> Self {
        self.lists = Some(lists);
        self
    }

    /// Switches a feature off.
    pub fn disable(self, switch: FeatureSwitch) -> Self {
        self.configure(move |config| {
            config.disable.0.insert(switch);
        })
    }

    /// Sets the owner of sessions that are opened without naming one.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// Sets the folder of the workspace that is worked in. `AGENTS.md` files on the way to it are
    /// shown too.
    pub fn working_folder(mut self, folder: VPath) -> Self {
        self.working_folder = Some(folder);
        self
    }

    /// Sets the lookup of the process's variables: keys of providers, what settings refer to as
    /// `${NAME}`, and the environment of commands and hooks. Without it, only the folder's own
    /// `.env` is used.
    pub fn variables(
        mut self,
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.variables = Some(Arc::new(lookup));
        self
    }

    /// Sets where the key is kept with which is sealed what a person allows: grants, answers to
    /// questions, the permission modes of sessions, and commands in inboxes. What was not sealed with
    /// it, such as what came with the folder, does not count. Without it, all counts.
    pub fn grant_keys(mut self, keys: Arc<dyn GrantKeys>) -> Self {
        self.grant_keys = Some(keys);
        self
    }

    /// Sets where commands run, instead of on this machine.
    pub fn sandbox(mut self, sandbox: Arc<dyn Sandbox>) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Sets the place of files and sessions, instead of opening the one that the settings name.
    pub fn place(mut self, place: Arc<dyn Place>) -> Self {
        self.place = Some(place);
        self
    }

    /// Sets the clock by which long-term memory decides what is due, instead of that of the machine.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Reads the folder and builds the agent.
    pub async fn build(self) -> Result<Arc<Agent>, BuildError> {
        let dir = self.workspace.ok_or(BuildError::NoWorkspace)?;
        let process = self.variables.unwrap_or_else(|| Arc::new(|_| None));
        let given_name = self.options.model.clone();
        let model_use = self.options.model_use;
        let mut workspace = open_folder(&dir, self.options, &*process).await?;
        let config = &mut workspace.definition.config;
        if let Some(name) = self.name {
            config.name = Some(AgentId::new(name)?);
        }
        for change in self.config_changes {
            change(config);
        }
        workspace.definition.tools.extend(self.lists);
        workspace.definition.profiles.extend(self.profiles);
        let sources = ModelSources {
            dir: &dir,
            workspace: &workspace,
            name: given_name.as_deref(),
            model_use,
            process: &process,
            keys: workspace.keys.clone(),
            connector: self.model_connector,
        };
        let AgentModels {
            main,
            params,
            summary,
            memory,
            connector,
            session_model,
            session_models,
            mut secrets,
        } = sources.connect(self.model)?;
        let hook_runtime = hook_runtime(&sources)?;
        let lookup = sources.lookup();
        let execute = &workspace.config().execute;
        secrets.extend(execute.secrets(&*lookup));
        let sandbox = self.sandbox.unwrap_or_else(|| {
            let environment = execute.environment(&Host::INHERITED_VARIABLES, &*process, &*lookup);
            Arc::new(Host::new(environment))
        });
        let place = match self.place {
            Some(place) => place,
            None => open_place(&workspace.place_settings(&dir), Redactor::new(secrets)).await?,
        };
        let hooks = Arc::new(Hooks::new(workspace.definition.hooks.clone()));
        let parts = AgentParts {
            workspace,
            person_key: self
                .grant_keys
                .clone()
                .map(|keys| Arc::new(PersonKey::new(keys))),
            grant_keys: self.grant_keys,
            model: main,
            memory_model: memory,
            params: self.params.unwrap_or(params),
            summary_model: summary,
            place,
            owner: self.owner,
            sandbox: Some(sandbox),
            tools: self.tools,
            working_folder: self.working_folder.unwrap_or(VPath::root()),
            model_connector: connector,
            session_model,
            session_models,
            clock: self.clock,
            side_spending: Arc::default(),
        };
        let agent = Agent::new(parts, hooks)?;
        let delegate = SubagentDelegate(Arc::downgrade(&agent));
        agent.hooks().set_default_delegate(Arc::new(delegate));
        agent.hooks().init(hook_runtime);
        Ok(agent)
    }
}

/// Opens the workspace in the folder `dir`, as [`AgentBuilder`](crate::AgentBuilder) does: see
/// [`inspect_folder`]. Errors in its settings are refused.
pub async fn open_folder(
    dir: &Path,
    options: OpenOptions,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Workspace, BuildError> {
    let workspace = inspect_folder(dir, options, variables).await?;
    Ok(workspace.refuse_errors()?)
}

/// Opens the workspace in `dir` even if its settings have errors. Its findings tell the errors.
///
/// The name of the folder, and the layout where the path of the folder implies one, are added to
/// `options`. `variables` looks up what settings refer to as `${NAME}`.
pub async fn inspect_folder(
    dir: &Path,
    options: OpenOptions,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Workspace, BuildError> {
    let files = Arc::new(LocalVfs::open(dir, Arc::new(OsDisk))?);
    let real = dir.canonicalize().ok();
    let name = real
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .map(str::to_owned);
    let by_path = real.as_deref().and_then(Layout::from_dir);
    let options = OpenOptions {
        layout: options.layout.or(by_path),
        folder: name,
        ..options
    };
    Ok(Workspace::inspect(files, &options, variables).await)
}

/// Returns what hooks need from the process. Models are connected to only if models are asked.
fn hook_runtime(sources: &ModelSources<'_>) -> Result<HookRuntime, BuildError> {
    let process = sources.process;
    let environment = HOOK_VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), process(name)?)));
    let runtime = HookRuntime::new(sources.dir.canonicalize().ok(), environment.collect());
    match sources.model_use {
        ModelUse::NotNeeded => Ok(runtime),
        ModelUse::Required | ModelUse::RecordedOrConfigured => {
            let hooks = &sources.workspace.definition.hooks;
            Ok(runtime.connect_models(hooks, |settings| sources.connect_for_hook(settings))?)
        }
    }
}
