//! Carries out nested calls: each is matched with the journal, admitted by the gate, executed and
//! recorded like a call of the model, and its outcome goes to the call that made it.
//!
//! Effects: the clock, randomness, workspace files (writes), the local disk (reads), the store
//! (writes), the journal (writes), hooks, tools.

use super::caller::{ToolCaller, intent, is_safe_to_repeat};
use super::execution::FinishedCall;
use super::nested::{
    Answer, CallLink, EndedCall, FromCall, HeldCall, LinkPhase, NestedRequest, NestedWork, Sharing,
    StoppedCall,
};
use super::stop::RunStop;
use crate::admission::{Admission, AdmittedCall};
use crate::hooks::{BeforeToolOutcome, HookResults};
use crate::taint::CallTaint;
use std::borrow::Cow;
use stead_core::{
    CallState, Entry, EventKind, NestedCall, OutputLength, PendingCall, ResultStatus, ToolCall,
    args_hash,
};
use stead_tools::{NestedCallError, NestedOutput};
use tokio::sync::mpsc;

/// The most characters of arguments in the message about a call that is another one than before.
const SHOWN_ARGS_CHARS: usize = 200;

/// The most bytes of arguments of a nested call, as JSON. The journal keeps them.
const MAX_ARGS_BYTES: usize = 4 * 1024 * 1024;

impl ToolCaller<'_, '_> {
    /// Takes a message of a running call.
    pub(super) async fn take_message(
        &mut self,
        work: &mut NestedWork,
        message: FromCall,
        to_loop: &mpsc::Sender<FromCall>,
    ) -> Result<(), RunStop> {
        match message {
            FromCall::Output { id, text } => {
                self.journal.emit(EventKind::ToolOutputDelta { id, text });
                Ok(())
            }
            FromCall::Call(request) => {
                self.take_request(work, *request).await?;
                self.start_ready(work, to_loop).await
            }
        }
    }

    /// Takes the end of a call.
    pub(super) async fn take_end(
        &mut self,
        work: &mut NestedWork,
        EndedCall { end, answer }: EndedCall,
        to_loop: &mpsc::Sender<FromCall>,
    ) -> Result<(), RunStop> {
        let ended = match end {
            Ok(finished) => self.end_caller(work, finished, answer),
            Err(StoppedCall(link)) => {
                let phase = link.phase();
                let running = work.end_caller(link.id());
                match phase {
                    LinkPhase::Diverged(why) => {
                        let held = (self.diverged(link.id(), why), answer);
                        match running {
                            0 => Some(held),
                            _ => {
                                work.hold(link.id(), held);
                                None
                            }
                        }
                    }
                    // It has no result: it is run again after the decision.
                    LinkPhase::Parked | LinkPhase::Running => work.release(link.id()),
                }
            }
        };
        self.settle(work, ended).await?;
        self.start_ready(work, to_loop).await
    }

    /// Returns the end of a call, unless it must wait for calls that it made.
    fn end_caller(
        &self,
        work: &mut NestedWork,
        finished: FinishedCall,
        answer: Option<Answer>,
    ) -> Option<HeldCall> {
        if let Some(link) = &finished.link {
            link.end();
        }
        let id = &finished.result.id;
        let running = work.end_caller(id);
        if work.has_asked && self.has_question_below(id) {
            // It did not wait for a call that a person is asked about. It is run again after the
            // decision, like one that waited.
            return work.release(id);
        }
        match running {
            0 => Some((finished, answer)),
            _ => {
                let id = id.clone();
                work.hold(&id, (finished, answer));
                None
            }
        }
    }

