//! Command lines: what they would run, what only reads, and what the rules say of it.
//!
//! Nothing here runs anything. [`parse`] turns a command line into [`CommandPart`]s, one per command that
//! would run anywhere in it; [`judge`] puts them to [`CommandRules`]. What cannot be read for
//! certain is never allowed. This decides what a person is asked, not what a process can do: that
//! is the sandbox's part.
//!
//! ```
//! use stead_core::VerdictKind;
//! use stead_shell::{CommandRules, judge};
//!
//! let rules: CommandRules = serde_json::from_str(r#"{"allow": ["cargo test *"], "deny": ["rm *"]}"#)?;
//! assert_eq!(judge(&rules, "cargo test -p core").kind, VerdictKind::Allow);
//! assert_eq!(judge(&rules, "cargo test; timeout 5 sh -c 'rm -r src'").reason, "commands.deny: rm *");
//! assert_eq!(judge(&rules, "cargo test $(curl x.org)").reason, "no rule allows `curl`");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod ansi;
mod cross_check;
mod escapes;
mod expansion;
mod grammar;
mod judge;
mod options;
mod parser;
mod pattern;
mod read_only;
mod read_table;
mod rules;
mod script;
mod suggest;
mod wrappers;

#[cfg(test)]
mod tests;

pub use judge::{CommandVerdict, PartVerdict, allows, judge};
pub use pattern::{CommandPattern, PatternError};
pub use read_only::{ReadDepth, ReadOnlyCheck, check_read_only};
pub use rules::{CommandRules, ReadPolicy};
pub use script::{
    Ambiguity, Assignment, CommandPart, Invocation, Redirect, RedirectKind, ShellScript, ShellWord,
    UnknownCause, WordValue,
};
pub use suggest::suggest_rules;

use parser::ShellParser;

/// A longer command line is not read.
const MAX_BYTES: usize = 64 * 1024;
/// Commands inside of commands.
const MAX_DEPTH: usize = 100;
/// Commands in one command line.
const MAX_PARTS: usize = 200;

/// What a command line would run. It never fails: what cannot be told is [`ShellScript::ambiguity`].
pub fn parse(command: &str) -> ShellScript {
    parse_within(command, 0)
}

/// Parses what stands inside of `level` wrappers.
fn parse_within(command: &str, level: usize) -> ShellScript {
    if command.len() > MAX_BYTES {
        let mut script = ShellScript::default();
        script.mark_ambiguous(format!("longer than {MAX_BYTES} bytes"), MAX_BYTES);
        return script;
    }
    let mut reader = ShellParser::new(command);
    if let Some((at, c)) = command.char_indices().find(|(_, c)| is_hidden(*c)) {
        reader.script.mark_ambiguous(
            format!("a character that cannot be seen, U+{:04X}", u32::from(c)),
            at,
        );
    }
    if let Err(unclear) = reader.list(&[]) {
        reader.script.mark_ambiguous(unclear.reason, unclear.at);
    } else if !reader.pending_heredocs.is_empty() {
        reader
            .script
            .mark_ambiguous("a here-document without its body", command.len());
    }
    let ShellParser {
        mut script, names, ..
    } = reader;
    if script.ambiguity.is_none()
        && let Err(unclear) = cross_check::cross_check(command, &names)
    {
        script.mark_ambiguous(unclear.reason, unclear.at);
    }
    wrappers::expand_wrappers(script, level)
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
