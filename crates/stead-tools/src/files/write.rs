//! The `write_file` and `overwrite_file` tools.
//!
//! Effects: the clock, workspace files (writes).

use super::diff::{CurrentContent, diff};
use super::{FILE_PATH, MAX_EDIT_BYTES, READ_FILE, explain_error, parse_path};
use crate::title;
use crate::{CallPlan, Output, PlanView, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use stead_core::{Exposure, Risk, ToolKind, counted};
use stead_vfs::{Expect, ReadRange, VPath, Version, VfsError};

/// `write_file`: writes a file.
pub const WRITE_FILE: ToolIdentity = ToolIdentity::new("write_file", ToolKind::FileWrite)
    .aliases(&["Write"])
    .title("Write")
    .subject(&["file_path", "path"]);
/// `overwrite_file`: replaces a file. It is `write_file` with a fixed mode, so its rules hold too.
pub const OVERWRITE_FILE: ToolIdentity = ToolIdentity::new("overwrite_file", ToolKind::FileWrite)
    .follows_rules_of(&WRITE_FILE)
    .subject(&["file_path", "path"])
    .exposed(Exposure::OnDemand);

/// How often appending is tried while others write, each time after a longer pause.
const APPEND_TRIES: u32 = 40;

pub(super) struct WriteFile;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    file_path: String,
    content: String,
    /// create (default): the file must not exist yet.
    #[serde(default)]
    mode: WriteMode,
}

#[derive(Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum WriteMode {
    #[default]
    Create,
    Append,
    Overwrite,
    // The meaning of `Write` on the title surface: the file is new, or the session knows the content
    // that it replaces.
    #[schemars(skip)]
    Known,
}

impl TypedTool for WriteFile {
    type Args = WriteArgs;
    const DEF: ToolDef = ToolDef::new(WRITE_FILE, Risk::WRITES, "Writes a file and missing directories. To change an existing file use edit_file, or another mode.").argument_aliases(FILE_PATH).title_form::<title::WriteForm>();

    fn plan(&self, args: &WriteArgs) -> CallPlan {
        let write = args.clone();
        let plan = match args.mode {
            WriteMode::Create | WriteMode::Overwrite | WriteMode::Known => CallPlan::default(),
            // The whole file is read and written again.
            WriteMode::Append => CallPlan::reads(&args.file_path),
        };
        plan.and_writes(&args.file_path)
            .with_preview(move |view| preview_write(view, write.clone()).boxed())
    }

    async fn call(&self, cx: &ToolCx, args: WriteArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
        let size = size(&args.content);
        let (verb, written) = match args.mode {
            WriteMode::Create => (
                "Created",
                cx.vfs
                    .write(&path, args.content.into(), Expect::Absent)
                    .await,
            ),
            WriteMode::Append => ("Appended to", append(cx, &path, &args.content).await),
            WriteMode::Overwrite => (
                "Wrote",
                cx.vfs.write(&path, args.content.into(), Expect::Any).await,
            ),
            WriteMode::Known => ("Wrote", replace_known(cx, &path, args.content).await),
        };
        match (written, args.mode) {
            (Ok(version), _) => {
                Ok(Output::text(format!("{verb} {path} ({size})"))
                    .with_file_version(&path, &version))
            }
            (Err(VfsError::Exists(_)), WriteMode::Create) => {
                Err(ToolError::RespondToModel(format!(
                    "{path} exists already; use edit_file to change a part of it, or mode \"append\" or \"overwrite\""
                )))
            }
            (Err(VfsError::Exists(_)), WriteMode::Known) => {
                Err(ToolError::RespondToModel(format!(
                    "{path} exists already and was not changed; use {} first to see what you would replace",
                    cx.surface.name(&READ_FILE)
                )))
            }
            (Err(error), _) => Err(explain_error(cx, error).await),
        }
    }
}

async fn preview_write(view: PlanView<'_>, args: WriteArgs) -> Option<String> {
    let path = VPath::parse(&args.file_path).ok()?;
    let now = CurrentContent::load(view.files, &path).await;
    Some(match (args.mode, now) {
        (WriteMode::Create, CurrentContent::Text(_) | CurrentContent::Other(_)) => {
            format!("would fail: {path} exists already\n")
        }
        (WriteMode::Append, CurrentContent::Text(old)) => {
            diff(&path, Some(&old), Some(&format!("{old}{}", args.content)))
        }
        (
            WriteMode::Append | WriteMode::Overwrite | WriteMode::Known,
            CurrentContent::Other(why),
        ) => {
            format!("({why})\n{}", diff(&path, None, Some(&args.content)))
        }
        (WriteMode::Overwrite | WriteMode::Known, CurrentContent::Text(old)) => {
            diff(&path, Some(&old), Some(&args.content))
        }
        (_, CurrentContent::Absent) => diff(&path, None, Some(&args.content)),
    })
}

