//! The plan of a call: its effects, computed before anything happens.
//!
//! Effects: none.

use crate::{SessionView, Surface, ToolError};
use futures_util::future::BoxFuture;
use std::any::Any;
use std::fmt;
use std::time::Duration;
use stead_core::PathAccess;
use stead_vfs::Vfs;

/// What one call would touch, run, ask and show. [`Tool::plan`](crate::Tool::plan) makes it from the
/// arguments, which travel in it to [`Tool::call`](crate::Tool::call).
///
/// The default plan touches nothing and needs nobody's approval.
///
/// ```
/// use stead_tools::CallPlan;
///
/// let plan = CallPlan::reads("notes.md").and_writes("notes.md");
/// assert_eq!(plan.accesses().len(), 2);
/// assert_eq!(plan.named_paths(), ["notes.md", "notes.md"]);
/// ```
#[derive(Default)]
pub struct CallPlan {
    accesses: Vec<PathAccess>,
    named_paths: Vec<String>,
    command: Option<CommandLine>,
    hosts: Vec<String>,
    timeout: Option<Duration>,
    approval: Option<String>,
    preview: Option<LazyText>,
    subject: Option<LazyText>,
    refusal: Option<LazyText>,
    args: Option<Box<dyn Any + Send + Sync>>,
}

/// A text that is computed only when it is needed.
type LazyText =
    Box<dyn for<'a> Fn(PlanView<'a>) -> BoxFuture<'a, Option<String>> + Send + Sync + 'static>;

/// A shell command that a call would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The command, as the model wrote it.
    pub text: String,
    /// The folder of the workspace it would run in.
    pub cwd: String,
}

/// What the lazy parts of a plan may look at.
#[derive(Debug, Clone, Copy)]
pub struct PlanView<'a> {
    /// The files of the workspace.
    pub files: &'a dyn Vfs,
    /// The state of the session.
    pub session: &'a SessionView,
    /// The surface the tool was called on.
    pub surface: Surface,
}

impl CallPlan {
    /// A call that reads `path`, which its arguments name.
    pub fn reads(path: impl Into<String>) -> Self {
        Self::default().and_reads(path)
    }

    /// A call that changes `path`, which its arguments name.
    pub fn writes(path: impl Into<String>) -> Self {
        Self::default().and_writes(path)
    }

    /// A call that touches files which the tool itself chooses, whatever the arguments are.
    pub fn uses(accesses: impl IntoIterator<Item = PathAccess>) -> Self {
        Self {
            accesses: accesses.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the plan with a path that is also read.
    pub fn and_reads(self, path: impl Into<String>) -> Self {
        self.and_accesses(PathAccess::read(path))
    }

    /// Returns the plan with a path that is also changed.
    pub fn and_writes(self, path: impl Into<String>) -> Self {
        self.and_accesses(PathAccess::write(path))
    }

    /// Returns the plan with one more access to a path that the arguments name.
    pub fn and_accesses(mut self, access: PathAccess) -> Self {
        self.named_paths.push(access.path.clone());
        self.accesses.push(access);
        self
    }

    /// Returns the plan with paths that the arguments name but that the harness does not touch. A
    /// grant that a person gives for the call is limited to them.
    pub fn with_named_paths(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.named_paths.extend(paths);
        self
    }

    /// Returns the plan with a shell command that the call would run.
    pub fn with_command(mut self, command: CommandLine) -> Self {
        self.command = Some(command);
        self
    }

    /// Returns the plan of a call that reaches the machine `host` and no others but those that are
    /// also named. A person may have declared that machine trusted.
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Returns the plan with a time limit that replaces the usual one.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Returns the plan with the reason why a person must agree to the call in every mode.
    pub fn with_approval(mut self, reason: impl Into<String>) -> Self {
        self.approval = Some(reason.into());
        self
    }

    /// Returns the plan with a description of the call for the person who is asked about it: a
    /// diff, a text. It must be short and show only files that the call itself names.
    pub fn with_preview(
        mut self,
        preview: impl for<'a> Fn(PlanView<'a>) -> BoxFuture<'a, Option<String>> + Send + Sync + 'static,
    ) -> Self {
        self.preview = Some(Box::new(preview));
        self
    }

    /// Returns the plan with what a person agrees to besides the arguments. If it has changed when
    /// the call is to run, the person is asked again.
    pub fn with_subject(
        mut self,
        subject: impl for<'a> Fn(PlanView<'a>) -> BoxFuture<'a, Option<String>> + Send + Sync + 'static,
    ) -> Self {
        self.subject = Some(Box::new(subject));
        self
    }

    /// Returns the plan with a check whether the call makes sense in the current state of the
    /// session. If it gives a reason, the call is refused before a person is asked about it.
    pub fn with_refusal(
        mut self,
        refusal: impl for<'a> Fn(PlanView<'a>) -> BoxFuture<'a, Option<String>> + Send + Sync + 'static,
    ) -> Self {
        self.refusal = Some(Box::new(refusal));
        self
    }

    /// Returns the plan with the parsed arguments for [`take_args`](Self::take_args).
    pub fn with_args<A: Any + Send + Sync>(mut self, args: A) -> Self {
        self.args = Some(Box::new(args));
        self
    }

    /// Returns the plan without the paths it would touch.
    pub(crate) fn without_accesses(self) -> Self {
        Self {
            accesses: Vec::new(),
            named_paths: Vec::new(),
            ..self
        }
    }

    /// Returns the parsed arguments. It fails if the plan was made by another tool.
    pub fn take_args<A: Any>(self) -> Result<A, ToolError> {
        let args = self.args.and_then(|args| args.downcast().ok());
        args.map(|args| *args).ok_or_else(|| {
            ToolError::RespondToModel("the plan of this call was made by another tool".to_owned())
        })
    }

    /// Returns every path that the call would touch.
    pub fn accesses(&self) -> &[PathAccess] {
        &self.accesses
    }

    /// Returns the paths that the arguments name.
    pub fn named_paths(&self) -> &[String] {
        &self.named_paths
    }

    /// Returns the shell command that the call would run.
    pub fn command(&self) -> Option<&CommandLine> {
        self.command.as_ref()
    }

    /// Returns the machines that the call would reach; none if the tool does not say.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns how long the call may take, if not the usual time.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns why a person must agree to the call in every mode.
    pub fn approval(&self) -> Option<&str> {
        self.approval.as_deref()
    }

    /// Computes what a person is shown of the call: the tool's own preview, or else its command.
    pub async fn preview(&self, view: PlanView<'_>) -> Option<String> {
        let own = compute(self.preview.as_ref(), view).await;
        own.or_else(|| Some(self.command.as_ref()?.text.clone()))
    }

    /// Computes what a person agrees to besides the arguments.
    pub async fn subject(&self, view: PlanView<'_>) -> Option<String> {
        compute(self.subject.as_ref(), view).await
    }

    /// Computes why the call makes no sense in the current state of the session, if so.
    pub async fn refusal(&self, view: PlanView<'_>) -> Option<String> {
        compute(self.refusal.as_ref(), view).await
    }
}

async fn compute(text: Option<&LazyText>, view: PlanView<'_>) -> Option<String> {
    text?(view).await
}

impl fmt::Debug for CallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPlan")
            .field("accesses", &self.accesses)
            .field("command", &self.command)
            .field("timeout", &self.timeout)
            .field("approval", &self.approval)
            .finish_non_exhaustive()
    }
}
