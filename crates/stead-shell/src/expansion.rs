//! Part of the parser of command lines: expansions, which start with `$` or a backtick.
//!
//! Effects: none.

use super::ansi;
use super::parser::{ParseResult, ShellParser, WordBuilder, name_length};
use super::script::{UnknownCause, slice};

/// Whether a `$` is in double quotes or a similar context.
#[derive(Clone, Copy)]
pub(super) enum Quoting {
    Bare,
    Double,
}

impl ShellParser<'_> {
    /// Parses `$` and the expansion after it.
    pub(super) fn dollar(&mut self, text: &mut WordBuilder, quoting: Quoting) -> ParseResult<()> {
        match (self.byte(1), quoting) {
            (Some(b'('), _) if self.byte(2) == Some(b'(') => {
                text.mark_unknown(UnknownCause::Arithmetic);
                self.at += 3;
                self.nested(Self::arithmetic)
            }
            (Some(b'('), _) => {
                text.mark_unknown(UnknownCause::Substitution);
                self.at += 2;
                self.nested(|reader| reader.list(&[")"])).map(drop)
            }
            (Some(b'{'), _) => {
                text.mark_unknown(UnknownCause::Variable);
                self.at += 2;
                self.nested(Self::parameter)
            }
            (Some(b'\''), Quoting::Bare) => {
                let Some((decoded, length)) =
                    ansi::decode(slice(self.source, self.at + 2..self.end))
                else {
                    return self.error("a quote without its end");
                };
                match decoded {
                    Some(decoded) => text.known.push_str(&decoded),
                    None => text.mark_unknown(UnknownCause::Escape),
                }
                self.at += 2 + length;
                Ok(())
            }
            (Some(b'"'), Quoting::Bare) => self.error("a text that is translated (`$\"…\"`)"),
            (Some(b'['), _) => self.error("arithmetic in its old form (`$[…]`)"),
            (Some(b'\\'), _) if self.byte(2) == Some(b'\n') => self.error("a line break after `$`"),
            (Some(b'a'..=b'z' | b'A'..=b'Z' | b'_'), _) => {
                text.mark_unknown(UnknownCause::Variable);
                self.at += 1;
                self.at += name_length(self.rest());
                Ok(())
            }
            (Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!'), _) => {
                text.mark_unknown(UnknownCause::Variable);
                self.at += 2;
                Ok(())
            }
            _ => self.literal(text),
        }
    }

    pub(super) fn backticks(&mut self, text: &mut WordBuilder) -> ParseResult<()> {
        let inside = slice(self.source, self.at + 1..self.end);
        let Some(length) = inside.find('`') else {
            return self.error("a backtick without its end");
        };
        if slice(inside, 0..length).contains('\\') {
            return self.error("`\\` between backticks");
        }
        text.mark_unknown(UnknownCause::Substitution);
        self.at += 1;
        let outer_end = std::mem::replace(&mut self.end, self.at + length);
        let read = self.nested(|reader| reader.list(&[]));
        self.end = outer_end;
        self.at += 1;
        read.map(drop)
    }

    /// Parses the inside of `$((…))` or `((…))`. A variable in it may contain text that runs
    /// commands when it is evaluated.
    pub(super) fn arithmetic(&mut self) -> ParseResult<()> {
        let mut open = 0_usize;
        loop {
            match self.byte(0) {
                None => return self.error("arithmetic without its end"),
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b')') if self.byte(1) == Some(b')') => {
                    self.at += 2;
                    return Ok(());
                }
                Some(b')') => return self.error("`((` that is not arithmetic"),
                Some(b'$') => {
                    self.mark_ambiguous("arithmetic over a variable can run commands");
                    self.dollar(&mut WordBuilder::default(), Quoting::Double)?;
                    continue;
                }
                Some(b'`') => {
                    self.mark_ambiguous("arithmetic over a substitution can run commands");
                    self.backticks(&mut WordBuilder::default())?;
                    continue;
                }
                Some(
                    b'0'..=b'9'
                    | b' '
                    | b'\t'
                    | b'+'
                    | b'-'
                    | b'*'
                    | b'/'
                    | b'%'
                    | b'<'
                    | b'>'
                    | b'=',
                ) => {}
                Some(b'!' | b'&' | b'|' | b'^' | b'~' | b'?' | b':' | b',') => {}
                Some(_) => self.mark_ambiguous("arithmetic over a variable can run commands"),
            }
            self.literal(&mut WordBuilder::default())?;
        }
    }

    /// Parses the inside of `${…}`.
    fn parameter(&mut self) -> ParseResult<()> {
        if matches!(self.byte(0), Some(b' ' | b'\t' | b'\n' | b'|')) {
            self.mark_ambiguous("`${ …;}` runs commands in some shells");
            self.at += usize::from(self.byte(0) == Some(b'|'));
            return self.list(&["}"]).map(drop);
        }
        self.parameter_name();
        self.parameter_operator();
        loop {
            match self.byte(0) {
                None => return self.error("`${` without its end"),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.literal(&mut WordBuilder::default())?;
                }
                Some(b'\'') => {
                    self.mark_ambiguous("a quote inside of `${…}`");
                    self.at += 1;
                }
                Some(b'"') => self.double(&mut WordBuilder::default())?,
                Some(b'$') => self.dollar(&mut WordBuilder::default(), Quoting::Double)?,
                Some(b'`') => self.backticks(&mut WordBuilder::default())?,
                Some(b'<' | b'>') if self.byte(1) == Some(b'(') => {
                    self.mark_ambiguous("a substitution inside of `${…}`");
                    self.at += 2;
                    self.nested(|reader| reader.list(&[")"]))?;
                }
                Some(_) => self.literal(&mut WordBuilder::default())?,
            }
        }
    }

    fn parameter_name(&mut self) {
        if self.byte(0) == Some(b'!') {
            self.mark_ambiguous("`${!…}` takes its name from a variable");
            self.at += 1;
        }
        if self.byte(0) == Some(b'#') && self.byte(1) != Some(b'}') {
            self.at += 1;
        }
        let length = name_length(self.rest());
        match self.byte(0) {
            _ if length > 0 => self.at += length,
            Some(b'0'..=b'9') => {
                self.at += self.rest().bytes().take_while(u8::is_ascii_digit).count()
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$') => self.at += 1,
            _ => self.mark_ambiguous("`${…}` without a name"),
        }
        if self.byte(0) == Some(b'[') {
            let index = self.rest().split(']').next().unwrap_or_default();
            if matches!(index, "[@" | "[*")
                || index.bytes().skip(1).all(|byte| byte.is_ascii_digit())
            {
                self.at += index.len() + 1;
            } else {
                self.mark_ambiguous("an index can run commands");
            }
        }
    }

    fn parameter_operator(&mut self) {
        match (self.byte(0), self.byte(1)) {
            (Some(b'='), _) | (Some(b':'), Some(b'=')) => {
                self.mark_ambiguous("`${…=…}` sets a variable")
            }
            (Some(b':'), Some(b'-' | b'+' | b'?')) => {}
            (Some(b':'), _) => {
                let range = self.rest().split('}').next().unwrap_or_default();
                if !range
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b' ' | b'-'))
                {
                    self.mark_ambiguous("arithmetic over a variable can run commands");
                }
            }
            (Some(b'@'), _) => self.mark_ambiguous("`${…@…}` can run commands"),
            (Some(b'}' | b'-' | b'+' | b'?' | b'%' | b'#' | b'/' | b'^' | b','), _) | (None, _) => {
            }
            (Some(_), _) => self.mark_ambiguous("an expansion of a kind that is not known"),
        }
    }
}
