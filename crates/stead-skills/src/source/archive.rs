//! Archives of skills, which are checked as a whole before any of their files is used.
//!
//! Effects: none.

use super::bundle::{Bundle, BundleFile, LinkPolicy};
use super::{tar, zip};
use bytes::Bytes;
use std::collections::BTreeMap;
use stead_vfs::VPath;

/// The maximum number of entries of an archive.
pub(crate) const MAX_ENTRIES: usize = 10_000;
/// The maximum size of all files of an archive, in bytes.
pub(crate) const MAX_UNPACKED_BYTES: u64 = 100 * 1024 * 1024;
/// The maximum size of the archive itself, in bytes.
pub(crate) const MAX_PACKED_BYTES: u64 = 100 * 1024 * 1024;
/// The maximum compression ratio of an archive that unpacks to more than
/// [`RATIO_EXEMPT_BYTES`].
const MAX_EXPANSION_RATIO: u64 = 200;
const RATIO_EXEMPT_BYTES: u64 = 1024 * 1024;

/// The format of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// `.zip`
    Zip,
    /// `.tar`
    Tar,
    /// `.tar.gz` or `.tgz`
    TarGz,
}

impl ArchiveFormat {
    /// Returns the format of a file of this name, if it is an archive.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        match () {
            () if ends(&[".zip"]) => Some(Self::Zip),
            () if ends(&[".tar.gz", ".tgz"]) => Some(Self::TarGz),
            () if ends(&[".tar"]) => Some(Self::Tar),
            () => None,
        }
    }
}

/// Why an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It does not have the format its name says, or is damaged.
    #[error("it cannot be read: {0}")]
    Damaged(String),
    /// An entry has a name that leaves the archive or means different files on different machines.
    #[error("the entry {name:?} {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An entry is neither a file nor a directory.
    #[error("the entry {name:?} is {what}, and only files and directories are taken")]
    Kind {
        /// The name.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// Two entries would be the same file.
    #[error("the entries {0:?} and {1:?} would be one file")]
    Collision(String, String),
    /// Too many entries.
    #[error("it has more than {MAX_ENTRIES} entries")]
    TooMany,
    /// The files are too large in total, or too large for the size of the archive.
    #[error("it unpacks to more than {0} bytes")]
    TooLarge(u64),
    /// The archive itself is too large to be read.
    #[error("the archive itself is larger than {0} bytes")]
    PackedTooLarge(u64),
}

impl Bundle {
    /// The maximum number of entries of an archive.
    pub const MAX_ENTRIES: usize = MAX_ENTRIES;
    /// The maximum size of all files of an archive, in bytes.
    pub const MAX_BYTES: u64 = MAX_UNPACKED_BYTES;

    /// Reads the files of an archive.
    pub fn from_archive(format: ArchiveFormat, packed: &[u8]) -> Result<Self, ArchiveError> {
        if packed.len() as u64 > MAX_PACKED_BYTES {
            return Err(ArchiveError::PackedTooLarge(MAX_PACKED_BYTES));
        }
        match format {
            ArchiveFormat::Zip => zip::read(packed),
            ArchiveFormat::Tar => tar::read(packed, packed.len() as u64, LinkPolicy::Refuse),
            ArchiveFormat::TarGz => tar::read(
                flate2::read::MultiGzDecoder::new(packed),
                packed.len() as u64,
                LinkPolicy::Refuse,
            ),
        }
    }
}

/// Returns how many bytes an archive of `packed` bytes may unpack to.
pub(crate) fn max_unpacked_bytes(packed: u64) -> u64 {
    packed
        .saturating_mul(MAX_EXPANSION_RATIO)
        .clamp(RATIO_EXEMPT_BYTES, MAX_UNPACKED_BYTES)
}

/// The files of an archive, each checked against those before it.
pub(crate) struct Unpacker {
    bundle: Bundle,
    /// Names as a file system that ignores case or normalises Unicode would store them.
    folded: BTreeMap<String, (String, ArchiveEntryKind)>,
    entries: usize,
    bytes: u64,
    allowance: u64,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArchiveEntryKind {
    File,
    Directory,
}

impl Unpacker {
    pub(crate) fn new(allowance: u64) -> Self {
        let bundle = Bundle::default();
        let folded = BTreeMap::new();
        Self {
            bundle,
            folded,
            entries: 0,
            bytes: 0,
            allowance,
        }
    }

