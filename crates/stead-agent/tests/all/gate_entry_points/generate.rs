//! Test support: random rules and calls for the gate entry point tests.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;
use serde_json::{Value, json};
use stead_core::PermissionMode;
use stead_tools::known_names;

/// Rules of a workspace, what holds in a session of it, and calls.
#[derive(Clone)]
pub(super) struct Case {
    /// `agent.yaml`, of which JSON is a part.
    pub(super) settings: Value,
    /// `tools.json`.
    pub(super) lists: Value,
    /// The permission mode that a person chose for the session.
    pub(super) mode: Option<PermissionMode>,
    pub(super) plan: Plan,
    /// Which of the calls a person allowed for good, if it asks.
    pub(super) always: Option<usize>,
    pub(super) calls: Vec<Call>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    None,
    Making,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) tool: &'static str,
    /// The name it is called by.
    pub(super) name: &'static str,
    pub(super) args: Value,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            settings,
            lists,
            mode,
            plan,
            always,
            calls,
        } = self;
        writeln!(
            f,
            "\nagent.yaml {settings}\ntools.json {lists}\nmode {mode:?}, plan {plan:?}, always {always:?}"
        )?;
        calls
            .iter()
            .try_for_each(|call| writeln!(f, "{} {}", call.name, call.args))
    }
}

/// Every tool that a session may call, with arguments. Those that may bring in words from outside
/// stand last, since what follows them is judged differently on purpose; `plan_enter` and
/// `switch_agent` change what holds, and have tests of their own.
pub(super) const TOOLS: [&str; 40] = [
    "ls",
    "read_file",
    "write_file",
    "overwrite_file",
    "edit_file",
    "delete_file",
    "move_file",
    "glob_files",
    "grep_files",
    "tree",
    "file_info",
    "load_skill",
    "write_todos",
    "create_task",
    "update_task",
    "list_tasks",
    "get_task",
    "delete_task",
    "plan_write",
    "plan_exit",
    "memory_search",
    "memory_get",
    "memory_save",
    "memory_forget",
    "phone",
    "agent_list",
    "agent_send",
    "task",
    "delegation_list",
    "delegation_output",
    "delegation_cancel",
    "delegation_wait",
    "recall",
    "session_search",
    "session_list",
    "session_history",
    "tool_search",
    "execute",
    "no_such_tool",
    "wrong_args",
];

const PATHS: [&str; 8] = [
    "a.txt",
    "notes/b.txt",
    "notes",
    "key.pem",
    ".env",
    "agent.yaml",
    "link",
    "../out",
];
const COMMANDS: [&str; 12] = [
    "ls",
    "cat a.txt",
    "cat key.pem",
    "echo hi > made.txt",
    "git status",
    "ls; rm -f none.txt",
    "ls $(echo notes)",
    "sh -c ls",
    "env X=1 ls",
    "cat <<E\nx\nE",
    "ls\nrm -f none.txt",
    "ls (",
];

fn path() -> impl Strategy<Value = &'static str> {
    select(PATHS.to_vec())
}

/// Arguments of a tool; there must be some for each.
fn args(tool: &'static str) -> BoxedStrategy<Value> {
    match tool {
        "ls" | "tree" => path().prop_map(|path| json!({"path": path})).boxed(),
        "read_file" | "file_info" | "delete_file" => {
            path().prop_map(|path| json!({"file_path": path})).boxed()
        }
        "write_file" | "overwrite_file" => path()
            .prop_map(|path| json!({"file_path": path, "content": "x"}))
            .boxed(),
        "edit_file" => path()
            .prop_map(|path| json!({"file_path": path, "old_string": "q", "new_string": "r"}))
            .boxed(),
        "move_file" => (path(), path())
            .prop_map(|(from, to)| json!({"from": from, "to": to}))
            .boxed(),
        "glob_files" | "grep_files" => path()
            .prop_map(|path| json!({"pattern": "x", "path": path}))
            .boxed(),
        "execute" => {
            let cwd = prop::option::of(select(vec!["notes", "."]));
            (select(COMMANDS.to_vec()), cwd)
                .prop_map(|(command, cwd)| match cwd {
                    Some(cwd) => json!({"command": command, "cwd": cwd}),
                    None => json!({"command": command}),
                })
                .boxed()
        }
        "load_skill" => Just(json!({"name": "hello"})).boxed(),
        "write_todos" => Just(json!({"todos": []})).boxed(),
        "create_task" => Just(json!({"description": "d", "type": "t"})).boxed(),
        "update_task" | "get_task" | "delete_task" | "delegation_output" | "delegation_cancel" => {
            Just(json!({"task_id": "none"})).boxed()
        }
        "plan_write" | "memory_save" => Just(json!({"content": "the sky is blue"})).boxed(),
        "memory_search" | "memory_forget" | "session_search" | "recall" | "tool_search" => {
            Just(json!({"query": "sky"})).boxed()
        }
        "memory_get" => Just(json!({"path": "MEMORY.md"})).boxed(),
        "agent_send" => Just(json!({"to": "nobody", "message": "m"})).boxed(),
        "task" => Just(json!({"agent": "general-purpose", "prompt": "nothing"})).boxed(),
        "session_history" => Just(json!({"session": "none"})).boxed(),
        "wrong_args" => Just(json!({"file_path": 7})).boxed(),
        _ => Just(json!({})).boxed(),
    }
}

