//! A test that runs itself as a child process, so that the child may be killed.
//!
//! ```no_run
//! use stead_testkit::{Child, Death, child_role};
//! use std::time::Duration;
//!
//! #[test]
//! fn nothing_is_lost_when_killed() {
//!     if let Some(role) = child_role() {
//!         return work_and_die_at(role.get("n").parse().unwrap());
//!     }
//!     let ended = Child::spawn("nothing_is_lost_when_killed", [("n", "3")]).wait(Duration::from_secs(10));
//!     assert_eq!(ended.death, Death::Signal(9), "{ended}");
//! }
//! # fn work_and_die_at(_: usize) {}
//! ```
//!
//! Effects: test support.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child as Process, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const VARIABLE: &str = "STEAD_TESTKIT_CHILD";

/// A running copy of this test binary that runs one test. Killed when dropped.
#[derive(Debug)]
pub struct Child {
    test: String,
    process: Process,
    output: Option<[JoinHandle<String>; 2]>,
}

/// The variables that the parent gave the child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildRole(BTreeMap<String, String>);

/// The end of a child, with its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildExit {
    /// The cause of its death.
    pub death: Death,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

/// The cause of a process's death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The process exited with this code.
    Exit(i32),
    /// The process was ended by this signal.
    Signal(i32),
    /// The process was still running at the deadline and was killed.
    TimedOut,
}

/// Returns the variables from the parent in a child process, and none in any other process.
pub fn child_role() -> Option<ChildRole> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is how a parent speaks to its child"
    )]
    let told = std::env::var(VARIABLE).ok()?;
    Some(ChildRole(
        serde_json::from_str(&told).expect("the variable is set by Child::spawn"),
    ))
}

impl ChildRole {
    /// Returns the variable with this name. Panics if the parent did not set it.
    pub fn get(&self, name: &str) -> &str {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("the parent gave no '{name}'"))
    }
}

impl Child {
    /// Runs this binary's test of that full name (with its modules) in a child, which sees
    /// `variables` through [`child_role`].
    pub fn spawn<K: Into<String>, V: Into<String>>(
        test: &str,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let told: BTreeMap<String, String> = variables
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
            .collect();
        let mut process = Command::new(std::env::current_exe().expect("a test has a binary"))
            .args([
                test,
                "--exact",
                "--nocapture",
                "--test-threads=1",
                "--include-ignored",
            ])
            .env(
                VARIABLE,
                serde_json::to_string(&told).expect("a map of strings is JSON"),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a test binary can be started");
        let stdout = drain(process.stdout.take().expect("piped"));
        let stderr = drain(process.stderr.take().expect("piped"));
        Self {
            test: test.into(),
            process,
            output: Some([stdout, stderr]),
        }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills the child with `SIGKILL`.
    pub fn kill(&mut self) {
        self.process.kill().expect("a child may be killed");
    }

    /// Waits until the child has ended, at most for `deadline`. Panics if there is no such test.
    pub fn wait(mut self, deadline: Duration) -> ChildExit {
        let end = Instant::now() + deadline;
        let death = loop {
            match self.process.try_wait().expect("a child can be waited for") {
                Some(status) => {
                    break status
                        .code()
                        .map_or_else(|| Death::Signal(status.signal().unwrap_or(0)), Death::Exit);
                }
                None if Instant::now() >= end => {
                    self.kill();
                    self.process.wait().expect("a child can be waited for");
                    break Death::TimedOut;
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let [stdout, stderr] = self.output.take().expect("waited for only once");
        let stdout = stdout.join().expect("no panic");
        let stderr = stderr.join().expect("no panic");
        assert!(
            !stdout.contains("running 0 tests"),
            "this binary has no test named '{}'",
            self.test
        );
        ChildExit {
            death,
            stdout,
            stderr,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.death, self.stdout, self.stderr
        )
    }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultDisk, KillPoint};
    use std::fs::File;
    use stead_store::Disk;

    const DEADLINE: Duration = Duration::from_secs(20);

    #[test]
    fn a_kill_leaves_what_its_point_says() {
        if let Some(role) = child_role() {
            let point = KillPoint::ALL[role.get("point").parse::<usize>().unwrap()];
            let disk = FaultDisk::kill_at(2, point);
            let file = File::create(role.get("file")).unwrap();
            for word in ["one.", "two.", "three."] {
                disk.write_all(&file, word.as_bytes()).unwrap();
            }
            return;
        }
        for (point, left) in ["one.", "one.tw", "one.two."].into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("a").to_str().unwrap().to_owned();
            let ended = Child::spawn(
                "reexec::tests::a_kill_leaves_what_its_point_says",
                [("point", point.to_string()), ("file", file.clone())],
            )
            .wait(DEADLINE);
            assert_eq!(
                (ended.death, std::fs::read_to_string(file).unwrap().as_str()),
                (Death::Signal(9), left),
                "{ended}"
            );
        }
    }

    #[test]
    fn an_exit_and_a_hang_are_told_apart() {
        const NAME: &str = "reexec::tests::an_exit_and_a_hang_are_told_apart";
        if let Some(role) = child_role() {
            match role.get("do") {
                "exit" => return eprintln!("bye"),
                "fail" => panic!("as told"),
                _ => std::thread::sleep(Duration::from_secs(60)),
            }
        }
        let exited = Child::spawn(NAME, [("do", "exit")]).wait(DEADLINE);
        assert_eq!(
            (exited.death, exited.stderr.contains("bye")),
            (Death::Exit(0), true),
            "{exited}"
        );
        assert_eq!(
            Child::spawn(NAME, [("do", "fail")]).wait(DEADLINE).death,
            Death::Exit(101)
        );
        assert_eq!(
            Child::spawn(NAME, [("do", "hang")])
                .wait(Duration::from_millis(100))
                .death,
            Death::TimedOut
        );
    }

    #[test]
    #[should_panic(expected = "no test named")]
    fn a_wrong_name_is_noticed() {
        Child::spawn("no_such_test", [("a", "b")]).wait(DEADLINE);
    }
}
