//! `stead sessions`: listing, showing, changing and exporting sessions.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), hooks, the model, the network,
//! processes.

use super::approvals::answerer;
use super::args::{ExportFormat, GlobalArgs, OutputFormat, SearchBounds, SessionsCommand};
use super::choose_session::{find_session, new_session_id};
use super::env::ProcessEnv;
use super::error::CliError;
use super::memory::{lookup_error, show_found as show_hits};
use super::open_agent::open_agent;
use super::print::{out_json, outln, to_json};
use super::render::{Renderer, tokens_line};
use super::sessions_elsewhere::look_for_hidden_sessions;
use super::signals::Signals;
use super::style::Style;
use super::transcript::{self, Detail};
use super::undo::{self, UndoRequest};
use serde::Serialize;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, ApplyMode, Pinned, RunOptions};
use stead::core::counted;
use stead::core::{Entry, JournalLine, SessionId, SessionState, TaintOrigins};
use stead::store::{LockWait, PageCursor, PageRequest, SessionPage, SessionSummary, Sessions};
use stead::workspace::ModelUse;

pub(crate) async fn sessions(
    common: &GlobalArgs,
    env: &ProcessEnv,
    command: SessionsCommand,
) -> Result<ExitCode, CliError> {
    let style = Style::stdout(env);
    let (common, needs) = match &command {
        SessionsCommand::Compact { model, .. } => {
            (&common.with_model(model.as_ref()), ModelUse::Required)
        }
        _ => (common, ModelUse::NotNeeded),
    };
    let agent = open_agent(common, env, needs).await?;
    match command {
        SessionsCommand::List {
            all,
            limit,
            after,
            json,
        } => {
            look_for_hidden_sessions(common, env, &agent, None).await?;
            let sessions = agent.sessions();
            let listed = if all {
                newest_sessions(&*sessions, SessionFilter::All, PageRequest::everything()).await?
            } else {
                let page = PageRequest { limit, after };
                newest_sessions(&*sessions, SessionFilter::WithoutSubagents, page).await?
            };
            list(style, &listed, json)
        }
        SessionsCommand::Show { id, full, json } => show(&agent, style, &id, full, json).await,
        SessionsCommand::Search { text, bounds } => search(&agent, style, &text, &bounds).await,
        SessionsCommand::Fork { id, before, to } => {
            let mut session = agent.session(find_session(&agent, &id).await?);
            let fork = session.fork(new_session_id(to.as_deref())?, before).await?;
            agent.sessions().flush().await;
            outln!("{}", fork.id());
            Ok(ExitCode::SUCCESS)
        }
        SessionsCommand::Undo {
            run,
            session,
            dry_run,
            json,
        } => {
            let mode = if dry_run {
                ApplyMode::DryRun
            } else {
                ApplyMode::Apply
            };
            let wanted = UndoRequest {
                run: run.as_deref(),
                session: session.as_deref(),
                apply: mode,
                json,
            };
            undo::undo(&agent, style, wanted).await
        }
        SessionsCommand::Rewind { id, before, files } => {
            let mut session = agent.session(find_session(&agent, &id).await?);
            if files {
                session.load().await?;
                let point = session.rewind_point(before)?;
                let runs = agent
                    .undo(agent.owner(), session.id())
                    .runs_after(point.before)
                    .await?;
                for step in undo::undo_all(&agent, session.id(), &runs).await?.steps {
                    outln!("undone: {}", step.path);
                }
                let history = agent.undo(agent.owner(), session.id());
                for line in undo::command_lines(&history.commands(&runs).await?) {
                    outln!("{line}");
                }
            }
            let point = session.rewind(before, LockWait::No).await?;
            agent.sessions().flush().await;
            outln!(
                "{id} continues before turn {before}: {}",
                first_line(&point.text)
            );
            Ok(ExitCode::SUCCESS)
        }
        SessionsCommand::Compact {
            id, focus, json, ..
        } => compact(&agent, env, &id, focus, json).await,
        SessionsCommand::Pin { id, turn, off } => {
            let mut session = agent.session(find_session(&agent, &id).await?);
            let pinned = if off { Pinned::No } else { Pinned::Yes };
            session.pin(turn, pinned, LockWait::No).await?;
            agent.sessions().flush().await;
            outln!(
                "turn {turn} of {id} is {}",
                if off { "no longer pinned" } else { "pinned" }
            );
            Ok(ExitCode::SUCCESS)
        }
        SessionsCommand::Name { id, title } => {
            let mut session = agent.session(find_session(&agent, &id).await?);
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            if title.is_empty() {
                return Err(CliError::usage("the title is empty"));
            }
            let by = answerer(common, env, None);
            session.set_title(title.clone(), by, LockWait::No).await?;
            agent.sessions().flush().await;
            outln!("{} is named {title:?}", session.id());
            Ok(ExitCode::SUCCESS)
        }
        SessionsCommand::Trust { id, by, json } => {
            let by = answerer(common, env, by.as_ref());
            trust(&agent, &id, by, json).await
        }
        SessionsCommand::Replay { id, json } => replay(&agent, style, &id, json).await,
        SessionsCommand::Export { id, format, file } => {
            export(&agent, &id, format, file.as_deref()).await
        }
        SessionsCommand::Rm { ids } => {
            for id in ids {
                let id = find_session(&agent, &id).await?;
                for id in with_subagents(&agent, id).await? {
                    agent.sessions().remove(&id).await?;
                    agent.collector(agent.owner()).forget_session(&id).await?;
                    outln!("removed {id}");
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the sessions of all subagents below a session, and then the session itself.
async fn with_subagents(agent: &Arc<Agent>, id: SessionId) -> Result<Vec<SessionId>, CliError> {
    let all = agent.sessions().list_all().await?;
    let mut family = vec![id];
    let mut next = 0;
    while let Some(parent) = family.get(next).cloned() {
        let children = all
            .iter()
            .filter(|one| one.parent.as_ref() == Some(&parent));
        let new: Vec<SessionId> = children
            .map(|one| one.id.clone())
            .filter(|id| !family.contains(id))
            .collect();
        family.extend(new);
        next += 1;
    }
    // The parents last, so that what is left after a failure can still be found.
    family.reverse();
    Ok(family)
}

async fn read_lines(agent: &Arc<Agent>, id: &str) -> Result<Vec<JournalLine>, CliError> {
    Ok(agent
        .sessions()
        .read(&find_session(agent, id).await?)
        .await?)
}

/// The filter of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionFilter {
    /// All of them.
    All,
    /// Only sessions without a parent.
    WithoutSubagents,
}

/// A part of a listing.
pub(crate) struct ListedSessions {
    /// The page, without the sessions that were left out.
    pub(crate) page: SessionPage,
    /// The number of sessions of subagents that were left out.
    pub(crate) left_out: usize,
}

/// Returns the newest sessions that a filter lets pass.
pub(crate) async fn newest_sessions(
    sessions: &dyn Sessions,
    whose: SessionFilter,
    request: PageRequest,
) -> Result<ListedSessions, CliError> {
    let mut found = Vec::new();
    let mut left_out = 0;
    let mut after = request.after;
    loop {
        let limit = request.limit - found.len();
        let page = sessions.list(PageRequest { limit, after }).await?;
        let there = found.len() + page.sessions.len();
        found.extend(
            page.sessions
                .into_iter()
                .filter(|summary| whose == SessionFilter::All || summary.parent.is_none()),
        );
        left_out += there - found.len();
        if page.next.is_none() || found.len() >= request.limit {
            let page = SessionPage {
                sessions: found,
                next: page.next,
            };
            return Ok(ListedSessions { page, left_out });
        }
        after = page.next;
    }
}

/// A session in the JSON of a listing.
#[derive(Serialize)]
struct ListedRow<'a> {
    #[serde(flatten)]
    summary: &'a SessionSummary,
    /// Where the listing goes on after this session, as `--after` takes it.
    cursor: PageCursor,
}

impl<'a> ListedRow<'a> {
    fn new(summary: &'a SessionSummary) -> Self {
        Self {
            summary,
            cursor: PageCursor::after(summary),
        }
    }
}

fn list(style: Style, listed: &ListedSessions, as_json: bool) -> Result<ExitCode, CliError> {
    let ListedSessions { page, left_out } = listed;
    if as_json {
        let rows: Vec<ListedRow<'_>> = page.sessions.iter().map(ListedRow::new).collect();
        outln!("{}", to_json(&rows)?);
        return Ok(ExitCode::SUCCESS);
    }
    for summary in &page.sessions {
        let when = jiff::Timestamp::from_millisecond(summary.updated_ms)
            .map_or(String::new(), |at| format!("{at:.0}"));
        let outcome = match (&summary.damage, summary.outcome) {
            (Some(_), _) => style.bad("damaged   "),
            (None, Some(outcome)) => format!("{:<10}", outcome.as_str()),
            (None, None) if summary.runs > 0 => style.warn("open      "),
            (None, None) => "empty     ".to_owned(),
        };
        outln!(
            "{}  {}  {outcome}  {}",
            style.accent(summary.id.as_str()),
            style.dim(&when),
            summary.title
        );
        let of = summary
            .parent
            .as_ref()
            .map_or(String::new(), |parent| format!(" · a subagent of {parent}"));
        let numbers = format!(
            "{} · {}{of}",
            counted(summary.runs, "run"),
            tokens_line(&summary.usage, summary.cost)
        );
        outln!("  {}", style.dim(&numbers));
    }
    if *left_out > 0 {
        outln!(
            "{}",
            style.dim(&format!(
                "and {} of subagents (--all)",
                counted(*left_out, "session")
            ))
        );
    }
    if page.next.is_some() {
        outln!("{}", style.dim("there are more (--limit, --all)"));
    }
    if page.sessions.is_empty() && *left_out == 0 && page.next.is_none() {
        outln!("no sessions yet; `stead run \"…\"` begins one");
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(
    agent: &Arc<Agent>,
    style: Style,
    id: &str,
    full: bool,
    as_json: bool,
) -> Result<ExitCode, CliError> {
    let lines = read_lines(agent, id).await?;
    if as_json {
        lines
            .iter()
            .for_each(|line| out_json(&transcript::line_json(line)));
        return Ok(ExitCode::SUCCESS);
    }
    let detail = if full { Detail::Full } else { Detail::Brief };
    super::print::out(format_args!(
        "{}",
        transcript::render_terminal(&lines, detail, style)?
    ));
    Ok(ExitCode::SUCCESS)
}

async fn search(
    agent: &Arc<Agent>,
    style: Style,
    text: &str,
    bounds: &SearchBounds,
) -> Result<ExitCode, CliError> {
    let looked = agent
        .lookup(agent.owner())
        .sessions(&*agent.sessions(), &bounds.query(text))
        .await;
    Ok(show_hits(&looked.map_err(lookup_error)?, bounds, |hit| {
        if bounds.json {
            let session = &hit.source;
            let who = hit.voice.as_str();
            let at = hit.at.map(|at| at.to_string());
            out_json(
                &json!({"session": session, "seq": hit.position, "at": at, "who": who, "text": hit.text}),
            );
        } else {
            outln!(
                "{}:{} {}",
                style.accent(&hit.source),
                hit.position,
                hit.text
            );
        }
    }))
}

/// Replays the journal through the run machine: every recorded step must be the one that the
/// machine asks for.
async fn replay(
    agent: &Arc<Agent>,
    style: Style,
    id: &str,
    as_json: bool,
) -> Result<ExitCode, CliError> {
    let lines = read_lines(agent, id).await?;
    let mut state = SessionState::default();
    for line in &lines {
        transcript::check_expected(&state, &line.entry).map_err(|why| {
            CliError::Failed(anyhow::anyhow!(
                "entry {} ({:?}) is not what the machine would do: {why}",
                line.seq,
                line.entry.kind()
            ))
        })?;
        state
            .apply(line.seq, &line.entry)
            .map_err(anyhow::Error::from)?;
        if as_json {
            out_json(&transcript::line_json(line));
        }
    }
    if !as_json {
        super::print::out(format_args!(
            "{}",
            transcript::render_terminal(&lines, Detail::Brief, style)?
        ));
        let models = lines
            .iter()
            .filter(|line| matches!(line.entry, Entry::Model(_)))
            .count();
        let text = format!(
            "replayed {}, {}, no model and no tool called",
            counted(lines.len(), "entry"),
            counted(models, "answer")
        );
        outln!("{}", style.dim(&text));
    }
    Ok(ExitCode::SUCCESS)
}

async fn compact(
    agent: &Arc<Agent>,
    env: &ProcessEnv,
    id: &str,
    focus: Option<String>,
    as_json: bool,
) -> Result<ExitCode, CliError> {
    let mut session = agent.session(find_session(agent, id).await?);
    let signals = Signals::watch()?;
    let renderer = Arc::new(Renderer::new(
        env,
        OutputFormat::Text,
        signals.cancel.clone(),
    ));
    let options = RunOptions {
        listener: renderer.listener(),
        cancel: signals.cancel.clone(),
        ..RunOptions::default()
    };
    let compaction = session.compact(focus, options).await?;
    agent.sessions().flush().await;
    match compaction {
        Some(compaction) if as_json => {
            outln!("{}", to_json(&compaction)?);
        }
        Some(compaction) => outln!("{}", transcript::compaction_line(&compaction)),
        None if as_json => outln!("null"),
        None => outln!("{id} has nothing to compact"),
    }
    Ok(ExitCode::SUCCESS)
}

async fn trust(
    agent: &Arc<Agent>,
    id: &str,
    by: String,
    as_json: bool,
) -> Result<ExitCode, CliError> {
    let mut session = agent.session(find_session(agent, id).await?);
    let vouched = session.trust(by, LockWait::No).await?;
    agent.sessions().flush().await;
    match vouched {
        _ if as_json => {
            let origins = vouched.as_ref().map(TaintOrigins::named);
            let more = vouched.as_ref().map_or(0, TaintOrigins::more);
            out_json(&json!({"session": session.id(), "trusted": origins, "more": more}));
        }
        Some(origins) => outln!(
            "{} is trusted so far; it had content from {origins}",
            session.id()
        ),
        None => outln!(
            "{} is not tainted: there is nothing to vouch for",
            session.id()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

async fn export(
    agent: &Arc<Agent>,
    id: &str,
    format: ExportFormat,
    file: Option<&Path>,
) -> Result<ExitCode, CliError> {
    let lines = read_lines(agent, id).await?;
    let text = match format {
        ExportFormat::Markdown => transcript::render_markdown(id, &lines)?,
        ExportFormat::Json => {
            let entries: Vec<serde_json::Value> = lines.iter().map(transcript::line_json).collect();
            format!(
                "{}\n",
                serde_json::to_string_pretty(&entries).map_err(anyhow::Error::from)?
            )
        }
    };
    match file {
        Some(path) => std::fs::write(path, text)?,
        None => super::print::out(format_args!("{text}")),
    }
    Ok(ExitCode::SUCCESS)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(80).collect()
}
