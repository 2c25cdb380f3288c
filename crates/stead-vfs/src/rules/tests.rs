use super::*;
use AccessKind::{Read, Write};
use VerdictKind::{Allow, Ask, Deny};

/// The protection of a workspace like those of the stead layout.
const WORKSPACE: Protected = Protected::workspace("")
    .with_marks(&["agent.yaml", "tools.json", ".other"])
    .with_unwritable(&["hooks", "crons", "profiles", "agents"])
    .with_writable(&[&[".other", "notes"]])
    .with_quarantine("memory/quarantine");

fn rule(operations: &[AccessKind], paths: &[&str], mode: VerdictKind) -> Rule {
    Rule {
        operations: operations.to_vec(),
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
        mode,
    }
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

#[test]
fn the_first_rule_that_covers_decides_and_is_named() {
    let rules = [
        rule(&[Read, Write], &["secrets/public", "*.md"], Allow),
        rule(&[Write], &["docs/**", "*.lock"], Ask),
        rule(&[Write, Read], &["secrets"], Deny),
        rule(&[Read], &["docs/private"], Deny),
    ];
    let rules = Rules::new(&rules, WORKSPACE).unwrap();
    #[rustfmt::skip]
    let table = [
        (Read, "secrets/public/a", Allow, "permissions[0]: allow read secrets/public"),
        (Write, "a.md", Allow, "permissions[0]: allow write *.md"),
        (Write, "docs/a.md", Ask, "permissions[1]: ask write docs/**"),
        (Write, "docs", Ask, "permissions[1]: ask write docs/**"),
        (Read, "docs/a.md", Allow, "no rule matches"),
        (Read, "docs/private/.x", Deny, "permissions[3]: deny read docs/private"),
        (Write, "Cargo.lock", Ask, "permissions[1]: ask write *.lock"),
        (Write, "sub/Cargo.lock", Allow, "no rule matches"),
        (Read, "secrets", Deny, "permissions[2]: deny read secrets"),
        (Write, "secrets/a/b/c", Deny, "permissions[2]: deny write secrets"),
        (Read, "", Allow, "no rule matches"),
        (Write, "", Deny, "protected: the workspace itself cannot be changed by the agent"),
    ];
    for (kind, text, mode, sentence) in table {
        let verdict = rules.decide(kind, &path(text));
        assert_eq!(
            (verdict.kind, verdict.reason.as_str()),
            (mode, sentence),
            "{kind:?} {text}"
        );
    }
}

#[test]
fn no_rule_opens_what_is_protected() {
    let all = [rule(&[Read, Write], &["**"], Allow)];
    let rules = Rules::new(&all, WORKSPACE).unwrap();
    let secret = [
        ".env",
        "a/.env.local",
        ".ENV",
        ".Env/x",
        "a/.envrc",
        ".netrc",
        "x/.pgpass",
        ".git-credentials",
        "id_rsa",
        "k/ID_DSA",
        "id_ecdsa",
        "a/id_ed25519",
        "x/.aws/credentials",
        ".AWS/credentials",
    ];
    for name in secret {
        for kind in [Read, Write] {
            let verdict = rules.decide(kind, &path(name));
            assert!(
                verdict.kind == Deny && verdict.reason.ends_with("holds secrets"),
                "{name}: {verdict:?}"
            );
        }
    }
    for name in [
        "agent.yaml",
        "tools.json",
        "hooks",
        "hooks/x",
        "crons/a.yaml",
        "agents/main/x",
        "Agent.YAML",
        "AGENTS/x",
    ] {
        assert_eq!(rules.decide(Read, &path(name)).kind, Allow, "{name}");
        let verdict = rules.decide(Write, &path(name));
        assert!(
            verdict.kind == Deny && verdict.reason.starts_with("protected: "),
            "{name}: {verdict:?}"
        );
    }
    for name in [
        "AGENTS.md",
        "x/agent.yaml",
        "sub/agents/a",
        "id_rsa.pub",
        ".aws/config",
        "env",
        "a.env",
        "config/x",
        "data",
    ] {
        assert_eq!(rules.decide(Write, &path(name)).kind, Allow, "{name}");
    }
}

#[test]
fn what_a_protected_name_leads_to_is_protected_and_what_holds_it_stays() {
    let rules = Rules::new(&[], WORKSPACE).unwrap();
    let links = ProtectedLinks(vec![
        (path("var/data"), Protection::Fixed("agents")),
        (path("etc/dev.conf"), Protection::Secret(".env*")),
    ]);
    for (kind, text, expected) in [
        (Write, "var/data/main/x", Deny),
        (Write, "var/data", Deny),
        (Write, "var", Deny),
        (Write, "var/other", Allow),
        (Write, "var/database", Allow),
        (Read, "var/data/main/x", Allow),
        (Read, "etc/dev.conf", Deny),
        (Write, "etc/dev.conf", Deny),
        (Read, "etc", Allow),
        (Write, "etc", Deny),
    ] {
        assert_eq!(
            rules.decide_with_links(kind, text, &links).kind(),
            expected,
            "{kind:?} {text}"
        );
    }
    let verdict = rules.decide_with_links(Write, "var", &links).verdict();
    assert_eq!(
        verdict.reason,
        "protected: agents cannot be changed by the agent, and this is where it leads"
    );
}

#[test]
fn a_rule_that_is_none_is_named() {
    let wrong = |rules: &[Rule]| Rules::new(rules, WORKSPACE).unwrap_err().to_string();
    let good = rule(&[Read], &["a"], Deny);
    let nothing = wrong(&[good.clone(), rule(&[], &["a"], Deny)]);
    assert_eq!(
        nothing,
        "permissions[1]: `operations` is empty, so the rule would never hold"
    );
    assert_eq!(
        wrong(&[rule(&[Read], &[], Deny)]),
        "permissions[0]: `paths` is empty, so the rule would never hold"
    );
    let bad = wrong(&[good, rule(&[Read], &["b", "[a"], Deny)]);
    assert_eq!(
        bad,
        "permissions[1]: \"[a\" is not a pattern for paths: `[` without `]`"
    );
}

#[test]
fn rules_that_never_decide_are_told_with_the_reason() {
    let rules = [
        rule(&[Read], &["a"], Deny),
        rule(&[Read, Write], &["a/b", "c"], Allow),
        rule(&[Write], &["c/**"], Deny),
        rule(&[Write], &["agent.yaml"], Allow),
        rule(&[Read], &[".env"], Allow),
        rule(&[Read], &["agent.yaml"], Deny),
    ];
    let rules = Rules::new(&rules, WORKSPACE).unwrap();
    let expected = [
        "permissions[1]: read a/b never decides: permissions[0] covers it",
        "permissions[2]: write c/** never decides: permissions[1] covers it",
        "permissions[3]: write agent.yaml never decides: protected: agent.yaml cannot be changed by the agent",
        "permissions[4]: read .env never decides: protected: .env* holds secrets",
    ];
    assert_eq!(rules.ineffective_rules(), expected);
    assert_eq!(
        rules.describe()[1],
        "permissions[1]: allow read, write a/b, c"
    );
    let literals: Vec<String> = rules
        .literal_paths()
        .into_iter()
        .map(|(path, _)| path.to_string())
        .collect();
    assert_eq!(
        literals,
        ["a", "a/b", "c", "c", "agent.yaml", ".env", "agent.yaml"]
    );
}

#[test]
fn what_is_protected_may_lie_deeper_than_the_root() {
    const DEEPER: Protected = Protected::workspace("data")
        .with_unwritable(&["data", "memory/logs"])
        .with_writable(&[&["data", "TASKS.yaml"]])
        .with_hidden(&["data/agents"]);
    #[rustfmt::skip]
    let table = [
        (DEEPER, Write, "Memory/Logs/cron/a.jsonl", Deny),
        (DEEPER, Write, "memory/logs.md", Allow),
        (DEEPER, Write, "data/TASKS.yaml", Allow),
        (DEEPER, Write, "data/tasks.yaml", Deny),
        (DEEPER, Read, "data/agents/main/sessions/a.log.jsonl", Deny),
        (DEEPER, Read, "data/agents/main/undo/x", Deny),
        (DEEPER, Read, "data/agents/main/offload/s/call_1.txt", Allow),
        (DEEPER, Write, "data/agents/main/offload/s/call_1.txt", Deny),
        (DEEPER, Read, "data/agents/offload", Deny),
        (Protected::TEMPLATE, Read, "agents/main/offload/s/call_1.txt", Deny),
        (Protected::TEMPLATE, Write, ".git/config", Deny),
        (Protected::NONE, Write, ".git/config", Allow),
        (Protected::NONE, Read, ".env", Deny),
        (WORKSPACE, Write, ".git/config", Deny),
        (WORKSPACE, Write, "project/sub/.GIT/hooks/x", Deny),
        (WORKSPACE, Read, ".git/config", Allow),
        (WORKSPACE, Write, ".github/x", Allow),
        (WORKSPACE, Read, "agents/main/undo/offload", Deny),
        (WORKSPACE, Read, "data/agents/main/undo/x", Allow),
        (WORKSPACE, Read, "memory/quarantine/a.md", Deny),
        (WORKSPACE, Write, ".other/agents/a.md", Deny),
        (WORKSPACE, Write, ".other/notes/a.md", Allow),
        (WORKSPACE, Write, ".other/Notes/a.md", Deny),
    ];
    for (protected, kind, text, expected) in table {
        let rules = Rules::new(&[], protected).unwrap();
        assert_eq!(
            rules.decide(kind, &path(text)).kind,
            expected,
            "{kind:?} {text}"
        );
    }
}

#[test]
fn the_id_of_a_rule_is_its_content_and_not_its_position() {
    let docs = rule(&[Write], &["docs/**"], Ask);
    let other = rule(&[Read], &["secrets"], Deny);
    let alone = Rules::new(std::slice::from_ref(&docs), Protected::NONE).unwrap();
    let moved = Rules::new(&[other, docs], Protected::NONE).unwrap();
    let changed = Rules::new(&[rule(&[Write], &["docs/*"], Ask)], Protected::NONE).unwrap();
    let ids = |rules: &Rules| rules.decide(Write, &path("docs/a.md")).rules;
    assert_eq!(ids(&alone), ids(&moved));
    assert_eq!(ids(&alone)[0].as_str(), "permissions:ask write docs/**");
    assert_ne!(ids(&alone), ids(&changed));
}

#[test]
fn a_further_list_can_only_narrow() {
    let rule = |mode, path: &str| Rule {
        operations: vec![AccessKind::Read, AccessKind::Write],
        paths: vec![path.to_owned()],
        mode,
    };
    let checked = |rules: Vec<Rule>| -> Vec<CheckedRule> {
        let rules = rules.into_iter().enumerate();
        rules
            .map(|(i, rule)| CheckedRule::new(i, rule).unwrap())
            .collect()
    };
    let base = [
        rule(VerdictKind::Deny, "secrets/**"),
        rule(VerdictKind::Ask, "docs/**"),
    ];
    let base = Rules::new(&base, Protected::workspace("")).unwrap();
    let own = checked(vec![
        rule(VerdictKind::Allow, "secrets/**"),
        rule(VerdictKind::Allow, "docs/**"),
        rule(VerdictKind::Allow, "src/**"),
        rule(VerdictKind::Deny, "**"),
    ]);
    let narrowed = base.narrowed_by(&own);
    for (path, before, after) in [
        ("secrets/a", VerdictKind::Deny, VerdictKind::Deny),
        ("docs/a", VerdictKind::Ask, VerdictKind::Ask),
        ("src/a", VerdictKind::Allow, VerdictKind::Allow),
        ("other/a", VerdictKind::Allow, VerdictKind::Deny),
    ] {
        let path = VPath::parse(path).unwrap();
        let kinds = [&base, &narrowed].map(|rules| rules.decide(AccessKind::Read, &path).kind);
        assert_eq!(kinds, [before, after], "{path}");
    }
    assert_eq!(base.narrowed_by(&[]), base);
}
