//! The path patterns of rules: globs.
//!
//! This is not globset: there `[!x]` matches a `/` and `?` matches a byte, so a rule would not
//! cover what its reader expects. Here a pattern is compared name by name and character by
//! character.
//!
//! Effects: none.

use std::str::Chars;

/// The maximum number of alternatives that the braces of a pattern expand to.
const MAX_ALTERNATIVES: usize = 1024;
/// The maximum nesting of braces.
const MAX_BRACE_DEPTH: usize = 16;

/// A glob over whole paths from the root. It covers what it matches, and everything below that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    text: String,
    /// One list for each combination of brace alternatives.
    alternatives: Vec<Vec<PathSegment>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathSegment {
    /// `**`: any number of names.
    Deep,
    Name(Vec<Token>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Literal(char),
    Any,
    Star,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// A token, or the end of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPiece {
    Token(Token),
    Slash,
}

impl PathPattern {
    /// Compiles a pattern, or returns what is wrong with it.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.chars().any(char::is_control) {
            return Err("a control character is in no path".to_owned());
        }
        let mut rest = text.chars();
        let choices = pieces(&mut rest, 0)?;
        let alternatives = choices
            .into_iter()
            .map(segments)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            alternatives,
        })
    }

    /// Returns the pattern as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the path with these names, or one of its parents, matches.
    pub(crate) fn covers(&self, names: &[&str]) -> bool {
        self.alternatives
            .iter()
            .any(|segments| covers(segments, names))
    }

    /// Returns whether everything that this pattern covers is covered by `earlier` ones, as far as
    /// their texts show.
    pub(crate) fn is_covered_by(&self, earlier: &[&Self]) -> bool {
        let covered = |mine: &Vec<PathSegment>| {
            earlier
                .iter()
                .flat_map(|e| &e.alternatives)
                .any(|e| mine.starts_with(e))
        };
        self.alternatives.iter().all(covered)
    }

    /// Returns the one path that this pattern names, if it has no wildcards.
    pub(crate) fn literal(&self) -> Option<String> {
        let [segments] = self.alternatives.as_slice() else {
            return None;
        };
        let names: Option<Vec<String>> = segments.iter().map(PathSegment::literal).collect();
        names
            .filter(|names| !names.is_empty())
            .map(|names| names.join("/"))
    }
}

/// Returns whether the segments match a prefix of the names.
fn covers(segments: &[PathSegment], names: &[&str]) -> bool {
    let mut segment = 0;
    let mut name = 0;
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match segments.get(segment) {
            None => return true,
            Some(PathSegment::Deep) => {
                segment += 1;
                retry = Some((segment, name));
                continue;
            }
            Some(PathSegment::Name(tokens)) => {
                if names.get(name).is_some_and(|name| is_name(tokens, name)) {
                    (segment, name) = (segment + 1, name + 1);
                    continue;
                }
            }
        }
        // The end is open, so only the last `**` ever needs to match more.
        match &mut retry {
            Some((after, from)) if *from < names.len() => {
                *from += 1;
                (segment, name) = (*after, *from);
            }
            Some(_) | None => return false,
        }
    }
}

