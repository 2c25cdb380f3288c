//! Part of `Guarded`: the paths that an access touches, and the decision of the rules about them.
//!
//! A path is judged by its name, by its real path, and by its target. The name is judged first and
//! alone, before any lookup, so that a denied path gives the same answer whether it exists or not.
//!
//! Effects: workspace files (reads).

use super::with_path;
use crate::rules::{ProtectedLinks, RuleDecision, Rules};
use crate::{FileKind, VPath, Vfs, VfsError};
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{AccessKind, PathAccess, PathScope, RuleId, RuleSource, Verdict, VerdictKind};

/// Larger directories are not moved or removed, because judging them would take too long.
const MAX_TREE_ENTRIES: usize = 50_000;

/// Judges everything that `accesses` touch in `vfs`. Returns the strictest verdict, with the rules
/// that gave it, or `None` without accesses. An error names a path as it was given, and no other.
pub async fn judge_accesses(
    rules: &Rules,
    vfs: &dyn Vfs,
    accesses: &[PathAccess],
) -> Result<Option<Verdict>, VfsError> {
    let touches = parse_all(accesses)?;
    let judged = AccessJudge::new(rules, vfs).judge_all(&touches).await?;
    Ok(judged.map(|(verdict, _)| verdict))
}

/// Judges what a tool call touches. Paths that its arguments name are judged more strictly than those
/// that the tool itself chooses.
pub async fn judge_call(
    rules: &Rules,
    vfs: &dyn Vfs,
    accesses: &[PathAccess],
    named_paths: &[String],
) -> Result<Option<Verdict>, VfsError> {
    let touches = parse_all(accesses)?;
    if let Some(stricter) = rules.for_named_paths() {
        let is_named = |access: &PathAccess| named_paths.contains(&access.path);
        let with_access = accesses.iter().zip(&touches);
        let named: Vec<TouchedPath> = with_access
            .filter(|(access, _)| is_named(access))
            .map(|(_, touch)| touch.clone())
            .collect();
        let judged = AccessJudge::new(&stricter, vfs).judge_all(&named).await?;
        if let Some((verdict, _)) = judged.filter(|(verdict, _)| verdict.kind == VerdictKind::Deny)
        {
            return Ok(Some(verdict));
        }
    }
    let judged = AccessJudge::new(rules, vfs).judge_all(&touches).await?;
    Ok(judged.map(|(verdict, _)| verdict))
}

fn parse_all(accesses: &[PathAccess]) -> Result<Vec<TouchedPath>, VfsError> {
    accesses.iter().map(TouchedPath::parse).collect()
}

/// One path that an operation touches.
#[derive(Debug, Clone)]
pub(super) struct TouchedPath {
    pub(super) path: VPath,
    pub(super) kind: AccessKind,
    pub(super) extent: AccessExtent,
}

/// The extent of an access: a parsed [`PathScope`].
#[derive(Debug, Clone)]
pub(super) enum AccessExtent {
    Content,
    Tree,
    Arrival { from: VPath },
}

impl TouchedPath {
    pub(super) fn new(kind: AccessKind, path: &VPath, extent: AccessExtent) -> Self {
        Self {
            path: path.clone(),
            kind,
            extent,
        }
    }

    /// An access to the content of a file, or to the entries of a directory.
    pub(super) fn content(kind: AccessKind, path: &VPath) -> Self {
        Self::new(kind, path, AccessExtent::Content)
    }

    fn parse(access: &PathAccess) -> Result<Self, VfsError> {
        let extent = match &access.scope {
            PathScope::Content => AccessExtent::Content,
            PathScope::Tree => AccessExtent::Tree,
            PathScope::Arrival { from } => AccessExtent::Arrival {
                from: VPath::parse(from)?,
            },
        };
        Ok(Self {
            path: VPath::parse(&access.path)?,
            kind: access.kind,
            extent,
        })
    }
}

/// All paths of one file.
pub(super) struct PathAliases {
    /// The name, the real path and the target, without duplicates.
    pub(super) paths: Vec<VPath>,
    /// The real path of the name: links in its parents are resolved, a link at its end is not.
    pub(super) entry: VPath,
    /// The target, or the reason why it cannot be determined.
    pub(super) target: Result<VPath, VfsError>,
}

/// The entries below a directory.
#[derive(Default)]
struct Subtree {
    entries: Vec<SubtreeEntry>,
    truncated: bool,
}

struct SubtreeEntry {
    /// The path from the directory.
    relative_path: String,
    /// All its paths, including the target of a link.
    paths: Vec<VPath>,
    /// Whether its name is a valid path component.
    has_valid_name: bool,
}

/// The strictest decision about the entries of a directory, and every rule that asks about one.
#[derive(Default)]
struct TreeDecision<'r, 'e> {
    strictest: Option<(RuleDecision<'r>, &'e SubtreeEntry)>,
    asking: Vec<RuleDecision<'r>>,
}

