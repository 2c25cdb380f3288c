//! The base sections of the prompt: the persona, the workspace and the facts of the session.
//!
//! Effects: none.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_place::{PlaceKind, ProjectAccess};
use stead_tools::builtin;
use stead_workspace::{
    AgentSpec, FixedText, Section, Surface, WorkspaceError, enclose, section_order,
};

const BASE_PROMPT: &str = "You are an agent that works in a folder of plain files, the workspace, with the tools you are given. \
Do the task; do not only describe it. Read before you change, make the smallest change that does the job, and check your work. \
When a call fails, read the error and act on it instead of repeating the call. \
When you are done, say briefly what you did and what is left.";

/// The base sections of the prompt: the persona, the workspace and the facts of the session.
#[derive(Debug)]
pub(super) struct BaseFeature;

impl Feature for BaseFeature {
    fn name(&self) -> &'static str {
        "base"
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let definition = cx.definition();
            let section =
                |title: &str, order, text: String| Section::new(title, self.name(), order, text);
            let config = &definition.config;
            let mut sections = vec![section("base", section_order::BASE, BASE_PROMPT.to_owned())];
            if let Some(description) = &config.description {
                let text = format!("What you are for: {}", description.trim());
                sections.push(
                    section("purpose", section_order::PURPOSE, text).with_source(settings_file(cx)),
                );
            }
            if let Some(prompt) = &config.system_prompt {
                sections.push(
                    section("persona", section_order::PERSONA, prompt.trim().to_owned())
                        .with_source(settings_file(cx)),
                );
            }
            let own_prompt = cx.profile.profile.general_purpose.prompt.as_ref();
            let own_prompt = own_prompt.filter(|_| {
                definition
                    .active_spec()
                    .is_some_and(AgentSpec::is_general_purpose)
            });
            sections.extend(definition.texts.iter().map(|text| match own_prompt {
                Some(prompt) if text.order == section_order::PERSONA => {
                    self.fixed_section(&FixedText {
                        text: prompt.clone(),
                        ..text.clone()
                    })
                }
                Some(_) | None => self.fixed_section(text),
            }));
            if let Some(text) = workspace_section(cx) {
                sections.push(section("workspace", section_order::WORKSPACE, text));
            }
            sections.push(section(
                "session",
                section_order::SESSION,
                session_section(cx),
            ));
            Ok(sections.into())
        })
    }
}

impl BaseFeature {
    /// Returns a section of the prompt that comes from settings.
    fn fixed_section(&self, text: &FixedText) -> Section {
        let body = match &text.tag {
            Some(tag) => enclose(tag, text.text.trim()),
            None => text.text.trim().to_owned(),
        };
        Section::new(&text.title, self.name(), text.order, body).with_source(&text.source)
    }
}

/// Returns the name of the file with the settings of the agent, as the source of sections.
fn settings_file(cx: &TurnCx<'_>) -> String {
    let origin = cx.definition().origins.values().next();
    origin.map_or_else(|| "agent.yaml".to_owned(), |origin| origin.source.clone())
}

/// Returns the text about the workspace and its files; `None` if the agent has no file tools.
fn workspace_section(cx: &TurnCx<'_>) -> Option<String> {
    let basic = [
        builtin::READ_FILE,
        builtin::WRITE_FILE,
        builtin::EDIT_FILE,
        builtin::LS,
    ];
    if !basic.iter().any(|tool| cx.has_tool(tool)) {
        return None;
    }
    let mut text = String::from("## Workspace\n");
    text.push_str(match cx.place.0 {
        PlaceKind::Local => {
            "Paths in tool calls are relative to the workspace root, as is a leading `/`; nothing outside it can be \
             reached."
        }
        PlaceKind::Store => {
            "The workspace lies in a store. Paths are relative to its root, as is a leading \
             `/`. What you write is kept for the sessions that share it; a file of the common template is replaced \
             only for them."
        }
    });
    push_tool_help(&mut text, cx);
    if let Some(folder) = &cx.definition().paths.default_dir {
        text.push_str(&format!(
            " Files that you write outside the known folders go to `{folder}/`."
        ));
    }
    text.push_str(match cx.project {
        None => "",
        Some(ProjectAccess::ReadOnly) => {
            " The person's project is attached as `project/`; it can be read, not changed."
        }
        Some(ProjectAccess::Writable) => {
            " The person's project is attached as `project/`; changes to it wait for the person's yes."
        }
    });
    Some(text)
}

/// Adds a sentence about how to use each file tool that needs one.
fn push_tool_help(text: &mut String, cx: &TurnCx<'_>) {
    if cx.has_tool(&builtin::GREP_FILES) && cx.has_tool(&builtin::GLOB_FILES) {
        let grep = cx.name_of(&builtin::GREP_FILES);
        let glob = cx.name_of(&builtin::GLOB_FILES);
        text.push_str(&format!(
            " Search with `{grep}` and `{glob}` before reading many files."
        ));
    }
    if cx.has_tool(&builtin::EDIT_FILE) {
        let edit = cx.name_of(&builtin::EDIT_FILE);
        text.push_str(&format!(" `{edit}` replaces exact text."));
    }
    if cx.has_tool(&builtin::WRITE_FILE) {
        text.push_str(match cx.surface {
            Surface::Snake => " `write_file` replaces a file only if `mode` says so.",
            Surface::Title => {
                " `Write` replaces a file only if you have read it and it did not change since."
            }
        });
    }
}

/// Returns the text about the session.
fn session_section(cx: &TurnCx<'_>) -> String {
    let TurnCx {
        date,
        agent,
        session,
        place,
        working_folder: folder,
        ..
    } = cx;
    let os = std::env::consts::OS;
    // The address of a store is of no use to the model.
    let place = match place.0 {
        PlaceKind::Local => place.1.as_str(),
        PlaceKind::Store => "a store",
    };
    let mut text = format!("## Session Context\n- Date: {date}\n- OS: {os}\n- Workspace: {place}");
    if !folder.is_root() {
        text.push_str(&format!("\n- Working folder: {folder}"));
    }
    // Where a workspace defines several agents, the one that acts.
    let acting = cx.definition().active.as_deref().unwrap_or(agent.as_str());
    text.push_str(&format!("\n- Agent: {acting}\n- Session: {session}"));
    text
}
