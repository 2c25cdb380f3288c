//! The place for tests of what a command on the host sees: environment, shell, input and limits.

use crate::{run, trace, traced};
use stead_sandbox::{EXEC_ID_ENV, Exec, ExecOutcome, Host, Isolation, Sandbox};

#[tokio::test]
async fn a_command_sees_the_variables_it_is_given_and_none_of_ours() {
    let host = Host::new(
        [("HOME", "/home/x"), ("PATH", "/usr/bin:/bin")].map(|(a, b)| (a.to_owned(), b.to_owned())),
    );
    let mut said = crate::Said::default();
    let exec = Exec {
        env: [("MINE".to_owned(), "1 2".to_owned())].into(),
        ..Exec::new("env", "/")
    };
    assert_eq!(
        host.exec(exec, &mut said).await.unwrap(),
        ExecOutcome::Exited(0)
    );
    // Variables that the shell sets itself.
    let of_shell = |line: &&str| {
        ["PWD=", "SHLVL=", "_=", "OLDPWD="]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let mut lines: Vec<&str> = said.text().lines().filter(|line| !of_shell(line)).collect();
    lines.sort_unstable();
    let marked = lines
        .iter()
        .position(|line| line.starts_with(EXEC_ID_ENV))
        .unwrap();
    let mark = lines.remove(marked).strip_prefix(EXEC_ID_ENV).unwrap();
    assert_eq!(
        mark.len(),
        "=01234567-89ab-cdef-0123-456789abcdef".len(),
        "{mark}"
    );
    let git = [
        "GIT_CONFIG_COUNT=2",
        "GIT_CONFIG_KEY_0=safe.bareRepository",
        "GIT_CONFIG_KEY_1=core.fsmonitor",
        "GIT_CONFIG_VALUE_0=explicit",
        "GIT_CONFIG_VALUE_1=false",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
    ];
    let others = [
        "HOME=/home/x",
        "MINE=1 2",
        "PATH=/usr/bin:/bin",
        "TERM=dumb",
    ];
    assert_eq!(lines, [&git[..], &others[..]].concat());
    assert!(
        !format!("{host:?}").contains("/home/x"),
        "values are not for logs"
    );
}

#[tokio::test]
async fn a_command_of_a_command_stays_within_reach_of_the_first() {
    let exec = Exec {
        env: [(EXEC_ID_ENV.to_owned(), "outer".to_owned())].into(),
        ..Exec::new(format!("echo ${EXEC_ID_ENV}"), "/")
    };
    let (ended, said) = run(exec).await;
    assert_eq!(ended.unwrap(), ExecOutcome::Exited(0));
    assert!(said.text().starts_with("outer:"), "{}", said.text());
}

#[tokio::test]
async fn ends_inputs_bytes_and_limits_are_as_they_should_be() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    let table: [(&str, ExecOutcome, &[u8]); 10] = [
        ("true", ExecOutcome::Exited(0), b""),
        ("exit 42", ExecOutcome::Exited(42), b""),
        ("no-such-program 2>/dev/null", ExecOutcome::Exited(127), b""),
        ("kill -KILL $$", ExecOutcome::Signalled(9), b""),
        ("kill -SEGV $$", ExecOutcome::Signalled(11), b""),
        (
            "cat; read line || echo none",
            ExecOutcome::Exited(0),
            b"none\n",
        ),
        (
            r"printf 'a\0\377b\033[1m'",
            ExecOutcome::Exited(0),
            b"a\0\xffb\x1b[1m",
        ),
        ("ulimit -c; ulimit -Hc", ExecOutcome::Exited(0), b"0\n0\n"),
        (
            "x=(1 2 3); echo ${#x[@]} $0",
            ExecOutcome::Exited(0),
            b"3 bash\n",
        ),
        ("echo 'a\nb' # a comment", ExecOutcome::Exited(0), b"a\nb\n"),
    ];
    for (script, expected, output) in table {
        let (ended, said) = run(traced(script, dir.path(), &trace())).await;
        let said = String::from_utf8_lossy(&said.0)
            .replace(Host::new([]).shell().to_str().unwrap(), "bash");
        assert_eq!(
            (ended.unwrap(), said.as_str()),
            (expected, &*String::from_utf8_lossy(output)),
            "{script}"
        );
    }
    let (_, said) = run(traced("pwd", dir.path(), &trace())).await;
    assert_eq!(said.text().trim_end(), real.to_str().unwrap());
}

#[test]
fn the_host_is_no_sandbox_and_its_shell_is_bash_where_there_is_one() {
    let host = Host::new([]);
    assert_eq!(host.isolation(), Isolation::NONE);
    assert!(host.isolation().is_none());
    assert_eq!(
        host.describe(),
        "with `bash` on this machine, outside any sandbox"
    );
    let bare = Host::new([("PATH".to_owned(), "/no/such/folder:relative".to_owned())]);
    assert_eq!(
        bare.describe(),
        "with `sh` on this machine, outside any sandbox"
    );
}
