//! The result of a command, as text for a model.
//!
//! Effects: none.

use stead_sandbox::ExecOutcome;

const SIGNALS: [(i32, &str); 14] = [
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (4, "ILL"),
    (6, "ABRT"),
    (7, "BUS"),
    (8, "FPE"),
    (9, "KILL"),
    (11, "SEGV"),
    (13, "PIPE"),
    (14, "ALRM"),
    (15, "TERM"),
    (24, "XCPU"),
    (25, "XFSZ"),
];

/// What a shell adds to the number of the signal that ended a command, to make an exit code.
const SIGNAL_BASE: i32 = 128;

/// Returns the exit code of a command that ended, as a shell would give it.
pub(super) fn exit_code(ended: ExecOutcome) -> Option<i32> {
    match ended {
        ExecOutcome::Exited(code) => Some(code),
        ExecOutcome::Signalled(signal) => Some(SIGNAL_BASE + signal),
        ExecOutcome::TimedOut
        | ExecOutcome::Cancelled
        | ExecOutcome::OutputFull
        | ExecOutcome::OutOfDisk => None,
    }
}

/// Formats the end of a command and its output. The command ran for `seconds`, of at most
/// `most_seconds`.
pub(super) fn render_result(
    ended: ExecOutcome,
    seconds: u64,
    most_seconds: u64,
    said: &str,
) -> String {
    let how = match ended {
        ExecOutcome::Exited(code) => format!("exit code {code}"),
        ExecOutcome::Signalled(signal) => {
            match SIGNALS.iter().find(|(number, _)| *number == signal) {
                Some((_, name)) => format!("ended by signal {signal} ({name})"),
                None => format!("ended by signal {signal}"),
            }
        }
        ExecOutcome::TimedOut if seconds < most_seconds => format!(
            "timed out after {seconds} s: the command and all it had started were stopped; `timeout` can give it more, \
             at most {most_seconds} s"
        ),
        ExecOutcome::TimedOut => {
            format!("timed out after {seconds} s: the command and all it had started were stopped")
        }
        ExecOutcome::Cancelled => {
            "cancelled: the command and all it had started were stopped".to_owned()
        }
        ExecOutcome::OutputFull => {
            "stopped: the command wrote more than is kept; let it write less, or to a file"
                .to_owned()
        }
        ExecOutcome::OutOfDisk => {
            "stopped: the command wrote more to the disk than it may; remove what is not needed"
                .to_owned()
        }
    };
    match said {
        "" => format!("[{how}; no output]"),
        said => format!("[{how}]\n{said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_told_before_what_was_written() {
        let table = [
            (ExecOutcome::Exited(0), "[exit code 0]\nx\n"),
            (ExecOutcome::Exited(127), "[exit code 127]\nx\n"),
            (ExecOutcome::Signalled(9), "[ended by signal 9 (KILL)]\nx\n"),
            (ExecOutcome::Signalled(40), "[ended by signal 40]\nx\n"),
            (
                ExecOutcome::Cancelled,
                "[cancelled: the command and all it had started were stopped]\nx\n",
            ),
            (
                ExecOutcome::OutputFull,
                "[stopped: the command wrote more than is kept; let it write less, or to a file]\nx\n",
            ),
        ];
        for (ended, expected) in table {
            assert_eq!(render_result(ended, 5, 600, "x\n"), expected);
        }
        let stopped = "timed out after 5 s: the command and all it had started were stopped";
        let more = format!("[{stopped}; `timeout` can give it more, at most 600 s]\nx");
        assert_eq!(render_result(ExecOutcome::TimedOut, 5, 600, "x"), more);
        assert_eq!(
            render_result(ExecOutcome::TimedOut, 5, 5, "x"),
            format!("[{stopped}]\nx")
        );
        assert_eq!(
            render_result(ExecOutcome::Exited(0), 5, 600, ""),
            "[exit code 0; no output]"
        );
    }
}
