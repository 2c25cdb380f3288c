//! Which model a session continues with: the one that its journal records, unless whoever opens the
//! session chose another.
//!
//! Effects: none.

use crate::builder::side_model;
use crate::{Agent, AgentError, AgentParts, ModelConnector};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{ModelScope, SessionModel};
use stead_model::{KeyPolicy, Model, ModelError, ModelSettings, cheap_model, endpoint_origin};

/// The number of models for which an agent is kept.
const MAX_VARIANTS: usize = 16;

/// How the model of an agent was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelChoice {
    /// A person or program chose it for this use. It replaces the model of a session.
    Explicit,
    /// Settings name it, or a provider's key. A session keeps the model that it recorded.
    Configured,
    /// No model is called.
    NotNeeded,
}

/// Why an agent has no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoModelReason {
    /// No model is set.
    #[error("no model is set")]
    NotSet,
    /// The model cannot be connected to.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// A lookup of variables by name.
pub(crate) type SharedVariables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How the models of an agent's sessions are found.
#[derive(Clone)]
pub(crate) struct SessionModels {
    pub(crate) choice: ModelChoice,
    /// Connects to models that settings or journals name.
    pub(crate) connector: ModelConnector,
    /// The settings of the agent's own model, whose key is used for the same endpoint.
    pub(crate) configured: Option<ModelSettings>,
    /// The endpoints that settings of the workspace name.
    pub(crate) endpoints: Vec<String>,
    /// Which endpoints the person knows, and which keys they may be sent.
    pub(crate) keys: Arc<KeyPolicy>,
    /// Looks up the variables that hold keys.
    pub(crate) variables: SharedVariables,
    /// Why the agent's own model cannot be used.
    pub(crate) unavailable: Option<NoModelReason>,
    /// Whether other models of a provider are asked beside the one that was chosen.
    pub(crate) cheap_models: CheapModels,
}

/// Whether a cheap model of the same provider is asked where a good answer needs no better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheapModels {
    Asked,
    /// A program gave a model; nothing is known about its provider.
    NotAsked,
}

impl fmt::Debug for SessionModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionModels")
            .field("choice", &self.choice)
            .field("unavailable", &self.unavailable)
            .finish_non_exhaustive()
    }
}

impl SessionModels {
    /// Connects to a model that a journal recorded. Also returns its settings.
    pub(crate) fn connect(
        &self,
        recorded: &SessionModel,
    ) -> Result<(Arc<dyn Model>, ModelSettings), ModelError> {
        let settings = self.settings(recorded)?;
        Ok((self.connector.connect(&settings)?, settings))
    }

    /// Connects to the cheap model of the provider that a session uses, with the same endpoint and
    /// key. `None` if no cheaper one is known, or it cannot be connected to.
    pub(crate) fn connect_cheap(&self, recorded: &SessionModel) -> Option<Arc<dyn Model>> {
        if self.cheap_models == CheapModels::NotAsked {
            return None;
        }
        let cheap = cheap_model(&recorded.name)?;
        let own = self.settings(recorded).ok()?;
        self.connector.connect(&side_model(&cheap, Some(&own))).ok()
    }

    /// Returns the settings that a journal recorded, with the key of the agent's own model if that
    /// has the same endpoint.
    ///
    /// A journal may come from elsewhere, so it cannot choose an endpoint that neither the settings
    /// nor the person name.
    fn settings(&self, recorded: &SessionModel) -> Result<ModelSettings, ModelError> {
        if let Some(url) = &recorded.base_url
            && !self.endpoints.contains(url)
            && !self.keys.knows_endpoint(recorded.provider(), url)
        {
            let host = endpoint_origin(url).unwrap_or_else(|| url.clone());
            return Err(ModelError::Config(format!(
                "{}: the session was begun with the endpoint {host}, which neither the workspace \
                 nor your own settings name",
                recorded.name
            )));
        }
        let is_recording = |name: &str| name.starts_with("record:");
        let by_settings = self
            .configured
            .as_ref()
            .is_some_and(|own| is_recording(&own.name));
        let fallbacks = recorded.settings.get("fallbacks").and_then(Value::as_array);
        let fallbacks = fallbacks.into_iter().flatten().filter_map(Value::as_str);
        let mut names = fallbacks.chain([recorded.name.as_str()]);
        if names.any(is_recording) && !by_settings && self.keys.is_of_person() {
            return Err(ModelError::Config(format!(
                "{}: the session was begun with a model that writes a file, which a journal cannot \
                 choose",
                recorded.name
            )));
        }
        let settings = ModelSettings::from_session_model(recorded, &*self.variables)?;
        let provider = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let same_endpoint = self.configured.as_ref().filter(|own| {
            provider(&own.name) == recorded.provider() && own.base_url == recorded.base_url
        });
        Ok(ModelSettings {
            api_key: same_endpoint.and_then(|own| own.api_key.clone()),
            ..settings
        })
    }
}

/// The agents that differ from one only in their model, one for each recorded model.
#[derive(Debug, Default)]
pub(crate) struct ModelVariants(Mutex<Vec<(SessionModel, Arc<Agent>)>>);

impl ModelVariants {
    fn find(&self, model: &SessionModel) -> Option<Arc<Agent>> {
        let variants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = variants.iter().find(|(known, _)| known == model);
        found.map(|(_, agent)| agent.clone())
    }

    fn insert(&self, model: SessionModel, agent: Arc<Agent>) {
        let mut variants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if variants.len() >= MAX_VARIANTS {
            variants.remove(0);
        }
        variants.push((model, agent));
    }
}

impl Agent {
    /// Returns this agent with the model that a session recorded.
    pub(crate) fn with_session_model(
        self: &Arc<Self>,
        recorded: &SessionModel,
    ) -> Result<Arc<Self>, AgentError> {
        if let Some(known) = self.model_variants.find(recorded) {
            return Ok(known);
        }
        let models = &self.parts.session_models;
        let unavailable = |reason| AgentError::SessionModel {
            model: recorded.name.clone(),
            reason,
        };
        let (model, settings) = models.connect(recorded).map_err(unavailable)?;
        let connector = match recorded.scope {
            ModelScope::Default => self.parts.model_connector.clone(),
            ModelScope::AllAgents => {
                let model = model.clone();
                ModelConnector::new(move |_| Ok(model.clone()))
            }
        };
        let parts = AgentParts {
            model,
            params: settings.params(),
            session_model: recorded.clone(),
            session_models: SessionModels {
                unavailable: None,
                ..models.clone()
            },
            model_connector: connector,
            ..(*self.parts).clone()
        };
        let agent = Self::new(parts, self.hooks.clone())?;
        self.model_variants.insert(recorded.clone(), agent.clone());
        Ok(agent)
    }

    /// Returns an error if this agent has no model that can be called.
    pub fn check_model(&self) -> Result<(), AgentError> {
        match &self.parts.session_models.unavailable {
            None => Ok(()),
            Some(reason) => Err(AgentError::NoModel(reason.clone())),
        }
    }
}
