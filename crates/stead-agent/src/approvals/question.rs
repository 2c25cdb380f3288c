//! What a person is asked about a call: what they see, how they may answer, and until when.
//!
//! Effects: the clock, workspace files (reads).

use crate::CallFacts;
use crate::admission::{CallGate, resolved_paths};
use crate::taint::tool_origins;
use std::time::Duration;
use stead_core::{
    AccessKind, AskTerms, DecisionKind, PathAccess, PathScope, RuleId, RuleSource, TaintOrigin,
    ToolCall, ToolSpec, Verdict, VerdictKind,
};
use stead_gate::GrantScope;
use stead_tools::{CallPlan, Executor, PlanView, PreparedCall, Registry};
use stead_vfs::Vfs;

/// The longest preview.
const MAX_PREVIEW_BYTES: usize = 17 * 1024;
/// How long a preview may take to compute. A question without one is better than none.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(2);
/// Why a call that the gate allows still waits: the client executes it.
const CLIENT_EXECUTES: &str = "carried out by whoever runs the agent, who answers with its result";

impl CallGate<'_> {
    /// Returns how a question about a call may be answered, and what it shows.
    pub(crate) async fn ask_terms(
        &self,
        view: PlanView<'_>,
        prepared: &PreparedCall,
        call: &CallFacts,
    ) -> AskTerms {
        let approval = self.gate.approval(call);
        let hours = |hours: u32| {
            jiff::Timestamp::now()
                .checked_add(jiff::Span::new().hours(hours))
                .ok()
        };
        let decisions = match prepared.spec().executor {
            Executor::Harness => approval
                .map(|approval| approval.decisions.clone())
                .unwrap_or_default(),
            Executor::Client => vec![DecisionKind::Respond, DecisionKind::Reject],
        };
        AskTerms {
            decisions,
            answerers: approval
                .map(|approval| approval.by.clone())
                .unwrap_or_default(),
            expires: approval
                .and_then(|approval| approval.expires_hours)
                .and_then(hours),
            preview: self.preview(view, prepared.plan()).await,
            ..AskTerms::default()
        }
    }

    /// Returns what a call would do, if all files that it touches may be read.
    async fn preview(&self, view: PlanView<'_>, plan: &CallPlan) -> Option<String> {
        let reads: Vec<PathAccess> = plan.accesses().iter().map(read_access).collect();
        let verdict =
            stead_vfs::judge_accesses(&self.parts.workspace.rules, view.files, &reads).await;
        match verdict {
            Ok(
                None
                | Some(Verdict {
                    kind: VerdictKind::Allow,
                    ..
                }),
            ) => {}
            // The journal keeps what is shown, and the agent may read the journal.
            Ok(Some(_)) | Err(_) => {
                return Some("(not shown: it is about files that may not be read)\n".to_owned());
            }
        }
        let mut text = tokio::time::timeout(PREVIEW_TIMEOUT, plan.preview(view))
            .await
            .ok()??;
        if text.len() > MAX_PREVIEW_BYTES {
            text.truncate(text.floor_char_boundary(MAX_PREVIEW_BYTES));
            text.push_str("\n(… and more)\n");
        }
        Some(text)
    }

    /// Returns the origins of untrusted content in the result that a client answers.
    pub(crate) fn response_taint(&self, tools: &Registry, call: &ToolCall) -> Vec<TaintOrigin> {
        let tool = tools
            .find(&call.name)
            .filter(|tool| tool.spec().executor == Executor::Client);
        let trust = &self.parts.workspace.config().trust;
        tool.map(|tool| tool_origins(tool.spec(), &CallPlan::default(), trust))
            .unwrap_or_default()
    }
}

/// Returns the verdict on a call as a person is asked about it: calls that the client executes are
/// asked about even if they are allowed.
pub(crate) fn ask_if_client_executes(spec: &ToolSpec, verdict: Verdict) -> Verdict {
    match (spec.executor, verdict.kind) {
        (Executor::Client, VerdictKind::Allow) => {
            Verdict::ask(RuleId::new(RuleSource::Tool, &spec.name), CLIENT_EXECUTES)
        }
        (Executor::Client, VerdictKind::Ask | VerdictKind::Deny) | (Executor::Harness, _) => {
            verdict
        }
    }
}

/// Returns what "always" would allow from now on: nothing for calls that the client executes.
pub(super) async fn offer_grant(
    prepared: &PreparedCall,
    files: &dyn Vfs,
    call: CallFacts,
) -> Option<GrantScope> {
    match prepared.spec().executor {
        Executor::Harness => {
            let resolved_paths = resolved_paths(files, prepared.plan().accesses()).await;
            GrantScope::offer(&CallFacts {
                resolved_paths,
                ..call
            })
        }
        Executor::Client => None,
    }
}

/// Returns the access that only reads the same path.
fn read_access(access: &PathAccess) -> PathAccess {
    let scope = match access.scope {
        PathScope::Tree => PathScope::Tree,
        PathScope::Content | PathScope::Arrival { .. } => PathScope::Content,
    };
    PathAccess {
        path: access.path.clone(),
        kind: AccessKind::Read,
        scope,
    }
}
