//! The YAML of a front matter as a tree whose nodes know their position.
//!
//! This is apart from `stead_core::YamlValue`, the tree of settings files and task lists, because
//! it is a dialect of its own, and lenient by design:
//!
//! - Every scalar is a text: a skill called `1.10` or `no` has that name, not a number or a boolean.
//! - What the standard's reference validator refuses (flow style, tags, anchors, tabs between tokens,
//!   uneven indentation) is noted beside the tree. So one parser serves both strict validation and
//!   lenient loading.
//! - Lines of quoted texts may lack their indentation, as in many published skills.
//!
//! Effects: none.

use crate::problem::{SkillProblem, TextPosition};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// The maximum depth of the tree.
const MAX_DEPTH: usize = 32;
/// The maximum size of a front matter, so that parsing is fast for any file.
const MAX_BYTES: usize = 64 * 1024;
/// The maximum number of lines of quoted texts that may lack indentation.
const MAX_TRIES: usize = 200;
/// The maximum number of comments before an entry.
const MAX_COMMENTS: usize = 10_000;

/// A parsed front matter.
#[derive(Debug)]
pub(crate) struct SkillYaml {
    /// The content; none if there are only comments.
    pub(crate) root: Option<SkillYamlNode>,
    /// What the strict dialect refuses.
    pub(crate) not_strict: Vec<SkillProblem>,
}

/// A value and its position.
#[derive(Debug)]
pub(crate) struct SkillYamlNode {
    pub(crate) place: TextPosition,
    pub(crate) value: SkillYamlValue,
}

#[derive(Debug)]
pub(crate) enum SkillYamlValue {
    Text(String),
    List(Vec<SkillYamlNode>),
    Map(Vec<(SkillYamlNode, SkillYamlNode)>),
    /// `=` and `<<`, special values of an old YAML for which the reference validator finds no text.
    Nothing,
}

impl SkillYamlNode {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            SkillYamlValue::Text(text) => Some(text),
            SkillYamlValue::List(_) | SkillYamlValue::Map(_) | SkillYamlValue::Nothing => None,
        }
    }

    /// Names the kind of value, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            SkillYamlValue::Text(_) => "a text",
            SkillYamlValue::List(_) => "a list",
            SkillYamlValue::Map(_) => "a map",
            SkillYamlValue::Nothing => "nothing; quote it",
        }
    }
}

/// Parses `text`, which begins on line `first_line` of its file.
pub(crate) fn parse(text: &str, first_line: usize) -> Result<SkillYaml, SkillProblem> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "the front matter has {} bytes; the limit is {MAX_BYTES}",
            text.len()
        );
        return Err(SkillProblem {
            line: first_line,
            column: 1,
            message,
        });
    }
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_TRIES {
        match parse_once(&text, first_line) {
            Ok(document) => return Ok(document),
            Err(SkillYamlFailure::Problem(problem)) => return Err(problem),
            Err(SkillYamlFailure::QuotedLineNotIndented(start)) => text.to_mut().insert(start, ' '),
        }
    }
    Err(SkillProblem {
        line: first_line,
        column: 1,
        message: "indent the lines of quoted texts".to_owned(),
    })
}

/// Why a text was not parsed.
enum SkillYamlFailure {
    Problem(SkillProblem),
    /// A line of a quoted text begins where a key might, at this byte. Most parsers take it; ours
    /// does once it is indented, which does not change the text.
    QuotedLineNotIndented(usize),
}

impl From<SkillProblem> for SkillYamlFailure {
    fn from(problem: SkillProblem) -> Self {
        Self::Problem(problem)
    }
}

fn parse_once(text: &str, first_line: usize) -> Result<SkillYaml, SkillYamlFailure> {
    let mut builder = SkillYamlBuilder {
        text,
        first_line,
        open: Vec::new(),
        root: None,
        not_strict: Vec::new(),
    };
    builder.refuse_unprintable()?;
    let mut opaque = Vec::new();
    let options = granit_parser::options! { max_buffered_comment_events: MAX_COMMENTS };
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = match event {
            Ok(parsed) => parsed,
            Err(error) => return Err(builder.failure(&error)),
        };
        if hides_tabs(&event) {
            opaque.extend(span.byte_range());
        }
        builder.handle_event(event, &span)?;
    }
    builder.note_tabs(&opaque);
    Ok(SkillYaml {
        root: builder.root,
        not_strict: builder.not_strict,
    })
}

