//! Colours for code in answers: keywords, strings, numbers and comments of common languages, line by
//! line. A string or comment over several lines is coloured only where its line shows it.
//!
//! Effects: none.

use super::wrap::StyledText;
use ratatui::style::{Color, Modifier, Style};

const KEYWORD: Style = Style::new().fg(Color::Magenta).add_modifier(Modifier::BOLD);
const STRING: Style = Style::new().fg(Color::Green);
const NUMBER: Style = Style::new().fg(Color::Cyan);
const COMMENT: Style = Style::new().fg(Color::DarkGray);

/// What is coloured in a language.
struct Language {
    names: &'static [&'static str],
    keywords: &'static [&'static str],
    /// What begins a comment that ends with its line.
    comment: &'static str,
    quotes: &'static [char],
}

const C_QUOTES: &[char] = &['"', '\''];
const SCRIPT_QUOTES: &[char] = &['"', '\'', '`'];

const LANGUAGES: [Language; 9] = [
    Language {
        names: &["rust", "rs"],
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
            "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
            "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
            "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
        comment: "//",
        // A quote may begin a lifetime.
        quotes: &['"'],
    },
    Language {
        names: &["python", "py"],
        keywords: &[
            "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
            "elif", "else", "except", "False", "finally", "for", "from", "global", "if", "import",
            "in", "is", "lambda", "None", "nonlocal", "not", "or", "pass", "raise", "return",
            "True", "try", "while", "with", "yield",
        ],
        comment: "#",
        quotes: C_QUOTES,
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx"],
        keywords: &[
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
        comment: "//",
        quotes: SCRIPT_QUOTES,
    },
    Language {
        names: &["go"],
        keywords: &[
            "break",
            "case",
            "chan",
            "const",
            "continue",
            "default",
            "defer",
            "else",
            "false",
            "for",
            "func",
            "go",
            "if",
            "import",
            "interface",
            "map",
            "nil",
            "package",
            "range",
            "return",
            "select",
            "struct",
            "switch",
            "true",
            "type",
            "var",
        ],
        comment: "//",
        quotes: SCRIPT_QUOTES,
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "kotlin", "kt", "cs", "csharp", "swift",
        ],
        keywords: &[
            "auto",
            "bool",
            "boolean",
            "break",
            "case",
            "catch",
            "char",
            "class",
            "const",
            "continue",
            "default",
            "do",
            "double",
            "else",
            "enum",
            "extends",
            "false",
            "final",
            "float",
            "for",
            "fun",
            "func",
            "if",
            "implements",
            "import",
            "int",
            "interface",
            "let",
            "long",
            "namespace",
            "new",
            "null",
            "nullptr",
            "override",
            "package",
            "private",
            "protected",
            "public",
            "return",
            "short",
            "signed",
            "sizeof",
            "static",
            "struct",
            "switch",
            "template",
            "this",
            "throw",
            "true",
            "try",
            "typedef",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "volatile",
            "while",
        ],
        comment: "//",
        quotes: C_QUOTES,
    },
    Language {
        names: &["sh", "bash", "shell", "zsh", "console"],
        keywords: &[
            "case", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function", "if",
            "in", "local", "return", "set", "then", "while",
        ],
        comment: "#",
        quotes: C_QUOTES,
    },
    Language {
        names: &["sql"],
        keywords: &[
            "and", "as", "by", "create", "delete", "drop", "from", "group", "having", "insert",
            "into", "join", "left", "limit", "not", "null", "on", "or", "order", "select", "set",
            "table", "update", "values", "where", "with",
        ],
        comment: "--",
        quotes: C_QUOTES,
    },
    Language {
        names: &["yaml", "yml", "toml", "ini", "dockerfile", "makefile"],
        keywords: &["false", "no", "null", "true", "yes"],
        comment: "#",
        quotes: C_QUOTES,
    },
    Language {
        names: &["json", "jsonc"],
        keywords: &["false", "null", "true"],
        comment: "//",
        quotes: &['"'],
    },
];

