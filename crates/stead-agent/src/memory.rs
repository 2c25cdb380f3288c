//! What an agent gives its long-term memory: files, documents, journals and a model to ask.
//!
//! Effects: the clock, randomness, the environment, the local disk (reads), the store (writes), the
//! model.

use crate::metered_model::{MeteredError, MeteredModel};
use crate::model_facts::UNKNOWN_SIDE_WINDOW_TOKENS;
use crate::{AgentParts, Budget, BudgetError, Purpose};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use std::sync::{Arc, OnceLock};
use stead_core::{Block, Owner, SessionId, SessionModel, TenantId};
use stead_memory::{MemoryContext, MemoryError, MemoryModel, MemoryQuestion};
use stead_model::Model;
use stead_place::OwnerState;
use stead_store::Sessions;
use stead_vfs::Vfs;
use stead_workspace::{Definition, MemoryModelChoice};

/// Models with fixed answers, which cannot answer questions about memory.
const FIXED_MODELS: [&str; 3] = ["scripted:", "replay:", "none"];

/// Gives memory the files, sessions, state and model of an agent.
#[derive(Debug)]
pub(crate) struct AgentMemoryContext {
    parts: Arc<AgentParts>,
    /// The cheap model of the provider, once it was looked for.
    cheap: OnceLock<Option<Arc<dyn Model>>>,
}

impl AgentMemoryContext {
    pub(crate) fn new(parts: Arc<AgentParts>) -> Self {
        Self {
            parts,
            cheap: OnceLock::new(),
        }
    }

    /// Returns the agent's own model, if it can be asked about memory.
    fn own_model(&self) -> Option<&Arc<dyn Model>> {
        let own = &self.parts.model;
        let is_fixed = FIXED_MODELS.iter().any(|kind| own.name().starts_with(kind));
        Some(own).filter(|_| !is_fixed)
    }

    /// Returns a cheap model of the same provider, if the table of models names one.
    fn cheap_model(&self) -> Option<&Arc<dyn Model>> {
        let cheap = self.cheap.get_or_init(|| {
            let AgentParts {
                workspace,
                session_models,
                session_model,
                ..
            } = &*self.parts;
            match workspace.config().memory.model_choice() {
                MemoryModelChoice::Cheap => session_models.connect_cheap(session_model),
                MemoryModelChoice::Own | MemoryModelChoice::Named(_) => None,
            }
        });
        cheap.as_ref().filter(|_| self.own_model().is_some())
    }

    /// Returns the model that was set for memory, or else a cheap one, or else the agent's own.
    fn asked_model(&self) -> Option<&Arc<dyn Model>> {
        let set = self.parts.memory_model.as_ref();
        set.or_else(|| self.cheap_model())
            .or_else(|| self.own_model())
    }

    async fn answer(&self, question: MemoryQuestion<'_>) -> Result<String, MemoryError> {
        let model = self.asked_model().ok_or(MemoryError::NoModel)?;
        let answered = self.ask_model(model, question.clone()).await;
        match (answered, self.own_model()) {
            // The account may not have the cheap model, or the endpoint may not know it.
            (Err(MemoryError::Model(_)), Some(own))
                if self.parts.memory_model.is_none() && own.name() != model.name() =>
            {
                self.ask_model(own, question).await
            }
            (answered, _) => answered,
        }
    }

    async fn ask_model(
        &self,
        model: &Arc<dyn Model>,
        question: MemoryQuestion<'_>,
    ) -> Result<String, MemoryError> {
        let budget = Budget::outside_runs(&self.parts, question.owner);
        let metered = MeteredModel::new(&self.parts, &**model, &budget);
        let tokens = metered.answer_tokens(question.max_answer_tokens);
        let answer = metered
            .ask_within(question.system, question.text, tokens, question.timeout)
            .await
            .map_err(|error| match error {
                MeteredError::Budget(BudgetError::Exhausted(error)) => MemoryError::Budget(error),
                MeteredError::Budget(BudgetError::Store(error)) => MemoryError::Store(error),
                MeteredError::Model(error) => MemoryError::Model(error),
                MeteredError::TimedOut(limit) => MemoryError::TimedOut {
                    seconds: limit.as_secs(),
                },
            })?;
        // If the usage cannot be logged, the answer still counts.
        let _ = answer
            .log(
                &self.parts,
                (question.owner, question.session),
                Purpose::Memory,
            )
            .await;
        let text = answer.reply.content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
        });
        Ok(text.collect())
    }
}

impl MemoryContext for AgentMemoryContext {
    fn definition(&self) -> &Definition {
        &self.parts.workspace.definition
    }

    fn files(&self, owner: &Owner, session: &SessionId) -> Arc<dyn Vfs> {
        self.parts.place.files(owner, session, None)
    }

    fn state(&self, owner: &Owner) -> OwnerState {
        self.parts.place.state(owner)
    }

    fn tenant_state(&self, tenant: &TenantId) -> OwnerState {
        self.parts.place.tenant_state(tenant)
    }

    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions> {
        self.parts.place.sessions(owner)
    }

    fn has_model(&self) -> bool {
        self.parts.memory_model.is_some() || self.own_model().is_some()
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    fn model(&self) -> Option<MemoryModel> {
        let model = self.asked_model()?;
        Some(MemoryModel {
            name: model.name().to_owned(),
            window_tokens: model
                .facts()
                .context_window
                .unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS),
        })
    }

    fn for_session_model(
        &self,
        used: &SessionModel,
    ) -> Result<Option<Arc<dyn MemoryContext>>, MemoryError> {
        let own = &self.parts.session_model;
        let is_same = used.provider() == own.provider() && used.base_url == own.base_url;
        if is_same || self.parts.memory_model.is_some() {
            return Ok(None);
        }
        let connected = self.parts.session_models.connect(used);
        let (model, settings) = connected.map_err(MemoryError::Model)?;
        let parts = AgentParts {
            model,
            params: settings.params(),
            session_model: used.clone(),
            ..(*self.parts).clone()
        };
        Ok(Some(Arc::new(Self::new(Arc::new(parts)))))
    }

    fn ask<'a>(
        &'a self,
        question: MemoryQuestion<'a>,
    ) -> BoxFuture<'a, Result<String, MemoryError>> {
        Box::pin(self.answer(question))
    }
}
