//! The place for tests of a model that tries to leave the workspace or to hang a call, with every
//! file tool.

use crate::support::{agent, block_on, journal, model, results, session, text};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use stead_agent::RunOptions;
use stead_core::{ResultStatus, RunOutcome};
use stead_testkit::{FakeModel, FakeWire, reply};

/// Every file tool with `path` in the place of each of its paths.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("ls", json!({"path": path})),
        ("file_info", json!({"file_path": path})),
        ("read_file", json!({"file_path": path})),
        ("write_file", json!({"file_path": path, "content": "evil"})),
        (
            "write_file",
            json!({"file_path": path, "content": "evil", "mode": "append"}),
        ),
        (
            "overwrite_file",
            json!({"file_path": path, "content": "evil"}),
        ),
        (
            "edit_file",
            json!({"file_path": path, "old_string": "secret", "new_string": "evil"}),
        ),
        ("delete_file", json!({"file_path": path})),
        ("move_file", json!({"from": path, "to": "stolen.txt"})),
        ("move_file", json!({"from": "mine.txt", "to": path})),
        ("glob_files", json!({"pattern": "**", "path": path})),
        ("tree", json!({"path": path})),
        ("grep_files", json!({"pattern": "secret", "path": path})),
    ]
}

/// A folder with traps in it and a secret beside it.
fn lay_traps(root: &Path, outside: &Path) {
    std::fs::write(outside.join("secret.txt"), "secret content").unwrap();
    std::fs::write(root.join("mine.txt"), "mine").unwrap();
    let link = |name: &str, to: &Path| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    link("out", outside);
    link("out-file", &outside.join("secret.txt"));
    link("zero", Path::new("/dev/zero"));
    let fifo = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("fifo"),
        rustix::fs::FileType::Fifo,
        fifo,
        0,
    )
    .unwrap();
}

#[test]
fn no_path_leads_out_of_the_folder_and_no_file_hangs_a_call() {
    let temp = tempfile::tempdir().unwrap();
    let outside = temp.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let absolute = outside.join("secret.txt").to_str().unwrap().to_owned();
    let long = "n".repeat(4096);
    for (path, kind) in [
        ("../outside/secret.txt", Leads::Out),
        ("a/../../outside/secret.txt", Leads::Out),
        ("out/secret.txt", Leads::Out),
        ("out/new.txt", Leads::Out),
        ("nul\0byte", Leads::Out),
        (long.as_str(), Leads::Out),
        // A leading slash means the workspace's root, and a tilde is a name like any other.
        (absolute.as_str(), Leads::Inside),
        ("/etc/passwd", Leads::Inside),
        ("~/.ssh/id_rsa", Leads::Inside),
        // The link or pipe itself may be looked at, moved and deleted.
        ("out-file", Leads::Inside),
        ("zero", Leads::Inside),
        ("fifo", Leads::Inside),
    ] {
        for (tool, args) in calls(path) {
            let place = format!(
                "{tool} {}",
                &args.to_string()[..args.to_string().len().min(100)]
            );
            let root = temp.path().join("root");
            std::fs::create_dir_all(&root).unwrap();
            lay_traps(&root, &outside);
            let (status, said) = call(&root, tool, args);
            assert!(
                !said.contains("secret content") && !said.contains("root:x:0"),
                "{place} told: {said}"
            );
            assert!(
                kind == Leads::Inside || status != ResultStatus::Ok,
                "{place} succeeded: {said}"
            );
            assert_eq!(
                std::fs::read_to_string(outside.join("secret.txt")).unwrap(),
                "secret content",
                "{place}"
            );
            assert_eq!(
                std::fs::read_dir(&outside).unwrap().count(),
                1,
                "{place} made something outside"
            );
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leads {
    Out,
    Inside,
}

/// One call through a whole run: what came of it, as the model is told.
fn call(root: &Path, tool: &str, args: Value) -> (ResultStatus, String) {
    let server = FakeModel::start(vec![reply().call(tool, args), reply().text("I give up")]);
    block_on(async {
        let started = Instant::now();
        let agent = agent(root, model(&server, FakeWire::Chat)).await;
        let report = agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, server.rejections()),
            (RunOutcome::Completed, Vec::new())
        );
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{tool} took {:?}",
            started.elapsed()
        );
        let (lines, _) = journal(&agent, &session("s")).await;
        let (_, status, said) = results(&lines).remove(0);
        (status, said)
    })
}
