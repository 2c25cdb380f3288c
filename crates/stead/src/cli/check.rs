//! `stead check`: strict validation of a workspace.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes), the journal (reads), the network.

use super::args::{CheckArgs, GlobalArgs};
use super::env::ProcessEnv;
use super::error::{CliError, option_flag, with_hint};
use super::locate::{open_options, workspace_dir};
use super::open_agent::{open_agent, variable};
use super::print::{outln, to_json};
use super::skills::SkillContext;
use super::style::Style;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, choose_model, inspect_folder, inspect_user_folder, resolve_model_files};
use stead::core::{
    AccessKind, JournalLine, PermissionMode, Redactor, SessionState, VerdictKind, counted,
    spec_tokens,
};
use stead::model::{ModelSettings, SecretRules, connect, connect_with, lookup};
use stead::skills::{Installation, Shadowed, SkillOrigin, SkillProblem};
use stead::store::Sessions;
use stead::tools::Registry;
use stead::vfs::VfsError;
use stead::workspace::{
    Finding, FindingSource, ModelUse, Severity, SourcePosition, Workspace, WorkspaceError,
    tool_problem,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckGrade {
    Ok,
    Inactive,
    Warning,
    Error,
}

/// One line of the report.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct CheckRow {
    grade: CheckGrade,
    about: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    place: Option<SourcePosition>,
    message: String,
}

impl From<Finding> for CheckRow {
    fn from(finding: Finding) -> Self {
        let grade = match finding.severity {
            Severity::Inactive => CheckGrade::Inactive,
            Severity::Warning => CheckGrade::Warning,
            Severity::NonFatal | Severity::Error => CheckGrade::Error,
        };
        let about = match finding.source {
            FindingSource::File(path) => path,
            FindingSource::Option(option) => option_flag(option).to_owned(),
        };
        Self {
            grade,
            about,
            place: Some(finding.place),
            message: with_hint(finding.message, finding.hint),
        }
    }
}

