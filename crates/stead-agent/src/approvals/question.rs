//! How a question is put: what the person sees, how it may be answered, by whom and until when.

use crate::CallFacts;
use crate::admission::{CallGate, resolved_paths};
use serde_json::Value;
use std::time::Duration;
use stead_core::{
    AccessKind, AskTerms, DecisionKind, PathAccess, PathScope, ToolCall, Verdict, VerdictKind,
};
use stead_gate::GrantScope;
use stead_tools::{Executor, Registry, Tool};
use stead_vfs::Vfs;

/// What a preview may come to.
const MAX_PREVIEW_BYTES: usize = 17 * 1024;
/// How long it may take: a question without one is better than none.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(2);
/// Why a call waits that the gate allows and someone else carries out.
const CLIENT_EXECUTES: &str = "carried out by whoever runs the agent, who answers with its result";

impl CallGate<'_> {
    /// How a question about a call may be answered, and what it shows.
    pub(crate) async fn ask_terms(
        &self,
        files: &dyn Vfs,
        tool: &dyn Tool,
        call: &CallFacts,
    ) -> AskTerms {
        let approval = self.gate.approval(call);
        let hours = |hours: u32| {
            jiff::Timestamp::now()
                .checked_add(jiff::Span::new().hours(hours))
                .ok()
        };
        let decisions = match tool.executor() {
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
            preview: self.preview(files, tool, &call.args).await,
        }
    }

    /// What a call would do, if all that it is about may be read.
    async fn preview(&self, files: &dyn Vfs, tool: &dyn Tool, args: &Value) -> Option<String> {
        let reads: Vec<PathAccess> = tool.accesses(args).into_iter().map(read_access).collect();
        let verdict = stead_vfs::judge(&self.parts.workspace.rules, files, &reads).await;
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
        let mut text = tokio::time::timeout(PREVIEW_TIMEOUT, tool.preview(files, args))
            .await
            .ok()??;
        if text.len() > MAX_PREVIEW_BYTES {
            text.truncate(text.floor_char_boundary(MAX_PREVIEW_BYTES));
            text.push_str("\n(… and more)\n");
        }
        Some(text)
    }

    /// Whether what someone answers instead of a result brings in words that nobody here vouches
    /// for.
    pub(crate) fn is_response_untrusted(&self, tools: &Registry, call: &ToolCall) -> bool {
        let tool = tools
            .find(&call.name)
            .filter(|tool| tool.executor() == Executor::Client);
        tool.is_some_and(|tool| self.is_result_untrusted(&**tool, &call.args))
    }
}

/// The verdict on a call as it is put to a person: what the client carries out is asked about even
/// if it is allowed.
pub(crate) fn ask_if_client_executes(tool: &dyn Tool, verdict: Verdict) -> Verdict {
    match (tool.executor(), verdict.kind) {
        (Executor::Client, VerdictKind::Allow) => Verdict::ask(CLIENT_EXECUTES),
        (Executor::Client, VerdictKind::Ask | VerdictKind::Deny) | (Executor::Harness, _) => {
            verdict
        }
    }
}

/// What "always" would allow from now on; nothing of what someone else carries out.
pub(super) async fn offer_grant(
    tool: &dyn Tool,
    files: &dyn Vfs,
    call: CallFacts,
) -> Option<GrantScope> {
    match tool.executor() {
        Executor::Harness => {
            let lies = resolved_paths(files, &tool.accesses(&call.args)).await;
            GrantScope::offer(&CallFacts {
                resolved_paths: lies,
                ..call
            })
        }
        Executor::Client => None,
    }
}

/// Reading what a call touches.
fn read_access(access: PathAccess) -> PathAccess {
    let reach = match access.scope {
        PathScope::Tree => PathScope::Tree,
        PathScope::Content | PathScope::Arrival { .. } => PathScope::Content,
    };
    PathAccess {
        path: access.path,
        kind: AccessKind::Read,
        scope: reach,
    }
}
