//! The bookkeeping of nested calls in one batch of tool calls: the channel on which a running call
//! asks for them, and the queues in which they wait. Nothing is executed here: `nested_caller.rs`
//! does that.
//!
//! Effects: none.

use super::execution::FinishedCall;
use super::stop::RunStop;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use stead_core::{CallIntent, Entry, MAX_NESTED_DEPTH, NestedId};
use stead_tools::{CallTools, NestedCallError, NestedOutput};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Where the outcome of a nested call goes.
pub(super) type Answer = oneshot::Sender<Result<NestedOutput, NestedCallError>>;

/// What any running call sends to `ToolCaller::run_batch`.
pub(super) enum FromCall {
    /// A piece of its output.
    Output { id: String, text: String },
    /// It calls a tool.
    Call(Box<NestedRequest>),
}

/// A nested call that a running call wants to make.
pub(super) struct NestedRequest {
    pub(super) link: Arc<CallLink>,
    pub(super) ordinal: u32,
    pub(super) name: String,
    pub(super) args: Value,
    /// Why the arguments cannot be used.
    pub(super) invalid: Option<String>,
    pub(super) answer: Answer,
}

impl NestedRequest {
    /// Returns the id of the call.
    pub(super) fn id(&self) -> String {
        let parent = self.link.id();
        let ordinal = self.ordinal;
        NestedId { parent, ordinal }.to_string()
    }

    /// Says why the call is not made.
    pub(super) fn refuse(self, why: NestedCallError) {
        // The calling tool may not wait for it any more.
        drop(self.answer.send(Err(why)));
    }
}

/// How a call that makes nested calls stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkPhase {
    /// It is not stopped.
    Running,
    /// A person is asked about a call it made: it is stopped, and run again later.
    Parked,
    /// It made another call than before it was interrupted: it is stopped and fails, for this
    /// reason.
    Diverged(String),
}

/// The link of a running call to the loop.
pub(super) struct CallLink {
    id: String,
    to_loop: mpsc::Sender<FromCall>,
    next_ordinal: AtomicU32,
    /// The token of the call itself, and what cancels it and all calls that it made.
    cancel: CallTokens,
    /// Cancels the calls that it made; there is none before the first.
    cancel_calls: OnceLock<CancellationToken>,
    /// Stops the call without a result.
    stop: Notify,
    progress: Mutex<LinkProgress>,
}

/// What cancels a call.
pub(super) struct CallTokens {
    /// Cancels the call and all calls that it made.
    pub(super) outer: CancellationToken,
    /// Cancels the call alone.
    pub(super) own: CancellationToken,
}

struct LinkProgress {
    phase: LinkPhase,
    /// Whether the call has ended, and makes no more calls.
    has_ended: bool,
    /// The intent of the call, if it is not on record yet.
    intent: Option<CallIntent>,
}

impl CallLink {
    /// Returns the link of the call `id`, with its intent if that is not on record yet.
    pub(super) fn new(
        id: String,
        to_loop: mpsc::Sender<FromCall>,
        cancel: CallTokens,
        intent: Option<CallIntent>,
    ) -> Self {
        let phase = LinkPhase::Running;
        Self {
            id,
            to_loop,
            next_ordinal: AtomicU32::new(1),
            cancel,
            cancel_calls: OnceLock::new(),
            stop: Notify::new(),
            progress: Mutex::new(LinkProgress {
                phase,
                has_ended: false,
                intent,
            }),
        }
    }

