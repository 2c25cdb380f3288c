//! The place for tests of what a request weighs: how many tools it shows, how many bytes they and the
//! prompt take, and that small context windows suffice.

use crate::support::Folder;
use serde_json::{Value, json};
use stead_testkit::{FakeModel, FakeWire, RecordedRequest, reply};

/// The most tools of the first request of an empty workspace.
const MAX_TOOLS: usize = 16;
/// The most bytes of their schemas and the system prompt, as compact JSON and text.
const MAX_BYTES: usize = 9_500;

/// The models of the four wires, and how many bytes more their forms of the same may take.
const MODELS: [(&str, usize); 4] = [
    ("openai:x", 0),
    ("anthropic:x", 0),
    // `strict: false` for each tool.
    ("responses:x", 250),
    ("gemini:x", 0),
];

/// What a request shows before the conversation.
struct Head {
    /// The tools, each as compact JSON.
    tools: Vec<String>,
    system: String,
}

impl Head {
    fn of(request: &RecordedRequest) -> Self {
        let body = &request.json;
        let text_of = |blocks: &Value| -> String {
            let blocks = blocks.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect()
        };
        let is_system =
            |message: &&Value| matches!(message["role"].as_str(), Some("system" | "developer"));
        let of_messages = |messages: &Value| -> String {
            let messages = messages.as_array().unwrap().iter().filter(is_system);
            let text = |message: &Value| match message["content"].as_str() {
                Some(text) => text.to_owned(),
                None => text_of(&message["content"]),
            };
            messages.map(text).collect()
        };
        let (tools, system) = match request.wire {
            FakeWire::Chat => (&body["tools"], of_messages(&body["messages"])),
            FakeWire::Responses => (
                &body["tools"],
                match body["instructions"].as_str() {
                    Some(text) => text.to_owned(),
                    None => of_messages(&body["input"]),
                },
            ),
            FakeWire::Messages => (&body["tools"], text_of(&body["system"])),
            FakeWire::Gemini => (
                &body["tools"][0]["functionDeclarations"],
                text_of(&body["systemInstruction"]["parts"]),
            ),
        };
        let tools = tools.as_array().unwrap();
        Self {
            tools: tools.iter().map(Value::to_string).collect(),
            system,
        }
    }

    fn bytes(&self) -> usize {
        self.system.len() + self.tools.iter().map(|tool| tool.len() + 1).sum::<usize>() + 1
    }
}

/// The first request in an empty folder.
fn first_request(model: &str) -> RecordedRequest {
    let folder = Folder::without_mark();
    let server = FakeModel::start(vec![reply().text("hello")]);
    folder
        .run_with(&server, &["run", "-m", model, "hi"])
        .exits(0);
    assert_eq!(server.rejections(), Vec::new(), "{model}");
    server.requests().remove(0)
}

#[test]
fn the_first_request_of_an_empty_workspace_is_small_on_every_wire() {
    for (model, more) in MODELS {
        let head = Head::of(&first_request(model));
        let bytes = head.bytes();
        assert!(
            head.system.contains("## Workspace"),
            "{model}: {}",
            head.system
        );
        assert!(
            head.tools.len() <= MAX_TOOLS && bytes <= MAX_BYTES + more,
            "{model}: {} tools, {bytes} bytes",
            head.tools.len()
        );
    }
}

#[test]
fn small_windows_get_few_tools_and_suffice_for_a_run_of_several_steps() {
    for (window, wanted) in [(8_192, 8), (5_000, 8), (32_000, MAX_TOOLS)] {
        let folder = Folder::without_mark();
        folder.put(
            "agent.yaml",
            &format!("model: {{name: 'openai:x', context_window: {window}}}\n"),
        );
        folder.put("a.md", "one\n");
        let server = FakeModel::start(vec![
            reply().call("read_file", json!({"file_path": "a.md"})),
            reply().call(
                "use_tool",
                json!({"name": "file_info", "arguments": {"file_path": "a.md"}}),
            ),
            reply().text("done"),
        ]);
        let done = folder.run_with(&server, &["run", "Read it"]).exits(0);
        assert_eq!(
            (done.out.as_str(), server.rejections()),
            ("done\n", Vec::new())
        );
        assert!(
            !done.err.contains("the prompt and the tools alone"),
            "{done:?}"
        );
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "{window}: nothing was compacted");
        let head = Head::of(&requests[0]);
        assert_eq!(head.tools.len(), wanted, "{window}: {:?}", head.tools);
    }
}

#[test]
fn prompt_and_check_count_tools() {
    let folder = Folder::new();
    let shown = folder.run(&["prompt", "--summary"]).exits(0).out;
    let read = shown
        .lines()
        .find(|line| line.starts_with("read_file "))
        .unwrap();
    let figures: Vec<u64> = read
        .split_whitespace()
        .skip(1)
        .map(|figure| figure.parse().unwrap())
        .collect();
    assert!(
        figures[0] > 300 && figures[1] > 50 && figures[1] < figures[0],
        "{read}"
    );
    assert!(shown.contains("\n16 tools: "), "{shown}");
    assert!(
        shown.contains("further tools, found with tool_search: "),
        "{shown}"
    );
    let checked = folder.run(&["check"]).exits(0).out;
    let row = checked
        .lines()
        .find(|line| line.contains(" tools: "))
        .unwrap();
    assert!(
        row.contains("16 tools, about ") && row.contains("further ones"),
        "{row}"
    );
}

/// The table of docs/tools.md. It must be what the first request on the OpenAI wire shows; the
/// failure prints what it should be.
#[test]
fn the_table_of_tools_in_the_documentation_is_true() {
    let head = Head::of(&first_request("openai:x"));
    let bpe = tiktoken_rs::o200k_base().unwrap();
    let tokens = |text: &str| bpe.encode_ordinary(text).len();
    let mut rows = Vec::new();
    let mut all = (0, 0);
    for tool in &head.tools {
        let parsed: Value = serde_json::from_str(tool).unwrap();
        let name = parsed["function"]["name"].as_str().unwrap();
        rows.push(format!("| `{name}` | {} | {} |", tool.len(), tokens(tool)));
        all = (all.0 + tool.len(), all.1 + tokens(tool));
    }
    let table = format!(
        "| Tool | Bytes | o200k tokens |\n|---|---|---|\n{}\n| all {} tools | {} | {} |\n",
        rows.join("\n"),
        head.tools.len(),
        all.0,
        all.1
    );
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    let text = std::fs::read_to_string(docs).unwrap();
    assert!(
        text.contains(&table),
        "put this table into docs/tools.md:\n{table}"
    );
}