pub(crate) async fn check(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &CheckArgs,
) -> Result<ExitCode, CliError> {
    let mut rows: Vec<CheckRow> = Vec::new();
    for row in run_checks(common, env).await? {
        // A file is read for the settings and again for the prompt, so its problems are found
        // twice.
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let errors = rows
        .iter()
        .filter(|row| row.grade == CheckGrade::Error)
        .count();
    if args.json {
        outln!("{}", to_json(&rows)?);
    } else {
        let style = Style::stdout(env);
        rows.iter().for_each(|row| print_row(row, style));
        let count = |grade| rows.iter().filter(|row| row.grade == grade).count();
        let warnings = count(CheckGrade::Warning);
        let later = count(CheckGrade::Inactive);
        let errors = counted(errors, "error");
        let warnings = counted(warnings, "warning");
        outln!("\n{errors}, {warnings}, {later} not active yet");
    }
    Ok(ExitCode::from(if errors > 0 { 2 } else { 0 }))
}

fn print_row(row: &CheckRow, style: Style) {
    let mark = match row.grade {
        CheckGrade::Ok => style.good("ok      "),
        CheckGrade::Inactive => style.dim("inactive"),
        CheckGrade::Warning => style.warn("warning "),
        CheckGrade::Error => style.bad("error   "),
    };
    let place = row
        .place
        .map_or(String::new(), |SourcePosition { line, column }| {
            format!(":{line}:{column}")
        });
    outln!("{mark} {}{place}: {}", row.about, row.message);
}

/// Returns the results of all checks.
async fn run_checks(common: &GlobalArgs, env: &ProcessEnv) -> Result<Vec<CheckRow>, CliError> {
    let dir = workspace_dir(common, env)?;
    let options = open_options(common, env, &dir)?;
    let workspace = inspect_folder(&dir, options, &|name| env.get(name)).await?;
    let layout = workspace.definition.layout;
    let findings = &workspace.definition.findings;
    let worst = findings.iter().map(|finding| finding.severity).max();
    let about_settings = match worst.is_some_and(|worst| worst >= Severity::NonFatal) {
        true => format!("{layout}"),
        false => format!("{layout}; every setting is known"),
    };
    let mut rows = vec![row(CheckGrade::Ok, "layout", about_settings)];
    rows.extend(check_trust(&workspace));
    rows.extend(
        workspace
            .definition
            .findings
            .iter()
            .cloned()
            .map(CheckRow::from),
    );
    rows.push(check_persona(&workspace).await);
    rows.extend(check_mode(&workspace));
    rows.extend(check_tool_names(&workspace));
    rows.extend(
        workspace
            .check_tools(&*workspace.files, &|name| env.get(name))
            .await
            .into_iter()
            .map(CheckRow::from),
    );
    // Skills and the prompt need a workspace that can be opened.
    let can_open = worst != Some(Severity::Error);
    if can_open {
        rows.extend(check_skills(common, env).await?);
    }
    rows.extend(check_permissions(&workspace).await);
    rows.extend(check_models(&workspace, &dir, env));
    rows.extend(list_helpers(&workspace));
    if !can_open {
        return Ok(rows);
    }
    match open_agent(common, env, ModelUse::NotNeeded).await {
        Ok(agent) => {
            rows.push(row(CheckGrade::Ok, "filesystem", agent.place().describe()));
            rows.extend(check_user_folder(&agent).await);
            rows.extend(check_prompt(&agent).await);
            rows.extend(check_journals(&*agent.sessions()).await);
        }
        Err(error) => rows.push(row(CheckGrade::Error, "filesystem", error.to_string())),
    }
    Ok(rows)
}

/// Lists the parts that act by themselves, and whether the folder is trusted.
fn check_trust(workspace: &Workspace) -> Vec<CheckRow> {
    let Some(request) = workspace.trust.request() else {
        return Vec::new();
    };
    let parts = request.parts.iter().map(|part| {
        row(
            CheckGrade::Ok,
            &part.source,
            format!("acts by itself: it {}", part.summary),
        )
    });
    let whole = match workspace.trust.is_restricted() {
        false => row(CheckGrade::Ok, "trust", "this folder is trusted".to_owned()),
        true => {
            let text = "this folder is not trusted: it is checked without the parts that act \
                        (`stead trust add` trusts it)";
            row(CheckGrade::Warning, "trust", text.to_owned())
        }
    };
    std::iter::once(whole).chain(parts).collect()
}

/// Warns about a folder with the name of the user whose overrides are not used.
async fn check_user_folder(agent: &Agent) -> Option<CheckRow> {
    const MAX_NAMES: usize = 5;
    const OVERRIDES: [&str; 4] = ["AGENTS.md", "skills", "subagents", "knowledge"];
    let files = &agent.workspace().files;
    let (folder, others) =
        inspect_user_folder(&agent.workspace().definition, agent.owner(), &**files).await?;
    let mut has_overrides = false;
    for name in OVERRIDES {
        let path = folder.join(name).ok()?;
        has_overrides |= files.stat(&path).await.is_ok();
    }
    if others.is_empty() || !has_overrides {
        return None;
    }
    let names = others.iter().take(MAX_NAMES).cloned().collect::<Vec<_>>();
    let text = format!(
        "its overrides are not used, because it also contains {}",
        names.join(", ")
    );
    Some(row(CheckGrade::Warning, &format!("{folder}/"), text))
}

/// Warns about a permission mode that asks less than people expect.
fn check_mode(workspace: &Workspace) -> Option<CheckRow> {
    let text = "permission_mode: bypass asks about nothing but what rules, approvals, plan mode and untrusted content ask \
                about: commands, network and changes of an attached project run unasked";
    match workspace.config().permission_mode {
        PermissionMode::Bypass => Some(row(CheckGrade::Warning, "agent.yaml", text.to_owned())),
        PermissionMode::Default
        | PermissionMode::AcceptEdits
        | PermissionMode::Explore
        | PermissionMode::DontAsk => None,
    }
}

/// Reports tools that settings name and that do not exist.
fn check_tool_names(workspace: &Workspace) -> Vec<CheckRow> {
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
        let mut row = CheckRow::from(Finding::new(severity, about, format!("{key}: {message}")));
        row.place = origin.and_then(|origin| origin.place);
        row
    });
    rows.collect()
}

/// Checks skills. Problems of the workspace's own are errors, others are warnings.
async fn check_skills(common: &GlobalArgs, env: &ProcessEnv) -> Result<Vec<CheckRow>, CliError> {
    let places = SkillContext::open(common, env).await?;
    let catalogue = places.library().catalogue(&places.layers().await?).await;
    let mut rows: Vec<CheckRow> = catalogue.check().await.into_iter().map(skill_row).collect();
    for Shadowed { skill, by, by_dir } in &catalogue.shadowed {
        let message = format!("hidden by {by_dir} ({by}), which has the same name");
        rows.push(row(CheckGrade::Warning, skill.file().as_str(), message));
    }
    let installation = Installation::open(places.installed_files.clone()).await?;
    for source in installation.sources() {
        for skill in installation.modified_skills(&source.name).await? {
            let message = format!(
                "{skill} was changed after it was installed; `stead skills update {}` renews it",
                source.name
            );
            rows.push(row(
                CheckGrade::Warning,
                &format!("skills of {}", source.name),
                message,
            ));
        }
    }
    if rows.is_empty() {
        rows.push(row(
            CheckGrade::Ok,
            "skills",
            format!("{} found", catalogue.skills().len()),
        ));
    }
    Ok(rows)
}