    /// The id of the call.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether the call is cancelled, or its time is up.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.own.is_cancelled()
    }

    /// The token that cancels the calls that it made. They go on when the call is parked.
    pub(super) fn cancel_calls(&self) -> &CancellationToken {
        let calls = &self.cancel_calls;
        calls.get_or_init(|| self.cancel.outer.child_token())
    }

    /// Why the call is stopped, if it is.
    pub(super) fn phase(&self) -> LinkPhase {
        self.progress().phase.clone()
    }

    /// Whether a person is asked about a call it made.
    pub(super) fn is_parked(&self) -> bool {
        self.progress().phase == LinkPhase::Parked
    }

    /// Whether the call can make further calls.
    pub(super) fn makes_calls(&self) -> bool {
        let progress = self.progress();
        let is_sound = match progress.phase {
            LinkPhase::Running | LinkPhase::Parked => true,
            LinkPhase::Diverged(_) => false,
        };
        is_sound && !progress.has_ended
    }

    /// Takes the intent, to record it.
    pub(super) fn take_intent(&self) -> Option<Entry> {
        self.progress().intent.take().map(Entry::Call)
    }

    /// Stops the call: its execution ends without a result.
    pub(super) fn stop_as(&self, phase: LinkPhase) {
        let mut progress = self.progress();
        if progress.phase == LinkPhase::Running && !progress.has_ended {
            progress.phase = phase;
            self.stop.notify_one();
        }
    }

    /// Notes that the call makes no more calls.
    pub(super) fn end(&self) {
        self.progress().has_ended = true;
    }

    /// Returns when the call is stopped; never before.
    pub(super) async fn stopped(&self) {
        self.stop.notified().await;
    }

    fn progress(&self) -> MutexGuard<'_, LinkProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallTools for CallLink {
    fn call(
        self: Arc<Self>,
        name: String,
        args: Value,
    ) -> BoxFuture<'static, Result<NestedOutput, NestedCallError>> {
        let ordinal = self.next_ordinal.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let to_loop = self.to_loop.clone();
        let request = NestedRequest {
            link: self,
            ordinal,
            name,
            args,
            invalid: None,
            answer,
        };
        Box::pin(async move {
            let sent = to_loop.send(FromCall::Call(Box::new(request))).await;
            match sent {
                Ok(()) => answered.await.unwrap_or(Err(NestedCallError::Ending)),
                // The step is over.
                Err(_) => Err(NestedCallError::Ending),
            }
        })
    }
}

/// A call that was stopped without a result.
pub(super) struct StoppedCall(pub(super) Arc<CallLink>);

/// The end of a call, and who waits for its outcome if it is a nested one.
pub(super) struct EndedCall {
    pub(super) end: Result<FinishedCall, StoppedCall>,
    pub(super) answer: Option<Answer>,
}

/// A finished call whose result is not on record yet, and who waits for it.
pub(super) type HeldCall = (FinishedCall, Option<Answer>);

/// A running call that has made nested calls.
struct CallingCall {
    link: Arc<CallLink>,
    /// Calls that may run beside others, and wait for a place.
    waiting: VecDeque<NestedRequest>,
    /// The number of its calls that run.
    running: usize,
    /// Its own end, which waits until its calls have ended.
    held: Option<HeldCall>,
}

/// Whether a call may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    Parallel,
    Alone,
}

/// The nested calls of one batch. Empty, it owns nothing.
#[derive(Default)]
pub(super) struct NestedWork {
    /// By the id of the call.
    callers: BTreeMap<String, CallingCall>,
    /// Calls that run one at a time.
    alone: VecDeque<NestedRequest>,
    /// The one of them that runs.
    running_alone: Option<String>,
    running: Option<FuturesUnordered<BoxFuture<'static, EndedCall>>>,
    /// The number of nested calls, by the call of the model they belong to.
    counts: BTreeMap<String, u32>,
    /// Whether a person is asked about a nested call.
    pub(super) has_asked: bool,
    /// Why the run must end. No more calls are begun then.
    pub(super) stop: Option<RunStop>,
}

