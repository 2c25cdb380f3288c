//! `execute`: commands.

mod clean;
mod told;

use crate::files::{explain, here, path, reads};
use crate::title;
use crate::{Output, Spellings, Surface, TitleForm, Tool, ToolCx, ToolError, TypedTool, typed};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Access, Block, Effect, Risk};
use stead_sandbox::{Ended, Exec, Sandbox};
use stead_vfs::{FileKind, VPath, Vfs};

/// Seconds that a call may ask for, even where the usual limit is lower.
const MOST_SECONDS: u64 = 600;
/// What a call may take beyond the command's own time, to end it and to tell of it.
const STOPPING: Duration = Duration::from_secs(5);
/// A longer command does not fit into what a program can be told.
const MAX_COMMAND_BYTES: usize = 100 * 1024;

/// Where a folder of the workspace lies, as the sandbox knows it; none if it lies in no folder.
pub type Folders = Arc<dyn Fn(&VPath) -> Option<PathBuf> + Send + Sync>;

/// The tool that runs commands in `sandbox`, in `folders`, for `usual_seconds` unless a call says
/// otherwise.
pub fn execute(sandbox: Arc<dyn Sandbox>, folders: Folders, usual_seconds: u64) -> Arc<dyn Tool> {
    typed(Execute {
        sandbox,
        folders,
        usual_seconds,
        surface: Surface::Snake,
    })
}

#[derive(Clone)]
struct Execute {
    sandbox: Arc<dyn Sandbox>,
    folders: Folders,
    usual_seconds: u64,
    /// In whose words it answers.
    surface: Surface,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecuteArgs {
    /// The command.
    command: String,
    /// The folder of the workspace it begins in.
    #[serde(default = "here")]
    cwd: String,
    /// Seconds it may take.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

impl TypedTool for Execute {
    type Args = ExecuteArgs;
    const NAME: &'static str = "execute";
    const ALIASES: &'static [&'static str] = &[
        "Bash",
        "bash",
        "shell",
        "execute_shell_command",
        "PowerShell",
    ];
    const DESCRIPTION: &'static str = "Runs a shell command in the workspace and gives its exit code and what it wrote. \
        It gets no input; whatever it started and left behind is ended with it. Each call begins anew in `cwd`. To \
        read, search and change files use the file tools.";
    const RISK: Risk = Risk {
        effect: Effect::Executes,
        parallel_safe: false,
        repeatable: false,
    };
    const SPELLINGS: Spellings = Spellings {
        names: &[
            ("cmd", "command"),
            ("workdir", "cwd"),
            ("working_directory", "cwd"),
            ("timeout_seconds", "timeout"),
        ],
        values: &[],
    };
    const COMMAND: Option<&'static str> = Some("command");

    fn accesses(&self, args: &ExecuteArgs) -> Vec<Access> {
        reads(&args.cwd)
    }

    fn timeout(&self, args: &ExecuteArgs) -> Option<Duration> {
        Some(Duration::from_secs(self.seconds(args).min(self.most_seconds())) + STOPPING)
    }

    async fn preview(&self, _: &dyn Vfs, args: ExecuteArgs) -> Option<String> {
        let elsewhere = VPath::parse(&args.cwd).is_ok_and(|path| !path.is_root());
        elsewhere.then(|| format!("in {}:\n{}", args.cwd, args.command))
    }

    fn titled(&self) -> Option<TitleForm> {
        Some(TitleForm::of::<title::Bash>(typed(Self {
            surface: Surface::Title,
            ..self.clone()
        })))
    }

    async fn call(&self, cx: &ToolCx, args: ExecuteArgs) -> Result<Output, ToolError> {
        let seconds = self.checked(&args)?;
        let cwd = self.folder(cx, &args.cwd).await?;
        let exec = Exec::new(args.command, cwd)
            .within(Duration::from_secs(seconds))
            .until(cx.cancel.clone());
        let mut spill = cx.spill();
        let ended = self
            .sandbox
            .exec(exec, &mut spill)
            .await
            .map_err(|error| ToolError::Tell(error.to_string()))?;
        let Output { content, .. } = spill.finish().await;
        let said: String = content.iter().filter_map(words).collect();
        let text = told::told(ended, seconds, self.most_seconds(), &clean::clean(&said));
        match ended {
            Ended::Exited(_) | Ended::Signalled(_) | Ended::Full => Ok(Output::text(text)),
            Ended::TimedOut | Ended::Cancelled => Err(ToolError::Tell(text)),
        }
    }
}

impl Execute {
    fn most_seconds(&self) -> u64 {
        self.usual_seconds.max(MOST_SECONDS)
    }

    fn seconds(&self, args: &ExecuteArgs) -> u64 {
        args.timeout.unwrap_or(self.usual_seconds)
    }

    /// How many seconds the call may take, if it can be made at all.
    fn checked(&self, args: &ExecuteArgs) -> Result<u64, ToolError> {
        let tell = |text: String| Err(ToolError::Tell(text));
        let seconds = self.seconds(args);
        let most = self.most_seconds();
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
            let write = self.surface.name("write_file");
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

    /// The folder of the workspace that `cwd` names.
    async fn folder(&self, cx: &ToolCx, cwd: &str) -> Result<PathBuf, ToolError> {
        let path = path(cwd)?;
        let real = match cx.vfs.resolve(&path).await {
            Ok(real) => real,
            Err(error) => return Err(explain(cx, self.surface, error).await),
        };
        match cx.vfs.stat(&real).await {
            Ok(stat) if stat.kind == FileKind::Directory => {}
            Ok(_) => return Err(ToolError::Tell(format!("cwd: {path} is no folder"))),
            Err(error) => return Err(explain(cx, self.surface, error).await),
        }
        let elsewhere = || {
            ToolError::Tell(format!(
                "cwd: commands cannot run in {path}, which is no folder of the disk"
            ))
        };
        (self.folders)(&real).ok_or_else(elsewhere)
    }
}

fn words(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}