fn call() -> impl Strategy<Value = Call> {
    select(TOOLS.to_vec()).prop_flat_map(|tool| {
        let names = match tool {
            "wrong_args" => vec!["read_file"],
            // Their schemas have other parameters.
            "write_todos" | "create_task" => vec![tool],
            tool => [tool].into_iter().chain(known_names(tool)).collect(),
        };
        (select(names), args(tool), prop::bool::weighted(0.25)).prop_map(
            move |(name, args, is_used)| match is_used {
                // What `use_tool` stands for is judged and recorded as if it were called itself.
                true => Call {
                    tool,
                    name: "use_tool",
                    args: json!({"name": name, "arguments": args}),
                },
                false => Call { tool, name, args },
            },
        )
    })
}

fn rule() -> impl Strategy<Value = Value> {
    let operations = select(vec![
        json!(["read"]),
        json!(["write"]),
        json!(["read", "write"]),
    ]);
    let paths = select(vec!["a.txt", "notes", "notes/*", "**/*.pem", "**/*.txt"]);
    let mode = select(vec!["allow", "ask", "deny"]);
    (operations, paths, mode).prop_map(
        |(operations, path, mode)| json!({"operations": operations, "paths": [path], "mode": mode}),
    )
}

/// Names of tools as people write them; without `task` the doors of children would stay shut.
fn names(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    let all = TOOLS
        .iter()
        .filter(|tool| !["task", "phone", "no_such_tool", "wrong_args"].contains(tool));
    let all: Vec<&str> = all.flat_map(|tool| known_names(tool)).collect();
    subsequence(all, 0..=most)
}

fn mode() -> impl Strategy<Value = PermissionMode> {
    select(PermissionMode::ALL.to_vec())
}

fn settings() -> impl Strategy<Value = Value> {
    let commands = (
        select(vec!["allow", "ask"]),
        subsequence(vec!["ls *", "echo *", "git status", "cat *"], 0..=3),
        subsequence(vec!["git *", "cat key.pem"], 0..=1),
        subsequence(vec!["rm *", "env *"], 0..=1),
    );
    let commands = commands
        .prop_map(|(reads, allow, ask, deny)| json!({"reads": reads, "allow": allow, "ask": ask, "deny": deny}));
    let when = prop_oneof![
        Just(json!(true)),
        Just(json!({"when": {"file_path": "notes/*"}}))
    ];
    let approvals = prop::collection::vec((names(1), when), 0..=2).prop_map(|all| {
        let all = all.into_iter().flat_map(|(names, when)| {
            names
                .into_iter()
                .map(move |name| (name.to_owned(), when.clone()))
        });
        Value::Object(all.collect())
    });
    (prop::collection::vec(rule(), 0..=3), commands, approvals, mode()).prop_map(
        |(permissions, commands, approvals, mode)| {
            let phone = json!([{"name": "phone", "description": "Calls.", "effect": "reads"}]);
            json!({
                "permissions": permissions, "commands": commands, "approvals": approvals, "permission_mode": mode,
                "client_tools": phone, "memory": {"flush": false}, "disable": ["compaction"],
            })
        },
    )
}

fn lists() -> impl Strategy<Value = Value> {
    let allow = names(60).prop_map(|mut names| {
        names.push("task");
        json!({"allow": names})
    });
    prop_oneof![3 => Just(json!({})), 2 => names(3).prop_map(|names| json!({"deny": names})), 1 => allow]
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let plan = prop_oneof![3 => Just(Plan::None), 1 => Just(Plan::Making)];
    let calls = prop::collection::vec(call(), 1..=16);
    (
        settings(),
        lists(),
        prop::option::weighted(0.3, mode()),
        plan,
        prop::option::weighted(0.3, 0..16_usize),
        calls,
    )
        .prop_map(|(settings, lists, mode, plan, always, mut calls)| {
            calls.sort_by_key(|call| TOOLS.iter().position(|tool| *tool == call.tool));
            Case {
                settings,
                lists,
                mode,
                plan,
                always,
                calls,
            }
        })
}

/// No rules, and each tool once.
pub(super) fn plain() -> Case {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut call = |tool: &'static str| {
        let args = args(tool).new_tree(&mut runner).unwrap().current();
        Call {
            tool,
            name: if tool == "wrong_args" {
                "read_file"
            } else {
                tool
            },
            args,
        }
    };
    let mut calls: Vec<Call> = TOOLS.into_iter().map(&mut call).collect();
    // Whichever path was drawn, it is to be one that nothing protects.
    for call in &mut calls {
        for key in ["path", "file_path", "from"] {
            if call.args.get(key).is_some()
                && call.tool != "wrong_args"
                && call.tool != "memory_get"
            {
                call.args[key] = json!("a.txt");
            }
        }
        if call.args.get("to").is_some() && call.tool == "move_file" {
            call.args["to"] = json!("b.txt");
        }
    }
    let settings = json!({
        "client_tools": [{"name": "phone", "description": "Calls.", "effect": "reads"}], "permission_mode": "default",
        "permissions": [], "commands": {}, "memory": {"flush": false},
    });
    Case {
        settings,
        lists: json!({}),
        mode: None,
        plan: Plan::None,
        always: None,
        calls,
    }
}
