//! The tools of plan mode: only reading and writing a plan, until a person agrees to it.
//!
//! These tools only begin and end plan mode. The gate and the files prevent all other changes.
//!
//! Effects: workspace files (writes).

use crate::typed::tool_family;
use crate::{
    CallPlan, Output, PlanView, SessionView, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool,
};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{
    ArgumentAliases, Exposure, PathAccess, PlanStage, Risk, SessionChange, ToolEffect, ToolKind,
};
use stead_vfs::{Expect, ReadRange, VPath, Vfs, VfsError};

/// `plan_enter`: begins plan mode.
pub const PLAN_ENTER: ToolIdentity =
    ToolIdentity::new("plan_enter", ToolKind::PlanEnter).exposed(Exposure::Usually);
/// `plan_write`: writes the plan.
pub const PLAN_WRITE: ToolIdentity =
    ToolIdentity::new("plan_write", ToolKind::PlanWrite).exposed(Exposure::Usually);
/// `plan_exit`: offers the plan to a person.
pub const PLAN_EXIT: ToolIdentity =
    ToolIdentity::new("plan_exit", ToolKind::PlanExit).exposed(Exposure::Usually);

/// The longest plan. It stays in the context as long as the work goes on.
const MAX_PLAN_BYTES: usize = 32 * 1024;
/// Entering and leaving plan mode changes only the conversation, one call after the other.
const PLAN_MODE_RISK: Risk = Risk {
    effect: ToolEffect::Reads,
    parallel_safe: false,
    repeatable: true,
};

tool_family! {
    /// The tools of plan mode, for a plan in `file`.
    pub fn plan_tools(file: &VPath) {
        PlanEnter => PlanEnter { file: file.clone() },
        PlanWrite => PlanWrite { file: file.clone() },
        PlanExit => PlanExit { file: file.clone() },
    }
}

struct PlanEnter {
    file: VPath,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanEnterArgs {}

impl TypedTool for PlanEnter {
    type Args = PlanEnterArgs;
    const DEF: ToolDef = ToolDef::new(
        PLAN_ENTER,
        PLAN_MODE_RISK,
        "Begins plan mode: from here on only reading is allowed, until a person agrees to \
        a plan. For work that is large, risky or unclear.",
    )
    .bounded();

    async fn call(&self, cx: &ToolCx, _: PlanEnterArgs) -> Result<Output, ToolError> {
        if let Some(file) = draft_file(&cx.session) {
            return Err(ToolError::RespondToModel(format!(
                "plan mode is on already: write the plan to {file} with plan_write, then call plan_exit"
            )));
        }
        let file = &self.file;
        let before = match read_plan(&*cx.vfs, file).await {
            Ok(_) => format!(" {file} holds an earlier plan; plan_write replaces it."),
            Err(_) => String::new(),
        };
        let text = format!(
            "Plan mode is on: nothing but reading is allowed until a person agrees to a plan. Look at what the task \
             needs, write the plan with plan_write, then call plan_exit.{before}"
        );
        let stage = PlanStage::Making {
            file: file.to_string(),
        };
        Ok(Output::text(text).with_change(SessionChange::Plan { plan: Some(stage) }))
    }
}

struct PlanWrite {
    file: VPath,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanWriteArgs {
    /// The whole plan, in Markdown.
    content: String,
}

impl TypedTool for PlanWrite {
    type Args = PlanWriteArgs;
    const DEF: ToolDef = ToolDef::new(
        PLAN_WRITE,
        Risk {
            effect: ToolEffect::Writes,
            parallel_safe: false,
            repeatable: true,
        },
        "Writes the plan, in plan mode: what will be done, in which order, what will be \
        changed, and how it will be checked. Replaces the whole text.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[
        ("plan", "content"),
        ("text", "content"),
    ]));

    fn plan(&self, _: &PlanWriteArgs) -> CallPlan {
        CallPlan::uses([PathAccess::write(self.file.as_str())])
    }

    async fn call(&self, cx: &ToolCx, args: PlanWriteArgs) -> Result<Output, ToolError> {
        let file = &self.file;
        match draft_file(&cx.session) {
            None => {
                return Err(ToolError::RespondToModel(
                    "plan mode is not on; plan_enter begins it".to_owned(),
                ));
            }
            Some(other) if other != file.as_str() => {
                return Err(ToolError::RespondToModel(format!(
                    "plan mode began with {other}, and plans go to {file} now; ask the person to leave plan mode"
                )));
            }
            Some(_) => {}
        }
        let size = args.content.len();
        if args.content.trim().is_empty() {
            return Err(ToolError::RespondToModel(
                "the plan says nothing: `content` is empty".to_owned(),
            ));
        }
        if size > MAX_PLAN_BYTES {
            return Err(ToolError::RespondToModel(format!(
                "the plan has {size} bytes; the limit is {MAX_PLAN_BYTES}. Say it in fewer words"
            )));
        }
        let lines = args.content.lines().count();
        let version = cx
            .vfs
            .write(file, args.content.into(), Expect::Any)
            .await
            .map_err(to_tool_error)?;
        let text =
            format!("Wrote the plan to {file} ({lines} lines). When it is ready, call plan_exit.");
        Ok(Output::text(text).with_file_version(file, &version))
    }
}

