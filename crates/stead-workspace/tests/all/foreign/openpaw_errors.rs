//! The place for tests of errors in OpenPaw workspaces, with their place.

use super::{failing, lines, open, tree};
use stead_workspace::OpenOptions;

async fn errors(file: &str, text: &str) -> Vec<String> {
    let files = tree(&[("agent/AGENT.md", "# A"), (file, text)]);
    match open(&files, &OpenOptions::default()).await {
        Ok(definition) => failing(&definition),
        Err(findings) => lines(&findings),
    }
}

#[tokio::test]
async fn mistakes_have_a_place_and_a_way_out() {
    let yaml = "config/agent.yaml";
    let cron = "config/crons/a.yaml";
    #[rustfmt::skip]
    let table = [
        (yaml, "name: a\nmodle: x", "config/agent.yaml:2:1: ", "did you mean `model`?"),
        (yaml, "queue:\n  mode: colect", "config/agent.yaml:2:3: queue.mode: ", "did you mean `collect`?"),
        (yaml, "queue:\n  modes: collect", "config/agent.yaml:2:3: ", "did you mean `mode`?"),
        (yaml, "queue:\n  cap: 0", "config/agent.yaml:2:3: ", "from 1 to 1000"),
        (yaml, "queue:\n  debounce_ms: 3600001", "config/agent.yaml:2:3: ", "which is an hour"),
        (yaml, "model:\n  provider: openai", "config/agent.yaml:1:1: ", "Set model.model"),
        (yaml, "model: claude", "config/agent.yaml:1:1: ", "provider:model is needed"),
        (yaml, "model: 5", "config/agent.yaml:1:1: model: ", "provider:model"),
        (yaml, "model:\n  model: bedrock:x", "config/agent.yaml:1:1: ", "\"bedrock\" is not supported"),
        (yaml, "model:\n  max_turns: 0", "config/agent.yaml:2:3: ", "at least 1"),
        (yaml, "model:\n  max_turns: many", "config/agent.yaml:2:3: model.max_turns: ", "a whole number"),
        (yaml, "model:\n  temperature: 3", "config/agent.yaml:2:3: ", "from 0 to 2"),
        (yaml, "model:\n  api_key: ${NOT_SET}", "config/agent.yaml:2:3: ", "the variable NOT_SET is not set"),
        (yaml, "name: a\ntimezone: Mars/Base", "config/agent.yaml:2:1: ", "IANA names are needed"),
        (yaml, "channel: {type: telegram}\nchannels: [{type: discord}]", "config/agent.yaml:2:1: ", "keep one of them"),
        (yaml, "channels:\n- {type: telegram}\n- {type: telegram}", "config/agent.yaml:3:", "two channels are named \"telegram\""),
        (yaml, "channel: {token: t}", "config/agent.yaml:1:1: ", "channel.type: is missing"),
        (yaml, "channel:\n  type: discord\n  context_messages: 101", "config/agent.yaml:3:3: ", "from 0 to 100"),
        (yaml, "channel:\n  type: discord\n  allowed_users: [ann]", "config/agent.yaml:3:", "a whole number is needed"),
        (yaml, "channel:\n  type: discord\n  user_aliases: {ann: A}", "config/agent.yaml:3:18: ", "is no user's number"),
        (yaml, "channel:\n  type: discord\n  channel_log: {retention_days: 0}", "config/agent.yaml:3:17: ", "at least 1"),
        (yaml, "heartbeat:\n  active_hours: 9-17", "config/agent.yaml:2:3: ", "such as 09:00-17:00"),
        (yaml, "heartbeat:\n  interval_minutes: 0", "config/agent.yaml:2:3: ", "at least 1"),
        (yaml, "heartbeat: {target_id: 1, target_chat_id: 2}", "config/agent.yaml:1:13: ", "keep one of"),
        (yaml, "heartbeat: {delivery: pigeon}", "config/agent.yaml:1:13: ", "pigeon"),
        (yaml, "auto_compact:\n  trigger: 1.5", "config/agent.yaml:2:3: ", "from 0 to 1"),
        (yaml, "builtins:\n  deny: [shel]", "config/agent.yaml:2:10: ", "did you mean `shell`?"),
        (yaml, "builtins:\n  brave_serch: {}", "config/agent.yaml:2:3: ", "did you mean `brave_search`?"),
        (yaml, "approval_gates: {default_action: maybe}", "config/agent.yaml:1:18: ", "maybe"),
        (yaml, "session_ttl_minutes: -1", "config/agent.yaml:1:1: ", "0 or more"),
        (yaml, "lanes: {main_concurrency: 0}", "config/agent.yaml:1:9: ", "at least 1"),
        (yaml, "tool_timeouts: {overrides: {ls: 0}}", "config/agent.yaml:1:29: ", "at least 1"),
        (yaml, "- a\n- b", "config/agent.yaml:1:1: ", "pairs are needed"),
        (yaml, "model: [", "config/agent.yaml:", ""),
        ("config/.env", "KEY='open", "config/.env:1:1: ", "quote"),
        (cron, "name: a\nschedule: '0 9 * *'\nprompt: p", "config/crons/a.yaml:2:1: ", "has 4 fields"),
        (cron, "name: a\nschedule: '0 9 * * 8'\nprompt: p", "config/crons/a.yaml:2:1: ", "is no schedule"),
        (cron, "name: a\nschedule: '0 9 * * *'", "config/crons/a.yaml:1:1: ", "`prompt:` is missing"),
        (cron, "schedule: '0 9 * * *'\nprompt: p", "config/crons/a.yaml:1:1: ", "`name:` is missing"),
        (cron, "name: a\nschedul: x", "config/crons/a.yaml:2:1: ", "did you mean `schedule`?"),
        (cron, "name: a\nschedule: '0 9 * * *'\nprompt: p\noutput: {chat_id: 1}", "config/crons/a.yaml:4:1: ", "`channel:` is missing"),
    ];
    for (file, text, begins, says) in table {
        let found = errors(file, text).await;
        let told = |line: &String| line.starts_with(begins) && line.contains(says);
        assert!(found.iter().any(told), "{text}\n{found:#?}");
    }
}

