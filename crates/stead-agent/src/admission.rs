//! Admission of calls: what the gate must know about a call, and what follows from its verdict.
//!
//! Effects: the clock, workspace files (reads), the local disk (reads), the store (reads).

use crate::approvals::{CallName, ask_if_client_executes};
use crate::commands::{JudgedCommand, MachineView};
use crate::run::ToolCaller;
use crate::taint::{CallTaint, PromptSources, named_paths};
use crate::{Agent, AgentParts, CallFacts, GateRules, SessionTaint};
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{
    AccessKind, Ask, CallState, PathAccess, PathScope, PendingCall, ResultStatus, ToolCall,
    ToolKind, Verdict, VerdictKind,
};
use stead_gate::{SessionPermissions, judge};
use stead_place::PROJECT;
use stead_tools::{Executor, FileVersions, PreparedCall, Registry, SessionView};
use stead_vfs::{Guarded, VPath, Vfs, VfsError};

/// What the gate must know about the conversation that a call is part of.
pub(crate) struct GateContext {
    /// The permissions of the session, besides the rules of its agent.
    pub(crate) permissions: SessionPermissions,
    /// What the session has taken in, if it is tainted.
    pub(crate) taint: Option<SessionTaint>,
    /// The part of the session's state that tools see.
    pub(crate) view: SessionView,
    /// The workspace on this machine.
    pub(crate) machine: MachineView,
    /// The versions of files that the session has read or written.
    pub(crate) file_versions: Arc<FileVersions>,
}

/// A call that may run.
pub(crate) struct AdmittedCall {
    pub(crate) call: ToolCall,
    pub(crate) prepared: PreparedCall,
    /// What is known about its trust.
    pub(crate) taint: CallTaint,
}

/// The outcome of admission.
pub(crate) enum Admission {
    Run(Box<AdmittedCall>),
    /// The call waits for a person.
    Ask(Box<Ask>),
    /// A person or client gave this result in place of the call.
    Respond(String),
    /// The call does not run, for this reason.
    Refuse(ResultStatus, String),
}

/// Judges the calls of an agent: collects the facts for the gate and applies its verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallGate<'a> {
    pub(crate) parts: &'a AgentParts,
    pub(crate) gate: &'a GateRules,
}

impl<'a> CallGate<'a> {
    pub(crate) fn new(agent: &'a Agent) -> Self {
        Self {
            parts: &agent.parts,
            gate: &agent.gate,
        }
    }
}

impl ToolCaller<'_, '_> {
    /// Puts a call to the gate and decides what becomes of it: it runs, waits for a person, or is
    /// refused.
    pub(crate) async fn admit(&self, pending: PendingCall) -> Admission {
        let PendingCall { call, state, .. } = pending;
        if let Some(settled) = settled_by_answer(&state) {
            return settled;
        }
        if let Some(reason) = &call.invalid {
            return Admission::Refuse(
                ResultStatus::Error,
                format!("the arguments could not be read: {reason}"),
            );
        }
        let session = self.journal.session();
        let gate = CallGate::new(session.agent());
        let tools = self.conversation.callable_tools(session.state());
        let files = &*self.files.unguarded;
        let context = session.gate_context();
        let prepared = match tools.prepare_for_gate(&call.name, call.args.clone()) {
            Ok(prepared) => prepared,
            Err(error) => {
                return match gate.excluded_verdict(tools, &call.name, &context.permissions) {
                    Some(verdict) => Admission::Refuse(
                        ResultStatus::Denied,
                        format!("denied: {}", verdict.reason),
                    ),
                    None => Admission::Refuse(ResultStatus::Error, error.to_string()),
                };
            }
        };
        let facts = match gate.call_facts((tools, files), &prepared, &context).await {
            Ok(facts) => facts,
            Err(error) => {
                return Admission::Refuse(ResultStatus::Denied, format!("denied: {error}"));
            }
        };
        let verdict = ask_if_client_executes(
            prepared.spec(),
            judge(gate.gate, &context.permissions, &facts),
        );
        let view = prepared.view(files, &context.view);
        match verdict.kind {
            _ if verdict.is_allowed() => gate.admitted(files, call, prepared).await,
            VerdictKind::Ask => {
                let subject = gate.approval_subject(&call, &prepared, view, &context);
                let subject = Box::pin(subject).await;
                let name = CallName {
                    run: self.journal.run().as_str(),
                    id: &call.id,
                    tool: &call.name,
                };
                let is_own = session.seals().approval_counts(name, &state);
                let is_approved = is_own && subject.is_approved(&state, &context.file_versions);
                if prepared.spec().executor == Executor::Harness && is_approved {
                    return gate.admitted(files, call, prepared).await;
                }
                if let Some(why) = prepared.plan().refusal(view).await {
                    return Admission::Refuse(ResultStatus::Error, why);
                }
                let terms = gate.ask_terms(view, &prepared, &facts).await;
                let terms = terms.bound_to(subject.files);
                let ask = Ask {
                    run: self.journal.run().clone(),
                    id: call.id,
                    args_hash: subject.hash,
                    rule: verdict.reason,
                    rules: verdict.rules,
                    terms,
                    nested: None,
                };
                Admission::Ask(Box::new(ask))
            }
            VerdictKind::Deny | VerdictKind::Allow => {
                Admission::Refuse(ResultStatus::Denied, format!("denied: {}", verdict.reason))
            }
        }
    }
}

