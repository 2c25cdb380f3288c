//! `stead workspace`: copying a workspace between folders and stores.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the journal (writes), the network.

use super::args::{CopyArgs, GlobalArgs, WorkspaceCommand};
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::{open_options, workspace_dir};
use super::open_agent::{connect_store, open_workspace, owner, without_model};
use super::print::{clear_status_line, err, errln, out_json, outln};
use super::style::Style;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stead::agent::copy_offloaded;
use stead::core::counted;
use stead::core::{AgentId, Owner, Redactor, SessionId};
use stead::place::{LocalPlace, Place, PlaceSettings, StorePathBase, StorePlace};
use stead::store::{ImportOutcome, OsDisk, Sessions, StoreError};
use stead::vfs::{CopyAction, CopyPlan, Included, Overlay, StoreVfs, VPath, Vfs, is_secret};
use stead::workspace::{Definition, Layout, OpenOptions, offload_folder};

/// One end of a copy: a tree and its sessions.
struct CopyEnd {
    files: Arc<dyn Vfs>,
    sessions: Arc<dyn Sessions>,
    name: String,
    /// The place, for the files of each session.
    place: Arc<dyn Place>,
    owner: Owner,
    agent: AgentId,
}

impl CopyEnd {
    /// Returns the tree as a session sees it.
    fn tree(&self, session: &SessionId) -> Arc<dyn Vfs> {
        self.place.files(&self.owner, session, None)
    }
}

pub(crate) async fn workspace(
    common: &GlobalArgs,
    env: &ProcessEnv,
    command: WorkspaceCommand,
) -> Result<ExitCode, CliError> {
    let how = match &command {
        WorkspaceCommand::Push { how, .. }
        | WorkspaceCommand::Pull { how, .. }
        | WorkspaceCommand::Copy { how, .. } => how.clone(),
    };
    let ends = CopyEnds {
        common,
        env,
        owner: owner(common)?,
        how: &how,
    };
    let (from, to) = match command {
        WorkspaceCommand::Push { url, .. } => (
            ends.current_workspace().await?,
            ends.store(url.as_deref(), CopySide::To).await?,
        ),
        WorkspaceCommand::Pull { url, .. } => (
            ends.store(url.as_deref(), CopySide::From).await?,
            ends.current_workspace().await?,
        ),
        WorkspaceCommand::Copy { from, to, .. }
            if !is_url(&from)
                && !is_url(&to)
                && (how.agent.is_some() || how.namespace.is_some()) =>
        {
            return Err(CliError::usage(
                "--agent and --namespace choose a part of a store, and neither place is one; leave them out",
            ));
        }
        WorkspaceCommand::Copy { from, to, .. } => (
            ends.resolve(&from, CopySide::From).await?,
            ends.resolve(&to, CopySide::To).await?,
        ),
    };
    copy(common, env, &from, &to, &how).await
}

/// The source or the destination of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopySide {
    From,
    To,
}

/// Finds the ends of a copy.
struct CopyEnds<'a> {
    common: &'a GlobalArgs,
    env: &'a ProcessEnv,
    owner: Owner,
    how: &'a CopyArgs,
}

