//! The place for tests of errors in OpenHarness workspaces, with their place.

use super::*;

/// What is told of a folder with one good agent, after `file` was put in.
async fn told(file: &str, text: &str) -> Vec<String> {
    let good = "---\nmodel: platform/claude\n---\nHi.\n";
    let helper = "---\nmode: subagent\nmodel: platform/claude\n---\nHi.\n";
    let files = [
        (".openharness/agents/main.md", good),
        (".openharness/agents/helper.md", helper),
        (
            ".openharness/actions/ok/ACTION.yaml",
            "name: ok\ndescription: x\nentry: {command: x}\n",
        ),
        (
            ".openharness/hooks/ok.yaml",
            "name: ok\nevents: [run_failed]\nhandler: {type: http, url: 'http://x'}\n",
        ),
        (file, text),
    ];
    let options = OpenOptions {
        agent: Some("main".to_owned()),
        ..on_platform()
    };
    checked(place(&files).await, &options).await
}

/// Whether the only thing told is about `place` and says `said`.
async fn assert_told(file: &str, cases: &[(&str, &str, &str)]) {
    for (text, place, said) in cases {
        let told = told(file, text).await;
        let [only] = told.as_slice() else {
            panic!("{text:?}: {told:#?}")
        };
        assert!(
            only.starts_with(&format!("{file}:{place}: ")) && only.contains(said),
            "{text:?}: {only}"
        );
    }
}

