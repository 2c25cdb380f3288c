//! Nested calls: how a running tool calls other tools.
//!
//! Effects: tools.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use stead_core::{Block, MAX_NESTED_DEPTH, Message, ResultStatus};

/// The handle with which a running call calls tools.
///
/// A nested call passes the same gate, hooks, limits and journal as a call of the model. If a person
/// is asked about one, the calling call is stopped, and run again from its start once the question is
/// answered: calls that have their result then return it at once and do not run again. So a tool that
/// makes nested calls must be `repeatable` ([`Risk::repeatable`](stead_core::Risk)), have no other
/// effect than its calls, and make the same calls in the same order when it is run again.
///
/// Each nested call has a time limit of its own. That of the calling call goes on meanwhile, so a tool
/// that makes many or long calls sets a longer one with
/// [`CallPlan::with_timeout`](crate::CallPlan::with_timeout).
#[derive(Clone)]
pub struct NestedCalls(Access);

#[derive(Clone)]
enum Access {
    Open(Arc<dyn CallTools>),
    Closed(NestedCallError),
}

/// Carries out the calls of a [`NestedCalls`].
pub trait CallTools: Send + Sync {
    /// Starts a call. The order of these calls is the order of the nested calls; the future may be
    /// polled together with others.
    fn call(
        self: Arc<Self>,
        name: String,
        args: Value,
    ) -> BoxFuture<'static, Result<NestedOutput, NestedCallError>>;
}

/// The result of a nested call, whether it succeeded, failed or was denied.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedOutput {
    /// The id of the call, such as `c1/2`.
    pub id: String,
    /// How it ended.
    pub status: ResultStatus,
    /// The content: the result, or why there is none.
    pub content: Vec<Block>,
    /// Whether it is untrusted content. The result of the calling call then is, too.
    pub untrusted: bool,
}

impl NestedOutput {
    /// Returns whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        self.status == ResultStatus::Ok
    }

    /// Returns the texts of the content.
    pub fn text(&self) -> String {
        let content = self.content.clone();
        Message::User { content }.text()
    }
}

/// Why a nested call was not made. Nothing of it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NestedCallError {
    /// The tool is called outside a run.
    #[error("tools can call other tools only in a run, and this call is outside any run")]
    NotAvailable,
    /// The calling tool is not repeatable.
    #[error(
        "{tool} cannot call other tools: it is not declared repeatable, so it could not be run again if a question or a crash interrupts it"
    )]
    NotRepeatable {
        /// The calling tool.
        tool: String,
    },
    /// The calling call is too deep.
    #[error(
        "calls can be nested {MAX_NESTED_DEPTH} levels deep at most; call this tool from a call further up"
    )]
    TooDeep,
    /// There are too many nested calls.
    #[error(
        "one call of the model can make {limit} nested calls at most (policy.max_nested_calls); split the work over several calls"
    )]
    TooMany {
        /// The most nested calls of one call of the model.
        limit: u32,
    },
    /// The arguments are too long.
    #[error(
        "the arguments of a nested call have {limit} bytes at most; write long content to a file piece by piece"
    )]
    TooLong {
        /// The most bytes of arguments.
        limit: usize,
    },
    /// The call is another one than before the calling call was interrupted.
    #[error("{0}")]
    Diverged(String),
    /// The run, or the calling call, is ending.
    #[error("the run or the calling call is ending; no more calls are begun")]
    Ending,
}

impl NestedCalls {
    /// Returns a handle whose calls `tools` carries out.
    pub fn new(tools: Arc<dyn CallTools>) -> Self {
        Self(Access::Open(tools))
    }

    /// Returns a handle that refuses every call for this reason.
    pub fn refused(reason: NestedCallError) -> Self {
        Self(Access::Closed(reason))
    }

    /// Calls a tool. The call counts as started when this returns, not when the future is first
    /// polled; several can be awaited together. A future that is dropped cancels its call.
    pub fn call(
        &self,
        name: impl Into<String>,
        args: Value,
    ) -> BoxFuture<'static, Result<NestedOutput, NestedCallError>> {
        match &self.0 {
            Access::Open(tools) => tools.clone().call(name.into(), args),
            Access::Closed(reason) => Box::pin(std::future::ready(Err(reason.clone()))),
        }
    }
}

impl Default for NestedCalls {
    /// The handle of a call outside any run.
    fn default() -> Self {
        Self::refused(NestedCallError::NotAvailable)
    }
}

impl fmt::Debug for NestedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match &self.0 {
            Access::Open(_) => "open".to_owned(),
            Access::Closed(reason) => format!("refused: {reason}"),
        };
        f.debug_tuple("NestedCalls").field(&text).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Answers every call with its name.
    struct Echo;

    impl CallTools for Echo {
        fn call(
            self: Arc<Self>,
            name: String,
            _: Value,
        ) -> BoxFuture<'static, Result<NestedOutput, NestedCallError>> {
            Box::pin(std::future::ready(Ok(NestedOutput {
                id: "c1/1".to_owned(),
                status: ResultStatus::Ok,
                content: vec![Block::text(name)],
                untrusted: false,
            })))
        }
    }

    #[tokio::test]
    async fn a_call_outside_a_run_is_refused_and_a_test_can_answer_calls_itself() {
        let outside = NestedCalls::default().call("read_file", json!({})).await;
        assert_eq!(outside, Err(NestedCallError::NotAvailable));
        let echo = NestedCalls::new(Arc::new(Echo));
        let output = echo.call("read_file", json!({})).await.unwrap();
        assert!(output.is_ok());
        assert_eq!(output.text(), "read_file");
    }
}
