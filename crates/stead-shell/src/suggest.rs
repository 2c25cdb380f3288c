//! The rules for an "always" answer.

use super::escapes::find_escape;
use super::parse;
use super::pattern::CommandPattern;
use super::script::{CommandPart, Invocation, ShellWord};
use super::wrappers::base_name;

/// The maximum number of rules: a longer list is not narrow.
const MAX_RULES: usize = 5;

/// The tools with subcommands.
const TOOLS: [&str; 40] = [
    "git",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "go",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "pdm",
    "conda",
    "brew",
    "apt",
    "apt-get",
    "dnf",
    "gh",
    "glab",
    "terraform",
    "aws",
    "gcloud",
    "az",
    "rustup",
    "dotnet",
    "mvn",
    "gradle",
    "rails",
    "bundle",
    "gem",
    "composer",
    "php",
    "mix",
    "nix",
    "systemctl",
    "deno",
];
/// The subcommands that run whatever follows, or change what the tool itself runs.
const UNBOUNDED: [&str; 19] = [
    "exec",
    "x",
    "dlx",
    "run-script",
    "config",
    "eval",
    "filter-branch",
    "bisect",
    "repl",
    "shell",
    "console",
    "runner",
    "ssh",
    "attach",
    "cp",
    "alias",
    "develop",
    "tool",
    "rebase",
];
/// The subcommands that have subcommands of their own: `npm run build`.
const GROUPS: [(&str, &str); 8] = [
    ("npm", "run"),
    ("pnpm", "run"),
    ("yarn", "run"),
    ("bun", "run"),
    ("docker", "compose"),
    ("gh", "pr"),
    ("gh", "issue"),
    ("git", "stash"),
];
/// The subcommands that are too broad by themselves: `docker run IMAGE ANYTHING`.
const RUNNERS: [(&str, &str); 9] = [
    ("docker", "run"),
    ("podman", "run"),
    ("kubectl", "run"),
    ("uv", "run"),
    ("poetry", "run"),
    ("pdm", "run"),
    ("conda", "run"),
    ("deno", "run"),
    ("nix", "run"),
];
/// The commands that are never suggested, because they run what they are given, or destroy.
const NEVER_SUGGESTED: [&str; 111] = [
    "sh",
    "bash",
    "dash",
    "ash",
    "ksh",
    "mksh",
    "zsh",
    "fish",
    "csh",
    "tcsh",
    "rbash",
    "pwsh",
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "lua",
    "tclsh",
    "awk",
    "gawk",
    "mawk",
    "osascript",
    "ghci",
    "irb",
    "eval",
    "exec",
    "source",
    ".",
    "trap",
    "command",
    "builtin",
    "env",
    "xargs",
    "find",
    "fd",
    "parallel",
    "sudo",
    "doas",
    "su",
    "runuser",
    "nohup",
    "nice",
    "ionice",
    "timeout",
    "time",
    "stdbuf",
    "setsid",
    "watch",
    "strace",
    "ltrace",
    "flock",
    "chroot",
    "unshare",
    "nsenter",
    "busybox",
    "toybox",
    "script",
    "expect",
    "ssh",
    "scp",
    "rm",
    "rmdir",
    "dd",
    "mkfs",
    "shred",
    "truncate",
    "tee",
    "chmod",
    "chown",
    "kill",
    "pkill",
    "killall",
    "reboot",
    "shutdown",
    "npx",
    "uvx",
    "pipx",
    "bunx",
    "vi",
    "vim",
    "nvim",
    "ed",
    "ex",
    "emacs",
    "alias",
    "function",
    "export",
    "declare",
    "[[",
    "[",
    "test",
    "read",
    "enable",
    "cp",
    "mv",
    "ln",
    "install",
    "rsync",
    "setpriv",
    "at",
    "batch",
    "tmux",
    "screen",
    "gdb",
    "crontab",
    "ld.so",
    "printf",
    "mapfile",
];

/// Returns narrow allow rules, one for each command, under which this command line would be
/// allowed. The list is empty if there are none, or only rules that nobody should make with one
/// key.
pub fn suggest_rules(command: &str) -> Vec<String> {
    let script = parse(command);
    if script.ambiguity.is_some() {
        return Vec::new();
    }
    let mut rules: Vec<String> = Vec::new();
    for part in &script.parts {
        let Some(rule) = rule_for(part).filter(|rule| covers(rule, part)) else {
            return Vec::new();
        };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    if rules.len() > MAX_RULES {
        Vec::new()
    } else {
        rules
    }
}

/// Whether a rule covers everything that a part may be made to run.
fn covers(rule: &str, part: &CommandPart) -> bool {
    CommandPattern::new(rule).is_ok_and(|rule| find_escape(part, rule.word_count()).is_none())
}

fn rule_for(part: &CommandPart) -> Option<String> {
    let is_usual =
        |name: &&str| is_plain(name) && !name.contains('/') && !NEVER_SUGGESTED.contains(name);
    let name = part.name().filter(is_usual)?;
    if part.invocation != Invocation::Direct
        || part.writes()
        || !part.assignments.is_empty()
        || is_interpreter(name)
    {
        return None;
    }
    if !TOOLS.contains(&name) {
        return Some(format!("{name} *"));
    }
    let word = |at: usize| part.words.get(at).map(ShellWord::known);
    match (word(1), word(2)) {
        (None, _) => Some(name.to_owned()),
        (Some(Some(sub)), _) if UNBOUNDED.contains(&sub) || RUNNERS.contains(&(name, sub)) => None,
        (Some(Some(sub)), Some(third)) if GROUPS.contains(&(name, sub)) => third
            .filter(|third| is_sub_command(third) && *third != "run" && !UNBOUNDED.contains(third))
            .map(|third| format!("{name} {sub} {third} *")),
        (Some(Some(sub)), _) if is_sub_command(sub) => Some(format!("{name} {sub} *")),
        (Some(Some(option)), None) if is_plain(option) => Some(format!("{name} {option}")),
        (Some(_), _) => None,
    }
}

/// Whether a name is an interpreter with a version: `python3.12`, `ruby3`.
fn is_interpreter(name: &str) -> bool {
    let stem =
        base_name(name).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    NEVER_SUGGESTED.contains(&stem)
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-./+@:,=".contains(&byte))
}

fn is_sub_command(word: &str) -> bool {
    is_plain(word) && word.starts_with(|c: char| c.is_ascii_alphanumeric()) && !word.ends_with(':')
}
