//! The conversation of a run as the model sees it: prompt, tools, parameters and messages.
//!
//! Effects: workspace files (writes).

use crate::offload::{MediaLoader, Offload};
use crate::{Session, TurnSetup};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use stead_core::{
    Block, Message, SessionState, ToolCall, ToolEffect, ToolResult, spec_tokens, text_tokens,
};
use stead_model::{Caching, Encoded, Params, Request, SystemPart};
use stead_tools::{OutputLength, ReadTools, Registry};
use stead_vfs::Vfs;
use stead_workspace::FeatureSwitch;

/// The setup of the current turn, and what requests share from step to step.
pub(crate) struct Conversation {
    files: Arc<dyn Vfs>,
    system: Arc<[SystemPart]>,
    tools: Registry,
    params: Params,
    /// The setups of fallback models, by name.
    fallback_setups: Vec<(String, TurnSetup)>,
    /// Moves long texts and media into files; none if that is switched off.
    offload: Option<Offload>,
    /// Loads media from files.
    loader: MediaLoader,
    /// The recorded messages of the last request, each with the form in which the model is sent it.
    shown: Vec<(Arc<Message>, Arc<Message>)>,
    /// The encoded messages of earlier requests.
    encoded: Arc<Encoded>,
    /// The estimated tokens of the prompt and the tools, computed on first use.
    head_tokens: OnceLock<u64>,
}

impl Conversation {
    /// Returns the conversation of `session`, whose files are `files`, in a turn of `setup`.
    pub(crate) fn new(session: &Session, files: Arc<dyn Vfs>, setup: TurnSetup) -> Self {
        let runtime = session.agent().workspace().definition.paths.runtime.clone();
        Self {
            loader: MediaLoader::new(files.clone(), runtime),
            offload: offload(session, &files, &setup.tools),
            files,
            shown: Vec::new(),
            system: setup.prompt.parts().into(),
            tools: setup.tools,
            params: setup.params,
            fallback_setups: setup.fallback_setups,
            encoded: Arc::default(),
            head_tokens: OnceLock::new(),
        }
    }

    /// Keeps long results and media in the conversation.
    pub(crate) fn without_offload(self) -> Self {
        Self {
            offload: None,
            ..self
        }
    }

    /// Goes on with the prompt and tools of another agent.
    pub(crate) fn change_setup(&mut self, session: &Session, setup: TurnSetup) {
        self.offload = offload(session, &self.files, &setup.tools);
        self.system = setup.prompt.parts().into();
        self.tools = setup.tools;
        self.shown.clear();
        self.params = setup.params;
        self.fallback_setups = setup.fallback_setups;
        self.encoded = Arc::default();
        self.head_tokens = OnceLock::new();
    }

    /// Whether a call may change files.
    pub(crate) fn can_change(&self, call: &ToolCall) -> bool {
        let tool = self.tools.find(&call.name);
        tool.is_none_or(|tool| tool.spec().risk.effect != ToolEffect::Reads)
    }

    /// The files of the session.
    pub(crate) fn files(&self) -> &dyn Vfs {
        &*self.files
    }

    /// The tools that the model is shown.
    pub(crate) fn tools(&self) -> &Registry {
        &self.tools
    }

    /// The parameters of each request.
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// The tools that can be called: those that the model which gave the newest answer was shown.
    pub(crate) fn callable_tools(&self, state: &SessionState) -> &Registry {
        state
            .model
            .as_deref()
            .map_or(&self.tools, |model| self.tools_of(model))
    }

    /// The tools that a model is shown.
    pub(crate) fn tools_of(&self, model: &str) -> &Registry {
        let fallback = self.fallback_setups.iter().find(|(name, _)| name == model);
        fallback.map_or(&self.tools, |(_, setup)| &setup.tools)
    }

    /// The messages as a model is sent them, with media loaded from files, and with calls in the
    /// form in which it is shown their tools.
    pub(crate) async fn messages(&mut self, state: &SessionState) -> Vec<Arc<Message>> {
        let recorded = state.messages();
        let known = self.shown.iter().zip(&recorded);
        let known = known.take_while(|((message, _), now)| Arc::ptr_eq(message, now));
        self.shown.truncate(known.count());
        for message in recorded.into_iter().skip(self.shown.len()) {
            let shown = with_wrapped_calls(&message, &self.tools);
            self.shown.push((message, shown));
        }
        let shown = self.shown.iter().map(|(_, shown)| shown.clone());
        self.loader.load(shown.collect()).await
    }

    /// The next request.
    pub(crate) async fn request(&mut self, state: &SessionState) -> Request {
        Request {
            system: self.system.clone(),
            tools: self.tools.specs(),
            messages: self.messages(state).await,
            params: self.params.clone(),
            encoded: self.encoded.clone(),
            fallback_requests: Vec::new(),
        }
    }

