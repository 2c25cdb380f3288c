//! Reads scripts and tapes, the files of models that need no network, and appends to tapes.
//!
//! Effects: the local disk (writes).

use crate::ModelError;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Reads a whole text file.
pub(crate) fn read(path: &Path) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|error| file_error(path, "read", &error))
}

/// A file of lines that is only appended to.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
}

impl AppendFile {
    /// Opens the file for appending, readable by its owner only. An incomplete last line, left by a
    /// crash, is removed, so that the next one starts on its own.
    pub(crate) fn open(path: &Path) -> Result<Self, ModelError> {
        let open = || {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .read(true)
                .mode(0o600)
                .open(path)?;
            let mut content = Vec::new();
            file.read_to_end(&mut content)?;
            let whole = content
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |end| end + 1);
            if whole < content.len() {
                file.set_len(whole as u64)?;
                file.seek(SeekFrom::End(0))?;
            }
            Ok(file)
        };
        let file = open().map_err(|error| file_error(path, "write", &error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// Appends one line in one write.
    pub(crate) fn append(&mut self, mut line: String) -> Result<(), ModelError> {
        line.push('\n');
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| file_error(&self.path, "write", &error))
    }
}

fn file_error(path: &Path, verb: &str, error: &std::io::Error) -> ModelError {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound => ModelError::Config(format!(
            "cannot {verb} {path}: there is no such file or folder"
        )),
        _ => ModelError::Config(format!("cannot {verb} {path}: {error}")),
    }
}
