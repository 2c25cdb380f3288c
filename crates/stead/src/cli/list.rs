//! `stead list`: the workspaces in a folder, of all layouts.
//!
//! Effects: the terminal, workspace files (reads), the local disk (reads).

use super::args::{GlobalArgs, ListArgs};
use super::env::ProcessEnv;
use super::error::{CliError, finding_line};
use super::locate::nested_workspace;
use super::print::{outln, to_json};
use super::style::Style;
use super::trust::{folder_judge, state};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use stead::core::counted;
use stead::store::OsDisk;
use stead::vfs::{LocalVfs, Vfs};
use stead::workspace::{
    Finding, Layout, OpenOptions, Severity, Workspace, WorkspaceError, try_detect_layout,
};

/// A workspace, as far as it can be opened.
#[derive(Debug, Serialize)]
struct ListedWorkspace {
    name: String,
    path: PathBuf,
    layout: Layout,
    agent: Option<String>,
    description: Option<String>,
    model: Option<String>,
    /// Whether the folder may act: `harmless`, `trusted` or `not_trusted`.
    trust: &'static str,
    /// Whether the files have no errors.
    valid: bool,
    problems: Vec<Finding>,
}

pub(crate) async fn list(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &ListArgs,
) -> Result<ExitCode, CliError> {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let mut found = Vec::new();
    for (name, path) in folders(&dir)? {
        found.extend(describe_workspace(common, &name, &path, env).await);
    }
    if found.is_empty()
        && let Ok(own) = dir.canonicalize()
        && let Some(name) = own.file_name()
    {
        // The folder may be one itself.
        found.extend(describe_workspace(common, &name.to_string_lossy(), &own, env).await);
    }
    if args.json {
        outln!("{}", to_json(&found)?);
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    let width = |text: fn(&ListedWorkspace) -> &str| {
        found
            .iter()
            .map(|one| text(one).chars().count())
            .max()
            .unwrap_or(0)
    };
    let names = width(|one| &one.name);
    let models = width(|one| one.model.as_deref().unwrap_or("-"));
    for one in &found {
        let state = if one.valid {
            style.good("ok   ")
        } else {
            style.bad("error")
        };
        let model = one.model.as_deref().unwrap_or("-");
        let description = one.description.as_deref().unwrap_or_default();
        let line = format!(
            "{:<names$}  {:<13}  {model:<models$}  {description}",
            one.name,
            one.layout.as_str()
        );
        outln!("{state}  {}", line.trim_end());
        if one.trust == "not_trusted" && one.valid {
            outln!(
                "       {}",
                style.dim("not trusted: its own model and hooks are left out")
            );
        }
        for problem in &one.problems {
            outln!("       {}", style.dim(&finding_line(problem)));
        }
    }
    match found.len() {
        0 => outln!(
            "no workspaces in {}; `stead init NAME` makes one",
            dir.display()
        ),
        number => outln!("\n{} in {}", counted(number, "workspace"), dir.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the folders in `dir`, sorted, without hidden ones.
fn folders(dir: &Path) -> Result<Vec<(String, PathBuf)>, CliError> {
    let wrong = |error: std::io::Error| {
        CliError::usage(format!("{} cannot be listed: {error}", dir.display()))
    };
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && !name.starts_with('.') {
            folders.push((name, path));
        }
    }
    folders.sort();
    Ok(folders)
}

/// Returns a description of the workspace in `path`, if it is one.
async fn describe_workspace(
    common: &GlobalArgs,
    name: &str,
    path: &Path,
    env: &ProcessEnv,
) -> Option<ListedWorkspace> {
    let (path, known) = match nested_workspace(path) {
        Some((inner, layout)) => (inner, Some(layout)),
        None => (path.to_owned(), None),
    };
    // Without opening a folder, it is unknown whether it is a workspace.
    let files: Arc<dyn Vfs> = Arc::new(LocalVfs::open(&path, Arc::new(OsDisk)).ok()?);
    let layout = match known {
        Some(layout) => layout,
        None => try_detect_layout(&*files).await?,
    };
    let options = OpenOptions {
        layout: Some(layout),
        folder: Some(name.to_owned()),
        trust: Some(folder_judge(common, env, &path)),
        keys: Arc::new(env.key_policy()),
        ..OpenOptions::default()
    };
    let opened = Workspace::open(files, &options, &|variable| env.get(variable)).await;
    let trust = opened
        .as_ref()
        .map_or("not_trusted", |opened| state(&opened.trust));
    let (config, problems) = match opened {
        Ok(Workspace { definition, .. }) => {
            let failing = definition
                .findings
                .into_iter()
                .filter(|finding| finding.severity >= Severity::NonFatal);
            (Some(definition.config), failing.collect())
        }
        Err(WorkspaceError::Invalid(findings)) => (None, findings),
        Err(
            error @ (WorkspaceError::Files(_)
            | WorkspaceError::Skills(_)
            | WorkspaceError::Untrusted(_)),
        ) => (None, vec![Finding::error(".", error.to_string())]),
    };
    Some(ListedWorkspace {
        name: name.to_owned(),
        path,
        layout,
        agent: config.as_ref().map(|config| config.agent_id().to_string()),
        description: config
            .as_ref()
            .and_then(|config| config.description.clone()),
        model: config.and_then(|config| Some(config.model?.name).filter(|name| !name.is_empty())),
        trust,
        valid: problems.is_empty(),
        problems,
    })
}
