//! Whether a folder may act before a person has trusted it.
//!
//! [`acting_parts`] lists what a folder would do by itself: run hooks, name endpoints, allow
//! commands, take variables of the process. [`TrustRequest`] adds the fingerprint of the files that
//! these parts come from. A [`TrustJudge`] decides; a folder that is not trusted is opened without
//! its acting parts ([`restrict`]). [`TrustRecord`] is what a person decided about a folder. Reads
//! the folder's files; writes nothing.
//!
//! Effects: workspace files (reads).

mod acting;
mod fingerprint;
mod named_files;
mod named_lookup;
mod record;
mod restrict;

pub use acting::{ActingKind, ActingPart, acting_parts};
pub(crate) use acting::{DOTENV_KEY, part, server_parts};
pub use fingerprint::TrustFingerprint;
pub(crate) use named_files::{CommandNames, named_in_line, named_in_words, names_of_hook};
pub(crate) use named_lookup::{TooManyNames, named_files};
pub use record::{PartChange, RecordedPart, TrustAnswer, TrustRecord};
pub(crate) use restrict::{placeholder_variable, restrict};

use crate::Definition;
use fingerprint::FileDigests;
use std::fmt;
use stead_core::Redactor;
use stead_vfs::{VPath, Vfs};

/// The parts of a folder that act, and the fingerprint of their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRequest {
    /// The parts with their own fingerprints, in the order in which they are shown.
    pub parts: Vec<RecordedPart>,
    /// The fingerprint of the files that the parts come from, or why there is none. A folder
    /// without one cannot be trusted.
    pub fingerprint: Result<TrustFingerprint, String>,
}

impl TrustRequest {
    /// Returns the request of a folder; none if nothing in it acts.
    pub(crate) async fn of(definition: &Definition, files: &dyn Vfs) -> Option<Self> {
        let mut parts = acting_parts(definition);
        if parts.is_empty() {
            return None;
        }
        let redactor = Redactor::new(definition.config.secrets.iter().cloned());
        let mut too_many = None;
        for part in &mut parts {
            part.summary = redactor.redact_owned(std::mem::take(&mut part.summary));
            if let Err(why) = add_named_files(part, files).await {
                too_many = Some(format!("{}: {why}", part.source));
            }
        }
        let digests = match too_many {
            Some(why) => Err(why),
            None => FileDigests::read(&parts, files).await,
        };
        let recorded = parts.iter().map(|part| {
            let alone = std::slice::from_ref(part);
            let fingerprint = digests.as_ref().ok().map(|read| read.fingerprint(alone));
            RecordedPart {
                kind: part.kind,
                source: part.source.clone(),
                summary: part.summary.clone(),
                fingerprint,
            }
        });
        Some(Self {
            parts: recorded.collect(),
            fingerprint: digests
                .as_ref()
                .map(|read| read.fingerprint(&parts))
                .map_err(Clone::clone),
        })
    }
}

/// Adds the files of the folder that the command of a part names.
async fn add_named_files(part: &mut ActingPart, files: &dyn Vfs) -> Result<(), TooManyNames> {
    let names = CommandNames {
        words: std::mem::take(&mut part.names),
        ..CommandNames::default()
    };
    if !names.words.is_empty() {
        let found = named_files(&names, &VPath::root(), files).await;
        part.files.extend(found?);
    }
    part.names = names.words;
    Ok(())
}

/// What becomes of a folder with parts that act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustDecision {
    /// The folder is opened as it is.
    Trusted,
    /// The folder is opened without the parts that act, for reading alone.
    Restricted,
    /// The folder is not opened, for this reason.
    Refused(String),
}

/// Decides whether a folder may act. It is asked each time a folder with acting parts is opened.
pub trait TrustJudge: fmt::Debug + Send + Sync {
    /// Decides about a folder. May ask a person, and may block while doing so.
    fn decide(&self, request: &TrustRequest) -> TrustDecision;
}

/// How far an opened folder was trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FolderTrust {
    /// Nothing in the folder acts by itself.
    #[default]
    NotNeeded,
    /// The folder acts: a person, or the program that opened it, trusts it.
    Trusted(TrustRequest),
    /// The folder does not act: what it would do was left out.
    Restricted(TrustRequest),
    /// The folder is not to be used, for this reason. It does not act.
    Refused(TrustRequest, String),
}

impl FolderTrust {
    /// Decides about a folder with this definition. Without a judge it is trusted.
    pub(crate) async fn decide(
        judge: Option<&dyn TrustJudge>,
        definition: &Definition,
        files: &dyn Vfs,
    ) -> Self {
        // A program that trusts all folders need not know what acts in them.
        let Some(judge) = judge else {
            return Self::NotNeeded;
        };
        let Some(request) = TrustRequest::of(definition, files).await else {
            return Self::NotNeeded;
        };
        match judge.decide(&request) {
            TrustDecision::Trusted => Self::Trusted(request),
            TrustDecision::Restricted => Self::Restricted(request),
            TrustDecision::Refused(reason) => Self::Refused(request, reason),
        }
    }

    /// Whether acting parts of the folder were left out.
    pub fn is_restricted(&self) -> bool {
        match self {
            Self::Restricted(_) | Self::Refused(..) => true,
            Self::NotNeeded | Self::Trusted(_) => false,
        }
    }

    /// Returns the request that was decided about, if one was.
    pub fn request(&self) -> Option<&TrustRequest> {
        match self {
            Self::NotNeeded => None,
            Self::Trusted(request) | Self::Restricted(request) | Self::Refused(request, _) => {
                Some(request)
            }
        }
    }
}

#[cfg(test)]
mod tests;
