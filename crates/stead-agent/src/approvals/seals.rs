//! Proofs that the person decided something on this account: the permission mode of a session, a
//! yes to a call, a command in an inbox. They lie in files that may have come with a folder from
//! elsewhere; what they allow counts only if it is sealed with the person's key.
//!
//! Effects: the clock, randomness.

use super::{GrantKey, GrantKeys};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{
    CallState, Decision, DecisionKind, Entry, PermissionMode, SessionChange, SessionId,
    SessionState, args_hash,
};
use stead_store::Space;

/// The key of the person, as this process knows it.
#[derive(Debug)]
pub(crate) struct PersonKey {
    keys: Arc<dyn GrantKeys>,
    known: Mutex<Option<GrantKey>>,
}

impl PersonKey {
    pub(crate) fn new(keys: Arc<dyn GrantKeys>) -> Self {
        Self {
            keys,
            known: Mutex::new(None),
        }
    }

    /// Returns the key. A key that cannot be read seals nothing.
    fn known(&self) -> Option<GrantKey> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = self.keys.key().ok().flatten();
        }
        known.clone()
    }

    /// Returns the key, and makes it if there is none. If it cannot be kept, the key of this process
    /// takes its place: what it seals counts until the process ends.
    fn known_or_new(&self) -> GrantKey {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get_or_insert_with(|| self.keys.key_or_new().unwrap_or_else(|_| process_key()))
            .clone()
    }
}

/// Returns a key that nobody else knows.
fn process_key() -> GrantKey {
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(uuid::Uuid::now_v7());
    }
    GrantKey::new(hash.finalize().into())
}

/// The seals of one session.
///
/// Without a key everything counts: the program vouches for its folders, or the files lie in a store
/// whose address and password let everybody in who can write there.
#[derive(Debug, Clone)]
pub struct SessionSeals {
    key: Option<Arc<PersonKey>>,
    /// Whose session it is.
    space: Space,
    session: SessionId,
}

impl SessionSeals {
    pub(crate) fn new(key: Option<Arc<PersonKey>>, space: Space, session: SessionId) -> Self {
        Self {
            key,
            space,
            session,
        }
    }

    /// Returns the seal of something that the person decided now.
    fn seal(&self, what: &Value) -> Option<String> {
        let key = self.key.as_ref()?.known_or_new();
        Some(key.seal(&self.sealed_text(what)))
    }

    /// Whether the person decided this.
    fn counts(&self, what: &Value, seal: Option<&str>) -> bool {
        let Some(key) = &self.key else {
            return true;
        };
        let known = || key.known();
        seal.is_some_and(|seal| {
            known().is_some_and(|key| key.is_seal_of(&self.sealed_text(what), seal))
        })
    }

    fn sealed_text(&self, what: &Value) -> Vec<u8> {
        let text = json!([self.space.as_str(), self.session.as_str(), what]);
        text.to_string().into_bytes()
    }

    /// Returns the seal of a row of the session's inbox, made of its text.
    pub fn seal_of_row(&self, row: &str) -> Option<String> {
        self.seal(&row_text(row))
    }

    /// Whether the person put this row into the session's inbox.
    pub fn row_counts(&self, row: &str, seal: Option<&str>) -> bool {
        self.counts(&row_text(row), seal)
    }

    /// Whether the person chose this permission mode for the session.
    pub(crate) fn mode_counts(&self, mode: PermissionMode, seal: Option<&str>) -> bool {
        self.counts(&mode_text(mode), seal)
    }

