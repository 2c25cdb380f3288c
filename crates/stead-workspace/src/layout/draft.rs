//! The draft of a definition: what a layout loads from settings files, with its findings.
//!
//! Effects: workspace files (reads).

use super::{LoadCx, ModelUse, Strictness};
use crate::folder_trust::{DOTENV_KEY, named_in_line, part as acting_part};
use crate::{
    ActingKind, ActingPart, AgentConfig, AgentSpec, Definition, Finding, FixedText, HookSpec,
    Layout, ProcessVariable, SettingOrigin, SettingsDocument, Severity, WorkspacePaths,
};
use crate::{Surface, ToolLists, parse_dotenv};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::{UnsetVariable, VariableSyntax};
use stead_vfs::{FileKind, ReadRange, VPath, Vfs, VfsError};

/// The maximum size of a settings file or definition.
const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;
/// The maximum number of definitions of one kind in a folder.
const MAX_DEFINITIONS: usize = 1000;

/// A definition that is being loaded. Problems are collected, so that all are reported at once.
pub(crate) struct Draft<'a> {
    cx: &'a LoadCx<'a>,
    layout: Layout,
    /// The settings.
    pub(crate) config: AgentConfig,
    /// The paths of the parts.
    pub(crate) paths: WorkspacePaths,
    /// The agents by name.
    pub(crate) agents: BTreeMap<String, AgentSpec>,
    /// The name of the main agent.
    pub(crate) active: Option<String>,
    pub(crate) default_delegate: Option<String>,
    /// The allowed and denied tools.
    pub(crate) tools: ToolLists,
    /// The names under which tools are shown.
    pub(crate) surface: Surface,
    /// The hooks, in the order in which they are asked.
    pub(crate) hooks: Vec<HookSpec>,
    /// The sections of the prompt that come from settings.
    pub(crate) texts: Vec<FixedText>,
    findings: Vec<Finding>,
    origins: BTreeMap<String, SettingOrigin>,
    /// The variables of the folder's own `.env`.
    variables: BTreeMap<String, String>,
    /// The variables of the process that settings with an effect refer to.
    variable_uses: Vec<ProcessVariable>,
    /// The tool servers and tools.
    declared_parts: Vec<ActingPart>,
    /// The endpoints that the platform names, with the name of the model.
    pub(crate) platform_endpoints: Vec<(String, String)>,
    /// The variables of the platform's `.env`. Those of the process override them.
    platform_variables: BTreeMap<String, String>,
}

/// The tree that a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsRoot {
    /// The folder of the workspace.
    Workspace,
    /// The platform, which many workspaces share.
    Platform,
}

impl SettingsRoot {
    /// Returns the path of a file as findings name it.
    pub(crate) fn display_path(self, path: &str) -> String {
        match self {
            Self::Workspace => path.to_owned(),
            Self::Platform => format!("platform/{path}"),
        }
    }
}

/// The text of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsText {
    /// The path as findings name it.
    pub(crate) file: String,
    /// The text.
    pub(crate) text: String,
}

impl<'a> Draft<'a> {
    /// Creates a definition with nothing but paths.
    pub(crate) fn new(layout: Layout, tree: WorkspacePaths, cx: &'a LoadCx<'a>) -> Self {
        Self {
            cx,
            layout,
            config: AgentConfig::default(),
            paths: tree,
            agents: BTreeMap::new(),
            active: None,
            default_delegate: None,
            tools: ToolLists::default(),
            surface: layout.def().surface,
            hooks: Vec::new(),
            texts: Vec::new(),
            findings: Vec::new(),
            origins: BTreeMap::new(),
            variables: BTreeMap::new(),
            variable_uses: Vec::new(),
            declared_parts: Vec::new(),
            platform_endpoints: Vec::new(),
            platform_variables: BTreeMap::new(),
        }
    }

    /// Returns the layout.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }
    /// Whether an error about `file` was noted.
    pub(crate) fn has_error(&self, file: &str) -> bool {
        self.findings.iter().any(|finding| {
            finding.severity == Severity::Error && finding.source.file() == Some(file)
        })
    }