#[tokio::test]
async fn files_that_are_no_text_are_told_and_not_guessed() {
    for (path, content, says) in [
        (
            "agent/AGENT.md",
            &b"\xff\xfeA\0"[..],
            "is UTF-16; save it as UTF-8",
        ),
        (
            "agent/SOUL.md",
            b"a\nb\xff",
            "is not UTF-8 text; save it as UTF-8",
        ),
        (
            "config/agent.yaml",
            b"\xfe\xff",
            "is UTF-16; save it as UTF-8",
        ),
    ] {
        let mut files = tree(&[("agent/AGENT.md", "# A")]);
        files.insert(path.to_owned(), content.to_vec());
        let found = lines(&open(&files, &OpenOptions::default()).await.unwrap_err());
        assert!(
            found.len() == 1 && found[0].starts_with(path) && found[0].ends_with(says),
            "{found:?}"
        );
    }
    let bom = "\u{feff}name: Ann\r\nmodel: openai:m\r\n";
    let files = tree(&[("agent/AGENT.md", "# A"), ("config/agent.yaml", bom)]);
    assert_eq!(
        open(&files, &OpenOptions::default())
            .await
            .unwrap()
            .config
            .agent_id()
            .as_str(),
        "ann"
    );
}

#[tokio::test]
async fn two_schedules_of_one_name_are_told() {
    let one = "name: a\nschedule: '0 9 * * *'\nprompt: p\n";
    let files = tree(&[
        ("agent/AGENT.md", "# A"),
        ("config/crons/a.yaml", one),
        ("config/crons/b.yml", one),
    ]);
    let found = failing(&open(&files, &OpenOptions::default()).await.unwrap());
    let twice = "config/crons/b.yml:1:1: name: \"a\" is already used by config/crons/a.yaml";
    assert_eq!(found.last().map(String::as_str), Some(twice));
}
