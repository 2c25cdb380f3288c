//! Whether our validator agrees with the standard's reference on a generated corpus; `scripts/skills-ref.py`
//! makes the corpus and asks the reference.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde::Deserialize;
use stead_workspace::skills::validate;

#[derive(Deserialize)]
struct Case {
    dir: String,
    text: String,
    valid: bool,
}

// 4.6
#[test]
fn every_verdict_is_that_of_the_reference_validator() {
    let corpus = include_str!("data/skills.jsonl");
    let cases: Vec<Case> = corpus.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 400 && cases.iter().filter(|case| case.valid).count() >= 100, "{}", cases.len());
    let mut different = Vec::new();
    for Case { dir, text, valid } in &cases {
        let problems = validate(dir, text);
        if problems.is_empty() != *valid {
            different.push(format!("{dir:?} {text:?} is {}: {problems:?}", if *valid { "valid" } else { "not valid" }));
        }
    }
    assert!(different.is_empty(), "{} of {} differ:\n{}", different.len(), cases.len(), different.join("\n"));
}