    /// Notes a finding.
    pub(crate) fn note(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Declares that the settings in `file` make something act: a tool server, a tool. `names` are
    /// the words of its command.
    pub(crate) fn declare_part(
        &mut self,
        kind: ActingKind,
        file: &str,
        (summary, names): (String, Vec<String>),
    ) {
        self.declared_parts.push(ActingPart {
            names,
            ..acting_part(kind, file, summary)
        });
    }

    /// Declares the tool server `name` with these settings.
    pub(crate) fn declare_server(&mut self, file: &str, name: &str, settings: &Value) {
        let text = |key: &str| settings.get(key).and_then(Value::as_str);
        let args = settings.get("args").and_then(Value::as_array);
        let args = args.into_iter().flatten().filter_map(Value::as_str);
        let words: Vec<&str> = text("command").into_iter().chain(args).collect();
        let line = words.join(" ");
        let action = match (text("command"), text("url")) {
            (Some(_), _) => format!("starts `{line}`"),
            (None, Some(url)) => format!("connects to {url}"),
            (None, None) => "is connected".to_owned(),
        };
        let summary = format!("{action} as the tool server {name}");
        self.declare_part(ActingKind::Server, file, (summary, named_in_line(&line)));
    }

    /// Returns the number of findings so far.
    pub(crate) fn finding_count(&self) -> usize {
        self.findings.len()
    }

    /// Removes the findings after the first `told` ones.
    pub(crate) fn truncate_findings(&mut self, told: usize) {
        self.findings.truncate(told);
    }

    /// Makes errors after the first `told` findings non-fatal.
    pub(crate) fn soften_findings(&mut self, told: usize) {
        let later = self.findings.iter_mut().skip(told);
        later
            .filter(|finding| finding.severity == Severity::Error)
            .for_each(|finding| finding.severity = Severity::NonFatal);
    }

    /// Makes non-fatal findings about files in `folder` errors, because a run needs those files.
    pub(crate) fn harden_findings(&mut self, folder: &str) {
        let inside = |finding: &&mut Finding| {
            let file = finding.source.file();
            file.is_some_and(|file| file.starts_with(&format!("{folder}/")))
        };
        let findings = self.findings.iter_mut().filter(inside);
        findings
            .filter(|finding| finding.severity == Severity::NonFatal)
            .for_each(|finding| finding.severity = Severity::Error);
    }

    /// Returns the value, or notes the finding.
    pub(crate) fn ok_or_note<T>(&mut self, result: Result<T, Finding>) -> Option<T> {
        result.map_err(|finding| self.note(finding)).ok()
    }

    /// Returns the severity of a mistake that the layout's own system passes over.
    pub(crate) fn lenient_severity(&self) -> Severity {
        match self.layout.def().strictness {
            Strictness::Strict => Severity::Error,
            Strictness::Lenient => Severity::NonFatal,
        }
    }

    /// Removes keys from the document that settings of type `T` do not have, and notes them, if the
    /// layout's own system ignores such keys.
    pub(crate) fn ignore_unknown_keys<T: DeserializeOwned>(
        &mut self,
        document: &mut SettingsDocument,
    ) {
        match self.layout.def().strictness {
            Strictness::Strict => {}
            Strictness::Lenient => self.findings.extend(document.remove_unknown_keys::<T>()),
        }
    }

    /// Records `document` as the origin of settings. `name` returns the known key for a key of the
    /// document, if there is one.
    pub(crate) fn record_origins(
        &mut self,
        document: &SettingsDocument,
        name: impl Fn(&str) -> Option<String>,
    ) {
        let origin = |spot| SettingOrigin {
            source: document.file().to_owned(),
            place: Some(spot),
        };
        let known = document
            .keys()
            .filter_map(|(key, spot)| Some((name(key)?, origin(spot))));
        self.origins.extend(known);
    }

    /// Notes keys of the document that are known and have no effect in this version.
    pub(crate) fn note_inactive_keys(
        &mut self,
        document: &SettingsDocument,
        keys: &[(&str, &str)],
    ) {
        for (key, what) in keys {
            let pointer = format!("/{}", key.replace('.', "/"));
            if document
                .value()
                .pointer(&pointer)
                .is_some_and(|value| !value.is_null())
            {
                self.note(document.finding(Severity::Inactive, key, format!("{key}: {what}")));
                self.forget_variables(document.file(), key);
            }
        }
    }

    /// Forgets the variables that settings in `file` refer to, because they have no effect.
    fn forget_variables_of(&mut self, file: &str) {
        self.variable_uses.retain(|used| used.file != file);
    }

    /// Forgets the variables that the setting `key` of `file` refers to, because it has no effect.
    pub(crate) fn forget_variables(&mut self, file: &str, key: &str) {
        self.variable_uses.retain(|used| {
            let below = used.key.strip_prefix(key);
            let is_inside =
                below.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
            used.file != file || !is_inside
        });
    }

    /// Reads a text file of the folder. Returns none if there is no such file.
    pub(crate) async fn read_file(&mut self, path: &str) -> Option<SettingsText> {
        self.read_file_in(SettingsRoot::Workspace, path).await
    }

    /// Reads a text file of either tree. Returns none if there is no such file.
    pub(crate) async fn read_file_in(
        &mut self,
        side: SettingsRoot,
        path: &str,
    ) -> Option<SettingsText> {
        let file = side.display_path(path);
        match read_text(self.root_files(side)?, path, &file).await {
            Ok(text) => text.map(|text| SettingsText { file, text }),
            Err(finding) => {
                self.note(finding);
                None
            }
        }
    }

    /// Reads a text file of the platform. Returns none if there is no platform or no such file.
    pub(crate) async fn read_platform_file(&mut self, path: &str) -> Option<SettingsText> {
        self.read_file_in(SettingsRoot::Platform, path).await
    }

    /// Whether there is anything at `path`.
    pub(crate) async fn exists(&self, path: &str) -> bool {
        let Ok(path) = VPath::parse(path) else {
            return false;
        };
        self.cx.files.stat(&path).await.is_ok()
    }

    /// The files of the folder.
    pub(crate) fn files(&self) -> &dyn Vfs {
        &**self.cx.files
    }

    /// Whether there is a regular file at `path`.
    pub(crate) async fn is_file(&self, path: &str) -> bool {
        let Ok(path) = VPath::parse(path) else {
            return false;
        };
        self.cx
            .files
            .stat(&path)
            .await
            .is_ok_and(|stat| stat.kind == FileKind::File)
    }

    /// Loads a YAML file of the folder and replaces variables. Returns none if there is no such
    /// file or it is invalid.
    pub(crate) async fn load_yaml(&mut self, path: &str) -> Option<SettingsDocument> {
        self.load_yaml_in(SettingsRoot::Workspace, path, VariableSyntax::All)
            .await
    }

    /// Loads a YAML file of either tree and replaces variables in the syntax `marks`.
    pub(crate) async fn load_yaml_in(
        &mut self,
        side: SettingsRoot,
        path: &str,
        marks: VariableSyntax,
    ) -> Option<SettingsDocument> {
        let (document, missing) = self.load_yaml_with_unset(side, path, marks).await?;
        self.findings.extend(
            missing
                .iter()
                .map(|missing| document.unset_variable_finding(missing)),
        );
        Some(document)
    }

    /// Loads a YAML file with settings that have no effect yet. A variable that is not set is not
    /// an error.
    pub(crate) async fn load_inactive_yaml(
        &mut self,
        path: &str,
        marks: VariableSyntax,
    ) -> Option<SettingsDocument> {
        let (document, missing) = self
            .load_yaml_with_unset(SettingsRoot::Workspace, path, marks)
            .await?;
        self.forget_variables_of(path);
        let lax = |missing| Finding {
            severity: Severity::NonFatal,
            ..document.unset_variable_finding(missing)
        };
        self.findings.extend(missing.iter().map(lax));
        Some(document)
    }

    /// Loads a YAML file and returns it with the variables that are not set, which are not noted.
    pub(crate) async fn load_yaml_with_unset(
        &mut self,
        side: SettingsRoot,
        path: &str,
        marks: VariableSyntax,
    ) -> Option<(SettingsDocument, Vec<UnsetVariable>)> {
        let read = self.read_file_in(side, path).await?;
        let mut document = self.ok_or_note(SettingsDocument::parse_yaml(&read.file, &read.text))?;
        let found = document.resolve_variables_as(marks, &|name| self.variable(name));
        self.config.secrets.extend(found.values);
        if side == SettingsRoot::Workspace {
            let of_process = found
                .uses
                .into_iter()
                .filter(|used| !self.variables.contains_key(&used.name));
            self.variable_uses
                .extend(of_process.map(|used| ProcessVariable {
                    name: used.name,
                    key: used.key,
                    file: read.file.clone(),
                }));
        }
        Some((document, found.unset))
    }

    /// Loads variables from a `.env` file, if there is one. Other programs use the file too, so its
    /// problems are not errors.
    pub(crate) async fn load_dotenv(&mut self, path: &str) {
        let before = self.findings.len();
        let read = self.read_file(path).await;
        self.soften_findings(before);
        let Some(read) = read else { return };
        let (variables, findings) = parse_dotenv(&read.file, &read.text);
        let origin = SettingOrigin {
            source: read.file,
            place: None,
        };
        self.origins.insert(DOTENV_KEY.to_owned(), origin);
        self.variables = variables;
        self.findings.extend(findings);
    }

    /// Loads variables from the platform's `.env`, if there is one.
    pub(crate) async fn load_platform_dotenv(&mut self, path: &str) {
        let Some(read) = self.read_platform_file(path).await else {
            return;
        };
        let (variables, findings) = parse_dotenv(&read.file, &read.text);
        self.platform_variables = variables;
        self.findings.extend(findings);
    }

    /// Returns a variable. Sources are tried in this order: the folder's own `.env`, the process,
    /// the platform's `.env`.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let own = self.variables.get(name).cloned();
        own.or_else(|| (self.cx.variables)(name))
            .or_else(|| self.platform_variables.get(name).cloned())
    }

