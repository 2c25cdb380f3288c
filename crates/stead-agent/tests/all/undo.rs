//! The place for tests of undoing a run: exact restoration, foreign edits, retention limits and
//! links.

use crate::crash_scenario::contents;
use crate::support::{agent, block_on, session, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApplyMode, RunOptions, UndoObstacle};
use stead_core::{RunId, RunOutcome};
use stead_model::ScriptedModel;
use stead_vfs::VPath;

/// Creates, edits, deletes and moves, of files and directories.
const SCRIPT: &str = r#"
- calls:
  - {tool: write_file, args: {file_path: new/deep/a.txt, content: "alpha\n"}}
  - {tool: edit_file, args: {file_path: edit.txt, old_string: two, new_string: "2"}}
- calls:
  - {tool: write_file, args: {file_path: edit.txt, content: "more\n", mode: append}}
  - {tool: delete_file, args: {file_path: old}}
  - {tool: move_file, args: {from: tree, to: moved/tree}}
- calls:
  - {tool: write_file, args: {file_path: moved/tree/x.txt, content: "changed\n", mode: overwrite}}
  - {tool: write_file, args: {file_path: passing.txt, content: "here and gone\n"}}
  - {tool: delete_file, args: {file_path: passing.txt}}
- text: Done.
"#;

fn lay_out(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    for (name, content) in [
        ("edit.txt", "one two three\n"),
        ("old/1.txt", "first\n"),
        ("old/sub/2.txt", "second\n"),
        ("tree/x.txt", "x\n"),
        ("tree/run.sh", "#!/bin/sh\n"),
        ("other.txt", "not ours\n"),
    ] {
        std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        std::fs::write(dir.join(name), content).unwrap();
    }
    std::fs::create_dir(dir.join("old/empty")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.join("tree/run.sh"), mode).unwrap();
    contents(dir)
}

async fn worked(dir: &Path) -> (Arc<Agent>, RunId) {
    let agent = agent(dir, Arc::new(ScriptedModel::parse("s", SCRIPT).unwrap())).await;
    let report = agent
        .session(session("s"))
        .run(text("Go."), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Completed, "{report:?}");
    assert!(
        dir.join("moved/tree/x.txt").exists()
            && !dir.join("old").exists()
            && !dir.join("passing.txt").exists()
    );
    (agent, report.run)
}

#[test]
fn a_run_with_creates_edits_deletes_and_moves_is_undone_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let laid_out = lay_out(dir.path());
    block_on(async {
        let (agent, run) = worked(dir.path()).await;
        std::fs::write(dir.path().join("other.txt"), "changed by a person\n").unwrap();
        let plan = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(&[run])
            .await
            .unwrap();
        assert_eq!(plan.obstacles, []);
        let mut expected = laid_out;
        expected.insert("other.txt".into(), b"changed by a person\n".to_vec());
        assert_eq!(contents(dir.path()), expected);
        let mode = std::fs::metadata(dir.path().join("tree/run.sh")).unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
            0o755
        );
    });
}

#[test]
fn a_foreign_edit_is_named_and_nothing_at_all_is_undone() {
    for (foreign, content) in [
        ("edit.txt", Some("mine now\n")),
        ("moved/tree/x.txt", Some("mine")),
        ("moved/tree/run.sh", None),
        ("old", Some("a file")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path());
        block_on(async {
            let (agent, run) = worked(dir.path()).await;
            match content {
                Some(content) => std::fs::write(dir.path().join(foreign), content).unwrap(),
                None => std::fs::write(dir.path().join(foreign), "#!/bin/sh\nrm\n").unwrap(),
            }
            let before = contents(dir.path());
            let plan = agent
                .undo(agent.owner(), &session("s"))
                .undo_runs(&[run])
                .await
                .unwrap();
            let named = plan.obstacles.iter().any(|obstacle| match obstacle {
                UndoObstacle::Changed(path) => {
                    *path == VPath::parse(foreign).unwrap() || foreign == "old"
                }
                UndoObstacle::NotCaptured { .. } | UndoObstacle::Forgotten(_) => false,
            });
            assert!(named, "{foreign}: {:?}", plan.obstacles);
            assert_eq!(contents(dir.path()), before, "{foreign}");
        });
    }
}

