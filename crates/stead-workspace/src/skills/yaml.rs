//! The YAML of a front matter as a small tree with places.
//!
//! Every scalar is text: a skill called `1.10` is not a number. What the strict dialect of the
//! standard's reference validator refuses (flow style, tags, anchors, tabs between tokens, uneven
//! indentation) is noted beside the tree, so that one parser serves both strict validation and
//! lenient loading.

use super::problem::{Place, Problem};
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Deeper trees are refused: no front matter needs them.
const MAX_DEPTH: usize = 32;
/// A longer front matter is refused: parsing must stay quick whatever a file holds.
const MAX_BYTES: usize = 64 * 1024;
/// Lines of quoted texts that may lack their indentation.
const MAX_TRIES: usize = 200;
/// Comments that may stand before an entry.
const MAX_COMMENTS: usize = 10_000;

/// A parsed front matter.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its content; none if there is nothing but comments.
    pub(crate) root: Option<Node>,
    /// What the strict dialect does not allow.
    pub(crate) not_strict: Vec<Problem>,
}

/// A value with its place.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// `=` and `<<`, special values of an old YAML for which the reference validator finds no text.
    Nothing,
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::List(_) | Value::Map(_) | Value::Nothing => None,
        }
    }

    /// In words, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Nothing => "nothing; quote it",
        }
    }
}

/// Parses `text`, which begins on line `first_line` of its file.
pub(crate) fn parse(text: &str, first_line: usize) -> Result<Document, Problem> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "the front matter has {} bytes, at most {MAX_BYTES}",
            text.len()
        );
        return Err(Problem {
            line: first_line,
            column: 1,
            message,
        });
    }
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_TRIES {
        match parse_once(&text, first_line) {
            Ok(document) => return Ok(document),
            Err(Failure::Problem(problem)) => return Err(problem),
            Err(Failure::QuotedLineNotIndented(start)) => text.to_mut().insert(start, ' '),
        }
    }
    Err(Problem {
        line: first_line,
        column: 1,
        message: "indent the lines of quoted texts".to_owned(),
    })
}

/// Why a text was not parsed.
enum Failure {
    Problem(Problem),
    /// A line of a quoted text begins where a key might, at this byte. Most parsers take it; ours
    /// does once it is indented, which does not change the text.
    QuotedLineNotIndented(usize),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

fn parse_once(text: &str, first_line: usize) -> Result<Document, Failure> {
    let mut builder = Builder {
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
        builder.take(event, &span)?;
    }
    builder.note_tabs(&opaque);
    Ok(Document {
        root: builder.root,
        not_strict: builder.not_strict,
    })
}

/// Whether a tab inside this is content or comment.
fn hides_tabs(event: &Event<'_>) -> bool {
    match event {
        Event::Comment(..) => true,
        Event::Scalar(_, style, ..) => *style != ScalarStyle::Plain,
        _ => false,
    }
}

/// A collection that is not complete yet.
enum Open {
    List(Place, Vec<Node>),
    Map(Place, Vec<(Node, Node)>, Option<Node>),
}

struct Builder<'a> {
    text: &'a str,
    first_line: usize,
    open: Vec<Open>,
    root: Option<Node>,
    not_strict: Vec<Problem>,
}

