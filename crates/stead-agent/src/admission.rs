//! What becomes of a call: what the gate says of it, and all that the gate must know.

use crate::approvals::ask_if_client_executes;
use crate::prompt_sources::PromptSources as Prompts;
use crate::untrusted_records::SessionRecords;
use crate::{Agent, AgentParts, CallFacts, GateRules, Session, TaintedWrite};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{
    AccessKind, Ask, CallState, Owner, PathAccess, PendingCall, ResultStatus, RunId, ToolCall,
    ToolEffect, Verdict, VerdictKind, args_hash,
};
use stead_gate::{CommandFacts, RuleMatch, SessionPermissions, is_allowed, judge};
use stead_tools::{Executor, Registry, Tool};
use stead_vfs::{Guarded, VPath, Vfs, VfsError};
use stead_workspace::PROJECT;

/// The conversation that a call is part of, as far as the gate must know it.
pub(crate) struct GateContext<'a> {
    pub(crate) owner: &'a Owner,
    /// What binds it beside the rules of its agent.
    pub(crate) permissions: SessionPermissions,
    /// The result that first brought in words from outside.
    pub(crate) tainted_since: Option<u64>,
    /// The session, if it is one.
    pub(crate) session: Option<&'a Session>,
}

/// A call that may run.
pub(crate) struct AdmittedCall {
    pub(crate) call: ToolCall,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) args: Value,
    /// Whether its result brings in words from outside.
    pub(crate) untrusted: bool,
}

/// A call that waits for a person.
pub(crate) struct AskedCall {
    pub(crate) ask: Ask,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) facts: CallFacts,
}

/// What the gate and the registry made of a call.
pub(crate) enum Admission {
    Run(AdmittedCall),
    Ask(Box<AskedCall>),
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

impl CallGate<'_> {
    /// The gate's verdict on a call of what is not here and would never be callable.
    pub(crate) fn excluded_verdict(
        &self,
        tools: &Registry,
        name: &str,
        terms: &SessionPermissions,
    ) -> Option<Verdict> {
        let (tool, why) = tools.exclusion(name)?;
        Some(judge(
            self.gate,
            terms,
            &CallFacts::of_excluded_tool(tool, why),
        ))
    }

    /// Tools that its lists deny, as these name them.
    pub(crate) fn denied_tools(&self) -> Vec<String> {
        self.parts
            .workspace
            .definition
            .tools
            .iter()
            .flat_map(|lists| lists.deny.iter().cloned())
            .collect()
    }

    /// Files as tools see them: the rules hold below every one of them.
    pub(crate) fn guarded_files(&self, files: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
        Arc::new(Guarded::new(files, self.parts.workspace.rules.clone()))
    }

