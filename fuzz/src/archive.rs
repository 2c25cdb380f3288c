//! Archives of skills.

use std::collections::BTreeMap;
use stead_skills::{ArchiveFormat, Bundle};
use stead_vfs::VPath;

pub(crate) const TOKENS: &[&str] = &[
    "../",
    "/",
    "./",
    "\\",
    "\0",
    "C:",
    "~",
    "a/b\n",
    "A\n",
    "a\n",
    "é",
    "e\u{301}",
    "SKILL.md",
    "PK\u{1}\u{2}",
    "PK\u{3}\u{4}",
    "PK\u{5}\u{6}",
    "\u{0}\u{0}",
    "dir/\n",
    "//",
];

/// Asserts of the input as a zip, a tar and a compressed tar, and of a valid zip whose names are the
/// lines of the input:
///
/// - No file is outside of the root of the archive.
/// - No two files are the same file on a machine that ignores case, and none is the folder of
///   another.
/// - Entries and bytes are within the limits.
/// - The files of the valid zip have the content that was put in.
pub fn archive(data: &[u8]) {
    for format in [ArchiveFormat::Zip, ArchiveFormat::Tar, ArchiveFormat::TarGz] {
        if let Ok(bundle) = Bundle::from_archive(format, data) {
            check_bundle(&bundle);
        }
    }
    let entries: Vec<(&[u8], &[u8])> = data
        .split(|byte| *byte == b'\n')
        .take(20)
        .map(|name| (&name[..name.len().min(300)], &data[..data.len().min(64)]))
        .collect();
    let Ok(bundle) = Bundle::from_archive(ArchiveFormat::Zip, &build_zip(&entries)) else {
        return;
    };
    check_bundle(&bundle);
    for (path, file) in bundle.files() {
        let (name, content) = entries
            .iter()
            .find(|(name, _)| VPath::parse(&crate::text(name)).as_ref() == Ok(path))
            .copied()
            .unwrap_or_default();
        assert!(!name.is_empty(), "{path} was not put in");
        assert_eq!(file.content, content, "{path}");
    }
}

fn check_bundle(bundle: &Bundle) {
    let files = bundle.files();
    assert!(files.len() <= Bundle::MAX_ENTRIES, "too many files");
    let bytes: u64 = files.values().map(|file| file.content.len() as u64).sum();
    assert!(bytes <= Bundle::MAX_BYTES, "{bytes} bytes are too many");
    let mut seen: BTreeMap<String, &VPath> = BTreeMap::new();
    for path in files.keys() {
        let text = path.as_str();
        let outside = text.starts_with('/')
            || text.split('/').any(|part| matches!(part, "" | "." | ".."))
            || text.contains(['\\', '\0']);
        assert!(!outside, "outside of its root: {text:?}");
        assert_eq!(VPath::parse(text).as_ref(), Ok(path), "a path of its own");
        let other = seen.insert(text.to_lowercase(), path);
        assert_eq!(other, None, "the same file as {text:?}");
        let below = path.parent().is_some_and(|dir| files.contains_key(&dir));
        assert!(!below, "below a file: {text:?}");
    }
}

/// Builds a zip of stored entries, in which all checksums and sizes are right.
fn build_zip(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in entries {
        let offset = out.len() as u32;
        let mut sum = flate2::Crc::new();
        sum.update(content);
        // Version, flags, method, time, checksum, sizes, and the lengths of name and extra field.
        let mut header = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        header.extend(sum.sum().to_le_bytes());
        header.extend((content.len() as u32).to_le_bytes());
        header.extend((content.len() as u32).to_le_bytes());
        header.extend((name.len() as u16).to_le_bytes());
        header.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&header);
        out.extend(*name);
        out.extend(*content);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&header);
        // Comment, disk, internal and external attributes (a file with mode 0644).
        directory.extend([0; 6]);
        directory.extend((0o100_644_u32 << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(*name);
    }
    let count = (entries.len() as u16).to_le_bytes();
    let start = (out.len() as u32).to_le_bytes();
    let size = (directory.len() as u32).to_le_bytes();
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count);
    out.extend(count);
    out.extend(size);
    out.extend(start);
    out.extend([0, 0]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zip_that_is_built_here_is_accepted() {
        let zip = build_zip(&[(b"a/SKILL.md", b"one"), (b"b.txt", b"")]);
        let bundle = Bundle::from_archive(ArchiveFormat::Zip, &zip).unwrap();
        let files: Vec<_> = bundle
            .files()
            .iter()
            .map(|(path, file)| (path.as_str(), &file.content[..]))
            .collect();
        assert_eq!(files, [("a/SKILL.md", &b"one"[..]), ("b.txt", b"")]);
    }
}
