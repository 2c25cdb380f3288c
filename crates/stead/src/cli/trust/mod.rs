//! `stead trust`: which folders may act.
//!
//! Effects: the clock, the environment, the terminal, workspace files (reads), the local disk
//! (writes).

mod judge;

pub(crate) use judge::{UntrustedFolder, folder_judge};

use super::args::{GlobalArgs, TrustArgs, TrustCommand, TrustDirArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::{open_options, workspace_dir};
use super::personal::PersonalFolder;
use super::print::{out_json, outln};
use super::style::Style;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stead::agent::inspect_folder;
use stead::core::counted;
use stead::workspace::{
    Finding, FolderTrust, ModelUse, OpenOptions, Severity, TrustAnswer, TrustRecord, TrustRequest,
    Workspace,
};

pub(crate) async fn trust(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: TrustArgs,
) -> Result<ExitCode, CliError> {
    match args.command {
        TrustCommand::Add(dir) => add(&at(common, dir), env).await,
        TrustCommand::Remove(dir) => remove(&at(common, dir), env),
        TrustCommand::Show { dir, json } => show(&at(common, dir), env, form(json)).await,
        TrustCommand::List { json } => list(env, form(json)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

fn form(json: bool) -> Form {
    match json {
        true => Form::Json,
        false => Form::Text,
    }
}

/// Returns the flags with the folder that the command was given.
fn at(common: &GlobalArgs, dir: TrustDirArgs) -> GlobalArgs {
    GlobalArgs {
        workspace: dir.dir.or_else(|| common.workspace.clone()),
        ..common.clone()
    }
}

/// Returns the workspace without its parts that act, or with them if the person trusts it.
async fn inspect(common: &GlobalArgs, env: &ProcessEnv) -> Result<(PathBuf, Workspace), CliError> {
    let dir = workspace_dir(common, env)?;
    let options = OpenOptions {
        model_use: ModelUse::NotNeeded,
        ..open_options(common, env, &dir)?
    };
    let workspace = inspect_folder(&dir, options, &|name| env.get(name)).await?;
    Ok((dir.canonicalize()?, workspace))
}

async fn add(common: &GlobalArgs, env: &ProcessEnv) -> Result<ExitCode, CliError> {
    let (dir, workspace) = inspect(common, env).await?;
    let shown = dir.display();
    let Some(request) = workspace.trust.request() else {
        if let Some(error) = first_error(&workspace) {
            return Err(CliError::usage(format!(
                "{shown} cannot be opened, so what acts in it is not known: {error}"
            )));
        }
        outln!("nothing in {shown} acts by itself: there is nothing to trust");
        return Ok(ExitCode::SUCCESS);
    };
    let record = record(&dir, request)?;
    PersonalFolder::new(env).store_decision(&record)?;
    for part in &record.parts {
        outln!("{}", part.line());
    }
    outln!("{shown} is trusted as it is now");
    Ok(ExitCode::SUCCESS)
}

fn record(dir: &Path, request: &TrustRequest) -> Result<TrustRecord, CliError> {
    let record = TrustRecord::new(dir.to_owned(), TrustAnswer::Trusted, request);
    let reason = || request.fingerprint.clone().err().unwrap_or_default();
    record.ok_or_else(|| CliError::usage(reason()))
}

/// Trusts a folder whose parts that act are all in `made`, the files that were just created in it.
pub(crate) async fn trust_made(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
    made: &[String],
) -> Result<(), CliError> {
    let common = GlobalArgs {
        workspace: Some(dir.to_owned()),
        untrusted: UntrustedFolder::Restrict,
        ..common.clone()
    };
    let (dir, workspace) = inspect(&common, env).await?;
    let Some(request) = workspace.trust.request() else {
        return Ok(());
    };
    match request
        .parts
        .iter()
        .find(|part| !made.contains(&part.source))
    {
        None => PersonalFolder::new(env).store_decision(&record(&dir, request)?),
        Some(part) => {
            outln!(
                "\nwas there before and acts by itself: {} (`stead trust show {}` shows all)",
                part.line(),
                dir.display()
            );
            Ok(())
        }
    }
}

fn remove(common: &GlobalArgs, env: &ProcessEnv) -> Result<ExitCode, CliError> {
    // A decision can also be about a folder that is gone.
    let named = match &common.workspace {
        Some(dir) if !dir.is_dir() => std::path::absolute(dir)?,
        Some(_) | None => workspace_dir(common, env)?.canonicalize()?,
    };
    let shown = named.display();
    match PersonalFolder::new(env).forget_decision(&named)? {
        true => outln!("the decision about {shown} is forgotten"),
        false => {
            return Err(CliError::usage(format!(
                "nothing was decided about {shown} (`stead trust list`)"
            )));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(common: &GlobalArgs, env: &ProcessEnv, form: Form) -> Result<ExitCode, CliError> {
    let (dir, workspace) = inspect(common, env).await?;
    let error = first_error(&workspace);
    let state = match (&workspace.trust, error) {
        (FolderTrust::NotNeeded, Some(_)) => "unknown",
        (trust, _) => state(trust),
    };
    let parts = workspace
        .trust
        .request()
        .map_or(&[][..], |request| &request.parts);
    match form {
        Form::Json => out_json(&json!({"path": dir, "state": state, "parts": parts})),
        Form::Text => {
            for part in parts {
                outln!("{}", part.line());
            }
            match (error, state) {
                (Some(error), "unknown") => outln!(
                    "{} cannot be opened, so what acts in it is not known: {error}",
                    dir.display()
                ),
                (Some(_) | None, state) => {
                    outln!("{} is {}", dir.display(), state.replace('_', " "));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the first mistake that keeps a folder from being opened.
fn first_error(workspace: &Workspace) -> Option<&Finding> {
    let findings = workspace.definition.findings.iter();
    let mut errors = findings.filter(|finding| finding.severity == Severity::Error);
    errors.next()
}

/// Returns in a word how far a folder is trusted.
pub(crate) fn state(trust: &FolderTrust) -> &'static str {
    match trust {
        FolderTrust::NotNeeded => "harmless",
        FolderTrust::Trusted(_) => "trusted",
        FolderTrust::Restricted(_) | FolderTrust::Refused(..) => "not_trusted",
    }
}

fn list(env: &ProcessEnv, form: Form) -> Result<ExitCode, CliError> {
    let style = Style::stdout(env);
    let records = PersonalFolder::new(env).decisions()?;
    for record in &records {
        if form == Form::Json {
            out_json(&json!(record));
            continue;
        }
        let answer = match record.answer {
            TrustAnswer::Trusted => style.good("trusted  "),
            TrustAnswer::ReadOnly => style.warn("read only"),
        };
        let parts = counted(record.parts.len(), "part");
        outln!(
            "{answer}  {}  {}",
            record.path.display(),
            style.dim(&format!("{parts}, {:.0}", record.at))
        );
    }
    if records.is_empty() && form == Form::Text {
        outln!("nothing was decided about any folder yet");
    }
    Ok(ExitCode::SUCCESS)
}
