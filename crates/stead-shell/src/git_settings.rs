//! Whether the settings and attributes of a repository make git start programs when it reads.
//!
//! Effects: none.

const TABLE: &str = include_str!("../data/git_settings.txt");

/// The names of diff drivers that are built into git and start no program.
const BUILTIN_DRIVERS: [&str; 27] = [
    "ada",
    "astextplain",
    "bash",
    "bibtex",
    "cpp",
    "csharp",
    "css",
    "dts",
    "elixir",
    "fortran",
    "fountain",
    "golang",
    "html",
    "java",
    "kotlin",
    "markdown",
    "matlab",
    "objc",
    "pascal",
    "perl",
    "php",
    "python",
    "ruby",
    "rust",
    "scheme",
    "tex",
    "xml",
];

/// Returns the first setting of a `.git/config` that is not in the table (`data/git_settings.txt`),
/// and so may make git start a program; or the first line that cannot be read.
pub fn git_config_problem(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines() {
        let mut rest = line.trim();
        if let Some(header) = rest.strip_prefix('[') {
            let Some((name, after)) = section_name(header) else {
                return Some(format!("a line that cannot be read: {rest}"));
            };
            section = name;
            rest = after.trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let key = rest
            .split(['=', ' ', '\t', '#', ';'])
            .next()
            .unwrap_or_default();
        let setting = format!("{section}.{}", key.to_ascii_lowercase());
        // A value that goes on in the next line could look like a setting, or hide one.
        if rest.ends_with('\\') || !is_listed(&setting) {
            return Some(setting);
        }
    }
    None
}

/// Returns the name of a section, with `*` for the name in quotes, and what follows the header.
fn section_name(header: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = header.char_indices();
    let mut is_quoted = false;
    while let Some((at, c)) = chars.next() {
        match (c, is_quoted) {
            (']', false) => {
                let name = name.trim().to_ascii_lowercase();
                // `[remote.origin]` is an old form of `[remote "origin"]`.
                let name = match name.split_once('.') {
                    Some((section, _)) if !name.contains('*') => format!("{section}.*"),
                    Some(_) | None => name,
                };
                return header.get(at + 1..).map(|rest| (name, rest));
            }
            ('"', false) => {
                is_quoted = true;
                name = format!("{}.*", name.trim());
            }
            ('"', true) => is_quoted = false,
            ('\\', true) => {
                chars.next()?;
            }
            (_, true) => {}
            (c, false) => name.push(c),
        }
    }
    None
}

/// Whether a setting is in the table.
fn is_listed(setting: &str) -> bool {
    let is_entry = |entry: &str| match entry.strip_suffix(".*") {
        Some(section) => {
            let key = setting
                .strip_prefix(section)
                .and_then(|rest| rest.strip_prefix('.'));
            key.is_some_and(|key| !key.is_empty() && !key.contains('.'))
        }
        None => entry == setting,
    };
    let entries = TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    entries.into_iter().any(is_entry)
}

/// Returns the first attribute of a `.gitattributes` that names a program to convert files with.
pub fn git_attributes_problem(text: &str) -> Option<String> {
    let words = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    let words = words.flat_map(str::split_whitespace);
    let names_program = |word: &&str| match word.split_once('=') {
        Some(("filter", _)) => true,
        Some(("diff", driver)) => !BUILTIN_DRIVERS.contains(&driver),
        Some(_) | None => false,
    };
    words.into_iter().find(names_program).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_settings_start_no_program() {
        let usual = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            ; note\n# note\n[remote \"origin\"]\n\turl = git@example.com:a/b.git\n\
            \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a]b\"] merge = refs/heads/a\n\
            [branch.main]\nremote = origin\n[Color]\nUI = auto\n[alias]\n\tst = !rm -rf x\n";
        assert_eq!(git_config_problem(usual), None);
        assert_eq!(git_config_problem(""), None);
    }

    #[test]
    fn a_setting_that_may_start_a_program_is_found() {
        let table = [
            ("[filter \"x\"]\nclean = ./evil", "filter.*.clean"),
            ("[diff]\nexternal = ./evil", "diff.external"),
            ("[diff \"x\"]\ntextconv = ./evil", "diff.*.textconv"),
            ("[diff.x]\ntextconv = ./evil", "diff.*.textconv"),
            ("[core]\nfsmonitor = ./evil", "core.fsmonitor"),
            ("[CORE] fsMonitor=./evil", "core.fsmonitor"),
            ("[core]\nhooksPath = x", "core.hookspath"),
            ("[core]\nworktree = /", "core.worktree"),
            ("[core]\nattributesFile = x", "core.attributesfile"),
            ("[gpg]\nprogram = ./evil", "gpg.program"),
            ("[log]\nshowSignature", "log.showsignature"),
            ("[include]\npath = x", "include.path"),
            ("[includeIf \"gitdir:x\"]\npath = x", "includeif.*.path"),
            ("[submodule \"x\"]\nurl = x", "submodule.*.url"),
            ("[remote \"x\"]\npromisor = true", "remote.*.promisor"),
            ("[extensions]\npartialClone = x", "extensions.partialclone"),
            ("[user]\nname = a \\\n[core]\nfsmonitor = x", "user.name"),
            ("[core", "a line that cannot be read: [core"),
            ("fsmonitor = x", ".fsmonitor"),
        ];
        for (text, expected) in table {
            assert_eq!(
                git_config_problem(text).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn an_attribute_that_names_a_program_is_found() {
        assert_eq!(
            git_attributes_problem("*.rs text eol=lf diff=rust\n# *.x filter=y\n"),
            None
        );
        assert_eq!(git_attributes_problem("*.x -diff -filter !text"), None);
        let table = [
            ("*.x filter=y", "filter=y"),
            ("*.x diff=pdf", "diff=pdf"),
            ("[attr]m filter=y\n*.x m", "filter=y"),
        ];
        for (text, expected) in table {
            assert_eq!(
                git_attributes_problem(text).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }
}
