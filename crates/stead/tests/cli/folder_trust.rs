//! The place for tests of the decision about a folder: the question, the record, its changes.

use crate::support::{Done, Folder, STEAD, done};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use stead_testkit::Pty;

const DEADLINE: Duration = Duration::from_secs(30);
const HOOK: &str =
    "name: h\nevents: [run_start]\nhandler: {type: command, command: 'sh scripts/x.sh'}\n";

/// A folder from elsewhere with a hook that makes the file `ran`.
fn hooked() -> Folder {
    let folder = Folder::from_elsewhere();
    fill(&folder.path());
    folder
}

fn fill(dir: &Path) {
    for (path, text) in [
        ("AGENTS.md", "You keep notes.\n"),
        ("agent.yaml", "{}\n"),
        ("hooks/h.yaml", HOOK),
        ("scripts/x.sh", "echo x > ran\n"),
        (
            "script.yaml",
            "- calls: [{tool: write_file, args: {file_path: a.txt, content: x}, id: c}]\n- text: Done.\n",
        ),
    ] {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn run(folder: &Folder, args: &[&str]) -> Done {
    let model = format!("scripted:{}", folder.path().join("script.yaml").display());
    done(
        folder
            .command(args)
            .env("STEAD_MODEL", model)
            .env("PATH", "/usr/bin:/bin"),
    )
}

fn records(folder: &Folder) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.config().join("stead/trusted"));
    files
        .into_iter()
        .flatten()
        .map(|file| file.unwrap().path())
        .collect()
}

#[test]
fn a_folder_in_which_nothing_acts_asks_nothing_and_leaves_no_record() {
    let folder = Folder::from_elsewhere();
    folder.put("AGENTS.md", "You keep notes.\n");
    folder.put(
        "agent.yaml",
        "description: notes\npermission_mode: explore\ncommands: {deny: [rm]}\n",
    );
    folder.put("script.yaml", "- text: Done.\n");
    let done = run(&folder, &["run", "hi"]).exits(0);
    assert_eq!(done.out, "Done.\n");
    assert!(!folder.config().join("stead").exists());
    let shown = run(&folder, &["trust", "add"]).exits(0);
    assert!(
        shown.out.contains("there is nothing to trust"),
        "{shown:#?}"
    );
}

#[test]
fn without_a_terminal_the_message_names_what_acts_and_the_flag() {
    let folder = hooked();
    let done = run(&folder, &["run", "hi"]).exits(2);
    let dir = folder.path().canonicalize().unwrap();
    let dir = dir.display();
    let expected = format!(
        "stead: {dir} is not trusted, and it would act by itself:\n  \
         hooks/h.yaml: runs `sh scripts/x.sh` at run_start\n\
         If you know where it comes from, --trust (or `stead trust add {dir}`) trusts it as it is now\n"
    );
    assert_eq!(done.err, expected);
    assert!(!folder.has("ran") && !folder.has("agents"));
}

#[test]
fn a_decision_is_remembered_until_something_that_acts_changes() {
    let folder = hooked();
    run(&folder, &["run", "--trust", "hi"]).exits(0);
    assert!(folder.has("ran"));
    run(&folder, &["run", "hi"]).exits(0);
    folder.put("AGENTS.md", "You keep other notes.\n");
    folder.put("notes.md", "n");
    run(&folder, &["run", "hi"]).exits(0);
    let table: [(&str, &str, &str); 4] = [
        (
            "scripts/x.sh",
            "echo y > ran2\n",
            "hooks/h.yaml: changed: runs `sh scripts/x.sh`",
        ),
        (
            "agent.yaml",
            "permission_mode: bypass\n",
            "agent.yaml: new: asks less than usual",
        ),
        (
            "hooks/i.yaml",
            "name: i\nevents: [run_end]\nhandler: {type: command, command: id}\n",
            "hooks/i.yaml: new: runs `id`",
        ),
        (
            "hooks/h.yaml",
            "name: h\nevents: [run_start]\nhandler: {type: command, command: 'true'}\n",
            "hooks/h.yaml: gone: runs `sh scripts/x.sh`",
        ),
    ];
    for (file, text, told) in table {
        let before = folder.has(file).then(|| folder.read(file));
        folder.put(file, text);
        let done = run(&folder, &["run", "hi"]).exits(2);
        assert!(
            done.err.contains("has changed since you decided"),
            "{done:#?}"
        );
        assert!(done.err.contains(told), "{file}: {done:#?}");
        assert!(!folder.has("ran2"));
        match before {
            Some(before) => folder.put(file, &before),
            None => std::fs::remove_file(folder.path().join(file)).unwrap(),
        }
        run(&folder, &["run", "hi"]).exits(0);
    }
}

