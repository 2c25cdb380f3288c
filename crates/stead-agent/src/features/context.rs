//! Context files: the persona and other files whose text is in the prompt, up to
//! [`MAX_SHOWN_BYTES`]. Reads files under the file rules of the session; writes nothing.
//!
//! Effects: workspace files (reads).

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_vfs::VPath;
use stead_workspace::{
    ContextFile, ContextRendering, Nested, ReadWindow, Section, SectionCut, WorkspaceError,
    enclose, section_order,
};

/// The size of the largest context file. A larger one is an error.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The rules of a project, and how another file imports them.
const AGENTS_FILE: &str = "AGENTS.md";
const AGENTS_IMPORT: &str = "@AGENTS.md";
/// The most bytes of one context file that are shown, together with the files of the same name down
/// to the working folder.
pub(crate) const MAX_SHOWN_BYTES: usize = 256 * 1024;

/// The sections of context files.
#[derive(Debug)]
pub(super) struct ContextFeature;

impl Feature for ContextFeature {
    fn name(&self) -> &'static str {
        "context"
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let mut sections = Vec::new();
            for (i, file) in cx.definition().paths.context.iter().enumerate() {
                let order = match (i, file.rendering) {
                    (_, ContextRendering::Notes) => section_order::NOTES,
                    (
                        0,
                        ContextRendering::Whole
                        | ContextRendering::WithoutComments
                        | ContextRendering::UnlessRepeated,
                    ) => section_order::CONTEXT,
                    (
                        _,
                        ContextRendering::Whole
                        | ContextRendering::WithoutComments
                        | ContextRendering::UnlessRepeated,
                    ) => section_order::MORE_CONTEXT,
                };
                let chain = read_chain(cx, file).await?;
                sections.extend(chain_section(file, chain, order, self.name()));
            }
            Ok(sections.into())
        })
    }
}

/// Reads a context file and, if it is nested, the files of the same name in every folder down to
/// the working folder.
async fn read_chain(
    cx: &TurnCx<'_>,
    file: &ContextFile,
) -> Result<Vec<(VPath, String)>, WorkspaceError> {
    let mut chain = Vec::new();
    // The user's own version replaces the workspace's file.
    let user_version = cx.user_version(&file.path);
    for path in user_version.iter().chain([&file.path]) {
        if let Some(text) = read(cx, path, file.rendering).await? {
            chain.push((path.clone(), text));
            break;
        }
    }
    if file.nested == Nested::No {
        return Ok(chain);
    }
    let mut folder = VPath::root();
    for name in cx.working_folder.parts() {
        let Ok(below) = folder.join(name) else { break };
        folder = below;
        let Ok(path) = folder.join(file.path.name()) else {
            continue;
        };
        if let Some(text) = read(cx, &path, file.rendering).await? {
            chain.push((path, text));
        }
    }
    Ok(chain)
}

/// Returns what is shown of a file; `None` if there is nothing to show.
async fn read(
    cx: &TurnCx<'_>,
    path: &VPath,
    rendering: ContextRendering,
) -> Result<Option<String>, WorkspaceError> {
    match rendering {
        ContextRendering::Whole | ContextRendering::WithoutComments | ContextRendering::Notes => {
            let text = read_whole(cx, path).await?;
            Ok(text.and_then(|text| shown(&text, rendering)))
        }
        ContextRendering::UnlessRepeated => {
            // That it cannot be read was told when the workspace was opened.
            let text = read_whole(cx, path).await.ok().flatten();
            let Some(text) = text.and_then(|text| shown(&text, rendering)) else {
                return Ok(None);
            };
            let beside = path
                .parent()
                .and_then(|folder| folder.join(AGENTS_FILE).ok());
            let agents = match beside {
                Some(agents) => read_whole(cx, &agents).await.ok().flatten(),
                None => None,
            };
            let repeats = agents.is_some_and(|agents| agents.trim() == text);
            Ok((!repeats && text != AGENTS_IMPORT).then_some(text))
        }
    }
}

fn shown(text: &str, rendering: ContextRendering) -> Option<String> {
    let text = rendering.render(text).map(|text| text.trim().to_owned());
    text.filter(|text| !text.is_empty())
}

async fn read_whole(cx: &TurnCx<'_>, path: &VPath) -> Result<Option<Arc<str>>, WorkspaceError> {
    let window = ReadWindow::Whole {
        limit: MAX_FILE_BYTES,
    };
    let file = cx.reader().read(&**cx.files, path, window).await?;
    Ok(file.map(|file| file.text))
}

/// Returns the files as one section. If they are too long, those nearest to the working folder are
/// kept.
fn chain_section(
    file: &ContextFile,
    chain: Vec<(VPath, String)>,
    order: u16,
    owner: &'static str,
) -> Option<Section> {
    let mut left = MAX_SHOWN_BYTES;
    let mut cuts = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for (path, text) in chain.iter().rev() {
        let shown = &text[..text.floor_char_boundary(left.min(text.len()))];
        if shown.len() < text.len() {
            let notice = format!(
                "{} of {} bytes were left out; read the file for the rest",
                text.len() - shown.len(),
                text.len()
            );
            cuts.push(SectionCut {
                source: path.to_string(),
                what: notice.clone(),
            });
            texts.push(format!("{shown}\n\n[{path}: {notice}]"));
        } else if *path == file.path || chain.len() == 1 {
            texts.push(shown.to_owned());
        } else {
            texts.push(format!(
                "[From {path}, for work below {}:]\n{shown}",
                path.parent().unwrap_or(VPath::root())
            ));
        }
        left -= shown.len();
    }
    if texts.is_empty() {
        return None;
    }
    texts.reverse();
    let title = if order == section_order::CONTEXT {
        "persona".to_owned()
    } else {
        file.path.to_string()
    };
    let section = Section::new(title, owner, order, enclose(&file.tag, &texts.join("\n\n")))
        .as_loaded_file()
        .with_cuts(cuts);
    Some(chain.into_iter().fold(section, |section, (path, _)| {
        section.with_source(path.to_string())
    }))
}
