//! The store of grants: one document of the place, per agent and owner.
//!
//! Effects: the clock, randomness, the store (writes).

use super::{ApprovalError, GrantKey, GrantKeys};
use crate::{AgentError, shared_document};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stead_core::RuleId;
use stead_gate::{Grant, GrantScope};
use stead_place::OwnerState;
use stead_store::DocVersion;

/// The key of the document.
const GRANTS_KEY: &str = "approvals/granted";
/// The largest number of grants: more could not be reviewed by a person.
const MAX_GRANTS: usize = 500;
/// The length of an id.
const ID_DIGITS: usize = 8;

#[derive(Debug, Serialize, Deserialize)]
struct GrantDocument {
    version: u32,
    grants: Vec<StoredGrant>,
}

/// A grant as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredGrant {
    #[serde(flatten)]
    grant: Grant,
    /// Proves that the person gave the grant on this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
}

impl Default for GrantDocument {
    fn default() -> Self {
        Self {
            version: 1,
            grants: Vec::new(),
        }
    }
}

/// Why a call was asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskReason {
    /// The rules that asked.
    pub rules: Vec<RuleId>,
    /// The sentence that the person was shown.
    pub reason: String,
}

/// The grants of one owner.
///
/// With [`GrantKeys`], only grants that are sealed with the person's key count: others came with the
/// folder.
#[derive(Debug, Clone)]
pub struct GrantStore {
    state: OwnerState,
    keys: Option<Arc<dyn GrantKeys>>,
}

/// A grant to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant<'a> {
    /// The tool whose calls are allowed.
    pub tool: &'a str,
    /// Which calls are allowed.
    pub what: GrantScope,
    /// Why it was asked. The grant answers the rules that asked and no others.
    pub asked: &'a AskReason,
    /// The person who gave it.
    pub by: &'a str,
}

impl GrantStore {
    pub(crate) fn new(state: OwnerState, keys: Option<Arc<dyn GrantKeys>>) -> Self {
        Self { state, keys }
    }

    /// Returns all grants that count, oldest first.
    pub async fn list(&self) -> Result<Vec<Grant>, AgentError> {
        let book: GrantDocument = shared_document::read(&self.state, GRANTS_KEY).await?;
        let stored = book.grants.into_iter();
        let Some(keys) = self.keys.as_ref().filter(|_| stored.len() > 0) else {
            return Ok(stored.map(|stored| stored.grant).collect());
        };
        let Some(key) = keys.key().map_err(ApprovalError::GrantKey)? else {
            return Ok(Vec::new());
        };
        let own = stored.filter(|stored| self.is_sealed(stored, &key));
        Ok(own.map(|stored| stored.grant).collect())
    }

    fn is_sealed(&self, stored: &StoredGrant, key: &GrantKey) -> bool {
        let text = self.sealed_text(&stored.grant);
        let seal = stored.seal.as_deref();
        seal.is_some_and(|seal| key.is_seal_of(&text, seal))
    }

    /// Returns what the seal of a grant is made of. It names whose grants these are.
    fn sealed_text(&self, grant: &Grant) -> Vec<u8> {
        let text = serde_json::json!([self.state.space.as_str(), grant]);
        text.to_string().into_bytes()
    }

    /// Adds a grant. If there is an equal one already, that one is returned.
    pub async fn add(&self, new: NewGrant<'_>) -> Result<Grant, AgentError> {
        let NewGrant {
            tool,
            what,
            asked,
            by,
        } = new;
        let key = match &self.keys {
            Some(keys) => Some(keys.key_or_new().map_err(ApprovalError::GrantKey)?),
            None => None,
        };
        let counts = |stored: &StoredGrant| match &key {
            Some(key) => self.is_sealed(stored, key),
            None => true,
        };
        let made = shared_document::update(
            &self.state,
            GRANTS_KEY,
            |book: &mut GrantDocument| -> Result<Grant, AgentError> {
                let is_same = |stored: &&StoredGrant| {
                    let grant = &stored.grant;
                    grant.tool == tool && grant.what == what && grant.rules == asked.rules
                };
                let mut same = book.grants.iter().filter(is_same);
                if let Some(same) = same.find(|stored| counts(stored)) {
                    return Ok(same.grant.clone());
                }
                if book.grants.len() >= MAX_GRANTS {
                    return Err(ApprovalError::TooManyGrants(MAX_GRANTS).into());
                }
                let id = fresh_id(&book.grants);
                let at = jiff::Timestamp::now();
                let tool = tool.to_owned();
                let rule = asked.reason.clone();
                let rules = asked.rules.clone();
                let by = by.to_owned();
                let grant = Grant {
                    id,
                    tool,
                    what: what.clone(),
                    rule,
                    rules,
                    by,
                    at,
                };
                let text = self.sealed_text(&grant);
                book.grants.push(StoredGrant {
                    grant: grant.clone(),
                    seal: key.as_ref().map(|key| key.seal(&text)),
                });
                Ok(grant)
            },
        );
        made.await
    }

    /// Removes a grant: from the next run on, its calls ask again. `id` may be the beginning of an
    /// id.
    pub async fn revoke(&self, id: &str) -> Result<Grant, AgentError> {
        let gone = shared_document::update(
            &self.state,
            GRANTS_KEY,
            |book: &mut GrantDocument| -> Result<Grant, AgentError> {
                let grants = book.grants.iter().map(|stored| &stored.grant);
                let like = |grant: &&Grant| !id.is_empty() && grant.id.starts_with(id);
                let mut found: Vec<Grant> = grants.filter(like).cloned().collect();
                match (found.pop(), found.is_empty()) {
                    (Some(grant), true) => {
                        book.grants.retain(|other| other.grant.id != grant.id);
                        Ok(grant)
                    }
                    (Some(_), false) => Err(ApprovalError::AmbiguousGrant(id.to_owned()).into()),
                    (None, _) => Err(ApprovalError::NoSuchGrant(id.to_owned()).into()),
                }
            },
        );
        gone.await
    }
}

fn fresh_id(grants: &[StoredGrant]) -> String {
    loop {
        let any = DocVersion::fresh().to_string();
        // The first digits are the time, the last ones are random.
        let id = any[any.len() - ID_DIGITS..].to_owned();
        if grants.iter().all(|stored| stored.grant.id != id) {
            return id;
        }
    }
}
