//! The place for tests of command rules and read-only detection, case by case.

use super::rules;
use stead_core::VerdictKind::{self, Allow, Ask, Deny};
use stead_shell::{
    CommandPattern, Confinement, ReadDepth, ReadOnlyCheck, ShellLine, check_read_only, judge, parse,
};

#[test]
fn rules_decide_part_by_part() {
    let rules = rules(
        r#"{
            "allow": ["git status *", "npm test", "echo *", "ls:*", "make b*", "make check", "timeout 5 make check",
                "sudo systemctl restart x", "cat docs/*", "set -k", "(in web) npm run build"],
            "ask": ["git push *", "npm test --watch"],
            "deny": ["rm *", "git push --force *", "'a*b'"]
        }"#,
    );
    let cases: &[(&str, VerdictKind, &str)] = &[
        ("git status", Allow, "commands.allow: git status *"),
        ("git status -s src", Allow, "commands.allow: git status *"),
        ("git stat", Ask, "no rule allows `git`"),
        ("npm test", Allow, "commands.allow: npm test"),
        ("npm test x", Ask, "no rule allows `npm`"),
        ("npm 'test'", Allow, "commands.allow: npm test"),
        ("ls -l", Allow, "commands.allow: ls:*"),
        ("make check", Allow, "commands.allow: make check"),
        (
            "make build",
            Ask,
            "`make b*` has a wildcard, which outside a sandbox allows only reads, and `make` is not a known read-only \
             command; to allow this command, write its exact words as a rule, or run commands in a sandbox",
        ),
        ("make clean", Ask, "no rule allows `make`"),
        ("echo a && git status | ls", Allow, "commands.allow: echo *"),
        ("echo a; cat b", Ask, "no rule allows `cat`"),
        (
            "echo $x *.rs",
            Ask,
            "`echo *` has a wildcard, which outside a sandbox allows only reads, and what `$x` comes to is not known; \
             to allow this command, write its exact words as a rule, or run commands in a sandbox",
        ),
        ("echo $(cat x)", Ask, "no rule allows `cat`"),
        ("cat docs/a.md", Allow, "commands.allow: cat docs/*"),
        ("cat docs/../a.md", Ask, "no rule allows `cat`"),
        (
            "cat docs/../../../etc/hostname",
            Ask,
            "no rule allows `cat`",
        ),
        ("ls src ..", Ask, "no rule allows `ls`"),
        (
            "npm run build",
            Ask,
            "`(in web) npm run build` does not apply in .; to allow this there, add the rule `(in .) npm run build`",
        ),
        (
            "cd web && npm run build",
            Allow,
            "commands.allow: (in web) npm run build",
        ),
        ("cd web; npm run build", Ask, "no rule allows `cd`"),
        (
            "cd web && npm test",
            Ask,
            "`npm test` does not apply in web; to allow this there, add the rule `(in web) npm test`",
        ),
        ("set -k", Allow, "commands.allow: set -k"),
        (
            "set -k; npm test",
            Ask,
            "`set` changes the shell for the rest of the line; it is allowed only alone",
        ),
        (
            "npm test <<< y",
            Ask,
            "`npm test` does not cover the input that `npm` is given",
        ),
        (
            "git $x",
            Ask,
            "`git $x` may come to what `git push --force *` is about",
        ),
        ("$x", Ask, "`$x` may come to what `rm *` is about"),
        (
            "npm test $x",
            Ask,
            "`npm test $x` may come to what `npm test --watch` is about",
        ),
        (
            "X=1 git status",
            Ask,
            "`git status *` does not cover setting `X`",
        ),
        (
            "echo a > b",
            Ask,
            "`echo *` does not cover writing to a file",
        ),
        ("echo a > /dev/null 2>&1", Allow, "commands.allow: echo *"),
        ("ls < x", Allow, "commands.allow: ls:*"),
        (
            "ls < /dev/tcp/a/1",
            Ask,
            "`ls:*` does not cover writing to a file",
        ),
        ("./ls", Ask, "no rule allows `./ls`"),
        ("x=1", Ask, "no rule allows setting `x`"),
        ("{ ls; } > x", Ask, "no rule allows the redirection `> x`"),
        ("git push", Ask, "commands.ask: git push *"),
        // A part that no rule covers does not hide a rule that asks about another part: a mode may
        // let the first pass, but never the second.
        ("axb; git push", Ask, "commands.ask: git push *"),
        (
            "git push --force x",
            Deny,
            "commands.deny: git push --force *",
        ),
        (
            "git -C a --no-pager -c b=c push --force x",
            Deny,
            "commands.deny: git push --force *",
        ),
        ("git --git-dir=a push", Ask, "commands.ask: git push *"),
        ("git -C $x push", Ask, "commands.ask: git push *"),
        ("/bin/rm x", Deny, "commands.deny: rm *"),
        ("echo a; rm b", Deny, "commands.deny: rm *"),
        ("echo \"$(r\\m b)\"", Deny, "commands.deny: rm *"),
        (
            "ls (rm",
            Ask,
            "cannot be read for certain: `(` inside of a command (at byte 4)",
        ),
        (
            "rm x (",
            Ask,
            "cannot be read for certain: `(` inside of a command (at byte 6)",
        ),
        ("rm x; ls (", Deny, "commands.deny: rm *"),
        (
            "timeout 5 make check",
            Allow,
            "commands.allow: timeout 5 make check",
        ),
        ("timeout 6 make check", Ask, "no rule allows `timeout`"),
        ("timeout 5 cat x", Ask, "no rule allows `timeout`"),
        ("timeout 5 rm x", Deny, "commands.deny: rm *"),
        (
            "sudo systemctl restart x",
            Allow,
            "commands.allow: sudo systemctl restart x",
        ),
        ("sudo ls", Ask, "no rule allows `sudo`"),
        ("sudo rm x", Deny, "commands.deny: rm *"),
        ("'a*b'", Deny, "commands.deny: 'a*b'"),
        ("axb", Ask, "no rule allows `axb`"),
        ("", Ask, "there is nothing to run"),
        ("# rm x", Ask, "there is nothing to run"),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .map(|(command, kind, rule)| {
            (
                command,
                (*kind, (*rule).to_owned()),
                judge(&rules, *command),
            )
        })
        .filter(|(_, expected, judged)| *expected != (judged.kind, judged.reason.clone()))
        .map(|(command, _, judged)| (command, judged.kind, judged.reason))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_star_alone_is_every_command() {
    let locked = rules(r#"{"allow": ["ls *"], "deny": ["*"]}"#);
    for command in ["ls", "x=1", "a (", "\u{0}", "$x"] {
        assert_eq!(
            (judge(&locked, command).kind, judge(&locked, command).reason),
            (Deny, "commands.deny: *".to_owned())
        );
    }
    let open = rules(r#"{"allow": ["*"]}"#);
    let sandboxed = |command| {
        judge(
            &open,
            ShellLine::on_host(command).confined(Confinement::Sandbox),
        )
    };
    for command in [
        "rm -rf /",
        "X=1 a > b | sh -c 'c; d'",
        "x=1",
        "ls $x",
        "f() { a; }; f",
    ] {
        assert_eq!(sandboxed(command).kind, Allow, "{command}");
        assert_eq!(judge(&open, command).kind, Ask, "{command}");
    }
    for command in [
        "$x a",
        "a > $x",
        "X=$y a",
        "a (",
        "sh -c \"$x\"",
        "curl x | sh",
    ] {
        assert_eq!(sandboxed(command).kind, Ask, "{command}");
        assert_eq!(judge(&open, command).kind, Ask, "{command}");
    }
    assert_eq!(judge(&open, "cat a").kind, Allow);
}

#[test]
fn a_wildcard_is_as_wide_as_the_walls_around_the_command() {
    #[rustfmt::skip]
    let table = [
        ("npm test *", "npm test --all", Ask, Allow),
        ("npm run test-*", "npm run test-a", Ask, Allow),
        ("sed *", "sed -n 1,5p x", Allow, Allow),
        ("sed *", "sed -i s/a/b/ x", Ask, Allow),
        ("git *", "git log --oneline", Allow, Allow),
        ("git *", "git push", Ask, Allow),
        ("git *", "git status > x", Ask, Ask),
        ("npm test *", "X=1 npm test", Ask, Ask),
        ("cat docs/*", "cat docs/../x", Ask, Ask),
        ("npm test", "npm test", Allow, Allow),
        ("npm test", "npm test --all", Ask, Ask),
    ];
    for (rule, command, host, sandbox) in table {
        let rules = rules(&serde_json::json!({"allow": [rule]}).to_string());
        let line = ShellLine::on_host(command);
        assert_eq!(judge(&rules, line).kind, host, "{rule}: {command}");
        let line = line.confined(Confinement::Sandbox);
        assert_eq!(judge(&rules, line).kind, sandbox, "{rule}: {command}");
    }
}

#[test]
fn a_rule_allows_in_its_folder_and_restricts_everywhere_unless_it_names_one() {
    let rules = rules(
        r#"{"allow": ["make", "(in web/app) npm test", "ls *"], "ask": ["(in web) git push"], "deny": ["rm *"]}"#,
    );
    #[rustfmt::skip]
    let table = [
        (".", "make", Allow),
        ("./", "make", Allow),
        ("web", "make", Ask),
        ("web/app", "npm test", Allow),
        ("web/../web/app/", "npm test", Allow),
        (".", "npm test", Ask),
        ("web", "cd app && npm test", Allow),
        (".", "ls", Allow),
        ("web", "ls", Ask),
        ("web", "rm x", Deny),
        ("..", "make", Ask),
        ("/", "make", Ask),
    ];
    for (folder, command, kind) in table {
        let line = ShellLine::on_host(command).in_folder(folder);
        assert_eq!(judge(&rules, line).kind, kind, "{command} in {folder}");
    }
    let pushes = |folder| judge(&rules, ShellLine::on_host("git push").in_folder(folder)).rules;
    assert_eq!((pushes("web").len(), pushes(".").len()), (1, 0));
    assert_eq!(judge(&rules, "cd $x; git push").rules.len(), 1);
}

#[test]
fn patterns_that_mean_nothing_are_refused_with_a_reason() {
    let cases = [
        (
            "",
            "a command pattern needs at least one word, such as `git status *`; `*` alone is every command",
        ),
        (
            "  ",
            "a command pattern needs at least one word, such as `git status *`; `*` alone is every command",
        ),
        ("git 'a", "`git 'a`: a quote is not closed"),
        (
            "(in a/../b) make",
            "`(in a/../b) make`: `(in FOLDER)` names a folder of the workspace, such as `(in web) npm test`, without \
             `*` and `..`",
        ),
        (
            "(in a*) make",
            "`(in a*) make`: `(in FOLDER)` names a folder of the workspace, such as `(in web) npm test`, without `*` \
             and `..`",
        ),
        (
            "a && b",
            "`a && b`: `&` is no part of one command; each command of a line is judged alone, so write one pattern per \
             command, or quote the word",
        ),
    ];
    for (text, reason) in cases {
        assert_eq!(
            CommandPattern::new(text).map_err(|error| error.to_string()),
            Err(reason.to_owned()),
            "{text}"
        );
    }
    let unknown = serde_json::from_str::<stead_shell::CommandRules>(r#"{"alow": []}"#);
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .contains("unknown field `alow`")
    );
    let text = r#"{"reads":"ask","allow":["git status *"],"ask":[],"deny":["rm *"]}"#;
    assert_eq!(serde_json::to_string(&rules(text)).unwrap(), text);
}

#[test]
fn the_schema_of_the_rules_names_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(stead_shell::CommandRules)).unwrap();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["allow", "ask", "deny", "reads"]);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["$defs"]["CommandPattern"]["type"], "string");
}

