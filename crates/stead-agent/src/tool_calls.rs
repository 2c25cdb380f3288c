//! The calls of one step: through the gate, then run, each with its intent and result on record.

use crate::approvals::asked;
use crate::gate::{Terms, is_allowed, judge};
use crate::halt::Halt;
use crate::live::{Live, Stop};
use crate::standing::Standing as Prompts;
use crate::{Agent, AgentError, Approvals, Judged, Session, Tainted};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{
    Access, AccessKind, Ask, AskTerms, Block, CallIntent, CallResult, CallState, Effect, Entry, EventKind, Owner,
    Pending, ResultStatus, Risk, RunId, SessionId, ToolCall, Verdict, VerdictKind, args_hash,
};
use stead_tools::{
    ActiveSkills, Hands, Length, Origin, Output, Registry, Seen, Spills, Standing, Tool, ToolCx, ToolError,
};
use stead_vfs::{Guarded, VPath, Vfs, VfsError};
use stead_workspace::PROJECT;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a cancelled tool may take to come to its own end.
const CANCEL_GRACE: Duration = Duration::from_millis(500);
/// Pieces of output that wait to be told; more are left out.
const MAX_WAITING_DELTAS: usize = 64;
/// How much of a result an event shows.
const PREVIEW_CHARS: usize = 400;

/// What came of a call outside any session.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// How it ended.
    pub status: ResultStatus,
    /// What a model would have been told.
    pub content: Vec<Block>,
}

/// The conversation that a call is part of, as far as the gate must know it.
pub(crate) struct Conversation<'a> {
    pub(crate) owner: &'a Owner,
    /// What binds it beside the rules of its agent.
    pub(crate) terms: Terms,
    /// The result that first brought in words from outside.
    pub(crate) tainted: Option<u64>,
    /// The session, if it is one.
    pub(crate) session: Option<&'a Session>,
}

/// A call that may run.
struct Ready {
    call: ToolCall,
    tool: Arc<dyn Tool>,
    args: Value,
    /// Whether its result brings in words from outside.
    outside: bool,
}

/// A call that waits for a person.
struct Asked {
    ask: Ask,
    tool: Arc<dyn Tool>,
    judged: Judged,
}

/// What the gate and the registry made of a call.
enum Admission {
    Run(Ready),
    Ask(Box<Asked>),
    Refuse(ResultStatus, String),
}

