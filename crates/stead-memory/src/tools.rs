//! `memory_save` and `memory_forget`: the tools with which an agent changes its memory.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes).

use crate::credentials::holds_credentials;
use crate::error::MemoryError;
use crate::fact::{Fact, FactSource, normalised, stable_id};
use crate::fact_files::FactFiles;
use crate::forget::ForgetResult;
use crate::review::LocatedFact;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use stead_core::{ArgumentAliases, PathAccess, Redactor, Risk, SessionId};
use stead_tools::{
    CallOrigin, CallPlan, Output, Tool, ToolCx, ToolDef, ToolError, TypedTool, builtin, typed_tool,
};

/// The most tags of one fact.
const MAX_TAGS: usize = 8;

/// Returns the tools over the memory in `files`. The tree must not be guarded, because the
/// quarantine is out of reach of the agent's own files.
pub fn memory_tools(files: FactFiles, redactor: Redactor) -> Vec<Arc<dyn Tool>> {
    vec![
        typed_tool(MemorySaveTool {
            files: files.clone(),
            redactor,
        }),
        typed_tool(MemoryForgetTool { files }),
    ]
}

struct MemorySaveTool {
    files: FactFiles,
    redactor: Redactor,
}

struct MemoryForgetTool {
    files: FactFiles,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemorySaveArgs {
    /// A sentence that is clear by itself; never a secret.
    content: String,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryForgetArgs {
    /// The id of a fact, or words that only this fact holds.
    query: String,
}

fn to_tool_error(error: MemoryError) -> ToolError {
    ToolError::RespondToModel(error.to_string())
}

/// Returns who calls: a person if the call is outside any session.
fn caller(origin: &CallOrigin) -> &'static str {
    if origin.session == SessionId::sessionless() {
        "user"
    } else {
        "agent"
    }
}

impl TypedTool for MemorySaveTool {
    type Args = MemorySaveArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::MEMORY_SAVE,
        Risk::WRITES,
        "Remembers one fact beyond this session.",
    );

    fn plan(&self, _: &MemorySaveArgs) -> CallPlan {
        let day = self.files.day(self.files.date(Timestamp::now())).ok();
        CallPlan::uses(day.map(|path| PathAccess::write(path.to_string())))
    }

    async fn call(&self, cx: &ToolCx, args: MemorySaveArgs) -> Result<Output, ToolError> {
        if holds_credentials(&args.content) {
            let text = "not saved: this looks like a key or a password, which is never remembered; say where it is kept";
            return Err(ToolError::RespondToModel(text.to_owned()));
        }
        let origin = &cx.origin;
        let date = self.files.date(Timestamp::now());
        let source = FactSource::new(stable_id(&[
            origin.session.as_str(),
            &origin.call,
            &args.content,
        ]))
        .with("session", origin.session.as_str())
        .with("seq", origin.seq.to_string())
        .with("by", caller(origin))
        .with("on", date.to_string());
        let tags: Vec<&str> = args
            .tags
            .iter()
            .map(|tag| tag.trim())
            .filter(|tag| !tag.is_empty())
            .collect();
        let source = match tags.is_empty() {
            true => source,
            false => source.with("tags", tags[..tags.len().min(MAX_TAGS)].join(",")),
        };
        let fact = Fact::new(&args.content, source, &self.redactor);
        let fact = fact.ok_or_else(|| {
            ToolError::RespondToModel("content is empty: say what to remember".to_owned())
        })?;
        let id = fact.id().to_owned();
        if let Some(seq) = origin.tainted_by {
            self.files
                .quarantine_facts(date, &[fact.with_note("trust", "outside")])
                .await
                .map_err(to_tool_error)?;
            return Ok(Output::text(format!(
                "Noted as {id}, and held in quarantine until a person approves it: since entry {seq} \
                 this session contains untrusted content."
            )));
        }
        let files = self.files.with_files(cx.vfs.clone());
        let path = files.day(date).map_err(to_tool_error)?;
        let (today, _) = files.read(&path).await.map_err(to_tool_error)?;
        let wanted = normalised(&fact.text);
        if let Some((_, known)) = today
            .facts()
            .find(|(_, known)| normalised(&known.text) == wanted)
        {
            return Ok(Output::text(format!(
                "Known already, as {} in {path}.",
                known.id()
            )));
        }
        files.append(&path, &[fact]).await.map_err(to_tool_error)?;
        Ok(Output::text(format!("Saved to {path} as {id}.")))
    }
}

impl TypedTool for MemoryForgetTool {
    type Args = MemoryForgetArgs;
    const DEF: ToolDef = ToolDef::new(builtin::MEMORY_FORGET, Risk::WRITES, "Forgets one remembered fact, by its id or by words that only it holds. It is put away, not destroyed.").argument_aliases(ArgumentAliases::of_names(&[("id", "query")]));

    fn plan(&self, _: &MemoryForgetArgs) -> CallPlan {
        CallPlan::uses([
            PathAccess::write(self.files.memory.to_string()),
            PathAccess::write(self.files.days.to_string()),
        ])
    }

    async fn call(&self, cx: &ToolCx, args: MemoryForgetArgs) -> Result<Output, ToolError> {
        let files = self.files.with_files(cx.vfs.clone());
        let by = FactSource(vec![
            ("forgotten_by".to_owned(), caller(&cx.origin).to_owned()),
            ("forgotten_in".to_owned(), cx.origin.session.to_string()),
        ]);
        let line = |placed: &LocatedFact| {
            format!(
                "{} ({}:{}): {}",
                placed.id, placed.path, placed.line, placed.text
            )
        };
        let lines = |found: &[LocatedFact]| found.iter().map(line).collect::<Vec<_>>().join("\n");
        match files.forget(&args.query, &by).await.map_err(to_tool_error)? {
            ForgetResult::Done(found) => Ok(Output::text(format!("Forgotten:\n{}", lines(&found)))),
            ForgetResult::Ambiguous(found) => {
                let text = "Nothing was forgotten, for several facts fit. Call it again with the id of one:";
                Err(ToolError::RespondToModel(format!("{text}\n{}", lines(&found))))
            }
            ForgetResult::NotFound => Err(ToolError::RespondToModel(
                "no remembered fact has this id or these words; lines that a person wrote are edited as files are"
                    .to_owned(),
            )),
        }
    }
}
