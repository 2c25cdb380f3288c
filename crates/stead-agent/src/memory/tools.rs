//! `memory_save` and `memory_forget`: what the agent itself does to its memory.

use super::credentials::holds_credentials;
use super::error::MemoryError;
use super::fact::{Fact, Source, id_of, normalised};
use super::home::MemoryFiles;
use super::review::{Forgotten, Placed};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use stead_core::{Access, AccessKind, Reach, Redactor, Risk, SessionId};
use stead_tools::{Origin, Output, Tool, ToolCx, ToolError, TypedTool, typed};

/// Most tags of one fact.
const MAX_TAGS: usize = 8;

/// The tools over the memory in `files`, which must not be guarded: what waits for approval is out
/// of reach of an agent's own files.
pub(crate) fn memory_tools(files: MemoryFiles, redactor: Redactor) -> Vec<Arc<dyn Tool>> {
    vec![
        typed(Save {
            files: files.clone(),
            redactor,
        }),
        typed(Forget { files }),
    ]
}

struct Save {
    files: MemoryFiles,
    redactor: Redactor,
}

struct Forget {
    files: MemoryFiles,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SaveArgs {
    /// One fact, in a sentence that is clear by itself. Never a secret.
    content: String,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetArgs {
    /// The id of a fact, or words that only this fact holds.
    query: String,
}

fn write(path: impl ToString) -> Access {
    Access {
        path: path.to_string(),
        kind: AccessKind::Write,
        reach: Reach::Content,
    }
}

fn told(error: MemoryError) -> ToolError {
    ToolError::Tell(error.to_string())
}

/// Who calls: a person if it is no session's call.
fn caller(origin: &Origin) -> &'static str {
    if origin.session == SessionId::outside() {
        "user"
    } else {
        "agent"
    }
}

impl TypedTool for Save {
    type Args = SaveArgs;
    const NAME: &'static str = "memory_save";
    const DESCRIPTION: &'static str = "Remembers one fact beyond this session: a decision and its reason, a preference, \
        something about the project. Call it once per fact.";
    const RISK: Risk = Risk::WRITES;

    fn accesses(&self, _: &SaveArgs) -> Vec<Access> {
        self.files
            .day(self.files.date(Timestamp::now()))
            .map(|path| vec![write(path)])
            .unwrap_or_default()
    }

    async fn call(&self, cx: &ToolCx, args: SaveArgs) -> Result<Output, ToolError> {
        if holds_credentials(&args.content) {
            let text = "not saved: this looks like a key or a password, which is never remembered; say where it is kept";
            return Err(ToolError::Tell(text.to_owned()));
        }
        let origin = &cx.origin;
        let date = self.files.date(Timestamp::now());
        let source = Source::new(id_of(&[
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
        let fact = fact
            .ok_or_else(|| ToolError::Tell("content is empty: say what to remember".to_owned()))?;
        let id = fact.id().to_owned();
        if let Some(seq) = origin.tainted {
            self.files
                .hold_back(date, &[fact.noted("trust", "outside")])
                .await
                .map_err(told)?;
            return Ok(Output::text(format!(
                "Noted as {id}, and held back until a person approves it (`stead memory review`): since entry {seq} \
                 this session holds words from outside that nobody vouches for."
            )));
        }
        let files = self.files.through(cx.vfs.clone());
        let path = files.day(date).map_err(told)?;
        let (today, _) = files.read(&path).await.map_err(told)?;
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
        files.append(&path, &[fact]).await.map_err(told)?;
        Ok(Output::text(format!("Saved to {path} as {id}.")))
    }
}

impl TypedTool for Forget {
    type Args = ForgetArgs;
    const NAME: &'static str = "memory_forget";
    const DESCRIPTION: &'static str = "Forgets one remembered fact, by its id or by words that only it holds. It is put away, not destroyed.";
    const RISK: Risk = Risk::WRITES;
    const SPELLINGS: stead_tools::Spellings = stead_tools::Spellings {
        names: &[("id", "query")],
        values: &[],
    };

    fn accesses(&self, _: &ForgetArgs) -> Vec<Access> {
        vec![write(&self.files.memory), write(&self.files.days)]
    }

    async fn call(&self, cx: &ToolCx, args: ForgetArgs) -> Result<Output, ToolError> {
        let files = self.files.through(cx.vfs.clone());
        let by = Source(vec![
            ("forgotten_by".to_owned(), caller(&cx.origin).to_owned()),
            ("forgotten_in".to_owned(), cx.origin.session.to_string()),
        ]);
        let line = |placed: &Placed| {
            format!(
                "{} ({}:{}): {}",
                placed.id, placed.path, placed.line, placed.text
            )
        };
        let lines = |found: &[Placed]| found.iter().map(line).collect::<Vec<_>>().join("\n");
        match files.forget(&args.query, &by).await.map_err(told)? {
            Forgotten::Done(found) => Ok(Output::text(format!("Forgotten:\n{}", lines(&found)))),
            Forgotten::Several(found) => {
                let text = "Nothing was forgotten, for several facts fit. Call it again with the id of one:";
                Err(ToolError::Tell(format!("{text}\n{}", lines(&found))))
            }
            Forgotten::Nothing => Err(ToolError::Tell(
                "no remembered fact has this id or these words; lines that a person wrote are edited as files are"
                    .to_owned(),
            )),
        }
    }
}
