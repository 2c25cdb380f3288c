//! The `execute` tool: runs shell commands in a sandbox.
//!
//! Effects: the clock, workspace files (writes), processes.

mod result;
mod terminal_codes;

use crate::files::{WRITE_FILE, explain_error, here, parse_path};
use crate::title;
use crate::{
    CallPlan, CommandLine, Output, Tool, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool,
    typed_tool,
};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{ArgumentAliases, Block, Risk, ToolEffect, ToolKind};
use stead_sandbox::{Exec, ExecOutcome, Sandbox};
use stead_vfs::{FileKind, VPath};

/// `execute`: runs a shell command.
pub const EXECUTE: ToolIdentity = ToolIdentity::new("execute", ToolKind::Command)
    .aliases(&[
        "Bash",
        "bash",
        "shell",
        "execute_shell_command",
        "PowerShell",
    ])
    .title("Bash")
    .subject(&["command"]);

/// The identities of the tools of this module.
pub(crate) const IDENTITIES: &[ToolIdentity] = &[EXECUTE];

/// The seconds that a call may ask for, even where the usual limit is lower.
const MAX_SECONDS: u64 = 600;
/// The extra time of a call to stop the command and to report on it.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The longest command: the arguments of a process are limited.
const MAX_COMMAND_BYTES: usize = 100 * 1024;

/// Returns where a folder of the workspace is in the sandbox, or nothing if it is not on a disk.
pub type FolderResolver = Arc<dyn Fn(&VPath) -> Option<PathBuf> + Send + Sync>;

/// Returns the tool that runs commands in `sandbox`, in `folders`, for `usual_seconds` unless a call
/// sets another time.
pub fn execute_tool(
    sandbox: Arc<dyn Sandbox>,
    folders: FolderResolver,
    usual_seconds: u64,
) -> Arc<dyn Tool> {
    typed_tool(Execute {
        sandbox,
        folders,
        default_seconds: usual_seconds,
    })
}

struct Execute {
    sandbox: Arc<dyn Sandbox>,
    folders: FolderResolver,
    default_seconds: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecuteArgs {
    command: String,
    /// The folder it begins in.
    #[serde(default = "here")]
    cwd: String,
    /// Seconds.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

impl TypedTool for Execute {
    type Args = ExecuteArgs;
    const DEF: ToolDef = ToolDef::new(
        EXECUTE,
        Risk {
            effect: ToolEffect::Executes,
            parallel_safe: false,
            repeatable: false,
        },
        "Runs a shell command and gives its exit code and output. It gets no input, and what \
        it leaves running is ended. To read, search and change files use the file tools.",
    )
    .argument_aliases(ArgumentAliases::of_names(&[
        ("cmd", "command"),
        ("workdir", "cwd"),
        ("working_directory", "cwd"),
        ("timeout_seconds", "timeout"),
    ]))
    .title_form::<title::BashForm>();

    fn plan(&self, args: &ExecuteArgs) -> CallPlan {
        let seconds = self.timeout_seconds(args).min(self.max_seconds());
        let plan = CallPlan::reads(&args.cwd)
            .with_timeout(Duration::from_secs(seconds) + STOP_GRACE)
            .with_command(CommandLine {
                text: args.command.clone(),
                cwd: args.cwd.clone(),
            });
        if VPath::parse(&args.cwd).is_ok_and(|path| !path.is_root()) {
            let text = format!("in {}:\n{}", args.cwd, args.command);
            return plan.with_preview(move |_| ready(Some(text.clone())).boxed());
        }
        plan
    }

    async fn call(&self, cx: &ToolCx, args: ExecuteArgs) -> Result<Output, ToolError> {
        let seconds = self.validate(cx, &args)?;
        let cwd = self.folder(cx, &args.cwd).await?;
        let exec = Exec::new(args.command, cwd)
            .with_timeout(Duration::from_secs(seconds))
            .with_cancel(cx.cancel.clone());
        let mut spill = cx.spill();
        let ended = self
            .sandbox
            .exec(exec, &mut spill)
            .await
            .map_err(|error| ToolError::RespondToModel(error.to_string()))?;
        let Output { content, .. } = spill.finish().await;
        let said: String = content.iter().filter_map(Block::as_text).collect();
        let text = result::render_result(
            ended,
            seconds,
            self.max_seconds(),
            &terminal_codes::strip_terminal_codes(&said),
        );
        match ended {
            ExecOutcome::Exited(_)
            | ExecOutcome::Signalled(_)
            | ExecOutcome::OutputFull
            | ExecOutcome::OutOfDisk => Ok(Output {
                exit_code: result::exit_code(ended),
                ..Output::text(text)
            }),
            ExecOutcome::TimedOut | ExecOutcome::Cancelled => Err(ToolError::RespondToModel(text)),
        }
    }
}

impl Execute {
    fn max_seconds(&self) -> u64 {
        self.default_seconds.max(MAX_SECONDS)
    }

    fn timeout_seconds(&self, args: &ExecuteArgs) -> u64 {
        args.timeout.unwrap_or(self.default_seconds)
    }

    /// Checks the arguments, and returns how many seconds the command may take.
    fn validate(&self, cx: &ToolCx, args: &ExecuteArgs) -> Result<u64, ToolError> {
        let tell = |text: String| Err(ToolError::RespondToModel(text));
        let seconds = self.timeout_seconds(args);
        let most = self.max_seconds();
        if args.command.trim().is_empty() {
            return tell("the command is empty".to_owned());
        }
        if args.command.contains('\0') {
            return tell(
                "the command has a NUL character in it, which no shell can read; leave it out"
                    .to_owned(),
            );
        }
        if args.command.len() > MAX_COMMAND_BYTES {
            let write = cx.surface.name(&WRITE_FILE);
            return tell(format!(
                "the command is longer than {MAX_COMMAND_BYTES} bytes; put the script or its data into a file with \
                 {write}, and run that"
            ));
        }
        if seconds > most {
            return tell(format!(
                "a command may take {most} seconds at most, and this call asks for {seconds}; split the work, or have \
                 a person raise policy.tool_timeout_seconds"
            ));
        }
        Ok(seconds)
    }

    /// Returns the folder of the workspace that `cwd` names.
    async fn folder(&self, cx: &ToolCx, cwd: &str) -> Result<PathBuf, ToolError> {
        let path = parse_path(cwd)?;
        let real = match cx.vfs.resolve(&path).await {
            Ok(real) => real,
            Err(error) => return Err(explain_error(cx, error).await),
        };
        match cx.vfs.stat(&real).await {
            Ok(stat) if stat.kind == FileKind::Directory => {}
            Ok(_) => {
                return Err(ToolError::RespondToModel(format!(
                    "cwd: {path} is no folder"
                )));
            }
            Err(error) => return Err(explain_error(cx, error).await),
        }
        let elsewhere = || {
            ToolError::RespondToModel(format!(
                "cwd: commands cannot run in {path}, which is not a folder on this machine"
            ))
        };
        (self.folders)(&real).ok_or_else(elsewhere)
    }
}
