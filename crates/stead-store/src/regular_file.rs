//! Reading the files of a folder that may have come from elsewhere: a pipe in place of a file must
//! not stop the program, nor a huge file fill its memory.
//!
//! Effects: the local disk (reads).

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a state file that are read.
pub(crate) const MAX_STATE_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Opens a regular file, without waiting and without following a link in its place.
pub(crate) fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("this is not a regular file; move it away")),
    }
}

/// Reads a whole regular file of at most `most` bytes.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OFlags::RDONLY)?;
    let bytes = file.metadata()?.len();
    if bytes > most {
        return Err(io::Error::other(format!(
            "this has {bytes} bytes, and at most {most} are read; move it away"
        )));
    }
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_a_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_regular(&file, 4).unwrap(), b"four");
        let error = read_regular(&file, 3).unwrap_err().to_string();
        assert!(error.contains("4 bytes"), "{error}");
        let pipe = dir.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for other in [&pipe, &link, dir.path()] as [&Path; 3] {
            assert!(read_regular(other, 4).is_err(), "{}", other.display());
        }
        let absent = read_regular(&dir.path().join("absent"), 4).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
}