impl Live<'_> {
    /// Puts the calls through the gate and runs what it allows: neighbours that are parallel-safe
    /// together, all others alone, in the model's order.
    pub(crate) async fn run_tools(&mut self, calls: Vec<Pending>) -> Result<(), Stop> {
        let mut together: Vec<Ready> = Vec::new();
        let mut calls = calls.into_iter();
        while let Some(pending) = calls.next() {
            if self.is_steered() {
                let open = together.into_iter().map(|ready| ready.call);
                let rest = calls.map(|pending| pending.call);
                return self.skip(open.chain([pending.call]).chain(rest)).await;
            }
            let Some(pending) = self.before_tool(pending).await? else { continue };
            let call = pending.call.clone();
            let admitted = {
                let session = &*self.session;
                session.agent.admit(self.hands(), &*self.files, &self.run, pending, &session.conversation()).await
            };
            match admitted {
                Admission::Run(ready) if ready.tool.spec().risk.parallel_safe => together.push(ready),
                Admission::Run(ready) => {
                    self.run_batch(std::mem::take(&mut together)).await?;
                    self.run_batch(vec![ready]).await?;
                }
                Admission::Ask(asked) => {
                    for line in self.record(vec![Entry::Ask(asked.ask)]).await? {
                        let Entry::Ask(Ask { id, rule, terms, .. }) = line.entry else { continue };
                        let (name, args, decisions) = (call.name.clone(), call.args.clone(), terms.allowed().to_vec());
                        let AskTerms { expires, preview, .. } = terms;
                        self.emit(EventKind::Ask { id, name, args, rule, decisions, expires, preview });
                    }
                }
                Admission::Refuse(status, text) => {
                    let mut result = refusal(&self.run, &call.id, status, text);
                    if status == ResultStatus::Ok {
                        result.untrusted = self.session.agent.responds_from_outside(self.hands(), &call);
                        if let Some(offload) = &self.offload {
                            let window = self.session.window();
                            result.content = offload.result(&call.id, Length::Any, result.content, window).await;
                        }
                    }
                    self.emit(EventKind::ToolStarted { id: call.id.clone(), name: call.name.clone(), args: call.args });
                    self.record_result(&call.name, None, result).await?;
                }
            }
        }
        if self.is_steered() {
            return self.skip(together.into_iter().map(|ready| ready.call)).await;
        }
        self.run_batch(together).await
    }

    /// Records that a call does not run, and why.
    pub(crate) async fn refuse(&mut self, call: &ToolCall, status: ResultStatus, text: String) -> Result<(), Stop> {
        let ToolCall { id, name, args, .. } = call.clone();
        self.emit(EventKind::ToolStarted { id, name, args });
        let result = refusal(&self.run, &call.id, status, text);
        self.record_result(&call.name, None, result).await
    }

    /// Records the intents, runs the calls, and records each result as it comes. One failing call
    /// never touches the others.
    async fn run_batch(&mut self, batch: Vec<Ready>) -> Result<(), Stop> {
        if batch.is_empty() {
            return Ok(());
        }
        self.halt.check()?;
        let first = batch.iter().filter(|ready| !leaves_no_trace(ready.tool.spec().risk));
        let intents: Vec<Entry> = first.map(|ready| Entry::Call(intent(&self.run, ready))).collect();
        if !intents.is_empty() {
            self.record(intents).await?;
        }
        let policy = self.session.agent.policy();
        let (usual, width) = (Duration::from_secs(policy.tool_timeout_seconds), policy.parallel_tool_calls as usize);
        let (deltas, mut told) = mpsc::channel(MAX_WAITING_DELTAS);
        let mut running = Vec::with_capacity(batch.len());
        for ready in batch {
            let (id, name) = (ready.call.id.clone(), ready.tool.spec().name.clone());
            self.emit(EventKind::ToolStarted { id, name, args: ready.args.clone() });
            let known = (self.session.seen.clone(), self.session.active.clone());
            let origin = Origin {
                session: self.session.id.clone(),
                seq: self.session.state.seq,
                call: ready.call.id.clone(),
                tainted: self.session.state.tainted,
            };
            let spills = self.spills(&ready.call.id, &deltas);
            let standing = self.session.standing();
            let cx = ToolCx { spills, standing, ..tool_cx(self.tool_files.clone(), known, origin, &self.halt) };
            let length = ready.tool.length();
            let late = leaves_no_trace(ready.tool.spec().risk).then(|| Entry::Call(intent(&self.run, &ready)));
            let limit = ready.tool.timeout(&ready.args).unwrap_or(usual);
            let after = self.after_tool(&ready.call);
            let work = execute(self.run.clone(), ready, cx, self.halt.clone(), limit);
            running.push(async move {
                let (name, result, stop) = work.await;
                (late, length, (name, after.see(result).await, stop))
            });
        }
        let mut running = futures_util::stream::iter(running).buffer_unordered(width.max(1));
        let mut fatal = None;
        loop {
            let (late, length, (name, (mut result, fired), stop)) = tokio::select! {
                biased;
                Some((id, text)) = told.recv() => {
                    self.emit(EventKind::ToolOutputDelta { id, text });
                    continue;
                }
                done = running.next() => match done {
                    Some(done) => done,
                    None => break,
                },
            };
            while let Ok((id, text)) = told.try_recv() {
                self.emit(EventKind::ToolOutputDelta { id, text });
            }
            let hooked = self.add_words(fired, &mut result).await?;
            if let Some(offload) = &self.offload {
                result.content = offload.result(&result.id, length, result.content, self.session.window()).await;
            }
            self.record_result(&name, late, result).await?;
            fatal = fatal.or(stop.map(Stop::Tool)).or(hooked);
        }
        match fatal {
            Some(stop) => Err(stop),
            None => Ok(()),
        }
    }

    /// Where the output of a call goes while it runs; listeners hear of it as far as they keep up.
    fn spills(&self, call: &str, deltas: &mpsc::Sender<(String, String)>) -> Spills {
        let Some(offload) = &self.offload else { return Spills::default() };
        let (id, deltas) = (call.to_owned(), deltas.clone());
        offload.spills(call, Arc::new(move |text| drop(deltas.try_send((id.clone(), text)))))
    }

    async fn record_result(&mut self, name: &str, late: Option<Entry>, mut result: CallResult) -> Result<(), Stop> {
        let (agent, sessions) = (self.session.agent.clone(), self.session.sessions.clone());
        if let Some(note) = self.session.edit_note(&result.id) {
            result.content.insert(0, Block::text(note));
        }
        result.untrusted = result.untrusted || agent.shows_outside(&*sessions, &result.content).await;
        let entries = late.into_iter().chain([Entry::Result(result)]).collect();
        let lines = self.record(entries).await?;
        for line in &lines {
            if let Entry::Result(CallResult { id, status, content, ms, .. }) = &line.entry {
                let preview = if self.hooked.hides(id) { String::new() } else { preview(content) };
                let (id, name) = (id.clone(), name.to_owned());
                self.emit(EventKind::ToolEnded { id, name, status: *status, preview, ms: *ms });
            }
        }
        self.tell_changes(&lines);
        Ok(())
    }
}

