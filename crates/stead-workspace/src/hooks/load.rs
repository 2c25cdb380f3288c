//! Loading a folder of hooks.
//!
//! Effects: workspace files (reads).

use super::raw::{HandlerKind, RawHandler, RawHook};
use super::{Handler, HookSpec, Matcher, Program};
use crate::folder_trust::{CommandNames, TooManyNames, named_files, names_of_hook};
use crate::layout::{Draft, SettingsRoot, TextOr, TextSource, list_definitions, suggestion};
use crate::{SettingsDocument, Severity};
use std::time::Duration;
use stead_core::VariableSyntax;
use stead_model::ModelSettings;
use stead_vfs::VPath;

/// The default time limit of a hook.
const DEFAULT_TIMEOUT_SECONDS: u64 = 30;

/// A function that finds the model with a name. The error has a severity.
type FindModel<'a> = dyn Fn(&str) -> Result<ModelSettings, (Severity, String)> + Sync + 'a;

/// The items that a hook may refer to.
pub(crate) struct HookReferences<'a> {
    /// The function that finds models.
    pub(crate) model: &'a FindModel<'a>,
    /// The names of agents.
    pub(crate) agents: Vec<&'a str>,
}

/// Loads every hook of `folder`, in the order of file names, and notes all problems.
pub(crate) async fn load_hooks(draft: &mut Draft<'_>, folder: &str, known: &HookReferences<'_>) {
    for path in list_definitions(draft, SettingsRoot::Workspace, folder, ".yaml").await {
        // `${X}` belongs to the shell; `${env.X}` is a variable.
        let Some(document) = draft
            .load_yaml_in(SettingsRoot::Workspace, &path, VariableSyntax::Env)
            .await
        else {
            continue;
        };
        let Some(raw) = draft.ok_or_note(document.deserialize_into::<RawHook>()) else {
            continue;
        };
        let problems = raw.problems();
        for (key, message) in &problems {
            draft.note(document.error(key, format!("{key}: {message}")));
        }
        for (key, message) in raw.unused_capabilities() {
            draft.note(document.finding(Severity::Warning, &key, format!("{key}: {message}")));
        }
        let name = raw.name.clone();
        let handler = resolve_handler(draft, &document, &raw.handler, known).await;
        if draft.hooks.iter().any(|hook| hook.name == name) {
            draft.note(document.error(
                "name",
                format!("name: there are two hooks `{name}`; rename one"),
            ));
            continue;
        }
        if let Some(handler) = handler.filter(|_| problems.is_empty()) {
            let files = match hook_files(draft, &raw.handler, &handler).await {
                Ok(files) => files,
                Err(why) => {
                    let key = "handler.command";
                    draft.note(document.error(key, format!("{key}: {why}")));
                    continue;
                }
            };
            draft.hooks.push(HookSpec {
                files,
                ..hook_spec(raw, &path, handler)
            });
        }
    }
}

fn hook_spec(raw: RawHook, path: &str, handler: Handler) -> HookSpec {
    let seconds = raw
        .timeout_seconds
        .or(raw.handler.timeout_seconds)
        .unwrap_or(DEFAULT_TIMEOUT_SECONDS);
    HookSpec {
        name: raw.name,
        source: path.to_owned(),
        files: Vec::new(),
        events: raw.events.iter().map(|written| written.trigger()).collect(),
        matcher: raw.matcher.as_deref().and_then(Matcher::new),
        handler,
        capabilities: raw.capabilities.into_iter().collect(),
        timeout: Duration::from_secs(seconds),
        on_failure: raw.on_failure,
    }
}

/// Returns the files of the folder that decide what a hook does: those that its command names, and
/// the file of its prompt or task. Of a link, both the link and its target.
async fn hook_files(
    draft: &Draft<'_>,
    raw: &RawHandler,
    handler: &Handler,
) -> Result<Vec<VPath>, TooManyNames> {
    let texts = [raw.prompt.as_ref(), raw.task.as_ref()];
    let texts = texts.into_iter().flatten().filter_map(|text| match text {
        TextOr::Text(_) => None,
        TextOr::Settings(source) => source.file(),
    });
    let words: Vec<String> = texts.map(str::to_owned).collect();
    let of_texts = CommandNames {
        words,
        ..CommandNames::default()
    };
    let mut files = named_files(&of_texts, &VPath::root(), draft.files()).await?;
    if let Handler::Command { program, cwd, env } = handler {
        let names = names_of_hook(program, env);
        files.extend(named_files(&names, cwd, draft.files()).await?);
    }
    Ok(files.into_iter().collect())
}

async fn resolve_handler(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    raw: &RawHandler,
    known: &HookReferences<'_>,
) -> Option<Handler> {
    match raw.kind {
        HandlerKind::Command => resolve_command(draft, document, raw),
        HandlerKind::Http => {
            let headers = raw.headers.clone().unwrap_or_default();
            Some(Handler::Http {
                url: raw.url.clone()?,
                method: raw.method.unwrap_or_default(),
                headers,
            })
        }
        HandlerKind::Prompt => {
            let prompt = load_text(draft, document, "handler.prompt", raw.prompt.as_ref()).await;
            let (key, name) = match &raw.model {
                Some(name) => ("handler.model", Some(name)),
                None => ("handler.model_ref", raw.model_ref.as_ref()),
            };
            let model = match name.map(|name| (known.model)(name)) {
                None => None,
                Some(Ok(settings)) => Some(Box::new(settings)),
                // If this is not an error, another model is used.
                Some(Err((severity, message))) => {
                    draft.note(document.finding(severity, key, format!("{key}: {message}")));
                    None
                }
            };
            Some(Handler::Prompt {
                prompt: prompt?,
                model,
            })
        }
        HandlerKind::Agent => {
            let agent = raw.agent.clone()?;
            if !known.agents.contains(&agent.as_str()) {
                let hint = suggestion(&agent, known.agents.iter().copied());
                let message = format!("handler.agent: there is no agent `{agent}`{hint}");
                draft.note(document.error("handler.agent", message));
            }
            Some(Handler::Agent {
                agent,
                task: load_text(draft, document, "handler.task", raw.task.as_ref()).await?,
            })
        }
    }
}

fn resolve_command(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    raw: &RawHandler,
) -> Option<Handler> {
    let command = raw.command.clone()?;
    let cwd = match VPath::parse(raw.cwd.as_deref().unwrap_or(".")) {
        Ok(cwd) => cwd,
        Err(error) => {
            draft.note(document.error("handler.cwd", format!("handler.cwd: {error}")));
            return None;
        }
    };
    let program = match &raw.args {
        None => Program::Shell(command),
        Some(args) => Program::Direct {
            program: command,
            args: args.clone(),
        },
    };
    let env = raw
        .env
        .clone()
        .or_else(|| raw.environment.clone())
        .unwrap_or_default();
    Some(Handler::Command { program, cwd, env })
}

/// Loads a text that is in the file itself or in another file. Missing texts are reported
/// elsewhere.
async fn load_text(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    key: &str,
    given: Option<&TextOr<TextSource>>,
) -> Option<String> {
    match given? {
        TextOr::Text(text) if text.trim().is_empty() => {
            draft.note(document.error(key, format!("{key}: is empty")));
            None
        }
        TextOr::Text(text) => Some(text.trim().to_owned()),
        TextOr::Settings(source) => source.load(draft, document, key).await,
    }
}
