//! What is recorded about tool calls that do not run: questions, answers in their place, refusals,
//! and results of calls that will never be finished.
//!
//! Effects: workspace files (writes), the journal (writes).

use super::caller::{SKIPPED_TEXT, ToolCaller, is_begun};
use super::execution::ShownCall;
use super::stop::RunStop;
use crate::admission::{AdmittedCall, CallGate};
use std::borrow::Cow;
use std::collections::HashSet;
use stead_core::{
    Ask, AskTerms, Block, CallResult, CallState, Entry, EventKind, NestedCall, NestedId,
    PendingCall, ResultStatus, ToolCall,
};
use stead_tools::OutputLength;

/// The most calls of one answer that are carried out.
const MAX_CALLS_PER_ANSWER: usize = 1_000;

impl ToolCaller<'_, '_> {
    /// Records that a call waits for a person.
    pub(super) async fn record_ask(
        &mut self,
        call: ToolCall,
        nested: Option<NestedCall>,
        ask: Ask,
    ) -> Result<(), RunStop> {
        let ask = Ask { nested, ..ask };
        for line in self.journal.record(vec![Entry::Ask(ask)]).await? {
            let Entry::Ask(Ask {
                id, rule, terms, ..
            }) = line.entry
            else {
                continue;
            };
            let decisions = terms.allowed().to_vec();
            let AskTerms {
                expires, preview, ..
            } = terms;
            let parent = parent_of(&id);
            self.journal.emit(EventKind::Ask {
                id,
                name: call.name.clone(),
                args: call.args.clone(),
                rule,
                decisions,
                expires,
                preview,
                parent,
            });
        }
        Ok(())
    }

    /// Records the result that a person or client gave in place of the call.
    pub(super) async fn record_response(
        &mut self,
        call: ToolCall,
        nested: Option<NestedCall>,
        text: String,
    ) -> Result<(), RunStop> {
        let session = self.journal.session();
        let tools = self.conversation.callable_tools(session.state());
        let mut result = self.result(&call.id, ResultStatus::Ok, text);
        result.add_taint(CallGate::new(session.agent()).response_taint(tools, &call));
        result.nested = nested;
        result.content = self
            .offload(&call.id, OutputLength::Any, result.content)
            .await;
        self.emit_started(&call);
        self.record_result(ShownCall::of(&call.name), None, result)
            .await
    }

    /// Records that a call does not run, and why. `nested` says what the call is, if it is a nested
    /// one and no entry says it yet.
    pub(super) async fn refuse(
        &mut self,
        call: &ToolCall,
        nested: Option<NestedCall>,
        status: ResultStatus,
        text: String,
    ) -> Result<(), RunStop> {
        self.emit_started(call);
        let mut result = self.result(&call.id, status, text);
        result.nested = nested;
        self.record_result(ShownCall::of(&call.name), None, result)
            .await
    }

    /// Refuses the calls of an answer that has too many. Returns the others.
    pub(super) async fn refuse_excess(
        &mut self,
        calls: Vec<PendingCall>,
    ) -> Result<Vec<PendingCall>, RunStop> {
        let run = self.journal.state().run.as_ref();
        let excess = run.and_then(|run| run.pending.get(MAX_CALLS_PER_ANSWER..));
        let results: Vec<CallResult> = excess
            .unwrap_or_default()
            .iter()
            .filter(|pending| pending.state == CallState::New)
            .map(|pending| {
                let text = format!(
                    "not carried out: one answer can have {MAX_CALLS_PER_ANSWER} calls at most; make the call again in your next answer if it is still needed"
                );
                self.result(&pending.call.id, ResultStatus::Error, text)
            })
            .collect();
        if results.is_empty() {
            return Ok(calls);
        }
        let refused: HashSet<String> = results.iter().map(|result| result.id.clone()).collect();
        self.record_unfinished(results).await?;
        let is_left = |pending: &PendingCall| !refused.contains(&pending.call.id);
        Ok(calls.into_iter().filter(is_left).collect())
    }

    /// Skips a call because of a steering message. Returns false if the call has its result already
    /// or a person has decided on it.
    pub(crate) async fn skip_pending(&mut self, pending: &PendingCall) -> Result<bool, RunStop> {
        match &pending.state {
            CallState::New | CallState::Asked { .. } | CallState::Approved { .. } => {
                self.skip(&pending.call).await?;
            }
            CallState::Begun { .. } => self.record_interruption(pending).await?,
            CallState::Rejected { .. } | CallState::Responded { .. } | CallState::Done { .. } => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn skip(&mut self, call: &ToolCall) -> Result<(), RunStop> {
        self.refuse(call, None, ResultStatus::Skipped, SKIPPED_TEXT.to_owned())
            .await
    }

    /// Skips admitted calls because of a steering message.
    pub(super) async fn skip_admitted(&mut self, batch: &[AdmittedCall]) -> Result<(), RunStop> {
        for admitted in batch {
            match self.pending(&admitted.call.id).cloned() {
                // Calls that it made may have run.
                Some(begun) if is_begun(&begun) => self.record_interruption(&begun).await?,
                Some(_) | None => self.skip(&admitted.call).await?,
            }
        }
        Ok(())
    }

    fn emit_started(&mut self, call: &ToolCall) {
        let ToolCall { id, name, args, .. } = call.clone();
        let parent = parent_of(&id);
        self.journal.emit(EventKind::ToolStarted {
            id,
            name,
            args,
            parent,
        });
    }

    pub(super) fn result(&self, id: &str, status: ResultStatus, text: String) -> CallResult {
        CallResult::new(
            self.journal.run().clone(),
            id,
            status,
            vec![Block::text(text)],
        )
    }

    /// Records that a call was interrupted and does not run again, nor do calls that it made.
    pub(super) async fn record_interruption(
        &mut self,
        pending: &PendingCall,
    ) -> Result<(), RunStop> {
        let Some(run) = &self.journal.state().run else {
            return Ok(());
        };
        let mut results = run.unfinished_results(&pending.call.id);
        results.push(run.interrupted_result(pending));
        self.record_unfinished(results).await
    }

    /// Records results of calls that will never be finished.
    pub(super) async fn record_unfinished(
        &mut self,
        results: Vec<CallResult>,
    ) -> Result<(), RunStop> {
        let run = self.journal.state().run.as_ref();
        let name = |result: &CallResult| Some(run?.pending.find(&result.id)?.call.name.clone());
        let names: Vec<Option<String>> = results.iter().map(name).collect();
        let entries = results.iter().cloned().map(Entry::Result).collect();
        self.journal.record(entries).await?;
        for (result, name) in results.iter().zip(names) {
            self.emit_ended(ShownCall::of(&name.unwrap_or_default()), result);
        }
        Ok(())
    }
}

/// Returns the call that made the call `id`, if it is a nested one.
pub(super) fn parent_of(id: &str) -> Option<String> {
    NestedId::parse(id).map(|id| id.parent.to_owned())
}

/// Returns the name of the files with the output of a call. No id of a model has a dot.
pub(super) fn file_name(id: &str) -> Cow<'_, str> {
    match id.contains('/') {
        true => Cow::Owned(id.replace('/', ".")),
        false => Cow::Borrowed(id),
    }
}
