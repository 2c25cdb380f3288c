//! Kill points for the crash tests: a child process is killed at every disk operation of a run.

use crate::support::in_parallel;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stead_testkit::{
    Child, ChildExit, ChildRole, Death, DiskOpKind, FaultDisk, KillPoint, child_role,
};

const DEADLINE: Duration = Duration::from_secs(30);

/// Every point at which a run can be killed, from a run that counted its disk operations.
pub(crate) struct KillPoints {
    test: &'static str,
    points: Vec<Kill>,
    killed: AtomicUsize,
}

/// One child that is killed at one point.
pub(crate) struct Kill {
    /// The number of the disk operation, from one.
    operation: usize,
    /// The index in [`KillPoint::ALL`].
    point: usize,
    /// The point in words, for messages.
    pub(crate) place: String,
}

/// The disk of a child, and its variables, if this process is one.
pub(crate) fn doomed_child() -> Option<(ChildRole, FaultDisk)> {
    let role = child_role()?;
    let point = KillPoint::ALL[role.get("point").parse::<usize>().unwrap()];
    let disk = FaultDisk::kill_at(role.get("operation").parse().unwrap(), point);
    Some((role, disk))
}

impl KillPoints {
    /// Before and after every operation that `counted` saw, and in the middle of every write.
    /// `test` is the full name of the test that runs as the child.
    pub(crate) fn new(test: &'static str, counted: &FaultDisk) -> Self {
        let mut points = Vec::new();
        for (i, op) in counted.ops().iter().enumerate() {
            let operation = i + 1;
            for (point, kind) in KillPoint::ALL.into_iter().enumerate() {
                if kind == KillPoint::Torn && op.kind != DiskOpKind::Write {
                    continue;
                }
                let name = op.name.display();
                let place = format!("{kind:?} operation {operation} ({:?} {name})", op.kind);
                points.push(Kill {
                    operation,
                    point,
                    place,
                });
            }
        }
        Self {
            test,
            points,
            killed: AtomicUsize::new(0),
        }
    }

    /// Without the points after an operation, which are those before the next one; the last stays.
    pub(crate) fn only_between_operations(mut self) -> Self {
        let last = self.points.len().saturating_sub(1);
        let mut at = 0;
        self.points.retain(|kill| {
            at += 1;
            KillPoint::ALL[kill.point] != KillPoint::After || at > last
        });
        self
    }

    /// Runs `job` for every point, a few at once.
    ///
    /// The number of operations depends on time: the session index is written at intervals and
    /// claims are renewed. So a child may end before its point is reached; `job` must hold for that
    /// too, and nine of ten children must be killed.
    pub(crate) fn for_each(&self, at_least: usize, job: impl Fn(&Kill) + Sync) {
        let count = self.points.len();
        assert!(count > at_least, "only {count} points");
        in_parallel(&self.points, |kill| job(kill));
        let killed = self.killed.load(Ordering::Relaxed);
        assert!(killed * 10 >= count * 9, "{killed} of {count} were killed");
    }

    /// Runs a child on `dir` until it is killed, or ends because its point was not reached.
    pub(crate) fn run_child(
        &self,
        kill: &Kill,
        dir: &Path,
        variables: &[(&str, String)],
    ) -> ChildExit {
        let told = [
            ("operation", kill.operation.to_string()),
            ("point", kill.point.to_string()),
            ("dir", dir.to_str().unwrap().to_owned()),
        ];
        let told = told.into_iter().chain(variables.iter().cloned());
        let ended = Child::spawn(self.test, told).wait(DEADLINE);
        match ended.death {
            Death::Signal(9) => drop(self.killed.fetch_add(1, Ordering::Relaxed)),
            Death::Exit(0) => {}
            _ => panic!("{}: {ended}", kill.place),
        }
        ended
    }
}
