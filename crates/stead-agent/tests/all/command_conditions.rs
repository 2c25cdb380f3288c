//! The place for tests of what a command rule depends on besides the words of a line: the folder,
//! the files that it names, the repository that git finds, and the program that it runs.

use crate::subagents::{Says, answers};
use crate::support::{agent_with_host, block_on, session, text};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::VerdictKind::{self, Allow, Ask, Deny};
use tempfile::TempDir;

fn put(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn workspace(settings: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "agent.yaml", settings);
    put(dir.path(), "a.txt", "a\n");
    put(dir.path(), "src/b.txt", "b\n");
    dir
}

async fn open(dir: &TempDir) -> Arc<Agent> {
    agent_with_host(dir.path(), answers(|_, _, _| Says::Never)).await
}

async fn verdict(agent: &Arc<Agent>, args: Value) -> (VerdictKind, String) {
    let verdict = agent.sessionless().explain("execute", args).await.unwrap();
    (verdict.kind, verdict.reason)
}

fn git(dir: &Path, line: &str) {
    let ran = Command::new("git")
        .args(line.split(' '))
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {line}: {ran:?}");
}

fn repository(dir: &Path) {
    git(dir, "init -q -b main .");
    git(dir, "add a.txt");
    git(dir, "-c user.name=a -c user.email=a@b commit -q -m first");
}

#[test]
fn a_file_that_may_not_be_read_is_found_behind_every_spelling() {
    let rules = "permissions: [{operations: [read], paths: ['secrets/**'], mode: deny}]\n";
    for settings in [
        "commands: {allow: ['cat *', 'cd *']}\n",
        "commands: {reads: allow}\n",
        "permission_mode: bypass\n",
    ] {
        let dir = workspace(&format!("{settings}{rules}"));
        put(dir.path(), ".env", "KEY=sesame\n");
        put(dir.path(), "secrets/key", "sesame\n");
        put(dir.path(), "@@bob/note.md", "sesame\n");
        symlink("secrets", dir.path().join("link")).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(&root, elsewhere.path().join("ws")).unwrap();
        let name = root.file_name().unwrap().to_str().unwrap().to_owned();
        let root = root.to_str().unwrap();
        let other = elsewhere.path().to_str().unwrap();
        let lines = [
            "cat .env".to_owned(),
            "cat ./src/../.env".to_owned(),
            format!("cat ../{name}/.env"),
            format!("cat {root}/.env"),
            format!("cat {root}/src/.././.env"),
            format!("cat {other}/ws/.env"),
            "cat < .env".to_owned(),
            "cat < /proc/self/cwd/.env".to_owned(),
            format!("cat /proc/self/root{root}/.env"),
            "cd secrets; cat key".to_owned(),
            "cd secrets && cat key".to_owned(),
            format!("cd {root}/secrets && cat key"),
            "cd src; cd ..; cat secrets/key".to_owned(),
            "pushd src; cat ../secrets/key".to_owned(),
            "cat link/key".to_owned(),
            "cat @@bob/note.md".to_owned(),
            "wc -l a.txt secrets/key".to_owned(),
            "diff a.txt secrets/key".to_owned(),
            "unknown-program < secrets/key".to_owned(),
        ];
        block_on(async {
            let agent = open(&dir).await;
            for line in &lines {
                let (kind, why) = verdict(&agent, json!({"command": line})).await;
                assert_eq!(kind, Deny, "{settings}{line}: {why}");
            }
            let below = json!({"command": "cat ../.env", "cwd": "src"});
            let (kind, why) = verdict(&agent, below).await;
            assert_eq!(kind, Deny, "{settings}: {why}");
            for line in [
                "base64 secrets/key",
                "cp .env x",
                "python3 x.py --in=secrets/key",
            ] {
                let (kind, why) = verdict(&agent, json!({"command": line})).await;
                assert_eq!(kind, Ask, "{settings}{line}: {why}");
            }
        });
    }
}

