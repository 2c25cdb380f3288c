//! What a person can do about an error.

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
    /// List the facts of memory and those that wait for review.
    ListFacts,
    /// Update the source of skills with this name, or give the new one another name.
    UpdateSource(String),
    /// Give the source of skills a name.
    NameSource,
}