impl Agent {
    /// Calls one tool outside any session, through the same gate. A call that would ask is answered by
    /// `approvals`; with nobody there it is refused.
    pub async fn call_tool(
        self: &Arc<Self>,
        name: &str,
        args: Value,
        approvals: &Approvals,
        cancel: CancellationToken,
    ) -> Called {
        let run = RunId::fresh();
        let files = self.outside_files();
        let tools = match self.outside_turn().await {
            Ok(turn) => turn.tools,
            Err(error) => {
                return Called { status: ResultStatus::Error, content: vec![Block::text(error.to_string())] };
            }
        };
        let call = ToolCall { id: "call_1".to_owned(), name: name.to_owned(), args, invalid: None, signature: None };
        let outside = match self.outside().await {
            Ok(outside) => outside,
            Err(error) => {
                return Called { status: ResultStatus::Error, content: vec![Block::text(error.to_string())] };
            }
        };
        let pending = Pending { call: call.clone(), state: CallState::New };
        let admission = self.admit(&tools, &*files, &run, pending, &outside).await;
        let ready = match admission {
            Admission::Run(ready) => ready,
            Admission::Refuse(status, text) => return Called { status, content: vec![Block::text(text)] },
            Admission::Ask(asked) => {
                let Asked { ask, tool, judged } = *asked;
                let pending = match self.ask_outside(call, ask, (&*tool, &*files, judged), approvals).await {
                    Ok(pending) => pending,
                    Err(called) => return called,
                };
                match self.admit(&tools, &*files, &run, pending, &outside).await {
                    Admission::Run(ready) => ready,
                    Admission::Refuse(status, text) => return Called { status, content: vec![Block::text(text)] },
                    Admission::Ask(asked) => {
                        let content = vec![Block::text(format!("denied: {}", asked.ask.rule))];
                        return Called { status: ResultStatus::Denied, content };
                    }
                }
            }
        };
        let usual = Duration::from_secs(self.policy().tool_timeout_seconds);
        let limit = ready.tool.timeout(&ready.args).unwrap_or(usual);
        let halt = Halt::new(cancel, limit.saturating_mul(2), CancellationToken::new());
        let cx = tool_cx(self.guard(files), Default::default(), Origin::default(), &halt);
        let (_, result, _) = execute(run, ready, cx, halt, limit).await;
        Called { status: result.status, content: result.content }
    }