    /// Returns the options that the folder is opened with.
    pub(crate) fn options(&self) -> &'a super::OpenOptions {
        self.cx.options
    }

    /// Lists a folder, sorted by name. The list is empty if there is no such folder.
    pub(crate) async fn list_dir(&mut self, path: &str) -> Vec<(String, FileKind)> {
        self.list_dir_in(SettingsRoot::Workspace, path).await
    }

    /// Lists a folder of either tree, sorted by name.
    pub(crate) async fn list_dir_in(
        &mut self,
        side: SettingsRoot,
        path: &str,
    ) -> Vec<(String, FileKind)> {
        let (Ok(folder), Some(files)) = (VPath::parse(path), self.root_files(side)) else {
            return Vec::new();
        };
        let path = &side.display_path(path);
        match files.list(&folder).await {
            Ok(entries) => {
                let mut names: Vec<_> = entries
                    .into_iter()
                    .map(|entry| (entry.name, entry.kind))
                    .collect();
                names.sort_by(|a, b| a.0.cmp(&b.0));
                if names.len() > MAX_DEFINITIONS {
                    let message = format!(
                        "{} entries; only the first {MAX_DEFINITIONS} are read",
                        names.len()
                    );
                    self.note(Finding::new(Severity::Warning, path, message));
                    names.truncate(MAX_DEFINITIONS);
                }
                names
            }
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => Vec::new(),
            Err(error) => {
                self.note(Finding::error(path, error.to_string()));
                Vec::new()
            }
        }
    }

    fn root_files(&self, side: SettingsRoot) -> Option<&'a dyn Vfs> {
        match side {
            SettingsRoot::Workspace => Some(&**self.cx.files),
            SettingsRoot::Platform => self.cx.options.platform.as_deref(),
        }
    }

    /// Returns the definition with all findings.
    pub(crate) fn finish(self) -> Definition {
        let mut config = self.config;
        config.secrets.extend(
            self.variables
                .iter()
                .filter(|(name, value)| is_secret_variable(name, value) || is_opaque(value))
                .map(|(_, value)| value.clone()),
        );
        config.secrets.retain(|secret| !secret.is_empty());
        config.variables = self.variables;
        Definition {
            layout: self.layout,
            config,
            paths: self.paths,
            agents: self.agents,
            active: self.active,
            default_delegate: self.default_delegate,
            tools: vec![self.tools],
            surface: self.surface,
            hooks: self.hooks,
            texts: self.texts,
            origins: self.origins,
            profiles: Vec::new(),
            variable_uses: self.variable_uses,
            declared_parts: self.declared_parts,
            platform_endpoints: self.platform_endpoints,
            findings: self.findings,
        }
    }
}

