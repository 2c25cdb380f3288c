//! The command rules, applied to a call that runs a command.
//!
//! `stead_shell::judge` decides by the words of a line alone. What it allows holds only under
//! conditions that the files decide: a read must stay in the workspace and show nothing that the
//! file rules deny, git must find the workspace's own repository, and a line that was allowed
//! exactly must run the program that was there when it was allowed.
//!
//! Effects: workspace files (reads), the local disk (reads), the store (reads).

mod line_paths;
mod machine;
mod repository;

pub(crate) use line_paths::LinePaths;
pub(crate) use machine::MachineView;

use crate::admission::{CallGate, GateContext};
use line_paths::path_words;
use repository::repository_problem;
use stead_core::{AccessKind, PathAccess, PathScope, Verdict, VerdictKind};
use stead_gate::{CommandFacts, ExactLine, ReadOnlyStatus, RuleMatch, confinement};
use stead_sandbox::Isolation;
use stead_shell::{
    CommandPart, CommandVerdict, Confinement, Invocation, PartVerdict, RedirectKind, ShellLine,
    join_folder, program_files,
};
use stead_tools::CommandLine;
use stead_vfs::{FileKind, Rules, VPath, Vfs, VfsError};

/// A command with everything that the gate must know about it.
pub(crate) struct JudgedCommand {
    pub(crate) facts: CommandFacts,
    /// The files that it plainly reads, for the file rules.
    pub(crate) reads: Vec<PathAccess>,
}

/// A call that runs a command, and the files it finds.
struct CommandCheck<'a> {
    files: &'a dyn Vfs,
    rules: &'a Rules,
    paths: LinePaths<'a>,
    judgement: CommandVerdict,
    /// Why git may do more than read, if the line uses it.
    repository: Option<String>,
}

impl CallGate<'_> {
    /// Returns the isolation of commands.
    pub(crate) fn isolation(&self) -> Isolation {
        let sandbox = self.parts.sandbox.as_ref();
        sandbox.map_or(Isolation::NONE, |sandbox| sandbox.isolation())
    }

    /// Judges a command line that starts in a folder of the workspace.
    pub(crate) fn judge_line(&self, line: &CommandLine) -> CommandVerdict {
        let shell_line = ShellLine::on_host(&line.text)
            .in_folder(&line.cwd)
            .confined(confinement(self.isolation()));
        stead_shell::judge(&self.parts.workspace.config().commands, shell_line)
    }

    /// Judges a command. The files that it reads are left to the file rules.
    pub(crate) async fn judge_command(
        &self,
        files: &dyn Vfs,
        line: &CommandLine,
        context: &GateContext,
    ) -> Result<JudgedCommand, VfsError> {
        let paths = LinePaths::new(files, &context.machine, line).await;
        let line = CommandLine {
            cwd: paths.start.clone(),
            text: line.text.clone(),
        };
        let judgement = self.judge_line(&line);
        let folder = judgement.folder.as_ref().unwrap_or(&paths.start);
        let repository = match judgement.parts.iter().any(|part| part.depth.uses_git()) {
            true => repository_problem(files, folder).await,
            false => None,
        };
        let check = CommandCheck {
            files,
            rules: &self.parts.workspace.rules,
            repository,
            judgement,
            paths,
        };
        let isolation = self.isolation();
        let exact = match confinement(isolation) {
            Confinement::Host => check.exact_line().await,
            Confinement::Sandbox => ExactLine::Holds,
        };
        let facts = CommandFacts {
            rule_match: check.rule_match(&exact).await?,
            exact,
            isolation,
            read_only: check.read_only(),
            network: context.taint.is_some() && stead_shell::names_network(&line.text),
            text: line.text,
            cwd: line.cwd,
        };
        Ok(JudgedCommand {
            facts,
            reads: check.read_accesses().await,
        })
    }
}

impl CallGate<'_> {
    /// Returns the files of the workspace that decide what a command runs, as far as it names them:
    /// scripts, and files such as a Makefile.
    pub(crate) async fn programs_of(
        &self,
        files: &dyn Vfs,
        line: &CommandLine,
        context: &GateContext,
    ) -> Vec<VPath> {
        let paths = LinePaths::new(files, &context.machine, line).await;
        let programs = paths
            .script
            .parts
            .iter()
            .filter_map(|part| program_files(part).ok());
        let words: Vec<String> = programs
            .flat_map(|programs| programs.scripts.into_iter().chain(programs.found))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        paths.located(&words).await
    }
}

