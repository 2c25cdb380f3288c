//! An agent in a few lines.

use crate::{Agent, AgentError, AgentParts, HookRuntime, ModelConnector};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::{AgentId, Owner, Redactor};
use stead_model::{Model, ModelError, ModelSettings, connect, secrets};
use stead_place::{FilesystemSettings, PlaceError, open_place};
use stead_sandbox::{Host, Sandbox};
use stead_store::OsDisk;
use stead_tools::Tool;
use stead_vfs::{LocalVfs, VPath, VfsError};
use stead_workspace::{
    FeatureSwitch, Layout, OpenOptions, Profile, ProfileKey, ProfileLayer, ProfileSource, Surface,
    ToolLists, Workspace, WorkspaceError,
};

/// Puts an agent together from a folder and what code adds to it. What is set here goes before what
/// the folder's own settings say.
///
/// ```
/// use stead_agent::{Agent, RunOptions};
/// use stead_core::SessionId;
/// use stead_model::ScriptedModel;
/// use stead_workspace::Switch;
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
///     .disable(Switch::Subagents)
///     .build()
///     .await
///     .unwrap();
///
/// let mut session = agent.session(SessionId::new("first").unwrap());
/// let input = session.input("Write hello to a.txt").await;
/// let report = session.run(input, RunOptions::default()).await.unwrap();
/// assert_eq!(report.text, "Done.");
/// assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "hello");
/// # });
/// ```
#[derive(Default)]
pub struct AgentBuilder {
    workspace: Option<PathBuf>,
    name: Option<String>,
    model: BuilderModel,
    system_prompt: Option<String>,
    filesystem: Option<FilesystemSettings>,
    memory_tokens: Option<u32>,
    surface: Option<Surface>,
    tools: Vec<Arc<dyn Tool>>,
    profiles: Vec<ProfileLayer>,
    lists: Option<ToolLists>,
    disable: Vec<FeatureSwitch>,
    owner: Owner,
    working_folder: Option<VPath>,
    options: OpenOptions,
    variables: Option<Box<VariableLookupFn>>,
}

type VariableLookupFn = dyn Fn(&str) -> Option<String> + Send + Sync;

#[derive(Default)]
enum BuilderModel {
    #[default]
    Unset,
    Settings(Box<ModelSettings>),
    Model(Arc<dyn Model>),
}

/// Why an agent could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No folder was given.
    #[error("no workspace was given: call AgentBuilder::workspace")]
    NoWorkspace,
    /// Neither the builder nor the folder names a model.
    #[error("no model was given: call AgentBuilder::model, or set `model:` in agent.yaml")]
    NoModel,
    /// The name is no id.
    #[error("name: {0}")]
    Name(#[from] stead_core::IdError),
    /// The folder cannot be opened.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// Its settings are wrong.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Its place cannot be opened.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The model cannot be asked.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The parts do not go together.
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl Agent {
    /// An agent in a few lines.
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }
}

impl AgentBuilder {
    /// The folder that is the agent.
    pub fn workspace(mut self, dir: impl AsRef<Path>) -> Self {
        self.workspace = Some(dir.as_ref().to_owned());
        self
    }

