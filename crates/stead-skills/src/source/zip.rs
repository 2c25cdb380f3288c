//! Reading `.zip` archives of skills.
//!
//! This reader exists for what it refuses. Libraries index entries by name, so that a duplicate name
//! goes unnoticed, and trust the central directory where the entries themselves say otherwise. Here
//! name and method are read in both and must agree; size and checksum are those of the central
//! directory, and the content must have them. Only what `zip` writes by default is accepted: stored
//! or deflated, one disk, no encryption, no 64-bit extension.
//!
//! Effects: none.

use super::archive::{ArchiveError, Unpacker, entry_name, max_unpacked_bytes};
use super::bundle::Bundle;
use std::io::Read;
use std::ops::Range;

const END: &[u8; 4] = b"PK\x05\x06";
const CENTRAL: &[u8; 4] = b"PK\x01\x02";
const LOCAL: &[u8; 4] = b"PK\x03\x04";
const END_BYTES: usize = 22;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
const MAX_COMMENT_BYTES: usize = u16::MAX as usize;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The flags for encryption, patches, strong encryption and masked headers.
const REFUSED_FLAGS: u16 = 1 | 1 << 5 | 1 << 6 | 1 << 13;
const FILE_TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// An entry as the central directory describes it.
struct ZipEntry<'a> {
    name: &'a str,
    flags: u16,
    method: u16,
    crc32: u32,
    packed: usize,
    size: u64,
    mode: u32,
    offset: usize,
}

/// Reads the files of a zip.
pub(crate) fn read(packed: &[u8]) -> Result<Bundle, ArchiveError> {
    let directory = find_directory(packed)?;
    let data_end = directory.start;
    let mut unpacking = Unpacker::new(max_unpacked_bytes(packed.len() as u64));
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut at = directory.start;
    while at < directory.end {
        unpacking.count_entry()?;
        let (entry, next) = parse_central_entry(packed, at)?;
        at = next;
        check_entry(&entry)?;
        let range = entry_data(packed, &entry, data_end)?;
        taken.push(entry.offset..range.end);
        if entry.name.ends_with('/') || entry.mode & FILE_TYPE == DIRECTORY {
            if entry.size != 0 {
                return Err(damaged(format!(
                    "the directory {} has a content",
                    entry.name
                )));
            }
            unpacking.add_directory(entry.name)?;
            continue;
        }
        let content = unpack(&packed[range], &entry, &unpacking)?;
        unpacking.add_file(entry.name, content, entry.mode)?;
    }
    taken.sort_by_key(|range| range.start);
    if taken.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Err(damaged("one entry lies inside another"));
    }
    Ok(unpacking.finish())
}

fn damaged(reason: impl Into<String>) -> ArchiveError {
    ArchiveError::Damaged(reason.into())
}

/// The position of the central directory.
fn find_directory(packed: &[u8]) -> Result<Range<usize>, ArchiveError> {
    let earliest = packed.len().saturating_sub(END_BYTES + MAX_COMMENT_BYTES);
    let ends = (earliest..packed.len().saturating_sub(END_BYTES - 1)).rev();
    // The comment must end at the last byte, so that the file has only one reading.
    let is_end = |at: &usize| {
        packed[*at..].starts_with(END)
            && u16_at(packed, at + 20)
                .is_ok_and(|comment| at + END_BYTES + usize::from(comment) == packed.len())
    };
    let end = ends
        .into_iter()
        .find(is_end)
        .ok_or_else(|| damaged("it is not a zip"))?;
    let disk = u16_at(packed, end + 4)?;
    let start_disk = u16_at(packed, end + 6)?;
    let here = u16_at(packed, end + 8)?;
    let total = u16_at(packed, end + 10)?;
    let size = u32_at(packed, end + 12)?;
    let offset = u32_at(packed, end + 16)?;
    if disk != 0 || start_disk != 0 || here != total {
        return Err(damaged("it is one of several disks"));
    }
    if total == u16::MAX || size == u32::MAX || offset == u32::MAX {
        return Err(damaged("it uses the 64-bit extension"));
    }
    let start = offset as usize;
    let size = size as usize;
    if start.checked_add(size) != Some(end) {
        return Err(damaged("its directory is not where it should be"));
    }
    let mut at = start;
    for _ in 0..total {
        at = parse_central_entry(packed, at)?.1;
    }
    if at == end {
        Ok(start..end)
    } else {
        Err(damaged(
            "its directory has another number of entries than it says",
        ))
    }
}