    pub(crate) async fn admit(
        &self,
        tools: &Registry,
        files: &dyn Vfs,
        run: &RunId,
        pending: PendingCall,
        conversation: &GateContext<'_>,
    ) -> Admission {
        let PendingCall { call, state } = pending;
        match &state {
            CallState::Rejected { by, words } => {
                let why = words
                    .as_ref()
                    .map_or(String::new(), |words| format!(": {words}"));
                return Admission::Refuse(
                    ResultStatus::Denied,
                    format!("denied: {by} said no to this call{why}"),
                );
            }
            CallState::Responded { words, .. } => {
                return Admission::Refuse(ResultStatus::Ok, words.clone());
            }
            CallState::New
            | CallState::Asked { .. }
            | CallState::Approved { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => {}
        }
        if let Some(reason) = &call.invalid {
            return Admission::Refuse(
                ResultStatus::Error,
                format!("the arguments could not be read: {reason}"),
            );
        }
        let (tool, args) = match prepare(tools, &call.name, call.args.clone()) {
            Ok(prepared) => prepared,
            Err(message) => {
                return match self.excluded_verdict(tools, &call.name, &conversation.permissions) {
                    Some(verdict) => {
                        Admission::Refuse(ResultStatus::Denied, format!("denied: {}", verdict.rule))
                    }
                    None => Admission::Refuse(ResultStatus::Error, message),
                };
            }
        };
        let judged = match self
            .call_facts((tools, files), &*tool, &args, conversation)
            .await
        {
            Ok(judged) => judged,
            Err(error) => {
                return Admission::Refuse(ResultStatus::Denied, format!("denied: {error}"));
            }
        };
        let verdict =
            ask_if_client_executes(&*tool, judge(self.gate, &conversation.permissions, &judged));
        let hash = match tool.approval_subject(files).await {
            Some(subject) => args_hash(&Value::from(vec![call.args.clone(), Value::from(subject)])),
            None => args_hash(&call.args),
        };
        let approved = tool.executor() == Executor::Harness
            && state
                == CallState::Approved {
                    args_hash: hash.clone(),
                };
        match verdict.kind {
            _ if is_allowed(&verdict) => Admission::Run(self.admitted(call, tool, args)),
            VerdictKind::Ask if approved => Admission::Run(self.admitted(call, tool, args)),
            VerdictKind::Ask => {
                let standing = conversation
                    .session
                    .map(Session::session_view)
                    .unwrap_or_default();
                if let Some(why) = tool.refusal_reason(&standing, files).await {
                    return Admission::Refuse(ResultStatus::Error, why);
                }
                let terms = self.ask_terms(files, &*tool, &judged).await;
                let ask = Ask {
                    run: run.clone(),
                    id: call.id,
                    args_hash: hash,
                    rule: verdict.rule,
                    terms,
                };
                Admission::Ask(Box::new(AskedCall {
                    ask,
                    tool,
                    facts: judged,
                }))
            }
            VerdictKind::Deny | VerdictKind::Allow => {
                Admission::Refuse(ResultStatus::Denied, format!("denied: {}", verdict.rule))
            }
        }
    }

    /// A call with all that the gate must know about it.
    pub(crate) async fn call_facts(
        &self,
        (tools, files): (&Registry, &dyn Vfs),
        tool: &dyn Tool,
        args: &Value,
        conversation: &GateContext<'_>,
    ) -> Result<CallFacts, VfsError> {
        let workspace = &self.parts.workspace;
        let spec = tool.spec();
        let absent = tools.find(&spec.name).is_none();
        let excluded = tools.exclusion(&spec.name).map(|(_, why)| why.to_owned());
        // Arguments of a tool that is not there were not checked.
        let mut accesses = if absent {
            Vec::new()
        } else {
            tool.accesses(args)
        };
        let mut command = None;
        if let Some((judged, looks)) = tool
            .command(args)
            .map(|text| self.judge_command(text, args))
        {
            let below = looks.ask_about_folders(&workspace.rules, files).await?;
            let ruled = below.map_or(judged.rule_match, RuleMatch::Matched);
            command = Some(CommandFacts {
                rule_match: ruled,
                ..judged
            });
            accesses.extend(looks.named_paths);
        }
        Ok(CallFacts {
            tool: spec.name.clone(),
            effect: spec.risk.effect,
            args: args.clone(),
            unlisted: absent && excluded.is_none(),
            excluded,
            tainted_write: self
                .tainted_write(files, &spec.name, &accesses, conversation)
                .await,
            project: self
                .parts
                .place
                .project_access()
                .filter(|_| accesses.iter().any(changes_project)),
            resolved_paths: match conversation.permissions.grants.is_empty()
                && self.gate.approvals.is_empty()
            {
                // Only rules for folders ask where paths lie.
                true => Vec::new(),
                false => resolved_paths(files, &accesses).await,
            },
            command,
            always_asks: tool.always_asks(args),
            file_verdict: stead_vfs::judge(&workspace.rules, files, &accesses).await?,
        })
    }

    /// What the call would change of what later prompts are made from, in a session with words from
    /// outside.
    async fn tainted_write(
        &self,
        files: &dyn Vfs,
        tool: &str,
        accesses: &[PathAccess],
        conversation: &GateContext<'_>,
    ) -> Option<TaintedWrite> {
        let seq = conversation.tainted_since?;
        // It sees to it itself: what it is given then waits for approval.
        if tool == "memory_save" {
            return None;
        }
        let mut resolved = BTreeMap::new();
        for access in accesses {
            let Ok(path) = VPath::parse(&access.path) else {
                continue;
            };
            // What cannot be resolved is refused by the file rules.
            if let Ok(real) = files.resolve(&path).await {
                resolved.insert(access.path.clone(), real);
            }
        }
        let standing = Prompts::new(&self.parts.workspace.definition.paths, conversation.owner);
        let path = standing
            .first_changed(accesses, |path| resolved.get(path).cloned())?
            .to_owned();
        Some(TaintedWrite { seq, path })
    }

    fn admitted(&self, call: ToolCall, tool: Arc<dyn Tool>, args: Value) -> AdmittedCall {
        let outside = self.is_result_untrusted(&*tool, &args);
        AdmittedCall {
            call,
            tool,
            args,
            untrusted: outside,
        }
    }

    /// Whether a result holds words that nobody here vouches for: those of other machines and
    /// programs, and what is on record of other sessions, which may hold the same.
    pub(crate) fn is_result_untrusted(&self, tool: &dyn Tool, args: &Value) -> bool {
        let records = SessionRecords::new(&self.parts.workspace.definition.paths);
        let of_sessions = |access: &PathAccess| {
            VPath::parse(&access.path).is_ok_and(|path| records.contains(&path))
        };
        match tool.spec().risk.effect {
            ToolEffect::Network | ToolEffect::Executes => true,
            ToolEffect::Reads | ToolEffect::Writes => tool.accesses(args).iter().any(of_sessions),
        }
    }
}

/// The tool that a call means, whether lists leave it or not, and its arguments: what they leave
/// out is refused by the gate, by name.
pub(crate) fn prepare(
    tools: &Registry,
    name: &str,
    args: Value,
) -> Result<(Arc<dyn Tool>, Value), String> {
    match tools.filtered_out(name) {
        Some(tool) => Ok((tool.clone(), args)),
        None => tools.prepare(name, args),
    }
}

/// Where the paths of a call really lie. One that cannot be resolved is refused by the file rules.
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

/// Whether something in the attached project would be changed.
fn changes_project(access: &PathAccess) -> bool {
    let inside =
        || VPath::parse(&access.path).is_ok_and(|path| path.parts().next() == Some(PROJECT));
    access.kind == AccessKind::Write && inside()
}
