//! The fingerprint of the files that a folder acts from.
//!
//! Effects: workspace files (reads).

use super::ActingPart;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use stead_vfs::{ReadRange, VPath, Vfs, VfsError};

/// The maximum size of a file that a folder acts from.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The SHA-256 over the sorted paths and the bytes of files that acting parts come from, and over
/// what the parts do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrustFingerprint(String);

/// The state of the files that the parts of a folder come from.
pub(super) struct FileDigests(BTreeMap<VPath, [u8; 32]>);

impl FileDigests {
    /// Reads the files of `parts`. A file that is not there counts as well, so that the fingerprint
    /// changes when it appears. A file that is too large to be read is an error.
    pub(super) async fn read(parts: &[ActingPart], files: &dyn Vfs) -> Result<Self, String> {
        let paths: BTreeSet<&VPath> = parts.iter().flat_map(|part| &part.files).collect();
        let mut digests = BTreeMap::new();
        for path in paths {
            digests.insert(path.clone(), digest_file(path, files).await?);
        }
        Ok(Self(digests))
    }

    /// Returns the fingerprint of these parts.
    pub(super) fn fingerprint(&self, parts: &[ActingPart]) -> TrustFingerprint {
        let paths: BTreeSet<&VPath> = parts.iter().flat_map(|part| &part.files).collect();
        let mut hash = Sha256::new();
        for path in paths {
            add_text(&mut hash, path.as_str());
            hash.update(self.0.get(path).unwrap_or(&[0; 32]));
        }
        // What a part does may depend on more than its files, and what a file means on the version
        // of this program.
        for part in parts {
            add_text(&mut hash, &format!("{:?}", part.kind));
            add_text(&mut hash, &part.source);
            add_text(&mut hash, &part.summary);
        }
        let digest = hash.finalize();
        TrustFingerprint(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Adds a text with its length, which keeps the end of one text apart from the start of the next.
fn add_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

async fn digest_file(path: &VPath, files: &dyn Vfs) -> Result<[u8; 32], String> {
    let mut hash = Sha256::new();
    match files.stat(path).await {
        Ok(stat) if stat.size > MAX_FILE_BYTES => {
            return Err(format!(
                "{path} has {} bytes, and at most {MAX_FILE_BYTES} of a file that acts are read",
                stat.size
            ));
        }
        Ok(_) => match files.read(path, ReadRange::ALL).await {
            Ok((bytes, _)) => {
                hash.update([1]);
                hash.update(&bytes);
            }
            // Such as a pipe: it is not read by others either.
            Err(error) => add_text(&mut hash, &error.to_string()),
        },
        Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => hash.update([0]),
        Err(error) => add_text(&mut hash, &error.to_string()),
    }
    Ok(hash.finalize().into())
}

impl fmt::Display for TrustFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
