//! Test support: a small job with every kind of change and its invariants, used by the crash and
//! disk fault tests.

use crate::support::{journal, model, results, session};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use stead_agent::Agent;
use stead_core::{Entry, JournalLine, ResultStatus};
use stead_model::Model;
use stead_testkit::{FakeAnswer, FakeModel, FakeWire, RecordedRequest, RequestTurn, reply};

pub(crate) const INPUT: &str = "Do the job.";

/// One change: the call that makes it, and a file before and after.
struct Change {
    tool: &'static str,
    args: Value,
    file: &'static str,
    before: Option<&'static str>,
    after: Option<&'static str>,
}

/// The steps of the job. Appending is there because doing it twice shows.
fn steps() -> Vec<Vec<Change>> {
    let change = |tool, args, file, before, after| Change {
        tool,
        args,
        file,
        before,
        after,
    };
    vec![
        vec![
            change(
                "write_file",
                json!({"file_path": "new/a.txt", "content": "alpha\n"}),
                "new/a.txt",
                None,
                Some("alpha\n"),
            ),
            change(
                "read_file",
                json!({"file_path": "edit.txt"}),
                "read.txt",
                Some("r"),
                Some("r"),
            ),
            change(
                "read_file",
                json!({"file_path": "old.txt"}),
                "read.txt",
                Some("r"),
                Some("r"),
            ),
            change(
                "write_file",
                json!({"file_path": "b.txt", "content": "beta\n"}),
                "b.txt",
                None,
                Some("beta\n"),
            ),
        ],
        vec![
            change(
                "edit_file",
                json!({"file_path": "edit.txt", "old_string": "two", "new_string": "2"}),
                "edit.txt",
                Some("one two three\n"),
                Some("one 2 three\n"),
            ),
            change(
                "write_file",
                json!({"file_path": "log.txt", "content": "x\n", "mode": "append"}),
                "log.txt",
                Some("x\n"),
                Some("x\nx\n"),
            ),
        ],
        vec![
            change(
                "delete_file",
                json!({"file_path": "old.txt"}),
                "old.txt",
                Some("old\n"),
                None,
            ),
            change(
                "move_file",
                json!({"from": "m.txt", "to": "n.txt"}),
                "n.txt",
                None,
                Some("moved\n"),
            ),
        ],
    ]
}

/// Lays out the files that the job begins with.
pub(crate) fn lay_out(dir: &Path) {
    for (name, content) in [
        ("edit.txt", "one two three\n"),
        ("log.txt", "x\n"),
        ("old.txt", "old\n"),
        ("m.txt", "moved\n"),
        ("read.txt", "r"),
    ] {
        std::fs::write(dir.join(name), content).unwrap();
    }
}

/// A strict server whose model works through the job, whatever came of the steps before.
pub(crate) fn server() -> FakeModel {
    FakeModel::start_with(next_step)
}

fn next_step(request: &RecordedRequest) -> FakeAnswer {
    let seen = request.seen.as_ref().unwrap();
    let newest_input = seen
        .turns
        .iter()
        .rposition(|turn| matches!(turn, RequestTurn::User(_)))
        .unwrap();
    if !seen.user_texts().any(|text| text == INPUT) {
        return reply().text("the input is missing");
    }
    if seen.user_texts().last() != Some(INPUT) {
        return reply().text(format!("continued after {newest_input} turns"));
    }
    let done = seen
        .turns
        .iter()
        .filter(|turn| matches!(turn, RequestTurn::Assistant { calls, .. } if !calls.is_empty()))
        .count();
    match steps().into_iter().nth(done) {
        Some(changes) => changes.into_iter().fold(reply().text("next"), |answer, c| {
            answer.call(c.tool, c.args)
        }),
        None => reply().text("done"),
    }
}

pub(crate) fn job_model(server: &FakeModel) -> Arc<dyn Model> {
    model(server, FakeWire::Chat)
}