#[test]
fn a_decision_is_about_one_place() {
    let folder = Folder::from_elsewhere();
    let dir = |name: &str| folder.path().join(name);
    std::fs::create_dir(dir("a")).unwrap();
    fill(&dir("a"));
    folder.put("script.yaml", "- text: Done.\n");
    let at = |name: &str, more: &[&str]| {
        let mut args = vec!["run", "-C", name, "hi"];
        args.extend(more);
        run(&folder, &args)
    };
    at("a", &["--trust"]).exits(0);
    at("a", &[]).exits(0);
    // Copied, and moved.
    std::fs::create_dir(dir("b")).unwrap();
    fill(&dir("b"));
    at("b", &[]).exits(2);
    std::fs::rename(dir("a"), dir("c")).unwrap();
    at("c", &[]).exits(2);
    // Another folder at the trusted path.
    std::fs::create_dir(dir("a")).unwrap();
    fill(&dir("a"));
    folder.put("a/scripts/x.sh", "echo other > ran\n");
    at("a", &[]).exits(2);
    // The same place by another name.
    std::os::unix::fs::symlink("b", dir("link")).unwrap();
    at("b", &["--trust"]).exits(0);
    at("link", &[]).exits(0);
}

#[test]
fn decisions_are_listed_shown_and_forgotten_and_kept_private() {
    let folder = hooked();
    let dir = folder.path().canonicalize().unwrap();
    let shown = run(&folder, &["trust", "show"]).exits(0);
    let expected = format!(
        "hooks/h.yaml: runs `sh scripts/x.sh` at run_start\n{} is not trusted\n",
        dir.display()
    );
    assert_eq!(shown.out, expected);
    run(&folder, &["trust", "add"]).exits(0);
    assert!(!folder.has("ran"), "adding runs nothing");
    let shown = run(&folder, &["trust", "show", "--json"]).exits(0).json();
    assert_eq!(shown["state"], "trusted");
    assert_eq!(shown["parts"][0]["kind"], "hook");
    let listed = run(&folder, &["trust", "list", "--json"]).exits(0).json();
    assert_eq!(listed["path"], dir.to_str().unwrap());
    assert_eq!(listed["answer"], "trusted");
    let files = records(&folder);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(files.len(), 1);
    assert_eq!(mode(&files[0]), 0o600);
    assert_eq!(mode(files[0].parent().unwrap()), 0o700);
    run(&folder, &["trust", "remove"]).exits(0);
    run(&folder, &["run", "hi"]).exits(2);
    run(&folder, &["trust", "remove"]).exits(2);
    assert_eq!(run(&folder, &["trust", "list", "--json"]).exits(0).out, "");
    // A record that cannot be read is none.
    run(&folder, &["trust", "add"]).exits(0);
    std::fs::write(&files[0], "{}").unwrap();
    run(&folder, &["run", "hi"]).exits(2);
    assert!(!folder.has("ran"));
}

#[test]
fn check_lists_what_acts_and_whether_it_is_trusted() {
    let folder = hooked();
    let told = |done: Done| {
        done.out
            .lines()
            .filter(|line| line.contains("trust"))
            .count()
    };
    let before = run(&folder, &["check"]).exits(0);
    assert!(
        before.out.contains("this folder is not trusted"),
        "{before:#?}"
    );
    assert!(
        before
            .out
            .contains("hooks/h.yaml: acts by itself: it runs `sh scripts/x.sh`")
    );
    let after = run(&folder, &["check", "--trust"]).exits(0);
    assert!(after.out.contains("this folder is trusted"), "{after:#?}");
    assert_eq!(told(after), 1);
}

