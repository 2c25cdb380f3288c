//! Reading ignore files of the local disk by descriptor.
//!
//! Effects: the local disk (reads).

use super::root;
use crate::ignores::{IgnoreFiles, Ignores, MAX_IGNORE_FILE_BYTES};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The ignore files that a directory has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IgnoreFileNames {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    pub(super) git: bool,
}

/// Returns the rules that apply in `dir`, whose path is `path`.
pub(super) fn below(
    above: Option<Arc<Ignores>>,
    dir: BorrowedFd<'_>,
    path: &str,
    found: IgnoreFileNames,
) -> Option<Arc<Ignores>> {
    if found == IgnoreFileNames::default() {
        return above;
    }
    let ignore = found.ignore.then(|| load(dir, ".ignore")).flatten();
    let gitignore = found.gitignore.then(|| load(dir, ".gitignore")).flatten();
    Ignores::below(
        above,
        path,
        IgnoreFiles {
            ignore,
            gitignore,
            is_repository: found.git,
        },
    )
}

/// Reads an ignore file. A file that cannot be read has no rules.
fn load(dir: BorrowedFd<'_>, name: &str) -> Option<Vec<u8>> {
    let file: File = rustix::fs::openat(dir, name, root::READING | OFlags::NOFOLLOW, Mode::empty())
        .ok()?
        .into();
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX_IGNORE_FILE_BYTES)
        .read_to_end(&mut text)
        .ok()?;
    Some(text)
}
