//! What the output of a command may contain: words of other machines and programs, or only files.
//!
//! Effects: none.

use super::command_paths::{NamedPath, PathCertainty, PathForm};
use crate::commands::workspace_path;
use stead_core::TaintOrigin;
use stead_sandbox::Isolation;
use stead_shell::{CommandVerdict, PartVerdict, ReadDepth, TargetRole};
use stead_tools::CommandLine;
use stead_vfs::VPath;

/// Commands that go through folders and show nothing but names and numbers.
const NAME_COMMANDS: [&str; 8] = ["ls", "dir", "vdir", "find", "fd", "fdfind", "tree", "du"];

/// Where the content of a result comes from, before the files in it are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandSource {
    /// The origins of its output, whatever files it reads.
    pub(super) origins: Vec<TaintOrigin>,
    /// The files that it may read.
    pub(super) reads: Vec<FileRead>,
}

/// A file or folder whose content a result may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRead {
    pub(super) path: VPath,
    pub(super) extent: ReadExtent,
}

/// How much of a path a result may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadExtent {
    /// The file. Of a folder only names.
    File,
    /// The file, or those lines of files below the folder that are shown with their paths.
    ShownLines,
    /// The file, or the files in the folder, but none in folders below.
    Children,
    /// The file, or anything below the folder.
    Below,
}

/// Returns where the output of a command comes from. A command that certainly only reads shows the
/// files it reads; any other one also what it finds on other machines, unless whole walls keep it
/// from them.
pub(super) fn command_source(
    line: &CommandLine,
    judgement: &CommandVerdict,
    isolation: Isolation,
    named: &[NamedPath],
) -> CommandSource {
    if judgement.reads.is_some() {
        return reading_source(line, judgement);
    }
    if !isolation.is_complete() {
        return CommandSource {
            origins: vec![TaintOrigin::command(&line.text)],
            reads: Vec::new(),
        };
    }
    // What it reads is not known. What it plainly names, it may read.
    let reads = named.iter().filter(|named| match named.role {
        TargetRole::Changed | TargetRole::Argument => true,
        TargetRole::Script => false,
    });
    let reads = reads.flat_map(named_reads);
    CommandSource {
        origins: Vec::new(),
        reads: reads.collect(),
    }
}

fn reading_source(line: &CommandLine, judgement: &CommandVerdict) -> CommandSource {
    let mut source = CommandSource::default();
    for part in &judgement.parts {
        let extent = match part.depth {
            ReadDepth::Names | ReadDepth::Files => ReadExtent::File,
            ReadDepth::Below if is_name_command(part) => ReadExtent::File,
            ReadDepth::Below => ReadExtent::Below,
            // Messages and names are shown, and earlier versions of files.
            ReadDepth::Repository | ReadDepth::RepositoryFiles => ReadExtent::Below,
        };
        for path in &part.reads {
            match workspace_path(&line.cwd, path) {
                Some(path) => source.reads.push(FileRead { path, extent }),
                // Nobody vouched for what lies elsewhere on the machine.
                None => source.origins.push(TaintOrigin::command(&line.text)),
            }
        }
        if part.depth == ReadDepth::Repository {
            source.reads.push(FileRead {
                path: VPath::root(),
                extent,
            });
        }
    }
    source.origins.dedup();
    source
}

/// Returns the reads of a path that a command names. The workspace as a whole names nothing.
fn named_reads(named: &NamedPath) -> Vec<FileRead> {
    let extent = match named.form {
        PathForm::Whole => ReadExtent::Below,
        PathForm::Pattern if named.word.contains("**") => ReadExtent::Below,
        PathForm::Pattern => ReadExtent::Children,
    };
    let read = |path: VPath| FileRead { path, extent };
    let names_nothing = |path: &VPath| path.is_root() && named.form == PathForm::Whole;
    let Some(path) = named.path.clone().filter(|path| !names_nothing(path)) else {
        return Vec::new();
    };
    match named.certainty {
        PathCertainty::Workspace => vec![read(path)],
        PathCertainty::Elsewhere => super::prompt_sources::ends(&path).map(read).collect(),
    }
}

fn is_name_command(part: &PartVerdict) -> bool {
    let name = part.command.split_whitespace().next().unwrap_or_default();
    let base = name.rsplit('/').next().unwrap_or(name);
    NAME_COMMANDS.contains(&base)
}

#[cfg(test)]
mod tests {
    use super::super::command_paths::named_paths;
    use super::*;
    use stead_sandbox::Access;

    #[test]
    fn what_a_command_brings_in_follows_from_its_walls_and_from_what_it_reads() {
        let blocked = Access::Blocked { by: "a test" };
        let online = Isolation {
            files: blocked,
            processes: blocked,
            ..Isolation::NONE
        };
        let whole = Isolation {
            network: blocked,
            ..online
        };
        let command = |text: &str| vec![TaintOrigin::command(text)];
        let read = |path: &str, extent| FileRead {
            path: VPath::parse(path).unwrap(),
            extent,
        };
        use ReadExtent::{Below, File};
        #[rustfmt::skip]
        let table = [
            ("cargo test", Isolation::NONE, command("cargo test"), vec![]),
            ("cargo test", online, command("cargo test"), vec![]),
            ("cargo test", whole, vec![], vec![read("test", Below)]),
            ("cat a.md", Isolation::NONE, vec![], vec![read("a.md", File)]),
            ("cat a.md", online, vec![], vec![read("a.md", File)]),
            ("cat /etc/hosts", Isolation::NONE, command("cat /etc/hosts"), vec![]),
            ("grep -r x src", Isolation::NONE, vec![], vec![read("src", Below)]),
            ("ls -R src", Isolation::NONE, vec![], vec![read("src", File)]),
            ("cat $x", Isolation::NONE, command("cat $x"), vec![]),
            ("sort *.md", whole, vec![], vec![read(".", ReadExtent::Children)]),
            ("sort a.md > b.md", whole, vec![], vec![read("a.md", Below), read("b.md", Below)]),
        ];
        for (text, isolation, origins, reads) in table {
            let line = CommandLine {
                text: text.to_owned(),
                cwd: ".".to_owned(),
            };
            let judgement = stead_shell::judge(&Default::default(), text);
            let named = named_paths(text, ".");
            assert_eq!(
                command_source(&line, &judgement, isolation, &named),
                CommandSource { origins, reads },
                "{text}"
            );
        }
    }
}
