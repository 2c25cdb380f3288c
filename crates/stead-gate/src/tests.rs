use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::{option, sample};
use serde_json::json;
use stead_core::PermissionMode as Mode;
use stead_core::ToolKind;
use stead_sandbox::{Access, Isolation};
use stead_vfs::VPath;
use stead_workspace::ApprovalCondition;

/// Returns a verdict of the file rules with `text` as the rule's id.
fn ruled(kind: VerdictKind, text: &str) -> Verdict {
    Verdict::new(kind, RuleId::new(RuleSource::Permissions, text), text)
}

fn call(tool: &str, effect: ToolEffect) -> CallFacts {
    let known = stead_tools::builtin_tool(tool);
    CallFacts {
        tool: tool.to_owned(),
        kind: known.map_or(ToolKind::Other, |known| known.kind),
        follows_rules_of: known
            .and_then(|known| known.follows_rules_of)
            .map(str::to_owned),
        effect,
        args: json!({}),
        unlisted: false,
        excluded: None,
        file_verdict: None,
        named_paths: Vec::new(),
        resolved_paths: Vec::new(),
        command: None,
        changed_project: None,
        isolation: Isolation::NONE,
        taint: None,
        prompt_source: None,
        always_asks: None,
    }
}

fn command(ruled: RuleMatch, reads: ReadOnlyStatus) -> CallFacts {
    let command = Some(CommandFacts {
        text: "x".to_owned(),
        cwd: ".".to_owned(),
        exact: ExactLine::Holds,
        rule_match: ruled,
        isolation: Isolation::NONE,
        read_only: reads,
        network: false,
    });
    CallFacts {
        command,
        ..call("execute", ToolEffect::Executes)
    }
}

/// The taint of a session that read the file page.html.
fn taint() -> Option<SessionTaint> {
    let file = stead_core::TaintOrigin::File {
        path: "page.html".to_owned(),
    };
    Some(SessionTaint {
        seq: 7,
        origins: [file].into_iter().collect(),
    })
}

fn in_mode(mode: Mode) -> SessionPermissions {
    SessionPermissions {
        mode,
        ..SessionPermissions::default()
    }
}

fn always(tools: &[&str]) -> GateRules {
    GateRules {
        approvals: tools
            .iter()
            .map(|tool| ((*tool).to_owned(), Approval::always()))
            .collect(),
    }
}

/// The scope of exactly a line.
fn this_line(line: &str, cwd: &str) -> GrantScope {
    GrantScope::Command {
        line: line.to_owned(),
        cwd: cwd.to_owned(),
    }
}

