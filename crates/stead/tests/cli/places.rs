//! The place for tests of one workspace in every place: session migration, fencing, server
//! restarts, push and pull, users, attached projects.

use crate::support::{Done, Folder, endpoints, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stead_testkit::servers::{ServerKind, TestServer, shared};
use stead_testkit::{FakeModel, hang, latch, reply};

const DEADLINE: Duration = Duration::from_secs(60);

/// A workspace whose place is the store at `url`, as agent `name`.
fn in_store(url: &str, name: &str) -> Folder {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You are a keeper of notes.\n");
    folder.put(
        "agent.yaml",
        &format!("name: {name}\nfilesystem: {{mode: store, url: \"{url}\"}}\n"),
    );
    folder
}

/// A name that no other test uses on the servers that all share.
fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let unique = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(
        "agent{}x{unique}x{}",
        std::process::id(),
        jiff::Timestamp::now().as_nanosecond()
    )
}

/// The stores that several machines share, and one file.
fn stores() -> Vec<(String, Option<tempfile::TempDir>)> {
    let file = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", file.path().join("store.db").display());
    let servers = [ServerKind::Redis, ServerKind::Postgres, ServerKind::Mysql]
        .map(|kind| (shared(kind), None));
    servers.into_iter().chain([(sqlite, Some(file))]).collect()
}

fn start(folder: &Folder, server: &FakeModel, args: &[&str]) -> Child {
    folder
        .process(args)
        .envs(endpoints(server))
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(
        Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(),
        signal,
    )
    .unwrap();
}

fn read(folder: &Folder, path: &str) -> Done {
    folder.run(&["tool", "read_file", &json!({"file_path": path}).to_string()])
}

#[test]
fn a_session_begun_by_a_process_that_is_killed_goes_on_in_another_folder() {
    for (url, _guard) in stores() {
        let name = fresh_name();
        let here = in_store(&url, &name);
        let there = in_store(&url, &name);
        let write = |path: &str| {
            reply().call(
                "write_file",
                json!({"file_path": path, "content": "kept\n"}),
            )
        };
        let server = FakeModel::start(vec![
            write("one.md"),
            hang(),
            write("two.md"),
            reply().text("all done"),
        ]);
        let mut child = start(
            &here,
            &server,
            &["run", "-m", "openai:x", "-s", "s", "begin"],
        );
        let end = Instant::now() + DEADLINE;
        while server.requests().len() < 2 {
            assert!(Instant::now() < end, "{url}: {:?}", wait(child));
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let resumed = there
            .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "--resume"])
            .exits(0);
        assert_eq!(resumed.out, "all done\n", "{url}");
        for path in ["one.md", "two.md"] {
            assert!(read(&there, path).exits(0).out.contains("kept"), "{url}");
            assert!(
                !here.has(path) && !there.has(path),
                "{url}: a file of the store on the local disk"
            );
        }
        assert!(
            here.run(&["sessions", "show", "s"])
                .exits(0)
                .out
                .contains("begin"),
            "{url}"
        );
        here.run(&["check"]).exits(0);
        assert_eq!(server.rejections(), Vec::new(), "{url}");
    }
}

#[test]
fn a_holder_that_sleeps_through_its_lease_is_fenced_off_and_the_journal_is_linear() {
    let tests = stores().into_iter().map(|(url, guard)| {
        std::thread::spawn(move || {
            let name = fresh_name();
            let here = in_store(&url, &name);
            let there = in_store(&url, &name);
            let held = latch();
            let late = reply()
                .call(
                    "write_file",
                    json!({"file_path": "late.md", "content": "late\n"}),
                )
                .held_by(&held);
            let server = FakeModel::start(vec![late]);
            let first = start(
                &here,
                &server,
                &["run", "-m", "openai:x", "-s", "s", "begin"],
            );
            held.wait_arrived(1, DEADLINE);
            signal(&first, Signal::STOP);
            // Asleep, it renews nothing; whoever comes next waits until the lease has run out.
            let other = FakeModel::start(vec![reply().text("taken over")]);
            let second = there
                .run_with(&other, &["run", "-m", "openai:x", "-s", "s", "--resume"])
                .exits(0);
            assert_eq!(second.out, "taken over\n", "{url}");
            signal(&first, Signal::CONT);
            held.release();
            let first = wait(first);
            let said = String::from_utf8_lossy(&first.stderr).into_owned();
            assert!(
                first.status.code() == Some(1) && said.contains("taken over"),
                "{url}: {first:?}"
            );
            // It stopped before its next side effect, and left no word in the journal.
            read(&there, "late.md").exits(1);
            there.run(&["check"]).exits(0);
            let lines = there.run(&["sessions", "show", "s", "--json"]).exits(0).out;
            assert!(
                lines.contains("taken over") && !lines.contains("late.md"),
                "{url}: {lines}"
            );
            drop(guard);
        })
    });
    tests
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|test| test.join().unwrap());
}

