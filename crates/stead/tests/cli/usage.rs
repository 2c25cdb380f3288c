//! The place for tests of budgets with `--raise`, `stead usage` and `stead models`.

use crate::support::Folder;
use serde_json::{Value, json};
use stead_core::Usage;
use stead_testkit::{FakeModel, reply};

const ENDLESS: &str = "[{calls: [{tool: ls, args: {path: .}}]}, {loop: true}]";
const LIMITED: &str = "policy: {repeat_nudge: 0, repeat_end: 0}\nprices: {}\n";

/// A folder whose model never comes to an end and costs something.
fn endless(budget: &str) -> Folder {
    let folder = Folder::new();
    folder.script(ENDLESS);
    let model = "model: {name: 'scripted:script.yaml', price: {input: 10, output: 50}, max_output_tokens: 1000}";
    folder.put(
        "agent.yaml",
        &format!("{model}\nbudget: {{{budget}}}\n{LIMITED}"),
    );
    folder
}

#[test]
fn a_budget_ends_a_run_with_four_and_raise_goes_on() {
    let folder = endless("run_usd: 0.5");
    let ended = folder.run(&["run", "-s", "s", "go"]).exits(4);
    assert!(ended.err.contains("(budget.run_usd)"), "{ended:?}");
    assert!(
        ended
            .err
            .contains("stead run -s s --resume --raise AMOUNT (0.50 is dollars, 50000t tokens)"),
        "{ended:?}"
    );
    let spent = |folder: &Folder| {
        folder.run(&["usage", "--json"]).exits(0).json()["total"]["cost"]
            .as_f64()
            .unwrap()
    };
    let before = spent(&folder);
    assert!(before > 0.25 && before <= 0.5, "{before}");
    folder.run(&["run", "-s", "s", "--resume"]).exits(4);
    assert_eq!(spent(&folder), before, "nothing was left");
    folder
        .run(&["run", "-s", "s", "--resume", "--raise", "0.25"])
        .exits(4);
    let after = spent(&folder);
    assert!(after > before && after <= 0.75, "{after}");
    for (args, said) in [
        (vec!["run", "-s", "s", "--raise", "0.25", "go"], "--resume"),
        (
            vec!["run", "-s", "s", "--resume", "--raise", "lots"],
            "write dollars as 0.50, tokens as 50000t",
        ),
        (vec!["run", "-s", "s", "--resume", "--raise", "-1"], "-1"),
        (
            vec!["run", "-s", "s", "--resume", "--raise", "0"],
            "is not an amount",
        ),
    ] {
        let wrong = folder.run(&args).exits(2);
        assert!(wrong.err.contains(said), "{args:?}: {wrong:?}");
    }
    folder.put(
        "agent.yaml",
        "model: scripted:script.yaml\nbudget: {run_usd: 1}\n",
    );
    let unpriced = folder.run(&["run", "go"]).exits(2);
    assert!(
        unpriced
            .err
            .contains("budget.run_usd is set, but the price of scripted:"),
        "{unpriced:?}"
    );
}