    /// Whether the person said yes to the call `id` of a run; true if nobody said so.
    pub(crate) fn approval_counts(&self, call: CallName<'_>, state: &CallState) -> bool {
        match state {
            CallState::Approved {
                args_hash,
                files,
                seal,
            } => self.counts(&approval_text(call, args_hash, files), seal.as_deref()),
            CallState::New
            | CallState::Asked { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => true,
        }
    }

    /// Returns an entry that the person makes now with its seal, if it lets calls do more.
    pub(crate) fn sealed(&self, entry: Entry, state: &SessionState) -> Entry {
        match entry {
            Entry::Set(mut set) => {
                if let SessionChange::Mode { to, seal } = &mut set.change {
                    *seal = self.seal(&mode_text(*to));
                }
                Entry::Set(set)
            }
            Entry::Decision(decision) => {
                let seal = approved(&decision, state).and_then(|what| self.seal(&what));
                Entry::Decision(Decision { seal, ..decision })
            }
            other @ (Entry::Session(_)
            | Entry::User(_)
            | Entry::Model(_)
            | Entry::Call(_)
            | Entry::Result(_)
            | Entry::Ask(_)
            | Entry::Notice(_)
            | Entry::Steer(_)
            | Entry::Pin(_)
            | Entry::Compaction(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_)) => other,
        }
    }
}

/// The names of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallName<'a> {
    pub(crate) run: &'a str,
    pub(crate) id: &'a str,
    pub(crate) tool: &'a str,
}

fn row_text(row: &str) -> Value {
    json!(["row", row])
}

fn mode_text(mode: PermissionMode) -> Value {
    json!(["mode", mode])
}

fn approval_text(
    CallName { run, id, tool }: CallName<'_>,
    args_hash: &str,
    files: &BTreeMap<String, String>,
) -> Value {
    json!(["approval", run, id, tool, args_hash, files])
}

/// Returns what a decision allows; none if it allows nothing.
fn approved(decision: &Decision, state: &SessionState) -> Option<Value> {
    let pending = state.run.as_ref()?.pending.find(&decision.id)?;
    let CallState::Asked { terms, .. } = &pending.state else {
        return None;
    };
    let call = CallName {
        run: decision.run.as_str(),
        id: &decision.id,
        tool: &pending.call.name,
    };
    match decision.kind() {
        DecisionKind::Approve => Some(approval_text(call, &decision.args_hash, &terms.files)),
        DecisionKind::Edit => {
            let hash = args_hash(decision.args.as_ref()?);
            Some(approval_text(call, &hash, &BTreeMap::new()))
        }
        DecisionKind::Reject | DecisionKind::Respond => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Keys(Result<[u8; 32], String>);

    impl GrantKeys for Keys {
        fn key(&self) -> Result<Option<GrantKey>, String> {
            self.key_or_new().map(Some)
        }

        fn key_or_new(&self) -> Result<GrantKey, String> {
            self.0.clone().map(GrantKey::new)
        }
    }

    fn seals(key: Result<[u8; 32], String>, session: &str) -> SessionSeals {
        let key = Arc::new(PersonKey::new(Arc::new(Keys(key))));
        let session = SessionId::new(session).unwrap();
        SessionSeals::new(Some(key), Space::new(["a"]), session)
    }

    #[test]
    fn a_seal_counts_for_one_person_one_session_and_one_thing() {
        let own = seals(Ok([1; 32]), "s");
        let seal = own.seal(&mode_text(PermissionMode::Bypass));
        let seal = seal.as_deref();
        assert!(own.mode_counts(PermissionMode::Bypass, seal));
        assert!(!own.mode_counts(PermissionMode::AcceptEdits, seal));
        assert!(!own.mode_counts(PermissionMode::Bypass, None));
        assert!(!own.row_counts("bypass", seal));
        assert!(!seals(Ok([2; 32]), "s").mode_counts(PermissionMode::Bypass, seal));
        assert!(!seals(Ok([1; 32]), "t").mode_counts(PermissionMode::Bypass, seal));
        let anybody = SessionSeals::new(None, Space::new(["a"]), SessionId::new("s").unwrap());
        assert!(anybody.mode_counts(PermissionMode::Bypass, None));
    }

    #[test]
    fn without_a_place_for_the_key_seals_count_in_their_process() {
        let of_process = seals(Err("read-only".to_owned()), "s");
        assert!(!of_process.mode_counts(PermissionMode::Bypass, None));
        let seal = of_process.seal(&mode_text(PermissionMode::Bypass));
        assert!(of_process.mode_counts(PermissionMode::Bypass, seal.as_deref()));
        let other = seals(Err("read-only".to_owned()), "s");
        assert!(!other.mode_counts(PermissionMode::Bypass, seal.as_deref()));
    }
}