impl CopyEnds<'_> {
    fn options(&self, dir: &Path) -> Result<OpenOptions, CliError> {
        Ok(without_model(open_options(self.common, self.env, dir)?))
    }

    /// Returns the workspace of the command.
    async fn current_workspace(&self) -> Result<CopyEnd, CliError> {
        self.folder(&workspace_dir(self.common, self.env)?).await
    }

    async fn folder(&self, dir: &Path) -> Result<CopyEnd, CliError> {
        let name = dir.display().to_string();
        if !dir.is_dir() {
            return Err(CliError::usage(format!(
                "{name} is not a folder; make it first"
            )));
        }
        let workspace = open_workspace(dir, self.options(dir)?, self.env).await?;
        let Definition {
            layout,
            paths: tree,
            ..
        } = &workspace.definition;
        if !tree.runtime.is_root() {
            return Err(CliError::usage(format!(
                "{name} has the {layout} layout, whose sessions only a folder can hold; copy the folder itself"
            )));
        }
        let agent = workspace.config().agent_id();
        let mut settings = PlaceSettings {
            private_paths: Layout::private_paths(),
            ..PlaceSettings::local(dir, agent.clone())
        };
        let open = |settings: &PlaceSettings| {
            LocalPlace::open(settings, Arc::new(OsDisk), Redactor::default())
                .map_err(|error| CliError::usage(format!("{name}: {error}")))
        };
        let place = open(&settings)?;
        let files = place
            .owner_files(&self.owner)
            .map_err(anyhow::Error::from)?;
        let sessions = place.sessions(&self.owner);
        let owner = self.owner.clone();
        settings.filesystem.scope = workspace.config().filesystem.scope;
        let place: Arc<dyn Place> = Arc::new(open(&settings)?);
        Ok(CopyEnd {
            files,
            sessions,
            name: name.clone(),
            place,
            owner,
            agent,
        })
    }

    /// Opens a store. The agent in it is found by the settings of the command's workspace.
    async fn store(&self, url: Option<&str>, side: CopySide) -> Result<CopyEnd, CliError> {
        let dir = workspace_dir(self.common, self.env)?;
        let definition = open_workspace(&dir, self.options(&dir)?, self.env)
            .await?
            .definition;
        let home = definition.home();
        let config = definition.config;
        // A path on the command line is relative to the current folder; one of the settings, to the
        // workspace.
        let (base, url) = match (url, config.filesystem.url.as_deref()) {
            (Some(url), _) => (StorePathBase::CurrentDir, url),
            (None, Some(url)) => (
                StorePathBase::Workspace {
                    dir: &dir,
                    home: &home,
                },
                url,
            ),
            (None, None) => {
                return Err(CliError::usage(
                    "which store? Give its URL, or set filesystem.url in agent.yaml",
                ));
            }
        };
        if side == CopySide::From {
            require_file(base, url)?;
        }
        let store = connect_store(base, url).await?;
        let name = store.place().to_owned();
        let agent = match &self.how.agent {
            Some(name) => AgentId::new(name)
                .map_err(|error| CliError::usage(format!("--agent {name:?}: {error}")))?,
            None => config.agent_id(),
        };
        let mut settings = config.filesystem.clone();
        settings.namespace = self.how.namespace.clone().or(settings.namespace);
        let empty = Arc::new(StoreVfs::in_memory());
        let place = StorePlace::new(
            store.clone(),
            store,
            empty,
            agent.clone(),
            &settings,
            Redactor::default(),
        );
        let place = place
            .map_err(|error| CliError::usage(error.to_string()))?
            .with_private_paths(&home, &Layout::private_paths());
        let own = place.scope_files(&self.owner, &SessionId::sessionless());
        // Without a user, a push writes the shared template, and a pull reads what everyone sees.
        let files: Arc<dyn Vfs> = match (&self.common.user, side) {
            (Some(_), _) => Arc::new(own),
            (None, CopySide::To) => Arc::new(place.template(&self.owner)),
            (None, CopySide::From) => Arc::new(Overlay::new(
                Arc::new(own),
                Arc::new(place.template(&self.owner)),
            )),
        };
        let sessions = place.sessions(&self.owner);
        let owner = self.owner.clone();
        Ok(CopyEnd {
            files,
            sessions,
            name,
            place: Arc::new(place),
            owner,
            agent,
        })
    }

    async fn resolve(&self, text: &str, side: CopySide) -> Result<CopyEnd, CliError> {
        if is_url(text) {
            self.store(Some(text), side).await
        } else {
            self.folder(Path::new(text)).await
        }
    }
}

/// Whether the end of a copy is the URL of a store, and not a folder.
fn is_url(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(scheme, _)| !scheme.contains('/') && scheme.len() > 1)
}

