//! `stead skills list` and `check`: skills with their sources and problems.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes), the network.

use super::context::SkillContext;
use super::{SkillsFormat, is_workspace_owned, short_pin};
use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::print::{out_json, outln};
use crate::cli::style::Style;
use serde_json::{Value, json};
use std::process::ExitCode;
use stead::core::counted;
use stead::skills::{
    Catalogue, Consequence, Installation, InstalledSource, Shadowed, Skill, SkillFinding,
    SkillOrigin,
};
use unicode_width::UnicodeWidthStr;

/// The maximum number of characters of a description on a line.
const SHOWN_CHARS: usize = 72;

pub(super) async fn list(
    common: &GlobalArgs,
    env: &ProcessEnv,
    form: SkillsFormat,
) -> Result<ExitCode, CliError> {
    let places = SkillContext::open(common, env).await?;
    let catalogue = places.library().catalogue(&places.layers().await?).await;
    let installation = Installation::open(places.installed_files.clone()).await?;
    match form {
        SkillsFormat::Json => out_json(&as_json(&places, &catalogue, installation.sources())),
        SkillsFormat::Text => print_skills(env, &places, &catalogue, installation.sources()),
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(places: &SkillContext, catalogue: &Catalogue, sources: &[InstalledSource]) -> Value {
    let skill = |skill: &Skill| {
        json!({
            "name": skill.name(), "description": skill.header.description, "layer": layer_word(&skill.origin),
            "source": source_of(&skill.origin), "path": places.display_path(&skill.files, &skill.dir),
            "license": skill.header.license, "compatibility": skill.header.compatibility,
            "metadata": skill.header.metadata, "allowed_tools": skill.header.allowed_tools,
        })
    };
    let shadowed = |shadowed: &Shadowed| {
        json!({
            "name": shadowed.skill.name(), "layer": layer_word(&shadowed.skill.origin),
            "source": source_of(&shadowed.skill.origin),
            "path": places.display_path(&shadowed.skill.files, &shadowed.skill.dir),
            "by_layer": layer_word(&shadowed.by), "by_source": source_of(&shadowed.by),
            "by_path": shadowed.by_dir.as_str(),
        })
    };
    json!({
        "skills": catalogue.skills().map(skill).collect::<Vec<_>>(),
        "shadowed": catalogue.shadowed.iter().map(shadowed).collect::<Vec<_>>(),
        "sources": sources,
        "problems": catalogue.findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}

fn finding_json(finding: &SkillFinding) -> Value {
    let SkillFinding {
        origin: layer,
        path,
        problem,
        consequence,
    } = finding;
    json!({
        "layer": layer_word(layer), "source": source_of(layer), "path": path.as_str(), "line": problem.line,
        "column": problem.column, "message": problem.message, "skipped": *consequence == Consequence::Skipped,
    })
}

fn layer_word(layer: &SkillOrigin) -> &'static str {
    match layer {
        SkillOrigin::Global => "global",
        SkillOrigin::Repository(_) => "repository",
        SkillOrigin::Workspace => "workspace",
        SkillOrigin::User => "user",
    }
}

fn source_of(layer: &SkillOrigin) -> Option<&str> {
    match layer {
        SkillOrigin::Repository(name) => Some(name),
        SkillOrigin::Global | SkillOrigin::Workspace | SkillOrigin::User => None,
    }
}

fn print_skills(
    env: &ProcessEnv,
    places: &SkillContext,
    catalogue: &Catalogue,
    sources: &[InstalledSource],
) {
    let style = Style::stdout(env);
    if catalogue.is_empty() {
        outln!(
            "there are no skills; put one into skills/NAME/SKILL.md, or `stead skills add` some"
        );
    }
    let width = catalogue
        .skills()
        .map(|skill| skill.name().width())
        .max()
        .unwrap_or(0);
    for skill in catalogue.skills() {
        let pad = " ".repeat(width - skill.name().width());
        let name = style.bold(skill.name());
        let layer = skill.origin.to_string();
        let origin = places.display_path(&skill.files, &skill.dir);
        outln!("{name}{pad}  {layer:<18}  {}", origin);
        let description = skill
            .header
            .description
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let clipped = match description.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) => format!("{}…", &description[..end]),
            None => description,
        };
        outln!("{}  {}", " ".repeat(width), style.dim(&clipped));
    }
    for source in sources {
        let rev = source
            .rev
            .as_ref()
            .map_or(String::new(), |rev| format!("#{rev}"));
        let from = format!("{}{rev}", source.from);
        let kind = source.kind;
        let pinned = short_pin(&source.pinned);
        outln!(
            "source {}: {kind} {} at {pinned}",
            style.bold(&source.name),
            from
        );
    }
    for Shadowed { skill, by, by_dir } in &catalogue.shadowed {
        let hidden = places.display_path(&skill.files, &skill.dir);
        let text = format!("{hidden} ({}): {by_dir} ({by}) is used", skill.origin);
        outln!("{} {}", style.warn("hidden"), text);
    }
    for finding in &catalogue.findings {
        let mark = match finding.consequence {
            Consequence::Used => style.warn("warning"),
            Consequence::Skipped => style.bad("skipped"),
        };
        outln!("{mark} {}", finding.to_string());
    }
}

pub(super) async fn check(
    common: &GlobalArgs,
    env: &ProcessEnv,
    form: SkillsFormat,
) -> Result<ExitCode, CliError> {
    let places = SkillContext::open(common, env).await?;
    let catalogue = places.library().catalogue(&places.layers().await?).await;
    let findings = catalogue.check().await;
    let installation = Installation::open(places.installed_files.clone()).await?;
    let mut changed = Vec::new();
    for source in installation.sources() {
        let names = installation.modified_skills(&source.name).await?;
        changed.extend(names.into_iter().map(|skill| (source.name.clone(), skill)));
    }
    let errors = findings
        .iter()
        .filter(|finding| is_workspace_owned(&finding.origin))
        .count();
    match form {
        SkillsFormat::Json => {
            let changed: Vec<Value> = changed
                .iter()
                .map(|(source, skill)| json!({"source": source, "skill": skill}))
                .collect();
            let problems: Vec<Value> = findings.iter().map(finding_json).collect();
            out_json(
                &json!({"skills": catalogue.skills().len(), "problems": problems, "changed": changed}),
            );
        }
        SkillsFormat::Text => print_checked(env, &catalogue, &findings, &changed),
    }
    Ok(ExitCode::from(if errors > 0 { 2 } else { 0 }))
}

fn print_checked(
    env: &ProcessEnv,
    catalogue: &Catalogue,
    findings: &[SkillFinding],
    changed: &[(String, String)],
) {
    let style = Style::stdout(env);
    let mut errors = 0;
    let mut warnings = changed.len();
    for finding in findings {
        let mark = if is_workspace_owned(&finding.origin) {
            errors += 1;
            style.bad("error  ")
        } else {
            warnings += 1;
            style.warn("warning")
        };
        outln!("{mark} {}", finding.to_string());
    }
    for (source, skill) in changed {
        let text = format!(
            "{skill} of {source} was changed after it was installed; `stead skills update {source}` renews it"
        );
        outln!("{} {}", style.warn("warning"), text);
    }
    let skills = counted(catalogue.skills().len(), "skill");
    let errors = counted(errors, "error");
    outln!(
        "{skills} checked: {errors}, {}",
        counted(warnings, "warning")
    );
}
