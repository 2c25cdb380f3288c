//! The place for tests of the OpenPaw, Deep Agents and AgentScope Python layouts; this file has
//! their shared support.

mod agentscope_py;
mod deepagents;
mod deepagents_deploy;
mod openpaw;
mod openpaw_errors;
mod openpaw_keys;
mod scaffolds;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use stead_vfs::{Expect, StoreVfs, VPath, Vfs};
use stead_workspace::{Definition, Finding, OpenOptions, Severity, Workspace, WorkspaceError};

/// Files by path.
type Tree = BTreeMap<String, Vec<u8>>;

/// The files of a folder of `tests/fixtures`.
fn fixture(name: &str) -> Tree {
    fn walk(dir: &Path, root: &Path, tree: &mut Tree) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, root, tree);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                tree.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    let mut tree = Tree::new();
    walk(&root, &root, &mut tree);
    tree
}

fn tree(files: &[(&str, &str)]) -> Tree {
    files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

async fn files(tree: &Tree) -> Arc<dyn Vfs> {
    let vfs = StoreVfs::in_memory();
    for (path, content) in tree {
        vfs.write(
            &VPath::parse(path).unwrap(),
            content.clone().into(),
            Expect::Absent,
        )
        .await
        .unwrap();
    }
    Arc::new(vfs)
}

/// Opens a tree, with no variable set in the process.
async fn open(tree: &Tree, options: &OpenOptions) -> Result<Definition, Vec<Finding>> {
    match Workspace::open(files(tree).await, options, &|_| None).await {
        Ok(workspace) => Ok(workspace.definition),
        Err(WorkspaceError::Invalid(findings)) => Err(findings),
        Err(other) => panic!("{other}"),
    }
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Findings as a person reads them.
fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

/// Those that `stead check` fails on.
fn failing(definition: &Definition) -> Vec<String> {
    definition
        .findings
        .iter()
        .filter(|f| f.severity >= Severity::NonFatal)
        .map(ToString::to_string)
        .collect()
}
