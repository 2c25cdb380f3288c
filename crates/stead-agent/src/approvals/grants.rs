//! The store of grants: one document of the place, per agent and owner.
//!
//! Effects: the clock, randomness, the store (writes).

use super::ApprovalError;
use crate::{AgentError, shared_document};
use serde::{Deserialize, Serialize};
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
    grants: Vec<Grant>,
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
#[derive(Debug, Clone)]
pub struct GrantStore {
    state: OwnerState,
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
    pub(crate) fn new(state: OwnerState) -> Self {
        Self { state }
    }

    /// Returns all grants, oldest first.
    pub async fn list(&self) -> Result<Vec<Grant>, AgentError> {
        let book: GrantDocument = shared_document::read(&self.state, GRANTS_KEY).await?;
        Ok(book.grants)
    }

    /// Adds a grant. If there is an equal one already, that one is returned.
    pub async fn add(&self, new: NewGrant<'_>) -> Result<Grant, AgentError> {
        let NewGrant {
            tool,
            what,
            asked,
            by,
        } = new;
        let made = shared_document::update(
            &self.state,
            GRANTS_KEY,
            |book: &mut GrantDocument| -> Result<Grant, AgentError> {
                let is_same = |grant: &&Grant| {
                    grant.tool == tool && grant.what == what && grant.rules == asked.rules
                };
                if let Some(same) = book.grants.iter().find(is_same) {
                    return Ok(same.clone());
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
                book.grants.push(grant.clone());
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
                let like = |grant: &&Grant| !id.is_empty() && grant.id.starts_with(id);
                let mut found: Vec<Grant> = book.grants.iter().filter(like).cloned().collect();
                match (found.pop(), found.is_empty()) {
                    (Some(grant), true) => {
                        book.grants.retain(|other| other.id != grant.id);
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

fn fresh_id(grants: &[Grant]) -> String {
    loop {
        let any = DocVersion::fresh().to_string();
        // The first digits are the time, the last ones are random.
        let id = any[any.len() - ID_DIGITS..].to_owned();
        if grants.iter().all(|grant| grant.id != id) {
            return id;
        }
    }
}
