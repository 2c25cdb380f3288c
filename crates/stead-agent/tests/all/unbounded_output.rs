//! The place for tests of tool output without end: bounded memory, bounded files, no process left
//! behind.

use crate::support::{TestTool, agent_on, block_on, journal, results, session, text};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::RunOptions;
use stead_core::{Event, EventKind, Risk, RunOutcome};
use stead_model::ScriptedModel;
use stead_sandbox::{ExecLimits, ExecOutcome, capture};
use stead_store::OsDisk;
use stead_testkit::{Child, Death, child_role};
use stead_tools::{Output, SinkState, Tool, ToolCx, ToolError};
use tokio::process::Command;

const TEST: &str = "unbounded_output::output_of_any_length_needs_a_fixed_amount_of_memory";
const MB: u64 = 1024 * 1024;
const CAP: u64 = 64 * MB;

/// What the child is to do.
const CASES: [&str; 5] = ["hundred_mb", "one_line", "binary", "yes", "stubborn"];

/// Megabytes of memory: now, or the most there ever were.
fn memory_mb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse::<u64>()
        .unwrap()
        / 1024
}

/// Writes `pieces` megabytes, whether or not anybody keeps them.
async fn pour(cx: ToolCx, pieces: usize, piece: Vec<u8>) -> Result<Output, ToolError> {
    let mut spill = cx.spill();
    let mut told = SinkState::Accepting;
    for _ in 0..pieces {
        told = spill.write(&piece).await;
    }
    assert_eq!(
        told,
        SinkState::Full,
        "whoever writes more than is kept is told so"
    );
    Ok(spill.finish().await)
}

async fn run_command(cx: ToolCx, script: &str) -> Result<Output, ToolError> {
    let mut spill = cx.spill();
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let bounds = ExecLimits {
        timeout: Duration::from_secs(60),
        cancel: cx.cancel.clone(),
    };
    let ended = capture(command, &mut spill, &bounds)
        .await
        .map_err(|error| ToolError::RespondToModel(error.to_string()))?;
    assert_eq!(ended, ExecOutcome::OutputFull);
    Ok(spill.finish().await)
}

fn tool(case: &str) -> Arc<dyn Tool> {
    let case = case.to_owned();
    TestTool::make("flood", Risk::READS, move |cx, _| {
        let case = case.clone();
        async move {
            let line = b"all work and no play makes jack a dull boy, every day, again and agai\n";
            match case.as_str() {
                "hundred_mb" => pour(cx, 100, line.repeat(MB as usize / line.len())).await,
                "one_line" => pour(cx, 1024, vec![b'x'; MB as usize]).await,
                "binary" => pour(cx, 100, (0..=255u8).cycle().take(MB as usize).collect()).await,
                "yes" => run_command(cx, "echo $$; yes 'no end of it'").await,
                _ => {
                    run_command(
                        cx,
                        "trap '' TERM; echo $$; while :; do yes 'no end of it'; done",
                    )
                    .await
                }
            }
        }
    })
}

/// The child: runs one case and says what it needed.
fn flood(dir: &Path, case: &str) {
    block_on(async {
        let script = "- calls: [{tool: flood, args: {}, id: c1}]\n- text: Done.";
        let model = Arc::new(ScriptedModel::parse("s", script).unwrap());
        let agent = agent_on(dir, model, Arc::new(OsDisk), vec![tool(case)]).await;
        let listener = Arc::new(|event: &Event| {
            if let EventKind::ToolOutputDelta { id, text } = &event.kind {
                assert!(id == "c1" && text.len() <= 4096 * 3);
                println!("\nheard");
            }
        });
        let before = memory_mb("VmRSS");
        let options = RunOptions {
            listener,
            ..RunOptions::default()
        };
        let report = agent
            .session(session("s"))
            .run(text("Go."), options)
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed, "{report:?}");
        println!("\ngrew {}", memory_mb("VmHWM").saturating_sub(before));
        let (lines, _) = journal(&agent, &session("s")).await;
        println!("\ntold {}", results(&lines)[0].2.replace('\n', "\u{1}"));
    });
}

#[test]
fn output_of_any_length_needs_a_fixed_amount_of_memory() {
    if let Some(role) = child_role() {
        return flood(Path::new(role.get("dir")), role.get("case"));
    }
    for case in CASES {
        let dir = tempfile::tempdir().unwrap();
        let told = [("dir", dir.path().to_str().unwrap()), ("case", case)];
        let ended = Child::spawn(TEST, told).wait(Duration::from_secs(60));
        assert_eq!(ended.death, Death::Exit(0), "{case}: {ended}");
        let said = |key: &str| {
            ended
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .unwrap()
                .to_owned()
        };
        let grew: u64 = said("grew ").parse().unwrap();
        assert!(grew <= 64, "{case}: {grew} MB");
        assert!(ended.stdout.contains("heard"), "{case}");
        let told = said("told ").replace('\u{1}', "\n");
        let ending = if case == "binary" { "bin" } else { "txt" };
        let path = format!("agents/main/offload/s/c1.{ending}");
        let file = dir.path().join(&path);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), CAP, "{case}");
        assert!(
            told.contains(&format!("Its first {CAP} bytes are in {path}")),
            "{case}: {told}"
        );
        assert!(
            told.contains("The rest is lost: of one output 64 MB are kept."),
            "{case}: {told}"
        );
        assert!(told.len() < 6_000, "{case}: {} bytes", told.len());
        if matches!(case, "yes" | "stubborn") {
            let child = told.lines().nth(1).unwrap();
            assert!(
                !Path::new(&format!("/proc/{child}")).exists(),
                "{case}: {child} lives on"
            );
        }
        assert_read_by_tools(dir.path(), &path, case);
    }
}

/// The agent reads and searches what is in the file with the tools that it has.
fn assert_read_by_tools(dir: &Path, path: &str, case: &str) {
    let script = format!(
        "- calls: [{{tool: read_file, args: {{file_path: {path}, limit: 3}}, id: r}}, {{tool: grep_files, args: {{pattern: \
         'every day|no end', path: {path}, max_matches: 2}}, id: g}}]\n- text: Done."
    );
    block_on(async {
        let agent = agent_on(
            dir,
            Arc::new(ScriptedModel::parse("s", &script).unwrap()),
            Arc::new(OsDisk),
            Vec::new(),
        );
        let agent = agent.await;
        agent
            .session(session("reader"))
            .run(text("Read."), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("reader")).await;
        let told = results(&lines);
        let told = |id: &str| told.iter().find(|(of, ..)| of == id).unwrap().2.clone();
        let (read, found) = match case {
            "hundred_mb" => ("all work and no play", "every day"),
            "one_line" => ("more bytes clipped]", "No matches"),
            "binary" => ("is a binary file", "No matches"),
            _ => ("no end of it", "no end of it"),
        };
        assert!(told("r").contains(read), "{case}: {}", told("r"));
        assert!(told("g").contains(found), "{case}: {}", told("g"));
    });
}
