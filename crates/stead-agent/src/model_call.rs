//! One question to the model.

use crate::live::{Live, Stop};
use futures_util::StreamExt;
use stead_core::{Entry, EventKind, ModelReply};
use stead_model::{Delta, ModelError, Reply, Request};

impl Live<'_> {
    /// Sends the context and returns the whole answer. Deltas go to the listener as they come; nothing
    /// of an answer counts before its end was seen.
    pub(crate) async fn ask_model(&mut self) -> Result<Entry, Stop> {
        let agent = self.session.agent.clone();
        let step = self.session.state.run.as_ref().map_or(0, |run| run.steps) + 1;
        let request = Request {
            system: self.system.clone(),
            tools: agent.parts.tools.specs(),
            messages: self.session.state.messages(),
            params: agent.parts.params.clone(),
            encoded: self.encoded.clone(),
        };
        self.emit(EventKind::ModelStarted { step });
        let mut stream = agent.parts.model.stream(&request);
        let halt = self.halt.clone();
        let reply = loop {
            let delta = tokio::select! {
                biased;
                halted = halt.wait() => return Err(halted.into()),
                delta = stream.next() => delta.unwrap_or(Err(ModelError::Cut))?,
            };
            match delta {
                Delta::Text(text) => self.emit(EventKind::TextDelta { text }),
                Delta::Thinking(text) => self.emit(EventKind::ThinkingDelta { text }),
                Delta::CallStarted { index, name } => self.emit(EventKind::ToolCallStarted { index, name }),
                Delta::CallArgs { index, json } => self.emit(EventKind::ToolArgsDelta { index, json }),
                Delta::Retry { attempt, wait_ms, reason } => {
                    self.emit(EventKind::ModelRetry { attempt, wait_ms, reason });
                }
                Delta::Done(reply) => break *reply,
            }
        };
        let cost = agent.cost(&reply);
        let Reply { content, usage, stop, model } = reply;
        self.emit(EventKind::ModelEnded { step, usage, cost, stop: stop.clone() });
        let content = self.session.state.with_unique_ids(content);
        Ok(Entry::Model(ModelReply { run: self.run.clone(), model, content, usage, cost, stop }))
    }
}