#[test]
fn init_trusts_what_it_made_and_not_what_was_there() {
    for layout in [
        "stead",
        "openharness",
        "openpaw",
        "deepagents",
        "agentscope-py",
    ] {
        let folder = Folder::from_elsewhere();
        run(&folder, &["init", "my-agent", "--layout", layout]).exits(0);
        let shown = run(&folder, &["trust", "show", "my-agent", "--json"])
            .exits(0)
            .json();
        assert_ne!(shown["state"], "not_trusted", "{layout}: {shown}");
    }
    let folder = Folder::from_elsewhere();
    std::fs::create_dir_all(folder.path().join("x/hooks")).unwrap();
    folder.put("x/hooks/h.yaml", HOOK);
    let made = run(&folder, &["init", "x"]).exits(0);
    assert!(
        made.out
            .contains("was there before and acts by itself: hooks/h.yaml: runs"),
        "{made:#?}"
    );
    let shown = run(&folder, &["trust", "show", "x", "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["state"], "not_trusted");
}

/// Runs on a terminal and types `keys` at the question.
fn answer(folder: &Folder, args: &[&str], keys: &str) -> (i32, String) {
    let model = format!("scripted:{}", folder.path().join("script.yaml").display());
    let mut command = Command::new(STEAD);
    command
        .env_clear()
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.config())
        .env("PATH", "/usr/bin:/bin")
        .env("STEAD_BACKGROUND", "0")
        .env("STEAD_MODEL", model)
        .current_dir(folder.path())
        .args(args);
    let mut pty = Pty::spawn(&command, 40, 160);
    pty.wait_for("Trust it? [y]es, [n]o, read only, [q]uit:", DEADLINE);
    assert!(
        pty.screen()
            .contains("hooks/h.yaml: runs `sh scripts/x.sh` at run_start")
    );
    assert!(!folder.has("ran"));
    pty.send(keys);
    let code = pty.wait_exit(DEADLINE).code().unwrap_or(-1);
    (code, pty.raw())
}

#[test]
fn at_a_terminal_the_person_is_asked_once() {
    let folder = hooked();
    let (code, text) = answer(&folder, &["run", "hi"], "q\r");
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("was not opened"), "{text}");
    assert!(!folder.has("ran") && records(&folder).is_empty());
    let (code, text) = answer(&folder, &["run", "hi"], "what?\ry\r");
    assert_eq!(code, 0, "{text}");
    assert!(folder.has("ran") && text.contains("Done."), "{text}");
    run(&folder, &["run", "hi"]).exits(0);
}

#[test]
fn read_only_opens_the_folder_without_what_acts() {
    let folder = hooked();
    folder.put(
        "agent.yaml",
        "permission_mode: bypass\nmodel: openai:of-the-folder\n",
    );
    let (code, text) = answer(&folder, &["run", "hi"], "n\r");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("opened read only, without 2 parts"), "{text}");
    assert!(
        text.contains("Done."),
        "the person's own model answers: {text}"
    );
    assert!(!folder.has("ran") && !folder.has("a.txt"), "{text}");
    // The answer is remembered, also without a terminal.
    let again = run(&folder, &["run", "-s", "s", "hi"]).exits(0);
    assert!(!folder.has("ran") && !folder.has("a.txt"), "{again:#?}");
    let wider = run(&folder, &["run", "--mode", "bypass", "hi"]).exits(2);
    assert!(wider.err.contains("needs --trust"), "{wider:#?}");
    let listed = run(&folder, &["trust", "list", "--json"]).json();
    assert_eq!(listed["answer"], "read_only");
    folder.put("agent.yaml", "permission_mode: bypass\n");
    run(&folder, &["run", "--trust", "hi"]).exits(0);
    assert!(folder.has("ran") && folder.has("a.txt"));
}

#[test]
fn a_chat_asks_before_the_screen_is_drawn() {
    let folder = hooked();
    let (code, text) = answer(&folder, &["chat"], "q\r");
    assert_eq!(code, 2, "{text}");
    assert!(!text.contains("\u{1b}[?1049h"), "{text:?}");
    assert!(!folder.has("ran"));
}

#[test]
fn a_recorded_mode_and_a_grant_have_no_effect_in_a_folder_that_is_not_trusted() {
    let folder = hooked();
    folder.put("script.yaml", "- calls: [{tool: write_file, args: {file_path: a.txt, content: x}, id: c}]\n- text: Done.\n- calls: [{tool: write_file, args: {file_path: b.txt, content: x}, id: d}]\n- text: Done.\n");
    run(
        &folder,
        &["run", "--trust", "-s", "s", "--mode", "bypass", "hi"],
    )
    .exits(0);
    assert!(folder.has("a.txt"));
    for made in ["a.txt", "ran"] {
        std::fs::remove_file(folder.path().join(made)).unwrap();
    }
    run(&folder, &["trust", "remove"]).exits(0);
    let (code, text) = answer(&folder, &["run", "-s", "s", "again"], "n\r");
    assert_eq!(code, 0, "{text}");
    assert!(!folder.has("a.txt") && !folder.has("b.txt"), "{text}");
}
