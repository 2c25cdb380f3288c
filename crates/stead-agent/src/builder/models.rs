//! Which models an agent uses, and how they are connected to.
//!
//! Effects: randomness, the environment, the local disk (writes).

use super::BuildError;
use crate::ModelConnector;
use crate::session_models::{
    CheapModels, ModelChoice, NoModelReason, SessionModels, SharedVariables,
};
use futures_util::stream::BoxStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::{ModelScope, Redactor, SessionModel};
use stead_model::{
    Delta, KeyPolicy, Model, ModelError, ModelFacts, ModelSettings, Params, Request, SecretRules,
    connect_with, secrets,
};
use stead_workspace::{MemoryModelChoice, ModelUse, Workspace};

/// The models used when only a provider's key is set, by the variable of the key.
pub const DEFAULT_MODELS: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-5-5"),
    ("OPENAI_API_KEY", "openai:gpt-5.4-mini"),
    ("GEMINI_API_KEY", "gemini:gemini-3.5-flash"),
];

/// The variable that names the model of workspaces that name none, as `provider:model`.
pub const DEFAULT_MODEL_VARIABLE: &str = "STEAD_MODEL";

/// Returns the settings of the model that the workspace in `dir` is to use.
///
/// These are tried in order: `name`, which a person or program gave; the workspace's own setting;
/// the variable [`DEFAULT_MODEL_VARIABLE`]; the first provider whose key `variables` knows. Files
/// that the workspace's settings name are relative to `dir`; those of `name` are relative to the
/// current folder.
pub fn choose_model(
    name: Option<&str>,
    workspace: &Workspace,
    dir: &Path,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Option<ModelSettings> {
    let configured = workspace.config().model.clone();
    let configured = configured.map(|settings| resolve_model_files(settings, dir));
    let Some(name) = name else {
        let named = configured
            .clone()
            .filter(|settings| !settings.name.is_empty());
        let by_default = || {
            let by_key = DEFAULT_MODELS.iter();
            let by_key = by_key
                .filter(|(key, _)| variables(key).is_some())
                .map(|(_, name)| (*name).to_owned());
            let name = variables(DEFAULT_MODEL_VARIABLE).or_else(|| by_key.take(1).next())?;
            Some(ModelSettings {
                name,
                ..configured.unwrap_or_default()
            })
        };
        return named.or_else(by_default);
    };
    match configured {
        Some(settings) if settings.name == name => Some(settings),
        // Endpoint and key belong to the other model; how it is to answer belongs to the agent.
        other => {
            let ModelSettings {
                temperature,
                max_output_tokens,
                thinking_tokens,
                ..
            } = other.unwrap_or_default();
            Some(ModelSettings {
                name: name.to_owned(),
                temperature,
                max_output_tokens,
                thinking_tokens,
                ..ModelSettings::default()
            })
        }
    }
}

/// Makes the files of `scripted:`, `replay:` and `record:` models relative to the folder `dir`.
pub fn resolve_model_files(settings: ModelSettings, dir: &Path) -> ModelSettings {
    let resolve = |name: String| match name.split_once(':') {
        Some((kind @ ("scripted" | "replay" | "record"), file)) => {
            format!("{kind}:{}", dir.join(file).display())
        }
        Some(_) | None => name,
    };
    ModelSettings {
        name: resolve(settings.name),
        fallbacks: settings.fallbacks.into_iter().map(resolve).collect(),
        ..settings
    }
}

/// Returns the settings of a model that a hook names. If the hook gives nothing but a name, the
/// rest follows the agent's own model, as in [`side_model`].
fn hook_model(named: &ModelSettings, main: Option<&ModelSettings>) -> ModelSettings {
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

/// Returns the settings of a model for side work, such as summaries. Endpoint and key are those of
/// the agent's own model if both have the same provider.
pub(crate) fn side_model(name: &str, main: Option<&ModelSettings>) -> ModelSettings {
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

/// The model that a program gave to the builder, beside the name in its open options.
#[derive(Default)]
pub(super) enum GivenModel {
    #[default]
    Unset,
    Settings(Box<ModelSettings>),
    Model(Arc<dyn Model>),
}

/// What the models of an agent are chosen from.
pub(super) struct ModelSources<'a> {
    pub(super) dir: &'a Path,
    pub(super) workspace: &'a Workspace,
    /// The name that goes before every setting.
    pub(super) name: Option<&'a str>,
    pub(super) model_use: ModelUse,
    /// The process's variables.
    pub(super) process: &'a SharedVariables,
    /// Which endpoints may be sent which keys.
    pub(super) keys: Arc<KeyPolicy>,
    /// The connector that replaces the usual way to connect.
    pub(super) connector: Option<ModelConnector>,
}

/// The models of an agent.
pub(super) struct AgentModels {
    pub(super) main: Arc<dyn Model>,
    pub(super) params: Params,
    pub(super) summary: Option<Arc<dyn Model>>,
    pub(super) memory: Option<Arc<dyn Model>>,
    /// The connector for models that other agents of the workspace name.
    pub(super) connector: ModelConnector,
    /// The main model, as sessions record it.
    pub(super) session_model: SessionModel,
    pub(super) session_models: SessionModels,
    /// The keys that these models are reached with.
    pub(super) secrets: Vec<String>,
}

impl ModelSources<'_> {
    /// Returns a variable of the folder's own `.env`, or else of the process.
    pub(super) fn lookup(&self) -> SharedVariables {
        let own = self.workspace.config().variables.clone();
        let process = self.process.clone();
        Arc::new(move |name| own.get(name).cloned().or_else(|| process(name)))
    }

    /// Returns what connects to the models that settings of the workspace name.
    fn settings_connector(&self) -> ModelConnector {
        let dir: PathBuf = self.dir.to_owned();
        match &self.connector {
            Some(given) => {
                let given = given.clone();
                ModelConnector::new(move |settings| {
                    given.connect(&resolve_model_files(settings.clone(), &dir))
                })
            }
            None => {
                let lookup = self.lookup();
                let keys = self.keys.clone();
                let redactor = Redactor::new(self.configured_secrets(&lookup));
                ModelConnector::new(move |settings| {
                    let settings = resolve_model_files(settings.clone(), &dir);
                    let rules = SecretRules {
                        keys: &keys,
                        redactor: &redactor,
                    };
                    connect_with(&settings, &*lookup, rules)
                })
            }
        }
    }

    /// Connects to the models that the agent itself uses.
    pub(super) fn connect(&self, given: GivenModel) -> Result<AgentModels, BuildError> {
        let config = self.workspace.config();
        let lookup = self.lookup();
        let chosen = match &given {
            GivenModel::Settings(settings) => Some((**settings).clone()),
            GivenModel::Unset | GivenModel::Model(_) => {
                choose_model(self.name, self.workspace, self.dir, &**self.process)
            }
        };
        let mut known: Vec<String> = self.configured_secrets(&lookup);
        known.extend(
            chosen
                .iter()
                .flat_map(|settings| secrets(settings, &*lookup)),
        );
        let redactor = Redactor::new(known.iter().cloned());
        let own_params = || config.model.as_ref().map(ModelSettings::params);
        let choice = match (&given, self.model_use, self.name) {
            (GivenModel::Unset | GivenModel::Settings(_), ModelUse::NotNeeded, _) => {
                ModelChoice::NotNeeded
            }
            (GivenModel::Unset, _, None) => ModelChoice::Configured,
            (GivenModel::Unset | GivenModel::Settings(_) | GivenModel::Model(_), _, _) => {
                ModelChoice::Explicit
            }
        };
        let connect_main = |settings: &ModelSettings| match &self.connector {
            Some(connector) => connector.connect(settings),
            None => {
                let rules = SecretRules {
                    keys: &self.keys,
                    redactor: &redactor,
                };
                connect_with(settings, &*lookup, rules)
            }
        };
        let cheap_models = match given {
            GivenModel::Model(_) => CheapModels::NotAsked,
            GivenModel::Unset | GivenModel::Settings(_) => CheapModels::Asked,
        };
        let mut unavailable = None;
        let no_model = || Arc::new(NoModel::named(chosen.as_ref()));
        let (main, params): (Arc<dyn Model>, Params) = match (given, self.model_use) {
            (GivenModel::Model(model), _) => (model, own_params().unwrap_or_default()),
            (GivenModel::Settings(_) | GivenModel::Unset, ModelUse::NotNeeded) => {
                (no_model(), Params::default())
            }
            (GivenModel::Settings(_) | GivenModel::Unset, ModelUse::Required) => {
                let settings = chosen.as_ref().ok_or(BuildError::NoModel)?;
                (connect_main(settings)?, settings.params())
            }
            (GivenModel::Settings(_) | GivenModel::Unset, ModelUse::RecordedOrConfigured) => {
                let connected = match &chosen {
                    Some(settings) => connect_main(settings)
                        .map(|model| (model, settings.params()))
                        .map_err(NoModelReason::from),
                    None => Err(NoModelReason::NotSet),
                };
                connected.unwrap_or_else(|reason| {
                    unavailable = Some(reason);
                    (no_model(), Params::default())
                })
            }
        };
        let scope = match self.name {
            Some(_) => ModelScope::AllAgents,
            None => ModelScope::Default,
        };
        let session_model = match &chosen {
            Some(settings) if settings.name == main.name() => {
                settings.to_session_model(scope, &*lookup)
            }
            Some(_) | None => SessionModel::named(main.name()),
        };
        let by_settings = self.settings_connector();
        let connector = match (self.name, &self.connector) {
            // A model that a person names goes before those of all agents.
            (Some(_), None) => {
                let main = main.clone();
                ModelConnector::new(move |_| Ok(main.clone()))
            }
            (None, _) | (Some(_), Some(_)) => by_settings.clone(),
        };
        let side =
            |name: &Option<String>, main: Option<&ModelSettings>| match (self.model_use, name) {
                (ModelUse::Required | ModelUse::RecordedOrConfigured, Some(name)) => {
                    by_settings.connect(&side_model(name, main)).map(Some)
                }
                (ModelUse::Required | ModelUse::RecordedOrConfigured, None)
                | (ModelUse::NotNeeded, _) => Ok(None),
            };
        let summary = side(
            &config.compaction.model,
            chosen.as_ref().or(config.model.as_ref()),
        )?;
        let memory = match config.memory.model_choice() {
            MemoryModelChoice::Named(name) => side(&Some(name.to_owned()), config.model.as_ref())?,
            MemoryModelChoice::Cheap | MemoryModelChoice::Own => None,
        };
        Ok(AgentModels {
            main,
            params,
            summary,
            memory,
            connector,
            session_model,
            session_models: SessionModels {
                choice,
                connector: by_settings,
                configured: config.model.clone(),
                endpoints: self.named_endpoints(),
                keys: self.keys.clone(),
                variables: lookup,
                unavailable,
                cheap_models,
            },
            secrets: known,
        })
    }

    /// Returns the endpoints that settings of the workspace name, or its `.env`.
    fn named_endpoints(&self) -> Vec<String> {
        let definition = &self.workspace.definition;
        let agents = definition.agents.values();
        let models = definition.config.model.iter();
        let models = models.chain(agents.filter_map(|spec| spec.model.as_ref()));
        let named = models.filter_map(|settings| settings.base_url.clone());
        let variables = stead_model::providers().iter();
        let variables = variables.map(|provider| provider.base_url_variable);
        let own = &definition.config.variables;
        named
            .chain(variables.filter_map(|name| own.get(name).cloned()))
            .collect()
    }

    /// Connects to a model that a hook names.
    pub(super) fn connect_for_hook(
        &self,
        settings: &ModelSettings,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let main = self.workspace.config().model.as_ref();
        self.settings_connector()
            .connect(&hook_model(settings, main))
    }

    /// Returns the keys of every model that the workspace names, so that none is ever recorded.
    fn configured_secrets(&self, lookup: &SharedVariables) -> Vec<String> {
        let config = self.workspace.config();
        let agents = self.workspace.definition.agents.values();
        let named = config
            .model
            .iter()
            .chain(agents.filter_map(|spec| spec.model.as_ref()));
        let keys = named.flat_map(|settings| secrets(settings, &**lookup));
        config.secrets.iter().cloned().chain(keys).collect()
    }
}

/// Stands in for the model where none is asked.
#[derive(Debug)]
pub(super) struct NoModel {
    /// The name of the model that a run would ask, so that its profile applies. Every other fact is
    /// unknown.
    facts: ModelFacts,
}

impl NoModel {
    fn named(settings: Option<&ModelSettings>) -> Self {
        let name = settings.map_or("none", |settings| &settings.name);
        Self {
            facts: ModelFacts::unknown(name.to_owned().into()),
        }
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
