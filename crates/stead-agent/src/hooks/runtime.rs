//! The runtime of hooks: what they need from the process that runs them.
//!
//! Effects: none.

use crate::DelegationBounds;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::Owner;
use stead_model::{Model, ModelError, ModelSettings};
use stead_workspace::{Handler, HookSpec};

/// Hands a task to an agent of the workspace.
pub trait Delegate: Send + Sync {
    /// Lets an agent work on `task` and returns its answer, or why there is none. The agent is
    /// limited by the bounds of the task. Its own hooks are not asked, because a hook must not lead
    /// to itself. Dropping the future stops the agent.
    fn ask<'a>(&'a self, task: HookTask<'a>) -> BoxFuture<'a, Result<String, String>>;
}

/// A task that a hook hands to an agent of the workspace.
#[derive(Debug, Clone, Copy)]
pub struct HookTask<'a> {
    /// The owner of the session in which the hook was asked. The agent works for the same owner.
    pub owner: &'a Owner,
    /// The name of the agent.
    pub agent: &'a str,
    /// The task.
    pub prompt: &'a str,
    /// The limits on what the agent may do.
    pub bounds: &'a DelegationBounds,
}

/// What hooks need from the process that runs them. A hook that needs something that is missing
/// fails.
#[derive(Clone, Default)]
pub(crate) struct HookRuntime {
    /// The folder of the workspace on this machine, in which commands run.
    root: Option<PathBuf>,
    /// The environment of commands; nothing else of the process reaches them.
    environment: BTreeMap<String, String>,
    /// The models that hooks name, by hook.
    models: BTreeMap<String, Arc<dyn Model>>,
}

impl HookRuntime {
    /// Returns a runtime whose commands run in `root` with `environment`.
    pub(crate) fn new(root: Option<PathBuf>, environment: BTreeMap<String, String>) -> Self {
        Self {
            root,
            environment,
            models: BTreeMap::new(),
        }
    }

    /// Connects to the models that `hooks` name.
    pub(crate) fn connect_models(
        mut self,
        hooks: &[HookSpec],
        connect: impl Fn(&ModelSettings) -> Result<Arc<dyn Model>, ModelError>,
    ) -> Result<Self, ModelError> {
        for hook in hooks {
            if let Handler::Prompt {
                model: Some(settings),
                ..
            } = &hook.handler
            {
                self.models.insert(hook.name.clone(), connect(settings)?);
            }
        }
        Ok(self)
    }

    pub(super) fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    pub(super) fn model(&self, hook: &str) -> Option<&Arc<dyn Model>> {
        self.models.get(hook)
    }
}

impl fmt::Debug for HookRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets.
        f.debug_struct("HookRuntime")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
