//! The place for tests of commands of a harness process that is killed.

use crate::{alive, eventually, run, trace, traced};
use std::path::Path;
use std::time::Duration;
use stead_testkit::{Child, Death, child_role};

const TEST: &str = "killed_parent::nothing_outlives_a_process_that_is_killed";

#[test]
fn nothing_outlives_a_process_that_is_killed() {
    if let Some(role) = child_role() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let exec = traced(
            role.get("script"),
            Path::new(role.get("dir")),
            role.get("trace"),
        );
        let (ended, _) = runtime.block_on(run(exec));
        panic!("it ended: {ended:?}");
    }
    let deaf = "trap \"\" TERM HUP; touch up-$1; while :; do sleep 0.05; done";
    let cases = [
        ("a command", format!("set -- 1; {deaf}")),
        (
            "children",
            format!("sh -c '{deaf}' x 1 & sh -c '{deaf}' x 2 & wait"),
        ),
        (
            "other sessions",
            format!("setsid sh -c '{deaf}' x 1 & (setsid sh -c '{deaf}' x 2 &) ; sleep 1000"),
        ),
    ];
    for (case, script) in cases {
        let dir = tempfile::tempdir().unwrap();
        let trace = trace();
        let told = [
            ("script", script.as_str()),
            ("dir", dir.path().to_str().unwrap()),
            ("trace", &trace),
        ];
        let mut child = Child::spawn(TEST, told);
        let last = if case == "a command" { "up-1" } else { "up-2" };
        eventually(case, || {
            dir.path().join(last).exists() && dir.path().join("up-1").exists()
        });
        assert!(alive(&trace).len() >= 2, "{case}: {:?}", alive(&trace));
        child.kill();
        let ended = child.wait(Duration::from_secs(5));
        assert_eq!(ended.death, Death::Signal(9), "{case}: {ended}");
        eventually(&format!("{case} outlives its harness"), || {
            alive(&trace).is_empty()
        });
    }
}
