//! Command lines: what they would run, what only reads, and what the rules say of it.
//!
//! Nothing here runs anything. [`parse`] turns a command line into [`Part`]s, one per command that
//! would run anywhere in it; [`judge`] puts them to [`CommandRules`]. What cannot be read for
//! certain is never allowed. This decides what a person is asked, not what a process can do: that
//! is the sandbox's part.
//!
//! ```
//! use stead_core::VerdictKind;
//! use stead_tools::shell::{CommandRules, judge};
//!
//! let rules: CommandRules = serde_json::from_str(r#"{"allow": ["cargo test *"], "deny": ["rm *"]}"#)?;
//! assert_eq!(judge(&rules, "cargo test -p core").kind, VerdictKind::Allow);
//! assert_eq!(judge(&rules, "cargo test; timeout 5 sh -c 'rm -r src'").rule, "commands.deny: rm *");
//! assert_eq!(judge(&rules, "cargo test $(curl x.org)").rule, "no rule allows `curl`");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod ansi;
mod escapes;
mod expansion;
mod grammar;
mod judge;
mod opinion;
mod options;
mod pattern;
mod reader;
mod reads;
mod rules;
mod script;
mod suggest;
mod table;
mod wrappers;

#[cfg(test)]
mod tests;

pub use judge::{Judgement, PartJudgement, allows, judge};
pub use pattern::{CommandPattern, PatternError};
pub use reads::{Depth, Reads, reads_only};
pub use rules::{CommandRules, ReadPolicy};
pub use script::{
    Assignment, Part, Reach, Redirect, RedirectKind, Script, Unclear, Unknown, Value, Word,
};
pub use suggest::suggest;

use reader::Reader;

/// A longer command line is not read.
const MAX_BYTES: usize = 64 * 1024;
/// Commands inside of commands.
const MAX_DEPTH: usize = 100;
/// Commands in one command line.
const MAX_PARTS: usize = 200;

/// What a command line would run. It never fails: what cannot be told is [`Script::unclear`].
pub fn parse(command: &str) -> Script {
    parse_within(command, 0)
}

/// Parses what stands inside of `level` wrappers.
fn parse_within(command: &str, level: usize) -> Script {
    if command.len() > MAX_BYTES {
        let mut script = Script::default();
        script.doubt(format!("longer than {MAX_BYTES} bytes"), MAX_BYTES);
        return script;
    }
    let mut reader = Reader::new(command);
    if let Some((at, c)) = command.char_indices().find(|(_, c)| is_hidden(*c)) {
        reader.script.doubt(
            format!("a character that cannot be seen, U+{:04X}", u32::from(c)),
            at,
        );
    }
    if let Err(unclear) = reader.list(&[]) {
        reader.script.doubt(unclear.reason, unclear.at);
    } else if !reader.waiting.is_empty() {
        reader
            .script
            .doubt("a here-document without its body", command.len());
    }
    let Reader {
        mut script, names, ..
    } = reader;
    if script.unclear.is_none()
        && let Err(unclear) = opinion::compare(command, &names)
    {
        script.doubt(unclear.reason, unclear.at);
    }
    wrappers::look_through(script, level)
}

/// Control characters, and those that look like nothing or like a blank, which is not what a shell
/// takes them for.
fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' | ' ' => false,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control() || other.is_whitespace(),
    }
}