impl<'r, 'e> TreeDecision<'r, 'e> {
    fn add(&mut self, decided: RuleDecision<'r>, entry: &'e SubtreeEntry) {
        if decided.kind() == VerdictKind::Ask && !self.asking.contains(&decided) {
            self.asking.push(decided);
        }
        let replaces = |(known, _): &(RuleDecision<'r>, _)| is_stricter(known, &decided);
        if self.strictest.as_ref().is_none_or(replaces) {
            self.strictest = Some((decided, entry));
        }
    }
}

/// Judges the accesses of one call.
pub(super) struct AccessJudge<'a> {
    rules: &'a Rules,
    vfs: &'a dyn Vfs,
    links: ProtectedLinks,
    /// The targets of protected links for readers, if known.
    read_links: Option<&'a ProtectedLinks>,
    subtrees: BTreeMap<VPath, Arc<Subtree>>,
}

impl<'a> AccessJudge<'a> {
    pub(super) fn new(rules: &'a Rules, vfs: &'a dyn Vfs) -> Self {
        Self {
            rules,
            vfs,
            links: ProtectedLinks::default(),
            read_links: None,
            subtrees: BTreeMap::new(),
        }
    }

    /// Sets the known targets of protected links for readers.
    pub(super) fn with_known_links(self, known: Option<&'a ProtectedLinks>) -> Self {
        Self {
            read_links: known,
            ..self
        }
    }

    /// Returns the strictest verdict and the index of the path it is about. The first denial ends
    /// the evaluation.
    pub(super) async fn judge_all(
        &mut self,
        touches: &[TouchedPath],
    ) -> Result<Option<(Verdict, usize)>, VfsError> {
        for (at, touch) in touches.iter().enumerate() {
            let decided =
                self.rules
                    .decide_with_links(touch.kind, touch.path.as_str(), &self.links);
            if decided.kind() == VerdictKind::Deny {
                return Ok(Some((decided.verdict(), at)));
            }
        }
        let writes = touches.iter().any(|touch| touch.kind == AccessKind::Write);
        self.links = match self.read_links {
            Some(known) if !writes => known.clone(),
            Some(_) | None if writes => {
                protected_links(self.rules, self.vfs, AccessKind::Write).await
            }
            Some(_) | None => protected_links(self.rules, self.vfs, AccessKind::Read).await,
        };
        let mut strictest: Option<(Verdict, usize)> = None;
        for (at, touch) in touches.iter().enumerate() {
            let aliases = path_aliases(self.vfs, &touch.path).await?;
            let own = self.strictest(touch.kind, &aliases.paths).verdict();
            let further = match own.kind {
                VerdictKind::Deny => None,
                VerdictKind::Allow | VerdictKind::Ask => self.judge_extent(touch, aliases).await?,
            };
            let verdict = match further {
                Some(further) if is_stricter_verdict(&own, &further) => further,
                Some(further) => with_asking_rules(own, &further),
                None => own,
            };
            let denied = verdict.kind == VerdictKind::Deny;
            strictest = Some(match strictest {
                Some((known, _)) if is_stricter_verdict(&known, &verdict) => (verdict, at),
                Some((known, first)) => (with_asking_rules(known, &verdict), first),
                None => (verdict, at),
            });
            if denied {
                break;
            }
        }
        Ok(strictest)
    }

    /// Returns the verdict on what an access touches besides its own path: everything below it, if it
    /// is about a tree. An error if the target of the path cannot be determined but matters.
    async fn judge_extent(
        &mut self,
        touch: &TouchedPath,
        aliases: PathAliases,
    ) -> Result<Option<Verdict>, VfsError> {
        let TouchedPath { path, kind, extent } = touch;
        let PathAliases { entry, target, .. } = aliases;
        match (extent, target) {
            (AccessExtent::Content, Ok(_)) => Ok(None),
            (AccessExtent::Content, Err(error)) => Err(with_path(path, Some(error))),
            // A link is moved or removed, not followed, so its target does not matter.
            (AccessExtent::Tree | AccessExtent::Arrival { .. }, Err(error))
                if !self.is_in_a_directory(path).await =>
            {
                Err(with_path(path, Some(error)))
            }
            (AccessExtent::Tree, Ok(end)) if end == entry => {
                self.judge_tree(*kind, path, &entry).await
            }
            (AccessExtent::Tree, Ok(_) | Err(_)) => Ok(None),
            (AccessExtent::Arrival { from }, Ok(_) | Err(_)) => {
                self.judge_arrival(*kind, path, &entry, from).await
            }
        }
    }

