//! The files of the workspace that a command runs as programs (`data/programs.txt`).
//!
//! Effects: none.

use super::script::{CommandPart, RedirectKind, ShellWord};
use super::wrappers::base_name;

const TABLE: &str = include_str!("../data/programs.txt");

/// The files that decide what a command runs, as they are written in the line or found by the
/// command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// Scripts that the line names. Each must be a regular file of the workspace.
    pub scripts: Vec<String>,
    /// Files that the command finds by itself. They may be absent.
    pub found: Vec<String>,
}

/// Why it is not known which program a command runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownProgram(String);

/// Returns the files that decide what a part runs. Programs that are installed on the machine do
/// not count.
pub fn program_files(part: &CommandPart) -> Result<ProgramFiles, UnknownProgram> {
    let Some(name) = part.name() else {
        return Ok(ProgramFiles::default());
    };
    let base = base_name(name);
    let program = Program::find(base).or_else(|| Program::find(versionless(base)));
    let mut files = ProgramFiles::default();
    if name.contains('/') {
        match name.starts_with('/') {
            true => files.found.push(name.to_owned()),
            false => files.scripts.push(name.to_owned()),
        }
    }
    let Some(program) = program else {
        return Ok(files);
    };
    files
        .found
        .extend(program.words("reads").map(str::to_owned));
    if program.is_interpreter() {
        program.add_script(part, &mut files)?;
    }
    Ok(files)
}

/// The rows of one command.
struct Program {
    name: &'static str,
    rows: Vec<(&'static str, &'static str)>,
}

impl Program {
    fn find(name: &str) -> Option<Self> {
        let rows: Vec<_> = rows().filter(|(row, _, _)| *row == name).collect();
        let (name, _, _) = rows.first()?;
        Some(Self {
            name,
            rows: rows
                .iter()
                .map(|(_, kind, words)| (*kind, *words))
                .collect(),
        })
    }

    fn words(&self, kind: &'static str) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().filter(move |(row, _)| *row == kind);
        rows.flat_map(|(_, words)| words.split(' '))
    }

    fn is_interpreter(&self) -> bool {
        self.words("flags").next().is_some()
    }

    /// Adds the script that the words of an interpreter name.
    fn add_script(
        &self,
        part: &CommandPart,
        files: &mut ProgramFiles,
    ) -> Result<(), UnknownProgram> {
        let name = self.name;
        let unknown = |why: String| Err(UnknownProgram(why));
        let mut words = part.words.iter().skip(1);
        for sub in self.words("subcommand") {
            if words.next().and_then(ShellWord::known) != Some(sub) {
                return Ok(());
            }
        }
        while let Some(word) = words.next() {
            let Some(text) = word.known() else {
                return unknown(format!("what `{}` comes to is not known", word.source));
            };
            if !text.starts_with('-') || text == "-" {
                return self.script(text, part, files);
            }
            if matches!(text, "--version" | "--help" | "-V" | "-h") && part.words.len() == 2 {
                return Ok(());
            }
            if text == "--" || self.is_flags(text) {
                continue;
            }
            if self.takes_code(text) {
                return match takes_input(part) {
                    true => unknown(format!("`{name}` gets input besides its program")),
                    false => Ok(()),
                };
            }
            if self.words("module").any(|option| option == text) {
                let module = words.next().and_then(ShellWord::known).unwrap_or_default();
                files.found.extend(module_files(module));
                return Ok(());
            }
            let is_valued = |option: &str| match text.strip_prefix(option) {
                Some("") => words.clone().next().is_some(),
                Some(_) => option.len() == 2,
                None => false,
            };
            let Some(option) = self.words("values").find(|option| is_valued(option)) else {
                return unknown(format!("what `{name}` runs with `{text}` is not known"));
            };
            if option == text {
                words.next();
            }
        }
        unknown(format!("`{name}` takes its program from its input"))
    }

    fn script(
        &self,
        path: &str,
        part: &CommandPart,
        files: &mut ProgramFiles,
    ) -> Result<(), UnknownProgram> {
        let is_input = path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/");
        if is_input || takes_input(part) {
            let why = format!("`{}` takes its program, or more, from its input", self.name);
            return Err(UnknownProgram(why));
        }
        files.scripts.push(path.to_owned());
        Ok(())
    }