    /// Records the result of a call, tells the call that made it, and does the same for that one if
    /// it has only waited for this.
    async fn settle(
        &mut self,
        work: &mut NestedWork,
        ended: Option<HeldCall>,
    ) -> Result<(), RunStop> {
        let mut next = ended;
        while let Some((finished, answer)) = next {
            // Calls of a model that made no calls have nothing more to settle.
            let id = answer.as_ref().map(|_| finished.result.id.clone());
            let stop = self.finish(finished).await?;
            work.stop = work.stop.take().or(stop);
            let Some((id, answer)) = id.zip(answer) else {
                return Ok(());
            };
            self.answer(&id, answer);
            next = work.release(&id);
        }
        Ok(())
    }

    /// Tells the calling call the recorded result of the nested call `id`.
    fn answer(&self, id: &str, answer: Answer) {
        let outcome = match self.pending(id) {
            Some(PendingCall {
                state: CallState::Done { result },
                nesting,
                ..
            }) => Ok(NestedOutput {
                id: id.to_owned(),
                status: result.status,
                content: result.content.clone(),
                untrusted: nesting.untrusted,
            }),
            Some(_) | None => Err(NestedCallError::Ending),
        };
        // The calling tool may not wait for it any more.
        drop(answer.send(outcome));
    }

    /// Matches a request with the journal: a call with a result returns it, one that is another call
    /// than before is refused, and all others wait for their turn.
    async fn take_request(
        &mut self,
        work: &mut NestedWork,
        request: NestedRequest,
    ) -> Result<(), RunStop> {
        let link = request.link.clone();
        if !link.makes_calls() || self.is_ending(work, &link) {
            request.refuse(NestedCallError::Ending);
            return Ok(());
        }
        let limit = self.journal.agent().policy().max_nested_calls;
        if let Err(why) = work.enter(&link, limit) {
            request.refuse(why);
            return Ok(());
        }
        let request = match self.checked(request) {
            Ok(request) => request,
            Err(request) => {
                let limit = MAX_ARGS_BYTES;
                request.refuse(NestedCallError::TooLong { limit });
                return Ok(());
            }
        };
        let tools = self.conversation.callable_tools(self.journal.state());
        let (name, args) = tools.unwrap_call(request.name, request.args);
        let request = NestedRequest {
            name,
            args,
            ..request
        };
        let id = request.id();
        let Some(known) = self.pending(&id) else {
            let sharing = self.sharing(&request.name);
            work.queue(request, sharing);
            return Ok(());
        };
        if !is_same_call(known, &request) {
            let why = divergence(known, &request);
            link.stop_as(LinkPhase::Diverged(why.clone()));
            request.refuse(NestedCallError::Diverged(why));
            return Ok(());
        }
        match &known.state {
            CallState::Done { .. } => self.answer(&id, request.answer),
            CallState::Begun { repeatable: false } => {
                let known = known.clone();
                self.record_interruption(&known).await?;
                self.answer(&id, request.answer);
            }
            CallState::Asked { .. } => work.park(&link),
            CallState::New
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { repeatable: true } => {
                let sharing = self.sharing(&request.name);
                work.queue(request, sharing);
            }
        }
        Ok(())
    }

    /// Starts the calls whose turn it is.
    async fn start_ready(
        &mut self,
        work: &mut NestedWork,
        to_loop: &mpsc::Sender<FromCall>,
    ) -> Result<(), RunStop> {
        let width = self.width();
        while let Some((request, sharing)) = work.next_ready(width) {
            self.start_nested(work, (request, sharing), to_loop).await?;
        }
        Ok(())
    }

