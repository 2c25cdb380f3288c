//! The place for tests of the built-in tools, called through the registry on the local disk; this
//! file has their shared support.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/execute.rs"]
mod execute;
#[path = "all/reading_files.rs"]
mod reading_files;
#[path = "all/registry.rs"]
mod registry;
#[path = "all/searching_files.rs"]
mod searching_files;
#[path = "all/tasks.rs"]
mod tasks;
#[path = "all/title_surface.rs"]
mod title_surface;
#[path = "all/todos_and_plan.rs"]
mod todos_and_plan;
#[path = "all/writing_files.rs"]
mod writing_files;

use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use stead_core::Block;
use stead_store::OsDisk;
use stead_tools::{
    CallOrigin, FileVersions, Output, Registry, SpillFactory, Surface, ToolCx, ToolError,
    file_tools, plan_tools, task_tools, todo_tools,
};
use stead_vfs::{LocalVfs, VPath};
use tokio_util::sync::CancellationToken;

/// A session in an empty workspace.
struct Session {
    temp: tempfile::TempDir,
    cx: ToolCx,
    tools: Registry,
}

impl Session {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let vfs = Arc::new(LocalVfs::open(temp.path(), Arc::new(OsDisk)).unwrap());
        let cx = ToolCx {
            vfs,
            file_versions: Arc::new(FileVersions::default()),
            active_skills: Arc::default(),
            cancel: CancellationToken::new(),
            origin: CallOrigin::default(),
            spills: SpillFactory::default(),
            session: Default::default(),
            surface: Surface::default(),
            calls: stead_tools::NestedCalls::default(),
        };
        Self {
            temp,
            cx,
            tools: Registry::new(file_tools()).unwrap(),
        }
    }

    /// An empty workspace with every tool that is about plans, things to do and tasks.
    fn planning() -> Self {
        let path = |text: &str| VPath::parse(text).unwrap();
        let tools = [
            todo_tools(),
            plan_tools(&path("plans/PLAN.md")),
            task_tools(&path("data/TASKS.yaml"), Some("UTC")),
        ];
        Self {
            tools: Registry::new(tools.into_iter().flatten()).unwrap(),
            ..Self::new()
        }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let session = Self::new();
        files
            .iter()
            .for_each(|(path, content)| session.put(path, content));
        session
    }

    /// The same, with tools named as `surface` does.
    fn on(self, surface: Surface) -> Self {
        Self {
            tools: self.tools.with_surface(surface),
            ..self
        }
    }

    fn os(&self, path: &str) -> PathBuf {
        self.temp.path().join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.os(path).parent().unwrap()).unwrap();
        std::fs::write(self.os(path), content).unwrap();
    }

    fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.os(path)).unwrap()
    }

    /// What the model is told, and what the session learns.
    async fn output(&self, name: &str, args: Value) -> Result<Output, String> {
        let call = self.tools.prepare(name, args);
        let call = call.map_err(|error| error.to_string())?;
        match call.call(self.cx.clone()).await {
            Ok(output) => {
                self.cx.file_versions.record(&output.file_versions);
                Ok(output)
            }
            Err(ToolError::RespondToModel(text)) => Err(text),
            Err(ToolError::Fatal(text)) => panic!("a file tool stopped the run: {text}"),
        }
    }

    async fn call(&self, name: &str, args: Value) -> Result<String, String> {
        let output = self.output(name, args).await?;
        match output.content.as_slice() {
            [Block::Text { text }] => Ok(text.clone()),
            other => panic!("not one text: {other:?}"),
        }
    }
}
