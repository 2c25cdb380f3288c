//! `stead check`: strict validation of a workspace.

use super::args::{CheckArgs, Common};
use super::env::Env;
use super::error::CliError;
use super::locate::{of_folder, open_options, workspace_dir};
use super::open::{Made, NoModel, assemble, in_workspace, owner, sandbox, variable};
use super::print::outln;
use super::skills::Places;
use super::style::Style;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::Agent;
use stead::core::{AccessKind, PermissionMode, VerdictKind};
use stead::model::{ModelSettings, connect, lookup};
use stead::store::{OsDisk, Sessions};
use stead::vfs::{LocalVfs, VfsError};
use stead::workspace::skills::{Installation, Layer, Problem, Shadowed};
use stead::workspace::{Finding, Severity, Spot, Workspace, WorkspaceError, tool_problem};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Grade {
    Ok,
    Inactive,
    Warning,
    Error,
}

/// One line of the report.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    grade: Grade,
    about: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    place: Option<Spot>,
    message: String,
}

impl From<Finding> for Row {
    fn from(finding: Finding) -> Self {
        let grade = match finding.severity {
            Severity::Inactive => Grade::Inactive,
            Severity::Warning => Grade::Warning,
            Severity::Lax | Severity::Error => Grade::Error,
        };
        Self {
            grade,
            about: finding.file,
            place: Some(finding.place),
            message: finding.message,
        }
    }
}