    async fn is_in_a_directory(&self, path: &VPath) -> bool {
        match path.parent() {
            Some(parent) => self.vfs.resolve(&parent).await.is_ok(),
            None => true,
        }
    }

    fn strictest(&self, kind: AccessKind, paths: &[VPath]) -> RuleDecision<'a> {
        let rules = self.rules;
        let decided = paths
            .iter()
            .map(|path| rules.decide_with_links(kind, path.as_str(), &self.links));
        decided
            .reduce(|a, b| if is_stricter(&a, &b) { b } else { a })
            .unwrap_or(RuleDecision::NoRule)
    }

    /// Judges everything below a directory.
    async fn judge_tree(
        &mut self,
        kind: AccessKind,
        path: &VPath,
        entry: &VPath,
    ) -> Result<Option<Verdict>, VfsError> {
        let below = self.subtree(path, entry).await?;
        if below.truncated {
            return Ok(Some(too_many_entries(path)));
        }
        let mut tree = TreeDecision::default();
        for inner in &below.entries {
            if !inner.has_valid_name {
                let text = format!(
                    "something in {path} has a name that cannot be written as text, so no rule can judge it"
                );
                return Ok(Some(Verdict::deny(
                    RuleId::new(RuleSource::Path, "name is not text"),
                    text,
                )));
            }
            let decided = self.strictest(kind, &inner.paths);
            tree.add(decided, inner);
            if decided.kind() == VerdictKind::Deny {
                break;
            }
        }
        Ok(self.tree_verdict(path, kind, &tree))
    }

    /// Judges every path at which an entry below `from` would arrive.
    async fn judge_arrival(
        &mut self,
        kind: AccessKind,
        path: &VPath,
        entry: &VPath,
        from: &VPath,
    ) -> Result<Option<Verdict>, VfsError> {
        let source = path_aliases(self.vfs, from).await?;
        if source.target.as_ref().ok() != Some(&source.entry) {
            return Ok(None);
        }
        let below = self.subtree(from, &source.entry).await?;
        if below.truncated {
            return Ok(Some(too_many_entries(from)));
        }
        let mut tree = TreeDecision::default();
        for inner in &below.entries {
            let mut paths = vec![path.join(&inner.relative_path)?];
            if entry != path {
                paths.push(entry.join(&inner.relative_path)?);
            }
            let decided = self.strictest(kind, &paths);
            tree.add(decided, inner);
        }
        Ok(self.tree_verdict(from, kind, &tree))
    }

    /// Returns the verdict on the content of a directory. It never shows the name of an entry, and
    /// shows a rule only if that name may be read, because a rule's pattern may be the name.
    fn tree_verdict(
        &self,
        directory: &VPath,
        kind: AccessKind,
        tree: &TreeDecision<'_, '_>,
    ) -> Option<Verdict> {
        let (decided, inner) = tree.strictest.as_ref()?;
        let verdict = decided.verdict();
        let is_told = self.strictest(AccessKind::Read, &inner.paths).kind() != VerdictKind::Deny;
        let reason = match (verdict.kind, kind) {
            (VerdictKind::Allow, _) => return Some(verdict),
            (VerdictKind::Ask | VerdictKind::Deny, _) if is_told => {
                format!("{}, for something in {directory}", verdict.reason)
            }
            (VerdictKind::Ask, _) => format!("something in {directory} must be asked for"),
            (VerdictKind::Deny, AccessKind::Read) => {
                format!("something in {directory} may not be read")
            }
            (VerdictKind::Deny, AccessKind::Write) => {
                format!("something in {directory} may not be changed")
            }
        };
        let own = if is_told {
            verdict.rules
        } else {
            vec![decided.hidden_rule()]
        };
        let others = tree.asking.iter().filter(|other| *other != decided);
        let rules = match verdict.kind {
            VerdictKind::Ask => own
                .into_iter()
                .chain(others.map(RuleDecision::hidden_rule))
                .collect(),
            VerdictKind::Allow | VerdictKind::Deny => own,
        };
        Some(Verdict {
            kind: verdict.kind,
            rules,
            reason,
        })
    }

    /// Returns everything below `path` if it is a directory, looked up once.
    async fn subtree(&mut self, path: &VPath, entry: &VPath) -> Result<Arc<Subtree>, VfsError> {
        if let Some(known) = self.subtrees.get(path) {
            return Ok(known.clone());
        }
        let found = Arc::new(self.load_subtree(path, entry).await?);
        self.subtrees.insert(path.clone(), found.clone());
        Ok(found)
    }

    async fn load_subtree(&self, path: &VPath, entry: &VPath) -> Result<Subtree, VfsError> {
        match self.vfs.stat(path).await {
            Ok(stat) if stat.kind == FileKind::Directory => {}
            // The operation itself reports what cannot be read.
            Ok(_) | Err(_) => return Ok(Subtree::default()),
        }
        let walk = match self.vfs.walk(path, None, MAX_TREE_ENTRIES).await {
            Ok(walk) => walk,
            Err(error) => return Err(with_path(path, Some(error))),
        };
        let mut entries = Vec::with_capacity(walk.entries.len());
        for (child, found) in walk.entries {
            let rest = child.as_str()[path.as_str().len()..]
                .trim_start_matches('/')
                .to_owned();
            let mut paths = Vec::with_capacity(1);
            if entry != path {
                paths.push(entry.join(&rest)?);
            }
            if found.link {
                paths.extend(self.vfs.resolve(&child).await.ok());
            }
            let has_valid_name = found.link
                || found.kind != FileKind::Other
                || !found.name.contains(char::REPLACEMENT_CHARACTER);
            paths.push(child);
            entries.push(SubtreeEntry {
                relative_path: rest,
                paths,
                has_valid_name,
            });
        }
        Ok(Subtree {
            entries,
            truncated: walk.truncated,
        })
    }
}

