//! The place for tests of strict skill validation against the reference validator's corpus.

use serde::Deserialize;
use stead_skills::validate;

#[derive(Deserialize)]
struct Case {
    dir: String,
    text: String,
    valid: bool,
}

#[test]
fn every_verdict_is_that_of_the_reference_validator() {
    let corpus = include_str!("../data/skills.jsonl");
    let cases: Vec<Case> = corpus
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        cases.len() >= 400 && cases.iter().filter(|case| case.valid).count() >= 100,
        "{}",
        cases.len()
    );
    let mut different = Vec::new();
    for Case { dir, text, valid } in &cases {
        let problems = validate(dir, text);
        if problems.is_empty() != *valid {
            different.push(format!(
                "{dir:?} {text:?} is {}: {problems:?}",
                if *valid { "valid" } else { "not valid" }
            ));
        }
    }
    assert!(
        different.is_empty(),
        "{} of {} differ:\n{}",
        different.len(),
        cases.len(),
        different.join("\n")
    );
}

#[test]
fn a_problem_says_where_it_is_and_what_to_do() {
    let table = [
        (
            "pdf",
            "---\nname: pdf\nversion: 1\ndescription: d\n---\n",
            "3:1: there is no field `version`",
        ),
        (
            "pdf",
            "---\nname: pdf\ndescripton: d\n---\n",
            "did you mean `description`?",
        ),
        (
            "pdf",
            "---\nname: pdf\ndescription: d\nlicense: [MIT]\n---\n",
            "4:10: […] and {…} are not allowed",
        ),
        (
            "pdf",
            "---\nname: pdf\ndescription: a: b\n---\n",
            "3:15: this is not YAML",
        ),
        (
            "pdf",
            "---\nname: a--b\ndescription: d\n---\n",
            "2:7: a name must not contain `--`",
        ),
        (
            "pdf",
            "\u{feff}---\nname: pdf\ndescription: d\n---\n",
            "remove the byte order mark",
        ),
        (
            "pdf",
            "---\nname: pdf\n",
            "1:1: the front matter is not closed",
        ),
    ];
    for (dir, text, said) in table {
        let problems: Vec<String> = validate(dir, text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            problems.iter().any(|problem| problem.contains(said)),
            "{text:?}: {problems:?}"
        );
    }
}

#[test]
fn a_huge_or_hostile_front_matter_is_refused_quickly() {
    let begun = std::time::Instant::now();
    for text in [
        format!("---\n{}: d\n---\n", "a: b\n".repeat(400_000)),
        format!("---\nname: {}\n---\n", "[".repeat(60_000)),
        format!("---\nname: 'a{}'\n---\n", "\nb".repeat(30_000)),
        format!("---\n{}---\n", "- ".repeat(30_000)),
        format!("---\n{}---\n", "# c\n".repeat(16_000)),
    ] {
        assert!(!validate("a", &text).is_empty());
    }
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}