/// Reads the entry of the central directory at `at`, and returns where the next begins.
fn parse_central_entry(packed: &[u8], at: usize) -> Result<(ZipEntry<'_>, usize), ArchiveError> {
    if !packed
        .get(at..)
        .is_some_and(|rest| rest.starts_with(CENTRAL))
    {
        return Err(damaged("its directory is damaged"));
    }
    let name_bytes = usize::from(u16_at(packed, at + 28)?);
    let extra = usize::from(u16_at(packed, at + 30)?);
    let comment = usize::from(u16_at(packed, at + 32)?);
    let name = slice(packed, at + CENTRAL_BYTES, name_bytes)?;
    let entry = ZipEntry {
        name: entry_name(name)?,
        flags: u16_at(packed, at + 8)?,
        method: u16_at(packed, at + 10)?,
        crc32: u32_at(packed, at + 16)?,
        packed: u32_at(packed, at + 20)? as usize,
        size: u64::from(u32_at(packed, at + 24)?),
        mode: u32_at(packed, at + 38)? >> 16,
        offset: u32_at(packed, at + 42)? as usize,
    };
    Ok((entry, at + CENTRAL_BYTES + name_bytes + extra + comment))
}

fn check_entry(entry: &ZipEntry<'_>) -> Result<(), ArchiveError> {
    let kind = |what| {
        Err(ArchiveError::Kind {
            name: entry.name.to_owned(),
            what,
        })
    };
    match entry.mode & FILE_TYPE {
        0 | REGULAR | DIRECTORY => {}
        0o120_000 => return kind("a symbolic link"),
        0o060_000 | 0o020_000 => return kind("a device"),
        0o010_000 => return kind("a pipe"),
        _ => return kind("of an unknown kind"),
    }
    if entry.mode & 0o6000 != 0 {
        return kind("setuid or setgid");
    }
    if entry.flags & REFUSED_FLAGS != 0 {
        return Err(damaged(format!("{} is encrypted", entry.name)));
    }
    if !matches!(entry.method, STORED | DEFLATED) {
        return Err(damaged(format!(
            "{} is packed in an unknown way",
            entry.name
        )));
    }
    Ok(())
}

/// Returns the bytes of an entry, whose local header must agree with the central directory.
fn entry_data(
    packed: &[u8],
    entry: &ZipEntry<'_>,
    end: usize,
) -> Result<Range<usize>, ArchiveError> {
    let at = entry.offset;
    if !packed.get(at..).is_some_and(|rest| rest.starts_with(LOCAL)) {
        return Err(damaged(format!(
            "{} is not at the offset in the central directory",
            entry.name
        )));
    }
    let name = slice(
        packed,
        at + LOCAL_BYTES,
        usize::from(u16_at(packed, at + 26)?),
    )?;
    if name != entry.name.as_bytes() || u16_at(packed, at + 8)? != entry.method {
        return Err(damaged(format!(
            "{} has two names or two kinds",
            entry.name
        )));
    }
    let start = at + LOCAL_BYTES + name.len() + usize::from(u16_at(packed, at + 28)?);
    match start.checked_add(entry.packed) {
        Some(stop) if stop <= end => Ok(start..stop),
        Some(_) | None => Err(damaged(format!("{} ends early", entry.name))),
    }
}

/// Unpacks the content, and checks its size and checksum.
fn unpack(
    data: &[u8],
    entry: &ZipEntry<'_>,
    unpacking: &Unpacker,
) -> Result<Vec<u8>, ArchiveError> {
    let mut content = Vec::new();
    let room = unpacking.remaining_bytes() + 1;
    let read = match entry.method {
        STORED => data.take(room).read_to_end(&mut content),
        _ => flate2::read::DeflateDecoder::new(data)
            .take(room)
            .read_to_end(&mut content),
    };
    read.map_err(|error| damaged(format!("{}: {error}", entry.name)))?;
    if content.len() as u64 == room {
        return Err(unpacking.too_large());
    }
    let mut sum = flate2::Crc::new();
    sum.update(&content);
    if content.len() as u64 != entry.size || sum.sum() != entry.crc32 {
        return Err(damaged(format!(
            "{} is not what the directory says",
            entry.name
        )));
    }
    Ok(content)
}

fn slice(packed: &[u8], at: usize, length: usize) -> Result<&[u8], ArchiveError> {
    packed
        .get(at..at.saturating_add(length))
        .ok_or_else(|| damaged("it ends early"))
}

fn u16_at(packed: &[u8], at: usize) -> Result<u16, ArchiveError> {
    let bytes = slice(packed, at, 2)?;
    Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn u32_at(packed: &[u8], at: usize) -> Result<u32, ArchiveError> {
    let bytes = slice(packed, at, 4)?;
    Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}
