//! The place for tests that sessions which come along with a folder allow nothing that the person did
//! not allow: no permission mode, no answer to a question. Each is also tried by the person whose
//! sessions they are, so that it can fail.

use crate::support::{Done, Folder, done, endpoints};
use serde_json::json;
use stead_testkit::{FakeModel, RecordedRequest, reply};

/// The file that a command of the conversation makes.
const CANARY: &str = "pwned";

/// A model that runs a command when it is told to.
fn model() -> FakeModel {
    FakeModel::start_with(|request: &RecordedRequest| {
        let is_told = request.json.to_string().contains("go now");
        match is_told && request.result_count() == 0 {
            true => reply().call("execute", json!({"command": "touch pwned"})),
            false => reply().text("done"),
        }
    })
}

/// A folder in which nothing acts.
fn folder() -> Folder {
    let folder = Folder::from_elsewhere();
    folder.put("AGENTS.md", "# A nice repository\n");
    folder.put("agent.yaml", "{}\n");
    folder
}

/// A copy of `folder` that another person has.
fn copy_of(folder: &Folder) -> Folder {
    let copy = Folder::from_elsewhere();
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([folder.path().join("."), copy.path()])
        .status();
    assert!(copied.unwrap().success());
    copy
}

fn run(model: &FakeModel, folder: &Folder, args: &[&str]) -> Done {
    let mut command = folder.command(args);
    command
        .envs(endpoints(model))
        .env("OPENAI_API_KEY", "k")
        .env("PATH", "/usr/bin:/bin");
    done(&mut command)
}

#[test]
fn a_permission_mode_counts_only_for_the_person_who_chose_it() {
    let model = model();
    for mode in ["bypass", "accept_edits"] {
        let own = folder();
        let first = [
            "run", "-m", "openai:x", "-s", "s2", "--mode", mode, "hi there",
        ];
        run(&model, &own, &first).exits(0);
        run(&model, &own, &["sessions", "fork", "s2", "--to", "f2"]).exits(0);
        run(&model, &own, &["sessions", "name", "f2", "A fork"]).exits(0);
        let ways: [&[&str]; 4] = [
            &["run", "-c", "go now"],
            &["run", "-s", "s2", "go now"],
            &["run", "-s", "hi there", "go now"],
            &["run", "-s", "f2", "go now"],
        ];
        for way in ways {
            let elsewhere = copy_of(&own);
            let shown = run(&model, &elsewhere, &["trust", "show"]).exits(0);
            assert!(shown.out.contains("harmless"), "{shown:#?}");
            if way[1] == "-s" && way[2] == "s2" {
                // A fork of it is no way around.
                run(
                    &model,
                    &elsewhere,
                    &["sessions", "fork", "s2", "--to", "f3"],
                )
                .exits(0);
                let forked = run(&model, &elsewhere, &["run", "-s", "f3", "go now"]).exits(3);
                assert!(!elsewhere.has(CANARY), "{forked:#?}");
            }
            let asked = run(&model, &elsewhere, way).exits(3);
            assert!(!elsewhere.has(CANARY), "{way:?}: {asked:#?}");
            let told = format!("the permission mode {mode} of this session was not chosen");
            assert!(asked.err.contains(&told), "{way:?}: {asked:#?}");
        }
        if mode == "bypass" {
            // Of the person's own sessions it counts, also in another process and in a fork.
            for way in [ways[3], ways[1]] {
                let done = run(&model, &own, way).exits(0);
                assert!(own.has(CANARY), "{way:?}: {done:#?}");
                assert!(!done.err.contains("was not chosen"), "{done:#?}");
                std::fs::remove_file(own.path().join(CANARY)).unwrap();
            }
        }
    }
}

#[test]
fn a_narrower_mode_that_comes_with_a_session_counts() {
    let model = model();
    let own = folder();
    let first = [
        "run", "-m", "openai:x", "-s", "s2", "--mode", "explore", "hi",
    ];
    run(&model, &own, &first).exits(0);
    let elsewhere = copy_of(&own);
    let denied = run(&model, &elsewhere, &["run", "-s", "s2", "go now"]).exits(0);
    assert!(!elsewhere.has(CANARY), "{denied:#?}");
    assert!(!denied.err.contains("was not chosen"), "{denied:#?}");
}