    /// Whether a word consists of flags: a whole word of the table, or letters of a bundle.
    fn is_flags(&self, text: &str) -> bool {
        let letters = || text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let is_bundle = |flags: &str| {
            let known = flags
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'));
            letters().zip(known).is_some_and(|(letters, known)| {
                !letters.is_empty() && letters.chars().all(|letter| known.contains(letter))
            })
        };
        self.words("flags")
            .any(|flag| flag == text || is_bundle(flag))
    }

    /// Whether a word is an option whose value is the program, perhaps after flags: `-c`, `-lc`.
    fn takes_code(&self, text: &str) -> bool {
        let is_code = |option: &str| {
            let bundle = text
                .strip_suffix(option.trim_start_matches('-'))
                .filter(|_| option.len() == 2);
            option == text || bundle.is_some_and(|flags| self.is_flags(flags))
        };
        self.words("code").any(is_code)
    }
}

/// Returns the files in the folder that `python -m MODULE` would take for the module.
fn module_files(module: &str) -> Vec<String> {
    let path = module.replace('.', "/");
    let package = path.split('/').next().unwrap_or_default().to_owned();
    let mut files = vec![
        format!("{path}.py"),
        format!("{path}/__main__.py"),
        format!("{package}.py"),
        format!("{package}/__init__.py"),
    ];
    files.dedup();
    files
}

/// Whether a redirection gives a part input.
fn takes_input(part: &CommandPart) -> bool {
    part.redirects.iter().any(|redirect| match redirect.kind {
        RedirectKind::Read | RedirectKind::Heredoc(_) | RedirectKind::Text => true,
        RedirectKind::Write | RedirectKind::Duplicate => false,
    })
}

/// Removes the version of a name: `python3.12` becomes `python`.
fn versionless(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut fields = line.splitn(3, " | ");
        Some((fields.next()?, fields.next()?, fields.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const KINDS: [&str; 6] = ["flags", "values", "code", "module", "subcommand", "reads"];

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines();
        let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(lines.count(), rows().count());
        for (name, kind, words) in rows() {
            let are_words = words.split(' ').all(|word| !word.is_empty());
            assert!(
                KINDS.contains(&kind) && are_words,
                "{name} | {kind} | {words}"
            );
        }
    }

    #[test]
    fn the_program_that_a_command_runs_is_found_or_said_to_be_unknown() {
        #[rustfmt::skip]
        let known: [(&str, &[&str]); 16] = [
            ("python3 scripts/x.py --config y", &["scripts/x.py"]),
            ("python3.12 -u -W ignore x.py", &["x.py"]),
            ("python3 -Wignore x.py", &["x.py"]),
            ("python3 -c 'print(1)'", &[]),
            ("python3 --version", &[]),
            ("python3 -m json.tool x", &[]),
            ("bash -eu scripts/build.sh", &["scripts/build.sh"]),
            ("bash -o pipefail x.sh", &["x.sh"]),
            ("bash -lc 'make'", &[]),
            ("node --test x.mjs", &["x.mjs"]),
            ("deno run x.ts", &["x.ts"]),
            (". ./env.sh", &["./env.sh"]),
            ("./gradlew test", &["./gradlew"]),
            ("/usr/bin/true", &[]),
            ("make test", &[]),
            ("cargo test", &[]),
        ];
        for (command, scripts) in known {
            let part = parse(command).parts.remove(0);
            let files = program_files(&part).unwrap_or_else(|why| panic!("{command}: {why}"));
            assert_eq!(files.scripts, scripts, "{command}");
        }
        let unknown = [
            "python3",
            "python3 -",
            "python3 -i x.py",
            "python3 -v",
            "python3 /dev/stdin",
            "python3 x.py <<< code",
            "python3 -X dev - <<< code",
            "bash",
            "bash -n +n x.sh",
            "bash --rcfile x -i",
            "node -C x",
            "node --experimental_loader ./e.mjs x.js",
            "node --env-file=e x.js",
            "perl -I lib x.pl",
            "php -c evil.ini x.php",
            "lua -v -",
            "ruby -C . x.rb",
            "python3 $x",
            "bash < x.sh",
        ];
        for command in unknown {
            let part = parse(command).parts.remove(0);
            assert!(
                program_files(&part).is_err(),
                "{command}: {:?}",
                program_files(&part)
            );
        }
        let make = parse("make").parts.remove(0);
        let found = program_files(&make).unwrap().found;
        assert_eq!(found, ["Makefile", "makefile", "GNUmakefile"]);
        let module = parse("python3 -m json.tool x").parts.remove(0);
        assert!(
            program_files(&module)
                .unwrap()
                .found
                .contains(&"json/tool.py".to_owned())
        );
    }
}