#[test]
fn reads_never_show_what_the_file_rules_deny() {
    let dir = workspace("commands: {reads: allow, allow: ['*']}\n");
    put(dir.path(), ".env", "KEY=sesame\n");
    put(dir.path(), "empty/x", "");
    symlink("/etc", dir.path().join("src/out")).unwrap();
    repository(dir.path());
    let lines = [
        "grep -d recurse K .",
        "grep -drecurse K .",
        "grep --directories=recurse K .",
        "grep -r K .",
        "rg --hidden K",
        "diff -N . empty",
        "diff . empty",
        "diff src empty",
        "git log -U3",
        "git log --unified=1",
        "git log -p",
        "git status -v",
        "git status -vv",
        "git diff",
        "git diff -- .",
        "git diff -- src",
        "git show HEAD",
        "git show HEAD:.env",
        "git diff -- missing",
        "cat /etc/hostname",
        "cat src/out/hostname",
        "ls /",
        "cat ../x",
        "find / -name x",
    ];
    block_on(async {
        let agent = open(&dir).await;
        for line in lines {
            let (kind, why) = verdict(&agent, json!({"command": line})).await;
            assert_ne!(kind, Allow, "{line}: {why}");
        }
        for line in [
            "grep -r a a.txt empty",
            "cat a.txt",
            "diff a.txt src/b.txt",
            "git status",
            "git log --oneline",
            "git diff --stat",
            "git diff HEAD -- a.txt",
            "git log -p -- a.txt",
            "cd src && cat b.txt",
        ] {
            let (kind, why) = verdict(&agent, json!({"command": line})).await;
            assert_eq!(kind, Allow, "{line}: {why}");
        }
        let root = dir.path().canonicalize().unwrap();
        for deep in ["grep -r K", "rg --hidden K", "find"] {
            let line = format!("{deep} {}", root.display());
            let (kind, why) = verdict(&agent, json!({"command": line})).await;
            assert_ne!(kind, Allow, "{line}: {why}");
        }
        let line = format!("cat {}/a.txt", root.display());
        let (kind, why) = verdict(&agent, json!({"command": line})).await;
        assert_eq!(kind, Allow, "an absolute path of the workspace: {why}");
    });
}

#[test]
fn git_is_a_read_only_in_the_repository_of_the_workspace() {
    let status = |folder: &str| json!({"command": "git status", "cwd": folder});
    let settings = "commands: {reads: allow}\n";
    let dir = workspace(settings);
    repository(dir.path());
    std::fs::create_dir(dir.path().join("skill")).unwrap();
    put(dir.path(), "skill/deep/a.txt", "a");
    git(&dir.path().join("skill"), "init -q .");
    block_on(async {
        let agent = open(&dir).await;
        assert_eq!(verdict(&agent, status(".")).await.0, Allow);
        assert_eq!(verdict(&agent, status("src")).await.0, Allow);
        for folder in ["skill", "skill/deep"] {
            let (kind, why) = verdict(&agent, status(folder)).await;
            assert_eq!(kind, Ask, "{why}");
            assert!(why.contains("skill is another repository"), "{why}");
        }
        let (kind, why) = verdict(&agent, json!({"command": "cd skill && git status"})).await;
        assert_eq!(kind, Ask, "{why}");
    });
    #[rustfmt::skip]
    let foreign = [
        (".git/config", "[filter \"x\"]\n\tclean = ./evil\n", "filter.*.clean"),
        (".git/config", "[diff]\n\texternal = ./evil\n", "diff.external"),
        (".git/config", "[gpg]\n\tprogram = ./evil\n", "gpg.program"),
        (".git/config", "[include]\n\tpath = ../evil\n", "include.path"),
        (".gitattributes", "* filter=x\n", "filter=x"),
        ("src/.gitattributes", "* diff=x\n", "diff=x"),
        (".git/info/attributes", "* filter=x\n", "filter=x"),
        (".gitmodules", "", ".gitmodules"),
        (".git/commondir", "/elsewhere", ".git/commondir"),
    ];
    for (file, content, expected) in foreign {
        let dir = workspace(settings);
        repository(dir.path());
        put(dir.path(), file, content);
        block_on(async {
            let (kind, why) = verdict(&open(&dir).await, status(".")).await;
            assert_eq!(kind, Ask, "{file}");
            assert!(why.contains(expected), "{file}: {why}");
        });
    }
    let outer = tempfile::tempdir().unwrap();
    git(outer.path(), "init -q .");
    put(outer.path(), "ws/agent.yaml", settings);
    let inner = outer.path().join("ws");
    block_on(async {
        let agent = agent_with_host(&inner, answers(|_, _, _| Says::Never)).await;
        let (kind, why) = verdict(&agent, status(".")).await;
        assert_eq!(kind, Ask, "the workspace lies in another repository: {why}");
    });
}