#[test]
fn an_answer_counts_only_from_the_person_who_gave_it() {
    let model = model();
    let own = folder();
    run(
        &model,
        &own,
        &["run", "-m", "openai:x", "-s", "s", "go now"],
    )
    .exits(3);
    let yes = ["approvals", "approve", "--all", "-s", "s", "--no-resume"];
    run(&model, &own, &yes).exits(0);
    assert!(!own.has(CANARY));
    let elsewhere = copy_of(&own);
    let asked = run(&model, &elsewhere, &["run", "--resume", "-s", "s"]).exits(3);
    assert!(!elsewhere.has(CANARY), "{asked:#?}");
    assert!(asked.err.contains("it is asked again"), "{asked:#?}");
    // Whose answer it is goes on without a second question, in another process.
    let done = run(&model, &own, &["run", "--resume", "-s", "s"]).exits(0);
    assert!(own.has(CANARY), "{done:#?}");
    // The other person can say yes as well.
    run(&model, &elsewhere, &yes).exits(0);
    run(&model, &elsewhere, &["run", "--resume", "-s", "s"]).exits(0);
    assert!(elsewhere.has(CANARY));
}

#[test]
fn without_a_folder_for_the_key_a_choice_counts_in_its_own_process() {
    let model = model();
    let own = folder();
    // A file is in the way of the folder of the key.
    std::fs::create_dir(own.config().join("stead")).unwrap();
    std::fs::write(own.config().join("stead/grants"), "").unwrap();
    let args = [
        "run", "-m", "openai:x", "-s", "s", "--mode", "bypass", "go now",
    ];
    let first = run(&model, &own, &args);
    assert!(own.has(CANARY), "{first:#?}");
}

#[test]
fn a_pipe_or_a_huge_file_in_place_of_state_is_refused_and_not_waited_for() {
    let model = model();
    let pipe = |path: &std::path::Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    };
    let huge = |path: &std::path::Path| {
        let file = std::fs::File::create(path).unwrap();
        file.set_len(3 * 1024 * 1024 * 1024).unwrap();
    };
    let make: [&dyn Fn(&std::path::Path); 2] = [&pipe, &huge];
    let commands: [&[&str]; 5] = [
        &["run", "-m", "openai:x", "hi"],
        &["sessions", "search", "tea"],
        &["memory", "search", "tea"],
        &["sessions", "list"],
        &["gc"],
    ];
    for name in [
        "tenant/queues/jobs.json",
        "search.sqlite-lock",
        "sessions/sessions.jsonl",
    ] {
        for make in make {
            let folder = folder();
            let file = folder.path().join("agents/main").join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            make(&file);
            for args in commands {
                // A command that waits longer than its deadline fails here.
                let done = run(&model, &folder, args);
                assert!((0..=2).contains(&done.code), "{name} {args:?}: {done:#?}");
            }
        }
    }
}

#[test]
fn state_is_not_written_through_a_link_out_of_the_workspace() {
    let model = model();
    let outside = tempfile::tempdir().unwrap();
    for (at, is_project) in [
        ("agents", false),
        ("agents/main", false),
        ("agents/main/sessions", false),
        (".stead/agents", true),
        (".stead", true),
    ] {
        let folder = Folder::from_elsewhere();
        folder.put("AGENTS.md", "# A nice repository\n");
        if !is_project {
            folder.put("agent.yaml", "{}\n");
        }
        let link = folder.path().join(at);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        for args in [
            &["run", "-m", "openai:x", "hi"] as &[&str],
            &["sessions", "list"],
            &["usage"],
        ] {
            let done = run(&model, &folder, args);
            assert!(done.code != 0, "{at} {args:?}: {done:#?}");
            let is_empty = std::fs::read_dir(outside.path()).unwrap().next().is_none();
            assert!(is_empty, "{at} {args:?}: {done:#?}");
        }
        // A link that stays in the workspace is fine.
        std::fs::remove_file(&link).unwrap();
        std::fs::create_dir(folder.path().join("kept")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("kept"), &link).unwrap();
        if !is_project {
            run(&model, &folder, &["run", "-m", "openai:x", "hi"]).exits(0);
        }
    }
}

#[test]
fn a_folder_that_cannot_be_opened_is_not_called_harmless() {
    let folder = folder();
    folder.put("agent.yaml", "permission_mode: [\n");
    let shown = folder.run(&["trust", "show"]);
    assert!(!shown.out.contains("harmless"), "{shown:#?}");
    assert!(shown.out.contains("is not known"), "{shown:#?}");
    let added = folder.run(&["trust", "add"]).exits(2);
    assert!(added.err.contains("is not known"), "{added:#?}");
}

#[test]
fn a_session_does_not_bring_a_model_that_writes_a_file() {
    let model = model();
    let own = folder();
    own.put("agent.yaml", "model: 'record:out.yaml=openai:x'\n");
    run(&model, &own, &["run", "--trust", "-s", "s", "hi"]).exits(0);
    let elsewhere = copy_of(&own);
    elsewhere.put("agent.yaml", "{}\n");
    std::fs::remove_file(elsewhere.path().join("out.yaml")).unwrap();
    run(&model, &elsewhere, &["run", "-s", "s", "more"]).exits(0);
    assert!(own.has("out.yaml") && !elsewhere.has("out.yaml"));
}
