//! Rust functions as tools.
//!
//! Effects: none.

use crate::client::conventional_paths;
use crate::typed::parse_args;
use crate::{CallPlan, Output, PlanError, Tool, ToolCx, ToolError, schema};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use stead_core::{Risk, ToolSpec};

/// Returns a tool made of a function. Its arguments are a type, whose doc comments are what the
/// model reads.
///
/// The function must change the workspace only through [`ToolCx::vfs`], where the file rules apply;
/// `risk` tells the gate what else it can do.
///
/// ```
/// use stead_core::Risk;
/// use stead_tools::{Output, ToolCx, function_tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Words {
///     /// The text to count in.
///     text: String,
/// }
///
/// async fn count(_: ToolCx, args: Words) -> Result<Output, stead_tools::ToolError> {
///     Ok(Output::text(args.text.split_whitespace().count().to_string()))
/// }
///
/// let tool = function_tool("count_words", "Counts the words of a text.", Risk::READS, count);
/// assert_eq!(tool.spec().parameters["properties"]["text"]["description"], "The text to count in.");
/// ```
pub fn function_tool<A, F, R>(name: &str, description: &str, risk: Risk, run: F) -> Arc<dyn Tool>
where
    A: DeserializeOwned + JsonSchema + Send + Sync + 'static,
    F: Fn(ToolCx, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    let spec = ToolSpec::new(name, description, risk).with_parameters(schema::schema_of::<A>());
    Arc::new(FunctionTool {
        spec,
        run,
        args: PhantomData,
    })
}

struct FunctionTool<A, F> {
    spec: ToolSpec,
    run: F,
    args: PhantomData<fn(A)>,
}

impl<A, F, R> Tool for FunctionTool<A, F>
where
    A: DeserializeOwned + Send + Sync + 'static,
    F: Fn(ToolCx, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn plan(&self, args: Value) -> Result<CallPlan, PlanError> {
        let paths = conventional_paths(&args);
        let args: A = parse_args(&self.spec.name, args)?;
        Ok(CallPlan::default().with_named_paths(paths).with_args(args))
    }

    fn call<'a>(
        &'a self,
        cx: &'a ToolCx,
        plan: CallPlan,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { (self.run)(cx.clone(), plan.take_args()?).await })
    }
}