    /// The gate's verdict on a call, or why it is not a call at all.
    pub async fn explain(self: &Arc<Self>, name: &str, args: Value) -> Result<Verdict, String> {
        let tools = self.outside_turn().await.map_err(|error| error.to_string())?.tools;
        let outside = self.outside().await.map_err(|error| error.to_string())?;
        let (tool, args) = match prepare(&tools, name, args) {
            Ok(prepared) => prepared,
            Err(message) => return self.never(&tools, name, &outside.terms).ok_or(message),
        };
        let judged = self.judged((&tools, &*self.outside_files()), &*tool, &args, &outside).await;
        Ok(judged
            .map_or_else(|error| Verdict::deny(error.to_string()), |call| judge(&self.gate, &outside.terms, &call)))
    }

    /// The gate's verdict on a call of what is not here and would never be callable.
    fn never(&self, tools: &Registry, name: &str, terms: &Terms) -> Option<Verdict> {
        let (tool, why) = tools.excluded(name)?;
        Some(judge(&self.gate, terms, &Judged::excluded(tool, why)))
    }

    /// No conversation at all.
    async fn outside(&self) -> Result<Conversation<'_>, AgentError> {
        let (owner, mode) = (&self.parts.owner, self.parts.workspace.config().permission_mode);
        let terms = Terms { mode, granted: self.grants(owner).await?, ..Terms::default() };
        Ok(Conversation { owner, terms, tainted: None, session: None })
    }

    /// The tree as its usual owner sees it outside any session.
    fn outside_files(&self) -> Arc<dyn Vfs> {
        self.parts.place.files(&self.parts.owner, &SessionId::outside(), None)
    }

    /// Files as tools see them: the rules hold below every one of them.
    pub(crate) fn guard(&self, files: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
        Arc::new(Guarded::new(files, self.parts.workspace.rules.clone()))
    }

    async fn admit(
        &self,
        tools: &Registry,
        files: &dyn Vfs,
        run: &RunId,
        pending: Pending,
        conversation: &Conversation<'_>,
    ) -> Admission {
        let Pending { call, state } = pending;
        match &state {
            CallState::Rejected { by, words } => {
                let why = words.as_ref().map_or(String::new(), |words| format!(": {words}"));
                return Admission::Refuse(ResultStatus::Denied, format!("denied: {by} said no to this call{why}"));
            }
            CallState::Responded { words, .. } => return Admission::Refuse(ResultStatus::Ok, words.clone()),
            CallState::New
            | CallState::Asked { .. }
            | CallState::Approved { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => {}
        }
        if let Some(reason) = &call.invalid {
            return Admission::Refuse(ResultStatus::Error, format!("the arguments could not be read: {reason}"));
        }
        let (tool, args) = match prepare(tools, &call.name, call.args.clone()) {
            Ok(prepared) => prepared,
            Err(message) => {
                return match self.never(tools, &call.name, &conversation.terms) {
                    Some(verdict) => Admission::Refuse(ResultStatus::Denied, format!("denied: {}", verdict.rule)),
                    None => Admission::Refuse(ResultStatus::Error, message),
                };
            }
        };
        let judged = match self.judged((tools, files), &*tool, &args, conversation).await {
            Ok(judged) => judged,
            Err(error) => return Admission::Refuse(ResultStatus::Denied, format!("denied: {error}")),
        };
        let verdict = asked(&*tool, judge(&self.gate, &conversation.terms, &judged));
        let hash = args_hash(&call.args);
        let approved = tool.hands() == Hands::Ours && state == CallState::Approved { args_hash: hash.clone() };
        match verdict.kind {
            _ if is_allowed(&verdict) => Admission::Run(self.ready(call, tool, args)),
            VerdictKind::Ask if approved => Admission::Run(self.ready(call, tool, args)),
            VerdictKind::Ask => {
                let standing = conversation.session.map(Session::standing).unwrap_or_default();
                if let Some(why) = tool.refuses(&standing, files).await {
                    return Admission::Refuse(ResultStatus::Error, why);
                }
                let terms = self.ask_terms(files, &*tool, &judged).await;
                let ask = Ask { run: run.clone(), id: call.id, args_hash: hash, rule: verdict.rule, terms };
                Admission::Ask(Box::new(Asked { ask, tool, judged }))
            }
            VerdictKind::Deny | VerdictKind::Allow => {
                Admission::Refuse(ResultStatus::Denied, format!("denied: {}", verdict.rule))
            }
        }
    }

    /// A call with all that the gate must know about it.
    pub(crate) async fn judged(
        &self,
        (tools, files): (&Registry, &dyn Vfs),
        tool: &dyn Tool,
        args: &Value,
        conversation: &Conversation<'_>,
    ) -> Result<Judged, VfsError> {
        let (workspace, spec) = (&self.parts.workspace, tool.spec());
        let absent = tools.find(&spec.name).is_none();
        let excluded = tools.excluded(&spec.name).map(|(_, why)| why.to_owned());
        // Arguments of a tool that is not there were not checked.
        let mut accesses = if absent { Vec::new() } else { tool.accesses(args) };
        let command = tool.command(args).map(|text| self.command(text, args, &mut accesses));
        Ok(Judged {
            tool: spec.name.clone(),
            effect: spec.risk.effect,
            args: args.clone(),
            unlisted: absent && excluded.is_none(),
            excluded,
            tainted: self.tainted(files, &spec.name, &accesses, conversation).await,
            project: self.parts.place.project().filter(|_| accesses.iter().any(changes_project)),
            lies: match conversation.terms.granted.is_empty() {
                // Only rules for folders ask where paths lie.
                true => Vec::new(),
                false => lie(files, &accesses).await,
            },
            command,
            flagged: tool.always_asks(args),
            files: stead_vfs::judge(&workspace.rules, files, &accesses).await?,
        })
    }

    /// What the call would change of what later prompts are made from, in a session with words from outside.
    async fn tainted(
        &self,
        files: &dyn Vfs,
        tool: &str,
        accesses: &[Access],
        conversation: &Conversation<'_>,
    ) -> Option<Tainted> {
        let seq = conversation.tainted?;
        // It sees to it itself: what it is given then waits for approval.
        if tool == "memory_save" {
            return None;
        }
        let mut resolved = BTreeMap::new();
        for access in accesses {
            let Ok(path) = VPath::parse(&access.path) else { continue };
            // What cannot be resolved is refused by the file rules.
            if let Ok(real) = files.resolve(&path).await {
                resolved.insert(access.path.clone(), real);
            }
        }
        let standing = Prompts::new(&self.parts.workspace.definition.tree, conversation.owner);
        let path = standing.touched(accesses, |path| resolved.get(path).cloned())?.to_owned();
        Some(Tainted { seq, path })
    }

    fn ready(&self, call: ToolCall, tool: Arc<dyn Tool>, args: Value) -> Ready {
        let outside = self.is_from_outside(&*tool, &args);
        Ready { call, tool, args, outside }
    }

    /// Whether a result holds words that nobody here vouches for: those of other machines and programs, and what is
    /// on record of other sessions, which may hold the same.
    pub(crate) fn is_from_outside(&self, tool: &dyn Tool, args: &Value) -> bool {
        let of_sessions = |access: &Access| {
            let path = VPath::parse(&access.path);
            path.is_ok_and(|path| self.records().iter().any(|records| records.contains(&path)))
        };
        match tool.spec().risk.effect {
            Effect::Network | Effect::Executes => true,
            Effect::Reads | Effect::Writes => tool.accesses(args).iter().any(of_sessions),
        }
    }
}