/// Returns whether a tab inside this event is content or part of a comment.
fn hides_tabs(event: &Event<'_>) -> bool {
    match event {
        Event::Comment(..) => true,
        Event::Scalar(_, style, ..) => *style != ScalarStyle::Plain,
        _ => false,
    }
}

/// A collection that is not complete yet.
enum OpenCollection {
    List(TextPosition, Vec<SkillYamlNode>),
    Map(
        TextPosition,
        Vec<(SkillYamlNode, SkillYamlNode)>,
        /// The key whose value comes next.
        Option<SkillYamlNode>,
    ),
}

struct SkillYamlBuilder<'a> {
    text: &'a str,
    first_line: usize,
    open: Vec<OpenCollection>,
    root: Option<SkillYamlNode>,
    not_strict: Vec<SkillProblem>,
}

impl SkillYamlBuilder<'_> {
    fn place(&self, line: usize, column: usize) -> TextPosition {
        TextPosition {
            line: self.first_line + line.max(1) - 1,
            column: column + 1,
        }
    }

    fn failure(&self, error: &ScanError) -> SkillYamlFailure {
        let line = error.marker().line();
        let column = error.marker().col();
        let start = self
            .text
            .split_inclusive('\n')
            .take(line.saturating_sub(1))
            .map(str::len)
            .sum::<usize>();
        let is_outdented = self.text[start..].starts_with(|c: char| !c.is_whitespace());
        if *error.kind() == ErrorKind::InvalidQuotedScalarIndent && is_outdented {
            return SkillYamlFailure::QuotedLineNotIndented(start);
        }
        SkillProblem::at(
            self.place(line, column),
            format!("this is not YAML: {}", error.info()),
        )
        .into()
    }

    fn handle_event(&mut self, event: Event<'_>, span: &Span) -> Result<(), SkillProblem> {
        let place = self.place(span.start.line(), span.start.col());
        self.note_properties(&event, place);
        match event {
            Event::Scalar(text, style, ..) => {
                let value = match style {
                    ScalarStyle::Plain if span.is_empty() => SkillYamlValue::Text(String::new()),
                    ScalarStyle::Plain if !self.expects_key() && matches!(&*text, "=" | "<<") => {
                        SkillYamlValue::Nothing
                    }
                    _ => SkillYamlValue::Text(text.into_owned()),
                };
                self.add(SkillYamlNode { place, value })
            }
            Event::SequenceStart(..) => {
                self.open_collection(OpenCollection::List(place, Vec::new()), place)
            }
            Event::MappingStart(..) => {
                self.open_collection(OpenCollection::Map(place, Vec::new(), None), place)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_collection(),
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(SkillProblem::at(
                place,
                "an alias (*name) is not allowed here; repeat the text, or quote it",
            )),
            Event::DocumentStart(..) if self.root.is_some() => Err(SkillProblem::at(
                place,
                "there must be one YAML document, and here a second one begins",
            )),
            // Ends, comments, and events that a later version of the parser may add.
            _ => Ok(()),
        }
    }

    fn note_properties(&mut self, event: &Event<'_>, place: TextPosition) {
        if event.anchor_id().is_some_and(|id| id != 0) {
            self.not_strict.push(SkillProblem::at(
                place,
                "anchors (&name) are not allowed; quote the text if it is one",
            ));
        }
        if event.tag().is_some() {
            self.not_strict.push(SkillProblem::at(
                place,
                "tags (!name) are not allowed; quote the text if it is one",
            ));
        }
        if let Event::SequenceStart(StructureStyle::Flow, ..)
        | Event::MappingStart(StructureStyle::Flow, ..) = event
        {
            let message =
                "[…] and {…} are not allowed; write one entry per line, or quote the text";
            self.not_strict.push(SkillProblem::at(place, message));
        }
    }

    fn open_collection(
        &mut self,
        open: OpenCollection,
        place: TextPosition,
    ) -> Result<(), SkillProblem> {
        if self.open.len() == MAX_DEPTH {
            return Err(SkillProblem::at(
                place,
                format!("nested more than {MAX_DEPTH} deep"),
            ));
        }
        self.open.push(open);
        Ok(())
    }

    fn close_collection(&mut self) -> Result<(), SkillProblem> {
        match self.open.pop() {
            Some(OpenCollection::List(place, items)) => self.add(SkillYamlNode {
                place,
                value: SkillYamlValue::List(items),
            }),
            Some(OpenCollection::Map(place, entries, _)) => {
                self.note_uneven(&entries);
                self.note_merges(&entries);
                self.add(SkillYamlNode {
                    place,
                    value: SkillYamlValue::Map(entries),
                })
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, node: SkillYamlNode) -> Result<(), SkillProblem> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection::List(_, items)) => items.push(node),
            Some(OpenCollection::Map(_, entries, key)) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Some(name) = node.text() else {
                        return Err(SkillProblem::at(
                            node.place,
                            format!("a key must be a text, not {}", node.kind()),
                        ));
                    };
                    if entries.iter().any(|(known, _)| known.text() == Some(name)) {
                        return Err(SkillProblem::at(
                            node.place,
                            format!("the key `{name}` is there twice"),
                        ));
                    }
                    *key = Some(node);
                }
            },
        }
        Ok(())
    }

    /// Maps that are values of one map must begin in one column.
    fn note_uneven(&mut self, entries: &[(SkillYamlNode, SkillYamlNode)]) {
        let maps: Vec<TextPosition> = entries
            .iter()
            .filter(|(_, value)| matches!(value.value, SkillYamlValue::Map(_)))
            .map(|(_, value)| value.place)
            .collect();
        let columns: BTreeSet<usize> = maps.iter().map(|place| place.column).collect();
        if let (Some(first), true) = (maps.first(), columns.len() > 1) {
            let odd = maps
                .iter()
                .find(|place| place.column != first.column)
                .unwrap_or(first);
            let message = format!("indented differently from the map in line {}", first.line);
            self.not_strict.push(SkillProblem::at(*odd, message));
        }
    }

    /// Notes each `<<` (merge) that is not followed by a map.
    fn note_merges(&mut self, entries: &[(SkillYamlNode, SkillYamlNode)]) {
        let merges = entries.iter().filter(|(key, value)| {
            key.text() == Some("<<") && !matches!(value.value, SkillYamlValue::Map(_))
        });
        let problems =
            merges.map(|(key, _)| SkillProblem::at(key.place, "`<<` must be followed by a map"));
        self.not_strict.extend(problems);
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenCollection::Map(_, _, None)))
    }

    fn refuse_unprintable(&self) -> Result<(), SkillProblem> {
        let Some((at, found)) = self.text.char_indices().find(|(_, c)| !is_printable(*c)) else {
            return Ok(());
        };
        let message = format!(
            "the character U+{:04X} is not allowed; remove it",
            found as u32
        );
        Err(SkillProblem::at(self.place_of(at), message))
    }

    fn note_tabs(&mut self, opaque: &[Range<usize>]) {
        // Problems are reported in the order of the text.
        let hidden = |at: usize| {
            let before = opaque.partition_point(|range| range.end <= at);
            opaque.get(before).is_some_and(|range| range.contains(&at))
        };
        if let Some((at, _)) = self.text.match_indices('\t').find(|(at, _)| !hidden(*at)) {
            self.not_strict.push(SkillProblem::at(
                self.place_of(at),
                "a tab is not allowed here; use spaces, or quote the text",
            ));
        }
    }

    /// Returns the position of a byte.
    fn place_of(&self, at: usize) -> TextPosition {
        let before = &self.text[..at];
        let column = before.rsplit('\n').next().unwrap_or("").chars().count();
        self.place(before.matches('\n').count() + 1, column)
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        || c >= '\u{10000}'
}