/// Returns the targets of protected names that are links, as far as they matter for `kind`.
pub(super) async fn protected_links(
    rules: &Rules,
    vfs: &dyn Vfs,
    kind: AccessKind,
) -> ProtectedLinks {
    let mut links = ProtectedLinks::default();
    for (name, kept) in rules.protected_roots(kind) {
        if let Ok(end) = vfs.resolve(&name).await
            && end != name
        {
            links.0.push((end, kept));
        }
    }
    links
}

/// Returns all paths of a file.
pub(super) async fn path_aliases(vfs: &dyn Vfs, path: &VPath) -> Result<PathAliases, VfsError> {
    let end = vfs.resolve(path).await;
    if end.as_ref().is_ok_and(|end| end == path) {
        // The resolved path is the path itself, so there is no link on the way.
        return Ok(PathAliases {
            paths: vec![path.clone()],
            entry: path.clone(),
            target: end,
        });
    }
    let entry = real_path(vfs, path, end.as_ref().ok()).await?;
    let mut paths = vec![path.clone()];
    for further in std::iter::once(&entry).chain(end.as_ref().ok()) {
        if !paths.contains(further) {
            paths.push(further.clone());
        }
    }
    Ok(PathAliases {
        paths,
        entry,
        target: end,
    })
}

/// Returns the real path of a name, as far down as it can be determined.
async fn real_path(vfs: &dyn Vfs, path: &VPath, end: Option<&VPath>) -> Result<VPath, VfsError> {
    if let Some(end) = end
        && is_home_path(vfs, path).await
    {
        return Ok(end.clone());
    }
    let mut above = path.parent();
    while let Some(directory) = above {
        if let Ok(real) = vfs.resolve(&directory).await {
            let rest = path.as_str()[directory.as_str().len()..].trim_start_matches('/');
            return Ok(real.join(rest)?);
        }
        above = directory.parent();
    }
    Ok(path.clone())
}

/// Returns whether a name at the root resolves elsewhere without being a link: the root lists every
/// link, but not what a [`DefaultDirVfs`](crate::DefaultDirVfs) keeps in its home folder.
async fn is_home_path(vfs: &dyn Vfs, path: &VPath) -> bool {
    let is_at_root = path.parent().is_some_and(|parent| parent.is_root());
    is_at_root
        && vfs
            .list(&VPath::root())
            .await
            .is_ok_and(|all| all.iter().all(|entry| entry.name != path.name()))
}

/// Returns whether `new` takes precedence over `known`: it is stricter, or it allows by a rule
/// instead of by default.
fn is_stricter(known: &RuleDecision<'_>, new: &RuleDecision<'_>) -> bool {
    new.kind() > known.kind()
        || (*known == RuleDecision::NoRule && new.kind() == VerdictKind::Allow)
}

/// Returns `known` with the rules of `other` if both ask: a grant must answer each of them.
fn with_asking_rules(mut known: Verdict, other: &Verdict) -> Verdict {
    if known.kind == VerdictKind::Ask && other.kind == VerdictKind::Ask {
        for rule in &other.rules {
            if !known.rules.contains(rule) {
                known.rules.push(rule.clone());
            }
        }
    }
    known
}

/// Like [`is_stricter`], for verdicts.
fn is_stricter_verdict(known: &Verdict, new: &Verdict) -> bool {
    let nothing = RuleDecision::NoRule.verdict();
    new.kind > known.kind || (*known == nothing && new.kind == VerdictKind::Allow)
}

fn too_many_entries(directory: &VPath) -> Verdict {
    Verdict::deny(
        RuleId::new(RuleSource::Path, "too many entries"),
        format!(
            "{directory} holds more than {MAX_TREE_ENTRIES} files and directories, too many to judge at once; move or \
             delete it in parts"
        ),
    )
}