#[test]
fn usage_is_written_per_call_summed_up_and_made_again_from_the_journals() {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "timezone: Asia/Tokyo\nprices: {'openai:x': {input: 1, output: 10, cache_read: 0.1}}\n",
    );
    let used = |input_tokens, output_tokens| Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens: 500,
        ..Usage::default()
    };
    let server = FakeModel::start(vec![
        reply()
            .call("ls", json!({"path": "."}))
            .usage(used(1000, 10)),
        reply().text("one").usage(used(2000, 20)),
        reply().text("two").usage(used(4000, 40)),
        reply().text("three").usage(used(8000, 80)),
    ]);
    folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "a", "go"])
        .exits(0);
    folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "b", "go"])
        .exits(0);
    folder
        .run_with(
            &server,
            &["run", "-m", "openai:x", "-u", "alice", "-s", "c", "go"],
        )
        .exits(0);
    let text = folder.read("agents/main/token_usage.jsonl");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (&line["session"], &line["user"], &line["input_tokens"]))
        .collect();
    let a = json!("a");
    let b = json!("b");
    let c = json!("c");
    let alice = json!("alice");
    let nobody = lines[0]["user"].clone();
    assert_eq!(
        told,
        [
            (&a, &nobody, &json!(1000)),
            (&a, &nobody, &json!(2000)),
            (&b, &nobody, &json!(4000)),
            (&c, &alice, &json!(8000))
        ]
    );
    for key in [
        "at",
        "run",
        "purpose",
        "model",
        "cache_read_tokens",
        "output_tokens",
        "cost",
        "ms",
    ] {
        assert!(
            lines.iter().all(|line| !line[key].is_null()),
            "{key}: {text}"
        );
    }

    let sums = |args: &[&str]| {
        let said = folder
            .run(&[&["usage", "--json"], args].concat())
            .exits(0)
            .json();
        let rows: Vec<(String, u64)> = said["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                (
                    row["key"].as_str().unwrap().to_owned(),
                    row["input_tokens"].as_u64().unwrap(),
                )
            })
            .collect();
        rows
    };
    let row = |key: &str, tokens| (key.to_owned(), tokens);
    assert_eq!(
        sums(&["--by", "session"]),
        [row("c", 8000), row("b", 4000), row("a", 3000)]
    );
    assert_eq!(sums(&["--by", "model"]), [row("openai:x", 15_000)]);
    assert_eq!(sums(&["--by", "user", "-u", "alice"]), [row("alice", 8000)]);
    assert_eq!(sums(&["--until", "2020-01-01"]), []);
    let days = sums(&[]);
    assert_eq!(
        days.iter().map(|(_, tokens)| tokens).sum::<u64>(),
        15_000,
        "{days:?}"
    );
    let shown = folder.run(&["usage", "--by", "session"]).exits(0).out;
    assert!(
        shown.contains("8,000") && shown.contains("total") && !shown.contains('█'),
        "{shown}"
    );

    // Whatever became of the file, the journals know; what only the file knows stays.
    let by_model = folder
        .run(&["usage", "--by", "session", "--json"])
        .exits(0)
        .out;
    let only_alice: String = text
        .lines()
        .filter(|line| line.contains("alice"))
        .map(|line| format!("{line}\n"))
        .collect();
    folder.put(
        "agents/main/token_usage.jsonl",
        &format!("{only_alice}{{\"torn\": \n"),
    );
    let torn = folder.run(&["usage"]).exits(0);
    assert!(torn.err.contains("1 line cannot be read"), "{torn:?}");
    let rebuilt = folder
        .run(&["usage", "--rebuild", "--json"])
        .exits(0)
        .json();
    assert_eq!((&rebuilt["made"], &rebuilt["kept"]), (&json!(3), &json!(1)));
    assert_eq!(
        folder
            .run(&["usage", "--by", "session", "--json"])
            .exits(0)
            .out,
        by_model
    );
    // A copy of a session used nothing.
    folder.run(&["sessions", "fork", "a", "--to", "d"]).exits(0);
    folder.run(&["usage", "--rebuild"]).exits(0);
    assert_eq!(
        folder
            .run(&["usage", "--by", "session", "--json"])
            .exits(0)
            .out,
        by_model
    );
}

#[test]
fn usage_of_an_openpaw_workspace_goes_where_its_own_tools_look() {
    let folder = Folder::without_mark();
    std::fs::create_dir_all(folder.path().join("agent")).unwrap();
    for name in ["AGENT", "USER", "SOUL", "HEARTBEAT"] {
        folder.put(&format!("agent/{name}.md"), "# Text");
    }
    let script = folder.script("- text: fine");
    folder
        .run(&["run", "-m", &script, "-s", "s", "go"])
        .exits(0);
    let line: Value = serde_json::from_str(folder.read("data/token_usage.jsonl").trim()).unwrap();
    assert_eq!(
        (
            &line["session_key"],
            &line["llm_calls"],
            &line["invocation_type"]
        ),
        (&json!("s"), &json!(1), &json!("user"))
    );
}

#[test]
fn models_tells_what_is_known_about_one_and_who_says_so() {
    let folder = Folder::new();
    let fact = |value: Value, from: &str| json!({"value": value, "from": from});
    let told = |name: &str| {
        let args = ["--trust", "models", name, "--json"];
        folder.run(&args).exits(0).json()
    };
    let known = told("anthropic:claude-haiku-4-5");
    assert_eq!(known["context_window"], fact(json!(200_000), "table"));
    assert_eq!(
        known["abilities"],
        fact(json!(["images", "documents", "thinking", "tools"]), "table")
    );
    folder.put(
        "agent.yaml",
        "model: {provider: ollama, model: m, base_url: 'http://127.0.0.1:9/v1', context_window: 9000, abilities: [images]}\n\
         prices: {'ollama:m': {input: 0, output: 0}}\n",
    );
    let set = told("ollama:m");
    assert_eq!(set["context_window"], fact(json!(9000), "settings"));
    assert_eq!(
        (&set["abilities"], &set["max_output_tokens"]),
        (&fact(json!(["images"]), "settings"), &Value::Null)
    );
    assert_eq!(set["price"]["from"], json!("settings"));
    let unknown = folder.run(&["models", "openai:no-such"]).exits(0).out;
    assert!(
        unknown.contains("128,000 tokens are believed to fit") && unknown.contains("was not asked"),
        "{unknown}"
    );
    folder.run(&["models", "nonsense"]).exits(2);
    folder.run(&["-C", ".", "models"]).exits(2);
}
