//! Finds the files of the folder that the words of a command name.
//!
//! Every word is looked up in the folder of the command, at the root, and below every folder that a
//! word names: so it does not matter how a command changes its folder.
//!
//! Effects: workspace files (reads).

use super::named_files::{CommandNames, MAX_NAMED_FILES};
use std::collections::BTreeSet;
use stead_vfs::{FileKind, VPath, Vfs};

/// The most folders below which the words of a command are looked up.
const MAX_FOLDERS: usize = 32;

/// Why the files of a command are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the command names more than {MAX_NAMED_FILES} words, {MAX_FOLDERS} folders or {MAX_NAMED_FILES} files; put it \
     into a script, and name that"
)]
pub(crate) struct TooManyNames;

/// Returns the files that a command names, of a link also the target, and the folders of patterns.
/// Names of files that are not there yet are among them: what appears there would be run.
pub(crate) async fn named_files(
    names: &CommandNames,
    cwd: &VPath,
    files: &dyn Vfs,
) -> Result<BTreeSet<VPath>, TooManyNames> {
    if names.words.len() > MAX_NAMED_FILES {
        return Err(TooManyNames);
    }
    let folders = folders_of(&names.words, cwd, files).await?;
    let mut found = BTreeSet::new();
    for folder in &folders {
        for word in &names.words {
            let Some(path) = below(folder, word) else {
                continue;
            };
            match files.stat(&path).await {
                Ok(stat) if stat.kind == FileKind::File => {
                    found.extend(files.resolve(&path).await);
                    found.insert(path);
                }
                Ok(_) => {}
                Err(_) if folder == cwd && looks_like_a_file(word) => {
                    found.insert(path);
                }
                Err(_) => {}
            }
        }
        for pattern in &names.patterns {
            found.extend(matching(folder, pattern, files).await?);
        }
        if found.len() > MAX_NAMED_FILES {
            return Err(TooManyNames);
        }
    }
    Ok(found)
}

/// Whether a word that names nothing would be the name of a file. A pattern, a variable or an address
/// would not.
fn looks_like_a_file(word: &str) -> bool {
    let is_other = word.contains(['*', '?', '[', '{', '$', ':', '=', ',', '\\']);
    !is_other && !word.starts_with(['-', '/']) && word.contains('/')
}

/// Returns the folders that the words name, each also below the others, with that of the command.
async fn folders_of(
    words: &[String],
    cwd: &VPath,
    files: &dyn Vfs,
) -> Result<BTreeSet<VPath>, TooManyNames> {
    let mut folders = BTreeSet::from([cwd.clone(), VPath::root()]);
    let mut new: Vec<VPath> = folders.iter().cloned().collect();
    while let Some(folder) = new.pop() {
        for word in words {
            let Some(path) = below(&folder, word).filter(|path| !folders.contains(path)) else {
                continue;
            };
            let stat = files.stat(&path).await;
            if stat.is_ok_and(|stat| stat.kind == FileKind::Directory) {
                folders.insert(path.clone());
                new.push(path);
            }
            if folders.len() > MAX_FOLDERS {
                return Err(TooManyNames);
            }
        }
    }
    Ok(folders)
}

/// Returns the path that a word means in a folder; none if it leads out of the workspace.
fn below(folder: &VPath, word: &str) -> Option<VPath> {
    let mut parts: Vec<&str> = folder.parts().collect();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    VPath::parse(&parts.join("/")).ok()
}

/// Returns the files that a pattern matches, and the folder that they lie in.
async fn matching(
    folder: &VPath,
    pattern: &str,
    files: &dyn Vfs,
) -> Result<BTreeSet<VPath>, TooManyNames> {
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let mut here = vec![folder.clone()];
    let mut found = BTreeSet::new();
    for (n, part) in parts.iter().enumerate() {
        let is_last = n + 1 == parts.len();
        let mut next = Vec::new();
        for dir in &here {
            if !part.contains(['*', '?', '[']) {
                next.extend(below(dir, part));
                continue;
            }
            let Ok(entries) = files.list(dir).await else {
                continue;
            };
            let named = entries.iter().filter(|entry| matches(part, &entry.name));
            next.extend(named.filter_map(|entry| dir.join(&entry.name).ok()));
            // A file that appears there later would be run, too.
            if is_last && !dir.is_root() {
                found.insert(dir.clone());
            }
        }
        if next.len() > MAX_NAMED_FILES {
            return Err(TooManyNames);
        }
        here = next;
    }
    for path in here {
        if files
            .stat(&path)
            .await
            .is_ok_and(|stat| stat.kind == FileKind::File)
        {
            found.extend(files.resolve(&path).await);
            found.insert(path);
        }
    }
    Ok(found)
}

/// Whether a shell's pattern may match a name. `[…]` counts as any one character.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = without_classes(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

fn without_classes(pattern: &str) -> Vec<char> {
    let mut out = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let closed = c == '[' && rest.as_str().contains(']');
        if closed {
            rest.by_ref().find(|c| *c == ']');
            out.push('?');
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_a_shell_or_more() {
        for (pattern, name, expected) in [
            ("*.sh", "a.sh", true),
            ("*.sh", "a.py", false),
            ("a?c*", "abcdef", true),
            ("[ab].sh", "b.sh", true),
            ("*a*b", "xaxbxb", true),
            ("a", "ab", false),
            ("[", "[", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn words_lead_below_a_folder_and_not_out_of_the_workspace() {
        let folder = VPath::parse("a/b").unwrap();
        for (word, path) in [
            ("c.sh", Some("a/b/c.sh")),
            ("../c.sh", Some("a/c.sh")),
            ("tools/../c.sh", Some("a/b/c.sh")),
            ("../../../c.sh", None),
        ] {
            let found = below(&folder, word);
            assert_eq!(found.as_ref().map(VPath::as_str), path, "{word}");
        }
    }
}
