//! The inputs of earlier chats in the same folder, kept in one private file of the person.
//!
//! Effects: the local disk (writes).

use crate::cli::env::ProcessEnv;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use stead::core::Redactor;

/// The most inputs of one folder that are offered.
const MAX_OFFERED: usize = 1_000;
/// The file is shortened to half of this when it is longer.
const MAX_LINES: usize = 10_000;
/// Longer inputs are not kept.
const MAX_INPUT_BYTES: usize = 64 * 1024;

/// Where the inputs of one folder are kept.
#[derive(Debug)]
pub(super) struct InputHistory {
    /// None if the person has no folder for such files.
    file: Option<PathBuf>,
    folder: String,
    redactor: Redactor,
}

#[derive(Serialize, Deserialize)]
struct HistoryLine {
    folder: String,
    text: String,
}

impl InputHistory {
    pub(super) fn new(env: &ProcessEnv, folder: String, redactor: Redactor) -> Self {
        Self {
            file: env.state().map(|state| state.join("history.jsonl")),
            folder,
            redactor,
        }
    }

    /// Returns the inputs of this folder, the oldest first. A file that cannot be read has none.
    pub(super) fn load(&self) -> Vec<String> {
        let text = self.file.as_ref().map(std::fs::read_to_string);
        let Some(Ok(text)) = text else {
            return Vec::new();
        };
        let lines = text.lines().filter_map(|line| {
            let line: HistoryLine = serde_json::from_str(line).ok()?;
            (line.folder == self.folder).then_some(line.text)
        });
        let inputs: Vec<String> = lines.collect();
        let from = inputs.len().saturating_sub(MAX_OFFERED);
        inputs[from..].to_vec()
    }

    /// Adds an input, without the secrets of this process.
    pub(super) fn add(&self, input: &str) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if input.trim().is_empty() || input.len() > MAX_INPUT_BYTES {
            return Ok(());
        }
        let line = HistoryLine {
            folder: self.folder.clone(),
            text: self.redactor.redact(input).into_owned(),
        };
        let line = serde_json::to_string(&line)? + "\n";
        if let Some(parent) = file.parent() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        // One write of a whole line: chats in other terminals add theirs.
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(file)?
            .write_all(line.as_bytes())?;
        self.shorten(file)
    }

    /// Leaves out the older half of a file that has become too long.
    fn shorten(&self, file: &PathBuf) -> io::Result<()> {
        let text = std::fs::read_to_string(file)?;
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() <= MAX_LINES {
            return Ok(());
        }
        let newer = lines[lines.len() - MAX_LINES / 2..].join("\n") + "\n";
        let next = file.with_extension("jsonl.new");
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&next)?
            .write_all(newer.as_bytes())?;
        std::fs::rename(next, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn history(file: PathBuf, folder: &str) -> InputHistory {
        InputHistory {
            file: Some(file),
            folder: folder.to_owned(),
            redactor: Redactor::new(["hush-hush-key".to_owned()]),
        }
    }

    #[test]
    fn inputs_are_kept_per_folder_without_secrets_in_a_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/history.jsonl");
        let here = history(file.clone(), "/here");
        assert!(here.load().is_empty());
        here.add("one\ntwo").unwrap();
        here.add("use hush-hush-key").unwrap();
        here.add("  ").unwrap();
        history(file.clone(), "/there").add("other").unwrap();
        std::fs::OpenOptions::new()
            .append(true)
            .open(&file)
            .unwrap()
            .write_all(b"torn {\n")
            .unwrap();
        assert_eq!(here.load(), ["one\ntwo", "use [redacted]"]);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_too_long_loses_its_older_half() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history.jsonl");
        let line = |n: usize| format!("{{\"folder\":\"/here\",\"text\":\"{n}\"}}\n");
        let text: String = (0..MAX_LINES).map(line).collect();
        std::fs::write(&file, text).unwrap();
        let here = history(file.clone(), "/here");
        here.add("newest").unwrap();
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert_eq!(lines, MAX_LINES / 2);
        let inputs = here.load();
        assert_eq!(
            (inputs.len(), inputs.last().map(String::as_str)),
            (MAX_OFFERED, Some("newest"))
        );
    }
}
