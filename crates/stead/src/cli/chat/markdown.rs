//! Markdown as rows of a terminal, also while it is incomplete.
//!
//! Effects: none.

use super::highlight::highlight;
use super::wrap::{LineBreak, StyledText, wrap};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

/// A renderer for a growing text. Blocks that can no longer change are rendered once.
#[derive(Debug, Default)]
pub(super) struct StreamingMarkdown {
    width: usize,
    /// The number of bytes of the source in settled blocks.
    settled_bytes: usize,
    lines: Vec<Line<'static>>,
}

impl StreamingMarkdown {
    /// Returns the rows of `source`, which starts with the source of the previous call.
    pub(super) fn render(&mut self, source: &str, width: usize) -> Vec<Line<'static>> {
        if width != self.width || source.get(..self.settled_bytes).is_none() {
            *self = Self {
                width,
                ..Self::default()
            };
        }
        self.settle(source);
        let mut lines = self.lines.clone();
        for block in blocks(&source[self.settled_bytes..]) {
            append(
                &mut lines,
                block_lines(&source[self.settled_bytes..][block], width),
            );
        }
        lines
    }

    /// Settles blocks that are followed by another one. Only whole lines are considered: a partial
    /// line may still turn out to continue the block before it.
    fn settle(&mut self, source: &str) {
        let whole = source
            .rfind('\n')
            .map_or(0, |end| end + 1)
            .max(self.settled_bytes);
        let tail = &source[self.settled_bytes..whole];
        let found = blocks(tail);
        let Some((last, settled)) = found.split_last() else {
            return;
        };
        for block in settled {
            append(
                &mut self.lines,
                block_lines(&tail[block.clone()], self.width),
            );
        }
        self.settled_bytes += last.start;
    }
}

/// Returns the rows of a whole text.
#[cfg(test)]
pub(super) fn render(source: &str, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for block in blocks(source) {
        append(&mut lines, block_lines(&source[block], width));
    }
    lines
}

fn append(lines: &mut Vec<Line<'static>>, block: Vec<Line<'static>>) {
    if !lines.is_empty() && !block.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(block);
}

fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(
        source,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS,
    )
}

/// Returns the ranges of the outermost blocks. Each starts at the start of a line.
fn blocks(source: &str) -> Vec<Range<usize>> {
    let mut depth = 0_usize;
    let mut found: Vec<Range<usize>> = Vec::new();
    for (event, range) in parser(source).into_offset_iter() {
        let outermost = depth == 0;
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(_)
            | Event::Code(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::SoftBreak
            | Event::HardBreak
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
        if outermost {
            // Indentation is part of an indented code block.
            let start = source[..range.start].rfind('\n').map_or(0, |end| end + 1);
            found.push(start..range.end);
        }
    }
    found
}

fn block_lines(source: &str, width: usize) -> Vec<Line<'static>> {
    let mut writer = MarkdownWriter {
        width,
        ..MarkdownWriter::default()
    };
    parser(source).for_each(|event| writer.event(event));
    writer.end_paragraph(LineBreak::Words);
    writer.out
}

const CODE: Style = Style::new().fg(Color::Yellow);
const QUIET: Style = Style::new().fg(Color::DarkGray);
const LINK: Style = Style::new()
    .fg(Color::Cyan)
    .add_modifier(Modifier::UNDERLINED);

/// One level of indentation: the prefix of its first row, and of all others.
struct Indent {
    first: Option<StyledText>,
    rest: StyledText,
}

#[derive(Default)]
struct MarkdownWriter {
    width: usize,
    out: Vec<Line<'static>>,
    indents: Vec<Indent>,
    styles: Vec<Style>,
    inline: Vec<StyledText>,
    /// The next number of each open list, outermost first; none for bullets.
    lists: Vec<Option<u64>>,
    links: Vec<String>,
    table: Option<Vec<Vec<String>>>,
    code: bool,
    /// The language of the code block.
    language: String,
}

