//! Part of the parser of command lines: words, that is quoting, here-documents, and where
//! expansions begin.
//!
//! A word is parsed as bash does it, byte by byte. Syntax that is not modelled here either fails
//! (`Err`) or marks the script as ambiguous; it is never guessed.
//!
//! Effects: none.

use super::expansion::Quoting;
use super::script::{
    Ambiguity, CommandPart, RedirectKind, ShellScript, ShellWord, UnknownCause, WordValue, slice,
};
use super::{MAX_DEPTH, MAX_PARTS};

pub(super) type ParseResult<T> = Result<T, Ambiguity>;

/// A position in a command line, and the parts found before it.
pub(super) struct ShellParser<'a> {
    pub(super) source: &'a str,
    pub(super) at: usize,
    /// The end of the text to parse, which is less than the source inside backticks and
    /// here-documents.
    pub(super) end: usize,
    depth: usize,
    pub(super) script: ShellScript,
    /// The offsets of command names.
    pub(super) names: Vec<usize>,
    /// The here-documents with bodies that start after the next line break.
    pub(super) pending_heredocs: Vec<Heredoc>,
    /// The number of them that belong to enclosing commands.
    outer_heredocs: usize,
}

pub(super) struct Heredoc {
    pub(super) delimiter: String,
    pub(super) body: HeredocBody,
    pub(super) tabs: HeredocTabs,
    /// The indices of the part and the redirection.
    pub(super) owner: Option<(usize, usize)>,
}

/// Whether a here-document's body is expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeredocBody {
    Literal,
    Expanded,
}

/// Whether the tabs before its lines are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeredocTabs {
    Kept,
    Stripped,
}

/// A word that is being built.
#[derive(Default)]
pub(super) struct WordBuilder {
    pub(super) known: String,
    unknown: Option<UnknownCause>,
}

impl WordBuilder {
    pub(super) fn mark_unknown(&mut self, why: UnknownCause) {
        self.unknown.get_or_insert(why);
    }

    fn value(self) -> WordValue {
        match self.unknown {
            Some(why) => WordValue::Unknown(why),
            None => WordValue::Known(self.known),
        }
    }
}