/// Returns the severity of a reference to a missing model. It is harmless if another model is used.
pub(crate) fn unresolved_severity(draft: &Draft<'_>) -> Severity {
    if draft.options().model.is_some() || draft.options().model_use != ModelUse::Required {
        Severity::NonFatal
    } else {
        Severity::Error
    }
}

/// Whether a variable is a secret, by its name or by the form of its value. Redacting other
/// variables would garble ordinary text.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let is_key = || KEY_PREFIXES.iter().any(|prefix| value.starts_with(prefix));
    is_secret_name(name) || has_credentials(value) || is_key()
}

/// How keys of well-known services begin.
const KEY_PREFIXES: [&str; 12] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
];

/// Whether a variable with this name is a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    let contains = |word: &&str| name.contains(*word);
    let is_part = |word: &&str| name.split('_').any(|part| part == *word);
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"]
        .iter()
        .any(contains)
        || ["PAT", "DSN", "PASS", "PASSPHRASE"].iter().any(is_part)
}

/// Whether a value of a `.env` file looks made up by a machine, whatever its name: a part of at least
/// eight letters and digits, both of them, or a password with signs. Words, numbers, addresses and
/// names of models are not.
fn is_opaque(value: &str) -> bool {
    let has = |text: &str, is: fn(char) -> bool| text.contains(is);
    let is_mixed = |text: &str| {
        text.len() >= MIN_OPAQUE_BYTES
            && has(text, |c| c.is_ascii_alphabetic())
            && has(text, |c| c.is_ascii_digit())
    };
    let has_signs = value.contains(['!', '#', '$', '%', '^', '&', '*', '=', '~', '?', '|']);
    let mut parts = value.split(|c: char| !c.is_ascii_alphanumeric());
    parts.any(is_mixed) || (has_signs && is_mixed(value) && !value.contains([' ', '/']))
}

