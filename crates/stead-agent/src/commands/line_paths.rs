//! Part of the command rules: the paths of the workspace that a command line plainly names.
//!
//! Effects: workspace files (reads), the local disk (reads).

use super::machine::MachineView;
use stead_shell::{CommandPart, ShellScript};
use stead_tools::CommandLine;
use stead_vfs::{VPath, Vfs};

/// The largest number of folders that a line may go to, for finding the files it names.
const MAX_FOLDERS: usize = 16;

/// A command line, for finding the paths that it names.
pub(crate) struct LinePaths<'a> {
    pub(super) machine: &'a MachineView,
    pub(super) script: ShellScript,
    /// The folder in which the line starts.
    pub(super) start: String,
}

impl<'a> LinePaths<'a> {
    /// Reads a command line of a call.
    pub(crate) async fn new(files: &dyn Vfs, machine: &'a MachineView, line: &CommandLine) -> Self {
        Self {
            machine,
            script: stead_shell::parse(&line.text),
            start: resolved_folder(files, &line.cwd).await,
        }
    }

    /// Returns the paths of the workspace that words may mean in any folder to which the line goes.
    pub(crate) async fn located(&self, words: &[&str]) -> Vec<VPath> {
        let mut paths = Vec::new();
        for folder in self.folders().await {
            for word in words {
                let places = self.machine.locate(&folder, word).await;
                paths.extend(places.inside);
            }
        }
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns everything in the workspace that the line names: the folders in which it runs, and
    /// the files among its words.
    pub(crate) async fn all(&self) -> Vec<VPath> {
        let words = self.script.parts.iter().flat_map(path_words);
        let targets = self.script.parts.iter().flat_map(|part| &part.redirects);
        let targets = targets.filter_map(|redirect| redirect.target.known());
        let words: Vec<&str> = words.chain(targets).chain(["."]).collect();
        self.located(&words).await
    }

    /// Returns the folders in which parts of the line may run, as far as it names them.
    async fn folders(&self) -> Vec<String> {
        let mut folders = vec![self.start.clone()];
        for word in self.script.parts.iter().filter_map(new_folder) {
            for folder in folders.clone() {
                let places = self.machine.locate(&folder, word).await;
                for path in places.inside {
                    let path = path.to_string();
                    if !folders.contains(&path) && folders.len() < MAX_FOLDERS {
                        folders.push(path);
                    }
                }
            }
        }
        folders
    }
}

/// Returns the words of a part that may be paths: its arguments, and the values of its options.
pub(super) fn path_words(part: &CommandPart) -> Vec<&str> {
    let words = part.words.iter().skip(1).filter_map(|word| word.known());
    words
        .filter_map(|word| match (word.starts_with('-'), word.split_once('=')) {
            (_, Some((_, value))) => Some(value),
            (true, None) => None,
            (false, None) => Some(word),
        })
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the folder that a part goes to.
fn new_folder(part: &CommandPart) -> Option<&str> {
    match part.name()? {
        "cd" | "pushd" | "chdir" => part.words.get(1)?.known(),
        _ => None,
    }
}

/// Returns a folder of the workspace with links followed.
async fn resolved_folder(files: &dyn Vfs, folder: &str) -> String {
    let Ok(path) = VPath::parse(folder) else {
        return folder.to_owned();
    };
    match files.resolve(&path).await {
        Ok(real) => real.to_string(),
        Err(_) => path.to_string(),
    }
}