impl MarkdownWriter {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, Style::new()),
            Event::Code(text) => self.text(&text, CODE),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, CODE),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text, QUIET),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]"), QUIET),
            Event::SoftBreak => self.text(" ", Style::new()),
            Event::HardBreak => self.text("\n", Style::new()),
            Event::Rule => {
                self.text(&"─".repeat(self.available_width().min(40)), QUIET);
                self.end_paragraph(LineBreak::Words);
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, QUIET),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.blank_row(),
            Tag::Heading { level, .. } => {
                self.blank_row();
                let style = Style::new().add_modifier(Modifier::BOLD).fg(Color::Cyan);
                self.styles.push(if level == HeadingLevel::H1 {
                    style.underlined()
                } else {
                    style
                });
            }
            Tag::BlockQuote(_) => {
                self.blank_row();
                let bar = ("▌ ".to_owned(), QUIET);
                self.indents.push(Indent {
                    first: None,
                    rest: bar,
                });
                self.styles
                    .push(Style::new().add_modifier(Modifier::ITALIC));
            }
            Tag::CodeBlock(kind) => {
                self.blank_row();
                if let CodeBlockKind::Fenced(language) = &kind
                    && !language.is_empty()
                {
                    self.text(language, QUIET);
                    self.end_paragraph(LineBreak::Words);
                }
                self.code = true;
                self.language = match &kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.indents.push(Indent {
                    first: None,
                    rest: ("│ ".to_owned(), QUIET),
                });
            }
            Tag::List(first) => {
                self.end_paragraph(LineBreak::Words);
                if self.lists.is_empty() {
                    self.blank_row();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", number.saturating_sub(1))
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let blank = " ".repeat(mark.width());
                self.indents.push(Indent {
                    first: Some((mark, LIST_MARK)),
                    rest: (blank, Style::new()),
                });
            }
            Tag::Table(_) => {
                self.blank_row();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            Tag::TableCell => self.inline.clear(),
            Tag::Emphasis => self
                .styles
                .push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self
                .styles
                .push(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.styles.push(LINK);
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_)
            | Tag::Superscript
            | Tag::Subscript => self.styles.push(Style::new()),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_paragraph(LineBreak::Words),
            TagEnd::Heading(_) => {
                self.end_paragraph(LineBreak::Words);
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph(LineBreak::Words);
                self.indents.pop();
                self.styles.pop();
            }
            TagEnd::CodeBlock => {
                self.end_paragraph(LineBreak::Anywhere);
                self.indents.pop();
                self.code = false;
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                // An empty item still shows its mark.
                if !self.inline.is_empty()
                    || self
                        .indents
                        .last()
                        .is_some_and(|indent| indent.first.is_some())
                {
                    self.text("", Style::new());
                    self.end_paragraph(LineBreak::Words);
                }
                self.indents.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let cell: String = std::mem::take(&mut self.inline)
                    .into_iter()
                    .map(|(text, _)| text)
                    .collect();
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let url = self.links.pop().unwrap_or_default();
                let shown = self.inline.last().is_some_and(|(text, _)| *text == url);
                if !url.is_empty() && !shown {
                    self.text(&format!(" ({url})"), QUIET);
                }
            }
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_)
            | TagEnd::Superscript
            | TagEnd::Subscript => {
                self.styles.pop();
            }
        }
    }

    fn text(&mut self, text: &str, own: Style) {
        let style = self
            .styles
            .iter()
            .fold(Style::new(), |sum, style| sum.patch(*style))
            .patch(own);
        if !self.code {
            return self.inline.push((text.to_owned(), style));
        }
        match highlight(&self.language, text, style) {
            Some(pieces) => self.inline.extend(pieces),
            None => self.inline.push((text.to_owned(), style.patch(CODE))),
        }
    }

    /// Returns the number of columns beside the indentation.
    fn available_width(&self) -> usize {
        let indents: usize = self
            .indents
            .iter()
            .map(|indent| indent.rest.0.width())
            .sum();
        self.width.saturating_sub(indents).max(1)
    }

    /// Adds a blank row between blocks, except before the first block of a list item.
    fn blank_row(&mut self) {
        self.end_paragraph(LineBreak::Words);
        let at_item_start = self
            .indents
            .last()
            .is_some_and(|indent| indent.first.is_some());
        if !self.out.is_empty() && !at_item_start {
            self.row(Line::default());
        }
    }

    fn end_paragraph(&mut self, at: LineBreak) {
        if self.inline.is_empty() {
            return;
        }
        let mut inline = std::mem::take(&mut self.inline);
        if let Some((last, _)) = inline.last_mut() {
            last.truncate(last.trim_end_matches('\n').len());
        }
        for row in wrap(&inline, self.available_width(), at) {
            self.row(row);
        }
    }

    /// Adds one row after the indentation.
    fn row(&mut self, row: Line<'static>) {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for indent in &mut self.indents {
            let (text, style) = indent.first.take().unwrap_or_else(|| indent.rest.clone());
            spans.push(Span::styled(text, style));
        }
        spans.extend(row.spans);
        self.out.push(Line::from(spans));
    }

    /// Adds a table with columns as wide as their widest cell. A table that is too wide is shown
    /// cell by cell.
    fn end_table(&mut self) {
        let rows = self.table.take().unwrap_or_default();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|c| {
                rows.iter()
                    .map(|row| cell(row, c).width())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let fits =
            widths.iter().map(|width| width + 3).sum::<usize>() <= self.available_width() + 3;
        for (at, row) in rows.iter().enumerate() {
            let style = if at == 0 {
                Style::new().add_modifier(Modifier::BOLD)
            } else {
                Style::new()
            };
            let pad = |c: usize| {
                let text = cell(row, c);
                let blank = if fits {
                    widths[c].saturating_sub(text.width())
                } else {
                    0
                };
                format!("{text}{}", " ".repeat(blank))
            };
            let text = (0..columns).map(pad).collect::<Vec<_>>().join(" │ ");
            self.text(text.trim_end(), style);
            self.end_paragraph(LineBreak::Words);
            if at == 0 && fits {
                let rule = widths
                    .iter()
                    .map(|width| "─".repeat(*width))
                    .collect::<Vec<_>>()
                    .join("─┼─");
                self.text(&rule, QUIET);
                self.end_paragraph(LineBreak::Words);
            }
        }
    }
}