#[test]
fn a_rule_holds_in_its_folder_and_for_the_folder_that_a_link_leads_to() {
    let dir = workspace("commands: {allow: [make, (in web) make]}\n");
    put(dir.path(), "web/x", "");
    put(dir.path(), "evil/x", "");
    symlink("web", dir.path().join("to-web")).unwrap();
    symlink("evil", dir.path().join("web/sub")).unwrap();
    block_on(async {
        let agent = open(&dir).await;
        #[rustfmt::skip]
        let table = [
            ("make", ".", Allow),
            ("make", "web", Allow),
            ("make", "to-web", Allow),
            ("make", "evil", Ask),
            ("make", "web/sub", Ask),
            ("cd web && make", ".", Allow),
            ("cd to-web && make", ".", Ask),
            ("cd evil && make", ".", Ask),
            ("cd missing && make", ".", Ask),
            ("cd web; make", ".", Ask),
        ];
        for (command, cwd, expected) in table {
            let (kind, why) = verdict(&agent, json!({"command": command, "cwd": cwd})).await;
            assert_eq!(kind, expected, "{command} in {cwd}: {why}");
        }
    });
}

#[test]
fn an_exact_rule_for_a_script_needs_a_file_of_the_workspace() {
    let dir = workspace(
        "commands: {allow: [python3 x.py, python3 missing.py, python3 src, python3 out.py, python3 /etc/hosts, ./x.py, \
         python3 -c pass, python3, bash]}\n",
    );
    put(dir.path(), "x.py", "print(1)\n");
    symlink("/etc/hosts", dir.path().join("out.py")).unwrap();
    block_on(async {
        let agent = open(&dir).await;
        #[rustfmt::skip]
        let table = [
            ("python3 x.py", Allow),
            ("./x.py", Allow),
            ("python3 -c pass", Allow),
            ("python3 missing.py", Ask),
            ("python3 src", Ask),
            ("python3 out.py", Ask),
            ("python3 /etc/hosts", Ask),
            ("python3", Ask),
            ("echo code | bash", Ask),
            ("python3 <<< code", Ask),
        ];
        for (command, expected) in table {
            let (kind, why) = verdict(&agent, json!({"command": command})).await;
            assert_eq!(kind, expected, "{command}: {why}");
        }
    });
}

#[test]
fn what_the_session_wrote_does_not_run_by_an_exact_rule() {
    let dir = workspace(
        "commands: {allow: [python3 x.py, npm test, make, sh other.sh]}\nmemory: {flush: false}\n",
    );
    put(
        dir.path(),
        "subagents/kid.md",
        "---\ndescription: Helps.\nworkspace: {mode: shared}\n---\nHelp.\n",
    );
    for name in ["x.py", "other.sh", "package.json"] {
        put(dir.path(), name, "");
    }
    let writes = |file: &str| {
        let args = json!({"file_path": file, "content": "evil", "mode": "overwrite"});
        ("write_file", args)
    };
    let model = answers(move |task, said, _| match (task, said) {
        ("go", 0) => Says::Calls(vec![
            writes("x.py"),
            writes("web/package.json"),
            writes("package.json"),
        ]),
        ("go", 1) => Says::Calls(vec![("task", json!({"agent": "kid", "prompt": "help"}))]),
        ("help", 0) => Says::Calls(vec![writes("Makefile")]),
        _ => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host(dir.path(), model).await;
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let mut writer = agent.session(session("s"));
        writer.run(text("go"), options).await.unwrap();
        let mut other = agent.session(session("other"));
        #[rustfmt::skip]
        let table = [
            ("python3 x.py", Ask, Allow),
            ("npm test", Ask, Allow),
            // A subagent wrote it. Whose is not asked.
            ("make", Ask, Ask),
            ("sh other.sh", Allow, Allow),
        ];
        for (command, expected, elsewhere) in table {
            let args = json!({"command": command});
            let said = writer.explain("execute", args.clone()).await.unwrap();
            assert_eq!(said.kind, expected, "{command}: {}", said.reason);
            let said = other.explain("execute", args).await.unwrap();
            assert_eq!(said.kind, elsewhere, "{command}: {}", said.reason);
        }
    });
}
