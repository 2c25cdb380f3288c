//! Removing temporary files that crashed processes left on the local disk.
//!
//! Effects: the clock, the local disk (writes).

use super::write::is_temporary;
use super::{LocalVfs, error, root};
use crate::{VPath, VfsError};
use rustix::fs::{AtFlags, FileType, statat};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use stead_store::Disk;

impl LocalVfs {
    /// Removes temporary files of interrupted writes that are older than `older_than`. Returns
    /// their number.
    pub async fn sweep(&self, older_than: Duration) -> Result<usize, VfsError> {
        let oldest_ms = jiff::Timestamp::now()
            .as_millisecond()
            .saturating_sub(older_than.as_millis() as i64);
        self.run_blocking(&VPath::root(), move |local, path| {
            let dir = local
                .root
                .open_dir(Path::new(""))
                .map_err(|e| error::at(path, e))?;
            Ok(sweep(&dir, &*local.disk, oldest_ms))
        })
        .await
    }
}

/// Sweeps a directory and those below it. Files that cannot be read or removed are left.
fn sweep(dir: &File, disk: &dyn Disk, oldest_ms: i64) -> usize {
    let mut swept = 0;
    for name in super::write::names(dir).unwrap_or_default() {
        let Ok(stat) = statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let below = root::subdirectory(dir.as_fd(), Path::new(&name).as_ref());
                swept += below.map_or(0, |below| sweep(&below, disk, oldest_ms));
            }
            FileType::RegularFile if is_leftover(&name) && root::modified_ms(&stat) < oldest_ms => {
                swept += usize::from(
                    disk.remove(dir.as_fd(), Path::new(&name), AtFlags::empty())
                        .is_ok(),
                );
            }
            _ => {}
        }
    }
    swept
}

/// Returns whether a name is temporary: `.stead-<16 hex>.tmp` of a write, `<name>.tmp-<pid>-<n>` of
/// the harness's own files.
fn is_leftover(name: &OsStr) -> bool {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let numbered = |tail: &str| {
        tail.split_once('-')
            .is_some_and(|(pid, n)| pid.parse::<u32>().is_ok() && hex(n))
    };
    is_temporary(name)
        || name
            .to_str()
            .and_then(|name| name.rsplit_once(".tmp-"))
            .is_some_and(|(_, tail)| numbered(tail))
}