    /// How the folder is laid out; left out, it is detected.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.options.layout = Some(layout);
        self
    }

    /// The agent's id; its sessions lie under `agents/<name>/`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The model, as `provider:model`.
    pub fn model(self, name: impl Into<String>) -> Self {
        self.model_settings(ModelSettings {
            name: name.into(),
            ..ModelSettings::default()
        })
    }

    /// The model, with settings.
    pub fn model_settings(mut self, settings: ModelSettings) -> Self {
        self.model = BuilderModel::Settings(Box::new(settings));
        self
    }

    /// A model of one's own.
    pub fn model_of(self, model: impl Model + 'static) -> Self {
        self.model_arc(Arc::new(model))
    }

    /// A model that others use too.
    pub fn model_arc(mut self, model: Arc<dyn Model>) -> Self {
        self.model = BuilderModel::Model(model);
        self
    }

    /// How tools are named to the model.
    pub fn surface(mut self, surface: Surface) -> Self {
        self.surface = Some(surface);
        self
    }

    /// What is different for the models that `key` names, over what files say.
    pub fn profile(mut self, key: ProfileKey, profile: Profile) -> Self {
        self.profiles.push(ProfileLayer {
            key,
            source: ProfileSource::Code,
            profile,
        });
        self
    }

    /// Said first in the prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Where the tree lies.
    pub fn filesystem(mut self, filesystem: FilesystemSettings) -> Self {
        self.filesystem = Some(filesystem);
        self
    }

    /// Another file of the workspace that is shown whole in the prompt.
    pub fn context_file(mut self, path: impl Into<String>) -> Self {
        self.options.memory.push(path.into());
        self
    }

    /// Another folder of skills in the workspace.
    pub fn skills(mut self, path: impl Into<String>) -> Self {
        self.options.skills.push(path.into());
        self
    }

    /// Tokens of `MEMORY.md` in the prompt.
    pub fn memory_tokens(mut self, tokens: u32) -> Self {
        self.memory_tokens = Some(tokens);
        self
    }

    /// Something more that it can do: see [`stead_tools::function`] and [`stead_tools::typed`], and
    /// [`stead_tools::client_tool`] for what the program around it carries out.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Which tools it has, beside what `tools.json` says; both must allow a tool.
    pub fn tool_lists(mut self, lists: ToolLists) -> Self {
        self.lists = Some(lists);
        self
    }

    /// Switches a part of the harness off.
    pub fn disable(mut self, switch: FeatureSwitch) -> Self {
        self.disable.push(switch);
        self
    }

    /// Whose sessions they are, unless said otherwise.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// The folder of the workspace that is worked in: `AGENTS.md` files on the way to it are shown
    /// too.
    pub fn working_folder(mut self, folder: VPath) -> Self {
        self.working_folder = Some(folder);
        self
    }

    /// Where variables come from: keys of providers, and what settings name as `${VAR}`. Without
    /// it, only from the folder's own `.env`.
    pub fn variables(
        mut self,
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.variables = Some(Box::new(lookup));
        self
    }

    /// Reads the folder and puts the agent together.
    pub async fn build(self) -> Result<Arc<Agent>, BuildError> {
        let dir = self.workspace.ok_or(BuildError::NoWorkspace)?;
        let variables: Option<Arc<VariableLookupFn>> = self.variables.map(Arc::from);
        let process = |name: &str| variables.as_ref().and_then(|lookup| lookup(name));
        let files = Arc::new(LocalVfs::open(&dir, Arc::new(OsDisk))?);
        let real = dir.canonicalize().ok();
        let name = real
            .as_deref()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str())
            .map(str::to_owned);
        let options = OpenOptions {
            folder: name,
            ..self.options
        };
        let mut workspace = Workspace::open(files, &options, &process).await?;
        let config = &mut workspace.definition.config;
        if let Some(name) = self.name {
            config.name = Some(AgentId::new(name)?);
        }
        config.system_prompt = self.system_prompt.or(config.system_prompt.take());
        config.filesystem = self.filesystem.unwrap_or_else(|| config.filesystem.clone());
        config.memory.max_tokens = self.memory_tokens.unwrap_or(config.memory.max_tokens);
        config.disable.0.extend(self.disable);
        let own = config.variables.clone();
        let lookup = |name: &str| own.get(name).cloned().or_else(|| process(name));
        let mut known = config.secrets.clone();
        let others = workspace
            .definition
            .agents
            .values()
            .filter_map(|spec| spec.model.as_ref());
        known.extend(others.flat_map(|settings| secrets(settings, &lookup)));
        let set = workspace
            .config()
            .model
            .clone()
            .filter(|settings| !settings.name.is_empty());
        let (model, params) = match (self.model, set) {
            (BuilderModel::Model(model), set) => (
                model,
                set.map(|settings| settings.params()).unwrap_or_default(),
            ),
            (given, set) => {
                let settings = match given {
                    BuilderModel::Settings(settings) => Some(*settings),
                    BuilderModel::Unset | BuilderModel::Model(_) => set,
                };
                let settings = settings.ok_or(BuildError::NoModel)?;
                known.extend(secrets(&settings, &lookup));
                (connect(&settings, &lookup)?, settings.params())
            }
        };
        workspace.definition.tools.extend(self.lists);
        let config = &mut workspace.definition.config;
        config.surface = self.surface.or(config.surface);
        workspace.definition.profiles.extend(self.profiles);
        let execute = &workspace.config().execute;
        known.extend(execute.secrets(&lookup));
        let sandbox = Host::new(execute.environment(&Host::INHERITED_VARIABLES, &process, &lookup));
        let place = open_place(&workspace.place_settings(&dir), Redactor::new(known)).await?;
        let owner = self.owner;
        let tools = self.tools;
        let folder = self.working_folder.unwrap_or(VPath::root());
        let config = workspace.config();
        let side = |name: &Option<String>| {
            let settings = name
                .as_ref()
                .map(|name| side_model(name, config.model.as_ref()));
            settings
                .map(|settings| connect(&settings, &lookup))
                .transpose()
        };
        let compactor = side(&config.compaction.model)?;
        let memory_model = side(&config.memory.model)?;
        let hook = |settings: &ModelSettings| {
            connect(&hook_model(settings, config.model.as_ref()), &lookup)
        };
        let gear = HookRuntime::new(real).connect_models(&workspace.definition.hooks, hook)?;
        let own = own.clone();
        let variables = variables.clone();
        let lookup = move |name: &str| own.get(name).cloned().or_else(|| variables.as_ref()?(name));
        let models = ModelConnector::new(move |settings| connect(settings, &lookup));
        let sandbox: Option<Arc<dyn Sandbox>> = Some(Arc::new(sandbox));
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
        let agent = Agent::new(parts)?;
        agent.hooks().init(gear);
        Ok(agent)
    }
}

/// The settings of a model that a hook names: where that is all it does, it is a model for side
/// work.
pub fn hook_model(named: &ModelSettings, main: Option<&ModelSettings>) -> ModelSettings {
    let bare = ModelSettings {
        name: named.name.clone(),
        ..ModelSettings::default()
    };
    if *named == bare {
        side_model(&named.name, main)
    } else {
        named.clone()
    }
}

/// The settings of a model that does side work, such as summaries: endpoint and key are those of
/// the agent's own model if both have the same provider.
pub fn side_model(name: &str, main: Option<&ModelSettings>) -> ModelSettings {
    let provider = |name: &str| {
        name.split_once(':')
            .map(|(provider, _)| provider.to_owned())
    };
    let same = main.filter(|main| provider(&main.name) == provider(name));
    let (base_url, api_key) = same.map_or((None, None), |main| {
        (main.base_url.clone(), main.api_key.clone())
    });
    let (max_retries, timeouts) = main.map_or_else(Default::default, |main| {
        (main.max_retries, main.timeouts.clone())
    });
    ModelSettings {
        name: name.to_owned(),
        base_url,
        api_key,
        max_retries,
        timeouts,
        ..ModelSettings::default()
    }
}