#[test]
fn always_for_a_command_is_exactly_what_was_seen() {
    let facts = |text: &str, cwd: &str, exact| {
        let facts = command(RuleMatch::NoMatch(String::new()), ReadOnlyStatus::Unknown);
        let command = facts.command.clone().map(|command| CommandFacts {
            text: text.to_owned(),
            cwd: cwd.to_owned(),
            exact,
            ..command
        });
        CallFacts { command, ..facts }
    };
    let broken = || ExactLine::Broken("the session wrote x.py".to_owned());
    let seen = facts("sed -n 1p x", "web", ExactLine::Holds);
    let offered = GrantScope::offer(&seen).unwrap();
    assert_eq!(offered, this_line("sed -n 1p x", "web"));
    assert_eq!(offered.to_string(), "exactly sed -n 1p x in web/");
    let grant = Grant {
        id: "1".into(),
        tool: "execute".into(),
        what: offered,
        rule: String::new(),
        rules: Vec::new(),
        by: "ann".into(),
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    assert!(grant.covers(&seen));
    for other in [
        facts("sed -n 1p x", ".", ExactLine::Holds),
        facts("sed -n 1p y", "web", ExactLine::Holds),
        facts("sed -n 1p x ", "web", ExactLine::Holds),
        facts("sed -nl 5 '1e id' x", "web", ExactLine::Holds),
        facts("sed -n 1p x", "web", broken()),
    ] {
        assert!(!grant.covers(&other), "{other:?}");
    }
    for line in ["ls $x", "ls *.rs", "echo $(date)", "ls (", ""] {
        let offered = GrantScope::offer(&facts(line, ".", ExactLine::Holds));
        assert_eq!(offered, None, "{line} may be something else the next time");
    }
    assert_eq!(
        GrantScope::offer(&facts("python3 x.py", ".", broken())),
        None
    );
    // A grant of an earlier version allows no more than a rule does.
    let old = Grant {
        what: GrantScope::Commands(vec!["make *".to_owned(), "ls *".to_owned()]),
        ..grant
    };
    assert!(old.covers(&facts("ls src", ".", ExactLine::Holds)));
    assert!(!old.covers(&facts("make", ".", ExactLine::Holds)));
}

#[test]
fn always_is_offered_as_narrowly_as_can_be_and_never_for_what_must_be_seen() {
    let with = |args: serde_json::Value| {
        let named = ["file_path", "path", "from", "to"].into_iter();
        let named = named.filter_map(|name| Some(args.get(name)?.as_str()?.to_owned()));
        CallFacts {
            named_paths: named.collect(),
            args,
            ..call("write_file", ToolEffect::Writes)
        }
    };
    let folder = |text: &str| Some(GrantScope::Folder(text.to_owned()));
    let seen = || with(json!({"file_path": "a/b.txt"}));
    let lies = |path: &str| vec![VPath::parse(path).unwrap()];
    let table = [
        (seen(), folder("a")),
        (
            with(json!({"file_path": "b.txt"})),
            Some(GrantScope::File("b.txt".to_owned())),
        ),
        (with(json!({"from": "b.txt", "to": "c.txt"})), None),
        (with(json!({"from": "a/b", "to": "a/c/d"})), folder("a")),
        (with(json!({"from": "a/b", "to": "c/d"})), None),
        (with(json!({"path": "."})), None),
        (with(json!({"path": "../x"})), None),
        (with(json!({"query": "x"})), Some(GrantScope::Calls)),
        (
            CallFacts {
                resolved_paths: lies("a/c"),
                ..seen()
            },
            folder("a"),
        ),
        (
            CallFacts {
                resolved_paths: lies("c"),
                ..seen()
            },
            None,
        ),
        (
            CallFacts {
                always_asks: Some("plan".into()),
                ..seen()
            },
            None,
        ),
        (
            CallFacts {
                taint: taint(),
                prompt_source: Some("MEMORY.md".into()),
                ..seen()
            },
            None,
        ),
        (
            command(
                RuleMatch::NoMatch("no rule".into()),
                ReadOnlyStatus::Unknown,
            ),
            Some(this_line("x", ".")),
        ),
        (call("run_it", ToolEffect::Executes), None),
    ];
    for (call, expected) in table {
        assert_eq!(GrantScope::offer(&call), expected, "{call:?}");
    }
    let at = jiff::Timestamp::UNIX_EPOCH;
    let grant = |what: GrantScope| Grant {
        id: "1".into(),
        tool: "write_file".into(),
        what,
        rule: String::new(),
        rules: Vec::new(),
        by: "ann".into(),
        at,
    };
    let covered = |what: &GrantScope, path: &str| {
        grant(what.clone()).covers(&with(json!({"file_path": path})))
    };
    let folder = GrantScope::Folder("a".into());
    let file = GrantScope::File("b.txt".into());
    // The folder itself is not below it: a grant for its files does not allow deleting it.
    for (path, in_folder, is_file) in [
        ("a/x", true, false),
        ("a/b/c", true, false),
        ("a", false, false),
        ("ab/x", false, false),
        ("b.txt", false, true),
    ] {
        assert_eq!(
            (covered(&folder, path), covered(&file, path)),
            (in_folder, is_file),
            "{path}"
        );
    }
}

#[test]
fn the_strictest_rule_decides_and_is_named() {
    let rules = always(&["delete_file"]);
    let none = || ruled(VerdictKind::Allow, "no rule matches");
    #[rustfmt::skip]
    let table = [
        ("ls", ToolEffect::Reads, Some(none()), ruled(VerdictKind::Allow, "no rule matches; mode default: reads are allowed")),
        ("write_file", ToolEffect::Writes, Some(ruled(VerdictKind::Allow, "permissions[0]: allow write a")),
            ruled(VerdictKind::Allow, "permissions[0]: allow write a; mode default: writes inside the workspace are allowed")),
        ("delete_file", ToolEffect::Writes, Some(none()), ruled(VerdictKind::Ask, "approvals: delete_file: true")),
        ("delete_file", ToolEffect::Writes, Some(ruled(VerdictKind::Ask, "permissions[1]: ask write a")),
            ruled(VerdictKind::Ask, "permissions[1]: ask write a; approvals: delete_file: true")),
        ("delete_file", ToolEffect::Writes, Some(ruled(VerdictKind::Deny, "protected")), ruled(VerdictKind::Deny, "protected")),
        ("read_file", ToolEffect::Reads, Some(ruled(VerdictKind::Ask, "permissions[0]")), ruled(VerdictKind::Ask, "permissions[0]")),
        ("execute", ToolEffect::Executes, None, ruled(VerdictKind::Ask, "mode default: commands outside a sandbox need approval")),
        ("fetch", ToolEffect::Network, Some(none()), ruled(VerdictKind::Ask, "mode default: network access needs approval")),
        ("wait", ToolEffect::Reads, None, ruled(VerdictKind::Allow, "mode default: reads are allowed")),
    ];
    for (tool, effect, files, expected) in table {
        let call = CallFacts {
            file_verdict: files,
            ..call(tool, effect)
        };
        let verdict = judge(&rules, &SessionPermissions::default(), &call);
        assert_eq!(
            (verdict.kind, verdict.reason),
            (expected.kind, expected.reason),
            "{tool}"
        );
    }
    let unlisted = CallFacts {
        unlisted: true,
        ..call("ls", ToolEffect::Reads)
    };
    assert_eq!(
        judge(&rules, &SessionPermissions::default(), &unlisted),
        Verdict::deny(
            RuleId::new(RuleSource::ToolLists, "ls"),
            "the lists of tools leave ls out"
        )
    );
}

/// Shows the verdict of each mode on each kind of call: `snapshots/`.
#[test]
fn the_table_of_verdicts_is_as_it_was() {
    let by = |kind| RuleMatch::Matched(ruled(kind, "commands"));
    let unruled = || RuleMatch::NoMatch("no rule allows `x`".to_owned());
    let tainted = |call: CallFacts| CallFacts {
        taint: taint(),
        ..call
    };
    let prompt_source = Some("MEMORY.md".to_owned());
    let walls = Isolation {
        files: Access::Blocked { by: "a test" },
        processes: Access::Blocked { by: "a test" },
        ..Isolation::NONE
    };
    let fetch = || call("web_fetch", ToolEffect::Network);
    let online = |isolation| {
        let facts = command(by(VerdictKind::Allow), ReadOnlyStatus::Unknown);
        let command = facts.command.clone().map(|command| CommandFacts {
            network: true,
            isolation,
            ..command
        });
        CallFacts { command, ..facts }
    };
    let closed = Isolation {
        network: Access::Blocked { by: "a test" },
        ..walls
    };
    let files = |kind| Some(ruled(kind, "permissions[0]"));
    let reads = call("read_file", ToolEffect::Reads);
    let writes = call("write_file", ToolEffect::Writes);
    #[rustfmt::skip]
    let calls = [
        ("a read", reads.clone()),
        ("a write", writes.clone()),
        ("a write to the project", CallFacts { changed_project: Some(ProjectAccess::Writable), ..writes.clone() }),
        ("a write to a read-only project", CallFacts { changed_project: Some(ProjectAccess::ReadOnly), ..writes.clone() }),
        ("a write that a rule asks about", CallFacts { file_verdict: files(VerdictKind::Ask), ..writes.clone() }),
        ("a write that a rule denies", CallFacts { file_verdict: files(VerdictKind::Deny), ..writes.clone() }),
        ("a write that is tainted", tainted(CallFacts { prompt_source, ..writes.clone() })),
        ("another write in a tainted session", tainted(writes)),
        ("network in a tainted session", tainted(fetch())),
        ("a read of a tool server in a tainted session", tainted(call("mcp__crm__find", ToolEffect::Reads))),
        ("a change by a tool server in a tainted session", tainted(call("mcp__crm__pay", ToolEffect::Network))),
        ("a message in a tainted session", tainted(CallFacts { kind: ToolKind::Message, ..call("send", ToolEffect::Writes) })),
        ("a command that reaches the network in a tainted session", tainted(online(walls))),
        ("the same behind walls", tainted(online(closed))),
        ("a program beside the sandbox in a tainted session",
            tainted(CallFacts { isolation: walls, ..call("run_it", ToolEffect::Executes) })),
        ("a read that a rule asks about", CallFacts { file_verdict: files(VerdictKind::Ask), ..reads.clone() }),
        ("a call that approvals name", call("delete_file", ToolEffect::Writes)),
        ("a call that lists leave out", CallFacts { unlisted: true, ..reads.clone() }),
        ("a call that a profile excludes", CallFacts { excluded: Some("the profile x excludes it".into()), ..reads }),
        ("a call that is flagged", CallFacts { always_asks: Some("plan_exit".into()), ..call("plan_exit", ToolEffect::Reads) }),
        ("the plan", call("plan_write", ToolEffect::Writes)),
        ("network", call("web_fetch", ToolEffect::Network)),
        ("a command without a rule", command(unruled(), ReadOnlyStatus::Unknown)),
        ("a command that reads", command(unruled(), ReadOnlyStatus::Yes)),
        ("an allowed command", command(by(VerdictKind::Allow), ReadOnlyStatus::Unknown)),
        ("an allowed command that reads", command(by(VerdictKind::Allow), ReadOnlyStatus::Yes)),
        ("a command that a rule asks about", command(by(VerdictKind::Ask), ReadOnlyStatus::Unknown)),
        ("a command that a rule denies", command(by(VerdictKind::Deny), ReadOnlyStatus::Yes)),
    ];
    let rules = always(&["delete_file"]);
    let planning = PermissionCeiling {
        planning: Some("plans/PLAN.md".to_owned()),
        ..PermissionCeiling::default()
    };
    let below = |mode| PermissionCeiling {
        modes: vec![mode],
        ..PermissionCeiling::default()
    };
    let columns: Vec<(String, SessionPermissions)> = Mode::ALL
        .into_iter()
        .map(|mode| (mode.to_string(), in_mode(mode)))
        .chain([
            (
                "planning".to_owned(),
                SessionPermissions {
                    ceiling: planning.clone(),
                    ..SessionPermissions::default()
                },
            ),
            (
                "planning, bypass".to_owned(),
                SessionPermissions {
                    ceiling: planning,
                    ..in_mode(Mode::Bypass)
                },
            ),
            (
                "bypass below explore".to_owned(),
                SessionPermissions {
                    ceiling: below(Mode::Explore),
                    ..in_mode(Mode::Bypass)
                },
            ),
            (
                "bypass below default".to_owned(),
                SessionPermissions {
                    ceiling: below(Mode::Default),
                    ..in_mode(Mode::Bypass)
                },
            ),
        ])
        .collect();
    let mut text = String::new();
    for (what, call) in &calls {
        text.push_str(&format!("{what}\n"));
        for (column, permissions) in &columns {
            let Verdict { kind, reason, .. } = judge(&rules, permissions, call);
            text.push_str(&format!(
                "  {column:<22} {:<6} {reason}\n",
                format!("{kind:?}").to_lowercase()
            ));
        }
    }
    insta::assert_snapshot!("verdicts", text);
}

#[test]
fn nothing_that_is_added_ever_widens() {
    let kinds = [VerdictKind::Allow, VerdictKind::Ask, VerdictKind::Deny];
    for mode in Mode::ALL {
        for effect in [
            ToolEffect::Reads,
            ToolEffect::Writes,
            ToolEffect::Network,
            ToolEffect::Executes,
        ] {
            let plain = judge(&GateRules::default(), &in_mode(mode), &call("t", effect)).kind;
            for kind in kinds {
                let ruled = CallFacts {
                    file_verdict: Some(ruled(kind, "r")),
                    ..call("t", effect)
                };
                assert!(
                    judge(&GateRules::default(), &in_mode(mode), &ruled).kind >= plain,
                    "{mode} {effect:?} {kind:?}"
                );
                assert!(judge(&always(&["t"]), &in_mode(mode), &call("t", effect)).kind >= plain);
            }
            for above in Mode::ALL {
                let ceiling = PermissionCeiling {
                    modes: vec![above],
                    ..PermissionCeiling::default()
                };
                let bound = SessionPermissions {
                    ceiling,
                    ..in_mode(mode)
                };
                let both = judge(&GateRules::default(), &bound, &call("t", effect)).kind;
                let alone = judge(&GateRules::default(), &in_mode(above), &call("t", effect)).kind;
                assert!(
                    both >= plain && both >= alone,
                    "{mode} below {above}: {effect:?}"
                );
            }
        }
    }
}

#[test]
fn a_grant_ends_no_question_of_another_rule() {
    let at = jiff::Timestamp::UNIX_EPOCH;
    let grant = |rule: &str| Grant {
        id: "g".into(),
        tool: "write_file".into(),
        what: GrantScope::Folder("notes".into()),
        rule: String::new(),
        rules: rule
            .split("; ")
            .map(|text| match text {
                "approvals: write_file: true" => approval_rule("write_file", &Approval::always()),
                text => RuleId::new(RuleSource::Permissions, text),
            })
            .collect(),
        by: "bob".into(),
        at,
    };
    let asks = |rule: &str| Some(ruled(VerdictKind::Ask, rule));
    let write = |files| CallFacts {
        args: json!({"file_path": "notes/a"}),
        named_paths: vec!["notes/a".to_owned()],
        file_verdict: files,
        ..call("write_file", ToolEffect::Writes)
    };
    let verdict = |rules: &GateRules, granted: &str, files| {
        let permissions = SessionPermissions {
            grants: vec![grant(granted)],
            ..SessionPermissions::default()
        };
        judge(rules, &permissions, &write(files)).kind
    };
    let none = GateRules::default();
    let anns = always(&["write_file"]);
    let both = "permissions[0]: ask; approvals: write_file: true";
    assert_eq!(
        verdict(&none, "permissions[0]: ask", asks("permissions[0]: ask")),
        VerdictKind::Allow
    );
    assert_eq!(
        verdict(&none, "permissions[0]: ask", asks("permissions[1]: ask")),
        VerdictKind::Ask
    );
    assert_eq!(
        verdict(&anns, "permissions[0]: ask", asks("permissions[0]: ask")),
        VerdictKind::Ask
    );
    assert_eq!(
        verdict(&anns, both, asks("permissions[0]: ask")),
        VerdictKind::Allow
    );
}

#[test]
fn what_is_denied_above_is_denied_below() {
    let ceiling = PermissionCeiling {
        denied: vec!["Write".into(), "Bash".into()],
        ..PermissionCeiling::default()
    };
    let permissions = SessionPermissions {
        ceiling,
        ..in_mode(Mode::Bypass)
    };
    let kind = |tool: &str| {
        judge(
            &GateRules::default(),
            &permissions,
            &call(tool, ToolEffect::Writes),
        )
        .kind
    };
    let kinds = ["write_file", "overwrite_file", "execute", "edit_file"].map(kind);
    assert_eq!(
        kinds,
        [
            VerdictKind::Deny,
            VerdictKind::Deny,
            VerdictKind::Deny,
            VerdictKind::Allow
        ]
    );
}

#[test]
fn what_was_granted_answers_a_question_and_nothing_else() {
    let granted = |what| SessionPermissions {
        grants: vec![Grant {
            id: "g1".into(),
            tool: "write_file".into(),
            what,
            rule: "approvals: write_file: true".into(),
            rules: vec![approval_rule("write_file", &Approval::always())],
            by: "ann".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
        }],
        ..SessionPermissions::default()
    };
    let rules = always(&["write_file"]);
    let write = |path: &str| CallFacts {
        args: json!({"file_path": path}),
        named_paths: vec![path.to_owned()],
        ..call("write_file", ToolEffect::Writes)
    };
    let folder = granted(GrantScope::Folder("docs".into()));
    assert_eq!(
        judge(&rules, &folder, &write("docs/a/b.md")),
        Verdict::allow(
            RuleId::new(RuleSource::Grant, "g1"),
            "granted: g1 (write_file: in docs/, allowed by ann)"
        )
    );
    for outside in ["docs2/a", "a", "docs/../a", "../docs/a", ""] {
        assert_eq!(
            judge(&rules, &folder, &write(outside)).kind,
            VerdictKind::Ask,
            "{outside}"
        );
    }
    let all = granted(GrantScope::Calls);
    let denied = CallFacts {
        file_verdict: Some(ruled(VerdictKind::Deny, "protected")),
        ..write("docs/a")
    };
    assert_eq!(judge(&rules, &all, &denied).kind, VerdictKind::Deny);
    let tainted = CallFacts {
        taint: taint(),
        prompt_source: Some("docs/a".into()),
        ..write("docs/a")
    };
    assert_eq!(judge(&rules, &all, &tainted).kind, VerdictKind::Ask);
    assert_eq!(
        judge(&rules, &all, &call("delete_file", ToolEffect::Executes)).kind,
        VerdictKind::Ask
    );
}

/// Generates rules, permissions and calls.
fn circumstances() -> impl Strategy<Value = (GateRules, SessionPermissions, CallFacts)> {
    let kind = || {
        sample::select(vec![
            VerdictKind::Allow,
            VerdictKind::Ask,
            VerdictKind::Deny,
        ])
    };
    let verdict = move || kind().prop_map(|kind| ruled(kind, "r"));
    let effect = sample::select(vec![
        ToolEffect::Reads,
        ToolEffect::Writes,
        ToolEffect::Network,
        ToolEffect::Executes,
    ]);
    let rule_match = prop_oneof![
        verdict().prop_map(RuleMatch::Matched),
        Just(RuleMatch::NoMatch("u".to_owned()))
    ];
    let reads = sample::select(vec![ReadOnlyStatus::Yes, ReadOnlyStatus::Unknown]);
    let command = option::of(
        (rule_match, reads).prop_map(|(rule_match, reads)| CommandFacts {
            text: "x".to_owned(),
            cwd: ".".to_owned(),
            exact: ExactLine::Holds,
            rule_match,
            isolation: Isolation::NONE,
            read_only: reads,
            network: false,
        }),
    );
    let project = option::of(sample::select(vec![
        ProjectAccess::Writable,
        ProjectAccess::ReadOnly,
    ]));
    let flags = (
        option::of(Just("flagged".to_owned())),
        any::<bool>(),
        any::<bool>(),
    );
    let call = (effect, option::of(verdict()), command, project, flags).prop_map(
        |(effect, files, command, project, (flagged, tainted, unlisted))| {
            let prompt_source = tainted.then(|| "a".to_owned());
            CallFacts {
                file_verdict: files,
                command,
                changed_project: project,
                always_asks: flagged,
                taint: prompt_source.as_ref().and_then(|_| taint()),
                prompt_source,
                unlisted,
                ..call("t", effect)
            }
        },
    );
    let mode = || sample::select(Mode::ALL.to_vec());
    let what = sample::select(vec![GrantScope::Calls, this_line("x", ".")]);
    let grant = what.prop_map(|what| Grant {
        id: "g".to_owned(),
        tool: "t".to_owned(),
        what,
        rule: String::new(),
        rules: Vec::new(),
        by: "ann".to_owned(),
        at: jiff::Timestamp::UNIX_EPOCH,
    });
    let permissions = (
        mode(),
        vec(mode(), 0..3),
        option::of(Just("PLAN.md".to_owned())),
        vec(grant, 0..3),
    )
        .prop_map(|(mode, modes, planning, granted)| SessionPermissions {
            mode,
            ceiling: PermissionCeiling {
                modes,
                planning,
                ..PermissionCeiling::default()
            },
            grants: granted,
            denied_tools: Vec::new(),
        });
    let rules = any::<bool>().prop_map(|asks| {
        if asks {
            always(&["t"])
        } else {
            GateRules::default()
        }
    });
    (rules, permissions, call)
}

proptest! {
    #[test]
    fn whatever_allows_a_call_what_a_profile_excludes_is_denied_by_name((rules, permissions, call) in circumstances()) {
        let why = "the profile openai excludes t";
        let excluded = CallFacts { excluded: Some(why.to_owned()), ..call.clone() };
        let verdict = judge(&rules, &permissions, &excluded);
        prop_assert_eq!(verdict.kind, VerdictKind::Deny);
        prop_assert!(verdict.reason.contains(why), "{}", verdict.reason);
        // And nothing else is denied because of it.
        prop_assert!(!judge(&rules, &permissions, &call).reason.contains(why));
    }
}

#[test]
fn a_grant_does_not_outlive_the_rule_it_answered() {
    let before = Approval {
        when: ApprovalCondition([("file_path".to_owned(), "notes/*".to_owned())].into()),
        ..Approval::always()
    };
    let bobs = Approval {
        by: vec!["bob".to_owned()],
        ..before.clone()
    };
    let elsewhere = Approval {
        when: ApprovalCondition([("file_path".to_owned(), "*".to_owned())].into()),
        ..Approval::always()
    };
    let permissions = SessionPermissions {
        grants: vec![Grant {
            id: "g".into(),
            tool: "write_file".into(),
            what: GrantScope::Folder("notes".into()),
            rule: "approvals: write_file: when".into(),
            rules: vec![approval_rule("write_file", &before)],
            by: "ann".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
        }],
        ..SessionPermissions::default()
    };
    let write = CallFacts {
        args: json!({"file_path": "notes/a"}),
        named_paths: vec!["notes/a".to_owned()],
        ..call("write_file", ToolEffect::Writes)
    };
    for (approval, expected) in [
        (before, VerdictKind::Allow),
        (bobs, VerdictKind::Ask),
        (elsewhere, VerdictKind::Ask),
    ] {
        let rules = GateRules {
            approvals: [("write_file".to_owned(), approval.clone())].into(),
        };
        assert_eq!(
            judge(&rules, &permissions, &write).kind,
            expected,
            "{approval:?}"
        );
    }
}

#[test]
fn modes_ask_about_commands_that_can_leave_their_sandbox() {
    const BLOCKED: Access = Access::Blocked { by: "a test" };
    let walls = |machine, network| Isolation {
        files: machine,
        processes: machine,
        network,
        limits: Access::Allowed,
    };
    let of = |isolation| {
        let mut facts = command(
            RuleMatch::NoMatch("no rule".into()),
            ReadOnlyStatus::Unknown,
        );
        facts.command.as_mut().unwrap().isolation = isolation;
        facts
    };
    let table = [
        (
            walls(BLOCKED, BLOCKED),
            VerdictKind::Allow,
            VerdictKind::Deny,
        ),
        (
            walls(BLOCKED, Access::Allowed),
            VerdictKind::Ask,
            VerdictKind::Deny,
        ),
        (
            walls(Access::Allowed, BLOCKED),
            VerdictKind::Ask,
            VerdictKind::Deny,
        ),
        (Isolation::NONE, VerdictKind::Ask, VerdictKind::Deny),
    ];
    for (isolation, by_default, in_explore) in table {
        let kind = |mode| judge(&GateRules::default(), &in_mode(mode), &of(isolation)).kind;
        assert_eq!(kind(Mode::Default), by_default, "{isolation:?}");
        assert_eq!(kind(Mode::Explore), in_explore, "{isolation:?}");
    }
}

#[test]
fn only_a_grant_that_was_given_in_a_tainted_session_answers_the_network_there() {
    let fetch = |taint| CallFacts {
        taint,
        ..call("web_fetch", ToolEffect::Network)
    };
    let grant = |rules: &[RuleId]| Grant {
        id: "g".into(),
        tool: "web_fetch".into(),
        what: GrantScope::Calls,
        rule: String::new(),
        rules: rules.to_vec(),
        by: "ann".into(),
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let asked = |taint| {
        judge(
            &GateRules::default(),
            &in_mode(Mode::Default),
            &fetch(taint),
        )
        .rules
    };
    let before = grant(&asked(None));
    let during = grant(&asked(taint()));
    let with = |grant: &Grant, taint| {
        let permissions = SessionPermissions {
            grants: vec![grant.clone()],
            ..in_mode(Mode::Default)
        };
        judge(&GateRules::default(), &permissions, &fetch(taint)).kind
    };
    assert_eq!(with(&before, None), VerdictKind::Allow);
    assert_eq!(with(&before, taint()), VerdictKind::Ask);
    assert_eq!(with(&during, taint()), VerdictKind::Allow);
    assert_eq!(GrantScope::offer(&fetch(taint())), Some(GrantScope::Calls));
    let message = CallFacts {
        kind: ToolKind::Message,
        ..fetch(taint())
    };
    assert_eq!(GrantScope::offer(&message), None);
}
