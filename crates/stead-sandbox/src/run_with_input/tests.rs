#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use super::*;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const LIMIT: usize = 1000;

async fn ask(script: &str, input: &[u8], timeout: Duration) -> (CommandOutput, Duration) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env_clear();
    let begun = Instant::now();
    let said = run_with_input(
        command,
        input,
        LIMIT,
        &ExecLimits {
            timeout,
            cancel: CancellationToken::new(),
        },
    )
    .await
    .unwrap();
    (said, begun.elapsed())
}

#[tokio::test]
async fn an_answer_is_what_was_written_and_how_it_ended() {
    let large = vec![b'x'; 300_000];
    for (script, input, code, stdout, stderr) in [
        ("cat", &b"hello"[..], 0, "hello", ""),
        ("echo no >&2; exit 2", b"hello", 2, "", "no\n"),
        // An input that is not read is no failure.
        ("exec <&-; echo fine", &large, 0, "fine\n", ""),
        // An orphan does not delay the output.
        ("sleep 300 & echo fine", b"", 0, "fine\n", ""),
    ] {
        let (said, took) = ask(script, input, Duration::from_secs(20)).await;
        let ExecOutcome::Exited(status) = said.outcome else {
            panic!("{script}: {said:?}")
        };
        let heard = (
            Some(status),
            String::from_utf8(said.stdout).unwrap(),
            String::from_utf8(said.stderr).unwrap(),
        );
        assert_eq!(
            heard,
            (Some(code), stdout.to_owned(), stderr.to_owned()),
            "{script}"
        );
        assert!(took < Duration::from_secs(10), "{script} took {took:?}");
    }
}

#[tokio::test]
async fn one_that_never_ends_or_says_too_much_is_stopped() {
    let second = Duration::from_millis(300);
    for (script, timeout, ended, kept) in [
        ("sleep 300", second, ExecOutcome::TimedOut, 0),
        (
            "trap '' TERM; while :; do sleep 1; done",
            second,
            ExecOutcome::TimedOut,
            0,
        ),
        (
            "yes",
            Duration::from_secs(20),
            ExecOutcome::OutputFull,
            LIMIT,
        ),
        (
            "trap '' PIPE; yes >&2; sleep 300",
            Duration::from_secs(20),
            ExecOutcome::OutputFull,
            0,
        ),
    ] {
        let (said, took) = ask(script, b"", timeout).await;
        assert_eq!((said.outcome, said.stdout.len()), (ended, kept), "{script}");
        assert!(took < Duration::from_secs(10), "{script} took {took:?}");
    }
}
