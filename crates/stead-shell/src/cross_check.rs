//! A second parse of command lines, by tree-sitter's grammar of bash.
//!
//! Two independent parsers rarely make the same mistake: where they find different commands, the
//! script is ambiguous.
//!
//! Effects: none.

use super::script::Ambiguity;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// The maximum number of progress reports of the grammar, one for every hundred operations. It is
/// far more than any valid command line needs, and stops one that was crafted to take forever.
const MAX_PROGRESS: usize = 50_000;

/// Checks that the grammar finds command names exactly at `names`.
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

/// Returns the offsets of all command names.
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