/// The shortest value that may be opaque.
const MIN_OPAQUE_BYTES: usize = 8;

/// Whether a value is a URL with a password.
fn has_credentials(value: &str) -> bool {
    value.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
    })
}

async fn read_text(files: &dyn Vfs, path: &str, file: &str) -> Result<Option<String>, Finding> {
    let wrong = |message: String| Finding::error(file, message);
    let path = VPath::parse(path).map_err(|error| wrong(error.to_string()))?;
    let stat = match files.stat(&path).await {
        Ok(stat) => stat,
        Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    match stat.kind {
        FileKind::File => {}
        FileKind::Directory => return Err(wrong("is a folder; a file is needed here".to_owned())),
        FileKind::Other => return Err(wrong("is not an ordinary file".to_owned())),
    }
    if stat.size > MAX_SETTINGS_BYTES {
        return Err(wrong(format!(
            "has {} bytes; at most {MAX_SETTINGS_BYTES} are read",
            stat.size
        )));
    }
    // It may have grown since.
    let range = ReadRange {
        offset: 0,
        len: MAX_SETTINGS_BYTES,
    };
    let (bytes, _) = files
        .read(&path, range)
        .await
        .map_err(|error| wrong(error.to_string()))?;
    decode_text(file, bytes.into()).map(Some)
}

/// Decodes bytes as UTF-8, or returns the position of the first invalid byte as a finding.
pub(crate) fn decode_text(file: &str, bytes: Vec<u8>) -> Result<String, Finding> {
    if matches!(bytes.as_slice(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(Finding::error(file, "is UTF-16; save it as UTF-8"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let column = String::from_utf8_lossy(before)
            .chars()
            .rev()
            .take_while(|c| *c != '\n')
            .count() as u64
            + 1;
        Finding::error(file, "is not UTF-8 text; save it as UTF-8")
            .with_position(crate::SourcePosition { line, column })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_values_are_secrets_and_words_numbers_and_addresses_are_not() {
        let secret = [
            "hunter2hunter2",
            "q8Zr7Lm2",
            "550e8400-e29b-41d4-a716-446655440000",
            "https://hooks.example.com/services/T00000000/B1234567/XyZ12345abc",
            "correct#horse7",
        ];
        let plain = [
            "production",
            "20261118",
            "us-east-1",
            "claude-sonnet-4-5",
            "anthropic:claude-sonnet-4-5",
            "http://localhost:8080/v1",
            "Hello, what is 2+2?",
            "a1b2",
            "/srv/data/2026",
        ];
        for value in secret {
            assert!(is_opaque(value), "{value}");
        }
        for value in plain {
            assert!(!is_opaque(value), "{value}");
        }
    }
}
