//! Tools whose arguments are a Rust type.

use crate::schema;
use crate::{
    ArgumentAliases, Output, OutputLength, SessionView, TitleForm, Tool, ToolCx, ToolError,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{AccessKind, PathAccess, PathScope, Risk, ToolEffect, ToolSpec};
use stead_vfs::Vfs;

/// A tool with arguments of type [`TypedTool::Args`]; doc comments on its fields are what the model
/// reads.
pub trait TypedTool: Send + Sync + 'static {
    /// The arguments. Deny unknown fields, and give optional ones a default.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The canonical, snake_case name.
    const NAME: &'static str;
    /// Other names under which it may be called.
    const ALIASES: &'static [&'static str] = &[];
    /// What the model is told.
    const DESCRIPTION: &'static str;
    /// What a call can do.
    const RISK: Risk;
    /// How long its answers may be.
    const OUTPUT_LENGTH: OutputLength = OutputLength::Any;
    /// How else arguments may be spelled.
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases {
        names: &[],
        values: &[],
    };

    /// The parameter that is a shell command, if one is.
    const COMMAND: Option<&'static str> = None;

    /// The paths a call would touch.
    fn accesses(&self, args: &Self::Args) -> Vec<PathAccess>;

    /// How long a call may take, if not as long as any.
    fn timeout(&self, args: &Self::Args) -> Option<Duration> {
        let _ = args;
        None
    }

    /// How it is shown where tools have titles, if differently.
    fn title_form(&self) -> Option<TitleForm> {
        None
    }

    /// Why a person must agree to a call in every mode, if so.
    fn always_asks(&self, _args: &Self::Args) -> Option<String> {
        None
    }

    /// Why a call makes no sense as the session stands, found out before a person is asked about
    /// it.
    fn refusal_reason<'a>(
        &'a self,
        _standing: &'a SessionView,
        _files: &'a dyn Vfs,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// What a person agrees to beside the arguments. If it is another when the call is to run, they
    /// are asked again.
    fn approval_subject<'a>(&'a self, _files: &'a dyn Vfs) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// What a call would do, for the person who is asked about it.
    fn preview(
        &self,
        _files: &dyn Vfs,
        _args: Self::Args,
    ) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }

    /// Does it.
    fn call(
        &self,
        cx: &ToolCx,
        args: Self::Args,
    ) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// `tool` for a [`Registry`](crate::Registry).
pub fn typed_tool<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: T::NAME.to_owned(),
        aliases: T::ALIASES.iter().map(|&alias| alias.to_owned()).collect(),
        description: T::DESCRIPTION.to_owned(),
        parameters: schema::schema_of::<T::Args>(),
        risk: T::RISK,
    };
    Arc::new(TypedToolAdapter { tool, spec })
}

struct TypedToolAdapter<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: TypedTool> Tool for TypedToolAdapter<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn accesses(&self, args: &Value) -> Vec<PathAccess> {
        T::Args::deserialize(args).map_or_else(
            |_| access_everything(T::RISK.effect),
            |args| self.tool.accesses(&args),
        )
    }

    fn argument_aliases(&self) -> ArgumentAliases {
        T::ARGUMENT_ALIASES
    }

    fn title_form(&self) -> Option<TitleForm> {
        self.tool.title_form()
    }

    fn output_length(&self) -> OutputLength {
        T::OUTPUT_LENGTH
    }

    fn command<'a>(&self, args: &'a Value) -> Option<&'a str> {
        args.get(T::COMMAND?)?.as_str()
    }

    fn timeout(&self, args: &Value) -> Option<Duration> {
        self.tool.timeout(&T::Args::deserialize(args).ok()?)
    }

    fn always_asks(&self, args: &Value) -> Option<String> {
        self.tool.always_asks(&T::Args::deserialize(args).ok()?)
    }

    fn refusal_reason<'a>(
        &'a self,
        standing: &'a SessionView,
        files: &'a dyn Vfs,
    ) -> BoxFuture<'a, Option<String>> {
        self.tool.refusal_reason(standing, files)
    }

    fn approval_subject<'a>(&'a self, files: &'a dyn Vfs) -> BoxFuture<'a, Option<String>> {
        self.tool.approval_subject(files)
    }

    fn preview<'a>(&'a self, files: &'a dyn Vfs, args: &'a Value) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let own = self
                .tool
                .preview(files, T::Args::deserialize(args).ok()?)
                .await;
            own.or_else(|| self.command(args).map(str::to_owned))
        })
    }

    fn call<'a>(&'a self, cx: &'a ToolCx, args: Value) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let args = serde_json::from_value(args).map_err(|error| {
                ToolError::RespondToModel(format!("{}: invalid arguments: {error}", T::NAME))
            })?;
            self.tool.call(cx, args).await
        })
    }
}

/// What arguments that nobody understands might touch.
fn access_everything(effect: ToolEffect) -> Vec<PathAccess> {
    let kind = match effect {
        ToolEffect::Reads => AccessKind::Read,
        ToolEffect::Writes | ToolEffect::Network | ToolEffect::Executes => AccessKind::Write,
    };
    vec![PathAccess {
        path: ".".to_owned(),
        kind,
        scope: PathScope::Content,
    }]
}
