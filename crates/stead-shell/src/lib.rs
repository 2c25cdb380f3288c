//! Parsing command lines, and judging them by rules.
//!
//! Nothing here runs anything. [`parse`] turns a command line into [`CommandPart`]s, one for each
//! command that would run anywhere in it; [`judge`] applies [`CommandRules`] to them. A command line
//! that cannot be parsed with certainty is never allowed. Outside a sandbox, a rule without a
//! wildcard allows exactly its words, and a rule with one allows only reads.
//!
//! ```
//! use stead_core::VerdictKind;
//! use stead_shell::{CommandRules, judge};
//!
//! let rules = r#"{"allow": ["cargo test", "git log *"], "deny": ["rm *"]}"#;
//! let rules: CommandRules = serde_json::from_str(rules)?;
//! assert_eq!(judge(&rules, "cargo test").kind, VerdictKind::Allow);
//! assert_eq!(judge(&rules, "cargo test --all").reason, "no rule allows `cargo`");
//! assert_eq!(judge(&rules, "git log --oneline -5").kind, VerdictKind::Allow);
//! assert_eq!(judge(&rules, "git log --output=x").kind, VerdictKind::Ask);
//! assert_eq!(judge(&rules, "cargo test; timeout 5 sh -c 'rm -r src'").reason, "commands.deny: rm *");
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Effects: none.

mod ansi;
mod cross_check;
mod expansion;
mod git_settings;
mod grammar;
mod judge;
mod judge_part;
mod line;
mod options;
mod parser;
mod pattern;
mod programs;
mod read_arguments;
mod read_only;
mod read_table;
mod rules;
mod script;
mod targets;
mod wrappers;

#[cfg(test)]
mod tests;

pub use git_settings::{git_attributes_problem, git_config_problem};
pub use judge::{AllowBasis, CommandVerdict, PartVerdict, allows, judge};
pub use line::{Confinement, ShellLine, join_folder};
pub use pattern::{CommandPattern, PatternError};
pub use programs::{ProgramFiles, UnknownProgram, program_files};
pub use read_only::{ReadDepth, ReadOnlyCheck, check_read_only};
pub use rules::{CommandRules, ReadPolicy};
pub use script::{
    Ambiguity, Assignment, CommandPart, Invocation, Redirect, RedirectKind, ShellScript, ShellWord,
    UnknownCause, WordValue,
};
pub use targets::{CommandTarget, TargetRole, command_targets, names_network};

use parser::ShellParser;

/// The maximum length of a command line that is parsed.
const MAX_BYTES: usize = 64 * 1024;
/// The maximum nesting depth of commands.
const MAX_DEPTH: usize = 100;
/// The maximum number of commands in a command line.
const MAX_PARTS: usize = 200;

/// Parses a command line into the commands it would run. This never fails: what cannot be
/// determined is in [`ShellScript::ambiguity`].
pub fn parse(command: &str) -> ShellScript {
    parse_within(command, 0)
}

/// Parses a command line inside `level` wrappers.
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

/// Whether a character is a control character, or one that is invisible or looks like a blank,
/// which a shell does not treat as a blank.
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
