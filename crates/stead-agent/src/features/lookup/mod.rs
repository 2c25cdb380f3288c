//! The lookup feature: tools that search memory and sessions.
//!
//! Effects: none.

mod format;
mod memory;
mod recall;
mod sessions;

use super::{Contribution, Feature, TurnCx};
use crate::lookup::{Lookup, MemoryFiles};
use futures_util::future::BoxFuture;
use stead_tools::{ToolIdentity, builtin, typed_tool};
use stead_workspace::WorkspaceError;

/// The feature with the tools that search memory and sessions.
#[derive(Debug)]
pub(super) struct LookupFeature;

impl Feature for LookupFeature {
    fn name(&self) -> &'static str {
        "lookup"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[
            builtin::MEMORY_SEARCH,
            builtin::MEMORY_GET,
            builtin::SESSION_SEARCH,
            builtin::SESSION_LIST,
            builtin::SESSION_HISTORY,
            builtin::RECALL,
        ]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        let lookup = Lookup::new(cx.index.clone(), cx.workspace.embedder.clone());
        let sessions = cx.sessions.clone();
        let session = cx.session.clone();
        let mut tools = vec![
            typed_tool(sessions::SessionSearch {
                lookup: lookup.clone(),
                sessions: sessions.clone(),
            }),
            typed_tool(sessions::SessionList {
                sessions: sessions.clone(),
            }),
            typed_tool(sessions::SessionHistory {
                sessions: sessions.clone(),
            }),
            typed_tool(recall::Recall {
                lookup: lookup.clone(),
                sessions,
                session: session.clone(),
            }),
        ];
        // As in the prompt, files that would need approval are left out.
        if let Some(memory) = MemoryFiles::for_session(cx.workspace, &session, cx.files.clone()) {
            let memory = memory.with_user_folder(cx.user_folder.as_ref());
            tools.push(typed_tool(memory::MemoryGet {
                memory: memory.clone(),
            }));
            tools.push(typed_tool(memory::MemorySearch { lookup, memory }));
        }
        Box::pin(async move { Ok(tools.into()) })
    }
}