    /// Puts a nested call to hooks and the gate, and starts it if it may run.
    async fn start_nested(
        &mut self,
        work: &mut NestedWork,
        (request, sharing): (NestedRequest, Sharing),
        to_loop: &mpsc::Sender<FromCall>,
    ) -> Result<(), RunStop> {
        let link = request.link.clone();
        if self.is_ending(work, &link) {
            request.refuse(NestedCallError::Ending);
            return Ok(());
        }
        let is_parked = link.is_parked();
        // The calling tool does not wait for it any more.
        if request.answer.is_closed() && !is_parked {
            return Ok(());
        }
        let id = request.id();
        let nested = NestedCall {
            parent: link.id().to_owned(),
            name: request.name.clone(),
            args: request.args.clone(),
        };
        let known = self.pending(&id).cloned();
        let mut pending = known.unwrap_or_else(|| PendingCall::nested(&id, &nested));
        pending.call.invalid = pending.call.invalid.or_else(|| request.invalid.clone());
        // A person decides on the files as they are: beside a question only further questions are
        // recorded. The calling call makes all other calls again.
        if is_parked && !matches!(self.admit(pending.clone()).await, Admission::Ask(_)) {
            return Ok(());
        }
        // The calling call is on record before any call that it made.
        let intents = work.take_intents(&link);
        if !intents.is_empty() {
            self.journal.record(intents).await?;
        }
        if let Some(hooks) = &mut self.hooks {
            let call = pending.call.clone();
            let asked = hooks.before_tool(self.journal, self.conversation, pending, Some(&nested));
            match asked.await {
                Ok(BeforeToolOutcome::Continue(changed)) => pending = *changed,
                Ok(BeforeToolOutcome::Deny(text)) => {
                    let nested = self.introduction(&id, nested);
                    self.refuse(&call, nested, ResultStatus::Denied, text)
                        .await?;
                    self.answer(&id, request.answer);
                    return Ok(());
                }
                // Calls that run end first, and are on record.
                Err(stop @ (RunStop::Hook(_) | RunStop::Halted(_))) => {
                    work.stop.get_or_insert(stop);
                    request.refuse(NestedCallError::Ending);
                    return Ok(());
                }
                Err(stop) => return Err(stop),
            }
        }
        let call = pending.call.clone();
        let admission = self.admit(pending).await;
        let nested = self.introduction(&id, nested);
        match admission {
            // A hook has changed it, so that nobody is asked about it any more.
            Admission::Run(_) if is_parked => {}
            Admission::Run(admitted) => {
                self.run_nested(work, (*admitted, nested), (request, sharing), to_loop)
                    .await?;
            }
            Admission::Ask(ask) => {
                self.record_ask(call, nested, *ask).await?;
                work.park(&link);
            }
            Admission::Respond(text) => {
                self.record_response(call, nested, text).await?;
                self.answer(&id, request.answer);
            }
            Admission::Refuse(status, text) => {
                self.refuse(&call, nested, status, text).await?;
                self.answer(&id, request.answer);
            }
        }
        Ok(())
    }

    /// Records the intent of an admitted nested call, if it can change anything, and starts it.
    async fn run_nested(
        &mut self,
        work: &mut NestedWork,
        (admitted, nested): (AdmittedCall, Option<NestedCall>),
        (request, sharing): (NestedRequest, Sharing),
        to_loop: &mpsc::Sender<FromCall>,
    ) -> Result<(), RunStop> {
        let id = admitted.call.id.clone();
        let mut nested = nested;
        if !is_safe_to_repeat(admitted.prepared.spec().risk) {
            let intent = intent(self.journal.run(), &admitted, nested.take());
            self.journal.record(vec![Entry::Call(intent)]).await?;
        }
        let NestedRequest {
            link: caller,
            mut answer,
            ..
        } = request;
        let cancel = caller.cancel_calls().child_token();
        let call = self.begin((admitted, nested), cancel.clone(), to_loop);
        let run = async move {
            let mut call = std::pin::pin!(call);
            let end = tokio::select! {
                biased;
                end = &mut call => end,
                () = answer.closed() => {
                    // A call that is parked takes up the results of its calls later.
                    if !caller.is_parked() {
                        cancel.cancel();
                    }
                    call.await
                }
            };
            let answer = Some(answer);
            EndedCall { end, answer }
        };
        work.start(id, sharing, Box::pin(run));
        Ok(())
    }