/// Checks the files and the journal of the job: every result tells the truth about its file, no
/// call has two results or two intents that could have run twice, and every file is whole.
pub(crate) async fn assert_truthful(agent: &Arc<Agent>, dir: &Path, place: &str) {
    let (lines, state) = journal(agent, &session("s")).await;
    let statuses: BTreeMap<String, ResultStatus> = {
        let all = results(&lines);
        let count = all.len();
        let map: BTreeMap<_, _> = all
            .into_iter()
            .map(|(id, status, _)| (id, status))
            .collect();
        assert_eq!(map.len(), count, "{place}: a call has two results");
        map
    };
    let calls = state
        .turns
        .iter()
        .flat_map(|turn| turn.message.calls().cloned().collect::<Vec<_>>());
    for (call, change) in calls.zip(steps().into_iter().flatten()) {
        let now = std::fs::read_to_string(dir.join(change.file)).ok();
        let before = now.as_deref() == change.before;
        let after = now.as_deref() == change.after;
        let intents = intents(&lines, &call.id);
        match statuses.get(&call.id) {
            Some(ResultStatus::Ok) => assert!(
                after && intents >= 1,
                "{place}: {} is recorded, {now:?}",
                call.args
            ),
            Some(ResultStatus::Interrupted | ResultStatus::Error | ResultStatus::Cancelled) => {
                assert!(before || after, "{place}: {} left {now:?}", call.args);
            }
            Some(ResultStatus::Skipped) => {
                assert!(before && intents == 0, "{place}: {} ran unseen", call.args)
            }
            Some(ResultStatus::Denied) => panic!("{place}: {} was denied", call.args),
            // Not ended yet: at most begun.
            None => assert!(
                before || (after && intents == 1),
                "{place}: {} ran unrecorded",
                call.args
            ),
        }
        let reads = change.before == change.after;
        assert!(
            reads || intents <= 1,
            "{place}: {} was begun {intents} times",
            call.args
        );
    }
    assert_files_whole(dir, place);
}

fn intents(lines: &[JournalLine], id: &str) -> usize {
    lines
        .iter()
        .filter(|line| matches!(&line.entry, Entry::Call(intent) if intent.id == id))
        .count()
}

/// Logs apart, no file is empty, and every JSON file is JSON. Temporary files are no one's content.
pub(crate) fn assert_files_whole(dir: &Path, place: &str) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() {
            assert_files_whole(&path, place);
        } else if !is_temporary(&name) && !name.ends_with(".jsonl") {
            let content = std::fs::read(&path).unwrap();
            assert!(!content.is_empty(), "{place}: {name} is empty");
            let json = name.ends_with(".json");
            assert!(
                !json || serde_json::from_slice::<Value>(&content).is_ok(),
                "{place}: {name} is not JSON"
            );
        }
    }
}

/// Every file of a workspace but the harness's own, and what is in it.
pub(crate) fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fn collect(root: &Path, dir: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if name == "agents" || is_temporary(entry.file_name().to_str().unwrap()) {
            } else if path.is_dir() {
                into.insert(format!("{name}/"), Vec::new());
                collect(root, &path, into);
            } else {
                into.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    collect(dir, dir, &mut all);
    all
}

/// Undoing all that the session did leaves the workspace as it was laid out.
pub(crate) async fn assert_undoable(
    agent: &Arc<Agent>,
    dir: &Path,
    laid_out: &BTreeMap<String, Vec<u8>>,
    place: &str,
) {
    let id = session("s");
    let runs = agent.undo(agent.owner(), &id).runs_after(0).await.unwrap();
    let plan = agent
        .undo(agent.owner(), &id)
        .undo_runs(&runs)
        .await
        .unwrap();
    assert_eq!(plan.obstacles, [], "{place}");
    assert_eq!(&contents(dir), laid_out, "{place}: {plan:?}");
}

fn is_temporary(name: &str) -> bool {
    name.starts_with(".stead-") || name.contains(".tmp-")
}
