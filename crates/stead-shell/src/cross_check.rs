//! A second reading, by tree-sitter's grammar of bash.
//!
//! Two readers that were written apart seldom make the same mistake: where they see different
//! commands, the script is unclear.

use super::script::Ambiguity;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// How often the grammar may report progress, which it does every hundred operations: far more than
/// any command line within the bounds needs, and an end to one that was made to take forever.
const MAX_PROGRESS: usize = 50_000;

/// Whether the grammar finds the names of commands exactly at `names`; if not, what it finds and
/// where.
pub(super) fn cross_check(source: &str, names: &[usize]) -> Result<(), Ambiguity> {
    let Some(tree) = parse(source) else {
        return Err(Ambiguity {
            reason: "it takes too long to read".to_owned(),
            at: 0,
        });
    };
    let theirs = command_starts(&tree)?;
    let ours: BTreeSet<usize> = names.iter().copied().collect();
    match ours.symmetric_difference(&theirs).next() {
        None => Ok(()),
        Some(at) => Err(Ambiguity {
            reason: "it can be read in two ways".to_owned(),
            at: *at,
        }),
    }
}

fn parse(source: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let mut progress = 0_usize;
    let mut step = |_: &tree_sitter::ParseState| {
        progress += 1;
        if progress > MAX_PROGRESS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let bytes = source.as_bytes();
    let options = ParseOptions::new().progress_callback(&mut step);
    parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        None,
        Some(options),
    )
}

/// Where the names of commands begin.
fn command_starts(tree: &Tree) -> Result<BTreeSet<usize>, Ambiguity> {
    let mut names = BTreeSet::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Err(Ambiguity {
                reason: "it is no valid command".to_owned(),
                at: node.start_byte(),
            });
        }
        if names_a_command(node) {
            names.insert(node.start_byte());
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Ok(names);
            }
        }
    }
}

fn names_a_command(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "command_name" | "declaration_command" | "unset_command" | "test_command"
    )
}