/// The tool that a call means, whether lists leave it or not, and its arguments: what they leave out is refused by the
/// gate, by name.
pub(crate) fn prepare(tools: &Registry, name: &str, args: Value) -> Result<(Arc<dyn Tool>, Value), String> {
    match tools.left_out(name) {
        Some(tool) => Ok((tool.clone(), args)),
        None => tools.prepare(name, args),
    }
}

/// Where the paths of a call really lie. One that cannot be resolved is refused by the file rules.
pub(crate) async fn lie(files: &dyn Vfs, accesses: &[Access]) -> Vec<VPath> {
    let mut all = Vec::with_capacity(accesses.len());
    for path in accesses.iter().filter_map(|access| VPath::parse(&access.path).ok()) {
        all.extend(files.resolve(&path).await.ok());
    }
    all
}

/// Whether something in the attached project would be changed.
fn changes_project(access: &Access) -> bool {
    let inside = || VPath::parse(&access.path).is_ok_and(|path| path.parts().next() == Some(PROJECT));
    access.kind == AccessKind::Write && inside()
}

fn tool_cx(vfs: Arc<dyn Vfs>, (seen, active): (Arc<Seen>, Arc<ActiveSkills>), origin: Origin, halt: &Halt) -> ToolCx {
    ToolCx {
        vfs,
        seen,
        active,
        cancel: halt.cancel.child_token(),
        origin,
        spills: Spills::default(),
        standing: Standing::default(),
    }
}

