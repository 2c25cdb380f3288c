//! What hooks need of the process that asks them.

use crate::DelegationBounds;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use stead_core::Owner;
use stead_model::{Model, ModelError, ModelSettings};
use stead_workspace::{Handler, HookSpec};

/// Hands a task to an agent of the workspace.
pub trait Delegate: Send + Sync {
    /// What `agent` answers to `task`, or why it does not. It may do what `bound` allows and no
    /// more. Hooks of that agent are not asked: a hook must not lead to itself. Dropping the future
    /// stops the agent.
    fn ask<'a>(&'a self, task: HookTask<'a>) -> BoxFuture<'a, Result<String, String>>;
}

/// A task that a hook hands to an agent of the workspace.
#[derive(Debug, Clone, Copy)]
pub struct HookTask<'a> {
    /// The owner of the session in which the hook was asked. The agent works for the same owner.
    pub owner: &'a Owner,
    /// The name of the agent.
    pub agent: &'a str,
    /// What it is asked.
    pub prompt: &'a str,
    /// What it may do.
    pub bounds: &'a DelegationBounds,
}

/// What hooks need of the process that asks them. What is missing makes those hooks fail that need
/// it.
#[derive(Clone, Default)]
pub struct HookRuntime {
    /// The folder of the workspace on this machine, in which commands are run.
    pub root: Option<PathBuf>,
    /// The environment of commands; nothing else of the process reaches them.
    pub env: BTreeMap<String, String>,
    /// Models that hooks name, by hook.
    models: BTreeMap<String, Arc<dyn Model>>,
}

impl HookRuntime {
    /// Commands run below `root`.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    /// Connects the models that hooks name.
    pub fn connect_models(
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

    pub(super) fn model(&self, hook: &str) -> Option<&Arc<dyn Model>> {
        self.models.get(hook)
    }
}

impl fmt::Debug for HookRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets.
        f.debug_struct("HookGear")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}
