//! Every target with a fixed number of mutated seeds.
//!
//! The inputs are the same in every run. `STEAD_FUZZ_SEED` chooses others, and
//! `STEAD_FUZZ_ITERATIONS` sets their number for each target; `STEAD_TEST_ROUNDS` multiplies the
//! number that each target has by default. An input that fails is printed and saved to a file; to
//! try it again, put it into `seeds/TARGET/`, where every run tries it first.

#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that is configured by the environment"
)]

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};
use stead_fuzz::{FuzzTarget, Mutator, TARGETS};

/// No input of a few kilobytes may take longer.
const MAX_INPUT_TIME: Duration = Duration::from_secs(10);

/// Returns a number from the environment.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

fn seeds(target: &FuzzTarget) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target.name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no seeds", target.name);
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

/// Runs a target on an input, and saves the input if it fails.
fn try_input(target: &FuzzTarget, input: &[u8]) {
    let started = Instant::now();
    let run = target.run;
    let failed = catch_unwind(|| run(input)).is_err();
    let elapsed = started.elapsed();
    if !failed && elapsed <= MAX_INPUT_TIME {
        return;
    }
    let file = tempfile::Builder::new()
        .prefix(&format!("stead-fuzz-{}-", target.name))
        .tempfile()
        .unwrap();
    std::fs::write(file.path(), input).unwrap();
    let (_, saved) = file.keep().unwrap();
    panic!(
        "{} {} on \"{}\", saved as {}",
        target.name,
        if failed { "fails" } else { "takes too long" },
        input.escape_ascii(),
        saved.display()
    );
}

fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = seeds(target);
    for seed in &seeds {
        try_input(target, seed);
    }
    let mut mutator = Mutator::new(setting("STEAD_FUZZ_SEED").unwrap_or(1));
    let rounds = setting("STEAD_TEST_ROUNDS").unwrap_or(1);
    let iterations = setting("STEAD_FUZZ_ITERATIONS")
        .unwrap_or_else(|| u64::from(target.iterations).saturating_mul(rounds));
    for _ in 0..iterations {
        try_input(target, &mutator.mutate(&seeds, target.tokens));
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                fuzz(stringify!($name));
            }
        )*

        #[test]
        fn every_target_has_a_test() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets!(
    archive,
    dotenv,
    fact,
    front_matter,
    journal_line,
    path,
    settings_json,
    shell,
    skill,
    sse,
    yaml,
);