    /// Whether the run or the calling call is ending.
    fn is_ending(&self, work: &NestedWork, caller: &CallLink) -> bool {
        work.stop.is_some() || caller.is_cancelled() || self.signals.check().is_err()
    }

    /// Whether a call of the tool `name` may run beside others.
    fn sharing(&self, name: &str) -> Sharing {
        let tools = self.conversation.callable_tools(self.journal.state());
        match tools.find(name) {
            Some(tool) if !tool.spec().risk.parallel_safe => Sharing::Alone,
            // A call of an unknown tool is refused.
            Some(_) | None => Sharing::Parallel,
        }
    }

    /// Returns what a nested call is, if no entry says it yet.
    fn introduction(&self, id: &str, nested: NestedCall) -> Option<NestedCall> {
        match self.pending(id) {
            Some(_) => None,
            None => Some(nested),
        }
    }

    /// Returns a call of this step, nested or not.
    pub(super) fn pending(&self, id: &str) -> Option<&PendingCall> {
        let run = self.journal.state().run.as_ref()?;
        run.pending.find(id)
    }

    /// Whether a person is asked about a call that the call `id` made.
    fn has_question_below(&self, id: &str) -> bool {
        let below = format!("{id}/");
        let run = self.journal.state().run.as_ref();
        let asked = run.map(|run| run.pending.asked()).unwrap_or_default();
        asked.iter().any(|call| call.call.id.starts_with(&below))
    }

    /// Returns a request without secrets, or the request itself if its arguments are too long.
    /// Arguments that hold a secret are recorded without it and refused: what runs must be what is on
    /// record.
    fn checked(&self, request: NestedRequest) -> Result<NestedRequest, NestedRequest> {
        let text = request.args.to_string();
        if text.len() > MAX_ARGS_BYTES {
            return Err(request);
        }
        let redactor = self.journal.session().redactor();
        let name = redactor.redact(&request.name).into_owned();
        let Cow::Owned(clean) = redactor.redact(&text) else {
            return Ok(NestedRequest { name, ..request });
        };
        Ok(NestedRequest {
            name,
            args: serde_json::from_str(&clean).unwrap_or_default(),
            invalid: Some(
                "they hold a secret of this machine, which is never passed on; do without it"
                    .to_owned(),
            ),
            ..request
        })
    }

    /// Returns the end of a call that made another call than before it was interrupted.
    fn diverged(&self, id: &str, why: String) -> FinishedCall {
        let tool = self.pending(id).map(|pending| pending.call.name.clone());
        FinishedCall {
            tool: tool.unwrap_or_default(),
            link: None,
            length: OutputLength::Bounded,
            result: self.result(id, ResultStatus::Error, why),
            diff: None,
            taint: CallTaint::default(),
            hook_results: HookResults::default(),
            fatal: None,
        }
    }
}

/// Whether the request is for the call that the journal has under its id.
fn is_same_call(known: &PendingCall, request: &NestedRequest) -> bool {
    let is_given = |hash: String| known.nesting.given_hash.as_ref() == Some(&hash);
    // A number may be read from the journal as its neighbour.
    let reread = || serde_json::from_str(&request.args.to_string()).unwrap_or_default();
    known.call.name == request.name
        && (is_given(args_hash(&request.args)) || is_given(args_hash(&reread())))
}

/// Returns the message about a call that is another one than before.
fn divergence(known: &PendingCall, request: &NestedRequest) -> String {
    let ToolCall { id, name, .. } = &known.call;
    let with = match *name == request.name {
        true => " with other arguments",
        false => "",
    };
    let given = request.args.to_string();
    let shown: String = given.chars().take(SHOWN_ARGS_CHARS).collect();
    format!(
        "diverged: this call was run again after an interruption, and its nested call {id} was {name}{with} before, but now is {} {shown}. It was not made, and no call ran twice. Calls before it have run; check their effects before you repeat anything.",
        request.name
    )
}
