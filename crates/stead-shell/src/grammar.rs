//! Part of the parser of command lines: commands, that is lists, pipelines, compound and simple
//! ones.
//!
//! Effects: none.

use super::parser::{Heredoc, HeredocBody, HeredocTabs, ParseResult, ShellParser, name_length};
use super::script::{
    Assignment, CommandPart, Invocation, Redirect, RedirectKind, ShellWord, UnknownCause,
    WordValue, slice,
};

/// The redirection operators, longer ones first.
const REDIRECTS: [&str; 12] = [
    "&>>", "<<<", "<<-", "&>", "<<", "<&", "<>", ">>", ">|", ">&", "<", ">",
];
/// The reserved words that have a meaning only at the start of a command.
const STRAY: [&str; 9] = [
    "then", "elif", "else", "fi", "do", "done", "esac", "in", "}",
];

impl ShellParser<'_> {
    /// Parses commands up to one of `until`, which is consumed and returned; without any, up to the
    /// end.
    pub(super) fn list(&mut self, until: &[&'static str]) -> ParseResult<&'static str> {
        loop {
            self.skip_blank_lines()?;
            if let Some(found) = self.closing(until) {
                self.at += found.len();
                return Ok(found);
            }
            if self.at >= self.end {
                return match until.first() {
                    None => Ok(""),
                    Some(missing) => self.error(format!("`{missing}` is missing")),
                };
            }
            self.and_or()?;
            self.skip_blanks()?;
            match (self.byte(0), self.byte(1)) {
                (None | Some(b'\n'), _) => {}
                (Some(b';'), Some(b';' | b'&')) if self.closing(until).is_some() => {}
                (Some(b';'), Some(b';' | b'&')) => return self.error("`;;` outside of `case`"),
                (Some(b';' | b'&'), _) => self.at += 1,
                _ if self.closing(until).is_some() => {}
                _ => return self.error("something unexpected"),
            }
        }
    }

    fn closing(&self, until: &[&'static str]) -> Option<&'static str> {
        let is_here = |end: &&&'static str| match end.as_bytes() {
            [b')' | b';', ..] => self.rest().starts_with(**end),
            _ => self.peek_bare() == **end,
        };
        until.iter().find(is_here).copied()
    }

    fn and_or(&mut self) -> ParseResult<()> {
        loop {
            self.pipeline()?;
            self.skip_blanks()?;
            if !self.rest().starts_with("&&") && !self.rest().starts_with("||") {
                return Ok(());
            }
            self.at += 2;
            self.skip_blank_lines()?;
        }
    }

    fn pipeline(&mut self) -> ParseResult<()> {
        loop {
            self.skip_blanks()?;
            if self.peek_bare() == "!" {
                self.at += 1;
                continue;
            }
            self.with_depth(Self::command)?;
            self.skip_blanks()?;
            match (self.byte(0), self.byte(1)) {
                (Some(b'|'), Some(b'|')) => return Ok(()),
                (Some(b'|'), Some(b'&')) => self.at += 2,
                (Some(b'|'), _) => self.at += 1,
                _ => return Ok(()),
            }
            self.skip_blank_lines()?;
        }
    }

    fn command(&mut self) -> ParseResult<()> {
        let word = self.peek_bare();
        match word {
            "" if self.rest().starts_with("((") => {
                self.at += 2;
                self.mark_ambiguous("an arithmetic command");
                self.arithmetic()?;
            }
            "" if self.byte(0) == Some(b'(') => {
                self.at += 1;
                self.list(&[")"])?;
            }
            "{" => {
                self.at += 1;
                self.list(&["}"])?;
            }
            "if" => {
                self.at += 2;
                self.list(&["then"])?;
                loop {
                    match self.list(&["elif", "else", "fi"])? {
                        "elif" => self.list(&["then"])?,
                        "else" => continue,
                        _ => break,
                    };
                }
            }
            "while" | "until" => {
                self.at += 5;
                self.list(&["do"])?;
                self.list(&["done"])?;
            }
            "for" | "select" => {
                self.at += word.len();
                self.for_loop()?;
            }
            "case" => {
                self.at += 4;
                self.case()?;
            }
            "function" => {
                self.at += 8;
                return self.function_keyword();
            }
            "[[" => return self.condition(),
            "coproc" => return self.error("a co-process"),
            stray if STRAY.contains(&stray) => {
                return self.error(format!("`{stray}` without its beginning"));
            }
            _ => return self.simple(),
        }
        self.redirects_of_group()
    }

    /// Parses the redirections of `{ …; } > file` and similar groups, as a part without words.
    fn redirects_of_group(&mut self) -> ParseResult<()> {
        let start = self.at;
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None if redirects.is_empty() => return Ok(()),
                None => break,
            }
        }
        self.push_part(Vec::new(), Vec::new(), redirects, start)
    }

    fn for_loop(&mut self) -> ParseResult<()> {
        self.skip_blanks()?;
        if self.rest().starts_with("((") {
            self.at += 2;
            self.mark_ambiguous("an arithmetic loop");
            self.arithmetic()?;
        } else {
            let name = slice(self.rest(), 0..name_length(self.rest()));
            if name.is_empty() || name != self.peek_bare() {
                return self.error("a loop without a variable");
            }
            let start = self.at;
            self.at += name.len();
            self.skip_blank_lines()?;
            if self.peek_bare() == "in" {
                self.at += 2;
                self.skip_blanks()?;
                while self.word()?.is_some() {
                    self.skip_blanks()?;
                }
            }
            if !is_harmless(name) {
                let value = WordValue::Unknown(UnknownCause::Variable);
                self.push_part(
                    Vec::new(),
                    vec![Assignment {
                        name: name.to_owned(),
                        value,
                    }],
                    Vec::new(),
                    start,
                )?;
            }
        }
        self.skip_blanks()?;
        self.at += usize::from(self.byte(0) == Some(b';'));
        self.skip_blank_lines()?;
        match self.peek_bare() {
            "do" => {
                self.at += 2;
                self.list(&["done"]).map(drop)
            }
            _ => self.error("a loop without `do`"),
        }
    }

    fn case(&mut self) -> ParseResult<()> {
        self.skip_blanks()?;
        if self.word()?.is_none() {
            return self.error("`case` without a word");
        }
        self.skip_blank_lines()?;
        if self.peek_bare() != "in" {
            return self.error("`case` without `in`");
        }
        self.at += 2;
        loop {
            self.skip_blank_lines()?;
            if self.peek_bare() == "esac" {
                self.at += 4;
                return Ok(());
            }
            self.at += usize::from(self.byte(0) == Some(b'('));
            loop {
                self.skip_blanks()?;
                if self.word()?.is_none() {
                    return self.error("`case` with a pattern that is not known");
                }
                self.skip_blanks()?;
                match self.byte(0) {
                    Some(b'|') => self.at += 1,
                    Some(b')') => break,
                    _ => return self.error("`case` with a pattern that is not known"),
                }
            }
            self.at += 1;
            if self.list(&[";;&", ";;", ";&", "esac"])? == "esac" {
                return Ok(());
            }
        }
    }

    fn function_keyword(&mut self) -> ParseResult<()> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(name) = self.word()? else {
            return self.error("a function without a name");
        };
        self.skip_blanks()?;
        if self.byte(0) == Some(b'(') {
            self.at += 1;
            self.skip_blanks()?;
            if self.byte(0) != Some(b')') {
                return self.error("a function with something in its parentheses");
            }
            self.at += 1;
        }
        self.function_body(name, start)
    }

    /// Parses the body of a function. A function changes the meaning of its name, so it is a part
    /// of its own, and so are all commands in it.
    fn function_body(&mut self, name: ShellWord, start: usize) -> ParseResult<()> {
        self.push_part(
            vec![ShellWord::plain("function"), name],
            Vec::new(),
            Vec::new(),
            start,
        )?;
        self.skip_blank_lines()?;
        if !matches!(
            self.peek_bare(),
            "" | "{" | "if" | "while" | "until" | "for" | "case" | "[["
        ) {
            return self.error("a function without a body");
        }
        self.with_depth(Self::command)
    }

    /// Parses `[[ … ]]`, in which the shell's operators have other meanings.
    fn condition(&mut self) -> ParseResult<()> {
        let start = self.at;
        self.names.push(start);
        self.at += 2;
        let mut words = vec![ShellWord::plain("[[")];
        loop {
            self.skip_blank_lines()?;
            if self.peek_bare() == "]]" {
                self.at += 2;
                words.push(ShellWord::plain("]]"));
                return self.push_part(words, Vec::new(), Vec::new(), start);
            }
            if let Some(word) = self.word()? {
                if let Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R") =
                    word.known()
                {
                    self.mark_ambiguous("`[[` evaluates, which can run commands");
                }
                words.push(word);
            } else if let Some(operator @ (b'<' | b'>' | b'(' | b')' | b'&' | b'|')) = self.byte(0)
            {
                self.at += 1;
                words.push(ShellWord::plain(char::from(operator)));
            } else {
                return self.error("`[[` without its end");
            }
        }
    }

    fn simple(&mut self) -> ParseResult<()> {
        let start = self.at;
        let mut words = Vec::new();
        let mut assignments = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks()?;
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                assignments.push(assignment);
                continue;
            }
            let word_at = self.at;
            match self.word()? {
                Some(word) => {
                    if words.is_empty() {
                        self.names.push(word_at);
                    }
                    words.push(word);
                }
                None if self.byte(0) == Some(b'(') => return self.function(words, start),
                None => break,
            }
        }
        if self.at == start {
            return self.error("something unexpected");
        }
        self.push_part(words, assignments, redirects, start)
    }

    /// Parses `name ()`.
    fn function(&mut self, words: Vec<ShellWord>, start: usize) -> ParseResult<()> {
        self.at += 1;
        self.skip_blanks()?;
        match (<[ShellWord; 1]>::try_from(words), self.byte(0)) {
            (Ok([name]), Some(b')')) => {
                self.names.pop();
                self.at += 1;
                self.function_body(name, start)
            }
            _ => self.error("`(` inside of a command"),
        }
    }

    fn assignment(&mut self) -> ParseResult<Option<Assignment>> {
        let name = slice(self.rest(), 0..name_length(self.rest()));
        let after = slice(self.rest(), name.len()..self.rest().len());
        let Some(operator) = ["+=", "="]
            .into_iter()
            .find(|operator| !name.is_empty() && after.starts_with(operator))
        else {
            return Ok(None);
        };
        self.at += name.len() + operator.len();
        let name = name.to_owned();
        if self.byte(0) != Some(b'(') {
            let value = self
                .word()?
                .map_or(WordValue::Known(String::new()), |word| word.value);
            return Ok(Some(Assignment { name, value }));
        }
        self.at += 1;
        loop {
            self.skip_blank_lines()?;
            if self.word()?.is_none() {
                break;
            }
        }
        if self.byte(0) != Some(b')') {
            return self.error("a list without its end");
        }
        self.at += 1;
        Ok(Some(Assignment {
            name,
            value: WordValue::Unknown(UnknownCause::Variable),
        }))
    }

    fn redirect(&mut self) -> ParseResult<Option<Redirect>> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let after = slice(self.rest(), digits..self.rest().len());
        let Some(operator) = REDIRECTS
            .into_iter()
            .find(|operator| after.starts_with(operator))
        else {
            return Ok(None);
        };
        let substitution = operator.len() == 1 && after.as_bytes().get(1) == Some(&b'(');
        if substitution || (digits > 0 && operator.starts_with('&')) {
            return Ok(None);
        }
        self.at += digits + operator.len();
        self.skip_blanks()?;
        let Some(target) = self.word()? else {
            return self.error("a redirection without a target");
        };
        let kind = match operator {
            "<<" | "<<-" => self.heredoc(operator, &target)?,
            "<<<" => RedirectKind::Text,
            "<" => RedirectKind::Read,
            ">&" | "<&" if target.known().is_some_and(is_descriptor) => RedirectKind::Duplicate,
            _ => RedirectKind::Write,
        };
        Ok(Some(Redirect { kind, target }))
    }

    fn heredoc(&mut self, operator: &str, target: &ShellWord) -> ParseResult<RedirectKind> {
        let delimiter = target.known().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if delimiter.is_empty() || !delimiter.bytes().all(plain) || target.source.contains('$') {
            return self.error("a here-document with an unusual end");
        }
        let body = if target.source == delimiter {
            HeredocBody::Expanded
        } else {
            HeredocBody::Literal
        };
        let tabs = if operator == "<<-" {
            HeredocTabs::Stripped
        } else {
            HeredocTabs::Kept
        };
        self.pending_heredocs.push(Heredoc {
            delimiter: delimiter.to_owned(),
            body,
            tabs,
            owner: None,
        });
        Ok(RedirectKind::Heredoc(None))
    }

    fn push_part(
        &mut self,
        words: Vec<ShellWord>,
        assignments: Vec<Assignment>,
        redirects: Vec<Redirect>,
        start: usize,
    ) -> ParseResult<()> {
        let source = slice(self.source, start..self.at).trim().to_owned();
        self.push(CommandPart {
            words,
            assignments,
            redirects,
            invocation: Invocation::Direct,
            source,
        })
    }
}

/// Whether a loop may set this variable without changing what commands do.
fn is_harmless(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.contains("proxy")
}

/// Whether a redirection target is a descriptor: `1`, `-`, `1-`.
fn is_descriptor(target: &str) -> bool {
    target == "-" || {
        let digits = target.strip_suffix('-').unwrap_or(target);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}