    /// `request` as fallback models are sent it, where their profiles differ.
    pub(crate) fn fallback_requests(&self, request: &Request) -> Vec<(String, Request)> {
        // Parts that hooks added follow those of the turn.
        let added = &request.system[self.system.len().min(request.system.len())..];
        let of_setup = |(name, setup): &(String, TurnSetup)| {
            let system = setup
                .prompt
                .parts()
                .into_iter()
                .chain(added.iter().cloned());
            let fallback = Request {
                system: system.collect(),
                tools: setup.tools.specs(),
                messages: request.messages.clone(),
                params: self.fallback_params(&request.params, &setup.params),
                ..Request::default()
            };
            (name.clone(), fallback)
        };
        self.fallback_setups.iter().map(of_setup).collect()
    }

    /// The parameters of a fallback model: its own, except for those that hooks changed.
    fn fallback_params(&self, asked: &Params, own: &Params) -> Params {
        let temperature = match asked.temperature == self.params.temperature {
            true => own.temperature,
            false => asked.temperature,
        };
        let thinking_tokens = match asked.thinking_tokens == self.params.thinking_tokens {
            true => own.thinking_tokens,
            false => asked.thinking_tokens,
        };
        Params {
            max_output_tokens: asked.max_output_tokens,
            answer_room: asked.answer_room,
            answer_schema: asked.answer_schema.clone(),
            temperature,
            thinking_tokens,
            ..own.clone()
        }
    }

    /// The most expensive caching among the models that may answer.
    pub(crate) fn most_expensive_caching(&self) -> Caching {
        let fallbacks = self
            .fallback_setups
            .iter()
            .map(|(_, setup)| setup.params.caching);
        fallbacks
            .chain([self.params.caching])
            .max()
            .unwrap_or_default()
    }

    /// The estimated tokens of the prompt and the tools.
    pub(crate) fn head_tokens(&self) -> u64 {
        *self.head_tokens.get_or_init(|| {
            let system: u64 = self.system.iter().map(|part| text_tokens(&part.text)).sum();
            system + self.tools.specs().iter().map(spec_tokens).sum::<u64>()
        })
    }

    /// Moves what is too long of an input or a steering message into the file `name`.
    pub(crate) async fn offload_message(
        &self,
        name: &str,
        content: Vec<Block>,
        window: Option<u64>,
    ) -> Vec<Block> {
        match &self.offload {
            Some(offload) => offload.offload_message(name, content, window).await,
            None => content,
        }
    }

    /// Moves what is too long of the result of `call` into a file.
    pub(crate) async fn offload_result(
        &self,
        call: &str,
        length: OutputLength,
        content: Vec<Block>,
        window: Option<u64>,
    ) -> Vec<Block> {
        match &self.offload {
            Some(offload) => offload.offload_result(call, length, content, window).await,
            None => content,
        }
    }

    /// Moves long texts and media into files; none if that is switched off.
    pub(crate) fn offload(&self) -> Option<&Offload> {
        self.offload.as_ref()
    }
}

/// Returns the message with its calls in the form in which a model is shown their tools: a model
/// that sees tools called in another way than it can call them would imitate that.
fn with_wrapped_calls(message: &Arc<Message>, tools: &Registry) -> Arc<Message> {
    let wrapped = |name: &str, args: &Value| tools.wrap_call(name, args);
    match &**message {
        Message::Assistant { content }
            if message
                .calls()
                .any(|call| wrapped(&call.name, &call.args).is_some()) =>
        {
            let shown = content.iter().map(|block| match block {
                Block::ToolCall(call) => {
                    let mut call = call.clone();
                    if let Some((name, args)) = wrapped(&call.name, &call.args) {
                        call.name = name;
                        call.args = args;
                    }
                    Block::ToolCall(call)
                }
                Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => block.clone(),
            });
            Arc::new(Message::Assistant {
                content: shown.collect(),
            })
        }
        Message::Tool { results }
            if results
                .iter()
                .any(|result| wrapped(&result.name, &Value::Null).is_some()) =>
        {
            // Some wires repeat the name of the called tool with its result.
            let shown = results.iter().map(|result| {
                let name = wrapped(&result.name, &Value::Null).map(|(name, _)| name);
                ToolResult {
                    name: name.unwrap_or_else(|| result.name.clone()),
                    ..result.clone()
                }
            });
            Arc::new(Message::Tool {
                results: shown.collect(),
            })
        }
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => message.clone(),
    }
}

/// Returns the offload of `session`, unless it is switched off or has no valid folder.
fn offload(session: &Session, files: &Arc<dyn Vfs>, tools: &Registry) -> Option<Offload> {
    let workspace = session.agent().workspace();
    if workspace.config().disable.contains(FeatureSwitch::Offload) {
        return None;
    }
    let readers = ReadTools::available_in(tools, tools.surface());
    let redactor = session.redactor().clone();
    Offload::new(workspace, session.id(), files.clone(), redactor, readers).ok()
}
