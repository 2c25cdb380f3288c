//! The place for snapshots of what a person sees: the whole output of a command beside it.

use super::support::{Done, Folder, STEAD, done};
use insta::assert_snapshot;

/// A workspace whose model plays `script`.
fn workspace(script: &str) -> Folder {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You keep notes.\n");
    folder.put("agent.yaml", "model: scripted:script.yaml\ntimezone: UTC\n");
    folder.put("script.yaml", script);
    folder
}

/// The output of a command: its exit code and both streams, without what differs in every run.
fn screen(folder: &Folder, args: &[&str]) -> String {
    describe(folder, folder.run(args))
}

fn describe(folder: &Folder, done: Done) -> String {
    let stream = |text: &str| {
        let text = text.replace(&folder.path().display().to_string(), "[DIR]");
        let lines: Vec<String> = text.lines().map(normalise).collect();
        lines.join("\n")
    };
    format!(
        "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
        done.code,
        stream(&done.out),
        stream(&done.err)
    )
}

/// A line with placeholders for times, durations, hashes and ids.
fn normalise(line: &str) -> String {
    // Which tools there are is not what these tests are about.
    let cut = ["tools: ", "The tools are: "]
        .iter()
        .find_map(|mark| line.find(mark).map(|at| at + mark.len()));
    let line = cut.map_or(line.to_owned(), |at| format!("{}[TOOLS]", &line[..at]));
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:.,".contains(c);
    let mut out = String::new();
    let mut rest = line.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.push_str(&placeholder(word, after));
        let gap = after.find(is_word).unwrap_or(after.len());
        out.push_str(&after[..gap]);
        rest = &after[gap..];
    }
    out.trim_end().to_owned()
}

fn placeholder(word: &str, after: &str) -> String {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let counted = [" ms", " tokens", " tools", " out ·"];
    let date = word.len() >= 10 && digits(&word[..4]) && word[4..].starts_with('-');
    match word {
        _ if date && word.contains('T') => "[TIME]".to_owned(),
        _ if date => "[DATE]".to_owned(),
        _ if digits(word) && word.len() > 1 && after.starts_with(" in,") => "[N]".to_owned(),
        _ if digits(word) && counted.iter().any(|noun| after.starts_with(noun)) => "[N]".to_owned(),
        // A number of a table, which stays as wide as it is.
        _ if digits(&word.replace(',', "")) && word.len() > 4 && word.contains(',') => {
            if after.starts_with(" tokens") {
                word.to_owned()
            } else {
                format!("{:>width$}", "[N]", width = word.len())
            }
        }
        _ if word.len() >= 8 && is_hex(word.trim_start_matches('r')) => "[ID]".to_owned(),
        _ => word.to_owned(),
    }
}

/// The table without its numbers, which change with every word of the prompt.
fn without_numbers(text: &str) -> String {
    let digits = |word: &&str| !word.bytes().all(|byte| byte.is_ascii_digit());
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().filter(digits).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

const WRITES: &str = "\
- calls: [{tool: write_file, args: {file_path: list.txt, content: \"milk\\n\"}, id: c1}]
- text: Wrote it.
";

#[test]
fn run_prints_the_answer_and_what_was_done() {
    let folder = workspace(WRITES);
    assert_snapshot!(screen(&folder, &["run", "-s", "shopping", "Make a list"]), @r"
    exit code 0
    --- stdout
    Wrote it.
    --- stderr
    new session shopping
    ✓ write_file list.txt [N] ms
      │ @@ -0,0 +1 @@
      │ +milk
    ");
    assert_snapshot!(screen(&folder, &["sessions", "list"]), @r"
    exit code 0
    --- stdout
    shopping  [TIME]  completed   Make a list
      1 run · [N] in, [N] out · cost unknown
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["sessions", "show", "shopping"]), @r"
    exit code 0
    --- stdout
    [1] you: Make a list  run [ID]
    → write_file list.txt
    ✓ Created list.txt (1 line, 5 bytes)
    Wrote it.
    [N] in, [N] out · cost unknown
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["sessions", "undo", "--dry-run", "-s", "shopping"]), @r"
    exit code 0
    --- stdout
    undoing run [ID] of session shopping would:
    remove list.txt
      @@ -1 +0,0 @@
      -milk
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["sessions", "rewind", "shopping", "--before", "1"]), @r"
    exit code 0
    --- stdout
    shopping continues before turn 1: Make a list
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["sessions", "fork", "shopping", "--to", "copy"]), @r"
    exit code 0
    --- stdout
    copy
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["usage", "--by", "session"]), @r"
    exit code 0
    --- stdout
    session    calls         input  cached      output        cost
    shopping       2           [N]      0%          35     unknown
    total          2           [N]      0%          35     unknown
    + 2 calls at an unknown price
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["gc", "--dry-run"]), @r"
    exit code 0
    --- stdout
    would be removed: 0 runs, 0 earlier contents (0 KB), offloaded files of 0 sessions (0 KB); kept: 0 KB
    --- stderr
    ");
}