fn is_name(tokens: &[Token], name: &str) -> bool {
    let mut at = 0;
    let mut rest = name.chars();
    let mut retry: Option<(usize, Chars<'_>)> = None;
    loop {
        match tokens.get(at) {
            None if rest.as_str().is_empty() => return true,
            None => {}
            Some(Token::Star) => {
                at += 1;
                retry = Some((at, rest.clone()));
                continue;
            }
            Some(token) => {
                let mut after = rest.clone();
                if after.next().is_some_and(|c| token.takes(c)) {
                    (at, rest) = (at + 1, after);
                    continue;
                }
            }
        }
        // As with `**`: the last `*` matches one character more.
        let Some((after, from)) = &mut retry else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        (at, rest) = (*after, from.clone());
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Literal(wanted) => *wanted == c,
            Self::Any | Self::Star => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

impl PathSegment {
    fn literal(&self) -> Option<String> {
        let Self::Name(tokens) = self else {
            return None;
        };
        let letter = |token: &Token| match token {
            Token::Literal(c) => Some(*c),
            Token::Any | Token::Star | Token::Class { .. } => None,
        };
        tokens.iter().map(letter).collect()
    }
}

/// Parses up to the end, or to the `,` or `}` that ends an alternative, which is not consumed.
fn pieces(rest: &mut Chars<'_>, depth: usize) -> Result<Vec<Vec<PatternPiece>>, String> {
    let mut choices = vec![Vec::new()];
    let push = |choices: &mut Vec<Vec<PatternPiece>>, piece: PatternPiece| {
        choices.iter_mut().for_each(|c| c.push(piece.clone()))
    };
    loop {
        let mut ahead = rest.clone();
        let Some(c) = ahead.next() else {
            return Ok(choices);
        };
        if depth > 0 && matches!(c, ',' | '}') {
            return Ok(choices);
        }
        *rest = ahead;
        match c {
            '/' => push(&mut choices, PatternPiece::Slash),
            '*' => push(&mut choices, PatternPiece::Token(Token::Star)),
            '?' => push(&mut choices, PatternPiece::Token(Token::Any)),
            '[' => push(&mut choices, PatternPiece::Token(class(rest)?)),
            '{' => choices = combine(&choices, &alternatives(rest, depth + 1)?)?,
            '}' => return Err("`}` without `{`".to_owned()),
            '\\' => match rest.next() {
                Some('/') => push(&mut choices, PatternPiece::Slash),
                Some(c) => push(&mut choices, PatternPiece::Token(Token::Literal(c))),
                None => return Err("`\\` with nothing after it".to_owned()),
            },
            c => push(&mut choices, PatternPiece::Token(Token::Literal(c))),
        }
    }
}

/// Parses what follows a `{`, including its `}`.
fn alternatives(rest: &mut Chars<'_>, depth: usize) -> Result<Vec<Vec<PatternPiece>>, String> {
    if depth > MAX_BRACE_DEPTH {
        return Err(format!("braces nested more than {MAX_BRACE_DEPTH} deep"));
    }
    let mut all = Vec::new();
    loop {
        all.extend(pieces(rest, depth)?);
        match rest.next() {
            Some(',') => {}
            Some(_) => return Ok(all),
            None => return Err("`{` without `}`".to_owned()),
        }
    }
}

/// Returns every beginning with every continuation.
fn combine(
    begun: &[Vec<PatternPiece>],
    further: &[Vec<PatternPiece>],
) -> Result<Vec<Vec<PatternPiece>>, String> {
    if begun.len() * further.len() > MAX_ALTERNATIVES {
        return Err(format!(
            "its braces stand for more than {MAX_ALTERNATIVES} patterns"
        ));
    }
    Ok(begun
        .iter()
        .flat_map(|a| {
            further
                .iter()
                .map(|b| [a.as_slice(), b.as_slice()].concat())
        })
        .collect())
}

/// Parses what follows a `[`, including its `]`. A leading `]`, and a leading or trailing `-`, are
/// literal.
fn class(rest: &mut Chars<'_>) -> Result<Token, String> {
    let negated = rest.as_str().starts_with(['!', '^']);
    if negated {
        rest.next();
    }
    let mut ranges: Vec<(char, char)> = Vec::new();
    loop {
        let from = match rest.next() {
            None => return Err("`[` without `]`".to_owned()),
            Some(']') if !ranges.is_empty() => return Ok(Token::Class { negated, ranges }),
            Some('/') => {
                return Err("`/` in `[…]`: a class stands for one letter of a name".to_owned());
            }
            Some(c) => c,
        };
        let mut ahead = rest.clone();
        let to = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                *rest = ahead;
                to
            }
            (_, _) => from,
        };
        if to < from {
            return Err(format!("`{from}-{to}` is no range"));
        }
        ranges.push((from, to));
    }
}

/// Returns the segments of one alternative. A pattern that could never match is refused, because a
/// rule without effect is a trap.
fn segments(pieces: Vec<PatternPiece>) -> Result<Vec<PathSegment>, String> {
    let mut segments = Vec::new();
    for part in pieces.split(|piece| *piece == PatternPiece::Slash) {
        let tokens: Vec<Token> = part
            .iter()
            .filter_map(PatternPiece::token)
            .cloned()
            .collect();
        let segment = if tokens == [Token::Star, Token::Star] {
            PathSegment::Deep
        } else {
            PathSegment::Name(tokens)
        };
        match segment.literal().as_deref() {
            Some("" | ".") => continue,
            Some("..") => return Err("`..` is in no path".to_owned()),
            Some("~") if segments.is_empty() => {
                return Err("`~` has no meaning here; begin at the root".to_owned());
            }
            Some(_) | None => {}
        }
        // A second `**` in a row adds nothing.
        if segment != PathSegment::Deep || segments.last() != Some(&PathSegment::Deep) {
            segments.push(segment);
        }
    }
    if segments.is_empty() {
        return Err("it is empty; use `**` for everything".to_owned());
    }
    // `a/**` equals `a`: both cover the directory and everything in it.
    if segments.last() == Some(&PathSegment::Deep) {
        segments.pop();
    }
    Ok(segments)
}

impl PatternPiece {
    fn token(&self) -> Option<&Token> {
        match self {
            Self::Token(token) => Some(token),
            Self::Slash => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(path: &str) -> Vec<&str> {
        path.split('/').filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn a_pattern_covers_what_it_matches_and_all_below() {
        #[rustfmt::skip]
        let table: &[(&str, &[&str], &[&str])] = &[
            ("secrets", &["secrets", "secrets/a/b", "secrets/.x"], &["", "secret", "secretsx", "x/secrets", "Secrets"]),
            ("/secrets/", &["secrets", "secrets/a"], &["", "a/secrets"]),
            ("secrets/**", &["secrets", "secrets/a", "secrets/a/.b"], &["", "secretsa"]),
            ("./a//b/.", &["a/b"], &["a", "b"]),
            ("secrets/*", &["secrets/a", "secrets/a/b", "secrets/.a"], &["secrets"]),
            ("*.md", &["a.md", ".md", "a.md/x"], &["d/a.md", "a.mdx", ""]),
            ("**/*.md", &["a.md", "d/e/a.md"], &["a.txt", ""]),
            ("**", &["", "a", "a/b"], &[]),
            ("**/**", &["", "a"], &[]),
            ("*", &["a", ".a", "a/b"], &[""]),
            ("a/**/z", &["a/z", "a/b/c/z/y"], &["a", "a/b", "z"]),
            ("**/a/**/b/**/c", &["a/b/c", "x/a/a/y/b/b/c"], &["a/c/b", "b/a/c"]),
            ("a?c", &["abc", "aéc", "a🦀c"], &["ac", "a/c", "abbc"]),
            ("[!x]y", &["ay", "éy"], &["xy", "/y", "y", "a/y"]),
            ("a[!x]b", &["acb"], &["a/b", "axb"]),
            ("[a-cé]1", &["b1", "é1"], &["d1", "e1"]),
            ("[]-]", &["]", "-"], &["a"]),
            ("[^]]", &["a"], &["]"]),
            ("{a,b/c}/d", &["a/d", "b/c/d/e"], &["b/d", "a"]),
            ("x{,.bak}", &["x", "x.bak"], &["x.b"]),
            ("{a,{b,c}d}e", &["ae", "bde", "cde"], &["be", "de"]),
            ("{a,**/b}", &["a", "x/b"], &["x/a"]),
            ("a,b", &["a,b"], &["a", "b"]),
            (r"\*\{x\}", &["*{x}"], &["a{x}", "*"]),
            ("a**b", &["ab", "axyb"], &["a/b"]),
            ("*a*b*", &["ab", "xaxbx", "aab"], &["ba", "a"]),
            ("naïve file", &["naïve file"], &["naive file"]),
        ];
        for (pattern, yes, no) in table {
            let compiled = PathPattern::new(pattern).unwrap();
            yes.iter().for_each(|path| {
                assert!(
                    compiled.covers(&split(path)),
                    "{pattern} should cover {path:?}"
                )
            });
            no.iter().for_each(|path| {
                assert!(
                    !compiled.covers(&split(path)),
                    "{pattern} should not cover {path:?}"
                )
            });
        }
    }

    #[test]
    fn what_could_never_match_is_refused_with_the_reason() {
        #[rustfmt::skip]
        let table = [
            ("", "empty"), ("/", "empty"), (".", "empty"), ("{a,}", "empty"), ("../x", "`..`"), ("a/../b", "`..`"),
            ("{a,..}/b", "`..`"), ("~/x", "`~`"), ("[a", "without `]`"), ("[]", "without `]`"), ("{a", "without `}`"),
            ("a}", "without `{`"), ("a\\", "nothing after"), ("[b-a]", "no range"), ("[/]", "`/` in"), ("a\u{7}", "control"),
            ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "more than 1024"),
        ];
        for (pattern, reason) in table {
            let error = PathPattern::new(pattern).unwrap_err();
            assert!(error.contains(reason), "{pattern:?}: {error}");
        }
        assert!(
            PathPattern::new(&"{".repeat(100_000))
                .unwrap_err()
                .contains("nested")
        );
    }

    #[test]
    fn cover_is_seen_where_the_texts_tell() {
        let covered = |later: &str, earlier: &[&str]| {
            let earlier: Vec<PathPattern> = earlier
                .iter()
                .map(|text| PathPattern::new(text).unwrap())
                .collect();
            PathPattern::new(later)
                .unwrap()
                .is_covered_by(&earlier.iter().collect::<Vec<_>>())
        };
        for (later, earlier, expected) in [
            ("a/b", &["a"][..], true),
            ("a/**", &["/a/"], true),
            ("**", &["**"], true),
            ("x", &["**/**"], true),
            ("{a,b}", &["b", "a"], true),
            ("a", &["a/b"], false),
            ("a*", &["a"], false),
            ("{a,b}", &["a"], false),
        ] {
            assert_eq!(covered(later, earlier), expected, "{later} by {earlier:?}");
        }
    }

    proptest! {
        /// Where globset has the same meaning (one-byte letters, no classes, a match of the whole),
        /// the results are equal.
        #[test]
        fn plain_patterns_mean_what_globset_means(
            pattern in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "?", "**", "a*", "{a,b}", "{a,b/a}c"]), 1..5),
            path in prop::collection::vec(prop::sample::select(vec!["a", "b", "ac", "bc", "aa"]), 1..5),
        ) {
            let text = pattern.join("/");
            let whole = |text: &str| {
                let glob = globset::GlobBuilder::new(text).literal_separator(true).build().unwrap().compile_matcher();
                glob.is_match(path.join("/"))
            };
            // A pattern covers everything below, and with a trailing `/**` the directory too.
            let expected = whole(&text) || whole(&format!("{text}/**")) || whole(text.trim_end_matches("/**"));
            prop_assert_eq!(PathPattern::new(&text).unwrap().covers(&path), expected, "{} {}", text, path.join("/"));
        }
    }
}
