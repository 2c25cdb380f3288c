//! One question to the model.

use crate::live::{Live, Stop};
use futures_util::StreamExt;
use std::borrow::Cow;
use stead_core::{Block, Entry, EventKind, ModelReply, Redactor};
use stead_model::{Delta, ModelError, Reply, Request};

/// A call that holds a secret must not run: its arguments are on record without it, and what runs must be
/// what is on record.
fn refuse_secrets(content: &mut [Block], redactor: &Redactor) {
    for block in content {
        let Block::ToolCall(call) = block else { continue };
        if matches!(redactor.clean(&call.args.to_string()), Cow::Owned(_)) {
            call.invalid =
                Some("they hold a secret of this machine, which is never passed on; do without it".to_owned());
        }
    }
}

impl Live<'_> {
    /// Asks the model; if the context turns out not to fit, once more with a smaller one.
    pub(crate) async fn answer(&mut self) -> Result<Entry, Stop> {
        match self.ask_model().await {
            Err(Stop::Model(ModelError::ContextOverflow(words))) => {
                let reason = "the context does not fit; it is made smaller".to_owned();
                self.emit(EventKind::ModelRetry { attempt: 2, wait_ms: 0, reason });
                self.recover(words).await?;
                self.ask_model().await
            }
            other => other,
        }
    }

    /// Sends the context and returns the whole answer. Deltas go to the listener as they come; nothing
    /// of an answer counts before its end was seen.
    async fn ask_model(&mut self) -> Result<Entry, Stop> {
        let agent = self.session.agent.clone();
        let step = self.session.state.run.as_ref().map_or(0, |run| run.steps) + 1;
        let request = Request {
            system: self.system.clone(),
            tools: self.tools.specs(),
            messages: self.messages().await,
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
        let used = usage.input_tokens + usage.output_tokens;
        let context_tokens = (used > 0).then_some(used);
        let context_window = self.session.window();
        let stopped = stop.clone();
        self.emit(EventKind::ModelEnded { step, usage, cost, stop: stopped, context_tokens, context_window });
        let mut content = self.session.state.with_unique_ids(content);
        refuse_secrets(&mut content, self.session.sessions.redactor());
        Ok(Entry::Model(ModelReply { run: self.run.clone(), model, content, usage, cost, stop }))
    }
}
