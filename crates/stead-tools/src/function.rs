//! Rust functions as tools.

use crate::{Output, Tool, ToolCx, ToolError, schema};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use stead_core::{PathAccess, Risk, ToolSpec};

/// A tool made of a function: its arguments are a type, whose doc comments are what the model
/// reads.
///
/// What the function does to the workspace it does through [`ToolCx::vfs`], where the rules hold;
/// `risk` tells the gate what else it can do.
///
/// ```
/// use stead_core::Risk;
/// use stead_tools::{Output, ToolCx, function};
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
/// let tool = function("count_words", "Counts the words of a text.", Risk::READS, count);
/// assert_eq!(tool.spec().parameters["properties"]["text"]["description"], "The text to count in.");
/// ```
pub fn function_tool<A, F, R>(name: &str, description: &str, risk: Risk, run: F) -> Arc<dyn Tool>
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(ToolCx, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    let spec = ToolSpec {
        name: name.to_owned(),
        aliases: Vec::new(),
        description: description.to_owned(),
        parameters: schema::schema_of::<A>(),
        risk,
    };
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
    A: DeserializeOwned + Send + 'static,
    F: Fn(ToolCx, A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Output, ToolError>> + Send + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn accesses(&self, _: &Value) -> Vec<PathAccess> {
        Vec::new()
    }

    fn call<'a>(&'a self, cx: &'a ToolCx, args: Value) -> BoxFuture<'a, Result<Output, ToolError>> {
        let args = serde_json::from_value(args);
        Box::pin(async move {
            let told = |error| {
                ToolError::RespondToModel(format!("{}: invalid arguments: {error}", self.spec.name))
            };
            (self.run)(cx.clone(), args.map_err(told)?).await
        })
    }
}
