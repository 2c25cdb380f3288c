//! The tool `load_skill`, which returns the body of a skill or one of its files.
//!
//! Effects: workspace files (reads).

use crate::library::read_skill;
use crate::render::{enclose, escape, floor_char_boundary};
use crate::{Catalogue, SKILL_FILE, Skill};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use stead_core::{ArgumentAliases, PathAccess, Risk, SkillActivation, ToolEffect, ToolSpec};
use stead_tools::builtin::LOAD_SKILL;
use stead_tools::{
    CallPlan, Output, PlanError, Tool, ToolCx, ToolDef, ToolError, TypedTitleForm, closest_name,
};
use stead_vfs::{ContentHash, FileKind, ReadRange, VPath, VfsError};

/// The maximum number of names that the schema lists.
const MAX_ENUM_NAMES: usize = 200;
/// The maximum size of the text that one call returns, in bytes.
const MAX_TEXT_BYTES: usize = 80_000;
/// The maximum number of files that are listed for a skill.
const MAX_LISTED_FILES: usize = 100;
/// The maximum number of names that an error lists.
const MAX_LISTED_NAMES: usize = 200;
/// The number of bytes that are examined to decide whether a file is text.
const SNIFF_BYTES: usize = 8192;

// Calls run one after the other, so that a skill that is asked for twice in a step is given once.
const DEF: ToolDef = ToolDef::new(
    LOAD_SKILL,
    Risk {
        effect: ToolEffect::Reads,
        parallel_safe: false,
        repeatable: true,
    },
    "Loads the instructions of a skill, or one of its files. Call it before a task that a skill fits.",
)
.bounded()
.argument_aliases(ArgumentAliases::of_names(&[
    ("skill", "name"),
    ("skillId", "name"),
    ("skill_name", "name"),
    ("resource_path", "path"),
]))
.title_form::<SkillForm>();

/// Returns the tool that loads the skills of `catalogue`, or nothing if there are none.
pub fn load_skill(catalogue: Arc<Catalogue>) -> Option<Arc<dyn Tool>> {
    if catalogue.is_empty() {
        return None;
    }
    let mut name =
        json!({"type": "string", "description": "The skill, as <available_skills> names it."});
    if catalogue.skills().len() <= MAX_ENUM_NAMES {
        name["enum"] = catalogue.skills().map(Skill::name).collect();
    }
    let path = "One file of the skill, relative to its directory, such as references/api.md. \
        Left out, the skill's instructions are loaded.";
    let parameters = json!({
        "type": "object",
        "properties": {"name": name, "path": {"type": "string", "description": path}},
        "required": ["name"],
        "additionalProperties": false,
    });
    let spec = DEF.spec(Arc::new(parameters));
    Some(Arc::new(LoadSkill { catalogue, spec }))
}

struct LoadSkill {
    catalogue: Arc<Catalogue>,
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct LoadSkillArgs {
    name: String,
    path: Option<String>,
}

/// The tool in the title surface: `Skill`.
struct SkillForm;

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillArgs {
    /// The skill, as <available_skills> names it.
    skill: String,
    /// One file of the skill, relative to its directory. Left out, the skill's instructions are
    /// loaded.
    #[serde(default)]
    resource_path: Option<String>,
}

impl TypedTitleForm for SkillForm {
    type Args = SkillArgs;
    const DESCRIPTION: &'static str = "Loads the instructions of a skill, or one of its files. Use it before a task that a skill fits.";
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases::of_names(&[
        ("name", "skill"),
        ("skill_name", "skill"),
        ("path", "resource_path"),
    ]);

    fn to_canonical(args: SkillArgs) -> Value {
        json!({"name": args.skill, "path": args.resource_path})
    }
}

impl Tool for LoadSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn plan(&self, args: Value) -> Result<CallPlan, PlanError> {
        let args = LoadSkillArgs::deserialize(args)
            .map_err(|error| PlanError::InvalidArguments(error.to_string()))?;
        let skill = self
            .catalogue
            .get(&args.name)
            .filter(|skill| skill.origin.is_in_workspace());
        let path = args.path.as_deref().unwrap_or(SKILL_FILE);
        let file = skill.and_then(|skill| skill.dir.join(path).ok());
        let accesses = file.map(|file| PathAccess::read(file.as_str()));
        // A grant is limited to the file that the arguments name, where they name one.
        let named = args.path.clone();
        Ok(CallPlan::uses(accesses)
            .with_named_paths(named)
            .with_args(args))
    }

    fn call<'a>(
        &'a self,
        cx: &'a ToolCx,
        plan: CallPlan,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let LoadSkillArgs { name, path } = plan.take_args()?;
            let Some(skill) = self.catalogue.get(&name) else {
                return Err(self.unknown(&name));
            };
            match path.as_deref().filter(|path| !is_body(path)) {
                None => load_body(cx, skill).await,
                Some(path) => load_resource(skill, path).await,
            }
        })
    }
}

/// Returns whether a path names the SKILL.md, which is returned without a path too.
fn is_body(path: &str) -> bool {
    VPath::parse(path).is_ok_and(|path| path.is_root() || path.as_str() == SKILL_FILE)
}

impl LoadSkill {
    fn unknown(&self, name: &str) -> ToolError {
        let names: Vec<&str> = self.catalogue.skills().map(Skill::name).collect();
        let near = closest_name(name, &names)
            .map(|near| format!(" Did you mean `{near}`?"))
            .unwrap_or_default();
        let listed = names
            .iter()
            .take(MAX_LISTED_NAMES)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = names.len().saturating_sub(MAX_LISTED_NAMES);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        ToolError::RespondToModel(format!(
            "there is no skill `{name}`.{near} There are: {listed}{more}"
        ))
    }
}