#[test]
fn a_server_that_restarts_in_the_middle_of_a_run_loses_nothing_that_was_acknowledged() {
    let tests = [ServerKind::Redis, ServerKind::Postgres, ServerKind::Mysql].map(|kind| {
        std::thread::spawn(move || {
            let mut store = TestServer::start(kind);
            let folder = in_store(store.url(), "main");
            let held = latch();
            let write = |path: &str| {
                reply().call(
                    "write_file",
                    json!({"file_path": path, "content": "kept\n"}),
                )
            };
            let server = FakeModel::start(vec![
                write("one.md"),
                write("two.md").held_by(&held),
                reply().text("done"),
            ]);
            let run = start(
                &folder,
                &server,
                &["run", "-m", "openai:x", "-s", "s", "begin"],
            );
            held.wait_arrived(1, DEADLINE);
            store.kill();
            held.release();
            std::thread::sleep(Duration::from_secs(1));
            store.start_again();
            let ended = wait(run);
            // It goes on, or stops with a clear error and can be taken up.
            if ended.status.code() != Some(0) {
                let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                assert!(
                    said.contains("does not answer") || said.contains("lost"),
                    "{kind:?}: {said}"
                );
                folder
                    .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "--resume"])
                    .exits(0);
            }
            for path in ["one.md", "two.md"] {
                assert!(
                    read(&folder, path).exits(0).out.contains("kept"),
                    "{kind:?}"
                );
            }
            folder.run(&["check"]).exits(0);
            assert_eq!(server.rejections(), Vec::new(), "{kind:?}");
        })
    });
    tests.into_iter().for_each(|test| test.join().unwrap());
}

#[test]
fn a_store_that_is_not_there_is_told_and_no_password_is_shown() {
    let folder = in_store("postgres://someone:hunter2@127.0.0.1:9/agents", "main");
    folder.script("- text: hello");
    for args in [
        &["sessions", "list"][..],
        &["check"],
        &["run", "-m", "scripted:script.yaml", "hi"],
    ] {
        let told = folder.run(args);
        let all = format!("{}{}", told.out, told.err);
        assert!(
            told.code != 0 && all.contains("postgres://127.0.0.1:9/agents"),
            "{args:?}: {all}"
        );
        assert!(!all.contains("hunter2"), "{all}");
    }
}

#[test]
fn shared_files_with_sessions_of_one_machine_are_refused_with_what_to_set() {
    let folder = Folder::new();
    let yaml = format!(
        "filesystem: {{mode: store, url: \"{}\"}}\nsessions: {{url: 'sqlite:agents/s.db'}}\n",
        shared(ServerKind::Redis)
    );
    folder.put("agent.yaml", &yaml);
    let refused = folder.run(&["sessions", "list"]).exits(2);
    assert!(
        refused.err.contains("set sessions.url to a shared store"),
        "{refused:?}"
    );
    folder.put(
        "agent.yaml",
        "filesystem: {mode: store, url: 'sqlite:here.db'}\n",
    );
    assert!(
        folder
            .run(&["sessions", "list"])
            .exits(2)
            .err
            .contains("sqlite:agents/here.db")
    );
    folder.put("agent.yaml", "filesystem: {mode: store}\n");
    assert!(
        folder
            .run(&["sessions", "list"])
            .exits(2)
            .err
            .contains("filesystem.url is missing")
    );
    folder.put(
        "agent.yaml",
        "filesystem: {mode: local, url: 'redis://x/'}\n",
    );
    assert!(
        folder
            .run(&["sessions", "list"])
            .exits(2)
            .err
            .contains("did you mean mode: store?")
    );
}

