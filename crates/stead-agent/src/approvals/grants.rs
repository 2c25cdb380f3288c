//! What people allowed for good: one document of the place, per agent and owner.

use super::ApprovalError;
use crate::budget::shared_document;
use crate::{Agent, AgentError};
use serde::{Deserialize, Serialize};
use stead_core::{Owner, RuleId};
use stead_gate::{Grant, GrantScope};
use stead_store::DocVersion;

/// The document.
const GRANTS_KEY: &str = "approvals/granted";
/// More rules than a person can look through are no rules of a person.
const MAX_GRANTS: usize = 500;
/// Digits of an id.
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

impl Agent {
    /// What people allowed `owner` for good, oldest first.
    pub async fn grants(&self, owner: &Owner) -> Result<Vec<Grant>, AgentError> {
        let book: GrantDocument =
            shared_document::read(&self.parts.place.state(owner), GRANTS_KEY).await?;
        Ok(book.grants)
    }

    /// Allows calls of `tool` for good. The same rule is not kept twice.
    ///
    /// It answers the rules that asked, and no others.
    pub async fn grant(
        &self,
        owner: &Owner,
        tool: &str,
        what: GrantScope,
        asked: &AskReason,
        by: &str,
    ) -> Result<Grant, AgentError> {
        let state = self.parts.place.state(owner);
        let made = shared_document::update(
            &state,
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

    /// Takes a rule back: from the next run on its calls ask again. `id` may be the beginning of
    /// one.
    pub async fn revoke(&self, owner: &Owner, id: &str) -> Result<Grant, AgentError> {
        let state = self.parts.place.state(owner);
        let gone = shared_document::update(
            &state,
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
        // The first digits are the time, the last ones chance.
        let id = any[any.len() - ID_DIGITS..].to_owned();
        if grants.iter().all(|grant| grant.id != id) {
            return id;
        }
    }
}
