//! The masks of an overlay: paths at which the lower layer is hidden.
//!
//! Effects: the clock, randomness, workspace files (writes).

use crate::{Expect, ReadRange, VPath, Version, Vfs, VfsError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The prefix of the overlay's own files at the root of the upper layer.
const RESERVED: &str = ".stead-overlay.";
const MASK_FILE: &str = ".stead-overlay.json";
/// The number of attempts to add a mask while others do so at the same time.
const MAX_TRIES: usize = 256;

/// The masks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Masks {
    masked: BTreeSet<String>,
}

impl Masks {
    /// Returns whether the lower layer is hidden at `path`.
    pub(super) fn hides(&self, path: &VPath) -> bool {
        let above = std::iter::successors(Some(path.clone()), VPath::parent);
        !self.masked.is_empty()
            && above
                .into_iter()
                .any(|path| self.masked.contains(path.as_str()))
    }

    fn add(&mut self, path: &VPath) {
        // A mask on a directory includes all masks below it.
        self.masked
            .retain(|masked| VPath::parse(masked).is_ok_and(|masked| !path.contains(&masked)));
        self.masked.insert(path.as_str().to_owned());
    }
}

/// Returns whether a path belongs to the overlay itself.
pub(super) fn is_reserved(path: &VPath) -> bool {
    path.parts()
        .next()
        .is_some_and(|first| first.starts_with(RESERVED))
}

/// Returns a new name among the overlay's own.
pub(super) fn fresh_name() -> Result<VPath, VfsError> {
    Ok(VPath::parse(&format!(
        "{RESERVED}{}",
        stead_store::DocVersion::fresh()
    ))?)
}

/// The file with the masks, and its content when it was last read.
#[derive(Debug)]
pub(super) struct MaskFile {
    upper: Arc<dyn Vfs>,
    last: Mutex<Option<(Version, Arc<Masks>)>>,
}

impl MaskFile {
    pub(super) fn new(upper: Arc<dyn Vfs>) -> Self {
        Self {
            upper,
            last: Mutex::default(),
        }
    }

    /// Returns the current masks.
    ///
    /// Must be called after reading the upper layer: a removal adds its mask first, so a path that
    /// is no longer in the upper layer is masked by then, and the lower one never shows for a
    /// moment.
    pub(super) async fn current(&self) -> Result<Arc<Masks>, VfsError> {
        let path = VPath::parse(MASK_FILE)?;
        let version = match self.upper.stat(&path).await {
            Ok(stat) => stat.version,
            Err(VfsError::NotFound(_)) => return Ok(Arc::default()),
            Err(other) => return Err(other),
        };
        match &*self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((known, masks)) if *known == version => return Ok(Arc::clone(masks)),
            Some(_) | None => {}
        }
        Ok(self
            .read(&path)
            .await?
            .map(|(_, masks)| masks)
            .unwrap_or_default())
    }

    async fn read(&self, path: &VPath) -> Result<Option<(Version, Arc<Masks>)>, VfsError> {
        let (text, version) = match self.upper.read(path, ReadRange::ALL).await {
            Ok(read) => read,
            Err(VfsError::NotFound(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        let masks: Arc<Masks> = serde_json::from_slice(&text)
            .map(Arc::new)
            .map_err(|e| invalid(path, &e))?;
        let read = (version, masks);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(read.clone());
        Ok(Some(read))
    }

    /// Hides the lower layer at `hidden` for good.
    pub(super) async fn add(&self, hidden: &VPath) -> Result<(), VfsError> {
        let path = VPath::parse(MASK_FILE)?;
        for _ in 0..MAX_TRIES {
            let (expect, mut masks) = match self.read(&path).await? {
                Some((version, masks)) => (Expect::Version(version), (*masks).clone()),
                None => (Expect::Absent, Masks::default()),
            };
            if masks.hides(hidden) {
                return Ok(());
            }
            masks.add(hidden);
            let text = serde_json::to_vec(&masks).map_err(|e| invalid(&path, &e))?;
            match self.upper.write(&path, text.into(), expect).await {
                Err(VfsError::Changed(_) | VfsError::Exists(_)) => {}
                written => return written.map(drop),
            }
        }
        Err(VfsError::Changed(hidden.clone()))
    }
}

fn invalid(path: &VPath, error: &serde_json::Error) -> VfsError {
    let source = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    VfsError::Io {
        path: path.clone(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_hides_what_is_at_and_below_it_and_swallows_others() {
        let p = |text| VPath::parse(text).unwrap();
        let mut masks = Masks::default();
        for path in ["a/b", "a/b/c", "a-b", "x"] {
            masks.add(&p(path));
        }
        let hidden =
            ["a", "a/b", "a/b/c/d", "a/bc", "a-b/c", "x", "."].map(|path| masks.hides(&p(path)));
        assert_eq!(hidden, [false, true, true, false, true, true, false]);
        masks.add(&p("a"));
        assert_eq!(masks.masked, ["a", "a-b", "x"].map(String::from).into());
    }
}
