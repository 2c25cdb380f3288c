//! `stead check`: strict validation of a workspace.

use super::args::{CheckArgs, Common};
use super::env::Env;
use super::error::CliError;
use super::open::{in_workspace, open_place, open_workspace, owner, workspace_dir};
use super::print::outln;
use super::style::Style;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use stead::core::{AccessKind, VerdictKind};
use stead::model::{ModelSettings, connect};
use stead::store::Sessions;
use stead::tools::{Registry, file_tools};
use stead::vfs::{VPath, VfsError};
use stead::workspace::Workspace;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Grade {
    Ok,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    grade: Grade,
    about: String,
    message: String,
}

pub(crate) async fn check(common: &Common, env: &Env, args: &CheckArgs) -> Result<ExitCode, CliError> {
    let dir = workspace_dir(common, env)?;
    let findings = match open_workspace(&dir, env).await {
        Ok(workspace) => inspect(common, &dir, &workspace, env).await,
        Err(error) => vec![finding(Grade::Error, "settings", error.to_string())],
    };
    let errors = findings.iter().filter(|finding| finding.grade == Grade::Error).count();
    if args.json {
        outln!("{}", serde_json::to_string(&findings).map_err(anyhow::Error::from)?);
    } else {
        let style = Style::stdout(env);
        for Finding { grade, about, message } in &findings {
            let mark = match grade {
                Grade::Ok => style.good("ok     "),
                Grade::Warning => style.warn("warning"),
                Grade::Error => style.bad("error  "),
            };
            outln!("{mark} {about}: {message}");
        }
    }
    Ok(ExitCode::from(if errors > 0 { 2 } else { 0 }))
}

async fn inspect(common: &Common, dir: &Path, workspace: &Workspace, env: &Env) -> Vec<Finding> {
    let mut findings = vec![finding(Grade::Ok, "agent.yaml", "every key is known".to_owned())];
    findings.push(persona(workspace).await);
    let tools = match Registry::new(file_tools()) {
        Ok(tools) => tools,
        Err(error) => return vec![finding(Grade::Error, "tools", error.to_string())],
    };
    for name in workspace.config().approvals.keys().filter(|name| tools.find(name).is_none()) {
        let known = tools.specs().iter().map(|spec| spec.name.clone()).collect::<Vec<_>>().join(", ");
        findings.push(finding(
            Grade::Error,
            "agent.yaml",
            format!("approvals: there is no tool {name}; there are {known}"),
        ));
    }
    findings.extend(permissions(workspace).await);
    let names = workspace.config().model.iter().flat_map(|model| std::iter::once(&model.name).chain(&model.fallbacks));
    for name in names {
        let settings = match &workspace.config().model {
            Some(model) if model.name == *name => model.clone(),
            Some(_) | None => ModelSettings { name: name.clone(), ..ModelSettings::default() },
        };
        let settings = in_workspace(ModelSettings { fallbacks: Vec::new(), ..settings }, dir);
        // With any key at all it must work; that the key itself is missing may be right on this machine.
        let some_key =
            |variable: &str| env.get(variable).or_else(|| variable.ends_with("_KEY").then(|| "any".to_owned()));
        findings.push(match (connect(&settings, &some_key), connect(&settings, &|variable| env.get(variable))) {
            (Err(error), _) => finding(Grade::Error, "model", error.to_string()),
            (Ok(_), Err(error)) => finding(Grade::Warning, "model", error.to_string()),
            (Ok(_), Ok(_)) => finding(Grade::Ok, "model", format!("{name} can be asked")),
        });
        if workspace.config().model.as_ref().is_some_and(|model| model.api_key.is_some())
            && workspace.config().secrets.is_empty()
        {
            let text = "the key stands in the file, where the agent can read it; use api_key: ${VARIABLE}";
            findings.push(finding(Grade::Warning, "agent.yaml", text.to_owned()));
        }
    }
    let owner = match owner(common) {
        Ok(owner) => owner,
        Err(error) => return vec![finding(Grade::Error, "user", error.to_string())],
    };
    match open_place(dir, workspace, Vec::new()).await {
        Ok(place) => {
            findings.push(finding(Grade::Ok, "filesystem", place.describe()));
            findings.extend(journals(&*place.sessions(&owner)).await);
        }
        Err(error) => findings.push(finding(Grade::Error, "filesystem", error.to_string())),
    }
    findings
}

/// The file rules as they were understood, and those that do not do what they seem to.
async fn permissions(workspace: &Workspace) -> Vec<Finding> {
    let rules = &workspace.rules;
    let mut findings: Vec<Finding> =
        rules.sentences().into_iter().map(|sentence| finding(Grade::Ok, "agent.yaml", sentence)).collect();
    findings.extend(rules.idle().into_iter().map(|idle| finding(Grade::Warning, "agent.yaml", idle)));
    for (path, sentence) in rules.literals() {
        // Rules are compared with names and with what they lead to, not the other way round.
        if let Ok(end) = workspace.files.resolve(&path).await
            && end != path
            && rules.decide(AccessKind::Read, &end).kind != VerdictKind::Deny
        {
            let text =
                format!("{sentence}: {path} is a link to {end}, which stays open by its own name; name it as well");
            findings.push(finding(Grade::Warning, "agent.yaml", text));
        }
    }
    findings
}

async fn persona(workspace: &Workspace) -> Finding {
    let path = match VPath::parse("AGENTS.md") {
        Ok(path) => path,
        Err(error) => return finding(Grade::Error, "AGENTS.md", error.to_string()),
    };
    match workspace.files.stat(&path).await {
        Ok(stat) if stat.size == 0 => {
            finding(Grade::Warning, "AGENTS.md", "it is empty: the agent has no persona".to_owned())
        }
        Ok(stat) => finding(Grade::Ok, "AGENTS.md", format!("{} bytes", stat.size)),
        Err(VfsError::NotFound(_)) => finding(
            Grade::Warning,
            "AGENTS.md",
            "not there: the agent has no persona (`stead init` makes one)".to_owned(),
        ),
        Err(error) => finding(Grade::Error, "AGENTS.md", error.to_string()),
    }
}

async fn journals(journals: &dyn Sessions) -> Vec<Finding> {
    let list = match journals.list().await {
        Ok(list) => list,
        Err(error) => return vec![finding(Grade::Error, "sessions", error.to_string())],
    };
    let mut findings = Vec::new();
    for summary in &list {
        // The index is derived; only reading every line says whether a journal is whole.
        if let Err(error) = journals.read(&summary.id).await {
            findings.push(finding(Grade::Error, "sessions", error.to_string()));
        }
    }
    if findings.is_empty() {
        findings.push(finding(Grade::Ok, "sessions", format!("{} journals, every line checked", list.len())));
    }
    findings
}

fn finding(grade: Grade, about: &str, message: String) -> Finding {
    Finding { grade, about: about.to_owned(), message }
}
