//! The place for tests of the OpenHarness layout; this file has their shared support.

mod chat_workspace;
mod errors;
mod fields;
mod loading;
mod main_agent;

use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::{Expect, LocalVfs, StoreVfs, VPath, Vfs};
use stead_workspace::{
    Definition, Finding, Layout, OpenOptions, Severity, Workspace, WorkspaceError,
};

fn fixture(name: &str) -> Arc<dyn Vfs> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/openharness")
        .join(name);
    Arc::new(LocalVfs::open(&folder, Arc::new(OsDisk)).unwrap())
}

/// A place with these files and nothing else.
async fn place(files: &[(&str, &str)]) -> Arc<dyn Vfs> {
    let vfs = StoreVfs::in_memory();
    for (path, text) in files {
        let text = Bytes::from(text.as_bytes().to_vec());
        vfs.write(&VPath::parse(path).unwrap(), text, Expect::Any)
            .await
            .unwrap();
    }
    Arc::new(vfs)
}

fn variable(name: &str) -> Option<String> {
    let value = match name {
        "LOCAL_URL" => "http://127.0.0.1:8000/v1",
        "PLATFORM_KEY" => "sk-platform",
        "REVIEW_TOKEN" => "review-token",
        _ => return None,
    };
    Some(value.to_owned())
}

async fn open(files: Arc<dyn Vfs>, options: &OpenOptions) -> Result<Definition, Vec<Finding>> {
    match Workspace::open(files, options, &variable).await {
        Ok(workspace) => {
            assert_eq!(workspace.definition.layout, Layout::Openharness);
            Ok(workspace.definition)
        }
        Err(WorkspaceError::Invalid(findings)) => Err(findings),
        Err(other) => panic!("{other}"),
    }
}

/// What a check of the folder fails on.
async fn checked(files: Arc<dyn Vfs>, options: &OpenOptions) -> Vec<String> {
    let workspace = Workspace::inspect(files, options, &variable).await;
    let findings = workspace.definition.findings;
    let failing = findings
        .iter()
        .filter(|finding| finding.severity >= Severity::NonFatal);
    failing.map(ToString::to_string).collect()
}

/// The fixture's workspace on its platform.
fn on_platform() -> OpenOptions {
    OpenOptions {
        platform: Some(fixture("platform")),
        ..OpenOptions::default()
    }
}

/// A folder with one agent, on the fixture's platform.
async fn with_agent(agent: &str, more: &[(&str, &str)]) -> Result<Definition, Vec<Finding>> {
    let files = [&[(".openharness/agents/build.md", agent)], more].concat();
    open(place(&files).await, &on_platform()).await
}

fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

/// All findings about the folder itself.
fn own(findings: &[Finding]) -> Vec<String> {
    lines(findings)
        .into_iter()
        .filter(|line| !line.starts_with("platform/"))
        .collect()
}