#[test]
fn what_others_put_into_a_directory_of_the_run_stays() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let (agent, run) = worked(dir.path()).await;
        std::fs::write(dir.path().join("new/mine.txt"), "keep").unwrap();
        let plan = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(std::slice::from_ref(&run))
            .await
            .unwrap();
        assert_eq!(plan.obstacles, []);
        assert_eq!(
            std::fs::read(dir.path().join("new/mine.txt")).unwrap(),
            b"keep"
        );
        assert!(!dir.path().join("new/deep").exists());
        // There is nothing left to undo.
        let again = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(&[run])
            .await
            .unwrap();
        assert!(
            again.steps.is_empty() && again.obstacles.is_empty(),
            "{again:?}"
        );
    });
}

#[test]
fn memory_is_forgotten_when_it_is_old_or_too_much() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let (_, run) = worked(dir.path()).await;
        // The limit is set afterwards, because some runs collect garbage at their end.
        std::fs::write(dir.path().join("agent.yaml"), "undo: {max_mb: 0}\n").unwrap();
        let model = Arc::new(ScriptedModel::parse("s", SCRIPT).unwrap());
        let agent = agent(dir.path(), model).await;
        let images = dir.path().join("agents/main/undo/images");
        let kept = std::fs::read_dir(&images).unwrap().count();
        let dry = agent
            .collector(agent.owner())
            .collect(ApplyMode::DryRun)
            .await
            .unwrap();
        assert_eq!((dry.runs, dry.kept_bytes), (1, 0));
        // What was kept a moment ago may be about to be referred to.
        assert_eq!(
            agent
                .collector(agent.owner())
                .collect(ApplyMode::Apply)
                .await
                .unwrap()
                .contents,
            0
        );
        assert_eq!(std::fs::read_dir(&images).unwrap().count(), kept);
        let plan = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(std::slice::from_ref(&run))
            .await
            .unwrap();
        assert_eq!(
            (plan.steps.len(), plan.obstacles),
            (0, vec![UndoObstacle::Forgotten(run)])
        );
    });
}

/// A directory becomes a file, and a file becomes a directory.
const SWAPS: &str = r#"
- calls:
  - {tool: delete_file, args: {file_path: old}}
  - {tool: delete_file, args: {file_path: edit.txt}}
- calls:
  - {tool: write_file, args: {file_path: old, content: "a file now\n"}}
  - {tool: write_file, args: {file_path: edit.txt/deep/x, content: "x\n"}}
- text: Done.
"#;

#[test]
fn files_and_directories_that_changed_places_change_back() {
    for foreign in [None, Some("edit.txt/deep/mine")] {
        let dir = tempfile::tempdir().unwrap();
        let laid_out = lay_out(dir.path());
        block_on(async {
            let agent = agent(
                dir.path(),
                Arc::new(ScriptedModel::parse("s", SWAPS).unwrap()),
            )
            .await;
            let report = agent
                .session(session("s"))
                .run(text("Go."), RunOptions::default())
                .await
                .unwrap();
            assert_eq!(report.outcome, RunOutcome::Completed, "{report:?}");
            foreign
                .iter()
                .for_each(|path| std::fs::write(dir.path().join(path), "mine").unwrap());
            let before = contents(dir.path());
            let plan = agent
                .undo(agent.owner(), &session("s"))
                .undo_runs(&[report.run])
                .await
                .unwrap();
            match foreign {
                None => assert_eq!((plan.obstacles, contents(dir.path())), (vec![], laid_out)),
                Some(path) => {
                    assert_eq!(
                        plan.obstacles,
                        [UndoObstacle::Changed(VPath::parse(path).unwrap())]
                    );
                    assert_eq!(contents(dir.path()), before, "nothing at all is undone");
                }
            }
        });
    }
}