#[test]
fn a_workspace_is_pushed_pulled_and_copied_and_only_what_changed_moves() {
    for (url, _guard) in stores() {
        let name = fresh_name();
        let here = in_store(&url, &name);
        std::fs::create_dir_all(here.path().join("skills/greet")).unwrap();
        here.put(
            "skills/greet/SKILL.md",
            "---\nname: greet\n---\nSay hello.\n",
        );
        here.put("run.sh", "#!/bin/sh\n");
        std::fs::set_permissions(
            here.path().join("run.sh"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        here.put(".env", "KEY=secret\n");
        let dry = here.run(&["workspace", "push", "--dry-run"]).exits(0);
        assert!(
            dry.out.contains("create    skills/greet/SKILL.md")
                && dry.out.contains("nothing was done"),
            "{dry:?}"
        );
        let pushed = here.run(&["workspace", "push", "--json"]).exits(0).json();
        assert_eq!(
            (&pushed["unchanged"], &pushed["skipped"]),
            (&json!(0), &json!([".env"])),
            "{url}: {pushed}"
        );
        assert_eq!(
            here.run(&["workspace", "push", "--json"]).exits(0).json()["steps"],
            json!([]),
            "{url}"
        );

        // Another machine has only the settings; the template in the store does the rest.
        let there = Folder::new();
        there.put("agent.yaml", &here.read("agent.yaml"));
        assert!(
            read(&there, "skills/greet/SKILL.md")
                .exits(0)
                .out
                .contains("Say hello"),
            "{url}"
        );
        assert!(
            there
                .run(&["prompt"])
                .exits(0)
                .out
                .contains("keeper of notes"),
            "{url}"
        );
        read(&there, ".env").exits(1);
        there.run(&["workspace", "pull"]).exits(0);
        assert_eq!(
            there.read("skills/greet/SKILL.md"),
            here.read("skills/greet/SKILL.md"),
            "{url}"
        );
        let mode = std::fs::metadata(there.path().join("run.sh"))
            .unwrap()
            .permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o111,
            0o111,
            "{url}"
        );

        here.put("skills/greet/SKILL.md", "Say good day.\n");
        std::fs::remove_file(here.path().join("run.sh")).unwrap();
        let again = here.run(&["workspace", "push", "--json"]).exits(0).json();
        let expected = json!([{"action": "delete", "path": "run.sh"}, {"action": "update", "path": "skills/greet/SKILL.md"}]);
        assert_eq!(again["steps"], expected, "{url}");

        // Folder to folder, sessions included.
        let script = here.script("- text: hello");
        here.put("agent.yaml", &format!("name: {name}\n"));
        here.run(&["run", "-m", &script, "-s", "s", "hi"]).exits(0);
        let copy = Folder::new();
        copy.put("agent.yaml", &here.read("agent.yaml"));
        let from = here.path().display().to_string();
        let to = copy.path().display().to_string();
        here.run(&["workspace", "copy", &from, &to]).exits(0);
        assert!(
            copy.run(&["sessions", "show", "s"])
                .exits(0)
                .out
                .contains("hello"),
            "{url}"
        );
        let empty = Folder::without_mark();
        // A layout that is told by the path of its folder.
        let empty = empty.path().join(".agentscope/workspace");
        std::fs::create_dir_all(&empty).unwrap();
        let empty = empty.display().to_string();
        assert!(
            here.run(&["workspace", "copy", &empty, &to])
                .exits(2)
                .err
                .contains("has no files"),
            "{url}"
        );
    }
}

#[test]
fn users_of_a_local_workspace_see_the_template_and_nothing_of_each_other() {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You serve all.\n");
    let write = |user: &str, text: &str| {
        let args = json!({"file_path": "notes.md", "content": text}).to_string();
        folder.run(&["-u", user, "tool", "write_file", &args])
    };
    for user in [
        "alice@example.com",
        "a/b",
        "..",
        "agents",
        "skills",
        "аlice",
    ] {
        write(user, &format!("of {user}")).exits(0);
    }
    for user in [
        "alice@example.com",
        "a/b",
        "..",
        "agents",
        "skills",
        "аlice",
    ] {
        let mine = folder
            .run(&[
                "-u",
                user,
                "tool",
                "read_file",
                r#"{"file_path": "notes.md"}"#,
            ])
            .exits(0);
        assert!(mine.out.contains(&format!("of {user}")), "{mine:?}");
        let seen = folder.run(&["-u", user, "tool", "ls", "{}"]).exits(0).out;
        assert!(
            seen.contains("AGENTS.md") && !seen.contains("@@"),
            "{user}: {seen}"
        );
        let found = folder
            .run(&["-u", user, "tool", "grep_files", r#"{"pattern": "of "}"#])
            .exits(0)
            .out;
        assert_eq!(found.matches("notes.md").count(), 1, "{user}: {found}");
        let script = folder.script("- text: hello");
        folder
            .run(&[
                "-u",
                user,
                "run",
                "-m",
                &script,
                "-s",
                "s",
                &format!("I am {user}"),
            ])
            .exits(0);
        let list = folder
            .run(&["-u", user, "sessions", "list", "--json"])
            .exits(0)
            .json();
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    }
    assert!(!folder.has("notes.md"));
    assert_eq!(
        folder.run(&["sessions", "list", "--json"]).exits(0).json(),
        json!([])
    );
}

#[test]
fn an_attached_project_is_read_and_only_written_when_it_may_and_a_person_agrees() {
    let folder = Folder::new();
    let project = Folder::new();
    project.put("main.rs", "fn main() {}\n");
    let path = project.path().display().to_string();
    let write = json!({"file_path": "project/new.rs", "content": "x"}).to_string();
    folder.put("agent.yaml", &format!("filesystem: {{project: {path}}}\n"));
    assert!(
        read(&folder, "project/main.rs")
            .exits(0)
            .out
            .contains("fn main")
    );
    assert!(
        folder
            .run(&["tool", "glob_files", r#"{"pattern": "*.rs"}"#])
            .exits(0)
            .out
            .contains("project/main.rs")
    );
    let denied = folder
        .run(&["tool", "write_file", &write, "--approve", "all"])
        .exits(1);
    assert!(
        format!("{}{}", denied.out, denied.err).contains("read-only"),
        "{denied:?}"
    );

    folder.put(
        "agent.yaml",
        &format!("filesystem: {{project: {{path: {path}, writable: true}}}}\n"),
    );
    let asks = folder
        .run(&["tool", "write_file", &write, "--explain"])
        .exits(0)
        .out;
    assert!(asks.contains("ask") && asks.contains("project"), "{asks}");
    folder
        .run(&["tool", "write_file", &write, "--approve", "none"])
        .exits(1);
    folder
        .run(&["tool", "write_file", &write, "--approve", "all"])
        .exits(0);
    assert_eq!(project.read("new.rs"), "x");
}

#[test]
fn a_pull_leaves_alone_what_a_push_leaves_behind() {
    let file = tempfile::tempdir().unwrap();
    let folder = in_store(
        &format!("sqlite:{}", file.path().join("s.db").display()),
        "main",
    );
    folder.run(&["workspace", "push"]).exits(0);
    for directory in ["conf", "repo/.git", "plain", "@types"] {
        std::fs::create_dir_all(folder.path().join(directory)).unwrap();
    }
    for kept in ["conf/.env", "repo/.git/HEAD", "@types/a.ts"] {
        folder.put(kept, "kept");
    }
    folder.put("conf/other", "goes");
    folder.put("plain/other", "goes");
    std::os::unix::fs::symlink("AGENTS.md", folder.path().join("link")).unwrap();
    let pulled = folder.run(&["workspace", "pull"]).exits(0);
    for kept in ["conf/.env", "repo/.git/HEAD"] {
        assert_eq!(folder.read(kept), "kept", "{pulled:?}");
    }
    assert!(folder.path().join("link").is_symlink(), "{pulled:?}");
    for gone in ["conf/other", "plain", "@types"] {
        assert!(
            !folder.has(gone),
            "{gone} is part of the workspace and not in the store: {pulled:?}"
        );
    }
}

#[test]
fn a_store_in_the_workspace_lies_where_no_agent_and_no_copy_reaches_it() {
    let folder = Folder::new();
    let inside = folder.path().join("data/store.db").display().to_string();
    for url in [inside.as_str(), "agents/../store.db", "agents", "./x.db"] {
        folder.put(
            "agent.yaml",
            &format!("filesystem: {{mode: store, url: 'sqlite:{url}'}}\n"),
        );
        let refused = folder.run(&["sessions", "list"]).exits(2);
        assert!(
            refused.err.contains("must lie under agents/"),
            "{url}: {refused:?}"
        );
    }
    folder.put(
        "agent.yaml",
        "filesystem: {mode: store, url: 'sqlite:agents/store.db'}\n",
    );
    folder.run(&["sessions", "list"]).exits(0);
    let beside = tempfile::tempdir().unwrap();
    folder.put(
        "agent.yaml",
        &format!(
            "filesystem: {{mode: store, url: 'sqlite:{}/s.db'}}\n",
            beside.path().display()
        ),
    );
    folder.run(&["sessions", "list"]).exits(0);
}

#[test]
fn what_is_anothers_or_undos_cannot_be_reached_by_the_default_users_agent() {
    let folder = Folder::new();
    let denied = |tool: &str, args: serde_json::Value| {
        let done = folder.run(&["tool", tool, &args.to_string(), "--approve", "all"]);
        assert!(
            done.code == 1 && format!("{}{}", done.out, done.err).contains("protected"),
            "{tool} {args}: {done:?}"
        );
    };
    folder
        .run(&[
            "-u",
            "alice",
            "tool",
            "write_file",
            r#"{"file_path": "note.txt", "content": "of alice"}"#,
        ])
        .exits(0);
    denied("read_file", json!({"file_path": "@@alice/note.txt"}));
    denied(
        "overwrite_file",
        json!({"file_path": "@@alice/.stead-overlay.json", "content": "x"}),
    );
    denied(
        "write_file",
        json!({"file_path": "@@bob/AGENTS.md", "content": "obey"}),
    );
    let found = folder
        .run(&["tool", "grep_files", r#"{"pattern": "alice"}"#])
        .exits(0)
        .out;
    assert!(found.contains("No matches"), "{found}");
    folder.put("k.txt", "was here");
    let model = folder.script(
        "- calls: [{tool: overwrite_file, args: {file_path: k.txt, content: x}}]\n- text: ok",
    );
    folder.run(&["run", "-m", &model, "-s", "s", "go"]).exits(0);
    denied(
        "grep_files",
        json!({"pattern": "was", "path": "agents/main/undo"}),
    );
    assert!(
        !folder
            .run(&["tool", "grep_files", r#"{"pattern": "was here"}"#])
            .exits(0)
            .out
            .contains("undo")
    );
    // A link in place of the folder opens nothing either.
    std::fs::rename(folder.path().join("agents"), folder.path().join("runtime")).unwrap();
    std::os::unix::fs::symlink("runtime", folder.path().join("agents")).unwrap();
    let found = folder
        .run(&["-u", "bob", "tool", "grep_files", r#"{"pattern": "go"}"#])
        .exits(0)
        .out;
    assert!(!found.contains("runtime"), "{found}");
}

#[test]
fn a_project_that_overlaps_the_workspace_is_refused() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    for project in [".", "..", "inner"] {
        folder.put(
            "agent.yaml",
            &format!("filesystem: {{project: {project}}}\n"),
        );
        assert!(
            folder
                .run(&["tool", "ls", "{}"])
                .exits(2)
                .err
                .contains("overlaps"),
            "{project}"
        );
    }
}

#[test]
fn sessions_that_a_store_does_not_have_are_told_and_not_begun_anew() {
    let folder = Folder::new();
    let model = folder.script("- text: done\n- loop: true\n");
    let run = |id: &str| folder.run(&["run", "-m", &model, "-s", id, "hello"]);
    run("one").exits(0);
    folder.put(
        "agent.yaml",
        "filesystem: {mode: store, url: 'sqlite:agents/store.db'}\n",
    );
    let listed = folder.run(&["sessions", "list"]).exits(0);
    let line =
        "1 session of this folder is not in the store: `stead workspace push` brings it over";
    assert!(listed.err.contains(line), "{listed:?}");
    let refused = run("one").exits(2);
    assert!(
        refused.err.contains("session one lies in this folder") && refused.err.contains(line),
        "{refused:?}"
    );
    assert!(run("two").exits(0).err.contains(line));
    folder.run(&["workspace", "push"]).exits(0);
    let listed = folder.run(&["sessions", "list"]).exits(0);
    assert!(
        listed.err.is_empty() && listed.out.contains("one"),
        "{listed:?}"
    );
    run("one").exits(0);
}

#[test]
fn sessions_under_an_earlier_name_of_the_agent_are_told() {
    let folder = Folder::new();
    let model = folder.script("- text: done\n- loop: true\n");
    let run = |id: &str| folder.run(&["run", "-m", &model, "-s", id, "hello"]);
    run("one").exits(0);
    folder.put("agent.yaml", "name: keeper\n");
    let listed = folder.run(&["sessions", "list"]).exits(0);
    let line = "no sessions of the agent keeper yet, and 1 session of main: `name: main` in the settings brings it back";
    assert!(listed.err.contains(line), "{listed:?}");
    let refused = run("one").exits(2);
    assert!(refused.err.contains(line), "{refused:?}");
    run("two").exits(0);
    let listed = folder.run(&["sessions", "list"]).exits(0);
    assert_eq!(listed.err, "", "it has sessions of its own now");
}

#[test]
fn a_command_that_no_folder_can_run_is_refused_with_the_reason() {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "filesystem: {mode: store, url: 'sqlite:agents/store.db'}\n",
    );
    let told = "commands run in a folder of this machine";
    let asked = folder.run(&["tool", "execute", r#"{"command": "ls"}"#]);
    assert!(asked.code != 0, "{asked:?}");
    assert!(
        format!("{}{}", asked.out, asked.err).contains(told),
        "{asked:?}"
    );
    let model = folder.script(
        "- calls: [{tool: execute, args: {command: ls}}]\n- expect: {tool_result_contains: commands run in a folder}\n  text: done\n",
    );
    folder.run(&["run", "-m", &model, "hello"]).exits(0);
}
