//! An agent whose commands run in a sandbox of its own. Runs without a key: a script plays the
//! model.
//!
//!     cargo run --example custom_sandbox

use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead::model::ScriptedModel;
use stead::sandbox::{
    Exec, ExecLimits, ExecOutcome, Isolation, OutputSink, Sandbox, SandboxError, capture,
};
use stead::{Agent, RunOptions, SessionId};
use tokio::process::Command;

const SCRIPT: &str = "\
- calls: [{tool: execute, args: {command: 'touch draft.txt && ls && pwd'}}]
- text: I made draft.txt in a folder that is gone again.
";

/// Runs each command in a new empty folder, which is removed afterwards, and without the
/// environment of this process.
#[derive(Debug)]
struct FreshFolder;

impl Sandbox for FreshFolder {
    fn describe(&self) -> String {
        "with `sh` on this machine, each in a new empty folder that is removed afterwards"
            .to_owned()
    }

    /// A command can still reach everything by an absolute path, so there are no walls. The gate
    /// therefore asks a person about every command that no rule allows.
    fn isolation(&self) -> Isolation {
        Isolation::NONE
    }

    fn exec<'a>(
        &'a self,
        exec: Exec,
        sink: &'a mut dyn OutputSink,
    ) -> BoxFuture<'a, Result<ExecOutcome, SandboxError>> {
        Box::pin(async move {
            let folder = tempfile::tempdir().map_err(SandboxError::Start)?;
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", &exec.command])
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .envs(exec.env);
            let limits = ExecLimits {
                timeout: exec.timeout,
                cancel: exec.cancel,
            };
            // It streams the output, and leaves no process of the command behind.
            capture(command, sink, &limits).await
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("AGENTS.md"), "You try things out.")?;
    std::fs::write(
        folder.path().join("agent.yaml"),
        "commands: {allow: [touch draft.txt, ls, pwd]}\n",
    )?;
    let agent = Agent::builder()
        .workspace(folder.path())
        .model_of(ScriptedModel::parse("sandbox", SCRIPT)?)
        .sandbox(Arc::new(FreshFolder))
        .build()
        .await?;
    let mut session = agent.session(SessionId::fresh());
    let input = session.input("Make a draft.").await.blocks;
    let report = session.run(input, RunOptions::default()).await?;
    println!("{}", report.text);
    let kept = folder.path().join("draft.txt").exists();
    println!("draft.txt is in the workspace: {kept}");
    Ok(())
}