/// What a single part reads; `None` if it may do more or what it reads is not known.
fn read_by(command: &str) -> Option<String> {
    let script = parse(command);
    let [part] = script.parts.as_slice() else {
        panic!("not one part: {command}")
    };
    match check_read_only(part) {
        ReadOnlyCheck::Yes { paths, .. } if script.ambiguity.is_none() => Some(paths.join(" ")),
        ReadOnlyCheck::Yes { .. } | ReadOnlyCheck::No { .. } | ReadOnlyCheck::Unclear { .. } => {
            None
        }
    }
}

#[test]
fn reads_name_what_they_read() {
    let cases = [
        ("ls", "."),
        ("ls -la src docs", "docs src"),
        ("cat a -n b", "a b"),
        ("cat < a 2>/dev/null", "a"),
        ("cat -", ""),
        ("head -5 a", "a"),
        ("head -n 5 a", "a"),
        ("tail -n5 -- -a", "-a"),
        ("grep -rn needle", "."),
        ("grep -e needle a", "a"),
        ("grep -f patterns x a", "a patterns x"),
        ("rg -g '*.rs' needle src", "src"),
        ("rg --files src", "src"),
        ("find . src -name '*.rs' -not -path './x/*'", ". src"),
        ("find -newer a", ". a"),
        ("wc -l a", "a"),
        ("sort -k2 -t, a", "a"),
        ("uniq -c a", "a"),
        ("sed -n '10,20p' a", "a"),
        ("echo a b", ""),
        ("date +%F", ""),
        ("git status", "."),
        ("git --no-pager log --oneline -5 -- a", ". a"),
        ("git diff -- a b", "a b"),
        ("git diff --cached HEAD~2 -- a", "a"),
        ("git log -p --since 2020 -- a", "a"),
        ("git blame -- a", "a"),
        ("git diff --stat main", ". main"),
        ("git branch -a", ""),
        ("git stash list", ""),
        ("[ -f a ]", "a"),
        ("diff a b", "a b"),
    ];
    for (command, paths) in cases {
        assert_eq!(read_by(command), Some(paths.to_owned()), "{command}");
    }
}