impl NestedWork {
    /// Whether no nested call runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.as_ref().is_none_or(FuturesUnordered::is_empty)
    }

    /// Returns the next call that ends; never, if none runs.
    pub(super) async fn next_end(&mut self) -> EndedCall {
        let next = match &mut self.running {
            Some(running) if !running.is_empty() => running.next().await,
            Some(_) | None => None,
        };
        match next {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Notes that a call makes a nested call. Fails if it is too deep, or if the call of the model that
    /// it belongs to has made `limit` calls already.
    pub(super) fn enter(
        &mut self,
        link: &Arc<CallLink>,
        limit: u32,
    ) -> Result<(), NestedCallError> {
        if NestedId::depth_of(link.id()) >= MAX_NESTED_DEPTH {
            return Err(NestedCallError::TooDeep);
        }
        let top = NestedId::top_of(link.id());
        let count = self.counts.entry(top.to_owned()).or_default();
        if *count >= limit {
            return Err(NestedCallError::TooMany { limit });
        }
        *count += 1;
        // A caller only waits for its nested calls, so it gives up its exclusive turn to them.
        self.running_alone.take_if(|running| *running == link.id());
        if !self.callers.contains_key(link.id()) {
            let caller = CallingCall {
                link: link.clone(),
                waiting: VecDeque::new(),
                running: 0,
                held: None,
            };
            self.callers.insert(link.id().to_owned(), caller);
        }
        Ok(())
    }

    /// Lets a request wait for its turn.
    pub(super) fn queue(&mut self, request: NestedRequest, sharing: Sharing) {
        match (sharing, self.callers.get_mut(request.link.id())) {
            (Sharing::Parallel, Some(caller)) => caller.waiting.push_back(request),
            (Sharing::Parallel, None) => request.refuse(NestedCallError::Ending),
            (Sharing::Alone, _) => self.alone.push_back(request),
        }
    }

    /// Takes the next request whose turn it is. One call has at most `width` calls running.
    pub(super) fn next_ready(&mut self, width: usize) -> Option<(NestedRequest, Sharing)> {
        if self.running_alone.is_none()
            && let Some(request) = self.alone.pop_front()
        {
            return Some((request, Sharing::Alone));
        }
        let free = |caller: &&mut CallingCall| caller.running < width;
        let mut callers = self.callers.values_mut().filter(free);
        let request = callers.find_map(|caller| caller.waiting.pop_front())?;
        Some((request, Sharing::Parallel))
    }

    /// Adds a call that runs.
    pub(super) fn start(
        &mut self,
        id: String,
        sharing: Sharing,
        run: BoxFuture<'static, EndedCall>,
    ) {
        let parent = NestedId::parse(&id).map(|id| id.parent);
        if let Some(caller) = parent.and_then(|parent| self.callers.get_mut(parent)) {
            caller.running += 1;
        }
        match sharing {
            Sharing::Parallel => {}
            Sharing::Alone => self.running_alone = Some(id),
        }
        self.running.get_or_insert_default().push(run);
    }

    /// Takes the intents of the call `link` and of those above it that are not on record yet.
    pub(super) fn take_intents(&self, link: &CallLink) -> Vec<Entry> {
        let mut links = vec![link];
        let mut id = link.id();
        while let Some(NestedId { parent, .. }) = NestedId::parse(id) {
            links.extend(self.callers.get(parent).map(|caller| &*caller.link));
            id = parent;
        }
        let from_top = links.into_iter().rev();
        from_top.filter_map(CallLink::take_intent).collect()
    }

    /// Stops a call, and those above it, because a person is asked about a call it made.
    pub(super) fn park(&mut self, link: &CallLink) {
        self.has_asked = true;
        link.stop_as(LinkPhase::Parked);
        let mut id = link.id();
        while let Some(NestedId { parent, .. }) = NestedId::parse(id) {
            if let Some(caller) = self.callers.get(parent) {
                caller.link.stop_as(LinkPhase::Parked);
            }
            id = parent;
        }
    }

    /// Notes that a call makes no more calls: those that wait are not made. Returns the number of its
    /// calls that still run.
    pub(super) fn end_caller(&mut self, id: &str) -> usize {
        let Some(caller) = self.callers.get_mut(id) else {
            return 0;
        };
        caller.link.end();
        caller.waiting.clear();
        let running = caller.running;
        self.alone.retain(|request| request.link.id() != id);
        if running == 0 {
            self.callers.remove(id);
        }
        running
    }

    /// Keeps the end of a call until its calls have ended, which are cancelled.
    pub(super) fn hold(&mut self, id: &str, held: HeldCall) {
        if let Some(caller) = self.callers.get_mut(id) {
            caller.link.cancel_calls().cancel();
            caller.held = Some(held);
        }
    }

    /// Notes that a call has ended or was stopped. Returns the end of the call that made it, if that
    /// waited for this one.
    pub(super) fn release(&mut self, id: &str) -> Option<HeldCall> {
        self.running_alone.take_if(|running| *running == id);
        if self.callers.get(id).is_some_and(|ended| ended.running == 0) {
            self.callers.remove(id);
        }
        let parent = NestedId::parse(id)?.parent;
        let caller = self.callers.get_mut(parent)?;
        caller.running = caller.running.saturating_sub(1);
        match caller.running {
            0 => caller.held.take(),
            _ => None,
        }
    }
}
