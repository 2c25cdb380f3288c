//! The trust of one call: what its result brings in, and what it carries into files.
//!
//! Effects: the clock, randomness, workspace files (reads), the store (writes), the journal
//! (reads).

use super::command_paths::{NamedPath, PathCertainty};
use super::command_source::{CommandSource, FileRead, ReadExtent, command_source};
use super::files::{TaintMark, TaintedPath, content_id, mark_of};
use super::prompt_sources::PromptSources;
use super::records::SessionRecords;
use super::{named_paths, tool_origins};
use crate::admission::CallGate;
use crate::{AgentError, Session};
use std::collections::BTreeMap;
use stead_core::{
    AccessKind, Block, CallResult, PathAccess, PathScope, Redactor, ResultStatus, TaintOrigin,
    ToolEffect, ToolKind,
};
use stead_sandbox::Isolation;
use stead_shell::TargetRole;
use stead_tools::PreparedCall;
use stead_vfs::{FileKind, VPath, Vfs};

/// The most paths of one call that are watched for changes. If it names more, the folder that holds
/// the others counts as changed.
const MAX_WATCHED: usize = 64;

/// What is known about the trust of a call before it runs.
#[derive(Debug, Default)]
pub(crate) struct CallTaint {
    /// The origins of the result, whatever files it shows.
    origins: Vec<TaintOrigin>,
    /// The files and folders that the result may show.
    reads: Vec<FileRead>,
    /// The text of programs that the call runs, which may name files.
    scripts: Vec<String>,
    /// The files that the call writes.
    writes: Vec<VPath>,
    /// The moves that the call makes, from and to.
    moves: Vec<(VPath, VPath)>,
    /// The paths that the call may change, with what is there before.
    watched: Vec<WatchedPath>,
    /// The folder that holds all further ones.
    unwatched: Option<VPath>,
}

/// A path that a call may change.
#[derive(Debug)]
struct WatchedPath {
    path: VPath,
    before: PathContent,
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum PathContent {
    Nothing,
    File(String),
    Folder,
}

impl CallTaint {
    /// Looks at a call that is about to run.
    pub(crate) async fn before(
        gate: &CallGate<'_>,
        files: &dyn Vfs,
        prepared: &PreparedCall,
    ) -> Self {
        match prepared.plan().command() {
            Some(line) => {
                let judgement = gate.judge_line(line);
                let named = named_paths(&line.text, &line.cwd);
                let source = command_source(line, &judgement, gate.isolation(), &named);
                let CommandSource { origins, reads } = source;
                if judgement.reads.is_some() {
                    return Self {
                        origins,
                        reads,
                        ..Self::default()
                    };
                }
                let (watched, unwatched) = watch(files, changeable_paths(&named)).await;
                Self {
                    scripts: scripts(&named, gate.isolation()),
                    watched,
                    unwatched,
                    origins,
                    reads,
                    ..Self::default()
                }
            }
            None => Self::of_tool(gate, files, prepared).await,
        }
    }

    async fn of_tool(gate: &CallGate<'_>, files: &dyn Vfs, prepared: &PreparedCall) -> Self {
        let spec = prepared.spec();
        let plan = prepared.plan();
        let trust = &gate.parts.workspace.config().trust;
        let extent = match spec.kind {
            ToolKind::FileRead | ToolKind::FileWrite => ReadExtent::ShownLines,
            ToolKind::Command
            | ToolKind::PlanEnter
            | ToolKind::PlanWrite
            | ToolKind::PlanExit
            | ToolKind::Todo
            | ToolKind::Task
            | ToolKind::Skill
            | ToolKind::Lookup
            | ToolKind::MemorySave
            | ToolKind::MemoryForget
            | ToolKind::Delegation
            | ToolKind::SwitchAgent
            | ToolKind::Client
            | ToolKind::Message
            | ToolKind::Other => ReadExtent::Below,
        };
        let mut taint = Self {
            origins: tool_origins(spec, plan, trust),
            ..Self::default()
        };
        for access in plan.accesses() {
            taint.add_access(access, extent);
        }
        // A tool of the program may touch the files that its arguments name.
        if spec.kind == ToolKind::Other {
            let named: Vec<VPath> = parsed(plan.named_paths());
            let read = |path: &VPath| FileRead {
                path: path.clone(),
                extent,
            };
            taint.reads.extend(named.iter().map(read));
            if spec.risk.effect > ToolEffect::Reads {
                (taint.watched, taint.unwatched) = watch(files, named).await;
            }
        }
        taint
    }