fn skill_row(finding: stead::skills::SkillFinding) -> CheckRow {
    let grade = match finding.origin {
        SkillOrigin::Workspace | SkillOrigin::User => CheckGrade::Error,
        SkillOrigin::Global | SkillOrigin::Repository(_) => CheckGrade::Warning,
    };
    let SkillProblem {
        line,
        column,
        message,
    } = finding.problem;
    let place = Some(SourcePosition {
        line: line as u64,
        column: column as u64,
    });
    CheckRow {
        grade,
        about: finding.path.to_string(),
        place,
        message,
    }
}

/// Reports sections of the prompt that were cut.
async fn check_prompt(agent: &Arc<Agent>) -> Vec<CheckRow> {
    let turn = match agent.sessionless().turn().await {
        Ok(turn) => turn,
        Err(stead::agent::AgentError::Workspace(WorkspaceError::Invalid(findings))) => {
            return findings.into_iter().map(CheckRow::from).collect();
        }
        Err(error) => {
            let message = with_hint(&error, error.hint());
            return vec![row(CheckGrade::Error, "prompt", message)];
        }
    };
    let tokens: usize = turn
        .prompt
        .sections
        .iter()
        .map(|section| section.tokens())
        .sum();
    let mut rows = vec![row(
        CheckGrade::Ok,
        "prompt",
        format!("about {tokens} tokens; `stead prompt` shows it"),
    )];
    rows.push(row(CheckGrade::Ok, "tools", tools_message(&turn.tools)));
    for section in &turn.prompt.sections {
        rows.extend(section.cut.iter().map(|cut| {
            row(
                CheckGrade::Warning,
                &cut.source,
                format!("too long for the prompt: {}", cut.what),
            )
        }));
    }
    rows
}

/// Returns how many tools a model is shown, what they take, and how many more there are.
fn tools_message(tools: &Registry) -> String {
    let specs = tools.specs();
    let tokens: u64 = specs.iter().map(spec_tokens).sum();
    let further = match tools.deferred().count() {
        0 => String::new(),
        more => format!("; {more} further ones are found with tool_search"),
    };
    let shown = counted(specs.len(), "tool");
    format!("{shown}, about {tokens} tokens{further}")
}

fn check_models(workspace: &Workspace, dir: &Path, env: &ProcessEnv) -> Vec<CheckRow> {
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
        let settings = resolve_model_files(
            ModelSettings {
                fallbacks: Vec::new(),
                ..settings
            },
            dir,
        );
        let known = |name: &str| variable(workspace, env, name);
        // Any key will do for this check: the key itself may be missing on this machine.
        let some_key =
            |name: &str| known(name).or_else(|| name.ends_with("_KEY").then(|| "any".to_owned()));
        let rules = SecretRules {
            keys: &workspace.keys,
            redactor: &Redactor::default(),
        };
        rows.push(
            match (
                connect(&settings, &some_key),
                connect_with(&settings, &known, rules),
            ) {
                (Err(error), _) => setting_row(workspace, CheckGrade::Error, error.to_string()),
                (Ok(_), Err(error)) => row(CheckGrade::Warning, "model", error.to_string()),
                (Ok(_), Ok(_)) => row(CheckGrade::Ok, "model", format!("{name} can be asked")),
            },
        );
        let priced =
            config.prices.contains_key(name) || settings.price.is_some() || lookup(name).is_some();
        if let Some(limit) = config.budget.first_money_limit().filter(|_| !priced) {
            let text = format!(
                "{limit} is set, but the price of {name} is not known; set `price:` of the model"
            );
            rows.push(row(CheckGrade::Error, "budget", text));
        }
    }
    if config
        .model
        .as_ref()
        .is_none_or(|model| model.name.is_empty())
    {
        let by_default = choose_model(None, workspace, dir, &|name| env.get(name));
        let text = match by_default {
            Some(settings) => format!("none is set here; {} is used", settings.name),
            None => "none is set here: give -m, or set a provider's key".to_owned(),
        };
        rows.push(row(CheckGrade::Ok, "model", text));
    }
    if config
        .model
        .as_ref()
        .is_some_and(|model| model.api_key.is_some())
        && config.secrets.is_empty()
    {
        let text = "the key is in the file, where the agent can read it; use api_key: ${VARIABLE}";
        rows.push(row(CheckGrade::Warning, "model", text.to_owned()));
    }
    rows
}

/// Returns a row about the model, with the place that sets it.
fn setting_row(workspace: &Workspace, grade: CheckGrade, message: String) -> CheckRow {
    let origins = &workspace.definition.origins;
    let origin = ["model.name", "model.model", "model"]
        .iter()
        .find_map(|key| origins.get(*key));
    match origin {
        None => row(grade, "model", message),
        Some(origin) => CheckRow {
            grade,
            about: origin.source.clone(),
            place: origin.place,
            message: format!("model: {message}"),
        },
    }
}