impl CommandCheck<'_> {
    /// Returns what the rules say about the command, with the conditions under which that holds.
    async fn rule_match(&self, exact: &ExactLine) -> Result<RuleMatch, VfsError> {
        let judgement = &self.judgement;
        let verdict = Verdict {
            kind: judgement.kind,
            rules: judgement.rules.clone(),
            reason: judgement.reason.clone(),
        };
        match judgement.kind {
            VerdictKind::Deny => return Ok(RuleMatch::Matched(verdict)),
            VerdictKind::Ask => {
                if let Some(verdict) = self.question_about_denied_word().await? {
                    return Ok(RuleMatch::Matched(verdict));
                }
                return Ok(match judgement.rules.is_empty() {
                    true => RuleMatch::NoMatch(judgement.reason.clone()),
                    false => RuleMatch::Matched(verdict),
                });
            }
            VerdictKind::Allow => {}
        }
        if let Some(why) = self.folder_problem().await {
            return Ok(RuleMatch::NoMatch(why));
        }
        for part in judgement
            .parts
            .iter()
            .filter(|part| part.is_allowed_as_read_only())
        {
            if let Some(why) = self.read_problem(part).await {
                return Ok(RuleMatch::NoMatch(why));
            }
        }
        if let ExactLine::Broken(why) = exact
            && judgement.parts.iter().any(PartVerdict::is_allowed_exactly)
        {
            return Ok(RuleMatch::NoMatch(why.clone()));
        }
        let shown = self.shown_folders().await;
        let verdict = match stead_vfs::judge_accesses(self.rules, self.files, &shown).await? {
            Some(restricted) if restricted.kind != VerdictKind::Allow => Verdict {
                kind: VerdictKind::Ask,
                reason: format!(
                    "commands.reads: {}; name the files or folders to look at",
                    restricted.reason
                ),
                rules: restricted.rules,
            },
            Some(_) | None => verdict,
        };
        Ok(RuleMatch::Matched(verdict))
    }

    /// Returns why the folder to which the line goes is not the one that it names.
    async fn folder_problem(&self) -> Option<String> {
        let folder = self.judgement.folder.as_ref()?;
        if *folder == self.paths.start {
            return None;
        }
        let path = VPath::parse(folder).ok()?;
        let stat = self.files.stat(&path).await;
        let is_folder = stat.is_ok_and(|stat| stat.kind == FileKind::Directory);
        let is_real = self
            .files
            .resolve(&path)
            .await
            .is_ok_and(|real| real == path);
        (!is_folder || !is_real).then(|| format!("{folder} is not a folder of the workspace"))
    }

    /// Returns why a part that only reads may show something that is not in the workspace, or run
    /// something.
    async fn read_problem(&self, part: &PartVerdict) -> Option<String> {
        let folder = self.judgement.folder.as_deref()?;
        for word in &part.reads {
            let places = self.paths.machine.locate(folder, word).await;
            if places.outside.is_some() || places.inside.is_empty() {
                return Some(format!("{word} is not in the workspace"));
            }
            for path in places.inside.iter().filter(|_| part.depth.is_for_files()) {
                let stat = self.files.stat(path).await;
                if !stat.is_ok_and(|stat| stat.kind == FileKind::File) {
                    return Some(format!(
                        "{word} is not a file, and `{}` may show more than the file rules allow",
                        part.command
                    ));
                }
            }
        }
        self.git_problem(part)
    }

    /// Returns why git in a part may do more than read.
    fn git_problem(&self, part: &PartVerdict) -> Option<String> {
        let problem = self.repository.as_ref().filter(|_| part.depth.uses_git())?;
        Some(format!(
            "git counts as a read only in the repository of the workspace, and {problem}"
        ))
    }

    /// Returns whether the line certainly only reads.
    fn read_only(&self) -> ReadOnlyStatus {
        let mut parts = self.judgement.parts.iter();
        let runs_programs = parts.any(|part| self.git_problem(part).is_some());
        match self.judgement.reads.is_some() && !runs_programs {
            true => ReadOnlyStatus::Yes,
            false => ReadOnlyStatus::Unknown,
        }
    }

    /// Returns the folders whose contents a part shows that is allowed because it only reads.
    async fn shown_folders(&self) -> Vec<PathAccess> {
        let is_deep = |part: &&PartVerdict| {
            part.is_allowed_as_read_only() && part.depth == stead_shell::ReadDepth::Below
        };
        let parts = self.judgement.parts.iter().filter(is_deep);
        let words: Vec<&str> = parts
            .flat_map(|part| &part.reads)
            .map(String::as_str)
            .collect();
        let folders = self.paths.located(&words).await.into_iter();
        folders
            .map(|path| read_access(path.to_string(), PathScope::Tree))
            .collect()
    }

    /// Returns the accesses to the files that the line plainly reads, wherever it goes before.
    async fn read_accesses(&self) -> Vec<PathAccess> {
        if self.judgement.kind == VerdictKind::Deny {
            return Vec::new();
        }
        let mut words: Vec<&str> = Vec::new();
        for part in &self.judgement.parts {
            words.extend(part.reads.iter().map(String::as_str));
        }
        for part in &self.paths.script.parts {
            let reads = part.redirects.iter();
            let reads = reads.filter(|redirect| redirect.kind == RedirectKind::Read);
            words.extend(reads.filter_map(|redirect| redirect.target.known()));
        }
        let paths = self.paths.located(&words).await;
        let access = |path: VPath| read_access(path.to_string(), PathScope::Content);
        paths.into_iter().map(access).collect()
    }

    /// Returns a question about a word that names a file which may not be read. Whether the command
    /// reads it is not known.
    async fn question_about_denied_word(&self) -> Result<Option<Verdict>, VfsError> {
        let parts = self.paths.script.parts.iter();
        let parts = parts.filter(|part| part.invocation != Invocation::BehindCommand);
        for word in parts.flat_map(path_words) {
            for path in self.paths.located(&[word]).await {
                let access = read_access(path.to_string(), PathScope::Content);
                // The file rules say nothing about a path that cannot be resolved.
                let verdict = stead_vfs::judge_accesses(self.rules, self.files, &[access]).await;
                let denied = verdict.ok().flatten();
                let denied = denied.filter(|verdict| verdict.kind == VerdictKind::Deny);
                if let Some(denied) = denied {
                    return Ok(Some(Verdict {
                        kind: VerdictKind::Ask,
                        reason: format!("`{word}` may not be read ({})", denied.reason),
                        rules: denied.rules,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// Checks that the line runs the programs that were there when somebody allowed it: scripts are
    /// files of the workspace, and no session of this tree wrote what decides what runs.
    async fn exact_line(&self) -> ExactLine {
        let mut watched = Vec::new();
        let folder = self.judgement.folder.as_deref();
        let parts = self.paths.script.parts.iter();
        let parts = parts.filter(|part| part.invocation != Invocation::BehindCommand);
        for part in parts.filter(|part| !is_read(part)) {
            let programs = match program_files(part) {
                Ok(programs) => programs,
                Err(why) => return ExactLine::Broken(why.to_string()),
            };
            let folder = folder.unwrap_or(&self.paths.start);
            for script in &programs.scripts {
                let places = self.paths.machine.locate(folder, script).await;
                let mut is_file = !places.inside.is_empty() && places.outside.is_none();
                for path in &places.inside {
                    let stat = self.files.stat(path).await;
                    is_file &= stat.is_ok_and(|stat| stat.kind == FileKind::File);
                }
                if !is_file {
                    return ExactLine::Broken(format!("{script} is not a file of the workspace"));
                }
                watched.extend(places.inside);
            }
            for found in &programs.found {
                watched.extend(self.paths.machine.locate(folder, found).await.inside);
            }
        }
        match self.paths.machine.written(&watched).await {
            Ok(None) => ExactLine::Holds,
            Ok(Some(path)) => ExactLine::Broken(format!(
                "{path} decides what runs, and this session wrote it"
            )),
            Err(error) => ExactLine::Broken(error.to_string()),
        }
    }
}

fn read_access(path: String, scope: PathScope) -> PathAccess {
    PathAccess {
        path,
        kind: AccessKind::Read,
        scope,
    }
}

/// Whether a part certainly only reads.
fn is_read(part: &CommandPart) -> bool {
    match stead_shell::check_read_only(part) {
        stead_shell::ReadOnlyCheck::Yes { .. } => true,
        stead_shell::ReadOnlyCheck::No { .. } | stead_shell::ReadOnlyCheck::Unclear { .. } => false,
    }
}

/// Returns a path of a command as a path of the workspace; `None` if it is outside.
pub(crate) fn workspace_path(folder: &str, path: &str) -> Option<VPath> {
    VPath::parse(&join_folder(folder, path)?).ok()
}
