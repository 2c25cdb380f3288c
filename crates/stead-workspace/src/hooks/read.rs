//! Reading a folder of hooks.

use super::raw::{HandlerKind, Raw, RawHandler};
use super::{Handler, HookSpec, Matcher, Program};
use crate::layout::{Draft, Side, Source, TextOr, definitions, instead};
use crate::variables::Marks;
use crate::{Document, Severity};
use std::time::Duration;
use stead_model::ModelSettings;
use stead_vfs::VPath;

/// How long a hook may take unless it says so.
const USUAL_SECONDS: u64 = 30;

/// The model that a name means; or why there is none, and how bad that is.
type FindModel<'a> = dyn Fn(&str) -> Result<ModelSettings, (Severity, String)> + 'a;

/// What a hook may refer to.
pub(crate) struct Known<'a> {
    /// Finds models.
    pub(crate) model: &'a FindModel<'a>,
    /// Names of agents.
    pub(crate) agents: Vec<&'a str>,
    /// Folders whose files the agent cannot change.
    pub(crate) kept: &'a [&'a str],
}

/// Reads every hook of `folder`, by the names of their files; all that is wrong with any is noted.
pub(crate) async fn read(draft: &mut Draft<'_>, folder: &str, known: &Known<'_>) {
    for path in definitions(draft, Side::Folder, folder, ".yaml").await {
        // `${X}` is for the shell; `${env.X}` is a variable.
        let Some(document) = draft.yaml_in(Side::Folder, &path, Marks::Env).await else {
            continue;
        };
        let Some(raw) = draft.take(document.typed::<Raw>()) else {
            continue;
        };
        let problems = raw.problems();
        for (key, message) in &problems {
            draft.note(document.error(key, format!("{key}: {message}")));
        }
        for (key, message) in raw.idle() {
            draft.note(document.finding(Severity::Warning, &key, format!("{key}: {message}")));
        }
        let name = raw.name.clone();
        let handler = handler(draft, &document, &raw.handler, known).await;
        if draft.hooks.iter().any(|hook| hook.name == name) {
            draft.note(document.error(
                "name",
                format!("name: there are two hooks `{name}`; rename one"),
            ));
            continue;
        }
        if let Some(handler) = handler.filter(|_| problems.is_empty()) {
            draft.hooks.push(spec(raw, &path, handler));
        }
    }
}

fn spec(raw: Raw, path: &str, handler: Handler) -> HookSpec {
    let seconds = raw
        .timeout_seconds
        .or(raw.handler.timeout_seconds)
        .unwrap_or(USUAL_SECONDS);
    HookSpec {
        name: raw.name,
        source: path.to_owned(),
        events: raw.events.iter().map(|written| written.on()).collect(),
        matcher: raw.matcher.as_deref().and_then(Matcher::new),
        handler,
        capabilities: raw.capabilities.into_iter().collect(),
        timeout: Duration::from_secs(seconds),
        on_failure: raw.on_failure,
    }
}

async fn handler(
    draft: &mut Draft<'_>,
    document: &Document,
    raw: &RawHandler,
    known: &Known<'_>,
) -> Option<Handler> {
    match raw.kind {
        HandlerKind::Command => command(draft, document, raw, known).await,
        HandlerKind::Http => {
            let headers = raw.headers.clone().unwrap_or_default();
            Some(Handler::Http {
                url: raw.url.clone()?,
                method: raw.method.unwrap_or_default(),
                headers,
            })
        }
        HandlerKind::Prompt => {
            let prompt = words(draft, document, "handler.prompt", raw.prompt.as_ref()).await;
            let (key, name) = match &raw.model {
                Some(name) => ("handler.model", Some(name)),
                None => ("handler.model_ref", raw.model_ref.as_ref()),
            };
            let model = match name.map(|name| (known.model)(name)) {
                None => None,
                Some(Ok(settings)) => Some(Box::new(settings)),
                // Where that is no error, another model is used anyway.
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
                let hint = instead(&agent, known.agents.iter().copied());
                let message = format!("handler.agent: there is no agent `{agent}`{hint}");
                draft.note(document.error("handler.agent", message));
            }
            Some(Handler::Agent {
                agent,
                task: words(draft, document, "handler.task", raw.task.as_ref()).await?,
            })
        }
    }
}

async fn command(
    draft: &mut Draft<'_>,
    document: &Document,
    raw: &RawHandler,
    known: &Known<'_>,
) -> Option<Handler> {
    let command = raw.command.clone()?;
    let cwd = match VPath::parse(raw.cwd.as_deref().unwrap_or(".")) {
        Ok(cwd) => cwd,
        Err(error) => {
            draft.note(document.error("handler.cwd", format!("handler.cwd: {error}")));
            return None;
        }
    };
    let program = command
        .split_whitespace()
        .next()
        .and_then(|program| cwd.join(program).ok());
    let kept = |path: &VPath| {
        path.parts()
            .next()
            .is_some_and(|top| known.kept.contains(&top))
    };
    if let Some(path) = program.filter(|path| !kept(path))
        && draft.is_file(path.as_str()).await
    {
        let folder = known.kept.first().copied().unwrap_or_default();
        let message = format!(
            "handler.command: the agent could change {path}; move it to {folder}/, where it cannot"
        );
        draft.note(document.finding(Severity::Warning, "handler.command", message));
    }
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

/// A text that stands in the file, or in another that it names. What is missing is told elsewhere.
async fn words(
    draft: &mut Draft<'_>,
    document: &Document,
    key: &str,
    given: Option<&TextOr<Source>>,
) -> Option<String> {
    match given? {
        TextOr::Text(text) if text.trim().is_empty() => {
            draft.note(document.error(key, format!("{key}: is empty")));
            None
        }
        TextOr::Text(text) => Some(text.trim().to_owned()),
        TextOr::Settings(source) => source.text(draft, document, key).await,
    }
}