/// Returns the pieces of `code` with their colours; none if the language is not known. `base` is the
/// style of everything else.
pub(super) fn highlight(language: &str, code: &str, base: Style) -> Option<Vec<StyledText>> {
    let name = language
        .split(|c: char| c.is_whitespace() || c == ',' || c == '{')
        .next()?
        .to_lowercase();
    let language = LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name.as_str()))?;
    let mut pieces = Pieces {
        base,
        out: Vec::new(),
    };
    for line in code.split_inclusive('\n') {
        highlight_line(language, line, &mut pieces);
    }
    Some(pieces.out)
}

/// Pieces of text; neighbours of one style are joined.
struct Pieces {
    base: Style,
    out: Vec<StyledText>,
}

impl Pieces {
    fn push(&mut self, text: &str, style: Option<Style>) {
        let style = style.unwrap_or(self.base);
        match self.out.last_mut() {
            Some((last, known)) if *known == style => last.push_str(text),
            Some(_) | None => self.out.push((text.to_owned(), style)),
        }
    }
}

fn highlight_line(language: &Language, line: &str, pieces: &mut Pieces) {
    let mut rest = line;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        // In a shell `#` begins a comment only after a blank.
        let begins = before.is_whitespace() || language.comment != "#";
        let (length, style) = if begins && rest.starts_with(language.comment) {
            (rest.len(), Some(COMMENT))
        } else if language.quotes.contains(&first) {
            (string_length(rest, first), Some(STRING))
        } else if first.is_ascii_digit() {
            (
                length_while(rest, |c| c.is_alphanumeric() || c == '.' || c == '_'),
                Some(NUMBER),
            )
        } else if first.is_alphabetic() || first == '_' {
            let length = length_while(rest, |c| c.is_alphanumeric() || c == '_');
            (length, keyword_style(language, &rest[..length]))
        } else {
            (first.len_utf8(), None)
        };
        let (piece, after) = rest.split_at(length);
        pieces.push(piece, style);
        before = piece.chars().next_back().unwrap_or(' ');
        rest = after;
    }
}

fn keyword_style(language: &Language, word: &str) -> Option<Style> {
    let is_keyword = match language.names.contains(&"sql") {
        true => language.keywords.contains(&word.to_lowercase().as_str()),
        false => language.keywords.contains(&word),
    };
    is_keyword.then_some(KEYWORD)
}

/// Returns the length of a string up to its closing quote, or to the end of the line.
fn string_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            '\n' => return at,
            _ => {}
        }
    }
    text.len()
}

fn length_while(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The pieces as text: `k(fn)` for a keyword and so on.
    fn marked(language: &str, code: &str) -> String {
        let pieces = highlight(language, code, Style::new()).unwrap();
        let mark = |(text, style): &StyledText| match *style {
            KEYWORD => format!("k({text})"),
            STRING => format!("s({text})"),
            NUMBER => format!("n({text})"),
            COMMENT => format!("c({text})"),
            _ => text.clone(),
        };
        pieces.iter().map(mark).collect()
    }

    #[test]
    fn keywords_strings_numbers_and_comments_have_their_colours() {
        let table = [
            (
                "rust",
                "let x: &'a str = \"a \\\" b\"; // done 1\n",
                "k(let) x: &'a str = s(\"a \\\" b\"); c(// done 1\n)",
            ),
            (
                "py",
                "if x1 == 0x1F: # no\n",
                "k(if) x1 == n(0x1F): c(# no\n)",
            ),
            ("sh", "echo a#b 'it' # c", "echo a#b s('it') c(# c)"),
            ("SQL", "SELECT 1 -- one", "k(SELECT) n(1) c(-- one)"),
            ("json", "{\"a\": true}", "{s(\"a\"): k(true)}"),
            ("js", "`open\nnext", "s(`open)\nnext"),
        ];
        for (language, code, want) in table {
            assert_eq!(marked(language, code), want, "{language}");
        }
        assert_eq!(highlight("brainfuck", "+", Style::new()), None);
        assert_eq!(highlight("", "x", Style::new()), None);
    }

    proptest! {
        #[test]
        fn no_text_is_lost(code in "\\PC{0,40}\n?\\PC{0,40}") {
            for language in LANGUAGES.iter().map(|language| language.names[0]) {
                let pieces = highlight(language, &code, Style::new()).unwrap();
                let text: String = pieces.into_iter().map(|(text, _)| text).collect();
                prop_assert_eq!(&text, &code);
            }
        }
    }
}