/// Writes a new file, or replaces one that has not changed since the session last saw it.
async fn replace_known(cx: &ToolCx, path: &VPath, content: String) -> Result<Version, VfsError> {
    let expect = match cx.file_versions.get(path) {
        None => Expect::Absent,
        Some(seen) => match cx.vfs.stat(path).await {
            Ok(stat) if stat.version.to_string() == seen => Expect::Version(stat.version),
            Ok(_) => return Err(VfsError::Changed(path.clone())),
            Err(VfsError::NotFound(_)) => Expect::Absent,
            Err(error) => return Err(error),
        },
    };
    cx.vfs.write(path, content.into(), expect).await
}

/// Appends to the current content, even while others write.
async fn append(cx: &ToolCx, path: &VPath, content: &str) -> Result<Version, VfsError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let (data, expect) = match cx
            .vfs
            .read(
                path,
                ReadRange {
                    offset: 0,
                    len: MAX_EDIT_BYTES + 1,
                },
            )
            .await
        {
            Ok((old, _)) if old.len() as u64 > MAX_EDIT_BYTES => {
                let size = cx.vfs.stat(path).await?.size;
                return Err(VfsError::TooLarge {
                    path: path.clone(),
                    size,
                    limit: MAX_EDIT_BYTES,
                });
            }
            Ok((old, version)) => (
                [&old, content.as_bytes()].concat(),
                Expect::Version(version),
            ),
            Err(VfsError::NotFound(_)) => (content.as_bytes().to_vec(), Expect::Absent),
            Err(error) => return Err(error),
        };
        match cx.vfs.write(path, data.into(), expect).await {
            Err(VfsError::Changed(_) | VfsError::Exists(_)) if tries < APPEND_TRIES => {
                // The pauses differ, so that two writers do not collide again and again.
                let spread = u64::from(
                    std::time::SystemTime::UNIX_EPOCH
                        .elapsed()
                        .map_or(0, |now| now.subsec_nanos()),
                );
                tokio::time::sleep(Duration::from_micros(spread % (u64::from(tries) * 2000))).await;
            }
            done => return done,
        }
    }
}

fn size(content: &str) -> String {
    format!(
        "{}, {}",
        counted(content.lines().count(), "line"),
        counted(content.len(), "byte")
    )
}

pub(super) struct OverwriteFile;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverwriteArgs {
    file_path: String,
    /// The whole new text.
    content: String,
}

impl TypedTool for OverwriteFile {
    type Args = OverwriteArgs;
    const DEF: ToolDef = ToolDef::new(
        OVERWRITE_FILE,
        Risk::WRITES,
        "Writes a file, replacing the one that is there.",
    )
    .argument_aliases(FILE_PATH);

    fn plan(&self, args: &OverwriteArgs) -> CallPlan {
        let write = args.clone();
        CallPlan::writes(&args.file_path)
            .with_preview(move |view| preview_overwrite(view, write.clone()).boxed())
    }

    async fn call(&self, cx: &ToolCx, args: OverwriteArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
        let size = size(&args.content);
        match cx.vfs.write(&path, args.content.into(), Expect::Any).await {
            Ok(version) => {
                Ok(Output::text(format!("Wrote {path} ({size})"))
                    .with_file_version(&path, &version))
            }
            Err(error) => Err(explain_error(cx, error).await),
        }
    }
}

async fn preview_overwrite(view: PlanView<'_>, args: OverwriteArgs) -> Option<String> {
    let path = VPath::parse(&args.file_path).ok()?;
    Some(match CurrentContent::load(view.files, &path).await {
        CurrentContent::Text(old) => diff(&path, Some(&old), Some(&args.content)),
        CurrentContent::Absent => diff(&path, None, Some(&args.content)),
        CurrentContent::Other(why) => {
            format!("({why})\n{}", diff(&path, None, Some(&args.content)))
        }
    })
}
