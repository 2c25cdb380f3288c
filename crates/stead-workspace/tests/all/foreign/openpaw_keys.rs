//! The place for tests of every key of OpenPaw's settings: its effect, or a note that it is not
//! supported yet.

use super::{files, open, tree};
use stead_workspace::{
    AgentConfig, Approval, Definition, DropPolicy, FeatureSwitch, OpenOptions, QueueMode,
};

/// What a key comes to.
enum Comes {
    /// It changes the settings so.
    To(fn(&mut AgentConfig)),
    /// It denies these tools.
    ToDenied(&'static [&'static str]),
    /// It is told to be for later, with this key.
    Later(&'static str),
    /// It is told to work otherwise than it seems, with this text.
    Doubt(&'static str),
}

use Comes::{Doubt, Later, To, ToDenied};

async fn opened(settings: &str, shared: &str) -> Definition {
    let four = ["AGENT", "USER", "SOUL", "HEARTBEAT"].map(|name| format!("agent/{name}.md"));
    let mut all: Vec<(&str, &str)> = four
        .iter()
        .map(|file| (file.as_str(), "# Some text that is long enough"))
        .collect();
    all.push(("config/agent.yaml", settings));
    let platform = files(&tree(&[("config.yaml", shared)])).await;
    let options = OpenOptions {
        platform: Some(platform),
        ..OpenOptions::default()
    };
    open(&tree(&all), &options)
        .await
        .unwrap_or_else(|findings| panic!("{settings}: {findings:?}"))
}

fn model(config: &mut AgentConfig) -> &mut stead_model::ModelSettings {
    config
        .model
        .get_or_insert_with(|| stead_model::ModelSettings {
            name: "openai:m".to_owned(),
            ..Default::default()
        })
}

fn embedding(config: &mut AgentConfig) -> &mut stead_model::EmbeddingSettings {
    config.search.embedding.get_or_insert_default()
}

fn with_model(config: &mut AgentConfig) {
    model(config);
}

fn asks(asks: bool) -> Approval {
    Approval {
        asks,
        ..Approval::default()
    }
}

#[tokio::test]
async fn every_key_has_an_effect_or_is_told_to_be_for_later() {
    #[rustfmt::skip]
    let table: [(&str, Comes); 87] = [
        ("name: Ann", To(|c| c.name = stead_core::AgentId::new("ann").ok())),
        ("description: d", To(|c| c.description = Some("d".into()))),
        ("timezone: Europe/Paris", To(|c| c.timezone = Some("Europe/Paris".into()))),
        ("model: openai:m", To(with_model)),
        ("model: {model: openai:m}", To(with_model)),
        ("model: {provider: openai, model: m}", To(with_model)),
        ("model: {provider: openai, model: 'm:1'}", To(|c| model(c).name = "openai:m:1".into())),
        ("model: {model: openai:m, api_key: k}", To(|c| model(c).api_key = Some("k".into()))),
        ("model: {model: openai:m, base_url: 'http://x'}", To(|c| model(c).base_url = Some("http://x".into()))),
        ("model: {model: openai:m, temperature: 0.3}", To(|c| model(c).temperature = Some(0.3))),
        ("model: {model: openai:m, max_tokens: 100}", To(|c| model(c).max_output_tokens = Some(100))),
        ("model: {max_turns: 7}", To(|c| c.policy.max_steps = 7)),
        ("model: {timeout_seconds: 9}", To(|c| c.policy.run_timeout_seconds = 9)),
        ("model: {model: openai:m, region: us-east-1}", Later("model.region")),
        ("model: {model: openai:m, top_k: 5}", Later("model.top_k")),
        ("channel: {type: telegram, token: t}", Later("channel")),
        ("channel: {type: telegram, token: t, name: second}", Later("channel")),
        ("channel: {type: telegram, token: t, allowed_users: [1]}", Later("channel")),
        ("channel: {type: telegram, token: t, allowed_users: [1], allowed_groups: [-100]}", Later("channel")),
        ("channel: {type: telegram, token: t, allow_all: true}", Later("channel")),
        ("channel: {type: discord, token: t, mention_required: true}", Later("channel")),
        ("channel: {type: discord, token: t, triggers: [hey]}", Later("channel")),
        ("channel: {type: discord, token: t, user_aliases: {12: Ann}}", Later("channel")),
        ("channel: {type: discord, token: t, context_messages: 0}", Later("channel")),
        ("channel: {type: discord, token: t, channel_log: {enabled: true, retention_days: 1}}", Later("channel")),
        ("channel: {type: discord, token: t, allowed_groups: [1]}", Doubt("a group alone lets nobody in")),
        ("channel: {type: discord}", Doubt("channel.token: is missing")),
        ("channel: {type: telegrm, token: t}", Doubt("did you mean `telegram`?")),
        ("channels: [{type: telegram, token: t}, {type: telegram, name: two, token: t}]", Later("channels")),
        ("queue: {mode: collect}", To(|_| ())),
        ("queue: {mode: steer-backlog}", To(|c| c.queue.mode = QueueMode::SteerBacklog)),
        ("queue: {mode: followup, debounce_ms: 500}", To(|c| (c.queue.mode, c.queue.debounce_ms) = (QueueMode::Followup, 500))),
        ("queue: {cap: 5, drop_policy: new}", To(|c| (c.queue.cap, c.queue.drop) = (5, DropPolicy::New))),
        ("builtins: {allow: [brave_search, send_message, shell, spawn, memory_search]}", Later("builtins.allow")),
        ("builtins: {allow: [brave_search]}", To(|c| c.disable.0 = [FeatureSwitch::Shell, FeatureSwitch::Subagents, FeatureSwitch::MemoryTools, FeatureSwitch::Tasks, FeatureSwitch::Todos].into())),
        ("builtins: {deny: [shell]}", To(|c| c.disable.0 = [FeatureSwitch::Shell].into())),
        ("builtins: {deny: ['group:system']}", To(|c| c.disable.0 = [FeatureSwitch::Shell].into())),
        ("builtins: {deny: ['group:automation']}", To(|c| c.disable.0 = [FeatureSwitch::Subagents, FeatureSwitch::Tasks, FeatureSwitch::Todos].into())),
        ("builtins: {plan: {enabled: false}}", To(|c| c.disable.0 = [FeatureSwitch::Todos].into())),
        ("builtins: {deny: [create_task]}", ToDenied(&["create_task"])),
        ("builtins: {deny: [memory_search]}", To(|c| c.disable.0 = [FeatureSwitch::MemoryTools].into())),
        ("builtins: {shell: {enabled: false}}", To(|c| c.disable.0 = [FeatureSwitch::Shell].into())),
        ("builtins: {deny: [glob]}", ToDenied(&["glob_files"])),
        ("builtins: {deny: [elevenlabs]}", To(|_| ())),
        ("builtins: {task_tracker: {enabled: true}}", To(|_| ())),
        ("builtins: {task_tracker: {enabled: false}}", To(|c| c.disable.0 = [FeatureSwitch::Tasks].into())),
        ("builtins: {brave_search: {enabled: true, config: {count: 5}}}", Later("builtins.brave_search")),
        ("builtins: {browser: {blocked_domains: ['*.x'], headless: true}}", Later("builtins.browser")),
        ("workspace_tools: {allow: [check_availability]}", Later("workspace_tools")),
        ("workspace_tools: {deny: [read_file, other]}", ToDenied(&["read_file"])),
        ("heartbeat: {enabled: true}", Later("heartbeat")),
        ("heartbeat: {interval_minutes: 30}", Later("heartbeat")),
        ("heartbeat: {active_hours: '09:00-17:00'}", Later("heartbeat")),
        ("heartbeat: {suppress_ok: true}", Later("heartbeat")),
        ("heartbeat: {target_channel: telegram}", Later("heartbeat")),
        ("heartbeat: {target_id: 1}", Later("heartbeat")),
        ("heartbeat: {target_chat_id: '1'}", Later("heartbeat")),
        ("heartbeat: {target_channel_id: 1}", Later("heartbeat")),
        ("heartbeat: {delivery: both}", Later("heartbeat")),
        ("heartbeat: {output: {channel: telegram, chat_id: 1}}", Later("heartbeat")),
        ("approval_gates: {enabled: true, tools: {overwrite_file: {require_approval: true}}}", To(|c| c.approvals = [("overwrite_file".to_owned(), asks(true))].into())),
        ("approval_gates: {enabled: true, tools: {delete: }}", To(|c| c.approvals = [("delete_file".to_owned(), asks(true))].into())),
        ("approval_gates: {enabled: true, tools: {ls: {require_approval: false, show_args: false}}}", To(|c| c.approvals = [("ls".to_owned(), asks(false))].into())),
        ("approval_gates: {enabled: true, tools: {shell: }}", To(|c| c.approvals = [("execute".to_owned(), asks(true))].into())),
        ("approval_gates: {enabled: true, tools: {browser_click: {}}}", Later("approval_gates.tools.browser_click")),
        ("approval_gates: {tools: {ls: {}}}", Doubt("nothing waits for a person without `enabled: true`")),
        ("approval_gates: {enabled: true, timeout_seconds: 120}", Later("approval_gates.timeout_seconds")),
        ("approval_gates: {enabled: true, default_action: deny}", Later("approval_gates.default_action")),
        ("memory: {enabled: true}", To(|c| embedding(c).name = "openai:text-embedding-3-small".into())),
        ("memory: {enabled: true, embedding: {provider: ollama, model: m}}", To(|c| embedding(c).name = "ollama:m".into())),
        ("memory: {enabled: false}", Later("memory.enabled")),
        ("memory: {vector_store: {provider: sqlite_vec, dimensions: 1536}}", Later("memory.vector_store")),
        ("memory: {embedding: {provider: openai, model: text-embedding-3-small, api_key: k}}", Later("memory.embedding")),
        ("auto_compact: {enabled: true}", To(|c| c.compaction.enabled = true)),
        ("auto_compact: {enabled: false}", To(|c| c.compaction.enabled = false)),
        ("auto_compact: {trigger: 0.7}", To(|c| c.compaction.trigger = 0.7)),
        ("auto_compact: {summary_model: openai:m}", To(|c| c.compaction.model = Some("openai:m".into()))),
        ("session_ttl_minutes: 0", Later("session_ttl_minutes")),
        ("lifecycle: {notify_startup: false}", Later("lifecycle")),
        ("lifecycle: {notify_shutdown: true}", Later("lifecycle")),
        ("lifecycle: {notify_auto_compact: true}", Later("lifecycle")),
        ("lifecycle: {notify_session_ttl: true}", Later("lifecycle")),
        ("tool_timeouts: {default_seconds: 5}", To(|c| c.policy.tool_timeout_seconds = 5)),
        ("tool_timeouts: {overrides: {ls: 5}}", Later("tool_timeouts.overrides")),
        ("lanes: {main_concurrency: 4}", Later("lanes")),
        ("lanes: {subagent_concurrency: 8}", Later("lanes")),
        ("lanes: {cron_concurrency: 2}", Later("lanes")),
    ];
    let plain = opened("", "").await;
    for (settings, comes) in table {
        let definition = opened(settings, "").await;
        let found: Vec<String> = definition
            .findings
            .iter()
            .map(ToString::to_string)
            .collect();
        match comes {
            To(change) => {
                let mut expected = plain.config.clone();
                change(&mut expected);
                assert_eq!(definition.config, expected, "{settings}");
            }
            ToDenied(tools) => assert_eq!(definition.tools[0].deny, tools, "{settings}"),
            Later(key) => {
                let told = |line: &&String| line.contains(&format!(": not active yet: {key}: "));
                assert!(
                    found
                        .iter()
                        .find(told)
                        .is_some_and(|line| line.starts_with("config/agent.yaml:1:")),
                    "{settings}: {found:?}"
                );
            }
            Doubt(text) => {
                let told = |line: &String| line.contains(": warning: ") && line.contains(text);
                assert!(found.iter().any(told), "{settings}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn every_key_of_the_global_file_has_an_effect_or_is_told_to_be_for_later() {
    let plain = opened("", "").await;
    #[rustfmt::skip]
    let table: [(&str, Comes); 13] = [
        ("agent: {model: openai:m}", To(with_model)),
        ("agent: {model: openai:m, api_key: k}", To(|c| model(c).api_key = Some("k".into()))),
        ("agent: {model: openai:m, temperature: 1}", To(|c| model(c).temperature = Some(1.0))),
        ("agent: {max_turns: 3}", To(|c| c.policy.max_steps = 3)),
        ("agent: {timeout_seconds: 4}", To(|c| c.policy.run_timeout_seconds = 4)),
        ("tool_timeouts: {default_seconds: 5}", To(|c| c.policy.tool_timeout_seconds = 5)),
        ("approval_gates: {enabled: true, tools: {ls: {}}}", To(|c| c.approvals = [("ls".to_owned(), asks(true))].into())),
        ("logging: {level: INFO, directory: logs, max_size_mb: 10, backup_count: 5, per_workspace: true}", Later("logging")),
        ("channels: {telegram: {token: t}}", Later("channels")),
        ("cron_jobs: [{name: a}]", Later("cron_jobs")),
        ("workspaces_path: agent_workspaces", Later("workspaces_path")),
        ("queue: {mode: interrupt}", To(|c| c.queue.mode = QueueMode::Interrupt)),
        ("lanes: {main_concurrency: 4}", Later("lanes")),
    ];
    for (shared, comes) in table {
        let definition = opened("", shared).await;
        match comes {
            To(change) => {
                let mut expected = plain.config.clone();
                change(&mut expected);
                assert_eq!(definition.config, expected, "{shared}");
            }
            Later(key) => {
                let line = definition.findings[0].to_string();
                assert!(
                    line.starts_with(&format!(
                        "platform/config.yaml:1:1: not active yet: {key}: "
                    )),
                    "{line}"
                );
            }
            ToDenied(_) | Doubt(_) => panic!("none here"),
        }
    }
    // A provider of the catalogue: its protocol, endpoint and key; its own settings go before.
    let catalogue =
        "providers: {mine: {type: openai, api_key: k, base_url: 'http://a', region: r, extra: 1}}";
    let definition = opened("model: {model: mine:m, base_url: 'http://b'}", catalogue).await;
    let mut expected = plain.config.clone();
    with_model(&mut expected);
    model(&mut expected).base_url = Some("http://b".to_owned());
    model(&mut expected).api_key = Some("k".to_owned());
    assert_eq!(definition.config, expected);
    let keys = ["providers.mine.extra", "providers.mine.region"];
    for (finding, key) in definition.findings.iter().zip(keys) {
        assert!(
            finding
                .to_string()
                .contains(&format!("not active yet: {key}: ")),
            "{finding}"
        );
    }
}