#[test]
fn what_may_do_more_is_no_read() {
    let cases = "find . -delete
find . -exec ls {} ;
find . -fprint x
find . -fls x
find . -ok ls
diff -r a b
diff -N a b
git diff
git diff -- :a
git diff -- '*.md'
git diff -U HEAD:x -- a
git diff 0a1b2c3d -- a
git diff HEAD:a -- b
git diff HEAD1 -- a
git log -p
git log -U3
git log --unified=1
git log -S x
git log -L1,5:x
git log --follow -- a -p
git log --format=%G?
git tag --format='%(signature)'
git status -v
git status -vv
git show HEAD
git show HEAD:a
git cat-file -p HEAD:a
git grep x
git blame a
git blame HEAD:a -- b
git describe --dirty
git diff --no-index a b
ls -LR
stat -L x
sed -i s/a/b/ x
sed -n 'w x' a
sed s/a/b/ a
sed -e 1p a
sort -o x a
sort --out=x a
sort --compress-program=x a
tee x
ls > x
ls >> x
X=1 ls
git -c a=b status
git -C x status
git --git-dir=x status
git --exec-path=x status
git -p log
git grep -O x
git grep --open-files-in-pager=x y
git branch -D x
git branch x
git branch -m x
git tag x
git diff --ext-diff
git diff --output=x
git diff --outp=x
git log --output x
git show --textconv
git remote add x y
git remote update
git stash
git stash drop
git config x y
git reflog expire --all
git push
git
awk 1 x
xargs ls
less x
more x
man x
rg --pre x y
rg -z x
rg --pr x y
tar tf x
date -s x
date 01010101
hostname x
uniq a b
xxd a b
xxd -r a
tail -f x
tree -o x
file -C
file -f x
test -v x
[ -v x ]
printf -v x y
printf %n x
cd x
env
printenv
wc --files0-from=x
ls --colo=x
cat --numb x
./cat x
/bin/cat x
cat *.rs
cat $x
cat ~/x
cat {a,b}
cat < /dev/tcp/a/1
ls -l --unknown
curl x
python3 -c 1
sh x
yes
jq . x
cargo metadata
grep -R x
unknown";
    for command in cases.lines().map(|line| line.replace(" ;", " \\;")) {
        let script = parse(&command);
        let part = script.parts.first().unwrap();
        assert!(
            !matches!(check_read_only(part), ReadOnlyCheck::Yes { .. }),
            "{command}: {:?}",
            check_read_only(part)
        );
    }
}