impl Builder<'_> {
    fn place(&self, line: usize, column: usize) -> Place {
        Place {
            line: self.first_line + line.max(1) - 1,
            column: column + 1,
        }
    }

    fn failure(&self, error: &ScanError) -> Failure {
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
            return Failure::QuotedLineNotIndented(start);
        }
        Problem::at(
            self.place(line, column),
            format!("this is not YAML: {}", error.info()),
        )
        .into()
    }

    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), Problem> {
        let place = self.place(span.start.line(), span.start.col());
        self.note_properties(&event, place);
        match event {
            Event::Scalar(text, style, ..) => {
                let value = match style {
                    ScalarStyle::Plain if span.is_empty() => Value::Text(String::new()),
                    ScalarStyle::Plain if !self.expects_key() && matches!(&*text, "=" | "<<") => {
                        Value::Nothing
                    }
                    _ => Value::Text(text.into_owned()),
                };
                self.add(Node { place, value })
            }
            Event::SequenceStart(..) => self.begin(Open::List(place, Vec::new()), place),
            Event::MappingStart(..) => self.begin(Open::Map(place, Vec::new(), None), place),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(Problem::at(
                place,
                "an alias (*name) is not allowed here; repeat the text, or quote it",
            )),
            Event::DocumentStart(..) if self.root.is_some() => Err(Problem::at(
                place,
                "there must be one YAML document, and here a second one begins",
            )),
            // Ends, comments, and whatever presentation a later parser may tell of.
            _ => Ok(()),
        }
    }

    fn note_properties(&mut self, event: &Event<'_>, place: Place) {
        if event.anchor_id().is_some_and(|id| id != 0) {
            self.not_strict.push(Problem::at(
                place,
                "anchors (&name) are not allowed; quote the text if it is one",
            ));
        }
        if event.tag().is_some() {
            self.not_strict.push(Problem::at(
                place,
                "tags (!name) are not allowed; quote the text if it is one",
            ));
        }
        if let Event::SequenceStart(StructureStyle::Flow, ..)
        | Event::MappingStart(StructureStyle::Flow, ..) = event
        {
            let message =
                "[…] and {…} are not allowed; write one entry per line, or quote the text";
            self.not_strict.push(Problem::at(place, message));
        }
    }

    fn begin(&mut self, open: Open, place: Place) -> Result<(), Problem> {
        if self.open.len() == MAX_DEPTH {
            return Err(Problem::at(
                place,
                format!("nested more than {MAX_DEPTH} deep"),
            ));
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Problem> {
        match self.open.pop() {
            Some(Open::List(place, items)) => self.add(Node {
                place,
                value: Value::List(items),
            }),
            Some(Open::Map(place, entries, _)) => {
                self.note_uneven(&entries);
                self.note_merges(&entries);
                self.add(Node {
                    place,
                    value: Value::Map(entries),
                })
            }
            None => Ok(()),
        }
    }

    fn add(&mut self, node: Node) -> Result<(), Problem> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Map(_, entries, key)) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let Some(name) = node.text() else {
                        return Err(Problem::at(
                            node.place,
                            format!("a key must be a text, not {}", node.kind()),
                        ));
                    };
                    if entries.iter().any(|(known, _)| known.text() == Some(name)) {
                        return Err(Problem::at(
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
    fn note_uneven(&mut self, entries: &[(Node, Node)]) {
        let maps: Vec<Place> = entries
            .iter()
            .filter(|(_, value)| matches!(value.value, Value::Map(_)))
            .map(|(_, value)| value.place)
            .collect();
        let columns: BTreeSet<usize> = maps.iter().map(|place| place.column).collect();
        if let (Some(first), true) = (maps.first(), columns.len() > 1) {
            let odd = maps
                .iter()
                .find(|place| place.column != first.column)
                .unwrap_or(first);
            let message = format!("indented differently from the map in line {}", first.line);
            self.not_strict.push(Problem::at(*odd, message));
        }
    }

    /// `<<` takes over the entries of another map, if it is one.
    fn note_merges(&mut self, entries: &[(Node, Node)]) {
        let merges = entries.iter().filter(|(key, value)| {
            key.text() == Some("<<") && !matches!(value.value, Value::Map(_))
        });
        let problems =
            merges.map(|(key, _)| Problem::at(key.place, "`<<` must be followed by a map"));
        self.not_strict.extend(problems);
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map(_, _, None)))
    }

    fn refuse_unprintable(&self) -> Result<(), Problem> {
        let Some((at, found)) = self.text.char_indices().find(|(_, c)| !is_printable(*c)) else {
            return Ok(());
        };
        let message = format!(
            "the character U+{:04X} is not allowed; remove it",
            found as u32
        );
        Err(Problem::at(self.place_of(at), message))
    }

    fn note_tabs(&mut self, opaque: &[Range<usize>]) {
        // They come in the order of the text.
        let hidden = |at: usize| {
            let before = opaque.partition_point(|range| range.end <= at);
            opaque.get(before).is_some_and(|range| range.contains(&at))
        };
        if let Some((at, _)) = self.text.match_indices('\t').find(|(at, _)| !hidden(*at)) {
            self.not_strict.push(Problem::at(
                self.place_of(at),
                "a tab is not allowed here; use spaces, or quote the text",
            ));
        }
    }

    /// The place of a byte.
    fn place_of(&self, at: usize) -> Place {
        let before = &self.text[..at];
        let column = before.rsplit('\n').next().unwrap_or("").chars().count();
        self.place(before.matches('\n').count() + 1, column)
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        || c >= '\u{10000}'
}
