//! Commands: lists, pipelines, compound and simple ones.

use super::reader::{Body, Heredoc, Read, Reader, Tabs, name_length};
use super::script::{Assignment, Part, Reach, Redirect, RedirectKind, Unknown, Value, Word, slice};

/// Operators of redirection, longer ones first.
const REDIRECTS: [&str; 12] = [
    "&>>", "<<<", "<<-", "&>", "<<", "<&", "<>", ">>", ">|", ">&", "<", ">",
];
/// Words that mean something only where a command begins.
const STRAY: [&str; 9] = [
    "then", "elif", "else", "fi", "do", "done", "esac", "in", "}",
];

impl Reader<'_> {
    /// Commands up to one of `until`, which is taken and returned; with none, up to the end.
    pub(super) fn list(&mut self, until: &[&'static str]) -> Read<&'static str> {
        loop {
            self.gap()?;
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
            self.blanks()?;
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
            _ => self.bare() == **end,
        };
        until.iter().find(is_here).copied()
    }

    fn and_or(&mut self) -> Read<()> {
        loop {
            self.pipeline()?;
            self.blanks()?;
            if !self.rest().starts_with("&&") && !self.rest().starts_with("||") {
                return Ok(());
            }
            self.at += 2;
            self.gap()?;
        }
    }

    fn pipeline(&mut self) -> Read<()> {
        loop {
            self.blanks()?;
            if self.bare() == "!" {
                self.at += 1;
                continue;
            }
            self.deeper(Self::command)?;
            self.blanks()?;
            match (self.byte(0), self.byte(1)) {
                (Some(b'|'), Some(b'|')) => return Ok(()),
                (Some(b'|'), Some(b'&')) => self.at += 2,
                (Some(b'|'), _) => self.at += 1,
                _ => return Ok(()),
            }
            self.gap()?;
        }
    }

    fn command(&mut self) -> Read<()> {
        let word = self.bare();
        match word {
            "" if self.rest().starts_with("((") => {
                self.at += 2;
                self.doubt("an arithmetic command");
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

    /// What `{ …; } > file` and the like redirect counts as a part without words.
    fn redirects_of_group(&mut self) -> Read<()> {
        let start = self.at;
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None if redirects.is_empty() => return Ok(()),
                None => break,
            }
        }
        self.push_part(Vec::new(), Vec::new(), redirects, start)
    }

    fn for_loop(&mut self) -> Read<()> {
        self.blanks()?;
        if self.rest().starts_with("((") {
            self.at += 2;
            self.doubt("an arithmetic loop");
            self.arithmetic()?;
        } else {
            let name = slice(self.rest(), 0..name_length(self.rest()));
            if name.is_empty() || name != self.bare() {
                return self.error("a loop without a variable");
            }
            let start = self.at;
            self.at += name.len();
            self.gap()?;
            if self.bare() == "in" {
                self.at += 2;
                self.blanks()?;
                while self.word()?.is_some() {
                    self.blanks()?;
                }
            }
            if !is_harmless(name) {
                let value = Value::Unknown(Unknown::Variable);
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
        self.blanks()?;
        self.at += usize::from(self.byte(0) == Some(b';'));
        self.gap()?;
        match self.bare() {
            "do" => {
                self.at += 2;
                self.list(&["done"]).map(drop)
            }
            _ => self.error("a loop without `do`"),
        }
    }

    fn case(&mut self) -> Read<()> {
        self.blanks()?;
        if self.word()?.is_none() {
            return self.error("`case` without a word");
        }
        self.gap()?;
        if self.bare() != "in" {
            return self.error("`case` without `in`");
        }
        self.at += 2;
        loop {
            self.gap()?;
            if self.bare() == "esac" {
                self.at += 4;
                return Ok(());
            }
            self.at += usize::from(self.byte(0) == Some(b'('));
            loop {
                self.blanks()?;
                if self.word()?.is_none() {
                    return self.error("`case` with a pattern that is not known");
                }
                self.blanks()?;
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

    fn function_keyword(&mut self) -> Read<()> {
        self.blanks()?;
        let start = self.at;
        let Some(name) = self.word()? else {
            return self.error("a function without a name");
        };
        self.blanks()?;
        if self.byte(0) == Some(b'(') {
            self.at += 1;
            self.blanks()?;
            if self.byte(0) != Some(b')') {
                return self.error("a function with something in its parentheses");
            }
            self.at += 1;
        }
        self.function_body(name, start)
    }

    /// A function changes what its name means: it is a part of its own, and so is all that it would
    /// run.
    fn function_body(&mut self, name: Word, start: usize) -> Read<()> {
        self.push_part(
            vec![Word::plain("function"), name],
            Vec::new(),
            Vec::new(),
            start,
        )?;
        self.gap()?;
        if !matches!(
            self.bare(),
            "" | "{" | "if" | "while" | "until" | "for" | "case" | "[["
        ) {
            return self.error("a function without a body");
        }
        self.deeper(Self::command)
    }

    /// `[[ … ]]`, whose operators are no operators of the shell.
    fn condition(&mut self) -> Read<()> {
        let start = self.at;
        self.names.push(start);
        self.at += 2;
        let mut words = vec![Word::plain("[[")];
        loop {
            self.gap()?;
            if self.bare() == "]]" {
                self.at += 2;
                words.push(Word::plain("]]"));
                return self.push_part(words, Vec::new(), Vec::new(), start);
            }
            if let Some(word) = self.word()? {
                if let Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R") =
                    word.known()
                {
                    self.doubt("`[[` evaluates, which can run commands");
                }
                words.push(word);
            } else if let Some(operator @ (b'<' | b'>' | b'(' | b')' | b'&' | b'|')) = self.byte(0)
            {
                self.at += 1;
                words.push(Word::plain(char::from(operator)));
            } else {
                return self.error("`[[` without its end");
            }
        }
    }

    fn simple(&mut self) -> Read<()> {
        let start = self.at;
        let mut words = Vec::new();
        let mut assignments = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks()?;
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

    /// `name ()`.
    fn function(&mut self, words: Vec<Word>, start: usize) -> Read<()> {
        self.at += 1;
        self.blanks()?;
        match (<[Word; 1]>::try_from(words), self.byte(0)) {
            (Ok([name]), Some(b')')) => {
                self.names.pop();
                self.at += 1;
                self.function_body(name, start)
            }
            _ => self.error("`(` inside of a command"),
        }
    }

    fn assignment(&mut self) -> Read<Option<Assignment>> {
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
                .map_or(Value::Known(String::new()), |word| word.value);
            return Ok(Some(Assignment { name, value }));
        }
        self.at += 1;
        loop {
            self.gap()?;
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
            value: Value::Unknown(Unknown::Variable),
        }))
    }

    fn redirect(&mut self) -> Read<Option<Redirect>> {
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
        self.blanks()?;
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

    fn heredoc(&mut self, operator: &str, target: &Word) -> Read<RedirectKind> {
        let delimiter = target.known().unwrap_or_default();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if delimiter.is_empty() || !delimiter.bytes().all(plain) || target.source.contains('$') {
            return self.error("a here-document with an unusual end");
        }
        let body = if target.source == delimiter {
            Body::Expanded
        } else {
            Body::Literal
        };
        let tabs = if operator == "<<-" {
            Tabs::Stripped
        } else {
            Tabs::Kept
        };
        self.waiting.push(Heredoc {
            delimiter: delimiter.to_owned(),
            body,
            tabs,
            owner: None,
        });
        Ok(RedirectKind::Heredoc(None))
    }

    fn push_part(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<Assignment>,
        redirects: Vec<Redirect>,
        start: usize,
    ) -> Read<()> {
        let source = slice(self.source, start..self.at).trim().to_owned();
        self.push(Part {
            words,
            assignments,
            redirects,
            reach: Reach::Direct,
            source,
        })
    }
}

/// Whether a loop may set this variable without that changing what commands do.
fn is_harmless(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.contains("proxy")
}

/// `1`, `-`, `1-`.
fn is_descriptor(target: &str) -> bool {
    target == "-" || {
        let digits = target.strip_suffix('-').unwrap_or(target);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}