#[test]
fn reads_of_a_line_are_those_of_all_its_parts() {
    let rules = rules(r#"{"reads": "allow", "allow": ["cd /etc", "npm test", "timeout 5 ls"]}"#);
    let cases: &[(&str, VerdictKind, Option<&[&str]>)] = &[
        ("cat a | grep b c; ls", Allow, Some(&[".", "a", "c"])),
        ("cat a | npm test", Allow, None),
        ("cat a | tee b", Ask, None),
        // A relative path means another file elsewhere.
        ("cd /etc && cat passwd", Ask, None),
        ("cd /etc", Allow, None),
        ("timeout 5 cat a", Ask, None),
        ("echo $(cat a)", Ask, None),
        ("cat $x", Ask, None),
        ("{ cat; } < a", Allow, Some(&["a"])),
    ];
    for (command, kind, reads) in cases {
        let judged = judge(&rules, *command);
        let reads = reads.map(|paths| {
            paths
                .iter()
                .map(|path| (*path).to_owned())
                .collect::<Vec<_>>()
        });
        assert_eq!(
            (judged.kind, judged.reads),
            (*kind, reads),
            "{command}: {}",
            judged.reason
        );
    }
    let judged = judge(&rules, "cat a; npm test");
    let reads: Vec<_> = judged
        .parts
        .into_iter()
        .map(|part| (part.reason, part.reads))
        .collect();
    let expected = [
        ("commands.reads: allow".to_owned(), vec!["a".to_owned()]),
        ("commands.allow: npm test".to_owned(), vec![]),
    ];
    assert_eq!(reads, expected);
}

/// How deep a single part reads.
fn depth_of(command: &str) -> ReadDepth {
    match check_read_only(&parse(command).parts[0]) {
        ReadOnlyCheck::Yes { depth, .. } => depth,
        ReadOnlyCheck::No { why } | ReadOnlyCheck::Unclear { why } => panic!("{command}: {why}"),
    }
}

#[test]
fn what_a_read_shows_of_folders_and_repositories_is_told() {
    use ReadDepth::{Below, Files, Names, Repository, RepositoryFiles};
    #[rustfmt::skip]
    let table = [
        ("cat a", Names), ("ls a", Names), ("ls -R a", Below), ("ls --recursive", Below),
        ("grep x a", Names), ("grep -r x a", Below), ("grep -d recurse x .", Below), ("grep -drecurse x .", Below),
        ("grep --directories=recurse x .", Below), ("grep --directories recurse x .", Below), ("grep -nr x", Below),
        ("rg x", Below), ("find a", Below), ("diff a b", Files), ("diff -u a b", Files),
        ("git status", Repository), ("git log --oneline -- a", Repository), ("git diff --stat", Repository),
        ("git diff -- a", RepositoryFiles), ("git log -p -- a", RepositoryFiles), ("git blame -- a", RepositoryFiles),
    ];
    for (command, depth) in table {
        assert_eq!(depth_of(command), depth, "{command}");
    }
}

/// Lines that ran other code or wrote files under rules that looked narrow.
const ESCAPES: &str = include_str!("../data/wildcard_escapes.txt");

#[test]
fn no_wildcard_rule_allows_what_a_program_can_be_made_to_run() {
    let mut tried = 0;
    let lines = ESCAPES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    for (patterns, command) in lines.map(|line| line.split_once(" => ").unwrap()) {
        let allow: Vec<&str> = patterns.split(" + ").collect();
        let rules = rules(&serde_json::json!({"allow": allow}).to_string());
        assert_ne!(judge(&rules, command).kind, Allow, "{patterns}: {command}");
        tried += 1;
    }
    assert!(tried > 100, "only {tried}");
}