    fn add_access(&mut self, access: &PathAccess, extent: ReadExtent) {
        let Ok(path) = VPath::parse(&access.path) else {
            return;
        };
        match (access.kind, &access.scope) {
            (AccessKind::Read, PathScope::Content | PathScope::Arrival { .. }) => {
                self.reads.push(FileRead { path, extent });
            }
            (AccessKind::Write, PathScope::Content) => self.writes.push(path),
            (AccessKind::Write, PathScope::Arrival { from }) => {
                self.moves
                    .extend(VPath::parse(from).ok().map(|from| (from, path)));
            }
            // The source of a move, or what is deleted: nothing of it is shown.
            (AccessKind::Read | AccessKind::Write, PathScope::Tree) => {}
        }
    }

    /// Adds to the result of the call where its content comes from, and marks the files that it
    /// carried such content into. If it is not known which files are tainted, the result is.
    pub(crate) async fn settle(
        self,
        session: &Session,
        files: &dyn Vfs,
        result: &mut CallResult,
    ) -> Result<(), AgentError> {
        let settled = self.settle_files(session, files, result).await;
        if settled.is_err() {
            result.add_taint([TaintOrigin::Unknown]);
        }
        settled
    }

    async fn settle_files(
        self,
        session: &Session,
        files: &dyn Vfs,
        result: &mut CallResult,
    ) -> Result<(), AgentError> {
        match result.status {
            ResultStatus::Ok | ResultStatus::Error | ResultStatus::Cancelled => {}
            // It did not run.
            ResultStatus::Denied | ResultStatus::Interrupted | ResultStatus::Skipped => {
                return Ok(());
            }
        }
        let definition = &session.agent().workspace().definition;
        let records = SessionRecords::new(&definition.paths);
        let journals = session.journals();
        result.add_taint(self.origins.iter().cloned());
        for read in &self.reads {
            result.add_taint(records.taint_of(read, &**journals).await);
        }
        result.add_taint(records.taint_shown_in(&result.content, &**journals).await);
        let touches_files = !self.reads.is_empty() || !self.scripts.is_empty();
        if touches_files || !self.moves.is_empty() {
            let marks = session
                .tainted_files()
                .marks(&session.owner_state())
                .await?;
            if !marks.is_empty() {
                let shown = self.shown_marks(&marks, files, result).await;
                let trust = &definition.config.trust;
                let shown = shown
                    .into_iter()
                    .filter(|(path, _)| !trust.trusts_file(path));
                let origins: Vec<TaintOrigin> =
                    shown.flat_map(|(path, mark)| mark.origins(&path)).collect();
                result.add_taint(origins);
                self.move_marks(session, files, &marks).await?;
            }
        }
        self.mark_changes(session, files, result).await
    }

    /// Returns the marks of files whose content the result may show.
    async fn shown_marks(
        &self,
        marks: &BTreeMap<String, TaintMark>,
        files: &dyn Vfs,
        result: &CallResult,
    ) -> Vec<(VPath, TaintMark)> {
        let mut candidates: Vec<(VPath, TaintMark)> = Vec::new();
        let mut add = |path: VPath, mark: &TaintMark| {
            if !candidates.iter().any(|(known, _)| *known == path) {
                candidates.push((path, mark.clone()));
            }
        };
        for FileRead { path, extent } in &self.reads {
            let real = files.resolve(path).await;
            let real = real.unwrap_or_else(|_| path.clone());
            if let Some(mark) = mark_of(marks, &real) {
                add(real.clone(), mark);
            }
            for (marked, mark) in marks_below(marks, &real) {
                let is_shown = match extent {
                    ReadExtent::File => false,
                    ReadExtent::Children => marked.parent().as_ref() == Some(&real),
                    ReadExtent::ShownLines => shows_lines_of(&result.content, &marked),
                    ReadExtent::Below => true,
                };
                if is_shown {
                    add(marked, mark);
                }
            }
        }
        for (path, mark) in marks {
            let is_named = self.scripts.iter().any(|text| text.contains(path.as_str()));
            if let (true, Ok(path)) = (is_named, VPath::parse(path)) {
                add(path, mark);
            }
        }
        let mut shown = Vec::new();
        for (path, mark) in candidates {
            if mark.is_folder() || is_still_tainted(files, &path, &mark).await {
                shown.push((path, mark));
            }
        }
        shown
    }

