//! Fuzz targets for the parsers that Stead has written itself.
//!
//! A target is a function from bytes to nothing. It parses its input and panics if the parser breaks
//! a promise; that the parser does not panic itself is a promise, too. Each function documents what
//! it asserts.
//!
//! - `tests/short.rs` mutates the inputs in `seeds/TARGET/` a fixed number of times. It needs no
//!   special toolchain and runs with all other tests.
//! - `fuzz_targets/` has the same functions as libFuzzer programs, which find inputs by coverage:
//!   `cargo +nightly fuzz run --features libfuzzer shell fuzz/seeds/shell`.
//!
//! An input that breaks a promise becomes a seed and a test of the parser's own crate.

mod archive;
mod documents;
mod lines;
mod mutate;
mod shell;
mod skill;
mod sse;

pub use archive::archive;
pub use documents::{front_matter, settings_json, yaml};
pub use lines::{dotenv, fact, journal_line, path};
pub use mutate::Mutator;
pub use shell::shell;
pub use skill::skill;
pub use sse::sse;

/// A target and what the mutator should know about its inputs.
#[derive(Debug, Clone, Copy)]
pub struct FuzzTarget {
    /// The name of the target and of its folder of seeds.
    pub name: &'static str,
    /// The target.
    pub run: fn(&[u8]),
    /// Tokens that mean something to the parser.
    pub tokens: &'static [&'static str],
    /// How many inputs the short test tries; about five seconds in the dev profile.
    pub iterations: u32,
}

/// All targets, by name.
pub const TARGETS: [FuzzTarget; 11] = [
    FuzzTarget {
        name: "archive",
        run: archive,
        tokens: archive::TOKENS,
        iterations: 30_000,
    },
    FuzzTarget {
        name: "dotenv",
        run: dotenv,
        tokens: &["export ", "=", "'", "\"", "\\n", "\\\"", " #", "\r\n", "A="],
        iterations: 100_000,
    },
    FuzzTarget {
        name: "fact",
        run: fact,
        tokens: &[
            "- ", "* ", "<!--", "-->", " ; ", "=", "%20", "stead:", "\r\n",
        ],
        iterations: 50_000,
    },
    FuzzTarget {
        name: "front_matter",
        run: front_matter,
        tokens: &["---\n", "---", "\r\n", "\u{feff}", ": ", "\n", "- "],
        iterations: 50_000,
    },
    FuzzTarget {
        name: "journal_line",
        run: journal_line,
        tokens: &["\"sum\":\"", "\"}", "+", "é", "null", ",", "\\u0000"],
        iterations: 30_000,
    },
    FuzzTarget {
        name: "path",
        run: path,
        tokens: &["/", "..", "./", "~", "\\", "\0", "//", "é", "e\u{301}"],
        iterations: 100_000,
    },
    FuzzTarget {
        name: "settings_json",
        run: settings_json,
        tokens: documents::JSON_TOKENS,
        iterations: 100_000,
    },
    FuzzTarget {
        name: "shell",
        run: shell,
        tokens: shell::TOKENS,
        iterations: 1_500,
    },
    FuzzTarget {
        name: "skill",
        run: skill,
        tokens: skill::TOKENS,
        iterations: 15_000,
    },
    FuzzTarget {
        name: "sse",
        run: sse,
        tokens: &[
            "data: ", "data:", "event: ", "\r\n", "\r", "\n\n", "\u{feff}", ":", "id: 1",
        ],
        iterations: 60_000,
    },
    FuzzTarget {
        name: "yaml",
        run: yaml,
        tokens: documents::YAML_TOKENS,
        iterations: 10_000,
    },
];

/// Returns the input as text, with replacement characters where it is not UTF-8.
fn text(data: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(data)
}