struct PlanExit {
    file: VPath,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanExitArgs {
    /// A line or two for the person.
    #[serde(default)]
    #[expect(dead_code, reason = "the person reads it in the question")]
    summary: Option<String>,
}

impl TypedTool for PlanExit {
    type Args = PlanExitArgs;
    const DEF: ToolDef = ToolDef::new(
        PLAN_EXIT,
        PLAN_MODE_RISK,
        "Shows the plan to the person and, if they agree, ends plan mode, so that it can \
        be carried out. If they do not, plan mode goes on.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[("rationale", "summary")]));

    fn plan(&self, _: &PlanExitArgs) -> CallPlan {
        let file = self.file.clone();
        let shown = self.file.clone();
        CallPlan::uses([PathAccess::read(self.file.as_str())])
            .with_approval(format!(
                "{}: a person must agree to the plan in {}",
                PLAN_EXIT.name, self.file
            ))
            .with_refusal(|view| approval_problem(view).boxed())
            .with_subject(move |view| plan_text(view, file.clone()).boxed())
            .with_preview(move |view| plan_text(view, shown.clone()).boxed())
    }

    async fn call(&self, cx: &ToolCx, _: PlanExitArgs) -> Result<Output, ToolError> {
        let (file, text) = approvable_plan(&cx.session, &*cx.vfs)
            .await
            .map_err(ToolError::RespondToModel)?;
        let shown = text.replace("</plan", "&lt;/plan");
        let told = format!(
            "The person agreed to the plan, and plan mode is off. Carry it out.\n<plan file=\"{file}\">\n{shown}\n</plan>"
        );
        Ok(Output::text(told).with_change(SessionChange::Plan {
            plan: Some(PlanStage::Agreed { file, text }),
        }))
    }
}

/// Returns the file and the text of the plan that a person can agree to, or why there is none.
async fn approvable_plan(
    standing: &SessionView,
    files: &dyn Vfs,
) -> Result<(String, String), String> {
    let Some(file) = draft_file(standing) else {
        return Err(
            "plan mode is not on, so there is nothing to leave; plan_enter begins it".to_owned(),
        );
    };
    let path = VPath::parse(file).map_err(|error| error.to_string())?;
    Ok((file.to_owned(), read_plan(files, &path).await?))
}

/// Reads the plan in `file`.
async fn read_plan(files: &dyn Vfs, file: &VPath) -> Result<String, String> {
    let range = ReadRange {
        offset: 0,
        len: MAX_PLAN_BYTES as u64 + 1,
    };
    let bytes = match files.read(file, range).await {
        Ok((bytes, _)) => bytes,
        Err(VfsError::NotFound(_)) => {
            return Err("there is no plan yet; write it with plan_write first".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    if bytes.len() > MAX_PLAN_BYTES {
        return Err(format!(
            "{file} is longer than a plan may be ({MAX_PLAN_BYTES} bytes); write it anew"
        ));
    }
    match String::from_utf8(bytes.to_vec()) {
        Ok(text) if text.trim().is_empty() => Err(format!(
            "{file} is empty; write the plan with plan_write first"
        )),
        Ok(text) => Ok(text.trim_end().to_owned()),
        Err(_) => Err(format!(
            "{file} is not a text; write the plan with plan_write"
        )),
    }
}

/// Returns the file of the plan that is being made.
fn draft_file(standing: &SessionView) -> Option<&str> {
    standing.plan.as_ref()?.draft_file()
}

/// Returns why there is no plan that a person could agree to, if so.
async fn approval_problem(view: PlanView<'_>) -> Option<String> {
    approvable_plan(view.session, view.files).await.err()
}

/// Returns the plan that a person is shown and agrees to.
async fn plan_text(view: PlanView<'_>, file: VPath) -> Option<String> {
    read_plan(view.files, &file).await.ok()
}

fn to_tool_error(error: VfsError) -> ToolError {
    match error {
        VfsError::Fenced(_) | VfsError::Unavailable { .. } => ToolError::Fatal(error.to_string()),
        other => ToolError::RespondToModel(other.to_string()),
    }
}
