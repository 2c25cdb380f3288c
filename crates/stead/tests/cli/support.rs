//! Test support: the binary in a folder and an environment of its own.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::{Duration, Instant};
use stead_testkit::FakeModel;

/// The binary under test.
pub(crate) const STEAD: &str = env!("CARGO_BIN_EXE_stead");
/// A hang becomes a failure.
const DEADLINE: Duration = Duration::from_secs(60);

/// The commands that open a workspace.
const OPENING: [&str; 13] = [
    "approvals",
    "chat",
    "check",
    "explain",
    "gc",
    "memory",
    "prompt",
    "run",
    "sessions",
    "skills",
    "tool",
    "usage",
    "workspace",
];

/// A workspace that is removed when dropped, with a configuration folder of its own. Commands trust
/// the workspace with `--trust`, unless it comes from elsewhere.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
    config: tempfile::TempDir,
    source: FolderSource,
}

/// Where a workspace comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderSource {
    Own,
    Elsewhere,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    /// A folder that is an agent without settings.
    pub(crate) fn new() -> Self {
        let folder = Self::without_mark();
        folder.put("agent.yaml", "{}\n");
        folder
    }

    /// A folder without the mark of any layout.
    pub(crate) fn without_mark() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            config: tempfile::tempdir().unwrap(),
            source: FolderSource::Own,
        }
    }

    /// A folder without the mark of any layout that the person has not decided about.
    pub(crate) fn from_elsewhere() -> Self {
        Self {
            source: FolderSource::Elsewhere,
            ..Self::without_mark()
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// The folder that `stead/` is made in for the person's own settings.
    pub(crate) fn config(&self) -> PathBuf {
        self.config.path().to_owned()
    }

    /// The flags that go with these arguments.
    pub(crate) fn flags(&self, args: &[&str]) -> &'static [&'static str] {
        let opens = args.iter().any(|arg| OPENING.contains(arg));
        match (self.source, opens) {
            (FolderSource::Own, true) => &["--trust"],
            (FolderSource::Own, false) | (FolderSource::Elsewhere, _) => &[],
        }
    }

    pub(crate) fn put(&self, name: &str, content: &str) {
        std::fs::write(self.dir.path().join(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.dir.path().join(name).exists()
    }

    /// A script in the workspace and the name of the model that plays it.
    pub(crate) fn script(&self, yaml: &str) -> String {
        self.put("script.yaml", yaml);
        format!("scripted:{}", self.dir.path().join("script.yaml").display())
    }

    /// The binary with this folder as its workspace and nothing in its environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(STEAD);
        command
            .env_clear()
            .env("HOME", self.dir.path())
            .env("XDG_CONFIG_HOME", self.config.path())
            .env("STEAD_BACKGROUND", "0")
            .current_dir(self.dir.path())
            .args(self.flags(args))
            .args(args)
            .timeout(DEADLINE);
        command
    }

    /// The same as a plain process, for tests that send signals.
    pub(crate) fn process(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(STEAD);
        command
            .env_clear()
            .env("HOME", self.dir.path())
            .env("XDG_CONFIG_HOME", self.config.path())
            .env("STEAD_BACKGROUND", "0")
            .current_dir(self.dir.path())
            .args(self.flags(args))
            .args(args);
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        done(&mut self.command(args))
    }

    /// Runs against `server`, on every wire's variable.
    pub(crate) fn run_with(&self, server: &FakeModel, args: &[&str]) -> Done {
        done(pointed(&mut self.command(args), server))
    }

    /// Every file below the folder.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    walk(&path, out)
                } else {
                    out.push(path)
                }
            }
        }
        let mut files = Vec::new();
        walk(self.dir.path(), &mut files);
        files
    }
}

/// The variables that lead to `server`.
pub(crate) fn endpoints(server: &FakeModel) -> [(&'static str, String); 3] {
    [
        ("OPENAI_BASE_URL", server.openai_url()),
        ("ANTHROPIC_BASE_URL", server.base_url()),
        ("GEMINI_BASE_URL", format!("{}/v1beta", server.base_url())),
    ]
}

pub(crate) fn pointed<'a>(command: &'a mut Command, server: &FakeModel) -> &'a mut Command {
    command.envs(endpoints(server))
}

pub(crate) fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Done {
    /// Panics with all that was printed unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Each line as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// Waits for the end of a process. One that does not end is killed, and the test fails.
pub(crate) fn wait(mut child: Child) -> Output {
    let end = Instant::now() + DEADLINE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("it did not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}
