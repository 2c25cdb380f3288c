//! `write_file` and `overwrite_file`.

use super::diff::{CurrentContent, diff};
use super::{
    FILE_PATH, MAX_EDIT_BYTES, explain_error, parse_path, pluralize, read_access, write_access,
};
use crate::title;
use crate::{
    ArgumentAliases, Output, Surface, TitleForm, ToolCx, ToolError, TypedTool, typed_tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use stead_core::{PathAccess, Risk};
use stead_vfs::{Expect, ReadRange, VPath, Version, Vfs, VfsError};

/// Tries to append to a file that others write to, each after a longer pause.
const APPEND_TRIES: u32 = 40;

pub(super) struct WriteFile {
    /// In whose words it answers.
    pub(super) surface: Surface,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    /// Path of the file, relative to the workspace. Missing directories are made.
    file_path: String,
    /// The text to write.
    content: String,
    /// create: the file must not exist yet. append: add to its end. overwrite: replace it.
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
    // What writing means in the title surface: the file is new, or this session knows what it
    // replaces.
    #[schemars(skip)]
    Known,
}

impl TypedTool for WriteFile {
    type Args = WriteArgs;
    const NAME: &'static str = "write_file";
    const ALIASES: &'static [&'static str] = &["Write"];
    const DESCRIPTION: &'static str = "Writes a new file. To change an existing one use edit_file, or say so with mode append or overwrite.";
    const RISK: Risk = Risk::WRITES;
    const ARGUMENT_ALIASES: ArgumentAliases = FILE_PATH;

    fn accesses(&self, args: &WriteArgs) -> Vec<PathAccess> {
        match args.mode {
            WriteMode::Create | WriteMode::Overwrite | WriteMode::Known => {
                write_access(&args.file_path)
            }
            // The whole file is read and written again.
            WriteMode::Append => {
                [read_access(&args.file_path), write_access(&args.file_path)].concat()
            }
        }
    }

    fn title_form(&self) -> Option<TitleForm> {
        Some(TitleForm::of::<title::WriteForm>(typed_tool(Self {
            surface: Surface::Title,
        })))
    }

    async fn preview(&self, files: &dyn Vfs, args: WriteArgs) -> Option<String> {
        let path = VPath::parse(&args.file_path).ok()?;
        let now = CurrentContent::load(files, &path).await;
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
                    self.surface.name("read_file")
                )))
            }
            (Err(error), _) => Err(explain_error(cx, self.surface, error).await),
        }
    }
}

/// Writes a new file, or replaces one that is still as this session last saw it.
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

/// Adds to the end of what is there at that moment, whoever else writes.
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
                // Different for each, or those who met would meet again.
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
        pluralize(content.lines().count(), "line"),
        pluralize(content.len(), "byte")
    )
}

pub(super) struct OverwriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverwriteArgs {
    /// Path of the file, relative to the workspace. Missing directories are made.
    file_path: String,
    /// The whole new text.
    content: String,
}

impl TypedTool for OverwriteFile {
    type Args = OverwriteArgs;
    const NAME: &'static str = "overwrite_file";
    const DESCRIPTION: &'static str = "Writes a file, replacing the one that is there.";
    const RISK: Risk = Risk::WRITES;
    const ARGUMENT_ALIASES: ArgumentAliases = FILE_PATH;

    fn accesses(&self, args: &OverwriteArgs) -> Vec<PathAccess> {
        write_access(&args.file_path)
    }

    async fn preview(&self, files: &dyn Vfs, args: OverwriteArgs) -> Option<String> {
        let path = VPath::parse(&args.file_path).ok()?;
        Some(match CurrentContent::load(files, &path).await {
            CurrentContent::Text(old) => diff(&path, Some(&old), Some(&args.content)),
            CurrentContent::Absent => diff(&path, None, Some(&args.content)),
            CurrentContent::Other(why) => {
                format!("({why})\n{}", diff(&path, None, Some(&args.content)))
            }
        })
    }

    async fn call(&self, cx: &ToolCx, args: OverwriteArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
        let size = size(&args.content);
        match cx.vfs.write(&path, args.content.into(), Expect::Any).await {
            Ok(version) => {
                Ok(Output::text(format!("Wrote {path} ({size})"))
                    .with_file_version(&path, &version))
            }
            Err(error) => Err(explain_error(cx, Surface::Snake, error).await),
        }
    }
}
