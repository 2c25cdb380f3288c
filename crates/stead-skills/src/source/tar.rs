//! Reading `.tar` archives of skills, plain or compressed.
//!
//! Effects: none.

use super::archive::{ArchiveError, Unpacker, entry_name, max_unpacked_bytes};
use super::bundle::{Bundle, LinkPolicy};
use ::tar::{Archive, EntryType};
use std::io::{self, Read};

/// The maximum size of all headers and padding together.
const OVERHEAD_BYTES: u64 = 20 * 1024 * 1024;

/// Reads the files of a tar that has `packed` bytes in its compressed form.
pub(crate) fn read(
    stream: impl Read,
    packed: u64,
    links: LinkPolicy,
) -> Result<Bundle, ArchiveError> {
    let allowance = max_unpacked_bytes(packed);
    let mut unpacking = Unpacker::new(allowance);
    let stream = BoundedReader {
        stream,
        remaining: allowance + OVERHEAD_BYTES,
    };
    let mut archive = Archive::new(stream);
    let damaged = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => ArchiveError::TooLarge(allowance),
        _ => ArchiveError::Damaged(error.to_string()),
    };
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        unpacking.count_entry()?;
        let bytes = entry.path_bytes().into_owned();
        let name = entry_name(&bytes)?;
        refuse_sparse(&mut entry, name)?;
        let mode = entry.header().mode().map_err(damaged)?;
        let kind = |what| ArchiveError::Kind {
            name: name.to_owned(),
            what,
        };
        if mode & 0o6000 != 0 {
            return Err(kind("setuid or setgid"));
        }
        match entry.header().entry_type() {
            EntryType::Regular => {
                let mut content = Vec::new();
                let size = entry.size();
                entry
                    .by_ref()
                    .take(unpacking.remaining_bytes() + 1)
                    .read_to_end(&mut content)
                    .map_err(damaged)?;
                if content.len() as u64 > unpacking.remaining_bytes() {
                    return Err(unpacking.too_large());
                }
                if content.len() as u64 != size {
                    return Err(ArchiveError::Damaged(format!("{name} ends early")));
                }
                unpacking.add_file(name, content, mode)?;
            }
            EntryType::Directory => unpacking.add_directory(name)?,
            // `git archive` writes a global header.
            EntryType::XGlobalHeader => {}
            EntryType::Symlink | EntryType::Link if links == LinkPolicy::Record => {
                unpacking.add_link(name)?
            }
            EntryType::Symlink => return Err(kind("a symbolic link")),
            EntryType::Link => return Err(kind("a hard link")),
            EntryType::Char | EntryType::Block => return Err(kind("a device")),
            EntryType::Fifo => return Err(kind("a pipe")),
            EntryType::GNUSparse => return Err(kind("sparse")),
            _ => return Err(kind("of an unknown kind")),
        }
    }
    refuse_rest(archive.into_inner()).map_err(damaged)?;
    Ok(unpacking.finish())
}

/// Refuses whatever follows the end of an archive, such as a second archive: other programs would
/// unpack it.
fn refuse_rest(mut stream: impl Read) -> io::Result<()> {
    let mut block = [0; 4096];
    loop {
        match stream.read(&mut block)? {
            0 => return Ok(()),
            len if block[..len].iter().all(|byte| *byte == 0) => {}
            _ => return Err(io::Error::other("something follows its end")),
        }
    }
}

/// Refuses a file that its extended header marks as sparse.
fn refuse_sparse(entry: &mut ::tar::Entry<'_, impl Read>, name: &str) -> Result<(), ArchiveError> {
    let extensions = entry
        .pax_extensions()
        .map_err(|error| ArchiveError::Damaged(error.to_string()))?;
    for extension in extensions.into_iter().flatten() {
        let extension = extension.map_err(|error| ArchiveError::Damaged(error.to_string()))?;
        if extension.key_bytes().starts_with(b"GNU.sparse") {
            return Err(ArchiveError::Kind {
                name: name.to_owned(),
                what: "sparse",
            });
        }
    }
    Ok(())
}

/// A reader that fails beyond a limit.
struct BoundedReader<R> {
    stream: R,
    remaining: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        match self.remaining.checked_sub(read as u64) {
            Some(left) => self.remaining = left,
            None => return Err(io::ErrorKind::FileTooLarge.into()),
        }
        Ok(read)
    }
}
