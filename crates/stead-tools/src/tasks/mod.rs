//! Tasks that outlive a conversation: a list in a file of the workspace, in the format of OpenPaw's
//! `TASKS.yaml`.
//!
//! The file is replaced as a whole, and only if it has not changed since it was read. Otherwise the
//! writer reads it again and repeats the change, so that no change is lost. A damaged file is never
//! written.
//!
//! Effects: the clock, workspace files (writes).

mod list;
mod tools;
mod update;

pub(crate) use tools::IDENTITIES;
pub use tools::task_tools;

use crate::ToolError;
use list::TaskList;
use std::time::Duration;
use stead_vfs::{Expect, ReadRange, VPath, Vfs, VfsError};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Larger files are parsed on a thread of their own, so that the call can be ended meanwhile.
const MAX_INLINE_BYTES: usize = 64 * 1024;
/// How often a change is tried while others write.
const MAX_TRIES: u64 = 50;
/// The pause before the next try, for each try so far.
const WAIT_MS: u64 = 2;

/// Returns the list, and the condition under which it may be replaced.
async fn load(files: &dyn Vfs, path: &VPath) -> Result<(TaskList, Expect), ToolError> {
    let range = ReadRange {
        offset: 0,
        len: MAX_FILE_BYTES + 1,
    };
    let (bytes, version) = match files.read(path, range).await {
        Ok(read) => read,
        Err(VfsError::NotFound(_)) => {
            return Ok((
                TaskList::read("").map_err(ToolError::RespondToModel)?,
                Expect::Absent,
            ));
        }
        Err(error) => return Err(to_tool_error(error)),
    };
    let damaged = |what: String| {
        ToolError::RespondToModel(format!(
            "{path} is damaged: {what}. Nothing was changed; a person must repair it"
        ))
    };
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(damaged(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes.into());
    let text = text.map_err(|_| damaged("it is not a text".to_owned()))?;
    let list = match text.len() {
        ..=MAX_INLINE_BYTES => TaskList::read(&text),
        _ => tokio::task::spawn_blocking(move || TaskList::read(&text))
            .await
            .unwrap_or_else(|error| Err(error.to_string())),
    };
    Ok((list.map_err(damaged)?, Expect::Version(version)))
}

/// Changes the list with `edit`, and repeats that if others write meanwhile.
async fn update_list<T>(
    files: &dyn Vfs,
    path: &VPath,
    edit: impl Fn(&mut TaskList) -> Result<T, String>,
) -> Result<T, ToolError> {
    for tried in 0..MAX_TRIES {
        if tried > 0 {
            tokio::time::sleep(Duration::from_millis(tried * WAIT_MS)).await;
        }
        let (mut list, expect) = load(files, path).await?;
        let made = edit(&mut list).map_err(ToolError::RespondToModel)?;
        let text = list.write(jiff::Timestamp::now());
        match files.write(path, text.into(), expect).await {
            Ok(_) => return Ok(made),
            Err(VfsError::Changed(_) | VfsError::Exists(_)) => {}
            Err(error) => return Err(to_tool_error(error)),
        }
    }
    Err(ToolError::RespondToModel(format!(
        "{path} is being changed by others all the time; try again later"
    )))
}

fn to_tool_error(error: VfsError) -> ToolError {
    match error {
        VfsError::Fenced(_) | VfsError::Unavailable { .. } => ToolError::Fatal(error.to_string()),
        other => ToolError::RespondToModel(other.to_string()),
    }
}
