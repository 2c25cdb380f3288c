//! The place for tests of the `execute` tool: working folder, timeout, errors and its facts for the
//! gate.

use super::Session;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{AccessKind, ToolEffect};
use stead_sandbox::Host;
use stead_tools::{FolderResolver, Registry, Surface, execute_tool};
use stead_vfs::VPath;

/// A session that can run commands for `usual_seconds`.
fn session(usual_seconds: u64) -> Session {
    let session = Session::with(&[("sub/deep/a.txt", "a\n"), ("b.txt", "b\n")]);
    let root = session.temp.path().canonicalize().unwrap();
    let folders: FolderResolver = Arc::new(move |path: &VPath| {
        (path.parts().next() != Some("nowhere"))
            .then(|| path.parts().fold(root.clone(), |dir, name| dir.join(name)))
    });
    let tool = execute_tool(Arc::new(Host::new([])), folders, usual_seconds);
    Session {
        tools: session.tools.with([tool]).unwrap(),
        ..session
    }
}

#[tokio::test]
async fn a_command_runs_in_its_folder_and_tells_how_it_ended() {
    let s = session(60);
    std::os::unix::fs::symlink("sub/deep", s.os("link")).unwrap();
    let root = s.temp.path().canonicalize().unwrap();
    let at = |below: &str| format!("[exit code 0]\n{}\n", root.join(below).display());
    #[rustfmt::skip]
    let table = [
        (json!({"command": "pwd; ls"}), format!("[exit code 0]\n{}\nb.txt\nlink\nsub\n", root.display())),
        (json!({"command": "pwd", "cwd": "sub/deep"}), at("sub/deep")),
        (json!({"command": "pwd", "cwd": "/sub"}), at("sub")),
        (json!({"cmd": "pwd", "workdir": "link"}), at("sub/deep")),
        (json!({"command": "echo out; echo err >&2; exit 3", "timeout": "5"}), "[exit code 3]\nout\nerr\n".to_owned()),
        (json!({"command": "true"}), "[exit code 0; no output]".to_owned()),
        (json!({"command": "kill -TERM $$"}), "[ended by signal 15 (TERM); no output]".to_owned()),
        (json!({"command": "cat"}), "[exit code 0; no output]".to_owned()),
        (json!({"command": r"printf '\033[1mbold\033[0m a\0b \377\r\n'"}), "[exit code 0]\nbold a\\x00b \u{fffd}\n".to_owned()),
    ];
    for (args, expected) in table {
        assert_eq!(
            s.call("execute", args.clone()).await.as_deref(),
            Ok(expected.as_str()),
            "{args}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_told_before_anything_runs() {
    let s = session(60);
    std::os::unix::fs::symlink("/tmp", s.os("out")).unwrap();
    s.put("nowhere/x", "");
    #[rustfmt::skip]
    let table = [
        (json!({"command": "touch ran", "cwd": ".."}), "paths cannot leave the workspace"),
        (json!({"command": "touch ran", "cwd": "out"}), "only files inside it can be used"),
        (json!({"command": "touch ran", "cwd": "sub/dep"}), "did you mean sub/deep?"),
        (json!({"command": "touch ran", "cwd": "b.txt"}), "cwd: b.txt is no folder"),
        (json!({"command": "touch ran", "cwd": "nowhere"}), "which is not a folder on this machine"),
        (json!({"command": " \n"}), "the command is empty"),
        (json!({"command": "touch ran\0"}), "NUL character"),
        (json!({"command": format!("touch ran # {}", "x".repeat(200_000))}), "into a file with write_file"),
        (json!({"command": "touch ran", "timeout": 601}), "600 seconds at most, and this call asks for 601"),
        (json!({"command": "touch ran", "timeout": 0}), "`timeout`"),
        (json!({"command": "touch ran", "shell": "zsh"}), "there is no parameter `shell`"),
    ];
    for (args, expected) in table {
        let told = s.call("execute", args.clone()).await.unwrap_err();
        assert!(
            told.contains(expected),
            "{}: {told}",
            args.to_string().chars().take(80).collect::<String>()
        );
    }
    let files: Vec<_> = std::fs::read_dir(s.temp.path())
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(!files.contains(&"ran".into()), "{files:?}");
}

#[tokio::test]
async fn a_command_whose_time_is_up_tells_what_it_wrote_until_then() {
    let s = session(60);
    let told = s
        .call(
            "execute",
            json!({"command": "echo begun; sleep 1000", "timeout": 1}),
        )
        .await
        .unwrap_err();
    let stopped = "[timed out after 1 s: the command and all it had started were stopped; `timeout` can give it more, at \
                   most 600 s]\nbegun\n";
    assert_eq!(told, stopped);
    let cancel = s.cx.cancel.clone();
    let work = s.call(
        "execute",
        json!({"command": "echo begun; touch up; sleep 1000"}),
    );
    let (told, ()) = tokio::join!(work, async {
        while !s.os("up").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    });
    assert_eq!(
        told.unwrap_err(),
        "[cancelled: the command and all it had started were stopped]\nbegun\n"
    );
}

#[test]
fn the_gate_and_the_driver_are_told_what_a_call_would_do() {
    let s = session(60);
    let told = |usual: u64, name: &str, args: Value| {
        let tools = session(usual).tools.with_surface(Surface::Title);
        let call = tools.prepare(name, args).unwrap();
        let plan = call.plan();
        let accesses: Vec<_> = plan
            .accesses()
            .iter()
            .map(|access| (access.path.clone(), access.kind))
            .collect();
        let seconds = plan.timeout().unwrap().as_secs();
        (plan.command().unwrap().text.clone(), accesses, seconds)
    };
    let at = |path: &str| vec![(path.to_owned(), AccessKind::Read)];
    #[rustfmt::skip]
    let table = [
        (60, "execute", json!({"command": "ls -l"}), ("ls -l".to_owned(), at("."), 65)),
        (60, "shell", json!({"cmd": "ls", "cwd": "sub", "timeout": 7}), ("ls".to_owned(), at("sub"), 12)),
        (60, "Bash", json!({"command": "ls", "timeout": 1500}), ("ls".to_owned(), at("."), 7)),
        (900, "Bash", json!({"command": "ls", "description": "Lists files"}), ("ls".to_owned(), at("."), 905)),
        (60, "execute", json!({"command": "ls", "timeout": 100_000}), ("ls".to_owned(), at("."), 605)),
    ];
    for (usual, name, args, expected) in table {
        assert_eq!(told(usual, name, args.clone()), expected, "{name} {args}");
    }
    let risk = s.tools.find("execute").unwrap().spec().risk;
    assert_eq!(
        (risk.effect, risk.parallel_safe, risk.repeatable),
        (ToolEffect::Executes, false, false)
    );
    let read = s
        .tools
        .prepare("read_file", json!({"file_path": "a"}))
        .unwrap();
    assert_eq!((read.plan().command(), read.plan().timeout()), (None, None));
}

#[tokio::test]
async fn bash_is_the_same_tool_under_its_title() {
    let s = session(60).on(Surface::Title);
    assert_eq!(
        s.call(
            "Bash",
            json!({"command": "cat b.txt", "timeout": 5000, "description": "Shows b"})
        )
        .await
        .as_deref(),
        Ok("[exit code 0]\nb\n")
    );
    for (args, expected) in [
        (
            json!({"command": "ls", "run_in_background": true}),
            "Bash: run_in_background is not possible yet",
        ),
        (
            json!({"command": "ls", "timeout": 600_001}),
            "Bash: `timeout`",
        ),
        (
            json!({"command": "ls", "cwd": "sub"}),
            "Bash: there is no parameter `cwd`",
        ),
    ] {
        let told = s.call("Bash", args.clone()).await.unwrap_err();
        assert!(told.starts_with(expected), "{args}: {told}");
    }
    let tools: &Registry = &s.tools;
    for alias in ["bash", "shell", "execute_shell_command", "PowerShell"] {
        assert_eq!(tools.canonical(alias), Some("execute"), "{alias}");
    }
}