#[tokio::test]
async fn in_an_agent() {
    let with = |matter: &str| format!("---\nmodel: platform/claude\n{matter}\n---\nHi.\n");
    let cases = [
        ("mod: primary", "3:1", "did you mean `mode`?"),
        ("mode: main", "3:1", "unknown variant `main`"),
        ("tools: {nativ: [Read]}", "3:9", "did you mean `native`?"),
        ("tools: [Read]", "3:1", "pairs are needed here"),
        ("policy: [40]", "3:1", "pairs are needed here"),
        ("tools: {native: Read}", "3:9", "a list is needed here"),
        (
            "tools: {native: [Read, Raed]}",
            "3:24",
            "there is no built-in tool `Raed`; did you mean `Read`?",
        ),
        (
            "tools: {native: [Frobnicate]}",
            "3:18",
            "; there are: Bash, Delete, Edit, Glob, Grep",
        ),
        (
            "tools: {actions: [okk]}",
            "3:19",
            "there is no action `okk`; did you mean `ok`?",
        ),
        (
            "tools: {skills: [s]}",
            "3:18",
            "there is no skill `s`; there is none",
        ),
        (
            "tools: {external: [s]}",
            "3:20",
            "there is no tool server `s`; there is none",
        ),
        ("tools: {actions: [ok]}\nactions: [ok]", "4:1", "keep one"),
        (
            "tools: {native: [Read]}\ndisallowed: {tools: {native: [read_file]}}",
            "4:31",
            "is listed in tools.native too",
        ),
        (
            "actions: [ok]\ndisallowed: {actions: [ok]}",
            "4:24",
            "is listed in actions too",
        ),
        (
            "disallowed: {native: [Read]}",
            "3:14",
            "unknown field `native`",
        ),
        (
            "switch: [maim]",
            "3:10",
            "switch: there is no agent `maim`; did you mean `main`?",
        ),
        (
            "subagents:\n- helper\n- helpers",
            "5:3",
            "subagents: there is no agent `helpers`; did you mean `helper`?",
        ),
        ("policy: {max_step: 3}", "3:10", "did you mean `max_steps`?"),
        ("policy: {max_steps: 0}", "3:10", "must be at least 1"),
        ("policy: {max_steps: many}", "3:10", "a whole number"),
        ("temperature: 3", "3:1", "temperature must be from 0 to 2"),
        ("max_tokens: 0", "3:1", "max_tokens must be at least 1"),
        ("hidden: maybe", "3:1", "true or false is needed here"),
        (
            "name: other",
            "3:1",
            "the name of the file is the agent's name",
        ),
        ("context: x", "3:1", "remove this"),
        ("hooks: []", "3:1", ".openharness/hooks/"),
        ("model: x", "3:1", "this key stands here twice"),
    ];
    for (matter, place, said) in cases {
        assert_told(".openharness/agents/x.md", &[(&with(matter), place, said)]).await;
    }
    let model = |line: &str| format!("---\n{line}\n---\nHi.\n");
    for (line, place, said) in [
        (
            "model: nothing",
            "2:1",
            "there is no model `nothing`; there are: platform/claude, platform/openai-default",
        ),
        (
            "model: {model_ref: platform/claud}",
            "2:9",
            "did you mean `platform/claude`?",
        ),
        (
            "model: {model_ref: workspace/claude}",
            "2:9",
            "there is no model `workspace/claude`",
        ),
        (
            "model: {alias: a, model_ref: platform/claude}",
            "2:9",
            "has both",
        ),
        (
            "model: {ref: platform/claude}",
            "2:9",
            "unknown field `ref`",
        ),
        (
            "model: {model_ref: platform/claude, temperature: 1}\ntemperature: 1",
            "3:1",
            "keep one",
        ),
        (
            "model: {model_ref: platform/claude, temperature: -1}",
            "2:37",
            "model.temperature must be from 0 to 2",
        ),
    ] {
        assert_told(".openharness/agents/x.md", &[(&model(line), place, said)]).await;
    }
    assert_told(
        ".openharness/agents/x.md",
        &[
            (
                "---\nmodel: platform/claude\n---\n\n  \n",
                "4:1",
                "the prompt is missing",
            ),
            ("", "1:1", "the prompt is missing"),
            ("---\nmodel: platform/claude\n", "1:1", "not closed"),
            (
                "---\r\nmodel: platform/claude\r\nmode: x\r\n---\r\nHi.\r\n",
                "3:1",
                "unknown variant `x`",
            ),
            (
                "\u{feff}---\nmodel: platform/claude\nmode: x\n---\nHi.\n",
                "3:1",
                "unknown variant `x`",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn in_the_settings_and_the_prompts() {
    assert_told(
        ".openharness/settings.yaml",
        &[
            ("default_agents: x", "1:1", "did you mean `default_agent`?"),
            ("kind: party", "1:1", "unknown variant `party`"),
            (
                "engine: {compact: {on: true}}",
                "1:20",
                "unknown field `on`",
            ),
            (
                "engine: {compact: yes please}",
                "1:10",
                "pairs are needed here",
            ),
            (
                "models:\n  a: platform/none",
                "2:3",
                "there is no model `platform/none`",
            ),
            ("models:\n  a: {ref: x}", "2:7", "there is no model `x`"),
            ("models:\n  a: {reff: x}", "2:7", "did you mean `ref`?"),
            (
                "skill_dirs: [../x]",
                "1:14",
                "paths cannot leave the workspace",
            ),
            ("skill_dirs: [a, ./a]", "1:17", "is listed twice"),
            ("imports: {tool: []}", "1:11", "did you mean `tools`?"),
            (
                "system_prompt: {base: {inline: a, file: b}}",
                "1:17",
                "has both `inline` and `file`",
            ),
            ("a: [", "1:4", "unclosed bracket"),
        ],
    )
    .await;
    assert_told(
        ".openharness/prompts.yaml",
        &[
            ("base: {}", "1:1", "needs `inline` or `file`"),
            (
                "base: {inline: a, file: b}",
                "1:1",
                "has both `inline` and `file`",
            ),
            ("base: text", "1:1", "pairs are needed here"),
            ("base:\n  file: gone.md", "2:3", "gone.md cannot be read"),
            (
                "llm_optimized: {models: {gpt: {inline: a}}}",
                "1:26",
                "platform/… or workspace/…",
            ),
            (
                "compose: {order: [base, bases]}",
                "1:25",
                "did you mean `base`?",
            ),
            ("compose: {order: [base, base]}", "1:25", "is listed twice"),
        ],
    )
    .await;
    let files = [
        (".openharness/prompts.yaml", "base: {inline: a}"),
        (
            ".openharness/settings.yaml",
            "kind: project\nsystem_prompt: b",
        ),
    ];
    let told = lines(
        &with_agent("---\nmodel: platform/claude\n---\nHi.", &files)
            .await
            .unwrap_err(),
    );
    assert_eq!(
        told,
        [
            ".openharness/settings.yaml:2:1: system_prompt: prompts are written in .openharness/prompts.yaml too; keep one of them"
        ]
    );
}

#[tokio::test]
async fn in_models_actions_hooks_and_servers() {
    assert_told(
        ".openharness/models/m.yaml",
        &[
            (
                "a: {provider: opnai, name: x}",
                "1:5",
                "did you mean `openai`?",
            ),
            (
                "a: {provider: openai-compatible, name: x}",
                "1:5",
                "needs a `url`",
            ),
            ("a: {provider: openai, name: ''}", "1:23", "is empty"),
            ("a: {provider: openai}", "1:1", "missing field `name`"),
            (
                "a: {provider: openai, name: x, url: 'localhost'}",
                "1:32",
                "is not an address",
            ),
            (
                "a: {provider: openai, name: x, kee: y}",
                "1:32",
                "did you mean `key`?",
            ),
            (
                "a: {provider: openai, name: x, key: '${env.GONE}'}",
                "1:32",
                "the variable GONE is not set",
            ),
            (
                "a: {provider: openai, name: x, key: '${GONE}'}",
                "1:32",
                "the variable GONE is not set",
            ),
            ("- a", "1:1", "pairs are needed here"),
        ],
    )
    .await;
    assert_told(
        ".openharness/actions/x/ACTION.yaml",
        &[
            ("name: x\ndescription: x", "1:1", "missing field `entry`"),
            (
                "name: a b\ndescription: x\nentry: {command: x}",
                "1:1",
                "letters, digits",
            ),
            (
                "name: x\ndescription: ' '\nentry: {command: x}",
                "2:1",
                "is empty",
            ),
            (
                "name: x\ndescription: x\nentry: {command: ''}",
                "3:9",
                "is empty",
            ),
            (
                "name: x\ndescription: x\nentry: {command: x, cwd: ../..}",
                "3:21",
                "cannot leave the workspace",
            ),
            (
                "name: x\ndescription: x\nentry: {command: x, timeout_seconds: 0}",
                "3:21",
                "must be at least 1",
            ),
            (
                "name: x\ndescription: x\nentry: {command: x, shell: sh}",
                "3:21",
                "unknown field `shell`",
            ),
            (
                "name: x\ndescription: x\ninput_schema: {type: objekt}\nentry: {command: x}",
                "3:1",
                "is not a JSON schema",
            ),
            (
                "name: x\ndescription: x\nrecovery: {retry_policy: always}\nentry: {command: x}",
                "3:12",
                "unknown variant `always`",
            ),
            (
                "name: ok\ndescription: x\nentry: {command: x}",
                "1:1",
                "there are two actions `ok`",
            ),
        ],
    )
    .await;
    assert_told(
        ".openharness/hooks/x.yaml",
        &[
            (
                "name: x\nevents: [before_tool]\nhandler: {type: command, command: x}",
                "2:10",
                "did you mean `before_tool_call`?",
            ),
            ("name: x\nevents: []\nhandler: {type: command, command: x}", "2:1", "would never run"),
            (
                "name: x\nevents: [run_failed, run_failed]\nhandler: {type: command, command: x}",
                "2:22",
                "is listed twice",
            ),
            (
                "name: x\nevents: [run_failed]\nmatcher: '('\nhandler: {type: command, command: x}",
                "3:1",
                "regular expression",
            ),
            ("name: x\nevents: [run_failed]\nhandler: {type: command}", "3:1", "handler.command: is missing"),
            (
                "name: x\nevents: [run_failed]\nhandler: {type: http, url: 'http://x', command: x}",
                "3:40",
                "belongs to a handler of type command",
            ),
            ("name: x\nevents: [run_failed]\nhandler: {type: pigeon}", "3:11", "unknown variant `pigeon`"),
            ("name: x\nevents: [run_failed]\nhandler: {type: prompt, prompt: {}}", "3:25", "needs `inline` or `file`"),
            (
                "name: x\nevents: [run_failed]\nhandler: {type: prompt, prompt: {inline: x}, model_ref: gone}",
                "3:46",
                "there is no model `gone`",
            ),
            (
                "name: x\nevents: [run_failed]\nhandler: {type: agent, agent: helpr, task: {inline: x}}",
                "3:24",
                "did you mean `helper`?",
            ),
            (
                "name: x\nevents: [run_failed]\nhandler: {type: http, url: 'http://x', timeout_seconds: 0}",
                "3:40",
                "must be at least 1",
            ),
            (
                "name: x\nevents: [run_failed]\nhandler: {type: http, url: 'http://x'}\ncapabilities: [fly]",
                "4:16",
                "unknown variant `fly`",
            ),
            (
                "name: ok\nevents: [run_failed]\nhandler: {type: http, url: 'http://x'}",
                "1:1",
                "there are two hooks `ok`",
            ),
            ("name: x\nevents: [run_failed]\nhandler: {type: http, url: x}", "3:23", "begins with http://"),
        ],
    )
    .await;
    assert_told(
        ".openharness/tools/settings.yaml",
        &[
            ("a: {}", "1:1", "needs `command` or `url`"),
            (
                "a: {command: x, url: 'http://x'}",
                "1:1",
                "has both `command` and `url`",
            ),
            ("a: {command: ' '}", "1:5", "is empty"),
            ("a: {url: x}", "1:5", "is not an address"),
            (
                "a: {command: x, headers: {}}",
                "1:17",
                "belongs to a server with a `url`",
            ),
            (
                "a: {url: 'http://x', environment: {}}",
                "1:22",
                "belongs to a server with a `command`",
            ),
            ("a: {command: x, timeout: 0}", "1:17", "must be at least 1"),
            ("a: {comand: x}", "1:5", "did you mean `command`?"),
            (
                "a: {command: x, expose: {prefix: x}}",
                "1:26",
                "unknown field `prefix`",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_no_text_or_too_large_is_refused() {
    let files = place(&[(".openharness/agents/a.md", "Hi.")]).await;
    let write = async |path: &str, bytes: Vec<u8>| {
        files
            .write(&VPath::parse(path).unwrap(), bytes.into(), Expect::Any)
            .await
            .unwrap();
    };
    write(".openharness/agents/utf16.md", b"\xff\xfeH\0i\0".to_vec()).await;
    write(".openharness/agents/latin.md", b"Hi,\n\xe4".to_vec()).await;
    write(
        ".openharness/models/large.yaml",
        vec![b'#'; 2 * 1024 * 1024],
    )
    .await;
    let told = lines(
        &open(files.clone(), &OpenOptions::default())
            .await
            .unwrap_err(),
    );
    assert_eq!(
        told,
        [
            ".openharness/models/large.yaml:1:1: has 2097152 bytes; at most 1048576 are read",
            ".openharness/agents/latin.md:2:1: is not UTF-8 text; save it as UTF-8",
            ".openharness/agents/utf16.md:1:1: is UTF-16; save it as UTF-8",
        ]
    );
}

#[tokio::test]
async fn what_only_looks_like_a_part_of_the_layout_is_told() {
    let files = [
        (".openharness/agent/x.md", "Hi."),
        (".openharness/models/a.yml", "a: 1"),
        (".openharness/agents/b.markdown", "Hi."),
        (".openharness/prompts/x.md", "Hi."),
    ];
    let definition = with_agent(
        "---\nmodel: platform/claude\nswitch: [helper]\n---\nHi.",
        &files,
    )
    .await
    .unwrap();
    let warnings = own(&definition.findings)
        .into_iter()
        .filter(|line| line.contains("warning"));
    assert_eq!(
        warnings.collect::<Vec<_>>(),
        [
            ".openharness/agent:1:1: warning: is no part of the layout; did you mean `agents`?",
            ".openharness/models/a.yml:1:1: warning: is not read: only names that end with .yaml are",
            ".openharness/agents/b.markdown:1:1: warning: is not read: only names that end with .md are",
        ]
    );
}

#[tokio::test]
async fn targets_of_the_wrong_mode_and_a_missing_model_are_warned_of() {
    let files = [
        (
            ".openharness/agents/sub.md",
            "---\nmode: subagent\nmodel: platform/claude\n---\nHi.",
        ),
        (
            ".openharness/agents/top.md",
            "---\nmodel: platform/claude\n---\nHi.",
        ),
        (".openharness/settings.yaml", "default_agent: build"),
    ];
    let definition = with_agent("---\nswitch: [sub]\nsubagents: [top]\n---\nHi.", &files)
        .await
        .unwrap();
    let warnings = own(&definition.findings)
        .into_iter()
        .filter(|line| line.contains("warning"));
    assert_eq!(
        warnings.collect::<Vec<_>>(),
        [
            ".openharness/agents/build.md:2:10: warning: switch: `sub` has `mode: subagent`, so it should not be switched to",
            ".openharness/agents/build.md:3:13: warning: subagents: `top` has `mode: primary`, so it should not be delegated to",
            ".openharness/agents/build.md:1:1: warning: no model: the one of the environment is used; name one with `model: {model_ref: …}`",
        ]
    );
}
