//! What becomes of a call: what the gate says of it, and all that the gate must know.

use crate::approvals::asked;
use crate::gate::{Command, Ruled, Terms, is_allowed, judge};
use crate::standing::Standing as Prompts;
use crate::{Agent, Judged, Session, Tainted};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{
    Access, AccessKind, Ask, CallState, Effect, Owner, Pending, ResultStatus, RunId, ToolCall,
    Verdict, VerdictKind, args_hash,
};
use stead_tools::{Hands, Registry, Tool};
use stead_vfs::{Guarded, VPath, Vfs, VfsError};
use stead_workspace::PROJECT;

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
pub(crate) struct Ready {
    pub(crate) call: ToolCall,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) args: Value,
    /// Whether its result brings in words from outside.
    pub(crate) outside: bool,
}

/// A call that waits for a person.
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) judged: Judged,
}

/// What the gate and the registry made of a call.
pub(crate) enum Admission {
    Run(Ready),
    Ask(Box<Asked>),
    Refuse(ResultStatus, String),
}

impl Agent {
    /// The gate's verdict on a call of what is not here and would never be callable.
    pub(crate) fn never(&self, tools: &Registry, name: &str, terms: &Terms) -> Option<Verdict> {
        let (tool, why) = tools.excluded(name)?;
        Some(judge(&self.gate, terms, &Judged::excluded(tool, why)))
    }

    /// Tools that its lists deny, as these name them.
    pub(crate) fn denied(&self) -> Vec<String> {
        self.parts
            .workspace
            .definition
            .tools
            .iter()
            .flat_map(|lists| lists.deny.iter().cloned())
            .collect()
    }

    /// Files as tools see them: the rules hold below every one of them.
    pub(crate) fn guard(&self, files: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
        Arc::new(Guarded::new(files, self.parts.workspace.rules.clone()))
    }

    pub(crate) async fn admit(
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
                return match self.never(tools, &call.name, &conversation.terms) {
                    Some(verdict) => {
                        Admission::Refuse(ResultStatus::Denied, format!("denied: {}", verdict.rule))
                    }
                    None => Admission::Refuse(ResultStatus::Error, message),
                };
            }
        };
        let judged = match self
            .judged((tools, files), &*tool, &args, conversation)
            .await
        {
            Ok(judged) => judged,
            Err(error) => {
                return Admission::Refuse(ResultStatus::Denied, format!("denied: {error}"));
            }
        };
        let verdict = asked(&*tool, judge(&self.gate, &conversation.terms, &judged));
        let hash = match tool.subject(files).await {
            Some(subject) => args_hash(&Value::from(vec![call.args.clone(), Value::from(subject)])),
            None => args_hash(&call.args),
        };
        let approved = tool.hands() == Hands::Ours
            && state
                == CallState::Approved {
                    args_hash: hash.clone(),
                };
        match verdict.kind {
            _ if is_allowed(&verdict) => Admission::Run(self.ready(call, tool, args)),
            VerdictKind::Ask if approved => Admission::Run(self.ready(call, tool, args)),
            VerdictKind::Ask => {
                let standing = conversation
                    .session
                    .map(Session::standing)
                    .unwrap_or_default();
                if let Some(why) = tool.refuses(&standing, files).await {
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
        let workspace = &self.parts.workspace;
        let spec = tool.spec();
        let absent = tools.find(&spec.name).is_none();
        let excluded = tools.excluded(&spec.name).map(|(_, why)| why.to_owned());
        // Arguments of a tool that is not there were not checked.
        let mut accesses = if absent {
            Vec::new()
        } else {
            tool.accesses(args)
        };
        let mut command = None;
        if let Some((judged, looks)) = tool.command(args).map(|text| self.command(text, args)) {
            let below = looks.ask(&workspace.rules, files).await?;
            let ruled = below.map_or(judged.ruled, Ruled::By);
            command = Some(Command { ruled, ..judged });
            accesses.extend(looks.named);
        }
        Ok(Judged {
            tool: spec.name.clone(),
            effect: spec.risk.effect,
            args: args.clone(),
            unlisted: absent && excluded.is_none(),
            excluded,
            tainted: self
                .tainted(files, &spec.name, &accesses, conversation)
                .await,
            project: self
                .parts
                .place
                .project()
                .filter(|_| accesses.iter().any(changes_project)),
            lies: match conversation.terms.granted.is_empty() && self.gate.approvals.is_empty() {
                // Only rules for folders ask where paths lie.
                true => Vec::new(),
                false => lie(files, &accesses).await,
            },
            command,
            flagged: tool.always_asks(args),
            files: stead_vfs::judge(&workspace.rules, files, &accesses).await?,
        })
    }

    /// What the call would change of what later prompts are made from, in a session with words from
    /// outside.
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
            let Ok(path) = VPath::parse(&access.path) else {
                continue;
            };
            // What cannot be resolved is refused by the file rules.
            if let Ok(real) = files.resolve(&path).await {
                resolved.insert(access.path.clone(), real);
            }
        }
        let standing = Prompts::new(&self.parts.workspace.definition.tree, conversation.owner);
        let path = standing
            .touched(accesses, |path| resolved.get(path).cloned())?
            .to_owned();
        Some(Tainted { seq, path })
    }

    fn ready(&self, call: ToolCall, tool: Arc<dyn Tool>, args: Value) -> Ready {
        let outside = self.is_from_outside(&*tool, &args);
        Ready {
            call,
            tool,
            args,
            outside,
        }
    }

    /// Whether a result holds words that nobody here vouches for: those of other machines and
    /// programs, and what is on record of other sessions, which may hold the same.
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

/// The tool that a call means, whether lists leave it or not, and its arguments: what they leave
/// out is refused by the gate, by name.
pub(crate) fn prepare(
    tools: &Registry,
    name: &str,
    args: Value,
) -> Result<(Arc<dyn Tool>, Value), String> {
    match tools.left_out(name) {
        Some(tool) => Ok((tool.clone(), args)),
        None => tools.prepare(name, args),
    }
}

/// Where the paths of a call really lie. One that cannot be resolved is refused by the file rules.
pub(crate) async fn lie(files: &dyn Vfs, accesses: &[Access]) -> Vec<VPath> {
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
fn changes_project(access: &Access) -> bool {
    let inside =
        || VPath::parse(&access.path).is_ok_and(|path| path.parts().next() == Some(PROJECT));
    access.kind == AccessKind::Write && inside()
}