pub(crate) async fn check(
    common: &Common,
    env: &Env,
    args: &CheckArgs,
) -> Result<ExitCode, CliError> {
    let mut rows: Vec<Row> = Vec::new();
    for row in report(common, env).await? {
        // What is wrong with a file shows when it is read for the settings, and again for the
        // prompt.
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let errors = rows.iter().filter(|row| row.grade == Grade::Error).count();
    if args.json {
        outln!(
            "{}",
            serde_json::to_string(&rows).map_err(anyhow::Error::from)?
        );
    } else {
        let style = Style::stdout(env);
        rows.iter().for_each(|row| print(row, style));
        let count = |grade| rows.iter().filter(|row| row.grade == grade).count();
        let warnings = count(Grade::Warning);
        let later = count(Grade::Inactive);
        let errors = counted(errors, "error");
        let warnings = counted(warnings, "warning");
        outln!("\n{errors}, {warnings}, {later} not active yet");
    }
    Ok(ExitCode::from(if errors > 0 { 2 } else { 0 }))
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn print(row: &Row, style: Style) {
    let mark = match row.grade {
        Grade::Ok => style.good("ok      "),
        Grade::Inactive => style.dim("inactive"),
        Grade::Warning => style.warn("warning "),
        Grade::Error => style.bad("error   "),
    };
    let place = row.place.map_or(String::new(), |Spot { line, column }| {
        format!(":{line}:{column}")
    });
    outln!(
        "{mark} {}{place}: {}",
        style.safe(&row.about),
        style.safe(&row.message)
    );
}

/// Everything that can be said about the workspace.
async fn report(common: &Common, env: &Env) -> Result<Vec<Row>, CliError> {
    let dir = workspace_dir(common, env)?;
    let options = of_folder(open_options(common, env)?, &dir);
    let files = LocalVfs::open(&dir, Arc::new(OsDisk))
        .map_err(|error| CliError::usage(error.to_string()))?;
    let workspace = match Workspace::open(Arc::new(files), &options, &|name| env.get(name)).await {
        Ok(workspace) => workspace,
        Err(WorkspaceError::Invalid(findings)) => {
            return Ok(findings.into_iter().map(Row::from).collect());
        }
        Err(
            error @ (WorkspaceError::Files(_)
            | WorkspaceError::Rules(_)
            | WorkspaceError::Skills(_)),
        ) => {
            return Ok(vec![row(Grade::Error, "settings", error.to_string())]);
        }
    };
    let layout = workspace.definition.layout;
    let mut rows = vec![row(
        Grade::Ok,
        "layout",
        format!("{layout}; every setting is known"),
    )];
    rows.extend(workspace.definition.findings.iter().cloned().map(Row::from));
    rows.push(persona(&workspace).await);
    rows.extend(mode(&workspace));
    rows.extend(tool_names(&workspace));
    rows.extend(
        workspace
            .check_tools(&*workspace.files, &|name| env.get(name))
            .await
            .into_iter()
            .map(Row::from),
    );
    rows.extend(skills(common, env).await?);
    rows.extend(permissions(&workspace).await);
    rows.extend(models(&workspace, &dir, env));
    let owner = owner(common)?;
    let sandbox = Some(sandbox(&workspace, env));
    let model = Arc::new(NoModel::in_place_of(common, env, &dir, &workspace));
    match assemble(
        &dir,
        workspace,
        Made {
            owner,
            sandbox,
            ..Made::of(model)
        },
    )
    .await
    {
        Ok(agent) => {
            rows.push(row(Grade::Ok, "filesystem", agent.place().describe()));
            rows.extend(prompt(&agent).await);
            rows.extend(journals(&*agent.sessions()).await);
        }
        Err(error) => rows.push(row(Grade::Error, "filesystem", error.to_string())),
    }
    Ok(rows)
}

/// A permission mode that asks about less than people expect.
fn mode(workspace: &Workspace) -> Option<Row> {
    let text = "permission_mode: bypass asks about nothing but what rules, approvals and plan mode ask about: commands, \
                network and changes of an attached project run unasked";
    match workspace.config().permission_mode {
        PermissionMode::Bypass => Some(row(Grade::Warning, "agent.yaml", text.to_owned())),
        PermissionMode::Default
        | PermissionMode::AcceptEdits
        | PermissionMode::Explore
        | PermissionMode::DontAsk => None,
    }
}

/// Tools that settings name and nobody has.
fn tool_names(workspace: &Workspace) -> Vec<Row> {
    let definition = &workspace.definition;
    let approvals = workspace
        .config()
        .approvals
        .keys()
        .map(|name| ("approvals", name));
    let lists = definition
        .tools
        .iter()
        .flat_map(|lists| lists.allow.iter().flatten().chain(&lists.deny));
    let lists = lists.map(|name| ("tools", name));
    let named = approvals
        .chain(lists)
        .filter_map(|(key, name)| Some((key, name, tool_problem(name)?)));
    let rows = named.map(|(key, name, (severity, message))| {
        let origin = definition.origins.get(&format!("{key}.{name}"));
        let about = origin.map_or(key, |origin| origin.source.as_str());
        let mut row = Row::from(Finding::new(severity, about, format!("{key}: {message}")));
        row.place = origin.and_then(|origin| origin.place);
        row
    });
    rows.collect()
}

/// Skills, strictly: those of the workspace must be right, others are only told about.
async fn skills(common: &Common, env: &Env) -> Result<Vec<Row>, CliError> {
    let places = Places::open(common, env).await?;
    let catalogue = places.library().catalogue(&places.layers().await?).await;
    let mut rows: Vec<Row> = catalogue.check().await.into_iter().map(skill_row).collect();
    for Shadowed { skill, by, by_dir } in &catalogue.shadowed {
        let message = format!("hidden by {by_dir} ({by}), which has the same name");
        rows.push(row(Grade::Warning, skill.file().as_str(), message));
    }
    let installation = Installation::open(places.installed.clone()).await?;
    for source in installation.sources() {
        for skill in installation.changed(&source.name).await? {
            let message = format!(
                "{skill} is not as it was installed; `stead skills update {}` renews it",
                source.name
            );
            rows.push(row(
                Grade::Warning,
                &format!("skills of {}", source.name),
                message,
            ));
        }
    }
    if rows.is_empty() {
        rows.push(row(
            Grade::Ok,
            "skills",
            format!("{} found", catalogue.skills().len()),
        ));
    }
    Ok(rows)
}

fn skill_row(finding: stead::workspace::skills::Finding) -> Row {
    let grade = match finding.layer {
        Layer::Workspace | Layer::User => Grade::Error,
        Layer::Global | Layer::Repository(_) => Grade::Warning,
    };
    let Problem {
        line,
        column,
        message,
    } = finding.problem;
    let place = Some(Spot {
        line: line as u64,
        column: column as u64,
    });
    Row {
        grade,
        about: finding.path.to_string(),
        place,
        message,
    }
}

/// Sections of the prompt that are over their bounds.
async fn prompt(agent: &Arc<Agent>) -> Vec<Row> {
    let turn = match agent.outside_turn().await {
        Ok(turn) => turn,
        Err(stead::agent::AgentError::Workspace(WorkspaceError::Invalid(findings))) => {
            return findings.into_iter().map(Row::from).collect();
        }
        Err(error) => return vec![row(Grade::Error, "prompt", error.to_string())],
    };
    let tokens: usize = turn
        .prompt
        .sections
        .iter()
        .map(|section| section.tokens())
        .sum();
    let mut rows = vec![row(
        Grade::Ok,
        "prompt",
        format!("about {tokens} tokens; `stead prompt` shows it"),
    )];
    for section in &turn.prompt.sections {
        rows.extend(section.cut.iter().map(|cut| {
            row(
                Grade::Warning,
                &cut.source,
                format!("too long for the prompt: {}", cut.what),
            )
        }));
    }
    rows
}

fn models(workspace: &Workspace, dir: &Path, env: &Env) -> Vec<Row> {
    let config = workspace.config();
    let mut rows = Vec::new();
    for name in config
        .model
        .iter()
        .flat_map(|model| std::iter::once(&model.name).chain(&model.fallbacks))
    {
        if name.is_empty() {
            continue;
        }
        let settings = match &config.model {
            Some(model) if model.name == *name => model.clone(),
            Some(_) | None => ModelSettings {
                name: name.clone(),
                ..ModelSettings::default()
            },
        };
        let settings = in_workspace(
            ModelSettings {
                fallbacks: Vec::new(),
                ..settings
            },
            dir,
        );
        let known = |name: &str| variable(workspace, env, name);
        // With any key at all it must work; that the key itself is missing may be right on this
        // machine.
        let some_key =
            |name: &str| known(name).or_else(|| name.ends_with("_KEY").then(|| "any".to_owned()));
        rows.push(
            match (connect(&settings, &some_key), connect(&settings, &known)) {
                (Err(error), _) => row(Grade::Error, "model", error.to_string()),
                (Ok(_), Err(error)) => row(Grade::Warning, "model", error.to_string()),
                (Ok(_), Ok(_)) => row(Grade::Ok, "model", format!("{name} can be asked")),
            },
        );
        let priced =
            config.prices.contains_key(name) || settings.price.is_some() || lookup(name).is_some();
        if let Some(limit) = config.budget.in_money().filter(|_| !priced) {
            let text = format!(
                "{limit} is set, but the price of {name} is not known; set `price:` of the model"
            );
            rows.push(row(Grade::Error, "budget", text));
        }
    }
    if config
        .model
        .as_ref()
        .is_none_or(|model| model.name.is_empty())
    {
        let text = "none is set here: give -m, or set a provider's key".to_owned();
        rows.push(row(Grade::Ok, "model", text));
    }
    if config
        .model
        .as_ref()
        .is_some_and(|model| model.api_key.is_some())
        && config.secrets.is_empty()
    {
        let text =
            "the key stands in the file, where the agent can read it; use api_key: ${VARIABLE}";
        rows.push(row(Grade::Warning, "model", text.to_owned()));
    }
    rows
}

/// The file rules as they were understood, and those that do not do what they seem to.
async fn permissions(workspace: &Workspace) -> Vec<Row> {
    let rules = &workspace.rules;
    let mut rows: Vec<Row> = rules
        .sentences()
        .into_iter()
        .map(|sentence| row(Grade::Ok, "agent.yaml", sentence))
        .collect();
    rows.extend(
        rules
            .idle()
            .into_iter()
            .map(|idle| row(Grade::Warning, "agent.yaml", idle)),
    );
    for (path, sentence) in rules.literals() {
        // Rules are compared with names and with what they lead to, not the other way round.
        if let Ok(end) = workspace.files.resolve(&path).await
            && end != path
            && rules.decide(AccessKind::Read, &end).kind != VerdictKind::Deny
        {
            let text = format!(
                "{sentence}: {path} is a link to {end}, which stays open by its own name; name it as well"
            );
            rows.push(row(Grade::Warning, "agent.yaml", text));
        }
    }
    rows
}

/// The first context file that is there: without any the agent is nobody.
async fn persona(workspace: &Workspace) -> Row {
    let files = &workspace.definition.tree.context;
    for file in files {
        let about = file.path.to_string();
        match workspace.files.stat(&file.path).await {
            Ok(stat) if stat.size == 0 => {
                return row(
                    Grade::Warning,
                    &about,
                    "it is empty: the agent has no persona".to_owned(),
                );
            }
            Ok(stat) => return row(Grade::Ok, &about, format!("{} bytes", stat.size)),
            Err(VfsError::NotFound(_)) => {}
            Err(error) => return row(Grade::Error, &about, error.to_string()),
        }
    }
    match files.first() {
        Some(file) if workspace.definition.texts.is_empty() => {
            let text = "not there: the agent has no persona (`stead init` makes one)".to_owned();
            row(Grade::Warning, file.path.as_str(), text)
        }
        Some(_) | None => row(Grade::Ok, "persona", "given by the settings".to_owned()),
    }
}

async fn journals(journals: &dyn Sessions) -> Vec<Row> {
    let list = match journals.list().await {
        Ok(list) => list,
        Err(error) => return vec![row(Grade::Error, "sessions", error.to_string())],
    };
    let mut rows = Vec::new();
    for summary in &list {
        // The index is derived; only reading every line says whether a journal is whole.
        if let Err(error) = journals.read(&summary.id).await {
            rows.push(row(Grade::Error, "sessions", error.to_string()));
        }
    }
    if rows.is_empty() {
        rows.push(row(
            Grade::Ok,
            "sessions",
            format!("{}, every line checked", counted(list.len(), "journal")),
        ));
    }
    rows
}

fn row(grade: Grade, about: &str, message: String) -> Row {
    Row {
        grade,
        about: about.to_owned(),
        place: None,
        message,
    }
}
