//! The plan feature: the tools of plan mode, and when to use them. The gate and the files enforce
//! plan mode.
//!
//! Effects: none.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_core::{AccessKind, VerdictKind};
use stead_tools::builtin::{PLAN_ENTER, PLAN_EXIT, PLAN_WRITE};
use stead_tools::{ToolIdentity, plan_tools};
use stead_workspace::{Section, WorkspaceError, section_order};

/// Returns when and how to use plan mode.
fn help(cx: &TurnCx<'_>) -> String {
    format!(
        "## Plan mode\nIf work is large, risky or unclear, or the person asks for a plan, plan before you change \
         anything: {}, then {}, then {}.",
        cx.call_of(&PLAN_ENTER),
        cx.call_of(&PLAN_WRITE),
        cx.call_of(&PLAN_EXIT)
    )
}

/// The section and tools of plan mode.
#[derive(Debug)]
pub(super) struct PlanFeature;

impl Feature for PlanFeature {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[PLAN_ENTER, PLAN_WRITE, PLAN_EXIT]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let file = cx.definition().config.plan.file();
            // Plan mode needs a plan file that can be written.
            if cx.workspace.rules.decide(AccessKind::Write, &file).kind == VerdictKind::Deny {
                return Ok(Contribution::default());
            }
            let usable = self.offers().iter().all(|tool| cx.allows_tool(tool));
            let section = usable.then(|| {
                Section::new("plan mode", self.name(), section_order::PLAN_MODE, help(cx))
            });
            Ok(Contribution {
                sections: section.into_iter().collect(),
                tools: plan_tools(&file),
            })
        })
    }
}