    /// Marks what was moved where it is now.
    async fn move_marks(
        &self,
        session: &Session,
        files: &dyn Vfs,
        marks: &BTreeMap<String, TaintMark>,
    ) -> Result<(), AgentError> {
        for (from, to) in &self.moves {
            let own = mark_of(marks, from).map(|mark| (from.clone(), mark));
            for (marked, mark) in own.into_iter().chain(marks_below(marks, from)) {
                let rest = marked.as_str().strip_prefix(from.as_str());
                let Some(Ok(path)) = rest.map(|rest| to.join(rest)) else {
                    continue;
                };
                let content = content_id(files, &path).await;
                let is_tainted = match &content {
                    Some(content) => mark.covers(content),
                    None => mark.is_folder() && is_folder(files, &path).await,
                };
                if is_tainted {
                    let origins = mark.origins(&marked);
                    let moved = [TaintedPath { path, content }];
                    session
                        .tainted_files()
                        .mark(&session.owner_state(), &moved, &origins)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Marks what the call wrote, if the session or the call is tainted.
    async fn mark_changes(
        &self,
        session: &Session,
        files: &dyn Vfs,
        result: &CallResult,
    ) -> Result<(), AgentError> {
        let taint = session.taint();
        if taint.is_none() && !result.untrusted {
            return Ok(());
        }
        let sources = PromptSources::new(&session.agent().workspace().definition.paths);
        // A person agreed to this very change.
        let is_agreed = |path: &VPath| taint.is_some() && sources.contains(path);
        let mut changed = Vec::new();
        for path in self
            .writes
            .iter()
            .chain(self.moves.iter().map(|(_, to)| to))
        {
            let path = files.resolve(path).await.unwrap_or_else(|_| path.clone());
            let content = content_id(files, &path).await;
            if content.is_some() && !is_agreed(&path) {
                changed.push(TaintedPath { path, content });
            }
        }
        for WatchedPath { path, before } in &self.watched {
            let now = path_content(files, path).await;
            if now == *before || now == PathContent::Nothing || is_agreed(path) {
                continue;
            }
            let content = content_id(files, path).await;
            let path = path.clone();
            match (before, now) {
                (_, PathContent::File(_)) => changed.push(TaintedPath { path, content }),
                // The call made it.
                (PathContent::Nothing | PathContent::File(_), PathContent::Folder) => {
                    changed.push(TaintedPath {
                        path,
                        content: None,
                    });
                }
                (PathContent::Folder, PathContent::Folder) | (_, PathContent::Nothing) => {}
            }
        }
        changed.extend(self.unwatched.iter().map(|folder| TaintedPath {
            path: folder.clone(),
            content: None,
        }));
        let inherited = taint.map(|taint| taint.origins.named().to_vec());
        let origins: Vec<TaintOrigin> = result
            .taint
            .iter()
            .cloned()
            .chain(inherited.unwrap_or_default())
            .map(|origin| redacted(origin, session.redactor()))
            .collect();
        session
            .tainted_files()
            .mark(&session.owner_state(), &changed, &origins)
            .await?;
        Ok(())
    }
}

/// Returns the origin without secrets, which a command may contain.
fn redacted(origin: TaintOrigin, redactor: &Redactor) -> TaintOrigin {
    match origin {
        TaintOrigin::Command { command } => TaintOrigin::Command {
            command: redactor.redact(&command).into_owned(),
        },
        other @ (TaintOrigin::Network { .. }
        | TaintOrigin::Server { .. }
        | TaintOrigin::Client { .. }
        | TaintOrigin::File { .. }
        | TaintOrigin::Session { .. }
        | TaintOrigin::Unknown) => other,
    }
}

/// Returns the programs in the arguments of a command. They matter where nothing else says what the
/// command reads.
fn scripts(named: &[NamedPath], isolation: Isolation) -> Vec<String> {
    let is_script = |named: &&NamedPath| match named.role {
        TargetRole::Script => isolation.is_complete(),
        TargetRole::Changed | TargetRole::Argument => false,
    };
    let texts = named.iter().filter(is_script);
    texts.map(|named| named.word.clone()).collect()
}

/// Returns the paths of the workspace that a command names.
fn changeable_paths(named: &[NamedPath]) -> Vec<VPath> {
    let inside = named.iter().filter(|named| match named.certainty {
        PathCertainty::Workspace => true,
        PathCertainty::Elsewhere => false,
    });
    inside.filter_map(|named| named.path.clone()).collect()
}

fn parsed(paths: &[String]) -> Vec<VPath> {
    let paths = paths.iter().filter_map(|path| VPath::parse(path).ok());
    paths.collect()
}

async fn watch(files: &dyn Vfs, paths: Vec<VPath>) -> (Vec<WatchedPath>, Option<VPath>) {
    let mut watched: Vec<WatchedPath> = Vec::new();
    let mut unwatched: Option<VPath> = None;
    for path in paths.into_iter().filter(|path| !path.is_root()) {
        let path = files.resolve(&path).await.unwrap_or(path);
        if watched.iter().any(|known| known.path == path) {
            continue;
        }
        if watched.len() < MAX_WATCHED {
            let before = path_content(files, &path).await;
            watched.push(WatchedPath { path, before });
            continue;
        }
        let folder = path.parent().unwrap_or(VPath::root());
        unwatched = Some(match unwatched {
            Some(known) => common_folder(known, &folder),
            None => folder,
        });
    }
    (watched, unwatched)
}

/// Returns the deepest folder that holds both.
fn common_folder(mut one: VPath, other: &VPath) -> VPath {
    while !one.contains(other) {
        one = one.parent().unwrap_or(VPath::root());
    }
    one
}

async fn path_content(files: &dyn Vfs, path: &VPath) -> PathContent {
    match files.stat(path).await {
        Ok(stat) => match stat.kind {
            FileKind::Directory => PathContent::Folder,
            FileKind::File | FileKind::Other => PathContent::File(stat.version.to_string()),
        },
        Err(_) => PathContent::Nothing,
    }
}

async fn is_folder(files: &dyn Vfs, path: &VPath) -> bool {
    path_content(files, path).await == PathContent::Folder
}

/// Whether a marked file still has a content that was tainted.
async fn is_still_tainted(files: &dyn Vfs, path: &VPath, mark: &TaintMark) -> bool {
    let content = content_id(files, path).await;
    content.is_some_and(|content| mark.covers(&content))
}

/// Returns the marks below a folder.
fn marks_below<'a>(
    marks: &'a BTreeMap<String, TaintMark>,
    folder: &VPath,
) -> Vec<(VPath, &'a TaintMark)> {
    let below = marks.iter().filter_map(|(path, mark)| {
        let path = VPath::parse(path).ok()?;
        (folder.contains(&path) && *folder != path).then_some((path, mark))
    });
    below.collect()
}

/// Whether an output has lines of the file at `path`, or of a file below it: `path:…`, `path-…`.
fn shows_lines_of(content: &[Block], path: &VPath) -> bool {
    let starts = |line: &str| {
        let line = line.strip_prefix("./").unwrap_or(line);
        line.strip_prefix(path.as_str())
            .is_some_and(|rest| match rest.chars().next() {
                Some('/') => rest.contains(':'),
                first => matches!(first, Some(':' | '-')),
            })
    };
    let texts = content.iter().filter_map(Block::as_text);
    texts.flat_map(str::lines).any(starts)
}