impl CallGate<'_> {
    /// Returns the gate's verdict on a call of a tool that is excluded, registered or not.
    pub(crate) fn excluded_verdict(
        &self,
        tools: &Registry,
        name: &str,
        permissions: &SessionPermissions,
    ) -> Option<Verdict> {
        let (tool, why) = tools.exclusion(name)?;
        Some(judge(
            self.gate,
            permissions,
            &CallFacts::of_excluded_tool(tool, why),
        ))
    }

    /// Returns the tools that the lists of the workspace deny, as they name them.
    pub(crate) fn denied_tools(&self) -> Vec<String> {
        self.parts
            .workspace
            .definition
            .tools
            .iter()
            .flat_map(|lists| lists.deny.iter().cloned())
            .collect()
    }

    /// Returns the files as tools see them, with the file rules applied.
    pub(crate) fn guarded_files(&self, files: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
        Arc::new(Guarded::new(files, self.parts.workspace.rules.clone()))
    }

    /// Returns all that the gate must know about a call.
    pub(crate) async fn call_facts(
        &self,
        (tools, files): (&Registry, &dyn Vfs),
        prepared: &PreparedCall,
        context: &GateContext,
    ) -> Result<CallFacts, VfsError> {
        let spec = prepared.spec();
        let plan = prepared.plan();
        let absent = tools.find(&spec.name).is_none();
        let excluded = tools.exclusion(&spec.name).map(|(_, why)| why.to_owned());
        let mut accesses = plan.accesses().to_vec();
        let mut command = None;
        if let Some(line) = plan.command() {
            // Boxed: most calls run no command.
            let judged = Box::pin(self.judge_command(files, line, context)).await?;
            let JudgedCommand { facts, reads } = judged;
            command = Some(facts);
            accesses.extend(reads);
        }
        let rules = &self.parts.workspace.rules;
        let named = plan.named_paths();
        Ok(CallFacts {
            tool: spec.name.clone(),
            kind: spec.kind,
            follows_rules_of: spec.follows_rules_of.clone(),
            effect: spec.risk.effect,
            args: prepared.args().clone(),
            unlisted: absent && excluded.is_none(),
            excluded,
            prompt_source: match &context.taint {
                Some(_) => self.changed_prompt_source(files, prepared, &accesses).await,
                None => None,
            },
            taint: context.taint.clone(),
            isolation: self.isolation(),
            changed_project: self
                .parts
                .place
                .project_access()
                .filter(|_| accesses.iter().any(changes_project)),
            named_paths: named.to_vec(),
            resolved_paths: match context.permissions.grants.is_empty()
                && self.gate.approvals.is_empty()
            {
                // Only rules and grants for folders need resolved paths.
                true => Vec::new(),
                false => resolved_paths(files, &accesses).await,
            },
            command,
            always_asks: plan.approval().map(str::to_owned),
            file_verdict: stead_vfs::judge_call(rules, files, &accesses, named).await?,
        })
    }

    /// Returns the prompt source that a call with these accesses would change, as it names it.
    async fn changed_prompt_source(
        &self,
        files: &dyn Vfs,
        prepared: &PreparedCall,
        accesses: &[PathAccess],
    ) -> Option<String> {
        // The tool quarantines what it saves in a tainted session.
        if prepared.spec().kind == ToolKind::MemorySave {
            return None;
        }
        let sources = PromptSources::new(&self.parts.workspace.definition.paths);
        if let Some(line) = prepared.plan().command() {
            let judgement = self.judge_line(line);
            if judgement.reads.is_some() {
                return None;
            }
            let is_in_source = VPath::parse(&line.cwd).is_ok_and(|cwd| sources.contains(&cwd));
            if is_in_source {
                return Some(line.cwd.clone());
            }
            let mut named = named_paths(&line.text, &line.cwd);
            // A link to a prompt source counts as that file.
            for path in named.iter_mut().filter_map(|named| named.path.as_mut()) {
                if let Ok(real) = files.resolve(path).await {
                    *path = real;
                }
            }
            return sources.first_named(&named).map(str::to_owned);
        }
        let mut resolved = BTreeMap::new();
        for access in accesses {
            let Ok(path) = VPath::parse(&access.path) else {
                continue;
            };
            // The file rules refuse a path that cannot be resolved.
            if let Ok(real) = files.resolve(&path).await {
                resolved.insert(access.path.clone(), real);
            }
        }
        let changed = sources.first_changed(accesses, |path| resolved.get(path).cloned());
        if let Some(path) = changed {
            return Some(path.to_owned());
        }
        brings_prompt_sources(&sources, files, accesses).await
    }

    async fn admitted(&self, files: &dyn Vfs, call: ToolCall, prepared: PreparedCall) -> Admission {
        let taint = CallTaint::before(self, files, &prepared).await;
        Admission::Run(Box::new(AdmittedCall {
            call,
            prepared,
            taint,
        }))
    }
}