#[test]
fn a_parked_run_says_how_to_answer() {
    let folder = workspace(WRITES);
    folder.put(
        "agent.yaml",
        "model: scripted:script.yaml\napprovals: {write_file: true}\n",
    );
    assert_snapshot!(screen(&folder, &["run", "-s", "shopping", "Make a list"]), @r"
    exit code 3
    --- stdout

    --- stderr
    new session shopping
    asks: write_file list.txt (approvals: write_file: true)
    --- /dev/null
    +++ b/list.txt
    @@ -0,0 +1 @@
    +milk
    parked: a call waits for a decision. Answer as below, or all with: stead run -s shopping --resume --approve all (or none)
    waits: c1 write_file list.txt
      stead approvals approve c1 -s shopping
      stead approvals reject c1 -s shopping
    ");
    assert_snapshot!(screen(&folder, &["approvals", "list"]), @r"
    exit code 0
    --- stdout
    c1  write_file list.txt  session shopping
      approvals: write_file: true · approve, reject
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["approvals", "show", "c1"]), @r#"
    exit code 0
    --- stdout
    c1  write_file list.txt  session shopping
      approvals: write_file: true · approve, reject

    {
      "content": "milk\n",
      "file_path": "list.txt"
    }

    --- /dev/null
    +++ b/list.txt
    @@ -0,0 +1 @@
    +milk

    --always would allow write_file of list.txt
    --- stderr
    "#);
    assert_snapshot!(screen(&folder, &["approvals", "approve", "c1", "--by", "ann"]), @r"
    exit code 0
    --- stdout
    Wrote it.
    --- stderr
    c1: approve by ann
    ✓ write_file list.txt [N] ms
      │ @@ -0,0 +1 @@
      │ +milk
    ");
}

#[test]
fn a_workspace_can_be_inspected() {
    let folder = workspace("- text: Done.\n");
    std::fs::create_dir_all(folder.path().join("skills/sort")).unwrap();
    folder.put(
        "skills/sort/SKILL.md",
        "---\nname: sort\ndescription: Sorts lists.\n---\nSort.\n",
    );
    folder.put("MEMORY.md", "- The owner likes tea.\n");
    assert_snapshot!(screen(&folder, &["check"]), @r"
    exit code 0
    --- stdout
    ok       layout: stead; every setting is known
    ok       AGENTS.md: 16 bytes
    ok       skills: 1 found
    ok       model: scripted:script.yaml can be asked
    ok       filesystem: this folder
    ok       prompt: about [N] tokens; `stead prompt` shows it
    ok       tools: [TOOLS]
    ok       sessions: 0 journals, every line checked

    0 errors, 0 warnings, 0 not active yet
    --- stderr
    ");
    let prompt = screen(&folder, &["prompt", "--summary"]);
    assert_snapshot!(without_numbers(&prompt), @r"
    exit code
    --- stdout
    section bytes tokens cached source
    base yes built in
    memory recall yes built in
    memory persistence yes built in
    workspace yes built in
    commands yes built in
    todos yes built in
    plan mode yes built in
    persona yes AGENTS.md
    memory yes MEMORY.md
    skills yes skills/sort/SKILL.md
    subagents yes built in
    session no built in
    all

    tool bytes tokens
    delete_file
    edit_file
    execute
    glob_files
    grep_files
    load_skill
    ls
    memory_save
    memory_search
    move_file
    plan_mode
    read_file
    task
    tool_search
    use_tool
    write_file
    write_todos
    all

    [N] tools: [TOOLS]
    further tools, found with tool_search: file_info, history, memory_forget, memory_get, overwrite_file, saved_tasks, subagents, tree
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["skills", "list"]), @r"
    exit code 0
    --- stdout
    sort  workspace           skills/sort
          Sorts lists.
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["memory", "status"]), @r"
    exit code 0
    --- stdout
    curated memory   MEMORY.md
    extraction       on
    waiting          nothing
    not merged yet   0 facts
    waiting for you  0 facts (stead memory review)
    merged           never
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["memory", "list"]), @r"
    exit code 0
    --- stdout
    nothing is remembered yet
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["models", "anthropic:claude-sonnet-4-5"]), @r"
    exit code 0
    --- stdout
    anthropic:claude-sonnet-4-5
      window     200,000 tokens  (table)
      answer     64,000 tokens  (table)
      abilities  images,documents,thinking,tools  (table)
      price      $3 in, $15 out, 0.3 cache read, 3.75 cache write per million tokens  (table)
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["explain", "timezone"]), @r#"
    exit code 0
    --- stdout
    timezone = "UTC"  (agent.yaml:2:1)
    --- stderr
    "#);
    std::fs::create_dir_all(folder.path().join("all/zed")).unwrap();
    folder.put("all/zed/AGENTS.md", "# Zed\n");
    assert_snapshot!(screen(&folder, &["list", "all"]), @r"
    exit code 0
    --- stdout
    ok     zed  project        -

    1 workspace in all
    --- stderr
    ");
}

