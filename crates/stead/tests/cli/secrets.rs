//! The place for tests of secrets: never written to a file or a terminal.

use crate::support::{Folder, done, pointed};
use serde_json::json;
use stead_testkit::{FakeModel, fail, reply};

const FROM_VARIABLE: &str = "sk-from-the-variable-0123456789";
const FROM_SETTINGS: &str = "sk-\"from\\the/settings-0123456789";

#[test]
fn a_key_in_a_file_that_the_agent_reads_is_written_nowhere() {
    for output in ["text", "json", "events"] {
        let folder = Folder::new();
        folder.put(
            "agent.yaml",
            "model: {name: 'openai:x', api_key: '${MY_KEY}'}\n",
        );
        folder.put(
            "notes.txt",
            &format!("one {FROM_VARIABLE}\ntwo {FROM_SETTINGS}\n"),
        );
        let server = FakeModel::start_with(|request| match request.result_count() {
            0 => reply()
                .text(format!("I know {FROM_VARIABLE}"))
                .call("read_file", json!({"file_path": "notes.txt"})),
            1 => reply().call_with_id(
                FROM_VARIABLE,
                "write_file",
                json!({"file_path": "copy.txt", "content": FROM_SETTINGS}),
            ),
            2 => reply().call(FROM_VARIABLE, json!({})),
            3 => reply().text(format!("They are {FROM_VARIABLE} and {FROM_SETTINGS}")),
            _ => fail(401).message(format!("Incorrect API key provided: {FROM_SETTINGS}")),
        });
        for input in [
            format!("Read notes.txt, my key is {FROM_VARIABLE}"),
            "Again".to_owned(),
        ] {
            let args = ["run", "-s", "s", "--output", output, &input];
            let mut command = folder.command(&args);
            command
                .env("OPENAI_API_KEY", FROM_VARIABLE)
                .env("MY_KEY", FROM_SETTINGS)
                .env("RUST_LOG", "trace");
            let ran = done(pointed(&mut command, &server));
            assert_clean(&format!("{output} stdout"), &ran.out);
            assert_clean(&format!("{output} stderr"), &ran.err);
        }
        assert_eq!(server.rejections(), Vec::new());
        let authorization = server.requests()[0]
            .header("authorization")
            .map(str::to_owned);
        assert_eq!(
            authorization,
            Some(format!("Bearer {FROM_SETTINGS}")),
            "the settings' key goes first"
        );
        let kept: Vec<_> = folder
            .files()
            .into_iter()
            .filter(|path| path.starts_with(folder.path().join("agents")))
            .collect();
        assert!(kept.len() >= 3, "{kept:?}");
        for path in kept {
            assert_clean(
                &path.display().to_string(),
                &std::fs::read_to_string(&path).unwrap(),
            );
        }
    }
}

