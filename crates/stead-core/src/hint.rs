//! Hints: what a person can do about an error.
//!
//! Effects: none.

/// A next step after an error.
///
/// Errors of the libraries state facts. Where a next step helps, they name it by a value of this
/// type, and each front end renders it in its own terms: a command line as a command, a service as
/// a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// List the sessions there are.
    ListSessions,
    /// Wait until the session is free, or use another one.
    WaitForSession,
    /// List the tools there are, or check the settings.
    ListTools,
    /// Choose another agent for the session.
    ChooseAgent,
    /// List the open questions.
    ListQuestions,
    /// Look at the question about the call with this id.
    ShowQuestion(String),
    /// List the grants there are.
    ListGrants,
    /// Revoke a grant.
    RevokeGrant,
    /// Revoke the grant with this id.
    RevokeGrantById(String),
    /// Approve all calls from the start.
    ApproveAll,
    /// Add to the budget that is used up.
    RaiseBudget,
    /// Give the amount in the other unit: dollars or tokens.
    OtherUnit,
    /// Derive the record of usage from the journals again.
    RebuildUsage,
    /// Set the model of the workspace instead of the agent's.
    SetWorkspaceModel,
    /// Choose another model for the session.
    ChooseModel,
    /// Give another model, or define the missing one for all workspaces of this person.
    GiveModel,
    /// List the model providers.
    ListProviders,
    /// List the workspaces of a folder.
    ListWorkspaces,
    /// List the facts of memory and those that wait for review.
    ListFacts,
    /// Review the facts in quarantine.
    ReviewFacts,
    /// Update the source of skills with this name, or give the new one another name.
    UpdateSource(String),
    /// Give the source of skills a name.
    NameSource,
}
