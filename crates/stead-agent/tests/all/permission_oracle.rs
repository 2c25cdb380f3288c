//! Test support: an independent oracle for file permission rules, used by the permission tests.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
}

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) ops: Vec<Op>,
    pub(crate) paths: Vec<String>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File(String),
    Dir,
    Link(String),
}

/// A tree and its rules. The root is the empty path.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) rules: Vec<Rule>,
}

/// What a tool does to a path.
#[derive(Debug, Clone)]
pub(crate) enum Touch {
    Content(Op, String),
    Tree(Op, String),
    Arrival { from: String, to: String },
}

fn join(a: &str, b: &str) -> String {
    [a, b]
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join("/")
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn is_below(path: &str, directory: &str) -> bool {
    path != directory && (directory.is_empty() || path.starts_with(&format!("{directory}/")))
}

impl World {
    /// The path without links; none if it leads out or in a circle.
    pub(crate) fn resolve(&self, path: &str) -> Option<String> {
        let mut todo: Vec<String> = path
            .split('/')
            .filter(|p| !p.is_empty())
            .rev()
            .map(str::to_owned)
            .collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part == ".." {
                done.pop()?;
                continue;
            }
            let here = join(&done.join("/"), &part);
            match self.nodes.get(&here) {
                Some(Node::Link(target)) => {
                    links += 1;
                    if links > 40 || target.starts_with('/') {
                        return None;
                    }
                    todo.extend(
                        target
                            .split('/')
                            .filter(|p| !p.is_empty() && *p != ".")
                            .rev()
                            .map(str::to_owned),
                    );
                }
                Some(Node::File(_) | Node::Dir) => done.push(part),
                None => {
                    todo.push(part);
                    break;
                }
            }
        }
        let rest: Vec<String> = todo.into_iter().rev().collect();
        if rest.iter().any(|part| part == "..") {
            return None;
        }
        done.extend(rest);
        Some(done.join("/"))
    }

    /// Where the name itself lies, from the nearest directory that can be resolved.
    fn lies(&self, path: &str) -> String {
        if path.is_empty() {
            return String::new();
        }
        let mut above = parent(path);
        loop {
            if let Some(real) = self.resolve(above) {
                return join(&real, path[above.len()..].trim_start_matches('/'));
            }
            above = parent(above);
        }
    }

    fn aliases(&self, path: &str) -> BTreeSet<String> {
        let mut all: BTreeSet<String> = [path.to_owned(), self.lies(path)].into();
        all.extend(self.resolve(path));
        all
    }

    fn one(&self, op: Op, path: &str) -> Kind {
        self.decide(op, path).0
    }

    /// The verdict by name alone, and the asking rule if it is one.
    fn decide(&self, op: Op, path: &str) -> (Kind, Option<usize>) {
        if self.is_protected(op, path) {
            return (Kind::Deny, None);
        }
        for (index, rule) in self.rules.iter().enumerate() {
            if rule.ops.contains(&op) && rule.paths.iter().any(|pattern| covers(pattern, path)) {
                return (rule.kind, (rule.kind == Kind::Ask).then_some(index));
            }
        }
        (Kind::Allow, None)
    }

    fn is_protected(&self, op: Op, path: &str) -> bool {
        let lower = path.to_lowercase();
        let parts: Vec<&str> = lower.split('/').filter(|part| !part.is_empty()).collect();
        let secret = |part: &&str| {
            let names = [
                ".netrc",
                ".pgpass",
                ".git-credentials",
                "id_rsa",
                "id_dsa",
                "id_ecdsa",
                "id_ed25519",
            ];
            part.starts_with(".env") || names.contains(part)
        };
        if parts.iter().any(secret) || parts.windows(2).any(|two| two == [".aws", "credentials"]) {
            return true;
        }
        if parts.starts_with(&["memory", "quarantine"]) {
            return true;
        }
        let settings = [
            "agent.yaml",
            "tools.json",
            "hooks",
            "crons",
            "agents",
            ".stead",
        ];
        let marks = [
            "AGENT.md",
            "agent/AGENT.md",
            "config/agent.yaml",
            ".openharness",
            ".deepagents",
            ".agentscope",
            ".mcp",
            "skills/.seed",
            "agent.json",
            "deepagents.toml",
        ];
        let fixed = [&settings[..], &marks[..]].concat();
        let begins = |name: &str| {
            parts
                .join("/")
                .strip_prefix(&name.to_lowercase())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if op == Op::Write && (parts.is_empty() || fixed.iter().any(|name| begins(name))) {
            return true;
        }
        let secrets = [
            ".env",
            ".netrc",
            ".pgpass",
            ".git-credentials",
            "id_rsa",
            "id_dsa",
            "id_ecdsa",
            "id_ed25519",
        ];
        let leads = |name: &str| self.resolve(name).filter(|end| end != name);
        let within = |outer: &str, inner: &str| inner == outer || is_below(inner, outer);
        let by_secret = secrets.iter().filter_map(|name| leads(name));
        let by_fixed = fixed
            .iter()
            .filter(|_| op == Op::Write)
            .filter_map(|name| leads(name));
        by_secret
            .chain(by_fixed)
            .any(|end| within(&end, path) || (op == Op::Write && within(path, &end)))
    }

    fn below(&self, directory: &str) -> Vec<String> {
        let at = self
            .resolve(directory)
            .filter(|end| *end == self.lies(directory));
        let Some(real) = at else { return Vec::new() };
        let inside = self.nodes.keys().filter(|path| is_below(path, &real));
        inside
            .map(|path| path[real.len()..].trim_start_matches('/').to_owned())
            .collect()
    }

    /// The verdict on everything a call touches. What cannot be resolved is refused.
    pub(crate) fn verdict(&self, touches: &[Touch]) -> Kind {
        touches
            .iter()
            .map(|touch| self.touch(touch))
            .max()
            .unwrap_or(Kind::Allow)
    }

    fn touch(&self, touch: &Touch) -> Kind {
        match touch {
            Touch::Content(op, path) => {
                let own = self
                    .aliases(path)
                    .iter()
                    .map(|alias| self.one(*op, alias))
                    .max()
                    .unwrap();
                if self.resolve(path).is_none() {
                    Kind::Deny
                } else {
                    own
                }
            }
            Touch::Tree(op, path) => {
                let mut worst = self.itself(*op, path);
                for rest in self.below(path) {
                    let child = join(path, &rest);
                    worst = self
                        .aliases(&child)
                        .iter()
                        .map(|alias| self.one(*op, alias))
                        .max()
                        .unwrap()
                        .max(worst);
                }
                worst
            }
            Touch::Arrival { from, to } => {
                let mut worst = self.itself(Op::Write, to);
                for rest in self.below(from) {
                    for root in [to.clone(), self.lies(to)] {
                        worst = worst.max(self.one(Op::Write, &join(&root, &rest)));
                    }
                }
                worst
            }
        }
    }

    fn itself(&self, op: Op, path: &str) -> Kind {
        let own = self
            .aliases(path)
            .iter()
            .map(|alias| self.one(op, alias))
            .max()
            .unwrap();
        let placed = self.resolve(path).is_some() || self.resolve(parent(path)).is_some();
        if placed { own } else { Kind::Deny }
    }

    /// Whether an access to this path is denied by its name already.
    pub(crate) fn is_denied(&self, op: Op, path: &str) -> bool {
        self.one(op, path) == Kind::Deny
    }

    /// What `ls` shows, if the path is a directory.
    pub(crate) fn listing(&self, path: &str) -> Option<Vec<String>> {
        let real = self.resolve(path)?;
        if !real.is_empty() && self.nodes.get(&real) != Some(&Node::Dir) {
            return None;
        }
        let mut rows = Vec::new();
        for (child, node) in self
            .nodes
            .iter()
            .filter(|(child, _)| is_below(child, &real) && parent(child) == real)
        {
            let name = child.rsplit('/').next().unwrap();
            let mut names: BTreeSet<String> = [child.clone(), join(path, name)].into();
            let end = self.resolve(child);
            if matches!(node, Node::Link(_)) {
                names.extend(end.clone());
            }
            if names.iter().any(|name| self.is_denied(Op::Read, name)) {
                continue;
            }
            let shown = match end.as_ref().map(|end| {
                if end.is_empty() {
                    Some(&Node::Dir)
                } else {
                    self.nodes.get(end)
                }
            }) {
                Some(Some(Node::Dir)) => format!("{name}/"),
                Some(Some(Node::File(text))) => format!("{name}  ({} bytes)", text.len()),
                _ => format!("{name}  (special, or leads out of the workspace)"),
            };
            rows.push((name.to_owned(), shown));
        }
        rows.sort();
        Some(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// Files below a directory that a search may tell of, and how many are left out because they
    /// ask.
    pub(crate) fn searchable(&self, root: &str, content: bool) -> Option<(Vec<String>, usize)> {
        let real = self.resolve(root)?;
        let answered: Vec<usize> = self
            .aliases(root)
            .iter()
            .filter_map(|alias| self.decide(Op::Read, alias).1)
            .collect();
        let files: Vec<&String> = match self.nodes.get(&real) {
            Some(Node::File(_)) if content => vec![self.nodes.get_key_value(&real).unwrap().0],
            Some(Node::Dir) => self
                .nodes
                .keys()
                .filter(|path| is_below(path, &real))
                .collect(),
            None if real.is_empty() => self.nodes.keys().collect(),
            Some(Node::File(_) | Node::Link(_)) | None => return None,
        };
        let mut seen = Vec::new();
        let mut left_out = 0;
        for path in files
            .into_iter()
            .filter(|path| matches!(self.nodes[*path], Node::File(_)))
        {
            if self.is_denied(Op::Read, path) {
                continue;
            }
            let asks = self
                .decide(Op::Read, if content { path } else { parent(path) })
                .1;
            match asks {
                Some(rule) if !answered.contains(&rule) => left_out += 1,
                Some(_) | None => seen.push(path.clone()),
            }
        }
        seen.sort();
        Some((seen, left_out))
    }
}

/// Whether a pattern matches the path or something it lies in.
pub(crate) fn covers(pattern: &str, path: &str) -> bool {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    expand(pattern).iter().any(|plain| {
        let parts: Vec<&str> = plain
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        (0..=names.len()).any(|end| path_matches(&parts, &names[..end]))
    })
}

fn path_matches(parts: &[&str], names: &[&str]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, _) => names.is_empty(),
        (Some((&"**", rest)), None) => path_matches(rest, names),
        (Some((&"**", rest)), Some((_, below))) => {
            path_matches(rest, names) || path_matches(parts, below)
        }
        (Some(_), None) => false,
        (Some((part, rest)), Some((name, below))) => {
            let part: Vec<char> = part.chars().collect();
            let name: Vec<char> = name.chars().collect();
            name_matches(&part, &name) && path_matches(rest, below)
        }
    }
}

fn name_matches(part: &[char], name: &[char]) -> bool {
    match (part, name) {
        ([], _) => name.is_empty(),
        (['*', rest @ ..], _) => (0..=name.len()).any(|skip| name_matches(rest, &name[skip..])),
        (_, []) => false,
        (['?', rest @ ..], [_, below @ ..]) => name_matches(rest, below),
        (['\\', c, rest @ ..], [d, below @ ..]) => c == d && name_matches(rest, below),
        (['[', rest @ ..], [c, below @ ..]) => {
            let end = 1 + rest.iter().skip(1).position(|c| *c == ']').unwrap();
            let class = &rest[..end];
            let after = &rest[end + 1..];
            let (negated, class) = if class[0] == '!' {
                (true, &class[1..])
            } else {
                (false, class)
            };
            class.contains(c) != negated && name_matches(after, below)
        }
        ([a, rest @ ..], [b, below @ ..]) => a == b && name_matches(rest, below),
    }
}

/// Without braces: the first pair is opened, and so on.
fn expand(pattern: &str) -> Vec<String> {
    let chars: Vec<char> = pattern.chars().collect();
    let Some(open) = (0..chars.len()).find(|&at| chars[at] == '{' && is_plain(&chars, at)) else {
        return vec![pattern.to_owned()];
    };
    let mut depth = 0;
    let mut cuts = vec![open];
    let mut close = open;
    for at in open..chars.len() {
        match chars[at] {
            '{' if is_plain(&chars, at) => depth += 1,
            ',' if depth == 1 && is_plain(&chars, at) => cuts.push(at),
            '}' if is_plain(&chars, at) => {
                depth -= 1;
                if depth == 0 {
                    close = at;
                    break;
                }
            }
            _ => {}
        }
    }
    cuts.push(close);
    let text = |range: &[char]| range.iter().collect::<String>();
    let inner = cuts.windows(2).map(|cut| text(&chars[cut[0] + 1..cut[1]]));
    let whole = inner.map(|choice| {
        format!(
            "{}{choice}{}",
            text(&chars[..open]),
            text(&chars[close + 1..])
        )
    });
    whole.flat_map(|pattern| expand(&pattern)).collect()
}

/// Neither escaped nor in a class.
fn is_plain(chars: &[char], at: usize) -> bool {
    let mut i = 0;
    let mut in_class = false;
    while i < at {
        match chars[i] {
            '\\' if !in_class => i += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        i += 1;
    }
    i == at && !in_class
}

#[test]
fn the_oracle_itself_reads_patterns_right() {
    for (pattern, path, expected) in [
        ("a/**", "a", true),
        ("/a/", "a/b", true),
        ("{a,b{c,d}}/x", "bd/x/y", true),
        ("[!a]", "a", false),
        ("[!a]", "b/c", true),
        (r"\{a,b\}", "{a,b}", true),
        ("*", "", false),
        ("**", "", true),
        ("**/b", "a/c/b/d", true),
    ] {
        assert_eq!(covers(pattern, path), expected, "{pattern} {path}");
    }
}