/// Returns the destination of a move that makes a folder with prompt sources in it the folder of a
/// user.
async fn brings_prompt_sources(
    sources: &PromptSources,
    files: &dyn Vfs,
    accesses: &[PathAccess],
) -> Option<String> {
    for access in accesses {
        let PathScope::Arrival { from } = &access.scope else {
            continue;
        };
        let Ok(from) = VPath::parse(from) else {
            continue;
        };
        for source in sources.all() {
            let Ok(inside) = from.join(source.as_str()) else {
                continue;
            };
            if files.stat(&inside).await.is_ok() {
                return Some(access.path.clone());
            }
        }
    }
    None
}

/// Returns what a person's answer already settled, if it did.
fn settled_by_answer(state: &CallState) -> Option<Admission> {
    match state {
        CallState::Rejected { by, words } => {
            let why = words
                .as_ref()
                .map_or(String::new(), |words| format!(": {words}"));
            let text = format!("denied: {by} said no to this call{why}");
            Some(Admission::Refuse(ResultStatus::Denied, text))
        }
        CallState::Responded { words, .. } => Some(Admission::Respond(words.clone())),
        CallState::New
        | CallState::Asked { .. }
        | CallState::Approved { .. }
        | CallState::Begun { .. }
        | CallState::Done { .. } => None,
    }
}

/// Returns the resolved paths of a call. The file rules refuse one that cannot be resolved.
pub(crate) async fn resolved_paths(files: &dyn Vfs, accesses: &[PathAccess]) -> Vec<VPath> {
    let mut all = Vec::with_capacity(accesses.len());
    for path in accesses
        .iter()
        .filter_map(|access| VPath::parse(&access.path).ok())
    {
        all.extend(files.resolve(&path).await.ok());
    }
    all
}

/// Whether the access changes something in the attached project.
fn changes_project(access: &PathAccess) -> bool {
    let inside =
        || VPath::parse(&access.path).is_ok_and(|path| path.parts().next() == Some(PROJECT));
    access.kind == AccessKind::Write && inside()
}