/// Lists the hooks and the agents that work can be handed to.
fn list_helpers(workspace: &Workspace) -> Vec<CheckRow> {
    let definition = &workspace.definition;
    let hooks = definition.hooks.iter().map(|hook| {
        let text = format!("the hook {}", hook.name);
        row(CheckGrade::Ok, &hook.source, text)
    });
    let names: Vec<&str> = definition.agents.keys().map(String::as_str).collect();
    let agents = (!names.is_empty()).then(|| row(CheckGrade::Ok, "agents", names.join(", ")));
    hooks.chain(agents).collect()
}

/// Reports the file rules, and those that have no effect or a misleading one.
async fn check_permissions(workspace: &Workspace) -> Vec<CheckRow> {
    let rules = &workspace.rules;
    let mut rows: Vec<CheckRow> = rules
        .describe()
        .into_iter()
        .map(|sentence| row(CheckGrade::Ok, "agent.yaml", sentence))
        .collect();
    rows.extend(
        rules
            .ineffective_rules()
            .into_iter()
            .map(|idle| row(CheckGrade::Warning, "agent.yaml", idle)),
    );
    for (path, sentence) in rules.literal_paths() {
        // A rule covers a link and its target, but a rule for a link does not protect the target's
        // own name.
        if let Ok(end) = workspace.files.resolve(&path).await
            && end != path
            && rules.decide(AccessKind::Read, &end).kind != VerdictKind::Deny
        {
            let text = format!(
                "{sentence}: {path} is a link to {end}; the rule does not cover {end} itself; add it"
            );
            rows.push(row(CheckGrade::Warning, "agent.yaml", text));
        }
    }
    rows
}

/// Reports the first context file that exists. Without one, the agent has no persona.
async fn check_persona(workspace: &Workspace) -> CheckRow {
    let files = &workspace.definition.paths.context;
    for file in files {
        let about = file.path.to_string();
        match workspace.files.stat(&file.path).await {
            Ok(stat) if stat.size == 0 => {
                return row(
                    CheckGrade::Warning,
                    &about,
                    "it is empty: the agent has no persona".to_owned(),
                );
            }
            Ok(stat) => return row(CheckGrade::Ok, &about, format!("{} bytes", stat.size)),
            Err(VfsError::NotFound(_)) => {}
            Err(error) => return row(CheckGrade::Error, &about, error.to_string()),
        }
    }
    match files.first() {
        // An ordinary project need not have rules for agents.
        Some(file) if !workspace.definition.home().is_root() => {
            row(CheckGrade::Ok, file.path.as_str(), "none".to_owned())
        }
        Some(file) if workspace.definition.texts.is_empty() => {
            let text = "not there: the agent has no persona (`stead init` makes one)".to_owned();
            row(CheckGrade::Warning, file.path.as_str(), text)
        }
        Some(_) | None => row(
            CheckGrade::Ok,
            "persona",
            "given by the settings".to_owned(),
        ),
    }
}

async fn check_journals(journals: &dyn Sessions) -> Vec<CheckRow> {
    let list = match journals.list_all().await {
        Ok(list) => list,
        Err(error) => {
            let message = with_hint(&error, error.hint());
            return vec![row(CheckGrade::Error, "sessions", message)];
        }
    };
    let mut rows = Vec::new();
    for summary in &list {
        // The index is derived; only reading and folding every line shows whether a journal can be
        // opened.
        let problem = match (&summary.damage, journals.read(&summary.id).await) {
            (_, Err(error)) => Some(error.to_string()),
            (Some(damage), Ok(_)) => Some(damage.clone()),
            (None, Ok(lines)) => fold_problem(&lines)
                .map(|problem| format!("{}: {problem}", journals.locate(&summary.id))),
        };
        rows.extend(problem.map(|problem| row(CheckGrade::Error, "sessions", problem)));
    }
    if rows.is_empty() {
        rows.push(row(
            CheckGrade::Ok,
            "sessions",
            format!("{}, every line checked", counted(list.len(), "journal")),
        ));
    }
    rows
}

/// Returns why the entries of a journal cannot be folded.
fn fold_problem(lines: &[JournalLine]) -> Option<String> {
    let mut state = SessionState::default();
    let mut folded = lines.iter().map(|line| state.apply(line.seq, &line.entry));
    folded.find_map(Result::err).map(|error| error.to_string())
}

fn row(grade: CheckGrade, about: &str, message: String) -> CheckRow {
    CheckRow {
        grade,
        about: about.to_owned(),
        place: None,
        message,
    }
}