/// Returns an error if the store to read does not exist.
fn require_file(base: StorePathBase<'_>, url: &str) -> Result<(), CliError> {
    match base.file(url) {
        Some(path) if !path.exists() => Err(CliError::usage(format!(
            "there is no store {}",
            path.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Whether a name is that of a repository, also where case does not matter.
fn is_git(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Whether a path is part of a workspace. Sessions (`agents/`, copied separately), users' folders
/// (`@@…`) and `.git` are not part of it; secrets are skipped and reported.
fn workspace_part(path: &VPath) -> Included {
    let first = path.parts().next().unwrap_or("");
    if first == "agents" || first.starts_with("@@") || path.parts().any(is_git) {
        Included::No
    } else if is_secret(path) {
        Included::Skipped
    } else {
        Included::Yes
    }
}

async fn copy(
    common: &GlobalArgs,
    env: &ProcessEnv,
    from: &CopyEnd,
    to: &CopyEnd,
    how: &CopyArgs,
) -> Result<ExitCode, CliError> {
    // Deletions belong to a user's overlay; a template has none.
    let own = common.user.is_some();
    let part = move |path: &VPath| match path.as_str().starts_with(".stead-overlay.") {
        true if !own => Included::No,
        _ => workspace_part(path),
    };
    let plan = CopyPlan::new(&*from.files, &*to.files, &part)
        .await
        .map_err(anyhow::Error::from)?;
    let only_deletes = plan
        .steps
        .iter()
        .all(|step| step.action == CopyAction::Delete);
    if plan.unchanged == 0 && !plan.steps.is_empty() && only_deletes {
        let from = &from.name;
        let to = &to.name;
        return Err(CliError::usage(format!(
            "{from} has no files; making {to} like it would delete all of it"
        )));
    }
    if !how.dry_run {
        let progress = CopyProgress::new(env, plan.steps.len());
        let applied = plan
            .apply(&*from.files, &*to.files, &|_| progress.step())
            .await;
        progress.end();
        applied.map_err(anyhow::Error::from)?;
    }
    let moved = if how.no_sessions {
        MovedSessions::default()
    } else {
        copy_sessions(from, to, how).await?
    };
    print_report(env, from, to, how, &plan, &moved);
    Ok(ExitCode::from(u8::from(!moved.differ.is_empty())))
}

/// The outcome of copying sessions.
#[derive(Default)]
struct MovedSessions {
    sessions: Vec<String>,
    same: usize,
    differ: Vec<String>,
    /// The number of offloaded files.
    offloaded: usize,
}

async fn copy_sessions(
    from: &CopyEnd,
    to: &CopyEnd,
    how: &CopyArgs,
) -> Result<MovedSessions, CliError> {
    let mut moved = MovedSessions::default();
    let known: BTreeSet<SessionId> = to
        .sessions
        .list_all()
        .await?
        .into_iter()
        .map(|summary| summary.id)
        .collect();
    for summary in from.sessions.list_all().await? {
        let id = summary.id;
        let lines = from.sessions.export(&id).await?;
        if how.dry_run {
            let there = if known.contains(&id) {
                to.sessions.export(&id).await?
            } else {
                Vec::new()
            };
            let common = there.len().min(lines.len());
            match (
                there[..common] == lines[..common],
                there.len() >= lines.len(),
            ) {
                (false, _) => moved.differ.push(id.to_string()),
                (true, true) => moved.same += 1,
                (true, false) => moved.sessions.push(id.to_string()),
            }
            continue;
        }
        match to.sessions.import(&id, lines).await {
            Ok(ImportOutcome::New | ImportOutcome::Extended) => moved.sessions.push(id.to_string()),
            Ok(ImportOutcome::Same) => moved.same += 1,
            Err(StoreError::Exists(_)) => {
                moved.differ.push(id.to_string());
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        // Also for a session that exists already: an earlier copy may have been interrupted.
        let folder =
            offload_folder(&VPath::root(), &from.agent).and_then(|folder| folder.join(id.as_str()));
        let folder = folder.map_err(anyhow::Error::from)?;
        moved.offloaded += copy_offloaded(from.tree(&id), to.tree(&id), &folder)
            .await
            .map_err(anyhow::Error::from)?;
    }
    Ok(moved)
}

fn print_report(
    env: &ProcessEnv,
    from: &CopyEnd,
    to: &CopyEnd,
    how: &CopyArgs,
    plan: &CopyPlan,
    moved: &MovedSessions,
) {
    let word = |action| match action {
        CopyAction::MakeDirectory => "directory",
        CopyAction::Create => "create",
        CopyAction::Update => "update",
        CopyAction::Delete => "delete",
    };
    if how.json {
        let steps: Vec<_> = plan
            .steps
            .iter()
            .map(|s| json!({"action": word(s.action), "path": s.path.as_str()}))
            .collect();
        let skipped: Vec<&str> = plan.skipped.iter().map(VPath::as_str).collect();
        let report = json!({
            "from": from.name, "to": to.name, "done": !how.dry_run, "steps": steps, "unchanged": plan.unchanged,
            "bytes": plan.bytes, "skipped": skipped, "sessions": moved.sessions, "sessions_same": moved.same,
            "sessions_differ": moved.differ, "offloaded": moved.offloaded,
        });
        out_json(&report);
        return;
    }
    let style = Style::stdout(env);
    for step in &plan.steps {
        let action = word(step.action);
        let path = &step.path;
        match step.action {
            CopyAction::Delete => outln!("{} {path}", style.bad(&format!("{action:<9}"))),
            CopyAction::Create | CopyAction::MakeDirectory => {
                outln!("{} {path}", style.good(&format!("{action:<9}")));
            }
            CopyAction::Update => outln!("{} {path}", style.warn(&format!("{action:<9}"))),
        }
    }
    for path in &plan.skipped {
        errln!("skipped   {path}: it holds secrets, or is not a regular file");
    }
    for id in &moved.differ {
        errln!(
            "session {id} continued differently in both places and was not copied; fork it to keep both"
        );
    }
    let count = |wanted: &[CopyAction]| {
        plan.steps
            .iter()
            .filter(|step| wanted.contains(&step.action))
            .count()
    };
    for id in &moved.sessions {
        outln!("session   {id}");
    }
    outln!(
        "{} → {}: {} moved ({} KB), {} deleted, {} unchanged; {} moved, {} unchanged{}",
        from.name,
        to.name,
        counted(count(&[CopyAction::Create, CopyAction::Update]), "file"),
        plan.bytes.div_ceil(1024),
        count(&[CopyAction::Delete]),
        plan.unchanged,
        counted(moved.sessions.len(), "session"),
        moved.same,
        if how.dry_run {
            " (a dry run: nothing was done)"
        } else {
            ""
        }
    );
}

/// A counter on the terminal while files are copied.
struct CopyProgress {
    shown: bool,
    total: usize,
    done: AtomicUsize,
}

impl CopyProgress {
    fn new(env: &ProcessEnv, total: usize) -> Self {
        Self {
            shown: env.stderr_is_terminal && total > 0,
            total,
            done: AtomicUsize::new(0),
        }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if self.shown {
            clear_status_line();
            err(format_args!("{done}/{} ", self.total));
        }
    }

    fn end(&self) {
        if self.shown {
            clear_status_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_and_secrets_are_no_part_of_a_workspace() {
        let table = [
            ("notes/a.md", Included::Yes),
            ("agent.yaml", Included::Yes),
            (".gitignore", Included::Yes),
            (".git/config", Included::No),
            ("skills/a/.git/config", Included::No),
            ("skills/a/.GIT/config", Included::No),
            ("skills/a/.git", Included::No),
            ("skills/a/.env", Included::Skipped),
            ("agents/main/x", Included::No),
        ];
        for (path, expected) in table {
            let included = workspace_part(&VPath::parse(path).unwrap());
            assert_eq!(included, expected, "{path}");
        }
    }
}
