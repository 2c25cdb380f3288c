//! Tools whose arguments are a Rust type.
//!
//! Effects: tools.

use crate::{CallPlan, Output, PlanError, Tool, ToolCx, ToolDef, ToolError, schema};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use stead_core::ToolSpec;

/// A tool with arguments of type [`TypedTool::Args`]. The doc comments on the fields of that type
/// are what the model reads.
pub trait TypedTool: Send + Sync + 'static {
    /// The arguments. Deny unknown fields, and give optional ones a default.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// What the tool is.
    const DEF: ToolDef;

    /// Returns what a call would do. By default it touches nothing.
    fn plan(&self, args: &Self::Args) -> CallPlan {
        let _ = args;
        CallPlan::default()
    }

    /// Carries a call out.
    fn call(
        &self,
        cx: &ToolCx,
        args: Self::Args,
    ) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// Returns `tool` in the form that a [`Registry`](crate::Registry) takes.
pub fn typed_tool<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let spec = T::DEF.spec(schema::schema_of::<T::Args>());
    Arc::new(TypedToolAdapter { tool, spec })
}

/// Defines a function that makes the tools of a family, and the list of their identities, from one
/// list of tools.
macro_rules! tool_family {
    ($(#[$doc:meta])* pub fn $name:ident($($arg:ident: $type:ty),*) {
        $($tool:ty => $make:expr),+ $(,)?
    }) => {
        $(#[$doc])*
        pub fn $name($($arg: $type),*) -> Vec<std::sync::Arc<dyn $crate::Tool>> {
            vec![$($crate::typed_tool::<$tool>($make)),+]
        }

        /// The identities of the tools above.
        pub(crate) const IDENTITIES: &[$crate::ToolIdentity] =
            &[$(<$tool as $crate::TypedTool>::DEF.identity()),+];
    };
}
pub(crate) use tool_family;

struct TypedToolAdapter<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: TypedTool> Tool for TypedToolAdapter<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn plan(&self, args: Value) -> Result<CallPlan, PlanError> {
        let args: T::Args = parse_args(&self.spec.name, args)?;
        Ok(self.tool.plan(&args).with_args(args))
    }

    fn call<'a>(
        &'a self,
        cx: &'a ToolCx,
        plan: CallPlan,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { self.tool.call(cx, plan.take_args()?).await })
    }
}

/// Parses the arguments of the tool `name`.
pub(crate) fn parse_args<A: DeserializeOwned>(name: &str, args: Value) -> Result<A, PlanError> {
    serde_json::from_value(args)
        .map_err(|error| PlanError::InvalidArguments(format!("{name}: invalid arguments: {error}")))
}
