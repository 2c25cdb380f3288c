//! Tools of OpenPaw: built-in tools that its settings disable, and custom tools of a workspace.
//!
//! Effects: workspace files (reads).

use super::layers::ConfigLayers;
use super::settings::OpenpawSettings;
use crate::layout::Draft;
use crate::{ActingKind, Approval, FeatureSwitch, Finding, Severity};
use stead_core::ToolKind;
use stead_tools::{Availability, builtin_tool, known_tool};
use stead_vfs::FileKind;

/// OpenPaw's capabilities with their groups and the corresponding switches.
#[rustfmt::skip]
const BUILTINS: [(&str, &str, Option<FeatureSwitch>); 17] = [
    ("brave_search", "web", None),
    ("browser", "web", None),
    ("shell", "system", Some(FeatureSwitch::Shell)),
    ("spawn", "automation", Some(FeatureSwitch::Subagents)),
    ("cron", "automation", None),
    ("task_tracker", "automation", Some(FeatureSwitch::Tasks)),
    ("plan", "automation", Some(FeatureSwitch::Todos)),
    ("followup", "automation", None),
    ("send_message", "communication", None),
    ("send_file", "communication", None),
    ("memory_search", "memory", Some(FeatureSwitch::MemoryTools)),
    ("elevenlabs", "voice", None),
    ("whisper", "voice", None),
    ("md2pdf", "file", None),
    ("file_persistence", "file", None),
    ("docling", "file", None),
    ("timestamp", "context", None),
];

/// Notes `agent/tools/`: Python code that is run in a later version.
pub(super) async fn note_custom_tools(draft: &mut Draft<'_>, folder: &str) {
    for (name, kind) in draft.list_dir(folder).await {
        let what = match kind {
            FileKind::Directory | FileKind::Other => continue,
            FileKind::File if name == "requirements.txt" => {
                "packages of custom tools are installed in a later version"
            }
            FileKind::File if name.ends_with(".py") && !name.starts_with('_') => {
                "custom tools run in a later version"
            }
            FileKind::File => continue,
        };
        let file = format!("{folder}/{name}");
        let summary = match name.ends_with(".py") {
            true => format!("runs {file} as a tool"),
            false => format!("installs the packages in {file}"),
        };
        draft.declare_part(ActingKind::Tool, &file, (summary, Vec::new()));
        draft.note(Finding::new(Severity::Inactive, file, what));
    }
}

/// Disables what `builtins` and `workspace_tools` deny.
pub(super) fn apply_deny_lists(
    draft: &mut Draft<'_>,
    layers: &ConfigLayers,
    settings: &OpenpawSettings,
) {
    if let Some(builtins) = &settings.builtins {
        let listed = [("allow", &builtins.allow), ("deny", &builtins.deny)];
        for (list, i, name) in listed
            .iter()
            .flat_map(|(list, names)| names.iter().enumerate().map(move |(i, n)| (list, i, n)))
        {
            if let Some(message) = unknown_builtin(name) {
                draft.note(layers.finding(
                    Severity::NonFatal,
                    &format!("builtins.{list}[{i}]"),
                    format!("builtins.{list}: {message}"),
                ));
            }
        }
        for name in builtins
            .each
            .keys()
            .filter(|name| !BUILTINS.iter().any(|(known, ..)| known == name))
        {
            let message = format!(
                "builtins: {}",
                unknown_builtin(name).unwrap_or_else(|| format!("{name} is no builtin"))
            );
            draft.note(layers.finding(Severity::Error, &format!("builtins.{name}"), message));
        }
        let is_off = |name: &str, group: &str| {
            let named = |list: &[String]| {
                list.iter()
                    .any(|entry| entry == name || *entry == format!("group:{group}"))
            };
            let off = builtins
                .each
                .get(name)
                .and_then(Option::as_ref)
                .is_some_and(|builtin| !builtin.enabled);
            off || named(&builtins.deny) || (!builtins.allow.is_empty() && !named(&builtins.allow))
        };
        let off = BUILTINS
            .iter()
            .filter(|(name, group, _)| is_off(name, group));
        draft
            .config
            .disable
            .0
            .extend(off.filter_map(|(_, _, switch)| *switch));
        draft
            .tools
            .deny
            .extend(builtins.deny.iter().filter_map(|name| canonical_tool(name)));
    }
    if let Some(lists) = &settings.workspace_tools {
        draft
            .tools
            .deny
            .extend(lists.deny.iter().filter_map(|name| canonical_tool(name)));
    }
}

/// Makes the tools of `approval_gates` wait for a person.
pub(super) fn apply_approval_gates(
    draft: &mut Draft<'_>,
    layers: &ConfigLayers,
    settings: &OpenpawSettings,
) {
    let Some(gates) = &settings.approval_gates else {
        return;
    };
    if !gates.enabled && !gates.tools.is_empty() {
        let text = "approval_gates: nothing waits for a person without `enabled: true`";
        draft.note(layers.finding(Severity::Warning, "approval_gates", text));
        return;
    }
    for (name, gate) in &gates.tools {
        let asks = gate.clone().unwrap_or_default().require_approval;
        match canonical_tool(name).or_else(|| command_tool(name)) {
            Some(tool) => drop(draft.config.approvals.insert(
                tool,
                Approval {
                    asks,
                    ..Approval::default()
                },
            )),
            None => {
                let key = format!("approval_gates.tools.{name}");
                let message = format!("{key}: there is no tool {name} in this version");
                draft.note(layers.finding(Severity::Inactive, &key, message));
            }
        }
    }
}

/// Returns the canonical name of a tool, if stead has it.
fn canonical_tool(name: &str) -> Option<String> {
    known_tool(name)
        .filter(|tool| tool.availability == Availability::Available)
        .map(|tool| tool.name.to_owned())
}

/// Whether a built-in capability works in stead, so that its settings have an effect.
pub(super) fn is_supported(name: &str) -> bool {
    BUILTINS
        .iter()
        .any(|(builtin, _, switch)| *builtin == name && switch.is_some())
}

/// Returns the tool that runs commands, for any of its names.
fn command_tool(name: &str) -> Option<String> {
    builtin_tool(name)
        .filter(|tool| tool.kind == ToolKind::Command)
        .map(|tool| tool.name.to_owned())
}

/// Returns the problem of a name in a list of built-in capabilities, if it is unknown.
fn unknown_builtin(name: &str) -> Option<String> {
    let groups: Vec<String> = BUILTINS
        .iter()
        .map(|(_, group, _)| format!("group:{group}"))
        .collect();
    let names = BUILTINS.iter().map(|(name, ..)| *name);
    let known: Vec<&str> = names.chain(groups.iter().map(String::as_str)).collect();
    if known.contains(&name) || canonical_tool(name).is_some() {
        return None;
    }
    let near = crate::closest_name(name, &known)
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Some(format!("there is no builtin {name:?}{near}"))
}
