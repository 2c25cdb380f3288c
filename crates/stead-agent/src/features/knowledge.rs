//! The knowledge sections of the prompt: the entry file is shown whole, the other files are listed.
//!
//! Effects: workspace files (reads).

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use stead_tools::builtin;
use stead_vfs::{FileKind, VPath, VfsError};
use stead_workspace::{ReadWindow, Section, SectionCut, WorkspaceError, enclose, section_order};

/// The name of the entry file in the knowledge folder.
const ENTRY: &str = "KNOWLEDGE.md";
/// The most bytes of the entry file that are shown.
const MAX_ENTRY_BYTES: u64 = 128 * 1024;
/// The most files that are listed.
const MAX_LISTED: usize = 200;
/// The most entries of a folder that are read.
const MAX_WALKED: usize = 2 * MAX_LISTED;

/// The sections about knowledge.
#[derive(Debug)]
pub(super) struct KnowledgeFeature;

impl Feature for KnowledgeFeature {
    fn name(&self) -> &'static str {
        "knowledge"
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let Some(folder) = &cx.definition().paths.knowledge else {
                return Ok(Contribution::default());
            };
            let own = cx.user_version(folder);
            let roots: Vec<&VPath> = own.iter().chain([folder]).collect();
            let (entry, source) = self.entry(cx, &roots).await?;
            let KnowledgeListing { files, more } = list(cx, &roots).await?;
            if entry.is_none() && files.is_empty() {
                return Ok(Contribution::default());
            }
            let mut parts: Vec<String> = entry.iter().map(|(text, _)| text.clone()).collect();
            let mut cuts: Vec<SectionCut> = entry.into_iter().filter_map(|(_, cut)| cut).collect();
            if !files.is_empty() {
                parts.push(format!("Knowledge files:\n{}", files.join("\n")));
            }
            if more {
                let what = format!("only the first {MAX_LISTED} files are listed");
                parts.push(format!(
                    "[{what}; find others with {}]",
                    cx.name_of(&builtin::GLOB_FILES)
                ));
                cuts.push(SectionCut {
                    source: folder.to_string(),
                    what,
                });
            }
            let text = enclose("domain_knowledge_context", &parts.join("\n\n"));
            let mut shown = Section::new("knowledge", self.name(), section_order::KNOWLEDGE, text)
                .as_loaded_file()
                .with_cuts(cuts);
            shown.sources.extend(source);
            shown.sources.push(format!("{folder}/"));
            let help = Section::new(
                "domain knowledge",
                self.name(),
                section_order::DOMAIN_KNOWLEDGE,
                help(cx, folder),
            );
            Ok(vec![help, shown].into())
        })
    }
}

impl KnowledgeFeature {
    /// Reads the entry file. Returns its text, what was cut from it, and its path.
    async fn entry(
        &self,
        cx: &TurnCx<'_>,
        roots: &[&VPath],
    ) -> Result<(Option<(String, Option<SectionCut>)>, Option<String>), WorkspaceError> {
        for root in roots {
            let Ok(path) = root.join(ENTRY) else { continue };
            let window = ReadWindow::Head {
                limit: MAX_ENTRY_BYTES,
            };
            let Some(entry) = cx.reader().read(&**cx.files, &path, window).await? else {
                continue;
            };
            let text = entry.text.trim();
            if entry.size <= MAX_ENTRY_BYTES {
                return Ok((Some((text.to_owned(), None)), Some(path.to_string())));
            }
            let what = format!(
                "its last {} of {} bytes were left out",
                entry.cut_bytes(),
                entry.size
            );
            let text = format!("{text}\n[{path}: {what}; read the file for the rest]");
            let cut = SectionCut {
                source: path.to_string(),
                what,
            };
            return Ok((Some((text, Some(cut))), Some(path.to_string())));
        }
        Ok((None, None))
    }
}

/// The list of knowledge files.
struct KnowledgeListing {
    files: Vec<String>,
    /// Whether there are more files than are listed.
    more: bool,
}

/// Lists the files in the folders `roots`. If two folders have a file of the same name, the first
/// folder counts.
async fn list(cx: &TurnCx<'_>, roots: &[&VPath]) -> Result<KnowledgeListing, WorkspaceError> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut more = false;
    for root in roots {
        let walk = match cx.files.walk(root, None, MAX_WALKED).await {
            Ok(walk) => walk,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        more |= walk.truncated;
        let prefix = format!("{root}/");
        for (path, entry) in walk.entries {
            let Some(name) = path
                .as_str()
                .strip_prefix(&prefix)
                .filter(|name| *name != ENTRY)
            else {
                continue;
            };
            if entry.kind == FileKind::File && !path.parts().any(|part| part.starts_with('.')) {
                found
                    .entry(name.to_owned())
                    .or_insert_with(|| format!("- {path}"));
            }
        }
    }
    more |= found.len() > MAX_LISTED;
    Ok(KnowledgeListing {
        files: found.into_values().take(MAX_LISTED).collect(),
        more,
    })
}

/// Returns the text about the use of knowledge.
fn help(cx: &TurnCx<'_>, folder: &VPath) -> String {
    let search = match cx.has_tool(&builtin::GREP_FILES) {
        true => format!(
            ", or search them with `{}`",
            cx.name_of(&builtin::GREP_FILES)
        ),
        false => String::new(),
    };
    format!(
        "## Domain Knowledge\nWhat this agent knows of its field is in `{folder}/`. Its entry is shown below, the \
         other files are only listed: read those that a task needs{search}, and rely on them rather than on what you \
         assume."
    )
}