impl<'a> ShellParser<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            end: source.len(),
            depth: 0,
            script: ShellScript::default(),
            names: Vec::new(),
            pending_heredocs: Vec::new(),
            outer_heredocs: 0,
        }
    }

    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        (at < self.end)
            .then(|| self.source.as_bytes().get(at).copied())
            .flatten()
    }

    pub(super) fn rest(&self) -> &'a str {
        slice(self.source, self.at..self.end)
    }

    pub(super) fn error<T>(&self, reason: impl Into<String>) -> ParseResult<T> {
        Err(Ambiguity {
            reason: reason.into(),
            at: self.at,
        })
    }

    pub(super) fn mark_ambiguous(&mut self, reason: &str) {
        self.script.mark_ambiguous(reason, self.at);
    }

    /// Adds a part and sets it as the owner of its here-documents.
    pub(super) fn push(&mut self, part: CommandPart) -> ParseResult<()> {
        if self.script.parts.len() >= MAX_PARTS {
            return self.error(format!("more than {MAX_PARTS} commands"));
        }
        let own = part
            .redirects
            .iter()
            .enumerate()
            .filter(|(_, r)| matches!(r.kind, RedirectKind::Heredoc(_)));
        let free = self
            .pending_heredocs
            .iter_mut()
            .filter(|heredoc| heredoc.owner.is_none());
        for ((redirect, _), heredoc) in own.zip(free) {
            heredoc.owner = Some((self.script.parts.len(), redirect));
        }
        self.script.parts.push(part);
        Ok(())
    }

    /// Parses a nested construct.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.depth >= MAX_DEPTH {
            return self.error(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        let waiting = std::mem::take(&mut self.pending_heredocs);
        self.outer_heredocs += waiting.len();
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        self.outer_heredocs -= waiting.len();
        if result.is_ok() && !self.pending_heredocs.is_empty() {
            return self.error("a here-document without its body");
        }
        self.pending_heredocs = waiting;
        result
    }

    /// Parses a level that shares its lines, and so its here-documents, with the enclosing one.
    pub(super) fn with_depth<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.depth >= MAX_DEPTH {
            return self.error(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, comments and line continuations.
    pub(super) fn skip_blanks(&mut self) -> ParseResult<()> {
        loop {
            match self.byte(0) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.byte(1) == Some(b'\n') => self.joined_line()?,
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return Ok(()),
            }
        }
    }

    /// Skips blanks and line breaks.
    pub(super) fn skip_blank_lines(&mut self) -> ParseResult<()> {
        loop {
            self.skip_blanks()?;
            if self.byte(0) != Some(b'\n') {
                return Ok(());
            }
            self.line_break()?;
        }
    }

    /// Skips `\` and a line break, which bash removes before parsing. This is supported between
    /// words only: elsewhere it would join two apparent words.
    fn joined_line(&mut self) -> ParseResult<()> {
        let before = self
            .at
            .checked_sub(1)
            .and_then(|at| self.source.as_bytes().get(at));
        let apart = matches!(before, None | Some(b' ' | b'\t' | b'\n'));
        if !apart && !matches!(self.byte(2), None | Some(b' ' | b'\t' | b'\n')) {
            return self.error("a line break inside of a word");
        }
        self.at += 2;
        Ok(())
    }

    fn line_break(&mut self) -> ParseResult<()> {
        if self.outer_heredocs > 0 {
            return self.error("a here-document whose body begins inside of another command");
        }
        self.at += 1;
        for heredoc in std::mem::take(&mut self.pending_heredocs) {
            self.heredoc_body(&heredoc)?;
        }
        Ok(())
    }

    fn heredoc_body(&mut self, heredoc: &Heredoc) -> ParseResult<()> {
        let start = self.at;
        let mut line_at = start;
        let (stop, next) = loop {
            let line = slice(self.source, line_at..self.end)
                .split('\n')
                .next()
                .unwrap_or_default();
            let shown = match heredoc.tabs {
                HeredocTabs::Kept => line,
                HeredocTabs::Stripped => line.trim_start_matches('\t'),
            };
            let after = line_at + line.len();
            if shown == heredoc.delimiter {
                break (line_at, after);
            }
            if after >= self.end {
                self.mark_ambiguous("a here-document without its end");
                break (self.end, self.end);
            }
            line_at = after + 1;
        };
        let body = match heredoc.body {
            HeredocBody::Literal => Some(slice(self.source, start..stop).to_owned()),
            HeredocBody::Expanded => {
                let outer_end = std::mem::replace(&mut self.end, stop);
                let mut text = WordBuilder::default();
                let read = self.nested(|reader| reader.expandable(&mut text, None));
                self.end = outer_end;
                read?;
                text.unknown.is_none().then_some(text.known)
            }
        };
        self.at = next;
        let redirect = heredoc.owner.and_then(|(part, redirect)| {
            self.script
                .parts
                .get_mut(part)
                .and_then(|part| part.redirects.get_mut(redirect))
        });
        if let Some(redirect) = redirect {
            redirect.kind = RedirectKind::Heredoc(body);
        }
        Ok(())
    }

    /// Returns the unquoted text up to the next blank or operator. Only this can be a reserved
    /// word.
    pub(super) fn peek_bare(&self) -> &'a str {
        let rest = self.rest();
        let length = rest
            .find([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>'])
            .unwrap_or(rest.len());
        slice(rest, 0..length)
    }

    /// Parses the next word. Returns none at an operator, a line break or the end.
    pub(super) fn word(&mut self) -> ParseResult<Option<ShellWord>> {
        let start = self.at;
        let mut text = WordBuilder::default();
        while let Some(byte) = self.byte(0) {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => break,
                b'<' | b'>' if self.byte(1) != Some(b'(') => break,
                b'<' | b'>' => {
                    self.at += 2;
                    self.nested(|reader| reader.list(&[")"]))?;
                    text.mark_unknown(UnknownCause::Substitution);
                }
                b'\\' if self.byte(1) == Some(b'\n') => self.joined_line()?,
                b'\\' => {
                    self.at += 1;
                    self.literal(&mut text)?;
                }
                b'\'' => self.single(&mut text)?,
                b'"' => self.double(&mut text)?,
                b'$' => self.dollar(&mut text, Quoting::Bare)?,
                b'`' => self.backticks(&mut text)?,
                _ => self.bare_character(&mut text, start)?,
            }
        }
        let source = slice(self.source, start..self.at);
        Ok((self.at > start).then(|| ShellWord {
            source: source.to_owned(),
            value: text.value(),
        }))
    }

    fn bare_character(&mut self, text: &mut WordBuilder, start: usize) -> ParseResult<()> {
        let before = self.source.as_bytes().get(self.at.wrapping_sub(1));
        match self.byte(0) {
            Some(b'*' | b'?') => text.mark_unknown(UnknownCause::Glob),
            Some(b'[') if !matches!(self.peek_bare(), "[" | "[[") => {
                text.mark_unknown(UnknownCause::Glob)
            }
            Some(b'{') if !self.rest().starts_with("{}") && self.peek_bare() != "{" => {
                text.mark_unknown(UnknownCause::Brace)
            }
            Some(b'~') if self.at == start || matches!(before, Some(b'=' | b':')) => {
                text.mark_unknown(UnknownCause::Tilde)
            }
            Some(b'!') => self.history(),
            _ => {}
        }
        self.literal(text)
    }

    /// Marks a `!` that an interactive shell would replace by an earlier command.
    fn history(&mut self) {
        if !matches!(
            self.byte(1),
            None | Some(b' ' | b'\t' | b'\n' | b'=' | b'"')
        ) {
            self.mark_ambiguous("`!` may stand for an earlier command");
        }
    }

    pub(super) fn literal(&mut self, text: &mut WordBuilder) -> ParseResult<()> {
        let Some(c) = self.rest().chars().next() else {
            return self.error("nothing after `\\`");
        };
        text.known.push(c);
        self.at += c.len_utf8();
        Ok(())
    }

    fn single(&mut self, text: &mut WordBuilder) -> ParseResult<()> {
        let inside = slice(self.source, self.at + 1..self.end);
        let Some(length) = inside.find('\'') else {
            return self.error("a quote without its end");
        };
        text.known.push_str(slice(inside, 0..length));
        self.at += length + 2;
        Ok(())
    }

    pub(super) fn double(&mut self, text: &mut WordBuilder) -> ParseResult<()> {
        self.at += 1;
        self.expandable(text, Some(b'"'))
    }

    /// Parses text in which `$`, backticks and some escapes have a meaning, up to `close` or the
    /// end.
    fn expandable(&mut self, text: &mut WordBuilder, close: Option<u8>) -> ParseResult<()> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (None, _) if close.is_none() => return Ok(()),
                (None, _) => return self.error("a quote without its end"),
                (byte, _) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                (Some(b'\\'), Some(b'\n')) => {
                    if self.source.as_bytes().get(self.at.wrapping_sub(1)) == Some(&b'$') {
                        return self.error("a line break after `$`");
                    }
                    self.at += 2;
                }
                (Some(b'\\'), Some(next))
                    if matches!(next, b'$' | b'`' | b'\\') || Some(next) == close =>
                {
                    self.at += 1;
                    self.literal(text)?;
                }
                (Some(b'$'), _) => self.dollar(text, Quoting::Double)?,
                (Some(b'`'), _) => self.backticks(text)?,
                (Some(b'!'), _) if close.is_some() => {
                    self.history();
                    self.literal(text)?;
                }
                _ => self.literal(text)?,
            }
        }
    }
}

/// Returns the length of the variable name at the start of `text`.
pub(super) fn name_length(text: &str) -> usize {
    match text.bytes().next() {
        Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => text
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            .count(),
        _ => 0,
    }
}
