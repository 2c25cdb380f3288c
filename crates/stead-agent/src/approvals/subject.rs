//! What a person's yes is bound to: the arguments of the call, and the files as the person was shown
//! them.
//!
//! Effects: workspace files (reads), the local disk (reads).

use crate::admission::{CallGate, GateContext};
use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::{AccessKind, CallState, PathScope, ToolCall, ToolKind, args_hash};
use stead_tools::{CallPlan, FileVersions, PlanView, PreparedCall};
use stead_vfs::{VPath, Vfs};

/// The most files of one call whose versions are compared.
const MAX_FILES: usize = 1000;

/// What an answer to a question about a call is bound to.
pub(crate) struct ApprovalSubject {
    /// The hash that an answer must repeat.
    pub(crate) hash: String,
    /// The versions of the files that the call touches, or that decide what it runs.
    pub(crate) files: BTreeMap<String, String>,
    /// Whether the tool of the call may be run again, whatever a journal says.
    repeatable: bool,
}

impl ApprovalSubject {
    /// Whether a call in this state was approved as it is now. A file that changed since the
    /// question makes the answer void, unless this session changed it: the person knew of the calls
    /// before this one.
    pub(crate) fn is_approved(&self, state: &CallState, own: &FileVersions) -> bool {
        match state {
            CallState::Approved {
                args_hash, files, ..
            } => {
                *args_hash == self.hash
                    && files.iter().all(|(path, asked)| {
                        let now = self.files.get(path);
                        let own = VPath::parse(path).ok().and_then(|path| own.get(&path));
                        now == Some(asked) || (now.is_some() && now == own.as_ref())
                    })
            }
            // It was admitted before, and is continued.
            CallState::Begun { repeatable } => *repeatable && self.repeatable,
            CallState::New
            | CallState::Asked { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Done { .. } => false,
        }
    }
}

impl CallGate<'_> {
    /// Returns what an answer to a question about this call is bound to.
    pub(crate) async fn approval_subject(
        &self,
        call: &ToolCall,
        prepared: &PreparedCall,
        view: PlanView<'_>,
        context: &GateContext,
    ) -> ApprovalSubject {
        let plan = prepared.plan();
        let hash = match plan.subject(view).await {
            Some(subject) => args_hash(&Value::from(vec![call.args.clone(), Value::from(subject)])),
            None => args_hash(&call.args),
        };
        // The list of tasks is read again by each of its tools.
        let paths = if prepared.spec().kind == ToolKind::Task {
            Vec::new()
        } else {
            self.deciding_files(view.files, plan, context).await
        };
        ApprovalSubject {
            hash,
            files: versions(view.files, &paths).await,
            repeatable: prepared.spec().risk.repeatable,
        }
    }

    /// Returns the files whose content decides what a call does: those that it changes, and for a
    /// command its scripts and files such as a Makefile.
    async fn deciding_files(
        &self,
        files: &dyn Vfs,
        plan: &CallPlan,
        context: &GateContext,
    ) -> Vec<VPath> {
        let mut paths: Vec<VPath> = match plan.command() {
            Some(line) => self.programs_of(files, line, context).await,
            None => {
                let accesses = plan.accesses().iter();
                let changed = accesses.filter(|access| match access.scope {
                    PathScope::Content | PathScope::Tree => access.kind == AccessKind::Write,
                    PathScope::Arrival { .. } => false,
                });
                let paths = changed.map(|access| VPath::parse(&access.path));
                paths.filter_map(Result::ok).collect()
            }
        };
        paths.sort();
        paths.dedup();
        paths.truncate(MAX_FILES);
        paths
    }
}

/// Returns the versions of files by path; empty for one that is absent.
async fn versions(files: &dyn Vfs, paths: &[VPath]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for path in paths {
        let stat = files.stat(path).await;
        let version = stat.map_or_else(|_| String::new(), |stat| stat.version.to_string());
        versions.insert(path.as_str().to_owned(), version);
    }
    versions
}