    /// Counts an entry of any kind.
    pub(crate) fn count_entry(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            Err(ArchiveError::TooMany)
        } else {
            Ok(())
        }
    }

    /// Returns how many bytes the next file may have.
    pub(crate) fn remaining_bytes(&self) -> u64 {
        self.allowance - self.bytes
    }

    pub(crate) fn too_large(&self) -> ArchiveError {
        ArchiveError::TooLarge(self.allowance)
    }

    pub(crate) fn add_directory(&mut self, name: &str) -> Result<(), ArchiveError> {
        let path = entry_path(name.strip_suffix('/').unwrap_or(name))?;
        if path.is_root() {
            Ok(())
        } else {
            self.claim(&path, ArchiveEntryKind::Directory)
        }
    }

    pub(crate) fn add_link(&mut self, name: &str) -> Result<(), ArchiveError> {
        let path = entry_path(name)?;
        self.bundle.links.push(path);
        Ok(())
    }

    pub(crate) fn add_file(
        &mut self,
        name: &str,
        content: Vec<u8>,
        mode: u32,
    ) -> Result<(), ArchiveError> {
        let path = entry_path(name)?;
        if path.is_root() {
            return Err(bad_name(name, "is no name"));
        }
        self.bytes += content.len() as u64;
        if self.bytes > self.allowance {
            return Err(self.too_large());
        }
        self.claim(&path, ArchiveEntryKind::File)?;
        let executable = mode & 0o111 != 0;
        self.bundle.files.insert(
            path,
            BundleFile {
                content: Bytes::from(content),
                executable,
            },
        );
        Ok(())
    }

    pub(crate) fn finish(self) -> Bundle {
        self.bundle
    }

    /// Records the kinds of a path and of the directories above it.
    fn claim(&mut self, path: &VPath, entry: ArchiveEntryKind) -> Result<(), ArchiveError> {
        let mut above = path.parent();
        while let Some(dir) = above.filter(|dir| !dir.is_root()) {
            self.claim_one(&dir, ArchiveEntryKind::Directory)?;
            above = dir.parent();
        }
        self.claim_one(path, entry)
    }

    fn claim_one(&mut self, path: &VPath, entry: ArchiveEntryKind) -> Result<(), ArchiveError> {
        let name = path.as_str();
        match self.folded.get(&case_folded(name)) {
            Some((known, ArchiveEntryKind::Directory))
                if known == name && entry == ArchiveEntryKind::Directory =>
            {
                Ok(())
            }
            Some((known, _)) => Err(ArchiveError::Collision(known.clone(), name.to_owned())),
            None => {
                self.folded
                    .insert(case_folded(name), (name.to_owned(), entry));
                Ok(())
            }
        }
    }
}

/// Returns a name as a file system that ignores case and normalises Unicode would store it.
pub(crate) fn case_folded(name: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    name.nfc()
        .collect::<String>()
        .to_lowercase()
        .nfc()
        .collect()
}

fn bad_name(name: &str, reason: &'static str) -> ArchiveError {
    ArchiveError::Name {
        name: name.to_owned(),
        reason,
    }
}

/// Returns the path of an entry, if its name means the same on every machine.
fn entry_path(name: &str) -> Result<VPath, ArchiveError> {
    let bytes = name.as_bytes();
    let is_drive =
        bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.get(1) == Some(&b':');
    let reason = match () {
        () if name.contains('\0') => Some("contains a NUL"),
        () if name.chars().any(char::is_control) => Some("contains a control character"),
        () if name.contains('\\') => Some("contains a backslash"),
        () if name.starts_with('/') => Some("is absolute"),
        () if is_drive => Some("begins with a drive letter"),
        () if name.split('/').any(|part| part == "..") => Some("contains `..`"),
        () => None,
    };
    if let Some(reason) = reason {
        return Err(bad_name(name, reason));
    }
    let rest = name.strip_prefix("./").unwrap_or(name);
    if rest != "." && !rest.is_empty() && rest.split('/').any(|part| part.is_empty() || part == ".")
    {
        return Err(bad_name(name, "has an empty part"));
    }
    VPath::parse(rest).map_err(|_| bad_name(name, "is too long, or begins with `~`"))
}

/// Returns the name of an entry as text.
pub(crate) fn entry_name(name: &[u8]) -> Result<&str, ArchiveError> {
    std::str::from_utf8(name).map_err(|_| bad_name(&String::from_utf8_lossy(name), "is not UTF-8"))
}