const LIST_MARK: Style = Style::new().fg(Color::Cyan);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "# Title\n\nSome **bold**, *slanted*, ~~gone~~ and `code` with a [link](http://x.y/z).\n\
        Second line\n***both*** more\n\n## Sub\n\n- one\n- two\n  - deep **x**\n    more\n- [ ] open\n\n1. first\n2. second\n\n\
        > quoted\n> on two lines\n\n```rust\nfn main() {\n\tprintln!(\"a  b\");\n}\n```\n\n| a | long head |\n|---|:-:|\n| 1 | 漢字 |\n\n\
        Setext\n---\n\n    indented code\n\n---\n\n<b>html</b> &amp; \\* ![img](p.png)\n\nlast 👩‍👩‍👧 word";

    fn shown(lines: &[Line<'_>]) -> Vec<String> {
        lines
            .iter()
            .map(|line| line.to_string().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_stream_cut_anywhere_shows_what_its_text_so_far_means() {
        for width in [1, 7, 40] {
            let mut stream = StreamingMarkdown::default();
            for cut in (0..=SAMPLE.len()).filter(|&cut| SAMPLE.is_char_boundary(cut)) {
                let so_far = &SAMPLE[..cut];
                assert_eq!(
                    stream.render(so_far, width),
                    render(so_far, width),
                    "cut at {cut}: {so_far:?}"
                );
            }
        }
    }

    #[test]
    fn a_new_width_or_a_shorter_text_begins_anew() {
        let mut stream = StreamingMarkdown::default();
        stream.render(SAMPLE, 40);
        assert_eq!(stream.render(SAMPLE, 20), render(SAMPLE, 20));
        assert_eq!(stream.render("new", 20), render("new", 20));
    }

    #[test]
    fn rows_fit_the_width() {
        for width in [10, 24, 80] {
            for line in render(SAMPLE, width) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn every_construct_has_its_look() {
        let cases: [(&str, &[&str]); 9] = [
            ("# A\ntext", &["A", "", "text"]),
            ("a *b* `c`\nd", &["a b c d"]),
            ("- a\n- b\n  1. c\n", &["• a", "• b", "  1. c"]),
            ("- a\n\n  b", &["• a", "", "  b"]),
            ("> q\n> r", &["▌ q r"]),
            (
                "```sh\nls  -l\n\n\tx\n```",
                &["sh", "│ ls  -l", "│", "│     x"],
            ),
            ("|a|bb|\n|-|-|\n|c|d|", &["a │ bb", "──┼───", "c │ d"]),
            ("[t](u) <http://v>", &["t (u) http://v"]),
            ("-", &["•"]),
        ];
        for (source, rows) in cases {
            assert_eq!(shown(&render(source, 30)), rows, "{source:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_in_any_pieces_shows_what_it_means(pieces in prop::collection::vec("[-a b*_`#>|\\n\\t<\\[\\]()!~1.:=漢]{0,6}", 0..12)) {
            let mut stream = StreamingMarkdown::default();
            let mut text = String::new();
            for piece in pieces {
                text.push_str(&piece);
                prop_assert_eq!(stream.render(&text, 12), render(&text, 12), "{:?}", text);
            }
        }
    }
}