/// Runs one call to its result, whatever happens: time limit, cancellation and panic included.
async fn execute(
    run: RunId,
    ready: Ready,
    cx: ToolCx,
    halt: Halt,
    limit: Duration,
) -> (String, CallResult, Option<String>) {
    let Ready { call, tool, args, outside } = ready;
    let name = tool.spec().name.clone();
    let started = Instant::now();
    let mut work = std::panic::AssertUnwindSafe(tool.call(&cx, args)).catch_unwind();
    let early = tokio::select! {
        biased;
        done = &mut work => Ok(done),
        _ = halt.wait() => Err((ResultStatus::Cancelled, "cancelled: may have run in part".to_owned())),
        () = tokio::time::sleep(limit) => {
            let text = format!("timed out after {} s (policy.tool_timeout_seconds): may have run in part", limit.as_secs());
            Err((ResultStatus::Error, text))
        }
    };
    let failed = early.as_ref().err().map_or(ResultStatus::Error, |(status, _)| *status);
    let done = match early {
        Ok(done) => Ok(done),
        Err(stopped) => {
            cx.cancel.cancel();
            // A tool that sees the cancellation in time still gives its own, truer result.
            tokio::time::timeout(CANCEL_GRACE, work).await.map_err(|_| stopped)
        }
    };
    let (status, output, stop) = match done {
        Ok(Ok(Ok(output))) if output.failed => (ResultStatus::Error, output, None),
        Ok(Ok(Ok(output))) => (ResultStatus::Ok, output, None),
        Ok(Ok(Err(ToolError::Tell(text)))) => (failed, Output::text(text), None),
        Ok(Ok(Err(ToolError::Stop(text)))) => (ResultStatus::Error, Output::text(text.clone()), Some(text)),
        Ok(Err(_panic)) => {
            (ResultStatus::Error, Output::text("the tool failed unexpectedly; its effect is unknown"), None)
        }
        Err((status, text)) => (status, Output::text(text), None),
    };
    let result = CallResult {
        run,
        id: call.id,
        status,
        content: output.content,
        seen: output.seen,
        activates: output.activates,
        untrusted: outside || output.untrusted,
        change: output.change,
        tasks: output.tasks,
        ms: started.elapsed().as_millis() as u64,
    };
    (name, result, stop)
}

fn intent(run: &RunId, ready: &Ready) -> CallIntent {
    let spec = ready.tool.spec();
    CallIntent {
        run: run.clone(),
        id: ready.call.id.clone(),
        tool: spec.name.clone(),
        args_hash: args_hash(&ready.call.args),
        changes: changes(spec.risk),
        repeatable: spec.risk.repeatable,
    }
}

fn changes(risk: Risk) -> bool {
    risk.effect > Effect::Reads
}

/// Whether it is all the same if the process dies during a call: then its intent need not be on record
/// before it begins, and goes there with the result, in one write.
fn leaves_no_trace(risk: Risk) -> bool {
    !changes(risk) && risk.repeatable
}

fn refusal(run: &RunId, id: &str, status: ResultStatus, text: String) -> CallResult {
    CallResult::new(run.clone(), id, status, vec![Block::text(text)])
}

fn preview(content: &[Block]) -> String {
    let text = content.iter().find_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    text.unwrap_or_default().chars().take(PREVIEW_CHARS).collect()
}