async fn load_body(cx: &ToolCx, skill: &Skill) -> Result<Output, ToolError> {
    let (content, text) = read_skill(skill).await.map_err(ToolError::RespondToModel)?;
    let name = skill.name();
    let version = ContentHash::of(&content).to_string();
    if cx.active_skills.has(name, &version) {
        let text = format!(
            "The skill `{name}` is loaded already and did not change: its instructions stand above."
        );
        return Ok(Output::text(text));
    }
    let shown = floor_char_boundary(&text.body, MAX_TEXT_BYTES);
    let mut out = format!(
        "<skill name=\"{}\">\n{}\n",
        escape(name),
        enclose(&text.body[..shown])
    );
    if shown < text.body.len() {
        let _ = writeln!(
            out,
            "[{} more bytes are not shown]",
            text.body.len() - shown
        );
    }
    out.push_str("</skill>");
    if let Some(needs) = &skill.header.compatibility {
        let _ = write!(out, "\nIt needs: {}", enclose(needs));
    }
    if skill.origin.is_in_workspace() {
        let _ = write!(out, "\nIts directory is {}.", skill.dir);
    }
    out.push_str(
        &list_files(skill)
            .await
            .map_err(|error| tool_error(&error))?,
    );
    let activates = Some(SkillActivation {
        skill: name.to_owned(),
        version,
    });
    Ok(Output {
        activates,
        ..Output::text(out)
    })
}

/// Lists the other files of the skill.
async fn list_files(skill: &Skill) -> Result<String, VfsError> {
    // One more than the limit shows whether there are more. SKILL.md and directories count too.
    let walk = skill
        .files
        .walk(&skill.dir, None, MAX_LISTED_FILES * 4)
        .await?;
    let own = skill.file();
    let all: Vec<&VPath> = walk
        .entries
        .iter()
        .filter(|(path, entry)| entry.kind == FileKind::File && !entry.link && *path != own)
        .map(|(path, _)| path)
        .collect();
    if all.is_empty() {
        return Ok(String::new());
    }
    let below = skill.dir.as_str().len();
    let mut out = "\nIts other files, to be loaded with `path` when they are needed:".to_owned();
    for path in all.iter().take(MAX_LISTED_FILES) {
        let _ = write!(
            out,
            "\n- {}",
            path.as_str()[below..].trim_start_matches('/')
        );
    }
    if all.len() > MAX_LISTED_FILES || walk.truncated {
        out.push_str("\n[there are more]");
    }
    Ok(out)
}

async fn load_resource(skill: &Skill, path: &str) -> Result<Output, ToolError> {
    let name = skill.name();
    let file = skill
        .dir
        .join(path)
        .map_err(|error| ToolError::RespondToModel(error.to_string()))?;
    let files = &skill.files;
    let end = files.resolve(&file).await;
    let home = files.resolve(&skill.dir).await;
    let end = end.map_err(|error| tool_error(&error))?;
    let home = home.map_err(|error| tool_error(&error))?;
    if !home.contains(&end) {
        return Err(ToolError::RespondToModel(format!(
            "{path} leads out of the skill `{name}`, and only its own files can be loaded"
        )));
    }
    let stat = match files.stat(&file).await {
        Ok(stat) => stat,
        Err(VfsError::NotFound(_)) => {
            let listed = self::list_files(skill)
                .await
                .map_err(|error| tool_error(&error))?;
            return Err(ToolError::RespondToModel(format!(
                "the skill `{name}` has no file {path}.{listed}"
            )));
        }
        Err(error) => return Err(tool_error(&error)),
    };
    match stat.kind {
        FileKind::File => {}
        FileKind::Directory => {
            let listed = self::list_files(skill)
                .await
                .map_err(|error| tool_error(&error))?;
            return Err(ToolError::RespondToModel(format!(
                "{path} is a directory.{listed}"
            )));
        }
        FileKind::Other => {
            return Err(ToolError::RespondToModel(format!(
                "{path} is not a regular file"
            )));
        }
    }
    let range = ReadRange {
        offset: 0,
        len: MAX_TEXT_BYTES as u64,
    };
    let (content, _) = files
        .read(&file, range)
        .await
        .map_err(|error| tool_error(&error))?;
    let Some(text) = as_text(&content) else {
        let hint = if skill.origin.is_in_workspace() {
            format!("; it lies at {file}")
        } else {
            String::new()
        };
        return Err(ToolError::RespondToModel(format!(
            "{path} is not a text ({} bytes) and cannot be shown{hint}",
            stat.size
        )));
    };
    let mut out = text.to_owned();
    if stat.size > text.len() as u64 {
        let _ = write!(
            out,
            "\n[{} more bytes are not shown]",
            stat.size - text.len() as u64
        );
    }
    Ok(Output::text(if out.is_empty() {
        format!("[{path} is empty]")
    } else {
        out
    }))
}

/// Returns the beginning of a file as text; none if it is not text.
fn as_text(content: &[u8]) -> Option<&str> {
    if content.iter().take(SNIFF_BYTES).any(|&byte| byte == 0) {
        return None;
    }
    match std::str::from_utf8(content) {
        Ok(text) => Some(text),
        // The last character is incomplete.
        Err(error) if error.error_len().is_none() && content.len() == MAX_TEXT_BYTES => {
            std::str::from_utf8(&content[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

fn tool_error(error: &VfsError) -> ToolError {
    // A place that does not answer is nothing the model can correct.
    let is_away = matches!(error, VfsError::Unavailable { .. });
    if is_away {
        ToolError::Fatal(error.to_string())
    } else {
        ToolError::RespondToModel(error.to_string())
    }
}