#[test]
fn a_tool_is_called_or_explained() {
    let folder = workspace("- text: Done.\n");
    assert_snapshot!(screen(&folder, &["tool", "read_file", r#"{"file_path": "AGENTS.md"}"#]), @r"
    exit code 0
    --- stdout
         1  You keep notes.
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["tool", "delete_file", r#"{"file_path": "agent.yaml"}"#, "--explain"]), @r"
    exit code 0
    --- stdout
    deny: protected: agent.yaml cannot be changed by the agent
    --- stderr
    ");
    assert_snapshot!(screen(&folder, &["tool", "read_fil", "{}"]), @r"
    exit code 1
    --- stdout

    --- stderr
    there is no tool `read_fil`, did you mean `read_file`? The tools are: [TOOLS]
    ");
}

#[test]
fn init_says_what_it_made() {
    let folder = Folder::new();
    assert_snapshot!(screen(&folder, &["init", "helper"]), @r"
    exit code 0
    --- stdout
    made AGENTS.md
    made agent.yaml
    made .gitignore

    helper is a workspace. Write in AGENTS.md who the agent is, then:
      stead chat -C helper
    --- stderr
    ");
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let folder = workspace("- text: Done.\n");
    assert_snapshot!(screen(&folder, &["run", "--modle", "x", "go"]), @r"
    exit code 2
    --- stdout

    --- stderr
    error: unexpected argument '--modle' found

      tip: a similar argument exists: '--mode'

    Usage: stead run --mode <MODE> [INPUT]

    For more information, try '--help'.
    ");
    assert_snapshot!(screen(&folder, &["sessions", "show", "nothing"]), @r"
    exit code 2
    --- stdout

    --- stderr
    stead: there is no session nothing; `stead sessions list` lists the sessions
    ");
    assert_snapshot!(screen(&folder, &["run", "-s", "a/b", "go"]), @r#"
    exit code 2
    --- stdout

    --- stderr
    stead: session "a/b": an id must not contain '/' (no separators, dots, spaces or control characters, no leading hyphen)
    "#);
    folder.put("agent.yaml", "policy:\n  max_stepz: 3\n");
    assert_snapshot!(screen(&folder, &["run", "go"]), @r"
    exit code 2
    --- stdout

    --- stderr
    stead: agent.yaml:2:3: policy.max_stepz: unknown field `max_stepz`; did you mean `max_steps`? (known: max_steps, run_timeout_seconds, tool_timeout_seconds, parallel_tool_calls, max_nested_calls, repeat_nudge, repeat_end, max_concurrent_subagents, max_subagent_depth, subagent_timeout_seconds)
    ");
    folder.put("agent.yaml", "timezone: UTC\n");
    assert_snapshot!(screen(&folder, &["run", "go"]), @r"
    exit code 2
    --- stdout

    --- stderr
    stead: no model is set. Do one of these:
      export ANTHROPIC_API_KEY=…     then anthropic:claude-sonnet-5-5 is used
      export OPENAI_API_KEY=…        then openai:gpt-5.4-mini is used
      export GEMINI_API_KEY=…        then gemini:gemini-3.5-flash is used
      stead auth add PROVIDER        stores a key
      -m provider:model              any other; `stead models` lists providers
      model: provider:model          the same, in agent.yaml (of a project: .stead/agent.yaml)
      stead demo                     watch an agent work with no key at all
    ");
}

#[test]
fn a_session_in_use_says_so() {
    let folder = workspace("- text: Done.\n");
    let hold =
        "- calls: [{tool: execute, args: {command: 'touch began; sleep 30'}}]\n- text: Done.\n";
    folder.put("script.yaml", hold);
    let mut first = folder
        .process(&["run", "-s", "s", "--mode", "bypass", "go"])
        .spawn()
        .unwrap();
    while !folder.has("began") {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let second = screen(&folder, &["run", "-s", "s", "--wait=0", "go"]);
    // As Ctrl-C would, so that its command ends with it.
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    first.wait().unwrap();
    let pid = format!("process {}", first.id());
    assert_snapshot!(second.replace(&pid, "process [PID]"), @r"
    exit code 1
    --- stdout

    --- stderr
    session s is in use by process [PID] (stead); the input waits there for its turn
    stead: session s is in use by process [PID] (stead); wait until it is done (--wait), answer there what it asks, or use another session
    ");
}

#[test]
fn help_lists_the_commands() {
    let mut command = assert_cmd::Command::new(STEAD);
    let shown = done(command.arg("--help").env_clear().env("COLUMNS", "100"));
    assert_snapshot!(shown.out, @r#"
    One binary: a folder of plain files becomes an agent

    Usage: stead [OPTIONS] [COMMAND]

    Commands:
      init         Make a workspace
      run          Run one input to its end
      chat         Talk to the agent in the terminal
      demo         Watch a scripted agent work on a real workspace; needs no key and no network
      tool         Call one tool through the same gate as the agent
      prompt       Show the assembled prompt, section by section
      check        Check the workspace strictly
      explain      Show the value of a setting and which file set it
      schema       Print the JSON schema of a settings file, for editors
      sessions     List, show, search, fork, rewind, trust, undo, replay, export or remove sessions
      workspace    Move a workspace between places: a folder, a store
      skills       Install, list, update, remove, publish or check skills
      memory       Show, search, review, edit and merge long-term memory
      approvals    List, show and answer calls that wait for a person; list and revoke grants
      trust        Choose which folders may act: run hooks, name endpoints, set permissions
      auth         Store, list and remove keys of providers
      gc           Remove old undo data and files left by crashes
      list         List the workspaces in a folder, of any layout
      models       Show providers and keys, and what is known about models
      usage        Show tokens and money used, by day, session, model or user
      completions  Print completions for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -C, --workspace <DIR>      The workspace [default: $STEAD_WORKSPACE or $AGENTSCOPE_WORKSPACE, or
                                 the nearest one from the current folder upward]
      -u, --user <NAME>          The user whose sessions and files are used [default: the workspace's
                                 default user]
          --layout <LAYOUT>      The layout of the workspace [default: detected]
          --context-file <FILE>  Include this whole file in the prompt, as a context file; may be
                                 repeated
          --skills <DIR>         Also read skills from this folder of the workspace; may be repeated
          --trust                Trust the folder as it is now, and remember it (`stead trust --help`)
      -v, --verbose...           Write logs to standard error; -vv for more. `RUST_LOG` overrides it,
                                 and `chat` logs to a file
      -h, --help                 Print help
      -V, --version              Print version

    Without a command, `stead` on a terminal opens a chat.

    Examples:
      stead demo                                   watch an agent work; needs no key and no network
      stead init my-agent                          make a workspace
      stead run -C my-agent "Tidy up notes.md"     one task, then exit
      stead run -s plan --resume                   resume an interrupted session
      stead chat -C my-agent -m ollama:qwen3       talk to it in the terminal
      stead sessions list                          what happened so far
      stead approvals list                         calls that wait for your approval

    Exit codes: 0 completed, 1 failed, 2 bad usage or settings, 3 waiting for a decision,
                4 a limit was reached, 130 interrupted
    "#);
}