/// Whatever a model says, streams in pieces, or makes up for its calls.
#[test]
fn a_tape_and_a_streamed_answer_hold_no_key() {
    let folder = Folder::new();
    let server = FakeModel::start_with(|request| match request.result_count() {
        0 => reply()
            .text(format!("I know {FROM_VARIABLE}"))
            .call_with_id(
                FROM_VARIABLE,
                FROM_VARIABLE,
                json!({FROM_VARIABLE: FROM_VARIABLE}),
            ),
        _ => reply().text(format!("It is {FROM_VARIABLE} and hunter2hunter2")),
    });
    for output in ["text", "events"] {
        let args = [
            "run",
            "-m",
            "record:tape.jsonl=openai:x",
            "--output",
            output,
            "go",
        ];
        let mut command = folder.command(&args);
        command
            .env("OPENAI_API_KEY", FROM_VARIABLE)
            .env("MY_PASSWORD", "hunter2hunter2");
        let ran = done(pointed(&mut command, &server)).exits(0);
        for text in [&ran.out, &ran.err, &folder.read("tape.jsonl")] {
            assert_clean(output, text);
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
    assert!(folder.read("tape.jsonl").contains("[redacted]"));
}

#[track_caller]
fn assert_clean(place: &str, text: &str) {
    for part in ["from-the-variable", "the/settings-0123"] {
        assert!(!text.contains(part), "{place} has a key: {text}");
    }
}

/// What runs is what is on record: a call that holds a secret is refused, not run without it.
#[test]
fn a_call_that_holds_a_secret_is_refused_and_ordinary_variables_are_no_secrets() {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "description: ${ABOUT}\nmodel: {name: 'openai:x', api_key: '${KEY}'}\n",
    );
    let model = folder.script(
        "- calls:\n  - {tool: write_file, args: {file_path: key.txt, content: 'sk-of-mine-123'}}\n  \
         - {tool: write_file, args: {file_path: about.txt, content: 'a plain word'}}\n- text: done\n",
    );
    let mut command = folder.command(&["run", "-m", &model, "-s", "s", "go"]);
    command
        .env("KEY", "sk-of-mine-123")
        .env("ABOUT", "a plain word")
        .assert()
        .success();
    assert!(!folder.has("key.txt"));
    assert_eq!(folder.read("about.txt"), "a plain word");
    let journal = folder.read("agents/main/sessions/s.log.jsonl");
    assert!(
        !journal.contains("sk-of-mine") && journal.contains("hold a secret"),
        "{journal}"
    );
}

/// Rules hold for a name and for what it leads to.
#[test]
fn links_do_not_lead_around_the_gate() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("conf")).unwrap();
    folder.put("conf/real.yaml", "name: main\n");
    folder.put("secrets.txt", "hidden");
    for (target, link) in [
        ("conf/real.yaml", "agent.yaml"),
        ("secrets.txt", ".env"),
        ("data", "agents"),
    ] {
        std::fs::create_dir_all(folder.path().join("data")).unwrap();
        std::os::unix::fs::symlink(target, folder.path().join(link)).unwrap();
    }
    let calls = [
        (
            "overwrite_file",
            r#"{"file_path":"agent.yaml","content":"x"}"#,
        ),
        (
            "overwrite_file",
            r#"{"file_path":"conf/real.yaml","content":"x"}"#,
        ),
        ("delete_file", r#"{"file_path":"agent.yaml"}"#),
        ("delete_file", r#"{"file_path":"conf"}"#),
        ("read_file", r#"{"file_path":".env"}"#),
        (
            "write_file",
            r#"{"file_path":"data/main/sessions/a.log.jsonl","content":""}"#,
        ),
    ];
    for (tool, args) in calls {
        let done = folder.run(&["tool", tool, args]).exits(1);
        assert!(
            done.err.contains("denied: protected"),
            "{tool} {args}: {done:?}"
        );
    }
    assert_eq!(folder.read("conf/real.yaml"), "name: main\n");
}

/// Runs `stead` in a folder as a user without privileges.
#[cfg(target_os = "linux")]
fn as_nobody(folder: &Folder, args: &[&str], variables: &[(&str, &str)]) -> std::process::Output {
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let program = folder.path().join("stead-copy");
    if !program.exists() {
        std::fs::copy(crate::support::STEAD, &program).unwrap();
    }
    let mut command = std::process::Command::new(&program);
    command.args(args).current_dir(folder.path()).env_clear();
    command
        .env("PATH", "/usr/bin:/bin")
        .envs(variables.iter().copied());
    if rustix::process::getuid().is_root() {
        for path in [folder.path(), folder.path().join("agent.yaml")] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_cannot_read_the_environment_of_the_process_that_started_it() {
    let folder = Folder::new();
    folder.put("agent.yaml", "memory: {flush: false}\n");
    let args = json!({"command": "cat /proc/$PPID/comm; cat /proc/$PPID/environ"}).to_string();
    let args = ["tool", "execute", &args, "--approve", "all"];
    let ran = as_nobody(&folder, &args, &[("ORDINARY", "not-known-to-be-a-secret")]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(said.contains("stead"), "the parent is not stead: {ran:?}");
    assert!(said.contains("Permission denied"), "{ran:?}");
    assert!(!said.contains("not-known"), "{said}");
}

#[test]
fn variables_that_look_secret_are_redacted_whoever_names_them() {
    let folder = Folder::new();
    let variables = [
        ("MY_PASSWORD", "hunter2hunter2"),
        ("GH_PAT", "github-token-value"),
        ("STRIPE", "sk_live_0123456789"),
    ];
    let words: Vec<&str> = variables.iter().map(|(_, value)| *value).collect();
    let text = words.join(" ");
    folder.put("note.txt", &format!("{text} and ordinary"));
    let script =
        folder.script("- calls: [{tool: read_file, args: {file_path: note.txt}}]\n- text: done\n");
    let mut command = folder.command(&["run", "-m", &script, "-s", "s", &format!("say {text}")]);
    command.envs(variables).env("ORDINARY", "and ordinary");
    done(&mut command);
    let files = folder.files().into_iter();
    let journals = files.filter(|path| path.to_string_lossy().contains("/agents/"));
    let kept: String = journals
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    assert!(kept.contains("and ordinary"), "{kept}");
    for value in words {
        assert!(!kept.contains(value), "{value} is in a journal");
    }
}