#[test]
fn what_is_no_longer_known_is_said_and_what_was_undone_is_not_mistaken_for_it() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let (agent, run) = worked(dir.path()).await;
        std::fs::remove_dir_all(dir.path().join("agents/main/undo/runs")).unwrap();
        let plan = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(std::slice::from_ref(&run))
            .await
            .unwrap();
        assert_eq!(plan.obstacles, [UndoObstacle::Forgotten(run)]);
    });
}

#[test]
fn a_link_that_came_since_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let (agent, run) = worked(dir.path()).await;
        std::fs::rename(dir.path().join("moved"), dir.path().join("moved_")).unwrap();
        std::fs::create_dir(dir.path().join("theirs")).unwrap();
        std::os::unix::fs::symlink("theirs", dir.path().join("moved")).unwrap();
        let plan = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(&[run])
            .await
            .unwrap();
        assert!(!plan.obstacles.is_empty(), "{plan:?}");
    });
}

#[cfg(unix)]
fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Runs a script, undoes it, and returns the obstacles.
async fn run_and_undo(dir: &Path, script: &str) -> Vec<String> {
    let agent = agent(dir, Arc::new(ScriptedModel::parse("s", script).unwrap())).await;
    let report = agent
        .session(session("s"))
        .run(text("Go."), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Completed, "{report:?}");
    let undo = agent.undo(agent.owner(), &session("s"));
    let plan = undo.undo_runs(&[report.run]).await.unwrap();
    plan.obstacles.iter().map(ToString::to_string).collect()
}

#[test]
fn a_deleted_directory_comes_back_with_its_permission_bits() {
    let dir = tempfile::tempdir().unwrap();
    let set = |path: &str, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(dir.path().join(path), mode).unwrap();
    };
    std::fs::create_dir_all(dir.path().join("private/inner")).unwrap();
    std::fs::write(dir.path().join("private/inner/a.txt"), "a").unwrap();
    set("private/inner/a.txt", 0o640);
    set("private/inner", 0o750);
    set("private", 0o700);
    let script = "- calls: [{tool: delete_file, args: {file_path: private}}]\n- text: Done.\n";
    block_on(async {
        assert_eq!(run_and_undo(dir.path(), script).await, Vec::<String>::new());
    });
    for (path, mode) in [
        ("private", 0o700),
        ("private/inner", 0o750),
        ("private/inner/a.txt", 0o640),
    ] {
        assert_eq!(mode_of(&dir.path().join(path)), mode, "{path}");
    }
}

#[test]
fn what_is_not_kept_is_moved_back_if_it_was_only_moved() {
    let lay_out = || {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tree")).unwrap();
        std::fs::write(dir.path().join("target.txt"), "t").unwrap();
        std::os::unix::fs::symlink("target.txt", dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("../target.txt", dir.path().join("tree/link")).unwrap();
        let large = std::fs::File::create(dir.path().join("tree/large.bin")).unwrap();
        large.set_len(65 * 1024 * 1024).unwrap();
        dir
    };
    let moves = "
- calls: [{tool: move_file, args: {from: link, to: elsewhere/link}}]
- calls: [{tool: move_file, args: {from: elsewhere/link, to: elsewhere/again}}]
- calls: [{tool: move_file, args: {from: tree, to: moved}}]
- text: Done.
";
    let dir = lay_out();
    block_on(async {
        assert_eq!(run_and_undo(dir.path(), moves).await, Vec::<String>::new());
    });
    let is_link = |path: &str| dir.path().join(path).is_symlink();
    assert!(is_link("link") && is_link("tree/link"));
    let large = std::fs::metadata(dir.path().join("tree/large.bin")).unwrap();
    assert_eq!(large.len(), 65 * 1024 * 1024);
    assert!(!dir.path().join("moved").exists() && !dir.path().join("elsewhere").exists());

    let removed =
        "- calls: [{tool: delete_file, args: {file_path: tree/large.bin}}]\n- text: Done.\n";
    let dir = lay_out();
    block_on(async {
        let obstacles = run_and_undo(dir.path(), removed).await;
        let reason = "tree/large.bin cannot be put back: it is too large to be kept";
        assert_eq!(obstacles, [reason]);
    });
}
