//! The place for tests of a workspace of each layout runs unchanged; snapshots of prompts and
//! requests.

use crate::support::{Done, Folder, done, endpoints};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stead_testkit::{FakeModel, FakeWire, RecordedRequest, reply};

const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../stead-workspace/tests/fixtures"
);

/// A copy of a workspace, and how it is opened.
struct Kind {
    folder: Folder,
    /// Where it lies below the folder.
    root: PathBuf,
    env: Vec<(&'static str, String)>,
    args: Vec<&'static str>,
}

impl Kind {
    fn copy(fixture: &str, root: &str) -> Self {
        let folder = Folder::without_mark();
        copy(
            &Path::new(FIXTURES).join(fixture),
            &folder.path().join("kind"),
        );
        Self {
            folder,
            root: Path::new("kind").join(root),
            env: Vec::new(),
            args: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    fn flags(mut self, args: &[&'static str]) -> Self {
        self.args.extend(args);
        self
    }

    fn run(&self, server: &FakeModel, args: &[&str]) -> Done {
        let home = self.folder.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        let mut command = self.folder.command(&[args, &self.args[..]].concat());
        command
            .current_dir(self.folder.path().join(&self.root))
            .env("HOME", home);
        command
            .envs(endpoints(server))
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        done(&mut command)
    }

    /// Every file that is no runtime state, with its content.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.folder.path().join("kind");
        let paths = self
            .folder
            .files()
            .into_iter()
            .filter(|path| path.starts_with(&root));
        const STATE: [&str; 3] = ["agents", ".stead", "token_usage.jsonl"];
        let state = |path: &Path| {
            path.components()
                .any(|part| STATE.iter().any(|name| part.as_os_str() == *name))
        };
        let kept = paths
            .filter(|path| !state(path) || path.ends_with("build.md") || path.ends_with("plan.md"));
        kept.map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What of a request depends on the workspace.
fn essence(request: &RecordedRequest) -> Value {
    let body = &request.json;
    let system = match request.wire {
        FakeWire::Messages => body["system"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect(),
        FakeWire::Chat | FakeWire::Responses | FakeWire::Gemini => {
            vec![body["messages"][0]["content"].as_str().unwrap()]
        }
    };
    let name = |tool: &Value| {
        tool["name"]
            .as_str()
            .or_else(|| tool["function"]["name"].as_str())
            .map(str::to_owned)
    };
    let tools: Vec<String> = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(name)
        .collect();
    let limit = body
        .get("max_tokens")
        .or_else(|| body.get("max_completion_tokens"));
    json!({
        "model": body["model"], "temperature": body["temperature"], "max_tokens": limit, "tools": tools,
        "system": steady(&system.join("\n\n")).lines().collect::<Vec<_>>(),
    })
}

/// The text without what differs from run to run.
fn steady(text: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some(("- Date", _)) => "- Date: (today)".to_owned(),
        Some(("- Session", _)) => "- Session: (id)".to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Runs the workspace once; gives what the model was sent and what `stead prompt` shows of it.
fn runs(kind: &Kind) -> (Value, String) {
    let server = FakeModel::start_with(|_| reply().text("Understood."));
    let before = kind.files();
    let ran = kind.run(&server, &["run", "-s", "first", "Hello."]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "Understood.\n"),
        "{ran:?}"
    );
    let prompt = kind.run(&server, &["prompt", "--summary"]).exits(0).out;
    let listed = kind.run(&server, &["sessions", "list"]).exits(0).out;
    assert!(listed.contains("first"), "{listed}");
    assert_eq!(kind.files(), before, "the workspace is unchanged");
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    (essence(&requests[0]), prompt)
}

#[test]
fn an_agentscope_workspace_runs_as_it_is() {
    let kind = Kind::copy("agentscope", "src")
        .with("OPENAI_API_KEY", "k")
        .with("RATES_KEY", "r");
    let kind = kind.flags(&["--memory", "plans/PLAN.md"]);
    let (request, prompt) = runs(&kind);
    insta::assert_json_snapshot!("agentscope", request);
    insta::assert_snapshot!("agentscope_prompt", prompt);
    assert!(
        kind.folder
            .has("kind/.agentscope/workspace/agents/main/sessions/first.log.jsonl")
    );
}

#[test]
fn an_openharness_workspace_runs_as_it_is() {
    let platform = Path::new(FIXTURES).join("openharness/platform");
    let kind = Kind::copy("openharness/workspace", "")
        .with("STEAD_PLATFORM", platform.display().to_string())
        .with("PLATFORM_KEY", "k")
        .with("REVIEW_TOKEN", "t")
        .with("LOCAL_URL", "http://127.0.0.1:9/v1");
    let (request, prompt) = runs(&kind);
    insta::assert_json_snapshot!("openharness_plan", request);
    insta::assert_snapshot!("openharness_plan_prompt", prompt);
    assert!(
        kind.folder
            .has("kind/.openharness/data/agents/main/sessions/first.log.jsonl")
    );
    let server = FakeModel::start_with(|_| reply().text("Built."));
    kind.run(&server, &["run", "-a", "build", "Go."]).exits(0);
    insta::assert_json_snapshot!("openharness_build", essence(&server.requests()[0]));
}

#[test]
fn an_openpaw_workspace_runs_as_it_is() {
    let kind = Kind::copy("openpaw", "");
    let (request, prompt) = runs(&kind);
    insta::assert_json_snapshot!("openpaw", request);
    insta::assert_snapshot!("openpaw_prompt", prompt);
    // What has no folder of its own goes to workspace/, and is found by the same name.
    let server = FakeModel::start(vec![
        reply().call(
            "write_file",
            json!({"file_path": "notes.md", "content": "x"}),
        ),
        reply().call("read_file", json!({"file_path": "notes.md"})),
        reply().call(
            "write_file",
            json!({"file_path": "config/agent.yaml", "content": "x", "mode": "overwrite"}),
        ),
        reply().text("Done."),
    ]);
    kind.run(&server, &["run", "Write."]).exits(0);
    assert_eq!(kind.folder.read("kind/workspace/notes.md"), "x");
    let sent = server.requests().last().unwrap().json["messages"].to_string();
    assert!(sent.contains("protected: config"), "{sent}");
}

#[test]
fn a_deepagents_folder_runs_as_it_is() {
    let kind = Kind::copy("deepagents", "").with("ANTHROPIC_API_KEY", "k");
    let (request, prompt) = runs(&kind);
    insta::assert_json_snapshot!("deepagents", request);
    insta::assert_snapshot!("deepagents_prompt", prompt);
}

#[test]
fn a_deepagents_deploy_project_runs_as_it_is() {
    let kind = Kind::copy("deepagents-deploy", "").with("ANTHROPIC_API_KEY", "k");
    let (request, prompt) = runs(&kind);
    insta::assert_json_snapshot!("deepagents_deploy", request);
    insta::assert_snapshot!("deepagents_deploy_prompt", prompt);
}

#[test]
fn a_work_directory_of_agentscopes_python_workspace_runs_as_it_is() {
    let kind = Kind::copy("agentscope-py", "").with("ANTHROPIC_API_KEY", "k");
    let (request, prompt) = runs(&kind);
    insta::assert_json_snapshot!("agentscope_py", request);
    insta::assert_snapshot!("agentscope_py_prompt", prompt);
}

#[test]
fn each_layout_is_scaffolded_checked_and_runs() {
    for layout in [
        "stead",
        "agentscope",
        "openharness",
        "openpaw",
        "deepagents",
        "agentscope-py",
        "deepagents-deploy",
    ] {
        let folder = Folder::without_mark();
        folder
            .run(&["init", "my-agent", "--layout", layout])
            .exits(0);
        let model = folder.script("- text: Ready.");
        let ran = folder.run(&[
            "run", "-C", "my-agent", "--layout", layout, "-m", &model, "Hello.",
        ]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (0, "Ready.\n"),
            "{layout}: {ran:?}"
        );
    }
    let folder = Folder::without_mark();
    for name in ["A", "Bad Name", "1x"] {
        folder.run(&["init", name, "--layout", "openpaw"]).exits(2);
    }
}
